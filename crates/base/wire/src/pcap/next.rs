//! pcapng: sections of blocks, each section with its byte order and its interfaces, each interface
//! with its link type and clock.

use std::io::Read;

use netaware_units::Wall;

use super::buffer::Buffer;
use super::{FileError, LONGEST, MOST_INTERFACES, Record};

/// The section that is being read.
#[derive(Default)]
pub(super) struct Sections {
    swapped: bool,
    interfaces: Vec<Described>,
    /// Interfaces of the sections before.
    earlier: u32,
    lost_earlier: u64,
}

/// An interface as its block says.
struct Described {
    link: u32,
    snap: u32,
    clock: Clock,
    lost: u64,
}

#[derive(Clone, Copy)]
struct Clock {
    resolution: u8,
    offset_s: i64,
}

impl Sections {
    pub(super) fn lost(&self) -> u64 {
        self.interfaces.iter().fold(self.lost_earlier, |sum, one| sum.saturating_add(one.lost))
    }

    pub(super) fn next<'a>(
        &mut self,
        buffer: &'a mut Buffer<impl Read>,
    ) -> Result<Option<Record<'a>>, FileError> {
        loop {
            if buffer.is_over()? {
                return Ok(None);
            }
            let head: [u8; 8] = *buffer.array(0)?;
            if head[..4] == SECTION {
                self.open(buffer)?;
                continue;
            }
            let kind = self.word(&head, 0)?;
            let length = self.word(&head, 4)? as usize;
            if length < LEAST || !length.is_multiple_of(4) {
                return Err(FileError::Block(kind));
            }
            match kind {
                INTERFACE => {
                    let described = self.describe(block(buffer, length)?)?;
                    if self.interfaces.len() == MOST_INTERFACES {
                        return Err(FileError::TooManyInterfaces);
                    }
                    self.interfaces.push(described);
                    buffer.pass(length);
                }
                STATISTICS => {
                    self.count(buffer, length)?;
                    buffer.pass(length);
                }
                PACKET => {
                    let found = self.packet(block(buffer, length)?)?;
                    return Ok(Some(found.record(buffer.take(length))));
                }
                SIMPLE_PACKET => {
                    let found = self.simple_packet(block(buffer, length)?)?;
                    return Ok(Some(found.record(buffer.take(length))));
                }
                // Names, secrets, comments, and what will be invented.
                _ => buffer.skip(length)?,
            }
        }
    }

    /// A section header: what came before is forgotten.
    fn open(&mut self, buffer: &mut Buffer<impl Read>) -> Result<(), FileError> {
        let head: [u8; 16] = *buffer.array(0)?;
        self.swapped = match u32::from_le_bytes([head[8], head[9], head[10], head[11]]) {
            ORDER => false,
            other if other.swap_bytes() == ORDER => true,
            _ => return Err(FileError::NotACapture),
        };
        let kind = u32::from_le_bytes(SECTION);
        let major = self.half(&head, 12)?;
        if major != 1 {
            return Err(FileError::Version(major));
        }
        let length = self.word(&head, 4)? as usize;
        if length < LEAST_SECTION || !length.is_multiple_of(4) {
            return Err(FileError::Block(kind));
        }
        self.lost_earlier = self.lost();
        self.earlier = self.earlier.saturating_add(self.interfaces.len() as u32);
        self.interfaces.clear();
        buffer.skip(length)
    }

    fn describe(&self, block: &[u8]) -> Result<Described, FileError> {
        let mut clock = Clock { resolution: MICROSECONDS, offset_s: 0 };
        for (code, value) in self.options(block, 16) {
            match (code, value) {
                (RESOLUTION, [resolution, ..]) => clock.resolution = *resolution,
                (OFFSET, value) => clock.offset_s = self.long(value).unwrap_or(0).cast_signed(),
                _ => {}
            }
        }
        // Finer than 10^-19 or 2^-63 no second fits 64 bits.
        if clock.resolution & 0x7f > if clock.resolution & 0x80 == 0 { 19 } else { 63 } {
            return Err(FileError::Resolution(clock.resolution));
        }
        let snap = self.word(block, 12)?;
        Ok(Described { link: u32::from(self.half(block, 8)?), snap, clock, lost: 0 })
    }

    /// Drops are totals since the interface was opened: the last block counts.
    fn count(&mut self, buffer: &mut Buffer<impl Read>, length: usize) -> Result<(), FileError> {
        let block = block(buffer, length)?;
        let place = self.word(block, 8)? as usize;
        let options = self.options(block, 20);
        let drops = options.filter(|(code, _)| matches!(*code, DROPPED_BY_INTERFACE | DROPPED_BY_SYSTEM));
        let lost = drops.filter_map(|(_, value)| self.long(value)).fold(0, u64::saturating_add);
        if let Some(interface) = self.interfaces.get_mut(place) {
            interface.lost = lost;
        }
        Ok(())
    }

    fn packet(&self, block: &[u8]) -> Result<Found, FileError> {
        let number = self.word(block, 8)?;
        let wrong = FileError::Block(PACKET);
        let Some(interface) = self.interfaces.get(number as usize) else { return Err(wrong) };
        let ticks = u64::from(self.word(block, 12)?) << 32 | u64::from(self.word(block, 16)?);
        let captured = self.word(block, 20)?;
        if captured > LONGEST {
            return Err(FileError::TooLong(captured));
        }
        let end = 28 + captured as usize;
        if end > block.len() - 4 {
            return Err(wrong);
        }
        let flags = self.options(block, end.next_multiple_of(4)).find(|(code, _)| *code == FLAGS);
        let direction = flags.and_then(|(_, value)| self.word(value, 0).ok()).map_or(0, |flags| flags & 3);
        Ok(Found {
            at: interface.clock.wall(ticks),
            wire_length: self.word(block, 24)?.max(captured),
            link: interface.link,
            interface: self.earlier.saturating_add(number),
            outgoing: match direction {
                INBOUND => Some(false),
                OUTBOUND => Some(true),
                _ => None,
            },
            begin: 28,
            end,
        })
    }

    /// Of the first interface, without a time; what was captured is not told but follows.
    fn simple_packet(&self, block: &[u8]) -> Result<Found, FileError> {
        let interface = self.interfaces.first().ok_or(FileError::Block(SIMPLE_PACKET))?;
        let wire_length = self.word(block, 8)?;
        let snap = if interface.snap == 0 { u32::MAX } else { interface.snap };
        let captured = (wire_length.min(snap) as usize).min(block.len() - 16);
        Ok(Found {
            at: Wall(0),
            wire_length: wire_length.max(captured as u32),
            link: interface.link,
            interface: self.earlier,
            outgoing: None,
            begin: 12,
            end: 12 + captured,
        })
    }

    /// Options of a block from `at` on: code and value. Ends with the first that does not fit.
    fn options<'b>(&self, block: &'b [u8], at: usize) -> impl Iterator<Item = (u16, &'b [u8])> {
        let mut rest = block.get(at..block.len() - 4).unwrap_or_default();
        let swapped = self.swapped;
        std::iter::from_fn(move || {
            let code = half(swapped, rest, 0)?;
            let length = usize::from(half(swapped, rest, 2)?);
            let value = rest.get(4..4 + length)?;
            rest = rest.get((4 + length).next_multiple_of(4)..).unwrap_or_default();
            (code != END).then_some((code, value))
        })
    }

    fn half(&self, bytes: &[u8], at: usize) -> Result<u16, FileError> {
        half(self.swapped, bytes, at).ok_or(FileError::Cut)
    }

    fn word(&self, bytes: &[u8], at: usize) -> Result<u32, FileError> {
        let found = *bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(FileError::Cut)?;
        Ok(if self.swapped { u32::from_be_bytes(found) } else { u32::from_le_bytes(found) })
    }

    fn long(&self, value: &[u8]) -> Option<u64> {
        let found = *value.first_chunk()?;
        Some(if self.swapped { u64::from_be_bytes(found) } else { u64::from_le_bytes(found) })
    }
}

/// What a packet's block says; the bytes are cut from it afterwards.
struct Found {
    at: Wall,
    wire_length: u32,
    link: u32,
    interface: u32,
    outgoing: Option<bool>,
    begin: usize,
    end: usize,
}

impl Found {
    fn record(self, block: &[u8]) -> Record<'_> {
        Record {
            at: self.at,
            wire_length: self.wire_length,
            bytes: &block[self.begin..self.end],
            link: self.link,
            interface: self.interface,
            outgoing: self.outgoing,
        }
    }
}

impl Clock {
    /// Saturates beyond what 64 bits of ns hold (1677 to 2262).
    fn wall(self, ticks: u64) -> Wall {
        let power = u32::from(self.resolution & 0x7f);
        let ticks = i128::from(ticks);
        let nanos = match (self.resolution & 0x80 == 0, power) {
            (true, 0..=9) => ticks * 10_i128.pow(9 - power),
            (true, _) => ticks / 10_i128.pow(power - 9),
            (false, _) => (ticks * 1_000_000_000) >> power,
        };
        let nanos = nanos + i128::from(self.offset_s) * 1_000_000_000;
        Wall(nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }
}

fn half(swapped: bool, bytes: &[u8], at: usize) -> Option<u16> {
    let found = *bytes.get(at..)?.first_chunk()?;
    Some(if swapped { u16::from_be_bytes(found) } else { u16::from_le_bytes(found) })
}

/// The whole of a block, which is still to be passed; 20 bytes at least.
fn block(buffer: &mut Buffer<impl Read>, length: usize) -> Result<&[u8], FileError> {
    if length < LEAST_READ {
        return Err(FileError::Block(0));
    }
    buffer.peek(length)
}

/// The same in both byte orders.
pub(super) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
pub(super) const ORDER: u32 = 0x1a2b_3c4d;
pub(super) const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
pub(super) const STATISTICS: u32 = 5;
pub(super) const PACKET: u32 = 6;
/// Options: of all blocks, of interfaces, of packets, of statistics.
const END: u16 = 0;
pub(super) const NAME: u16 = 2;
pub(super) const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;
pub(super) const FLAGS: u16 = 2;
pub(super) const DROPPED_BY_INTERFACE: u16 = 5;
pub(super) const DROPPED_BY_SYSTEM: u16 = 7;
const MICROSECONDS: u8 = 6;
pub(super) const INBOUND: u32 = 1;
pub(super) const OUTBOUND: u32 = 2;
/// Type and twice the length.
const LEAST: usize = 12;
/// Of the kinds that are read: a simple packet without a byte has 16.
const LEAST_READ: usize = 16;
const LEAST_SECTION: usize = 28;
