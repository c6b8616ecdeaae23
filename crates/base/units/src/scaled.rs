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
    /// The value does not fit, or is finer than the smallest unit.
    OutOfRange(String),
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(given) => write!(f, "'{given}' does not start with a decimal number"),
            Self::UnknownUnit { given, expected } => write!(f, "'{given}' needs a unit: {expected}"),
            Self::OutOfRange(given) => write!(f, "'{given}' is too large or too fine"),
        }
    }
}

impl std::error::Error for ParseUnitError {}

/// One accepted suffix and how many base units it stands for.
pub(crate) type Suffix = (&'static str, u64);

/// Splits number and suffix and multiplies without floating point, so that "0.1s" is exactly
/// 100,000,000 ns.
///
/// A suffix matches exactly first and without regard to case second ("100mbit/s" is kind; "1MS"
/// stays an error only where two suffixes differ in case alone). A suffix of "" in the table makes
/// the unit optional.
pub(crate) fn parse_scaled(
    text: &str,
    suffixes: &[Suffix],
    expected: &'static str,
) -> Result<u64, ParseUnitError> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, suffix) = (&text[..split], text[split..].trim());
    let scale = suffixes
        .iter()
        .find(|(s, _)| *s == suffix)
        .or_else(|| suffixes.iter().find(|(s, _)| s.eq_ignore_ascii_case(suffix)))
        .map(|(_, scale)| *scale);
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(ParseUnitError::NotANumber(text.to_owned()));
    }
    let Some(scale) = scale else {
        return Err(ParseUnitError::UnknownUnit { given: text.to_owned(), expected });
    };
    exact_product(whole, fraction, scale).ok_or_else(|| ParseUnitError::OutOfRange(text.to_owned()))
}

fn exact_product(whole: &str, fraction: &str, scale: u64) -> Option<u64> {
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return None;
    }
    let tens = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let parts: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let fine = parts * u128::from(scale);
    if !fine.is_multiple_of(tens) {
        return None;
    }
    u64::try_from(whole.checked_mul(u128::from(scale))? + fine / tens).ok()
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

    const T: &[Suffix] = &[("ns", 1), ("us", 1_000), ("s", 1_000_000_000)];

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
        ];
        for (n, (text, want)) in rows.iter().enumerate() {
            assert_eq!(parse_scaled(text, T, "ns, us, s").map_err(|_| ()), *want, "row {n}: {text}");
        }
    }
}
