//! What travels in UDP.
//!
//! ```text
//! 0      2      3      4          8         16         24
//! +------+------+------+----------+----------+----------+--------------------
//! | "Na" | kind | zero | flow     | sequence | sent at  | depends on the kind
//! +------+------+------+----------+----------+----------+--------------------
//! ```
//!
//! All big-endian; `sent at` is the sender's monotonic clock in nanoseconds. A flow is set up by
//! [`Kind::Knock`] and [`Kind::Enter`], each padded so that no answer is longer than what asked for
//! it: before an address has proven itself by repeating the cookie, a responder cannot be used to
//! amplify.

use netaware_units::{Mono, RemoteMono};

use crate::Token;

/// Bytes of the header that all kinds share. A datagram of a UDP stream may be this short.
pub const HEADER_LEN: usize = 24;
/// Bytes of [`Kind::Knock`] and [`Kind::Enter`].
pub const SETUP_LEN: usize = 64;
/// Bytes of the setup's answers.
pub const ANSWER_LEN: usize = 40;
/// Bytes of an echo's header with its stamps; shorter echoes do without (see [`crate::echo`]).
pub const ECHO_LEN: usize = 44;
/// Largest UDP payload over IPv4 (RFC 768, RFC 791); IPv6 without jumbograms allows 20 bytes more,
/// not used here.
pub const MAX_PAYLOAD: usize = 65_507;

const MAGIC: [u8; 2] = *b"Na";

/// What a datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Prober: I want to attach a flow; token and test follow.
    Knock = 1,
    /// Responder: then repeat this cookie.
    Cookie = 2,
    /// Prober: token, test and cookie follow.
    Enter = 3,
    /// Responder: your flow number is in the header.
    Entered = 4,
    /// Prober: answer this.
    EchoRequest = 5,
    /// Responder: the answer, its own stamps follow.
    EchoReply = 6,
    /// A datagram of a stream, either way.
    Data = 7,
    /// The stream has ended: `sequence` is the number of datagrams sent. Repeated a few times,
    /// never answered.
    End = 8,
}

/// Why a datagram is dropped. Counted by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DatagramError {
    /// Shorter than its kind needs.
    Short,
    /// Not ours.
    Foreign,
    /// Ours, from another version.
    UnknownKind,
}

/// The part that all kinds share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What for.
    pub kind: Kind,
    /// Chosen by the responder when the flow was set up; zero before.
    pub flow: u32,
    /// Counts from zero.
    pub seq: u64,
    /// The sender's monotonic clock, nanoseconds.
    pub sent_at: u64,
}

impl Header {
    /// Reads the first [`HEADER_LEN`] bytes.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, DatagramError> {
        let Some(header) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(DatagramError::Short);
        };
        if header[..2] != MAGIC {
            return Err(DatagramError::Foreign);
        }
        let kind = kind_of(header[2])?;
        Ok(Self {
            kind,
            flow: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            seq: be64(&header[8..16]),
            sent_at: be64(&header[16..24]),
        })
    }

    /// Writes the header to the start of `out`.
    ///
    /// # Panics
    /// When `out` is shorter than [`HEADER_LEN`]: lengths are checked where a plan is made.
    #[inline]
    pub fn emit(&self, out: &mut [u8]) {
        let out = &mut out[..HEADER_LEN];
        out[..2].copy_from_slice(&MAGIC);
        out[2] = self.kind as u8;
        out[3] = 0;
        out[4..8].copy_from_slice(&self.flow.to_be_bytes());
        out[8..16].copy_from_slice(&self.seq.to_be_bytes());
        out[16..24].copy_from_slice(&self.sent_at.to_be_bytes());
    }
}

fn kind_of(byte: u8) -> Result<Kind, DatagramError> {
    use Kind::{Cookie, Data, EchoReply, EchoRequest, End, Enter, Entered, Knock};
    [Knock, Cookie, Enter, Entered, EchoRequest, EchoReply, Data, End]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
        .ok_or(DatagramError::UnknownKind)
}

fn be64(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |chunk| u64::from_be_bytes(*chunk))
}

/// The middle of [`Kind::Knock`], [`Kind::Cookie`] and [`Kind::Enter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Session token (from the prober) or zero.
    pub token: Token,
    /// The test to attach to, in the header's sequence field.
    pub test: u32,
    /// The cookie asked for or repeated.
    pub cookie: Token,
}

impl Setup {
    /// Reads the body of a setup datagram whose header has been read.
    pub fn parse(header: &Header, bytes: &[u8]) -> Result<Self, DatagramError> {
        let needed = if matches!(header.kind, Kind::Knock | Kind::Enter) { SETUP_LEN } else { ANSWER_LEN };
        if bytes.len() < needed {
            return Err(DatagramError::Short);
        }
        let token_at = |at: usize| {
            let mut token = [0; 16];
            if let Some(bytes) = bytes.get(at..at + 16) {
                token.copy_from_slice(bytes);
            }
            Token(token)
        };
        let test = u32::try_from(header.seq).map_err(|_| DatagramError::Foreign)?;
        Ok(match header.kind {
            Kind::Knock | Kind::Enter => {
                Self { token: token_at(HEADER_LEN), test, cookie: token_at(HEADER_LEN + 16) }
            }
            _ => Self { token: Token::default(), test, cookie: token_at(HEADER_LEN) },
        })
    }

    /// A prober's [`Kind::Knock`] or [`Kind::Enter`].
    pub fn emit_request(&self, kind: Kind) -> [u8; SETUP_LEN] {
        let mut out = [0; SETUP_LEN];
        Header { kind, flow: 0, seq: u64::from(self.test), sent_at: 0 }.emit(&mut out);
        out[HEADER_LEN..HEADER_LEN + 16].copy_from_slice(&self.token.0);
        out[HEADER_LEN + 16..HEADER_LEN + 32].copy_from_slice(&self.cookie.0);
        out
    }

    /// A responder's [`Kind::Cookie`] or [`Kind::Entered`].
    pub fn emit_answer(&self, kind: Kind, flow: u32) -> [u8; ANSWER_LEN] {
        let mut out = [0; ANSWER_LEN];
        Header { kind, flow, seq: u64::from(self.test), sent_at: 0 }.emit(&mut out);
        out[HEADER_LEN..HEADER_LEN + 16].copy_from_slice(&self.cookie.0);
        out
    }
}

/// What a responder adds to an echo. Sequence and `sent_at` are the request's, so the prober needs
/// no table to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoStamps {
    /// When the request arrived there.
    pub received_at: RemoteMono,
    /// When the response was handed to the system there.
    pub answered_at: RemoteMono,
    /// TTL or hop limit the request arrived with; 0 = not known.
    pub ttl: u8,
    /// The receive stamp is the kernel's, not the program's.
    pub kernel_stamp: bool,
}

impl EchoStamps {
    /// Reads them from an [`Kind::EchoReply`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DatagramError> {
        let bytes = bytes.first_chunk::<ECHO_LEN>().ok_or(DatagramError::Short)?;
        Ok(Self {
            received_at: RemoteMono(be64(&bytes[24..32])),
            answered_at: RemoteMono(be64(&bytes[32..40])),
            ttl: bytes[40],
            kernel_stamp: bytes[41] & 1 == 1,
        })
    }

    /// Turns a request in place into its response: kind and stamps change, all else stays.
    ///
    /// # Errors
    /// A request without room for the stamps.
    pub fn answer(&self, request: &mut [u8]) -> Result<(), DatagramError> {
        let bytes = request.first_chunk_mut::<ECHO_LEN>().ok_or(DatagramError::Short)?;
        bytes[2] = Kind::EchoReply as u8;
        bytes[24..32].copy_from_slice(&self.received_at.0.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.answered_at.0.to_be_bytes());
        bytes[40] = self.ttl;
        bytes[41] = u8::from(self.kernel_stamp);
        Ok(())
    }
}

/// This host's clock as another host will see it.
pub fn as_remote(at: Mono) -> RemoteMono {
    RemoteMono(at.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_then_parse_is_identity() {
        let header = Header { kind: Kind::Data, flow: 0xdead_beef, seq: u64::MAX, sent_at: 42 };
        let mut out = [0; HEADER_LEN];
        header.emit(&mut out);
        assert_eq!(Header::parse(&out), Ok(header));

        let setup = Setup { token: Token([1; 16]), test: 9, cookie: Token([2; 16]) };
        let knock = setup.emit_request(Kind::Enter);
        assert_eq!(Setup::parse(&Header::parse(&knock).unwrap(), &knock), Ok(setup));
        let answer = setup.emit_answer(Kind::Cookie, 3);
        let parsed = Setup::parse(&Header::parse(&answer).unwrap(), &answer).unwrap();
        assert_eq!((parsed.cookie, parsed.test), (setup.cookie, 9));
    }

    #[test]
    fn no_answer_is_longer_than_its_question() {
        const { assert!(ANSWER_LEN <= SETUP_LEN) };
    }

    #[test]
    fn a_request_becomes_its_response_in_place() {
        let mut bytes = [7; 64];
        Header { kind: Kind::EchoRequest, flow: 1, seq: 5, sent_at: 6 }.emit(&mut bytes);
        let stamps = EchoStamps {
            received_at: RemoteMono(10),
            answered_at: RemoteMono(11),
            ttl: 63,
            kernel_stamp: true,
        };
        stamps.answer(&mut bytes).unwrap();
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.kind, header.seq, header.sent_at), (Kind::EchoReply, 5, 6));
        assert_eq!(EchoStamps::parse(&bytes), Ok(stamps));
        assert_eq!(bytes[ECHO_LEN], 7);
    }

    #[test]
    fn short_and_foreign_datagrams_are_told_apart() {
        assert_eq!(Header::parse(b"Na"), Err(DatagramError::Short));
        assert_eq!(Header::parse(&[0; 40]), Err(DatagramError::Foreign));
        let mut bytes = [0; 40];
        bytes[..2].copy_from_slice(b"Na");
        bytes[2] = 200;
        assert_eq!(Header::parse(&bytes), Err(DatagramError::UnknownKind));
    }
}
