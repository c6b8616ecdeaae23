//! What a number on an axis stands for, and how it is written.

use netaware_units::{BitRate, ByteCount, Span};

/// In base units: seconds, bit/s, bytes, a share of 1, or a mere number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Time,
    Rate,
    /// Decimal prefixes, as block sizes and links are asked for.
    Size,
    Share,
    Number,
}

impl Unit {
    /// Names with their sizes, ascending.
    fn steps(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Time => {
                &[("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)]
            }
            Self::Rate => {
                &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("Tbit/s", 1e12)]
            }
            Self::Size => &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)],
            Self::Share => &[("%", 0.01)],
            Self::Number => &[("", 1.0)],
        }
    }

    /// The largest name of which `value` has at least one; minutes and hours only from two on.
    pub(crate) fn fitting(self, value: f64) -> (&'static str, f64) {
        let steps = self.steps();
        let has = |(_, size): &&(&str, f64)| {
            value.abs() >= if *size > 1.0 && self == Self::Time { 2.0 * size } else { *size } * (1.0 - 1e-9)
        };
        steps.iter().rev().find(has).or(steps.first()).copied().unwrap_or(("", 1.0))
    }

    /// A value with its unit: "20 us".
    pub(crate) fn write(self, value: f64) -> String {
        let (name, size) = self.fitting(value);
        let number = plain(value / size);
        if name.is_empty() { number } else { format!("{number} {name}") }
    }

    /// Reads what a scan wrote of one of its points, and tells what it is.
    pub(crate) fn read(text: &str) -> Option<(f64, Self)> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        if let Ok(number) = text.parse::<f64>() {
            return number.is_finite().then_some((number, Self::Number));
        }
        if let Ok(span) = text.parse::<Span>() {
            return Some((span.0 as f64 / 1e9, Self::Time));
        }
        let is_rate = text.ends_with("bit/s") || text.ends_with("bps");
        if let (true, Ok(rate)) = (is_rate, text.parse::<BitRate>()) {
            return Some((rate.0 as f64, Self::Rate));
        }
        text.parse::<ByteCount>().ok().map(|size| (size.0 as f64, Self::Size))
    }
}

/// At most six digits that count, no zeros at the end, no exponent.
pub(crate) fn plain(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let decimals = (5.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_the_unit_that_fits() {
        let rows = [
            (Unit::Time, 20e-6, "20 us"),
            (Unit::Time, 1e-3, "1 ms"),
            (Unit::Time, 90.0, "90 s"),
            (Unit::Time, 7200.0, "2 h"),
            (Unit::Rate, 9.41e9, "9.41 Gbit/s"),
            (Unit::Size, 50.0, "50 B"),
            (Unit::Size, 100_000.0, "100 kB"),
            (Unit::Share, 0.001, "0.1 %"),
            (Unit::Number, 512.0, "512"),
            (Unit::Number, 0.0, "0"),
        ];
        for (unit, value, want) in rows {
            assert_eq!(unit.write(value), want);
        }
    }

    #[test]
    fn points_of_a_scan_are_read_with_their_unit() {
        let rows = [
            ("20us", Some((20e-6, Unit::Time))),
            ("20.0 us", Some((20e-6, Unit::Time))),
            ("1472 B", Some((1472.0, Unit::Size))),
            ("1472B", Some((1472.0, Unit::Size))),
            ("100 Mbit/s", Some((100e6, Unit::Rate))),
            ("8", Some((8.0, Unit::Number))),
            ("gso", None),
            ("", None),
        ];
        for (text, want) in rows {
            let found = Unit::read(text);
            assert_eq!(found.map(|f| f.1), want.map(|w| w.1), "{text}");
            assert!(found.zip(want).is_none_or(|(f, w)| (f.0 - w.0).abs() <= w.0 * 1e-12), "{text}");
        }
    }
}
