//! Lays the samples of both versions side by side, round by round.

use netaware_probe::compare::{self, Counts, RoundSamples, Unreached};
use netaware_probe::loss_split;
use netaware_probe::warm_up::NEVER_ENDED;
use netaware_record::{Comparison, Direction, IpVersion, Metric, PathFacts, Side, TcpResult, VersionResult};
use netaware_units::{BitRate, Span};

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
    let (stalled_v4, stalled_v6) = (stalled(v4), stalled(v6));
    let changed = path_changed(versions, findings);
    // One that was not measured is no argument for another that was lost on the way.
    let is_lost = unreached(v4).is_some() || unreached(v6).is_some();
    let reason = |result| unreached(result).or_else(|| lost(result).filter(|_| is_lost));
    let unreached = Unreached {
        v4: reason(v4),
        v6: reason(v6),
        stalled_v4: stalled_v4.as_deref(),
        stalled_v6: stalled_v6.as_deref(),
        changed: changed.as_deref(),
    };
    Some(compare::compare(&pair.samples(), unreached))
}

/// Why TCP carried nothing at all over a version, if it did not.
fn stalled(result: &VersionResult) -> Option<String> {
    let is_stalled = !result.tcp.is_empty() && result.tcp.iter().all(TcpResult::carried_nothing);
    let why = result.path.as_ref().and_then(PathFacts::black_hole);
    let early = || result.tcp.iter().find_map(|tcp| tcp.ended_early.clone());
    is_stalled.then(|| why.or_else(early).unwrap_or_else(|| "nothing of what was sent arrived".to_owned()))
}

/// What shows that the path was another one when the second version had its turn. A UDP stream runs
/// below what TCP has just carried; if little of it arrives, and the other version's TCP then
/// reaches only about as much, then the path changed in between. Several rounds need no such proof:
/// their interval shows how they differ.
pub(super) fn path_changed(versions: &[VersionResult], findings: &[Findings]) -> Option<String> {
    let ([v4, v6], [f4, f6]) = (versions, findings) else { return None };
    let of = |found: &Findings, result: &VersionResult, direction: Direction| {
        let idle = result.latency.as_ref().and_then(|idle| idle.rtt).map(|rtt| rtt.p50).unwrap_or_default();
        let rounds = found.tcp.iter().filter(|round| round.order.direction == direction);
        let rates: Vec<f64> = rounds
            .filter_map(|round| tcp::seen(round, idle).rate)
            .map(|rate| rate.bit_rate().0 as f64)
            .collect();
        rates.into_iter().reduce(f64::max)
    };
    let one_round = [f4, f6].iter().all(|found| {
        BULK.iter().all(|way| found.udp.iter().filter(|it| it.order.plan.direction == *way).count() < 2)
    });
    let pairs = [(v4, f4, v6, f6), (v6, f6, v4, f4)];
    let directed = pairs.into_iter().flat_map(|pair| BULK.map(|direction| (pair, direction)));
    directed.filter(|_| one_round).find_map(|((first, found, second, other), direction)| {
        let udp = found.udp.iter().find(|round| round.order.plan.direction == direction)?;
        let planned = udp.order.planned?.bit_rate().0 as f64;
        let receiver = udp.ended.udp_receiver.as_ref()?;
        let arrived = BitRate::mean(receiver.bytes, udp.order.plan.duration.max(receiver.elapsed));
        let (before, after) = (of(found, first, direction)?, of(other, second, direction)?);
        let is_below_tcp = planned <= before;
        let is_cut = (arrived.0 as f64) < planned * LOST_TO_A_CHANGE;
        let is_like = after < before * LOST_TO_A_CHANGE && after < arrived.0 as f64 * ABOUT;
        (is_below_tcp && is_cut && is_like).then(|| {
            format!(
                "the path changed during the test: UDP {} over {} was sent at {}, which TCP had just exceeded, and \
                 arrived at {arrived}; TCP over {} reached {} there",
                direction.name(),
                first.version.name(),
                BitRate(planned as u64),
                second.version.name(),
                BitRate(after as u64),
            )
        })
    })
}

/// A rate that fell below this share fell by more than paths usually vary.
const LOST_TO_A_CHANGE: f64 = 0.7;
/// A rate up to so many times another is about the same: TCP fills what UDP shares.
const ABOUT: f64 = 1.5;

/// A version that broke half-way has figures all the same; only one without any is out of the
/// comparison.
fn unreached(result: &VersionResult) -> Option<&str> {
    let measured = result.latency.is_some()
        || !result.tcp.is_empty()
        || !result.udp.is_empty()
        || !result.matrix.is_empty();
    result.unreachable.as_ref().filter(|_| !measured).map(|unreachable| unreachable.reason.as_str())
}

fn lost(result: &VersionResult) -> Option<&str> {
    result.unreachable.as_ref().map(|unreachable| unreachable.reason.as_str())
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
            lower_bounds: self.lower_bounds(metric, direction),
            counts: (metric == Metric::UdpLoss).then(|| self.counts(direction)).flatten(),
        }
    }

    /// Versions whose TCP was still speeding up when it ended.
    fn lower_bounds(&self, metric: Metric, direction: Direction) -> Vec<IpVersion> {
        let streams_fit = |tcp: &&TcpResult| match metric {
            Metric::TcpSingle => tcp.streams == 1,
            Metric::TcpParallel => tcp.streams > 1,
            _ => false,
        };
        let is_bound = |result: &&VersionResult| {
            let of_kind = |tcp: &&TcpResult| tcp.pedigree.direction == direction && streams_fit(tcp);
            let rule = |tcp: &TcpResult| tcp.warm_up.as_ref().is_some_and(|it| it.rule == NEVER_ENDED);
            result.tcp.iter().filter(of_kind).any(rule)
        };
        [self.v4, self.v6].into_iter().filter(is_bound).map(|result| result.version).collect()
    }

    /// Lost and sent datagrams whose fate is known.
    fn counts(&self, direction: Direction) -> Option<Counts> {
        let of = |result: &VersionResult| {
            let udp = result.udp.iter().find(|udp| udp.pedigree.direction == direction)?;
            Some((udp.loss.lost, udp.sent.saturating_sub(udp.loss.unknown)))
        };
        Some(Counts { v4: of(self.v4)?, v6: of(self.v6)? })
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
