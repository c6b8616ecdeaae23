//! One metric over both versions.

use netaware_record::{Metric, MetricComparison, Preference};
use netaware_stats::bootstrap::{PairedInterval, Resampling, Statistic, hierarchical_difference};
use netaware_stats::interval::Interval;
use netaware_stats::quantile;

use super::{Counts, RoundSamples};
use crate::loss_split::wilson;
use crate::published::{SEED, interval};

/// The difference; `None` when there are fewer than two samples on either side, or one is no number.
pub fn compare_metric(samples: &RoundSamples) -> Option<MetricComparison> {
    let statistic = statistic(samples.metric);
    let has_both = |(v4, v6): &(&Vec<f64>, &Vec<f64>)| !v4.is_empty() && !v6.is_empty();
    let rounds: Vec<_> = samples.rounds_v4.iter().zip(&samples.rounds_v6).filter(has_both).collect();
    let largest: usize = rounds.iter().map(|(v4, v6)| v4.len().max(v6.len())).sum();
    let thin = |round: &[f64]| thinned(round, largest.div_ceil(MOST_RESAMPLED), statistic);
    let thinned: Vec<_> = rounds.iter().map(|(v4, v6)| (thin(v4), thin(v6))).collect();
    let borrowed: Vec<_> = thinned.iter().map(|(v4, v6)| (&v4[..], &v6[..])).collect();
    let resampled = hierarchical_difference(&borrowed, BLOCK, &Resampling::new(statistic, SEED));
    let counted = samples.counts.and_then(counted);
    // A stream of which nothing came has no slices, and its counts say enough.
    let compared = resampled.or_else(|| Some(by_counts(counted?)))?;
    let (shown, compared_interval) = if let Some((shown, bounds)) = counted {
        (shown, moved(compared.interval, shown).widened_to(bounds.0, bounds.1))
    } else {
        let shown = Shown {
            v4: value(rounds.iter().map(|(v4, _)| &v4[..]), statistic)?,
            v6: value(rounds.iter().map(|(_, v6)| &v6[..]), statistic)?,
        };
        (shown, moved(compared.interval, shown))
    };
    let margin = margin(samples.metric, shown.v4, shown.v6);
    let is_one_turn = compared.rounds < 2 && takes_turns(samples.metric);
    let needed = if compared.rounds < 2 { margin * ONE_ROUND } else { margin };
    let estimate = compared_interval.estimate;
    let interval_of_all = if is_one_turn {
        compared_interval.widened_to(estimate - needed, estimate + needed)
    } else {
        compared_interval
    };
    let better = better(samples.metric, estimate);
    let is_shown = interval_of_all.excludes_zero() && estimate.abs() > needed;
    let is_bound = samples.lower_bounds.iter().any(|version| Preference::from(*version) != better);
    Some(MetricComparison {
        metric: samples.metric,
        direction: samples.direction,
        v4: shown.v4,
        v6: shown.v6,
        difference: interval(interval_of_all),
        pairs: rounds.iter().map(|(v4, v6)| v4.len().min(v6.len()) as u64).sum(),
        rounds: compared.rounds as u64,
        margin,
        favours: if is_shown && !is_bound { better } else { Preference::NoDifferenceShown },
        host_limited: samples.host_limited,
        lower_bounds: samples.lower_bounds.clone(),
    })
}

/// What a reader sees of both versions.
#[derive(Clone, Copy)]
struct Shown {
    v4: f64,
    v6: f64,
}

/// The interval around the difference of what is shown, where thinning or counts moved that.
fn moved(interval: Interval, shown: Shown) -> Interval {
    let by = shown.v6 - shown.v4 - interval.estimate;
    Interval { estimate: interval.estimate + by, lo: interval.lo + by, hi: interval.hi + by, ..interval }
}

/// Shares of lost datagrams, and Newcombe's bounds of their difference (1998, method 10).
fn counted(counts: Counts) -> Option<(Shown, (f64, f64))> {
    let of = |(lost, sent): (u64, u64)| wilson(lost.min(sent), sent);
    let (v4, v6) = (of(counts.v4)?, of(counts.v6)?);
    let difference = v6.estimate - v4.estimate;
    let below = (v6.estimate - v6.lo).hypot(v4.hi - v4.estimate);
    let above = (v6.hi - v6.estimate).hypot(v4.estimate - v4.lo);
    Some((Shown { v4: v4.estimate, v6: v6.estimate }, (difference - below, difference + above)))
}

/// What counts say by themselves, of one round.
fn by_counts((shown, (lo, hi)): (Shown, (f64, f64))) -> PairedInterval {
    let interval = Interval { estimate: shown.v6 - shown.v4, lo, hi, confidence: 0.95 };
    PairedInterval { interval, pairs: 0, rounds: 1 }
}

/// Whether a version has one turn for it in each round, and the other one after it.
fn takes_turns(metric: Metric) -> bool {
    match metric {
        Metric::TcpSingle | Metric::TcpParallel | Metric::LoadedRtt | Metric::UdpLoss => true,
        Metric::IdleRtt | Metric::DelayVariation | Metric::Connect => false,
    }
}

/// Each run of `run` neighbours becomes one value, so that an hour of samples costs no more to
/// resample than a minute.
fn thinned(round: &[f64], run: usize, statistic: Statistic) -> Vec<f64> {
    if run < 2 {
        return round.to_vec();
    }
    round.chunks(run).filter_map(|run| value([run].into_iter(), statistic)).collect()
}

/// Rates and losses add up over time, so their mean is what a user gets; of delays the median is
/// what one meets.
fn statistic(metric: Metric) -> Statistic {
    match metric {
        Metric::TcpSingle | Metric::TcpParallel | Metric::UdpLoss => Statistic::Mean,
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
        Metric::UdpLoss => LOSS_MARGIN,
    }
}

/// The bootstrap's cost is 2000 times this: a tenth of a second.
const MOST_RESAMPLED: usize = 4000;
/// Pairs of neighbours kept together: a burst of cross traffic lasts over several slices or round
/// trips.
const BLOCK: usize = 5;
/// With a single round nothing is known of how rounds differ: a difference must be this many
/// margins to count.
const ONE_ROUND: f64 = 3.0;
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
    fn neighbours_become_one_value_and_what_is_left_at_the_end_another() {
        let round = [1.0, 3.0, 5.0, 7.0, 9.0];
        let rows = [
            (1, Statistic::Mean, vec![1.0, 3.0, 5.0, 7.0, 9.0]),
            (2, Statistic::Mean, vec![2.0, 6.0, 9.0]),
            (3, Statistic::Median, vec![3.0, 8.0]),
            (4, Statistic::Mean, vec![4.0, 9.0]),
        ];
        for (run, statistic, want) in rows {
            assert_eq!(thinned(&round, run, statistic), want, "{run}");
        }
        assert!(thinned(&[], 3, Statistic::Mean).is_empty());
    }
}
