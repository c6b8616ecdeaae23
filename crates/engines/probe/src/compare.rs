//! IPv4 beside IPv6: which one does better, for which use, and is the difference real?
//!
//! **Measures** the paired difference IPv6 minus IPv4 of each metric: mean of rates and losses,
//! median of delays. A pair is two samples of the same round and the same place in it, so that what
//! drifts from round to round hits both alike. The interval is the hierarchical bootstrap of
//! [`netaware_stats::bootstrap`], joined with Student's t over the rounds. **Assumes** that rounds
//! alternate (ABBA), else a drift within rounds looks like a difference. **Biased**: with two
//! rounds the interval covers 87 % instead of 95 % where rounds differ a lot; with one it knows
//! nothing of other rounds, and we ask for a difference three times the margin. The estimate is the
//! median of differences, which is not the difference of the medians shown beside it. A version is
//! favoured only if the interval excludes zero **and** the difference exceeds the margin; "no
//! difference shown" is no proof of equality. Each metric is judged at 95 % by itself: of twenty
//! comparisons of equal paths one may favour somebody. **Published**: Davison and Hinkley 1997
//! §3.8; margins of relevance as in equivalence testing (Schuirmann 1987), their values are ours
//! and stand at the end of `compare/metric.rs`.

mod metric;
mod verdict;

use netaware_record::{Comparison, Direction, Metric};

pub use metric::compare_metric;

/// Samples of one metric over both versions, in its unit (bit/s, ns, fraction), by round and in the
/// order measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundSamples {
    /// Of what.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// IPv4: `rounds_v4[r]` is compared with `rounds_v6[r]`, sample by sample; what has no partner
    /// is left out.
    pub rounds_v4: Vec<Vec<f64>>,
    /// IPv6.
    pub rounds_v6: Vec<Vec<f64>>,
    /// A host and not the network set at least one of the values.
    pub host_limited: bool,
}

/// Versions that could not be measured at all, and why, in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unreached<'a> {
    /// IPv4.
    pub v4: Option<&'a str>,
    /// IPv6.
    pub v6: Option<&'a str>,
}

/// Compares every metric that both versions have, and gives one verdict for each use.
pub fn compare(samples: &[RoundSamples], unreached: Unreached<'_>) -> Comparison {
    let metrics: Vec<_> = samples.iter().filter_map(compare_metric).collect();
    let verdicts = verdict::all(&metrics, unreached);
    Comparison { metrics, verdicts }
}

#[cfg(test)]
mod tests;
