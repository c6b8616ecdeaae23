//! What the emulator has to know of a packet, and the two changes a router makes to one.
//!
//! Packets come from programs under test, so any bytes may come: what is no IP packet yields
//! `None`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netaware_netmodel::Kind;
use netaware_netmodel::scenario::{Protocol, Rewrite};
use netaware_record::IpVersion;

/// The fields of an IP header that a path looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: IpVersion,
    pub(crate) hop_limit: u8,
    pub(crate) dont_fragment: bool,
    /// The same for all packets of a five-tuple; of addresses and protocol where ports are not
    /// visible.
    pub(crate) flow: u64,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    /// Offset of what follows the header.
    pub(crate) payload_at: usize,
    /// Not the first piece of a fragmented packet.
    pub(crate) later_fragment: bool,
    /// Of source and destination; 0 where they are not visible.
    pub(crate) ports: [u16; 2],
    /// It resets a connection of TCP.
    pub(crate) reset: bool,
    /// DSCP and ECN.
    pub(crate) traffic_class: u8,
}

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;
const IPV6_FRAGMENT: u8 = 44;
/// Offset of the flags in a segment, and the one that resets (RFC 9293 §3.1).
const TCP_FLAGS: usize = 13;
pub(crate) const TCP_RST: u8 = 4;

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;

impl Header {
    /// Reads the header of a whole packet; the length it states must be that of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? >> 4 {
            4 => Self::parse_v4(bytes),
            6 => Self::parse_v6(bytes),
            _ => None,
        }
    }

    fn parse_v4(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; V4_HEADER] = bytes.first_chunk()?;
        let payload_at = usize::from(head[0] & 0x0f) * 4;
        let total = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if payload_at < V4_HEADER || payload_at > bytes.len() || total != bytes.len() {
            return None;
        }
        let fragment = u16::from_be_bytes([head[6], head[7]]);
        let header = Self {
            version: IpVersion::V4,
            hop_limit: head[8],
            dont_fragment: fragment & 0x4000 != 0,
            flow: 0,
            source: Ipv4Addr::from(*head[12..].first_chunk::<4>()?).into(),
            destination: Ipv4Addr::from(*head[16..].first_chunk::<4>()?).into(),
            protocol: head[9],
            payload_at,
            later_fragment: fragment & 0x1fff != 0,
            ports: [0; 2],
            reset: false,
            traffic_class: head[1],
        };
        // More fragments to come or offset: only the first piece has ports, so none counts them.
        let whole = fragment.trailing_zeros() >= 14;
        Some(header.with_flow(&head[12..20], bytes, whole))
    }

    fn parse_v6(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; V6_HEADER] = bytes.first_chunk()?;
        let payload = usize::from(u16::from_be_bytes([head[4], head[5]]));
        if payload + V6_HEADER != bytes.len() {
            return None;
        }
        let protocol = head[6];
        let offset =
            bytes.get(V6_HEADER + 2..V6_HEADER + 4).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]) >> 3);
        let header = Self {
            version: IpVersion::V6,
            hop_limit: head[7],
            dont_fragment: true,
            flow: 0,
            source: Ipv6Addr::from(*head[8..].first_chunk::<16>()?).into(),
            destination: Ipv6Addr::from(*head[24..].first_chunk::<16>()?).into(),
            protocol,
            payload_at: V6_HEADER,
            later_fragment: protocol == IPV6_FRAGMENT && offset != 0,
            ports: [0; 2],
            reset: false,
            traffic_class: head[0] << 4 | head[1] >> 4,
        };
        Some(header.with_flow(&head[8..40], bytes, true))
    }

    fn with_flow(mut self, addresses: &[u8], bytes: &[u8], whole: bool) -> Self {
        let has_ports = whole && matches!(self.protocol, TCP | UDP);
        let ports = bytes.get(self.payload_at..self.payload_at + 4).filter(|_| has_ports).unwrap_or(&[]);
        self.flow = fnv(addresses.iter().chain([&self.protocol]).chain(ports));
        if let [a, b, c, d] = *ports {
            self.ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
            let flags = bytes.get(self.payload_at + TCP_FLAGS).copied().unwrap_or_default();
            self.reset = self.protocol == TCP && flags & TCP_RST != 0;
        }
        self
    }

    /// What filters tell it apart by.
    pub(crate) fn kind(&self) -> Kind {
        let protocol = match self.protocol {
            TCP => Protocol::Tcp,
            UDP => Protocol::Udp,
            ICMP | ICMPV6 => Protocol::Icmp,
            _ => Protocol::Other,
        };
        Kind { protocol, ports: self.ports, ecn: self.traffic_class & 0b11 != 0, reset: self.reset }
    }

    /// What follows the IP header.
    pub(crate) fn payload<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.payload_at..).unwrap_or(&[])
    }

    /// Whether an ICMP error about this packet is forbidden (RFC 1122 §3.2.2, RFC 4443 §2.4(e)).
    pub(crate) fn forbids_errors(&self, bytes: &[u8]) -> bool {
        let kind = self.payload(bytes).first().copied();
        let is_error = match (self.protocol, kind) {
            (ICMP, Some(kind)) => !matches!(kind, 0 | 8 | 13 | 14),
            (ICMPV6, Some(kind)) => kind < 128,
            _ => false,
        };
        is_error || self.later_fragment || self.destination.is_multicast()
    }
}

/// FNV-1a: 64 bits, no seed, so that one flow takes the same member in every run.
fn fnv<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Writes the hop limit, and in IPv4 mends the header checksum (RFC 1624, equation 3). `bytes` must
/// have been parsed.
pub(crate) fn set_hop_limit(bytes: &mut [u8], version: IpVersion, hop_limit: u8) {
    match version {
        IpVersion::V6 => bytes[7] = hop_limit,
        IpVersion::V4 => {
            let word = |bytes: &[u8]| u16::from_be_bytes([bytes[8], bytes[9]]);
            let before = word(bytes);
            bytes[8] = hop_limit;
            let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
            let mended = !fold(u32::from(!checksum) + u32::from(!before) + u32::from(word(bytes)));
            bytes[10..12].copy_from_slice(&mended.to_be_bytes());
        }
    }
}

/// Writes over DSCP and ECN, and in IPv4 mends the header checksum. `bytes` must have been parsed.
pub(crate) fn rewrite(bytes: &mut [u8], version: IpVersion, what: Rewrite) {
    let old = match version {
        IpVersion::V4 => bytes[1],
        IpVersion::V6 => bytes[0] << 4 | bytes[1] >> 4,
    };
    let dscp = what.dscp.map_or(old & 0xfc, |dscp| dscp << 2);
    let new = dscp | if what.clear_ecn { 0 } else { old & 0b11 };
    match version {
        IpVersion::V4 => patch(bytes, 0, &[bytes[0], new], &[10]),
        IpVersion::V6 => {
            bytes[0] = bytes[0] & 0xf0 | new >> 4;
            bytes[1] = bytes[1] & 0x0f | new << 4;
        }
    }
}

/// Writes whole words over others and keeps the checksums at the offsets `sums` right (RFC 1624,
/// equation 3). What lies beyond the end is left out.
pub(crate) fn patch(bytes: &mut [u8], at: usize, new: &[u8], sums: &[usize]) {
    let word = |bytes: &[u8], at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    for (place, pair) in (at..).step_by(2).zip(new.chunks_exact(2)) {
        let Some(before) = word(bytes, place) else { return };
        let after = u16::from_be_bytes([pair[0], pair[1]]);
        for sum in sums {
            let Some(checksum) = word(bytes, *sum) else { continue };
            let mended = !fold(u32::from(!checksum) + u32::from(!before) + u32::from(after));
            bytes[*sum..*sum + 2].copy_from_slice(&mended.to_be_bytes());
        }
        bytes[place..place + 2].copy_from_slice(pair);
    }
}

/// Turns over one bit, counted from the first bit of the packet; beyond its end nothing happens.
pub(crate) fn flip(bytes: &mut [u8], bit: u32) {
    if let Some(byte) = bytes.get_mut(bit as usize / 8) {
        *byte ^= 0x80 >> (bit % 8);
    }
}

/// The Internet checksum (RFC 1071) over several pieces; each but the last must have an even
/// length.
pub(crate) fn checksum(pieces: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for piece in pieces {
        let words = piece
            .chunks(2)
            .map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low)));
        sum += words.sum::<u64>();
    }
    while sum > 0xffff_ffff {
        sum = (sum & 0xffff_ffff) + (sum >> 32);
    }
    !fold(sum as u32)
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Writes a whole packet into `out`, replacing what was there.
pub(crate) fn emit(from: IpAddr, to: IpAddr, protocol: u8, body: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let length = body.len() as u16;
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let [high, low] = (length + V4_HEADER as u16).to_be_bytes();
            out.extend([0x45, 0, high, low, 0, 0, 0x40, 0, HOP_LIMIT, protocol, 0, 0]);
            out.extend(from.octets());
            out.extend(to.octets());
            let sum = checksum(&[out]);
            out[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let [high, low] = length.to_be_bytes();
            out.extend([0x60, 0, 0, 0, high, low, protocol, HOP_LIMIT]);
            out.extend(from.octets());
            out.extend(to.octets());
        }
        _ => {}
    }
    out.extend(body);
}

/// Of packets that a middlebox makes.
const HOP_LIMIT: u8 = 64;

/// Builds packets for tests.
#[cfg(test)]
pub(crate) mod made {
    use super::*;

    /// A UDP datagram with ports 1000 and 2000 and a payload of `payload` zeros; its UDP checksum
    /// is 0.
    pub(crate) fn udp(from: IpAddr, to: IpAddr, hop_limit: u8, payload: usize) -> Vec<u8> {
        let mut body = vec![0; 8 + payload];
        body[..4].copy_from_slice(&[0x03, 0xe8, 0x07, 0xd0]);
        body[4..6].copy_from_slice(&((8 + payload) as u16).to_be_bytes());
        ip(from, to, UDP, hop_limit, &body)
    }

    /// Any IP packet.
    pub(crate) fn ip(from: IpAddr, to: IpAddr, protocol: u8, hop_limit: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let total = (V4_HEADER + body.len()) as u16;
                let mut head = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, hop_limit, protocol, 0, 0];
                head[2..4].copy_from_slice(&total.to_be_bytes());
                head.extend(from.octets());
                head.extend(to.octets());
                let sum = checksum(&[&head]);
                head[10..12].copy_from_slice(&sum.to_be_bytes());
                head
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut head = vec![0x60, 0, 0, 0, 0, 0, protocol, hop_limit];
                head[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
                head.extend(from.octets());
                head.extend(to.octets());
                head
            }
            _ => panic!("one version"),
        };
        bytes.extend(body);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 77, 0, last).into()
    }

    fn v6(last: u16) -> IpAddr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, last).into()
    }

    #[test]
    fn both_versions_are_read() {
        for (from, to, version) in [(v4(1), v4(2), IpVersion::V4), (v6(1), v6(2), IpVersion::V6)] {
            let header = Header::parse(&made::udp(from, to, 9, 100)).unwrap();
            assert_eq!((header.version, header.hop_limit, header.dont_fragment), (version, 9, true));
            assert_eq!((header.source, header.destination, header.protocol), (from, to, UDP));
        }
    }

    #[test]
    fn what_is_cut_or_lies_about_its_length_is_no_packet() {
        for whole in [made::udp(v4(1), v4(2), 9, 5), made::udp(v6(1), v6(2), 9, 5)] {
            assert!((0..whole.len()).all(|len| Header::parse(&whole[..len]).is_none()));
            let mut longer = whole.clone();
            longer.push(0);
            assert_eq!(Header::parse(&longer), None);
            assert!(Header::parse(&whole).is_some());
        }
        assert_eq!(Header::parse(&[0x4f; 20]), None, "options that are not there");
        assert_eq!(Header::parse(&[0x10; 60]), None, "no version of ours");
    }

    #[test]
    fn a_flow_is_known_by_its_ports_and_a_fragment_by_its_addresses() {
        let one = made::udp(v4(1), v4(2), 9, 5);
        let mut other = made::udp(v4(1), v4(2), 64, 900);
        let flow = |bytes: &[u8]| Header::parse(bytes).unwrap().flow;
        assert_eq!(flow(&one), flow(&other), "hop limit and length do not matter");
        other[20] ^= 1;
        assert_ne!(flow(&one), flow(&other));
        let (mut first, mut second) = (one.clone(), other);
        first[6] = 0x20;
        second[7] = 5;
        assert_eq!(flow(&first), flow(&second));
    }

    #[test]
    fn a_new_hop_limit_keeps_the_checksum_right() {
        let mut bytes = made::udp(v4(1), v4(2), 64, 10);
        for hop_limit in [63, 0, 255, 64, 1] {
            set_hop_limit(&mut bytes, IpVersion::V4, hop_limit);
            assert_eq!(checksum(&[&bytes[..20]]), 0, "{hop_limit}");
            assert_eq!(Header::parse(&bytes).unwrap().hop_limit, hop_limit);
        }
    }

    #[test]
    fn a_rewritten_class_keeps_the_checksum_and_what_was_not_asked_for() {
        for (from, to) in [(v4(1), v4(2)), (v6(1), v6(2))] {
            let mut bytes = made::udp(from, to, 9, 10);
            let version = Header::parse(&bytes).unwrap().version;
            let rows = [
                (Rewrite { dscp: Some(46), clear_ecn: false }, 46 << 2),
                (Rewrite { dscp: None, clear_ecn: true }, 46 << 2),
                (Rewrite { dscp: Some(0), clear_ecn: true }, 0),
            ];
            for (what, class) in rows {
                rewrite(&mut bytes, version, what);
                let header = Header::parse(&bytes).unwrap();
                assert_eq!(header.traffic_class, class, "{what:?}");
                assert_eq!((header.destination, header.hop_limit), (to, 9));
                assert!(version == IpVersion::V6 || checksum(&[&bytes[..20]]) == 0);
            }
        }
    }

    #[test]
    fn a_flipped_bit_flips_back_and_one_outside_does_nothing() {
        let whole = made::udp(v4(1), v4(2), 64, 10);
        let mut bytes = whole.clone();
        flip(&mut bytes, 8);
        assert_eq!(bytes[1], 0x80);
        flip(&mut bytes, 8);
        flip(&mut bytes, u32::MAX);
        assert_eq!(bytes, whole);
    }
}
