//! What travels on the connections of a dual-stack stream: one opening each way, then records.
//!
//! ```text
//!  opener ──Opening──►          one per connection; the first one makes the stream, later ones join it
//!         ◄─Welcome──  acceptor
//!         ◄─records─►           each a head of 16 bytes; bytes follow `Data` and `Pad` alone
//! ```
//!
//! All numbers are big endian. A byte of the stream is named by its offset from the beginning of
//! its direction, so it does not matter on which connection, or how often, it comes.
//! docs/dual-stack-stream.md has the meaning and the state diagram.
//!
//! [`DatagramHead`] begins what travels in UDP where the application sends datagrams instead of a
//! stream.

mod datagram;
mod opening;
mod record;

pub use datagram::{
    COOKIE_LEN, Came, DATAGRAM_HEAD_LEN, DATAGRAM_VERSION, DatagramBody, DatagramFault, DatagramHead,
    DatagramKind, HELLO_LEN, MAX_DATAGRAM, PROBE_LEN, Probe, WishAnswer,
};
pub use opening::{Join, OPENING_LEN, Opening, OpeningError, Refusal, WELCOME_LEN, Welcome};
pub use record::{Answer, Farewell, HEAD_LEN, MAX_DATA, Record, RecordError};

/// The version of framing spoken here; an opening names the lowest and the highest that its sender
/// speaks.
pub const FRAMING_VERSION: u8 = 1;
