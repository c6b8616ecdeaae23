//! Medians, percentiles and moments of what was timed.

use netaware_stats::moments::Moments;
use netaware_stats::quantile::linear;

/// The middle one; sorts. Zero of nothing.
pub(super) fn median(of: &mut [f64]) -> f64 {
    quantile(of, 0.5)
}

/// Sorts. Zero of nothing.
pub(super) fn quantile(of: &mut [f64], q: f64) -> f64 {
    of.sort_unstable_by(f64::total_cmp);
    linear(of, q).unwrap_or(0.0)
}

/// Mean and standard deviation; zero where there are too few.
pub(super) fn mean_and_sd(of: &[f64]) -> (f64, f64) {
    let mut moments = Moments::default();
    for value in of {
        moments.observe(*value);
    }
    (moments.mean().unwrap_or(0.0), moments.sd().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_median_and_one_value_no_deviation() {
        assert_eq!((median(&mut []), mean_and_sd(&[])), (0.0, (0.0, 0.0)));
        assert_eq!((median(&mut [3.0]), mean_and_sd(&[3.0])), (3.0, (3.0, 0.0)));
    }

    #[test]
    fn order_does_not_matter() {
        let of = (median(&mut [5.0, 1.0, 3.0]), quantile(&mut [4.0, 0.0, 3.0, 1.0, 2.0], 0.75));
        assert_eq!((of, mean_and_sd(&[1.0, 2.0, 3.0])), ((3.0, 3.0), (2.0, 1.0)));
    }
}
