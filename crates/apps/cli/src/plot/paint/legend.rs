//! Names of the layers beside a sample of each, in rows below the title.

use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, VPos};

use super::{Canvas, DARK, EDGE, SMALL, layers, refused};
use crate::plot::font;
use crate::plot::picture::{Layer, Picture};

/// Draws it below `top` and gives where it ends.
pub(super) fn draw<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    picture: &Picture,
    top: u32,
) -> anyhow::Result<u32> {
    let (width, _) = canvas.dim_in_pixel();
    let (mut x, mut y) = (EDGE, top + EDGE / 2);
    let entries = entries(picture);
    for layer in &entries {
        let Some(name) = &layer.name else { continue };
        let name = font::fitted(name, SMALL, width.saturating_sub(2 * EDGE + SAMPLE + GAP));
        let taken = SAMPLE + GAP + font::width(&name, SMALL);
        if x > EDGE && x + taken + EDGE > width {
            (x, y) = (EDGE, y + ROW);
        }
        let middle = (y + ROW / 2) as i32;
        layers::sample(canvas, layer, (x as i32, middle), SAMPLE as i32)?;
        let style = font::text(SMALL, DARK, HPos::Left, VPos::Center);
        canvas.draw_text(&name, &style, ((x + SAMPLE + GAP) as i32, middle)).map_err(refused)?;
        x += taken + 2 * GAP + GAP;
    }
    Ok(if entries.is_empty() { top } else { y + ROW })
}

/// The first layer of each name, in the order of the panels.
fn entries(picture: &Picture) -> Vec<&Layer> {
    let mut entries: Vec<&Layer> = Vec::new();
    for layer in picture.panels.iter().flat_map(|panel| &panel.layers) {
        if layer.name.is_some() && entries.iter().all(|known| known.name != layer.name) {
            entries.push(layer);
        }
    }
    entries
}

/// Pixels of the sample, between things, and from row to row.
const SAMPLE: u32 = 34;
const GAP: u32 = 8;
const ROW: u32 = 24;
