//! What watching costs and how true its figures are: the tables of the system before, measured
//! anew, theirs beside ours.
//!
//! Load is put on a veth pair by one thread, and `netaware probe` and tcpdump watch in turn; delays
//! are those of a lab, which knows the truth about every packet. Reading order: [`traffic`],
//! [`reader`], then one file per kind of table.

mod delay;
mod generator;
mod load;
mod published;
mod reader;
mod stamps;
mod traffic;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use netaware_netns::Pair;

use super::contest::{Contest, Outcome};
use super::{peers, report, table};
use crate::packages;

/// Us in the tables, and the program beside us.
const OURS: &str = "netaware";
const TCPDUMP: &str = "tcpdump";

#[derive(Debug, Args)]
pub(crate) struct Passive {
    /// Rounds; each contender runs once in every round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seconds of each test
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Seconds of the shortest test of duration; the longest takes sixty times as long
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    long_seconds: u32,
    /// Short runs, to see that everything works; docs/benchmarks.md is left alone
    #[arg(long)]
    quick: bool,
    /// Only these sections; the others in docs/benchmarks.md stay as they are
    #[arg(long, value_enum)]
    only: Vec<Section>,
    /// Only contests whose title has this in it; prints the tables, and docs/benchmarks.md is left
    /// alone
    #[arg(long, value_name = "TEXT")]
    matching: Option<String>,
    /// This netaware instead of a release build of the checkout
    #[arg(long, value_name = "PATH")]
    netaware: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Packet rates, from idle to what one sender gives
    Rate,
    /// The ring in which packets wait
    Memory,
    /// A slow link
    Link,
    /// Filters of more and more conditions
    Filters,
    /// One task and four
    Tasks,
    /// Frame sizes
    FrameSizes,
    /// Gaps between frames
    Gaps,
    /// Durations
    Durations,
    /// A probe that gets no time
    Overload,
    /// How well packets are stamped
    Stamps,
    /// One-way delay of real traffic
    Delay,
    /// … by frame size
    DelayFrameSizes,
    /// … with five tasks
    DelayTasks,
    /// … by duration
    DelayDurations,
    /// Active one-way delay, and passive of the same packets
    ActiveDelay,
}

/// What the sections need.
struct Bench<'a> {
    pair: &'a Pair,
    netaware: &'a Path,
    seconds: f64,
    long_seconds: f64,
}

pub(crate) fn run(options: &Passive) -> Result<()> {
    packages::ensure(packages::FOR_BENCHMARKS)?;
    netaware_netns::remove_stale()?;
    let netaware = peers::netaware_program(options.netaware.clone())?;
    let (seconds, long_seconds) =
        if options.quick { (1, 1) } else { (options.seconds, options.long_seconds) };
    let pair = Pair::new("passive")?;
    traffic::cut_before_the_link(&pair)?;
    let bench = Bench {
        pair: &pair,
        netaware: &netaware,
        seconds: f64::from(seconds),
        long_seconds: f64::from(long_seconds),
    };
    let runs = if options.quick { 1 } else { options.runs };
    let mut failures = 0;
    for section in Section::value_variants() {
        if !options.only.is_empty() && !options.only.contains(section) {
            continue;
        }
        let wanted = |title: &str| options.matching.as_ref().is_none_or(|text| title.contains(text));
        let contests = section.contests(&bench).into_iter().filter(|contest| wanted(&contest.title));
        let outcomes: Vec<Outcome> = contests.map(|contest| contest.hold(runs)).collect();
        if outcomes.is_empty() {
            continue;
        }
        failures += outcomes.iter().map(Outcome::failures).sum::<usize>();
        let lead = format!("{runs} rounds of {seconds} s{}", section.lasting(long_seconds));
        let text = table::section(&outcomes, &lead);
        println!("## {}\n\n{text}", section.title());
        if !options.quick && options.matching.is_none() {
            report::write(&report::PASSIVE, &section.key(), section.title(), &text)?;
        }
    }
    ensure!(failures == 0, "{failures} runs failed; they are listed below their tables");
    Ok(())
}

impl Section {
    fn contests<'a>(self, bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
        match self {
            Self::Rate => load::rate(bench),
            Self::Memory => load::memory(bench),
            Self::Link => load::link(bench),
            Self::Filters => load::filters(bench),
            Self::Tasks => load::tasks(bench),
            Self::FrameSizes => load::frame_sizes(bench),
            Self::Gaps => load::gaps(bench),
            Self::Durations => load::durations(bench),
            Self::Overload => load::overload(bench),
            Self::Stamps => stamps::contests(bench),
            Self::Delay => delay::repeated(bench),
            Self::DelayFrameSizes => delay::frame_sizes(bench),
            Self::DelayTasks => delay::tasks(bench),
            Self::DelayDurations => delay::durations(bench),
            Self::ActiveDelay => delay::active(bench),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Rate => "Watching: packet rate",
            Self::Memory => "Watching: memory",
            Self::Link => "Watching: rate of the link",
            Self::Filters => "Watching: filters",
            Self::Tasks => "Watching: several tasks",
            Self::FrameSizes => "Watching: frame size",
            Self::Gaps => "Watching: time between packets",
            Self::Durations => "Watching: duration",
            Self::Overload => "Watching: overload",
            Self::Stamps => "Watching: stamps",
            Self::Delay => "One-way delay of real traffic",
            Self::DelayFrameSizes => "One-way delay of real traffic: frame size",
            Self::DelayTasks => "One-way delay of real traffic: several tasks",
            Self::DelayDurations => "One-way delay of real traffic: duration",
            Self::ActiveDelay => "Active one-way delay",
        }
    }

    fn lasting(self, long_seconds: u32) -> String {
        let times = match self {
            Self::Durations => 60,
            Self::DelayDurations => 10,
            _ => return String::new(),
        };
        format!(", lasting {long_seconds} s to {} s", times * long_seconds)
    }

    /// Its name between the markers of the page.
    fn key(self) -> String {
        let name = self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        format!("passive-{name}")
    }
}
