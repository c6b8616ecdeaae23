//! Round trip over size with a line through it (Theil and Sen): where it meets the axis, what an
//! empty message takes; its slope, what each byte adds in all stages that store and forward.
//! Medians, because a line through means follows the outliers; the minima beside them show how much
//! of it is waiting.

use netaware_stats::trend;

use super::Sketch;
use super::over::Along;
use crate::plot::picture::{Layer, Mark, Panel, Scale, ScaleKind, Shape, Stroke};
use crate::plot::source::{Carrier, Figure, Series, Way};
use crate::plot::unit::{Unit, plain};

/// Options of `latency` that are sizes.
const SIZES: [&str; 4] = ["length", "response", "request", "size"];

pub(super) fn sketch(series: &Series) -> Option<Sketch> {
    let is_size = |name: &str, unit: Option<Unit>| {
        SIZES.contains(&name) && matches!(unit, Some(Unit::Size | Unit::Number))
    };
    let option = series.options.iter().position(|option| is_size(&option.name, option.unit))?;
    let along = Along::option(series, option);
    let ways = series.ways(Figure::Rtt);
    let mut layers = Vec::new();
    for (line, way) in along.iter().flat_map(|line| ways.iter().map(move |way| (line, way))) {
        let named = line.named(*way, &ways);
        let medians = line.points(Figure::Rtt, *way);
        let fit = fit(&medians, &named, *way);
        let is_beside_udp = way.carrier == Carrier::Tcp && ways.iter().any(|it| it.carrier == Carrier::Udp);
        let shape = if is_beside_udp { Shape::Ring } else { Shape::Disc };
        let minima = line.points(Figure::RttLow, *way);
        layers.push(Layer::new(format!("{named} minimum"), way.version, Mark::Dots(Shape::Cross), minima));
        layers.push(Layer::new(format!("{named} median"), way.version, Mark::Dots(shape), medians));
        layers.extend(fit);
    }
    let x = Scale::new(series.options[option].name.clone(), Unit::Size, ScaleKind::FromZero);
    let y = Scale::new("round trip", Unit::Time, ScaleKind::Linear);
    let panels = vec![Panel { weight: 1, x, y, layers }];
    let remarks = vec![super::option::counted(series)];
    (!ways.is_empty()).then(|| Sketch {
        what: format!("round trip over {}", series.options[option].name),
        panels,
        remarks,
    })
}

fn fit(medians: &[(f64, f64)], name: &str, way: Way) -> Option<Layer> {
    let known: Vec<(f64, f64)> =
        medians.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let line = trend::theil_sen(&known)?;
    let ends = [known.first()?.0, known.last()?.0].map(|x| (x, line.intercept + line.slope * x));
    let words = format!(
        "{name} fit: {} + {} ns/B",
        Unit::Time.write(round(line.intercept)),
        plain(round(line.slope * 1e9))
    );
    Some(Layer::new(words, way.version, Mark::Line(Stroke::Dashed), ends.to_vec()))
}

/// To four digits: what a legend can say.
fn round(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10.0_f64.powf(3.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}
