//! A fall for good of what the path carries, which any transfer of the test saw: what ran before it
//! and what ran after it were measured over unlike paths, whatever their versions.
//!
//! **Measures** rates of transfers of both versions in the order in which they began. A fall is
//! seen by a stream of datagrams that got less than half of a rate that TCP had exceeded before, by
//! a transfer over TCP that fell within its time, or by one with as many streams or more that got
//! less than half of an earlier one. **Assumes** that both versions and directions share the link
//! that became slower, unless something shows otherwise: it counts only if it lasted, that is, if
//! no transfer over TCP after it had half of what the fastest before it had, over either version,
//! in the direction compared and in the one in which it was seen. **Biased**: a version that is
//! less than half as fast in both directions and was measured after the other one had met something
//! of its own, such as a limit for UDP alone, is not shown to be slower. A path that became faster
//! is not seen, nor a change between two turns that no transfer met: of one round the verdict
//! says first that it holds only if there was none.

use netaware_record::{Direction, Metric, VersionResult};
use netaware_units::{BitRate, Mono, SendRate};

use super::super::rounds::is_far_below;
use super::super::{Findings, tcp, udp};
use super::{Pair, idle_round_trip, is_outage};
use crate::transfer::{TcpRound, UdpRound};

/// What a transfer over TCP carried, into which no outage fell.
#[derive(Debug)]
struct Carried {
    began_at: Mono,
    direction: Direction,
    streams: u16,
    rate: BitRate,
    is_lower_bound: bool,
    /// Its rates before and after a fall within its time.
    fell: Option<(BitRate, BitRate)>,
}

/// A transfer that got far less than the path had carried before.
#[derive(Debug)]
struct Fall {
    /// When that transfer began: it belongs to neither side of the fall.
    at: Mono,
    direction: Direction,
    /// What the path had carried in that direction at least.
    before: BitRate,
    /// What was seen, in words.
    seen: String,
}

impl Pair<'_> {
    /// That the path fell for good between what was measured of one version and of the other.
    pub(super) fn fell(&self, metric: Metric, direction: Direction) -> Option<String> {
        let both = [(self.v4, self.f4), (self.v6, self.f6)];
        let carried = both.map(|(result, found)| carried(result, found));
        let mut falls =
            both.iter().zip(&carried).flat_map(|((result, found), own)| falls(result, found, own));
        let all: Vec<&Carried> = carried.iter().flatten().collect();
        let fall = falls
            .find(|fall| self.is_between(fall, metric, direction) && has_lasted(fall, &all, direction))?;
        Some(format!(
            "the path may have changed during the test: {}, and no transfer after that had half of what those before it had",
            fall.seen
        ))
    }

    /// Whether one version was measured before it or while it came, and the other one then or after
    /// it.
    fn is_between(&self, fall: &Fall, metric: Metric, direction: Direction) -> bool {
        let [v4, v6] = [self.f4, self.f6].map(|found| {
            let began = began(found, metric, direction);
            (began.iter().any(|at| *at <= fall.at), began.iter().any(|at| *at >= fall.at))
        });
        (v4.0 && v6.1) || (v6.0 && v4.1)
    }
}

/// When the transfers began of which a metric is.
fn began(found: &Findings, metric: Metric, direction: Direction) -> Vec<Mono> {
    if metric == Metric::UdpLoss {
        let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
        return rounds.filter_map(|round| round.ended.began_at).collect();
    }
    let most = found.tcp.iter().map(|round| round.order.streams).max();
    let is_wanted = |round: &&TcpRound| match metric {
        Metric::TcpSingle => round.order.streams == 1,
        Metric::TcpParallel => round.order.streams > 1,
        _ => Some(round.order.streams) == most,
    };
    let rounds = found.tcp.iter().filter(|round| round.order.direction == direction).filter(is_wanted);
    rounds.filter_map(|round| round.ended.began_at).collect()
}

/// Returns what the transfers over TCP of one version carried, in the order run.
fn carried(result: &VersionResult, found: &Findings) -> Vec<Carried> {
    let round_trip = idle_round_trip(result).unwrap_or_default();
    let of = |round: &TcpRound| {
        let seen = tcp::seen(round, round_trip);
        Some(Carried {
            began_at: round.ended.began_at?,
            direction: round.order.direction,
            streams: round.order.streams,
            rate: seen.rate.map(SendRate::bit_rate).filter(|_| !seen.is_cut)?,
            is_lower_bound: seen.is_lower_bound,
            fell: tcp::fell_within(round, &seen).filter(|(before, after)| is_far_below(*after, *before)),
        })
    };
    found.tcp.iter().filter_map(of).collect()
}

/// What the transfers of one version saw, `carried` being those over TCP.
fn falls(result: &VersionResult, found: &Findings, carried: &[Carried]) -> Vec<Fall> {
    let version = result.version.name();
    let of_tcp = |(n, one): (usize, &Carried)| {
        let way = one.direction.name();
        let Carried { began_at: at, direction, .. } = *one;
        if let Some((before, after)) = one.fell {
            let seen = format!("TCP {way} over {version} fell from {before} to {after}");
            return Some(Fall { at, direction, before, seen });
        }
        let earlier = carried[..n].iter().filter(|it| it.direction == direction && it.streams <= one.streams);
        let before = earlier.map(|it| it.rate).max()?;
        let seen = format!("TCP {way} over {version} had {before} and then {}", one.rate);
        (!one.is_lower_bound && is_far_below(one.rate, before)).then_some(Fall {
            at,
            direction,
            before,
            seen,
        })
    };
    let of_udp = |round: &UdpRound| {
        let (at, direction) = (round.ended.began_at?, round.order.plan.direction);
        let (planned, came) = (round.order.planned?.bit_rate(), udp::came_at(round)?);
        let earlier = carried.iter().filter(|it| it.direction == direction && it.began_at < at);
        let reached = earlier.map(|it| it.rate).max()?;
        let seen =
            format!("UDP {} over {version} was sent at {planned} and came at {came}", direction.name());
        let has_fallen = planned < reached && is_far_below(came, planned) && !is_outage(round);
        has_fallen.then_some(Fall { at, direction, before: planned, seen })
    };
    carried.iter().enumerate().filter_map(of_tcp).chain(found.udp.iter().filter_map(of_udp)).collect()
}

/// Whether a transfer over TCP fell at a time at which both versions became slower for good in this
/// direction, whatever each of them had sent: no credit of one of them was used up then.
pub(in crate::report) fn fell_over_both(
    versions: &[VersionResult],
    findings: &[Findings],
    direction: Direction,
) -> bool {
    let of_way = |(result, found): (&VersionResult, &Findings)| -> Vec<Carried> {
        carried(result, found).into_iter().filter(|it| it.direction == direction).collect()
    };
    let each: Vec<Vec<Carried>> = versions.iter().zip(findings).map(of_way).collect();
    let has_fallen = |own: &Vec<Carried>, at: Mono| {
        let level = |it: &Carried| it.fell.map_or(it.rate, |(before, _)| before);
        let before = own.iter().filter(|it| it.began_at <= at).map(level).max();
        let after = own.iter().filter(|it| it.began_at > at).map(level).max();
        before.zip(after).is_some_and(|(before, after)| is_far_below(after, before))
    };
    let mut falls = each.iter().flatten().filter(|it| it.fell.is_some());
    each.len() > 1 && falls.any(|fall| each.iter().all(|own| has_fallen(own, fall.began_at)))
}

/// Whether it is known to have lasted in this direction, and not known to have passed in its own.
fn has_lasted(fall: &Fall, all: &[&Carried], direction: Direction) -> bool {
    let is_lower_in = |way: Direction| {
        let of_way = || all.iter().filter(|it| it.direction == way);
        let before = of_way().filter(|it| it.began_at < fall.at).map(|it| it.rate);
        let before = before.chain((fall.direction == way).then_some(fall.before)).max()?;
        let after = of_way().filter(|it| it.began_at > fall.at && !it.is_lower_bound).map(|it| it.rate);
        Some(is_far_below(after.max()?, before))
    };
    is_lower_in(direction) == Some(true) && is_lower_in(fall.direction) != Some(false)
}

#[cfg(test)]
mod tests {
    use netaware_record::{IpVersion, UdpReceiverEnd, UdpSenderEnd};
    use netaware_units::{ByteCount, Span};

    use super::super::super::outages;
    use super::*;
    use crate::transfer::UdpOrder;
    use Direction::{Forward, Reverse};

    /// Begun at this second.
    fn tcp(second: u64, direction: Direction, streams: u16, mbit: &[u64]) -> TcpRound {
        let mut round = outages::tests::transfer(mbit, outages::tests::run(60, 0..0));
        (round.order.direction, round.order.streams, round.load) = (direction, streams, None);
        round.ended.began_at = Some(Mono(second * 1_000_000_000));
        round
    }

    /// Over 200 ms at 15 Mbit/s, of which so many datagrams of 255 came within so many
    /// milliseconds.
    fn udp(second: u64, received: u64, took_ms: i64) -> UdpRound {
        let (lasts, rate) = (Span::from_millis(200), SendRate::at_least(15_000_000));
        let order = UdpOrder::paced(Forward, lasts, 1472, rate, Span::from_millis(50));
        let sender = UdpSenderEnd {
            sent: 255,
            bytes: ByteCount(255 * 1472),
            elapsed: lasts,
            ..UdpSenderEnd::default()
        };
        let receiver = UdpReceiverEnd {
            received,
            bytes: ByteCount(received * 1472),
            highest: 255,
            elapsed: Span::from_millis(took_ms),
            loss_runs: vec![(14, (255 - received) / 14)],
            ..UdpReceiverEnd::default()
        };
        let ended = crate::bulk::Ended {
            udp_sender: Some(sender),
            udp_receiver: Some(receiver),
            began_at: Some(Mono(second * 1_000_000_000)),
            ..crate::bulk::Ended::default()
        };
        UdpRound { order, ended, at_once: false, silence: None }
    }

    /// Down and then up, each with one stream and with four.
    fn turn(second: u64, down: u64, up: u64) -> Vec<TcpRound> {
        let steady =
            |nth: u64, direction, streams, mbit: u64| tcp(second + nth, direction, streams, &[mbit; 20]);
        vec![
            steady(0, Reverse, 1, down),
            steady(1, Reverse, 4, down),
            steady(3, Forward, 1, up),
            steady(4, Forward, 4, up),
        ]
    }

    fn found(tcp: Vec<TcpRound>, udp: Vec<UdpRound>) -> Findings {
        Findings { tcp, udp, ..Findings::default() }
    }

    fn doubt(f4: &Findings, f6: &Findings, direction: Direction) -> Option<String> {
        let [v4, v6] = [IpVersion::V4, IpVersion::V6].map(VersionResult::new);
        Pair { v4: &v4, v6: &v6, f4, f6 }.fell(Metric::TcpParallel, direction)
    }

    /// The path became slower for good in a turn of IPv6, and a token bucket was said to be empty.
    #[test]
    fn a_fall_that_both_versions_met_is_no_bucket_of_one() {
        let fell: Vec<u64> = [[20; 6].as_slice(), &[1; 14]].concat();
        let both = |v4_after: &[u64], v6_after: &[u64]| {
            let f4 = found(vec![tcp(0, Reverse, 1, &[20; 20]), tcp(30, Reverse, 1, v4_after)], vec![]);
            let f6 = found(vec![tcp(10, Reverse, 1, &fell), tcp(20, Reverse, 1, v6_after)], vec![]);
            let versions = [IpVersion::V4, IpVersion::V6].map(VersionResult::new);
            fell_over_both(&versions, &[f4, f6], Reverse)
        };
        assert!(both(&[1; 20], &[1; 20]));
        assert!(!both(&[20; 20], &[1; 20]), "IPv4 is as it was");
        assert!(!both(&[1; 20], &fell), "the credit was there again");
    }

    /// 20 Mbit/s that fell to 1 in the last stream of IPv4: IPv4 was preferred for 19.4 against
    /// 0.9 Mbit/s down.
    #[test]
    fn a_fall_that_one_direction_saw_doubts_the_other_one_as_well() {
        let f4 = found(turn(0, 20, 20), vec![udp(5, 83, 985)]);
        let f6 = found(turn(10, 1, 1), vec![]);
        let why = doubt(&f4, &f6, Reverse).unwrap();
        assert!(
            why.starts_with(
                "the path may have changed during the test: UDP up over IPv4 was sent at 15.0 Mbit/s and came at 988 kbit/s, and "
            ),
            "{why}"
        );
        assert!(doubt(&f4, &f6, Forward).is_some());
        // Nothing saw a fall: one version may be slow.
        assert_eq!(doubt(&found(turn(0, 20, 20), vec![udp(5, 255, 200)]), &f6, Reverse), None);
    }

    #[test]
    fn a_stream_that_gave_way_for_a_moment_or_to_a_limit_for_udp_doubts_no_tcp() {
        let f4 = || found(turn(0, 20, 20), vec![udp(5, 83, 985)]);
        // IPv6 is slower down alone: the same path carried what it had carried up.
        assert_eq!(doubt(&f4(), &found(turn(10, 1, 20), vec![]), Reverse), None);
        assert_eq!(doubt(&f4(), &found(turn(10, 15, 15), vec![]), Reverse), None);
        // A second round of IPv4 was as fast as its first.
        let twice =
            found(turn(0, 20, 20).into_iter().chain(turn(30, 20, 20)).collect(), vec![udp(5, 83, 985)]);
        let slow = found(turn(10, 1, 1).into_iter().chain(turn(20, 1, 1)).collect(), vec![]);
        assert_eq!(doubt(&twice, &slow, Reverse), None);
        // What one moment took was a row of datagrams.
        let mut out = udp(5, 83, 985);
        out.ended.udp_receiver.as_mut().unwrap().loss_runs = vec![(172, 1)];
        assert_eq!(doubt(&found(turn(0, 20, 20), vec![out]), &found(turn(10, 1, 1), vec![]), Reverse), None);
    }

    #[test]
    fn a_fall_within_or_between_transfers_over_tcp_doubts_what_ran_before_and_after_it() {
        let early: Vec<u64> = [[20; 6].as_slice(), &[1; 14]].concat();
        let late: Vec<u64> = [[20; 14].as_slice(), &[1; 6]].concat();
        let fast = || found(turn(0, 20, 20), vec![]);
        for mbit in [&early, &late] {
            let mut slow = turn(10, 1, 1);
            slow[0] = tcp(10, Reverse, 1, mbit);
            let why = doubt(&fast(), &found(slow, vec![]), Reverse).unwrap();
            assert!(
                why.contains(": TCP down over IPv6 fell from ") && why.contains(" to 1.00 Mbit/s"),
                "{why}"
            );
        }
        let mut fell = turn(0, 20, 1);
        fell[1] = tcp(1, Reverse, 4, &[1; 20]);
        let (fell, slow) = (found(fell, vec![]), found(turn(10, 1, 1), vec![]));
        assert!(doubt(&fell, &slow, Reverse).unwrap().contains("had 20.0 Mbit/s and then 1.00 Mbit/s, and"));
        assert_eq!(doubt(&fell, &slow, Forward), None, "both ran after it");
        // A bucket of one direction alone was empty.
        let mut fell = turn(0, 20, 20);
        fell[1] = tcp(1, Reverse, 4, &[1; 20]);
        let (fell, slow) = (found(fell, vec![]), found(turn(10, 1, 20), vec![]));
        assert!(doubt(&fell, &slow, Reverse).is_some());
        assert_eq!(doubt(&fell, &slow, Forward), None, "up it is as it was");
    }
}
