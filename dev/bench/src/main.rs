//! Comparisons with the tools of the field, on the same path, in turn, in the same run.
//!
//! A shared machine changes its speed from minute to minute, so absolute figures of different runs
//! mean nothing side by side. All contenders of a contest run once per round, in an order that
//! turns round each time; ratios are formed within rounds, and their median counts. Every contender
//! gets fresh processes, and its own client's CPU time is taken from the kernel. Reading order:
//! [`place`], [`session`], [`contest`], then one file per section.
//!
//! [`agree`] asks another question of the same tools: whether we say the same of a path whose truth
//! is known. [`passive`] is about probes, which have other peers.

mod agree;
mod capture;
mod contest;
mod latency;
mod pacing;
mod page;
mod passive;
mod peers;
mod place;
mod report;
mod responder;
mod sample;
mod session;
mod setting;
mod table;
mod tcp;
mod udp;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use netaware_netns::Pair;

use xtask::{clock, node, packages, shell};

use contest::{Contest, Outcome};
use peers::Tools;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", about = "Compares netaware with the tools of the field")]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Throughput, UDP, pacing, latency and the idle responder, against iperf3 and its kin (needs
    /// root)
    Active(Active),
    /// Whether netaware and the tools of the field say the same of an emulated path (needs root)
    Agree(agree::Agree),
    /// The page of `netaware serve` in a real browser, beside `netaware` on the same path (needs
    /// root)
    Page(page::Page),
    /// Cost and truth of passive probes, beside tcpdump and what was published of the system before
    /// (needs root)
    Passive(passive::Passive),
}

#[derive(Debug, Args)]
pub(crate) struct Active {
    /// Rounds; each contender runs once in every round
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seconds of each transfer
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Seconds of each paced stream
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    paced_seconds: u32,
    /// Short runs, to see that everything works; docs/benchmarks.md is left alone
    #[arg(long)]
    quick: bool,
    /// Only these sections; the others in docs/benchmarks.md stay as they are
    #[arg(long, value_enum)]
    only: Vec<Section>,
    /// A newest iperf3, for what only it can do (--skip-rx-copy, --gsro)
    #[arg(long, value_name = "PATH")]
    iperf3_new: Option<PathBuf>,
    /// This netaware instead of a release build of the checkout
    #[arg(long, value_name = "PATH")]
    netaware: Option<PathBuf>,
    /// Leave netaware out, to test the bench itself
    #[arg(long)]
    peers_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Section {
    /// TCP throughput
    Tcp,
    /// UDP as fast as it goes, with segmentation offload
    UdpOffload,
    /// UDP as fast as it goes, one datagram per packet all the way
    UdpPlain,
    /// UDP as fast as it goes, with and without a histogram of arrivals
    UdpHistogram,
    /// Evenly spaced UDP
    Pacing,
    /// Request-response delay
    Latency,
    /// The responder: idle, and with 100 clients
    Responder,
}

/// How long things run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Rounds.
    pub(crate) runs: u32,
    /// Seconds of one transfer.
    pub(crate) seconds: u32,
    /// Seconds of one paced stream.
    pub(crate) paced_seconds: u32,
}

impl Plan {
    fn of(options: &Active) -> Self {
        let (seconds, paced_seconds) =
            if options.quick { (1, 5) } else { (options.seconds, options.paced_seconds) };
        Self { runs: options.runs, seconds, paced_seconds }
    }
}

fn main() -> Result<()> {
    std::env::set_current_dir(shell::root())?;
    match &Arguments::parse().bench {
        Bench::Active(options) => active(options),
        Bench::Agree(options) => agree::run(options),
        Bench::Page(options) => page::measure(options),
        Bench::Passive(options) => passive::run(options),
    }
}

fn active(options: &Active) -> Result<()> {
    packages::ensure(packages::FOR_BENCHMARKS)?;
    netaware_netns::remove_stale()?;
    let tools = Tools::prepare(options.netaware.clone(), options.peers_only, options.iperf3_new.clone())?;
    let plan = Plan::of(options);
    let pair = Pair::new("bench")?;
    let mut failures = 0;
    for section in Section::value_variants() {
        if !options.only.is_empty() && !options.only.contains(section) {
            continue;
        }
        let outcomes =
            section.contests(&pair, &tools, plan).into_iter().map(|contest| contest.hold(plan.runs));
        let outcomes: Vec<Outcome> = outcomes.collect();
        failures += outcomes.iter().map(Outcome::failures).sum::<usize>();
        let lead =
            format!("{} rounds of {} s, paced streams of {} s", plan.runs, plan.seconds, plan.paced_seconds);
        let text = table::section(&outcomes, &lead);
        println!("## {}\n\n{text}", section.title());
        if !options.quick && !options.peers_only {
            report::write(&report::BENCHMARKS, &section.key(), section.title(), &text)?;
        }
    }
    ensure!(failures == 0, "{failures} runs failed; they are listed below their tables");
    Ok(())
}

impl Section {
    fn contests<'a>(self, pair: &'a Pair, tools: &'a Tools, plan: Plan) -> Vec<Contest<'a>> {
        match self {
            Self::Tcp => tcp::contests(pair, tools, plan),
            Self::UdpOffload => udp::with_offload(pair, tools, plan),
            Self::UdpPlain => udp::plain(pair, tools, plan),
            Self::UdpHistogram => udp::with_histogram(pair, tools, plan),
            Self::Pacing => pacing::contests(pair, tools, plan),
            Self::Latency => latency::contests(pair, tools, plan),
            Self::Responder => responder::contests(pair, tools, plan),
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP throughput",
            Self::UdpOffload => "UDP, as fast as it goes, with segmentation offload",
            Self::UdpPlain => "UDP, as fast as it goes, without offload",
            Self::UdpHistogram => "UDP, as fast as it goes, with a histogram of arrivals",
            Self::Pacing => "Evenly spaced UDP, gaps at the receiver",
            Self::Latency => "Request-response delay over UDP",
            Self::Responder => "The responder",
        }
    }

    /// Its name between the markers of docs/benchmarks.md.
    pub(crate) fn key(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
