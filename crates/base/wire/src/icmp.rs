//! ICMP (RFC 792) and ICMPv6 (RFC 4443): echoes, timestamps, and errors with the packet that they
//! quote.
//!
//! Errors come from anybody on the path, or from somebody who only says so: what is short or
//! inconsistent is refused with a reason, and a quote says no more than that it names our own
//! addresses and ports. Nothing is allocated.

mod timestamp;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netaware_record::IpVersion;

pub use timestamp::{NON_STANDARD, TIMESTAMP_LEN, Timestamps, timestamp_request};
use timestamp::{TIMESTAMP_REPLY, TIMESTAMP_REQUEST};

/// Type, code, checksum and four bytes of content.
pub const HEADER_LEN: usize = 8;

/// A message, as far as paths are measured with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// The answer to an echo request.
    EchoReply(Echo),
    /// The answer to a timestamp request.
    TimestampReply(Echo, Timestamps),
    /// A router or a host says why a packet went no further.
    Error {
        /// What it says.
        verdict: Verdict,
        /// The packet it is about.
        quote: Quote<'a>,
    },
}

/// The fields that tell one echo, or one timestamp, from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// The same for all of one socket.
    pub id: u16,
    /// Counts requests.
    pub seq: u16,
}

/// Why a packet went no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The hop limit ran out.
    TimeExceeded,
    /// Nobody listens at that port, or the protocol is unknown: said by the host itself.
    PortUnreachable,
    /// No route, no such host, or forbidden.
    Refused,
    /// The next link takes only so many bytes; 0 where an old router does not say.
    TooBig(u32),
}

/// As much of a packet as an error carries of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote<'a> {
    /// Who sent it.
    pub source: IpAddr,
    /// Where it was to go.
    pub destination: IpAddr,
    /// IP protocol number of what follows.
    pub protocol: u8,
    /// IP total length that its header states, bytes.
    pub length: u32,
    /// What follows the IP header, as far as it is quoted.
    pub rest: &'a [u8],
}

/// Why a message is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParseError {
    /// Shorter than a header.
    Short,
    /// Neither an echo or timestamp reply nor an error that paths are measured with.
    Unknown {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
    /// What is quoted is no packet of this version.
    Quote,
}

impl<'a> Message<'a> {
    /// Reads a message without its IP header. The checksum is the kernel's business.
    ///
    /// # Errors
    /// Why it is not understood.
    pub fn parse(version: IpVersion, bytes: &'a [u8]) -> Result<Self, ParseError> {
        let head: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(ParseError::Short)?;
        let [kind, code, _, _, rest @ ..] = *head;
        let is_reply = match version {
            IpVersion::V4 => kind == ECHO_REPLY_V4,
            IpVersion::V6 => kind == ECHO_REPLY_V6,
        };
        let named =
            Echo { id: u16::from_be_bytes([rest[0], rest[1]]), seq: u16::from_be_bytes([rest[2], rest[3]]) };
        if is_reply && code == 0 {
            return Ok(Self::EchoReply(named));
        }
        if (version, kind, code) == (IpVersion::V4, TIMESTAMP_REPLY, 0) {
            let stamps = Timestamps::parse(bytes).ok_or(ParseError::Short)?;
            return Ok(Self::TimestampReply(named, stamps));
        }
        let info = match version {
            IpVersion::V4 => u32::from(u16::from_be_bytes([rest[2], rest[3]])),
            IpVersion::V6 => u32::from_be_bytes(rest),
        };
        let verdict = Verdict::of(version, kind, code, info).ok_or(ParseError::Unknown { kind, code })?;
        let quote = Quote::parse(version, &bytes[HEADER_LEN..]).ok_or(ParseError::Quote)?;
        Ok(Self::Error { verdict, quote })
    }
}

impl Verdict {
    /// What a type and a code mean; `info` is the next-hop MTU where there is one. `None` for what
    /// is no error, or one that says nothing about a path.
    pub fn of(version: IpVersion, kind: u8, code: u8, info: u32) -> Option<Self> {
        match (version, kind, code) {
            (IpVersion::V4, 11, 0) | (IpVersion::V6, 3, 0) => Some(Self::TimeExceeded),
            (IpVersion::V4, 3, 4) | (IpVersion::V6, 2, _) => Some(Self::TooBig(info)),
            // ICMPv6 reports an unknown protocol as a parameter problem.
            (IpVersion::V4, 3, 2 | 3) | (IpVersion::V6, 1, 4) | (IpVersion::V6, 4, 1) => {
                Some(Self::PortUnreachable)
            }
            (IpVersion::V4, 3, _) | (IpVersion::V6, 1, _) => Some(Self::Refused),
            _ => None,
        }
    }
}

impl<'a> Quote<'a> {
    /// Reads an IP header and what follows.
    fn parse(version: IpVersion, bytes: &'a [u8]) -> Option<Self> {
        match version {
            IpVersion::V4 => {
                let head: &[u8; 20] = bytes.first_chunk()?;
                let header = usize::from(head[0] & 0x0f) * 4;
                if head[0] >> 4 != 4 || header < 20 {
                    return None;
                }
                Some(Self {
                    source: Ipv4Addr::from(*head[12..].first_chunk::<4>()?).into(),
                    destination: Ipv4Addr::from(*head[16..].first_chunk::<4>()?).into(),
                    protocol: head[9],
                    length: u32::from(u16::from_be_bytes([head[2], head[3]])),
                    rest: bytes.get(header..)?,
                })
            }
            IpVersion::V6 => {
                let head: &[u8; 40] = bytes.first_chunk()?;
                (head[0] >> 4 == 6).then_some(())?;
                Some(Self {
                    source: Ipv6Addr::from(*head[8..].first_chunk::<16>()?).into(),
                    destination: Ipv6Addr::from(*head[24..].first_chunk::<16>()?).into(),
                    protocol: head[6],
                    length: u32::from(u16::from_be_bytes([head[4], head[5]])) + 40,
                    rest: &bytes[40..],
                })
            }
        }
    }
}

/// What follows the header of an IPv4 packet, as raw sockets hand it over; `None` for what is no
/// IPv4 packet.
pub fn behind_ipv4(bytes: &[u8]) -> Option<&[u8]> {
    let first = *bytes.first()?;
    let header = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header < 20 { None } else { bytes.get(header..) }
}

/// Writes an echo request into `out`, all of which it is to be: at least [`HEADER_LEN`] + 2 bytes.
/// The first two bytes of the payload make up for the number, so that the checksum is the same for
/// all requests of one id and length, and routers that balance by it send all of them one way. The
/// checksum is written for IPv4; for IPv6 the kernel does it.
///
/// # Panics
/// When `out` is shorter.
pub fn emit_echo_request(version: IpVersion, echo: Echo, out: &mut [u8]) {
    out.fill(0);
    out[0] = match version {
        IpVersion::V4 => ECHO_REQUEST_V4,
        IpVersion::V6 => ECHO_REQUEST_V6,
    };
    out[4..6].copy_from_slice(&echo.id.to_be_bytes());
    out[6..8].copy_from_slice(&echo.seq.to_be_bytes());
    out[8..10].copy_from_slice(&(!echo.seq).to_be_bytes());
    if version == IpVersion::V4 {
        let sum = checksum(out);
        out[2..4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The number in a quoted echo or timestamp request, which begins with its ICMP header.
pub fn quoted_echo(rest: &[u8]) -> Option<Echo> {
    let head: &[u8; HEADER_LEN] = rest.first_chunk()?;
    matches!(head[0], ECHO_REQUEST_V4 | ECHO_REQUEST_V6 | TIMESTAMP_REQUEST).then(|| Echo {
        id: u16::from_be_bytes([head[4], head[5]]),
        seq: u16::from_be_bytes([head[6], head[7]]),
    })
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

const ECHO_REQUEST_V4: u8 = 8;
const ECHO_REPLY_V4: u8 = 0;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted_v4(payload: usize) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 5, 220, 0, 0, 0x40, 0, 1, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        bytes.extend([0x82, 0x35, 0x82, 0x9a, 0x05, 0xc8, 0, 0]);
        bytes.extend((0..payload).map(|n| n as u8));
        bytes
    }

    fn quoted_v6(payload: usize) -> Vec<u8> {
        let mut bytes = vec![0x60, 0, 0, 0, 0x05, 0xb4, 17, 1];
        bytes.extend([0; 15].iter().chain(&[1]).chain(&[0; 15]).chain(&[2]));
        bytes.extend([0x82, 0x35, 0x82, 0x9a, 0x05, 0xb4, 0, 0]);
        bytes.extend((0..payload).map(|n| n as u8));
        bytes
    }

    fn error(kind: u8, code: u8, word: [u8; 4], quote: &[u8]) -> Vec<u8> {
        [&[kind, code, 0, 0][..], &word, quote].concat()
    }

    #[test]
    fn errors_say_why_and_about_what() {
        let v4 = error(11, 0, [0; 4], &quoted_v4(12));
        let Ok(Message::Error { verdict, quote }) = Message::parse(IpVersion::V4, &v4) else { panic!() };
        assert_eq!((verdict, quote.protocol, quote.length), (Verdict::TimeExceeded, 17, 1500));
        assert_eq!((quote.source, quote.destination), ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()));
        assert_eq!(quote.rest.len(), 20);
        let v6 = error(2, 0, [0, 0, 5, 0], &quoted_v6(1000));
        let Ok(Message::Error { verdict, quote }) = Message::parse(IpVersion::V6, &v6) else { panic!() };
        assert_eq!((verdict, quote.length), (Verdict::TooBig(1280), 1500));
        assert_eq!(quote.rest[..4], [0x82, 0x35, 0x82, 0x9a]);
        let narrow = error(3, 4, [0, 0, 5, 120], &quoted_v4(0));
        assert!(matches!(
            Message::parse(IpVersion::V4, &narrow),
            Ok(Message::Error { verdict: Verdict::TooBig(1400), .. })
        ));
    }

    #[test]
    fn types_and_codes_have_their_meaning() {
        use IpVersion::{V4, V6};
        let rows = [
            (V4, 3, 3, Some(Verdict::PortUnreachable)),
            (V4, 3, 1, Some(Verdict::Refused)),
            (V4, 3, 13, Some(Verdict::Refused)),
            (V4, 11, 1, None),
            (V4, 0, 0, None),
            (V6, 1, 4, Some(Verdict::PortUnreachable)),
            (V6, 1, 1, Some(Verdict::Refused)),
            (V6, 3, 0, Some(Verdict::TimeExceeded)),
            (V6, 135, 0, None),
        ];
        for (version, kind, code, want) in rows {
            assert_eq!(Verdict::of(version, kind, code, 0), want, "{version:?} {kind}/{code}");
        }
    }

    #[test]
    fn what_is_cut_is_refused_and_never_read_beyond() {
        for (version, whole) in [
            (IpVersion::V4, error(11, 0, [0; 4], &quoted_v4(4))),
            (IpVersion::V6, error(3, 0, [0; 4], &quoted_v6(4))),
        ] {
            let least = whole.len() - 12;
            for len in 0..least {
                assert!(Message::parse(version, &whole[..len]).is_err(), "{len}");
            }
            assert!(Message::parse(version, &whole[..least]).is_ok());
        }
        let options_that_are_not_there = error(11, 0, [0; 4], &[0x4f; 20]);
        assert_eq!(Message::parse(IpVersion::V4, &options_that_are_not_there), Err(ParseError::Quote));
        assert_eq!(Message::parse(IpVersion::V4, &[5; 8]), Err(ParseError::Unknown { kind: 5, code: 5 }));
    }

    #[test]
    fn the_checksum_of_echoes_never_changes() {
        let mut sums = std::collections::BTreeSet::new();
        for seq in [0, 1, 255, 256, 0x7fff, 0xffff] {
            let mut out = [0; 60];
            emit_echo_request(IpVersion::V4, Echo { id: 77, seq }, &mut out);
            assert_eq!(checksum(&out), 0, "right");
            assert_eq!(quoted_echo(&out), Some(Echo { id: 77, seq }));
            sums.insert([out[2], out[3]]);
        }
        assert_eq!(sums.len(), 1);
    }

    #[test]
    fn an_echo_reply_is_known_by_its_numbers() {
        let reply = [0, 0, 1, 2, 0, 77, 0, 9, 1, 1];
        assert_eq!(Message::parse(IpVersion::V4, &reply), Ok(Message::EchoReply(Echo { id: 77, seq: 9 })));
        let packet = [&[0x45; 1][..], &[0; 19], &reply].concat();
        assert_eq!(behind_ipv4(&packet), Some(&reply[..]));
        assert_eq!(behind_ipv4(&packet[..10]), None);
    }
}
