//! What routers on the path say: ICMP (RFC 792, RFC 1191) and ICMPv6 (RFC 4443) messages, with the
//! packet they are about.

use std::net::IpAddr;

use netaware_record::IpVersion;

use crate::packet::{self, Header, ICMP, ICMPV6, TCP, UDP};

/// What a router has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// The hop limit ran out.
    TimeExceeded,
    /// The next link carries no more than this, in bytes of IP.
    TooBig { mtu: u32 },
    /// Nobody listens there: only when the packet was for the router itself.
    PortUnreachable,
    /// The answer to an echo request for the router itself.
    EchoReply,
}

impl Message {
    /// What a router answers to a packet for itself; it has no ports open and says nothing to what
    /// it does not know.
    pub(crate) fn of_addressee(header: &Header, bytes: &[u8]) -> Option<Self> {
        let kind = header.payload(bytes).first().copied();
        match (header.protocol, kind) {
            (ICMP, Some(ECHO_REQUEST_V4)) | (ICMPV6, Some(ECHO_REQUEST_V6)) => Some(Self::EchoReply),
            (TCP | UDP, _) => Some(Self::PortUnreachable),
            _ => None,
        }
    }
}

/// Writes a whole IP packet from `router` to the sender of `about` into `out`, replacing what was
/// there. Quotes as much of `about` as keeps the message within 576 bytes (RFC 1812 §4.3.2.3), or
/// 1280 with IPv6 (RFC 4443 §2.4(c)).
pub(crate) fn emit(message: Message, router: IpAddr, header: &Header, about: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let most = match header.version {
        _ if message == Message::EchoReply => usize::MAX,
        IpVersion::V4 => MOST_V4 - V4_HEADER - ICMP_HEADER,
        IpVersion::V6 => MOST_V6 - V6_HEADER - ICMP_HEADER,
    };
    let payload = header.payload(about);
    let (rest, quoted) = match message {
        // Identifier and sequence number go back as they came.
        Message::EchoReply => (payload.get(4..8), payload.get(8..).unwrap_or(&[])),
        _ => (None, &about[..about.len().min(most)]),
    };
    let mut head = [0; ICMP_HEADER];
    let (kind, code, word) = head_of(message, header.version);
    head[0] = kind;
    head[1] = code;
    head[4..].copy_from_slice(rest.unwrap_or(&word.to_be_bytes()));
    ip_header(out, router, header.source, ICMP_HEADER + quoted.len());
    let sum = match header.version {
        IpVersion::V4 => packet::checksum(&[&head, quoted]),
        IpVersion::V6 => {
            let length = (ICMP_HEADER + quoted.len()) as u32;
            let tail = [0, 0, 0, ICMPV6];
            packet::checksum(&[&out[8..40], &length.to_be_bytes(), &tail, &head, quoted])
        }
    };
    head[2..4].copy_from_slice(&sum.to_be_bytes());
    out.extend(head);
    out.extend(quoted);
}

fn head_of(message: Message, version: IpVersion) -> (u8, u8, u32) {
    match (message, version) {
        (Message::TimeExceeded, IpVersion::V4) => (11, 0, 0),
        (Message::TimeExceeded, IpVersion::V6) => (3, 0, 0),
        // The MTU has 16 bits in IPv4; no IPv4 packet is longer.
        (Message::TooBig { mtu }, IpVersion::V4) => (3, 4, mtu.min(0xffff)),
        (Message::TooBig { mtu }, IpVersion::V6) => (2, 0, mtu),
        (Message::PortUnreachable, IpVersion::V4) => (3, 3, 0),
        (Message::PortUnreachable, IpVersion::V6) => (1, 4, 0),
        (Message::EchoReply, IpVersion::V4) => (0, 0, 0),
        (Message::EchoReply, IpVersion::V6) => (129, 0, 0),
    }
}

fn ip_header(out: &mut Vec<u8>, from: IpAddr, to: IpAddr, payload: usize) {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let total = ((V4_HEADER + payload) as u16).to_be_bytes();
            // Precedence "internetwork control", as routers send it (RFC 1812 §4.3.2.5).
            out.extend([0x45, 0xc0, total[0], total[1], 0, 0, 0, 0, HOP_LIMIT, ICMP, 0, 0]);
            out.extend(from.octets());
            out.extend(to.octets());
            let sum = packet::checksum(&[out]);
            out[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let length = (payload as u16).to_be_bytes();
            out.extend([0x60, 0, 0, 0, length[0], length[1], ICMPV6, HOP_LIMIT]);
            out.extend(from.octets());
            out.extend(to.octets());
        }
        _ => unreachable!("the router's address is chosen by the version of the packet"),
    }
}

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const ICMP_HEADER: usize = 8;
const MOST_V4: usize = 576;
const MOST_V6: usize = 1280;
const HOP_LIMIT: u8 = 64;
const ECHO_REQUEST_V4: u8 = 8;
const ECHO_REQUEST_V6: u8 = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::made;

    const ROWS: [(&str, &str, &str); 2] =
        [("10.77.0.1", "10.77.0.2", "10.77.1.1"), ("fd77::1", "fd77::2", "fd77:0:1::1")];

    fn answer(message: Message, row: usize, about: &[u8]) -> Vec<u8> {
        let router = ROWS[row].2.parse().unwrap();
        let mut out = Vec::new();
        emit(message, router, &Header::parse(about).unwrap(), about, &mut out);
        let header = Header::parse(&out).expect("an answer is a packet");
        assert_eq!(header.source, router);
        assert_eq!(header.destination, ROWS[row].0.parse::<IpAddr>().unwrap());
        verify(&header, &out);
        out
    }

    /// The receiver's own check: the sum over everything, checksum included, is zero.
    fn verify(header: &Header, bytes: &[u8]) {
        let payload = header.payload(bytes);
        match header.version {
            IpVersion::V4 => {
                assert_eq!(packet::checksum(&[&bytes[..20]]), 0);
                assert_eq!(packet::checksum(&[payload]), 0);
            }
            IpVersion::V6 => {
                let length = (payload.len() as u32).to_be_bytes();
                assert_eq!(packet::checksum(&[&bytes[8..40], &length, &[0, 0, 0, 58], payload]), 0);
            }
        }
    }

    fn about(row: usize, payload: usize) -> Vec<u8> {
        made::udp(ROWS[row].0.parse().unwrap(), ROWS[row].1.parse().unwrap(), 1, payload)
    }

    #[test]
    fn errors_quote_the_packet_with_right_checksums() {
        for payload in [0, 1, 7, 100, 1400] {
            let four = answer(Message::TimeExceeded, 0, &about(0, payload));
            assert_eq!((four[20], four[21]), (11, 0));
            assert_eq!(&four[28..], &about(0, payload)[..(28 + payload).min(548)]);
            let six = answer(Message::TimeExceeded, 1, &about(1, payload));
            assert_eq!((six[40], six[41]), (3, 0));
            assert_eq!(&six[48..], &about(1, payload)[..(48 + payload).min(1232)]);
            assert!(four.len() <= 576 && six.len() <= 1280);
        }
    }

    #[test]
    fn a_packet_too_big_learns_the_mtu() {
        let four = answer(Message::TooBig { mtu: 1400 }, 0, &about(0, 1472));
        assert_eq!(four[20..22], [3, 4]);
        assert_eq!(four[24..28], [0, 0, 0x05, 0x78]);
        let six = answer(Message::TooBig { mtu: 1280 }, 1, &about(1, 1452));
        assert_eq!(six[40..42], [2, 0]);
        assert_eq!(six[44..48], [0, 0, 0x05, 0]);
    }

    #[test]
    fn a_router_answers_ping_with_what_it_was_sent() {
        for (row, protocol, request, reply) in [(0, ICMP, 8, 0), (1, ICMPV6, 128, 129)] {
            let body = [&[request, 0, 9, 9, 1, 2, 3, 4][..], &[7; 1000]].concat();
            let asked =
                made::ip(ROWS[row].0.parse().unwrap(), ROWS[row].2.parse().unwrap(), protocol, 1, &body);
            let header = Header::parse(&asked).unwrap();
            assert_eq!(Message::of_addressee(&header, &asked), Some(Message::EchoReply));
            let replied = answer(Message::EchoReply, row, &asked);
            let at = header.payload_at;
            assert_eq!((replied[at], &replied[at + 4..]), (reply, &asked[at + 4..]));
        }
    }

    #[test]
    fn an_error_about_an_error_is_forbidden() {
        let (from, to) = ("10.77.0.1".parse().unwrap(), "10.77.0.2".parse().unwrap());
        for (kind, forbidden) in [(11, true), (3, true), (8, false), (0, false)] {
            let bytes = made::ip(from, to, ICMP, 1, &[kind, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(Header::parse(&bytes).unwrap().forbids_errors(&bytes), forbidden, "{kind}");
        }
    }
}
