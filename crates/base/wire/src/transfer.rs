//! What travels when files are sent over a stream of bytes: messages, and chunks of files between
//! them.
//!
//! ```text
//! sender                                   receiver
//!   | Hello                     ------------>  |
//!   |  <----------------------  [Challenge]    |   only with a shared key
//!   | [Authenticate]            ------------>  |
//!   |  <----------------------  Welcome        |
//!   | Directory, File, Seal…    ------------>  |   announced ahead of the bytes, at most MAX_AHEAD
//!   |  <----------------------  Ready…         |   how much of a file is there, with its digest
//!   | Begin, chunks…, End       ------------>  |   from there on, or from the start
//!   |  <----------------------  Done | Refused |   one of them for each entry
//!   | Finish                    ------------>  |
//!   |  <----------------------  Finished       |   all of it is on the disk
//! ```
//!
//! A message is a 32-bit length and so many bytes of JSON, as in [`crate::frame`]; a chunk has the
//! highest bit of the length set. Whatever was announced has a number.

mod digest;
mod message;
mod path;

use std::fmt;

pub use digest::{Digest, ParseDigestError};
pub use message::{Done, Have, Mode, ReceiverMessage, RefusalCode, SenderMessage, Stamp};
pub use path::{EntryPath, PathError};

use crate::frame::{self, FrameError};

/// Of the messages and of what they mean.
pub const TRANSFER_VERSION: u16 = 1;

/// Where a receiver listens unless told otherwise.
pub const TRANSFER_PORT: u16 = 14234;

/// The longest chunk, bytes.
pub const MAX_CHUNK: usize = 1 << 20;

/// Entries that a sender announces beyond those that are done.
pub const MAX_AHEAD: usize = 64;

/// What follows on the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// A message of so many bytes.
    Message(usize),
    /// So many bytes of a file, at least one.
    Chunk(usize),
}

/// Bytes of a [`Head`].
pub const HEAD_LEN: usize = 4;

/// Why four bytes are no [`Head`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadError {
    /// A message or a chunk longer than there may be; the bytes, since they may be those of another
    /// protocol.
    TooLong([u8; HEAD_LEN]),
    /// A chunk of nothing.
    Empty,
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            _ if self.is_tls() => f.write_str("it speaks TLS"),
            Self::TooLong(_) => f.write_str("what came is no message of a file transfer"),
            Self::Empty => f.write_str("a chunk of a file is empty"),
        }
    }
}

impl std::error::Error for HeadError {}

impl HeadError {
    /// Whether it is the head of a handshake's or an alert's record (RFC 8446 §5.1).
    pub const fn is_tls(self) -> bool {
        matches!(self, Self::TooLong([0x15 | 0x16, 3, ..]))
    }
}

impl Head {
    /// Reads one.
    ///
    /// # Errors
    /// Longer than [`frame::MAX_FRAME`] or [`MAX_CHUNK`], or an empty chunk.
    pub fn parse(bytes: [u8; HEAD_LEN]) -> Result<Self, HeadError> {
        let number = u32::from_be_bytes(bytes);
        let length = (number & !CHUNK) as usize;
        match (number & CHUNK != 0, length) {
            (true, 0) => Err(HeadError::Empty),
            (true, 1..=MAX_CHUNK) => Ok(Self::Chunk(length)),
            (false, 0..=frame::MAX_FRAME) => Ok(Self::Message(length)),
            _ => Err(HeadError::TooLong(bytes)),
        }
    }

    /// Writes it.
    ///
    /// # Panics
    /// A length over the limit.
    pub fn emit(self) -> [u8; HEAD_LEN] {
        match self {
            Self::Message(length) => {
                assert!(length <= frame::MAX_FRAME, "a message of {length} bytes");
                (length as u32).to_be_bytes()
            }
            Self::Chunk(length) => {
                assert!((1..=MAX_CHUNK).contains(&length), "a chunk of {length} bytes");
                (CHUNK | length as u32).to_be_bytes()
            }
        }
    }
}

frame::messages!(SenderMessage, ReceiverMessage);

impl SenderMessage {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// No JSON, an unknown type, or a field that does not fit.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        frame::parse(body)
    }
}

impl ReceiverMessage {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// No JSON, an unknown type, or a field that does not fit.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        frame::parse(body)
    }
}

const CHUNK: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_as_they_were() {
        for head in
            [Head::Message(0), Head::Message(frame::MAX_FRAME), Head::Chunk(1), Head::Chunk(MAX_CHUNK)]
        {
            assert_eq!(Head::parse(head.emit()), Ok(head));
        }
    }

    #[test]
    fn what_is_too_long_or_empty_is_refused_and_tls_is_recognised() {
        let rows: [([u8; 4], &str); 4] = [
            ([0x80, 0, 0, 0], "is empty"),
            ([0x80, 0x10, 0, 1], "no message of a file transfer"),
            ([0, 1, 0, 1], "no message of a file transfer"),
            ([0x16, 3, 1, 2], "speaks TLS"),
        ];
        for (bytes, want) in rows {
            let error = Head::parse(bytes).unwrap_err().to_string();
            assert!(error.contains(want), "{bytes:?}: {error}");
        }
    }
}
