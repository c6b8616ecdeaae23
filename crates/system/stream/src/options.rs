//! What a stream is made with, and what it tells.

use netaware_dual::Event;
use netaware_dual::policy::Rules;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

/// What a stream is made with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Bytes kept that the peer has not acknowledged, and bytes taken that nobody has read: what
    /// fits into a path is at most this for each round trip. 1 byte to 1 GiB; memory is used as it
    /// is needed.
    pub window: u32,
    /// The longest record, bytes; 1 to 1 MiB. Short ones let a switch happen sooner and cost 16
    /// bytes each.
    pub longest_record: u32,
    /// How long a stream without any connection waits for a new one.
    pub patience: Span,
    /// How long a connection is tried.
    pub connect_patience: Span,
    /// What is made anew when it is lost. An acceptor only waits.
    pub wanted: netaware_dual::connect::Wanted,
    /// Tried first, and used first where both come up.
    pub preferred: IpVersion,
    /// Switches by itself; without it only on a wish.
    pub policy: Option<Rules>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: 16 << 20,
            longest_record: 256 * 1024,
            patience: Span::from_secs(60),
            connect_patience: Span::from_secs(10),
            wanted: netaware_dual::connect::Wanted::Each,
            preferred: IpVersion::V6,
            policy: None,
        }
    }
}

/// An event, and when it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happened {
    /// On the monotonic clock.
    pub at: Mono,
    /// What.
    pub event: Event,
}
