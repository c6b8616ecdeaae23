//! Pictures of results, as SVG or PNG.
//!
//! A [`source`] is what is shown: one record, or the figures of a series. A kind in [`kinds`] turns
//! it into a [`picture`]: panels with axes and layers in base units, which knows nothing of pixels.
//! [`paint`] draws that; [`axis`] finds the marks of a scale, [`thin`] keeps what can be seen of a
//! hundred thousand points.

mod axis;
mod file;
mod font;
mod kinds;
mod paint;
mod picture;
pub(crate) mod source;
mod thin;
mod unit;

pub(crate) use file::{Size, save, to_svg};
pub(crate) use kinds::{Kind, picture};

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
