//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers and what is chained behind them.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::link::Says;
use super::{FRAGMENT_OFFSET, MORE_FRAGMENTS, Packet, PacketError};

/// `bytes` begin with the IP header; `on_wire` says how many there were on the wire from there on.
#[inline]
pub(super) fn read(
    bytes: &[u8],
    on_wire: u32,
    says: Says,
    vlans: [u16; 2],
    frame_length: u32,
) -> Result<Packet<'_>, PacketError> {
    let frame = Frame { on_wire, vlans, whole: frame_length };
    let nibble = bytes.first().map(|first| first >> 4);
    match (says, nibble) {
        (_, None) => Err(frame.ended(bytes)),
        (Says::V4 | Says::Nothing, Some(4)) => v4(bytes, frame),
        (Says::V6 | Says::Nothing, Some(6)) => v6(bytes, frame),
        (Says::Nothing, _) => Err(PacketError::NotIp),
        (Says::V4 | Says::V6, _) => Err(PacketError::Version),
    }
}

#[derive(Clone, Copy)]
struct Frame {
    on_wire: u32,
    vlans: [u16; 2],
    whole: u32,
}

impl Frame {
    /// Who is to blame that `bytes` are too few.
    fn ended(self, bytes: &[u8]) -> PacketError {
        if (bytes.len() as u64) < u64::from(self.on_wire) { PacketError::Cut } else { PacketError::Short }
    }
}

#[inline]
fn v4(bytes: &[u8], frame: Frame) -> Result<Packet<'_>, PacketError> {
    let head: &[u8; 20] = bytes.first_chunk().ok_or_else(|| frame.ended(bytes))?;
    let header = u32::from(head[0] & 0x0f) * 4;
    if header < 20 {
        return Err(PacketError::HeaderLength);
    }
    // Linux states 0 in packets of more than 65,535 bytes that it merged, and cards of senders that
    // cut for themselves see 0 too.
    let length = match u32::from(u16::from_be_bytes([head[2], head[3]])) {
        0 => frame.on_wire,
        stated => stated,
    };
    if length > frame.on_wire || length < 20 {
        return Err(PacketError::TotalLength);
    }
    if header > length {
        return Err(PacketError::HeaderLength);
    }
    let bytes = &bytes[..bytes.len().min(length as usize)];
    let fragment = u16::from_be_bytes([head[6], head[7]]);
    let later_fragment = fragment & FRAGMENT_OFFSET != 0;
    let mut chain = Chain { protocol: head[9], at: header, fragment: None };
    if chain.protocol == AUTHENTICATION && !later_fragment {
        chain = walk(bytes, length, chain)?;
    }
    Ok(Packet {
        version: 4,
        source: Ipv4Addr::new(head[12], head[13], head[14], head[15]).into(),
        destination: Ipv4Addr::new(head[16], head[17], head[18], head[19]).into(),
        dscp: head[1] >> 2,
        ecn: head[1] & 3,
        ttl: head[8],
        flow_label: 0,
        length,
        identification: Some(u32::from(u16::from_be_bytes([head[4], head[5]]))),
        fragment,
        later_fragment,
        protocol: chain.protocol,
        bytes,
        transport: chain.at as usize,
        vlans: frame.vlans,
        frame_length: frame.whole,
    })
}

#[inline]
fn v6(bytes: &[u8], frame: Frame) -> Result<Packet<'_>, PacketError> {
    let head: &[u8; 40] = bytes.first_chunk().ok_or_else(|| frame.ended(bytes))?;
    // RFC 2675: 0 with a hop-by-hop header is a jumbogram, and what Linux makes of packets merged
    // beyond 65,535 bytes.
    let length = match u32::from(u16::from_be_bytes([head[4], head[5]])) {
        0 if head[6] == HOP_BY_HOP => frame.on_wire,
        stated => stated + 40,
    };
    if length > frame.on_wire {
        return Err(PacketError::TotalLength);
    }
    let bytes = &bytes[..bytes.len().min(length as usize)];
    let mut chain = Chain { protocol: head[6], at: 40, fragment: None };
    if is_extension(chain.protocol) {
        chain = walk(bytes, length, chain)?;
    }
    let (identification, fragment) = chain.fragment.map_or((None, 0), |(id, bits)| (Some(id), bits));
    let word = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    Ok(Packet {
        version: 6,
        source: Ipv6Addr::from(address(head, 8)).into(),
        destination: Ipv6Addr::from(address(head, 24)).into(),
        dscp: (word >> 22 & 0x3f) as u8,
        ecn: (word >> 20 & 3) as u8,
        ttl: head[7],
        flow_label: word & 0xf_ffff,
        length,
        identification,
        fragment,
        later_fragment: fragment & FRAGMENT_OFFSET != 0,
        protocol: chain.protocol,
        bytes,
        transport: chain.at as usize,
        vlans: frame.vlans,
        frame_length: frame.whole,
    })
}

#[inline]
fn address(head: &[u8; 40], at: usize) -> [u8; 16] {
    let mut address = [0; 16];
    address.copy_from_slice(&head[at..at + 16]);
    address
}

/// How far the headers were followed.
#[derive(Clone, Copy)]
struct Chain {
    /// Of what begins at `at`.
    protocol: u8,
    at: u32,
    /// Identification, and flags with offset in IPv4's places.
    fragment: Option<(u32, u16)>,
}

/// Follows extension headers to the first that is none. `length` is that of the whole packet. Ends
/// early, without an error, where the snap length cut them and behind the header of a later
/// fragment, where no header follows.
#[cold]
fn walk(bytes: &[u8], length: u32, mut chain: Chain) -> Result<Chain, PacketError> {
    for _ in 0..MAX_EXTENSIONS {
        if !is_extension(chain.protocol) {
            return Ok(chain);
        }
        let Some(head) = bytes.get(chain.at as usize..).and_then(|rest| rest.first_chunk::<8>()) else {
            let cut = (bytes.len() as u64) < u64::from(length);
            // All kinds have eight bytes at least.
            return if cut && chain.at + 8 <= length { Ok(chain) } else { Err(PacketError::Extension) };
        };
        let size = match chain.protocol {
            FRAGMENT => 8,
            // RFC 4302 §2.2 counts in fours, without the first two.
            AUTHENTICATION => (u32::from(head[1]) + 2) * 4,
            _ => (u32::from(head[1]) + 1) * 8,
        };
        if chain.at + size > length {
            return Err(PacketError::Extension);
        }
        if chain.protocol == FRAGMENT {
            let bits = u16::from_be_bytes([head[2], head[3]]);
            let more = if bits & 1 == 1 { MORE_FRAGMENTS } else { 0 };
            let id = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
            chain.fragment = Some((id, bits >> 3 | more));
        }
        chain.protocol = head[0];
        chain.at += size;
        if chain.fragment.is_some_and(|(_, bits)| bits & FRAGMENT_OFFSET != 0) {
            return Ok(chain);
        }
    }
    if is_extension(chain.protocol) { Err(PacketError::TooManyExtensions) } else { Ok(chain) }
}

#[inline]
fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION | MOBILITY | HOST_IDENTITY | SHIM6
    )
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;
const MAX_EXTENSIONS: usize = 8;
