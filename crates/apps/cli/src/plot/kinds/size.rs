//! Round trip over size with a line through it (Theil and Sen): where it meets the axis, what an empty message takes; its
//! slope, what each byte adds in all stages that store and forward. Medians, because a line through means follows the
//! outliers; the minima beside them show how much of it is waiting.

use netaware_stats::trend;

use super::Sketch;
use super::over::{Along, Way, name};
use crate::plot::picture::{Layer, Mark, Panel, Scale, ScaleKind, Shape, Stroke};
use crate::plot::source::{Figure, Series};
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
    for way in &ways {
        let medians = along.points(Figure::Rtt, *way);
        let fit = fit(&medians, *way);
        layers.push(Layer::new(
            format!("{} minimum", name(*way, &ways)),
            way.0,
            Mark::Dots(Shape::Cross),
            along.points(Figure::RttLow, *way),
        ));
        layers.push(Layer::new(
            format!("{} median", name(*way, &ways)),
            way.0,
            Mark::Dots(Shape::Disc),
            medians,
        ));
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

fn fit(medians: &[(f64, f64)], way: Way) -> Option<Layer> {
    let known: Vec<(f64, f64)> =
        medians.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let line = trend::theil_sen(&known)?;
    let ends = [known.first()?.0, known.last()?.0].map(|x| (x, line.intercept + line.slope * x));
    let words = format!(
        "{} fit: {} + {} ns/B",
        way.0.name(),
        Unit::Time.write(round(line.intercept)),
        plain(round(line.slope * 1e9))
    );
    Some(Layer::new(words, way.0, Mark::Line(Stroke::Dashed), ends.to_vec()))
}

/// To four digits: what a legend can say.
fn round(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10.0_f64.powf(3.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}
