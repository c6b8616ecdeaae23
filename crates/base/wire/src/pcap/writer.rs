//! Capture files written: stamps in ns, lowest byte first.

use std::io::{self, Write};

use crate::packet::LinkType;

use super::Record;
use super::classic::NANOSECONDS;
use super::next::{
    DROPPED_BY_INTERFACE, DROPPED_BY_SYSTEM, FLAGS, INBOUND, INTERFACE, NAME, ORDER, OUTBOUND, PACKET,
    RESOLUTION, SECTION, STATISTICS,
};

/// An interface that packets of a pcapng file are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// As the system calls it.
    pub name: String,
    /// What its frames begin with.
    pub link: LinkType,
    /// Bytes kept of each frame.
    pub snap: u32,
}

/// Writes records as they come; everything is in the sink when a call returns, unless the sink
/// itself keeps it.
pub struct Writer<W> {
    sink: W,
    format: Format,
}

enum Format {
    Pcap,
    Pcapng,
}

impl<W: Write> Writer<W> {
    /// A pcap file: frames of one link type. Which way they went is not kept.
    ///
    /// # Errors
    /// The sink's.
    pub fn pcap(mut sink: W, link: LinkType, snap: u32) -> io::Result<Self> {
        let words = [NANOSECONDS, 2 | 4 << 16, 0, 0, snap, u32::from(link.number())];
        sink.write_all(&words.map(u32::to_le_bytes).concat())?;
        Ok(Self { sink, format: Format::Pcap })
    }

    /// A pcapng file with these interfaces, which records name by their place.
    ///
    /// # Errors
    /// The sink's.
    pub fn pcapng(mut sink: W, interfaces: &[Interface]) -> io::Result<Self> {
        let unknown_length = u64::MAX;
        let section = [&ORDER.to_le_bytes()[..], &[1, 0, 0, 0], &unknown_length.to_le_bytes()].concat();
        write_block(&mut sink, u32::from_le_bytes(SECTION), &section)?;
        for interface in interfaces {
            let mut content = u32::from(interface.link.number()).to_le_bytes().to_vec();
            content.extend(interface.snap.to_le_bytes());
            push_option(&mut content, NAME, &interface.name.as_bytes()[..interface.name.len().min(255)]);
            push_option(&mut content, RESOLUTION, &[NANO]);
            end_options(&mut content);
            write_block(&mut sink, INTERFACE, &content)?;
        }
        Ok(Self { sink, format: Format::Pcapng })
    }

    /// Adds a frame. Its link type is that of the file or the interface, whatever it says.
    ///
    /// # Errors
    /// The sink's; `InvalidInput` for instants before 1970, and in pcap for those after 2106.
    pub fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        let nanos = u64::try_from(record.at.0).map_err(|_| io::ErrorKind::InvalidInput)?;
        match self.format {
            Format::Pcap => self.write_pcap(record, nanos),
            Format::Pcapng => self.write_pcapng(record, nanos),
        }
    }

    fn write_pcap(&mut self, record: &Record<'_>, nanos: u64) -> io::Result<()> {
        let seconds = u32::try_from(nanos / SECOND).map_err(|_| io::ErrorKind::InvalidInput)?;
        let words = [seconds, (nanos % SECOND) as u32, record.bytes.len() as u32, record.wire_length];
        self.sink.write_all(&words.map(u32::to_le_bytes).concat())?;
        self.sink.write_all(record.bytes)
    }

    fn write_pcapng(&mut self, record: &Record<'_>, nanos: u64) -> io::Result<()> {
        let words = [
            record.interface,
            (nanos >> 32) as u32,
            nanos as u32,
            record.bytes.len() as u32,
            record.wire_length,
        ];
        let mut content = words.map(u32::to_le_bytes).concat();
        content.extend(record.bytes);
        content.resize(content.len().next_multiple_of(4), 0);
        if let Some(outgoing) = record.outgoing {
            let flags = if outgoing { OUTBOUND } else { INBOUND };
            push_option(&mut content, FLAGS, &flags.to_le_bytes());
            end_options(&mut content);
        }
        write_block(&mut self.sink, PACKET, &content)
    }

    /// Says what an interface lost, as totals since the beginning, in pcapng; pcap has no place for
    /// it.
    ///
    /// # Errors
    /// The sink's.
    pub fn lost(&mut self, interface: u32, by_interface: u64, by_system: u64) -> io::Result<()> {
        if matches!(self.format, Format::Pcap) {
            return Ok(());
        }
        let mut content = [interface, 0, 0].map(u32::to_le_bytes).concat();
        push_option(&mut content, DROPPED_BY_INTERFACE, &by_interface.to_le_bytes());
        push_option(&mut content, DROPPED_BY_SYSTEM, &by_system.to_le_bytes());
        end_options(&mut content);
        write_block(&mut self.sink, STATISTICS, &content)
    }

    /// Hands the sink back, flushed.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.flush()?;
        Ok(self.sink)
    }
}

/// `content` is a multiple of four bytes.
fn write_block(sink: &mut impl Write, kind: u32, content: &[u8]) -> io::Result<()> {
    let length = (content.len() as u32 + 12).to_le_bytes();
    sink.write_all(&kind.to_le_bytes())?;
    sink.write_all(&length)?;
    sink.write_all(content)?;
    sink.write_all(&length)
}

fn push_option(content: &mut Vec<u8>, code: u16, value: &[u8]) {
    content.extend(code.to_le_bytes());
    content.extend((value.len() as u16).to_le_bytes());
    content.extend(value);
    content.resize(content.len().next_multiple_of(4), 0);
}

fn end_options(content: &mut Vec<u8>) {
    content.extend([0; 4]);
}

const SECOND: u64 = 1_000_000_000;
/// Resolution 10^-9 s.
const NANO: u8 = 9;
