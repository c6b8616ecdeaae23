//! Bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scaled::{ParseUnitError, Suffix, parse_scaled, write_scaled};

/// A number of bytes. Printed with binary prefixes, because buffers and blocks are powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct ByteCount(pub u64);

impl ByteCount {
    /// For lengths of buffers in memory.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ByteCount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self(0), Add::add)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("B", 1.0),
            ("KiB", 1024.0),
            ("MiB", 1024.0 * 1024.0),
            ("GiB", 1024.0 * 1024.0 * 1024.0),
            ("TiB", 1024.0 * 1024.0 * 1024.0 * 1024.0),
        ];
        write_scaled(f, self.0 as f64, &units)
    }
}

const SIZES: &[Suffix] = &[
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
];

impl FromStr for ByteCount {
    type Err = ParseUnitError;
    /// Reads "1500", "1500B", "64KiB", "1.5MB", and "128K" (binary) as a user of iperf3 would type
    /// it.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_scaled(text, SIZES, "B, kB, MB, GB, KiB, MiB or GiB, as in '1500B' or '64KiB'").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_prefixes_differ() {
        assert_eq!("1MB".parse(), Ok(ByteCount(1_000_000)));
        assert_eq!("1MiB".parse(), Ok(ByteCount(1_048_576)));
        assert_eq!("128K".parse(), Ok(ByteCount(131_072)));
        assert_eq!("1500".parse(), Ok(ByteCount(1500)));
        assert_eq!(ByteCount(131_072).to_string(), "128 KiB");
    }

    #[test]
    fn sums_stop_at_the_largest_count() {
        let mut sum = ByteCount(7);
        sum += ByteCount(3);
        assert_eq!((sum, ByteCount(7) + ByteCount(3)), (ByteCount(10), ByteCount(10)));
        sum += ByteCount(u64::MAX);
        assert_eq!(sum, ByteCount(u64::MAX));
    }
}
