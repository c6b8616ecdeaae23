//! What any exporter may send: several messages to one session, over both kinds of transport, and
//! batches of sightings. Random bytes are hardly ever a message with a template that later data
//! fits, so most inputs are made of sets, of which a few bytes are others.
#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_units::Wall;
use netaware_wire::ipfix::template::MOST_EMPTY;
use netaware_wire::ipfix::{Interpreter, Limits, Reader, Transport, message, sightings};

#[derive(Debug, arbitrary::Arbitrary)]
enum Input {
    /// Whatever it is.
    Raw(Vec<u8>),
    Messages {
        messages: Vec<Message>,
        edits: Vec<(u16, u8)>,
    },
}

#[derive(Debug, arbitrary::Arbitrary)]
struct Message {
    exported_at: u32,
    sequence: u32,
    domain: u8,
    sets: Vec<Set>,
}

#[derive(Debug, arbitrary::Arbitrary)]
enum Set {
    /// Templates by number, of fields: element, length, whether it is one of ours.
    Templates {
        scopes: u8,
        templates: Vec<(u8, Vec<(u16, u8, bool)>)>,
    },
    Data {
        template: u8,
        bytes: Vec<u8>,
    },
    Other {
        id: u16,
        bytes: Vec<u8>,
    },
}

impl Input {
    fn bytes(self) -> Vec<u8> {
        let (messages, edits) = match self {
            Self::Raw(bytes) => return bytes,
            Self::Messages { messages, edits } => (messages, edits),
        };
        let mut bytes: Vec<u8> = messages.iter().flat_map(Message::bytes).collect();
        for (at, byte) in edits {
            if let Some(place) = bytes.get_mut(usize::from(at)) {
                *place = byte;
            }
        }
        bytes
    }
}

impl Message {
    fn bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for set in &self.sets {
            let (id, content) = set.content();
            // A message has 16 bits for its length.
            if message::HEADER_LEN + body.len() + 4 + content.len() > message::MAX_MESSAGE {
                break;
            }
            body.extend(id.to_be_bytes());
            body.extend((content.len() as u16 + 4).to_be_bytes());
            body.extend(content);
        }
        let head = message::Header {
            length: (message::HEADER_LEN + body.len()) as u16,
            exported_at: self.exported_at,
            sequence: self.sequence,
            domain: self.domain.into(),
        };
        let mut bytes = head.emit().to_vec();
        bytes.extend(body);
        bytes
    }
}

impl Set {
    fn content(&self) -> (u16, Vec<u8>) {
        match self {
            Self::Templates { scopes, templates } => {
                let mut content = Vec::new();
                for (number, fields) in templates {
                    content.extend((256 + u16::from(*number)).to_be_bytes());
                    content.extend((fields.len() as u16).to_be_bytes());
                    if *scopes > 0 {
                        content.extend(u16::from(*scopes).to_be_bytes());
                    }
                    for (element, length, is_ours) in fields {
                        // The elements that mean something have small numbers; 255 stands for a
                        // length of its own in each record.
                        let element = element % 1024 | u16::from(*is_ours) << 15;
                        let length = if *length == 255 { 65_535 } else { u16::from(*length) };
                        content.extend(element.to_be_bytes());
                        content.extend(length.to_be_bytes());
                        if *is_ours {
                            content.extend(32_473_u32.to_be_bytes());
                        }
                    }
                }
                (if *scopes > 0 { 3 } else { 2 }, content)
            }
            Self::Data { template, bytes } => (256 + u16::from(*template), bytes.clone()),
            Self::Other { id, bytes } => (*id, bytes.clone()),
        }
    }
}

fuzz_target!(|input: Input| {
    let bytes = &input.bytes()[..];
    let limits = Limits { domains: 3, templates: 20, fields: 100, ..Limits::default() };
    for transport in [Transport::Stream, Transport::Datagrams] {
        let mut reader = Reader::with_limits(transport, limits);
        let mut interpreter = Interpreter::new();
        let mut left = bytes;
        let mut now = Wall(1_795_440_000_000_000_000);
        while let Ok(Some((one, rest))) = message::first(left) {
            left = rest;
            now = Wall(now.0 + 60_000_000_000);
            let (mut taken, mut records) = (0, 0);
            let _ = reader.read(now, one, &mut |record| {
                taken += record.bytes.len();
                records += 1;
                let (mut shown, mut fields) = (0, 0);
                for (_, value) in record.fields() {
                    shown += value.len();
                    fields += 1;
                }
                assert!(shown <= record.bytes.len());
                assert!(fields <= record.bytes.len() + MOST_EMPTY, "work is in proportion to bytes");
                let _ = interpreter.interpret(record);
            });
            assert!(taken <= one.len() && records <= one.len());
            assert!(reader.templates() <= limits.templates);
        }
        // As a datagram, whatever its length says.
        let _ = reader.read(now, bytes, &mut |record| drop(interpreter.interpret(record)));
    }
    if let Ok(batch) = sightings::read(bytes) {
        let seen: usize = batch.selections.iter().map(|(_, sightings)| sightings.len()).sum();
        assert!(seen <= bytes.len());
        let parts: Vec<_> = batch.selections.iter().map(|(selection, seen)| (selection, &seen[..])).collect();
        let mut again = Vec::new();
        sightings::emit(batch.domain, Wall(1_795_440_000_000_000_000), &parts, 65_535, &mut again);
        assert!(sightings::read(&again).is_ok());
    }
});
