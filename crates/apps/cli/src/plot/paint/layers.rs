//! Lines, marks, whiskers and areas, in pixels, cut off at the edges of their panel.

use std::ops::Range;

use plotters::coord::cartesian::Cartesian2d;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, Cross, DashedPathElement, PathElement, Polygon, Rectangle};
use plotters::prelude::DrawingBackend;
use plotters::style::{Color, RGBColor, ShapeStyle};

use super::{Canvas, colour, refused};
use crate::plot::axis::Axis;
use crate::plot::picture::{Ink, Layer, Mark, Panel, Shape, Stroke};
use crate::plot::thin::{self, Pixel};

/// Colour and width. What is of IPv4 is broader: it lies below, and is seen where both versions
/// have the same figures.
#[derive(Clone, Copy)]
struct Pen {
    colour: RGBColor,
    extra: u32,
}

impl Pen {
    fn of(ink: Ink) -> Self {
        Self { colour: colour(ink), extra: if ink == Ink::V4 { 2 } else { 0 } }
    }

    fn stroke(self, width: u32) -> ShapeStyle {
        self.colour.stroke_width(width + self.extra)
    }
}

/// Where layers of a panel are drawn.
pub(super) struct Field<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Cartesian2d<Axis, Axis>>,
    canvas: Canvas<DB>,
    panel: &'a Panel,
    x: Range<i32>,
    y: Range<i32>,
    ground: i32,
}

impl<'a, DB: DrawingBackend> Field<'a, DB> {
    pub(super) fn of(
        area: &'a DrawingArea<DB, Cartesian2d<Axis, Axis>>,
        panel: &'a Panel,
        y_axis: &Axis,
    ) -> Self {
        let (x, y) = area.get_pixel_range();
        let range = area.get_x_range();
        let ground = area.map_coordinate(&(range.start, y_axis.ground())).1;
        Self { area, canvas: area.use_screen_coord(), panel, x, y, ground }
    }

    /// None for what the scales cannot show; the ground of an area may be zero on a logarithmic
    /// one.
    fn pixel(&self, point: (f64, f64), mark: Mark) -> Pixel {
        let shown = self.panel.y.shows(point.1) || (mark == Mark::Area && point.1 == 0.0);
        (self.panel.x.shows(point.0) && shown).then(|| self.area.map_coordinate(&point))
    }

    fn holds(&self, (x, y): (i32, i32)) -> bool {
        (self.x.start..=self.x.end).contains(&x) && (self.y.start..=self.y.end).contains(&y)
    }

    fn width(&self) -> usize {
        self.x.len()
    }
}

/// Draws all of them, the first at the bottom.
pub(super) fn draw<DB: DrawingBackend>(field: &Field<'_, DB>) -> anyhow::Result<()> {
    field.panel.layers.iter().try_for_each(|layer| draw_one(field, layer))
}

fn draw_one<DB: DrawingBackend>(field: &Field<'_, DB>, layer: &Layer) -> anyhow::Result<()> {
    let ink = Pen::of(layer.ink);
    let pixels: Vec<Pixel> = layer.points.iter().map(|point| field.pixel(*point, layer.mark)).collect();
    match layer.mark {
        Mark::Line(stroke) => line(field, pixels, ink, stroke),
        Mark::Guide => line(field, pixels, ink, Stroke::Dashed),
        Mark::Dots(shape) => marks(field, pixels, ink, shape),
        Mark::Dotted(shape, stroke) => {
            line(field, pixels.clone(), ink, stroke)?;
            marks(field, pixels, ink, shape)
        }
        Mark::Whiskers => whiskers(field, &pixels, ink),
        Mark::Area => area(field, pixels, ink),
    }
}

fn line<DB: DrawingBackend>(
    field: &Field<'_, DB>,
    pixels: Vec<Pixel>,
    ink: Pen,
    stroke: Stroke,
) -> anyhow::Result<()> {
    for run in thin::line(pixels, field.width()).split(Option::is_none) {
        let run: Vec<(i32, i32)> = run.iter().flatten().copied().collect();
        if run.len() >= 2 {
            for piece in clipped(&run, &field.x, &field.y) {
                stroke_along(&field.canvas, piece, ink, stroke)?;
            }
        }
    }
    Ok(())
}

fn stroke_along<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    points: Vec<(i32, i32)>,
    ink: Pen,
    stroke: Stroke,
) -> anyhow::Result<()> {
    match stroke {
        Stroke::Solid => canvas.draw(&PathElement::new(points, ink.stroke(2))),
        Stroke::Fine => canvas.draw(&PathElement::new(points, ink.colour.stroke_width(1 + ink.extra / 2))),
        Stroke::Dashed => canvas.draw(&DashedPathElement::new(points, 7, 5, ink.stroke(2))),
    }
    .map_err(refused)
}

fn marks<DB: DrawingBackend>(
    field: &Field<'_, DB>,
    pixels: Vec<Pixel>,
    ink: Pen,
    shape: Shape,
) -> anyhow::Result<()> {
    let spots: Vec<(i32, i32)> = pixels.into_iter().flatten().filter(|spot| field.holds(*spot)).collect();
    // Many marks must not hide each other.
    let radius = if spots.len() > field.width() / 4 { 1 } else { 3 };
    thin::marks(spots, field.width())
        .into_iter()
        .try_for_each(|spot| mark(&field.canvas, spot, radius, ink, shape))
}

fn mark<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    at: (i32, i32),
    radius: i32,
    ink: Pen,
    shape: Shape,
) -> anyhow::Result<()> {
    let radius = radius + ink.extra as i32;
    let (filled, open): (ShapeStyle, ShapeStyle) = (ink.colour.filled(), ink.colour.stroke_width(2));
    match shape {
        Shape::Disc => canvas.draw(&Circle::new(at, radius, filled)),
        Shape::Ring => canvas.draw(&Circle::new(at, radius, open)),
        Shape::Square => {
            let side = radius - radius / 4;
            canvas.draw(&Rectangle::new([(at.0 - side, at.1 - side), (at.0 + side, at.1 + side)], filled))
        }
        Shape::Cross => canvas.draw(&Cross::new(at, radius, open)),
    }
    .map_err(refused)
}

/// Pairs of points above each other; where they stand closer than pixels, the whole stretch of a
/// column.
fn whiskers<DB: DrawingBackend>(field: &Field<'_, DB>, pixels: &[Pixel], ink: Pen) -> anyhow::Result<()> {
    let mut columns = std::collections::BTreeMap::<i32, (i32, i32)>::new();
    for pair in pixels.chunks_exact(2) {
        let [Some((x, one)), Some((_, other))] = *pair else { continue };
        let within = |y: i32| y.clamp(field.y.start, field.y.end);
        let (top, bottom) = (within(one.min(other)), within(one.max(other)));
        if !(field.x.start..=field.x.end).contains(&x) {
            continue;
        }
        let widen = |column: &mut (i32, i32)| *column = (column.0.min(top), column.1.max(bottom));
        columns.entry(x).and_modify(widen).or_insert((top, bottom));
    }
    let caps = columns.len() <= field.width() / 8;
    for (x, (top, bottom)) in columns {
        let mut strokes = vec![vec![(x, top), (x, bottom)]];
        if caps {
            strokes.extend([top, bottom].map(|y| vec![(x - 3, y), (x + 3, y)]));
        }
        for stroke in strokes {
            field
                .canvas
                .draw(&PathElement::new(stroke, ink.colour.mix(0.55).stroke_width(1)))
                .map_err(refused)?;
        }
    }
    Ok(())
}

fn area<DB: DrawingBackend>(field: &Field<'_, DB>, pixels: Vec<Pixel>, ink: Pen) -> anyhow::Result<()> {
    let within =
        |(x, y): (i32, i32)| (x.clamp(field.x.start, field.x.end), y.clamp(field.y.start, field.y.end));
    for run in thin::line(pixels, field.width()).split(Option::is_none) {
        let edge: Vec<(i32, i32)> = run.iter().flatten().copied().map(within).collect();
        let (Some(first), Some(last)) = (edge.first(), edge.last()) else { continue };
        let mut outline = vec![(first.0, field.ground)];
        outline.extend(&edge);
        outline.push((last.0, field.ground));
        field.canvas.draw(&Polygon::new(outline, ink.colour.mix(0.2).filled())).map_err(refused)?;
        stroke_along(&field.canvas, edge, ink, Stroke::Solid)?;
    }
    Ok(())
}

/// What of a line lies within the panel, in pieces where it leaves and comes back.
fn clipped(line: &[(i32, i32)], x: &Range<i32>, y: &Range<i32>) -> Vec<Vec<(i32, i32)>> {
    let mut pieces: Vec<Vec<(i32, i32)>> = Vec::new();
    for step in line.windows(2) {
        let Some((from, to)) = segment(step[0], step[1], x, y) else { continue };
        match pieces.last_mut().filter(|piece| piece.last() == Some(&from)) {
            Some(piece) => piece.push(to),
            None => pieces.push(vec![from, to]),
        }
    }
    pieces
}

/// Liang and Barsky 1984: the part of a segment between four edges.
fn segment(
    from: (i32, i32),
    to: (i32, i32),
    x: &Range<i32>,
    y: &Range<i32>,
) -> Option<((i32, i32), (i32, i32))> {
    let at = |p: (i32, i32)| (f64::from(p.0), f64::from(p.1));
    let ((x0, y0), (x1, y1)) = (at(from), at(to));
    let (dx, dy) = (x1 - x0, y1 - y0);
    let edges = [
        (-dx, x0 - f64::from(x.start)),
        (dx, f64::from(x.end) - x0),
        (-dy, y0 - f64::from(y.start)),
        (dy, f64::from(y.end) - y0),
    ];
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for (pace, distance) in edges {
        if pace == 0.0 {
            if distance < 0.0 {
                return None;
            }
        } else if pace < 0.0 {
            enter = enter.max(distance / pace);
        } else {
            leave = leave.min(distance / pace);
        }
    }
    let point = |share: f64| ((x0 + share * dx).round() as i32, (y0 + share * dy).round() as i32);
    (enter <= leave).then(|| (point(enter), point(leave)))
}

/// A piece of a layer for the legend, from `at` to the right.
pub(super) fn sample<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    layer: &Layer,
    at: (i32, i32),
    length: i32,
) -> anyhow::Result<()> {
    let ink = Pen::of(layer.ink);
    let ends = vec![at, (at.0 + length, at.1)];
    let middle = (at.0 + length / 2, at.1);
    match layer.mark {
        Mark::Line(stroke) => stroke_along(canvas, ends, ink, stroke),
        Mark::Guide => stroke_along(canvas, ends, ink, Stroke::Dashed),
        Mark::Dots(shape) => mark(canvas, middle, 3, ink, shape),
        Mark::Dotted(shape, stroke) => {
            stroke_along(canvas, ends, ink, stroke)?;
            mark(canvas, middle, 3, ink, shape)
        }
        Mark::Whiskers => {
            stroke_along(canvas, vec![(middle.0, at.1 - 7), (middle.0, at.1 + 7)], ink, Stroke::Fine)
        }
        Mark::Area => {
            let block =
                Rectangle::new([(at.0, at.1 - 6), (at.0 + length, at.1 + 6)], ink.colour.mix(0.2).filled());
            canvas.draw(&block).map_err(refused)?;
            stroke_along(canvas, vec![(at.0, at.1 - 6), (at.0 + length, at.1 - 6)], ink, Stroke::Solid)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_the_edges_and_comes_back_as_another_piece() {
        let (x, y) = (0..100, 0..100);
        let found = clipped(&[(-50, 50), (50, 50), (50, 150), (70, 150), (70, 50)], &x, &y);
        assert_eq!(found, [vec![(0, 50), (50, 50), (50, 100)], vec![(70, 100), (70, 50)]]);
        assert!(clipped(&[(-10, -10), (-10, 200)], &x, &y).is_empty());
        assert_eq!(clipped(&[(-100, 200), (200, -100)], &x, &y), [[(0, 100), (100, 0)]]);
    }
}
