//! `netaware simulate`: what a method would say on a path, told at once.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{bail, ensure};
use clap::{ArgGroup, Args, ValueEnum};
use netaware_io::stop::StopFlag;
use netaware_lab::scenarios::{self, Loaded};
use netaware_record::IpVersion;
use netaware_sim::Side;
use netaware_sim::methods::{self, Found, LatencyAsk, Method, Pacing, ReachAsk, StreamAsk, TcpPort, Unit};
use netaware_stats::patience::{LEAST, Waiting};
use netaware_units::Span;

use crate::exit::{self, Exit};
use crate::flags::output::{ColorFlag, TextOrJson};
use crate::flags::quantity;
use crate::render::Paint;
use crate::render::simulated::{self, Report};
use crate::signals;
use crate::sink;

const LONG: &str = "\
Runs a method over a scenario on a virtual clock and shows what it would say beside what is true. Nothing is sent, nothing \
sleeps, no privilege is needed, and the same seed gives the same bytes. Both hosts are ideal: they send when they should \
and their stamps have no error, so this is the best that the method can do there.

SCENARIO is a file, or a name that `netaware lab scenarios` lists.

Methods:
  latency   round trips, as `netaware latency` measures them
  path-mtu  the largest packet that passes, as `netaware test` searches for it
  reach     echoes, timestamps, TCP and UDP to a host that runs nothing, as
            `netaware reach` asks it
  stream    no method but the truth: one-way delay, loss and reordering of evenly
            spaced packets";

fn after() -> String {
    format!(
        "\
Examples:
  netaware simulate lte latency                    200 requests, one every 10 ms
  netaware simulate bufferbloat latency -t 60s -i 100ms -4
  netaware simulate mine.toml latency --runs 1000  how much it depends on luck
  netaware simulate mtu-black-hole path-mtu
  netaware simulate asymmetric reach -t 30s
  netaware simulate loss-1 reach --tcp closed      where a RST answers each SYN
  netaware simulate loaded-1g stream -i 1ms -t 10s -l 100B --format json

{}",
        exit::HELP
    )
}

/// Tell beforehand what a method would say on a path
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
#[command(group = ArgGroup::new("rhythm").args(["spacing", "ping_pong"]))]
#[command(group = ArgGroup::new("versions").args(["ipv4", "ipv6"]).multiple(true))]
pub(crate) struct Simulate {
    /// File with the scenario, or the name of one that comes with netaware
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    /// latency, path-mtu, reach or stream
    #[arg(value_enum, value_name = "METHOD", hide_possible_values = true)]
    method: Name,
    /// Packets over each IP version [default: 200, or as many as fit --time]
    #[arg(short, long, value_name = "N", value_parser = quantity::whole::<u64>(1..=MOST_PACKETS))]
    count: Option<u64>,
    /// How long to measure over each IP version, in virtual time [default: as long as --count
    /// takes; reach: 10s]
    #[arg(short, long, value_name = "TIME", value_parser = quantity::some_seconds)]
    time: Option<Span>,
    /// Time from packet to packet [default: 10ms; stream: 1ms]
    #[arg(short = 'i', long, visible_alias = "interval", value_name = "TIME", value_parser = quantity::some_seconds)]
    spacing: Option<Span>,
    /// UDP payload of each packet [default: 64B]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::datagram)]
    length: Option<u32>,
    /// Send the next request when the response has come
    #[arg(long)]
    ping_pong: bool,
    /// After how long without a response a request is lost [default: four of the longest round
    /// trips so far, 1s at least]
    #[arg(short = 'W', long, value_name = "TIME", value_parser = quantity::some_seconds)]
    timeout: Option<Span>,
    /// TCP port that reach connects to: open, closed, filtered, or none to leave TCP out [default:
    /// open]
    #[arg(long, value_enum, value_name = "PORT", hide_possible_values = true)]
    tcp: Option<Tcp>,
    /// Send the stream from B to A
    #[arg(short = 'R', long)]
    reverse: bool,
    /// Over IPv4 only
    #[arg(short = '4', long)]
    ipv4: bool,
    /// Over IPv6 only
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Seed of everything random: loss, jitter, cross traffic
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Repeat with this many seeds, from --seed on, and show how the figures spread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::whole::<u64>(1..=100_000))]
    runs: u64,
    /// text or json
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: TextOrJson,
    #[command(flatten)]
    paint: ColorFlag,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    Latency,
    PathMtu,
    Reach,
    Stream,
}

/// What a SYN meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tcp {
    Open,
    Closed,
    Filtered,
    None,
}

impl Tcp {
    const fn port(self) -> Option<TcpPort> {
        match self {
            Self::Open => Some(TcpPort::Open),
            Self::Closed => Some(TcpPort::Closed),
            Self::Filtered => Some(TcpPort::Filtered),
            Self::None => None,
        }
    }
}

impl Simulate {
    /// Does it.
    ///
    /// # Errors
    /// No such scenario, a malformed one, or flags that the method cannot use.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let method = self.method()?;
        let loaded = scenarios::load(&self.scenario)?;
        if let Some(what) = loaded.scenario.lab_only() {
            bail!("{} has {what}, which only `netaware lab` can show", loaded.name);
        }
        let mut runs = Vec::new();
        let stop = StopFlag::new();
        signals::listen(&stop, |event| {
            if let signals::Event::Stopping(by) = event {
                eprintln!("\nnetaware: {by}: ending after this run; once more quits at once");
            }
        })?;
        for run in 0..self.runs {
            if stop.is_raised() {
                eprintln!("warning: ended early, after {run} of {} runs", self.runs);
                break;
            }
            let seed = self.seed.wrapping_add(run);
            runs.push((seed, self.simulate(&loaded, seed, &method)?));
        }
        if runs.is_empty() {
            return Ok(Exit::NotMeasured);
        }
        let record = match runs.first() {
            Some((seed, found))
                if self.runs == 1 && matches!(method, Method::Latency(_) | Method::PathMtu) =>
            {
                Some(methods::record(method.name(), &loaded.name, *seed, self.options(&method), found))
            }
            _ => None,
        };
        let report = Report {
            scenario: &loaded.name,
            about: &loaded.scenario.about,
            method: method.name(),
            runs: &runs,
            record: record.as_ref(),
        };
        let exit = conclusion(&method, &runs);
        if exit == Exit::NotMeasured {
            eprintln!("error: nothing came through over any IP version that was asked for");
        }
        let mut out = sink::stdout();
        let printed = match self.format {
            TextOrJson::Text => simulated::text(&mut out, &report, Paint::for_stdout(self.paint.color)),
            TextOrJson::Json => simulated::json(&mut out, &report),
        };
        exit.once_printed(printed.and_then(|()| out.flush()))
    }

    fn simulate(&self, loaded: &Loaded, seed: u64, method: &Method) -> anyhow::Result<Vec<Found>> {
        let found =
            self.versions().into_iter().map(|version| methods::run(&loaded.scenario, seed, version, method));
        Ok(found.collect::<Result<_, _>>()?)
    }

    fn versions(&self) -> Vec<IpVersion> {
        match (self.ipv4, self.ipv6) {
            (true, false) => vec![IpVersion::V4],
            (false, true) => vec![IpVersion::V6],
            _ => vec![IpVersion::V4, IpVersion::V6],
        }
    }

    fn method(&self) -> anyhow::Result<Method> {
        if let Some(flag) = self.misplaced() {
            let name =
                self.method.to_possible_value().map_or_else(String::new, |name| name.get_name().to_owned());
            bail!("--{flag} means nothing to {name}");
        }
        Ok(match self.method {
            Name::Latency => Method::Latency(self.latency()?),
            Name::PathMtu => Method::PathMtu,
            Name::Reach => Method::Reach(self.reach()?),
            Name::Stream => Method::Stream(self.stream()?),
        })
    }

    /// A flag that was given though the method does not look at it.
    fn misplaced(&self) -> Option<&'static str> {
        use Name::{Latency, Reach, Stream};
        let given: [(_, bool, &[Name]); 8] = [
            ("count", self.count.is_some(), &[Latency, Stream]),
            ("time", self.time.is_some(), &[Latency, Reach, Stream]),
            ("spacing", self.spacing.is_some(), &[Latency, Stream]),
            ("length", self.length.is_some(), &[Latency, Stream]),
            ("ping-pong", self.ping_pong, &[Latency]),
            ("timeout", self.timeout.is_some(), &[Latency]),
            ("tcp", self.tcp.is_some(), &[Reach]),
            ("reverse", self.reverse, &[Stream]),
        ];
        given.into_iter().find(|(_, given, of)| *given && !of.contains(&self.method)).map(|(flag, ..)| flag)
    }

    fn latency(&self) -> anyhow::Result<LatencyAsk> {
        let length = self.length.unwrap_or(DEFAULT_LENGTH);
        if let Err(problem) = quantity::echo(&format!("{length}B")) {
            bail!("--length: {problem}, as requests need");
        }
        let pacing = if self.ping_pong { Pacing::PingPong } else { Pacing::Even(self.spacing(ECHO_SPACING)) };
        if let Pacing::Even(spacing) = pacing {
            self.fitting(spacing)?;
        }
        Ok(LatencyAsk {
            // Without either the default count; with a time alone as many as fit it.
            count: if self.time.is_some() { self.count } else { self.count.or(Some(DEFAULT_COUNT)) },
            time: self.time,
            pacing,
            length,
            response: length,
            patience: self.timeout.unwrap_or(LEAST),
            waiting: self.timeout.map_or(Waiting::AtLeast, |_| Waiting::Exactly),
        })
    }

    fn reach(&self) -> anyhow::Result<ReachAsk> {
        let time = self.time.unwrap_or(REACH_TIME);
        ensure!(time <= LONGEST_REACH, "--time: {time} is more than {LONGEST_REACH}");
        Ok(ReachAsk { time, tcp: self.tcp.unwrap_or(Tcp::Open).port() })
    }

    fn stream(&self) -> anyhow::Result<StreamAsk> {
        let spacing = self.spacing(STREAM_SPACING);
        let fitting = self.fitting(spacing)?;
        let count = match (self.count, fitting) {
            (Some(count), Some(fitting)) => count.min(fitting),
            (count, fitting) => count.or(fitting).unwrap_or(DEFAULT_COUNT),
        };
        let from = if self.reverse { Side::B } else { Side::A };
        Ok(StreamAsk { from, count, spacing, length: self.length.unwrap_or(DEFAULT_LENGTH) })
    }

    fn spacing(&self, default: Span) -> Span {
        self.spacing.unwrap_or(default)
    }

    /// Packets that fit the time, if there is one.
    fn fitting(&self, spacing: Span) -> anyhow::Result<Option<u64>> {
        let Some(time) = self.time else { return Ok(None) };
        let fitting = (time / spacing.nanos()).nanos().max(1).cast_unsigned();
        ensure!(
            fitting <= MOST_PACKETS || self.count.is_some(),
            "{fitting} packets are more than {MOST_PACKETS}: shorten --time or widen --spacing"
        );
        Ok(Some(fitting))
    }

    /// As the record shows them.
    fn options(&self, method: &Method) -> BTreeMap<String, String> {
        let mut options = BTreeMap::from([("seed".to_owned(), self.seed.to_string())]);
        if let Method::Latency(ask) = method {
            let given = [
                ("count", ask.count.map(|count| count.to_string())),
                ("time", ask.time.map(|time| time.to_string())),
                ("spacing", (ask.pacing != Pacing::PingPong).then(|| ask.pacing.spacing().to_string())),
                ("ping-pong", (ask.pacing == Pacing::PingPong).then(|| "true".to_owned())),
                ("length", Some(format!("{} B", ask.length))),
                ("timeout", (ask.waiting == Waiting::Exactly).then(|| ask.patience.to_string())),
            ];
            options.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        options
    }
}

/// As of a measurement: one answer over one IP version is a figure.
fn conclusion(method: &Method, runs: &[(u64, Vec<Found>)]) -> Exit {
    let mut found = runs.iter().flat_map(|(_, found)| found);
    if found.any(|found| came_through(method, found)) { Exit::Done } else { Exit::NotMeasured }
}

/// Whether the method says more than that all was lost. A stream is not answered: it arrives.
fn came_through(method: &Method, found: &Found) -> bool {
    match method {
        Method::Stream(_) => found.forward.arrived + found.reverse.arrived > 0,
        Method::Latency(_) | Method::PathMtu | Method::Reach(_) => {
            found.figures.iter().any(|figure| figure.estimate.is_some() && figure.unit != Unit::Share)
        }
    }
}

/// What `latency` and `stream` do by default.
const DEFAULT_COUNT: u64 = 200;
const DEFAULT_LENGTH: u32 = 64;
const ECHO_SPACING: Span = Span::from_millis(10);
const REACH_TIME: Span = Span::from_secs(10);
/// Bounds the memory of a run as the other methods' packets do.
const LONGEST_REACH: Span = Span::from_secs(3600);
const STREAM_SPACING: Span = Span::from_millis(1);
/// Bounds the memory of a run to some hundred MiB.
const MOST_PACKETS: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        simulate: Simulate,
    }

    fn simulate(words: &str) -> Result<Simulate, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.simulate).map_err(|e| e.to_string())
    }

    fn method(words: &str) -> Result<Method, String> {
        simulate(words)?.method().map_err(|e| e.to_string())
    }

    #[test]
    fn flags_reach_the_method() {
        let Ok(Method::Latency(ask)) = method("x latency -c 7 -i 2ms -l 100 -W 3s") else { panic!() };
        let want = LatencyAsk {
            count: Some(7),
            time: None,
            pacing: Pacing::Even(Span::from_millis(2)),
            length: 100,
            response: 100,
            patience: Span::from_secs(3),
            waiting: Waiting::Exactly,
        };
        assert_eq!(ask, want);
        let Ok(Method::Latency(ask)) = method("x latency --ping-pong -t 5s") else { panic!() };
        assert_eq!((ask.count, ask.pacing), (None, Pacing::PingPong));
        let Ok(Method::Stream(ask)) = method("x stream -t 2s -R -l 24") else { panic!() };
        assert_eq!((ask.count, ask.from, ask.length), (2000, Side::B, 24));
        assert_eq!(method("x path-mtu"), Ok(Method::PathMtu));
        let reach = |tcp| Ok(Method::Reach(ReachAsk { time: Span::from_secs(3), tcp }));
        assert_eq!(method("x reach -t 3s"), reach(Some(TcpPort::Open)));
        assert_eq!(method("x reach -t 3s --tcp closed"), reach(Some(TcpPort::Closed)));
        assert_eq!(method("x reach -t 3s --tcp none"), reach(None));
    }

    #[test]
    fn a_flag_that_means_nothing_to_the_method_is_refused() {
        let rows = [
            ("x path-mtu -l 100", "--length means nothing to path-mtu"),
            ("x stream --ping-pong", "--ping-pong means nothing to stream"),
            ("x reach -c 9", "--count means nothing to reach"),
            ("x latency --tcp open", "--tcp means nothing to latency"),
            ("x latency -R", "--reverse means nothing to latency"),
            ("x latency -l 24", "--length: '24B' is not between 44 and 65507 bytes, as requests need"),
            (
                "x stream -t 1h -i 1us",
                "3600000000 packets are more than 10000000: shorten --time or widen --spacing",
            ),
        ];
        for (words, want) in rows {
            assert_eq!(method(words).unwrap_err(), want);
        }
        for bad in ["x", "x ftp", "x latency -c 0", "x latency --runs 0", "x latency --ping-pong -i 1ms"] {
            assert!(simulate(bad).is_err(), "{bad}");
        }
    }

    /// `simulate ipv6-black-hole latency -6` lost five of five requests and ended with 0.
    #[test]
    fn what_nobody_answered_has_not_been_measured() {
        let loaded = scenarios::load("ipv6-black-hole").unwrap();
        let exit = |words: &str| {
            let simulate = simulate(words).unwrap();
            let method = simulate.method().unwrap();
            conclusion(&method, &[(1, simulate.simulate(&loaded, 1, &method).unwrap())])
        };
        for method in ["latency -c 5", "path-mtu", "reach -t 1s", "stream -c 5", "stream -c 5 -R"] {
            assert_eq!(exit(&format!("x {method} -6")), Exit::NotMeasured, "{method}");
            assert_eq!(exit(&format!("x {method} -4")), Exit::Done, "{method}");
            assert_eq!(exit(&format!("x {method}")), Exit::Done, "{method}: over one version it was");
        }
    }
}
