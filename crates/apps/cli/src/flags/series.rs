//! More than one measurement: over the values of an option, or over time.

use clap::{ArgGroup, Args};
use netaware_units::Span;

use super::quantity;
use crate::series::MOST_POINTS;

const SERIES: &str = "Series";

/// The flags.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("extent").args(["lasting", "times"]))]
pub(crate) struct SeriesFlags {
    /// Measure once for each value of an option: length=64..1500+8, rate=1M..1G*2, streams=1,4,16;
    /// may be given several times for all combinations, the first one changing slowest
    #[arg(long, value_name = "NAME=VALUES", help_heading = SERIES)]
    pub(crate) scan: Vec<String>,
    /// Measure again and again, at times that never drift; without --for or --times until it is
    /// stopped
    #[arg(long, value_name = "TIME", value_parser = quantity::some_seconds, conflicts_with = "scan", help_heading = SERIES)]
    pub(crate) every: Option<Span>,
    /// For how long to begin measurements with --every: 12h
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::some_seconds, requires = "every", conflicts_with = "scan", help_heading = SERIES)]
    pub(crate) lasting: Option<Span>,
    /// How often to measure with --every
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u64>(1..=MOST_POINTS), requires = "every", conflicts_with = "scan", help_heading = SERIES)]
    pub(crate) times: Option<u64>,
    /// Continue an interrupted series as it was planned: its ID, the beginning of it, or 'last'
    #[arg(long, value_name = "ID", help_heading = SERIES)]
    pub(crate) resume: Option<String>,
}

impl SeriesFlags {
    /// Whether more than one measurement is asked for.
    pub(crate) fn is_given(&self) -> bool {
        !self.scan.is_empty() || self.every.is_some() || self.resume.is_some()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: SeriesFlags,
    }

    fn parses(words: &str) -> bool {
        Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace())).is_ok()
    }

    #[test]
    fn a_repetition_has_one_extent_and_is_no_scan() {
        for good in ["--every 10s", "--every 10 --for 12h", "--every 1min --times 5", "--resume last"] {
            assert!(parses(good), "{good}");
        }
        for bad in [
            "--for 12h",
            "--times 5",
            "--every 0",
            "--every 1s --times 0",
            "--every 1s --times 1000001",
            "--every 1s --for 1h --times 5",
            "--every 1s --scan length=1,2",
            // --every, which they belong to, excludes --scan: the parser did not miss it.
            "--scan length=1,2 --for 5s",
            "--scan length=1,2 --times 5",
        ] {
            assert!(!parses(bad), "{bad}");
        }
    }
}
