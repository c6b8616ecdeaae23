//! `--scan NAME=VALUES`: which values, one after the other, computed when they are needed.
//!
//! | written | means |
//! |---|---|
//! | `spacing=0us..100us+10us` | 0, 10, 20, … 100 us |
//! | `rate=1M..1G*2` | 1, 2, 4, … 512 Mbit/s |
//! | `streams=1,4,16` | these |
//!
//! Arithmetic is that of whole numbers in the smallest unit (ns, bit/s, bytes): the
//! hundred-thousandth value is exact. A factor with a fraction rounds down at each step, and moves
//! on by one where that would stand still.

use std::any::TypeId;

use clap::{Arg, ArgAction, Command};
use netaware_units::{BitRate, ByteCount, Span};

use super::MOST_POINTS;
use super::quantity::{Quantity, Unit, suffix};
use crate::flags::pace::Rate;

/// All combinations of the values of some options; the first option changes slowest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scan {
    /// At least one.
    axes: Vec<Axis>,
}

/// One option and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Axis {
    /// The option's long name.
    name: String,
    values: Values,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Values {
    List(Vec<String>),
    Even {
        from: u64,
        step: u64,
        count: u64,
        unit: Unit,
    },
    /// Each is the one before times `numerator / denominator`.
    Growing {
        from: u64,
        numerator: u64,
        denominator: u64,
        count: u64,
        unit: Unit,
    },
}

/// A point: options by their long names, in the order given, with their values.
pub(super) type Point = Vec<(String, String)>;

impl Scan {
    /// `texts` as typed, `command` the one whose options they name.
    ///
    /// # Errors
    /// One sentence that says what is wrong with which of them.
    pub(super) fn parse(texts: &[String], command: &Command) -> Result<Self, String> {
        let mut scan = Self { axes: Vec::new() };
        for text in texts {
            let axis = Axis::parse(text, command).map_err(|why| format!("--scan {text}: {why}"))?;
            if scan.axes.iter().any(|other| other.name == axis.name) {
                return Err(format!("--{} is scanned twice: give one --scan for it", axis.name));
            }
            scan.axes.push(axis);
        }
        let points = scan.axes.iter().try_fold(1_u64, |points, axis| points.checked_mul(axis.count()));
        match points {
            Some(points) if points <= MOST_POINTS => Ok(scan),
            _ => Err(format!("the scan has more than {MOST_POINTS} points: take larger steps")),
        }
    }

    /// How many points.
    pub(super) fn count(&self) -> u64 {
        self.axes.iter().map(Axis::count).product()
    }

    /// Long names of the scanned options.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().map(|axis| axis.name.as_str())
    }

    /// Number `index`, below [`Self::count`].
    pub(super) fn point(&self, index: u64) -> Point {
        let mut left = index;
        let mut point: Point = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            point.push((axis.name.clone(), axis.value(left % axis.count())));
            left /= axis.count();
        }
        point.reverse();
        point
    }

    /// Points that show whether the options take such values: the first, the last, and each value
    /// of a list and the ends of each range with the others at their first.
    pub(super) fn samples(&self) -> Vec<Point> {
        let first = self.point(0);
        let mut samples = vec![first.clone()];
        for (n, axis) in self.axes.iter().enumerate() {
            let indices: Vec<u64> = match &axis.values {
                Values::List(_) => (1..axis.count()).collect(),
                _ => vec![axis.count() - 1],
            };
            for index in indices {
                let mut point = first.clone();
                point[n].1 = axis.value(index);
                samples.push(point);
            }
        }
        samples.push(self.point(self.count() - 1));
        samples
    }
}

impl Axis {
    fn parse(text: &str, command: &Command) -> Result<Self, String> {
        let (name, values) =
            text.split_once('=').ok_or("write NAME=FROM..TO+STEP, NAME=FROM..TO*FACTOR or NAME=A,B,C")?;
        let option = scannable(name.trim().trim_start_matches('-'), command)?;
        let name = option.get_long().unwrap_or(name).to_owned();
        let quantity = quantity_of(option);
        let values = match values.split_once("..") {
            None => list(values, quantity)?,
            Some((from, rest)) => {
                let quantity =
                    quantity.ok_or_else(|| format!("--{name} takes no numbers: list its values, A,B,C"))?;
                range(from.trim(), rest, quantity)?
            }
        };
        Ok(Self { name, values })
    }

    /// At least one.
    fn count(&self) -> u64 {
        match &self.values {
            Values::List(values) => values.len() as u64,
            Values::Even { count, .. } | Values::Growing { count, .. } => *count,
        }
    }

    fn value(&self, index: u64) -> String {
        match &self.values {
            Values::List(values) => {
                usize::try_from(index).ok().and_then(|at| values.get(at)).cloned().unwrap_or_default()
            }
            Values::Even { from, step, unit, .. } => unit.write(from + step * index),
            Values::Growing { from, numerator, denominator, unit, .. } => {
                unit.write((0..index).fold(*from, |value, _| grown(value, *numerator, *denominator)))
            }
        }
    }
}

/// An option of the measurement itself that takes one value.
fn scannable<'c>(name: &str, command: &'c Command) -> Result<&'c Arg, String> {
    let is_meant = |arg: &&Arg| {
        arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    };
    let option = command
        .get_arguments()
        .find(is_meant)
        .ok_or_else(|| format!("'netaware {}' has no option --{name}", command.get_name()))?;
    let heading = option.get_help_heading();
    let of_measurement = !matches!(heading, Some("Output" | "Series")) && name != "key-file";
    if !of_measurement || !matches!(option.get_action(), ArgAction::Set) {
        return Err(format!("--{name} has no values that a measurement could go by"));
    }
    Ok(option)
}

/// Counts and sizes share a type; so they share a quantity.
fn quantity_of(option: &Arg) -> Option<Quantity> {
    let read = option.get_value_parser().type_id();
    let is = |types: &[TypeId]| types.iter().any(|of| read == *of);
    if is(&[TypeId::of::<Span>()]) {
        Some(Quantity::Time)
    } else if is(&[TypeId::of::<BitRate>(), TypeId::of::<Rate>()]) {
        Some(Quantity::Rate)
    } else {
        let whole = [TypeId::of::<u8>(), TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
        (is(&whole) || is(&[TypeId::of::<usize>(), TypeId::of::<ByteCount>()])).then_some(Quantity::Size)
    }
}

/// As typed, but sizes and rates with the unit that tells them apart: "64K" is 64 KiB of a buffer,
/// 64 kbit/s of a rate.
fn list(text: &str, quantity: Option<Quantity>) -> Result<Values, String> {
    let written = |item: &str| match quantity.map(|quantity| (quantity, quantity.parse(item))) {
        Some((quantity, Ok(value))) if !suffix(item).is_empty() => {
            quantity.unit(&[value], &[item]).write(value)
        }
        _ => item.to_owned(),
    };
    let items: Vec<String> = text.split(',').map(str::trim).map(written).collect();
    if items.iter().any(String::is_empty) {
        return Err("a value is missing".to_owned());
    }
    Ok(Values::List(items))
}

/// `rest` is "TO+STEP" or "TO*FACTOR".
fn range(from: &str, rest: &str, quantity: Quantity) -> Result<Values, String> {
    let at = rest.find(['+', '*']).ok_or("how to go on is missing: add +STEP or *FACTOR")?;
    let (to, change) = (rest[..at].trim(), rest[at + 1..].trim());
    let is_step = rest[at..].starts_with('+');
    // "0..100us+10us" and "1..10ms+1ms" leave no doubt, as a time or a rate needs a unit. A size
    // does not: without one it is in bytes, here as everywhere.
    let with_unit = |text: &str| {
        let lacks_unit = quantity != Quantity::Size && suffix(text).is_empty();
        if lacks_unit { format!("{text}{}", suffix(to)) } else { text.to_owned() }
    };
    let (first, last) = (quantity.parse(&with_unit(from))?, quantity.parse(to)?);
    if first > last {
        return Err(format!("{from} lies above {to}"));
    }
    if !is_step {
        return growing(first, last, change, quantity, &[from, to]);
    }
    let step = quantity.parse(&with_unit(change))?;
    if step == 0 {
        return Err("a step of zero leads nowhere".to_owned());
    }
    let unit = quantity.unit(&[first, step], &[from, to, change]);
    Ok(Values::Even { from: first, step, count: ((last - first) / step).saturating_add(1), unit })
}

fn growing(from: u64, to: u64, factor: &str, quantity: Quantity, typed: &[&str]) -> Result<Values, String> {
    let (numerator, denominator) = fraction(factor)
        .ok_or_else(|| format!("'{factor}' is no factor of 1.01 or more with at most two decimals"))?;
    if from == 0 {
        return Err("multiplied, zero stays zero: begin above it".to_owned());
    }
    let mut count = 0;
    let mut value = from;
    while value <= to {
        count += 1;
        let next = grown(value, numerator, denominator);
        if next == value {
            break;
        }
        value = next;
    }
    // Of a factor with a fraction only the smallest unit holds all values.
    let unit = if denominator == 1 { quantity.unit(&[from], typed) } else { quantity.unit(&[1], typed) };
    Ok(Values::Growing { from, numerator, denominator, count, unit })
}

/// Saturates at the largest number.
fn grown(value: u64, numerator: u64, denominator: u64) -> u64 {
    let next = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(next).unwrap_or(u64::MAX).max(value.saturating_add(1))
}

/// "2" is 2/1, "1.25" is 125/100. Smaller than 1.01 would need more steps than anybody waits for.
fn fraction(text: &str) -> Option<(u64, u64)> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 2 || whole.len() > 9 || text.starts_with('+') || decimals.starts_with('+') {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    if decimals.trim_end_matches('0').is_empty() {
        return (whole > 1).then_some((whole, 1));
    }
    let hundredths = whole * 100 + format!("{decimals:0<2}").parse::<u64>().ok()?;
    (hundredths > 100).then_some((hundredths, 100))
}

#[cfg(test)]
mod tests;
