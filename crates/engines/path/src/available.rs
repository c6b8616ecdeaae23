//! Available bandwidth: what the tight link has left, averaged over the measurement.
//!
//! | method | asks | leans |
//! |---|---|---|
//! | [`Curve`] | how much longer do trains take to arrive than to leave, against their rate? | low where trains are short for the traffic's bursts |
//! | [`Slops`] | does the delay rise during a stream? | a range; low under heavy load |
//! | [`Chirp`] | from which rate on does a train of rising rate queue? | little traffic, follows changes, coarser |
//! | [`Spruce`] | how much is between the packets of a pair? | wrong in proportion to the capacity it is told |
//! | [`Maximum`] | how much arrives at most when the path is filled? (RFC 9097) | the share that others leave to us, not what is free |
//! | [`Automatic`] | a [`Curve`], confirmed by a [`Slops`] | as its parts |
//!
//! All of them see one tight link, first in first out, whose cross traffic does not react to the
//! probes. All rates are those of the actual send stamps, and all stretches are of mean gaps over
//! whole trains.

mod approach;
mod automatic;
mod budget;
mod chirp;
mod curve;
mod health;
mod line;
mod maximum;
mod passage;
pub(crate) mod sender;
mod slops;
mod spruce;

#[cfg(test)]
pub(crate) mod fifo;
#[cfg(test)]
mod stalled;

pub use automatic::Automatic;
pub use chirp::Chirp;
pub use curve::{Curve, TightLink};
pub use maximum::{Maximum, Search};
pub use slops::Slops;
pub use spruce::Spruce;
