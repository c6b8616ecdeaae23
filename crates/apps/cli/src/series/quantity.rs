//! Values of scanned options as whole numbers of their smallest unit, and back to text without
//! rounding.

use netaware_units::{BitRate, ByteCount, Span};

/// What the values of an option are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// ns.
    Time,
    /// bit/s.
    Rate,
    /// Bytes, or a plain count, which has no unit.
    Size,
}

/// A unit that values are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    name: &'static str,
    /// In the smallest unit of the quantity.
    scale: u64,
}

const TIMES: &[Unit] = &[unit("s", 1_000_000_000), unit("ms", 1_000_000), unit("us", 1_000), unit("ns", 1)];
const RATES: &[Unit] =
    &[unit("Gbit/s", 1_000_000_000), unit("Mbit/s", 1_000_000), unit("kbit/s", 1_000), unit("bit/s", 1)];
const SIZES: &[Unit] = &[
    unit("GiB", 1 << 30),
    unit("GB", 1_000_000_000),
    unit("MiB", 1 << 20),
    unit("MB", 1_000_000),
    unit("KiB", 1 << 10),
    unit("kB", 1_000),
    unit("B", 1),
];
const COUNT: Unit = unit("", 1);

const fn unit(name: &'static str, scale: u64) -> Unit {
    Unit { name, scale }
}

impl Quantity {
    /// In the smallest unit. A time and a rate need a unit.
    pub(super) fn parse(self, text: &str) -> Result<u64, String> {
        match self {
            Self::Time => {
                text.parse::<Span>().map(|span| span.0.max(0).cast_unsigned()).map_err(|e| e.to_string())
            }
            Self::Rate => text.parse::<BitRate>().map(|rate| rate.0).map_err(|e| e.to_string()),
            Self::Size => text.parse::<ByteCount>().map(|size| size.0).map_err(|e| e.to_string()),
        }
    }

    /// The largest unit in which all of these are whole numbers. `typed` shows whether the person
    /// wrote units at all.
    pub(super) fn unit(self, values: &[u64], typed: &[&str]) -> Unit {
        let units = match self {
            Self::Time => TIMES,
            Self::Rate => RATES,
            Self::Size if typed.iter().all(|text| suffix(text).is_empty()) => return COUNT,
            Self::Size => SIZES,
        };
        let fits = |unit: &&Unit| values.iter().all(|value| value.is_multiple_of(unit.scale));
        let some = values.iter().any(|value| *value > 0);
        units.iter().find(|unit| some && fits(unit)).or(units.last()).copied().unwrap_or(COUNT)
    }
}

impl Unit {
    /// "20us"; exact for values that the unit was chosen for.
    pub(super) fn write(self, value: u64) -> String {
        format!("{}{}", value / self.scale, self.name)
    }
}

/// What follows the number.
pub(super) fn suffix(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '_').trim()
}

/// A value as [`Unit::write`] makes it: the number in the smallest unit, and the ending that names
/// this unit in the heading of a table: `_ns`, `_bps`, `_bytes`, or none. `None` for what is no
/// number.
pub(crate) fn base_value(text: &str) -> Option<(u64, &'static str)> {
    let is = |units: &[Unit]| units.iter().any(|unit| unit.name == suffix(text));
    let (quantity, ending) = match suffix(text) {
        "" => (Quantity::Size, ""),
        _ if is(TIMES) => (Quantity::Time, "_ns"),
        _ if is(RATES) => (Quantity::Rate, "_bps"),
        _ if is(SIZES) => (Quantity::Size, "_bytes"),
        _ => return None,
    };
    quantity.parse(text).ok().map(|value| (value, ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_without_rounding_in_one_unit() {
        let rows: &[(Quantity, &[&str], &[&str])] = &[
            (Quantity::Time, &["0us", "10us", "100us"], &["0us", "10us", "100us"]),
            (Quantity::Time, &["1.5us", "3us"], &["1500ns", "3000ns"]),
            (Quantity::Time, &["1ms", "2s"], &["1ms", "2000ms"]),
            (Quantity::Time, &["0s"], &["0ns"]),
            (Quantity::Rate, &["1M", "1.5G"], &["1Mbit/s", "1500Mbit/s"]),
            (Quantity::Rate, &["1234567bps"], &["1234567bit/s"]),
            (Quantity::Size, &["64", "1500"], &["64", "1500"]),
            (Quantity::Size, &["64K", "4MiB"], &["64KiB", "4096KiB"]),
            (Quantity::Size, &["1MB", "1MiB"], &["1000000B", "1048576B"]),
            (Quantity::Size, &["3MB"], &["3MB"]),
        ];
        for (n, (quantity, typed, want)) in rows.iter().enumerate() {
            let values: Vec<u64> = typed.iter().map(|text| quantity.parse(text).unwrap()).collect();
            let unit = quantity.unit(&values, typed);
            let written: Vec<String> = values.iter().map(|value| unit.write(*value)).collect();
            assert_eq!(written, *want, "row {n}");
            for (text, value) in written.iter().zip(values) {
                assert_eq!(base_value(text).map(|(base, _)| base), Some(value), "row {n}");
            }
        }
    }

    #[test]
    fn the_ending_of_a_heading_names_the_smallest_unit() {
        let rows = [
            ("20us", Some((20_000, "_ns"))),
            ("1Mbit/s", Some((1_000_000, "_bps"))),
            ("64KiB", Some((65_536, "_bytes"))),
            ("8", Some((8, ""))),
            ("cubic", None),
            ("", None),
            ("5us7", None),
        ];
        for (text, want) in rows {
            assert_eq!(base_value(text), want, "{text}");
        }
    }
}
