//! Draws a picture: title, legend, and the panels below each other.

mod layers;
mod legend;

use anyhow::anyhow;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{RGBColor, WHITE};

use super::axis::Axis;
use super::font;
use super::picture::{Ink, Mark, Panel, Picture};

pub(super) type Canvas<DB> = DrawingArea<DB, Shift>;

/// Draws on whatever the library draws on.
///
/// # Errors
/// The font cannot be read, or the library refuses.
pub(super) fn draw<DB: DrawingBackend>(picture: &Picture, onto: DB) -> anyhow::Result<()> {
    font::load()?;
    let canvas = onto.into_drawing_area();
    canvas.fill(&WHITE).map_err(refused)?;
    let (width, height) = canvas.dim_in_pixel();
    let below_heading = heading(&canvas, picture, width)?;
    let top = legend::draw(&canvas, picture, below_heading)?;
    let room = height.saturating_sub(top + EDGE);
    let weights: u32 = picture.panels.iter().map(|panel| panel.weight).sum();
    let heights = picture.panels.iter().map(|panel| room * panel.weight / weights.max(1));
    let stacked: Vec<Stacked<'_>> =
        picture.panels.iter().zip(heights).map(|(panel, height)| Stacked::new(panel, height)).collect();
    // Panels below each other share their left edge, and where they count the same, the marks of x.
    let widest = stacked.iter().map(|one| one.label_width).max().unwrap_or(0);
    let mut y = top;
    for one in &stacked {
        let area = canvas.clone().shrink((0, y), (width, one.height));
        let xs = picture
            .panels
            .iter()
            .filter(|other| other.x == one.panel.x)
            .flat_map(|other| values(other, |point| point.0));
        let marks = width.saturating_sub(widest + 4 * EDGE) / PER_LABEL;
        let mut x = Axis::over(&one.panel.x, xs, marks as usize);
        // The last one says it for all that count the same.
        let is_last = picture.panels.last().is_some_and(|last| std::ptr::eq(last, one.panel));
        if !is_last && picture.panels.last().is_some_and(|last| last.x == one.panel.x) {
            x.title.clear();
        }
        draw_panel(&area, one, &x, widest)?;
        y += one.height;
    }
    canvas.present().map_err(refused)
}

/// A panel that knows its place.
struct Stacked<'a> {
    panel: &'a Panel,
    height: u32,
    y: Axis,
    /// Of the labels of y.
    label_width: u32,
}

impl<'a> Stacked<'a> {
    fn new(panel: &'a Panel, height: u32) -> Self {
        let y = Axis::over(&panel.y, values(panel, |point| point.1), (height / PER_LINE) as usize);
        let label_width = y.labels().map(|label| font::width(&label, SMALL)).max().unwrap_or(0);
        Self { panel, height, y, label_width }
    }
}

/// What an axis must hold.
fn values(panel: &Panel, of: impl Fn(&(f64, f64)) -> f64 + Copy) -> impl Iterator<Item = f64> {
    let measured = panel.layers.iter().filter(|layer| layer.mark != Mark::Guide);
    measured.flat_map(move |layer| layer.points.iter().map(of))
}

/// Title and subtitle; gives where they end.
fn heading<DB: DrawingBackend>(canvas: &Canvas<DB>, picture: &Picture, width: u32) -> anyhow::Result<u32> {
    let room = width.saturating_sub(2 * EDGE);
    let lines = [(&picture.title, TITLE, DARK), (&picture.subtitle, SMALL, MIDDLE)];
    let mut y = EDGE / 2;
    for (text, size, colour) in lines {
        if text.is_empty() {
            continue;
        }
        let style = font::text(size, colour, HPos::Left, VPos::Top);
        canvas
            .draw_text(&font::fitted(text, size, room), &style, (EDGE as i32, y as i32))
            .map_err(refused)?;
        y += size + size / 3;
    }
    Ok(y)
}

fn draw_panel<DB: DrawingBackend>(
    area: &Canvas<DB>,
    one: &Stacked<'_>,
    x: &Axis,
    label_width: u32,
) -> anyhow::Result<()> {
    let label = font::text(SMALL, DARK, HPos::Center, VPos::Top);
    let mut chart = ChartBuilder::on(area)
        .margin_top(EDGE / 2)
        .margin_right(2 * EDGE)
        .margin_left(EDGE / 2)
        .x_label_area_size(if x.title.is_empty() { SMALL + EDGE / 2 } else { 2 * SMALL + EDGE })
        .y_label_area_size(label_width + SMALL + EDGE)
        .build_cartesian_2d(x.clone(), one.y.clone())
        .map_err(refused)?;
    chart
        .configure_mesh()
        .bold_line_style(LINES)
        .light_line_style(FAINT)
        .axis_style(MIDDLE)
        .label_style(label.clone())
        .axis_desc_style(label)
        .x_desc(x.title.clone())
        .y_desc(one.y.title.clone())
        .draw()
        .map_err(refused)?;
    layers::draw(&layers::Field::of(chart.plotting_area(), one.panel, &one.y))
}

pub(super) fn colour(ink: Ink) -> RGBColor {
    match ink {
        Ink::V4 => RGBColor(0, 114, 178),
        Ink::V6 => RGBColor(213, 94, 0),
        Ink::Grey => RGBColor(110, 110, 110),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
fn refused<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> anyhow::Error {
    anyhow!("the picture cannot be drawn: {error}")
}

const DARK: RGBColor = RGBColor(30, 30, 30);
const MIDDLE: RGBColor = RGBColor(90, 90, 90);
const LINES: RGBColor = RGBColor(215, 215, 215);
const FAINT: RGBColor = RGBColor(240, 240, 240);
/// Pixels.
const EDGE: u32 = 16;
const TITLE: u32 = 22;
pub(super) const SMALL: u32 = 17;
/// Height and width that a labelled mark needs.
const PER_LINE: u32 = 45;
const PER_LABEL: u32 = 90;
