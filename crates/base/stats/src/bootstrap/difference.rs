//! How far two groups lie apart that were measured at different times, so that nothing pairs them.
//!
//! Assumes that the samples of each group are independent: groups that drift, or samples taken
//! close to each other, make the interval too narrow. What a nominal 95 % reaches for normal noise,
//! simulated over 2000 repetitions: the mean of five samples on each side 88 %, of twenty 93 %; the
//! median 96 % with either.
//!
//! Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993, §8.3 (two-sample
//! problem).

use super::{FEWEST_RESAMPLES, MOST_RESAMPLES, Resampling};
use crate::interval::Interval;
use crate::quantile::linear;
use crate::rng::SplitMix64;

/// The statistic of `second` minus that of `first`, and the percentile interval of that difference:
/// each group is resampled by itself.
///
/// `None` below two samples in either group, for a sample that is not finite, or a `confidence`
/// outside (0, 1).
pub fn difference(first: &[f64], second: &[f64], how: &Resampling) -> Option<Interval> {
    let confidence = how.confidence;
    let sound = first.len() > 1 && second.len() > 1 && first.iter().chain(second).all(|x| x.is_finite());
    if !(sound && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let estimate = how.statistic.of(&mut second.to_vec())? - how.statistic.of(&mut first.to_vec())?;
    let mut rng = SplitMix64::new(how.seed);
    let mut drawn = Vec::with_capacity(first.len().max(second.len()));
    let mut of_resample = |group: &[f64]| {
        drawn.clear();
        drawn.extend((0..group.len()).map(|_| group[rng.below(group.len())]));
        how.statistic.of(&mut drawn)
    };
    let mut differences: Vec<f64> = (0..how.resamples.clamp(FEWEST_RESAMPLES, MOST_RESAMPLES))
        .filter_map(|_| Some(-of_resample(first)? + of_resample(second)?))
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    let (lo, hi) = (linear(&differences, tail)?, linear(&differences, 1.0 - tail)?);
    Some(Interval { estimate, lo: estimate, hi: estimate, confidence }.widened_to(lo, hi))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Statistic;
    use crate::truth::{assert_close, normal};

    fn noise(rng: &mut SplitMix64, n: usize, centre: f64) -> Vec<f64> {
        (0..n).map(|_| centre + normal(rng)).collect()
    }

    #[test]
    fn the_width_is_that_of_normal_theory() {
        let mut rng = SplitMix64::new(11);
        let (first, second) = (noise(&mut rng, 1600, 3.0), noise(&mut rng, 400, 5.0));
        let found = difference(&first, &second, &Resampling::new(Statistic::Mean, 1)).unwrap();
        // Variances of the means add up: 1/1600 + 1/400.
        assert_close(found.width(), 2.0 * 1.96 * (1.0 / 1600.0 + 1.0 / 400.0_f64).sqrt(), 0.02);
        assert!(found.contains(2.0) && found.excludes_zero(), "{found:?}");
    }

    /// Share of simulated pairs of groups whose 95 % interval holds the true difference.
    fn covered(statistic: Statistic, samples: usize, repetitions: u32) -> f64 {
        let mut rng = SplitMix64::new(12);
        let hits = (0..repetitions).filter(|seed| {
            let (first, second) = (noise(&mut rng, samples, 0.0), noise(&mut rng, samples, 1.0));
            let how = Resampling { resamples: 200, ..Resampling::new(statistic, u64::from(*seed)) };
            difference(&first, &second, &how).is_some_and(|found| found.contains(1.0))
        });
        hits.count() as f64 / f64::from(repetitions)
    }

    #[test]
    fn twenty_samples_each_reach_what_is_promised() {
        for statistic in [Statistic::Mean, Statistic::Median] {
            let reached = covered(statistic, 20, 400);
            assert!(reached >= 0.90, "{statistic:?}: {reached}");
        }
    }

    #[test]
    fn the_mean_of_five_reaches_less_than_it_promises_and_the_median_does_not() {
        // If the first rises above 0.92 the module documentation undersells us.
        let mean = covered(Statistic::Mean, 5, 400);
        assert!((0.80..0.92).contains(&mean), "{mean}");
        let median = covered(Statistic::Median, 5, 400);
        assert!(median >= 0.93, "{median}");
    }

    #[test]
    fn exchanging_the_groups_exchanges_the_sign() {
        let how = Resampling::new(Statistic::Median, 5);
        let (first, second) = ([1.0, 2.0, 3.0], [11.0, 12.0, 13.0]);
        assert_close(difference(&first, &second, &how).unwrap().estimate, 10.0, 1e-12);
        assert_close(difference(&second, &first, &how).unwrap().estimate, -10.0, 1e-12);
    }

    #[test]
    fn without_two_samples_on_each_side_there_is_no_interval() {
        let how = Resampling::new(Statistic::Mean, 1);
        assert_eq!(difference(&[1.0], &[1.0, 2.0], &how), None);
        assert_eq!(difference(&[1.0, 2.0], &[], &how), None);
        assert_eq!(difference(&[1.0, f64::NAN], &[1.0, 2.0], &how), None);
        assert_eq!(difference(&[1.0, 2.0], &[1.0, 2.0], &Resampling { confidence: 0.0, ..how }), None);
    }
}
