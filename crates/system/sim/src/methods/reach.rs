//! What a host that runs nothing tells, over a path whose losses and queues are known by direction.

use netaware_netmodel::{Scenario, Side};
use netaware_path::Bound;
use netaware_path::reach::{HostClock, ReachFinding, WayQueues};
use netaware_record::{IpVersion, VersionResult};
use netaware_stats::quantile;
use netaware_units::Span;

use super::{Figure, Found, Unit, WaySummary};
use crate::hops::{HopPath, TcpPort};
use crate::reach::{TcpFound, reach, reach_with_tcp, usual_plan};
use crate::truth::PathTruth;

/// What to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReachAsk {
    /// How long, over one IP version.
    pub time: Span,
    /// What TCP connects to; absent leaves TCP out.
    pub tcp: Option<TcpPort>,
}

pub(super) fn run(scenario: &Scenario, seed: u64, version: IpVersion, ask: ReachAsk) -> Found {
    let mut path = HopPath::new(scenario, version, seed);
    let mut plan = usual_plan(version, ask.time);
    plan.largest = plan.largest.min(path.simulation().known_mtu(Side::A, version));
    let (smallest, largest) = (plan.smallest, plan.largest);
    let began_at = path.simulation().now();
    let (found, tcp) = match ask.tcp {
        Some(port) => reach_with_tcp(&mut path, plan, port),
        None => (reach(&mut path, plan), TcpFound::default()),
    };
    let truth = PathTruth::of(scenario, path.simulation(), version, largest);
    let [forward, reverse] = [Side::A, Side::B].map(|from| WaySummary::of(path.way(from)));
    let empty = scenario.base_rtt(version, smallest);
    Found {
        version,
        figures: figures((&found, &tcp), &truth, empty, &path, [&forward, &reverse]),
        truth,
        forward,
        reverse,
        elapsed: path.simulation().now().since(began_at),
        result: VersionResult::new(version),
    }
}

fn figures(
    (found, tcp): (&ReachFinding, &TcpFound),
    truth: &PathTruth,
    empty: Option<Span>,
    path: &HopPath,
    [forward, reverse]: [&WaySummary; 2],
) -> Vec<Figure> {
    let ns = |span: Option<Span>| span.map(|span| span.nanos() as f64);
    let share = |part: u32, whole: u32| (whole > 0).then(|| f64::from(part) / f64::from(whole));
    let by = found.by_direction;
    let ways = match found.clock {
        Some(HostClock::Believed(ways)) => Some(ways),
        _ => None,
    };
    let capacity = match (truth.forward.capacity, truth.reverse.capacity) {
        (Some(there), Some(back)) => Some(there.min(back).0 as f64),
        _ => None,
    };
    let queue = |name, of: fn(&WayQueues) -> Span, from| {
        Figure::new(name, Unit::Nanoseconds, ns(ways.as_ref().map(of)), queue_p90(path.stamped(from)))
    };
    let lost = |answered: u32, asked: u32| share(asked.saturating_sub(answered), asked);
    let least_of = |rtts: &[Span]| ns(rtts.iter().copied().min());
    let median_of = |rtts: &[Span]| quantile::median(&nanos(rtts));
    let narrowest = |bound| {
        let of = found.capacity.filter(|(_, of)| *of == bound);
        of.map(|(rate, _)| rate.estimate)
    };
    vec![
        Figure::new("round trip, min", Unit::Nanoseconds, least_of(&found.echo.rtts), None),
        Figure::new("round trip, median", Unit::Nanoseconds, median_of(&found.echo.rtts), None),
        Figure::only_true("round trip, empty path", Unit::Nanoseconds, ns(empty)),
        Figure::new(
            "echoes lost, there and back",
            Unit::Share,
            lost(found.echo.answered, found.echo.asked),
            None,
        ),
        Figure::new("lost up", Unit::Share, by.and_then(|by| share(by.forward, by.of)), forward.loss()),
        Figure::new("lost down", Unit::Share, by.and_then(|by| share(by.reverse, by.of)), reverse.loss()),
        queue("queue up, p90", |ways| ways.forward.p90, Side::A),
        queue("queue down, p90", |ways| ways.reverse.p90, Side::B),
        Figure::new("TCP round trip, min", Unit::Nanoseconds, least_of(&tcp.tries.rtts), least_of(&tcp.rtts)),
        Figure::new(
            "TCP round trip, median",
            Unit::Nanoseconds,
            median_of(&tcp.tries.rtts),
            median_of(&tcp.rtts),
        ),
        Figure::new(
            "TCP without an answer",
            Unit::Share,
            lost(tcp.tries.answered(), tcp.tries.asked),
            share(tcp.lost, tcp.tries.asked),
        ),
        Figure::new("narrowest link", Unit::BitsPerSecond, narrowest(Bound::None), capacity),
        Figure::new("narrowest link, at least", Unit::BitsPerSecond, narrowest(Bound::AtLeast), capacity),
        Figure::new("narrowest link, at most", Unit::BitsPerSecond, narrowest(Bound::AtMost), capacity),
    ]
}

/// Beyond the fastest, of nine in ten of the very timestamps.
fn queue_p90(delays: &[Span]) -> Option<f64> {
    let mut excess = nanos(delays);
    excess.sort_unstable_by(f64::total_cmp);
    Some(quantile::linear(&excess, 0.9)? - excess.first()?)
}

fn nanos(spans: &[Span]) -> Vec<f64> {
    spans.iter().map(|span| span.nanos() as f64).collect()
}
