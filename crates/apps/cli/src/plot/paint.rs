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
use super::picture::{Ink, Panel, Picture};

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
    let mut y = top;
    for drawn in &picture.panels {
        let share = room * drawn.weight / weights.max(1);
        let area = canvas.clone().shrink((0, y), (width, share));
        panel(&area, drawn)?;
        y += share;
    }
    canvas.present().map_err(refused)
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

fn panel<DB: DrawingBackend>(area: &Canvas<DB>, panel: &Panel) -> anyhow::Result<()> {
    let (width, height) = area.dim_in_pixel();
    let measured = || panel.layers.iter().filter(|layer| layer.mark != super::picture::Mark::Guide);
    let ys = measured().flat_map(|layer| layer.points.iter().map(|(_, y)| *y));
    let y = Axis::over(&panel.y, ys, (height / PER_LINE) as usize);
    let widest = y.labels().map(|label| font::width(&label, SMALL)).max().unwrap_or(0);
    let xs = measured().flat_map(|layer| layer.points.iter().map(|(x, _)| *x));
    let x = Axis::over(&panel.x, xs, (width.saturating_sub(widest + 4 * EDGE) / PER_LABEL).max(2) as usize);

    let label = font::text(SMALL, DARK, HPos::Center, VPos::Top);
    let mut chart = ChartBuilder::on(area)
        .margin_top(EDGE / 2)
        .margin_right(2 * EDGE)
        .margin_left(EDGE / 2)
        .x_label_area_size(2 * SMALL + EDGE)
        .y_label_area_size(widest + SMALL + EDGE)
        .build_cartesian_2d(x.clone(), y.clone())
        .map_err(refused)?;
    chart
        .configure_mesh()
        .bold_line_style(LINES)
        .light_line_style(FAINT)
        .axis_style(MIDDLE)
        .label_style(label.clone())
        .axis_desc_style(label)
        .x_desc(x.title.clone())
        .y_desc(y.title.clone())
        .draw()
        .map_err(refused)?;
    layers::draw(&layers::Field::of(chart.plotting_area(), &y), &panel.layers)
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
