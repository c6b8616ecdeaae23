//! Packets within packets, opened by rule only: two points of a path compare what they see, and one
//! that stands within a tunnel sees something else than one that stands outside unless it is told
//! to look inside.

use std::str::FromStr;

use super::link::{self, ETHER_BRIDGED, ETHER_IPV4, ETHER_IPV6, LinkType, Says};
use super::{GRE, IPV4, IPV6, Packet, ip};

/// Which tunnels to look into. None by default. As text: names separated by commas,
/// `gre,ip,vxlan,gtp`; `vxlan=PORT` for another port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tunnels {
    /// Generic routing encapsulation (RFC 2784, 2890), of IP and of Ethernet.
    pub gre: bool,
    /// IPv4 or IPv6 directly in IPv4 or IPv6 (RFC 2003, 2473, 4213).
    pub ip_in_ip: bool,
    /// VXLAN (RFC 7348) to this UDP port.
    pub vxlan: Option<u16>,
    /// GTP-U (3GPP TS 29.281) to UDP port 2152.
    pub gtp: bool,
}

/// A word that is no kind of tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTunnel(pub String);

impl std::fmt::Display for UnknownTunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}' is no kind of tunnel: there are gre, ip, vxlan, vxlan=PORT and gtp", self.0)
    }
}

impl std::error::Error for UnknownTunnel {}

impl FromStr for Tunnels {
    type Err = UnknownTunnel;
    fn from_str(text: &str) -> Result<Self, UnknownTunnel> {
        let mut rules = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "gre" => rules.gre = true,
                "ip" => rules.ip_in_ip = true,
                "vxlan" => rules.vxlan = Some(VXLAN_PORT),
                "gtp" => rules.gtp = true,
                other => {
                    let port = other.strip_prefix("vxlan=").and_then(|port| port.parse().ok());
                    rules.vxlan = Some(port.ok_or_else(|| UnknownTunnel(other.to_owned()))?);
                }
            }
        }
        Ok(rules)
    }
}

/// The packet within, if a rule opens this one and there is one that can be read.
pub(super) fn inside<'a>(rules: Tunnels, packet: &Packet<'a>) -> Option<Packet<'a>> {
    // The pieces of a tunnel packet hold pieces of the inner one.
    if packet.is_fragment() {
        return None;
    }
    match packet.protocol {
        IPV4 if rules.ip_in_ip => open(packet, packet.transport, &Inner::Ip(Says::V4)),
        IPV6 if rules.ip_in_ip => open(packet, packet.transport, &Inner::Ip(Says::V6)),
        GRE if rules.gre => {
            let (skip, inner) = gre(packet.rest())?;
            open(packet, packet.transport + skip, &inner)
        }
        super::UDP => {
            let udp = packet.udp()?;
            if rules.vxlan == Some(udp.destination) {
                // Flags with the bit for a valid VNI, then the VNI: eight bytes, then Ethernet.
                udp.payload.first_chunk::<8>().filter(|head| head[0] & 0x08 != 0)?;
                open(packet, packet.transport + 16, &Inner::Ethernet)
            } else if rules.gtp && udp.destination == GTP_PORT {
                let skip = gtp(udp.payload)?;
                open(packet, packet.transport + 8 + skip, &Inner::Ip(Says::Nothing))
            } else {
                None
            }
        }
        _ => None,
    }
}

enum Inner {
    Ip(Says),
    Ethernet,
}

/// Reads what begins at `at` of the outer packet's bytes.
fn open<'a>(outer: &Packet<'a>, at: usize, inner: &Inner) -> Option<Packet<'a>> {
    let bytes = outer.bytes.get(at..)?;
    let on_wire = outer.length.checked_sub(at as u32)?;
    let (skip, says) = match inner {
        Inner::Ip(says) => (0, *says),
        Inner::Ethernet => {
            let found = link::find(LinkType::Ethernet, bytes, on_wire).ok()?;
            (found.at, found.says)
        }
    };
    ip::read(&bytes[skip..], on_wire.checked_sub(skip as u32)?, says, outer.vlans, outer.frame_length).ok()
}

/// Length of the GRE header and what it says comes behind. Version 0 only: version 1 carries PPP
/// (PPTP).
fn gre(rest: &[u8]) -> Option<(usize, Inner)> {
    let [flags, version, high, low] = *rest.first_chunk()?;
    if version & 0x07 != 0 || flags & ROUTING_PRESENT != 0 {
        return None;
    }
    // Checksum with offset, key, sequence number: four bytes each.
    let optional = (flags & (CHECKSUM_PRESENT | KEY_PRESENT | SEQUENCE_PRESENT)).count_ones() as usize;
    let inner = match u16::from_be_bytes([high, low]) {
        ETHER_IPV4 => Inner::Ip(Says::V4),
        ETHER_IPV6 => Inner::Ip(Says::V6),
        ETHER_BRIDGED => Inner::Ethernet,
        _ => return None,
    };
    Some((4 + 4 * optional, inner))
}

/// Length of the header of a GTP-U message that carries a packet (TS 29.281 §5.1), extension
/// headers included.
fn gtp(payload: &[u8]) -> Option<usize> {
    let [flags, kind, ..] = *payload.first_chunk::<8>()?;
    // Version 1, GTP and not GTP', and the one message type that carries packets.
    if flags >> 4 != 0b0011 || kind != GTP_PACKET {
        return None;
    }
    if flags & (GTP_EXTENSION | GTP_SEQUENCE | GTP_NUMBER) == 0 {
        return Some(8);
    }
    let mut at = 12;
    let mut next = *payload.get(11)?;
    if flags & GTP_EXTENSION == 0 {
        next = 0;
    }
    for _ in 0..MAX_GTP_EXTENSIONS {
        if next == 0 {
            return Some(at);
        }
        // Length in fours, the content, and at its end the next type.
        let size = usize::from(*payload.get(at)?) * 4;
        if size == 0 {
            return None;
        }
        next = *payload.get(at + size - 1)?;
        at += size;
    }
    (next == 0).then_some(at)
}

/// Tunnels in tunnels, at most.
pub(super) const DEPTH: usize = 4;
const VXLAN_PORT: u16 = 4789;
const GTP_PORT: u16 = 2152;
const GTP_PACKET: u8 = 255;
/// Each of them makes the header four bytes longer, once for all.
const GTP_EXTENSION: u8 = 0x04;
const GTP_SEQUENCE: u8 = 0x02;
const GTP_NUMBER: u8 = 0x01;
const MAX_GTP_EXTENSIONS: usize = 4;
/// RFC 2784 and RFC 2890: bits of the first byte.
const CHECKSUM_PRESENT: u8 = 0x80;
/// Of RFC 1701, which is gone.
const ROUTING_PRESENT: u8 = 0x40;
const KEY_PRESENT: u8 = 0x20;
const SEQUENCE_PRESENT: u8 = 0x10;
