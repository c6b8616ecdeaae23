//! pcap: one link type, one clock, records of sixteen bytes and a frame.

use std::io::Read;

use netaware_units::Wall;

use super::buffer::Buffer;
use super::{FileError, LONGEST, Record};

/// What the file's header says.
pub(super) struct Classic {
    swapped: bool,
    nanoseconds: bool,
    link: u32,
}

impl Classic {
    pub(super) fn open(buffer: &mut Buffer<impl Read>) -> Result<Self, FileError> {
        let magic = u32::from_le_bytes(*buffer.array(0)?);
        let (swapped, nanoseconds) = match magic {
            MICROSECONDS => (false, false),
            NANOSECONDS => (false, true),
            other if other.swap_bytes() == MICROSECONDS => (true, false),
            other if other.swap_bytes() == NANOSECONDS => (true, true),
            _ => return Err(FileError::NotACapture),
        };
        let mut classic = Self { swapped, nanoseconds, link: 0 };
        let major: [u8; 2] = *buffer.array(4)?;
        let major = if swapped { u16::from_be_bytes(major) } else { u16::from_le_bytes(major) };
        if major != 2 {
            return Err(FileError::Version(major));
        }
        // The upper bits tell of a checksum at the end of frames, which lies behind every packet.
        classic.link = classic.word(*buffer.array(20)?) & 0xffff;
        buffer.pass(HEADER);
        Ok(classic)
    }

    pub(super) fn next<'a>(
        &self,
        buffer: &'a mut Buffer<impl Read>,
    ) -> Result<Option<Record<'a>>, FileError> {
        if buffer.is_over()? {
            return Ok(None);
        }
        let head: [u8; RECORD] = *buffer.array(0)?;
        let field = |at: usize| self.word([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let captured = field(8);
        if captured > LONGEST {
            return Err(FileError::TooLong(captured));
        }
        buffer.peek(RECORD + captured as usize)?;
        buffer.pass(RECORD);
        let part = i64::from(field(4)) * if self.nanoseconds { 1 } else { 1000 };
        let at = Wall(i64::from(field(0)) * 1_000_000_000 + part);
        let bytes = buffer.take(captured as usize);
        Ok(Some(Record {
            at,
            wire_length: field(12).max(captured),
            bytes,
            link: self.link,
            interface: 0,
            outgoing: None,
        }))
    }

    fn word(&self, bytes: [u8; 4]) -> u32 {
        if self.swapped { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

/// As read with the lowest byte first.
pub(super) const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub(super) const NANOSECONDS: u32 = 0xa1b2_3c4d;
const HEADER: usize = 24;
const RECORD: usize = 16;
