//! A histogram of delays whose range nobody knows beforehand.

use std::fmt;

use hdrhistogram::Histogram;

/// Delays in nanoseconds, 1 ns to 1 hour, to three significant digits: an HDR histogram (Tene,
/// hdrhistogram.org).
///
/// Every quantile and the mean are within 0.05 % of the sample they stand for; minimum and maximum
/// are exact. What exceeds one hour counts as one hour and is reported by [`Self::saturated`].
/// Takes 265 KiB, never grows.
#[derive(Clone)]
pub struct DelayHistogram {
    bins: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    saturated: u64,
}

impl DelayHistogram {
    /// The longest delay that is told apart from longer ones: one hour, in nanoseconds.
    pub const LONGEST_NS: u64 = 3_600_000_000_000;

    /// An empty histogram; the only place where it allocates.
    pub fn new() -> Self {
        let bins = Histogram::new_with_bounds(1, Self::LONGEST_NS, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants that hdrhistogram accepts");
        Self { bins, min_ns: u64::MAX, max_ns: 0, saturated: 0 }
    }

    /// Counts one delay.
    #[inline]
    pub fn observe(&mut self, delay_ns: u64) {
        self.observe_n(delay_ns, 1);
    }

    /// Counts `n` equal delays, e.g. a bin that travelled here in a record; nothing for `n = 0`.
    #[inline]
    pub fn observe_n(&mut self, delay_ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        if delay_ns > Self::LONGEST_NS {
            self.saturated = self.saturated.saturating_add(n);
        }
        let delay_ns = delay_ns.min(Self::LONGEST_NS);
        self.min_ns = self.min_ns.min(delay_ns);
        self.max_ns = self.max_ns.max(delay_ns);
        self.bins.saturating_record_n(delay_ns, n);
    }

    /// Adds all delays of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.bins.add(&other.bins).expect("all delay histograms have the same bounds");
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.saturated = self.saturated.saturating_add(other.saturated);
    }

    /// The `q`-quantile (nearest rank) in nanoseconds, the middle of the bin that holds it.
    ///
    /// `None` without samples or for `q` outside `0.0..=1.0`. If [`Self::saturated`] is not zero,
    /// the top quantiles are lower bounds.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if self.bins.is_empty() || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let middle = self.bins.median_equivalent(self.bins.value_at_quantile(q));
        Some(middle.clamp(self.min_ns, self.max_ns))
    }

    /// Mean in nanoseconds, from the middles of the bins; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        (!self.bins.is_empty()).then(|| self.bins.mean())
    }

    /// The shortest delay in nanoseconds, exact.
    pub fn min(&self) -> Option<u64> {
        (!self.bins.is_empty()).then_some(self.min_ns)
    }

    /// The longest delay in nanoseconds, exact up to one hour.
    pub fn max(&self) -> Option<u64> {
        (!self.bins.is_empty()).then_some(self.max_ns)
    }

    /// Non-empty bins, ascending, as (middle of the bin in nanoseconds, count).
    ///
    /// Feeding them to [`Self::observe_n`] restores the same bins.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins
            .iter_recorded()
            .map(|bin| (self.bins.median_equivalent(bin.value_iterated_to()), bin.count_at_value()))
    }

    /// The same bins as (lower edge of the bin in nanoseconds, count), for whoever draws or stores
    /// them.
    pub fn lower_edges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins
            .iter_recorded()
            .map(|bin| (self.bins.lowest_equivalent(bin.value_iterated_to()), bin.count_at_value()))
    }

    /// How many delays were counted.
    pub fn count(&self) -> u64 {
        self.bins.len()
    }

    /// How many of them exceeded one hour and were counted as one hour.
    pub fn saturated(&self) -> u64 {
        self.saturated
    }
}

impl Default for DelayHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DelayHistogram {
    /// Without the thirty thousand counters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayHistogram")
            .field("count", &self.count())
            .field("min_ns", &self.min())
            .field("p50_ns", &self.quantile(0.5))
            .field("max_ns", &self.max())
            .field("saturated", &self.saturated)
            .finish_non_exhaustive()
    }
}

/// Three digits resolve 1 us in 1 ms; four would take ten times the memory to resolve what no host
/// can time.
const SIGNIFICANT_DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn more_than_an_hour_saturates_and_says_so() {
        let mut hist = DelayHistogram::new();
        for ns in [0, 5, DelayHistogram::LONGEST_NS, DelayHistogram::LONGEST_NS + 1, u64::MAX] {
            hist.observe(ns);
        }
        assert_eq!((hist.count(), hist.saturated()), (5, 2));
        assert_eq!((hist.min(), hist.max()), (Some(0), Some(DelayHistogram::LONGEST_NS)));
        assert_eq!(hist.quantile(1.0), Some(DelayHistogram::LONGEST_NS));
    }

    #[test]
    fn nothing_yields_nothing() {
        let hist = DelayHistogram::new();
        assert_eq!((hist.quantile(0.5), hist.min(), hist.max(), hist.mean()), (None, None, None, None));
        assert_eq!(hist.iter().count(), 0);
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_two_thousandth(mut samples in prop::collection::vec(1..DelayHistogram::LONGEST_NS, 1..60),
                                                 q in 0.0..=1.0_f64) {
            let mut hist = DelayHistogram::new();
            for &ns in &samples {
                hist.observe(ns);
            }
            samples.sort_unstable();
            let exact = crate::quantile::nearest_rank(&samples, q).unwrap();
            let error = hist.quantile(q).unwrap().abs_diff(exact);
            prop_assert!(error as f64 <= 0.000_5 * exact as f64, "{} off {}", error, exact);
        }

        #[test]
        fn bins_travel_without_loss(a in prop::collection::vec(any::<u64>(), 0..40),
                                    b in prop::collection::vec(any::<u64>(), 0..40)) {
            let (mut left, mut right, mut whole) = (DelayHistogram::new(), DelayHistogram::new(), DelayHistogram::new());
            for &ns in &a {
                left.observe(ns);
            }
            for &ns in &b {
                right.observe(ns);
            }
            for &ns in a.iter().chain(&b) {
                whole.observe(ns);
            }
            left.merge(&right);
            let mut carried = DelayHistogram::new();
            for (ns, n) in left.iter() {
                carried.observe_n(ns, n);
            }
            prop_assert_eq!(left.iter().collect::<Vec<_>>(), whole.iter().collect::<Vec<_>>());
            prop_assert_eq!(carried.iter().collect::<Vec<_>>(), whole.iter().collect::<Vec<_>>());
            prop_assert_eq!((left.saturated(), left.min(), left.max()), (whole.saturated(), whole.min(), whole.max()));
        }
    }
}
