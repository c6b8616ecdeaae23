//! Mean, variance, skewness and kurtosis of a stream, in constant memory, without keeping the
//! samples.
//!
//! Update and merge formulas: Welford 1962 for the variance; Pébay, "Formulas for robust, one-pass
//! parallel computation of covariances and arbitrary-order statistical moments", SAND2008-6212, for
//! the rest. They never subtract large sums from each other, so a spread of nanoseconds survives an
//! offset of hours. It does not survive nanoseconds since the epoch, which an `f64` cannot tell
//! apart to begin with: subtract an origin first.
//!
//! Bias: the variance is unbiased; its root, the standard deviation, reads low by about `1 / 4n`
//! for normal samples (6 % at four samples). Skewness and kurtosis are the plain population forms
//! and read low for few samples with a long tail.

use serde::{Deserialize, Serialize};

/// The first four central moments so far, with minimum and maximum.
///
/// A NaN or infinity observed makes the results NaN; feed finite numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// Sums of the second, third and fourth power of `x - mean`.
    m2: f64,
    m3: f64,
    m4: f64,
    min: f64,
    max: f64,
}

impl Moments {
    /// Of no samples yet.
    pub const fn new() -> Self {
        // Not infinities: JSON has none, and `count` already says that there is no minimum.
        Self { count: 0, mean: 0.0, m2: 0.0, m3: 0.0, m4: 0.0, min: f64::MAX, max: f64::MIN }
    }

    /// Takes one sample into account.
    #[inline]
    pub fn observe(&mut self, x: f64) {
        let before = self.count as f64;
        self.count += 1;
        let n = self.count as f64;
        let delta = x - self.mean;
        let step = delta / n;
        let step2 = step * step;
        let term = delta * step * before;
        self.mean += step;
        self.m4 += term * step2 * (n * n - 3.0 * n + 3.0) + 6.0 * step2 * self.m2 - 4.0 * step * self.m3;
        self.m3 += term * step * (n - 2.0) - 3.0 * step * self.m2;
        self.m2 += term;
        self.min = self.min.min(x);
        self.max = self.max.max(x);
    }

    /// Takes all samples of `other` into account, as if they had been observed here.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let n = a + b;
        let delta = other.mean - self.mean;
        let (d2, d3, d4) = (delta.powi(2), delta.powi(3), delta.powi(4));
        self.m4 += other.m4
            + d4 * a * b * (a * a - a * b + b * b) / n.powi(3)
            + 6.0 * d2 * (a * a * other.m2 + b * b * self.m2) / (n * n)
            + 4.0 * delta * (a * other.m3 - b * self.m3) / n;
        self.m3 += other.m3 + d3 * a * b * (a - b) / (n * n) + 3.0 * delta * (a * other.m2 - b * self.m2) / n;
        self.m2 += other.m2 + d2 * a * b / n;
        self.mean += delta * b / n;
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Arithmetic mean, in the unit of the samples; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// The smallest sample; `None` without samples.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest sample; `None` without samples.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// Unbiased variance, `sum (x - mean)^2 / (n - 1)`; `None` below two samples.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.m2 / (self.count - 1) as f64)
    }

    /// Standard deviation, the root of [`Self::variance`]; `None` below two samples.
    pub fn sd(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Skewness `g1 = (m3/n) / (m2/n)^1.5`, 0 for symmetric noise, positive for a long right tail
    /// (delays). `None` below two samples or when all are equal.
    pub fn skewness(&self) -> Option<f64> {
        (self.count > 1 && self.m2 > 0.0).then(|| (self.count as f64).sqrt() * self.m3 / self.m2.powf(1.5))
    }

    /// Excess kurtosis `g2 = (m4/n) / (m2/n)^2 - 3`, 0 for normal noise.
    /// `None` below two samples or when all are equal.
    pub fn excess_kurtosis(&self) -> Option<f64> {
        (self.count > 1 && self.m2 > 0.0).then(|| self.count as f64 * self.m4 / (self.m2 * self.m2) - 3.0)
    }
}

impl Default for Moments {
    fn default() -> Self {
        Self::new()
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        let mut moments = Self::new();
        for x in samples {
            moments.observe(x);
        }
        moments
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::SplitMix64;
    use crate::truth::assert_close;

    #[test]
    fn closed_form_of_two_four_four_four_five_five_seven_nine() {
        let moments: Moments = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().collect();
        assert_close(moments.mean().unwrap(), 5.0, 1e-12);
        assert_close(moments.variance().unwrap(), 32.0 / 7.0, 1e-12);
        // Sums of the third and fourth powers of the deviations are 42 and 356.
        assert_close(moments.skewness().unwrap(), 42.0 / 8.0 / 8.0, 1e-12);
        assert_close(moments.excess_kurtosis().unwrap(), 356.0 / 8.0 / 16.0 - 3.0, 1e-12);
    }

    #[test]
    fn exponential_noise_has_skewness_two_and_excess_kurtosis_six() {
        let mut rng = SplitMix64::new(3);
        let moments: Moments = (0..1_000_000).map(|_| -50.0 * (1.0 - rng.unit()).ln()).collect();
        assert_close(moments.mean().unwrap(), 50.0, 0.3);
        assert_close(moments.sd().unwrap(), 50.0, 0.5);
        assert_close(moments.skewness().unwrap(), 2.0, 0.1);
        assert_close(moments.excess_kurtosis().unwrap(), 6.0, 0.6);
    }

    #[test]
    fn large_offset_does_not_swallow_a_small_spread() {
        let moments: Moments = (0..1000_u64).map(|i| 1.0e13 + (i % 2) as f64).collect();
        assert_close(moments.sd().unwrap(), 0.500_25, 2e-3);
    }

    #[test]
    fn extremes_are_the_smallest_and_the_largest_sample_of_whatever_sign() {
        let rows = [
            (vec![3.0, -7.0, 8.0, 0.25], (-7.0, 8.0)),
            (vec![-2.0, -7.0, -1.0], (-7.0, -1.0)),
            (vec![2.0, 7.0, 1.0], (1.0, 7.0)),
            (vec![0.0], (0.0, 0.0)),
        ];
        for (samples, (min, max)) in rows {
            let moments: Moments = samples.iter().copied().collect();
            assert_eq!((moments.min(), moments.max()), (Some(min), Some(max)), "{samples:?}");
            let mut merged = Moments::new();
            merged.merge(&moments);
            assert_eq!((merged.min(), merged.max()), (Some(min), Some(max)), "{samples:?}");
        }
    }

    #[test]
    fn two_parts_of_different_size_and_shape_have_the_moments_of_the_whole() {
        let (few, many) = ([1.0, 2.0, 12.0], [-3.0, 4.0, 4.5, 5.0, 21.0]);
        let whole: Moments = few.iter().chain(&many).copied().collect();
        let [few, many]: [Moments; 2] = [few.iter().copied().collect(), many.iter().copied().collect()];
        for (first, second) in [(&few, &many), (&many, &few)] {
            let mut merged = *first;
            merged.merge(second);
            let parts = [
                (merged.m2, whole.m2),
                (merged.m3, whole.m3),
                (merged.m4, whole.m4),
                (merged.mean, whole.mean),
            ];
            for (merged, whole) in parts {
                assert!((merged / whole - 1.0).abs() < 1e-12, "{merged} and {whole}");
            }
        }
    }

    #[test]
    fn what_is_unknown_is_none() {
        let mut moments = Moments::new();
        assert_eq!((moments.mean(), moments.min(), moments.max(), moments.sd()), (None, None, None, None));
        moments.observe(4.0);
        assert_eq!((moments.mean(), moments.sd(), moments.skewness()), (Some(4.0), None, None));
        moments.observe(4.0);
        assert_eq!((moments.sd(), moments.excess_kurtosis()), (Some(0.0), None));
    }

    proptest! {
        #[test]
        fn merged_halves_equal_the_whole(samples in prop::collection::vec(-1e6..1e6_f64, 2..80), cut in 0..80_usize) {
            let cut = cut.min(samples.len());
            let whole: Moments = samples.iter().copied().collect();
            let mut merged: Moments = samples[..cut].iter().copied().collect();
            merged.merge(&samples[cut..].iter().copied().collect());
            prop_assert_eq!(merged.count(), whole.count());
            prop_assert_eq!(merged.min(), whole.min());
            prop_assert_eq!(merged.max(), whole.max());
            for (a, b) in [(merged.mean, whole.mean), (merged.m2, whole.m2), (merged.m3, whole.m3), (merged.m4, whole.m4)] {
                prop_assert!((a - b).abs() <= 1e-6 * (1.0 + b.abs().max(whole.m2.powf(1.5))), "{} {}", a, b);
            }
        }

        #[test]
        fn streaming_equals_two_passes(samples in prop::collection::vec(-1e3..1e3_f64, 2..80)) {
            let moments: Moments = samples.iter().copied().collect();
            let n = samples.len() as f64;
            let mean = samples.iter().sum::<f64>() / n;
            let power = |p| samples.iter().map(|x| (x - mean).powi(p)).sum::<f64>();
            let scale = 1.0 + power(2);
            prop_assert!((moments.mean - mean).abs() < 1e-9 * scale);
            prop_assert!((moments.m2 - power(2)).abs() < 1e-9 * scale);
            prop_assert!((moments.m3 - power(3)).abs() < 1e-9 * scale.powf(1.5));
            prop_assert!((moments.m4 - power(4)).abs() < 1e-9 * scale.powi(2));
        }
    }
}
