//! What a reflector makes of the TLVs of a request.

use super::super::hmac::Tag;
use super::{HEADER, MALFORMED, Place, UNKNOWN, UNPROVEN, kind, places, same_clock};
use crate::proof::Key;

/// What a reflector knows when a request has come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The port that the request went to and the one that it came from.
    pub ports: (u16, u16),
    /// DSCP that the request came with; absent where the system does not tell.
    pub dscp: Option<u8>,
    /// ECN bits that it came with.
    pub ecn: u8,
    /// Highest DSCP that is sent for strangers; a wish above is refused, 0 is always granted.
    pub highest_dscp: u8,
    /// Requests of this session that came, this one included.
    pub received: u32,
    /// Replies of this session that were sent, this one included.
    pub sent: u32,
    /// What synchronises the clock, by IANA's STAMP Synchronization Sources: 1 NTP, 2 PTP, 5
    /// nothing.
    pub synchronised_by: u8,
    /// How the request's arrival was stamped, by IANA's STAMP Timestamping Methods: 2 software.
    pub stamped_in: u8,
    /// How the reply's leaving is stamped.
    pub stamped_out: u8,
    /// `boot_id` of the running kernel; absent: it is not compared.
    pub run_of_kernel: Option<&'a [u8]>,
}

/// What the sender wants of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// DSCP to send it with.
    pub dscp: u8,
    /// The TLVs did not prove the key: nothing in them was done.
    pub unproven: bool,
    /// A TLV had a length that cannot be.
    pub malformed: bool,
}

/// Answers the TLVs in what follows the base packet, in place; `numbers` are the sequence numbers
/// of request and reply, which their proofs cover. With a key, TLVs without a valid proof are given
/// back untouched with I set (RFC 8972 §4.8).
pub fn reflect(area: &mut [u8], facts: &Facts<'_>, key: Option<&Key>, numbers: (u32, u32)) -> Asked {
    let mut asked = Asked::default();
    let mut found = [None; super::MOST];
    let mut count = 0;
    let mut broken = None;
    for place in places(area) {
        match place {
            Ok(place) => {
                found[count] = Some(place);
                count += 1;
            }
            Err(place) => broken = Some(place.at),
        }
    }
    if let Some(at) = broken {
        area[at] |= MALFORMED;
        asked.malformed = true;
    }
    let found = || found.iter().flatten().copied();
    if let Some(key) = key
        && count > 0
        && !is_proven(area, found(), key, numbers.0)
    {
        found().for_each(|place| area[place.at] |= UNPROVEN);
        asked.unproven = true;
        return asked;
    }
    for place in found() {
        match answer(area, place, facts, &mut asked) {
            Taken::Known => area[place.at] &= !(UNKNOWN | MALFORMED | UNPROVEN),
            Taken::Unknown => area[place.at] |= UNKNOWN,
            Taken::WrongLength => {
                area[place.at] |= MALFORMED;
                asked.malformed = true;
            }
        }
    }
    if let Some(key) = key {
        prove(area, found(), key, numbers.1);
    }
    asked
}

/// How a TLV was taken.
enum Taken {
    Known,
    Unknown,
    WrongLength,
}

fn answer(area: &mut [u8], place: Place, facts: &Facts<'_>, asked: &mut Asked) -> Taken {
    let Some(value) = area.get_mut(place.value_at()..place.end()) else { return Taken::WrongLength };
    match (place.kind, value.len()) {
        (kind::EXTRA_PADDING, _) | (kind::HMAC, Tag::LEN) => {}
        (kind::LOCATION, 4..) => {
            value[..2].copy_from_slice(&facts.ports.0.to_be_bytes());
            value[2..4].copy_from_slice(&facts.ports.1.to_be_bytes());
            refuse_parts(&mut value[4..]);
        }
        (kind::TIMESTAMP_INFORMATION, 4) => {
            let by = facts.synchronised_by;
            value.copy_from_slice(&[by, facts.stamped_in, by, facts.stamped_out]);
        }
        (kind::CLASS_OF_SERVICE, 4) => class_of_service(value, facts, asked),
        (kind::DIRECT_MEASUREMENT, 12) => {
            value[4..8].copy_from_slice(&facts.received.to_be_bytes());
            value[8..].copy_from_slice(&facts.sent.to_be_bytes());
        }
        (kind::SAME_CLOCK, 32) => match facts.run_of_kernel {
            Some(run) => {
                let (nonce, room) = value.split_at_mut(16);
                room.copy_from_slice(&same_clock(run, nonce));
            }
            None => return Taken::Unknown,
        },
        (
            kind::LOCATION
            | kind::TIMESTAMP_INFORMATION
            | kind::CLASS_OF_SERVICE
            | kind::DIRECT_MEASUREMENT
            | kind::HMAC
            | kind::SAME_CLOCK,
            _,
        ) => return Taken::WrongLength,
        // Access reports are for a reflector that manages access networks, follow-ups need transmit
        // stamps.
        _ => return Taken::Unknown,
    }
    Taken::Known
}

/// DSCP1 (6 bits), DSCP2 (6), ECN (2), RP (2), 16 reserved: RFC 8972 §4.4.
fn class_of_service(value: &mut [u8], facts: &Facts<'_>, asked: &mut Asked) {
    let wanted = value[0] >> 2;
    let granted = wanted <= facts.highest_dscp;
    asked.dscp = if granted { wanted } else { 0 };
    let came_with = facts.dscp.unwrap_or(0) & 0x3f;
    let refused = u8::from(!granted);
    value[0] = wanted << 2 | came_with >> 4;
    value[1] = came_with << 4 | (facts.ecn & 3) << 2 | refused;
}

/// Sub-TLVs have the same form, and none of them is answered.
fn refuse_parts(area: &mut [u8]) {
    let mut at = 0;
    for _ in 0..super::MOST {
        let Some(place) = area.get(at..).filter(|rest| !rest.is_empty()).map(|rest| super::place(rest, at))
        else {
            return;
        };
        match place {
            Ok(place) => {
                area[place.at] |= UNKNOWN;
                at = place.end();
            }
            Err(place) => {
                area[place.at] |= MALFORMED;
                return;
            }
        }
    }
}

/// Whether an HMAC TLV covers all others but extra padding behind it.
fn is_proven(area: &[u8], places: impl Iterator<Item = Place>, key: &Key, number: u32) -> bool {
    let mut proven = false;
    for place in places {
        match place.kind {
            kind::HMAC if !proven && place.len == Tag::LEN => {
                let tag = Tag::of(key, &[&number.to_be_bytes(), &area[..place.at]]);
                if !tag.is(place.value(area)) {
                    return false;
                }
                proven = true;
            }
            kind::EXTRA_PADDING if proven => {}
            _ if proven => return false,
            _ => {}
        }
    }
    proven
}

/// Writes the proof where there is room for one.
pub(super) fn prove(area: &mut [u8], mut places: impl Iterator<Item = Place>, key: &Key, number: u32) {
    let Some(place) = places.find(|place| place.kind == kind::HMAC && place.len == Tag::LEN) else { return };
    let tag = Tag::of(key, &[&number.to_be_bytes(), &area[..place.at]]);
    let at = place.at + HEADER;
    area[at..at + Tag::LEN].copy_from_slice(&tag.0);
}

/// Whether the TLVs of a reply prove the key; with none there is nothing to prove.
pub(super) fn is_reply_proven(area: &[u8], key: &Key, number: u32) -> bool {
    let mut found = places(area).filter_map(Result::ok).peekable();
    found.peek().is_none() || is_proven(area, found, key, number)
}
