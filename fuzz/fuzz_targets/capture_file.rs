//! Capture files come from strangers: none breaks the reader, memory stays bounded, and what comes
//! out is in proportion to the file. Random bytes are hardly ever a file, so most inputs are blocks
//! that could be in one, of which a few bytes are others.
#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_wire::packet::{LinkType, parse};
use netaware_wire::pcap::{LONGEST, Reader};

#[derive(Debug, arbitrary::Arbitrary)]
enum File {
    /// Whatever it is.
    Raw(Vec<u8>),
    Pcap {
        swapped: bool,
        nanoseconds: bool,
        link: u8,
        records: Vec<Record>,
        edits: Vec<(u16, u8)>,
    },
    Pcapng {
        sections: Vec<Section>,
        edits: Vec<(u16, u8)>,
    },
}

#[derive(Debug, arbitrary::Arbitrary)]
struct Record {
    seconds: u32,
    fraction: u32,
    /// Bytes on the wire beyond those that were captured.
    beyond: u16,
    bytes: Vec<u8>,
}

#[derive(Debug, arbitrary::Arbitrary)]
struct Section {
    swapped: bool,
    /// Link type, snap length, resolution and offset of the clock.
    interfaces: Vec<(u8, u16, u8, i64)>,
    blocks: Vec<Block>,
}

#[derive(Debug, arbitrary::Arbitrary)]
enum Block {
    Packet { interface: u8, ticks: u64, beyond: u16, bytes: Vec<u8>, flags: Option<u32> },
    Simple { length: u16, bytes: Vec<u8> },
    Statistics { interface: u8, dropped: u64 },
    Other { kind: u16, bytes: Vec<u8> },
}

/// Numbers in the byte order of a file or section.
#[derive(Clone, Copy)]
struct Order {
    swapped: bool,
}

impl Order {
    fn half(self, number: u16) -> [u8; 2] {
        if self.swapped { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn word(self, number: u32) -> [u8; 4] {
        if self.swapped { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn long(self, number: u64) -> [u8; 8] {
        if self.swapped { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn block(self, kind: u32, content: &[u8], file: &mut Vec<u8>) {
        let padding = content.len().next_multiple_of(4) - content.len();
        let length = self.word((content.len() + padding + 12) as u32);
        file.extend(self.word(kind));
        file.extend(length);
        file.extend(content);
        file.extend(&[0_u8; 3][..padding]);
        file.extend(length);
    }

    fn option(self, code: u16, value: &[u8], content: &mut Vec<u8>) {
        content.resize(content.len().next_multiple_of(4), 0);
        content.extend(self.half(code));
        content.extend(self.half(value.len() as u16));
        content.extend(value);
    }
}

fn number(link: u8) -> u16 {
    // All that are read, and some that are not.
    LinkType::ALL.get(usize::from(link)).map_or(u16::from(link), |link| link.number())
}

impl File {
    fn bytes(self) -> Vec<u8> {
        let (mut file, edits) = match self {
            Self::Raw(bytes) => return bytes,
            Self::Pcap { swapped, nanoseconds, link, records, edits } => {
                (pcap(Order { swapped }, nanoseconds, link, &records), edits)
            }
            Self::Pcapng { sections, edits } => {
                let mut file = Vec::new();
                sections.iter().for_each(|section| section.write(&mut file));
                (file, edits)
            }
        };
        for (at, byte) in edits {
            if let Some(place) = file.get_mut(usize::from(at)) {
                *place = byte;
            }
        }
        file
    }
}

fn pcap(order: Order, nanoseconds: bool, link: u8, records: &[Record]) -> Vec<u8> {
    let magic = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = order.word(magic).to_vec();
    file.extend(order.half(2));
    file.extend(order.half(4));
    for word in [0, 0, LONGEST, u32::from(number(link))] {
        file.extend(order.word(word));
    }
    for record in records {
        let length = record.bytes.len() as u32;
        for word in [record.seconds, record.fraction, length, length + u32::from(record.beyond)] {
            file.extend(order.word(word));
        }
        file.extend(&record.bytes);
    }
    file
}

impl Section {
    fn write(&self, file: &mut Vec<u8>) {
        let order = Order { swapped: self.swapped };
        let mut head = order.word(0x1a2b_3c4d).to_vec();
        head.extend(order.half(1));
        head.extend(order.half(0));
        head.extend([0xff; 8]);
        order.block(0x0a0d_0d0a, &head, file);
        for (link, snap, resolution, offset) in &self.interfaces {
            let mut content = order.half(number(*link)).to_vec();
            content.extend(order.half(0));
            content.extend(order.word((*snap).into()));
            order.option(9, &[*resolution], &mut content);
            order.option(14, &order.long(offset.cast_unsigned()), &mut content);
            order.block(1, &content, file);
        }
        self.blocks.iter().for_each(|block| block.write(order, file));
    }
}

impl Block {
    fn write(&self, order: Order, file: &mut Vec<u8>) {
        let mut content = Vec::new();
        match self {
            Self::Packet { interface, ticks, beyond, bytes, flags } => {
                let length = bytes.len() as u32;
                let (high, low) = ((ticks >> 32) as u32, *ticks as u32);
                for word in [u32::from(*interface), high, low, length, length + u32::from(*beyond)] {
                    content.extend(order.word(word));
                }
                content.extend(bytes);
                if let Some(flags) = flags {
                    order.option(2, &order.word(*flags), &mut content);
                }
                order.block(6, &content, file);
            }
            Self::Simple { length, bytes } => {
                content.extend(order.word((*length).into()));
                content.extend(bytes);
                order.block(3, &content, file);
            }
            Self::Statistics { interface, dropped } => {
                for word in [u32::from(*interface), 0, 0] {
                    content.extend(order.word(word));
                }
                order.option(5, &order.long(*dropped), &mut content);
                order.block(5, &content, file);
            }
            Self::Other { kind, bytes } => order.block((*kind).into(), bytes, file),
        }
    }
}

fuzz_target!(|file: File| {
    let file = file.bytes();
    let Ok(mut reader) = Reader::new(&file[..]) else { return };
    let (mut bytes, mut frames) = (0, 0);
    while let Ok(Some(record)) = reader.next() {
        bytes += record.bytes.len();
        frames += 1;
        assert!(bytes <= file.len() && record.bytes.len() <= LONGEST as usize);
        // A frame takes sixteen bytes at least besides its own.
        assert!(frames * 16 + bytes <= file.len(), "{frames} frames of {} bytes", file.len());
        assert!(record.bytes.len() as u64 <= u64::from(record.wire_length));
        if let Some(link) = LinkType::of_number(record.link) {
            let _ = parse(link, record.bytes, record.wire_length);
        }
    }
    let _ = reader.lost();
});
