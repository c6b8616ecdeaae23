//! The one font, carried along so that a picture looks the same on every host and needs no font
//! installed.

use std::sync::OnceLock;

use anyhow::bail;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, TextStyle, register_font};

/// As the SVG names it: a reader without our font sees its own.
const FAMILY: &str = "sans-serif";
/// DejaVu Sans 2.37, see the licence beside it: Latin, Greek, Cyrillic and more, for hosts and
/// labels.
static DEJAVU: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");

/// Makes the font known to the drawing library, once.
pub(super) fn load() -> anyhow::Result<()> {
    static LOADED: OnceLock<bool> = OnceLock::new();
    if !LOADED.get_or_init(|| register_font(FAMILY, FontStyle::Normal, DEJAVU).is_ok()) {
        bail!("the font of pictures cannot be read");
    }
    Ok(())
}

/// Text of `size` pixels.
pub(super) fn text(size: u32, colour: RGBColor, across: HPos, along: VPos) -> TextStyle<'static> {
    TextStyle {
        font: (FAMILY, size).into_font(),
        color: colour.to_backend_color(),
        pos: Pos::new(across, along),
    }
}

/// Pixels that a text takes from its left to its right.
pub(super) fn width(text: &str, size: u32) -> u32 {
    let font = (FAMILY, size).into_font();
    font.box_size(text).map_or(0, |(width, _)| width + 1)
}

/// As much of a text as fits, with dots where it is cut.
pub(super) fn fitted(text: &str, size: u32, room: u32) -> String {
    let text = netaware_record::printable(text);
    if width(&text, size) <= room {
        return text;
    }
    let mut shown = text;
    while !shown.is_empty() && width(&format!("{shown}…"), size) > room {
        shown.pop();
    }
    format!("{}…", shown.trim_end())
}
