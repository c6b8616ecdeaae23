//! The figures of a series over whatever varied: lines of one figure, and the panels that show the
//! main ones.

use netaware_record::Direction;

use crate::plot::picture::{Layer, Mark, Panel, Scale, ScaleKind, Shape, Stroke};
use crate::plot::source::{Carrier, Figure, Given, Point, Series, Way};
use crate::plot::unit::Unit;

/// Where each point stands on the x axis, points of a line one after the other.
pub(super) struct Along<'a> {
    series: &'a Series,
    /// What sets it apart: the values of the other options.
    name: Option<String>,
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
        Self { series, name: None, places }
    }

    /// In the order of an option's values. Where others were scanned beside it, each of their
    /// combinations has lines of its own: with names, unless there are more than [`MOST_NAMED`].
    pub(super) fn option(series: &'a Series, option: usize) -> Vec<Self> {
        let mut order: Vec<usize> = (0..series.points.len()).collect();
        let x = |at: usize| series.points[at].options[option].number();
        order.sort_by_cached_key(|at| (combination(&series.points[*at], option), order_key(x(*at))));
        let same = |a: &usize, b: &usize| {
            combination(&series.points[*a], option) == combination(&series.points[*b], option)
        };
        let lines: Vec<&[usize]> = order.chunk_by(same).collect();
        let places = |line: &[usize]| line.iter().map(|at| Some((*at, x(*at)))).collect::<Vec<_>>();
        if lines.len() > MOST_NAMED {
            let broken = lines.iter().flat_map(|line| places(line).into_iter().chain([None]));
            return vec![Self { series, name: None, places: broken.collect() }];
        }
        let along = |line: &&[usize]| {
            let name = line.first().and_then(|at| combination_name(series, &series.points[*at], option));
            Self { series, name, places: places(line) }
        };
        lines.iter().map(along).collect()
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

    /// "IPv4 down, length 64 B".
    pub(super) fn named(&self, way: Way, ways: &[Way]) -> String {
        let name = name(way, ways);
        self.name.as_ref().map_or_else(|| name.clone(), |what| format!("{name}, {what}"))
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

/// The values of all other options, in a form that has an order.
fn combination(point: &Point, option: usize) -> Vec<(u8, i64)> {
    let others = point.options.iter().enumerate().filter(|(at, _)| *at != option);
    let key = |given: Given| match given {
        Given::Nothing => (0, 0),
        Given::Word(at) => (1, i64::try_from(at).unwrap_or(i64::MAX)),
        Given::Number(value) => (2, order_key(value)),
    };
    others.map(|(_, given)| key(*given)).collect()
}

fn combination_name(series: &Series, point: &Point, option: usize) -> Option<String> {
    let others = series.options.iter().zip(&point.options).enumerate().filter(|(at, _)| *at != option);
    let said: Vec<String> = others.filter_map(|(_, (option, given))| option.say(*given)).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// "IPv4", with what tells it from others: "IPv4 TCP", "IPv4 down".
pub(super) fn name(way: Way, ways: &[Way]) -> String {
    let mut words = vec![way.version.name()];
    if ways.iter().any(|other| other.carrier != way.carrier) {
        words.push(way.carrier.name());
    }
    if ways.iter().any(|other| other.direction != way.direction) {
        words.push(way.direction.name());
    }
    words.join(" ")
}

/// Carriers are told apart by marks and strokes, or else directions.
pub(super) fn mark(way: Way, ways: &[Way]) -> Mark {
    if ways.iter().any(|other| other.carrier != way.carrier) {
        return nth_mark(match way.carrier {
            Carrier::Tcp => 0,
            Carrier::TcpNodelay => 1,
            Carrier::Udp => 2,
        });
    }
    let is_second =
        way.direction == Direction::Reverse && ways.iter().any(|it| it.direction == Direction::Forward);
    if is_second { Mark::Dotted(Shape::Square, Stroke::Dashed) } else { nth_mark(0) }
}

/// Marks that are told apart without colours, the usual one first.
pub(super) fn nth_mark(nth: usize) -> Mark {
    const MARKS: [Mark; MOST_NAMED] = [
        Mark::Dotted(Shape::Disc, Stroke::Solid),
        Mark::Dotted(Shape::Cross, Stroke::Dashed),
        Mark::Dotted(Shape::Square, Stroke::Fine),
        Mark::Dotted(Shape::Ring, Stroke::Dashed),
    ];
    MARKS[nth % MARKS.len()]
}

/// Combinations of other options that a legend names.
const MOST_NAMED: usize = 4;

/// Rate, loss and round trip, as far as they were measured.
pub(super) fn main_panels(along: &[Along<'_>], x: &Scale) -> Vec<Panel> {
    let Some(series) = along.first().map(|along| along.series) else { return Vec::new() };
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
pub(super) fn loss_panel(along: &[Along<'_>], x: &Scale) -> Option<Panel> {
    let ways = along.first()?.series.ways(Figure::Loss);
    let y = Scale::new("lost", Unit::Share, ScaleKind::FromZero);
    (!ways.is_empty()).then(|| Panel {
        weight: 3,
        x: x.clone(),
        y,
        layers: lines(along, &ways, Figure::Loss),
    })
}

fn lines(along: &[Along<'_>], ways: &[Way], figure: Figure) -> Vec<Layer> {
    let of_one = |(nth, one): (usize, &Along<'_>)| {
        let layer = |way: &Way| {
            let mark = if along.len() > 1 { nth_mark(nth) } else { mark(*way, ways) };
            Layer::new(one.named(*way, ways), way.version, mark, one.points(figure, *way))
        };
        ways.iter().map(layer).collect::<Vec<_>>()
    };
    along.iter().enumerate().flat_map(of_one).collect()
}

fn spread(along: &[Along<'_>], ways: &[Way], low: Figure, high: Figure) -> Vec<Layer> {
    let of_one = |one: &Along<'_>| {
        let layer = |way: &Way| Layer::silent(way.version, Mark::Whiskers, one.pairs(low, high, *way));
        ways.iter().map(layer).collect::<Vec<_>>()
    };
    along.iter().flat_map(of_one).collect()
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
