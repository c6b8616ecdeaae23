//! One metric over both versions.

use netaware_record::{Metric, MetricComparison, Preference};
use netaware_stats::bootstrap::{Resampling, Statistic, hierarchical_paired};
use netaware_stats::quantile;

use super::RoundSamples;
use crate::published::{SEED, interval};

/// The paired difference; `None` when fewer than two pairs can be made, or a sample is no number.
pub fn compare_metric(samples: &RoundSamples) -> Option<MetricComparison> {
    let pairs: Vec<(&[f64], &[f64])> =
        samples.rounds_v4.iter().zip(&samples.rounds_v6).map(cut_to_pairs).collect();
    let differences: Vec<Vec<f64>> =
        pairs.iter().map(|(v4, v6)| v6.iter().zip(*v4).map(|(v6, v4)| v6 - v4).collect()).collect();
    let statistic = statistic(samples.metric);
    let all_pairs: usize = differences.iter().map(Vec::len).sum();
    let thinned = thinned(differences, all_pairs.div_ceil(MOST_RESAMPLED), statistic);
    let compared = hierarchical_paired(&thinned, BLOCK, &Resampling::new(statistic, SEED))?;
    let v4 = value(pairs.iter().map(|(v4, _)| *v4), statistic)?;
    let v6 = value(pairs.iter().map(|(_, v6)| *v6), statistic)?;
    let margin = margin(samples.metric, v4, v6);
    let needed = if compared.rounds < 2 { margin * ONE_ROUND } else { margin };
    let shown = compared.interval.excludes_zero() && compared.interval.estimate.abs() > needed;
    Some(MetricComparison {
        metric: samples.metric,
        direction: samples.direction,
        v4,
        v6,
        difference: interval(compared.interval),
        pairs: all_pairs as u64,
        rounds: compared.rounds as u64,
        margin,
        favours: if shown {
            better(samples.metric, compared.interval.estimate)
        } else {
            Preference::NoDifferenceShown
        },
        host_limited: samples.host_limited,
    })
}

fn cut_to_pairs<'a>((v4, v6): (&'a Vec<f64>, &'a Vec<f64>)) -> (&'a [f64], &'a [f64]) {
    let pairs = v4.len().min(v6.len());
    (&v4[..pairs], &v6[..pairs])
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
