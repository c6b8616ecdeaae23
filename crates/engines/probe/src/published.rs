//! Intervals as the statistics compute them, as the result schema publishes them.

use netaware_record::Interval;

pub(crate) fn interval(of: netaware_stats::interval::Interval) -> Interval {
    Interval { estimate: of.estimate, lo: of.lo, hi: of.hi, confidence: of.confidence }
}

/// The same bounds around another estimate, stretched to hold it.
pub(crate) fn interval_around(estimate: f64, of: netaware_stats::interval::Interval) -> Interval {
    Interval { estimate, ..interval(of.widened_to(estimate, estimate)) }
}

/// Bootstraps are seeded with this, so that an interval can be recomputed from the record's own
/// samples.
pub(crate) const SEED: u64 = 0x6e65_7461_7761_7265;
