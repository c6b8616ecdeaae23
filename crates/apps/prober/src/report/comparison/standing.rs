//! What became of each version as a whole, apart from its figures.

use netaware_probe::compare::{Share, Standing};
use netaware_record::{Direction, Outcome, Part, TcpResult, Use, VersionResult};
use netaware_units::ByteCount;

use super::super::{Findings, outages};
use super::{BULK, Pair};
use crate::heavy_loss;
use crate::transfer::TcpRound;

/// What a [`Standing`] borrows.
pub(super) struct Reasons {
    died: [Option<String>; 2],
    lacks: [Vec<Use>; 2],
    cut: [Option<String>; 2],
    failed: [Vec<Use>; 2],
}

impl Reasons {
    pub(super) fn of(pair: &Pair<'_>) -> Self {
        Self {
            died: [died_alone(pair.v4, pair.f4, pair.v6), died_alone(pair.v6, pair.f6, pair.v4)],
            lacks: [pair.v4, pair.v6].map(lacks),
            cut: [cut_by_path(pair.v4, pair.f4, pair.f6), cut_by_path(pair.v6, pair.f6, pair.f4)],
            failed: [pair.v4, pair.v6].map(failed),
        }
    }

    /// Of IPv4 and of IPv6.
    pub(super) fn standings<'a>(&'a self, pair: &Pair<'a>) -> [Standing<'a>; 2] {
        let both = [(pair.v4, pair.f4), (pair.v6, pair.f6)];
        let out = both.map(|(result, _)| unreached(result));
        [0, 1].map(|n| {
            let (result, found) = both[n];
            Standing {
                // A silence that the other one outlived says nothing of either.
                out: out[n]
                    .filter(|_| !found.is_silence_shared || out[1 - n].is_some())
                    .or(self.died[n].as_deref()),
                is_broken: result.unreachable.is_some(),
                stalled: stalled(result).or(self.cut[n].as_deref()),
                lacks: &self.lacks[n],
                failed: &self.failed[n],
                // One that never was there was not lost.
                loses: Some(heavy_loss::of_runs(&found.idle))
                    .filter(|loss| both[1 - n].0.reach.is_some() && heavy_loss::is_heavy(*loss)),
                beside_tcp: share_beside_tcp(result),
            }
        })
    }
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

/// Uses for which a phase of a version failed.
fn failed(result: &VersionResult) -> Vec<Use> {
    // How transfers themselves ended is judged elsewhere: an outage that cut them passes.
    let has_failed = |part| result.failed_phase(part, "test").is_some();
    let bulk = has_failed(Part::Tcp(None));
    let delay = [Part::RoundTrip, Part::RoundTripOverTcp, Part::Trains].into_iter().any(has_failed);
    [(Use::Bulk, bulk), (Use::Interactive, delay), (Use::Media, delay)]
        .into_iter()
        .filter_map(|(purpose, has_failed)| has_failed.then_some(purpose))
        .collect()
}

/// What was lost of the requests beside all transfers.
fn share_beside_tcp(result: &VersionResult) -> Option<Share> {
    let beside = result.tcp.iter().filter_map(|tcp| tcp.latency_under_load.as_ref());
    let (part, of) = beside.fold((0, 0), |(part, of): (u64, u64), it| {
        (part.saturating_add(it.latency.lost), of.saturating_add(it.latency.settled()))
    });
    (of > 0).then_some(Share { part, of })
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

/// That nothing came any more over a version until the end, while the other one went on: figures of
/// the time before do not make it as good. A silence of both says nothing of either.
fn died_alone(result: &VersionResult, found: &Findings, other: &VersionResult) -> Option<String> {
    let unreachable = result.unreachable.as_ref()?;
    let after = found.silent_after.filter(|_| !found.is_silence_shared && other.unreachable.is_none())?;
    Some(format!("nothing came any more {after} after the begin: {}", unreachable.reason))
}

/// A version that broke half-way has figures all the same; one without any is out of the
/// comparison.
fn unreached(result: &VersionResult) -> Option<&str> {
    let measured = result.latency.is_some()
        || !result.tcp.is_empty()
        || !result.udp.is_empty()
        || !result.matrix.is_empty();
    result.unreachable.as_ref().filter(|_| !measured).map(|unreachable| unreachable.reason.as_str())
}

#[cfg(test)]
mod tests {
    use netaware_record::{FailedPhase, IpVersion, StreamEnd, TcpEnd, Unreachable};
    use netaware_units::Span;

    use super::*;
    use crate::bulk::{self, Ended};
    use crate::transfer::TcpOrder;

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

    /// The way back of IPv6 was gone for more than half of a test, and "no difference" was shown.
    #[test]
    fn a_version_that_died_alone_is_not_no_difference_to_the_one_that_went_on() {
        let reason = "nothing heard for 4.24 s".to_owned();
        let lost = |version| VersionResult {
            unreachable: Some(Unreachable {
                stage: String::new(),
                reason: reason.clone(),
                advice: String::new(),
            }),
            ..VersionResult::new(version)
        };
        let silent = |is_silence_shared| Findings {
            silent_after: Some(Span::from_millis(7_100)),
            is_silence_shared,
            ..Findings::default()
        };
        let (v6, v4) = (lost(IpVersion::V6), VersionResult::new(IpVersion::V4));
        let want = "nothing came any more 7.10 s after the begin: nothing heard for 4.24 s";
        assert_eq!(died_alone(&v6, &silent(false), &v4).as_deref(), Some(want));
        assert_eq!(died_alone(&v6, &silent(true), &v4), None);
        assert_eq!(died_alone(&v6, &silent(false), &lost(IpVersion::V4)), None);
        assert_eq!(died_alone(&v4, &silent(false), &v6), None);
        assert_eq!(died_alone(&v6, &Findings::default(), &v4), None, "its session was not silent");
    }

    /// A version of which transfers had failed was preferred as a whole.
    #[test]
    fn a_phase_that_failed_counts_against_its_uses() {
        let uses = |stage: &str| {
            let phase = FailedPhase { stage: stage.to_owned(), reason: String::new() };
            failed(&VersionResult { failed_phases: vec![phase], ..VersionResult::new(IpVersion::V6) })
        };
        assert_eq!(uses(bulk::STAGE), [Use::Bulk]);
        for stage in ["measure latency", "attach a UDP flow", "open the echo connection", "send trains"] {
            assert_eq!(uses(stage), [Use::Interactive, Use::Media], "{stage}");
        }
        assert!(failed(&VersionResult::new(IpVersion::V6)).is_empty());
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
