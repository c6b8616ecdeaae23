//! A token bucket by arithmetic: its whole state is the instant at which it would be full again.

use super::pace::{FAR, PerByte};
use crate::scenario::Bucket;

/// Exact to 2^-32 ps: no tokens are rounded away, so the long-run rate is the configured one.
#[derive(Debug, Clone)]
pub(super) struct TokenBucket {
    per_byte: PerByte,
    burst: u64,
    /// Picoseconds with 32 bits behind the point.
    full_at: u128,
}

impl TokenBucket {
    pub(super) fn new(bucket: &Bucket) -> Self {
        let per_byte = PerByte::of(bucket.rate);
        let missing = bucket.burst.saturating_sub(bucket.initial);
        Self { per_byte, burst: bucket.burst, full_at: per_byte.fine(missing) }
    }

    /// The first instant (ps) at which `bytes` tokens are there. More than the bucket holds counts
    /// as a full bucket.
    #[inline]
    pub(super) fn earliest(&self, bytes: u64) -> u64 {
        let spare = self.per_byte.fine(self.burst.saturating_sub(bytes));
        let fine = self.full_at.saturating_sub(spare);
        ((fine + 0xffff_ffff) >> 32).min(u128::from(FAR)) as u64
    }

    /// Takes them at `at`, which must not be before `earliest`.
    #[inline]
    pub(super) fn take(&mut self, at: u64, bytes: u64) {
        self.full_at = self.full_at.max(u128::from(at) << 32) + self.per_byte.fine(bytes);
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::BitRate;

    use super::*;
    use crate::network::pace::SECOND;
    use crate::scenario::BucketKind;

    #[test]
    fn the_initial_credit_passes_at_once_and_then_the_rate_is_exact() {
        let rate = BitRate(7_000_003);
        let config = Bucket { rate, burst: 5_000, initial: 3_000, kind: BucketKind::Shaper };
        let mut bucket = TokenBucket::new(&config);
        let mut at = 0;
        let mut sent_at_zero = 0;
        for _ in 0..100_000 {
            at = bucket.earliest(1000).max(at);
            bucket.take(at, 1000);
            sent_at_zero += u64::from(at == 0);
        }
        assert_eq!(sent_at_zero, 3);
        let exact = (100_000 - 3) * 8000 * u128::from(SECOND) / u128::from(rate.0);
        assert!(u128::from(at).abs_diff(exact) < 1000, "{at} instead of {exact}");
    }
}
