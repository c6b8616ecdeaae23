//! What a datagram occupies on Ethernet (IEEE 802.3 §4.4.2, §3.2; IEEE 802.1Q for the tag).
//!
//! ```text
//! gap 12 | preamble 8 | header 14 (+ tag 4) | IP 20 or 40 | UDP 8 | payload | padding | checksum 4
//! ```
//!
//! Without tag and fragments that is the payload and 66 bytes over IPv4, 86 over IPv6.

use netaware_record::IpVersion;

/// Frames that one datagram becomes, and the bytes they occupy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// One, or as many as the fragments that IP makes.
    pub frames: u32,
    /// Of all of them, interframe gaps included.
    pub bytes: u64,
}

/// The frames of a UDP datagram with `payload` bytes on links of this MTU (IP bytes per frame). An
/// MTU too small to carry anything counts as one that never cuts.
pub fn occupancy(version: IpVersion, payload: u32, mtu: u32, vlan: bool) -> Occupancy {
    let header = version.header_len();
    let whole = UDP_HEADER.saturating_add(payload);
    if header.saturating_add(whole) <= mtu || mtu < LEAST_MTU {
        return Occupancy { frames: 1, bytes: frame(u64::from(header) + u64::from(whole), vlan) };
    }
    // RFC 791 §3.2, RFC 8200 §4.5: all fragments but the last carry a multiple of eight bytes.
    let header = header + if version == IpVersion::V6 { FRAGMENT_HEADER } else { 0 };
    let piece = (mtu - header) / 8 * 8;
    let full = (whole - 1) / piece;
    let rest = whole - full * piece;
    let bytes =
        u64::from(full) * frame(u64::from(header + piece), vlan) + frame(u64::from(header + rest), vlan);
    Occupancy { frames: full + 1, bytes }
}

fn frame(ip: u64, vlan: bool) -> u64 {
    let tag = if vlan { TAG } else { 0 };
    GAP + PREAMBLE + (HEADER + tag + ip + CHECKSUM).max(SHORTEST)
}

const UDP_HEADER: u32 = 8;
/// Of IPv6; in IPv4 the fields are in the header anyway.
const FRAGMENT_HEADER: u32 = 8;
const GAP: u64 = 12;
const PREAMBLE: u64 = 8;
const HEADER: u64 = 14;
const TAG: u64 = 4;
const CHECKSUM: u64 = 4;
/// From header to checksum.
const SHORTEST: u64 = 64;
/// RFC 791 §3.2: every link carries 68 bytes.
const LEAST_MTU: u32 = 68;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(version: IpVersion, payload: u32, vlan: bool) -> (u32, u64) {
        let found = occupancy(version, payload, 1500, vlan);
        (found.frames, found.bytes)
    }

    #[test]
    fn overhead_is_66_bytes_over_ipv4_and_86_over_ipv6() {
        assert_eq!(bytes(IpVersion::V4, 1400, false), (1, 1466));
        assert_eq!(bytes(IpVersion::V6, 1400, false), (1, 1486));
        assert_eq!(bytes(IpVersion::V4, 1400, true), (1, 1470));
        // A full frame of 1518 bytes with gap and preamble.
        assert_eq!(bytes(IpVersion::V4, 1472, false), (1, 1538));
    }

    #[test]
    fn short_frames_are_padded() {
        assert_eq!(bytes(IpVersion::V4, 0, false), (1, 84));
        assert_eq!(bytes(IpVersion::V4, 18, false), (1, 84));
        assert_eq!(bytes(IpVersion::V4, 19, false), (1, 85));
        assert_eq!(bytes(IpVersion::V6, 1, false), (1, 87));
    }

    #[test]
    fn fragments_have_headers_of_their_own() {
        // 1481 bytes of IP payload: 1480 and 1.
        assert_eq!(bytes(IpVersion::V4, 1473, false), (2, 1538 + 84));
        // IPv6 pieces are 1448 bytes behind 48 of headers: 1496 of 1500.
        let (frames, bytes) = bytes(IpVersion::V6, 2888, false);
        assert_eq!((frames, bytes), (2, 2 * (12 + 8 + 14 + 48 + 1448 + 4)));
        let largest = occupancy(IpVersion::V4, 65_507, 1500, false);
        assert_eq!(largest.frames, 45);
    }

    #[test]
    fn an_absurd_mtu_cuts_nothing() {
        assert_eq!(occupancy(IpVersion::V6, 65_507, 0, false).frames, 1);
        assert_eq!(occupancy(IpVersion::V6, u32::MAX, u32::MAX, true).frames, 1);
        assert!(occupancy(IpVersion::V6, 65_507, 68, false).frames > 3000);
    }
}
