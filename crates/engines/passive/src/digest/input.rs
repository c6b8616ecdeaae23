//! What of a packet is hashed.
//!
//! Of IPv4 (RFC 5475 §6.2.4.1): identification, flags and offset, both addresses, payload. Of IPv6:
//! payload length, bytes 10, 11, 14, 15, 16 of both addresses, payload. [`rfc5475_input`] is
//! exactly that, in network byte order, in this order, without padding. Our own digest takes whole
//! addresses, protocol and payload length besides.
//!
//! Checksums of TCP, UDP, UDP-Lite, DCCP, SCTP and ICMPv6 count as zero: a host whose card computes
//! them hands its packets to the capture with a part of the sum, and all packets of a flow with the
//! same.

use std::net::IpAddr;

use netaware_wire::lmap::MOST_PAYLOAD;
use netaware_wire::packet::Packet;

use super::Sip;
use super::compressor::Compressor;
use crate::seed::Key;

/// Why a packet cannot be told apart from others at another point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// It has no transport header of its own.
    LaterFragment,
    /// Less was captured than is to be hashed: another point may have captured more.
    CutOff,
}

/// Bytes of the longest input by RFC 5475.
pub(super) const MOST_INPUT: usize = 12 + MOST_PAYLOAD as usize;

/// The payload bytes of a packet that are hashed: `most`, or all there are. Never the padding of a
/// short frame.
#[inline]
pub(super) fn payload<'a>(packet: &Packet<'a>, most: usize) -> Result<&'a [u8], Unusable> {
    if packet.later_fragment {
        return Err(Unusable::LaterFragment);
    }
    let end = (packet.transport + most).min((packet.length as usize).max(packet.transport));
    packet.bytes.get(packet.transport..end).ok_or(Unusable::CutOff)
}

/// What makes our own digest of a packet: all of it brought down to 128 bits, and those hashed
/// under a key.
#[derive(Debug, Clone)]
pub(super) struct Ours {
    compressor: Compressor,
    key: Key,
}

impl Ours {
    pub(super) fn new(key: Key) -> Self {
        Self { compressor: Compressor::new(key), key }
    }

    /// Digest and selection hash; the second only if asked for.
    #[inline]
    pub(super) fn hash(&self, packet: &Packet<'_>, payload: &[u8], selection: bool) -> (u64, u64) {
        let beyond = u64::from(packet.length).saturating_sub(header_length(packet));
        // Of IPv6 only fragments have one.
        let identified = u64::from(packet.identification.is_some());
        let header = identified << 63
            | u64::from(packet.version) << 56
            | u64::from(packet.protocol) << 48
            | u64::from(packet.fragment) << 32
            | beyond;
        let identification = u64::from(packet.identification.unwrap_or(0));
        let addresses = match (packet.source, packet.destination) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                [[u64::from(from.to_bits()) << 32 | u64::from(to.to_bits()), 0], [0, 0]]
            }
            (from, to) => [from, to].map(|address| {
                let bits = address_bits(address);
                [(bits >> 64) as u64, bits as u64]
            }),
        };
        let before = [[header, identification], addresses[0], addresses[1]];
        let sum = self.compressor.compress(before, payload, checksum_bits(packet.protocol));
        let mut sip = Sip::new(self.key);
        sip.word(sum as u64);
        sip.word((sum >> 64) as u64);
        let digest = sip.end();
        (digest, if selection { sip.second() } else { 0 })
    }
}

/// RFC 5475's input of a packet with `payload` bytes from the transport header on (at most
/// [`MOST_PAYLOAD`]), checksums included, for working with probes of others.
pub fn rfc5475_input(packet: &Packet<'_>, payload: u16) -> Result<Vec<u8>, Unusable> {
    let payload = self::payload(packet, payload.min(MOST_PAYLOAD).into())?;
    let mut bytes = [0; MOST_INPUT];
    let used = rfc5475(packet, payload, &mut bytes);
    Ok(bytes[..used].to_vec())
}

#[inline]
pub(super) fn rfc5475(packet: &Packet<'_>, payload: &[u8], bytes: &mut [u8; MOST_INPUT]) -> usize {
    match (packet.source, packet.destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes[..2].copy_from_slice(&(packet.identification.unwrap_or(0) as u16).to_be_bytes());
            bytes[2..4].copy_from_slice(&packet.fragment.to_be_bytes());
            bytes[4..8].copy_from_slice(&from.octets());
            bytes[8..12].copy_from_slice(&to.octets());
        }
        (from, to) => {
            let length = packet.length.saturating_sub(40) as u16;
            bytes[..2].copy_from_slice(&length.to_be_bytes());
            for (place, address) in [(2, from), (7, to)] {
                let octets = address_bits(address).to_be_bytes();
                for (byte, octet) in [9, 10, 13, 14, 15].into_iter().enumerate() {
                    bytes[place + byte] = octets[octet];
                }
            }
        }
    }
    bytes[12..12 + payload.len()].copy_from_slice(payload);
    12 + payload.len()
}

/// Sets the checksum in a transport header to zero.
pub(super) fn without_checksum(protocol: u8, payload: &mut [u8]) {
    let Some((word, mask)) = checksum(protocol) else { return };
    for (n, kept) in (!mask).to_le_bytes().into_iter().enumerate() {
        if let Some(byte) = payload.get_mut(word * 8 + n) {
            *byte &= kept;
        }
    }
}

/// In which eight bytes of the transport header the checksum is, and in which of their bits (lowest
/// byte first).
#[inline]
fn checksum(protocol: u8) -> Option<(usize, u64)> {
    match protocol {
        TCP => Some((2, 0xffff)),
        UDP | DCCP | UDP_LITE => Some((0, 0xffff << 48)),
        ICMPV6 => Some((0, 0xffff << 16)),
        SCTP => Some((1, 0xffff_ffff)),
        _ => None,
    }
}

/// The same as bits of the transport header's first 32 bytes.
#[inline]
fn checksum_bits(protocol: u8) -> [[u64; 2]; 2] {
    let (word, bits) = checksum(protocol).unwrap_or_default();
    let of = |n| if n == word { bits } else { 0 };
    [[of(0), of(1)], [of(2), 0]]
}

#[inline]
fn header_length(packet: &Packet<'_>) -> u64 {
    if packet.version == 4 { packet.transport as u64 } else { 40 }
}

#[inline]
fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => four.to_bits().into(),
        IpAddr::V6(six) => six.to_bits(),
    }
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::bob;
    use crate::made_up::Made;

    #[test]
    fn the_ipv4_input_is_the_rfcs_and_so_is_its_hash() {
        let payload =
            [0x30, 0x39, 0x00, 0x35, 0x12, 0x34, 0x56, 0x78, 0xde, 0xad, 0xbe, 0xef, 0x50, 0x10, 0xff, 0xff];
        let made = Made::raw4([192, 0, 2, 1], [198, 51, 100, 2], 6, &payload)
            .identification(0xa174)
            .fragment(0x4000);
        let input = rfc5475_input(&made.packet(), 16).unwrap();
        assert_eq!(input[..12], [0xa1, 0x74, 0x40, 0x00, 192, 0, 2, 1, 198, 51, 100, 2]);
        assert_eq!(input[12..], payload);
        assert_eq!(bob(&input, 0x9a3f_9a3f), 0x2adc_b245);
    }

    #[test]
    fn the_ipv6_input_is_the_rfcs() {
        let input = rfc5475_input(&Made::udp6().payload(b"abcd").packet(), 12).unwrap();
        // 2001:db8::1 to 2001:db8::2, 12 bytes of payload.
        assert_eq!(input[..12], [0, 12, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2]);
        assert_eq!(input[20..], *b"abcd");
    }

    #[test]
    fn checksums_are_where_the_headers_have_them() {
        for (protocol, place) in [(6, 16..18), (17, 6..8), (58, 2..4), (132, 8..12), (136, 6..8), (33, 6..8)]
        {
            let mut header = [0xff_u8; 20];
            without_checksum(protocol, &mut header);
            let zeros: Vec<usize> = (0..20).filter(|n| header[*n] == 0).collect();
            assert_eq!(zeros, place.collect::<Vec<_>>(), "protocol {protocol}");
        }
    }
}
