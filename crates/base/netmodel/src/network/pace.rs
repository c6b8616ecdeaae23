//! Transmission times, exact to the picosecond for any rate and any number of packets.

use netaware_units::{BitRate, Span};

use crate::scenario::Change;

/// Picoseconds of a second.
pub(crate) const SECOND: u64 = 1_000_000_000_000;

/// Nothing is planned beyond 200 days: a queue that would take longer never ends, and sums behind
/// it cannot overflow.
pub(crate) const FAR: u64 = 200 * 86_400 * SECOND;

/// A span as picoseconds; negative is zero, and 100 days are the most.
pub(crate) fn ps(span: Span) -> u64 {
    (span.or_zero().nanos().cast_unsigned()).min(8_640_000 * 1_000_000_000) * 1000
}

/// Picoseconds per byte with 32 bits behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PerByte(u128);

impl PerByte {
    pub(crate) fn of(rate: BitRate) -> Self {
        Self(((8 * u128::from(SECOND)) << 32) / u128::from(rate.0.max(1)))
    }

    /// With 32 bits behind the point.
    #[inline]
    pub(crate) fn fine(self, bytes: u64) -> u128 {
        self.0 * u128::from(bytes)
    }
}

/// Turns bytes into picoseconds one after the other; what is cut off one is added to the next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    fraction: u64,
}

impl Pace {
    #[inline]
    pub(crate) fn take(&mut self, per_byte: PerByte, bytes: u64) -> u64 {
        let fine = per_byte.fine(bytes) + u128::from(self.fraction);
        self.fraction = (fine & 0xffff_ffff) as u64;
        (fine >> 32) as u64
    }
}

/// A value that changes at known instants, asked for at instants that mostly rise.
#[derive(Debug, Clone)]
pub(crate) struct Timeline<T> {
    steps: Vec<(u64, T)>,
    present: usize,
}

impl<T: Copy> Timeline<T> {
    pub(crate) fn new<S: Copy>(changes: &[Change<S>], convert: impl Fn(S) -> T) -> Self {
        Self {
            steps: changes.iter().map(|change| (ps(change.at), convert(change.value))).collect(),
            present: 0,
        }
    }

    /// All values, whenever they hold.
    pub(crate) fn values(&self) -> impl Iterator<Item = T> {
        self.steps.iter().map(|(_, value)| *value)
    }

    /// The value at `at`; before the first instant the first value.
    #[inline]
    pub(crate) fn at(&mut self, at: u64) -> T {
        if self.steps.len() > 1 {
            while self.present > 0 && self.steps[self.present].0 > at {
                self.present -= 1;
            }
            while self.steps.get(self.present + 1).is_some_and(|(from, _)| *from <= at) {
                self.present += 1;
            }
        }
        self.steps[self.present].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_packets_at_an_odd_rate_do_not_drift() {
        for rate in [97_000_000_000, 3_000_000_007, 100_000_000_000, 7] {
            let (mut pace, per_byte) = (Pace::default(), PerByte::of(BitRate(rate)));
            let taken: u128 = (0..1_000_000).map(|_| u128::from(pace.take(per_byte, 65))).sum();
            let exact = 65 * 8 * 1_000_000 * u128::from(SECOND) / u128::from(rate);
            assert!(exact - taken <= 1 + exact / 1_000_000_000, "{rate}: {taken} instead of {exact}");
        }
    }

    #[test]
    fn spans_are_picoseconds_from_nothing_to_a_hundred_days() {
        let rows = [
            (Span(-1), 0),
            (Span(1), 1000),
            (Span::from_secs(60), 60 * SECOND),
            (Span(i64::MAX), 8_640_000 * SECOND),
        ];
        for (span, picoseconds) in rows {
            assert_eq!(ps(span), picoseconds, "{span}");
        }
    }

    #[test]
    fn a_value_holds_from_its_instant_on_whether_time_is_asked_for_forwards_or_backwards() {
        let changes = [(5, 1), (10, 2), (20, 3)].map(|(at, value)| Change { at: Span(at), value });
        let mut timeline = Timeline::new(&changes, |value: u64| value * 10);
        let rows = [
            (0, 10),
            (9_999, 10),
            (10_000, 20),
            (9_999, 10),
            (25_000, 30),
            (0, 10),
            (20_000, 30),
            (19_999, 20),
        ];
        for (row, (at, value)) in rows.into_iter().enumerate() {
            assert_eq!(timeline.at(at), value, "row {row}");
        }
        assert_eq!(timeline.values().collect::<Vec<_>>(), [10, 20, 30]);
    }
}
