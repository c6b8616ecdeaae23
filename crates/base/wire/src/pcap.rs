//! Capture files: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), read and
//! written.
//!
//! A file is as hostile as a network: its lengths are believed only within bounds, and memory does
//! not grow with it. What was read before a fault counts; the fault is told behind it.

mod buffer;
mod classic;
mod next;
mod writer;

use std::fmt;
use std::io::{self, Read};

use netaware_units::Wall;

use buffer::Buffer;
use classic::Classic;
use next::Sections;

pub use writer::{Interface, Writer};

/// One frame of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// When, as far as the file says: files in us end in three zeros, and simple packet blocks of
    /// pcapng say nothing, which is 0. A file may claim any time: what 64 bits do not hold is put
    /// at their ends.
    pub at: Wall,
    /// Bytes of the frame on the wire.
    pub wire_length: u32,
    /// As far as it was captured.
    pub bytes: &'a [u8],
    /// Number of the link type: [`crate::packet::LinkType::of_number`].
    pub link: u32,
    /// Which interface, counted from 0 over the whole file.
    pub interface: u32,
    /// Whether that interface sent it; `None` where the file does not say, as pcap never does.
    pub outgoing: Option<bool>,
}

/// Why a file cannot be read, or not any further.
#[derive(Debug)]
pub enum FileError {
    /// The system refused.
    Read(io::Error),
    /// It begins like no capture file.
    NotACapture,
    /// A version that is not known, by major number.
    Version(u16),
    /// It ends within a record or block: whoever wrote it was stopped, or it is not all there.
    Cut,
    /// A record of more bytes than [`LONGEST`].
    TooLong(u32),
    /// A block's lengths contradict each other, or it is of an interface that was not described.
    Block(u32),
    /// More interfaces than [`MOST_INTERFACES`] in one section.
    TooManyInterfaces,
    /// A clock of a resolution that does not fit 64 bits.
    Resolution(u8),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::NotACapture => write!(f, "begins like neither pcap nor pcapng"),
            Self::Version(major) => write!(f, "has version {major} of its format, which is not known"),
            Self::Cut => write!(f, "ends within a packet"),
            Self::TooLong(bytes) => write!(f, "has a packet of {bytes} bytes; {LONGEST} are the most"),
            Self::Block(kind) => write!(f, "has a block of type {kind:#x} that contradicts itself"),
            Self::TooManyInterfaces => write!(f, "describes more than {MOST_INTERFACES} interfaces"),
            Self::Resolution(code) => write!(f, "has a clock of resolution {code:#x}, which is not possible"),
        }
    }
}

impl std::error::Error for FileError {}

/// Reads a file from its beginning, record by record.
pub struct Reader<R> {
    buffer: Buffer<R>,
    format: Format,
}

enum Format {
    Classic(Classic),
    Next(Sections),
}

impl<R: Read> Reader<R> {
    /// Reads the file's own header.
    ///
    /// # Errors
    /// That this is no capture file, or cannot be read.
    pub fn new(source: R) -> Result<Self, FileError> {
        let mut buffer = Buffer::new(source);
        let magic: [u8; 4] = *buffer.array(0).map_err(|error| match error {
            FileError::Cut => FileError::NotACapture,
            other => other,
        })?;
        let format = if magic == next::SECTION {
            Format::Next(Sections::default())
        } else {
            Format::Classic(Classic::open(&mut buffer)?)
        };
        Ok(Self { buffer, format })
    }

    /// The next frame; `None` behind the last.
    ///
    /// # Errors
    /// Why the file cannot be read from here on; asking again gives no more.
    #[expect(clippy::should_implement_trait, reason = "what it lends lives until the next call")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, FileError> {
        match &mut self.format {
            Format::Classic(classic) => classic.next(&mut self.buffer),
            Format::Next(sections) => sections.next(&mut self.buffer),
        }
    }

    /// Packets that whoever wrote the file says were lost, by interfaces and systems together; 0
    /// where nothing is said, as in pcap.
    pub fn lost(&self) -> u64 {
        match &self.format {
            Format::Classic(_) => 0,
            Format::Next(sections) => sections.lost(),
        }
    }
}

/// Bytes of one frame: more than any link carries or any offload merges (what tcpdump takes at
/// most).
pub const LONGEST: u32 = 262_144;
/// Interfaces in one section of a pcapng file.
pub const MOST_INTERFACES: usize = 4096;

#[cfg(test)]
mod tests;
