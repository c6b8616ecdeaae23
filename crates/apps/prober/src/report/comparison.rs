//! Lays the samples of both versions side by side, round by round.

mod doubt;
mod fall;
mod standing;
mod undecided;

use netaware_probe::compare::{self, Loads, RoundSamples, Share};
use netaware_probe::loss_split;
use netaware_record::{
    Comparison, Direction, IpVersion, Metric, Outcome, ReceiverTick, Side, TcpResult, UdpResult, Use,
    VersionResult,
};
use netaware_units::{BitRate, Span};

use super::{Findings, latency, tcp};
use crate::echo::EchoRun;
use crate::queueing;
use crate::request::Transport;
use crate::transfer::TcpRound;

pub(super) use doubt::{did_not_last, is_outage};
pub(super) use fall::fell_over_both;
use standing::Reasons;

/// Rounds of samples of one version.
type Rounds = Vec<Vec<f64>>;

/// Compares what both versions have; `None` when only one was asked for. `more` says how a person
/// gets more rounds, where that is known.
pub(super) fn compare(
    versions: &[VersionResult],
    findings: &[Findings],
    more: Option<&str>,
) -> Option<Comparison> {
    let [v4, v6] = versions else { return None };
    let [f4, f6] = findings else { return None };
    debug_assert_eq!((v4.version, v6.version), (IpVersion::V4, IpVersion::V6));
    let pair = Pair { v4, v6, f4, f6 };
    let reasons = Reasons::of(&pair);
    let mut comparison = compare::compare(&pair.samples(), reasons.standings(&pair));
    undecided::complete(&pair, &mut comparison, more);
    let bulk = comparison.verdicts.iter_mut().find(|verdict| verdict.purpose == Use::Bulk);
    if let (Some(bulk), Some(way)) = (bulk, way_without_tcp([v4, v6])) {
        let note = format!("; TCP {} carried nothing over either version", way.name());
        bulk.because.push_str(&note);
    }
    Some(comparison)
}

/// The only direction in which TCP carried nothing over either version, though it was tried.
fn way_without_tcp(versions: [&VersionResult; 2]) -> Option<Direction> {
    let is_silent = |direction: &Direction| {
        versions.iter().all(|result| {
            let mut own = result.tcp.iter().filter(|tcp| tcp.pedigree.direction == *direction).peekable();
            own.peek().is_some() && own.all(TcpResult::carried_nothing)
        })
    };
    let silent: Vec<Direction> = BULK.into_iter().filter(is_silent).collect();
    // Where nothing came either way, the verdict is about that already.
    if let [way] = silent[..] { Some(way) } else { None }
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
            self.of(
                Metric::IdleLoss,
                Direction::RoundTrip,
                |_| Vec::new(),
                |found, _| found.idle.iter().map(|run| run.round.loss_blocks()).collect(),
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
        from_findings: impl Fn(&Findings, Option<Span>) -> Rounds,
    ) -> RoundSamples {
        let is_queued = self.is_queued(metric);
        let rounds = |result: &VersionResult, found: &Findings| {
            if is_queued {
                return Vec::new();
            }
            [from_result(result), from_findings(found, idle_round_trip(result))].concat()
        };
        let share = |result| match metric {
            Metric::UdpLoss => share(result, direction),
            Metric::IdleLoss if !is_queued => idle_share(result),
            _ => None,
        };
        let runs = |result, found| match metric {
            Metric::UdpLoss => loss_runs(result, direction),
            Metric::IdleLoss => idle_loss_runs(found),
            _ => None,
        };
        let both = [self.v4, self.v6];
        RoundSamples {
            metric,
            direction,
            rounds_v4: rounds(self.v4, self.f4),
            rounds_v6: rounds(self.v6, self.f6),
            figures: goodput(self.v4, metric, direction)
                .zip(goodput(self.v6, metric, direction))
                .filter(|_| metric.more_is_better())
                .map(Into::into),
            shares: share(self.v4).zip(share(self.v6)).map(Into::into),
            runs: [runs(self.v4, self.f4), runs(self.v6, self.f6)],
            loads: self.loads(metric, direction),
            lower_bounds: both.map(|result| is_lower_bound(result, metric, direction)),
            host_limited: self.host_limited(metric, direction),
            doubt: self.doubt(metric, direction),
        }
    }

    /// Whether a metric of the idle path would be one of the queue that the requests of a version
    /// made themselves.
    fn is_queued(&self, metric: Metric) -> bool {
        let is_of_idle = matches!(metric, Metric::IdleRtt | Metric::DelayVariation | Metric::IdleLoss);
        is_of_idle && [self.f4, self.f6].iter().any(|found| queueing::fills_most(&found.idle))
    }

    /// The transfers that a metric depends on.
    fn loads(&self, metric: Metric, direction: Direction) -> Option<Loads> {
        let both = [(self.v4, self.f4), (self.v6, self.f6)];
        let beside = match metric {
            Metric::TcpParallel => Some(Metric::TcpSingle),
            Metric::TcpSingle => Some(Metric::TcpParallel),
            _ => None,
        };
        let rates = match metric {
            Metric::TcpSingle | Metric::TcpParallel | Metric::LoadedRtt => {
                both.map(|(result, _)| goodput(result, metric, direction).map(|rate| BitRate(rate as u64)))
            }
            Metric::UdpLoss if self.cannot_be_chance(direction) => return None,
            Metric::UdpLoss => [None; 2],
            Metric::IdleRtt | Metric::IdleLoss | Metric::DelayVariation | Metric::Connect => return None,
        };
        let observed = both.map(|(result, found)| match metric {
            Metric::UdpLoss => udp_time(found, direction),
            _ => tcp_time(found, metric, direction, idle_round_trip(result)),
        });
        let rate_of =
            |metric: Metric, n: usize| transfers(both[n].0, metric, direction).find_map(|tcp| tcp.goodput);
        let beside = beside.and_then(|other| Some([rate_of(other, 0)?, rate_of(other, 1)?]));
        let observed = observed.into_iter().min().unwrap_or_default();
        Some(Loads { rates, observed, beside })
    }

    /// Whether a host, and not the network, set a rate of either version.
    fn host_limited(&self, metric: Metric, direction: Direction) -> bool {
        let by_host = |result: &VersionResult| match metric {
            Metric::TcpSingle | Metric::TcpParallel | Metric::LoadedRtt => {
                transfers(result, metric, direction).any(|tcp| tcp.limit.side == Side::Host)
            }
            Metric::UdpLoss => result
                .udp
                .iter()
                .filter(|udp| udp.pedigree.direction == direction)
                .any(|udp| udp.limit.side == Side::Host),
            Metric::IdleRtt | Metric::IdleLoss | Metric::DelayVariation | Metric::Connect => false,
        };
        by_host(self.v4) || by_host(self.v6)
    }
}

/// The median round trip of a version without load.
fn idle_round_trip(result: &VersionResult) -> Option<Span> {
    result.latency.as_ref().and_then(|idle| idle.rtt).map(|rtt| rtt.p50)
}

fn udp(result: &VersionResult, direction: Direction) -> impl Iterator<Item = &UdpResult> {
    result.udp.iter().filter(move |udp| udp.pedigree.direction == direction)
}

fn share(result: &VersionResult, direction: Direction) -> Option<Share> {
    let udp = udp(result, direction).next()?;
    let of = udp.sent.saturating_sub(udp.loss.unknown);
    (of > 0).then_some(Share { part: udp.loss.lost, of })
}

/// In how many rows datagrams were lost; `None` where the receiver told of none, which it leaves
/// out of a long report.
fn loss_runs(result: &VersionResult, direction: Direction) -> Option<u64> {
    let receiver = udp(result, direction).next()?.receiver.as_ref()?;
    let runs = receiver.loss_runs.iter().fold(0_u64, |sum, (_, times)| sum.saturating_add(*times));
    (runs > 0).then_some(runs)
}

/// In how many rows requests of the idle path were lost.
fn idle_loss_runs(found: &Findings) -> Option<u64> {
    let of_run = |run: &EchoRun| run.round.loss_runs() as u64 + u64::from(run.lost_at_end > 0);
    Some(found.idle.iter().map(of_run).sum::<u64>()).filter(|runs| *runs > 0)
}

fn idle_share(result: &VersionResult) -> Option<Share> {
    // TCP sends lost packets again, so that their loss is not seen.
    let latency = result.latency.as_ref().filter(|idle| idle.pedigree.method != Transport::Tcp.method())?;
    Some(Share { part: latency.lost, of: latency.settled() }).filter(|share| share.of > 0)
}

/// The transfers of which a metric is: round trips under load are those beside the most streams.
fn transfers(
    result: &VersionResult,
    metric: Metric,
    direction: Direction,
) -> impl Iterator<Item = &TcpResult> {
    let most = result.tcp.iter().map(|tcp| tcp.streams).max();
    let is_wanted = move |tcp: &&TcpResult| match metric {
        Metric::TcpSingle => tcp.streams == 1,
        Metric::TcpParallel => tcp.streams > 1,
        Metric::LoadedRtt => Some(tcp.streams) == most,
        _ => false,
    };
    result.tcp.iter().filter(move |tcp| tcp.pedigree.direction == direction).filter(is_wanted)
}

/// The rate that the result itself tells, in bit/s.
fn goodput(result: &VersionResult, metric: Metric, direction: Direction) -> Option<f64> {
    transfers(result, metric, direction).find_map(|tcp| tcp.goodput).map(|rate| rate.0 as f64)
}

fn is_lower_bound(result: &VersionResult, metric: Metric, direction: Direction) -> bool {
    let never_ended = |tcp: &TcpResult| {
        tcp.outcome == Outcome::Complete
            && tcp.warm_up.as_ref().is_some_and(|it| it.rule == netaware_probe::warm_up::NEVER_ENDED)
    };
    transfers(result, metric, direction).any(never_ended)
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

fn rates(found: &Findings, direction: Direction, wanted: impl Fn(u16) -> bool, idle: Option<Span>) -> Rounds {
    let of_kind = |round: &&TcpRound| round.order.direction == direction && wanted(round.order.streams);
    found.tcp.iter().filter(of_kind).map(|round| tcp::measured(round, idle).rates()).collect()
}

fn loaded(found: &Findings, direction: Direction) -> Rounds {
    let most = found.tcp.iter().map(|round| round.order.streams).max();
    let of_kind = |round: &&TcpRound| round.order.direction == direction && Some(round.order.streams) == most;
    let rtts = |round: &TcpRound| Some(latency::beside_load(round.under_load()?).rtts_ns());
    found.tcp.iter().filter(of_kind).filter_map(rtts).collect()
}

/// For how long the shortest of the transfers that a metric depends on counts.
fn tcp_time(found: &Findings, metric: Metric, direction: Direction, idle: Option<Span>) -> Span {
    let most = found.tcp.iter().map(|round| round.order.streams).max();
    let is_wanted = |round: &&TcpRound| match metric {
        Metric::TcpSingle => round.order.streams == 1,
        Metric::TcpParallel => round.order.streams > 1,
        _ => Some(round.order.streams) == most,
    };
    let rounds = found.tcp.iter().filter(|round| round.order.direction == direction).filter(is_wanted);
    let counted = rounds.map(|round| {
        tcp::measured(round, idle).counted().iter().map(|tick| tick.length.or_zero()).sum::<Span>()
    });
    counted.min().unwrap_or_default()
}

/// How long the shortest stream of the direction lasted. Where nothing came of one, its sender
/// knows.
fn udp_time(found: &Findings, direction: Direction) -> Span {
    let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
    let lasted = rounds.map(|round| {
        let ticks = &round.ended.receiver_ticks;
        let sent = || round.ended.udp_sender.as_ref().map(|end| end.elapsed).unwrap_or_default();
        if ticks.is_empty() { sent() } else { ticks.iter().map(|tick| tick.length.or_zero()).sum() }
    });
    lasted.min().unwrap_or_default()
}

fn losses(found: &Findings, direction: Direction) -> Rounds {
    let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
    let of_round = |ticks: &[ReceiverTick]| {
        let mut ticks = ticks.to_vec();
        // What was overtaken is not lost.
        loss_split::settle(&mut ticks);
        loss_split::per_tick(&ticks)
    };
    rounds.map(|round| of_round(&round.ended.receiver_ticks)).collect()
}

#[cfg(test)]
mod tests {
    use netaware_units::ByteCount;

    use super::super::ends::tests::transfer;
    use super::*;

    /// A black hole on the way down of both versions was in none of the verdicts.
    #[test]
    fn a_direction_in_which_tcp_carried_nothing_over_either_version_is_in_the_verdict() {
        let result = |version, silent: &[Direction]| {
            let tcp = BULK.map(|way| {
                let bytes = if silent.contains(&way) { 0 } else { 1_000_000 };
                TcpResult { goodput: None, bytes: Some(ByteCount(bytes)), ..transfer(way, 4) }
            });
            VersionResult { tcp: tcp.into(), ..VersionResult::new(version) }
        };
        let way = |v4: &[Direction], v6: &[Direction]| {
            way_without_tcp([&result(IpVersion::V4, v4), &result(IpVersion::V6, v6)])
        };
        let (down, up) = (Direction::Reverse, Direction::Forward);
        assert_eq!(way(&[down], &[down]), Some(down));
        assert_eq!(way(&[down], &[down, up]), Some(down));
        assert_eq!(way(&[down], &[up]), None);
        assert_eq!(way(&[down, up], &[down, up]), None);
        assert_eq!(way_without_tcp([&VersionResult::new(IpVersion::V4); 2]), None);
    }
}
