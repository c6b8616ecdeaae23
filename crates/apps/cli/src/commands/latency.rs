//! `netaware latency`: request and response.

use anyhow::ensure;
use clap::{ArgGroup, Args, ValueEnum};
use netaware_io::stop::StopFlag;
use netaware_prober::{LatencyRequest, Progress, Rhythm, Target, Transport};
use netaware_record::{Arrivals, Record};
use netaware_stats::patience::Waiting;
use netaware_units::Span;
use netaware_wire::datagram::{HEADER_LEN, MAX_PAYLOAD};
use netaware_wire::echo::MOST_TO_SHORT;

use crate::exit;
use crate::flags::hist::Hist;
use crate::flags::output::OutputFlags;
use crate::flags::quantity;
use crate::flags::series::SeriesFlags;
use crate::flags::target::TargetFlags;
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Measures round trips over each IP version in turns, by UDP requests and responses with the kernel's timestamps: \
quantiles, variation, and what was lost (no response in time), late (it came after all), bad, reordered or duplicated. \
Time spent inside the responder is taken out where a UDP response of 44 B or more tells it. A bare number for -t, -i or \
-W is seconds.";

fn after() -> String {
    format!(
        "\
Examples:
  netaware latency lab-b                     200 requests, one every 10 ms
  netaware latency lab-b -c 10000 -i 1ms     more and closer
  netaware latency lab-b --ping-pong -t 5s   one after the other, as fast as it goes
  netaware latency lab-b --ping-pong -c 1000 --response 1400B --hist 1us,110us
  netaware latency lab-b --transport both --arrivals poisson --format csv
  netaware latency lab-b --expect 'rtt.p99<20ms' --expect 'loss<0.1%'

{}",
        exit::HELP
    )
}

/// Measure round trips
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
#[command(group = ArgGroup::new("rhythm").args(["spacing", "ping_pong", "depth"]))]
#[command(group = ArgGroup::new("over").args(["transport", "tcp"]))]
pub(crate) struct Latency {
    #[command(flatten)]
    target: TargetFlags,
    /// Requests over each IP version [default: 200, or as many as fit --time]
    #[arg(short, long, value_name = "N", value_parser = quantity::whole::<u64>(1..=u64::MAX))]
    count: Option<u64>,
    /// How long to measure over each IP version [default: as long as --count takes]
    #[arg(short, long, value_name = "TIME", value_parser = quantity::lasting)]
    time: Option<Span>,
    /// Time from request to request, whatever became of the last [default: 10ms]
    #[arg(short = 'i', long, visible_alias = "interval", value_name = "TIME", value_parser = quantity::some_seconds)]
    spacing: Option<Span>,
    /// Send at even distances, or at random ones with this mean (poisson) [default: even]
    #[arg(long, value_enum, value_name = "HOW", hide_possible_values = true, conflicts_with_all = ["ping_pong", "depth"])]
    arrivals: Option<ArrivalsFlag>,
    /// For the random distances: the same seed gives the same ones
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Send the next request when the response has come
    #[arg(long)]
    ping_pong: bool,
    /// As --ping-pong, with so many requests on their way at a time, 1..1024
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u32>(1..=1024))]
    depth: Option<u32>,
    /// Payload of request and response: UDP 1B..65507B, TCP 1B..100MB
    #[arg(short, long, value_name = "SIZE", default_value = "64B", value_parser = quantity::message)]
    length: u32,
    /// Payload of the request alone [default: --length]
    #[arg(long, value_name = "SIZE", value_parser = quantity::message)]
    request: Option<u32>,
    /// Payload of the response alone; at most 64B to a UDP request below 24B [default: --length]
    #[arg(long, value_name = "SIZE", value_parser = quantity::message)]
    response: Option<u32>,
    /// Over udp, tcp (one connection), or both in turns [default: udp]
    #[arg(long, value_enum, value_name = "HOW", hide_possible_values = true)]
    transport: Option<TransportFlag>,
    /// The same as --transport tcp
    #[arg(long)]
    tcp: bool,
    /// Buffers of this host's sockets instead of the kernel's own
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::buffer)]
    window: Option<u32>,
    /// After how long without a response a request is lost [default: four of the longest round
    /// trips so far, 1s at least]
    #[arg(short = 'W', long, value_name = "TIME", value_parser = quantity::some_seconds)]
    timeout: Option<Span>,
    /// Count round trips in bins of this width, from LOW on (0us), in so many BINS (10000)
    #[arg(long, value_name = "WIDTH[,LOW[,BINS]]")]
    hist: Option<Hist>,
    #[command(flatten)]
    series: SeriesFlags,
    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArrivalsFlag {
    Even,
    Poisson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TransportFlag {
    Udp,
    Tcp,
    Both,
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

    fn check(&self) -> anyhow::Result<()> {
        ensure!(
            !(self.transports().contains(&Transport::Tcp) && self.target.has_flow_label()),
            "HOST cannot choose the flow label of a TCP connection that it accepts: leave out --flow-label, or measure over UDP"
        );
        if !self.transports().contains(&Transport::Udp) {
            return Ok(());
        }
        for (name, size) in [("request", self.request_size()), ("response", self.response_size())] {
            ensure!(
                size as usize <= MAX_PAYLOAD,
                "a UDP {name} carries at most {MAX_PAYLOAD} B: ask for less, or add --transport tcp"
            );
        }
        ensure!(
            self.request_size() as usize >= HEADER_LEN || self.response_size() as usize <= MOST_TO_SHORT,
            "a UDP request below {HEADER_LEN} B draws a response of at most {MOST_TO_SHORT} B: make --request longer or \
             --response shorter"
        );
        Ok(())
    }

    fn series(&self) -> &SeriesFlags {
        &self.series
    }

    fn measure(&self, target: Target, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
        netaware_prober::latency(&self.request(target), stop, progress)
    }
}

impl Latency {
    fn request_size(&self) -> u32 {
        self.request.unwrap_or(self.length)
    }

    fn response_size(&self) -> u32 {
        self.response.unwrap_or(self.length)
    }

    fn transports(&self) -> Vec<Transport> {
        match self.transport {
            Some(TransportFlag::Both) => vec![Transport::Udp, Transport::Tcp],
            Some(TransportFlag::Tcp) => vec![Transport::Tcp],
            None if self.tcp => vec![Transport::Tcp],
            Some(TransportFlag::Udp) | None => vec![Transport::Udp],
        }
    }

    fn rhythm(&self) -> Rhythm {
        let depth = self.depth.or(self.ping_pong.then_some(1));
        let spacing = self.spacing.unwrap_or(Span::from_millis(10));
        match (depth, self.arrivals) {
            (Some(depth), _) => Rhythm::Closed(depth),
            (None, Some(ArrivalsFlag::Poisson)) => {
                Rhythm::Open { spacing, arrivals: Arrivals::Poisson, seed: self.seed }
            }
            (None, Some(ArrivalsFlag::Even) | None) => Rhythm::even(spacing),
        }
    }

    fn request(&self, mut target: Target) -> LatencyRequest {
        target.options.window = self.window;
        let defaults = LatencyRequest::new(target);
        LatencyRequest {
            // Without either the default count; with a time alone as many as fit it.
            count: if self.time.is_some() { self.count } else { self.count.or(defaults.count) },
            time: self.time,
            rhythm: self.rhythm(),
            may_slow_down: self.spacing.is_none(),
            request: self.request_size(),
            response: self.response_size(),
            transports: self.transports(),
            patience: self.timeout.unwrap_or(defaults.patience),
            waiting: self.timeout.map_or(defaults.waiting, |_| Waiting::Exactly),
            bins: self.hist.map(|hist| hist.0),
            ..defaults
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use netaware_record::HistogramShape;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        latency: Latency,
    }

    fn request(words: &str) -> Result<LatencyRequest, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        let latency = line.map_err(|e| e.to_string())?.latency;
        latency.check().map_err(|e| e.to_string())?;
        Ok(latency.request(Target::new("h")))
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
        let r = request("h -i 0.2 -l 1400 --tcp -W 250ms --hist 2us,110us -w 1MiB").unwrap();
        assert_eq!(r.target.options.window, Some(1 << 20));
        assert_eq!((r.rhythm, r.request, r.response), (Rhythm::even(Span::from_millis(200)), 1400, 1400));
        assert_eq!((r.transports, r.patience), (vec![Transport::Tcp], Span::from_millis(250)));
        assert_eq!((r.waiting, request("h").unwrap().waiting), (Waiting::Exactly, Waiting::AtLeast));
        let us = Span::from_micros;
        assert_eq!(r.bins, Some(HistogramShape { low: us(110), width: us(2), bins: 10_000 }));
    }

    #[test]
    fn sizes_and_transports_are_chosen_apart_or_together() {
        let rows = [
            ("h", (64, 64)),
            ("h --request 100", (100, 64)),
            ("h --response 1", (64, 1)),
            ("h -l 1 --request 65507", (65_507, 1)),
            ("h --request 1 --response 64", (1, 64)),
            ("h --tcp --request 1 --response 100MB", (1, 100_000_000)),
        ];
        for (words, sizes) in rows {
            let r = request(words).unwrap();
            assert_eq!((r.request, r.response), sizes, "{words}");
        }
        let both = request("h --transport both").unwrap().transports;
        assert_eq!(both, [Transport::Udp, Transport::Tcp]);
    }

    #[test]
    fn loops_are_closed_or_open() {
        let ten = Span::from_millis(10);
        let rows = [
            ("h --ping-pong", Rhythm::Closed(1)),
            ("h --depth 8", Rhythm::Closed(8)),
            ("h --arrivals even", Rhythm::even(ten)),
            (
                "h --arrivals poisson --seed 9",
                Rhythm::Open { spacing: ten, arrivals: Arrivals::Poisson, seed: 9 },
            ),
        ];
        for (words, want) in rows {
            assert_eq!(request(words).unwrap().rhythm, want, "{words}");
        }
    }

    #[test]
    fn contradictions_and_odd_values_are_refused() {
        for bad in [
            "h --ping-pong --spacing 1ms",
            "h --ping-pong --depth 2",
            "h --depth 2 --arrivals poisson",
            "h --depth 0",
            "h --tcp --transport udp",
            "h -c 0",
            "h -l 0",
            "h --request 101MB --tcp",
            "h -i 0",
            "h -W 0",
            "h --hist 0us",
        ] {
            assert!(request(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_that_udp_does_not_carry_are_refused_in_a_sentence_that_says_what_to_do() {
        let rows = [
            (
                "h --response 100kB",
                "a UDP response carries at most 65507 B: ask for less, or add --transport tcp",
            ),
            (
                "h --transport both --request 1MB",
                "a UDP request carries at most 65507 B: ask for less, or add --transport tcp",
            ),
            (
                "h --request 23 --response 65",
                "a UDP request below 24 B draws a response of at most 64 B: make --request longer or --response shorter",
            ),
        ];
        for (words, want) in rows {
            assert_eq!(request(words).unwrap_err(), want, "{words}");
        }
    }
}
