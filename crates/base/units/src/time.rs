//! Instants of three clocks and the spans between them, in nanoseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scaled::{Meaning, Number, ParseUnitError, Suffix, parse_scaled, write_scaled};

/// An instant of this host's monotonic clock: nanoseconds since a zero that means nothing by
/// itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct Mono(pub u64);

/// An instant of the *other* host's monotonic clock. Only its differences have meaning here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct RemoteMono(pub u64);

/// Nanoseconds since 1970-01-01 UTC as this host believes them. It may step at any time, so nothing
/// is ever measured with it; it labels results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct Wall(pub i64);

/// A signed duration in nanoseconds, ±292 years. Arithmetic saturates: a hostile far-away instant
/// yields a huge span, never a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct Span(pub i64);

impl Mono {
    /// `self - earlier`; negative when `earlier` is in fact later.
    pub fn since(self, earlier: Self) -> Span {
        Span(saturating_difference(self.0, earlier.0))
    }
}

impl RemoteMono {
    /// `self - earlier` on the remote clock.
    pub fn since(self, earlier: Self) -> Span {
        Span(saturating_difference(self.0, earlier.0))
    }
}

fn saturating_difference(a: u64, b: u64) -> i64 {
    let d = i128::from(a) - i128::from(b);
    d.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

impl Add<Span> for Mono {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add_signed(span.0))
    }
}

impl AddAssign<Span> for Mono {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Mono {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        self + -span
    }
}

impl Sub for Mono {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        self.since(earlier)
    }
}

impl Wall {
    /// `self - earlier`, wrong by whatever the clock was stepped in between.
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: i64) -> Self {
        Self(n)
    }
    /// `n` microseconds.
    pub const fn from_micros(n: i64) -> Self {
        Self(n.saturating_mul(1_000))
    }
    /// `n` milliseconds.
    pub const fn from_millis(n: i64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }
    /// `n` seconds.
    pub const fn from_secs(n: i64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }
    /// Rounds to the nearest nanosecond; saturates.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as i64)
    }
    /// Nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }
    /// Seconds.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Milliseconds.
    pub fn millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Microseconds.
    pub fn micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// Magnitude.
    #[must_use]
    pub fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
    /// Never negative.
    #[must_use]
    pub fn or_zero(self) -> Self {
        Self(self.0.max(0))
    }
    /// For calls that take the standard type; negative becomes zero.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0.max(0).cast_unsigned())
    }
}

impl From<std::time::Duration> for Span {
    fn from(d: std::time::Duration) -> Self {
        Self(i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Neg for Span {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Mul<i64> for Span {
    type Output = Self;
    fn mul(self, n: i64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl Div<i64> for Span {
    type Output = Self;
    /// Division by zero gives zero: a mean over nothing is nothing.
    fn div(self, n: i64) -> Self {
        Self(self.0.checked_div(n).unwrap_or(0))
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0 as f64, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)])
    }
}

/// Reads the unit of a time. Units of time are written in small letters: "M" is a month to some
/// and mega to others, so it is not read as a minute.
fn meaning(suffix: &str) -> Meaning {
    let unit = |suffix: &str| SPANS.iter().find(|(name, _)| *name == suffix).map(|(_, scale)| *scale);
    match unit(suffix) {
        Some(scale) => Meaning::Unit(scale),
        None if suffix == "M" => Meaning::Other(minute_or_milli),
        None if unit(&suffix.to_ascii_lowercase()).is_some() => Meaning::Other(small_letters),
        None => Meaning::Unknown,
    }
}

fn minute_or_milli(number: &Number<'_>, _: &str) -> String {
    let typed = number.text;
    format!("has a capital M, which is no unit of time: write {typed}min or {typed}ms")
}

fn small_letters(number: &Number<'_>, suffix: &str) -> String {
    let typed = number.text;
    let small = suffix.to_ascii_lowercase();
    format!("has capital letters in its unit: write {typed}{small}")
}

const SPANS: &[Suffix] = &[
    ("ns", 1),
    ("us", 1_000),
    // The sign for micro, and the Greek letter.
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

impl FromStr for Span {
    type Err = ParseUnitError;
    /// Reads "20us", "1.5ms", "10s", "5min" or "5m", "1h", "7d". A bare number is refused: it would
    /// be a guess.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let nanos = parse_scaled(text, meaning, "ns, us, ms, s, min, h or d, as in '20us'")?;
        i64::try_from(nanos).map(Self).map_err(|_| ParseUnitError::TooLarge(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_instants_saturate_instead_of_overflowing() {
        assert_eq!(Mono(u64::MAX).since(Mono(0)), Span(i64::MAX));
        assert_eq!(Mono(0).since(Mono(u64::MAX)), Span(i64::MIN));
        assert_eq!(Mono(5) - Span(10), Mono(0));
        assert_eq!(-Span(i64::MIN), Span(i64::MAX));
    }

    #[test]
    fn a_span_is_cut_into_equal_parts_and_into_no_parts_it_is_nothing() {
        assert_eq!([Span(10) / 3, Span(-10) / 3, Span(10) / 0], [Span(3), Span(-3), Span::ZERO]);
        assert_eq!(Span(i64::MIN) / -1, Span::ZERO, "no such span");
    }

    #[test]
    fn spans_print_with_a_unit_that_fits() {
        let rows = [
            (0, "0 ns"),
            (999, "999 ns"),
            (20_000, "20.0 us"),
            (1_234_567, "1.23 ms"),
            (10_000_000_000, "10.0 s"),
        ];
        for (nanos, want) in rows {
            assert_eq!(Span(nanos).to_string(), want);
        }
    }

    #[test]
    fn a_bare_number_is_not_a_span() {
        assert!("10".parse::<Span>().is_err());
        assert_eq!("10s".parse::<Span>(), Ok(Span::from_secs(10)));
    }

    #[test]
    fn every_unit_of_time_is_itself_and_a_capital_m_is_no_minute() {
        let rows = [
            ("2ns", Ok(2)),
            ("2us", Ok(2_000)),
            ("2\u{b5}s", Ok(2_000)),
            ("2\u{3bc}s", Ok(2_000)),
            ("2ms", Ok(2_000_000)),
            ("2s", Ok(2_000_000_000)),
            ("2m", Ok(120_000_000_000)),
            ("2min", Ok(120_000_000_000)),
            ("2h", Ok(7_200_000_000_000)),
            ("2d", Ok(172_800_000_000_000)),
            ("2M", Err("'2M' has a capital M, which is no unit of time: write 2min or 2ms")),
            ("2MS", Err("'2MS' has capital letters in its unit: write 2ms")),
            ("2S", Err("'2S' has capital letters in its unit: write 2s")),
            ("2", Err("'2' needs a unit: ns, us, ms, s, min, h or d, as in '20us'")),
            ("2u", Err("'2u' needs a unit: ns, us, ms, s, min, h or d, as in '20us'")),
            ("-2s", Err("'-2s' is negative, which this cannot be")),
            ("NaNs", Err("'NaNs' does not start with a decimal number")),
            ("1e3s", Err("'1e3s' has an exponent: write the number in digits")),
            ("9223372037s", Err("'9223372037s' is too large")),
            ("0.1ns", Err("'0.1ns' is finer than the smallest unit")),
            ("", Err("'' does not start with a decimal number")),
        ];
        for (text, want) in rows {
            let found = text.parse::<Span>().map(|span| span.0).map_err(|error| error.to_string());
            assert_eq!(found, want.map_err(str::to_owned), "{text}");
        }
    }
}
