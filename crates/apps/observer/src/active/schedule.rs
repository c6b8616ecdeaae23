//! When a task that sends starts next (RFC 7594 §5.4.3: periodic timing with a random spread).

use netaware_units::{Span, Wall};
use netaware_wire::lmap::Schedule;

use crate::after;

/// Starts are at multiples of the period since the epoch, or since `from`, each moved by a spread
/// drawn anew.
#[derive(Debug)]
pub(super) struct Clockwork {
    schedule: Schedule,
    state: u64,
    /// The slot whose start is next.
    slot: i64,
    next: Wall,
}

impl Clockwork {
    pub(super) fn new(schedule: Schedule, seed: u64, now: Wall) -> Self {
        let mut clockwork = Self { schedule, state: seed, slot: 0, next: Wall(0) };
        clockwork.slot = clockwork.slot_of(now) + 1;
        clockwork.draw();
        clockwork
    }

    /// Whether a run starts now, and how many before it were missed: this was not called in time
    /// for them, as after a sleep.
    pub(super) fn due(&mut self, now: Wall) -> (bool, u64) {
        // The clock was set back: what was planned is too far away.
        let spread = Span::from_millis(self.schedule.spread_ms as i64);
        if self.next > after(now, self.every() + self.every() + spread) {
            self.slot = self.slot_of(now) + 1;
            self.draw();
        }
        if now < self.next {
            return (false, 0);
        }
        let present = self.slot_of(now).max(self.slot);
        let missed = (present - self.slot).unsigned_abs();
        self.slot = present + 1;
        let open = self.is_open(now);
        self.draw();
        (open, if open { missed } else { 0 })
    }

    fn is_open(&self, now: Wall) -> bool {
        let seconds = now.0.div_euclid(1_000_000_000);
        self.schedule.from.is_none_or(|from| seconds >= from)
            && self.schedule.until.is_none_or(|until| seconds < until)
    }

    fn every(&self) -> Span {
        Span::from_millis(self.schedule.every_ms.max(1) as i64)
    }

    fn begin(&self) -> i64 {
        self.schedule.from.unwrap_or(0).saturating_mul(1_000_000_000)
    }

    fn slot_of(&self, at: Wall) -> i64 {
        at.0.saturating_sub(self.begin()).div_euclid(self.every().0)
    }

    fn draw(&mut self) {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let spread = Span::from_millis(self.schedule.spread_ms as i64).0;
        let moved = (u128::from(mixed) * (spread as u128 + 1)) >> 64;
        let start = self.slot.saturating_mul(self.every().0).saturating_add(self.begin());
        self.next = Wall(start.saturating_add(moved as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn schedule(every_ms: u64, spread_ms: u64) -> Schedule {
        Schedule { every_ms, spread_ms, from: None, until: None }
    }

    #[test]
    fn starts_are_at_multiples_of_the_period() {
        let mut clockwork = Clockwork::new(schedule(10_000, 0), 1, Wall(3 * SECOND));
        let mut starts = Vec::new();
        for second in 3..45 {
            let (starts_now, missed) = clockwork.due(Wall(second * SECOND));
            assert_eq!(missed, 0);
            if starts_now {
                starts.push(second);
            }
        }
        assert_eq!(starts, [10, 20, 30, 40]);
    }

    #[test]
    fn starts_are_spread_evenly_and_drawn_anew_each_time() {
        let mut clockwork = Clockwork::new(schedule(1000, 800), 7, Wall(0));
        let mut moved = Vec::new();
        for ms in 0..200_000 {
            if clockwork.due(Wall(ms * 1_000_000)).0 {
                moved.push(ms % 1000);
            }
        }
        assert_eq!(moved.len(), 199);
        assert!(moved.iter().all(|ms| *ms <= 801));
        let mean = moved.iter().sum::<i64>() / 199;
        assert!((330..470).contains(&mean), "mean {mean} of 0 to 800");
        assert!(moved.windows(2).filter(|pair| pair[0] == pair[1]).count() < 10);
    }

    #[test]
    fn what_a_sleep_skipped_is_counted_and_a_clock_set_back_does_not_stop_it() {
        let mut clockwork = Clockwork::new(schedule(1000, 0), 1, Wall(0));
        assert_eq!(clockwork.due(Wall(5 * SECOND + 1)), (true, 4));
        assert_eq!(clockwork.due(Wall(5 * SECOND + 2)), (false, 0));
        assert_eq!(clockwork.due(Wall(SECOND / 2)), (false, 0));
        assert_eq!(clockwork.due(Wall(SECOND)), (true, 0));
    }

    #[test]
    fn nothing_starts_before_or_after_its_time() {
        let bounded = Schedule { from: Some(5), until: Some(8), ..schedule(1000, 0) };
        let mut clockwork = Clockwork::new(bounded, 1, Wall(0));
        let starts: Vec<i64> = (0..20).filter(|second| clockwork.due(Wall(second * SECOND)).0).collect();
        assert_eq!(starts, [5, 6, 7]);
    }
}
