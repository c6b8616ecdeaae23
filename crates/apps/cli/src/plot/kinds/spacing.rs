//! Rate over the spacing of datagrams, log by log, as UDPmon's users read it: on the left the limit
//! of path and hosts, on the right the line `length / t` that any faster path lies on. Below it,
//! what was lost.

use super::Sketch;
use super::over::{self, Along};
use crate::plot::picture::{Ink, Layer, Mark, Panel, Scale, ScaleKind, Shape, Stroke};
use crate::plot::source::{Figure, Series};
use crate::plot::unit::{Unit, plain};

pub(super) fn sketch(series: &Series) -> Option<Sketch> {
    let option = series
        .options
        .iter()
        .position(|option| option.name == "spacing" && option.unit == Some(Unit::Time))?;
    let along = Along::option(series, option);
    let x = Scale::new("spacing from datagram to datagram", Unit::Time, ScaleKind::Logarithmic);
    let mut layers: Vec<Layer> = along.iter().filter_map(|line| guide(series, line)).collect();
    layers.dedup_by(|a, b| a.name == b.name);
    let ways = series.ways(Figure::Rate);
    for (nth, line) in along.iter().enumerate() {
        for way in &ways {
            let named = |what| format!("{} {what}", line.named(*way, &ways));
            let of = |figure| line.points(figure, *way);
            let wire = Mark::Line(Stroke::Fine);
            // Of several combinations all that left would bury what came; it lies on the guides
            // anyway.
            if let [_] = along.as_slice() {
                layers.push(Layer::new(
                    named("sent"),
                    way.version,
                    Mark::Dots(Shape::Ring),
                    of(Figure::Sent),
                ));
                layers.push(Layer::new(named("on the wire"), way.version, wire, of(Figure::Wire)));
            }
            layers.push(Layer::new(named("received"), way.version, over::nth_mark(nth), of(Figure::Rate)));
        }
    }
    let y = Scale::new("rate", Unit::Rate, ScaleKind::Logarithmic);
    let mut panels = vec![Panel { weight: 5, x: x.clone(), y, layers }];
    // The colours are explained above.
    panels.extend(over::loss_panel(&along, &x).map(|mut panel| {
        panel.layers.iter_mut().for_each(|layer| layer.name = None);
        panel
    }));
    let remarks = vec![super::option::counted(series)];
    (!ways.is_empty()).then(|| Sketch { what: "rate over spacing".into(), panels, remarks })
}

/// What leaves by the plan; none where datagrams differ in length.
fn guide(series: &Series, along: &Along<'_>) -> Option<Layer> {
    let ways = series.ways(Figure::Step);
    let mut lengths = ways
        .iter()
        .flat_map(|way| along.points(Figure::Step, *way))
        .map(|(_, y)| y)
        .filter(|y| y.is_finite());
    let length = lengths.next()?;
    if lengths.any(|other| other.to_bits() != length.to_bits()) {
        return None;
    }
    let xs = || along.xs().filter(|x| *x > 0.0);
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    let points: Vec<(f64, f64)> = [low, high].map(|t| (t, length * 8.0 / t)).to_vec();
    (low < high).then(|| Layer::new(format!("{} B / t", plain(length)), Ink::Grey, Mark::Guide, points))
}
