//! Packets for tests, with a simple parser beside: what comes out of [`Made::packet`] is what the
//! real one would say.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netaware_record::passive::Period;
use netaware_units::Wall;
use netaware_wire::packet::Packet;

use crate::Observed;

/// Ten seconds from the epoch on.
pub(crate) const PERIOD: Period = Period { from: Wall(0), until: Wall(10_000_000_000) };

/// A packet that can be changed.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    bytes: Vec<u8>,
    captured: usize,
}

impl Made {
    pub(crate) fn raw4(source: [u8; 4], destination: [u8; 4], protocol: u8, transport: &[u8]) -> Self {
        let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        bytes.extend(source);
        bytes.extend(destination);
        bytes.extend(transport);
        Self { bytes, captured: usize::MAX }.lengths()
    }

    pub(crate) fn raw6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, transport: &[u8]) -> Self {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
        bytes.extend(source.octets());
        bytes.extend(destination.octets());
        bytes.extend(transport);
        Self { bytes, captured: usize::MAX }.lengths()
    }

    pub(crate) fn tcp4() -> Self {
        Self::raw4([192, 0, 2, 1], [192, 0, 2, 2], 6, &tcp_header())
    }

    pub(crate) fn tcp6() -> Self {
        Self::raw6(six(1), six(2), 6, &tcp_header())
    }

    pub(crate) fn udp4() -> Self {
        Self::raw4([192, 0, 2, 1], [192, 0, 2, 2], 17, &[0x30, 0x39, 0x01, 0xbb, 0, 8, 0xaa, 0xbb])
    }

    pub(crate) fn udp6() -> Self {
        Self::raw6(six(1), six(2), 17, &[0x30, 0x39, 0x01, 0xbb, 0, 8, 0xaa, 0xbb])
    }

    pub(crate) fn icmp6() -> Self {
        Self::raw6(six(1), six(2), 58, &[128, 0, 0xaa, 0xbb, 0, 1, 0, 2])
    }

    fn four(&self) -> bool {
        self.bytes[0] >> 4 == 4
    }

    fn transport(&self) -> usize {
        if self.four() { 20 } else { 40 }
    }

    fn protocol(&self) -> u8 {
        if self.four() { self.bytes[9] } else { self.bytes[6] }
    }

    fn lengths(mut self) -> Self {
        if self.four() {
            let length = (self.bytes.len() as u16).to_be_bytes();
            self.bytes[2..4].copy_from_slice(&length);
        } else {
            let length = (self.bytes.len() as u16 - 40).to_be_bytes();
            self.bytes[4..6].copy_from_slice(&length);
        }
        self
    }

    fn header_end(&self) -> usize {
        self.transport()
            + match self.protocol() {
                6 => usize::from(self.bytes[self.transport() + 12] >> 4) * 4,
                _ => 8,
            }
    }

    /// Another payload behind the transport header.
    pub(crate) fn payload(mut self, payload: &[u8]) -> Self {
        self.bytes.truncate(self.header_end());
        self.bytes.extend(payload);
        self.lengths()
    }

    pub(crate) fn ports(mut self, source: u16, destination: u16) -> Self {
        let at = self.transport();
        self.bytes[at..at + 2].copy_from_slice(&source.to_be_bytes());
        self.bytes[at + 2..at + 4].copy_from_slice(&destination.to_be_bytes());
        self
    }

    /// The last byte of the destination.
    pub(crate) fn destination_of(mut self, host: u8) -> Self {
        let at = self.transport() - 1;
        self.bytes[at] = host;
        self
    }

    /// The last byte of the source.
    pub(crate) fn source_of(mut self, host: u8) -> Self {
        let at = if self.four() { 15 } else { 23 };
        self.bytes[at] = host;
        self
    }

    pub(crate) fn dscp(mut self, dscp: u8) -> Self {
        let four = self.four();
        if four {
            self.bytes[1] = dscp << 2;
        } else {
            self.bytes[0] = 0x60 | dscp >> 2;
            self.bytes[1] = self.bytes[1] & 0x3f | dscp << 6;
        }
        self
    }

    pub(crate) fn identification(mut self, identification: u16) -> Self {
        self.bytes[4..6].copy_from_slice(&identification.to_be_bytes());
        self
    }

    pub(crate) fn fragment(mut self, fragment: u16) -> Self {
        self.bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
        self
    }

    pub(crate) fn later_fragment(self) -> Self {
        self.fragment(0x2001)
    }

    /// TCP sequence and acknowledgement numbers.
    pub(crate) fn sequence(mut self, sequence: u32, acknowledged: u32) -> Self {
        let at = self.transport();
        self.bytes[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
        self.bytes[at + 8..at + 12].copy_from_slice(&acknowledged.to_be_bytes());
        self
    }

    pub(crate) fn flags(mut self, flags: u8) -> Self {
        let at = self.transport() + 13;
        self.bytes[at] = flags;
        self
    }

    /// TCP timestamps; the payload goes.
    pub(crate) fn stamps(mut self, value: u32, echoed: u32) -> Self {
        let at = self.transport();
        self.bytes.truncate(at + 20);
        self.bytes[at + 12] = 8 << 4;
        self.bytes.extend([1, 1, 8, 10]);
        self.bytes.extend(value.to_be_bytes());
        self.bytes.extend(echoed.to_be_bytes());
        self.lengths()
    }

    /// As the other end would send it: addresses and ports changed over.
    pub(crate) fn answer(mut self) -> Self {
        let (from, size) = if self.four() { (12, 4) } else { (8, 16) };
        let (left, right) = self.bytes[from..from + 2 * size].split_at_mut(size);
        left.swap_with_slice(right);
        let at = self.transport();
        self.bytes[at..at + 4].rotate_left(2);
        self
    }

    /// As routers and offloads may leave it: another TTL, TOS, flow label and checksums.
    pub(crate) fn forwarded(mut self) -> Self {
        let (at, protocol) = (self.transport(), self.protocol());
        if self.four() {
            self.bytes[1] = 0xb9;
            self.bytes[8] -= 3;
            self.bytes[10..12].copy_from_slice(&[0x12, 0x34]);
        } else {
            self.bytes[..4].copy_from_slice(&[0x6b, 0x9a, 0xbc, 0xde]);
            self.bytes[7] -= 3;
        }
        let checksum = at + [(6, 16), (17, 6), (58, 2)].iter().find(|known| known.0 == protocol).unwrap().1;
        self.bytes[checksum..checksum + 2].copy_from_slice(&[0x77, 0x7d]);
        self
    }

    /// Cut off by a snap length, bytes from the IP header on.
    pub(crate) fn captured(mut self, bytes: usize) -> Self {
        self.captured = bytes;
        self
    }

    /// Followed by the padding of a short Ethernet frame.
    pub(crate) fn padded(mut self, bytes: usize) -> Self {
        self.bytes.extend(std::iter::repeat_n(0x5a, bytes));
        self
    }

    pub(crate) fn packet(&self) -> Packet<'_> {
        let b = &self.bytes;
        let word = |at: usize| u16::from_be_bytes([b[at], b[at + 1]]);
        let captured = &b[..self.captured.min(b.len())];
        let (source, destination) = if self.four() {
            let four = |at: usize| IpAddr::from(Ipv4Addr::new(b[at], b[at + 1], b[at + 2], b[at + 3]));
            (four(12), four(16))
        } else {
            let six = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&b[at..at + 16]).unwrap());
            (six(8), six(24))
        };
        let tos = if self.four() { b[1] } else { b[0] << 4 | b[1] >> 4 };
        let fragment = if self.four() { word(6) } else { 0 };
        let length = if self.four() { word(2).into() } else { u32::from(word(4)) + 40 };
        Packet {
            version: b[0] >> 4,
            source,
            destination,
            dscp: tos >> 2,
            ecn: tos & 3,
            ttl: if self.four() { b[8] } else { b[7] },
            flow_label: if self.four() { 0 } else { u32::from(b[1] & 15) << 16 | u32::from(word(2)) },
            length,
            identification: self.four().then(|| word(4).into()),
            fragment,
            later_fragment: fragment & 0x1fff != 0,
            protocol: self.protocol(),
            bytes: captured,
            transport: self.transport(),
            vlans: [0; 2],
            frame_length: length + 14,
        }
    }

    pub(crate) fn observed(&self, at: Wall) -> Observed<'_> {
        Observed { at, outgoing: false, segments: 1, packet: self.packet(), frame: &self.bytes }
    }
}

fn six(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host)
}

/// Ports 12345 and 443, an acknowledgement without options.
fn tcp_header() -> [u8; 20] {
    [0x30, 0x39, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 1, 5 << 4, 0x10, 1, 0, 0xaa, 0xbb, 0, 0]
}

/// What tests are given is what the parser says of the same bytes.
#[test]
fn made_up_packets_are_those_of_the_parser() {
    use netaware_wire::packet::{LinkType, parse};
    let stamped = Made::tcp6().stamps(1, 2).payload(b"data").dscp(46);
    for made in
        [Made::tcp4(), Made::udp4().dscp(3).forwarded(), Made::udp6().padded(20), Made::icmp6(), stamped]
    {
        let parsed = parse(LinkType::Raw, &made.bytes, made.bytes.len() as u32).unwrap();
        let expected = made.packet();
        let bytes = &made.bytes[..expected.length as usize];
        assert_eq!(parsed, Packet { bytes, frame_length: made.bytes.len() as u32, ..expected });
    }
}
