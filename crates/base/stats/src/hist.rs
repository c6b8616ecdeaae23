//! Histograms: what a mean and a deviation hide.
//!
//! | type | bins | for |
//! |---|---|---|
//! | [`FixedHistogram`] | equal width, limits chosen by whoever asks | inter-arrival times and delays as in `UDPmon` |
//! | [`DelayHistogram`] | three significant digits over twelve decades | delays whose range nobody knows beforehand |
//! | [`LengthHistogram`] | one per length, 1, 2, 3, ... | loss runs, reordering extents |
//!
//! All three have bounded memory and count what falls outside: no sample disappears.

mod delay;
mod fixed;
mod length;

pub use delay::DelayHistogram;
pub use fixed::{FixedHistogram, HistogramShapeError, ShapeMismatch};
pub use length::LengthHistogram;
