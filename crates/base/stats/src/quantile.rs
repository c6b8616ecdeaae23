//! Exact quantiles of samples that are all at hand.
//!
//! Two definitions, never mixed within a figure. [`linear`] is type 7 of Hyndman and Fan ("Sample
//! quantiles in statistical packages", 1996), the default of R and `NumPy`: it interpolates between
//! neighbours and is what [`Summary`] reports. [`nearest_rank`] always answers with a value that
//! really occurred.
//!
//! Bias: for a long right tail, both read low when `q` is close to 1 and samples are few. A p99.9
//! of fewer than 1000 samples is hardly more than the maximum.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::moments::Moments;

/// A number we can take quantiles of: nanoseconds as `i64` or `u64`, or any `f64`.
pub trait Sample: Copy {
    /// The value as `f64`; integers are exact up to 2^53 (104 days in nanoseconds).
    fn value(self) -> f64;
    /// A total order; for `f64` that of IEEE 754 `totalOrder`, in which NaN sorts to the ends.
    fn order(&self, other: &Self) -> Ordering;
}

impl Sample for i64 {
    fn value(self) -> f64 {
        self as f64
    }
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}

impl Sample for u64 {
    fn value(self) -> f64 {
        self as f64
    }
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}

impl Sample for f64 {
    fn value(self) -> f64 {
        self
    }
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
}

/// Type-7 quantile of ascending `sorted`: with `h = (n - 1) q`, interpolates linearly between the
/// samples of (zero-based) rank `floor(h)` and `floor(h) + 1`.
///
/// `None` if there are no samples or `q` is outside `0.0..=1.0`.
pub fn linear<S: Sample>(sorted: &[S], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = last as f64 * q;
    let below = position.floor() as usize;
    let low = sorted[below].value();
    let high = sorted[(below + 1).min(last)].value();
    Some(low + (position - below as f64) * (high - low))
}

/// Nearest-rank quantile of ascending `sorted`: the smallest sample that at least the fraction `q`
/// of samples do not exceed, i.e. the one of (one-based) rank `ceil(q n)`; the minimum for `q = 0`.
///
/// `None` if there are no samples or `q` is outside `0.0..=1.0`.
pub fn nearest_rank<S: Sample>(sorted: &[S], q: f64) -> Option<S> {
    let last = sorted.len().checked_sub(1)?;
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let rank = (q * sorted.len() as f64).ceil() as usize;
    Some(sorted[rank.saturating_sub(1).min(last)])
}

/// The middle sample, or the mean of the two middle ones; in any order, in linear time. `None` if
/// there are none.
pub fn median<S: Sample>(samples: &[S]) -> Option<f64> {
    median_in_place(&mut samples.to_vec())
}

/// [`median`] without the copy: leaves `samples` in another order.
pub fn median_in_place<S: Sample>(samples: &mut [S]) -> Option<f64> {
    let middle = samples.len() / 2;
    let even = samples.len().is_multiple_of(2);
    if samples.is_empty() {
        return None;
    }
    let (below, &mut upper, _) = samples.select_nth_unstable_by(middle, S::order);
    if !even {
        return Some(upper.value());
    }
    let lower = below.iter().copied().max_by(S::order)?;
    Some(f64::midpoint(lower.value(), upper.value()))
}

/// Median absolute deviation from the median: `median(|x - median(x)|)`, unscaled, in the unit of
/// the samples.
///
/// Multiply by 1.4826 to estimate the standard deviation of *normal* noise (Rousseeuw and Croux
/// 1993); delays are not normal, so we leave that to the caller. `None` if there are no samples.
pub fn mad<S: Sample>(samples: &[S]) -> Option<f64> {
    let centre = median(samples)?;
    let mut deviations: Vec<f64> = samples.iter().map(|sample| (sample.value() - centre).abs()).collect();
    median_in_place(&mut deviations)
}

/// The usual figures of a set of samples, all in the unit of the samples; quantiles are type 7 (see
/// [`linear`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many samples.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile; hardly more than `max` below 1000 samples.
    pub p999: f64,
    /// The largest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with divisor `n - 1`; `None` for a single sample, whose spread nobody
    /// knows.
    pub sd: Option<f64>,
}

impl Summary {
    /// Of samples in any order; sorts a copy. `None` if there are none.
    pub fn of<S: Sample>(samples: &[S]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(S::order);
        Self::of_sorted(&sorted)
    }

    /// Of ascending samples. `None` if there are none.
    pub fn of_sorted<S: Sample>(sorted: &[S]) -> Option<Self> {
        let moments: Moments = sorted.iter().map(|sample| sample.value()).collect();
        Some(Self {
            count: moments.count(),
            min: sorted.first()?.value(),
            p50: linear(sorted, 0.5)?,
            p95: linear(sorted, 0.95)?,
            p99: linear(sorted, 0.99)?,
            p999: linear(sorted, 0.999)?,
            max: sorted.last()?.value(),
            mean: moments.mean()?,
            sd: moments.sd(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::SplitMix64;
    use crate::truth::{assert_close, normal};

    #[test]
    fn linear_equals_type_7_of_r() {
        let sorted = [1_i64, 2, 4, 8, 16];
        for (row, q, expected) in
            [(1, 0.0, 1.0), (2, 0.1, 1.4), (3, 0.25, 2.0), (4, 0.5, 4.0), (5, 0.9, 12.8), (6, 1.0, 16.0)]
        {
            let got = linear(&sorted, q).unwrap();
            assert!((got - expected).abs() < 1e-12, "row {row}: {got}");
        }
    }

    #[test]
    fn nearest_rank_answers_with_a_sample() {
        // The worked example of the textbooks: 15, 20, 35, 40, 50.
        let sorted = [15_u64, 20, 35, 40, 50];
        for (row, q, expected) in
            [(1, 0.0, 15), (2, 0.05, 15), (3, 0.3, 20), (4, 0.4, 20), (5, 0.5, 35), (6, 1.0, 50)]
        {
            assert_eq!(nearest_rank(&sorted, q), Some(expected), "row {row}");
        }
    }

    #[test]
    fn nothing_yields_nothing() {
        let none: [i64; 0] = [];
        assert_eq!(linear(&none, 0.5), None);
        assert_eq!(nearest_rank(&none, 0.5), None);
        assert_eq!(median(&none), None);
        assert_eq!(mad(&none), None);
        assert_eq!(Summary::of(&none), None);
        for q in [-0.1, 1.1, f64::NAN] {
            assert_eq!(linear(&[1_i64], q), None);
            assert_eq!(nearest_rank(&[1_i64], q), None);
        }
    }

    #[test]
    fn single_sample_has_no_deviation() {
        let summary = Summary::of(&[7_u64]).unwrap();
        assert_eq!(summary.sd, None);
        assert_close(summary.p999, 7.0, 1e-12);
    }

    #[test]
    fn mad_ignores_a_wild_outlier() {
        assert_close(mad(&[1_i64, 1, 2, 2, 4, 6, 9]).unwrap(), 1.0, 1e-12);
        assert_close(mad(&[1_i64, 1, 2, 2, 4, 6, 9_000_000]).unwrap(), 1.0, 1e-12);
    }

    #[test]
    fn summary_of_normal_noise_equals_the_normal_table() {
        let mut rng = SplitMix64::new(11);
        let noise: Vec<f64> = (0..200_000).map(|_| 100.0 + 10.0 * normal(&mut rng)).collect();
        let summary = Summary::of(&noise).unwrap();
        assert_close(summary.mean, 100.0, 0.1);
        assert_close(summary.sd.unwrap(), 10.0, 0.1);
        assert_close(summary.p95, 116.449, 0.2);
        assert_close(summary.p99, 123.263, 0.3);
        assert_close(summary.p999, 130.902, 0.8);
        assert_close(mad(&noise).unwrap(), 6.745, 0.1);
    }

    proptest! {
        #[test]
        fn median_by_selection_equals_median_by_sorting(mut samples in prop::collection::vec(-1000_i64..1000, 1..60)) {
            let selected = median(&samples).unwrap();
            samples.sort_unstable();
            prop_assert!((selected - linear(&samples, 0.5).unwrap()).abs() < 1e-9);
        }

        #[test]
        fn quantiles_rise_with_q(mut samples in prop::collection::vec(any::<i32>().prop_map(i64::from), 1..60),
                                 a in 0.0..=1.0_f64, b in 0.0..=1.0_f64) {
            samples.sort_unstable();
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(linear(&samples, low) <= linear(&samples, high));
            prop_assert!(nearest_rank(&samples, low) <= nearest_rank(&samples, high));
        }
    }
}
