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
    /// A minus stands before the number, and no quantity that is typed can be below zero.
    Negative(String),
    /// The number has an exponent ("1e6M"), which would hide a slip of three zeros.
    Exponent(String),
    /// The value does not fit.
    TooLarge(String),
    /// The value has a part of the smallest unit.
    TooFine(String),
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(given) => write!(f, "'{given}' does not start with a decimal number"),
            Self::UnknownUnit { given, expected } => write!(f, "'{given}' needs a unit: {expected}"),
            Self::OtherUnit { given, instead } => write!(f, "'{given}' {instead}"),
            Self::Negative(given) => write!(f, "'{given}' is negative, which this cannot be"),
            Self::Exponent(given) => write!(f, "'{given}' has an exponent: write the number in digits"),
            Self::TooLarge(given) => write!(f, "'{given}' is too large"),
            Self::TooFine(given) => write!(f, "'{given}' is finer than the smallest unit"),
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
        Some(_) if is_exponent(suffix) => Err(ParseUnitError::Exponent(text.to_owned())),
        // A decimal comma is no unit.
        Some(number) if !suffix.starts_with(',') => Ok((number, suffix)),
        None if is_negative(text) => Err(ParseUnitError::Negative(text.to_owned())),
        _ => Err(ParseUnitError::NotANumber(text.to_owned())),
    }
}

/// Whether what follows the digits begins as an exponent does: "e6", "E-3".
fn is_exponent(suffix: &str) -> bool {
    let power = suffix.strip_prefix(['e', 'E']).map(|power| power.strip_prefix(['+', '-']).unwrap_or(power));
    power.is_some_and(|power| power.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a minus stands before a number.
fn is_negative(text: &str) -> bool {
    let number = text.strip_prefix('-').map(|number| number.strip_prefix('.').unwrap_or(number));
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
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
        Meaning::Unit(scale) => number.times(scale).ok_or_else(|| unfit(&number, scale, given)),
        Meaning::Rounded(scale) => number.nearly_times(scale).ok_or_else(|| unfit(&number, scale, given)),
        Meaning::Other(instead) => {
            Err(ParseUnitError::OtherUnit { given, instead: instead(&number, suffix) })
        }
        Meaning::Unknown => Err(ParseUnitError::UnknownUnit { given, expected }),
    }
}

/// Says why a number of units of this scale is no whole number of base units that fits.
fn unfit(number: &Number<'_>, scale: u64, given: String) -> ParseUnitError {
    if number.value() * scale as f64 >= u64::MAX as f64 {
        ParseUnitError::TooLarge(given)
    } else {
        ParseUnitError::TooFine(given)
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

    #[test]
    fn a_number_with_its_unit_is_not_asked_for_a_unit() {
        let rows = [
            ("-5s", "'-5s' is negative, which this cannot be"),
            ("-.5s", "'-.5s' is negative, which this cannot be"),
            ("-s", "'-s' does not start with a decimal number"),
            ("1e30s", "'1e30s' has an exponent: write the number in digits"),
            ("1E+3s", "'1E+3s' has an exponent: write the number in digits"),
            ("1e-3s", "'1e-3s' has an exponent: write the number in digits"),
            ("1es", "'1es' needs a unit: ns, us, s"),
            ("99999999999999s", "'99999999999999s' is too large"),
            (
                "99999999999999999999999999999999999999999s",
                "'99999999999999999999999999999999999999999s' is too large",
            ),
            ("0.5ns", "'0.5ns' is finer than the smallest unit"),
            ("0.0000000000000000001s", "'0.0000000000000000001s' is finer than the smallest unit"),
        ];
        for (text, want) in rows {
            let error = parse_scaled(text, time, "ns, us, s").unwrap_err();
            assert_eq!(error.to_string(), want);
        }
    }
}
