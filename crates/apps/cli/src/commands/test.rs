//! `netaware test`: the main job.

use anyhow::ensure;
use clap::Args;
use netaware_io::stop::StopFlag;
use netaware_prober::{Progress, Target, TestRequest};
use netaware_record::Record;
use netaware_units::{BitRate, SendRate, Span};
use netaware_wire::control::MAX_STREAMS;

use crate::exit;
use crate::expect::METRICS;
use crate::flags::output::OutputFlags;
use crate::flags::quantity;
use crate::flags::series::SeriesFlags;
use crate::flags::target::TargetFlags;
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Measures everything about a path, IPv4 and IPv6 in turns, and compares them: connecting, path MTU and hops, idle round \
trips, TCP both ways with one stream and with several, round trips under that load, UDP at 80 % of what TCP reached, and \
for each of them who was the limit.";

fn after() -> String {
    let metrics: Vec<String> = METRICS.iter().map(|m| format!("  {:<20}{}", m.name, m.about)).collect();
    format!(
        "\
Examples:
  netaware test                        this host against itself
  netaware test lab-b                  both IP versions, 15 seconds
  netaware test lab-b -6 -t 30s        IPv6 only, twice as long
  netaware test lab-b --path           and what the path can carry, what of it is left
  netaware test [2001:db8::7]:5000     an address and a port
  netaware test lab-b --format json    the record, for programs
  netaware test lab-b --expect 'rtt.p99<20ms' --expect 'tcp.down>100Mbit/s'

Metrics for --expect, with ipv4. or ipv6. before them for one version only:
{}

{}",
        metrics.join("\n"),
        exit::HELP
    )
}

/// Measure everything over IPv4 and IPv6 and compare them
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
pub(crate) struct Test {
    #[command(flatten)]
    target: TargetFlags,
    /// What the whole may take; waiting for other measurements is not counted
    #[arg(short, long, value_name = "TIME", default_value = "15s", value_parser = quantity::lasting)]
    time: Span,
    /// Parallel TCP streams after the single one
    #[arg(short = 'P', long, value_name = "N", default_value = "4", value_parser = quantity::whole::<u16>(1..=u64::from(MAX_STREAMS)))]
    streams: u16,
    /// How often each IP version has its turn; even numbers cancel drift best
    #[arg(long, value_name = "N", default_value = "2", value_parser = quantity::whole::<u16>(1..=100))]
    rounds: u16,
    /// Payload rate of UDP instead of 80 % of what TCP reached
    #[arg(short = 'b', long, value_name = "RATE", value_parser = quantity::some_rate)]
    rate: Option<BitRate>,
    /// Payload of UDP datagrams [default: the largest that fits the path]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::datagram)]
    length: Option<u32>,
    /// TCP congestion control of both senders: cubic, bbr, …
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// Leave out TCP
    #[arg(long)]
    no_tcp: bool,
    /// Leave out UDP streams
    #[arg(long)]
    no_udp: bool,
    /// Estimate capacity and available bandwidth as well, both ways, before anything fills the
    /// path; takes up to 8 s beyond --time for each IP version and direction
    #[arg(long)]
    path: bool,
    #[command(flatten)]
    series: SeriesFlags,
    #[command(flatten)]
    output: OutputFlags,
}

impl Measuring for Test {
    fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.no_tcp || !self.target.has_flow_label(),
            "HOST cannot choose the flow label of the TCP connections that it accepts, and a test measures both ways: \
             use --no-tcp, or --flow-label with 'netaware tcp' or 'netaware udp'"
        );
        Ok(())
    }

    fn measurement(&self) -> Measurement<'_> {
        Measurement {
            command: "test",
            target: &self.target,
            output: &self.output,
            intervals: false,
            notes: Vec::new(),
        }
    }

    fn series(&self) -> &SeriesFlags {
        &self.series
    }

    fn measure(&self, target: Target, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
        netaware_prober::test(&self.request(target), stop, progress)
    }
}

impl Test {
    fn request(&self, target: Target) -> TestRequest {
        TestRequest {
            budget: self.time,
            streams: self.streams,
            rounds: self.rounds,
            udp_rate: self.rate.and_then(SendRate::new),
            udp_length: self.length,
            tcp: !self.no_tcp,
            udp: !self.no_udp,
            congestion: self.congestion.clone(),
            path: self.path,
            ..TestRequest::new(target)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        test: Test,
    }

    fn request(words: &str) -> Result<TestRequest, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.test.request(Target::new("h"))).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_are_the_15_second_test() {
        let (ours, theirs) = (request("h").unwrap(), TestRequest::new(Target::new("h")));
        assert_eq!((ours.budget, ours.streams, ours.rounds), (theirs.budget, theirs.streams, theirs.rounds));
        assert!(ours.tcp && ours.udp && ours.udp_rate.is_none() && !ours.path);
    }

    #[test]
    fn flags_reach_the_request() {
        let request = request("h -t 30 -P8 --rounds 4 -b 10M -l 1200 -C bbr --no-tcp --path").unwrap();
        assert_eq!((request.budget, request.streams, request.rounds), (Span::from_secs(30), 8, 4));
        assert_eq!(
            (request.udp_rate, request.udp_length),
            (Some(SendRate::at_least(10_000_000)), Some(1200))
        );
        assert_eq!(request.congestion.as_deref(), Some("bbr"));
        assert!(!request.tcp && request.udp && request.path);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for bad in ["h -P 0", "h -P 513", "h -t 0", "h --rounds 0", "h -b 0", "h -l 70000", "h extra"] {
            assert!(request(bad).is_err(), "{bad}");
        }
    }
}
