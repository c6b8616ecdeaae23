//! One metric over both versions.

use netaware_record::{Metric, MetricComparison, Preference};
use netaware_stats::bootstrap::{PairedInterval, Resampling, Statistic, hierarchical_difference};
use netaware_stats::interval::Interval;
use netaware_stats::quantile;

use super::{RoundSamples, flow, losses};
use crate::published::{SEED, interval};

/// The difference; `None` where a version has too few samples to tell how they scatter, or one is
/// no number.
pub fn compare_metric(samples: &RoundSamples) -> Option<MetricComparison> {
    let statistic = statistic(samples.metric);
    let of_rounds = samples.shares.is_none().then(|| compare_rounds(samples, statistic)).flatten();
    let (difference, v4, v6) = match (samples.shares, &of_rounds) {
        (Some(shares), _) => {
            (losses::difference(samples, shares)?, shares[0].estimate()?, shares[1].estimate()?)
        }
        (None, Some(OfRounds { compared, figures: [v4, v6], .. })) => (compared.interval, *v4, *v6),
        (None, None) => return None,
    };
    let unlike = of_rounds.as_ref().and_then(|found| found.unlike.clone());
    let (pairs, rounds) =
        of_rounds.map_or_else(|| paired(samples), |found| (found.compared.pairs, found.compared.rounds));
    let margin = margin(samples.metric, v4, v6);
    let needed = MetricComparison::needed(margin, rounds as u64);
    let shown = difference.excludes_zero() && difference.estimate.abs() > needed;
    let winner = better(samples.metric, difference.estimate);
    let doubt = samples
        .doubt
        .clone()
        .or(unlike)
        .or_else(|| flow::is_lower_bound(samples, winner))
        .or_else(|| flow::was_loaded_otherwise(samples, rounds, winner))
        .or_else(|| flow::one_round_is_too_few(samples, rounds, winner));
    Some(MetricComparison {
        metric: samples.metric,
        direction: samples.direction,
        v4,
        v6,
        difference: interval(difference),
        pairs: pairs as u64,
        rounds: rounds as u64,
        margin,
        favours: if shown && doubt.is_none() { winner } else { Preference::NoDifferenceShown },
        host_limited: samples.host_limited,
        doubt: doubt.filter(|_| shown),
    })
}

/// The comparison over rounds.
struct OfRounds {
    /// The comparison of the rounds in which both versions have samples.
    compared: PairedInterval,
    /// The figures of IPv4 and of IPv6, whose difference is the estimate.
    figures: [f64; 2],
    /// Why that difference is not the one of the rounds in which both have samples.
    unlike: Option<String>,
}

/// The difference of the figures, which scatters as it does over the rounds in which both versions
/// have samples.
fn compare_rounds(samples: &RoundSamples, statistic: Statistic) -> Option<OfRounds> {
    let have_both = |(v4, v6): &(&Vec<f64>, &Vec<f64>)| !v4.is_empty() && !v6.is_empty();
    let rounds = samples.rounds_v4.iter().zip(&samples.rounds_v6).filter(have_both);
    let (v4, v6): (Vec<Vec<f64>>, Vec<Vec<f64>>) = rounds.map(|(v4, v6)| (v4.clone(), v6.clone())).unzip();
    let of_all = |rounds: &[Vec<f64>]| value(rounds.iter().map(Vec::as_slice), statistic);
    let [of_v4, of_v6] = samples.figures.or_else(|| Some([of_all(&v4)?, of_all(&v6)?]))?;
    let pairs: usize = v4.iter().zip(&v6).map(|(v4, v6)| v4.len().min(v6.len())).sum();
    let thin = |rounds: Vec<Vec<f64>>| {
        let all: usize = rounds.iter().map(Vec::len).sum();
        thinned(rounds, all.div_ceil(MOST_RESAMPLED), statistic)
    };
    let how = Resampling::new(statistic, SEED);
    let compared = hierarchical_difference(&thin(v4), &thin(v6), BLOCK, &how)?;
    // Of runs of neighbours only the scatter is taken.
    let estimate = of_v6 - of_v4;
    let shift = estimate - compared.interval.estimate;
    let Interval { lo, hi, confidence, .. } = compared.interval;
    let interval = Interval { estimate, lo: lo + shift, hi: hi + shift, confidence };
    let all = samples.rounds_v4.len().max(samples.rounds_v6.len());
    let is_partial = samples.figures.is_some() && compared.rounds < all;
    let alike = ((hi - lo) / 2.0).max(compared.interval.estimate.abs() * ALIKE);
    let unlike = (is_partial && shift.abs() > alike).then(|| {
        format!(
            "in only {} of {all} rounds both versions have a rate, and these rounds do not show it",
            compared.rounds
        )
    });
    Some(OfRounds {
        compared: PairedInterval { interval, pairs, ..compared },
        figures: [of_v4, of_v6],
        unlike,
    })
}

/// Samples of either version that have a partner in the other one, and the rounds that these are
/// of. What has no samples, or one of them, is of one round.
fn paired(samples: &RoundSamples) -> (usize, usize) {
    let pairs = samples.rounds_v4.iter().zip(&samples.rounds_v6).map(|(v4, v6)| v4.len().min(v6.len()));
    let (pairs, rounds) =
        pairs.filter(|pairs| *pairs > 0).fold((0, 0), |(all, rounds), pairs| (all + pairs, rounds + 1));
    if pairs < 2 { (0, 1) } else { (pairs, rounds) }
}

/// Each run of `run` neighbours becomes one value, so that an hour of samples costs no more to
/// resample than a minute.
fn thinned(rounds: Vec<Vec<f64>>, run: usize, statistic: Statistic) -> Vec<Vec<f64>> {
    if run < 2 {
        return rounds;
    }
    let of_round =
        |round: Vec<f64>| round.chunks(run).filter_map(|run| value([run].into_iter(), statistic)).collect();
    rounds.into_iter().map(of_round).collect()
}

/// Rates and losses add up over time, so their mean is what a user gets; of delays the median is
/// what one meets.
fn statistic(metric: Metric) -> Statistic {
    match metric {
        Metric::TcpSingle | Metric::TcpParallel | Metric::UdpLoss | Metric::IdleLoss => Statistic::Mean,
        Metric::IdleRtt | Metric::LoadedRtt | Metric::DelayVariation | Metric::Connect => Statistic::Median,
    }
}

fn value<'a>(rounds: impl Iterator<Item = &'a [f64]>, statistic: Statistic) -> Option<f64> {
    let all: Vec<f64> = rounds.flatten().copied().collect();
    match statistic {
        Statistic::Mean => (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64),
        Statistic::Median => quantile::median(&all),
    }
}

fn better(metric: Metric, difference: f64) -> Preference {
    if (difference > 0.0) == metric.more_is_better() { Preference::V6 } else { Preference::V4 }
}

/// Differences below this are of no consequence to anybody, in the metric's unit.
fn margin(metric: Metric, v4: f64, v6: f64) -> f64 {
    let larger = v4.abs().max(v6.abs());
    match metric {
        Metric::TcpSingle | Metric::TcpParallel => larger * RATE_MARGIN,
        Metric::IdleRtt => (larger * RTT_MARGIN).max(RTT_MARGIN_NS),
        Metric::LoadedRtt | Metric::DelayVariation => (larger * QUEUE_MARGIN).max(QUEUE_MARGIN_NS),
        Metric::Connect => (larger * CONNECT_MARGIN).max(CONNECT_MARGIN_NS),
        Metric::UdpLoss | Metric::IdleLoss => LOSS_MARGIN,
    }
}

/// A difference of some rounds shows that of all if they differ by no more than this share of it.
const ALIKE: f64 = 0.25;
/// The bootstrap's cost is 2000 times this: a tenth of a second.
const MOST_RESAMPLED: usize = 4000;
/// Pairs of neighbours kept together: a burst of cross traffic lasts over several slices or round
/// trips.
pub(super) const BLOCK: usize = 5;
/// Headers alone make IPv6 slower by 1.4 % at 1500 bytes; nobody chooses a version for 5 %, and
/// short transfers differ by that.
const RATE_MARGIN: f64 = 0.05;
/// Repeated runs over the same path differ by about this.
const RTT_MARGIN: f64 = 0.05;
/// 50 us: within the wake-up noise of a virtual machine.
const RTT_MARGIN_NS: f64 = 50_000.0;
/// Queues under load vary from run to run by more than idle paths do.
const QUEUE_MARGIN: f64 = 0.2;
/// 0.5 ms: no call and no game notices.
const QUEUE_MARGIN_NS: f64 = 500_000.0;
/// As for loaded delays: the responder's accept loop is in it.
const CONNECT_MARGIN: f64 = 0.1;
/// 0.2 ms.
const CONNECT_MARGIN_NS: f64 = 200_000.0;
/// A tenth of a percentage point of datagrams; concealment of audio and video copes with more.
const LOSS_MARGIN: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_a_round_become_one_value_and_what_is_left_at_its_end_another() {
        let rounds = || vec![vec![1.0, 3.0, 5.0, 7.0, 9.0], vec![], vec![4.0]];
        let rows = [
            (1, Statistic::Mean, rounds()),
            (2, Statistic::Mean, vec![vec![2.0, 6.0, 9.0], vec![], vec![4.0]]),
            (3, Statistic::Median, vec![vec![3.0, 8.0], vec![], vec![4.0]]),
            (4, Statistic::Mean, vec![vec![4.0, 9.0], vec![], vec![4.0]]),
        ];
        for (run, statistic, want) in rows {
            assert_eq!(thinned(rounds(), run, statistic), want, "{run}");
        }
    }
}
