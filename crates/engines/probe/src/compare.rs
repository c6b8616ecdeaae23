//! IPv4 beside IPv6: which one does better, for which use, and is the difference real?
//!
//! **Measures** the difference IPv6 minus IPv4 of each metric: of the means of rates and losses, of
//! the medians of delays, over the rounds that have both. What drifts from round to round hits both
//! alike. The interval is that of [`netaware_stats::bootstrap::hierarchical_difference`]; that of a
//! loss is joined with Newcombe's for two counts, because no loss among few datagrams is no proof
//! of none. **Assumes** that rounds alternate (ABBA), else a drift within rounds looks like a
//! difference. **Biased**: with two rounds the interval covers 87 % instead of 95 % where rounds
//! differ a lot; with one it knows nothing of other rounds, so it is widened by three times the
//! margin, and a difference must exceed that. A version is favoured only if the interval excludes
//! zero **and** the difference exceeds the margin; "no difference shown" is no proof of equality. A
//! rate that is a lower bound, because TCP was still speeding up, loses to nobody. Each metric is
//! judged at 95 % by itself: of twenty comparisons of equal paths one may favour somebody.
//! **Published**: Davison and Hinkley 1997 §3.8; Newcombe 1998, method 10; margins of relevance as
//! in equivalence testing (Schuirmann 1987), their values are ours and stand at the end of
//! `compare/metric.rs`.

mod metric;
mod verdict;

use netaware_record::{Comparison, Direction, IpVersion, Metric};

pub use metric::compare_metric;

/// Samples of one metric over both versions, in its unit (bit/s, ns, fraction), by round and in the
/// order measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundSamples {
    /// Of what.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// IPv4: `rounds_v4[r]` is compared with `rounds_v6[r]`; a round that one of both lacks is left
    /// out.
    pub rounds_v4: Vec<Vec<f64>>,
    /// IPv6.
    pub rounds_v6: Vec<Vec<f64>>,
    /// A host and not the network set at least one of the values.
    pub host_limited: bool,
    /// Versions whose rate is a lower bound.
    pub lower_bounds: Vec<IpVersion>,
    /// Of a loss: the counts that it is a share of.
    pub counts: Option<Counts>,
}

/// Lost and sent datagrams of both versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// IPv4's lost, and of how many.
    pub v4: (u64, u64),
    /// IPv6's.
    pub v6: (u64, u64),
}

/// Versions that could not be measured, and why, in a sentence; and why none can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unreached<'a> {
    /// IPv4, at all.
    pub v4: Option<&'a str>,
    /// IPv6, at all.
    pub v6: Option<&'a str>,
    /// TCP over IPv4 carried nothing.
    pub stalled_v4: Option<&'a str>,
    /// TCP over IPv6 carried nothing.
    pub stalled_v6: Option<&'a str>,
    /// What was measured of one version tells of another path than what was measured of the other.
    pub changed: Option<&'a str>,
}

/// Compares every metric that both versions have, and gives one verdict for each use.
pub fn compare(samples: &[RoundSamples], unreached: Unreached<'_>) -> Comparison {
    let metrics: Vec<_> = samples.iter().filter_map(compare_metric).collect();
    let verdicts = verdict::all(&metrics, unreached);
    Comparison { metrics, verdicts }
}

#[cfg(test)]
mod tests;
