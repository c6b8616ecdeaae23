//! What a mean hides of a transfer: a time in which nothing came, and a queue that still grew.
//!
//! **Measures** the longest row of slices without a byte, between slices with some or up to the
//! planned end ([`stall`]), and whether the round trip ended higher than it had ever been before
//! ([`rising`]). **Assumes** that the sender had something to send all the time. **Biased**: a
//! stall is short by up to two slices, and one that is no longer than what is usual on the path is
//! not told: TCP itself pauses for a round trip and more where segments are lost.

use netaware_record::{ReceiverTick, SenderTick};
use netaware_units::{ByteCount, Span};

/// A time in which nothing came, be it that something came again afterwards or that the time of the
/// transfer was up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// When it began, since the start of the transfer.
    pub at: Span,
    /// How long it lasted.
    pub lasted: Span,
}

/// The longest stall that is far longer than the pauses that this transfer usually made.
/// `round_trip` is the path's, with its queue. What was to come until the `planned` end, and did
/// not, is one as well.
pub fn stall(slices: &[ReceiverTick], round_trip: Span, planned: Option<Span>) -> Option<Stall> {
    let mut longest: Option<Stall> = None;
    let (mut arrivals, mut last_end): (i64, Option<Span>) = (0, None);
    let mut first = None;
    for slice in slices.iter().filter(|slice| slice.bytes > ByteCount(0)) {
        let begins = slice.end - slice.length;
        if let Some(at) = last_end {
            let lasted = begins - at;
            if longest.is_none_or(|stall| lasted > stall.lasted) {
                longest = Some(Stall { at, lasted });
            }
        }
        first.get_or_insert(begins);
        last_end = Some(slice.end);
        arrivals += 1;
    }
    let last_end = last_end?;
    let ended = slices.last().map(|slice| slice.end).min(planned);
    let at_end = ended.map(|ended| Stall { at: last_end, lasted: (ended - last_end).or_zero() });
    let in_midst = longest.map_or(Span::ZERO, |stall| stall.lasted);
    let at_end = at_end.filter(|stall| stall.lasted > in_midst);
    let others = last_end - first? - if at_end.is_some() { Span::ZERO } else { in_midst };
    let stall = at_end.or(longest)?;
    let usual = others / arrivals.max(1);
    let limit = NOTICEABLE.max(round_trip * ROUND_TRIPS).max(usual * FAR_LONGER);
    (stall.lasted >= limit).then_some(stall)
}

/// Whether slices of the receiver show that data came while a sender heard of none: no part of the
/// stall that is half as long was without data there.
pub fn contradicts(received: &[ReceiverTick], stall: &Stall) -> bool {
    let (from, until) = (stall.at, stall.at + stall.lasted);
    let came = received.iter().filter(|slice| slice.bytes > ByteCount(0));
    let within = came.filter(|slice| slice.end > from && slice.end - slice.length < until);
    // A slice says no more of its bytes than that they came within it.
    let ends = within.map(|slice| slice.end.min(until));
    let (mut last, mut longest) = (from, Span::ZERO);
    for end in ends {
        longest = longest.max(end - last);
        last = last.max(end);
    }
    longest.max(until - last) * 2 < stall.lasted
}

/// The slices of what a sender knows to have been acknowledged in order; `None` where its system
/// does not tell.
pub fn acknowledged(sender: &[SenderTick]) -> Option<Vec<ReceiverTick>> {
    let slice = |tick: &SenderTick| {
        Some(ReceiverTick {
            end: tick.end,
            length: tick.length,
            bytes: tick.acked?,
            streams: 1,
            ..ReceiverTick::default()
        })
    };
    sender.iter().map(slice).collect()
}

/// A round trip that was still rising when the transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rising {
    /// The shortest.
    pub least: Span,
    /// The median.
    pub median: Span,
    /// What it had come to.
    pub last: Span,
}

/// Whether the round trip was still rising at the end of what was `planned`: in the last quarter it
/// was longer than ever before. Congestion control that has found the end of the queue, and lets it
/// fill again and again, has been there before. Segments that had to be sent again in the second
/// half were dropped at the end of the queue as a rule: what was reached then is its depth.
pub fn rising(sender: &[SenderTick], planned: Span) -> Option<Rising> {
    let in_time = || sender.iter().filter(|tick| tick.end - tick.length / 2 <= planned);
    let late = in_time().skip(in_time().count() / 2);
    if late.filter_map(|tick| tick.retransmits).any(|resent| resent > 0) {
        return None;
    }
    let rtts: Vec<Span> = in_time().filter_map(|tick| tick.rtt).filter(|rtt| *rtt > Span::ZERO).collect();
    if rtts.len() < MIN_SLICES {
        return None;
    }
    let (before, end) = rtts.split_at(rtts.len() - rtts.len() / 4);
    let least = rtts.iter().copied().min()?;
    let queue = |rtt: Span| (rtt - least).or_zero();
    let highest = queue(before.iter().copied().max()?);
    let came_to = queue(median(end)?);
    let last = *rtts.last()?;
    let rises = came_to >= WORTH_SAYING && came_to > highest + highest / 10 && queue(last) >= came_to;
    rises.then_some(Rising { least, median: median(&rtts)?, last })
}

fn median(spans: &[Span]) -> Option<Span> {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// Shorter pauses are no event for a person.
const NOTICEABLE: Span = Span::from_millis(500);
/// What was lost comes again a round trip later, or after a time-out that is a little longer.
const ROUND_TRIPS: i64 = 3;
/// On a slow path segments come one by one.
const FAR_LONGER: i64 = 8;
/// Fewer slices show no trend.
const MIN_SLICES: usize = 8;
/// A queue that people notice.
const WORTH_SAYING: Span = Span::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Span = Span::from_millis(100);

    fn slices(bytes: &[u64]) -> Vec<ReceiverTick> {
        let slice = |(n, bytes): (i64, &u64)| ReceiverTick {
            end: TICK * (n + 1),
            length: TICK,
            bytes: ByteCount(*bytes),
            ..ReceiverTick::default()
        };
        (0..).zip(bytes).map(slice).collect()
    }

    fn rtts(ms: impl IntoIterator<Item = i64>) -> Vec<SenderTick> {
        let slice = |(n, ms): (i64, i64)| SenderTick {
            end: TICK * (n + 1),
            length: TICK,
            rtt: Some(Span::from_millis(ms)),
            ..SenderTick::default()
        };
        (0..).zip(ms).map(slice).collect()
    }

    /// 64 kbit/s both ways at once: acknowledgements wait behind the data of the other direction.
    #[test]
    fn acknowledgements_that_wait_on_the_way_back_are_no_stall_while_data_come() {
        let stall = Stall { at: Span::from_millis(100), lasted: Span::from_millis(2200) };
        let of = |every: usize| {
            slices(&(0..24).map(|n| if n % every == 0 { 3000 } else { 0 }).collect::<Vec<_>>())
        };
        assert!(contradicts(&of(4), &stall));
        assert!(!contradicts(&of(23), &stall));
        assert!(!contradicts(&[], &stall));
    }

    #[test]
    fn a_link_that_was_down_for_a_while_is_not_hidden_by_the_mean() {
        let full = vec![360_000; 20];
        let down = slices(&[full.clone(), vec![0; 14], full.clone()].concat());
        let found = Stall { at: TICK * 20, lasted: TICK * 14 };
        assert_eq!(stall(&down, Span::from_millis(30), None), Some(found));
        // Where a round trip takes long, TCP needs as long to notice a loss.
        assert_eq!(stall(&down, Span::from_millis(600), None), None);
        assert_eq!(stall(&slices(&full), Span::from_millis(30), None), None);
        // What does not end is told otherwise.
        assert_eq!(stall(&slices(&[full, vec![0; 14]].concat()), Span::from_millis(30), None), None);
        assert_eq!(stall(&slices(&[0; 30]), Span::from_millis(30), None), None);
    }

    /// Of 10 s the last 5.2 were silent, and the transfer was complete without a word of it.
    #[test]
    fn a_link_that_is_down_until_the_time_is_up_is_not_hidden_by_the_mean() {
        let cut = slices(&[[4; 49].as_slice(), &[0; 52]].concat());
        let planned = Some(Span::from_millis(10_000));
        let said = stall(&cut, Span::from_millis(790), planned).unwrap();
        assert_eq!((said.at, said.lasted), (Span::from_millis(4900), Span::from_millis(5100)));
        // Behind the planned end the queue drains, and nothing more is to come.
        assert_eq!(stall(&cut, Span::from_millis(790), Some(Span::from_millis(5000))), None);
        // Nobody knows when the bytes that were asked for were to be through.
        assert_eq!(stall(&cut, Span::from_millis(790), None), None);
        // Both a short one in the midst and the end: the longer one is told.
        let twice = slices(&[[4; 20].as_slice(), &[0; 20], &[4; 20], &[0; 50]].concat());
        assert_eq!(
            stall(&twice, Span::from_millis(100), planned).map(|it| it.at),
            Some(Span::from_millis(6000))
        );
        // A path of one segment in a while is not down.
        let slow = slices(&[4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 0, 0]);
        assert_eq!(stall(&slow, Span::from_millis(100), planned), None);
    }

    #[test]
    fn segments_that_come_one_by_one_on_a_slow_path_are_no_stalls() {
        // 20 kbit/s: a segment each 0.6 s.
        let slow: Vec<u64> = (0..60).map(|n| if n % 6 == 0 { 1448 } else { 0 }).collect();
        assert_eq!(stall(&slices(&slow), Span::from_millis(300), None), None);
        let down = [slow.clone(), vec![0; 60], slow].concat();
        assert_eq!(stall(&slices(&down), Span::from_millis(300), None).map(|it| it.lasted), Some(TICK * 65));
    }

    #[test]
    fn a_queue_that_still_fills_when_the_time_is_up_is_no_final_round_trip() {
        let planned = TICK * 20;
        let ramp = rtts((0..20).map(|n| 30 + n * 17));
        let found = rising(&ramp, planned).unwrap();
        assert_eq!((found.least, found.last), (Span::from_millis(30), Span::from_millis(353)));
        // A queue that dropped what exceeded it was reached to its end, as one of 150 ms was.
        let mut dropped = ramp.clone();
        dropped[17].retransmits = Some(4);
        assert_eq!(rising(&dropped, planned), None);
        let mut early = ramp.clone();
        early[3].retransmits = Some(4);
        assert!(rising(&early, planned).is_some(), "a loss at the beginning says nothing of the end");
        // What queues still give after the planned end is not the end of the ramp.
        let longer = rtts((0..20).map(|n| 30 + n * 17).chain([20; 10]));
        assert_eq!(rising(&longer, planned).map(|it| it.last), Some(Span::from_millis(353)));
        // A full queue, and one that fills again and again.
        assert_eq!(rising(&rtts((0..20).map(|n| 30 + (n * 50).min(300))), planned), None);
        assert_eq!(rising(&rtts((0..20).map(|n| 30 + (n % 8) * 40)), planned), None);
        assert_eq!(rising(&rtts((0..20).map(|n| 30 + n / 4)), planned), None, "no queue to speak of");
        assert_eq!(rising(&ramp[..6], planned), None);
    }

    #[test]
    fn a_sender_that_does_not_tell_what_was_acknowledged_has_no_stalls() {
        assert_eq!(acknowledged(&rtts([30; 3])), None);
        let told = SenderTick { acked: Some(ByteCount(7)), end: TICK, length: TICK, ..SenderTick::default() };
        assert_eq!(acknowledged(&[told]).unwrap()[0].bytes, ByteCount(7));
    }
}
