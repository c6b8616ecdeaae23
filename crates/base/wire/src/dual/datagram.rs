//! What travels in UDP between two ends that use both IP versions: a head of 24 bytes, and a body
//! that the kind gives.
//!
//! ```text
//!  0 "nd" (2)   2 framing version and kind   3 IP version   4 sequence (4)   8 session (8)   16 sent at (4)   20 number (4)
//!
//!  kind       version  longest   body from byte 24
//!  1 hello       0       48      lowest and highest version, 1 new or 2 joins, zero (5), cookie (16)
//!  2 cookie      0       40      cookie (16)
//!  3 welcome     0       32      version chosen, zero (7)
//!  4 refused     0       32      reason, zero (7)
//!  5 unknown     0       24
//!  6 data        1      65507    the application's bytes
//!  7 probe       1       64      see [`Probe`]
//!  8 bye         1       24
//! ```
//!
//! All numbers are big endian. Kinds of version 0 are the same in all versions. No answer is longer
//! than what it answers: whoever forges an address gains nothing by having it answered.
//! docs/dual-stack-datagrams.md has the meaning.

use netaware_record::IpVersion;

use super::opening::{ip_from, ip_number, u32_at, u64_at};
use super::{Join, Refusal};
use crate::Token;
use crate::datagram::MAX_PAYLOAD;

/// Bytes of the head of all kinds.
pub const DATAGRAM_HEAD_LEN: usize = 24;
/// Bytes of a hello.
pub const HELLO_LEN: usize = 48;
/// Bytes of the longest answer to a hello.
pub const COOKIE_LEN: usize = 40;
/// Bytes of a probe.
pub const PROBE_LEN: usize = 64;
/// The most bytes of an application's datagram: what UDP over IPv4 carries, without the head.
pub const MAX_DATAGRAM: usize = MAX_PAYLOAD - DATAGRAM_HEAD_LEN;
/// The version of framing of datagrams spoken here.
pub const DATAGRAM_VERSION: u8 = 1;

/// What a datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DatagramKind {
    /// The opener wants a session over this version of IP, or wants it to go on from this address.
    Hello = 1,
    /// Then repeat this, from the same address.
    Cookie = 2,
    /// The session goes over this version now.
    Welcome = 3,
    /// It does not.
    Refused = 4,
    /// No such session here, or not from that address. Never answered.
    Unknown = 5,
    /// Of the application.
    Data = 6,
    /// What came, and whether anything does.
    Probe = 7,
    /// The sender has ended the session.
    Bye = 8,
}

/// What all kinds begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DatagramHead {
    /// What for.
    pub kind: DatagramKind,
    /// Over which version of IP, as the opener believes: a translator in between may make it
    /// another one at the far end.
    pub ip: IpVersion,
    /// Low bits of how many data, probes and byes its sender has sent over this version, this one
    /// included; 0 in other kinds.
    pub sequence: u32,
    /// The session, drawn at random by the opener. Whoever holds it may take part.
    pub session: u64,
    /// Microseconds of the sender's clock, from an arbitrary beginning, modulo 2^32; 0 in kinds
    /// without a sequence.
    pub sent_at: u32,
    /// Of data: low bits of how many the application has sent over both versions, this one
    /// included; otherwise 0.
    pub number: u32,
}

/// A whole datagram, but for the bytes of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramBody {
    /// Asks for a session.
    Hello {
        /// Lowest and highest framing version that the opener speaks.
        speaks: (u8, u8),
        /// Whether it may make the session, or only go on with it.
        join: Join,
        /// As it came; zero at first.
        cookie: Token,
    },
    /// Asks for the address to be proven.
    Cookie(Token),
    /// Grants.
    Welcome {
        /// Framing version for this session.
        version: u8,
    },
    /// Does not.
    Refused(Refusal),
    /// Knows nothing of it.
    Unknown,
    /// Bytes of the application follow the head.
    Data,
    /// Reports.
    Probe(Probe),
    /// Ends.
    Bye,
}

/// What one end has seen, and what it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Probe {
    /// The last datagram that came over this version: its `sent_at`, and the microseconds that this
    /// end has had it. `None`: nothing came lately.
    pub echo: Option<(u32, u32)>,
    /// How much longer those that came lately took than the quickest one, microseconds.
    pub delay: Option<u32>,
    /// What came over IPv4 and over IPv6.
    pub came: [Came; 2],
    /// Its sender wants an answer now.
    pub prompt: bool,
    /// Both directions should go over this version; with the number of that wish, rising.
    pub wish: Option<(IpVersion, u32)>,
    /// What became of the peer's wish of that number.
    pub answer: Option<(u32, WishAnswer)>,
}

/// What came over one version; low bits of both counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Came {
    /// Highest sequence.
    pub highest: u32,
    /// Different datagrams.
    pub received: u32,
}

/// What becomes of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WishAnswer {
    /// The peer's datagrams go there, too.
    Granted,
    /// The peer wanted the other one at the same time, and its wish counts.
    Crossed,
    /// The peer's application holds the session where it is.
    Held,
    /// That version does not work for the peer.
    Down,
}

/// Why bytes are no datagram of a session; counted by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DatagramFault {
    /// Shorter or longer than its kind is.
    Length,
    /// Something else.
    Foreign,
    /// A framing version that was not agreed on.
    Version,
    /// No such kind.
    Kind,
    /// Neither 4 nor 6.
    IpVersion,
    /// No such code.
    Code,
    /// Bytes that must be zero are not.
    Reserved,
}

impl std::fmt::Display for DatagramFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Length => "a datagram of the wrong length",
            Self::Foreign => "no datagram of this framing",
            Self::Version => "another version of the framing",
            Self::Kind => "no such kind of datagram",
            Self::IpVersion => "an IP version that is neither 4 nor 6",
            Self::Code => "an unknown code",
            Self::Reserved => "a field that must be zero is not",
        })
    }
}

impl std::error::Error for DatagramFault {}

impl DatagramKind {
    const ALL: [Self; 8] = [
        Self::Hello,
        Self::Cookie,
        Self::Welcome,
        Self::Refused,
        Self::Unknown,
        Self::Data,
        Self::Probe,
        Self::Bye,
    ];

    /// Whether it is the same in all versions of the framing; those have neither sequence nor time.
    pub fn is_set_up(self) -> bool {
        matches!(self, Self::Hello | Self::Cookie | Self::Welcome | Self::Refused | Self::Unknown)
    }

    fn version(self) -> u8 {
        if self.is_set_up() { 0 } else { DATAGRAM_VERSION }
    }

    fn fits(self, length: usize) -> bool {
        match self {
            Self::Hello => length == HELLO_LEN,
            Self::Cookie => length == COOKIE_LEN,
            Self::Welcome | Self::Refused => length == WELCOME_LEN,
            Self::Unknown | Self::Bye => length == DATAGRAM_HEAD_LEN,
            Self::Probe => length == PROBE_LEN,
            Self::Data => length <= MAX_PAYLOAD,
        }
    }
}

impl DatagramHead {
    /// Of a kind without sequence and time.
    pub fn set_up(kind: DatagramKind, ip: IpVersion, session: u64) -> Self {
        Self { kind, ip, sequence: 0, session, sent_at: 0, number: 0 }
    }

    /// As bytes.
    pub fn emit(&self) -> [u8; DATAGRAM_HEAD_LEN] {
        let mut out = [0; DATAGRAM_HEAD_LEN];
        out[..2].copy_from_slice(MAGIC);
        out[2] = (self.kind.version() << 4) | self.kind as u8;
        out[3] = ip_number(self.ip);
        out[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        out[8..16].copy_from_slice(&self.session.to_be_bytes());
        out[16..20].copy_from_slice(&self.sent_at.to_be_bytes());
        out[20..].copy_from_slice(&self.number.to_be_bytes());
        out
    }

    /// Reads head and body of a whole datagram. The application's bytes are those after the head.
    ///
    /// # Errors
    /// It is none, with the reason.
    pub fn parse(bytes: &[u8]) -> Result<(Self, DatagramBody), DatagramFault> {
        if bytes.len() < DATAGRAM_HEAD_LEN {
            return Err(DatagramFault::Length);
        }
        if &bytes[..2] != MAGIC {
            return Err(DatagramFault::Foreign);
        }
        let (version, kind) = (bytes[2] >> 4, bytes[2] & 15);
        if version > DATAGRAM_VERSION {
            return Err(DatagramFault::Version);
        }
        let kind = DatagramKind::ALL.into_iter().find(|it| *it as u8 == kind && it.version() == version);
        let kind = kind.ok_or(DatagramFault::Kind)?;
        if !kind.fits(bytes.len()) {
            return Err(DatagramFault::Length);
        }
        let head = Self {
            kind,
            ip: ip_from(bytes[3]).ok_or(DatagramFault::IpVersion)?,
            sequence: u32_at(bytes, 4),
            session: u64_at(bytes, 8),
            sent_at: u32_at(bytes, 16),
            number: u32_at(bytes, 20),
        };
        let unused = kind.is_set_up() && (head.sequence, head.sent_at) != (0, 0);
        if unused || (kind != DatagramKind::Data && head.number != 0) {
            return Err(DatagramFault::Reserved);
        }
        Ok((head, DatagramBody::parse(kind, &bytes[DATAGRAM_HEAD_LEN..])?))
    }
}

impl DatagramBody {
    /// What it is for.
    pub fn kind(&self) -> DatagramKind {
        match self {
            Self::Hello { .. } => DatagramKind::Hello,
            Self::Cookie(_) => DatagramKind::Cookie,
            Self::Welcome { .. } => DatagramKind::Welcome,
            Self::Refused(_) => DatagramKind::Refused,
            Self::Unknown => DatagramKind::Unknown,
            Self::Data => DatagramKind::Data,
            Self::Probe(_) => DatagramKind::Probe,
            Self::Bye => DatagramKind::Bye,
        }
    }

    /// Writes it with its head, whose kind becomes this one's; how many bytes that are,
    /// [`PROBE_LEN`] at most.
    pub fn emit(&self, head: DatagramHead, out: &mut [u8; PROBE_LEN]) -> usize {
        *out = [0; PROBE_LEN];
        let (start, body) = out.split_at_mut(DATAGRAM_HEAD_LEN);
        start.copy_from_slice(&DatagramHead { kind: self.kind(), ..head }.emit());
        match self {
            Self::Hello { speaks, join, cookie } => {
                (body[0], body[1]) = *speaks;
                body[2] = *join as u8 + 1;
                body[8..24].copy_from_slice(&cookie.0);
                HELLO_LEN
            }
            Self::Cookie(cookie) => {
                body[..16].copy_from_slice(&cookie.0);
                COOKIE_LEN
            }
            Self::Welcome { version } => {
                body[0] = *version;
                WELCOME_LEN
            }
            Self::Refused(why) => {
                body[0] = why.number();
                WELCOME_LEN
            }
            Self::Unknown | Self::Data | Self::Bye => DATAGRAM_HEAD_LEN,
            Self::Probe(probe) => {
                probe.emit(body);
                PROBE_LEN
            }
        }
    }

    /// The length of `body` has been looked at.
    fn parse(kind: DatagramKind, body: &[u8]) -> Result<Self, DatagramFault> {
        let zero = |bytes: &[u8]| {
            if bytes.iter().all(|byte| *byte == 0) { Ok(()) } else { Err(DatagramFault::Reserved) }
        };
        let token = |at: usize| {
            let mut token = [0; 16];
            token.copy_from_slice(&body[at..at + 16]);
            Token(token)
        };
        Ok(match kind {
            DatagramKind::Hello => {
                let speaks = (body[0], body[1]);
                if speaks.0 == 0 || speaks.0 > speaks.1 {
                    return Err(DatagramFault::Version);
                }
                let join = match body[2] {
                    1 => Join::New,
                    2 => Join::Existing,
                    _ => return Err(DatagramFault::Code),
                };
                zero(&body[3..8])?;
                Self::Hello { speaks, join, cookie: token(8) }
            }
            DatagramKind::Cookie => Self::Cookie(token(0)),
            DatagramKind::Welcome => {
                zero(&body[1..])?;
                if body[0] == 0 {
                    return Err(DatagramFault::Version);
                }
                Self::Welcome { version: body[0] }
            }
            DatagramKind::Refused => {
                zero(&body[1..])?;
                Self::Refused(Refusal::from_number(body[0]).ok_or(DatagramFault::Code)?)
            }
            DatagramKind::Unknown => Self::Unknown,
            DatagramKind::Data => Self::Data,
            DatagramKind::Probe => Self::Probe(Probe::parse(body)?),
            DatagramKind::Bye => Self::Bye,
        })
    }

    /// The framing version for both ends of a hello; `None` where there is none.
    pub fn agreed(speaks: (u8, u8)) -> Option<u8> {
        (speaks.0..=speaks.1).contains(&DATAGRAM_VERSION).then_some(DATAGRAM_VERSION)
    }
}

impl Probe {
    /// ```text
    ///  0 echo (4)   4 held (4)   8 delay (4)
    /// 12 IPv4: highest (4)  16 received (4)     20 IPv6: highest (4)  24 received (4)
    /// 28 prompt   29 wish: 4, 6 or 0   30 answer   31 zero   32 number of the wish (4)   36 number answered (4)
    /// ```
    fn emit(&self, body: &mut [u8]) {
        let (echo, held) = self.echo.unwrap_or((0, NONE));
        let [v4, v6] = self.came;
        let (wish, serial) = self.wish.map_or((0, 0), |(ip, serial)| (ip_number(ip), serial));
        let (answered, answer) = self.answer.map_or((0, 0), |(serial, answer)| (serial, answer.number()));
        let words =
            [echo, held, self.delay.unwrap_or(NONE), v4.highest, v4.received, v6.highest, v6.received];
        for (at, word) in words.into_iter().enumerate() {
            body[at * 4..at * 4 + 4].copy_from_slice(&word.to_be_bytes());
        }
        body[28..31].copy_from_slice(&[u8::from(self.prompt), wish, answer]);
        body[32..36].copy_from_slice(&serial.to_be_bytes());
        body[36..40].copy_from_slice(&answered.to_be_bytes());
    }

    fn parse(body: &[u8]) -> Result<Self, DatagramFault> {
        let word = |at| u32_at(body, at);
        let some = |at| Some(word(at)).filter(|word| *word != NONE);
        let came = |at| Came { highest: word(at), received: word(at + 4) };
        let prompt = match body[28] {
            0 => false,
            1 => true,
            _ => return Err(DatagramFault::Code),
        };
        let wish = match (body[29], word(32)) {
            (0, 0) => None,
            (0, _) | (_, 0) => return Err(DatagramFault::Reserved),
            (ip, serial) => Some((ip_from(ip).ok_or(DatagramFault::IpVersion)?, serial)),
        };
        let answer = match (body[30], word(36)) {
            (0, 0) => None,
            (0, _) | (_, 0) => return Err(DatagramFault::Reserved),
            (code, serial) => Some((serial, WishAnswer::from_number(code).ok_or(DatagramFault::Code)?)),
        };
        if body[31] != 0 || (word(0) != 0 && word(4) == NONE) {
            return Err(DatagramFault::Reserved);
        }
        let echo = some(4).map(|held| (word(0), held));
        Ok(Self { echo, delay: some(8), came: [came(12), came(20)], prompt, wish, answer })
    }
}

impl WishAnswer {
    const ALL: [Self; 4] = [Self::Granted, Self::Crossed, Self::Held, Self::Down];

    fn number(self) -> u8 {
        self as u8 + 1
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.number() == number)
    }
}

const MAGIC: &[u8; 2] = b"nd";
const WELCOME_LEN: usize = 32;
/// A time that is not known.
const NONE: u32 = u32::MAX;

const _: () = assert!(COOKIE_LEN <= HELLO_LEN && WELCOME_LEN <= HELLO_LEN, "answers are not longer");

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: DatagramKind) -> DatagramHead {
        let set_up = DatagramHead::set_up(kind, IpVersion::V6, 0x0102_0304_0506_0708);
        match kind {
            _ if kind.is_set_up() => set_up,
            DatagramKind::Data => DatagramHead { sequence: 9, sent_at: 77, number: 8, ..set_up },
            _ => DatagramHead { sequence: 9, sent_at: 77, ..set_up },
        }
    }

    fn probe() -> Probe {
        let came = [Came { highest: 10, received: 9 }, Came { highest: u32::MAX, received: 3 }];
        let wish = Some((IpVersion::V4, 3));
        let answer = Some((u32::MAX, WishAnswer::Held));
        Probe { echo: Some((5, 6)), delay: Some(0), came, prompt: true, wish, answer }
    }

    #[test]
    fn all_kinds_come_back_as_they_were() {
        let bodies = [
            DatagramBody::Hello { speaks: (1, 4), join: Join::Existing, cookie: Token([3; 16]) },
            DatagramBody::Cookie(Token(*b"0123456789abcdef")),
            DatagramBody::Welcome { version: 1 },
            DatagramBody::Refused(Refusal::Busy),
            DatagramBody::Unknown,
            DatagramBody::Data,
            DatagramBody::Probe(Probe::default()),
            DatagramBody::Probe(probe()),
            DatagramBody::Bye,
        ];
        for body in bodies {
            let mut out = [0xff; PROBE_LEN];
            let head = head(body.kind());
            let length = body.emit(head, &mut out);
            assert_eq!(DatagramHead::parse(&out[..length]), Ok((head, body)));
        }
    }

    #[test]
    fn what_is_no_datagram_says_why() {
        let mut bytes = [0; PROBE_LEN];
        let emitted = DatagramBody::Probe(probe()).emit(head(DatagramKind::Probe), &mut bytes);
        assert_eq!(emitted, PROBE_LEN);
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes;
            bytes[at] = byte;
            DatagramHead::parse(&bytes).unwrap_err()
        };
        let rows = [
            (0, b'N', DatagramFault::Foreign),
            (2, 0x27, DatagramFault::Version),
            (2, 0x19, DatagramFault::Kind),
            (2, 0x07, DatagramFault::Kind),
            (2, 0x01, DatagramFault::Length),
            (3, 5, DatagramFault::IpVersion),
            (20, 1, DatagramFault::Reserved),
            (52, 2, DatagramFault::Code),
            (53, 5, DatagramFault::IpVersion),
            (53, 0, DatagramFault::Reserved),
            (54, 9, DatagramFault::Code),
            (55, 1, DatagramFault::Reserved),
        ];
        for (at, byte, why) in rows {
            assert_eq!(with(at, byte), why, "byte {at} is {byte}");
        }
        assert_eq!(DatagramHead::parse(&bytes[..23]), Err(DatagramFault::Length));
        assert_eq!(DatagramHead::parse(&bytes[..63]), Err(DatagramFault::Length));
    }

    #[test]
    fn a_version_is_agreed_on_only_where_both_speak_it() {
        assert_eq!(DatagramBody::agreed((1, 9)), Some(1));
        assert_eq!(DatagramBody::agreed((2, 9)), None);
    }
}
