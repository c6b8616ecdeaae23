//! A number with a unit suffix, parsed exactly: "1.5ms", "100Mbit/s", "64KiB".

use std::fmt;

/// Why a quantity could not be read. Its text is a sentence for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseUnitError {
    /// Nothing stands before the unit, or it is no decimal number.
    NotANumber(String),
    /// The unit is missing or unknown; `expected` lists what would do.
    UnknownUnit {
        /// What was typed.
        given: String,
        /// Units that are understood here.
        expected: &'static str,
    },
    /// The unit is that of another quantity, or could be two units; `instead` says what to type.
    OtherUnit {
        /// What was typed.
        given: String,
        /// What it is, and what to type instead.
        instead: String,
    },
    /// The value does not fit, or is finer than the smallest unit.
    OutOfRange(String),
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(given) => write!(f, "'{given}' does not start with a decimal number"),
            Self::UnknownUnit { given, expected } => write!(f, "'{given}' needs a unit: {expected}"),
            Self::OtherUnit { given, instead } => write!(f, "'{given}' {instead}"),
            Self::OutOfRange(given) => write!(f, "'{given}' is too large or too fine"),
        }
    }
}

impl std::error::Error for ParseUnitError {}

/// One accepted unit and how many base units it stands for.
pub(crate) type Suffix = (&'static str, u64);

/// What a suffix turned out to be.
pub(crate) enum Meaning {
    /// It is a unit of the quantity: so many base units.
    Unit(u64),
    /// The same, and a fraction is rounded to the nearest base unit: hardly any decimal fraction of
    /// a power of two is a whole number.
    Rounded(u64),
    /// It is a unit of another quantity, or could be two units. The function gets the number as it
    /// was typed and says what to type instead.
    Other(fn(&Number<'_>, &str) -> String),
    /// It is no unit.
    Unknown,
}

/// A decimal number as it was typed, without its separators.
pub(crate) struct Number<'a> {
    /// As typed.
    pub(crate) text: &'a str,
    whole: String,
    fraction: String,
}

impl<'a> Number<'a> {
    /// Digits, at most one point, and `_` between digits; no sign and no exponent.
    fn parse(text: &'a str) -> Option<Self> {
        let plain = text.replace('_', "");
        let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
        let is_number = !(whole.is_empty() && fraction.is_empty())
            && whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
        is_number.then(|| Self { text, whole: whole.to_owned(), fraction: fraction.to_owned() })
    }

    /// So many times `scale`, exactly; `None` if it does not fit or is no whole number.
    pub(crate) fn times(&self, scale: u64) -> Option<u64> {
        product(&self.whole, &self.fraction, scale, Rest::Refused)
    }

    /// The nearest whole number to so many times `scale`; `None` if it does not fit.
    pub(crate) fn nearly_times(&self, scale: u64) -> Option<u64> {
        product(&self.whole, &self.fraction, scale, Rest::Rounded)
    }

    /// The nearest floating-point number.
    pub(crate) fn value(&self) -> f64 {
        format!("{}.{}", self.whole, self.fraction).parse().unwrap_or(f64::INFINITY)
    }
}

/// Splits text into a number and what follows it.
pub(crate) fn split(text: &str) -> Result<(Number<'_>, &str), ParseUnitError> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, suffix) = (&text[..split], text[split..].trim());
    match Number::parse(number) {
        // A decimal comma is no unit.
        Some(number) if !suffix.starts_with(',') => Ok((number, suffix)),
        _ => Err(ParseUnitError::NotANumber(text.to_owned())),
    }
}

/// Splits number and suffix and multiplies without floating point, so that "0.1s" is exactly
/// 100,000,000 ns.
pub(crate) fn parse_scaled(
    text: &str,
    meaning: fn(&str) -> Meaning,
    expected: &'static str,
) -> Result<u64, ParseUnitError> {
    let (number, suffix) = split(text)?;
    let given = text.trim().to_owned();
    match meaning(suffix) {
        Meaning::Unit(scale) => number.times(scale).ok_or(ParseUnitError::OutOfRange(given)),
        Meaning::Rounded(scale) => number.nearly_times(scale).ok_or(ParseUnitError::OutOfRange(given)),
        Meaning::Other(instead) => {
            Err(ParseUnitError::OtherUnit { given, instead: instead(&number, suffix) })
        }
        Meaning::Unknown => Err(ParseUnitError::UnknownUnit { given, expected }),
    }
}

/// Splits a prefix of thousands off a unit, in capital or small letters (no unit here has a prefix
/// for thousandths): its power, and the rest.
pub(crate) fn prefix(suffix: &str) -> (u32, &str) {
    let power = match suffix.as_bytes().first() {
        Some(b'k' | b'K') => 1,
        Some(b'm' | b'M') => 2,
        Some(b'g' | b'G') => 3,
        Some(b't' | b'T') => 4,
        _ => return (0, suffix),
    };
    (power, &suffix[1..])
}

/// The value in the largest of these units (descending) of which it is a whole number, so that it
/// reads back as it was.
pub(crate) fn exact(value: u64, units: &[Suffix]) -> String {
    let fitting = units.iter().find(|(_, scale)| value != 0 && value.is_multiple_of(*scale));
    let (name, scale) = fitting.or(units.last()).copied().unwrap_or(("", 1));
    format!("{}{name}", value / scale)
}

/// What becomes of a part of a base unit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Refused,
    Rounded,
}

fn product(whole: &str, fraction: &str, scale: u64, rest: Rest) -> Option<u64> {
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return None;
    }
    let tens = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let parts: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let fine = parts * u128::from(scale);
    if rest == Rest::Refused && !fine.is_multiple_of(tens) {
        return None;
    }
    let fine = if rest == Rest::Rounded { fine + tens / 2 } else { fine };
    u64::try_from(whole.checked_mul(u128::from(scale))?.checked_add(fine / tens)?).ok()
}

/// Writes `value` with the largest unit that leaves at least one whole digit, three significant
/// digits or more.
pub(crate) fn write_scaled(f: &mut fmt::Formatter<'_>, value: f64, units: &[(&str, f64)]) -> fmt::Result {
    let (name, scale) = units
        .iter()
        .rev()
        .find(|(_, scale)| value.abs() >= *scale)
        .or_else(|| units.first())
        .copied()
        .unwrap_or(("", 1.0));
    let shown = value / scale;
    // The smallest unit is the integer itself; showing decimals of it would invent precision.
    let smallest = units.first().is_some_and(|(first, _)| *first == name);
    let decimals = match f.precision() {
        Some(given) => given,
        None if smallest => 0,
        None if shown.abs() < 10.0 => 2,
        None if shown.abs() < 100.0 => 1,
        None => 0,
    };
    f.pad_integral(true, "", &format!("{shown:.decimals$} {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(suffix: &str) -> Meaning {
        match suffix {
            "ns" => Meaning::Unit(1),
            "us" => Meaning::Unit(1_000),
            "s" => Meaning::Unit(1_000_000_000),
            _ => Meaning::Unknown,
        }
    }

    #[test]
    fn fractions_are_exact_and_too_fine_ones_refused() {
        let rows: &[(&str, Result<u64, ()>)] = &[
            ("0.1s", Ok(100_000_000)),
            ("1.5us", Ok(1_500)),
            (".5us", Ok(500)),
            ("1_000ns", Ok(1_000)),
            ("0.5ns", Err(())),
            ("us", Err(())),
            ("5", Err(())),
            ("1.2.3s", Err(())),
            ("-1s", Err(())),
            ("99999999999999s", Err(())),
            ("", Err(())),
            (" ", Err(())),
            ("1,5s", Err(())),
            ("1e3s", Err(())),
            ("+1s", Err(())),
            ("NaNs", Err(())),
            ("infs", Err(())),
            ("_s", Err(())),
            (".s", Err(())),
            ("1s1s", Err(())),
            (" 1 s ", Ok(1_000_000_000)),
            ("340282366920938463463374607431768211455ns", Err(())),
            ("340282366920938463463374607431768211456ns", Err(())),
        ];
        for (n, (text, want)) in rows.iter().enumerate() {
            assert_eq!(parse_scaled(text, time, "ns, us, s").map_err(|_| ()), *want, "row {n}: {text}");
        }
    }
}
