//! What follows the base packet (RFC 8972 §4): type, length, value, and a byte of flags that says
//! how the reflector took it.
//!
//! ```text
//! flags (U unknown, M malformed, I not proven) | type | length of the value, 2 bytes | value
//! ```
//!
//! A sender sets U; a reflector that knows the type clears it. [`reflect`] answers them in place,
//! so a reply is exactly as long as its request; [`told`] reads the answers. Where we differ:
//! sub-TLVs of Location are given back as unknown, because what they ask for (addresses behind the
//! reflector) is nobody's business; follow-up telemetry likewise, because an unconnected socket has
//! no transmit stamps.

mod answer;
mod told;
mod writing;

pub use answer::{Asked, Facts, reflect};
pub use told::{ClassOfService, Counters, Told, told};
pub use writing::{Question, Questions, room_for};

use super::hmac;

/// Types of TLVs (IANA, STAMP TLV Types).
pub mod kind {
    /// Bytes that mean nothing (§4.1).
    pub const EXTRA_PADDING: u8 = 1;
    /// Ports and addresses that the reflector sees (§4.2).
    pub const LOCATION: u8 = 2;
    /// Where clocks and stamps come from (§4.3).
    pub const TIMESTAMP_INFORMATION: u8 = 3;
    /// DSCP and ECN on both ways (§4.4).
    pub const CLASS_OF_SERVICE: u8 = 4;
    /// Counts of both ends (§4.5).
    pub const DIRECT_MEASUREMENT: u8 = 5;
    /// Which access network is up (§4.6).
    pub const ACCESS_REPORT: u8 = 6;
    /// When the reply before really left (§4.7).
    pub const FOLLOW_UP_TELEMETRY: u8 = 7;
    /// Proves the TLVs before it (§4.8).
    pub const HMAC: u8 = 8;
    /// Ours, of the range for private use: whether both ends read the same clock. 16 random bytes
    /// and room for 16 more, in which the reflector puts their HMAC under the name of its kernel's
    /// run (`boot_id`). Who has the same can tell; nobody else learns anything, and no two
    /// questions have the same answer.
    pub const SAME_CLOCK: u8 = 252;
}

/// The reflector does not know the type; set by the sender.
pub const UNKNOWN: u8 = 0x80;
/// The reflector found a length that cannot be.
pub const MALFORMED: u8 = 0x40;
/// The HMAC TLV did not prove the TLVs.
pub const UNPROVEN: u8 = 0x20;

/// Bytes before the value.
pub const HEADER: usize = 4;

/// Most TLVs of a packet that are looked at; what follows is as unknown. Costs of a hostile packet
/// stay bounded.
pub const MOST: usize = 64;

/// Where one lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Offset of its flags.
    pub at: usize,
    /// Type.
    pub kind: u8,
    /// Bytes of the value.
    pub len: usize,
}

impl Place {
    /// Offset of the value.
    pub fn value_at(self) -> usize {
        self.at + HEADER
    }

    /// Offset of what follows.
    pub fn end(self) -> usize {
        self.value_at() + self.len
    }

    /// The value in the bytes that it was found in.
    pub fn value(self, area: &[u8]) -> &[u8] {
        area.get(self.value_at()..self.end()).unwrap_or_default()
    }
}

/// The TLVs in what follows a base packet. After one whose length cannot be, which is given with
/// `Err`, there are no more.
pub fn places(area: &[u8]) -> impl Iterator<Item = Result<Place, Place>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = area.get(at..).filter(|rest| !rest.is_empty())?;
        let place = place(rest, at);
        at = place.map_or(area.len(), Place::end);
        Some(place)
    })
    .take(MOST)
}

fn place(rest: &[u8], at: usize) -> Result<Place, Place> {
    let kind = rest.get(1).copied().unwrap_or(0);
    let Some(len) = rest.get(2..HEADER) else { return Err(Place { at, kind, len: 0 }) };
    let len = usize::from(u16::from_be_bytes([len[0], len[1]]));
    let place = Place { at, kind, len };
    if rest.len() < HEADER + len { Err(place) } else { Ok(place) }
}

/// The answer to a [`kind::SAME_CLOCK`] question.
pub fn same_clock(run_of_kernel: &[u8], nonce: &[u8]) -> [u8; 16] {
    hmac::first_128_bits(run_of_kernel, &[b"netaware same clock 1", nonce])
}
