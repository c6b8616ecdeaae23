//! A schedule as a change of clock: a source runs evenly in its own time, and real time passes
//! faster or slower in it.
//!
//! With factor 2 the source lives twice as fast, so all its gaps halve; with factor 0 its time
//! stands still. That treats every kind of source alike, and a long gap that spans a step is cut
//! exactly where the step is.

use crate::network::pace::ps;
use crate::scenario::Schedule;

#[derive(Debug, Clone)]
pub(super) struct Warp {
    schedule: Schedule,
    /// Segment in which the source now is.
    segment: usize,
    real: u64,
    own: u64,
    /// The source lives in real time.
    even: bool,
}

impl Warp {
    pub(super) fn new(schedule: &Schedule) -> Self {
        let even = match schedule {
            Schedule::Steps(steps) => {
                matches!(steps[..], [only] if ps(only.at) == 0 && (only.factor - 1.0).abs() < f64::EPSILON)
            }
            Schedule::Square { .. } => false,
        };
        Self { schedule: schedule.clone(), segment: 0, real: 0, own: 0, even }
    }

    /// The real instant of an instant of the source, neither earlier than asked before. `u64::MAX`
    /// for never.
    #[inline]
    pub(super) fn real(&mut self, own: u64) -> u64 {
        if self.even {
            return own;
        }
        loop {
            let (factor, end) = self.segment(self.segment);
            let wanted = own - self.own;
            if factor > 0.0 {
                let even = (factor - 1.0).abs() < f64::EPSILON;
                let after = if even { wanted } else { (wanted as f64 / factor) as u64 };
                if after <= end.saturating_sub(self.real) {
                    return self.real.saturating_add(after);
                }
            }
            if end == u64::MAX {
                return u64::MAX;
            }
            let passed = ((end - self.real) as f64 * factor) as u64;
            self.own = own.min(self.own + passed);
            self.real = end;
            self.segment += 1;
        }
    }

    /// The first instant from `at` on at which the factor is not zero; `u64::MAX` for never.
    pub(super) fn active_from(&self, at: u64) -> u64 {
        let mut start = 0;
        let mut segment = self.first_segment(at);
        if segment > 0 {
            start = self.segment(segment - 1).1;
        }
        loop {
            let (factor, end) = self.segment(segment);
            if end > at && factor > 0.0 {
                return at.max(start);
            }
            if end == u64::MAX {
                return u64::MAX;
            }
            start = end;
            segment += 1;
        }
    }

    fn first_segment(&self, at: u64) -> usize {
        match &self.schedule {
            Schedule::Steps(_) => 0,
            Schedule::Square { period, .. } => (at / ps(*period).max(1)) as usize * 2,
        }
    }

    /// Factor and end of a segment. Those of `Steps` begin with the silence before the first step.
    fn segment(&self, number: usize) -> (f64, u64) {
        match &self.schedule {
            Schedule::Steps(steps) => {
                let factor = number.checked_sub(1).and_then(|n| steps.get(n)).map_or(0.0, |step| step.factor);
                (factor, steps.get(number).map_or(u64::MAX, |step| ps(step.at)))
            }
            Schedule::Square { period, duty, high, low } => {
                let (period, turn) = (ps(*period).max(1), (number / 2) as u64);
                let up = (period as f64 * duty) as u64;
                if number.is_multiple_of(2) {
                    (*high, turn * period + up)
                } else {
                    (*low, (turn + 1) * period)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;
    use crate::network::pace::SECOND;
    use crate::scenario::Factor;

    #[test]
    fn own_time_stands_still_doubles_and_ends() {
        let step = |at, factor| Factor { at: Span::from_secs(at), factor };
        let mut warp = Warp::new(&Schedule::Steps(vec![step(1, 1.0), step(3, 2.0), step(4, 0.0)]));
        let rows = [(0, Some(1)), (1, Some(2)), (2, Some(3)), (4, Some(4)), (5, None)];
        for (own, real) in rows {
            let want = real.map_or(u64::MAX, |real| real * SECOND);
            assert_eq!(warp.real(own * SECOND), want, "{own} s of the source");
        }
        assert_eq!(warp.active_from(0), SECOND);
        assert_eq!(warp.active_from(4 * SECOND), u64::MAX);
    }

    #[test]
    fn a_square_wave_goes_on_for_ever() {
        let period = Span::from_secs(2);
        let mut warp = Warp::new(&Schedule::Square { period, duty: 0.5, high: 1.0, low: 0.0 });
        assert_eq!(warp.real(SECOND / 2), SECOND / 2);
        assert_eq!(warp.real(1000 * SECOND + SECOND / 2), 2000 * SECOND + SECOND / 2);
        assert_eq!(warp.active_from(1001 * SECOND), 1002 * SECOND);
        assert_eq!(warp.active_from(1000 * SECOND), 1000 * SECOND);
    }

    #[test]
    fn a_square_wave_of_two_speeds_is_cut_where_it_changes() {
        let period = Span::from_secs(4);
        let mut warp = Warp::new(&Schedule::Square { period, duty: 0.25, high: 2.0, low: 0.5 });
        // Tenths of a second of the source, and of real time.
        for (own, real) in [(10, 5), (20, 10), (25, 20), (35, 40), (45, 45), (55, 50), (60, 60)] {
            assert_eq!(warp.real(own * SECOND / 10), real * SECOND / 10, "{own}");
        }
        for at in [0, SECOND, 3 * SECOND, 9 * SECOND] {
            assert_eq!(warp.active_from(at), at);
        }
    }
}
