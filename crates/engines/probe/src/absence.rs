//! When an end of a transfer did not run, by its own slices, and what is left without that time.
//!
//! **Measures** which slices an end cut late because its program was stopped or its host was
//! suspended: those that are longest beyond the length planned, as many as make up the time for
//! which the end says that it did not run. **Assumes** that slices are cut on time otherwise, but
//! for those that travel joined, which are shorter than a pause that matters or cost little.
//! **Biased**: what TCP carried meanwhile, until the buffers were full, is left out with its time,
//! and so is the slice after it, in which a receiver reads what had gathered.

use std::cmp::Reverse;

use netaware_record::ReceiverTick;
use netaware_units::Span;

/// A time in which an end did not run, on the clock of its slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Away {
    /// Its begin, at the earliest.
    pub from: Span,
    /// Its end.
    pub until: Span,
}

impl Away {
    /// The same on the clock of the other end, which is off by so much at most.
    #[must_use]
    pub fn widened(self, by: Span) -> Self {
        Self { from: self.from - by, until: self.until + by }
    }
}

/// The times in which an end did not run that `stood_still` for so long in all. `slices` are the
/// ends and lengths of its slices, which were to be of the length `tick`.
pub fn times(
    slices: impl IntoIterator<Item = (Span, Span)>,
    tick: Span,
    stood_still: Option<Span>,
) -> Vec<Away> {
    let mut left = stood_still.unwrap_or_default();
    let enough = left / 10;
    let is_late = |(_, length): &(Span, Span)| *length - tick > NOTICEABLE;
    let mut late: Vec<(Span, Span)> = slices.into_iter().filter(is_late).collect();
    late.sort_by_key(|(_, length)| Reverse(*length));
    let mut is_needed = |length: Span| {
        let is_needed = left > enough;
        left -= length - tick;
        is_needed
    };
    late.retain(|(_, length)| is_needed(*length));
    late.into_iter().map(|(end, length)| Away { from: end - length, until: end }).collect()
}

/// The slices in which no end was away, nor just back, within one `tick`; `None` where that is all
/// of them, and where what is left is less than half of the time: a rate of that would be no better
/// than one of all.
pub fn without(ticks: &[ReceiverTick], away: &[Away], tick: Span) -> Option<Vec<ReceiverTick>> {
    let ran = |slice: &&ReceiverTick| {
        let begin = slice.end - slice.length;
        away.iter().all(|away| slice.end <= away.from || begin >= away.until + tick)
    };
    let left: Vec<ReceiverTick> = ticks.iter().filter(ran).copied().collect();
    let lasted = |ticks: &[ReceiverTick]| ticks.iter().map(|slice| slice.length.or_zero()).sum::<Span>();
    let away_for: Span = away.iter().map(|away| (away.until - away.from).or_zero()).sum();
    let is_enough = lasted(&left) * 2 >= lasted(ticks) - away_for;
    (left.len() < ticks.len() && is_enough).then_some(left)
}

/// Slices are seldom cut later than that, and what stops a program for less sets no rate.
const NOTICEABLE: Span = Span::from_millis(200);

#[cfg(test)]
mod tests {
    use netaware_units::ByteCount;

    use super::*;
    use crate::goodput::{MeasuredRound, goodput};
    use crate::warm_up::WarmUpEnd;

    const TICK: Span = Span::from_millis(100);

    /// Slices of these lengths in ms, with so many bytes.
    fn series(slices: &[(i64, u64)]) -> Vec<ReceiverTick> {
        let mut end = Span::ZERO;
        let mut cut = |(ms, bytes): &(i64, u64)| {
            let length = Span::from_millis(*ms);
            end += length;
            ReceiverTick { end, length, bytes: ByteCount(*bytes), ..ReceiverTick::default() }
        };
        slices.iter().map(&mut cut).collect()
    }

    fn of(ticks: &[ReceiverTick], stood_ms: i64) -> Vec<Away> {
        times(ticks.iter().map(|tick| (tick.end, tick.length)), TICK, Some(Span::from_millis(stood_ms)))
    }

    /// 8 s of 14 in which the prober was stopped made 2.7 Mbit/s of 9.65.
    #[test]
    fn the_time_in_which_a_receiver_was_stopped_is_not_in_its_rate() {
        let even = |n| vec![(100, 125_000); n];
        let ticks =
            series(&[even(30), vec![(8_030, 900_000), (70, 2_000_000), (100, 125_000)], even(29)].concat());
        let away = of(&ticks, 7_950);
        assert_eq!(away, [Away { from: Span::from_secs(3), until: Span::from_millis(11_030) }]);
        let left = without(&ticks, &away, TICK).unwrap();
        assert_eq!(left.len(), 59, "those just after it go with it");
        let round = MeasuredRound { ticks: &left, warm_up: WarmUpEnd::NoneSeen, at_start: ByteCount(0) };
        let found = goodput(&[round]).unwrap();
        assert_eq!((found.rate.0, found.measured), (10_000_000, Span::from_millis(5_900)));
    }

    #[test]
    fn slices_that_are_long_for_another_reason_stay() {
        let ticks = series(&[(100, 9), (1_900, 9), (4_300, 0), (450, 9), (100, 9)]);
        let away = of(&ticks, 4_100);
        assert_eq!(away, [Away { from: Span::from_secs(2), until: Span::from_millis(6_300) }]);
        assert_eq!(of(&ticks, 0), []);
        assert_eq!(times(ticks.iter().map(|tick| (tick.end, tick.length)), TICK, None), []);
        assert_eq!(without(&ticks, &[], TICK), None);
        // Stopped twice.
        assert_eq!(of(&series(&[(1_500, 0), (100, 9), (1_500, 0)]), 2_800).len(), 2);
    }

    #[test]
    fn the_clock_of_the_other_end_is_allowed_for() {
        let ticks = series(&[(100, 9); 60]);
        let away = Away { from: Span::from_secs(2), until: Span::from_secs(4) }.widened(TICK);
        let left = without(&ticks, &[away], TICK).unwrap();
        assert_eq!((left[18].end, left[19].end), (Span::from_millis(1_900), Span::from_millis(4_300)));
    }
}
