//! What makes a rate less certain than its slices show.

use netaware_probe::goodput::MeasuredRound;
use netaware_record::{IpVersion, ReceiverTick, TcpCount, TcpEnd};
use netaware_units::{ByteCount, Span};

use crate::transfer::TcpRound;

/// What the edges of the count are uncertain by, bit/s, at 95 %: it begins and ends between two
/// acknowledgements, which as a rule stand for two segments (RFC 1122 §4.2.3.2), in each stream of
/// each round. The slices do not know of it.
pub(super) fn edges(rounds: &[&TcpRound], senders: &[&TcpEnd], measured: Span) -> f64 {
    let streams: f64 = rounds.iter().map(|round| f64::from(round.order.streams)).sum();
    let mss = senders.iter().flat_map(|end| &end.streams).filter_map(|stream| stream.mss).max().unwrap_or(0);
    // Two even draws from 0 to two segments for each stream: standard deviation of their sum.
    let bytes = (2.0 * streams).sqrt() * 2.0 * f64::from(mss) / 12_f64.sqrt();
    1.96 * bytes * 8.0 / measured.secs_f64().max(1e-6)
}

/// What a rate may be too high by, bit/s, because acknowledgements came sooner and sooner: where
/// the way back has a queue that drains while they are counted, those of more than the time that
/// counts come within it. Where the queue drained on the way there, the rate was right, which the
/// round trip does not tell.
pub(super) fn gathered_acknowledgements(rounds: &[&TcpRound], measured: &[MeasuredRound<'_>]) -> f64 {
    let (mut bits, mut time) = (0.0, 0.0);
    for (round, counts) in rounds.iter().zip(measured) {
        let lasted: Span = counts.counted().iter().map(|tick| tick.length.or_zero()).sum();
        let bytes: ByteCount = counts.counted().iter().map(|tick| tick.bytes).sum();
        time += lasted.secs_f64();
        if round.count().0 != TcpCount::Acknowledged || lasted <= Span::ZERO {
            continue;
        }
        let rtt = |slice: &ReceiverTick| {
            round.ended.sender_ticks.iter().find(|tick| tick.end >= slice.end).and_then(|tick| tick.rtt)
        };
        let counted = counts.counted();
        let ends = counted.first().and_then(rtt).zip(counted.last().and_then(rtt));
        let shorter = ends.map_or(Span::ZERO, |(first, last)| (first - last).or_zero());
        bits += bytes.0 as f64 * 8.0 / lasted.secs_f64() * shorter.secs_f64();
    }
    if time > 0.0 { bits / time } else { 0.0 }
}

/// What the echoes beside took of the path in this direction, bit/s of IP packets, as if TCP had
/// gone without: by so much the path may carry more than was counted.
pub(super) fn echo_rate(version: IpVersion, rounds: &[&TcpRound]) -> f64 {
    let spacings = rounds.iter().filter_map(|round| round.under_load()).map(|run| {
        let bits = (run.order.length + 8 + version.header_len()) * 8;
        f64::from(bits) / run.order.shown_spacing().secs_f64().max(1e-6)
    });
    spacings.fold(0.0, f64::max)
}
