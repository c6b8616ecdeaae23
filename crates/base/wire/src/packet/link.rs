//! Where the IP packet begins in a frame.

mod serial;
mod wireless;

use super::PacketError;

/// What a frame begins with. Numbers are those of capture files (tcpdump.org/linktypes.html).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Destination, source, EtherType; tags of IEEE 802.1Q and 802.1ad before the last.
    Ethernet,
    /// Nothing: the IP header comes first.
    Raw,
    /// Linux "cooked" capture, version 1: 16 bytes.
    Cooked,
    /// Linux "cooked" capture, version 2: 20 bytes.
    CookedV2,
    /// Address family in four bytes of either byte order (BSD loopback).
    Null,
    /// PPP (RFC 1661), with or without the address and control bytes of RFC 1662.
    Ppp,
    /// Frame relay (RFC 2427) from the Q.922 address on, without checksum.
    FrameRelay,
    /// Cisco HDLC (RFC 1547 §4.3.1): address, control, EtherType.
    CiscoHdlc,
    /// The pseudo-header of ipnet, which is Solaris's: 24 bytes.
    IpNet,
    /// IEEE 802.11 behind a radiotap header.
    Radiotap,
}

impl LinkType {
    /// All that are read here.
    pub const ALL: [Self; 10] = [
        Self::Ethernet,
        Self::Raw,
        Self::Cooked,
        Self::CookedV2,
        Self::Null,
        Self::Ppp,
        Self::FrameRelay,
        Self::CiscoHdlc,
        Self::IpNet,
        Self::Radiotap,
    ];

    /// By the number in a capture file; `None` for kinds that are not read here.
    pub fn of_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            // 12 and 14 are what systems write where they mean 101; 228 and 229 say the version as
            // well.
            12 | 14 | 101 | 228 | 229 => Some(Self::Raw),
            113 => Some(Self::Cooked),
            276 => Some(Self::CookedV2),
            0 | 108 => Some(Self::Null),
            9 => Some(Self::Ppp),
            104 => Some(Self::CiscoHdlc),
            107 => Some(Self::FrameRelay),
            127 => Some(Self::Radiotap),
            226 => Some(Self::IpNet),
            _ => None,
        }
    }

    /// The number to write into a capture file.
    pub fn number(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::Raw => 101,
            Self::Cooked => 113,
            Self::CookedV2 => 276,
            Self::Null => 0,
            Self::Ppp => 9,
            Self::FrameRelay => 107,
            Self::CiscoHdlc => 104,
            Self::IpNet => 226,
            Self::Radiotap => 127,
        }
    }
}

/// Where IP begins.
pub(super) struct Found {
    pub(super) at: usize,
    pub(super) says: Says,
    pub(super) vlans: [u16; 2],
}

/// What the link layer says of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    V4,
    V6,
    /// Its first four bits decide; neither 4 nor 6 is not IP.
    Nothing,
}

impl Says {
    fn of_ether_type(ether_type: u16) -> Result<Self, PacketError> {
        match ether_type {
            ETHER_IPV4 => Ok(Self::V4),
            ETHER_IPV6 => Ok(Self::V6),
            _ => Err(PacketError::NotIp),
        }
    }
}

#[inline]
pub(super) fn find(link: LinkType, frame: &[u8], wire_length: u32) -> Result<Found, PacketError> {
    let cursor = Cursor { frame, whole: frame.len() as u64 >= u64::from(wire_length) };
    match link {
        LinkType::Ethernet => cursor.behind_ether_type(12, [0; 2]),
        LinkType::Raw => Ok(Found { at: 0, says: Says::Nothing, vlans: [0; 2] }),
        LinkType::Cooked => cursor.behind_ether_type(14, [0; 2]),
        LinkType::CookedV2 => match cursor.word(0)? {
            // The protocol comes first and the rest of the header behind it: a tag would lie behind
            // that.
            tag @ (TAG | SERVICE_TAG | OLD_SERVICE_TAG) => cursor.behind_tags(tag, COOKED_V2, [0; 2]),
            other => cursor.found(Says::of_ether_type(other)?, COOKED_V2, [0; 2]),
        },
        LinkType::Null => {
            let family: [u8; 4] = *cursor.at(0)?;
            let says = match u32::from_be_bytes(family).min(u32::from_le_bytes(family)) {
                2 => Says::V4,
                // NetBSD and OpenBSD, FreeBSD, macOS, Linux.
                24 | 28 | 30 | 10 => Says::V6,
                _ => return Err(PacketError::NotIp),
            };
            cursor.found(says, 4, [0; 2])
        }
        LinkType::Ppp => serial::ppp(&cursor),
        LinkType::FrameRelay => serial::frame_relay(&cursor),
        LinkType::CiscoHdlc => serial::cisco_hdlc(&cursor),
        LinkType::IpNet => match cursor.at::<2>(0)?[1] {
            // Solaris's address families (tcpdump.org/linktypes/LINKTYPE_IPNET.html).
            2 => cursor.found(Says::V4, IP_NET, [0; 2]),
            26 => cursor.found(Says::V6, IP_NET, [0; 2]),
            _ => Err(PacketError::NotIp),
        },
        LinkType::Radiotap => wireless::radiotap(&cursor),
    }
}

/// A frame, and whether all of it was captured: decides who is to blame for an end.
struct Cursor<'a> {
    frame: &'a [u8],
    whole: bool,
}

impl<'a> Cursor<'a> {
    #[inline]
    fn at<const N: usize>(&self, at: usize) -> Result<&'a [u8; N], PacketError> {
        let bytes = self.frame.get(at..).and_then(|rest| rest.first_chunk());
        bytes.ok_or(if self.whole { PacketError::LinkHeader } else { PacketError::Cut })
    }

    #[inline]
    fn word(&self, at: usize) -> Result<u16, PacketError> {
        self.at(at).map(|bytes| u16::from_be_bytes(*bytes))
    }

    #[inline]
    fn found(&self, says: Says, at: usize, vlans: [u16; 2]) -> Result<Found, PacketError> {
        self.at::<1>(at)?;
        Ok(Found { at, says, vlans })
    }

    /// The EtherType is at `at`, and what it says follows.
    #[inline]
    fn behind_ether_type(&self, at: usize, vlans: [u16; 2]) -> Result<Found, PacketError> {
        match self.word(at)? {
            ETHER_IPV4 => self.found(Says::V4, at + 2, vlans),
            ETHER_IPV6 => self.found(Says::V6, at + 2, vlans),
            other => self.behind_tags(other, at + 2, vlans),
        }
    }

    /// `ether_type` is that of what begins at `at`.
    #[cold]
    fn behind_tags(
        &self,
        mut ether_type: u16,
        mut at: usize,
        mut vlans: [u16; 2],
    ) -> Result<Found, PacketError> {
        let mut tags = 0;
        while matches!(ether_type, TAG | SERVICE_TAG | OLD_SERVICE_TAG) {
            if tags == MAX_TAGS {
                return Err(PacketError::TooManyTags);
            }
            if let Some(vlan) = vlans.get_mut(tags) {
                *vlan = self.word(at)? & 0x0fff;
            }
            ether_type = self.word(at + 2)?;
            (tags, at) = (tags + 1, at + 4);
        }
        match ether_type {
            MPLS => self.behind_labels(at, vlans),
            PPPOE => match self.word(at + 6)? {
                PPP_IPV4 => self.found(Says::V4, at + 8, vlans),
                PPP_IPV6 => self.found(Says::V6, at + 8, vlans),
                _ => Err(PacketError::NotIp),
            },
            // IEEE 802.3 length instead of a type: LLC.
            length if length < LEAST_TYPE => self.behind_llc(at, vlans),
            other => self.found(Says::of_ether_type(other)?, at, vlans),
        }
    }

    /// IEEE 802.2 begins at `at`: there is IP only by way of SNAP (RFC 1042). Frames of other
    /// protocols may be shorter than SNAP's header.
    fn behind_llc(&self, at: usize, vlans: [u16; 2]) -> Result<Found, PacketError> {
        match self.at(at) {
            Ok([0xaa, 0xaa, 3, 0, 0, 0, high, low]) => {
                self.found(Says::of_ether_type(u16::from_be_bytes([*high, *low]))?, at + 8, vlans)
            }
            _ => Err(PacketError::NotIp),
        }
    }

    /// RFC 3032: four bytes a label, the last has its lowest bit of the third byte set. What is
    /// inside is only known by its first bits (RFC 4928: which is why pseudowires begin with 0).
    fn behind_labels(&self, mut at: usize, vlans: [u16; 2]) -> Result<Found, PacketError> {
        for _ in 0..MAX_LABELS {
            let label: [u8; 4] = *self.at(at)?;
            at += 4;
            if label[2] & 1 == 1 {
                return self.found(Says::Nothing, at, vlans);
            }
        }
        Err(PacketError::TooManyTags)
    }
}

pub(super) const ETHER_IPV4: u16 = 0x0800;
pub(super) const ETHER_IPV6: u16 = 0x86dd;
/// Ethernet within a tunnel ("transparent Ethernet bridging").
pub(super) const ETHER_BRIDGED: u16 = 0x6558;
/// IEEE 802.1Q.
const TAG: u16 = 0x8100;
/// IEEE 802.1ad.
const SERVICE_TAG: u16 = 0x88a8;
/// QinQ before it had a standard.
const OLD_SERVICE_TAG: u16 = 0x9100;
const MPLS: u16 = 0x8847;
/// RFC 2516, session stage.
const PPPOE: u16 = 0x8864;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
/// IEEE 802.3 §3.2.6: less is a length.
const LEAST_TYPE: u16 = 0x0600;
const MAX_TAGS: usize = 4;
const MAX_LABELS: usize = 8;
const COOKED_V2: usize = 20;
const IP_NET: usize = 24;
