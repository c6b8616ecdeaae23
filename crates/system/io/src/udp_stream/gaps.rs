//! The spacing of datagrams, at the sender's calls or the receiver's kernel stamps.

use netaware_record::{GapSummary, Histogram};
use netaware_stats::hist::DelayHistogram;
use netaware_stats::moments::Moments;
use netaware_units::Span;

/// Mean and deviation from the gaps themselves, quantiles from a logarithmic histogram (0.05 %).
/// Memory is fixed.
#[derive(Debug)]
pub(super) struct GapRecorder {
    moments: Moments,
    bins: DelayHistogram,
}

impl GapRecorder {
    pub(super) fn new() -> Self {
        Self { moments: Moments::new(), bins: DelayHistogram::new() }
    }

    #[inline]
    pub(super) fn observe(&mut self, gap: Span) {
        self.moments.observe(gap.0 as f64);
        self.bins.observe(gap.or_zero().0.cast_unsigned());
    }

    /// `None` without gaps.
    pub(super) fn summary(&self, planned: Option<Span>) -> Option<GapSummary> {
        let quantile = |q| self.bins.quantile(q).map(|nanos| Span(nanos.cast_signed()));
        Some(GapSummary {
            planned,
            count: self.moments.count(),
            mean_ns: self.moments.mean()?,
            sd_ns: self.moments.sd(),
            min: quantile(0.0)?,
            p1: quantile(0.01)?,
            p50: quantile(0.5)?,
            p99: quantile(0.99)?,
            p999: quantile(0.999)?,
            max: quantile(1.0)?,
        })
    }

    /// The distribution, with neighbouring bins joined until it is short enough to travel. `None`
    /// without gaps.
    pub(super) fn histogram(&self) -> Option<Histogram> {
        let mut bins: Vec<(u64, u64)> = self.bins.lower_edges().collect();
        let mut digits = Some(3);
        while bins.len() > MOST_BINS {
            bins =
                bins.chunks(2).map(|pair| (pair[0].0, pair.iter().map(|(_, count)| count).sum())).collect();
            digits = None;
        }
        (!bins.is_empty()).then_some(Histogram { bins, digits, ..Histogram::default() })
    }
}

const MOST_BINS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_that_is_too_long_keeps_every_entry() {
        let mut gaps = GapRecorder::new();
        assert!(gaps.summary(None).is_none() && gaps.histogram().is_none());
        for n in 1..=20_000 {
            gaps.observe(Span(n * 1000));
        }
        let histogram = gaps.histogram().unwrap();
        assert!(histogram.bins.len() <= MOST_BINS);
        assert_eq!(histogram.bins.iter().map(|bin| bin.1).sum::<u64>(), 20_000);
        assert!(histogram.bins.is_sorted());
        assert_eq!(gaps.summary(None).unwrap().count, 20_000);
    }
}
