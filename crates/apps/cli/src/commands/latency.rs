//! `netaware latency`: request and response.

use clap::{ArgGroup, Args};
use netaware_io::stop::StopFlag;
use netaware_prober::{LatencyRequest, Progress, Target, Transport};
use netaware_record::Record;
use netaware_units::Span;

use crate::exit;
use crate::flags::output::OutputFlags;
use crate::flags::quantity;
use crate::flags::series::SeriesFlags;
use crate::flags::target::TargetFlags;
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Measures round trips over each IP version in turns, by UDP requests and responses with the kernel's timestamps: \
quantiles, variation, and what was lost (no response in time), late (it came after all), reordered or duplicated. Time \
spent inside the responder is taken out. A bare number for -t or -i is seconds.";

fn after() -> String {
    format!(
        "\
Examples:
  netaware latency lab-b                     200 requests, one every 10 ms
  netaware latency lab-b -c 10000 -i 1ms     more and closer
  netaware latency lab-b --ping-pong -t 5s   one after the other, as fast as it goes
  netaware latency lab-b --tcp --format csv
  netaware latency lab-b --expect 'rtt.p99<20ms' --expect 'loss<0.1%'

{}",
        exit::HELP
    )
}

/// Measure round trips
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
#[command(group = ArgGroup::new("rhythm").args(["spacing", "ping_pong"]))]
pub(crate) struct Latency {
    #[command(flatten)]
    target: TargetFlags,
    /// Requests over each IP version [default: 200, or as many as fit --time]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// How long to measure over each IP version [default: as long as --count takes]
    #[arg(short, long, value_name = "TIME", value_parser = quantity::some_seconds)]
    time: Option<Span>,
    /// Time from request to request [default: 10ms]
    #[arg(short = 'i', long, visible_alias = "interval", value_name = "TIME", value_parser = quantity::some_seconds)]
    spacing: Option<Span>,
    /// Payload of request and response
    #[arg(short, long, value_name = "SIZE", default_value = "64B", value_parser = quantity::echo)]
    length: u32,
    /// Send the next request when the response has come
    #[arg(long)]
    ping_pong: bool,
    /// Over one TCP connection instead of UDP
    #[arg(long)]
    tcp: bool,
    /// After how long without a response a request is lost
    #[arg(short = 'W', long, value_name = "TIME", default_value = "1s", value_parser = quantity::some_seconds)]
    timeout: Span,
    #[command(flatten)]
    series: SeriesFlags,
    #[command(flatten)]
    output: OutputFlags,
}

impl Measuring for Latency {
    fn measurement(&self) -> Measurement<'_> {
        Measurement {
            command: "latency",
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
        netaware_prober::latency(&self.request(target), stop, progress)
    }
}

impl Latency {
    fn request(&self, target: Target) -> LatencyRequest {
        let defaults = LatencyRequest::new(target);
        LatencyRequest {
            // Without either the default count; with a time alone as many as fit it.
            count: if self.time.is_some() { self.count } else { self.count.or(defaults.count) },
            time: self.time,
            spacing: self.spacing.unwrap_or(defaults.spacing),
            length: self.length,
            ping_pong: self.ping_pong,
            transport: if self.tcp { Transport::Tcp } else { Transport::Udp },
            patience: self.timeout,
            ..defaults
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
        latency: Latency,
    }

    fn request(words: &str) -> Result<LatencyRequest, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.latency.request(Target::new("h"))).map_err(|e| e.to_string())
    }

    #[test]
    fn count_and_time_end_a_measurement_alone_or_together() {
        let s = Span::from_secs;
        let rows = [
            ("h", Some(200), None),
            ("h -c 5", Some(5), None),
            ("h -t 5", None, Some(s(5))),
            ("h -c 9 -t 5", Some(9), Some(s(5))),
        ];
        for (words, count, time) in rows {
            let r = request(words).unwrap();
            assert_eq!((r.count, r.time), (count, time), "{words}");
        }
    }

    #[test]
    fn flags_reach_the_request() {
        let r = request("h -i 0.2 -l 1400 --tcp -W 250ms").unwrap();
        assert_eq!((r.spacing, r.length), (Span::from_millis(200), 1400));
        assert_eq!((r.transport, r.patience), (Transport::Tcp, Span::from_millis(250)));
        assert!(request("h --ping-pong").unwrap().ping_pong);
    }

    #[test]
    fn contradictions_and_odd_values_are_refused() {
        for bad in ["h --ping-pong --spacing 1ms", "h -c 0", "h -l 10", "h -i 0", "h -W 0"] {
            assert!(request(bad).is_err(), "{bad}");
        }
    }
}
