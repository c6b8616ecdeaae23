//! A stream of probes: one-way delay, loss and reordering as they truly are.

use netaware_netmodel::{Scenario, Side};
use netaware_record::{DelaySummary, IpVersion, VersionResult};
use netaware_units::Span;

use super::{Figure, Found, UDP_HEADER, Unit, WaySummary};
use crate::drive::Way;
use crate::simulation::Simulation;
use crate::stream::ProbeStream;
use crate::truth::{PathTruth, WayTruth};

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamAsk {
    /// Who sends.
    pub from: Side,
    /// Packets.
    pub count: u64,
    /// From packet to packet.
    pub spacing: Span,
    /// UDP payload of each, bytes.
    pub length: u32,
}

pub(super) fn run(scenario: &Scenario, seed: u64, version: IpVersion, ask: &StreamAsk) -> Found {
    let mut sim = Simulation::new(scenario, seed);
    let began_at = sim.now();
    let length = ask.length + version.header_len() + UDP_HEADER;
    let fates =
        sim.stream(&ProbeStream { from: ask.from, version, length, spacing: ask.spacing, count: ask.count });
    let truth = PathTruth::of(scenario, &sim, version, length);
    let (way, nothing) = (WaySummary::of(&fates.way), WaySummary::of(&Way::default()));
    let along = if ask.from == Side::A { &truth.forward } else { &truth.reverse };
    let figures = figures(&way, along, &truth);
    let (forward, reverse) = if ask.from == Side::A { (way, nothing) } else { (nothing, way) };
    Found {
        version,
        figures,
        truth,
        forward,
        reverse,
        elapsed: sim.now().since(began_at),
        result: VersionResult::new(version),
    }
}

fn figures(way: &WaySummary, along: &WayTruth, truth: &PathTruth) -> Vec<Figure> {
    let time = |name, of: fn(&DelaySummary) -> Span| {
        let span = way.delay.as_ref().map(of);
        Figure::only_true(name, Unit::Nanoseconds, span.map(|span| span.nanos() as f64))
    };
    let count = |name, n: u64| Figure::only_true(name, Unit::Count, Some(n as f64));
    let base = along.base_delay.map(|delay| delay.nanos() as f64);
    let mut figures = vec![
        Figure::only_true("one way, empty path", Unit::Nanoseconds, base),
        time("one way, min", |delay| delay.min),
        time("one way, median", |delay| delay.p50),
        time("one way, p95", |delay| delay.p95),
        time("one way, p99", |delay| delay.p99),
        time("one way, p99.9", |delay| delay.p999),
        time("one way, max", |delay| delay.max),
        time("one way, mean", |delay| delay.mean),
        count("packets sent", way.sent),
        count("packets not sent", way.not_sent),
        Figure::only_true("lost", Unit::Share, way.loss()),
        count("reordered", way.reordered),
        count("copies", way.copies),
    ];
    figures.extend(rates(truth));
    figures
}

/// What the path could carry.
pub(super) fn rates(truth: &PathTruth) -> Vec<Figure> {
    let rate = |name, rate: Option<netaware_units::BitRate>| {
        Figure::only_true(name, Unit::BitsPerSecond, rate.map(|rate| rate.0 as f64))
    };
    let available = |way: &WayTruth| way.available.map(|available| available.mean);
    vec![
        rate("capacity up", truth.forward.capacity),
        rate("capacity down", truth.reverse.capacity),
        rate("available up, mean", available(&truth.forward)),
        rate("available down, mean", available(&truth.reverse)),
    ]
}
