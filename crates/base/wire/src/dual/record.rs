//! What is said after the opening, in heads of 16 bytes:
//!
//! ```text
//!  0 kind       1 IP version or 0     2 code (2)     4 small (4)     8 large (8)
//!
//!  kind         IP   code      small        large
//!  1 data                      length       offset of the first byte
//!  2 ack             1: all    room         bytes received without a gap
//!  3 marker                    switches     offset of the first byte that goes another way
//!  4 fin                                    offset of the end
//!  5 wish       to             serial
//!  6 answer          outcome   serial       decision
//!  7 gone       of             generation
//!  8 ping                                   nonce
//!  9 pong                                   nonce of the ping
//! 10 bye             reason
//! 11 pad                         length
//! ```

use netaware_record::IpVersion;

use super::opening::{ip_from, ip_number, u32_at, u64_at};

/// Bytes of a record's head.
pub const HEAD_LEN: usize = 16;
/// The most bytes that one data record may have.
pub const MAX_DATA: u32 = 1 << 20;

/// One record; `Data` and `Pad` are followed by their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Record {
    /// Bytes of the stream follow.
    Data {
        /// Of the first one.
        offset: u64,
        /// How many: 1 to [`MAX_DATA`].
        length: u32,
    },
    /// What the sender of this has of the other direction.
    Ack {
        /// Bytes without a gap.
        received: u64,
        /// How many more it can take.
        room: u32,
        /// Whether that is all there is, its end included.
        all: bool,
    },
    /// What follows goes over the other connection.
    Marker {
        /// Where that begins.
        offset: u64,
        /// How many times the sender has changed connections by its own will, this one included.
        switches: u32,
    },
    /// The stream ends here.
    Fin {
        /// Bytes in it.
        offset: u64,
    },
    /// Both directions should go over this IP version; sent on the connection that it names.
    Wish {
        /// The one wanted.
        to: IpVersion,
        /// Of this wish, rising; the opener's is the place among its decisions.
        serial: u32,
    },
    /// What becomes of a wish; sent where the wish came from.
    Answer {
        /// Of the wish.
        serial: u32,
        /// What becomes of it.
        outcome: Answer,
        /// Place of a grant of the opener's among its decisions; 0 otherwise.
        decision: u32,
    },
    /// The sender has given up a connection.
    Gone {
        /// Its IP version.
        ip: IpVersion,
        /// Which one of that version.
        generation: u32,
    },
    /// To be answered at once.
    Ping {
        /// Given back.
        nonce: u64,
    },
    /// The answer.
    Pong {
        /// As it came.
        nonce: u64,
    },
    /// Bytes without a meaning follow, which show what a connection can carry that carries nothing
    /// else.
    Pad {
        /// How many: 1 to [`MAX_DATA`].
        length: u32,
    },
    /// Nothing more comes on this connection.
    Bye {
        /// Why.
        reason: Farewell,
    },
}

/// What becomes of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Its sender's peer goes over the version wanted from now on.
    Granted,
    /// Not while the peer's own wish for the other version is under way.
    Crossed,
    /// The peer's application holds the stream where it is.
    Held,
}

/// Why nothing more comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Farewell {
    /// Both directions have ended and all of them was received.
    Finished,
    /// The application gave the stream up.
    Abandoned,
    /// The other end broke the rules of the framing.
    Violation,
}

/// Why 16 bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordError {
    /// No such kind.
    Kind,
    /// Data or padding without bytes, or with too many.
    Length,
    /// An offset beyond what can be counted.
    Offset,
    /// Neither 4 nor 6.
    IpVersion,
    /// No such code.
    Code,
    /// A field that must be zero is not.
    Reserved,
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Kind => "no such kind of record",
            Self::Length => "a record of no bytes or too many",
            Self::Offset => "an offset beyond what can be counted",
            Self::IpVersion => "a record for an IP version that is neither 4 nor 6",
            Self::Code => "a record with an unknown code",
            Self::Reserved => "a field that must be zero is not",
        })
    }
}

impl std::error::Error for RecordError {}

/// The fields of a head, before they mean anything.
struct Fields {
    kind: u8,
    ip: u8,
    code: u16,
    small: u32,
    large: u64,
}

impl Record {
    /// As bytes.
    pub fn emit(&self) -> [u8; HEAD_LEN] {
        let Fields { kind, ip, code, small, large } = self.fields();
        let mut out = [0; HEAD_LEN];
        (out[0], out[1]) = (kind, ip);
        out[2..4].copy_from_slice(&code.to_be_bytes());
        out[4..8].copy_from_slice(&small.to_be_bytes());
        out[8..].copy_from_slice(&large.to_be_bytes());
        out
    }

    fn fields(&self) -> Fields {
        let of = |kind| Fields { kind, ip: 0, code: 0, small: 0, large: 0 };
        match *self {
            Self::Data { offset, length } => Fields { small: length, large: offset, ..of(DATA) },
            Self::Ack { received, room, all } => {
                Fields { code: u16::from(all), small: room, large: received, ..of(ACK) }
            }
            Self::Marker { offset, switches } => Fields { small: switches, large: offset, ..of(MARKER) },
            Self::Fin { offset } => Fields { large: offset, ..of(FIN) },
            Self::Wish { to, serial } => Fields { ip: ip_number(to), small: serial, ..of(WISH) },
            Self::Answer { serial, outcome, decision } => {
                Fields { code: outcome.number(), small: serial, large: decision.into(), ..of(ANSWER) }
            }
            Self::Gone { ip, generation } => Fields { ip: ip_number(ip), small: generation, ..of(GONE) },
            Self::Ping { nonce } => Fields { large: nonce, ..of(PING) },
            Self::Pong { nonce } => Fields { large: nonce, ..of(PONG) },
            Self::Pad { length } => Fields { small: length, ..of(PAD) },
            Self::Bye { reason } => Fields { code: reason.number(), ..of(BYE) },
        }
    }

    /// From bytes. What it accepts, [`Self::emit`] makes the same bytes of.
    pub fn parse(bytes: &[u8; HEAD_LEN]) -> Result<Self, RecordError> {
        let code = u16::from_be_bytes([bytes[2], bytes[3]]);
        let (small, large) = (u32_at(bytes, 4), u64_at(bytes, 8));
        let fields = Fields { kind: bytes[0], ip: bytes[1], code, small, large };
        let record = fields.meaning()?;
        if record.emit() == *bytes { Ok(record) } else { Err(RecordError::Reserved) }
    }
}

impl Fields {
    fn meaning(&self) -> Result<Record, RecordError> {
        let ip = || ip_from(self.ip).ok_or(RecordError::IpVersion);
        let offset = |most: u64| if self.large <= most { Ok(self.large) } else { Err(RecordError::Offset) };
        Ok(match self.kind {
            DATA | PAD if self.small == 0 || self.small > MAX_DATA => return Err(RecordError::Length),
            PAD => Record::Pad { length: self.small },
            DATA => Record::Data { offset: offset(MAX_OFFSET)?, length: self.small },
            ACK if self.code > 1 => return Err(RecordError::Code),
            ACK => Record::Ack { received: offset(MAX_OFFSET)?, room: self.small, all: self.code == 1 },
            MARKER => Record::Marker { offset: offset(MAX_OFFSET)?, switches: self.small },
            FIN => Record::Fin { offset: offset(MAX_OFFSET)? },
            WISH => Record::Wish { to: ip()?, serial: self.small },
            ANSWER => {
                let outcome = Answer::from_number(self.code).ok_or(RecordError::Code)?;
                // A decision beyond 32 bits is not what comes back from it.
                Record::Answer { serial: self.small, outcome, decision: self.large as u32 }
            }
            GONE => Record::Gone { ip: ip()?, generation: self.small },
            PING => Record::Ping { nonce: self.large },
            PONG => Record::Pong { nonce: self.large },
            BYE => Record::Bye { reason: Farewell::from_number(self.code).ok_or(RecordError::Code)? },
            _ => return Err(RecordError::Kind),
        })
    }
}

impl Answer {
    const ALL: [Self; 3] = [Self::Granted, Self::Crossed, Self::Held];

    fn number(self) -> u16 {
        match self {
            Self::Granted => 0,
            Self::Crossed => 1,
            Self::Held => 2,
        }
    }

    fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.number() == number)
    }
}

impl Farewell {
    const ALL: [Self; 3] = [Self::Finished, Self::Abandoned, Self::Violation];

    fn number(self) -> u16 {
        match self {
            Self::Finished => 0,
            Self::Abandoned => 1,
            Self::Violation => 2,
        }
    }

    fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.number() == number)
    }
}

const DATA: u8 = 1;
const ACK: u8 = 2;
const MARKER: u8 = 3;
const FIN: u8 = 4;
const WISH: u8 = 5;
const ANSWER: u8 = 6;
const GONE: u8 = 7;
const PING: u8 = 8;
const PONG: u8 = 9;
const BYE: u8 = 10;
const PAD: u8 = 11;
/// Sums of an offset and a length or a room stay far from what 64 bits can count.
const MAX_OFFSET: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were() {
        let mut records = vec![
            Record::Data { offset: 1 << 40, length: MAX_DATA },
            Record::Ack { received: 9, room: u32::MAX, all: true },
            Record::Ack { received: 0, room: 0, all: false },
            Record::Marker { offset: 77, switches: 3 },
            Record::Fin { offset: MAX_OFFSET },
            Record::Wish { to: IpVersion::V6, serial: 5 },
            Record::Gone { ip: IpVersion::V4, generation: 2 },
            Record::Ping { nonce: u64::MAX },
            Record::Pong { nonce: 1 },
            Record::Pad { length: 1 },
        ];
        records.extend(Answer::ALL.map(|outcome| Record::Answer { serial: 1, outcome, decision: 9 }));
        records.extend(Farewell::ALL.map(|reason| Record::Bye { reason }));
        for record in records {
            assert_eq!(Record::parse(&record.emit()), Ok(record));
        }
    }

    #[test]
    fn what_is_no_record_says_why() {
        let with = |record: Record, at: usize, byte: u8| {
            let mut bytes = record.emit();
            bytes[at] = byte;
            Record::parse(&bytes)
        };
        let data = Record::Data { offset: 0, length: 1 };
        assert_eq!(with(data, 0, 12), Err(RecordError::Kind));
        assert_eq!(with(data, 7, 0), Err(RecordError::Length));
        assert_eq!(with(data, 4, 1), Err(RecordError::Length));
        assert_eq!(with(data, 8, 0x80), Err(RecordError::Offset));
        assert_eq!(with(data, 1, 4), Err(RecordError::Reserved));
        assert_eq!(with(Record::Wish { to: IpVersion::V4, serial: 1 }, 1, 7), Err(RecordError::IpVersion));
        assert_eq!(with(Record::Ack { received: 0, room: 0, all: false }, 3, 2), Err(RecordError::Code));
    }
}
