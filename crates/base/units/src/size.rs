//! Bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scaled::{Meaning, Number, ParseUnitError, Suffix, exact, parse_scaled, prefix, write_scaled};

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

/// Reads the unit of a size.
///
/// The prefix may be a capital or a small letter; the "B" of bytes is a capital. A prefix alone is
/// binary, as it is to iperf3 and the GNU tools ("K" is 1024, "kB" and "KB" are 1000). A small "b"
/// is a bit everywhere in this field, so it is never read as a byte.
fn meaning(suffix: &str) -> Meaning {
    let (power, rest) = prefix(suffix);
    match (power, rest) {
        (_, "B") => Meaning::Unit(1000_u64.pow(power)),
        (0, "") => Meaning::Unit(1),
        (_, "") | (1.., "iB" | "i") => Meaning::Rounded(1 << (10 * power)),
        (_, "b" | "bit" | "bits") => Meaning::Other(in_bits),
        (1.., "ib" | "ibit") => Meaning::Other(small_b),
        _ => Meaning::Unknown,
    }
}

/// What to type instead of "8Mb".
fn in_bits(number: &Number<'_>, suffix: &str) -> String {
    let (power, _) = prefix(suffix);
    let bytes = number.times(1000_u64.pow(power)).filter(|bits| bits % 8 == 0).map(|bits| bits / 8);
    let as_bytes = bytes.map_or(String::new(), |bytes| format!("{}, or ", exact(bytes, EXACT)));
    let prefix = suffix.get(..usize::from(power > 0)).unwrap_or_default();
    let typed = number.text;
    format!("is in bits and a size is in bytes: write {as_bytes}{typed}{prefix}B if you mean bytes")
}

/// What to type instead of "64kib".
fn small_b(number: &Number<'_>, suffix: &str) -> String {
    let (typed, prefix) = (number.text, suffix.get(..1).unwrap_or_default());
    format!("is in bits and a size is in bytes: write {typed}{prefix}iB if you mean bytes")
}

/// Descending, for values that have to read back exactly.
const EXACT: &[Suffix] = &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)];

impl FromStr for ByteCount {
    type Err = ParseUnitError;
    /// Reads "1500", "1500B", "64KiB", "1.5MB", and "128K" (binary) as a user of iperf3 would type
    /// it. Bits ("8Mb") are refused.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_scaled(text, meaning, "B, kB, MB, GB, KiB, MiB or GiB, as in '1500B' or '64KiB'").map(Self)
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
        assert_eq!(
            ("1.01KiB".parse(), "14.3G".parse()),
            (Ok(ByteCount(1034)), Ok(ByteCount(15_354_508_083)))
        );
    }

    #[test]
    fn every_suffix_of_a_size_is_bytes_or_refused() {
        let binary = |power: u32| 1_u64 << (10 * power);
        let rows = [("k", 1), ("m", 2), ("g", 3), ("t", 4)].into_iter().flat_map(|(small, power)| {
            let capital = small.to_ascii_uppercase();
            [small.to_owned(), capital].into_iter().flat_map(move |p| {
                [
                    (format!("1{p}"), Some(binary(power))),
                    (format!("1{p}i"), Some(binary(power))),
                    (format!("1{p}iB"), Some(binary(power))),
                    (format!("1{p}B"), Some(1000_u64.pow(power))),
                    (format!("1{p}b"), None),
                    (format!("1{p}ib"), None),
                    (format!("1{p}bit"), None),
                    (format!("1{p}B/s"), None),
                    (format!("1{p}bps"), None),
                ]
            })
        });
        let plain =
            [("1", Some(1)), ("1B", Some(1)), ("1b", None), ("1bit", None), ("1i", None), ("1iB", None)];
        for (text, want) in rows.chain(plain.map(|(text, want)| (text.to_owned(), want))) {
            assert_eq!(text.parse::<ByteCount>().ok().map(|size| size.0), want, "{text}");
        }
    }

    #[test]
    fn eight_megabits_are_not_eight_megabytes() {
        let refused = |text: &str| text.parse::<ByteCount>().unwrap_err().to_string();
        assert_eq!(
            refused("8Mb"),
            "'8Mb' is in bits and a size is in bytes: write 1MB, or 8MB if you mean bytes"
        );
        assert_eq!(refused("1b"), "'1b' is in bits and a size is in bytes: write 1B if you mean bytes");
        assert_eq!(
            refused("64kib"),
            "'64kib' is in bits and a size is in bytes: write 64kiB if you mean bytes"
        );
        for bad in ["-1B", "NaN", "1e3", "", " ", "B", "16777216TiB", "0.5B"] {
            assert!(bad.parse::<ByteCount>().is_err(), "{bad}");
        }
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
