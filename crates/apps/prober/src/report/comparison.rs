//! Lays the samples of both versions side by side, round by round.

use netaware_probe::compare::{self, Loads, RoundSamples, Share, Standing};
use netaware_probe::loss_split;
use netaware_record::{
    Comparison, Direction, IpVersion, LimitedBy, Metric, Outcome, Side, StreamEnd, TcpResult, UdpResult, Use,
    VersionResult,
};
use netaware_units::{BitRate, ByteCount, SendRate, Span};

use super::route::Shift;
use super::{Findings, latency, outages, tcp};
use crate::echo::EchoRun;
use crate::request::Transport;
use crate::transfer::TcpRound;

/// Rounds of samples of one version.
type Rounds = Vec<Vec<f64>>;

/// Compares what both versions have; `None` when only one was asked for.
pub(super) fn compare(versions: &[VersionResult], findings: &[Findings]) -> Option<Comparison> {
    let [v4, v6] = versions else { return None };
    let [f4, f6] = findings else { return None };
    debug_assert_eq!((v4.version, v6.version), (IpVersion::V4, IpVersion::V6));
    let pair = Pair { v4, v6, f4, f6 };
    let lacks = [v4, v6].map(lacks);
    let cut = [cut_by_path(v4, f4, f6), cut_by_path(v6, f6, f4)];
    let standings = [0, 1].map(|n| Standing {
        // A silence of both says nothing of either.
        out: unreached(&versions[n]).filter(|_| !findings[n].is_silence_shared),
        is_broken: versions[n].unreachable.is_some(),
        stalled: stalled(&versions[n]).or(cut[n].as_deref()),
        lacks: &lacks[n],
    });
    Some(compare::compare(&pair.samples(), standings))
}

/// Uses for which a version has no figure.
fn lacks(result: &VersionResult) -> Vec<Use> {
    let has_rate = result.tcp.iter().any(|tcp| tcp.goodput.is_some()) || !result.matrix.is_empty();
    let has_delay = result.latency.as_ref().is_some_and(|latency| latency.rtt.is_some());
    let has_datagrams =
        has_delay || result.udp.iter().any(|udp| udp.received > 0) || !result.matrix.is_empty();
    [(Use::Bulk, has_rate), (Use::Interactive, has_delay), (Use::Media, has_datagrams)]
        .into_iter()
        .filter_map(|(purpose, has)| (!has).then_some(purpose))
        .collect()
}

/// Why a version is of no use to TCP: it was tried, and nothing came.
fn stalled(result: &VersionResult) -> Option<&'static str> {
    let stalled = |tcp: &TcpResult| tcp.carried_nothing() && tcp.outcome != Outcome::Interrupted;
    (!result.tcp.is_empty() && result.tcp.iter().all(stalled))
        .then_some("TCP connected, and its data did not come through")
}

/// That the path cut each transfer of a version in some direction, while its session lived and each
/// of the other version's went to its end: such a path is of no use to a transfer that is longer.
fn cut_by_path(result: &VersionResult, own: &Findings, other: &Findings) -> Option<String> {
    if result.unreachable.is_some() {
        return None;
    }
    let is_cut = |direction: &Direction| {
        let all = |found: &Findings, is_so: fn(&TcpRound) -> bool| {
            let mut rounds = found.tcp.iter().filter(|round| round.order.direction == *direction).peekable();
            rounds.peek().is_some() && rounds.all(is_so)
        };
        // An outage takes the requests beside a transfer as well, and passes.
        let is_cut: fn(&TcpRound) -> bool =
            |round| round.ended.outcome == Outcome::Failed && outages::beside(round).is_none();
        all(own, is_cut) && all(other, |round| round.ended.outcome == Outcome::Complete)
    };
    let cut: Vec<Direction> = BULK.into_iter().rev().filter(is_cut).collect();
    let rounds = || own.tcp.iter().filter(|round| cut.contains(&round.order.direction));
    let largest = rounds().filter_map(largest_stream).max()?;
    let ways = cut.iter().map(|way| way.name()).collect::<Vec<_>>().join(" and ");
    Some(if largest == ByteCount(0) {
        format!("TCP {ways} connected, and its data did not come through")
    } else {
        format!("the path cut each transfer {ways}: no stream carried more than {largest}")
    })
}

/// What came of the stream of a transfer of which most came.
fn largest_stream(round: &TcpRound) -> Option<ByteCount> {
    let of_streams = round.ended.tcp_receiver.iter().flat_map(|end| &end.streams);
    let told = of_streams.map(|stream| stream.bytes).max();
    let counted = || {
        let all: u64 = round.ended.receiver_ticks.iter().map(|tick| tick.bytes.0).sum();
        Some(ByteCount(all / u64::from(round.order.streams.max(1))))
    };
    told.or_else(counted)
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
        let rounds = |result: &VersionResult, found: &Findings| {
            let idle = result.latency.as_ref().and_then(|idle| idle.rtt).map(|rtt| rtt.p50);
            [from_result(result), from_findings(found, idle)].concat()
        };
        let share = |result| match metric {
            Metric::UdpLoss => share(result, direction),
            Metric::IdleLoss => idle_share(result),
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
            loads: self.loads(metric, direction),
            lower_bounds: both.map(|result| is_lower_bound(result, metric, direction)),
            host_limited: self.host_limited(metric, direction),
            doubt: self.doubt(metric, direction),
        }
    }

    /// Why a difference of what both were measured with says nothing of the versions.
    fn doubt(&self, metric: Metric, direction: Direction) -> Option<String> {
        match metric {
            Metric::TcpSingle | Metric::TcpParallel | Metric::LoadedRtt => {
                let both = || [self.v4, self.v6].into_iter();
                let broken = both().find_map(|result| broke_off(result, metric, direction));
                broken
                    .or_else(|| both().find_map(|result| did_not_last(result, direction)))
                    .or_else(|| self.moved(|_| true))
                    .or_else(|| self.changed())
                    .or_else(|| self.shared_links(metric, direction))
            }
            Metric::UdpLoss if self.has_dead_stream(direction) => None,
            Metric::UdpLoss => unlike_rates(self.v4, self.v6, direction)
                .or_else(|| self.silence(direction))
                .or_else(|| self.udp_outage(direction))
                .or_else(|| self.changed()),
            Metric::IdleLoss => self.outage(),
            Metric::IdleRtt | Metric::DelayVariation => self.moved(Shift::is_among_idle),
            Metric::Connect => None,
        }
    }

    /// That the round trip of either version rose in the midst: the other one was measured before,
    /// or after, or on another route.
    fn moved(&self, counts: impl Fn(&Shift) -> bool) -> Option<String> {
        let both = [(self.v4, self.f4), (self.v6, self.f6)];
        both.into_iter().find_map(|(result, found)| {
            let shift = Shift::of(found).filter(&counts)?;
            Some(format!("over {} {}", result.version.name(), shift.told()))
        })
    }

    /// That the path changed in the midst: the same transfer of one version had far unlike rates in
    /// two rounds. The turns of a version lie side by side (A B B A), so that a change of some
    /// seconds can hit one version alone.
    fn changed(&self) -> Option<String> {
        let both = [(self.v4, self.f4), (self.v6, self.f6)];
        both.into_iter().flat_map(|it| [(it, Direction::Forward), (it, Direction::Reverse)]).find_map(
            |((result, found), direction)| {
                let round_trip = result.latency.as_ref().and_then(|idle| idle.rtt).map(|rtt| rtt.p50);
                // One stream alone may have met losses, so several decide where there are any.
                let ways = || found.tcp.iter().filter(|round| round.order.direction == direction);
                let most = ways().map(|round| round.order.streams).max()?;
                let rounds = ways().filter(|round| round.order.streams > 1 || most == 1);
                let seen = rounds.map(|round| tcp::seen(round, round_trip.unwrap_or_default()));
                let rates = seen.filter(|seen| !seen.is_lower_bound).filter_map(|seen| seen.rate);
                unlike(rates.map(SendRate::bit_rate), direction, result.version.name())
            },
        )
    }

    /// That what was lost on the idle path was lost in a few rows: an outage passes, and hits
    /// whoever is measured then.
    fn outage(&self) -> Option<String> {
        let ratio = |result| idle_share(result).map_or(0.0, |share| share.part as f64 / share.of as f64);
        let (more, found) =
            if ratio(self.v4) > ratio(self.v6) { (self.v4, self.f4) } else { (self.v6, self.f6) };
        let Share { part: lost, of } = idle_share(more)?;
        let asked = found.idle.iter().map(|run| {
            run.order.shown_spacing() * i64::try_from(run.round.counts().sent()).unwrap_or(i64::MAX)
        });
        if lost == of && outlasts(asked, found) {
            // No request was answered while messages over TCP were: that is no outage.
            return None;
        }
        let at_end = |run: &EchoRun| usize::from(run.lost_at_end > 0);
        let runs: usize = found.idle.iter().map(|run| run.round.loss_runs() + at_end(run)).sum();
        (lost > 0 && runs < MIN_LOSS_RUNS).then(|| {
            let version = more.version.name();
            let when = if runs > 1 { format!("within {runs} short times") } else { "at one time".to_owned() };
            let lost = if lost == 1 { "one request".to_owned() } else { format!("all {lost} requests") };
            format!("over {version} {lost} that had no answer left {when}, as in an outage")
        })
    }

    /// Whether nothing at all came of the datagrams over one version while messages over TCP did:
    /// no burst of others' traffic, no outage and no rate of ours does that for so long.
    fn has_dead_stream(&self, direction: Direction) -> bool {
        let is_dead = |(result, found): (&VersionResult, &Findings)| {
            let lost_all = share(result, direction).is_some_and(|share| share.part == share.of);
            let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
            let sent = rounds.filter_map(|round| Some(round.ended.udp_sender.as_ref()?.elapsed));
            lost_all && outlasts(sent, found)
        };
        is_dead((self.v4, self.f4)) != is_dead((self.v6, self.f6))
    }

    /// That nothing came of a stream while nothing came over the session's connection either.
    fn silence(&self, direction: Direction) -> Option<String> {
        [(self.v4, self.f4), (self.v6, self.f6)].into_iter().find_map(|(result, found)| {
            let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
            let silence = rounds.filter(|round| round.carried_nothing()).filter_map(|it| it.silence).max()?;
            Some(format!("over {} nothing at all came for {silence}, as in an outage", result.version.name()))
        })
    }

    /// That most datagrams of a stream were lost in a few rows.
    fn udp_outage(&self, direction: Direction) -> Option<String> {
        let ratio =
            |result| share(result, direction).map_or(0.0, |share| share.part as f64 / share.of as f64);
        let more = if ratio(self.v4) > ratio(self.v6) { self.v4 } else { self.v6 };
        let lost = share(more, direction)?.part;
        let ends = udp(more, direction).filter_map(|udp| udp.receiver.as_ref());
        let (runs, of_runs) = in_few_rows(ends.flat_map(|end| end.loss_runs.iter().copied()), lost)?;
        let (version, rows) = (more.version.name(), if runs == 1 { "row" } else { "rows" });
        Some(format!(
            "over {version} {of_runs} of the {lost} lost datagrams were lost in {runs} {rows}, as in an outage"
        ))
    }

    /// That several streams had a whole number of times the rate of one stream, over both versions,
    /// and not the same number: a path of parallel links gives each stream one of them by its
    /// addresses and ports, and how many they meet is chance.
    fn shared_links(&self, metric: Metric, direction: Direction) -> Option<String> {
        if metric != Metric::TcpParallel {
            return None;
        }
        let one = [self.v4, self.v6].map(|result| goodput(result, Metric::TcpSingle, direction));
        let several = [self.v4, self.v6].map(|result| goodput(result, metric, direction));
        let [[Some(one4), Some(one6)], [Some(v4), Some(v6)]] = [one, several] else { return None };
        let rounds = |found: &Findings| {
            let several = |round: &&TcpRound| round.order.direction == direction && round.order.streams > 1;
            found.tcp.iter().filter(several).count()
        };
        let single = |result| transfers(result, Metric::TcpSingle, direction).next().map(|tcp| tcp.limit.by);
        let streams = transfers(self.v4, metric, direction).map(|tcp| tcp.streams).max()?;
        // Another round has other ports and would meet other links, and a window or a limit of each
        // stream is no link.
        let is_one_round = rounds(self.f4).max(rounds(self.f6)) < 2;
        let is_of_path = [self.v4, self.v6].map(single) == [Some(LimitedBy::Network); 2];
        if !is_one_round || !is_of_path {
            return None;
        }
        let (times4, times6) = times_of_links([one4, one6], [v4, v6])?;
        // So many times the rate as there are streams needs no link to be shared.
        if times4.min(times6) >= u32::from(streams) || times4.max(times6) > u32::from(streams) {
            return None;
        }
        Some(format!(
            "several streams had {times4} times the rate of one over IPv4 and {times6} times over IPv6, as over parallel \
             links that streams meet by chance"
        ))
    }

    /// The transfers that a metric depends on.
    fn loads(&self, metric: Metric, direction: Direction) -> Option<Loads> {
        let both = [(self.v4, self.f4), (self.v6, self.f6)];
        let of_idle =
            |result: &VersionResult| result.latency.as_ref().and_then(|idle| idle.rtt).map(|rtt| rtt.p50);
        let beside = match metric {
            Metric::TcpParallel => Some(Metric::TcpSingle),
            Metric::TcpSingle => Some(Metric::TcpParallel),
            _ => None,
        };
        let rates = match metric {
            Metric::TcpSingle | Metric::TcpParallel | Metric::LoadedRtt => {
                both.map(|(result, _)| goodput(result, metric, direction).map(|rate| BitRate(rate as u64)))
            }
            Metric::UdpLoss if self.has_dead_stream(direction) => return None,
            Metric::UdpLoss => [None; 2],
            Metric::IdleRtt | Metric::IdleLoss | Metric::DelayVariation | Metric::Connect => return None,
        };
        let observed = both.map(|(result, found)| match metric {
            Metric::UdpLoss => udp_time(found, direction),
            _ => tcp_time(found, metric, direction, of_idle(result)),
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

fn udp(result: &VersionResult, direction: Direction) -> impl Iterator<Item = &UdpResult> {
    result.udp.iter().filter(move |udp| udp.pedigree.direction == direction)
}

fn share(result: &VersionResult, direction: Direction) -> Option<Share> {
    let udp = udp(result, direction).next()?;
    let of = udp.sent.saturating_sub(udp.loss.unknown);
    (of > 0).then_some(Share { part: udp.loss.lost, of })
}

fn unlike(rates: impl Iterator<Item = BitRate>, direction: Direction, version: &str) -> Option<String> {
    let rates: Vec<BitRate> = rates.collect();
    let (slow, fast) = (rates.iter().min()?, rates.iter().max()?);
    (slow.0 < fast.percent(CHANGED).0).then(|| {
        format!(
            "the path changed meanwhile: TCP {} over {version} had {fast} in one round and {slow} in another",
            direction.name()
        )
    })
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

/// Whether one of these times was longer than any in which the control connection was silent: the
/// path was not out for all of it.
fn outlasts(mut times: impl Iterator<Item = Span>, found: &Findings) -> bool {
    found.longest_pause.is_some_and(|pause| times.any(|time| time > pause))
}

/// How many times the rate of one stream several had, over either version, where these are unlike
/// whole numbers and one stream had the same rate over both.
fn times_of_links(one: [f64; 2], several: [f64; 2]) -> Option<(u32, u32)> {
    let (slow, fast) = (one[0].min(one[1]), one[0].max(one[1]));
    if slow <= 0.0 || fast > slow * OF_ONE_LINK {
        return None;
    }
    let times = |rate: f64| {
        let times = (rate / slow).round();
        let is_whole = (rate / slow - times).abs() <= A_PART_OF_A_LINK;
        ((1.0..=MOST_LINKS).contains(&times) && is_whole).then_some(times as u32)
    };
    let (v4, v6) = (times(several[0])?, times(several[1])?);
    // One link alone carries no more with several streams, and says nothing of others.
    (v4 != v6 && v4.max(v6) > 1).then_some((v4, v6))
}

/// Of the rate of one link: several come as near to a whole number of them.
const A_PART_OF_A_LINK: f64 = 0.1;
/// Rates of one link differ by no more.
const OF_ONE_LINK: f64 = 1.05;
/// Beyond that nearly each ratio is near a whole number.
const MOST_LINKS: f64 = 6.0;

fn is_lower_bound(result: &VersionResult, metric: Metric, direction: Direction) -> bool {
    let never_ended = |tcp: &TcpResult| {
        tcp.outcome == Outcome::Complete
            && tcp.warm_up.as_ref().is_some_and(|it| it.rule == netaware_probe::warm_up::NEVER_ENDED)
    };
    transfers(result, metric, direction).any(never_ended)
}

/// A transfer that did not run to its end has the rate of a part of it, whatever that says.
fn broke_off(result: &VersionResult, metric: Metric, direction: Direction) -> Option<String> {
    let is_broken = transfers(result, metric, direction).any(|tcp| tcp.outcome == Outcome::Failed);
    is_broken
        .then(|| format!("TCP {} over {} broke off before its end", direction.name(), result.version.name()))
}

/// UDP was sent at less than TCP had reached, and much of it was lost. The path changed, a token
/// bucket was empty by then, or something on the way carries less of UDP than of TCP.
pub(super) fn did_not_last(result: &VersionResult, direction: Direction) -> Option<String> {
    let tcp = || result.tcp.iter().filter(|tcp| tcp.pedigree.direction == direction);
    let reached = tcp().filter_map(|tcp| tcp.goodput).max()?;
    // Losses that TCP met as well are the path's at any rate.
    let usual = tcp().filter_map(resent_share).fold(0.0, f64::max) * AS_TCP;
    udp(result, direction).find_map(|udp| {
        let (planned, ratio) = (udp.planned?, udp.loss.ratio?);
        if udp.received == 0 {
            // An outage or a filter takes all of it at any rate.
            return None;
        }
        if !loses_below_tcp((planned, reached), (ratio.lo, usual)) {
            return None;
        }
        let rows = udp.receiver.iter().flat_map(|end| end.loss_runs.iter().copied());
        if in_few_rows(rows, udp.loss.lost).is_some() {
            // An outage says nothing of the rate.
            return None;
        }
        let (version, lost) = (result.version.name(), ratio.estimate * 100.0);
        Some(format!(
            "UDP {} over {version} at {planned}, which is less than TCP had reached, lost {lost:.0} %: the path did \
             not go on carrying that rate, or carries less of UDP",
            direction.name()
        ))
    })
}

/// Whether a stream of a lower rate than TCP reached lost more than TCP's own losses explain. The
/// rates are those of UDP and of TCP, and so are the shares of losses.
fn loses_below_tcp(rates: (BitRate, BitRate), losses: (f64, f64)) -> bool {
    rates.0 < rates.1 && losses.0 > MUCH_LOSS.max(losses.1)
}

/// The share of its bytes that a transfer had to send again.
fn resent_share(tcp: &TcpResult) -> Option<f64> {
    let sender = tcp.sender.as_ref()?;
    let sum = |of: fn(&StreamEnd) -> Option<ByteCount>| -> Option<u64> {
        sender.streams.iter().map(|stream| of(stream).map(|bytes| bytes.0)).sum()
    };
    let (sent, resent) = (sum(|stream| stream.bytes_sent)?, sum(|stream| stream.bytes_resent)?);
    (sent > 0).then(|| resent as f64 / sent as f64)
}

/// In how many rows most of the lost datagrams were lost, and how many these are, where the rows
/// are so few that they say nothing of how often that happens. `runs` has lengths and how often
/// each was.
fn in_few_rows(runs: impl Iterator<Item = (u64, u64)>, lost: u64) -> Option<(u64, u64)> {
    let long = runs.filter(|(length, _)| *length >= LONG_RUN);
    let (rows, of_rows) =
        long.fold((0, 0), |(rows, lost), (length, times)| (rows + times, lost + times * length));
    (of_rows * 2 > lost && rows < MIN_LOSS_RUNS as u64).then_some((rows, of_rows))
}

/// Losses of streams of unlike rates are those of the rates.
fn unlike_rates(v4: &VersionResult, v6: &VersionResult, direction: Direction) -> Option<String> {
    let [of_v4, of_v6] = [v4, v6].map(|result| udp(result, direction).next().and_then(|udp| udp.planned));
    let (of_v4, of_v6) = (of_v4?, of_v6?);
    let (less, more) = (of_v4.min(of_v6), of_v4.max(of_v6));
    (more.0 as f64 > less.0 as f64 * ALIKE)
        .then(|| format!("the streams had unlike rates, {of_v4} over IPv4 and {of_v6} over IPv6"))
}

/// TCP itself would not have reached a rate with so much loss, unless it met as much.
const MUCH_LOSS: f64 = 0.05;
/// UDP's share of losses on a path that loses at random may exceed TCP's by this factor.
const AS_TCP: f64 = 2.0;
/// Per cent of the fastest round: several streams over a path that stays as it is differ by less.
const CHANGED: u64 = 50;
/// Fewer times at which requests were lost say nothing of how often that happens.
const MIN_LOSS_RUNS: usize = 3;
/// So many datagrams lost in a row are one event.
const LONG_RUN: u64 = 4;
/// Rates of TCP over the same path differ by less from turn to turn.
const ALIKE: f64 = 1.1;

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
    rounds.map(|round| loss_split::per_tick(&round.ended.receiver_ticks)).collect()
}

#[cfg(test)]
mod tests {
    use netaware_record::{TcpEnd, Unreachable};

    use super::super::{Across, Path};
    use super::*;
    use crate::bulk::Ended;
    use crate::transfer::{TcpOrder, UdpRound};

    /// An outage of 80 ms each 15 s, of which two fell into the turns of one version.
    #[test]
    fn datagrams_lost_in_two_rows_are_no_property_of_a_version() {
        let of = |runs: &[(u64, u64)], lost| in_few_rows(runs.iter().copied(), lost);
        assert_eq!(of(&[(1, 1), (7, 2)], 15), Some((2, 14)));
        assert_eq!(of(&[(1, 1), (7, 3)], 22), None, "that often it is a habit");
        assert_eq!(of(&[(1, 9), (4, 1)], 13), None, "most were lost one by one");
        assert_eq!(of(&[], 0), None);
    }

    /// A firewall that drops the datagrams of one version, and a path that was down while they
    /// came.
    #[test]
    fn a_stream_of_which_nothing_came_is_no_outage_where_messages_came_all_the_time() {
        let of = |version, received: u64| {
            let lost = (1000 - received, 1);
            let rounds = [outages::tests::stream(Direction::Reverse, vec![lost], received)];
            let mut result = VersionResult::new(version);
            let path = Path { version, across: Across::Network };
            result.udp.extend(super::super::udp::results(path, &rounds));
            result
        };
        let (v4, v6, f4) = (of(IpVersion::V4, 1000), of(IpVersion::V6, 0), Findings::default());
        let doubt = |millis, silence: bool| {
            let round = outages::tests::stream(Direction::Reverse, vec![(1000, 1)], 0);
            let silence = silence.then(|| Span::from_millis(millis));
            let udp = vec![UdpRound { silence, ..round }];
            let longest_pause = Some(Span::from_millis(millis));
            let f6 = Findings { udp, longest_pause, ..Findings::default() };
            let pair = Pair { v4: &v4, v6: &v6, f4: &f4, f6: &f6 };
            pair.doubt(Metric::UdpLoss, Direction::Reverse)
        };
        assert!(doubt(1_500, false).is_some_and(|why| why.contains("as in an outage")));
        assert_eq!(doubt(900, false), None, "it lasted 1 s");
        let silent = doubt(3_000, true).unwrap();
        assert_eq!(silent, "over IPv6 nothing at all came for 3.00 s, as in an outage");
    }

    /// Three links of 200 Mbit/s, of which four streams met three over IPv4 and two over IPv6.
    #[test]
    fn links_that_streams_meet_by_chance_prefer_no_version() {
        assert_eq!(times_of_links([198.2, 197.6], [591.4, 392.2]), Some((3, 2)));
        assert_eq!(times_of_links([198.2, 197.6], [591.4, 590.0]), None, "both met as many");
        assert_eq!(times_of_links([95.0, 48.0], [95.0, 48.0]), None, "one is slower");
        assert_eq!(times_of_links([20.0, 20.0], [95.0, 48.0]), None, "no links of 20");
        assert_eq!(times_of_links([0.0, 0.0], [1.0, 2.0]), None);
    }

    /// UDP limited to 3 Mbit/s on a path on which TCP reached 77.
    #[test]
    fn a_stream_that_loses_most_below_the_rate_of_tcp_is_told() {
        let rates = |udp: u64| (BitRate(udp * 1_000_000), BitRate(77_000_000));
        assert!(loses_below_tcp(rates(31), (0.86, 0.0)));
        assert!(!loses_below_tcp(rates(31), (0.02, 0.0)));
        assert!(!loses_below_tcp(rates(31), (0.18, 0.2)), "TCP met as much");
        assert!(!loses_below_tcp(rates(90), (0.86, 0.0)), "faster than the path");
    }

    fn round(direction: Direction, outcome: Outcome, bytes: &[u64]) -> TcpRound {
        let stream = |bytes: &u64| StreamEnd { bytes: ByteCount(*bytes), ..StreamEnd::default() };
        let order = TcpOrder { streams: 4, ..TcpOrder::new(direction, Span::from_millis(50)) };
        let end = TcpEnd { streams: bytes.iter().map(stream).collect(), ..TcpEnd::default() };
        let ended = Ended { outcome, tcp_receiver: Some(end), ..Ended::default() };
        TcpRound { order, ended, arrived: None, ran: None, load: None }
    }

    fn found(tcp: Vec<TcpRound>) -> Findings {
        Findings { tcp, ..Findings::default() }
    }

    #[test]
    fn a_path_that_faded_for_some_seconds_prefers_no_version() {
        let told = |rates: &[u64]| {
            let rates = rates.iter().map(|mbits| BitRate(mbits * 1_000_000));
            unlike(rates, Direction::Forward, "IPv6")
        };
        assert_eq!(
            told(&[173, 20]).unwrap(),
            "the path changed meanwhile: TCP up over IPv6 had 173 Mbit/s in one round and 20.0 Mbit/s in another"
        );
        assert_eq!([told(&[173, 120]), told(&[20]), told(&[])], [None, None, None]);
    }

    #[test]
    fn a_path_that_resets_each_transfer_is_not_no_difference_to_one_that_lets_them_end() {
        use Direction::{Forward, Reverse};
        use Outcome::{Complete, Failed, Interrupted};
        let whole = || found([Reverse, Forward].map(|way| round(way, Complete, &[700_000])).into());
        let cut = |down, up| {
            let rounds = vec![round(Reverse, down, &[273_704, 255_516]), round(Forward, up, &[249_900])];
            cut_by_path(&VersionResult::new(IpVersion::V6), &found(rounds), &whole())
        };
        let both = "the path cut each transfer down and up: no stream carried more than 267 KiB";
        assert_eq!(cut(Failed, Failed).as_deref(), Some(both));
        let one = "the path cut each transfer down: no stream carried more than 267 KiB";
        assert_eq!(cut(Failed, Complete).as_deref(), Some(one));
        // A person may end it, and a path that died takes the session with it.
        assert_eq!((cut(Interrupted, Complete), cut(Complete, Complete)), (None, None));
        let broken = || found(vec![round(Reverse, Failed, &[273_704])]);
        let lost = VersionResult {
            unreachable: Some(Unreachable {
                stage: String::new(),
                reason: String::new(),
                advice: String::new(),
            }),
            ..VersionResult::new(IpVersion::V6)
        };
        assert_eq!(cut_by_path(&lost, &broken(), &whole()), None);
        // The other version's were cut as well, or one round of this one was not.
        assert_eq!(cut_by_path(&VersionResult::new(IpVersion::V6), &broken(), &broken()), None);
        let mixed = found(vec![round(Reverse, Failed, &[9]), round(Reverse, Complete, &[700_000])]);
        assert_eq!(cut_by_path(&VersionResult::new(IpVersion::V6), &mixed, &whole()), None);
        // An outage, which took the requests beside the transfer as well, passes.
        let mut out = outages::tests::transfer(&[34, 34, 34, 0, 0, 0, 0, 0], outages::tests::run(60, 15..55));
        out.ended.outcome = Failed;
        assert_eq!(cut_by_path(&VersionResult::new(IpVersion::V6), &found(vec![out]), &whole()), None);
        let nothing = found(vec![round(Reverse, Failed, &[0])]);
        let told = cut_by_path(&VersionResult::new(IpVersion::V6), &nothing, &whole()).unwrap();
        assert_eq!(told, "TCP down connected, and its data did not come through");
    }
}
