//! A number that a method said beside the one that is true, and how both spread over many seeds.

use netaware_stats::quantile::linear;
use serde::Serialize;

/// One of them. Either may be absent: a method may fail to say, and not everything that is true can
/// be measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// What it is, in words.
    pub name: &'static str,
    /// Of both numbers.
    pub unit: Unit,
    /// What the method said.
    pub estimate: Option<f64>,
    /// What it was.
    pub truth: Option<f64>,
}

/// Of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bits per second.
    BitsPerSecond,
    /// Of 1.
    Share,
    /// Bytes.
    Bytes,
    /// Of things.
    Count,
}

impl Figure {
    pub(super) const fn new(
        name: &'static str,
        unit: Unit,
        estimate: Option<f64>,
        truth: Option<f64>,
    ) -> Self {
        Self { name, unit, estimate, truth }
    }

    pub(super) const fn only_true(name: &'static str, unit: Unit, truth: Option<f64>) -> Self {
        Self::new(name, unit, None, truth)
    }
}

/// A figure over many seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// As in the figures.
    pub name: &'static str,
    /// Of all numbers.
    pub unit: Unit,
    /// Seeds for which the method said something.
    pub estimates: usize,
    /// Median of what it said.
    pub median: Option<f64>,
    /// 5th percentile of what it said.
    pub p5: Option<f64>,
    /// 95th percentile of what it said.
    pub p95: Option<f64>,
    /// Median of the estimate's error, estimate minus truth, where both are known.
    pub error: Option<f64>,
    /// Median of what was true.
    pub truth: Option<f64>,
}

/// How the figures of several runs spread; each run has the same figures in the same order.
pub fn spread(runs: &[&[Figure]]) -> Vec<Spread> {
    let first = runs.first().copied().unwrap_or_default();
    let of = |(at, figure): (usize, &Figure)| {
        let all = || runs.iter().filter_map(move |run| run.get(at));
        let estimates = sorted(all().filter_map(|figure| figure.estimate));
        let errors = sorted(all().filter_map(|figure| Some(figure.estimate? - figure.truth?)));
        Spread {
            name: figure.name,
            unit: figure.unit,
            estimates: estimates.len(),
            median: linear(&estimates, 0.5),
            p5: linear(&estimates, 0.05),
            p95: linear(&estimates, 0.95),
            error: linear(&errors, 0.5),
            truth: linear(&sorted(all().filter_map(|figure| figure.truth)), 0.5),
        }
    };
    first.iter().enumerate().map(of).collect()
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_an_estimate_does_not_count_as_zero() {
        let run = |estimate| [Figure::new("x", Unit::Count, estimate, Some(10.0))];
        let runs = [run(Some(9.0)), run(None), run(Some(13.0)), run(Some(11.0))];
        let runs: Vec<&[Figure]> = runs.iter().map(|run| &run[..]).collect();
        let spread = &spread(&runs)[0];
        assert_eq!((spread.estimates, spread.median, spread.truth), (3, Some(11.0), Some(10.0)));
        assert_eq!(spread.error, Some(1.0));
        assert!(spread.p5 < spread.median && spread.median < spread.p95);
        assert!(super::spread(&[]).is_empty());
    }
}
