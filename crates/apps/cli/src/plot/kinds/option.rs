//! The main figures over any scanned option that is a number: streams, window, block size, rate.

use super::Sketch;
use super::over::{self, Along};
use crate::plot::picture::{Scale, ScaleKind};
use crate::plot::source::Series;

/// From this ratio of largest to smallest on, equal ratios are equal distances.
const WIDE: f64 = 20.0;

pub(super) fn sketch(series: &Series) -> Option<Sketch> {
    let numeric = (0..series.options.len()).filter(|at| series.options[*at].unit.is_some());
    // The one that varies most; others beside it become lines of their own.
    let option = numeric.max_by_key(|at| (values(series, *at), std::cmp::Reverse(*at)))?;
    if values(series, option) < 2 {
        return None;
    }
    let along = Along::option(series, option);
    let known = &series.options[option];
    let xs = along.iter().flat_map(Along::xs);
    let (low, high) = xs.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
    let kind = if low > 0.0 && high > low * WIDE { ScaleKind::Logarithmic } else { ScaleKind::Linear };
    let x = Scale::new(known.name.clone(), known.unit?, kind);
    let panels = over::main_panels(&along, &x);
    Some(Sketch { what: format!("scan over {}", known.name), panels, remarks: vec![counted(series)] })
}

/// How many different values a scan gave an option.
fn values(series: &Series, option: usize) -> usize {
    let found =
        series.points.iter().map(|point| point.options[option].number()).filter(|value| value.is_finite());
    let mut bits: Vec<u64> = found.map(f64::to_bits).collect();
    bits.sort_unstable();
    bits.dedup();
    bits.len()
}

/// "41 points", "40 of 41 points".
pub(super) fn counted(series: &Series) -> String {
    let have = series.points.len() as u64;
    if have < series.planned {
        format!("{have} of {} points", series.planned)
    } else {
        format!("{have} points")
    }
}
