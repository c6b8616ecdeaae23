//! What a threshold can speak of, and where its figures stand in a record.

use netaware_record::{
    DelaySummary, Direction, HostAbility, HostCall, Interval, LatencyResult, LoadedLatency, MatrixProtocol,
    MatrixResult, Outcome, OwdResult, OwdWay, Part, PathMetric, PathRate, RateBound, ReachProtocol,
    ReachResult, Record, TcpResult, UdpResult, VersionResult, WaitHow,
};
use netaware_units::{BitRate, ByteCount, Share, Span};

use crate::render::figures;

/// A name and its figures; one entry per direction where there are several.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// For the help text.
    pub(crate) about: &'static str,
    exact: fn(&VersionResult) -> Vec<(&'static str, f64)>,
    /// Those of which the truth may be known to one side only.
    bounded: fn(&VersionResult) -> Vec<Figure>,
    /// Of a host and not of a path.
    pub(crate) of_host: fn(&HostAbility) -> Option<f64>,
}

/// A figure that a threshold is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    /// The direction or protocol of the figure; empty where a version has only one.
    pub(crate) of: &'static str,
    /// The figure as it is printed, in the metric's base unit.
    pub(crate) value: f64,
    /// On which side of it the truth may be.
    pub(crate) bound: RateBound,
}

/// A share that was lost, and the share of what was planned that was sent and followed to its end.
#[derive(Debug, Clone, PartialEq)]
struct FollowedLoss {
    /// The direction; empty where a version has only one.
    of: &'static str,
    loss: Option<f64>,
    /// 0..=1.
    known: f64,
    /// What was sent.
    unit: &'static str,
    /// What the loss would be said of.
    whole: &'static str,
}

impl FollowedLoss {
    fn of_requests(latency: &LatencyResult) -> Self {
        let loss = ratio(latency.lost, latency.settled()).filter(|_| !latency.hides_losses());
        Self { of: "", loss, known: latency.known_share(), unit: "requests", whole: "path" }
    }

    fn of_ways(owd: &OwdResult) -> [(Direction, Self); 2] {
        [(Direction::Forward, &owd.forward), (Direction::Reverse, &owd.reverse)].map(|(direction, way)| {
            let (of, known) = (direction.name(), owd.known_share());
            (direction, Self { of, loss: way.loss, known, unit: "packets", whole: "path" })
        })
    }

    fn of_echoes(echo: &ReachResult) -> Self {
        Self { of: "", loss: echo.loss, known: echo.known_share(), unit: "echoes", whole: "path" }
    }

    fn of_matrix(matrix: &MatrixResult) -> Self {
        let runs = || matrix.cells.iter().flat_map(|cell| cell.runs.iter().map(move |run| (cell, run)));
        let planned: ByteCount = runs().map(|(cell, _)| cell.bytes).sum();
        let settled = runs().filter_map(|(_, run)| run.settled(matrix.pedigree.direction));
        let settled: ByteCount = settled.sum();
        let known = ratio(settled.0, planned.0).unwrap_or(0.0);
        Self { of: "", loss: matrix.lost(), known, unit: "bytes", whole: "path" }
    }

    /// Not measured where too much was not sent, or has a fate that nobody knows: the loss of the
    /// rest says nothing of what was to last longer.
    fn judged(&self) -> Option<f64> {
        self.loss.filter(|_| self.known >= LEAST_KNOWN)
    }
}

impl Metric {
    /// All that a version has of it.
    pub(crate) fn figures(&self, v: &VersionResult) -> Vec<Figure> {
        let exact = (self.exact)(v).into_iter();
        let exact = exact.map(|(of, value)| Figure { of, value, bound: RateBound::None });
        exact.chain((self.bounded)(v)).collect()
    }

    /// Why it is not judged although something of the kind is printed; `None` where nothing is.
    pub(crate) fn why_not_judged(&self, v: &VersionResult) -> Option<String> {
        let untold = self.losses(v).into_iter().filter(|it| it.known < LEAST_KNOWN);
        let said = untold.filter_map(|it| {
            let (loss, known) = (figures::percent(it.loss?), percent_below(it.known, LEAST_KNOWN));
            let said = format!(
                "{} {loss} lost, but only {known} of its {} were sent and followed: too few to judge the {} by",
                it.of, it.unit, it.whole
            );
            Some(said.trim_start().to_owned())
        });
        let said: Vec<String> = said.collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// The losses that it speaks of, and how much was followed of what they are a share of.
    fn losses(&self, v: &VersionResult) -> Vec<FollowedLoss> {
        if !self.name.ends_with("loss") {
            return Vec::new();
        }
        let is_wanted = |direction: Direction| match direction {
            Direction::Forward => !self.name.contains(".down"),
            _ => !self.name.contains(".up"),
        };
        match self.name.split('.').next() {
            Some("loss") => v.latency.iter().map(FollowedLoss::of_requests).collect(),
            Some("udp") => {
                let is_networks = self.name.ends_with("network-loss");
                let of_stream = |it: &UdpResult| FollowedLoss {
                    of: it.pedigree.direction.name(),
                    loss: if is_networks { network_loss(it) } else { it.loss_ratio() },
                    known: it.known_share(),
                    unit: "datagrams",
                    whole: "stream",
                };
                v.udp.iter().filter(|it| is_wanted(it.pedigree.direction)).map(of_stream).collect()
            }
            Some("owd") => {
                let ways = v.owd.iter().flat_map(FollowedLoss::of_ways);
                ways.filter(|(direction, _)| is_wanted(*direction)).map(|(_, loss)| loss).collect()
            }
            Some("reach") => echoes(v).map(FollowedLoss::of_echoes).into_iter().collect(),
            Some("matrix") => {
                let of_udp = v.matrix.iter().filter(|it| it.protocol == MatrixProtocol::Udp);
                of_udp.map(FollowedLoss::of_matrix).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether it speaks of something that was not measured to its end over a version of this
    /// record. Not so if that version was never reached.
    pub(crate) fn is_broken_off(&self, v: &VersionResult, record: &Record) -> bool {
        let was_never_there = v.unreachable.is_some() && !v.was_lost();
        let is_cut = |part: Part| !v.extent(part, &record.command).holds(record.outcome);
        !was_never_there && self.parts().into_iter().any(is_cut)
    }

    /// What was not measured over a version of what it speaks of, because the measurement was ended
    /// on request; `None` where that was over by then, or was to go on until then.
    pub(crate) fn cut_short(&self, v: &VersionResult, record: &Record) -> Option<String> {
        if record.outcome != Outcome::Interrupted || v.unreachable.is_some() || has_no_end(record) {
            return None;
        }
        let least = if self.name.ends_with("loss") { LEAST_KNOWN } else { 1.0 };
        let name = v.version.name();
        let mut cut = self.parts().into_iter().filter(|part| v.was_cut_short(*part, &record.command));
        cut.find_map(|part| match of_count(v, part, record) {
            Some((measured, planned)) => ((measured as f64) < planned as f64 * least)
                .then(|| format!("only {measured} of {planned} over {name} were measured")),
            None => Some(format!("{name} was not measured to its end")),
        })
    }

    /// The parts of a version's result that it is read from; none if it speaks of the host.
    fn parts(&self) -> Vec<Part> {
        let way = if self.name.contains(".up") {
            Some(Direction::Forward)
        } else if self.name.contains(".down") {
            Some(Direction::Reverse)
        } else {
            None
        };
        match self.name.split('.').next().unwrap_or_default() {
            "connect" => vec![Part::Connects],
            "rtt" => vec![Part::RoundTrip, Part::RoundTripOverTcp],
            "jitter" | "loss" => vec![Part::RoundTrip],
            "tcp" | "loaded" | "rpm" => vec![Part::Tcp(way)],
            "udp" => vec![Part::Udp(way)],
            "capacity" | "available" => vec![Part::Trains],
            "hops" => vec![Part::Hops],
            "reach" => vec![Part::Reach],
            "owd" => vec![Part::OneWay],
            "matrix" => vec![Part::Matrix],
            _ => Vec::new(),
        }
    }
}

impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The unit of a metric's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// ns.
    Time,
    /// bit/s.
    Rate,
    /// 0..=1, typed as "1%" or "0.01".
    Share,
    /// A plain number.
    Number,
}

impl Kind {
    pub(crate) fn parse(self, text: &str) -> Result<f64, String> {
        match self {
            Self::Time => text.parse::<Span>().map(|span| span.0 as f64).map_err(|e| e.to_string()),
            Self::Rate => text.parse::<BitRate>().map(|rate| rate.0 as f64).map_err(|e| e.to_string()),
            Self::Share => text.parse::<Share>().map(|share| share.0).map_err(|e| e.to_string()),
            Self::Number => number(text).ok_or_else(|| format!("'{text}' is no number")),
        }
    }

    /// The unit of the values, for programs; empty for a plain number.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Time => "ns",
            Self::Rate => "bit/s",
            Self::Share => "1",
            Self::Number => "",
        }
    }

    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Time => Span(value as i64).to_string(),
            Self::Rate => BitRate(value as u64).to_string(),
            Self::Share => figures::percent(value),
            Self::Number => figures::count(value as u64),
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
}

impl Metric {
    /// # Errors
    /// A sentence with the nearest name, where one is near.
    pub(crate) fn named(name: &str) -> Result<&'static Self, String> {
        if let Some(metric) = METRICS.iter().find(|metric| metric.name == name) {
            return Ok(metric);
        }
        let family = name.split('.').next().unwrap_or(name);
        let near: Vec<&str> = METRICS
            .iter()
            .map(|metric| metric.name)
            .filter(|known| known.split('.').next() == Some(family))
            .collect();
        if near.is_empty() {
            let all = METRICS.iter().map(|metric| metric.name).collect::<Vec<_>>().join(", ");
            return Err(format!(
                "'{name}' is no metric; there are {all}, each also with ipv4. or ipv6. before it"
            ));
        }
        let closest = near.iter().max_by_key(|known| same_start(known, name)).copied().unwrap_or("");
        Err(format!("'{name}' is no metric; did you mean {closest}? There are {}", near.join(", ")))
    }
}

fn same_start(a: &str, b: &str) -> (usize, u8) {
    let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    // Among equally long beginnings the last character decides: p98 is nearer to p99 than to p95.
    (same, a.bytes().last().unwrap_or(0))
}

const fn metric(
    name: &'static str,
    kind: Kind,
    about: &'static str,
    exact: fn(&VersionResult) -> Vec<(&'static str, f64)>,
) -> Metric {
    Metric { name, kind, about, exact, bounded: |_| Vec::new(), of_host: |_| None }
}

const fn rate(name: &'static str, about: &'static str, bounded: fn(&VersionResult) -> Vec<Figure>) -> Metric {
    Metric { name, kind: Kind::Rate, about, exact: |_| Vec::new(), bounded, of_host: |_| None }
}

const fn of_host(
    name: &'static str,
    kind: Kind,
    about: &'static str,
    of_host: fn(&HostAbility) -> Option<f64>,
) -> Metric {
    Metric { name, kind, about, exact: |_| Vec::new(), bounded: |_| Vec::new(), of_host }
}

/// All there are.
pub(crate) static METRICS: &[Metric] = &[
    metric("rtt.min", Kind::Time, "idle round trip, smallest", |v| rtt(v, |d| d.min)),
    metric("rtt.p50", Kind::Time, "its median", |v| rtt(v, |d| d.p50)),
    metric("rtt.p95", Kind::Time, "its 95th percentile", |v| rtt(v, |d| d.p95)),
    metric("rtt.p99", Kind::Time, "its 99th percentile", |v| rtt(v, |d| d.p99)),
    metric("rtt.p999", Kind::Time, "its 99.9th percentile", |v| rtt(v, |d| d.p999)),
    metric("rtt.max", Kind::Time, "its largest", |v| rtt(v, |d| d.max)),
    metric("rtt.mean", Kind::Time, "its mean", |v| rtt(v, |d| d.mean)),
    metric("jitter", Kind::Time, "its smoothed jitter (RFC 3550)", |v| {
        v.latency.iter().filter_map(|latency| Some(("", latency.jitter?.0 as f64))).collect()
    }),
    metric("loss", Kind::Share, "requests without a response in time", |v| {
        v.latency.iter().filter_map(|it| Some(("", FollowedLoss::of_requests(it).judged()?))).collect()
    }),
    metric("connect", Kind::Time, "slowest TCP connect", |v| {
        let slowest = v.reach.as_ref().and_then(|reach| reach.connects.iter().max());
        slowest.map(|span| ("", span.0 as f64)).into_iter().collect()
    }),
    metric("loaded.p50", Kind::Time, "round trip under TCP load, median", |v| {
        loaded(v, |l| delay(l, |d| d.p50))
    }),
    metric("loaded.p99", Kind::Time, "its 99th percentile", |v| loaded(v, |l| delay(l, |d| d.p99))),
    metric("loaded.rise", Kind::Time, "its median over the idle one", |v| {
        loaded(v, |l| l.rise.map(|span| span.0 as f64))
    }),
    metric("rpm", Kind::Number, "round trips per minute under load", |v| {
        loaded(v, |l| l.round_trips_per_minute)
    }),
    metric("tcp", Kind::Rate, "TCP payload rate, every direction", |v| {
        v.tcp.iter().flat_map(|r| tcp(v, r.pedigree.direction)).fold(Vec::new(), without_repeats)
    }),
    metric("tcp.up", Kind::Rate, "TCP payload rate to HOST, most streams", |v| tcp(v, Direction::Forward)),
    metric("tcp.down", Kind::Rate, "TCP payload rate from HOST, most streams", |v| {
        tcp(v, Direction::Reverse)
    }),
    metric("tcp.retransmits", Kind::Number, "segments sent again", |v| {
        v.tcp.iter().filter_map(|r| Some((r.pedigree.direction.name(), r.retransmits? as f64))).collect()
    }),
    metric("udp", Kind::Rate, "UDP payload rate as received, every direction", |v| {
        udp(v, None, |r| Some(r.goodput?.0 as f64))
    }),
    metric("udp.up", Kind::Rate, "UDP payload rate to HOST, as received", |v| {
        udp(v, Some(Direction::Forward), |r| Some(r.goodput?.0 as f64))
    }),
    metric("udp.down", Kind::Rate, "UDP payload rate from HOST, as received", |v| {
        udp(v, Some(Direction::Reverse), |r| Some(r.goodput?.0 as f64))
    }),
    metric("udp.loss", Kind::Share, "UDP loss, every direction", |v| udp(v, None, udp_loss)),
    metric("udp.up.loss", Kind::Share, "UDP loss to HOST", |v| udp(v, Some(Direction::Forward), udp_loss)),
    metric("udp.down.loss", Kind::Share, "UDP loss from HOST", |v| {
        udp(v, Some(Direction::Reverse), udp_loss)
    }),
    metric("udp.network-loss", Kind::Share, "UDP loss less what a host dropped", |v| {
        udp(v, None, |r| udp_loss(r).and_then(|_| network_loss(r)))
    }),
    metric("udp.jitter", Kind::Time, "smoothed interarrival jitter (RFC 3550)", |v| {
        udp(v, None, |r| Some(r.receiver.as_ref()?.jitter?.0 as f64))
    }),
    metric("udp.gap.p99", Kind::Time, "gap between arrivals, 99th percentile", |v| {
        udp(v, None, |r| Some(r.receiver.as_ref()?.gaps.as_ref()?.p99.0 as f64))
    }),
    metric("udp.reordered", Kind::Share, "overtaken datagrams (RFC 4737)", |v| {
        udp(v, None, |r| ratio(r.reordered?, r.received))
    }),
    rate("capacity", "rate of the narrowest link, every direction", |v| {
        path_rates(v, PathMetric::Capacity, None)
    }),
    rate("capacity.up", "the same to HOST", |v| {
        path_rates(v, PathMetric::Capacity, Some(Direction::Forward))
    }),
    rate("capacity.down", "the same from HOST", |v| {
        path_rates(v, PathMetric::Capacity, Some(Direction::Reverse))
    }),
    rate("available", "available bandwidth, every direction", |v| path_rates(v, PathMetric::Available, None)),
    rate("available.up", "the same to HOST", |v| {
        path_rates(v, PathMetric::Available, Some(Direction::Forward))
    }),
    rate("available.down", "the same from HOST", |v| {
        path_rates(v, PathMetric::Available, Some(Direction::Reverse))
    }),
    rate("hops.capacity", "hops: slowest link that was found", |v| {
        let known = v.hops.iter().flat_map(|hops| &hops.hops).filter_map(|hop| hop.capacity.as_ref());
        slowest(known.map(|it| figure("", &it.rate, it.bound))).into_iter().collect()
    }),
    metric("hops.rtt", Kind::Time, "hops: smallest round trip to the last hop", |v| {
        let last = v.hops.as_ref().and_then(|hops| hops.hops.last()?.rtt_min);
        last.map(|rtt| ("", rtt.0 as f64)).into_iter().collect()
    }),
    metric("reach.rtt", Kind::Time, "reach: median round trip, each protocol", |v| {
        v.reach_probes
            .iter()
            .filter_map(|it| Some((it.protocol.name(), it.rtt.as_ref()?.p50.0 as f64)))
            .collect()
    }),
    metric("reach.loss", Kind::Share, "reach: echoes without an answer", |v| {
        let loss = echoes(v).and_then(|it| FollowedLoss::of_echoes(it).judged());
        loss.map(|loss| ("", loss)).into_iter().collect()
    }),
    rate("reach.capacity", "reach: narrowest link there and back, roughly", |v| {
        let rates = v.reach_probes.iter().filter_map(|it| it.capacity.as_ref());
        rates.map(|it| figure("", &it.rate, it.bound)).collect()
    }),
    metric("owd.min", Kind::Time, "owd: smallest one-way delay, every direction", |v| {
        owd_delay(v, None, |d| d.min)
    }),
    metric("owd.p50", Kind::Time, "its median", |v| owd_delay(v, None, |d| d.p50)),
    metric("owd.p95", Kind::Time, "its 95th percentile", |v| owd_delay(v, None, |d| d.p95)),
    metric("owd.p99", Kind::Time, "its 99th percentile", |v| owd_delay(v, None, |d| d.p99)),
    metric("owd.max", Kind::Time, "its largest", |v| owd_delay(v, None, |d| d.max)),
    metric("owd.mean", Kind::Time, "its mean", |v| owd_delay(v, None, |d| d.mean)),
    metric("owd.up.p50", Kind::Time, "owd: median to HOST", |v| {
        owd_delay(v, Some(Direction::Forward), |d| d.p50)
    }),
    metric("owd.down.p50", Kind::Time, "owd: median from HOST", |v| {
        owd_delay(v, Some(Direction::Reverse), |d| d.p50)
    }),
    metric("owd.up.p95", Kind::Time, "owd: 95th percentile to HOST", |v| {
        owd_delay(v, Some(Direction::Forward), |d| d.p95)
    }),
    metric("owd.down.p95", Kind::Time, "owd: 95th percentile from HOST", |v| {
        owd_delay(v, Some(Direction::Reverse), |d| d.p95)
    }),
    metric("owd.ipdv", Kind::Time, "owd: IPDV, 95th percentile, every direction", |v| {
        owd(v, None, |way| Some(way.ipdv?.p95.0 as f64))
    }),
    metric("owd.loss", Kind::Share, "owd: loss, every direction", |v| owd_loss(v, None)),
    metric("owd.up.loss", Kind::Share, "owd: loss to HOST", |v| owd_loss(v, Some(Direction::Forward))),
    metric("owd.down.loss", Kind::Share, "owd: loss from HOST", |v| owd_loss(v, Some(Direction::Reverse))),
    metric("owd.bound", Kind::Time, "owd: what the clocks may be off by", |v| {
        let clock = v.owd.as_ref().and_then(|owd| owd.clock.as_ref());
        clock.map(|clock| ("", clock.bound.0 as f64)).into_iter().collect()
    }),
    metric("matrix.tcp", Kind::Rate, "matrix: largest total in its best blocks, TCP", |v| {
        matrix(v, MatrixProtocol::Tcp, best)
    }),
    metric("matrix.tcp-nodelay", Kind::Rate, "the same with TCP_NODELAY", |v| {
        matrix(v, MatrixProtocol::TcpNodelay, best)
    }),
    metric("matrix.udp", Kind::Rate, "the same over UDP", |v| matrix(v, MatrixProtocol::Udp, best)),
    metric("matrix.udp.loss", Kind::Share, "matrix: bytes lost over UDP", |v| {
        matrix(v, MatrixProtocol::Udp, |it| FollowedLoss::of_matrix(it).judged())
    }),
    of_host("host.clock", Kind::Time, "host: one reading of the clock", |host| {
        Some(host.timings.clock.read_ns)
    }),
    of_host("host.sleep", Kind::Time, "host: how late precise sleeps end, p99", |host| {
        let mut waits = host.timings.waits.iter();
        waits.find(|wait| wait.how == WaitHow::PreciseSleep).map(|wait| wait.p99.0 as f64)
    }),
    of_host("host.send", Kind::Time, "host: sending a packet of 1500 B", |host| call(host, HostCall::Send)),
    of_host("host.receive", Kind::Time, "host: taking one in with its stamp", |host| {
        call(host, HostCall::ReceiveStamped)
    }),
    of_host("host.loopback", Kind::Rate, "host: highest rate over loopback", |host| {
        host.timings.loopback.iter().map(|run| run.rate.0 as f64).reduce(f64::max)
    }),
    of_host("host.packets", Kind::Number, "host: most packets a second there", |host| {
        host.timings.loopback.iter().filter_map(|run| run.packets_per_second).reduce(f64::max)
    }),
    of_host("host.pairs", Kind::Rate, "host: rate that pairs of 1500 B can probe", |host| {
        honest(host, "pairs")
    }),
    of_host("host.trains", Kind::Rate, "host: the same for trains", |host| honest(host, "trains")),
    of_host("host.steal", Kind::Share, "host: CPU time withheld meanwhile", |host| {
        host.timings.steal.known().copied()
    }),
];

fn call(host: &HostAbility, call: HostCall) -> Option<f64> {
    let mut calls = host.timings.calls.iter();
    calls.find(|timing| timing.call == call && timing.payload == FULL_PAYLOAD).map(|timing| timing.median_ns)
}

fn honest(host: &HostAbility, way: &str) -> Option<f64> {
    host.honest.iter().find(|row| row.way == way && row.packet == FULL).map(|row| row.rate.0 as f64)
}

/// The packets of most links, bytes of IP and of UDP payload over IPv4.
const FULL: u32 = 1500;
const FULL_PAYLOAD: u32 = 1472;

fn rtt(v: &VersionResult, of: impl Fn(&DelaySummary) -> Span) -> Vec<(&'static str, f64)> {
    let over = [("", v.latency.as_ref()), ("over TCP", v.latency_tcp.as_ref())];
    over.into_iter().filter_map(|(over, latency)| Some((over, of(latency?.rtt.as_ref()?).0 as f64))).collect()
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn delay(loaded: &LoadedLatency, of: impl Fn(&DelaySummary) -> Span) -> Option<f64> {
    loaded.latency.rtt.as_ref().map(|d| of(d).0 as f64)
}

/// The load is the transfer with the most streams in each direction.
fn loaded(v: &VersionResult, of: impl Fn(&LoadedLatency) -> Option<f64>) -> Vec<(&'static str, f64)> {
    [Direction::Reverse, Direction::Forward]
        .into_iter()
        .filter_map(|direction| {
            let latency = fullest(v, direction)?.latency_under_load.as_ref()?;
            Some((direction.name(), of(latency)?))
        })
        .collect()
}

fn fullest(v: &VersionResult, direction: Direction) -> Option<&TcpResult> {
    v.tcp.iter().filter(|r| r.pedigree.direction == direction).max_by_key(|r| r.streams)
}

fn tcp(v: &VersionResult, direction: Direction) -> Vec<(&'static str, f64)> {
    let goodput = fullest(v, direction).and_then(|r| r.goodput);
    goodput.map(|rate| (direction.name(), rate.0 as f64)).into_iter().collect()
}

fn without_repeats(mut all: Vec<(&'static str, f64)>, next: (&'static str, f64)) -> Vec<(&'static str, f64)> {
    if !all.iter().any(|(name, _)| *name == next.0) {
        all.push(next);
    }
    all
}

fn udp(
    v: &VersionResult,
    only: Option<Direction>,
    of: impl Fn(&UdpResult) -> Option<f64>,
) -> Vec<(&'static str, f64)> {
    let wanted = |r: &&UdpResult| only.is_none_or(|direction| r.pedigree.direction == direction);
    v.udp.iter().filter(wanted).filter_map(|r| Some((r.pedigree.direction.name(), of(r)?))).collect()
}

fn owd(
    v: &VersionResult,
    only: Option<Direction>,
    of: impl Fn(&OwdWay) -> Option<f64>,
) -> Vec<(&'static str, f64)> {
    let ways =
        v.owd.iter().flat_map(|owd| [(Direction::Forward, &owd.forward), (Direction::Reverse, &owd.reverse)]);
    let wanted = ways.filter(|(direction, _)| only.is_none_or(|only| only == *direction));
    wanted.filter_map(|(direction, way)| Some((direction.name(), of(way)?))).collect()
}

fn owd_delay(
    v: &VersionResult,
    only: Option<Direction>,
    of: impl Fn(&DelaySummary) -> Span,
) -> Vec<(&'static str, f64)> {
    owd(v, only, |way| Some(of(way.delay.as_ref()?).0 as f64))
}

fn owd_loss(v: &VersionResult, only: Option<Direction>) -> Vec<(&'static str, f64)> {
    let ways = v.owd.iter().flat_map(FollowedLoss::of_ways);
    let wanted = ways.filter(|(direction, _)| only.is_none_or(|only| only == *direction));
    wanted.filter_map(|(_, loss)| Some((loss.of, loss.judged()?))).collect()
}

/// A share that is below another one, with so many digits that it does not look like it.
fn percent_below(share: f64, limit: f64) -> String {
    let shown = |decimals: usize| format!("{:.decimals$}", share * 100.0);
    let is_below = |text: &String| text.parse::<f64>().is_ok_and(|percent| percent < limit * 100.0);
    if is_below(&shown(1)) {
        return figures::percent(share);
    }
    format!("{} %", (2..MOST_DECIMALS).map(shown).find(is_below).unwrap_or_else(|| shown(MOST_DECIMALS)))
}

/// More say nothing of a count.
const MOST_DECIMALS: usize = 9;

/// Whether it was to go on until a person ends it.
fn has_no_end(record: &Record) -> bool {
    let has = |name: &str| record.request.options.contains_key(name);
    ["latency", "available"].contains(&record.command.as_str()) && !has("count") && !has("time")
}

/// How many were measured and how many were to be, where a number was asked for.
fn of_count(v: &VersionResult, part: Part, record: &Record) -> Option<(u64, u64)> {
    let planned = record.request.options.get("count")?.parse::<u64>().ok()?;
    let measured = match part {
        Part::RoundTrip => v.latency.as_ref()?.settled(),
        Part::RoundTripOverTcp => v.latency_tcp.as_ref()?.settled(),
        Part::OneWay => v.owd.as_ref().map(|owd| owd.sent.saturating_sub(owd.unknown))?,
        _ => return None,
    };
    Some((measured, planned))
}

fn echoes(v: &VersionResult) -> Option<&ReachResult> {
    v.reach_probes.iter().find(|it| it.protocol == ReachProtocol::Echo)
}

/// Not measured where too much of the stream was not sent, or has a fate that nobody knows: the
/// loss of the rest says nothing of a stream that was to last longer.
fn udp_loss(result: &UdpResult) -> Option<f64> {
    result.loss_ratio().filter(|_| result.known_share() >= LEAST_KNOWN)
}

/// Share of the datagrams with a known fate that were lost on the way.
fn network_loss(result: &UdpResult) -> Option<f64> {
    ratio(result.loss.network?, result.sent.saturating_sub(result.loss.unknown))
}

/// Share of what was planned that must have been sent and followed to its end.
const LEAST_KNOWN: f64 = 0.9;

fn matrix(
    v: &VersionResult,
    protocol: MatrixProtocol,
    of: impl Fn(&MatrixResult) -> Option<f64>,
) -> Vec<(&'static str, f64)> {
    v.matrix.iter().filter(|it| it.protocol == protocol).filter_map(|it| Some(("", of(it)?))).collect()
}

fn path_rates(v: &VersionResult, metric: PathMetric, only: Option<Direction>) -> Vec<Figure> {
    let wanted =
        |r: &&PathRate| r.metric == metric && only.is_none_or(|direction| r.pedigree.direction == direction);
    let of = |r: &PathRate| Some(figure(r.pedigree.direction.name(), r.rate.as_ref()?, r.bound));
    v.path_rates.iter().filter(wanted).filter_map(of).collect()
}

/// An expectation is held against what is printed, which is the bound where there is one.
fn figure(of: &'static str, rate: &Interval, bound: RateBound) -> Figure {
    let value = match bound {
        RateBound::None => rate.estimate,
        RateBound::AtLeast => rate.lo,
        RateBound::AtMost => rate.hi,
    };
    Figure { of, value, bound }
}

/// The slowest of several. A bound below it leaves open whether a slower one is there, and so does
/// any link of which only the most is known.
fn slowest(rates: impl Iterator<Item = Figure>) -> Option<Figure> {
    let rates: Vec<Figure> = rates.collect();
    let is_open = rates.iter().any(|it| it.bound == RateBound::AtMost);
    let counts = rates.into_iter().filter(|it| !is_open || it.bound != RateBound::AtLeast);
    let slowest = counts.reduce(|one, other| if other.value < one.value { other } else { one })?;
    Some(if is_open { Figure { bound: RateBound::AtMost, ..slowest } } else { slowest })
}

fn best(result: &MatrixResult) -> Option<f64> {
    result.best().map(|rate| rate.estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_hop_may_be_one_of_which_only_a_bound_is_known() {
        use RateBound::{AtLeast, AtMost, None};
        let rates = |all: &[(f64, RateBound)]| {
            let all = all.iter().map(|(value, bound)| Figure { of: "", value: *value, bound: *bound });
            slowest(all).map(|it| (it.value, it.bound))
        };
        assert_eq!(rates(&[(100.0, None), (50.0, None), (700.0, AtLeast)]), Some((50.0, None)));
        assert_eq!(rates(&[(100.0, None), (30.0, AtLeast)]), Some((30.0, AtLeast)));
        assert_eq!(rates(&[(100.0, None), (80.0, AtMost)]), Some((80.0, AtMost)));
        assert_eq!(rates(&[(100.0, None), (150.0, AtMost), (30.0, AtLeast)]), Some((100.0, AtMost)));
        assert_eq!(rates(&[]), Option::None);
    }

    #[test]
    fn a_bound_is_judged_as_it_is_printed() {
        let mut version = crate::render::fixture::capacity().versions[0].clone();
        version.path_rates.truncate(1);
        let of = &mut version.path_rates[0];
        let rate = of.rate.as_mut().unwrap();
        (rate.lo, rate.estimate, rate.hi) = (16.3e6, 20.4e6, 25e6);
        let values = [(RateBound::AtLeast, 16.3e6), (RateBound::None, 20.4e6), (RateBound::AtMost, 25e6)];
        for (bound, shown) in values {
            version.path_rates[0].bound = bound;
            let judged = path_rates(&version, version.path_rates[0].metric, None);
            assert_eq!(judged.iter().map(|it| it.value).collect::<Vec<_>>(), [shown]);
        }
    }

    #[test]
    fn loss_of_a_stream_that_was_not_sent_or_not_followed_is_not_measured() {
        let mut result = crate::render::fixture::udp().versions[0].udp[0].clone();
        let rows = [
            // sent, not sent, lost, unknown, want
            (171, 346, 0, 0, None),
            (491, 26, 0, 0, Some(0.0)),
            (2548, 0, 0, 51, Some(0.0)),
            (2548, 0, 0, 2000, None),
            (1000, 0, 95, 50, Some(0.1)),
            (0, 517, 0, 0, None),
            (0, 0, 0, 0, None),
        ];
        for (sent, not_sent, lost, unknown, want) in rows {
            (result.sent, result.not_sent) = (sent, Some(not_sent));
            (result.loss.lost, result.loss.unknown) = (lost, unknown);
            assert_eq!(udp_loss(&result), want, "{sent} sent, {not_sent} not, {unknown} unknown");
        }
    }

    #[test]
    fn loss_of_requests_that_were_not_sent_or_not_followed_is_not_measured() {
        let named = |name: &str| Metric::named(name).unwrap();
        let mut version = crate::render::fixture::latency().versions[0].clone();
        let rows = [
            // received, lost, unknown, not sent, want
            (1000, 0, 0, 0, Some(0.0)),
            (900, 50, 50, 0, Some(50.0 / 950.0)),
            // The responder's process stood still, and this host's firewall let nothing out.
            (400, 0, 600, 0, None),
            (400, 0, 0, 600, None),
            (0, 0, 0, 0, None),
        ];
        for (received, lost, unknown, not_sent, want) in rows {
            let latency = version.latency.as_mut().unwrap();
            (latency.received, latency.lost, latency.unknown) = (received, lost, unknown);
            (latency.sent, latency.not_sent) = (received + lost + unknown, not_sent);
            let figures = named("loss").figures(&version);
            assert_eq!(figures.first().map(|it| it.value), want, "{received}, {lost}, {unknown}, {not_sent}");
        }
        let latency = version.latency.as_mut().unwrap();
        (latency.received, latency.unknown, latency.sent) = (400, 600, 1000);
        let want = "0 % lost, but only 40.0 % of its requests were sent and followed: too few to judge the path \
                    by";
        assert_eq!(named("loss").why_not_judged(&version).as_deref(), Some(want));
        assert_eq!(named("rtt.p50").why_not_judged(&version), None);
    }

    #[test]
    fn loss_of_one_way_or_of_a_matrix_that_was_hardly_followed_is_not_measured() {
        let named = |name: &str| Metric::named(name).unwrap();
        let mut version = crate::render::fixture::owd().versions[0].clone();
        let ways = ["owd.loss", "owd.up.loss", "owd.down.loss"];
        let figures = |v: &VersionResult| ways.map(|name| named(name).figures(v).len());
        assert_eq!(figures(&version), [2, 1, 1]);
        let owd = version.owd.as_mut().unwrap();
        (owd.sent, owd.unknown) = (2000, 1000);
        assert_eq!(figures(&version), [0, 0, 0]);
        let said = named("owd.up.loss").why_not_judged(&version).unwrap();
        assert!(said.starts_with("up ") && said.contains("of its packets were sent"), "{said}");
        assert!(!said.contains("down"), "{said}");

        let mut version = crate::render::fixture::matrix().versions[0].clone();
        let loss = named("matrix.udp.loss");
        assert_eq!((loss.figures(&version).len(), loss.why_not_judged(&version)), (1, None));
        let udp = version.matrix.iter_mut().find(|it| it.protocol == MatrixProtocol::Udp).unwrap();
        for run in udp.cells.iter_mut().flat_map(|cell| &mut cell.runs) {
            run.unknown = ByteCount(run.client.unwrap().bytes.0 / 2);
        }
        assert!(loss.figures(&version).is_empty());
        assert!(loss.why_not_judged(&version).unwrap().contains("of its bytes were sent"));
    }

    /// "ICMP echo 54/54, 0 %" held, and 118 echoes had never left.
    #[test]
    fn loss_of_echoes_of_which_most_never_left_is_not_measured() {
        let loss = Metric::named("reach.loss").unwrap();
        let mut version = crate::render::fixture::reach().versions[0].clone();
        let rows = [
            // asked, not sent, want
            (400, 0, Some(0.01)),
            (90, 10, Some(0.01)),
            (54, 118, None),
        ];
        for (asked, not_sent, want) in rows {
            let echo = version.reach_probes.iter_mut().find(|it| it.protocol == ReachProtocol::Echo).unwrap();
            (echo.asked, echo.not_sent) = (asked, not_sent);
            let figures = loss.figures(&version);
            assert_eq!(figures.first().map(|it| it.value), want, "{asked} asked, {not_sent} not sent");
        }
        let said = loss.why_not_judged(&version).unwrap();
        assert!(said.starts_with("1.00 % lost, but only 31.4 % of its echoes were sent"), "{said}");
        assert_eq!(Metric::named("reach.rtt").unwrap().why_not_judged(&version), None);
    }

    /// "Only 90.0 % of its packets were sent", where the rule is at least 90 %.
    #[test]
    fn a_share_below_the_least_that_is_judged_is_not_rounded_up_to_it() {
        let said = [448.0 / 498.0, 0.899_999, 0.298, 0.05].map(|share| percent_below(share, LEAST_KNOWN));
        assert_eq!(said, ["89.96 %", "89.9999 %", "29.8 %", "5.00 %"]);
    }

    #[test]
    fn a_refused_turn_over_tcp_is_not_judged_by_the_other_one() {
        let record = crate::render::fixture::tcp();
        let of_test = Record { command: "test".to_owned(), ..record.clone() };
        let mut version = record.versions[0].clone();
        let is_broken = |v: &VersionResult, name: &str, record: &Record| {
            Metric::named(name).unwrap().is_broken_off(v, record)
        };
        assert!(!is_broken(&version, "tcp", &record));
        let refused = netaware_record::FailedPhase {
            stage: "measure throughput".to_owned(),
            reason: "the responder at ::1 has no place for it".to_owned(),
        };
        version.failed_phases.push(refused);
        assert!(is_broken(&version, "tcp", &record) && is_broken(&version, "rpm", &record));
        // A direction has a figure of its own turn or none.
        assert!(!is_broken(&version, "tcp.up", &record) && is_broken(&version, "tcp.down", &record));
        // There the turn back may have been refused, and so may one over UDP.
        assert!(is_broken(&version, "tcp", &of_test));
        let mut back = version.tcp[0].clone();
        back.pedigree.direction = Direction::Reverse;
        version.tcp.push(back);
        assert!(is_broken(&version, "tcp", &record) && !is_broken(&version, "tcp.down", &record));
        // Where TCP ran both ways, it was UDP.
        assert!(!is_broken(&version, "tcp", &of_test) && is_broken(&version, "udp", &of_test));
    }

    #[test]
    fn every_metric_of_a_path_speaks_of_a_part() {
        let without: Vec<&str> =
            METRICS.iter().filter(|it| it.parts().is_empty()).map(|it| it.name).collect();
        assert!(!without.is_empty() && without.iter().all(|name| name.starts_with("host.")), "{without:?}");
        let parts = |name: &str| Metric::named(name).unwrap().parts();
        assert_eq!(parts("udp.up.loss"), [Part::Udp(Some(Direction::Forward))]);
        assert_eq!(parts("tcp.down"), [Part::Tcp(Some(Direction::Reverse))]);
        assert_eq!(parts("loaded.p99"), [Part::Tcp(None)]);
    }

    #[test]
    fn names_are_unique_and_shares_read_both_ways() {
        let mut names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
        assert_eq!((Kind::Share.parse("1 %"), Kind::Share.parse("0.01")), (Ok(0.01), Ok(0.01)));
        for bad in ["nan", "inf", "-1", "%", ""] {
            assert!(Kind::Share.parse(bad).is_err() && Kind::Number.parse(bad).is_err(), "{bad}");
        }
    }
}
