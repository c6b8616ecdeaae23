//! Is the delay rising? Tests and a robust slope for short series.
//!
//! A series of one-way delays that rises while we send says that a queue fills: we send faster than
//! the available bandwidth. None of these assumes normal noise, and a constant clock offset changes
//! none of them.
//!
//! Values must be finite, else `None`. Take large offsets off before (delays between unsynchronised
//! clocks hold the difference of two epochs), for an `f64` resolves nanoseconds only up to 104
//! days.

use serde::{Deserialize, Serialize};

use crate::distribution::normal_two_sided_p;
use crate::quantile::median_in_place;

/// Medians of blocks of `floor(sqrt(n))` consecutive values, the filter that pathload puts before
/// [`pct`] and [`pdt`].
///
/// Takes single outliers away. What is left over at the end after the last full block is dropped.
///
/// Source: Jain and Dovrolis, "End-to-end available bandwidth", SIGCOMM 2002, §4.
pub fn block_medians(delays: &[f64]) -> Vec<f64> {
    let block = delays.len().isqrt().max(1);
    delays.chunks_exact(block).filter_map(|chunk| median_in_place(&mut chunk.to_vec())).collect()
}

/// Pairwise comparison test: the fraction of steps that go up, `#{m[i] > m[i-1]} / (n - 1)`, from 0
/// to 1.
///
/// About 0.5 without a trend, 1 for a strict rise. Blind to the size of the steps. `None` below two
/// values.
///
/// Source: Jain and Dovrolis 2002, §4. We divide by the number of steps as published; the pathload
/// program divides by the number of values, so its thresholds (0.495 and 0.605) are for figures
/// smaller by the factor `(n - 1) / n`.
pub fn pct(values: &[f64]) -> Option<f64> {
    let steps = finite(values)?.len().checked_sub(1).filter(|&steps| steps > 0)?;
    let rises = values.windows(2).filter(|pair| pair[1] > pair[0]).count();
    Some(rises as f64 / steps as f64)
}

/// Pairwise difference test: net rise over total movement, `(m[n] - m[1]) / sum |m[i] - m[i-1]|`,
/// from -1 to 1.
///
/// About 0 without a trend, 1 for a monotonic rise; 0 if nothing moves at all. `None` below two
/// values.
///
/// Source: Jain and Dovrolis 2002, §4; pathload calls it a rise above 0.44, no trend below 0.36.
pub fn pdt(values: &[f64]) -> Option<f64> {
    let (&[first, .., last], values) = (values, finite(values)?) else { return None };
    let movement: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
    Some(if movement > 0.0 { (last - first) / movement } else { 0.0 })
}

/// A straight line `y = intercept + slope * x`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Unit of y per unit of x.
    pub slope: f64,
    /// Value at `x = 0`, unit of y.
    pub intercept: f64,
}

/// Robust line through points (x, y): the median of the slopes of all pairs; the intercept is the
/// median of `y - slope * x`.
///
/// Up to 29 % of the points may be arbitrarily wrong. Unbiased for symmetric noise. Above 1000
/// points only the pairs half a series apart are used (Theil's abbreviated method): linear time, 25
/// % wrong points tolerated, somewhat noisier; points should then be in order of x. `None` with
/// fewer than two distinct x.
///
/// Source: Theil 1950; Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA
/// 1968.
pub fn theil_sen(points: &[(f64, f64)]) -> Option<Line> {
    if points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return None;
    }
    let mut slopes = pair_slopes(points);
    let slope = median_in_place(&mut slopes)?;
    let mut intercepts: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    Some(Line { slope, intercept: median_in_place(&mut intercepts)? })
}

/// The slopes that [`theil_sen`] takes the median of.
pub(crate) fn pair_slopes(points: &[(f64, f64)]) -> Vec<f64> {
    if points.len() <= MOST_POINTS_ALL_PAIRS {
        (1..points.len()).flat_map(|j| (0..j).filter_map(move |i| slope(points[i], points[j]))).collect()
    } else {
        let apart = points.len() / 2;
        points.iter().zip(&points[apart..]).filter_map(|(&a, &b)| slope(a, b)).collect()
    }
}

/// Result of the Mann-Kendall test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MannKendall {
    /// Rising pairs minus falling pairs.
    pub s: i64,
    /// `s` over the number of pairs, -1 to 1 (Kendall's tau-a against time).
    pub tau: f64,
    /// Standard score with tie and continuity correction; positive for a rise.
    pub z: f64,
    /// Two-sided probability of a `z` as extreme if there is no trend; not trustworthy below 1e-6.
    pub p: f64,
}

/// Mann-Kendall test for a monotonic trend in values taken one after the other.
///
/// The normal approximation is good from 10 values on. Assumes independent values: positive
/// autocorrelation, usual for delays of closely spaced packets, makes `p` too small, so it finds
/// trends too often. Quadratic time: a thousand values take a fraction of a millisecond. `None`
/// below three values; all equal gives `z = 0`, `p = 1`.
///
/// Source: Mann 1945; Kendall, Rank Correlation Methods, 1975; ties as in Gilbert 1987, §16.4.
pub fn mann_kendall(values: &[f64]) -> Option<MannKendall> {
    let n = finite(values)?.len() as u64;
    if n < 3 {
        return None;
    }
    let sign = |a: f64, b: f64| i64::from(b > a) - i64::from(b < a);
    let s: i64 =
        (1..values.len()).map(|j| values[..j].iter().map(|&a| sign(a, values[j])).sum::<i64>()).sum();
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a >= b).map(|equal| spread(equal.len() as f64)).sum();
    let variance = (spread(n as f64) - ties) / 18.0;
    // One step towards zero, for `s` moves in steps and the normal distribution does not.
    let z = if variance > 0.0 { (s - s.signum()) as f64 / variance.sqrt() } else { 0.0 };
    Some(MannKendall { s, tau: s as f64 / (n * (n - 1) / 2) as f64, z, p: normal_two_sided_p(z) })
}

fn finite(values: &[f64]) -> Option<&[f64]> {
    values.iter().all(|value| value.is_finite()).then_some(values)
}

/// `None` for points above each other: they say nothing about the slope.
fn slope(a: (f64, f64), b: (f64, f64)) -> Option<f64> {
    let slope = (b.1 - a.1) / (b.0 - a.0);
    slope.is_finite().then_some(slope)
}

/// Half a million pairs, 4 MB; beyond that memory grows faster than knowledge.
pub(crate) const MOST_POINTS_ALL_PAIRS: usize = 1000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::SplitMix64;
    use crate::truth::{assert_close, normal};

    #[test]
    fn pct_and_pdt_of_simple_series() {
        let cases: [(u32, &[f64], f64, f64); 5] = [
            (1, &[1.0, 2.0, 3.0, 4.0, 5.0], 1.0, 1.0),
            (2, &[5.0, 4.0, 3.0, 2.0, 1.0], 0.0, -1.0),
            (3, &[1.0, 2.0, 1.0, 2.0, 1.0], 0.5, 0.0),
            (4, &[7.0, 7.0, 7.0], 0.0, 0.0),
            (5, &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0], 0.6, 5.0 / 13.0),
        ];
        for (row, values, p, d) in cases {
            assert!((pct(values).unwrap() - p).abs() < 1e-12, "pct of row {row}");
            assert!((pdt(values).unwrap() - d).abs() < 1e-12, "pdt of row {row}");
        }
    }

    #[test]
    fn too_few_or_unreal_values_have_no_trend() {
        for values in [&[][..], &[1.0][..], &[1.0, f64::NAN, 3.0][..]] {
            assert_eq!((pct(values), pdt(values), mann_kendall(values)), (None, None, None));
        }
        assert_eq!(theil_sen(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(theil_sen(&[(1.0, 1.0), (2.0, f64::INFINITY)]), None);
    }

    #[test]
    fn block_medians_take_single_outliers_away() {
        let mut delays: Vec<f64> = (0..102).map(f64::from).collect();
        delays[35] = 1e9;
        let medians = block_medians(&delays);
        assert_eq!(medians.len(), 10);
        assert!(medians.windows(2).all(|pair| pair[0] < pair[1]));
        assert_close(pct(&medians).unwrap(), 1.0, 1e-12);
        assert!(block_medians(&[]).is_empty());
    }

    #[test]
    fn theil_sen_survives_a_quarter_of_wild_points() {
        let mut rng = SplitMix64::new(5);
        for n in [100, 5000] {
            let points: Vec<_> = (0..n)
                .map(|i| {
                    let x = f64::from(i);
                    let wild = if i % 5 == 0 { 1e9 * rng.unit() } else { 0.0 };
                    (x, 3.0 + 0.5 * x + normal(&mut rng) * 0.01 + wild)
                })
                .collect();
            let line = theil_sen(&points).unwrap();
            assert_close(line.slope, 0.5, 0.01);
        }
    }

    #[test]
    fn mann_kendall_equals_the_hand_computed_example() {
        // Ten pairs: 6 rise, 3 fall, 1 tie. Variance (5*4*15 - 2*1*9) / 18 = 282 / 18.
        let result = mann_kendall(&[1.0, 3.0, 2.0, 3.0, 2.5]).unwrap();
        assert_eq!(result.s, 6 - 3);
        assert_close(result.z, 2.0 / (282.0_f64 / 18.0).sqrt(), 1e-12);
        assert_close(result.tau, 0.3, 1e-12);
    }

    #[test]
    fn mann_kendall_cries_wolf_in_one_of_twenty() {
        let mut rng = SplitMix64::new(6);
        let alarms = (0..2000)
            .filter(|_| {
                let noise: Vec<f64> = (0..20).map(|_| normal(&mut rng)).collect();
                mann_kendall(&noise).unwrap().p < 0.05
            })
            .count();
        assert!((60..140).contains(&alarms), "{alarms} of 2000");
    }

    proptest! {
        #[test]
        fn theil_sen_is_exact_on_a_line(slope in -100.0..100.0_f64, intercept in -100.0..100.0_f64, n in 2..40_u32) {
            let points: Vec<_> = (0..n).map(|i| (f64::from(i), intercept + slope * f64::from(i))).collect();
            let line = theil_sen(&points).unwrap();
            prop_assert!((line.slope - slope).abs() < 1e-9 && (line.intercept - intercept).abs() < 1e-7);
        }

        #[test]
        fn reversed_time_reverses_the_verdict(values in prop::collection::vec(-50..50_i32, 3..40)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let reversed: Vec<f64> = values.iter().rev().copied().collect();
            let (there, back) = (mann_kendall(&values).unwrap(), mann_kendall(&reversed).unwrap());
            prop_assert_eq!(there.s, -back.s);
            prop_assert!((pdt(&values).unwrap() + pdt(&reversed).unwrap()).abs() < 1e-9);
        }
    }
}
