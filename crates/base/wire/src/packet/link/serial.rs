//! Links of two ends: PPP, frame relay and Cisco's HDLC.

use super::{Cursor, Found, PPP_IPV4, PPP_IPV6, Says};
use crate::packet::PacketError;

/// PPP as captures have it (tcpdump.org/linktypes.html, 9): RFC 1662's address and control bytes
/// come first or not at all, then the protocol. RFC 1661 §6.5 lets a sender leave out the first
/// byte of a protocol below 256: the last byte of a protocol is odd and the first is even, so the
/// two are told apart.
#[cold]
pub(super) fn ppp(cursor: &Cursor<'_>) -> Result<Found, PacketError> {
    let at = if let [ALL_STATIONS, UNNUMBERED] = *cursor.at::<2>(0)? { 2 } else { 0 };
    let [first] = *cursor.at::<1>(at)?;
    let (protocol, at) = if first & 1 == 1 { (u16::from(first), at + 1) } else { (cursor.word(at)?, at + 2) };
    match protocol {
        PPP_IPV4 => cursor.found(Says::V4, at, [0; 2]),
        PPP_IPV6 => cursor.found(Says::V6, at, [0; 2]),
        PPP_MPLS => cursor.behind_labels(at, [0; 2]),
        _ => Err(PacketError::NotIp),
    }
}

/// Frame relay: a Q.922 address of two to four bytes, the last of which is odd, then RFC 2427: a
/// control byte, padding perhaps, and the number of a network layer protocol. Cisco puts an
/// EtherType behind the address instead, which is at least 0x0600: no control byte of RFC 2427 is.
#[cold]
pub(super) fn frame_relay(cursor: &Cursor<'_>) -> Result<Found, PacketError> {
    let mut control = 0;
    loop {
        let [byte] = *cursor.at::<1>(control)?;
        control += 1;
        match (byte & 1, control) {
            // One byte is no address, and four are the longest.
            (1, 1) | (0, 4) => return Err(PacketError::NotIp),
            (1, _) => break,
            _ => {}
        }
    }
    let [byte] = *cursor.at::<1>(control)?;
    if byte != UNNUMBERED {
        return cursor.found(Says::of_ether_type(cursor.word(control)?)?, control + 2, [0; 2]);
    }
    let [mut protocol] = *cursor.at::<1>(control + 1)?;
    let mut at = control + 2;
    if protocol == PADDING {
        [protocol] = *cursor.at::<1>(at)?;
        at += 1;
    }
    match protocol {
        NLPID_IPV4 => cursor.found(Says::V4, at, [0; 2]),
        NLPID_IPV6 => cursor.found(Says::V6, at, [0; 2]),
        // An organisation of three zeros: an EtherType follows. Others bridge.
        NLPID_SNAP => match *cursor.at::<5>(at)? {
            [0, 0, 0, high, low] => {
                cursor.found(Says::of_ether_type(u16::from_be_bytes([high, low]))?, at + 5, [0; 2])
            }
            _ => Err(PacketError::NotIp),
        },
        _ => Err(PacketError::NotIp),
    }
}

/// Cisco's HDLC: the address (0x0f for one station, 0x8f for all; some systems put other values
/// there, so it is not looked at), a zero, and an EtherType. SLARP and CDP have types of their own.
#[cold]
pub(super) fn cisco_hdlc(cursor: &Cursor<'_>) -> Result<Found, PacketError> {
    match cursor.word(2)? {
        super::MPLS => cursor.behind_labels(4, [0; 2]),
        other => cursor.found(Says::of_ether_type(other)?, 4, [0; 2]),
    }
}

/// RFC 1662 §3.1: the address of all stations, and the control byte of unnumbered information,
/// which RFC 2427 §3 has too.
const ALL_STATIONS: u8 = 0xff;
const UNNUMBERED: u8 = 0x03;
/// RFC 3032 §4.3.
const PPP_MPLS: u16 = 0x0281;
/// RFC 2427 §3 and §4.1; the number of IPv6 is that of ISO/IEC TR 9577.
const PADDING: u8 = 0x00;
const NLPID_SNAP: u8 = 0x80;
const NLPID_IPV6: u8 = 0x8e;
const NLPID_IPV4: u8 = 0xcc;
