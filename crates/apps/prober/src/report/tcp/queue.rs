//! What a transfer left in the path's queues.

use netaware_probe::plan_end;
use netaware_record::{QueueLeft, StreamEnd};
use netaware_units::{ByteCount, Span};

use super::count::planned;
use crate::transfer::TcpRound;

/// The round that left most in the path's queues.
pub(super) fn queue_left(rounds: &[&TcpRound]) -> Option<QueueLeft> {
    let left = |round: &&TcpRound| {
        let left = plan_end::queue_left(&round.ended.receiver_ticks, planned(round)?)?;
        let ends = [&round.ended.tcp_sender, &round.ended.tcp_receiver];
        let stood = ends.into_iter().flatten().filter_map(|end| end.stood_still).max().unwrap_or_default();
        if stood > Span::ZERO && stood * 2 >= left.drained {
            return None;
        }
        // More was not on the way: the rest waited in the sender's own buffer.
        let in_flight = in_flight(round);
        let bytes = in_flight.map_or(left.bytes, |on_the_way| left.bytes.min(on_the_way));
        (bytes > ByteCount(0)).then_some(QueueLeft { bytes, in_flight, ..left })
    };
    rounds.iter().filter_map(left).max_by_key(|left| left.drained)
}

/// What the sender had sent and nobody had acknowledged when its time was up, lost segments
/// included.
fn in_flight(round: &TcpRound) -> Option<ByteCount> {
    let end = round.ended.tcp_sender.as_ref()?;
    let sent = |stream: &StreamEnd| Some(stream.bytes_sent?.0.saturating_sub(stream.bytes_resent?.0));
    let sent: Option<u64> = end.streams.iter().map(sent).sum();
    Some(ByteCount(sent?.saturating_sub(end.acknowledged_bytes?.0)))
}
