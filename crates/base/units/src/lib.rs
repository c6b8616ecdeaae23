//! Time, rate and size as types, so that a unit can never be guessed wrong.
//!
//! Everything is an integer with a zero: nanoseconds, bits per second, bytes. Two clocks exist and
//! never mix: [`Mono`] belongs to this host, [`RemoteMono`] to the other end, and there is no
//! subtraction between them without an offset estimate, because the difference of two
//! unsynchronised clocks is not a duration.

#[cfg(test)]
mod properties;
mod rate;
mod scaled;
mod send_rate;
mod share;
mod size;
mod stamp;
mod time;

pub use rate::BitRate;
pub use scaled::ParseUnitError;
pub use send_rate::SendRate;
pub use share::Share;
pub use size::ByteCount;
pub use stamp::{ClockSource, Stamp};
pub use time::{Mono, RemoteMono, Span, Wall};

/// Whether a number is zero, or another value is the default of its type: serde leaves such fields
/// out with `skip_serializing_if = "netaware_units::is_default"`.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
