//! An estimate together with how far it can be trusted.

use serde::{Deserialize, Serialize};

/// A confidence interval. Invariant of those made in this crate: `lo <= estimate <= hi`, all
/// finite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The point estimate, in the unit of the samples.
    pub estimate: f64,
    /// Lower end, same unit.
    pub lo: f64,
    /// Upper end, same unit.
    pub hi: f64,
    /// Nominal coverage, between 0 and 1 (0.95 = 95 %). What is really reached is documented by
    /// whoever made it.
    pub confidence: f64,
}

impl Interval {
    /// Whether the data rule out "no difference": both ends lie on the same side of zero, neither
    /// on it.
    pub fn excludes_zero(&self) -> bool {
        self.lo > 0.0 || self.hi < 0.0
    }

    /// Whether `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// `hi - lo`, in the unit of the samples.
    pub fn width(&self) -> f64 {
        self.hi - self.lo
    }

    /// The smallest interval holding both this one and `lo..=hi`; the estimate stays.
    #[must_use]
    pub fn widened_to(&self, lo: f64, hi: f64) -> Self {
        Self { lo: self.lo.min(lo), hi: self.hi.max(hi), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_excluded_only_when_strictly_outside() {
        let cases = [
            (1, 0.5, 2.0, true),
            (2, -2.0, -0.5, true),
            (3, -1.0, 1.0, false),
            (4, 0.0, 1.0, false),
            (5, -1.0, 0.0, false),
        ];
        for (row, lo, hi, excluded) in cases {
            let interval = Interval { estimate: lo, lo, hi, confidence: 0.95 };
            assert_eq!(interval.excludes_zero(), excluded, "row {row}");
            assert_eq!(interval.contains(0.0), !excluded, "row {row}");
        }
    }

    #[test]
    fn widening_never_narrows() {
        let interval = Interval { estimate: 1.0, lo: 0.0, hi: 2.0, confidence: 0.9 };
        assert_eq!(interval.widened_to(0.5, 1.5), interval);
        assert_eq!(interval.widened_to(-1.0, 3.0), Interval { lo: -1.0, hi: 3.0, ..interval });
    }
}
