//! `netaware host`: what this host can measure.

use anyhow::Context;
use clap::{ArgGroup, Args};
use netaware_io::stop::StopFlag;
use netaware_prober::{CacheUse, HostRequest};
use netaware_record::{Effort, Record};

use crate::exit::{self, Exit};
use crate::flags::output::{Format, OutputFlags};
use crate::live::Live;
use crate::{measure, render, signals};

const LONG: &str = "\
Measures this machine and prints what it can honestly measure: what its clock, its sleeps and its system calls cost, what its \
network stack moves over loopback, what its interfaces are, and from these the highest rate that each method can probe with \
at most 5 % error, and what limits it. Nothing leaves this host, and no privilege is needed.

What was measured is kept in netaware/host.json in the user's cache folder and used by 'netaware capacity' and 'netaware \
available', until processor, kernel, clock source or interfaces change, or a month has passed.";

fn after() -> String {
    format!(
        "\
Examples:
  netaware host                      measured once, from the cache afterwards
  netaware host --quick              in two seconds
  netaware host --refresh            anew, on a host that is idle now
  netaware host --interface eth0     with this card's link and interrupts
  netaware host --expect 'host.trains>=1Gbit/s'

{}",
        exit::HELP
    )
}

/// Measure what this host can measure
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
#[command(group = ArgGroup::new("cache").args(["refresh", "no_cache"]))]
pub(crate) struct Host {
    /// Take two seconds instead of eight: the tails are rougher
    #[arg(long)]
    quick: bool,
    /// Measure anew, whatever is known from before
    #[arg(long)]
    refresh: bool,
    /// Neither use what is known from before nor keep what is measured
    #[arg(long)]
    no_cache: bool,
    /// Tell of this interface only, and count its link and its coalescing among the limits
    /// [default: all with hardware]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
}

impl Host {
    fn request(&self) -> HostRequest {
        HostRequest {
            effort: if self.quick { Effort::Quick } else { Effort::Full },
            cache: match (self.refresh, self.no_cache) {
                (true, _) => CacheUse::Refresh,
                (_, true) => CacheUse::Ignore,
                _ => CacheUse::Normal,
            },
            interface: self.interface.clone(),
        }
    }

    /// Measures, or takes what is known, and prints it.
    ///
    /// # Errors
    /// There is no such interface, or the result cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let output = &self.output;
        let sink = measure::open_sink("host", output)?;
        if output.format == Format::Csv {
            sink.check_heading(&render::csv::heading("host", None))?;
        }
        let paint = measure::paint(output, &sink);
        let stop = StopFlag::new();
        let mut live = Live::new(output, false, paint, &sink, &stop);
        let status = live.status();
        signals::listen(&stop, move |event| status.tell(event))?;
        let found = netaware_prober::host(&self.request(), &stop, &mut |progress| live.show(&progress));
        live.finish();
        let is_unread = measure::has_reader_gone(live.take_failure().as_ref());
        let mut record: Record = found.context("--interface")?;
        record.label.clone_from(&output.label);
        measure::judge(&mut record, output);
        let print = || measure::print(&record, output, &sink, paint, false);
        let printed = if is_unread { Ok(()) } else { print() };
        let is_new = record.ability.as_ref().is_some_and(|ability| !ability.origin.cached);
        if is_new {
            measure::keep(&record, output, &sink);
        }
        Exit::from(record.conclusion()).once_printed(printed)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        host: Host,
    }

    fn request(words: &[&str]) -> Option<HostRequest> {
        let line = Line::try_parse_from(std::iter::once(&"x").chain(words)).ok()?;
        Some(line.host.request())
    }

    #[test]
    fn flags_become_a_request() {
        let usual = request(&[]).unwrap();
        assert_eq!((usual.effort, usual.cache, usual.interface), (Effort::Full, CacheUse::Normal, None));
        let other = request(&["--quick", "--refresh", "--interface", "eth0"]).unwrap();
        assert_eq!((other.effort, other.cache), (Effort::Quick, CacheUse::Refresh));
        assert_eq!(other.interface.as_deref(), Some("eth0"));
        assert_eq!(request(&["--no-cache"]).unwrap().cache, CacheUse::Ignore);
        assert!(request(&["--no-cache", "--refresh"]).is_none());
    }
}
