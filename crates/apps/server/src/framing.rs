//! Bytes of a control connection to messages.

use netaware_wire::control::ClientMessage;
use netaware_wire::frame::{self, FrameError};

/// Collects bytes until they are a frame. Holds what has arrived and no more: the announced length
/// allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; an announced length over the limit stays in place, because what follows it
    /// has no meaning.
    pub(crate) fn pop(&mut self) -> Option<Result<ClientMessage, FrameError>> {
        let len = match frame::body_len(*self.bytes.first_chunk()?) {
            Ok(len) => len,
            Err(error) => return Some(Err(error)),
        };
        let body = self.bytes.get(4..4 + len)?;
        let message = frame::parse(body);
        self.bytes.drain(..4 + len);
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
        Some(message)
    }

    /// Whether the first bytes of a frame are here and its last are not.
    pub(crate) fn is_partial(&self) -> bool {
        !self.bytes.is_empty()
    }
}

/// One long message must not cost an idle session its length for ever.
const KEPT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_wherever_the_stream_is_cut() {
        let mut bytes = frame::emit(&ClientMessage::Ping { seq: 1 }).unwrap();
        bytes.extend(frame::emit(&ClientMessage::Bye).unwrap());
        for cut in 0..=bytes.len() {
            let mut frames = Frames::default();
            let mut messages = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                frames.push(part);
                while let Some(message) = frames.pop() {
                    messages.push(message.unwrap());
                }
            }
            assert_eq!(messages, [ClientMessage::Ping { seq: 1 }, ClientMessage::Bye], "cut {cut}");
            assert!(!frames.is_partial());
        }
    }

    #[test]
    fn a_damaged_frame_does_not_hide_the_next() {
        let mut frames = Frames::default();
        frames.push(&[0, 0, 0, 1, b'{', 0, 0, 0, 14]);
        frames.push(br#"{"type":"bye"}"#);
        assert!(matches!(frames.pop(), Some(Err(FrameError::NotJson(_)))));
        assert_eq!(frames.pop(), Some(Ok(ClientMessage::Bye)));
        assert_eq!(frames.pop(), None);
    }

    #[test]
    fn a_length_over_the_limit_allocates_nothing() {
        let mut frames = Frames::default();
        frames.push(&[0xff; 4]);
        assert_eq!(frames.pop(), Some(Err(FrameError::TooLong(u32::MAX))));
        assert!(frames.bytes.capacity() < 64);
    }
}
