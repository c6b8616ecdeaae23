//! Lays the samples of both versions side by side, round by round.

use netaware_probe::compare::{self, RoundSamples, Unreached};
use netaware_probe::loss_split;
use netaware_record::{Comparison, Direction, IpVersion, Metric, Side, VersionResult};
use netaware_units::Span;

use super::{Findings, tcp};
use crate::transfer::TcpRound;

/// Rounds of samples of one version.
type Rounds = Vec<Vec<f64>>;

/// Compares what both versions have; `None` when only one was asked for.
pub(super) fn compare(versions: &[VersionResult], findings: &[Findings]) -> Option<Comparison> {
    let [v4, v6] = versions else { return None };
    let [f4, f6] = findings else { return None };
    debug_assert_eq!((v4.version, v6.version), (IpVersion::V4, IpVersion::V6));
    let pair = Pair { v4, v6, f4, f6 };
    let unreached = Unreached { v4: unreached(v4), v6: unreached(v6) };
    Some(compare::compare(&pair.samples(), unreached))
}

/// A version that broke half-way has figures all the same; only one without any is out of the
/// comparison.
fn unreached(result: &VersionResult) -> Option<&str> {
    let measured = result.latency.is_some()
        || !result.tcp.is_empty()
        || !result.udp.is_empty()
        || !result.matrix.is_empty();
    result.unreachable.as_ref().filter(|_| !measured).map(|unreachable| unreachable.reason.as_str())
}

struct Pair<'a> {
    v4: &'a VersionResult,
    v6: &'a VersionResult,
    f4: &'a Findings,
    f6: &'a Findings,
}

const BULK: [Direction; 2] = [Direction::Forward, Direction::Reverse];

impl Pair<'_> {
    fn samples(&self) -> Vec<RoundSamples> {
        let mut samples = vec![
            self.of(Metric::Connect, Direction::RoundTrip, connects, |_, _| Vec::new()),
            self.of(Metric::IdleRtt, Direction::RoundTrip, |_| Vec::new(), |found, _| idle(found)),
            self.of(
                Metric::DelayVariation,
                Direction::RoundTrip,
                |_| Vec::new(),
                |found, _| variation(found),
            ),
        ];
        for direction in BULK {
            let none = |_: &VersionResult| Vec::new();
            samples.push(self.of(Metric::TcpSingle, direction, none, |found, idle| {
                rates(found, direction, |streams| streams == 1, idle)
            }));
            samples.push(self.of(Metric::TcpParallel, direction, none, |found, idle| {
                rates(found, direction, |streams| streams > 1, idle)
            }));
            samples.push(self.of(Metric::LoadedRtt, direction, none, |found, _| loaded(found, direction)));
            samples.push(self.of(Metric::UdpLoss, direction, none, |found, _| losses(found, direction)));
        }
        samples
    }

    /// One metric of both versions, from their results or from their findings.
    fn of(
        &self,
        metric: Metric,
        direction: Direction,
        from_result: impl Fn(&VersionResult) -> Rounds,
        from_findings: impl Fn(&Findings, Span) -> Rounds,
    ) -> RoundSamples {
        let rounds = |result: &VersionResult, found: &Findings| {
            let idle = result.latency.as_ref().and_then(|idle| idle.rtt).map(|rtt| rtt.p50);
            [from_result(result), from_findings(found, idle.unwrap_or_default())].concat()
        };
        RoundSamples {
            metric,
            direction,
            rounds_v4: rounds(self.v4, self.f4),
            rounds_v6: rounds(self.v6, self.f6),
            host_limited: self.host_limited(metric, direction),
        }
    }

    /// Whether a host, and not the network, set a rate of either version.
    fn host_limited(&self, metric: Metric, direction: Direction) -> bool {
        let by_host = |result: &VersionResult| match metric {
            Metric::TcpSingle | Metric::TcpParallel => result
                .tcp
                .iter()
                .filter(|tcp| tcp.pedigree.direction == direction)
                .filter(|tcp| (tcp.streams == 1) == (metric == Metric::TcpSingle))
                .any(|tcp| tcp.limit.side == Side::Host),
            Metric::UdpLoss => result
                .udp
                .iter()
                .filter(|udp| udp.pedigree.direction == direction)
                .any(|udp| udp.limit.side == Side::Host),
            Metric::IdleRtt | Metric::LoadedRtt | Metric::DelayVariation | Metric::Connect => false,
        };
        by_host(self.v4) || by_host(self.v6)
    }
}

fn connects(result: &VersionResult) -> Rounds {
    let nanos = |span: &Span| span.0 as f64;
    result.reach.iter().map(|reach| reach.connects.iter().map(nanos).collect()).collect()
}

fn idle(found: &Findings) -> Rounds {
    found.idle.iter().map(|run| run.round.rtts_ns()).collect()
}

fn variation(found: &Findings) -> Rounds {
    found.idle.iter().map(|run| run.round.variation_blocks_ns()).collect()
}

fn rates(found: &Findings, direction: Direction, wanted: impl Fn(u16) -> bool, idle: Span) -> Rounds {
    let of_kind = |round: &&TcpRound| round.order.direction == direction && wanted(round.order.streams);
    found.tcp.iter().filter(of_kind).map(|round| tcp::measured(round, idle).rates()).collect()
}

fn loaded(found: &Findings, direction: Direction) -> Rounds {
    let most = found.tcp.iter().map(|round| round.order.streams).max();
    let of_kind = |round: &&TcpRound| round.order.direction == direction && Some(round.order.streams) == most;
    found.tcp.iter().filter(of_kind).filter_map(|round| Some(round.under_load()?.round.rtts_ns())).collect()
}

fn losses(found: &Findings, direction: Direction) -> Rounds {
    let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
    rounds.map(|round| loss_split::per_tick(&round.ended.receiver_ticks)).collect()
}
