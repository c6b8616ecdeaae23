//! ICMP timestamp and its reply (RFC 792 p. 16, types 13 and 14; IPv4 only).
//!
//! A stamp is milliseconds since midnight UT, or anything at all once its highest bit is set. What
//! a host writes there is handed on as it came: whether it can be believed is seen only over many
//! answers.

use super::{Echo, HEADER_LEN, checksum};

/// Header and three stamps, bytes.
pub const TIMESTAMP_LEN: usize = HEADER_LEN + 12;
/// Set in a stamp that does not count milliseconds since midnight UT.
pub const NON_STANDARD: u32 = 1 << 31;

/// The three stamps, as 32-bit numbers in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamps {
    /// Of the request; the reply repeats it.
    pub originate: u32,
    /// When the request came there.
    pub receive: u32,
    /// When the reply left there.
    pub transmit: u32,
}

impl Timestamps {
    /// Those of a message; `None` where it is cut.
    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let (originate, rest) = message.get(HEADER_LEN..)?.split_first_chunk()?;
        let (receive, rest) = rest.split_first_chunk()?;
        let transmit = rest.first_chunk()?;
        Some(Self {
            originate: u32::from_be_bytes(*originate),
            receive: u32::from_be_bytes(*receive),
            transmit: u32::from_be_bytes(*transmit),
        })
    }
}

/// A request with its originate stamp, receive and transmit zero.
pub fn timestamp_request(named: Echo, originate: u32) -> [u8; TIMESTAMP_LEN] {
    let mut out = [0; TIMESTAMP_LEN];
    out[0] = TIMESTAMP_REQUEST;
    out[4..6].copy_from_slice(&named.id.to_be_bytes());
    out[6..8].copy_from_slice(&named.seq.to_be_bytes());
    out[8..12].copy_from_slice(&originate.to_be_bytes());
    let sum = checksum(&out);
    out[2..4].copy_from_slice(&sum.to_be_bytes());
    out
}

pub(super) const TIMESTAMP_REQUEST: u8 = 13;
pub(super) const TIMESTAMP_REPLY: u8 = 14;

#[cfg(test)]
mod tests {
    use netaware_record::IpVersion;

    use super::super::{Message, ParseError, quoted_echo};
    use super::*;

    const NAMED: Echo = Echo { id: 0x1234, seq: 7 };

    fn reply() -> Vec<u8> {
        let mut bytes = timestamp_request(NAMED, 0x8000_0001).to_vec();
        bytes[0] = TIMESTAMP_REPLY;
        bytes[12..16].copy_from_slice(&1_000_u32.to_be_bytes());
        bytes[16..20].copy_from_slice(&1_001_u32.to_be_bytes());
        bytes
    }

    #[test]
    fn a_reply_tells_its_three_stamps() {
        let told = Timestamps { originate: 0x8000_0001, receive: 1_000, transmit: 1_001 };
        let padded = [reply(), vec![0; 6]].concat();
        for bytes in [reply(), padded] {
            assert_eq!(Message::parse(IpVersion::V4, &bytes), Ok(Message::TimestampReply(NAMED, told)));
        }
    }

    #[test]
    fn a_cut_reply_and_one_over_ipv6_are_refused() {
        for len in 0..TIMESTAMP_LEN {
            assert_eq!(Message::parse(IpVersion::V4, &reply()[..len]), Err(ParseError::Short), "{len}");
        }
        let unknown = Err(ParseError::Unknown { kind: TIMESTAMP_REPLY, code: 0 });
        assert_eq!(Message::parse(IpVersion::V6, &reply()), unknown);
        assert!(matches!(
            Message::parse(IpVersion::V4, &timestamp_request(NAMED, 1)),
            Err(ParseError::Unknown { .. })
        ));
    }

    #[test]
    fn a_request_has_a_right_checksum_and_is_known_in_a_quote() {
        let request = timestamp_request(NAMED, 0x89ab_cdef);
        assert_eq!(checksum(&request), 0);
        assert_eq!(quoted_echo(&request), Some(NAMED));
    }
}
