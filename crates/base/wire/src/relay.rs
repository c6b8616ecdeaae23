//! What two relays say to each other at the start of a stream, before it carries a connection of a
//! local program.
//!
//! ```text
//!  near (local programs connect to it)        far (connects to servers)
//!        │◄──────────── Greeting: nonce, whether a key is asked for
//!        ├─ Request: nonce, proof, service ───────►│ connects to what its own command line says
//!        │◄────────── Answer: proof, connected or why not
//!        │◄──────────── bytes both ways ──────────►│
//! ```
//!
//! The request names a service and never an address: where the far relay connects to is for its
//! owner to say. Numbers are single bytes; lengths are fixed but for the service's name. What is
//! wrong ends the stream.

use std::fmt;

use crate::Token;

/// Spoken here.
pub const RELAY_VERSION: u8 = 1;
/// Bytes of a greeting.
pub const GREETING_LEN: usize = 24;
/// Bytes of a request before the name.
pub const REQUEST_LEN: usize = 82;
/// Bytes of an answer.
pub const ANSWER_LEN: usize = 66;
/// The longest name of a service, bytes.
pub const MAX_SERVICE: usize = 64;

const MAGIC: [u8; 6] = *b"narely";
const PROOF_LEN: usize = 64;
const KEY_ASKED: u8 = 1;

/// The first words of the far relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// A proof is wanted.
    pub key_asked: bool,
    /// Fresh.
    pub nonce: Token,
}

/// What the near relay wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Fresh.
    pub nonce: Token,
    /// By [`crate::proof::relay_near`]; empty without a key.
    pub proof: String,
    /// Which of the far relay's services; empty is the one without a name.
    pub service: String,
}

/// The head of a request: what [`Self::finish`] needs besides the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    nonce: Token,
    proof: String,
    /// Bytes of the name that follow, at most [`MAX_SERVICE`].
    pub name_len: usize,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Bytes follow.
    Connected,
    /// The proof is wrong or missing.
    NoProof,
    /// There is no service of that name.
    NoService,
    /// The server refuses connections.
    Refused,
    /// The server cannot be reached.
    Unreachable,
    /// The server does not answer.
    TimedOut,
    /// As many connections as the far relay takes, or it is about to end.
    Busy,
}

/// The far relay's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What came of it.
    pub verdict: Verdict,
    /// By [`crate::proof::relay_far`]; empty without a key.
    pub proof: String,
}

/// Why bytes are none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayError {
    /// It is no relay.
    Magic,
    /// It speaks another version.
    Version(u8),
    /// The name is longer than [`MAX_SERVICE`] or no UTF-8.
    Name,
    /// The proof is no text of hexadecimal digits.
    Proof,
    /// No verdict has this number.
    Verdict(u8),
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("the other end is no relay"),
            Self::Version(theirs) => {
                write!(
                    f,
                    "the other end speaks version {theirs} of the relay protocol, this one {RELAY_VERSION}"
                )
            }
            Self::Name => f.write_str("the name of the service is too long or no text"),
            Self::Proof => f.write_str("the proof is no proof"),
            Self::Verdict(number) => write!(f, "the other end's answer is unknown: {number}"),
        }
    }
}

impl std::error::Error for RelayError {}

impl Greeting {
    /// As it travels.
    pub fn emit(&self) -> [u8; GREETING_LEN] {
        let mut bytes = [0; GREETING_LEN];
        bytes[..6].copy_from_slice(&MAGIC);
        bytes[6] = RELAY_VERSION;
        bytes[7] = if self.key_asked { KEY_ASKED } else { 0 };
        bytes[8..].copy_from_slice(&self.nonce.0);
        bytes
    }

    /// # Errors
    /// It is none, or of another version.
    pub fn parse(bytes: &[u8; GREETING_LEN]) -> Result<Self, RelayError> {
        if bytes[..6] != MAGIC {
            return Err(RelayError::Magic);
        }
        version(bytes[6])?;
        Ok(Self { key_asked: bytes[7] & KEY_ASKED != 0, nonce: token(&bytes[8..]) })
    }
}

impl Request {
    /// As it travels.
    ///
    /// # Errors
    /// The name is too long.
    pub fn emit(&self) -> Result<Vec<u8>, RelayError> {
        let name = self.service.as_bytes();
        if name.len() > MAX_SERVICE {
            return Err(RelayError::Name);
        }
        let mut bytes = vec![RELAY_VERSION, name.len() as u8];
        bytes.extend(self.nonce.0);
        bytes.extend(emit_proof(&self.proof));
        bytes.extend(name);
        Ok(bytes)
    }
}

impl RequestHead {
    /// # Errors
    /// Another version, too long a name, or no proof.
    pub fn parse(bytes: &[u8; REQUEST_LEN]) -> Result<Self, RelayError> {
        version(bytes[0])?;
        let name_len = usize::from(bytes[1]);
        if name_len > MAX_SERVICE {
            return Err(RelayError::Name);
        }
        Ok(Self { nonce: token(&bytes[2..18]), proof: parse_proof(&bytes[18..])?, name_len })
    }

    /// With the name, [`Self::name_len`] bytes.
    ///
    /// # Errors
    /// The name is no UTF-8.
    pub fn finish(self, name: &[u8]) -> Result<Request, RelayError> {
        let service = str::from_utf8(name).map_err(|_| RelayError::Name)?.to_owned();
        Ok(Request { nonce: self.nonce, proof: self.proof, service })
    }
}

impl Answer {
    /// As it travels.
    pub fn emit(&self) -> [u8; ANSWER_LEN] {
        let mut bytes = [0; ANSWER_LEN];
        bytes[0] = RELAY_VERSION;
        bytes[1] = VERDICTS.iter().position(|it| *it == self.verdict).unwrap_or_default() as u8;
        bytes[2..].copy_from_slice(&emit_proof(&self.proof));
        bytes
    }

    /// # Errors
    /// Another version, or a verdict that there is not.
    pub fn parse(bytes: &[u8; ANSWER_LEN]) -> Result<Self, RelayError> {
        version(bytes[0])?;
        let verdict = *VERDICTS.get(usize::from(bytes[1])).ok_or(RelayError::Verdict(bytes[1]))?;
        Ok(Self { verdict, proof: parse_proof(&bytes[2..])? })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connected => "connected",
            Self::NoProof => "the far relay does not take this key",
            Self::NoService => "the far relay has no service of that name",
            Self::Refused => "the server refuses the connection",
            Self::Unreachable => "the far relay cannot reach the server",
            Self::TimedOut => "the server does not answer the far relay",
            Self::Busy => "the far relay takes no more connections now",
        })
    }
}

/// A verdict travels as its place in this row.
const VERDICTS: [Verdict; 7] = [
    Verdict::Connected,
    Verdict::NoProof,
    Verdict::NoService,
    Verdict::Refused,
    Verdict::Unreachable,
    Verdict::TimedOut,
    Verdict::Busy,
];

fn version(theirs: u8) -> Result<(), RelayError> {
    if theirs == RELAY_VERSION { Ok(()) } else { Err(RelayError::Version(theirs)) }
}

fn token(bytes: &[u8]) -> Token {
    let mut token = Token::default();
    token.0.copy_from_slice(&bytes[..16]);
    token
}

/// No proof is zeros.
fn emit_proof(proof: &str) -> [u8; PROOF_LEN] {
    let mut bytes = [0; PROOF_LEN];
    let length = proof.len().min(PROOF_LEN);
    bytes[..length].copy_from_slice(&proof.as_bytes()[..length]);
    bytes
}

fn parse_proof(bytes: &[u8]) -> Result<String, RelayError> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(String::new());
    }
    if !bytes.iter().all(u8::is_ascii_hexdigit) {
        return Err(RelayError::Proof);
    }
    Ok(bytes.iter().map(|byte| char::from(*byte)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: Token = Token(*b"0123456789abcdef");

    #[test]
    fn bytes_and_back() {
        let greeting = Greeting { key_asked: true, nonce: NONCE };
        assert_eq!(Greeting::parse(&greeting.emit()), Ok(greeting));
        for proof in [String::new(), "0a".repeat(32)] {
            let request = Request { nonce: NONCE, proof: proof.clone(), service: "wéb".into() };
            let bytes = request.emit().unwrap();
            let (head, name) = bytes.split_at(REQUEST_LEN);
            let head = RequestHead::parse(head.try_into().unwrap()).unwrap();
            assert_eq!(head.name_len, name.len());
            assert_eq!(head.finish(name), Ok(request));
            for verdict in VERDICTS {
                let answer = Answer { verdict, proof: proof.clone() };
                assert_eq!(Answer::parse(&answer.emit()), Ok(answer));
            }
        }
    }

    #[test]
    fn the_bytes_are_as_agreed() {
        let greeting = Greeting { key_asked: true, nonce: NONCE }.emit();
        assert_eq!(&greeting, b"narely\x01\x010123456789abcdef");
        let request = Request { nonce: NONCE, proof: String::new(), service: "web".into() }.emit().unwrap();
        assert_eq!(&request[..18], b"\x01\x030123456789abcdef");
        assert_eq!(&request[82..], b"web");
        assert_eq!(Answer { verdict: Verdict::Busy, proof: String::new() }.emit()[..2], [1, 6]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(Greeting::parse(b"HTTP/1.1 400 Bad Request"), Err(RelayError::Magic));
        let mut greeting = Greeting { key_asked: false, nonce: NONCE }.emit();
        greeting[6] = 2;
        assert_eq!(Greeting::parse(&greeting), Err(RelayError::Version(2)));
        let mut head = [0; REQUEST_LEN];
        (head[0], head[1]) = (1, 65);
        assert_eq!(RequestHead::parse(&head), Err(RelayError::Name));
        (head[1], head[20]) = (2, b'x');
        assert_eq!(RequestHead::parse(&head), Err(RelayError::Proof));
        head[20] = 0;
        assert_eq!(RequestHead::parse(&head).unwrap().finish(b"\xff\xfe"), Err(RelayError::Name));
        let long = Request { nonce: NONCE, proof: String::new(), service: "s".repeat(65) };
        assert_eq!(long.emit(), Err(RelayError::Name));
        let mut answer = [0; ANSWER_LEN];
        (answer[0], answer[1]) = (1, 7);
        assert_eq!(Answer::parse(&answer), Err(RelayError::Verdict(7)));
    }

    #[test]
    fn a_name_of_64_bytes_is_the_longest_that_travels() {
        let request =
            |bytes: usize| Request { nonce: NONCE, proof: String::new(), service: "s".repeat(bytes) };
        let bytes = request(64).emit().unwrap();
        assert_eq!((bytes.len(), bytes[1]), (82 + 64, 64));
        let (head, name) = bytes.split_at(REQUEST_LEN);
        let head = RequestHead::parse(head.try_into().unwrap()).unwrap();
        assert_eq!(head.finish(name), Ok(request(64)));
        assert_eq!(request(65).emit(), Err(RelayError::Name));
    }

    #[test]
    fn only_the_lowest_bit_of_a_greeting_asks_for_a_key() {
        let asked = |flags: u8| {
            let mut bytes = Greeting { key_asked: false, nonce: NONCE }.emit();
            bytes[7] = flags;
            Greeting::parse(&bytes).map(|greeting| greeting.key_asked)
        };
        assert_eq!([0, 1, 0xfe, 0xff].map(asked), [Ok(false), Ok(true), Ok(false), Ok(true)]);
    }

    #[test]
    fn requests_and_answers_of_another_version_are_refused() {
        let mut head = [0; REQUEST_LEN];
        head[0] = 2;
        assert_eq!(RequestHead::parse(&head), Err(RelayError::Version(2)));
        assert_eq!(Answer::parse(&[0; ANSWER_LEN]), Err(RelayError::Version(0)));
    }

    #[test]
    fn a_proof_that_is_too_long_is_cut_off_and_half_of_one_is_none() {
        let answer = Answer { verdict: Verdict::Connected, proof: "7".repeat(65) }.emit();
        assert_eq!(answer[2..], [b'7'; 64]);
        let mut half = answer;
        half[34..].fill(0);
        assert_eq!(Answer::parse(&half), Err(RelayError::Proof));
    }
}
