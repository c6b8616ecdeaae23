//! Do netaware and the tools of the field say the same of one path? The path is emulated, so its
//! truth is known.
//!
//! Each tool measures in its own way and with its own idea of what counts. Two of them *agree* when
//! their medians differ by no more than both spreads together, half the range of the runs each and
//! no less than the last digit it prints. Where two mean different things by one word, the tool is
//! held against that of our figures which means the same, and against the one that a user sees
//! first. Reading order: [`path`], [`compare`], then one file per subject.

mod compare;
mod path;
mod round_trip;
mod tcp;
mod udp;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use netaware_netns::IpVersion;
use netaware_units::Span;

use super::contest::Outcome;
use super::{peers, report};
use crate::packages;
use compare::Comparison;
use path::Paths;

#[derive(Debug, Args)]
pub(crate) struct Agree {
    /// Rounds; each tool runs once in every round
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Two rounds of 2 s, to see that everything works; docs/agreement.md is left alone
    #[arg(long, conflicts_with_all = ["runs", "seconds"])]
    quick: bool,
    /// Only these subjects; the others in docs/agreement.md stay as they are
    #[arg(long, value_enum)]
    only: Vec<Subject>,
    /// Runs in which 1 packet in 100 left the emulator later than this are repeated
    #[arg(long, value_name = "TIME", default_value = "200us")]
    bound: Span,
    /// This netaware instead of a release build of the checkout
    #[arg(long, value_name = "PATH")]
    netaware: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// TCP goodput
    Tcp,
    /// Round trips over the idle path
    RoundTrip,
    /// UDP at 20 Mbit/s: rate, loss and jitter
    Udp,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Extent {
    runs: u32,
    seconds: u32,
}

/// Both, because they may differ.
const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

fn name(version: IpVersion) -> &'static str {
    match version {
        IpVersion::V4 => "IPv4",
        IpVersion::V6 => "IPv6",
    }
}

pub(crate) fn run(options: &Agree) -> Result<()> {
    packages::ensure(packages::FOR_BENCHMARKS)?;
    let ours = peers::netaware_program(options.netaware.clone())?;
    let extent = if options.quick {
        Extent { runs: 2, seconds: 2 }
    } else {
        Extent { runs: options.runs, seconds: options.seconds }
    };
    path::clear()?;
    let mut failures = 0;
    for subject in Subject::value_variants() {
        if !options.only.is_empty() && !options.only.contains(subject) {
            continue;
        }
        let paths = Paths::new(options.bound)?;
        let comparisons = subject.comparisons(&paths, &ours, extent.seconds);
        let held: Vec<_> = comparisons.into_iter().map(|comparison| comparison.hold(extent.runs)).collect();
        failures += held.iter().map(|held| Outcome::failures(&held.outcome)).sum::<usize>();
        let text = format!("{}\n\n{}", described(extent, &paths), compare::table(&held));
        println!("## {}\n\n{text}", subject.title());
        if !options.quick {
            report::write(&report::AGREEMENT, subject.key(), subject.title(), &text)?;
        }
    }
    ensure!(failures == 0, "{failures} runs failed; they are listed below their tables");
    Ok(())
}

fn described(extent: Extent, paths: &Paths) -> String {
    let Extent { runs, seconds } = extent;
    let repeated = match paths.repeated() {
        0 => "none had to be repeated".to_owned(),
        1 => "one was repeated".to_owned(),
        several => format!("{several} were repeated"),
    };
    format!(
        "{runs} rounds of {seconds} s, a fresh lab for each run; median [smallest .. largest]. Runs that the emulator \
         spoiled (1 packet in 100 more than {} late, or one lost by it): {repeated}. TCP is controlled by {}.",
        paths.bound(),
        congestion_control()
    )
}

/// The system's, because not every tool can ask for another.
fn congestion_control() -> String {
    let told = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    told.map_or_else(|_| "an unknown algorithm".to_owned(), |name| name.trim().to_owned())
}

impl Subject {
    fn comparisons<'a>(self, paths: &'a Paths, ours: &'a Path, seconds: u32) -> Vec<Comparison<'a>> {
        match self {
            Self::Tcp => tcp::comparisons(paths, ours, seconds),
            Self::RoundTrip => round_trip::comparisons(paths, ours, seconds),
            Self::Udp => udp::comparisons(paths, ours, seconds),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP goodput",
            Self::RoundTrip => "Round trips over the idle path",
            Self::Udp => "UDP at 20 Mbit/s",
        }
    }

    /// Its name between the markers of docs/agreement.md.
    fn key(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::RoundTrip => "round-trip",
            Self::Udp => "udp",
        }
    }
}
