//! A rate that something is sent at.

use std::fmt;
use std::num::NonZeroU64;

use crate::BitRate;

/// A rate that bounds a sender, in bit/s, and never zero. A measured or an unknown rate can be zero
/// and a plan without a bound has none; neither can be mistaken for the other, because neither is a
/// `SendRate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendRate(NonZeroU64);

impl SendRate {
    /// 1 bit/s: nothing slower is sent.
    pub const MIN: Self = Self(NonZeroU64::MIN);

    /// The rate, unless it is zero.
    pub const fn new(rate: BitRate) -> Option<Self> {
        match NonZeroU64::new(rate.0) {
            Some(rate) => Some(Self(rate)),
            None => None,
        }
    }

    /// So many bit/s; what is below [`Self::MIN`] is raised to it.
    pub const fn at_least(bits: u64) -> Self {
        match NonZeroU64::new(bits) {
            Some(rate) => Self(rate),
            None => Self::MIN,
        }
    }

    /// The same as a plain rate.
    pub const fn bit_rate(self) -> BitRate {
        BitRate(self.0.get())
    }

    /// This many per cent of the rate, at least [`Self::MIN`].
    #[must_use]
    pub fn percent(self, percent: u64) -> Self {
        Self::at_least(self.bit_rate().percent(percent).0)
    }

    /// The distance in picoseconds, from start to start, of packets with `length` bytes each that
    /// keep this rate; at least 1.
    pub fn gap_ps(self, length: u32) -> u64 {
        let ps = u128::from(length) * 8 * 1_000_000_000_000 / u128::from(self.0.get());
        u64::try_from(ps).unwrap_or(u64::MAX).max(1)
    }
}

impl fmt::Display for SendRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bit_rate().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_zero_is_not_no_limit() {
        assert_eq!(SendRate::new(BitRate(0)), None);
        assert_eq!(SendRate::at_least(0), SendRate::MIN);
        assert_eq!(SendRate::MIN.percent(80), SendRate::MIN);
        assert!(SendRate::MIN.gap_ps(1472) > 3_600_000_000_000_000, "hours from datagram to datagram");
    }

    #[test]
    fn a_gap_is_exact_to_the_picosecond() {
        assert_eq!(SendRate::at_least(1_000_000_000).gap_ps(1250), 10_000_000);
        assert_eq!(SendRate::at_least(3).gap_ps(1), 2_666_666_666_666);
        assert_eq!(SendRate::at_least(u64::MAX).gap_ps(1), 1);
        assert_eq!(SendRate::at_least(1_000_000).percent(80).to_string(), BitRate(800_000).to_string());
    }
}
