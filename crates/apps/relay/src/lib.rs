//! Gives programs that know nothing of it a path over both IP versions.
//!
//! ```text
//!  program ──TCP──► near relay ══ one dual-stack stream for each connection ══► far relay ──TCP──► server
//!                   listens                IPv4 and IPv6                        connects to what its
//!                   on loopback                                                 own command line says
//! ```
//!
//! [`Near`] takes plain connections and opens a stream for each; [`Far`] takes streams and connects
//! each to a server. What they say to each other first is [`netaware_wire::relay`]; from then on a
//! stream carries the bytes of one connection, both directions end by themselves, and an end before
//! the end becomes a reset at the other side.
//!
//! **Bounds.** Connections are counted ([`Settings::max`]); each holds two windows of
//! [`Options::window`] at most and two blocks. Nobody reads faster than it can write, so a slow
//! program slows the other one down and nothing piles up.

mod carry;
mod end;
mod far;
mod near;
mod orders;
mod speech;

use std::net::SocketAddr;

pub use end::{Bound, Handle, RelayError};
pub use far::{Far, Forward};
pub use near::Near;
pub use netaware_server::{Key, Network};
pub use netaware_stream::{Options, Rules};
use netaware_units::Span;

/// What both ends are told alike.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Shared with the other end; without the proof of knowing it nothing is carried.
    pub key: Option<Key>,
    /// Connections at the same time.
    pub max: usize,
    /// How connections that are open get to end after [`Handle::stop`].
    pub drain: Span,
    /// Of the streams.
    pub options: Options,
}

impl Default for Settings {
    fn default() -> Self {
        let options = Options { window: WINDOW, patience: STREAM_PATIENCE, ..Options::default() };
        Self { key: None, max: 256, drain: Span::from_secs(10), options }
    }
}

/// Whether only this host can reach them.
pub fn is_local(addresses: &[SocketAddr]) -> bool {
    addresses.iter().all(|address| address.ip().to_canonical().is_loopback())
}

/// Of a stream, each way: 4 MiB are 330 Mbit/s at 100 ms.
pub const WINDOW: u32 = 4 << 20;
/// A program should not wait for longer on a path that is gone.
const STREAM_PATIENCE: Span = Span::from_secs(30);
