//! Frames of IEEE 802.11 as a card in monitor mode hands them over.
//!
//! Only what lies open is read: a protected frame is not IP to anybody who only listens. Frames
//! that hold a piece of a packet, or several packets (A-MSDU), are not IP either, so what is
//! counted leans low and no packet is made up.

use super::{Cursor, Found};
use crate::packet::PacketError;

/// The radiotap header (radiotap.org): version, padding, its length with the lowest byte first, and
/// which fields it has. Of the fields only the flags say something about what follows.
#[cold]
pub(super) fn radiotap(cursor: &Cursor<'_>) -> Result<Found, PacketError> {
    let [version, _, low, high] = *cursor.at(0)?;
    let length = usize::from(u16::from_le_bytes([low, high]));
    if version != 0 {
        return Err(PacketError::NotIp);
    }
    if length < LEAST_RADIOTAP {
        return Err(PacketError::LinkHeader);
    }
    let is_padded = flags(cursor, length)? & FLAG_PADDED != 0;
    frame(cursor, length, is_padded)
}

/// The radiotap flags; 0 where the header has none.
fn flags(cursor: &Cursor<'_>, length: usize) -> Result<u8, PacketError> {
    let present = |at: usize| cursor.at(at).map(|word| u32::from_le_bytes(*word));
    let first = present(4)?;
    // Further words say of more fields; each stands behind the one that announces it.
    let (mut word, mut at) = (first, 8);
    while word & MORE_WORDS != 0 {
        if at + 4 > length {
            return Err(PacketError::LinkHeader);
        }
        (word, at) = (present(at)?, at + 4);
    }
    if first & HAS_FLAGS == 0 {
        return Ok(0);
    }
    if first & HAS_TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    if at >= length {
        return Err(PacketError::LinkHeader);
    }
    cursor.at::<1>(at).map(|[flags]| *flags)
}

/// IEEE 802.11-2020 §9.2.3: the header of a data frame at `at`, and LLC behind it.
fn frame(cursor: &Cursor<'_>, at: usize, is_padded: bool) -> Result<Found, PacketError> {
    let [kind, how] = *cursor.at(at)?;
    // Version 0, type 2, and a subtype with data in it.
    if kind & (VERSION | TYPE) != DATA || kind & WITHOUT_DATA != 0 || how & (PROTECTED | MORE_PIECES) != 0 {
        return Err(PacketError::NotIp);
    }
    let mut header = 24;
    if how & BOTH_WAYS == BOTH_WAYS {
        // A fourth address.
        header += 6;
    }
    if cursor.word(at + 22)? & PIECE != 0 {
        return Err(PacketError::NotIp);
    }
    if kind & QUALITY != 0 {
        let [control, _] = *cursor.at(at + header)?;
        if control & SEVERAL != 0 {
            return Err(PacketError::NotIp);
        }
        header += 2;
        if how & ORDER != 0 {
            // HT control.
            header += 4;
        }
    }
    if is_padded {
        header = header.next_multiple_of(4);
    }
    cursor.behind_llc(at + header, [0; 2])
}

/// Version, padding, length, and one word of fields.
const LEAST_RADIOTAP: usize = 8;
/// Bits of the words of fields.
const HAS_TIME: u32 = 1;
const HAS_FLAGS: u32 = 1 << 1;
const MORE_WORDS: u32 = 1 << 31;
/// The 802.11 header is padded to a multiple of four bytes.
const FLAG_PADDED: u8 = 0x20;
/// First byte of frame control.
const VERSION: u8 = 0x03;
const TYPE: u8 = 0x0c;
const DATA: u8 = 0x08;
const WITHOUT_DATA: u8 = 0x40;
const QUALITY: u8 = 0x80;
/// Second byte of frame control.
const BOTH_WAYS: u8 = 0x03;
const MORE_PIECES: u8 = 0x04;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;
/// Sequence control as it lies there, the lowest byte first: the number of a piece.
const PIECE: u16 = 0x0f00;
/// First byte of QoS control: an A-MSDU.
const SEVERAL: u8 = 0x80;
