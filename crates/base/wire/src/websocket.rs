//! Frames of a WebSocket client, walked over without looking at what they carry (RFC 6455 §5).
//!
//! A browser's data come as masked frames. What is measured is the payload of its messages, so
//! frames are told apart and counted; nothing is unmasked or copied. How a browser cuts a message
//! into frames is its own affair: messages are counted by their last frame. Hand-shake and short
//! messages belong to a library; this is for bulk data only.

use std::fmt;

/// Where in a stream of frames one stands.
#[derive(Debug, Clone, Default)]
pub struct FrameWalk {
    header: [u8; LONGEST_HEADER],
    have: usize,
    /// Payload of the present frame that has not come.
    left: u64,
    kind: Kind,
    is_last: bool,
}

/// What a piece of the stream held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Walked {
    /// Bytes of payload of data messages.
    pub payload: u64,
    /// Data messages that ended.
    pub messages: u64,
    /// The other end has said that nothing more comes.
    pub closed: bool,
}

/// Why a stream is no client's stream of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameWalkError {
    /// RFC 6455 §5.1: a client masks every frame.
    Unmasked,
    /// Bits of extensions that nobody has agreed on.
    Extension,
    /// An opcode without a meaning.
    Opcode(u8),
    /// RFC 6455 §5.2: the highest bit of a length is 0; §5.5: control frames are short and whole.
    Length,
}

impl fmt::Display for FrameWalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmasked => f.write_str("a frame is not masked"),
            Self::Extension => f.write_str("a frame uses an extension that was not agreed on"),
            Self::Opcode(opcode) => write!(f, "a frame has the unknown opcode {opcode}"),
            Self::Length => f.write_str("a frame has a length that is not allowed"),
        }
    }
}

impl std::error::Error for FrameWalkError {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Data,
    Control,
    Close,
}

impl Walked {
    /// What a whole stream held that came in these pieces; nothing counts behind its close.
    ///
    /// # Errors
    /// See [`FrameWalkError`].
    pub fn of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, FrameWalkError> {
        let mut walk = FrameWalk::default();
        let mut sum = Self::default();
        for piece in pieces {
            let Self { payload, messages, closed } = walk.walk(piece)?;
            sum.payload += payload;
            sum.messages += messages;
            sum.closed = closed;
            if closed {
                break;
            }
        }
        Ok(sum)
    }
}

impl FrameWalk {
    /// Goes on over the next bytes of the stream, however it is cut.
    ///
    /// # Errors
    /// See [`FrameWalkError`]; what follows has no meaning then.
    pub fn walk(&mut self, mut bytes: &[u8]) -> Result<Walked, FrameWalkError> {
        let mut walked = Walked::default();
        while !bytes.is_empty() && !walked.closed {
            if self.left > 0 {
                let passed = self.left.min(bytes.len() as u64);
                bytes = &bytes[passed as usize..];
                self.left -= passed;
                if self.kind == Kind::Data {
                    walked.payload += passed;
                }
                self.finish(&mut walked);
                continue;
            }
            let missing = self.header_length() - self.have;
            let taken = missing.min(bytes.len());
            self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have >= 2 && self.have == self.header_length() {
                self.begin()?;
                self.finish(&mut walked);
            }
        }
        Ok(walked)
    }

    /// As far as the first two bytes tell, once they are here.
    fn header_length(&self) -> usize {
        if self.have < 2 {
            return 2;
        }
        2 + MASK
            + match self.header[1] & 0x7f {
                126 => 2,
                127 => 8,
                _ => 0,
            }
    }

    fn begin(&mut self) -> Result<(), FrameWalkError> {
        let [first, second] = [self.header[0], self.header[1]];
        if second & 0x80 == 0 {
            return Err(FrameWalkError::Unmasked);
        }
        if first & 0x70 != 0 {
            return Err(FrameWalkError::Extension);
        }
        self.kind = match first & 0x0f {
            0..=2 => Kind::Data,
            8 => Kind::Close,
            9 | 10 => Kind::Control,
            other => return Err(FrameWalkError::Opcode(other)),
        };
        self.is_last = first & 0x80 != 0;
        self.left = match second & 0x7f {
            126 => u16::from_be_bytes([self.header[2], self.header[3]]).into(),
            127 => self.header[2..10].iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
            short => short.into(),
        };
        let is_control = self.kind != Kind::Data;
        if self.left >> 63 != 0 || is_control && (self.left > 125 || !self.is_last) {
            return Err(FrameWalkError::Length);
        }
        self.have = 0;
        Ok(())
    }

    fn finish(&self, walked: &mut Walked) {
        if self.left == 0 {
            walked.messages += u64::from(self.kind == Kind::Data && self.is_last);
            walked.closed |= self.kind == Kind::Close;
        }
    }
}

/// Two bytes, the longest length, the mask.
const LONGEST_HEADER: usize = 2 + 8 + MASK;
const MASK: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![first];
        match length {
            0..126 => bytes.push(0x80 | length as u8),
            126..0x1_0000 => {
                bytes.push(0x80 | 0x7e);
                bytes.extend((length as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 0x7f);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        bytes.extend([1, 2, 3, 4]);
        bytes.extend(std::iter::repeat_n(0x88, length));
        bytes
    }

    proptest! {
        #[test]
        fn payload_is_counted_exactly_however_the_stream_is_cut(
            lengths in prop::collection::vec(prop_oneof![0..130_usize, 65_530..65_540_usize], 1..8),
            size in 1..70_000_usize,
        ) {
            let bytes: Vec<u8> = lengths.iter().flat_map(|length| frame(0x82, *length)).collect();
            let walked = Walked::of(bytes.chunks(size)).unwrap();
            let payload = lengths.iter().sum::<usize>() as u64;
            prop_assert_eq!(walked, Walked { payload, messages: lengths.len() as u64, closed: false });
        }

        #[test]
        fn noise_is_walked_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), size in 1..50_usize) {
            let _ = Walked::of(bytes.chunks(size));
        }
    }

    #[test]
    fn a_message_in_several_frames_is_one_message() {
        let bytes = [frame(0x02, 10), frame(0x89, 4), frame(0x00, 300), frame(0x80, 1)].concat();
        assert_eq!(Walked::of(bytes.chunks(7)).unwrap(), Walked { payload: 311, messages: 1, closed: false });
    }

    #[test]
    fn nothing_counts_behind_a_close() {
        let bytes = [frame(0x82, 3), frame(0x88, 2), frame(0x82, 9)].concat();
        assert_eq!(Walked::of(bytes.chunks(1000)).unwrap(), Walked { payload: 3, messages: 1, closed: true });
        assert_eq!(Walked::of(bytes.chunks(1)).unwrap(), Walked { payload: 3, messages: 1, closed: true });
    }

    #[test]
    fn what_no_client_may_send_has_its_reason() {
        for (bytes, why) in [
            (vec![0x82, 0x01, 0, 0, 0, 0], FrameWalkError::Unmasked),
            (frame(0xc2, 1), FrameWalkError::Extension),
            (frame(0x83, 1), FrameWalkError::Opcode(3)),
            (frame(0x08, 1), FrameWalkError::Length),
            (frame(0x89, 126), FrameWalkError::Length),
            ([&[0x82, 0xff], &[0xff; 12][..]].concat(), FrameWalkError::Length),
        ] {
            assert_eq!(Walked::of(bytes.chunks(3)), Err(why), "{bytes:?}");
        }
    }
}
