//! Bits per second.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scaled::{ParseUnitError, Suffix, parse_scaled, write_scaled};
use crate::{ByteCount, Span};

/// A rate in bit/s; decimal prefixes, as on every link's label (1 Mbit/s = 1,000,000 bit/s).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct BitRate(pub u64);

impl BitRate {
    /// The mean rate of `bytes` over `span`; zero when no time has passed, because no rate was then
    /// observed.
    pub fn mean(bytes: ByteCount, span: Span) -> Self {
        if span.0 <= 0 {
            return Self(0);
        }
        let bits = u128::from(bytes.0) * 8 * 1_000_000_000;
        Self(u64::try_from(bits / u128::from(span.0.cast_unsigned())).unwrap_or(u64::MAX))
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

const RATES: &[Suffix] = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
    ("bps", 1),
    ("kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
];

impl FromStr for BitRate {
    type Err = ParseUnitError;
    /// Reads "100Mbit/s", and "100M" as a user of iperf3 would type it. Always bits, never bytes.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_scaled(text, RATES, "bit/s, kbit/s, Mbit/s or Gbit/s, as in '100Mbit/s' (or '100M')").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_time_for_are_inverse() {
        let rate = BitRate::mean(ByteCount(1_250_000), Span::from_secs(1));
        assert_eq!(rate, BitRate(10_000_000));
        assert_eq!(rate.time_for(ByteCount(1_250_000)), Span::from_secs(1));
        assert_eq!(BitRate::mean(ByteCount(1), Span::ZERO), BitRate(0));
    }

    #[test]
    fn iperf_style_and_full_units_agree() {
        for text in ["100M", "100Mbit/s", "100mbit/s", "0.1G", "100_000k"] {
            assert_eq!(text.parse(), Ok(BitRate(100_000_000)), "{text}");
        }
        assert!("100".parse::<BitRate>().is_err());
    }
}
