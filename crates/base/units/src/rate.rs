//! Bits per second.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scaled::{Meaning, Number, ParseUnitError, Suffix, exact, parse_scaled, prefix, write_scaled};
use crate::{ByteCount, Span};

/// A rate in bit/s; decimal prefixes, as on every link's label (1 Mbit/s = 1,000,000 bit/s).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct BitRate(pub u64);

impl BitRate {
    /// The mean rate of `bytes` over `span`; `None` when no time has passed, because no rate was
    /// then observed.
    pub fn mean(bytes: ByteCount, span: Span) -> Option<Self> {
        let nanos = u64::try_from(span.0).ok().filter(|nanos| *nanos > 0)?;
        let bits = u128::from(bytes.0) * 8 * 1_000_000_000;
        Some(Self(u64::try_from(bits / u128::from(nanos)).unwrap_or(u64::MAX)))
    }

    /// The time that `bytes` take at this rate, rounded up; saturates for a zero rate.
    pub fn time_for(self, bytes: ByteCount) -> Span {
        if self.0 == 0 {
            return Span(i64::MAX);
        }
        let nanos = (u128::from(bytes.0) * 8 * 1_000_000_000).div_ceil(u128::from(self.0));
        Span(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// This many per cent of the rate.
    #[must_use]
    pub fn percent(self, percent: u64) -> Self {
        Self((u128::from(self.0) * u128::from(percent) / 100).min(u128::from(u64::MAX)) as u64)
    }

    /// Mbit/s.
    pub fn mbits_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("Tbit/s", 1e12)];
        write_scaled(f, self.0 as f64, &units)
    }
}

/// Reads the unit of a rate.
///
/// Prefixes are decimal and may be capital or small letters ("10m" and "10M" are both what iperf3
/// reads). The "b" of bits is small unless the word "bit" is written out. A capital "B" is a byte
/// everywhere in this field: such a rate is refused and not multiplied, because who means bits and
/// types "MBps" would otherwise send eight times what he wanted.
fn meaning(suffix: &str) -> Meaning {
    let (power, rest) = prefix(suffix);
    match rest {
        "b/s" | "bps" => Meaning::Unit(1000_u64.pow(power)),
        "" | "b" if power > 0 => Meaning::Unit(1000_u64.pow(power)),
        "B" | "B/s" | "Bps" | "B/S" | "BPS" => Meaning::Other(in_bytes),
        "iB" | "iB/s" | "iBps" if power > 0 => Meaning::Other(in_bytes),
        "i" | "ib/s" | "ibps" | "ibit/s" | "ibit" if power > 0 => Meaning::Other(binary),
        word => match word.to_ascii_lowercase().as_str() {
            "bit/s" | "bits/s" | "bit" => Meaning::Unit(1000_u64.pow(power)),
            "byte/s" | "bytes/s" => Meaning::Other(in_bytes),
            _ => Meaning::Unknown,
        },
    }
}

/// What to type instead of "10MBps".
fn in_bytes(number: &Number<'_>, suffix: &str) -> String {
    let (power, rest) = prefix(suffix);
    let scale = if rest.starts_with('i') { 1 << (10 * power) } else { 1000_u64.pow(power) };
    let bits = number.times(8 * scale).map(|bits| format!("{}, or ", exact(bits, EXACT)));
    let prefix = suffix.get(..usize::from(power > 0)).unwrap_or_default();
    let typed = number.text;
    let bits = bits.unwrap_or_default();
    format!(
        "is in bytes per second and a rate is in bits per second: \
         write {bits}{typed}{prefix}bit/s if you mean bits"
    )
}

/// What to type instead of "10Mibit/s".
fn binary(number: &Number<'_>, suffix: &str) -> String {
    let (power, _) = prefix(suffix);
    let (typed, prefix) = (number.text, suffix.get(..1).unwrap_or_default());
    let bits = number.times(1 << (10 * power)).map(|bits| format!("{bits}bit/s, or "));
    let bits = bits.unwrap_or_default();
    format!("has a binary prefix and those of rates are decimal: write {bits}{typed}{prefix}bit/s")
}

/// Descending, for values that have to read back exactly.
const EXACT: &[Suffix] = &[
    ("Tbit/s", 1_000_000_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Mbit/s", 1_000_000),
    ("kbit/s", 1_000),
    ("bit/s", 1),
];

impl FromStr for BitRate {
    type Err = ParseUnitError;
    /// Reads "100Mbit/s", and "100M" as a user of iperf3 would type it. Always bits; bytes per
    /// second ("10MBps") are refused.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let expected = "bit/s, kbit/s, Mbit/s or Gbit/s, as in '100Mbit/s' (or '100M')";
        parse_scaled(text, meaning, expected).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_time_for_are_inverse() {
        let rate = BitRate::mean(ByteCount(1_250_000), Span::from_secs(1)).unwrap();
        assert_eq!(rate, BitRate(10_000_000));
        assert_eq!(rate.time_for(ByteCount(1_250_000)), Span::from_secs(1));
    }

    #[test]
    fn bytes_over_no_time_have_no_rate_and_not_one_of_zero() {
        let mean = |bytes, span| BitRate::mean(ByteCount(bytes), Span(span));
        assert_eq!([mean(1, 0), mean(0, 0), mean(1, -1)], [None; 3]);
        assert_eq!(mean(0, 1), Some(BitRate(0)));
    }

    #[test]
    fn iperf_style_and_full_units_agree() {
        for text in ["100M", "100Mbit/s", "100mbit/s", "0.1G", "100_000k"] {
            assert_eq!(text.parse(), Ok(BitRate(100_000_000)), "{text}");
        }
        assert!("100".parse::<BitRate>().is_err());
    }
    #[test]
    fn every_suffix_of_a_rate_is_bits_or_refused() {
        let decimal = |power| Some(1000_u64.pow(power));
        let rows = [("k", 1), ("m", 2), ("g", 3), ("t", 4)].into_iter().flat_map(|(small, power)| {
            let capital = small.to_ascii_uppercase();
            [small.to_owned(), capital].into_iter().flat_map(move |p| {
                let bits = ["", "b", "b/s", "bps", "bit", "bit/s", "bits/s", "BIT/S", "Bit/s"];
                let others = [
                    "B", "B/s", "Bps", "BPS", "iB/s", "iBps", "byte/s", "i", "ib/s", "ibit/s", "b/S", "s",
                    "pps",
                ];
                let bits = bits.map(|rest| (format!("1{p}{rest}"), decimal(power)));
                bits.into_iter().chain(others.map(|rest| (format!("1{p}{rest}"), None)))
            })
        });
        let plain = [
            ("1bit/s", Some(1)),
            ("1bps", Some(1)),
            ("1b/s", Some(1)),
            ("1", None),
            ("1b", None),
            ("1Bps", None),
        ];
        for (text, want) in rows.chain(plain.map(|(text, want)| (text.to_owned(), want))) {
            assert_eq!(text.parse::<BitRate>().ok().map(|rate| rate.0), want, "{text}");
        }
    }

    #[test]
    fn ten_megabytes_per_second_are_not_ten_megabits_per_second() {
        let refused = |text: &str| text.parse::<BitRate>().unwrap_err().to_string();
        assert_eq!(
            refused("10MBps"),
            "'10MBps' is in bytes per second and a rate is in bits per second: \
             write 80Mbit/s, or 10Mbit/s if you mean bits"
        );
        assert!(refused("1MiB/s").contains("write 8388608bit/s, or 1Mbit/s"), "{}", refused("1MiB/s"));
        assert!(refused("0.5kB/s").contains("write 4kbit/s, or 0.5kbit/s"));
        assert!(refused("2Mibit/s").contains("write 2097152bit/s, or 2Mbit/s"), "{}", refused("2Mibit/s"));
        for bad in ["-1M", "NaN", "1e3M", "1e6", "", " ", "M", "18446745Tbit/s", "0.5bit/s", "1,5M"] {
            assert!(bad.parse::<BitRate>().is_err(), "{bad}");
        }
    }
}
