//! Distributions and intervals as they are shown and stored.

use netaware_stats::hist::FixedHistogram;
use netaware_units::Span;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unknown::zero_is_unknown;

/// Order statistics of delays. Exact (sorted samples), not read off a histogram, unless the
/// result's page says so.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DelaySummary {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min: Span,
    /// Median.
    pub p50: Span,
    /// 95th percentile.
    pub p95: Span,
    /// 99th percentile.
    pub p99: Span,
    /// 99.9th percentile; equals `max` when there are fewer than 1000 samples.
    pub p999: Span,
    /// Largest.
    pub max: Span,
    /// Arithmetic mean.
    pub mean: Span,
    /// Sample standard deviation; absent of a single sample. Older versions wrote zero then.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub sd: Option<Span>,
}

/// An estimate between its bounds, in the unit of whatever it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Interval {
    /// Best guess.
    pub estimate: f64,
    /// Lower bound.
    pub lo: f64,
    /// Upper bound.
    pub hi: f64,
    /// Probability the method claims for the truth to lie between, 0..1.
    pub confidence: f64,
}

impl Interval {
    /// Whether zero lies outside the bounds.
    pub fn excludes_zero(&self) -> bool {
        self.lo > 0.0 || self.hi < 0.0
    }
}

/// Counts per bin of a delay; bins without entries are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Histogram {
    /// `(lower edge in ns, entries)`, ascending.
    pub bins: Vec<(u64, u64)>,
    /// Significant decimal digits of the edges for a logarithmic (HDR) histogram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<u8>,
    /// Width of each bin for a linear one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<Span>,
    /// Lower edge of the first bin for a linear one, whether it has entries or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<Span>,
    /// Entries below the first bin.
    #[serde(default)]
    pub underflow: u64,
    /// Entries above the last bin.
    #[serde(default)]
    pub overflow: u64,
    /// Of all values, those outside the bins included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moments: Option<HistogramMoments>,
}

/// Moments and quartiles of a histogram's values, as UDPmon reports them: of the values themselves,
/// not of bin centres, and with those that fell outside the bins.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HistogramMoments {
    /// Values.
    pub entries: u64,
    /// Arithmetic mean, ns.
    pub mean: f64,
    /// Standard deviation, ns (divided by the number of values less one); absent of a single value.
    /// Older versions wrote zero then.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub sigma: Option<f64>,
    /// Coefficient of skew: mean of `(x - mean)^3` over the population sigma cubed; absent when
    /// all are equal. Older versions wrote zero then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<f64>,
    /// Excess kurtosis: mean of `(x - mean)^4` over the population variance squared, minus 3;
    /// absent when all are equal. Older versions wrote zero then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kurtosis: Option<f64>,
    /// Median, ns, read off the bins; absent when it lies outside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// First quartile, ns, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q25: Option<f64>,
    /// Third quartile, ns, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q75: Option<f64>,
}

/// The bins that somebody wants to see: UDPmon's low limit and bin width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HistogramShape {
    /// Lower edge of the first bin.
    pub low: Span,
    /// Width of each, longer than zero.
    pub width: Span,
    /// How many, at least one and at most [`Self::MOST_BINS`].
    pub bins: u32,
}

impl HistogramShape {
    /// Half a megabyte of counters: the asker may sit on the other side of the network.
    pub const MOST_BINS: u32 = 1 << 16;

    /// An empty histogram; `None` for a shape that cannot be: no width, no or too many bins, an
    /// edge beyond all times.
    pub fn empty(&self) -> Option<FixedHistogram> {
        let width = u64::try_from(self.width.0).ok()?;
        let bins = Some(self.bins).filter(|bins| *bins <= Self::MOST_BINS)? as usize;
        FixedHistogram::new(self.low.0, width, bins).ok()
    }
}

impl From<&FixedHistogram> for Histogram {
    fn from(filled: &FixedHistogram) -> Self {
        let bins = filled.iter().filter(|(_, count)| *count > 0);
        Self {
            bins: bins.map(|(edge, count)| (edge.max(0).cast_unsigned(), count)).collect(),
            digits: None,
            width: Some(Span(filled.width().try_into().unwrap_or(i64::MAX))),
            low: Some(Span(filled.low())),
            underflow: filled.underflow(),
            overflow: filled.overflow(),
            moments: HistogramMoments::of(filled),
        }
    }
}

impl HistogramMoments {
    /// `None` of no values.
    pub fn of(filled: &FixedHistogram) -> Option<Self> {
        let moments = filled.moments();
        Some(Self {
            entries: filled.count(),
            mean: moments.mean()?,
            sigma: moments.sd(),
            skew: moments.skewness(),
            kurtosis: moments.excess_kurtosis(),
            median: filled.quantile(0.5),
            q25: filled.quantile(0.25),
            q75: filled.quantile(0.75),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: HistogramShape = HistogramShape { low: Span(10), width: Span(5), bins: 3 };

    #[test]
    fn bins_without_entries_are_left_out_and_what_fell_outside_is_counted() {
        let mut filled = SHAPE.empty().unwrap();
        for value in [8, 9, 10, 14, 24, 25] {
            filled.observe(value);
        }
        let shown = Histogram::from(&filled);
        assert_eq!(shown.bins, [(10, 2), (20, 1)]);
        assert_eq!((shown.width, shown.low, shown.digits), (Some(Span(5)), Some(Span(10)), None));
        assert_eq!((shown.underflow, shown.overflow), (2, 1));
        assert_eq!(shown.moments.map(|moments| moments.entries), Some(6));
    }

    #[test]
    fn an_edge_below_zero_is_shown_as_zero() {
        let mut filled = HistogramShape { low: Span(-10), ..SHAPE }.empty().unwrap();
        filled.observe(-7);
        let shown = Histogram::from(&filled);
        assert_eq!((shown.bins, shown.low), (vec![(0, 1)], Some(Span(-10))));
    }

    #[test]
    fn a_shape_has_a_width_and_at_least_one_bin_and_at_most_65536() {
        let is_possible = |width: i64, bins: u32| {
            let shape = HistogramShape { low: Span::ZERO, width: Span(width), bins };
            shape.empty().is_some()
        };
        assert_eq!([0, -1, 1].map(|width| is_possible(width, 1)), [false, false, true]);
        assert_eq!([0, 1, 65_536, 65_537].map(|bins| is_possible(1, bins)), [false, true, true, false]);
    }

    #[test]
    fn quartiles_are_read_off_the_bin_and_one_value_has_no_spread() {
        let of = |values: &[i64]| {
            let mut filled = HistogramShape { low: Span::ZERO, width: Span(8), bins: 1 }.empty().unwrap();
            for value in values {
                filled.observe(*value);
            }
            HistogramMoments::of(&filled)
        };
        // Four values in a bin of 8: the k-th is taken to be in the middle of the k-th quarter.
        let four = of(&[1, 2, 3, 4]).unwrap();
        assert_eq!((four.q25, four.median, four.q75), (Some(1.0), Some(3.0), Some(5.0)));
        // Mean 2.5, and deviations whose squares add up to 5.
        let [sigma, skew, kurtosis] = [four.sigma, four.skew, four.kurtosis].map(Option::unwrap);
        let pairs = [(four.mean, 2.5), (sigma, (5.0_f64 / 3.0).sqrt()), (skew, 0.0)];
        assert!(pairs.iter().all(|(found, want)| (found - want).abs() < 1e-12), "{four:?}");
        // The fourth powers add up to 41 / 4: 4 * 10.25 / 25 - 3.
        assert!((kurtosis + 1.36).abs() < 1e-12, "{four:?}");

        let one = HistogramMoments {
            entries: 1,
            mean: 3.0,
            median: Some(4.0),
            q25: Some(4.0),
            q75: Some(4.0),
            ..HistogramMoments::default()
        };
        assert_eq!((of(&[3]), of(&[])), (Some(one), None));
    }

    #[test]
    fn an_interval_excludes_zero_if_all_of_it_is_on_one_side() {
        let excludes = |[lo, hi]: [f64; 2]| {
            Interval { estimate: f64::midpoint(lo, hi), lo, hi, confidence: 0.95 }.excludes_zero()
        };
        let rows = [[0.1, 2.0], [-2.0, -0.1], [0.0, 2.0], [-2.0, 0.0], [-1.0, 1.0]];
        assert_eq!(rows.map(excludes), [true, true, false, false, false]);
    }
}
