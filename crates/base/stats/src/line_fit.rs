//! A straight line through points, with bounds for its slope.
//!
//! **Assumes** that the noise of the points is independent and equally distributed, and nothing of
//! its shape. **Biased**: delays have a long right tail; where it grows with x, the slope reads
//! high. Points of one repetition each may share a disturbance that lasted, and then the interval
//! is too narrow. **Published**: Theil 1950; Sen, "Estimates of the regression coefficient based on
//! Kendall's tau", JASA 63, 1968, with its interval from the ranks of the slopes; ties in x after
//! Sen §5.

use crate::distribution::student_t_two_sided;
use crate::interval::Interval;
use crate::trend::{Line, MOST_POINTS_ALL_PAIRS, pair_slopes, theil_sen};

/// What [`fit`] finds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineFit {
    /// The Theil-Sen line.
    pub line: Line,
    /// The slope between its bounds; absent for fewer points than the confidence needs: five at 95
    /// %.
    pub slope: Option<Interval>,
    /// Median distance of the points from the line, unit of y.
    pub residual: f64,
}

/// Robust line through points (x, y), the slope with a distribution-free interval of about
/// `confidence`.
///
/// Up to 1000 points all pairs are used: the bounds are the slopes of rank `(N ∓ C) / 2` among all
/// `N`, with `C` the normal quantile times the standard deviation of Kendall's statistic. Above,
/// the pairs half a series apart, which are independent, and the bounds are those of their median
/// (binomial); points should then be in order of x.
///
/// `None` with fewer than two distinct x, or for values that are not finite.
pub fn fit(points: &[(f64, f64)], confidence: f64) -> Option<LineFit> {
    let line = theil_sen(points)?;
    let mut residuals: Vec<f64> =
        points.iter().map(|(x, y)| (y - line.intercept - line.slope * x).abs()).collect();
    let residual = crate::quantile::median_in_place(&mut residuals)?;
    Some(LineFit { line, slope: slope_interval(points, line.slope, confidence), residual })
}

fn slope_interval(points: &[(f64, f64)], estimate: f64, confidence: f64) -> Option<Interval> {
    let mut slopes = pair_slopes(points);
    slopes.sort_unstable_by(f64::total_cmp);
    let count = slopes.len() as f64;
    let variance = if points.len() <= MOST_POINTS_ALL_PAIRS { kendall_variance(points) } else { count };
    // A thousand degrees of freedom are normal to 0.2 %.
    let within = student_t_two_sided(confidence, 1000)? * variance.sqrt();
    let mut below = (count - within) / 2.0;
    // Ranks count from one; the bounds must be slopes that exist.
    if below < 1.0 {
        // The normal approximation is too strict for few points; the exact confidence is known.
        if extremes_confidence(points) < confidence {
            return None;
        }
        below = 1.0;
    }
    let lo = *slopes.get(below.floor() as usize - 1)?;
    let hi = *slopes.get(slopes.len() - below.floor() as usize)?;
    Some(Interval { estimate, lo: lo.min(estimate), hi: hi.max(estimate), confidence })
}

/// How often the true slope is between the least and the largest slope of all pairs: always but
/// where all points are in the order of x, or all in the reverse one, after the true line was taken
/// out. 0 where points share an x.
fn extremes_confidence(points: &[(f64, f64)]) -> f64 {
    let mut xs: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    xs.sort_unstable_by(f64::total_cmp);
    let is_tied = xs.windows(2).any(|pair| pair[0] >= pair[1]);
    let orders: f64 = (1..=points.len()).map(|n| n as f64).product();
    if is_tied { 0.0 } else { 1.0 - 2.0 / orders }
}

/// Variance of Kendall's statistic, less what pairs above each other would have added.
fn kendall_variance(points: &[(f64, f64)]) -> f64 {
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut xs: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    xs.sort_unstable_by(f64::total_cmp);
    let ties: f64 = xs.chunk_by(|a, b| a >= b).map(|equal| spread(equal.len() as f64)).sum();
    (spread(points.len() as f64) - ties) / 18.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;
    use crate::truth::{assert_close, normal};

    fn noisy(n: u32, seed: u64) -> Vec<(f64, f64)> {
        let mut rng = SplitMix64::new(seed);
        (0..n)
            .map(|i| {
                let x = f64::from(64 + 8 * i);
                (x, 120_000.0 + 80.0 * x + 500.0 * normal(&mut rng))
            })
            .collect()
    }

    #[test]
    fn the_bounds_are_those_of_sens_own_example() {
        // Sen 1968: the estimate is 4 and the interval at 93 % from 26/7 to 35/8.
        let points: Vec<(f64, f64)> = [1.0, 2.0, 3.0, 4.0, 10.0, 12.0, 18.0]
            .into_iter()
            .zip([9.0, 15.0, 19.0, 20.0, 45.0, 55.0, 78.0])
            .collect();
        let found = fit(&points, 0.93).unwrap();
        assert_close(found.line.slope, 4.0, 1e-12);
        let slope = found.slope.unwrap();
        assert_close(slope.lo, 26.0 / 7.0, 1e-12);
        assert_close(slope.hi, 35.0 / 8.0, 1e-12);
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_claims() {
        for n in [10, 40] {
            let held = (0..2000)
                .filter(|seed| fit(&noisy(n, *seed), 0.95).unwrap().slope.unwrap().contains(80.0))
                .count();
            // Five standard deviations of a binomial around 95 %, and the discreteness of few ranks
            // above.
            assert!((1850..=1960).contains(&held), "{held} of 2000 with {n} points");
        }
    }

    #[test]
    fn more_than_a_thousand_points_keep_the_promise_too() {
        let held = (0..300)
            .filter(|seed| fit(&noisy(1500, *seed), 0.95).unwrap().slope.unwrap().contains(80.0))
            .count();
        assert!((266..=300).contains(&held), "{held} of 300");
    }

    #[test]
    fn wild_points_move_neither_line_nor_bounds_far() {
        let mut points = noisy(100, 3);
        for point in points.iter_mut().step_by(7) {
            point.1 += 1e9;
        }
        let found = fit(&points, 0.95).unwrap();
        assert_close(found.line.slope, 80.0, 2.0);
        let slope = found.slope.unwrap();
        assert!(slope.contains(80.0) && slope.width() < 4.0, "{slope:?}");
        assert!(found.residual < 1500.0);
    }

    #[test]
    fn five_points_have_bounds_at_95_percent_and_they_are_the_least_and_the_largest_slope() {
        let points = [(1.0, 1.0), (2.0, 2.5), (3.0, 3.0), (4.0, 4.0), (5.0, 5.0)];
        let slope = fit(&points, 0.95).unwrap().slope.unwrap();
        assert_eq!((slope.lo, slope.hi), (0.5, 1.5));
        // One of 60 orders of five is one of the two that the bounds do not hold: 98.3 %.
        assert!(fit(&points, 0.983).unwrap().slope.is_some());
        assert_eq!(fit(&points, 0.984).unwrap().slope, None);
        let shared = [(1.0, 1.0), (2.0, 2.5), (3.0, 3.0), (4.0, 4.0), (4.0, 5.0)];
        assert_eq!(fit(&shared, 0.95).unwrap().slope, None);
        let held = (0..2000)
            .filter(|seed| fit(&noisy(5, *seed), 0.95).unwrap().slope.unwrap().contains(80.0))
            .count();
        // Five standard deviations of a binomial around 98.3 %.
        assert!((1938..=1996).contains(&held), "{held} of 2000");
    }

    #[test]
    fn few_points_have_a_line_and_no_bounds() {
        let points = [(1.0, 1.0), (2.0, 2.1), (3.0, 2.9), (4.0, 4.0)];
        assert_eq!(fit(&points, 0.95).unwrap().slope, None);
        assert_eq!(fit(&points[..1], 0.95), None);
        assert_eq!(fit(&[(1.0, 1.0), (1.0, 2.0)], 0.95), None);
        assert_eq!(fit(&[(1.0, f64::NAN), (2.0, 2.0)], 0.95), None);
    }

    #[test]
    fn repetitions_of_the_same_x_count_for_what_they_are() {
        // Three of each: the pairs above each other say nothing, and the variance knows it.
        let points: Vec<(f64, f64)> = (0..5).flat_map(|i| [(f64::from(i), 2.0 * f64::from(i)); 3]).collect();
        let found = fit(&points, 0.95).unwrap();
        assert_close(found.line.slope, 2.0, 1e-12);
        assert_eq!(found.slope.map(|slope| (slope.lo, slope.hi)), Some((2.0, 2.0)));
    }
}
