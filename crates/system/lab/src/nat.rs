//! A translator of addresses next to host B (RFC 3022, RFC 6146): it touches what is handed to host
//! B and what host B sends, so that the path, and every answer of its routers to host A, has the
//! addresses that host A knows.
//!
//! A flow keeps its outside port while packets pass in either direction. One that was idle for too
//! long is forgotten, and what comes for it from host B vanishes. Router answers to host B about
//! its own packets quote the outside address; through a NAT64 they are left out.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netaware_netmodel::Side;
use netaware_netmodel::scenario::{self, NatKind};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::addresses::{Addresses, OUTSIDE, through_nat64};
use crate::packet::{self, Header, ICMP, ICMPV6, TCP, UDP, patch};

/// The translator and what it remembers. Times are since the model's time zero.
pub(crate) struct Nat {
    kind: NatKind,
    idle: Span,
    tcp_idle: Span,
    rebinds: VecDeque<Mono>,
    inside: [IpAddr; 2],
    far: [IpAddr; 2],
    /// By protocol and inside port: outside port and when it was last used.
    flows: BTreeMap<(u8, u16), (u16, Mono)>,
    /// By protocol and outside port.
    back: BTreeMap<(u8, u16), u16>,
    next: u16,
    scratch: Vec<u8>,
}

/// Which address of a packet is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Source,
    Destination,
}

impl Nat {
    pub(crate) fn new(nat: &scenario::Nat, addresses: Addresses) -> Self {
        let of = |side| [IpVersion::V4, IpVersion::V6].map(|version| addresses.host(side, version));
        Self {
            kind: nat.kind,
            idle: nat.idle,
            tcp_idle: nat.tcp_idle,
            rebinds: nat.rebinds.iter().map(|at| Mono(at.0.cast_unsigned())).collect(),
            inside: of(Side::A),
            far: of(Side::B),
            flows: BTreeMap::new(),
            back: BTreeMap::new(),
            next: FIRST_PORT,
            scratch: Vec::new(),
        }
    }

    /// Whether host A means host B by this address.
    pub(crate) fn means_far_host(&self, address: IpAddr) -> bool {
        matches!((self.kind, self.far[0]), (NatKind::Nat64, IpAddr::V4(far)) if address == through_nat64(far))
    }

    /// What host B gets of a packet from host A; `None` if it cannot be translated.
    pub(crate) fn outward<'a>(
        &'a mut self,
        now: Mono,
        header: &Header,
        bytes: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        self.forget(now);
        let translated = header.version == IpVersion::V6 || self.kind == NatKind::Nat44;
        if header.source != self.inside[usize::from(header.version == IpVersion::V6)] || !translated {
            return Some(bytes);
        }
        match self.kind {
            NatKind::Nat44 if header.version == IpVersion::V6 => Some(bytes),
            NatKind::Nat44 => {
                if let Some(inner) = quoted(header, bytes) {
                    let protocol = bytes.get(inner + 9).copied()?;
                    let outside = self.known(protocol, port_at(bytes, inner + 20 + 2)?)?;
                    set_v4(bytes, inner, End::Destination, OUTSIDE, Some(outside), protocol, Sums::Outer);
                    set_v4(bytes, 0, End::Source, OUTSIDE, None, ICMP, Sums::All);
                    sum_icmp(bytes, header.payload_at);
                    return Some(bytes);
                }
                let inside = port_of(header, bytes, End::Source);
                let outside = inside.map(|inside| self.outgoing(now, header.protocol, inside));
                set_v4(bytes, 0, End::Source, OUTSIDE, outside, header.protocol, Sums::All);
                Some(bytes)
            }
            NatKind::Nat64 => {
                let inside = port_of(header, bytes, End::Source)?;
                let outside = self.outgoing(now, as_v4(header.protocol), inside);
                let IpAddr::V4(far) = self.far[0] else { return None };
                let mut out = std::mem::take(&mut self.scratch);
                let made = to_v4(header, bytes, OUTSIDE, far, outside, &mut out);
                self.scratch = out;
                made.map(|()| &self.scratch[..])
            }
        }
    }

    /// Turns a packet that host B sent into what the path carries, in place; its new length, or
    /// `None` if it is for no flow. `buffer` has room behind the packet.
    pub(crate) fn inward(&mut self, now: Mono, buffer: &mut [u8], length: usize) -> Option<usize> {
        self.forget(now);
        let bytes = buffer.get_mut(..length)?;
        let Some(header) = Header::parse(bytes).filter(|it| it.destination == IpAddr::V4(OUTSIDE)) else {
            return Some(length);
        };
        let is_quote = quoted(&header, bytes).is_some();
        match self.kind {
            NatKind::Nat44 => {
                let IpAddr::V4(inside) = self.inside[0] else { return None };
                if let Some(inner) = quoted(&header, bytes) {
                    let protocol = bytes.get(inner + 9).copied()?;
                    let port = self.incoming(now, protocol, port_at(bytes, inner + 20)?)?;
                    set_v4(bytes, inner, End::Source, inside, Some(port), protocol, Sums::Outer);
                    set_v4(bytes, 0, End::Destination, inside, None, ICMP, Sums::All);
                    sum_icmp(bytes, header.payload_at);
                    return Some(length);
                }
                let port = match port_of(&header, bytes, End::Destination) {
                    Some(outside) => Some(self.incoming(now, header.protocol, outside)?),
                    None => None,
                };
                set_v4(bytes, 0, End::Destination, inside, port, header.protocol, Sums::All);
                Some(length)
            }
            // Errors about translated packets would need the quoted packet translated as well.
            NatKind::Nat64 if is_quote => None,
            NatKind::Nat64 => {
                let outside = port_of(&header, bytes, End::Destination)?;
                let port = self.incoming(now, header.protocol, outside)?;
                let (IpAddr::V4(from), IpAddr::V6(to)) = (header.source, self.inside[1]) else { return None };
                let mut out = std::mem::take(&mut self.scratch);
                let made = to_v6(&header, bytes, through_nat64(from), to, port, &mut out);
                let longer = out.len();
                let fits = buffer.get_mut(..longer).map(|room| room.copy_from_slice(&out));
                self.scratch = out;
                made.and(fits).map(|()| longer)
            }
        }
    }

    /// Gives a packet of host B, about which a router will answer it, its outside address back.
    pub(crate) fn undo_for_far(&mut self, header: &Header, bytes: &mut [u8]) -> bool {
        if header.source == self.far[0] && header.destination == self.inside[0] {
            let known =
                port_of(header, bytes, End::Destination).and_then(|port| self.known(header.protocol, port));
            set_v4(bytes, 0, End::Destination, OUTSIDE, known, header.protocol, Sums::All);
        }
        self.kind == NatKind::Nat44
    }

    fn forget(&mut self, now: Mono) {
        if self.rebinds.front().is_some_and(|at| *at <= now) {
            self.rebinds.retain(|at| *at > now);
            self.flows.clear();
            self.back.clear();
        }
    }

    fn is_over(&self, protocol: u8, used: Mono, now: Mono) -> bool {
        now - used > if protocol == TCP { self.tcp_idle } else { self.idle }
    }

    /// The outside port of a flow, which is a new one if the flow is.
    fn outgoing(&mut self, now: Mono, protocol: u8, inside: u16) -> u16 {
        let key = (protocol, inside);
        if let Some((outside, used)) = self.flows.get(&key).copied() {
            if !self.is_over(protocol, used, now) {
                self.flows.insert(key, (outside, now));
                return outside;
            }
            self.back.remove(&(protocol, outside));
        }
        let outside = self.next;
        self.next = if self.next == u16::MAX { FIRST_PORT } else { self.next + 1 };
        self.flows.insert(key, (outside, now));
        self.back.insert((protocol, outside), inside);
        outside
    }

    /// The inside port of a flow that is remembered.
    fn incoming(&mut self, now: Mono, protocol: u8, outside: u16) -> Option<u16> {
        let inside = *self.back.get(&(protocol, outside))?;
        let (known, used) = self.flows.get(&(protocol, inside)).copied()?;
        if known != outside || self.is_over(protocol, used, now) {
            return None;
        }
        self.flows.insert((protocol, inside), (outside, now));
        Some(inside)
    }

    fn known(&self, protocol: u8, inside: u16) -> Option<u16> {
        self.flows.get(&(protocol, inside)).map(|(outside, _)| *outside)
    }
}

/// Which checksums are mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sums {
    /// That of the IP header and that of the transport.
    All,
    /// That of the IP header: what is behind it is cut off.
    Outer,
}

/// Offset of the packet that an ICMP error of IPv4 quotes.
fn quoted(header: &Header, bytes: &[u8]) -> Option<usize> {
    let is_error = header.protocol == ICMP && matches!(bytes.get(header.payload_at)?, 3 | 11 | 12);
    let inner = header.payload_at + 8;
    // Without options, as every program here sends them.
    (is_error && bytes.get(inner) == Some(&0x45)).then_some(inner)
}

fn port_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The port, or the identifier of an echo, by which a flow is known.
fn port_of(header: &Header, bytes: &[u8], end: End) -> Option<u16> {
    match (header.protocol, end) {
        (TCP | UDP, End::Source) => Some(header.ports[0]).filter(|port| *port != 0),
        (TCP | UDP, End::Destination) => Some(header.ports[1]).filter(|port| *port != 0),
        (ICMP | ICMPV6, _) => {
            let is_echo = matches!(bytes.get(header.payload_at)?, 0 | 8 | 13 | 14 | 128 | 129);
            is_echo.then(|| port_at(bytes, header.payload_at + 4)).flatten()
        }
        _ => None,
    }
}

/// Writes an address and a port of the IPv4 packet at `start`.
fn set_v4(
    bytes: &mut [u8],
    start: usize,
    end: End,
    address: Ipv4Addr,
    port: Option<u16>,
    protocol: u8,
    sums: Sums,
) {
    let body = start + bytes.get(start).map_or(20, |first| usize::from(first & 0x0f) * 4);
    let checksum = match (protocol, sums) {
        (TCP, Sums::All) => Some(body + 16),
        // A sum of zero is none.
        (UDP, Sums::All) if port_at(bytes, body + 6) != Some(0) => Some(body + 6),
        _ => None,
    };
    let checksum = checksum.filter(|_| port.is_some());
    let (address_at, port_at) = match end {
        End::Source => (start + 12, body),
        End::Destination => (start + 16, body + 2),
    };
    let all: Vec<usize> = [Some(start + 10), checksum].into_iter().flatten().collect();
    patch(bytes, address_at, &address.octets(), &all);
    if let Some(port) = port {
        match protocol {
            TCP | UDP => {
                let sums: Vec<usize> = checksum.into_iter().collect();
                patch(bytes, port_at, &port.to_be_bytes(), &sums);
            }
            _ if sums == Sums::All => patch(bytes, body + 4, &port.to_be_bytes(), &[body + 2]),
            _ => patch(bytes, body + 4, &port.to_be_bytes(), &[]),
        }
    }
}

/// Sums an ICMP message of IPv4 anew.
fn sum_icmp(bytes: &mut [u8], at: usize) {
    let Some(body) = bytes.get_mut(at..).filter(|body| body.len() >= 4) else { return };
    body[2..4].fill(0);
    let sum = packet::checksum(&[body]);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
}

const fn as_v4(protocol: u8) -> u8 {
    if protocol == ICMPV6 { ICMP } else { protocol }
}

/// Writes the IPv4 form (RFC 7915 §5) of an IPv6 packet without extension headers.
fn to_v4(
    header: &Header,
    bytes: &[u8],
    from: Ipv4Addr,
    to: Ipv4Addr,
    port: u16,
    out: &mut Vec<u8>,
) -> Option<()> {
    let body = header.payload(bytes);
    let total = u16::try_from(20 + body.len()).ok()?;
    out.clear();
    let [high, low] = total.to_be_bytes();
    let protocol = as_v4(header.protocol);
    // Marked "don't fragment", as IPv6 is.
    out.extend([0x45, header.traffic_class, high, low, 0, 0, 0x40, 0, bytes[7], protocol, 0, 0]);
    out.extend(from.octets());
    out.extend(to.octets());
    let sum = packet::checksum(&[out]);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend(body);
    let pseudo =
        [&from.octets()[..], &to.octets(), &[0, protocol], &(body.len() as u16).to_be_bytes()].concat();
    finish(out, 20, header.protocol, port, End::Source, &pseudo)
}

/// Writes the IPv6 form (RFC 7915 §4) of an IPv4 packet.
fn to_v6(
    header: &Header,
    bytes: &[u8],
    from: Ipv6Addr,
    to: Ipv6Addr,
    port: u16,
    out: &mut Vec<u8>,
) -> Option<()> {
    let body = header.payload(bytes);
    let length = u16::try_from(body.len()).ok()?;
    let protocol = if header.protocol == ICMP { ICMPV6 } else { header.protocol };
    out.clear();
    let class = header.traffic_class;
    let [high, low] = length.to_be_bytes();
    out.extend([0x60 | class >> 4, class << 4, 0, 0, high, low, protocol, bytes[8]]);
    out.extend(from.octets());
    out.extend(to.octets());
    out.extend(body);
    let long = u32::from(length).to_be_bytes();
    let pseudo = [&from.octets()[..], &to.octets(), &long, &[0, 0, 0, protocol]].concat();
    finish(out, 40, header.protocol, port, End::Destination, &pseudo)
}

/// Port or identifier, the kind of echo, and the checksum of a translated packet. `protocol` is the
/// one before.
fn finish(out: &mut [u8], at: usize, protocol: u8, port: u16, end: End, pseudo: &[u8]) -> Option<()> {
    let body = out.get_mut(at..)?;
    let place = match (protocol, end) {
        (TCP | UDP, End::Source) => 0,
        (TCP | UDP, End::Destination) => 2,
        _ => 4,
    };
    body.get_mut(place..place + 2)?.copy_from_slice(&port.to_be_bytes());
    let (sum_at, is_pseudo) = match protocol {
        TCP => (16, true),
        UDP => (6, true),
        _ => {
            let kind = body.first_mut()?;
            *kind = match *kind {
                128 => 8,
                129 => 0,
                8 => 128,
                0 => 129,
                _ => return None,
            };
            // ICMPv6 sums its addresses, ICMP does not.
            (2, protocol == ICMP)
        }
    };
    body.get_mut(sum_at..sum_at + 2)?.fill(0);
    let sum = packet::checksum(&[if is_pseudo { pseudo } else { &[] }, body]);
    let sum = if sum == 0 && protocol == UDP { 0xffff } else { sum };
    body[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// The first outside port that is given out.
const FIRST_PORT: u16 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::made;

    const SECOND: u64 = 1_000_000_000;

    fn nat(kind: NatKind) -> Nat {
        let (idle, tcp_idle) = (Span::from_secs(30), Span::from_secs(7200));
        let rebinds = vec![Span::from_secs(100)];
        Nat::new(&scenario::Nat { kind, idle, tcp_idle, rebinds }, Addresses::new(2))
    }

    /// A datagram of UDP with a right checksum, which `made` leaves out.
    fn datagram(from: IpAddr, to: IpAddr, ports: [u16; 2]) -> Vec<u8> {
        let mut bytes = made::udp(from, to, 9, 11);
        let at = Header::parse(&bytes).unwrap().payload_at;
        bytes[at..at + 2].copy_from_slice(&ports[0].to_be_bytes());
        bytes[at + 2..at + 4].copy_from_slice(&ports[1].to_be_bytes());
        let sum = transport_sum(&bytes);
        bytes[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Zero over a packet whose checksum is right.
    fn transport_sum(bytes: &[u8]) -> u16 {
        let header = Header::parse(bytes).unwrap();
        let body = header.payload(bytes);
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let length = (body.len() as u32).to_be_bytes();
        let addresses = [octets(header.source), octets(header.destination)].concat();
        packet::checksum(&[&addresses, &length, &[0, 0, 0, header.protocol], body])
    }

    fn sent(nat: &mut Nat, second: u64, bytes: &mut [u8]) -> Vec<u8> {
        let header = Header::parse(bytes).unwrap();
        let out = nat.outward(Mono(second * SECOND), &header, bytes).unwrap().to_vec();
        assert_eq!(transport_sum(&out), 0, "the transport's checksum is right");
        out
    }

    #[test]
    fn a_flow_goes_out_under_another_port_and_its_answers_come_back() {
        let mut nat = nat(NatKind::Nat44);
        let (a, b) = (nat.inside[0], nat.far[0]);
        let out = sent(&mut nat, 1, &mut datagram(a, b, [4000, 14_233]));
        let header = Header::parse(&out).unwrap();
        assert_eq!((header.source, header.ports), (IpAddr::V4(OUTSIDE), [FIRST_PORT, 14_233]));
        assert_eq!(packet::checksum(&[&out[..20]]), 0);
        let mut back = datagram(b, OUTSIDE.into(), [14_233, FIRST_PORT]);
        let length = back.len();
        assert_eq!(nat.inward(Mono(2 * SECOND), &mut back, length), Some(length));
        let header = Header::parse(&back).unwrap();
        assert_eq!((header.destination, header.ports), (a, [14_233, 4000]));
        assert_eq!((transport_sum(&back), packet::checksum(&[&back[..20]])), (0, 0));
        let mut stranger = datagram(b, OUTSIDE.into(), [14_233, 999]);
        assert_eq!(nat.inward(Mono(2 * SECOND), &mut stranger, length), None);
    }

    #[test]
    fn an_idle_flow_is_forgotten_and_so_is_every_flow_at_a_rebinding() {
        let mut nat = nat(NatKind::Nat44);
        let (a, b) = (nat.inside[0], nat.far[0]);
        let port = |nat: &mut Nat, second| {
            Header::parse(&sent(nat, second, &mut datagram(a, b, [4000, 14_233]))).unwrap().ports[0]
        };
        let answered = |nat: &mut Nat, second: u64, port| {
            let mut back = datagram(b, OUTSIDE.into(), [14_233, port]);
            let length = back.len();
            nat.inward(Mono(second * SECOND), &mut back, length).is_some()
        };
        assert_eq!([port(&mut nat, 1), port(&mut nat, 31)], [FIRST_PORT; 2]);
        assert!(answered(&mut nat, 61, FIRST_PORT), "an answer keeps it, too");
        assert!(!answered(&mut nat, 92, FIRST_PORT));
        assert_eq!(port(&mut nat, 92), FIRST_PORT + 1);
        assert!(answered(&mut nat, 99, FIRST_PORT + 1));
        assert!(!answered(&mut nat, 100, FIRST_PORT + 1));
        assert_eq!(port(&mut nat, 101), FIRST_PORT + 2);
    }

    #[test]
    fn an_error_about_a_translated_packet_reaches_its_sender() {
        let mut nat = nat(NatKind::Nat44);
        let (a, b) = (nat.inside[0], nat.far[0]);
        let out = sent(&mut nat, 1, &mut datagram(a, b, [4000, 14_233]));
        let body = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &out].concat();
        let mut error = made::ip(b, OUTSIDE.into(), ICMP, 64, &body);
        let length = error.len();
        assert_eq!(nat.inward(Mono(2 * SECOND), &mut error, length), Some(length));
        let inner = Header::parse(&error[28..]).unwrap();
        assert_eq!((Header::parse(&error).unwrap().destination, inner.source), (a, a));
        assert_eq!(inner.ports, [4000, 14_233]);
        assert_eq!(packet::checksum(&[&error[20..]]), 0);
    }

    #[test]
    fn ipv6_goes_to_an_ipv4_host_and_back() {
        let mut nat = nat(NatKind::Nat64);
        let (a, b) = (nat.inside[1], nat.far[0]);
        let IpAddr::V4(far) = b else { panic!() };
        let target = IpAddr::V6(through_nat64(far));
        assert_eq!(target.to_string(), "64:ff9b::a4d:2");
        assert!(nat.means_far_host(target));
        let out = sent(&mut nat, 1, &mut datagram(a, target, [4000, 14_233]));
        let header = Header::parse(&out).unwrap();
        assert_eq!((header.source, header.destination), (IpAddr::V4(OUTSIDE), b));
        assert_eq!(header.ports, [FIRST_PORT, 14_233]);
        let mut back = datagram(b, OUTSIDE.into(), [14_233, FIRST_PORT]);
        let length = back.len();
        back.resize(1500, 0);
        assert_eq!(nat.inward(Mono(2 * SECOND), &mut back, length), Some(length + 20));
        let back = &back[..length + 20];
        let header = Header::parse(back).unwrap();
        assert_eq!((header.source, header.destination), (target, a));
        assert_eq!((header.ports, transport_sum(back)), ([14_233, 4000], 0));
    }
}
