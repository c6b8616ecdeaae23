//! Figures of a series that may go on for weeks: moments and the median, in bounded memory.
//!
//! Up to [`RunningSummary::EXACT`] values the median is exact. Beyond, the values are kept in a
//! histogram of three significant digits ([`DelayHistogram`]): the median is then within 0.05 % of
//! a value that occurred, or within one unit of resolution where that is coarser. Minimum, maximum,
//! mean, deviation and variance stay exact.

use crate::hist::DelayHistogram;
use crate::moments::Moments;
use crate::quantile::median;

/// What was seen so far of one figure that is never negative.
#[derive(Debug, Clone)]
pub struct RunningSummary {
    moments: Moments,
    resolution: f64,
    values: Values,
}

#[derive(Debug, Clone)]
enum Values {
    All(Vec<f64>),
    /// In units of `resolution`.
    Binned(Box<DelayHistogram>),
}

impl RunningSummary {
    /// How many values are kept one by one.
    pub const EXACT: usize = 10_000;

    /// Of nothing yet. `resolution` is the smallest difference that matters, in the unit of the
    /// values and above zero; values up to 3.6e12 times as large are told apart.
    pub fn new(resolution: f64) -> Self {
        Self { moments: Moments::new(), resolution, values: Values::All(Vec::new()) }
    }

    /// Takes one value into account; one that is negative or not finite is none.
    pub fn observe(&mut self, value: f64) {
        if !value.is_finite() || value < 0.0 {
            return;
        }
        self.moments.observe(value);
        let resolution = self.resolution;
        match &mut self.values {
            Values::All(values) if values.len() < Self::EXACT => values.push(value),
            Values::All(values) => {
                let mut bins = Box::new(DelayHistogram::new());
                for value in values.iter().chain([&value]) {
                    bins.observe((value / resolution).round() as u64);
                }
                self.values = Values::Binned(bins);
            }
            Values::Binned(bins) => bins.observe((value / resolution).round() as u64),
        }
    }

    /// Count, minimum, maximum, mean, deviation and variance.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The median; `None` without values.
    pub fn median(&self) -> Option<f64> {
        match &self.values {
            Values::All(values) => median(values),
            Values::Binned(bins) => bins.quantile(0.5).map(|binned| binned as f64 * self.resolution),
        }
    }

    /// Whether the median is exact, not read off a histogram.
    pub fn is_exact(&self) -> bool {
        matches!(self.values, Values::All(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;
    use crate::truth::assert_close;

    #[test]
    fn few_values_have_an_exact_median_and_many_a_close_one() {
        let mut rng = SplitMix64::new(3);
        let mut running = RunningSummary::new(1.0);
        let mut all = Vec::new();
        for n in 0..3 * RunningSummary::EXACT {
            let value = 200_000.0 + 50_000.0 * rng.unit();
            running.observe(value);
            all.push(value);
            if n == 0 || n + 1 == RunningSummary::EXACT {
                assert_eq!((running.median(), running.is_exact()), (median(&all), true));
            }
        }
        assert!(!running.is_exact());
        let exact = median(&all).unwrap();
        assert_close(running.median().unwrap(), exact, 0.000_5 * exact + 1.0);
        let moments: Moments = all.iter().copied().collect();
        assert_eq!(*running.moments(), moments);
    }

    #[test]
    fn small_shares_are_told_apart_by_their_resolution() {
        let mut running = RunningSummary::new(1e-9);
        for n in 0..20_001 {
            running.observe(f64::from(n) * 1e-6);
        }
        assert_close(running.median().unwrap(), 0.01, 0.000_01);
    }

    #[test]
    fn what_is_no_value_is_left_out() {
        let mut running = RunningSummary::new(1.0);
        assert_eq!((running.median(), running.moments().mean()), (None, None));
        for value in [f64::NAN, f64::INFINITY, -1.0] {
            running.observe(value);
        }
        assert_eq!(running.moments().count(), 0);
        running.observe(0.0);
        assert_eq!(running.median(), Some(0.0));
    }
}
