//! What a person has to know of transfers beside their rates.

use netaware_probe::limit;
use netaware_probe::unrest::{self, Rising, Stall};
use netaware_record::{Direction, Outcome};
use netaware_units::{BitRate, ByteCount, Span};

use super::count::planned;
use crate::report::{latency, outages};
use crate::transfer::TcpRound;

/// "stream" or "streams".
pub(in crate::report) fn streams(count: u16) -> &'static str {
    if count == 1 { "stream" } else { "streams" }
}

/// What a person has to know of transfers beside their rates: what the mean hides.
pub(in crate::report) fn warnings(rounds: &[TcpRound]) -> Vec<String> {
    let mut warnings = Vec::new();
    for round in rounds {
        let what = format!(
            "TCP {} with {} {}",
            round.order.direction.name(),
            round.order.streams,
            streams(round.order.streams)
        );
        // What the requests beside it tell of that is said of all phases together.
        if let Some(Stall { at, lasted }) = stalled(round).filter(|_| outages::beside(round).is_none()) {
            warnings.push(format!("{what}: for {lasted} nothing came, {at} after its start"));
        }
        warnings.extend(stood_still(round).into_iter().map(|text| format!("{what}: {text}")));
        if let Some((came, asked)) = faster_than_asked(round) {
            warnings.push(format!(
                "{what} came at {came} and not at the {asked} asked for: a segment leaves at once, and at that rate \
                 the next one was not due in its time"
            ));
        }
        if let Some(Starved { streams, why }) = starved(round) {
            let all = round.order.streams;
            warnings.push(format!("{what}: {streams} of its {all} streams got nothing in its time: {why}"));
        }
        if let Some(late) = round.under_load().map(latency::held_up).filter(|late| *late > 0) {
            let most = latency::MAX_HELD_UP;
            warnings.push(format!(
                "{what}: {late} requests beside it left more than {most} after they were due, because this host gave \
                 their thread no core: they may have met no load, and are not in the round trip under load"
            ));
        }
        let planned = planned(round).unwrap_or(Span(i64::MAX));
        if let Some(Rising { least, median, last }) = unrest::rising(&round.ended.sender_ticks, planned) {
            warnings.push(format!(
                "{what}: the round trip was still rising when it ended (TCP's smoothed estimate, which lags \
                 behind: {least} at first, {median} in the middle, {last} at the end): the path's queue may be \
                 much deeper than that"
            ));
        }
    }
    warnings
}

/// That an end was stopped while it was to move data. What this host has noticed of itself is said
/// of the whole measurement.
fn stood_still(round: &TcpRound) -> Vec<String> {
    let ends = [&round.ended.tcp_sender, &round.ended.tcp_receiver].map(|end| end.as_ref());
    let elapsed = ends.iter().flatten().map(|end| end.elapsed).max().unwrap_or_default();
    let [sender, receiver] = ends.map(|end| limit::stood_still(end?.stood_still, elapsed));
    let rate = if round.ran.is_some() {
        "that time is not in the rate"
    } else {
        "the rate is no property of the path"
    };
    let said = did_not_run(round.order.direction, sender, receiver);
    let said = said.map(|said| format!("{said}: nothing was sent or read there meanwhile, and {rate}"));
    said.collect()
}

/// That the ends of a transfer did not run for so long, but for what this host has noticed of
/// itself in all.
pub(in crate::report) fn did_not_run(
    direction: Direction,
    sender: Option<Span>,
    receiver: Option<Span>,
) -> impl Iterator<Item = String> {
    let (own, other) = if direction == Direction::Forward { (sender, receiver) } else { (receiver, sender) };
    let own = own.filter(|stood| *stood < crate::link::NOTICED).map(|stood| ("this host", stood));
    let told = own.into_iter().chain(other.map(|stood| ("the responder's host", stood)));
    told.map(|(who, stood)| format!("{who} did not run netaware for {stood} (it was suspended or stopped)"))
}

/// What came, and what was asked for, where the rate is too low for the time.
fn faster_than_asked(round: &TcpRound) -> Option<(BitRate, BitRate)> {
    let asked = round.order.rate?.bit_rate();
    if round.order.bytes.is_some() {
        return None;
    }
    let came = BitRate::mean(round.ended.tcp_receiver.as_ref()?.bytes, round.order.duration)?;
    (came.0 / 5 > asked.0 / 4).then_some((came, asked))
}

/// Streams of a transfer that got nothing while others did.
#[derive(Debug, PartialEq, Eq)]
struct Starved {
    streams: usize,
    why: &'static str,
}

/// The streams of a transfer that is whole which got nothing while others did.
fn starved(round: &TcpRound) -> Option<Starved> {
    if round.order.bytes.is_some() {
        // A stream may move all of the bytes before another one has begun.
        return None;
    }
    let receiver = round.ended.tcp_receiver.as_ref().filter(|end| end.outcome == Outcome::Complete)?;
    let streams = receiver.streams.iter().filter(|stream| stream.bytes.0 == 0).count();
    // All streams send their first window at once: a path that has carried as much as all of these
    // did not let one of them wait because it is slow.
    let is_slow = receiver.bytes.0 < FIRST_WINDOW.0 * u64::from(round.order.streams);
    let why = if is_slow {
        "the path is too slow for so many"
    } else {
        "their first packets were lost, or are still waiting"
    };
    (streams > 0 && receiver.bytes.0 > 0).then_some(Starved { streams, why })
}

/// Ten segments (RFC 6928 §2).
const FIRST_WINDOW: ByteCount = ByteCount(10 * 1448);

/// The longest time in which nothing came of a transfer that was to fill the path. Each end knows
/// its own slices best: those of the other end travel, and are joined where little came.
pub(super) fn stalled(round: &TcpRound) -> Option<Stall> {
    if round.order.held_to().is_some() {
        return None;
    }
    let round_trip = round.loaded_rtt().unwrap_or_default();
    let told = &round.ended.sender_ticks;
    let acknowledged = || round.arrived.clone().or_else(|| unrest::acknowledged(told));
    let own = if round.order.direction == Direction::Forward { acknowledged() } else { None };
    let received = &round.ended.receiver_ticks;
    // Of one that ended otherwise the end is told with its reason.
    let planned = planned(round).filter(|_| round.ended.outcome == Outcome::Complete);
    let stall = unrest::stall(own.as_deref().unwrap_or(received), round_trip, planned)?;
    // An end that did not run says so itself, and the path is not to blame.
    let ends = [&round.ended.tcp_sender, &round.ended.tcp_receiver];
    let stood = ends.into_iter().flatten().filter_map(|end| end.stood_still).max().unwrap_or_default();
    if stall.lasted <= stood * 3 / 2 {
        return None;
    }
    // Acknowledgements may wait on the way back while data arrive.
    (!unrest::contradicts(received, &stall)).then_some(stall)
}

#[cfg(test)]
mod tests {
    use netaware_record::{StreamEnd, TcpEnd};

    use super::*;
    use crate::bulk::Ended;
    use crate::transfer::TcpOrder;

    /// A stream at 6 Mbit/s whose first packets did not fit in a queue of 40 kB had a path that was
    /// "too slow for so many".
    #[test]
    fn a_stream_whose_first_packets_were_lost_has_no_path_that_is_too_slow() {
        let of = |carried: [u64; 4]| {
            let stream = |bytes: u64| StreamEnd { bytes: ByteCount(bytes), ..StreamEnd::default() };
            let end = TcpEnd {
                bytes: ByteCount(carried.iter().sum()),
                streams: carried.map(stream).to_vec(),
                ..TcpEnd::default()
            };
            let order = TcpOrder { streams: 4, ..TcpOrder::new(Direction::Reverse, Span::from_millis(50)) };
            let ended = Ended { tcp_receiver: Some(end), ..Ended::default() };
            let found = starved(&TcpRound { order, ended, arrived: None, ran: None, load: None });
            found.map(|it| (it.streams, it.why))
        };
        assert_eq!(
            of([150_000, 0, 120_000, 90_000]),
            Some((1, "their first packets were lost, or are still waiting"))
        );
        assert_eq!(of([14_480, 0, 13_032, 0]), Some((2, "the path is too slow for so many")));
        assert_eq!(of([14_480, 1_448, 13_032, 1_448]), None);
        assert_eq!(of([0; 4]), None);
    }
}
