//! Finds jumps of the wall clock.
//!
//! The kernel slews its wall clock and its monotonic clock alike; only who sets the wall clock, or
//! a host that slept, moves one against the other. So the difference of the two is constant between
//! jumps, but for the time that passes between reading one and the other: the reader brackets the
//! wall clock between two readings of the monotonic one.

use netaware_units::{Mono, Span, Wall};

/// Compares readings of both clocks. Call it about once a second; reads no clock itself.
#[derive(Debug, Clone, Default)]
pub struct StepWatch {
    /// Wall minus monotonic clock of the last reading, at least and at most.
    last: Option<(i128, i128)>,
    largest: Option<Span>,
}

impl StepWatch {
    /// Before any reading.
    pub fn new() -> Self {
        Self::default()
    }

    /// The wall clock showed `wall` between the two instants of the monotonic one. Gives by how
    /// much it has jumped since the last reading (positive: forward), if by more than
    /// [`Self::SMALLEST`]. A reading that was interrupted for longer than that is no use and is
    /// left out.
    pub fn observe(&mut self, before: Mono, wall: Wall, after: Mono) -> Option<Span> {
        if after.since(before) > Self::SMALLEST || after < before {
            return None;
        }
        let now = (i128::from(wall.0) - i128::from(after.0), i128::from(wall.0) - i128::from(before.0));
        let last = self.last.replace(now)?;
        // What both readings leave open is no jump.
        let jump = if now.0 > last.1 {
            now.0 - last.1
        } else if now.1 < last.0 {
            now.1 - last.0
        } else {
            0
        };
        let jump = Span(i64::try_from(jump).unwrap_or(if jump < 0 { i64::MIN } else { i64::MAX }));
        if jump.abs() <= Self::SMALLEST {
            // Small ones must not add up unseen: the next is compared with where the clock was.
            self.last = Some(last);
            return None;
        }
        if self.largest.is_none_or(|largest| largest.abs() < jump.abs()) {
            self.largest = Some(jump);
        }
        Some(jump)
    }

    /// The largest jump since this was asked last, for
    /// [`netaware_record::passive::ClockState::stepped`].
    pub fn take_largest(&mut self) -> Option<Span> {
        self.largest.take()
    }

    /// What is told: one millisecond.
    pub const SMALLEST: Span = Span::from_millis(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads once a second, `between` ns apart, with the wall clock off by what `wall` says.
    fn watch(readings: &[(i64, u64)]) -> Vec<Option<i64>> {
        let mut watch = StepWatch::new();
        let read = |(nth, (off, between)): (usize, &(i64, u64))| {
            let now = (nth as u64 + 1) * 1_000_000_000;
            let wall = Wall(1_800_000_000_000_000_000 + now as i64 + off);
            watch.observe(Mono(now), wall, Mono(now + between)).map(Span::nanos)
        };
        readings.iter().enumerate().map(read).collect()
    }

    #[test]
    fn jumps_beyond_a_millisecond_are_told_within_a_second() {
        let found = watch(&[(0, 100), (0, 100), (1_001_000, 100), (1_001_000, 100), (-5_000_000, 100)]);
        assert_eq!(found, [None, None, Some(1_000_900), None, Some(-6_000_900)]);
    }

    #[test]
    fn an_interrupted_reading_is_no_jump() {
        assert_eq!(watch(&[(0, 100), (3_000_000, 5_000_000), (0, 100)]), [None; 3]);
        assert_eq!(watch(&[(0, 100), (900_000, 900_000), (0, 100)]), [None; 3]);
    }

    #[test]
    fn small_ones_add_up() {
        let found = watch(&[(0, 0), (600_000, 0), (1_200_000, 0), (1_200_000, 0)]);
        assert_eq!(found, [None, None, Some(1_200_000), None]);
    }

    #[test]
    fn the_largest_is_kept_with_its_sign_until_it_is_asked_for() {
        let mut watch = StepWatch::new();
        for (nth, off) in [0, 2_000_000, -7_000_000, -4_000_000].into_iter().enumerate() {
            let now = Mono(nth as u64 * 1_000_000_000);
            watch.observe(now, Wall(now.0 as i64 + off), now);
        }
        assert_eq!((watch.take_largest(), watch.take_largest()), (Some(Span(-9_000_000)), None));
    }
}
