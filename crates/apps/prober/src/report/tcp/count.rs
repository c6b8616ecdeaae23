//! Which slices of a transfer count, and by whose count.

use netaware_probe::goodput::MeasuredRound;
use netaware_probe::{plan_end, warm_up};
use netaware_record::{Direction, Outcome, ReceiverTick, TcpCount};
use netaware_units::{ByteCount, Span};

use super::notes::stalled;
use crate::report::outages;
use crate::transfer::TcpRound;

/// The kinds of transfers that an outage fell into, by direction and number of streams.
pub(in crate::report) fn cut(rounds: &[TcpRound]) -> Vec<(Direction, u16)> {
    rounds.iter().filter(|round| is_cut(round)).map(kind).collect()
}

/// Whether an outage fell into a transfer: its lower rate is that of the outage. Without requests
/// beside it only a long one is seen.
pub(super) fn is_cut(round: &TcpRound) -> bool {
    match round.under_load() {
        Some(_) => outages::beside(round).is_some(),
        None => stalled(round).is_some(),
    }
}

pub(super) fn kind(round: &TcpRound) -> (Direction, u16) {
    (round.order.direction, round.order.streams)
}

/// The slices that one round goes by.
pub(in crate::report) fn slices(round: &TcpRound) -> &[ReceiverTick] {
    round.count().1
}

/// One round with the part of it that counts. Where no echoes have measured the idle round trip,
/// the sender's TCP knows it: without one, each slice would pass for a round, and on a path of a
/// second slow start would be over after the first pause between its flights.
pub(in crate::report) fn measured(round: &TcpRound, idle_rtt: Option<Span>) -> MeasuredRound<'_> {
    let ticks = counting(round);
    let warm_up = if let Some(omit) = round.order.omit {
        warm_up::asked(ticks, omit)
    } else {
        let loaded_rtt = round.loaded_rtt().unwrap_or_default();
        let idle_rtt = idle_rtt.filter(|rtt| *rtt > Span::ZERO);
        // The route may have changed since.
        let own = own_round_trip(round).filter(|own| idle_rtt.is_none_or(|idle| is_far_above(*own, idle)));
        let round_trip = own.or(idle_rtt);
        let round_trip = round_trip.unwrap_or_default();
        let end = warm_up::settled(warm_up::slow_start(ticks, round_trip), ticks, loaded_rtt);
        let is_whole = round.ended.outcome == Outcome::Complete;
        let end = if is_whole { warm_up::unless_full_at_once(end, slices(round), round_trip) } else { end };
        // A rate of two segments is no rate, however evenly those behind them came.
        let bytes: ByteCount = ticks.iter().map(|tick| tick.bytes).sum();
        let is_little = end == warm_up::WarmUpEnd::NoneSeen && bytes < ENOUGH;
        if is_little { warm_up::WarmUpEnd::NeverEnded } else { end }
    };
    MeasuredRound { ticks, warm_up, at_start: with_the_first_byte(round) }
}

/// What the receiver read together with the first byte, with which its clock starts; nothing where
/// what the sender knows to have been acknowledged counts, since its clock starts before.
fn with_the_first_byte(round: &TcpRound) -> ByteCount {
    if round.count().0 != TcpCount::Delivered {
        return ByteCount(0);
    }
    let first = round.ended.tcp_receiver.iter().flat_map(|end| &end.streams);
    let first = first.filter_map(|stream| stream.first_read).filter(|read| *read > ByteCount(0)).min();
    let of_slice = round.ended.receiver_ticks.first().map_or(0, |tick| tick.bytes.0);
    ByteCount(first.map_or(0, |read| read.0.min(of_slice)))
}

/// Eight segments: what comes in one slice or in its neighbour is an eighth of them at most.
const ENOUGH: ByteCount = ByteCount(8 * 1448);

fn is_far_above(round_trip: Span, idle: Span) -> bool {
    netaware_probe::shift::is_far_above(round_trip, idle)
}

/// The smallest round trip that the sender's TCP has seen.
pub(in crate::report) fn own_round_trip(round: &TcpRound) -> Option<Span> {
    let streams = round.ended.tcp_sender.iter().flat_map(|end| &end.streams);
    let smallest = streams.filter_map(|stream| stream.min_rtt);
    let of_slices = round.ended.sender_ticks.iter().filter_map(|tick| tick.rtt);
    smallest.chain(of_slices).filter(|rtt| *rtt > Span::ZERO).min()
}

/// Whose count several rounds go by.
pub(super) fn count_of_all(rounds: &[&TcpRound]) -> TcpCount {
    let mut counts = rounds.iter().map(|round| round.count().0);
    let first = counts.next().unwrap_or_default();
    if counts.all(|count| count == first) { first } else { TcpCount::Mixed }
}

/// The slices up to the planned end. What follows while the last streams wind down, and queues
/// drain, is no full load any more. A transfer of so many bytes has no planned end. Of one that
/// ended early, those up to its last bytes count: how long nobody noticed that nothing came any
/// more says nothing of the path.
pub(super) fn counting(round: &TcpRound) -> &[ReceiverTick] {
    let (_, ticks) = round.count();
    let ticks = match planned(round) {
        Some(planned) => plan_end::within_plan(ticks, planned),
        None => ticks,
    };
    if round.ended.outcome == Outcome::Complete { ticks } else { plan_end::heard(ticks) }
}

/// How long the receiver was to receive; absent where a number of bytes ended it.
pub(super) fn planned(round: &TcpRound) -> Option<Span> {
    round.order.bytes.is_none().then_some(round.order.duration)
}
