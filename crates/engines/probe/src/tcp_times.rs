//! Three times of one transfer, and its blocks: what the sender's application sees, what its TCP
//! knows, what the receiver reads.
//!
//! **Measures** nothing: sums over the rounds what each end told. **Assumes** that both ends told
//! of the same rounds. **Biased**: the time of giving leans short by what fits the send buffer, the
//! acknowledged time leans late by the looks it is found with (`io::tcp::moments`), the time of
//! reading lacks the way of the first byte. **Published**: the sender's and receiver's times of R.
//! Hughes-Jones, "TCPmon".

use netaware_record::{SpacedBlocks, TcpBlocks, TcpEnd, TcpTimes};
use netaware_units::{BitRate, ByteCount, Span};

/// Over all rounds; `None` if neither end told any.
pub fn times(senders: &[&TcpEnd], receivers: &[&TcpEnd]) -> Option<TcpTimes> {
    let given = sum(senders.iter().map(|end| Some((end.given?, end.bytes))));
    let acknowledged = sum(senders.iter().map(|end| Some((end.acknowledged?, end.acknowledged_bytes?))));
    // What a single read took in has no time of reading.
    let received = sum(receivers.iter().map(|end| Some((end.received?, end.bytes))));
    let received = received.filter(|(span, _)| *span > Span::ZERO);
    let found = TcpTimes {
        given: given.map(|(span, _)| span),
        given_rate: given.and_then(rate),
        acknowledged: acknowledged.map(|(span, _)| span),
        acknowledged_rate: acknowledged.and_then(rate),
        received: received.map(|(span, _)| span),
        received_rate: received.and_then(rate),
    };
    (found != TcpTimes::default()).then_some(found)
}

/// What was asked of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlocksAsked {
    /// Bytes of each.
    pub length: ByteCount,
    /// From block to block.
    pub spacing: Option<Span>,
    /// How many in each round.
    pub count: Option<u64>,
}

/// The transfers as blocks. Without a spacing a block is a whole length of what was written,
/// however many writes it took.
pub fn blocks(asked: BlocksAsked, senders: &[&TcpEnd]) -> Option<TcpBlocks> {
    let BlocksAsked { length, spacing, count } = asked;
    let (given, _) = sum(senders.iter().map(|end| Some((end.given?, end.bytes))))?;
    let kept = senders.iter().filter_map(|end| end.spaced).reduce(joined);
    let whole = senders.iter().map(|end| end.bytes.0.checked_div(length.0).unwrap_or(0)).sum();
    let written = kept.map_or(whole, |kept| kept.written);
    let each_ns = (written > 0).then(|| given.0 as f64 / written as f64);
    let asked = count.map(|count| count.saturating_mul(senders.len() as u64));
    Some(TcpBlocks { length, spacing, asked, written, each_ns, kept })
}

fn joined(one: SpacedBlocks, other: SpacedBlocks) -> SpacedBlocks {
    SpacedBlocks {
        written: one.written + other.written,
        late: one.late + other.late,
        worst_lateness: one.worst_lateness.max(other.worst_lateness),
        slipped: one.slipped + other.slipped,
        waits: one.waits + other.waits,
        waited: one.waited + other.waited,
    }
}

/// Of all rounds; `None` if there is none, or one of them lacks it.
fn sum(parts: impl Iterator<Item = Option<(Span, ByteCount)>>) -> Option<(Span, ByteCount)> {
    let parts: Option<Vec<_>> = parts.collect();
    let add = |(span, bytes), (more, others)| (span + more, bytes + others);
    parts?.into_iter().reduce(add)
}

/// One read, or one write into a buffer with room, takes no time that means a rate.
fn rate((span, bytes): (Span, ByteCount)) -> Option<BitRate> {
    BitRate::mean(bytes, span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(millis: i64, bytes: u64, acked: Option<i64>) -> TcpEnd {
        TcpEnd {
            given: Some(Span::from_millis(millis)),
            bytes: ByteCount(bytes),
            acknowledged: acked.map(Span::from_millis),
            acknowledged_bytes: acked.map(|_| ByteCount(bytes)),
            ..TcpEnd::default()
        }
    }

    #[test]
    fn times_and_bytes_of_the_rounds_add_up_to_rates() {
        let (one, other) = (sender(100, 1_000_000, Some(110)), sender(300, 3_000_000, Some(390)));
        let receiver = TcpEnd { received: Some(Span::ZERO), bytes: ByteCount(1000), ..TcpEnd::default() };
        let found = times(&[&one, &other], &[&receiver]).unwrap();
        assert_eq!(
            (found.given, found.given_rate),
            (Some(Span::from_millis(400)), Some(BitRate(80_000_000)))
        );
        assert_eq!(found.acknowledged_rate, Some(BitRate(64_000_000)));
        assert_eq!((found.received, found.received_rate), (None, None), "one read has no time and no rate");
        let deaf = sender(100, 1, None);
        let found = times(&[&one, &deaf], &[]).unwrap();
        assert_eq!(
            (found.acknowledged, found.received),
            (None, None),
            "a round that does not tell spoils the sum"
        );
        assert_eq!(times(&[&TcpEnd::default()], &[]), None);
    }

    #[test]
    fn blocks_are_whole_lengths_or_what_the_spaced_sender_counted() {
        let asked = BlocksAsked { length: ByteCount(1000), spacing: None, count: Some(1500) };
        let (one, other) = (sender(100, 1_500_999, None), sender(100, 500_000, None));
        let found = blocks(asked, &[&one, &other]).unwrap();
        assert_eq!((found.written, found.asked, found.kept), (2000, Some(3000), None));
        assert_eq!(found.each_ns, Some(100_000.0));
        let kept = SpacedBlocks {
            written: 40,
            late: 1,
            worst_lateness: Span(7),
            slipped: Span(2),
            waits: 3,
            waited: Span(1),
        };
        let spaced = TcpEnd { spaced: Some(kept), ..one };
        let asked = BlocksAsked { spacing: Some(Span::from_millis(1)), count: None, ..asked };
        let found = blocks(asked, &[&spaced, &spaced]).unwrap();
        let twice =
            SpacedBlocks { written: 80, late: 2, slipped: Span(4), waits: 6, waited: Span(2), ..kept };
        assert_eq!((found.written, found.kept), (80, Some(twice)));
        assert_eq!(blocks(asked, &[]), None);
    }

    #[test]
    fn not_even_one_block_takes_no_time_that_means_anything() {
        let asked = BlocksAsked { length: ByteCount(1000), spacing: None, count: None };
        let want = TcpBlocks {
            length: ByteCount(1000),
            spacing: None,
            asked: None,
            written: 0,
            each_ns: None,
            kept: None,
        };
        assert_eq!(blocks(asked, &[&sender(100, 999, None)]), Some(want));
        let without_length = BlocksAsked { length: ByteCount(0), ..asked };
        assert_eq!(blocks(without_length, &[&sender(100, 999, None)]).unwrap().written, 0);
    }
}
