//! What a host's clock shows at a true instant.

use netaware_units::{Mono, Span, Wall};

use crate::scenario::Clock;

/// A host's clock: offset, constant frequency error, steps. Readings go backwards when a step is
/// negative, as wall clocks do; they count nanoseconds from the scenario's time zero, so an offset
/// of zero reads the true time.
#[derive(Debug, Clone, PartialEq)]
pub struct HostClock {
    clock: Clock,
}

impl HostClock {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock }
    }

    /// What it shows at the true instant `at`.
    pub fn reading(&self, at: Mono) -> Wall {
        let truth = i64::try_from(at.0).unwrap_or(i64::MAX);
        Wall(truth.saturating_add(self.error(at).nanos()))
    }

    /// Reading minus true time: positive is ahead.
    pub fn error(&self, at: Mono) -> Span {
        let drift = i128::from(at.0) * i128::from(self.clock.skew_ppb) / 1_000_000_000;
        let drift = Span(drift.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64);
        let steps = self.clock.steps.iter().filter(|step| step.at.nanos().cast_unsigned() <= at.0);
        self.clock.offset + drift + steps.map(|step| step.by).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ClockStep;

    #[test]
    fn offset_skew_and_steps_add_up() {
        let steps = vec![ClockStep { at: Span::from_secs(10), by: Span::from_millis(-3) }];
        let clock = HostClock::new(Clock { offset: Span::from_millis(5), skew_ppb: 20_000, steps });
        let rows = [(0, 5_000_000), (1, 5_020_000), (10, 5_200_000 - 3_000_000), (100, 4_000_000)];
        for (n, (second, error)) in rows.into_iter().enumerate() {
            let at = Mono(second * 1_000_000_000);
            assert_eq!(clock.error(at), Span(error), "row {n}");
            assert_eq!(clock.reading(at), Wall(at.0.cast_signed() + error), "row {n}");
        }
    }
}
