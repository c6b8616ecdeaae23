//! The figures of a series over whatever varied: lines of one figure, and the panels that show the main ones.

use netaware_record::{Direction, IpVersion};

use crate::plot::picture::{Layer, Mark, Panel, Scale, ScaleKind, Shape, Stroke};
use crate::plot::source::{Figure, Point, Series};
use crate::plot::unit::Unit;

/// An IP version and a direction.
pub(super) type Way = (IpVersion, Direction);

/// Where each point stands on the x axis, points of a line one after the other.
pub(super) struct Along<'a> {
    series: &'a Series,
    /// Place in [`Series::points`] and x; `None` where a line breaks.
    places: Vec<Option<(usize, f64)>>,
}

impl<'a> Along<'a> {
    /// In the order of time; a place of the plan that was not measured breaks the lines.
    pub(super) fn time(series: &'a Series) -> Self {
        let began_at = series.points.iter().map(|point| point.at).min().unwrap_or(0);
        let mut places = Vec::with_capacity(series.points.len());
        let mut next = series.points.first().map_or(0, |point| point.index);
        for (at, point) in series.points.iter().enumerate() {
            if point.index != next {
                places.push(None);
            }
            next = point.index + 1;
            places.push(Some((at, (point.at - began_at) as f64 / 1e9)));
        }
        Self { series, places }
    }

    /// In the order of an option's values. Where others were scanned beside it, each of their combinations is a line.
    pub(super) fn option(series: &'a Series, option: usize) -> Self {
        let others = |point: &Point| -> Vec<u64> {
            let others = point.options.iter().enumerate().filter(|(at, _)| *at != option);
            others.map(|(_, value)| value.to_bits()).collect()
        };
        let mut order: Vec<usize> = (0..series.points.len()).collect();
        let x = |at: usize| series.points[at].options[option];
        order.sort_by_cached_key(|at| (others(&series.points[*at]), order_key(x(*at))));
        let mut places: Vec<Option<(usize, f64)>> = Vec::with_capacity(order.len());
        let mut line = None;
        for at in order {
            let of = others(&series.points[at]);
            if line.as_ref().is_some_and(|line| *line != of) {
                places.push(None);
            }
            line = Some(of);
            places.push(Some((at, x(at))));
        }
        Self { series, places }
    }

    /// A figure over x.
    pub(super) fn points(&self, figure: Figure, way: Way) -> Vec<(f64, f64)> {
        let of = |place: &Option<(usize, f64)>| match place {
            Some((at, x)) => (*x, self.series.points[*at].value(figure, way)),
            None => (f64::NAN, f64::NAN),
        };
        self.places.iter().map(of).collect()
    }

    /// From one figure up to another, for whiskers.
    fn pairs(&self, from: Figure, to: Figure, way: Way) -> Vec<(f64, f64)> {
        let (from, to) = (self.points(from, way), self.points(to, way));
        from.into_iter().zip(to).flat_map(|(from, to)| [from, to]).collect()
    }

    /// All values of x.
    pub(super) fn xs(&self) -> impl Iterator<Item = f64> {
        self.places.iter().flatten().map(|(_, x)| *x)
    }
}

/// A total order of numbers as one of integers (IEEE 754 `totalOrder`).
fn order_key(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    bits ^ (((bits >> 63).cast_unsigned()) >> 1).cast_signed()
}

/// "IPv4", or "IPv4 down" where both directions are there.
pub(super) fn name(way: Way, ways: &[Way]) -> String {
    let several = ways.iter().any(|other| other.1 != way.1);
    if several { format!("{} {}", way.0.name(), way.1.name()) } else { way.0.name().to_owned() }
}

/// The second direction is told apart by its marks and its stroke.
pub(super) fn mark(way: Way, ways: &[Way]) -> Mark {
    let is_second = way.1 == Direction::Reverse && ways.iter().any(|other| other.1 == Direction::Forward);
    if is_second {
        Mark::Dotted(Shape::Square, Stroke::Dashed)
    } else {
        Mark::Dotted(Shape::Disc, Stroke::Solid)
    }
}

/// Rate, loss and round trip, as far as they were measured.
pub(super) fn main_panels(along: &Along<'_>, x: &Scale) -> Vec<Panel> {
    let series = along.series;
    let mut panels = Vec::new();
    let ways = series.ways(Figure::Rate);
    if !ways.is_empty() {
        let mut layers = spread(along, &ways, Figure::RateLow, Figure::RateHigh);
        layers.extend(lines(along, &ways, Figure::Rate));
        let y = Scale::new("received payload", Unit::Rate, ScaleKind::FromZero);
        panels.push(Panel { weight: 5, x: x.clone(), y, layers });
    }
    if let Some(panel) = loss_panel(along, x) {
        panels.push(panel);
    }
    let ways = series.ways(Figure::Rtt);
    if !ways.is_empty() {
        let mut layers = spread(along, &ways, Figure::RttLow, Figure::RttHigh);
        layers.extend(lines(along, &ways, Figure::Rtt));
        let y = Scale::new("round trip: median, minimum to p99", Unit::Time, rtt_scale(series, &ways));
        panels.push(Panel { weight: 5, x: x.clone(), y, layers });
    }
    panels
}

/// Loss of datagrams, if any were counted.
pub(super) fn loss_panel(along: &Along<'_>, x: &Scale) -> Option<Panel> {
    let ways = along.series.ways(Figure::Loss);
    let y = Scale::new("lost", Unit::Share, ScaleKind::FromZero);
    (!ways.is_empty()).then(|| Panel {
        weight: 3,
        x: x.clone(),
        y,
        layers: lines(along, &ways, Figure::Loss),
    })
}

fn lines(along: &Along<'_>, ways: &[Way], figure: Figure) -> Vec<Layer> {
    let layer = |way: &Way| Layer::new(name(*way, ways), way.0, mark(*way, ways), along.points(figure, *way));
    ways.iter().map(layer).collect()
}

fn spread(along: &Along<'_>, ways: &[Way], low: Figure, high: Figure) -> Vec<Layer> {
    ways.iter().map(|way| Layer::silent(way.0, Mark::Whiskers, along.pairs(low, high, *way))).collect()
}

/// A stall of a second must not press a round trip of a millisecond flat.
fn rtt_scale(series: &Series, ways: &[Way]) -> ScaleKind {
    let all = |figure| {
        let values =
            ways.iter().flat_map(move |way| series.points.iter().map(move |point| point.value(figure, *way)));
        values.filter(|value| value.is_finite() && *value > 0.0)
    };
    let low = all(Figure::RttLow).fold(f64::INFINITY, f64::min);
    let high = all(Figure::RttHigh).fold(0.0, f64::max);
    if high > low * 20.0 { ScaleKind::Logarithmic } else { ScaleKind::Linear }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_order() {
        let values = [f64::NEG_INFINITY, -2.5, -0.0, 0.0, 1e-9, 3.0, f64::INFINITY];
        assert!(values.windows(2).all(|pair| order_key(pair[0]) < order_key(pair[1])));
    }
}
