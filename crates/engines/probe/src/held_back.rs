//! What has arrived, where TCP holds data back from the application.
//!
//! After a loss the receiver's TCP keeps what arrives behind the gap and hands it over at once when
//! the gap is filled. So what the application has got runs behind what has arrived, by up to the
//! whole window and for many round trips; a count that begins or ends meanwhile is short of it or
//! has too much, by 10 % and more in a second. **Measures** what the receiver's TCP has
//! acknowledged, in order and (RFC 2018) behind gaps, as the sender's TCP knows it. Each byte
//! counts once, however often it was sent. **Assumes** that the peer does selective
//! acknowledgements, and does not take them back, which RFC 2018 §8 allows and hardly anybody does.
//! **Biased**: half a round trip late, at both ends of the count alike; a last segment that is
//! short counts as a full one while it is held.

use netaware_record::{ReceiverTick, SenderTick};
use netaware_units::ByteCount;

/// The slices of what arrived, on the sender's clock; `None` where nothing was held back, or the
/// sender's system did not tell what was acknowledged. The application's own count is the better
/// one then.
pub fn arrivals(sender: &[SenderTick]) -> Option<Vec<ReceiverTick>> {
    let some = |count: fn(&SenderTick) -> Option<ByteCount>| {
        sender.iter().any(|tick| count(tick).is_some_and(|bytes| bytes > ByteCount(0)))
    };
    if !some(|tick| tick.held) || !some(|tick| tick.acked) {
        return None;
    }
    let (mut acked, mut arrived) = (0, 0);
    let slice = |tick: &SenderTick| {
        acked += tick.acked.unwrap_or_default().0;
        let before = arrived;
        // The two counts are read one stream after the other: what moves from one to the other
        // meanwhile is counted twice.
        arrived = arrived.max(acked + tick.held.unwrap_or_default().0);
        ReceiverTick {
            end: tick.end,
            length: tick.length,
            bytes: ByteCount(arrived - before),
            streams: 1,
            ..ReceiverTick::default()
        }
    };
    Some(sender.iter().map(slice).collect())
}

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;

    fn ticks(acked_and_held: &[(u64, u64)]) -> Vec<SenderTick> {
        let tick = |(n, (acked, held)): (usize, &(u64, u64))| SenderTick {
            end: Span::from_millis(25) * (n as i64 + 1),
            length: Span::from_millis(25),
            acked: Some(ByteCount(*acked)),
            held: Some(ByteCount(*held)),
            ..SenderTick::default()
        };
        acked_and_held.iter().enumerate().map(tick).collect()
    }

    #[test]
    fn what_waits_behind_a_gap_counts_when_it_arrives_and_only_once() {
        // 100 arrive in each slice; a gap in the second is filled in the fifth.
        let sender = ticks(&[(100, 0), (0, 100), (0, 200), (0, 300), (400, 0), (100, 0)]);
        let arrived: Vec<u64> = arrivals(&sender).unwrap().iter().map(|tick| tick.bytes.0).collect();
        assert_eq!(arrived, [100; 6]);
        let ends =
            |ticks: &[ReceiverTick]| ticks.iter().map(|tick| (tick.end, tick.length)).collect::<Vec<_>>();
        assert_eq!(ends(&arrivals(&sender).unwrap())[5], (Span::from_millis(150), Span::from_millis(25)));
    }

    #[test]
    fn what_was_counted_is_never_taken_back() {
        let sender = ticks(&[(100, 50), (40, 0), (100, 0)]);
        let arrived: Vec<u64> = arrivals(&sender).unwrap().iter().map(|tick| tick.bytes.0).collect();
        assert_eq!(arrived, [150, 0, 90]);
    }

    #[test]
    fn without_gaps_or_without_a_tale_of_acknowledgements_the_application_counts() {
        assert_eq!(arrivals(&[]), None);
        assert_eq!(arrivals(&ticks(&[(100, 0), (100, 0)])), None);
        assert_eq!(arrivals(&ticks(&[(0, 0), (0, 0)])), None);
    }

    #[test]
    fn slices_of_arrivals_are_the_senders_own_and_of_one_stream() {
        let slice = |n: i64, bytes| ReceiverTick {
            end: Span::from_millis(25 * n),
            length: Span::from_millis(25),
            bytes: ByteCount(bytes),
            packets: 0,
            lost: 0,
            streams: 1,
        };
        let sender = ticks(&[(100, 0), (0, 80), (200, 0)]);
        assert_eq!(arrivals(&sender), Some(vec![slice(1, 100), slice(2, 80), slice(3, 120)]));
        assert_eq!(arrivals(&ticks(&[(0, 80)])), None, "nothing tells what was acknowledged");
    }
}
