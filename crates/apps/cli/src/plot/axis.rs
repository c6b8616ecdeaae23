//! A scale with its ends, its marks and their labels.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, KeyPointWeight, NoDefaultFormatting, Ranged, ValueFormatter};

use super::picture::{Scale, ScaleKind};
use super::unit::{Unit, plain};

/// An axis as it is drawn.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// With the unit, where the labels have none.
    pub(super) title: String,
    low: f64,
    high: f64,
    logarithmic: bool,
    labelled: Vec<f64>,
    minor: Vec<f64>,
    unit: Unit,
    /// One unit for all labels; a logarithmic axis spans too many.
    common: Option<f64>,
}

impl Axis {
    /// Holds all `values` that the scale can show; at most `marks` are labelled.
    pub(super) fn over(scale: &Scale, values: impl Iterator<Item = f64>, marks: usize) -> Self {
        let marks = marks.max(2);
        let found = values.filter(|value| scale.shows(*value)).fold(None, |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((f64::min(low, value), f64::max(high, value)))
        });
        let (low, high) = found.unwrap_or((1.0, 1.0));
        match scale.kind {
            ScaleKind::Logarithmic => Self::logarithmic(scale, low, high, marks),
            // Nothing but zeros: some height all the same, a hundredth of what shares can be.
            ScaleKind::FromZero if low == 0.0 && high == 0.0 => {
                Self::linear(scale, 0.0, if scale.unit == Unit::Share { 0.01 } else { 1.0 }, marks)
            }
            ScaleKind::FromZero => Self::linear(scale, low.min(0.0), high.max(0.0), marks),
            ScaleKind::Linear => Self::linear(scale, low, high, marks),
        }
    }

    fn linear(scale: &Scale, low: f64, high: f64, marks: usize) -> Self {
        let (low, high) = if high > low {
            (low, high)
        } else {
            (low - low.abs().max(1e-12) / 2.0, low + low.abs().max(1e-12) / 2.0)
        };
        let largest = low.abs().max(high.abs());
        // Lengths of packets are told in bytes.
        let (unit, size) =
            scale.unit.fitting(if scale.unit == Unit::Size { largest / 10.0 } else { largest });
        let step = round_step((high - low) / size, marks) * size;
        // A little air, but not below a zero that the axis must show.
        let air = (high - low) * AIR;
        let low = if scale.kind == ScaleKind::FromZero && low >= 0.0 { 0.0 } else { low - air };
        let high = if scale.kind == ScaleKind::FromZero && high <= 0.0 { 0.0 } else { high + air };
        let title = if unit.is_empty() { scale.name.clone() } else { format!("{}, {unit}", scale.name) };
        Self {
            title,
            labelled: multiples(step, low, high),
            minor: Vec::new(),
            low,
            high,
            logarithmic: false,
            unit: scale.unit,
            common: Some(size),
        }
    }

    fn logarithmic(scale: &Scale, low: f64, high: f64, marks: usize) -> Self {
        let (low, high) = if high > low * 1.000_001 { (low, high) } else { (low / 2.0, high * 2.0) };
        let air = (high / low).powf(AIR);
        let (low, high) = (low / air, high * air);
        let of = |mantissas: &[f64]| decades(low, high, mantissas);
        let fine: Vec<f64> = (1..10).map(f64::from).collect();
        let sets = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]];
        let mut labelled =
            sets.iter().map(|set| of(set)).find(|found| found.len() <= marks).unwrap_or_else(|| {
                let all = of(&[1.0]);
                let every = all.len().div_ceil(marks);
                all.into_iter().step_by(every.max(1)).collect()
            });
        if labelled.len() < 3 {
            // Within a decade, between its round numbers: even steps are the rounder ones.
            labelled = multiples(round_step(high - low, marks.min(5)), low, high);
        }
        let minor = if of(&[1.0]).len() <= MOST_DECADES { of(&fine) } else { Vec::new() };
        let title = scale.name.clone();
        Self { title, labelled, minor, low, high, logarithmic: true, unit: scale.unit, common: None }
    }

    /// What stands beside a mark.
    fn label(&self, value: f64) -> String {
        match self.common {
            Some(size) => plain(if (value / size).abs() < 1e-9 { 0.0 } else { value / size }),
            None => self.unit.write(value),
        }
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = String> {
        self.labelled.iter().map(|value| self.label(*value))
    }

    /// Where the axis ends at its low side: the ground of areas.
    pub(super) fn ground(&self) -> f64 {
        if self.logarithmic { self.low } else { self.low.max(0.0).min(self.high) }
    }

    /// Position between the ends, 0 to 1 for those that the axis holds.
    pub(super) fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        // Far outside is as good as a picture's width outside.
        let share = self.share(*value).clamp(-1.0, 2.0);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight() {
            KeyPointWeight::Bold => self.labelled.clone(),
            KeyPointWeight::Any => self.minor.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.label(*value)
    }
}

/// 1, 2 or 5 times a power of ten, so that a range has at most `marks` of it.
fn round_step(range: f64, marks: usize) -> f64 {
    let least = range / marks as f64;
    let power = 10.0_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|mantissa| mantissa * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(power)
}

/// Whole multiples of `step` within the ends.
fn multiples(step: f64, low: f64, high: f64) -> Vec<f64> {
    let (first, last) = ((low / step).ceil(), (high / step).floor());
    if !(step > 0.0 && last - first < 1000.0) {
        return Vec::new();
    }
    (0..=(last - first).max(0.0) as u32).map(|n| (first + f64::from(n)) * step).collect()
}

/// Mantissa times power of ten within the ends.
fn decades(low: f64, high: f64, mantissas: &[f64]) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    (first..=last)
        .flat_map(|power| mantissas.iter().map(move |mantissa| mantissa * 10.0_f64.powi(power)))
        .filter(|value| (low..=high).contains(value))
        .collect()
}

/// Share of the range that is left free at each end.
const AIR: f64 = 0.04;
/// With more the minor lines are a grey sheet.
const MOST_DECADES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(unit: Unit, kind: ScaleKind, values: &[f64], marks: usize) -> Axis {
        Axis::over(&Scale::new("x", unit, kind), values.iter().copied(), marks)
    }

    #[test]
    fn linear_marks_are_round_and_share_a_unit() {
        let axis = axis(Unit::Rate, ScaleKind::FromZero, &[0.0, 94.1e6], 6);
        assert_eq!(axis.title, "x, Mbit/s");
        assert_eq!(axis.labels().collect::<Vec<_>>(), ["0", "20", "40", "60", "80"]);
        assert_eq!(axis.share(0.0).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn logarithmic_marks_get_finer_as_the_range_gets_shorter() {
        let of = |low, high| {
            axis(Unit::Time, ScaleKind::Logarithmic, &[low, high], 8).labels().collect::<Vec<_>>()
        };
        assert_eq!(of(1e-6, 1e-2), ["1 us", "10 us", "100 us", "1 ms", "10 ms"]);
        assert_eq!(of(10e-6, 100e-6), ["10 us", "20 us", "50 us", "100 us"]);
        assert_eq!(of(12e-6, 14e-6), ["12 us", "12.5 us", "13 us", "13.5 us", "14 us"]);
        assert!(of(1e-9, 1e9).len() <= 8);
    }

    #[test]
    fn equal_distances_are_equal_ratios_on_a_logarithmic_axis() {
        let axis = axis(Unit::Number, ScaleKind::Logarithmic, &[1.0, 10_000.0], 8);
        let step = |a, b| axis.share(b) - axis.share(a);
        assert!((step(1.0, 10.0) - step(1000.0, 10_000.0)).abs() < 1e-12);
    }

    #[test]
    fn one_value_none_and_extremes_have_an_axis_too() {
        for values in [&[][..], &[0.0], &[5.0], &[-3.0, -3.0], &[f64::NAN, 1e300], &[1e-300, 1e300]] {
            for kind in [ScaleKind::FromZero, ScaleKind::Linear, ScaleKind::Logarithmic] {
                let axis = axis(Unit::Number, kind, values, 6);
                let range = axis.range();
                assert!(range.start < range.end && axis.labelled.len() <= 13, "{values:?} {kind:?} {axis:?}");
            }
        }
    }
}
