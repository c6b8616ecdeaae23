//! What a reply's TLVs say.

use super::answer::is_reply_proven;
use super::{MALFORMED, UNKNOWN, UNPROVEN, kind, places};
use crate::proof::Key;

/// What the reflector answered, as far as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// How packets were marked.
    pub class: Option<ClassOfService>,
    /// Its counts.
    pub counters: Option<Counters>,
    /// What synchronises its clock, by IANA's registry: 1 NTP, 2 PTP, 3 SSU/BITS, 4 satellites, 5
    /// nothing.
    pub synchronised_by: Option<u8>,
    /// Its answer to our random bytes.
    pub same_clock: Option<[u8; 16]>,
    /// TLVs that it does not know.
    pub unknown: u32,
    /// It, or we, found a length that cannot be.
    pub malformed: bool,
    /// It says that ours did not prove the key, or its own do not.
    pub unproven: bool,
}

/// RFC 8972 §4.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassOfService {
    /// DSCP that the request arrived with.
    pub dscp: u8,
    /// ECN bits that it arrived with.
    pub ecn: u8,
    /// The reflector does not use the DSCP that was asked for.
    pub refused: bool,
}

/// RFC 8972 §4.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Requests of the session that came there.
    pub received: u32,
    /// Replies that left.
    pub sent: u32,
}

/// Reads what follows the base of a reply with this sequence number.
pub fn told(area: &[u8], key: Option<&Key>, number: u32) -> Told {
    let mut told = Told::default();
    if let Some(key) = key
        && !is_reply_proven(area, key, number)
    {
        told.unproven = true;
        return told;
    }
    for place in places(area) {
        let Ok(place) = place else {
            told.malformed = true;
            break;
        };
        let flags = area.get(place.at).copied().unwrap_or(UNKNOWN);
        told.malformed |= flags & MALFORMED != 0;
        told.unproven |= flags & UNPROVEN != 0;
        if flags & (UNKNOWN | MALFORMED | UNPROVEN) != 0 {
            told.unknown += u32::from(flags & UNKNOWN != 0);
            continue;
        }
        take(&mut told, place.kind, place.value(area));
    }
    told
}

fn take(told: &mut Told, kind: u8, value: &[u8]) {
    match (kind, value) {
        (kind::CLASS_OF_SERVICE, &[first, second, _, _]) => {
            told.class = Some(ClassOfService {
                dscp: (first & 3) << 4 | second >> 4,
                ecn: second >> 2 & 3,
                refused: second & 3 != 0,
            });
        }
        (kind::DIRECT_MEASUREMENT, value) if value.len() == 12 => {
            let count = |at| super::super::u32_at(value, at).unwrap_or(0);
            told.counters = Some(Counters { received: count(4), sent: count(8) });
        }
        (kind::TIMESTAMP_INFORMATION, &[source, ..]) => told.synchronised_by = Some(source),
        (kind::SAME_CLOCK, value) if value.len() == 32 => {
            told.same_clock = value[16..].try_into().ok();
        }
        _ => {}
    }
}
