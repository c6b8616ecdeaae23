//! IPv4 beside IPv6: which one does better, for which use, and is the difference real?
//!
//! **Measures** the difference IPv6 minus IPv4 of each metric: of the means of rates, of the shares
//! of losses, of the medians of delays. Both versions are measured in the same rounds, so that what
//! drifts from round to round hits both alike. The interval is the hierarchical bootstrap of
//! [`netaware_stats::bootstrap`], joined with Student's t over the rounds; of counted losses it is
//! Newcombe's, widened as far as they come in bursts: see `compare/losses.rs`. **Assumes** that
//! rounds alternate (ABBA), else a drift within rounds looks like a difference. **Biased**: with
//! two rounds the interval covers 87 % instead of 95 % where rounds differ a lot; with one it knows
//! nothing of other rounds, and we ask for a difference three times the margin and say that it was
//! one. What depends on the behaviour of TCP's flows needs more than that: see `compare/flow.rs`. A
//! version is favoured only if the interval excludes zero **and** the difference exceeds the margin
//! **and** nothing casts a [`RoundSamples::doubt`] on it; "no difference shown" is no proof of
//! equality. A rate that was still growing when it ended is a lower bound: it may win and cannot
//! lose. Each metric is judged at 95 % by itself: of twenty comparisons of equal paths one may
//! favour somebody. **Published**: Davison and Hinkley 1997 §3.8; Newcombe, Statistics in Medicine
//! 1998, method 10; margins of relevance as in equivalence testing (Schuirmann 1987), their values
//! are ours and stand at the end of `compare/metric.rs`.

mod flow;
mod losses;
mod metric;
mod verdict;

use netaware_record::{Comparison, Direction, Metric, Use};
use netaware_units::{BitRate, Span};

pub use metric::compare_metric;

/// Samples of one metric over both versions, in its unit (bit/s, ns, fraction), by round and in the
/// order measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundSamples {
    /// Of what.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// IPv4: `rounds_v4[r]` is of the same round as `rounds_v6[r]`; a round that lacks one of them
    /// is left out.
    pub rounds_v4: Vec<Vec<f64>>,
    /// IPv6.
    pub rounds_v6: Vec<Vec<f64>>,
    /// What is told of IPv4 and of IPv6 elsewhere, where that is not the samples' own statistic:
    /// slices of unlike lengths weigh alike among samples, and not in a rate. The difference is
    /// that of these two, and the samples tell how it scatters.
    pub figures: Option<[f64; 2]>,
    /// Of losses: how many of how many, over IPv4 and over IPv6.
    pub shares: Option<[Share; 2]>,
    /// Of losses: in how many rows of neighbours they came, over IPv4 and over IPv6, where that is
    /// known.
    pub runs: [Option<u64>; 2],
    /// Whether the values of IPv4 and of IPv6 are lower bounds.
    pub lower_bounds: [bool; 2],
    /// The rates of the transfers whose behaviour the metric depends on; absent for what is
    /// measured on an idle path.
    pub loads: Option<Loads>,
    /// A host and not the network set at least one of the values.
    pub host_limited: bool,
    /// Why no difference between them would say anything of the versions.
    pub doubt: Option<String>,
}

/// The transfers that a metric was measured with or beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loads {
    /// What they carried over IPv4 and over IPv6, if it is known.
    pub rates: [Option<BitRate>; 2],
    /// For how long those of one round were observed, the shorter of both versions.
    pub observed: Span,
    /// What the other transfer in this direction, with another number of streams, carried over
    /// IPv4 and over IPv6 in the same rounds: a rate that differs between the versions because of
    /// their paths differs there, too.
    pub beside: Option<[BitRate; 2]>,
}

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The part.
    pub part: u64,
    /// The whole.
    pub of: u64,
}

/// A loss with what it was counted from.
#[derive(Debug, Clone, Copy)]
struct Counted {
    metric: Metric,
    direction: Direction,
    /// Over IPv4 and over IPv6.
    shares: [Share; 2],
}

impl Counted {
    /// How many were observed, over the version over which there were fewer.
    fn sample(&self) -> u64 {
        sample(self.shares)
    }
}

/// The smaller one of two samples.
fn sample(shares: [Share; 2]) -> u64 {
    shares[0].of.min(shares[1].of)
}

/// What became of one version as a whole, apart from its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing<'a> {
    /// Why it could not be measured at all, in a sentence.
    pub out: Option<&'a str>,
    /// It broke off before its end.
    pub is_broken: bool,
    /// Why it is of no use to bulk transfers although it can be reached: nothing of them came
    /// through, or the path cut each of them and none of the other version's.
    pub stalled: Option<&'a str>,
    /// Uses of which it has no figure that counts.
    pub lacks: &'a [Use],
    /// Uses for which a phase of it failed, even if other phases have a figure.
    pub failed: &'a [Use],
    /// What it lost of its own requests, where that is so much that the end of the other one's
    /// session may well be such a loss, too.
    pub loses: Option<Share>,
    /// Requests beside transfers over TCP that were lost: they show what is lost under load, and
    /// also what a queue that TCP filled has dropped, so that they are quoted and decide nothing.
    pub beside_tcp: Option<Share>,
}

/// Compares every metric that both versions have, and gives one verdict for each use. Standings are
/// those of IPv4 and of IPv6.
pub fn compare(samples: &[RoundSamples], standings: [Standing<'_>; 2]) -> Comparison {
    let metrics: Vec<_> = samples.iter().filter_map(compare_metric).collect();
    let counted =
        |it: &RoundSamples| Some(Counted { metric: it.metric, direction: it.direction, shares: it.shares? });
    let losses: Vec<Counted> = samples.iter().filter_map(counted).collect();
    let verdicts = verdict::all(&metrics, &losses, standings);
    Comparison { metrics, verdicts }
}

#[cfg(test)]
mod tests;
