//! Transfers over TCP that did not end as they should, one sentence for each kind.

use netaware_probe::warm_up;
use netaware_record::{Direction, LimitedBy, Outcome, TcpResult};
use netaware_units::ByteCount;

/// What a person has to know of how the transfers of one version ended. Those that ended alike
/// share a sentence.
pub(super) fn warnings<'a>(transfers: impl IntoIterator<Item = &'a TcpResult>) -> Vec<String> {
    let mut kinds: Vec<(Kind, Vec<&TcpResult>)> = Vec::new();
    for transfer in transfers {
        let Some(kind) = Kind::of(transfer) else { continue };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, members)) => members.push(transfer),
            None => kinds.push((kind, vec![transfer])),
        }
    }
    kinds.iter().map(|(kind, members)| kind.told(members)).collect()
}

/// How a transfer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    CarriedNothing,
    /// For this reason, and its rate is that of the time in which data came.
    BrokeOff(Option<String>),
    /// For this reason, and too little had come to tell a rate.
    BrokeOffSoon(Option<String>),
    SpeedingUp,
    /// All of its bytes had come before it had reached its rate.
    TooFewBytes,
    /// It was no longer speeding up, but had not come to an even rate either.
    Unsettled,
}

impl Kind {
    fn of(tcp: &TcpResult) -> Option<Self> {
        if tcp.carried_nothing() && tcp.outcome == Outcome::Interrupted {
            // Whoever ended it did not wait for more.
            return None;
        }
        if tcp.carried_nothing() {
            return Some(Self::CarriedNothing);
        }
        let why = tcp.ended_early.as_deref().map(cause);
        if why.is_some() || tcp.outcome == Outcome::Failed {
            return Some(if tcp.goodput.is_some() { Self::BrokeOff(why) } else { Self::BrokeOffSoon(why) });
        }
        let never_ended = tcp.warm_up.as_ref().is_some_and(|it| it.rule == warm_up::NEVER_ENDED);
        let has_grown = tcp.receiver_ticks.is_empty() || warm_up::has_grown(&tcp.receiver_ticks);
        let kind = match (tcp.planned, has_grown) {
            (None, _) => Self::TooFewBytes,
            (Some(_), true) => Self::SpeedingUp,
            (Some(_), false) => Self::Unsettled,
        };
        (never_ended && tcp.limit.by != LimitedBy::RequestedRate).then_some(kind)
    }

    fn told(&self, members: &[&TcpResult]) -> String {
        let which = named(members);
        let broke_off = |why: &Option<String>| {
            let why = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{which} did not end as planned{why}")
        };
        let several = members.len() > 1;
        match self {
            Self::CarriedNothing => {
                let planned = match members {
                    [one] => one.planned.map(|planned| format!(" in the {planned} planned")),
                    _ => None,
                };
                let rate = if several { "their rates are unknown" } else { "its rate is unknown" };
                format!("{which} carried nothing{}: {rate}", planned.unwrap_or_default())
            }
            Self::BrokeOff(why) => {
                let carried = carried(members).map(|bytes| format!(", with {bytes} at most in a stream"));
                let rate = match members {
                    [one] => format!("its rate is that of the {} in which data came", one.measured),
                    _ => "their rates are those of the time in which data came".to_owned(),
                };
                format!("{}{}; {rate}", broke_off(why), carried.unwrap_or_default())
            }
            Self::BrokeOffSoon(why) => {
                format!("{}, and what came until then is too little to tell a rate", broke_off(why))
            }
            Self::SpeedingUp if several => {
                format!("{which} were still speeding up when they ended; a longer --time would show more")
            }
            Self::TooFewBytes => {
                format!(
                    "{which} ended with the last of the bytes, too soon to tell what lasts; more bytes would show more"
                )
            }
            Self::Unsettled => {
                let were = if several { "were" } else { "was" };
                format!("{which} {were} too short to tell what lasts; a longer --time would show more")
            }
            Self::SpeedingUp => {
                format!("{which} was still speeding up when it ended; a longer --time would show more")
            }
        }
    }
}

/// The reason without the stream that met it first: the others met it, too.
fn cause(why: &str) -> String {
    let without_stream = why.strip_prefix("stream ").and_then(|rest| rest.split_once(": "));
    without_stream.map_or(why, |(_, cause)| cause).to_owned()
}

/// "TCP down with 1 and 4 streams, TCP up with 1 stream".
pub(super) fn named(members: &[&TcpResult]) -> String {
    let of = |direction: Direction| {
        let streams: Vec<u16> =
            members.iter().filter(|tcp| tcp.pedigree.direction == direction).map(|tcp| tcp.streams).collect();
        let numbers = streams.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        let word = if streams == [1] { "stream" } else { "streams" };
        (!streams.is_empty()).then(|| format!("TCP {} with {numbers} {word}", direction.name()))
    };
    let ways = [Direction::Reverse, Direction::Forward, Direction::RoundTrip];
    ways.into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

/// The most that one stream carried, as far as receivers told.
fn carried(members: &[&TcpResult]) -> Option<ByteCount> {
    let receivers = members.iter().filter_map(|tcp| tcp.receiver.as_ref());
    receivers.flat_map(|end| &end.streams).map(|stream| stream.bytes).max()
}

#[cfg(test)]
pub(super) mod tests {
    use netaware_probe::limit::Across;
    use netaware_record::{IpVersion, Limit, ReceiverTick, StreamEnd, TcpEnd, WarmUp};
    use netaware_units::{BitRate, Span};

    use super::super::{Path, tcp};
    use super::*;
    use crate::bulk::Ended;
    use crate::transfer::{TcpOrder, TcpRound};

    pub(in crate::report) fn transfer(direction: Direction, streams: u16) -> TcpResult {
        let order = TcpOrder { streams, ..TcpOrder::new(direction, Span::from_millis(50)) };
        let round = TcpRound { order, ended: Ended::default(), arrived: None, ran: None, load: None };
        let path = Path { version: IpVersion::V6, across: Across::Network };
        TcpResult {
            outcome: Outcome::Complete,
            goodput: Some(BitRate(17_000_000)),
            bytes: Some(ByteCount(548_352)),
            measured: Span::from_millis(249),
            warm_up: None,
            ..tcp::results(path, &[round], None, &[], None).remove(0)
        }
    }

    fn reset(direction: Direction, streams: u16, bytes: u64) -> TcpResult {
        let stream = StreamEnd { bytes: ByteCount(bytes), ..StreamEnd::default() };
        TcpResult {
            outcome: Outcome::Failed,
            ended_early: Some("stream 1: Connection reset by peer (os error 104)".into()),
            warm_up: Some(speeding_up()),
            receiver: Some(TcpEnd { streams: vec![stream], ..TcpEnd::default() }),
            ..transfer(direction, streams)
        }
    }

    fn speeding_up() -> WarmUp {
        WarmUp { omitted: Span::ZERO, rule: warm_up::NEVER_ENDED.into() }
    }

    #[test]
    fn four_transfers_that_the_path_reset_are_one_warning_and_none_was_still_speeding_up() {
        use Direction::{Forward, Reverse};
        let all = [
            reset(Reverse, 1, 272_748),
            reset(Reverse, 4, 273_704),
            reset(Forward, 1, 274_176),
            reset(Forward, 4, 259_896),
        ];
        let want = "TCP down with 1 and 4 streams, TCP up with 1 and 4 streams did not end as planned (Connection \
                    reset by peer (os error 104)), with 268 KiB at most in a stream; their rates are those of the \
                    time in which data came";
        assert_eq!(warnings(&all), [want]);
        let one = warnings(&all[..1]);
        assert!(one[0].ends_with("its rate is that of the 249 ms in which data came"), "{one:?}");
        let soon = TcpResult { goodput: None, ..reset(Reverse, 1, 9) };
        assert!(warnings(&[soon])[0].ends_with("too little to tell a rate"));
    }

    #[test]
    fn transfers_that_ended_alike_share_a_sentence() {
        use Direction::{Forward, Reverse};
        let fast =
            |direction, streams| TcpResult { warm_up: Some(speeding_up()), ..transfer(direction, streams) };
        let asked = TcpResult { limit: Limit::new(LimitedBy::RequestedRate, ""), ..fast(Forward, 4) };
        let empty =
            TcpResult { bytes: Some(ByteCount(0)), goodput: None, planned: None, ..transfer(Forward, 8) };
        let found = warnings(&[fast(Reverse, 1), fast(Reverse, 4), fast(Forward, 1), asked, empty]);
        let want = [
            "TCP down with 1 and 4 streams, TCP up with 1 stream were still speeding up when they ended; a longer \
             --time would show more",
            "TCP up with 8 streams carried nothing: its rate is unknown",
        ];
        assert_eq!(found, want);
        assert_eq!(warnings(&[transfer(Reverse, 1)]), [""; 0]);
        let by_bytes = TcpResult { planned: None, ..fast(Reverse, 2) };
        assert_eq!(
            warnings(&[by_bytes]),
            [
                "TCP down with 2 streams ended with the last of the bytes, too soon to tell what lasts; more bytes would \
              show more"
            ]
        );
        // A hole in the rate is no growth.
        let tick = |(n, bytes): (i64, u64)| ReceiverTick {
            end: Span::from_millis(50) * (n + 1),
            length: Span::from_millis(50),
            bytes: ByteCount(bytes),
            ..ReceiverTick::default()
        };
        let hole = TcpResult {
            receiver_ticks: (0..).zip([6000, 6000, 6000, 0, 0, 9000]).map(tick).collect(),
            ..fast(Reverse, 4)
        };
        assert_eq!(
            warnings(&[hole]),
            ["TCP down with 4 streams was too short to tell what lasts; a longer --time would show more"]
        );
    }
}
