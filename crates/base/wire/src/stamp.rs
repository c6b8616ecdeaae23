//! STAMP: the Simple Two-way Active Measurement Protocol (RFC 8762), its extensions (RFC 8972), and
//! of TWAMP (RFC 5357) as much as is the same bytes.
//!
//! ```text
//! sender ── Request: seq, T1 ──►  reflector: T2 on arrival, T3 on leaving
//!        ◄── Reply: own seq, T3, T2, the request's seq and T1, its TTL ──
//! ```
//!
//! Both packets are 44 bytes long, or 112 with [`Mode::Authenticated`] (HMAC-SHA-256 cut to 128
//! bits); what follows are TLVs ([`tlv`]), and a reply is as long as its request. Everything is
//! big-endian. Bytes that must be zero are written so, covered by the HMAC and ignored on reading
//! (RFC 8762 §4.2). Where we differ: a request of 41 to 43 bytes (TWAMP Light with the padding that
//! RFC 5357 §4.1.2 asks for) is answered with its own length and not with 44, so that no answer is
//! ever longer than what asked for it; and a reflector reads the bytes that must be zero to tell
//! what another reflector has answered ([`looks_reflected`]).

mod hmac;
mod time;
pub mod tlv;

use std::fmt;

use netaware_units::Wall;

use crate::proof::Key;
use hmac::Tag;
pub use time::{ErrorEstimate, TimeFormat, Timestamp, from_ntp, from_ptp, to_ntp, to_ptp};

/// UDP port of reflectors (RFC 8762 §4.1).
pub const PORT: u16 = 862;

/// Bytes of the shortest request that is answered: TWAMP's reflected packet has as many.
pub const SHORTEST: usize = 41;

/// With or without proof of a shared key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Anybody may read, forge and alter.
    Unauthenticated,
    /// Altered or forged packets are recognised; everything can still be read.
    Authenticated,
}

impl Mode {
    /// Authenticated where there is a key.
    pub fn of(key: Option<&Key>) -> Self {
        if key.is_some() { Self::Authenticated } else { Self::Unauthenticated }
    }

    /// Bytes before the first TLV.
    pub const fn base_len(self) -> usize {
        match self {
            Self::Unauthenticated => 44,
            Self::Authenticated => 112,
        }
    }

    /// Where the fields stand.
    const fn layout(self) -> &'static Layout {
        match self {
            Self::Unauthenticated => &UNAUTHENTICATED,
            Self::Authenticated => &AUTHENTICATED,
        }
    }
}

/// Why bytes are no packet of STAMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StampError {
    /// Shorter than its mode's packets.
    Short,
    /// The key is another one, or the packet was altered.
    Proof,
    /// The multiplier of an error estimate is zero (RFC 8762 §4.2.1 by RFC 4656 §4.1.2: to be
    /// discarded).
    ErrorEstimate,
}

impl StampError {
    /// All there are, to count them by.
    pub const ALL: [Self; 3] = [Self::Short, Self::Proof, Self::ErrorEstimate];

    /// One word, for counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Proof => "proof",
            Self::ErrorEstimate => "error_estimate",
        }
    }
}

impl fmt::Display for StampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "the packet is shorter than STAMP's",
            Self::Proof => "the packet does not prove the key",
            Self::ErrorEstimate => "the packet's error estimate has a multiplier of zero",
        })
    }
}

impl std::error::Error for StampError {}

/// What a sender says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Rises by one with each packet, from 0.
    pub seq: u32,
    /// T1: when it leaves, by the sender's clock, in the format that `error` names.
    pub sent_at: Timestamp,
    /// How good that clock is.
    pub error: ErrorEstimate,
    /// Session (RFC 8972 §3); zero in packets of those who know only RFC 8762.
    pub ssid: u16,
}

/// What a reflector answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Of a stateful reflector: how many packets of this session it reflected before. A stateless
    /// one repeats the request's.
    pub seq: u32,
    /// T3: when it leaves, by the reflector's clock.
    pub sent_at: Wall,
    /// How good the reflector's clock is; holds for T2 and T3.
    pub error: ErrorEstimate,
    /// Of the request.
    pub ssid: u16,
    /// T2: when the request came.
    pub received_at: Wall,
    /// Of the request.
    pub request_seq: u32,
    /// T1, the very bits of the request (RFC 8762 §4.3.1: copied), which say when in the format
    /// that `request_error` names.
    pub request_sent_at: Timestamp,
    /// Of the request.
    pub request_error: ErrorEstimate,
    /// TTL or hop limit that the request came with; 255 where the reflector's system does not tell
    /// (RFC 8762 §4.3.1).
    pub request_ttl: u8,
}

impl Request {
    /// Writes the base packet at the start of `out`; what follows it is left as it is. Call it
    /// last: with a key it proves the base, and TLVs are proven by a TLV of their own.
    ///
    /// # Panics
    /// When `out` is shorter than [`Mode::base_len`].
    pub fn emit(&self, out: &mut [u8], key: Option<&Key>) {
        let mode = Mode::of(key);
        let (layout, base) = (mode.layout(), &mut out[..mode.base_len()]);
        base.fill(0);
        put_u32(base, 0, self.seq);
        put_u64(base, layout.sent_at, self.sent_at.0);
        put_u16(base, layout.error, self.error.emit());
        put_u16(base, layout.ssid, self.ssid);
        seal(base, key);
    }

    /// Reads a request of the mode that `key` stands for.
    ///
    /// # Errors
    /// See [`StampError`].
    pub fn parse(bytes: &[u8], key: Option<&Key>) -> Result<Self, StampError> {
        let layout = opened(bytes, key)?;
        let error = ErrorEstimate::parse(u16_at(bytes, layout.error)?)?;
        Ok(Self {
            seq: u32_at(bytes, 0)?,
            sent_at: Timestamp(u64_at(bytes, layout.sent_at)?),
            error,
            ssid: u16_at(bytes, layout.ssid)?,
        })
    }
}

impl Reply {
    /// Writes the reply over the base of the request in `out`; what follows stays. Cut short where
    /// `out` is.
    pub fn emit(&self, out: &mut [u8], key: Option<&Key>) {
        let mode = Mode::of(key);
        let layout = mode.layout();
        let mut whole = [0; Mode::Authenticated.base_len()];
        let base = &mut whole[..mode.base_len()];
        put_u32(base, 0, self.seq);
        put_u64(base, layout.sent_at, self.error.format.emit(self.sent_at));
        put_u16(base, layout.error, self.error.emit());
        put_u16(base, layout.ssid, self.ssid);
        put_u64(base, layout.received_at, self.error.format.emit(self.received_at));
        put_u32(base, layout.request_seq, self.request_seq);
        put_u64(base, layout.request_sent_at, self.request_sent_at.0);
        put_u16(base, layout.request_error, self.request_error.emit());
        base[layout.request_ttl] = self.request_ttl;
        seal(base, key);
        let len = base.len().min(out.len());
        out[..len].copy_from_slice(&base[..len]);
    }

    /// Reads a reply of the mode that `key` stands for.
    ///
    /// # Errors
    /// See [`StampError`].
    pub fn parse(bytes: &[u8], key: Option<&Key>) -> Result<Self, StampError> {
        let layout = opened(bytes, key)?;
        let error = ErrorEstimate::parse(u16_at(bytes, layout.error)?)?;
        let request_error = ErrorEstimate::parse(u16_at(bytes, layout.request_error)?)?;
        Ok(Self {
            seq: u32_at(bytes, 0)?,
            sent_at: error.format.parse(u64_at(bytes, layout.sent_at)?),
            error,
            ssid: u16_at(bytes, layout.ssid)?,
            received_at: error.format.parse(u64_at(bytes, layout.received_at)?),
            request_seq: u32_at(bytes, layout.request_seq)?,
            request_sent_at: Timestamp(u64_at(bytes, layout.request_sent_at)?),
            request_error,
            request_ttl: *bytes.get(layout.request_ttl).ok_or(StampError::Short)?,
        })
    }
}

/// Returns whether a packet looks like a reflector's answer: then another reflector must not answer
/// it, or the two go on for ever.
///
/// An answer holds the request's number and time where a sender has zeros (RFC 8762 §4.2.1), and
/// whatever is not zero there is taken for that. The one exception is padding, which a sender of
/// TWAMP fills with random bytes (RFC 5357 §4.1.2, the default of Junos): it is not zero where an
/// answer must be, and the time of receipt that it would hold is far from the packet's own. One
/// such packet in 65,000 is wrongly taken for an answer. TLVs come behind all that.
pub fn looks_reflected(bytes: &[u8], mode: Mode) -> bool {
    let zeros = match mode {
        Mode::Unauthenticated => UNAUTHENTICATED.received_at..mode.base_len().min(bytes.len()),
        Mode::Authenticated => AUTHENTICATED.ssid + 2..PROOF_AT,
    };
    let is_zero = bytes.get(zeros).is_none_or(|zeros| zeros.iter().all(|byte| *byte == 0));
    !is_zero && (mode == Mode::Authenticated || !is_random_padding(bytes))
}

/// Whether what follows the fields of an unauthenticated sender cannot be of an answer.
fn is_random_padding(bytes: &[u8]) -> bool {
    let Layout { sent_at, received_at, request_error, .. } = UNAUTHENTICATED;
    let (Ok(sent), Ok(received), Ok(zero)) =
        (u32_at(bytes, sent_at), u32_at(bytes, received_at), u16_at(bytes, request_error + 2))
    else {
        return false;
    };
    zero != 0 && sent.abs_diff(received) > SECONDS_OF_A_DAY
}

/// Returns the proof in the base of an authenticated packet. No two packets of a sender have the
/// same, as their numbers or times differ; nothing if the packet is too short.
pub fn proof_in(bytes: &[u8]) -> Option<u128> {
    let proof = bytes.get(PROOF_AT..Mode::Authenticated.base_len())?;
    proof.try_into().ok().map(u128::from_be_bytes)
}

/// Offsets of the fields that the modes have at different places. The sequence number is first in
/// both.
struct Layout {
    sent_at: usize,
    error: usize,
    ssid: usize,
    received_at: usize,
    request_seq: usize,
    request_sent_at: usize,
    request_error: usize,
    request_ttl: usize,
}

/// RFC 8762 figures 2 and 5, RFC 8972 figures 2 and 3.
const UNAUTHENTICATED: Layout = Layout {
    sent_at: 4,
    error: 12,
    ssid: 14,
    received_at: 16,
    request_seq: 24,
    request_sent_at: 28,
    request_error: 36,
    request_ttl: 40,
};

/// RFC 8762 figures 4 and 6.
const AUTHENTICATED: Layout = Layout {
    sent_at: 16,
    error: 24,
    ssid: 26,
    received_at: 32,
    request_seq: 48,
    request_sent_at: 64,
    request_error: 72,
    request_ttl: 80,
};

/// Of the base packet, where its proof begins.
const PROOF_AT: usize = 96;

/// Both formats of timestamps begin with whole seconds. No reflector holds a packet for so long.
const SECONDS_OF_A_DAY: u32 = 86_400;

/// Checks length and proof.
fn opened(bytes: &[u8], key: Option<&Key>) -> Result<&'static Layout, StampError> {
    let Some(key) = key else {
        return if bytes.len() < SHORTEST { Err(StampError::Short) } else { Ok(&UNAUTHENTICATED) };
    };
    let base = bytes.get(..Mode::Authenticated.base_len()).ok_or(StampError::Short)?;
    let (said, proof) = base.split_at(PROOF_AT);
    if Tag::of(key, &[said]).is(proof) { Ok(&AUTHENTICATED) } else { Err(StampError::Proof) }
}

fn seal(base: &mut [u8], key: Option<&Key>) {
    let Some(key) = key else { return };
    let (said, proof) = base.split_at_mut(PROOF_AT);
    proof.copy_from_slice(&Tag::of(key, &[said]).0);
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], StampError> {
    bytes.get(at..at + N).and_then(|field| field.try_into().ok()).ok_or(StampError::Short)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, StampError> {
    field(bytes, at).map(u16::from_be_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, StampError> {
    field(bytes, at).map(u32::from_be_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, StampError> {
    field(bytes, at).map(u64::from_be_bytes)
}

fn put_u16(out: &mut [u8], at: usize, value: u16) {
    out[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn put_u32(out: &mut [u8], at: usize, value: u32) {
    out[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

fn put_u64(out: &mut [u8], at: usize, value: u64) {
    out[at..at + 8].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests;
