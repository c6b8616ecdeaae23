//! What a TCP header says that round trips need.

use netaware_wire::packet::Packet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TcpHeader {
    pub(super) sequence: u32,
    pub(super) acknowledged: u32,
    flags: u8,
    /// Bytes behind the header, as the IP header counts them.
    payload: u32,
    /// Value and echo of the timestamps option (RFC 7323 §3).
    pub(super) stamps: Option<(u32, u32)>,
}

impl TcpHeader {
    /// `None` where it ends early or says that it is shorter than a header; options that were cut
    /// off count as absent.
    #[inline]
    pub(super) fn parse(packet: &Packet<'_>) -> Option<Self> {
        let bytes = packet.bytes.get(packet.transport..)?;
        let fixed = bytes.first_chunk::<20>()?;
        let header = usize::from(fixed[12] >> 4) * 4;
        if header < 20 {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let options = bytes.get(20..header).unwrap_or_default();
        Some(Self {
            sequence: word(4),
            acknowledged: word(8),
            flags: fixed[13],
            payload: packet.length.saturating_sub((packet.transport + header) as u32),
            stamps: stamps(options),
        })
    }

    /// Numbers of the sequence space that it takes.
    pub(super) fn takes(&self) -> u32 {
        self.payload.saturating_add(u32::from(self.flags & SYN != 0) + u32::from(self.flags & FIN != 0))
    }

    /// Whether the other end answers it without waiting for anything else.
    pub(super) fn carries(&self) -> bool {
        self.takes() > 0
    }

    pub(super) fn acknowledges(&self) -> bool {
        self.flags & ACK != 0
    }

    /// The first packet of a connection.
    pub(super) fn opens(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }
}

#[inline]
fn stamps(mut options: &[u8]) -> Option<(u32, u32)> {
    // Nearly all stacks put two no-ops first and nothing else beside.
    loop {
        match *options {
            [NO_OPERATION, ref rest @ ..] => options = rest,
            [TIMESTAMPS, 10, ref rest @ ..] => {
                let (words, _) = rest.first_chunk::<8>()?.as_chunks::<4>();
                return Some((u32::from_be_bytes(words[0]), u32::from_be_bytes(words[1])));
            }
            [END | TIMESTAMPS, ..] | [] | [_] => return None,
            [_, length, ..] if length < 2 => return None,
            [_, length, ..] => options = options.get(usize::from(length)..)?,
        }
    }
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const TIMESTAMPS: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::Made;

    #[test]
    fn options_are_read_wherever_they_stand() {
        let cases = [
            (&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2][..], Some((1, 2))),
            (&[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4], Some((3, 4))),
            (&[0, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], None),
            (&[8, 10, 0, 0], None),
            (&[8, 9, 0, 0, 0, 1, 0, 0, 0, 2], None),
            (&[5, 0, 8, 10], None),
            (&[5, 200], None),
        ];
        for (options, expected) in cases {
            assert_eq!(stamps(options), expected, "{options:?}");
        }
    }

    #[test]
    fn lengths_come_from_the_ip_header_not_from_what_was_captured() {
        let made = Made::tcp4().stamps(1, 2).payload(&[0; 700]).captured(60);
        let header = TcpHeader::parse(&made.packet()).unwrap();
        assert_eq!((header.takes(), header.stamps), (700, Some((1, 2))));
        let header = TcpHeader::parse(&made.flags(SYN | FIN).captured(50).packet()).unwrap();
        assert_eq!((header.takes(), header.stamps), (702, None));
        assert_eq!(TcpHeader::parse(&Made::tcp4().captured(39).packet()), None);
    }

    #[test]
    fn a_bare_acknowledgement_carries_nothing_that_is_answered() {
        let carries = |made: &Made| TcpHeader::parse(&made.packet()).unwrap().carries();
        let bare = Made::tcp4().flags(ACK);
        assert!(!carries(&bare) && !carries(&bare.clone().stamps(1, 2)));
        for made in [bare.clone().payload(b"x"), bare.clone().flags(SYN), bare.flags(FIN | ACK)] {
            assert!(carries(&made), "{made:?}");
        }
    }

    #[test]
    fn a_header_is_read_field_by_field_and_one_that_is_too_short_is_none() {
        let made = Made::tcp4().sequence(0x0102_0304, 0x0506_0708).payload(b"abc");
        let want = TcpHeader {
            sequence: 0x0102_0304,
            acknowledged: 0x0506_0708,
            flags: ACK,
            payload: 3,
            stamps: None,
        };
        assert_eq!(TcpHeader::parse(&made.packet()), Some(want));
        for (words, is_header) in [(4, false), (5, true)] {
            let mut bytes = [0; 20];
            bytes[12] = words << 4;
            let made = Made::raw4([192, 0, 2, 1], [192, 0, 2, 2], 6, &bytes);
            assert_eq!(TcpHeader::parse(&made.packet()).is_some(), is_header, "{words} words");
        }
    }

    #[test]
    fn flags_say_what_opens_what_acknowledges_and_what_takes_numbers() {
        for (flags, opens, acknowledges, takes) in [
            (0, false, false, 0),
            (SYN, true, false, 1),
            (FIN, false, false, 1),
            (ACK, false, true, 0),
            (SYN | ACK, false, true, 1),
            (SYN | FIN, true, false, 2),
            (FIN | ACK, false, true, 1),
            (!(SYN | FIN | ACK), false, false, 0),
        ] {
            let header = TcpHeader::parse(&Made::tcp4().flags(flags).packet()).unwrap();
            let found = (header.opens(), header.acknowledges(), header.takes(), header.carries());
            assert_eq!(found, (opens, acknowledges, takes, takes > 0), "{flags:#x}");
        }
    }

    #[test]
    fn an_option_of_two_bytes_is_skipped_and_a_shorter_one_ends_all() {
        assert_eq!(stamps(&[5, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]), Some((1, 2)));
        assert_eq!(stamps(&[5, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]), None);
        assert_eq!((stamps(&[]), stamps(&[8])), (None, None));
    }
}
