//! The first bytes of a connection.
//!
//! ```text
//! Opening (48 bytes)                          Welcome (24 bytes)
//!  0 magic "nadual"                            0 magic "nadual"
//!  6 lowest framing version                    6 framing version chosen, 0 where refused
//!  7 highest framing version                   7 0, or why it was refused
//!  8 1 new stream, 2 joins a stream            8 room (4)
//!  9 IP version, 4 or 6                       12 zero (4)
//! 10 zero (2)                                 16 received (8)
//! 12 generation (4)
//! 16 room (4)
//! 20 zero (4)
//! 24 received (8)
//! 32 stream (16)
//! ```

use netaware_record::IpVersion;

use super::FRAMING_VERSION;
use crate::Token;

/// Bytes of an [`Opening`].
pub const OPENING_LEN: usize = 48;
/// Bytes of a [`Welcome`].
pub const WELCOME_LEN: usize = 24;

/// What the connecting side says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Lowest and highest framing version that it speaks.
    pub speaks: (u8, u8),
    /// Whether the connection makes a stream or joins one.
    pub join: Join,
    /// The version of IP that it believes to use. A translator in between may make it another one
    /// at the far end, so this, not the socket's address, names the connection within the stream.
    pub ip: IpVersion,
    /// Which connection of this IP version it is: 1 for the first, then rising.
    pub generation: u32,
    /// Bytes that the sender can keep beyond those that its application has read.
    pub room: u32,
    /// Bytes of the other direction that the sender has without a gap.
    pub received: u64,
    /// The stream, drawn at random by the opener. Whoever holds it may join.
    pub stream: Token,
}

/// What a connection is to its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// Its first.
    New,
    /// Another one.
    Existing,
}

/// What the accepting side says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Welcome {
    /// The connection belongs to the stream.
    Accepted {
        /// Framing version for this stream.
        version: u8,
        /// As in the opening.
        room: u32,
        /// As in the opening.
        received: u64,
    },
    /// It does not, and is closed.
    Refused(Refusal),
}

/// Why a connection is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No framing version that both speak.
    Version,
    /// No such stream here.
    Stream,
    /// A connection of that IP version and a later generation is there already.
    Generation,
    /// The acceptor takes no more streams.
    Busy,
}

/// Why bytes are no opening or welcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpeningError {
    /// The magic is not there: something else connected.
    Magic,
    /// Neither a new stream nor a joined one.
    Join,
    /// Neither 4 nor 6.
    IpVersion,
    /// Version range that is empty or begins with 0, or a version that was not offered.
    Version,
    /// A reason that is not known.
    Refusal,
    /// Bytes that must be zero are not.
    Reserved,
}

impl std::fmt::Display for OpeningError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Magic => "the other end does not speak the framing of dual-stack streams",
            Self::Join => "the connection says neither that it makes a stream nor that it joins one",
            Self::IpVersion => "the connection names an IP version that is neither 4 nor 6",
            Self::Version => "the framing versions offered make no sense",
            Self::Refusal => "the connection was refused for an unknown reason",
            Self::Reserved => "bytes that must be zero are not",
        })
    }
}

impl std::error::Error for OpeningError {}

impl Opening {
    /// As bytes.
    pub fn emit(&self) -> [u8; OPENING_LEN] {
        let mut out = [0; OPENING_LEN];
        out[..6].copy_from_slice(MAGIC);
        (out[6], out[7]) = self.speaks;
        out[8] = match self.join {
            Join::New => NEW,
            Join::Existing => EXISTING,
        };
        out[9] = ip_number(self.ip);
        out[12..16].copy_from_slice(&self.generation.to_be_bytes());
        out[16..20].copy_from_slice(&self.room.to_be_bytes());
        out[24..32].copy_from_slice(&self.received.to_be_bytes());
        out[32..].copy_from_slice(&self.stream.0);
        out
    }

    /// From bytes.
    pub fn parse(bytes: &[u8; OPENING_LEN]) -> Result<Self, OpeningError> {
        if &bytes[..6] != MAGIC {
            return Err(OpeningError::Magic);
        }
        let speaks = (bytes[6], bytes[7]);
        if speaks.0 == 0 || speaks.0 > speaks.1 {
            return Err(OpeningError::Version);
        }
        let join = match bytes[8] {
            NEW => Join::New,
            EXISTING => Join::Existing,
            _ => return Err(OpeningError::Join),
        };
        let ip = ip_from(bytes[9]).ok_or(OpeningError::IpVersion)?;
        if bytes[10..12] != [0; 2] || bytes[20..24] != [0; 4] {
            return Err(OpeningError::Reserved);
        }
        let mut stream = [0; 16];
        stream.copy_from_slice(&bytes[32..]);
        let (generation, room) = (u32_at(bytes, 12), u32_at(bytes, 16));
        let received = u64_at(bytes, 24);
        Ok(Self { speaks, join, ip, generation, room, received, stream: Token(stream) })
    }

    /// The framing version for both; `None` where there is none.
    pub fn agreed(&self) -> Option<u8> {
        (self.speaks.0..=self.speaks.1).contains(&FRAMING_VERSION).then_some(FRAMING_VERSION)
    }
}

impl Welcome {
    /// As bytes.
    pub fn emit(&self) -> [u8; WELCOME_LEN] {
        let mut out = [0; WELCOME_LEN];
        out[..6].copy_from_slice(MAGIC);
        match self {
            Self::Accepted { version, room, received } => {
                out[6] = *version;
                out[8..12].copy_from_slice(&room.to_be_bytes());
                out[16..].copy_from_slice(&received.to_be_bytes());
            }
            Self::Refused(why) => out[7] = why.number(),
        }
        out
    }

    /// From bytes, as an answer to an opening that offered `speaks`.
    pub fn parse(bytes: &[u8; WELCOME_LEN], speaks: (u8, u8)) -> Result<Self, OpeningError> {
        if &bytes[..6] != MAGIC {
            return Err(OpeningError::Magic);
        }
        if bytes[12..16] != [0; 4] {
            return Err(OpeningError::Reserved);
        }
        if bytes[7] != 0 {
            return Refusal::from_number(bytes[7]).map(Self::Refused).ok_or(OpeningError::Refusal);
        }
        if !(speaks.0..=speaks.1).contains(&bytes[6]) {
            return Err(OpeningError::Version);
        }
        Ok(Self::Accepted { version: bytes[6], room: u32_at(bytes, 8), received: u64_at(bytes, 16) })
    }
}

impl Refusal {
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Version => 1,
            Self::Stream => 2,
            Self::Generation => 3,
            Self::Busy => 4,
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        [Self::Version, Self::Stream, Self::Generation, Self::Busy]
            .into_iter()
            .find(|it| it.number() == number)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Version => "the other end speaks another version of the framing",
            Self::Stream => "the other end knows no such stream",
            Self::Generation => "the other end has a later connection of this IP version",
            Self::Busy => "the other end takes no more streams",
        })
    }
}

pub(super) fn ip_number(ip: IpVersion) -> u8 {
    match ip {
        IpVersion::V4 => 4,
        IpVersion::V6 => 6,
    }
}

pub(super) fn ip_from(number: u8) -> Option<IpVersion> {
    match number {
        4 => Some(IpVersion::V4),
        6 => Some(IpVersion::V6),
        _ => None,
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    (u64::from(u32_at(bytes, at)) << 32) | u64::from(u32_at(bytes, at + 4))
}

const MAGIC: &[u8; 6] = b"nadual";
const NEW: u8 = 1;
const EXISTING: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn opening() -> Opening {
        Opening {
            speaks: (1, 3),
            join: Join::Existing,
            ip: IpVersion::V6,
            generation: 7,
            room: 1 << 20,
            received: 0x0102_0304_0506_0708,
            stream: Token(*b"0123456789abcdef"),
        }
    }

    #[test]
    fn openings_come_back_as_they_were() {
        assert_eq!(Opening::parse(&opening().emit()), Ok(opening()));
        assert_eq!(opening().agreed(), Some(1));
        assert_eq!(Opening { speaks: (2, 3), ..opening() }.agreed(), None);
    }

    #[test]
    fn welcomes_come_back_as_they_were() {
        let accepted = Welcome::Accepted { version: 1, room: 9, received: 1 << 40 };
        assert_eq!(Welcome::parse(&accepted.emit(), (1, 1)), Ok(accepted));
        assert_eq!(Welcome::parse(&accepted.emit(), (2, 2)), Err(OpeningError::Version));
        for why in [Refusal::Version, Refusal::Stream, Refusal::Generation, Refusal::Busy] {
            assert_eq!(Welcome::parse(&Welcome::Refused(why).emit(), (1, 1)), Ok(Welcome::Refused(why)));
        }
    }

    #[test]
    fn what_is_no_opening_says_why() {
        let with = |at: usize, byte: u8| {
            let mut bytes = opening().emit();
            bytes[at] = byte;
            Opening::parse(&bytes)
        };
        assert_eq!(with(0, b'G'), Err(OpeningError::Magic));
        assert_eq!(with(6, 0), Err(OpeningError::Version));
        assert_eq!(with(6, 4), Err(OpeningError::Version));
        assert_eq!(with(8, 3), Err(OpeningError::Join));
        assert_eq!(with(9, 5), Err(OpeningError::IpVersion));
        assert_eq!(with(22, 1), Err(OpeningError::Reserved));
    }
}
