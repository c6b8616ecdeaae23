//! The first bytes of a TCP connection.
//!
//! ```text
//! 0        8         10      11     12
//! +--------+---------+-------+------+------------------------------------------------+
//! |NETAWARE| version | role  | zero | data only: token (16) test (4) stream (2) 0 (2) |
//! +--------+---------+-------+------+------------------------------------------------+
//! ```
//!
//! The responder answers a control preface with its own, whose version is the highest it speaks,
//! and a data preface with one byte, [`ATTACHED`] or [`REFUSED`]. A version that is not spoken is
//! answered with a typed error, never with silence, so that an old program can say what is wrong.

use crate::{PROTOCOL_VERSION, Token};

/// Length of the part that both roles share.
pub const PREFACE_LEN: usize = 12;
/// Length of what follows the preface of a data connection.
pub const ATTACH_LEN: usize = 24;
/// The responder has joined the connection to its test.
pub const ATTACHED: u8 = 0x06;
/// The responder knows no such session, test or stream; it closes the connection.
pub const REFUSED: u8 = 0x15;

const MAGIC: &[u8; 8] = b"NETAWARE";

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Control messages.
    Control,
    /// A stream of a throughput test.
    Data,
    /// Request-responses over TCP.
    Echo,
}

/// The shared opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preface {
    /// Highest protocol version of the sender.
    pub version: u16,
    /// Purpose of the connection.
    pub role: Role,
}

/// Why an opening is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefaceError {
    /// Another protocol.
    Foreign,
    /// Our protocol, a role this version does not know.
    UnknownRole(u8),
}

impl Preface {
    /// An opening in the version spoken here.
    pub fn new(role: Role) -> Self {
        Self { version: PROTOCOL_VERSION, role }
    }

    /// Reads the first [`PREFACE_LEN`] bytes.
    pub fn parse(bytes: &[u8; PREFACE_LEN]) -> Result<Self, PrefaceError> {
        if bytes[..8] != MAGIC[..] {
            return Err(PrefaceError::Foreign);
        }
        let role = match bytes[10] {
            b'C' => Role::Control,
            b'D' => Role::Data,
            b'E' => Role::Echo,
            other => return Err(PrefaceError::UnknownRole(other)),
        };
        Ok(Self { version: u16::from_be_bytes([bytes[8], bytes[9]]), role })
    }

    /// Whether `bytes`, however few, can still become a preface. Lets a listener turn other
    /// protocols away early.
    pub fn may_start_with(bytes: &[u8]) -> bool {
        let known = bytes.len().min(MAGIC.len());
        bytes[..known] == MAGIC[..known]
    }

    /// Writes it.
    pub fn emit(self) -> [u8; PREFACE_LEN] {
        let mut out = [0; PREFACE_LEN];
        out[..8].copy_from_slice(MAGIC);
        out[8..10].copy_from_slice(&self.version.to_be_bytes());
        out[10] = match self.role {
            Role::Control => b'C',
            Role::Data => b'D',
            Role::Echo => b'E',
        };
        out
    }
}

/// Which test a data or echo connection belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attach {
    /// Of the session.
    pub token: Token,
    /// The test within it.
    pub test: u32,
    /// The stream within the test.
    pub stream: u16,
}

impl Attach {
    /// Reads what follows the preface. Any bytes are a meaning here; whether it exists is for the
    /// responder to say.
    pub fn parse(bytes: &[u8; ATTACH_LEN]) -> Self {
        let mut token = [0; 16];
        token.copy_from_slice(&bytes[..16]);
        Self {
            token: Token(token),
            test: u32::from_be_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]),
            stream: u16::from_be_bytes([bytes[20], bytes[21]]),
        }
    }

    /// Writes it.
    pub fn emit(self) -> [u8; ATTACH_LEN] {
        let mut out = [0; ATTACH_LEN];
        out[..16].copy_from_slice(&self.token.0);
        out[16..20].copy_from_slice(&self.test.to_be_bytes());
        out[20..22].copy_from_slice(&self.stream.to_be_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_then_parse_is_identity() {
        for role in [Role::Control, Role::Data, Role::Echo] {
            let preface = Preface { version: 7, role };
            assert_eq!(Preface::parse(&preface.emit()), Ok(preface));
        }
        let attach = Attach { token: Token([9; 16]), test: 77, stream: 511 };
        assert_eq!(Attach::parse(&attach.emit()), attach);
    }

    #[test]
    fn other_protocols_are_foreign_from_the_first_differing_byte() {
        assert!(Preface::may_start_with(b""));
        assert!(Preface::may_start_with(b"NETA"));
        assert!(!Preface::may_start_with(b"GET "));
        assert_eq!(Preface::parse(b"GET / HTTP/1"), Err(PrefaceError::Foreign));
    }
}
