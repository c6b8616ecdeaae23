//! A measurement that was repeated, over the hours: IPv4 against IPv6, with a gap where a turn was
//! missed.

use netaware_record::SeriesKind;

use super::Sketch;
use super::over::{self, Along};
use crate::plot::picture::{Scale, ScaleKind};
use crate::plot::source::Series;
use crate::plot::unit::Unit;

pub(super) fn sketch(series: &Series) -> Option<Sketch> {
    if series.kind != Some(SeriesKind::Repeat) {
        return None;
    }
    let along = Along::time(series);
    let x = Scale::new("time since the first", Unit::Time, ScaleKind::Linear);
    let panels = over::main_panels(&[along], &x);
    Some(Sketch { what: "over time".into(), panels, remarks: vec![super::option::counted(series)] })
}
