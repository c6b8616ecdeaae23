//! How far two things differ that were measured in turns, in a few rounds.
//!
//! Unlike [`super::hierarchical_paired`] nothing pairs the samples of a round: the two were measured
//! one after the other, and may have a different number of samples. Rounds pair them, so what
//! drifts from round to round hits both alike. Rounds are drawn with replacement, and in each drawn
//! round blocks of neighbours of either group. The estimate is the difference of the two statistics
//! that a reader sees, so the interval always holds it.
//!
//! The interval is the union of the percentile interval and of Student's t interval over the
//! differences of the rounds, with the same degrees of freedom as for pairs, and for the same
//! reason. With one round it knows nothing of other rounds and is too narrow.

use super::{FEWEST_DEGREES, FEWEST_RESAMPLES, MOST_RESAMPLES, PairedInterval, Resampling, draw_blocks};
use crate::distribution::student_t_two_sided;
use crate::interval::Interval;
use crate::moments::Moments;
use crate::quantile::linear;
use crate::rng::SplitMix64;

/// The statistic of the second group minus that of the first, over all rounds that have both.
///
/// `pairs` of the result counts, in each round, the samples of the group that has fewer. `None`
/// below two of these, for a sample that is not finite, or a `confidence` outside (0, 1).
pub fn hierarchical_difference(
    rounds: &[(&[f64], &[f64])],
    block: usize,
    how: &Resampling,
) -> Option<PairedInterval> {
    let has_both = |(first, second): &(&[f64], &[f64])| !first.is_empty() && !second.is_empty();
    let rounds: Vec<(&[f64], &[f64])> = rounds.iter().copied().filter(has_both).collect();
    let pairs = rounds.iter().map(|(first, second)| first.len().min(second.len())).sum();
    let confidence = how.confidence;
    let is_finite = rounds.iter().all(|(first, second)| first.iter().chain(*second).all(|x| x.is_finite()));
    if pairs < 2 || !is_finite || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let mut groups = (Vec::new(), Vec::new());
    let difference = |(first, second): &mut (Vec<f64>, Vec<f64>)| {
        Some(-how.statistic.of(first)? + how.statistic.of(second)?)
    };
    for (first, second) in &rounds {
        groups.0.extend_from_slice(first);
        groups.1.extend_from_slice(second);
    }
    let estimate = difference(&mut groups)?;
    let mut rng = SplitMix64::new(how.seed);
    let mut differences: Vec<f64> = (0..how.resamples.clamp(FEWEST_RESAMPLES, MOST_RESAMPLES))
        .filter_map(|_| {
            groups.0.clear();
            groups.1.clear();
            for _ in 0..rounds.len() {
                let (first, second) = rounds[rng.below(rounds.len())];
                draw_blocks(first, block, &mut groups.0, &mut rng);
                draw_blocks(second, block, &mut groups.1, &mut rng);
            }
            difference(&mut groups)
        })
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    let (lo, hi) = (linear(&differences, tail)?, linear(&differences, 1.0 - tail)?);
    let mut interval = Interval { estimate, lo: estimate, hi: estimate, confidence }.widened_to(lo, hi);
    let of_rounds: Moments = rounds
        .iter()
        .filter_map(|(first, second)| difference(&mut (first.to_vec(), second.to_vec())))
        .collect();
    if let Some((lo, hi)) = between(&of_rounds, confidence) {
        interval = interval.widened_to(lo, hi);
    }
    Some(PairedInterval { interval, pairs, rounds: rounds.len() })
}

/// Student's t interval over what the rounds say; `None` for a single one.
fn between(of_rounds: &Moments, confidence: f64) -> Option<(f64, f64)> {
    let degrees = (of_rounds.count() - 1).max(FEWEST_DEGREES);
    let error = of_rounds.sd()? / (of_rounds.count() as f64).sqrt();
    let half = student_t_two_sided(confidence, degrees)? * error;
    let mean = of_rounds.mean()?;
    Some((mean - half, mean + half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Statistic;
    use crate::truth::normal;

    fn noise(rng: &mut SplitMix64, n: usize, centre: f64) -> Vec<f64> {
        (0..n).map(|_| centre + normal(rng)).collect()
    }

    #[test]
    fn the_estimate_is_the_difference_of_what_is_shown_and_the_interval_holds_it() {
        let mut rng = SplitMix64::new(5);
        for statistic in [Statistic::Mean, Statistic::Median] {
            for (few, many) in [(20, 300), (300, 20)] {
                let (first, second) = (noise(&mut rng, few, 3.0), noise(&mut rng, many, 5.0));
                let how = Resampling::new(statistic, 1);
                let found = hierarchical_difference(&[(&first, &second)], 5, &how).unwrap();
                let want =
                    statistic.of(&mut second.clone()).unwrap() - statistic.of(&mut first.clone()).unwrap();
                assert!((found.interval.estimate - want).abs() < 1e-12);
                assert!(found.interval.contains(want), "{found:?}");
                assert_eq!((found.pairs, found.rounds), (20, 1));
            }
        }
    }

    #[test]
    fn what_drifts_from_round_to_round_hits_both_alike() {
        let mut rng = SplitMix64::new(6);
        let hits = (0..200_u64).filter(|seed| {
            let rounds: Vec<(Vec<f64>, Vec<f64>)> = (0..4)
                .map(|round| {
                    let drift = f64::from(round) * 3.0;
                    (noise(&mut rng, 40, drift), noise(&mut rng, 60, drift + 1.0))
                })
                .collect();
            let rounds: Vec<(&[f64], &[f64])> = rounds.iter().map(|(a, b)| (&a[..], &b[..])).collect();
            let how = Resampling { resamples: 200, ..Resampling::new(Statistic::Mean, *seed) };
            hierarchical_difference(&rounds, 5, &how).is_some_and(|found| found.interval.contains(1.0))
        });
        assert!(hits.count() >= 184);
    }

    #[test]
    fn what_cannot_be_compared_has_no_interval() {
        let how = Resampling::new(Statistic::Mean, 1);
        let rows: [&[(&[f64], &[f64])]; 4] =
            [&[], &[(&[1.0], &[2.0, 3.0])], &[(&[1.0, 2.0], &[])], &[(&[1.0, f64::NAN], &[2.0, 3.0])]];
        for rounds in rows {
            assert_eq!(hierarchical_difference(rounds, 5, &how), None);
        }
    }
}
