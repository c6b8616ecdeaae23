//! The difference of two shares of losses, and how certain it is.
//!
//! **Measures** the difference IPv6 minus IPv4 of the shares that were lost, with Newcombe's
//! interval for as many packets as would tell as much if each of them were lost by itself: those
//! that were observed, divided by the design effect. That is how many times larger than for
//! losses one by one the variance is. It is found at four scales, from short to long: from the
//! number of rows in which packets were lost (Gilbert's model), from slices, from batches of
//! five slices within their rounds, and from rounds. A scale adds only what is more than the
//! shorter ones and chance explain, so that losses one by one keep the interval of their counts.
//! Both versions get the same effect: a version that lost nothing does not show how its losses
//! would have come. **Assumes** that slices of a version hold about as many packets each.
//! **Biased** towards a narrow interval where losses vary over times longer than a batch: rounds
//! alone show that, and two rounds show it only where they are far apart. **Published**: Newcombe,
//! Statistics in Medicine 1998, method 10; Kish, "Survey Sampling", 1965, §8.2 (design effect);
//! Gilbert, Bell System Technical Journal 1960; the order of the scales is ours.

use netaware_stats::interval::Interval;

use super::metric::BLOCK;
use super::{RoundSamples, Share};
use crate::loss_split::wilson_of_share;

/// The difference of these shares, whose losses came as the samples show.
pub(super) fn difference(samples: &RoundSamples, shares: [Share; 2]) -> Option<Interval> {
    let estimates = [shares[0].estimate()?, shares[1].estimate()?];
    let effect = design_effect(samples, shares, estimates);
    let [v4, v6] = [0, 1].map(|n: usize| wilson_of_share(estimates[n], shares[n].of as f64 / effect));
    let estimate = v6.estimate - v4.estimate;
    let lo = estimate - (v6.estimate - v6.lo).hypot(v4.hi - v4.estimate);
    let hi = estimate + (v6.hi - v6.estimate).hypot(v4.estimate - v4.lo);
    Some(Interval { estimate, lo, hi, confidence: 0.95 })
}

impl Share {
    /// The part as a share of the whole; `None` of nothing.
    pub(super) fn estimate(self) -> Option<f64> {
        (self.of > 0).then(|| self.part.min(self.of) as f64 / self.of as f64)
    }
}

/// How many times larger the variance of the difference is than that of losses one by one; at
/// least 1.
fn design_effect(samples: &RoundSamples, shares: [Share; 2], estimates: [f64; 2]) -> f64 {
    let expected = [0, 1].map(|n: usize| variance(estimates[n], shares[n]));
    let all = expected[0] + expected[1];
    if all <= 0.0 {
        return 1.0;
    }
    let rows =
        [0, 1].map(|n: usize| samples.runs[n].map_or(1.0, |runs| of_rows(shares[n], estimates[n], runs)));
    let by_rows = (expected[0] * rows[0] + expected[1] * rows[1]) / all;
    let within = [1, BLOCK].into_iter().filter_map(|length| Scatter::within(samples, shares, length));
    within.chain(Scatter::between(samples, shares)).fold(by_rows, |effect, scatter| {
        effect + (scatter.times - by_chance(scatter.degrees) * effect).max(0.0)
    })
}

/// The variance of a share if each packet is lost by itself.
fn variance(estimate: f64, share: Share) -> f64 {
    estimate * (1.0 - estimate) / share.of as f64
}

/// The design effect of losses in so many rows: `(1 + r) / (1 - r)`, where `r` is the correlation
/// of neighbours in Gilbert's model, whose rows are as long as these on average. By chance rows are
/// `1 / (1 - estimate)` long, which makes it 1.
fn of_rows(share: Share, estimate: f64, runs: u64) -> f64 {
    let length = share.part as f64 / runs.max(1) as f64;
    (2.0 * length * (1.0 - estimate) - 1.0).max(1.0)
}

/// How the losses of slices scatter.
struct Scatter {
    /// The variance of the difference that follows from it, in multiples of that of losses one by
    /// one.
    times: f64,
    /// Degrees of freedom it rests on.
    degrees: usize,
}

impl Scatter {
    /// The scatter of batches of so many neighbouring slices around the mean of their round. A
    /// version that lost nothing has none.
    fn within(samples: &RoundSamples, shares: [Share; 2], length: usize) -> Option<Self> {
        let both = [(&samples.rounds_v4, shares[0]), (&samples.rounds_v6, shares[1])];
        let (mut found, mut expected, mut degrees) = (0.0, 0.0, 0);
        for (rounds, share) in both {
            let slices = rounds.concat();
            let if_apart = mean(&slices).map_or(0.0, |level| variance(level, share));
            if if_apart <= 0.0 {
                continue;
            }
            let (mut squares, mut free) = (0.0, 0.0);
            for round in rounds {
                let Some(level) = mean(round) else { continue };
                let batches = round.len().div_ceil(length);
                let off = |batch: &[f64]| batch.iter().sum::<f64>() - batch.len() as f64 * level;
                squares += round.chunks(length).map(|batch| off(batch).powi(2)).sum::<f64>();
                free += round.len() as f64 * (1.0 - 1.0 / batches as f64);
                degrees += batches - 1;
            }
            if free > 0.0 {
                found += squares / (slices.len() as f64 * free);
                expected += if_apart;
            }
        }
        (expected > 0.0).then(|| Self { times: found / expected, degrees })
    }

    /// The scatter of the differences of rounds around their mean.
    fn between(samples: &RoundSamples, shares: [Share; 2]) -> Option<Self> {
        let of_round =
            |(v4, v6): (&Vec<f64>, &Vec<f64>)| Some((v4.len().min(v6.len()) as f64, mean(v6)? - mean(v4)?));
        let rounds: Vec<(f64, f64)> =
            samples.rounds_v4.iter().zip(&samples.rounds_v6).filter_map(of_round).collect();
        let degrees = rounds.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
        let level_v4 = mean(&samples.rounds_v4.concat())?;
        let level_v6 = mean(&samples.rounds_v6.concat())?;
        let expected = variance(level_v4, shares[0]) + variance(level_v6, shares[1]);
        let weights: f64 = rounds.iter().map(|(weight, _)| weight).sum();
        let level = rounds.iter().map(|(weight, of)| weight * of).sum::<f64>() / weights;
        let squares: f64 = rounds.iter().map(|(weight, of)| weight * (of - level).powi(2)).sum();
        let found = squares / (weights * degrees as f64);
        (expected > 0.0).then(|| Self { times: found / expected, degrees })
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The multiple of a variance that its estimate from so many degrees of freedom exceeds by chance
/// in one of twenty cases: chi-square by degree, as Wilson and Hilferty (1931) approximate it.
fn by_chance(degrees: usize) -> f64 {
    let part = 2.0 / (9.0 * degrees as f64);
    (1.0 - part + Z95_ONE_SIDED * part.sqrt()).powi(3)
}

/// The normal distribution's one-sided 95 % point.
const Z95_ONE_SIDED: f64 = 1.644_853_626_951_472_7;

#[cfg(test)]
mod tests {
    use netaware_record::{Direction, Metric, Preference};

    use super::*;
    use crate::compare::compare_metric;

    /// 400 idle requests over each version in 40 slices, of which those of IPv4 lost some, by
    /// round and slice, in so many rows.
    fn idle(rounds_v4: Vec<Vec<f64>>, runs: u64) -> RoundSamples {
        let part = (rounds_v4.concat().iter().sum::<f64>() * 10.0).round() as u64;
        let rounds_v6 = rounds_v4.iter().map(|round| vec![0.0; round.len()]).collect();
        RoundSamples {
            metric: Metric::IdleLoss,
            direction: Direction::RoundTrip,
            rounds_v4,
            rounds_v6,
            figures: None,
            shares: Some([Share { part, of: 400 }, Share { part: 0, of: 400 }]),
            runs: [Some(runs), None],
            lower_bounds: [false; 2],
            loads: None,
            host_limited: false,
            doubt: None,
        }
    }

    /// So many slices, of which so many lost one request each, as evenly as can be.
    fn apart(slices: usize, lossy: usize) -> Vec<f64> {
        let is_lossy = |n: usize| n * lossy / slices != (n + 1) * lossy / slices;
        (0..slices).map(|n| if is_lossy(n) { 0.1 } else { 0.0 }).collect()
    }

    /// 21 of 400 lost one by one and 0 of 400 had a difference of -15 % to +6 %: two rounds of
    /// unlike luck were all that Student's t looked at.
    #[test]
    fn losses_one_by_one_are_as_certain_as_their_counts() {
        let alike = idle(vec![apart(20, 11), apart(20, 10)], 20);
        let by_counts = RoundSamples { rounds_v4: Vec::new(), rounds_v6: Vec::new(), ..alike.clone() };
        let (found, counted) = (compare_metric(&alike).unwrap(), compare_metric(&by_counts).unwrap());
        assert_eq!((found.favours, found.rounds, found.pairs), (Preference::V6, 2, 40));
        assert_eq!(found.difference, counted.difference);
        assert!(found.difference.lo > -0.0794 && found.difference.hi < -0.032, "{found:?}");
        // 18 in the first 250 and 3 in the last 150 is about the most that chance does.
        let unlike = compare_metric(&idle(vec![apart(25, 18), apart(15, 3)], 20)).unwrap();
        assert_eq!(unlike.favours, Preference::V6, "{unlike:?}");
        assert!(unlike.difference.lo < found.difference.lo && unlike.difference.hi > found.difference.hi);
    }

    #[test]
    fn as_many_losses_in_a_few_rows_or_in_one_of_two_rounds_are_no_difference() {
        let in_rows = idle(vec![apart(20, 11), apart(20, 10)], 3);
        let in_slices = idle(vec![[vec![0.7; 3], vec![0.0; 17]].concat(), vec![0.0; 20]], 20);
        let in_one_round = idle(vec![vec![0.2; 20], vec![0.0; 20]], 38);
        for samples in [in_rows, in_slices, in_one_round] {
            let found = compare_metric(&samples).unwrap();
            assert!(!found.difference.excludes_zero(), "{found:?}");
        }
    }

    #[test]
    fn a_steady_loss_of_most_packets_has_long_rows_by_chance() {
        let share = |part, of| Share { part, of };
        assert!((of_rows(share(900, 1000), 0.9, 90) - 1.0).abs() < 1e-9);
        assert!((of_rows(share(34, 1000), 0.034, 12) - 4.474).abs() < 1e-3);
        assert!((of_rows(share(35, 200), 0.175, 0) - 56.75).abs() < 1e-9, "one row at least");
    }

    #[test]
    fn the_scatter_that_chance_allows_is_that_of_chi_square() {
        for (degrees, want) in [(1, 3.84), (3, 2.60), (19, 1.587), (100, 1.243)] {
            assert!((by_chance(degrees) / want - 1.0).abs() < 0.03, "{degrees}: {}", by_chance(degrees));
        }
    }
}
