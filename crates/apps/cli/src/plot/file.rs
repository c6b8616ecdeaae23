//! Pictures as files: SVG is text, PNG is pixels; which one, the name tells.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, bail};
use plotters::backend::{BitMapBackend, SVGBackend};

use super::paint;
use super::picture::Picture;

/// Pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Size {
    /// Below it labels have no room.
    const LEAST: Self = Self { width: 480, height: 320 };
    /// 48 MB of pixels.
    const MOST: Self = Self { width: 4096, height: 4096 };

    /// Readable on a page and on a screen.
    pub(crate) fn usual(panels: usize) -> Self {
        let more = u32::try_from(panels.saturating_sub(2)).unwrap_or(0).min(2);
        Self { width: 1200, height: 750 + 250 * more }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (width, height) = text.split_once(['x', 'X']).ok_or("it must be WIDTHxHEIGHT, as in 1200x750")?;
        let number = |part: &str| part.trim().parse().map_err(|_| format!("'{part}' is no number of pixels"));
        let size = Self { width: number(width)?, height: number(height)? };
        let (least, most) = (Self::LEAST, Self::MOST);
        let fits = (least.width..=most.width).contains(&size.width)
            && (least.height..=most.height).contains(&size.height);
        let bounds =
            format!("it must be from {}x{} to {}x{}", least.width, least.height, most.width, most.height);
        if fits { Ok(size) } else { Err(bounds) }
    }
}

/// Writes the picture in the form that the file's name ends with.
///
/// # Errors
/// Another ending than `.svg` and `.png`, or a file that cannot be written.
pub(crate) fn save(picture: &Picture, size: Size, path: &Path) -> anyhow::Result<()> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let bytes = match ending.as_str() {
        "svg" => to_svg(picture, size)?.into_bytes(),
        "png" => to_png(picture, size)?,
        _ => bail!("'{}' must end in .svg or .png: the ending decides what is written", path.display()),
    };
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The text of an SVG file.
///
/// # Errors
/// It cannot be drawn.
pub(crate) fn to_svg(picture: &Picture, size: Size) -> anyhow::Result<String> {
    let mut text = String::new();
    paint::draw(picture, SVGBackend::with_string(&mut text, (size.width, size.height)))?;
    Ok(text)
}

/// The bytes of a PNG file.
pub(super) fn to_png(picture: &Picture, size: Size) -> anyhow::Result<Vec<u8>> {
    let mut pixels = vec![0; size.width as usize * size.height as usize * 3];
    paint::draw(picture, BitMapBackend::with_buffer(&mut pixels, (size.width, size.height)))?;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size.width, size.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().context("cannot encode the picture")?;
    writer.write_image_data(&pixels).context("cannot encode the picture")?;
    writer.finish().context("cannot encode the picture")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_bounds() {
        assert_eq!("800x600".parse(), Ok(Size { width: 800, height: 600 }));
        for bad in ["800", "800x", "x", "10x10", "5000x600", "-1x600", "99999999999x600"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }
}
