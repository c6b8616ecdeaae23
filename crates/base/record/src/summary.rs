//! Distributions and intervals as they are shown and stored.

use netaware_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Order statistics of delays. Exact (sorted samples), not read off a histogram, unless the result's page says so.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
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
    /// Sample standard deviation.
    pub sd: Span,
}

/// An estimate between its bounds, in the unit of whatever it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// `(lower edge in ns, entries)`, ascending.
    pub bins: Vec<(u64, u64)>,
    /// Significant decimal digits of the edges for a logarithmic (HDR) histogram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<u8>,
    /// Width of each bin for a linear one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<Span>,
    /// Entries below the first bin.
    #[serde(default)]
    pub underflow: u64,
    /// Entries above the last bin.
    #[serde(default)]
    pub overflow: u64,
}
