//! How the one-way delay of a stream varies. The clocks of the two hosts are not synchronised, so
//! only differences mean something: each delay is shown over the smallest of the stream (PDV, RFC
//! 5481 §4.2).
//!
//! The smallest is known only at the end, and the samples are too many to keep. So they are counted
//! in two histograms, of what lies above and below the first delay; quantiles are off by at most
//! 0.05 % of their distance from that. Skew between the clocks adds its rate times the length of
//! the stream (1 ppm: 1 us per second).

use netaware_record::DelaySummary;
use netaware_stats::hist::DelayHistogram;
use netaware_stats::moments::Moments;
use netaware_units::{Mono, Span};

/// Delays relative to the first one.
#[derive(Debug)]
pub(super) struct DelayVariation {
    first: Option<i64>,
    above: DelayHistogram,
    below: DelayHistogram,
    moments: Moments,
}

impl DelayVariation {
    pub(super) fn new() -> Self {
        Self {
            first: None,
            above: DelayHistogram::new(),
            below: DelayHistogram::new(),
            moments: Moments::new(),
        }
    }

    /// `sent_at` is the other host's clock, and whatever the network says it is.
    #[inline]
    pub(super) fn observe(&mut self, arrived: Mono, sent_at: u64) -> i64 {
        let delay = arrived.0.wrapping_sub(sent_at).cast_signed();
        let relative = delay.saturating_sub(*self.first.get_or_insert(delay));
        self.moments.observe(relative as f64);
        if relative >= 0 {
            self.above.observe(relative.unsigned_abs());
        } else {
            self.below.observe(relative.unsigned_abs());
        }
        delay
    }

    /// `None` without samples.
    pub(super) fn summary(&self) -> Option<DelaySummary> {
        let least = self.quantile(0.0)?;
        let over = |q| self.quantile(q).map(|value| Span(value.saturating_sub(least)));
        Some(DelaySummary {
            count: self.moments.count(),
            min: Span::ZERO,
            p50: over(0.5)?,
            p95: over(0.95)?,
            p99: over(0.99)?,
            p999: over(0.999)?,
            max: over(1.0)?,
            mean: Span((self.moments.mean()? - least as f64).round() as i64).or_zero(),
            sd: self.moments.sd().map(|sd| Span(sd.round() as i64)),
        })
    }

    /// Nearest rank over both histograms, relative to the first delay.
    fn quantile(&self, q: f64) -> Option<i64> {
        let (below, above) = (self.below.count(), self.above.count());
        let rank = ((q * (below + above) as f64).ceil() as u64).max(1);
        if rank <= below {
            // The lowest is the one farthest below.
            let from_far = (below - rank + 1) as f64 / below as f64;
            return self.below.quantile(from_far).map(|value| -value.cast_signed());
        }
        self.above.quantile((rank - below) as f64 / above as f64).map(u64::cast_signed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_is_over_the_smallest_wherever_the_first_lies() {
        let mut variation = DelayVariation::new();
        assert!(variation.summary().is_none());
        // The other clock is far ahead: all delays are negative.
        let sent_at = 1_u64 << 60;
        for n in 0..1000_u64 {
            let delay = (n * 617 + 500) % 1000 * 1000;
            variation.observe(Mono(5_000_000 + n * 10_000 + delay), sent_at + n * 10_000);
        }
        let summary = variation.summary().unwrap();
        assert_eq!((summary.count, summary.min, summary.max), (1000, Span::ZERO, Span::from_micros(999)));
        for (got, want) in [(summary.p50, 499), (summary.p99, 989), (summary.p95, 949)] {
            assert!((got - Span::from_micros(want)).abs() < Span::from_micros(1), "{got} {want}");
        }
        assert!((summary.mean - Span::from_nanos(499_500)).abs() < Span(10), "{}", summary.mean);
    }

    #[test]
    fn any_remote_time_is_survived() {
        let mut variation = DelayVariation::new();
        for sent_at in [0, u64::MAX, 1 << 63, (1 << 63) - 1, 7] {
            variation.observe(Mono(1_000), sent_at);
        }
        assert_eq!(variation.summary().unwrap().count, 5);
    }
}
