//! A captured packet and what its headers say, as views into its bytes.
//!
//! Everything is read where it lies; nothing is copied or allocated. A packet that ends early (snap
//! length) says how much of it is there: what lies beyond is `None`, never zero. Checksums are not
//! looked at: a sender's card fills them in behind the capture.
//!
//! [`link`] finds the IP packet in a frame, [`ip`] reads its headers, [`tunnel`] looks inside where
//! a rule says so, [`transport`] reads what they carry.

mod ip;
mod link;
mod transport;
mod tunnel;

use std::net::IpAddr;

pub use link::LinkType;
pub use transport::{Icmp, Tcp, Udp};
pub use tunnel::{Tunnels, UnknownTunnel};

/// One IP packet of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// 4 or 6.
    pub version: u8,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Differentiated-services code point.
    pub dscp: u8,
    /// Explicit congestion notification, 0..3.
    pub ecn: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv6 flow label; 0 for IPv4.
    pub flow_label: u32,
    /// Length of the whole packet as its header says, bytes from the IP header on. Where the header
    /// cannot say it (more than 65,535 bytes: packets merged by offloads, jumbograms) what the
    /// frame has room for.
    pub length: u32,
    /// Fragment identification (IPv4: always there; IPv6: only with a fragment header).
    pub identification: Option<u32>,
    /// Flags and offset as IPv4 has them on the wire (bytes 6 and 7); for IPv6 the fragment
    /// header's in the same places, 0 without one.
    pub fragment: u16,
    /// A fragment that is not the first: it has no ports.
    pub later_fragment: bool,
    /// Protocol of the last header in the chain. Where the snap length cut the chain it is that of
    /// the first header that is not there in whole.
    pub protocol: u8,
    /// Bytes from the IP header on, as far as captured, without what pads the frame.
    pub bytes: &'a [u8],
    /// Where the last header's payload (TCP, UDP, ICMP header) begins in `bytes`; may be beyond
    /// what was captured.
    pub transport: usize,
    /// VLAN identifiers, outermost first; 0 where there is none.
    pub vlans: [u16; 2],
    /// Bytes of the frame on the wire, without checksum.
    pub frame_length: u32,
}

/// Why no packet was found in a frame. Whether it is the frame's fault:
/// [`PacketError::is_malformed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketError {
    /// ARP, spanning tree, or whatever else is not IP.
    NotIp,
    /// The snap length ended before the headers that are needed: the capture's fault.
    Cut,
    /// The frame itself ends within its link-layer header, tags included.
    LinkHeader,
    /// More than four VLAN tags, MPLS labels without an end.
    TooManyTags,
    /// The frame itself ends within the fixed IP header.
    Short,
    /// The IP version contradicts what the link layer says.
    Version,
    /// An IPv4 header of fewer than 20 bytes, or longer than its packet.
    HeaderLength,
    /// The packet claims more bytes than the frame had on the wire, or fewer than its header has.
    TotalLength,
    /// An extension header reaches beyond the packet.
    Extension,
    /// More than eight extension headers: more than anybody sends, and bounded work for us.
    TooManyExtensions,
}

impl PacketError {
    /// All of them, in the order of [`Self::index`].
    pub const ALL: [Self; 10] = [
        Self::NotIp,
        Self::Cut,
        Self::LinkHeader,
        Self::TooManyTags,
        Self::Short,
        Self::Version,
        Self::HeaderLength,
        Self::TotalLength,
        Self::Extension,
        Self::TooManyExtensions,
    ];

    /// Place in an array of counts, `0..ALL.len()`.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether the frame contradicts itself or ended too early on the wire; neither is said of
    /// frames without IP and of those that the snap length cut.
    pub fn is_malformed(self) -> bool {
        !matches!(self, Self::NotIp | Self::Cut)
    }

    /// A word for counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not_ip",
            Self::Cut => "cut",
            Self::LinkHeader => "link_header",
            Self::TooManyTags => "too_many_tags",
            Self::Short => "short",
            Self::Version => "version",
            Self::HeaderLength => "header_length",
            Self::TotalLength => "total_length",
            Self::Extension => "extension",
            Self::TooManyExtensions => "too_many_extensions",
        }
    }
}

/// Reads the outermost IP packet of a frame. `frame` is what was captured of it, VLAN tags where
/// they were on the wire; `wire_length` is what it had there, bytes without checksum (what is less
/// than `frame` counts as all of it).
///
/// # Errors
/// Why there is none.
#[inline]
pub fn parse(link: LinkType, frame: &[u8], wire_length: u32) -> Result<Packet<'_>, PacketError> {
    let wire_length = wire_length.max(frame.len() as u32);
    let found = link::find(link, frame, wire_length)?;
    let bytes = &frame[found.at..];
    ip::read(bytes, wire_length - found.at as u32, found.says, found.vlans, wire_length)
}

/// As [`parse`], and looks into tunnels of the kinds that `rules` name, one within the other up to
/// four times: the packet is the innermost that can be read. Its `vlans` and `frame_length` stay
/// those of the frame.
///
/// # Errors
/// Why there is no outermost packet. A tunnel with something else inside is no error: then the
/// packet is the tunnel's own.
#[inline]
pub fn parse_with(
    rules: Tunnels,
    link: LinkType,
    frame: &[u8],
    wire_length: u32,
) -> Result<Packet<'_>, PacketError> {
    let outermost = parse(link, frame, wire_length);
    if rules == Tunnels::default() { outermost } else { outermost.map(|packet| innermost(rules, packet)) }
}

#[inline(never)]
fn innermost(rules: Tunnels, mut packet: Packet<'_>) -> Packet<'_> {
    for _ in 0..tunnel::DEPTH {
        match tunnel::inside(rules, &packet) {
            Some(inner) => packet = inner,
            None => break,
        }
    }
    packet
}

impl<'a> Packet<'a> {
    /// What follows the IP headers, as far as captured: TCP, UDP or ICMP header first, unless it is
    /// a later fragment.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.transport..).unwrap_or_default()
    }

    /// Bytes that follow the IP headers on the wire.
    pub fn rest_length(&self) -> u32 {
        self.length.saturating_sub(self.transport as u32)
    }

    /// Whether the snap length cut some of it off.
    pub fn is_cut(&self) -> bool {
        (self.bytes.len() as u64) < u64::from(self.length)
    }

    /// Whether it is a fragment, the first or a later one.
    pub fn is_fragment(&self) -> bool {
        self.fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0
    }

    /// Source and destination port of TCP, UDP, UDP-Lite, DCCP and SCTP; `None` for others, for
    /// later fragments, and where the snap length cut them off.
    #[inline]
    pub fn ports(&self) -> Option<(u16, u16)> {
        if self.later_fragment || !matches!(self.protocol, TCP | UDP | DCCP | SCTP | UDP_LITE) {
            return None;
        }
        let [a, b, c, d] = *self.bytes.get(self.transport..)?.first_chunk()?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// Its TCP header.
    pub fn tcp(&self) -> Option<Tcp<'a>> {
        if self.later_fragment || self.protocol != TCP {
            return None;
        }
        Tcp::read(self.rest(), self.rest_length())
    }

    /// Its UDP header.
    pub fn udp(&self) -> Option<Udp<'a>> {
        if self.later_fragment || self.protocol != UDP {
            return None;
        }
        Udp::read(self.rest())
    }

    /// Its ICMP or ICMPv6 header; its content is [`crate::icmp`]'s.
    pub fn icmp(&self) -> Option<Icmp<'a>> {
        let protocol = if self.version == 4 { ICMP } else { ICMP_V6 };
        if self.later_fragment || self.protocol != protocol {
            return None;
        }
        Icmp::read(self.rest())
    }
}

/// Protocol numbers (IANA) that are known by more than their number here.
pub const ICMP: u8 = 1;
/// IPv4 in IP (RFC 2003).
pub const IPV4: u8 = 4;
/// RFC 9293.
pub const TCP: u8 = 6;
/// RFC 768.
pub const UDP: u8 = 17;
/// RFC 4340.
pub const DCCP: u8 = 33;
/// IPv6 in IP (RFC 2473, RFC 4213).
pub const IPV6: u8 = 41;
/// RFC 2784.
pub const GRE: u8 = 47;
/// RFC 4443.
pub const ICMP_V6: u8 = 58;
/// RFC 9260.
pub const SCTP: u8 = 132;
/// RFC 3828.
pub const UDP_LITE: u8 = 136;

/// In [`Packet::fragment`]: further fragments follow.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// In [`Packet::fragment`]: where it belongs, in eights of bytes.
pub const FRAGMENT_OFFSET: u16 = 0x1fff;

#[cfg(test)]
mod frames;

#[cfg(test)]
mod tests;
