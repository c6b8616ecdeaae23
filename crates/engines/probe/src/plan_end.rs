//! What a receiver saw around the planned end of a transfer, and after the path broke.
//!
//! **Measures** which slices belong to the rate. Slices after the planned end do not: the sender
//! has stopped, and what still comes was in the path's queues ([`queue_left`]). Neither does the
//! silence at the end of a transfer that broke off ([`heard`]): nobody knows whether the path
//! carried nothing or the other end sent nothing. **Assumes** that the receiver's clock starts with
//! the first byte, so that its planned end is half a round trip after the sender's. **Biased**: the
//! last slice before a silence is left out with it, since it may have been cut; so a transfer that
//! broke off is up to a slice shorter than it was, and its rate does not lean.

use netaware_record::{QueueLeft, ReceiverTick};
use netaware_units::{ByteCount, Span};

/// The slices up to the planned end. A slice counts where most of it lies. A path so slow that its
/// first slice lasts longer than the plan has that slice: what came in it is the only rate there
/// is.
pub fn within_plan(ticks: &[ReceiverTick], planned: Span) -> &[ReceiverTick] {
    let fit = first_after(ticks, planned);
    let first_alone = usize::from(ticks.first().is_some_and(|tick| tick.bytes > ByteCount(0)));
    &ticks[..fit.max(first_alone)]
}

/// The slices of a transfer that broke off, up to where it fell silent.
pub fn heard(ticks: &[ReceiverTick]) -> &[ReceiverTick] {
    let Some(last) = ticks.iter().rposition(|tick| tick.bytes > ByteCount(0)) else { return ticks };
    let has_silence = last + 1 < ticks.len();
    // The slice in which the silence began is kept if there is no other.
    let end = if has_silence && last > 0 { last } else { last + 1 };
    &ticks[..end]
}

/// How long nothing had come when the transfer ended.
pub fn silence(ticks: &[ReceiverTick]) -> Span {
    let silent = ticks.iter().rev().take_while(|tick| tick.bytes == ByteCount(0));
    silent.map(|tick| tick.length).sum()
}

/// What came after the planned end; `None` if nothing did, or if nothing came for half of the time
/// that it took: a queue drains steadily, so the path was out then, or an end stood still.
pub fn queue_left(ticks: &[ReceiverTick], planned: Span) -> Option<QueueLeft> {
    let (within, after) = ticks.split_at(first_after(ticks, planned));
    let last = after.iter().rposition(|tick| tick.bytes > ByteCount(0))?;
    let after = &after[..=last];
    let bytes = after.iter().map(|tick| tick.bytes).sum();
    let drained = (after[last].end - planned).or_zero();
    let silent = longest_silence(within, after, planned);
    let is_usual = silent < NOTICEABLE || silent <= usual_pause(within, planned) * FAR_LONGER;
    (is_usual || silent * 2 < drained).then_some(QueueLeft { bytes, drained, in_flight: None })
}

/// After the planned end. A slice far longer than the others is one in which the receiver stood
/// still.
fn longest_silence(within: &[ReceiverTick], after: &[ReceiverTick], planned: Span) -> Span {
    let mut lengths: Vec<Span> = within.iter().map(|tick| tick.length).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied();
    let stood = |tick: &ReceiverTick| usual.is_some_and(|usual| tick.length > usual * FAR_LONGER);
    let (mut longest, mut silent) = (Span::ZERO, Span::ZERO);
    for tick in after {
        let lasted = tick.length.min((tick.end - planned).or_zero());
        if tick.bytes > ByteCount(0) && !stood(tick) {
            silent = Span::ZERO;
        } else {
            silent += lasted;
            longest = longest.max(silent);
        }
    }
    longest
}

/// Between slices with some bytes, up to the planned end.
fn usual_pause(within: &[ReceiverTick], planned: Span) -> Span {
    let heard = within.iter().filter(|tick| tick.bytes > ByteCount(0)).count();
    planned / i64::try_from(heard.max(1)).unwrap_or(i64::MAX)
}

fn first_after(ticks: &[ReceiverTick], planned: Span) -> usize {
    ticks.iter().position(|tick| tick.end - tick.length / 2 > planned).unwrap_or(ticks.len())
}

/// A pause that is no matter of slices.
const NOTICEABLE: Span = Span::from_millis(200);
/// On a slow path segments come one by one.
const FAR_LONGER: i64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goodput::{MeasuredRound, goodput};
    use crate::warm_up::{self, WarmUpEnd};

    const TICK: Span = Span::from_millis(100);

    fn series(bytes: &[u64]) -> Vec<ReceiverTick> {
        let tick = |(n, bytes): (usize, &u64)| ReceiverTick {
            end: TICK * (n as i64 + 1),
            length: TICK,
            bytes: ByteCount(*bytes),
            streams: 1,
            ..ReceiverTick::default()
        };
        bytes.iter().enumerate().map(tick).collect()
    }

    #[test]
    fn a_link_that_is_cut_leaves_the_rate_of_what_came_and_not_0_bit_per_s() {
        // 3 s of data, then 4 s until the silence was noticed.
        let cut = series(&[[1_000_000; 30].to_vec(), vec![400_000], vec![0; 40]].concat());
        let heard = heard(&cut);
        let end = warm_up::settled(warm_up::slow_start(heard, TICK), heard, TICK);
        let goodput =
            goodput(&[MeasuredRound { ticks: heard, warm_up: end, at_start: ByteCount(0) }]).unwrap();
        assert_eq!(goodput.rate.0, 80_000_000);
        assert!(goodput.measured > Span::from_secs(2) && goodput.measured <= Span::from_secs(3));
        assert_eq!(silence(&cut), Span::from_secs(4));
    }

    #[test]
    fn a_transfer_that_is_shorter_than_a_slice_of_a_slow_path_has_a_rate() {
        let tick = |end: i64, length: i64, bytes| ReceiverTick {
            end: Span::from_millis(end),
            length: Span::from_millis(length),
            bytes: ByteCount(bytes),
            ..ReceiverTick::default()
        };
        let ticks = [tick(1258, 1258, 2896), tick(2205, 947, 4344), tick(2235, 30, 0)];
        let counting = within_plan(&ticks, Span::from_millis(500));
        let end = warm_up::slow_start(counting, Span::from_millis(560));
        let goodput =
            goodput(&[MeasuredRound { ticks: counting, warm_up: end, at_start: ByteCount(0) }]).unwrap();
        assert_eq!((goodput.rate.0, end), (18_416, WarmUpEnd::NeverEnded));
        assert!(within_plan(&[tick(1258, 1258, 0)], Span::from_millis(500)).is_empty());
    }

    #[test]
    fn the_warm_up_never_takes_all_that_came_even_if_the_silence_is_counted() {
        for data in 1..40 {
            let cut = series(&[vec![1_000_000; data], vec![0; 41]].concat());
            for end in [warm_up::slow_start(&cut, TICK), WarmUpEnd::SlowStartOver(data)] {
                let end = warm_up::settled(end, &cut, TICK * 50);
                let bytes: u64 = cut[end.first()..].iter().map(|tick| tick.bytes.0).sum();
                assert!(bytes > 0, "{data} slices, {end:?}");
            }
        }
    }

    #[test]
    fn of_a_transfer_without_a_silence_every_slice_is_heard_and_of_silence_none_is_invented() {
        assert_eq!(heard(&series(&[5, 0, 5])).len(), 3);
        assert_eq!(heard(&series(&[5, 0, 0])).len(), 1, "the only slice with bytes");
        assert_eq!(heard(&series(&[5, 5, 2, 0])).len(), 2);
        assert_eq!(heard(&series(&[0, 0])).len(), 2);
        assert_eq!((heard(&[]).len(), silence(&[])), (0, Span::ZERO));
    }

    #[test]
    fn what_the_queue_still_held_is_counted_apart_with_the_time_it_took() {
        let ticks = series(&[5, 5, 5, 3, 0, 2, 0]);
        assert_eq!(within_plan(&ticks, TICK * 3).len(), 3);
        let left = queue_left(&ticks, TICK * 3).unwrap();
        assert_eq!((left.bytes, left.drained), (ByteCount(5), TICK * 3));
        assert_eq!(queue_left(&ticks[..3], TICK * 3), None);
        assert_eq!(queue_left(&series(&[5, 0, 0]), TICK), None);
    }

    #[test]
    fn an_outage_over_the_end_of_a_transfer_is_no_queue_that_drains() {
        let planned = TICK * 20;
        let cut = series(&[[5; 20].as_slice(), &[0; 15], &[3; 5]].concat());
        assert_eq!(queue_left(&cut, planned), None);
        // The receiver was stopped, and made one slice of that time.
        let mut stopped = series(&[[5; 20].as_slice(), &[40, 3]].concat());
        for tick in &mut stopped[20..] {
            tick.end += TICK * 30;
        }
        stopped[20].length = TICK * 31;
        assert_eq!(queue_left(&stopped, planned), None);
        // A queue on a slow path drains segment by segment, and one of a fast path all the time.
        let slow = series(&[5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(queue_left(&slow, planned).map(|left| left.drained), Some(TICK * 4));
        let deep = series(&[5; 60]);
        assert_eq!(queue_left(&deep, planned).map(|left| left.drained), Some(TICK * 40));
    }
}
