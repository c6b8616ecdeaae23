//! `--every`: when each measurement is due. Number n begins at `first + n * every` on the monotonic
//! clock, whatever the ones before it took; a slot that passes while another measurement runs stays
//! empty.

use netaware_units::{Mono, Span};

/// The timetable of a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slots {
    first: Mono,
    /// Longer than zero.
    every: Span,
    /// Without one it goes on until it is stopped.
    count: Option<u64>,
}

impl Slots {
    pub(super) fn new(first: Mono, every: Span, count: Option<u64>) -> Self {
        Self { first, every: Span(every.0.max(1)), count }
    }

    /// How many slots begin within `lasting`, at least one.
    pub(super) fn within(lasting: Span, every: Span) -> u64 {
        let (lasting, every) = (lasting.0.max(1).cast_unsigned(), every.0.max(1).cast_unsigned());
        lasting.div_ceil(every)
    }

    /// When slot `n` begins.
    pub(super) fn due(&self, n: u64) -> Mono {
        self.first + self.every * i64::try_from(n).unwrap_or(i64::MAX)
    }

    /// The first slot that does not lie in the past.
    pub(super) fn upcoming(&self, now: Mono) -> u64 {
        let passed = (now - self.first).0.max(0).cast_unsigned();
        passed.div_ceil(self.every.0.cast_unsigned())
    }

    /// Whether there is a slot `n`.
    pub(super) fn has(&self, n: u64) -> bool {
        self.count.is_none_or(|count| n < count)
    }

    /// When the last slot ends; `None` without an end.
    pub(super) fn end(&self) -> Option<Mono> {
        self.count.map(|count| self.due(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_are_multiples_of_the_interval_and_never_drift() {
        let slots = Slots::new(Mono(7), Span(10_000_000_003), None);
        assert_eq!(slots.due(1_000_000), Mono(7 + 10_000_000_003_000_000));
        for n in [0, 1, 5, 999_999] {
            let due = slots.due(n);
            assert_eq!(slots.upcoming(due), n, "exactly due is not yet passed");
            assert_eq!(slots.upcoming(due + Span(1)), n + 1);
        }
    }

    #[test]
    fn slots_that_passed_meanwhile_are_skipped_and_the_grid_stays() {
        let slots = Slots::new(Mono(0), Span::from_secs(10), Some(5));
        // The measurement of slot 1, due at 10 s, took 25 s.
        let next = slots.upcoming(Mono(0) + Span::from_secs(35));
        assert_eq!((next, slots.due(next)), (4, Mono(0) + Span::from_secs(40)));
        assert!(slots.has(4) && !slots.has(5));
        assert_eq!(slots.end(), Some(Mono(0) + Span::from_secs(50)));
    }

    #[test]
    fn a_time_holds_as_many_slots_as_begin_in_it() {
        let s = Span::from_secs;
        for (lasting, every, want) in [(60, 10, 6), (61, 10, 7), (5, 10, 1), (10, 10, 1), (43_200, 10, 4_320)]
        {
            assert_eq!(Slots::within(s(lasting), s(every)), want);
        }
    }
}
