//! Any packets, stamped at any time, into all passive tasks at once, and any filter program over
//! their frames: nothing panics, tables keep their bounds, and no packet disappears from the
//! counts.
#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_passive::filter::Program;
use netaware_passive::{Found, Link, Observed, Seed, Watch, watch};
use netaware_record::passive::{Period, Row};
use netaware_units::{BitRate, Wall};
use netaware_wire::lmap::{DigestFunction, What};
use netaware_wire::packet::{self, LinkType};

#[derive(Debug, arbitrary::Arbitrary)]
enum Act {
    /// Whatever it is.
    Frame {
        later: i64,
        outgoing: bool,
        bytes: Vec<u8>,
    },
    /// What parses more often than random bytes do.
    Near {
        later: u32,
        six: bool,
        back: bool,
        udp: bool,
        tos: u8,
        fragment: u16,
        host: u8,
        port: u8,
        rest: Vec<u8>,
    },
    Close {
        later: i64,
    },
}

#[derive(Debug, arbitrary::Arbitrary)]
struct Input {
    program: Vec<(u16, u8, u8, u32)>,
    mtu: Option<u16>,
    acts: Vec<Act>,
}

const KEYS: u32 = 8;

fn tasks(link: &Link) -> Vec<Box<dyn Watch>> {
    let by = ["source", "destination", "protocol", "source_port", "destination_port", "dscp", "flow_label"];
    let by: Vec<String> = by.iter().map(ToString::to_string).collect();
    let digest = |share, function| What::Digest { share, payload: 40, function, initialiser: None };
    let all = [
        What::Volume { by, prefix: Some((24, 64)), keys: KEYS },
        What::Volume { by: Vec::new(), prefix: None, keys: 1 },
        What::Traffic { slice_ms: 1, top: 3 },
        digest(1.0, DigestFunction::Sip),
        digest(0.5, DigestFunction::Bob),
        What::Rtt { flows: 4 },
        What::Marking { colour_bit: 0, delay_bit: Some(1), block_ms: 10 },
        What::Capacity { sources: 3 },
    ];
    all.iter().map(|what| watch(what, &Seed::new([1; 16]), link).expect("possible tasks")).collect()
}

fn near(
    six: bool,
    back: bool,
    udp: bool,
    tos: u8,
    fragment: u16,
    host: u8,
    port: u8,
    rest: &[u8],
) -> Vec<u8> {
    let protocol = if udp { 17 } else { 6 };
    let length = (rest.len() as u16).saturating_add(4);
    let ends = if back { [[2, 0], [1, host]] } else { [[1, host], [2, 0]] };
    let mut bytes = Vec::new();
    if six {
        bytes.extend([0x60 | tos >> 4, tos << 4, 0, 0]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([protocol, 64]);
        for end in ends {
            bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end[0], end[1]]);
        }
    } else {
        bytes.extend([0x45, tos]);
        bytes.extend(length.saturating_add(20).to_be_bytes());
        bytes.extend([0, 1]);
        bytes.extend(fragment.to_be_bytes());
        bytes.extend([64, protocol, 0, 0]);
        for end in ends {
            bytes.extend([10, 0, end[0], end[1]]);
        }
    }
    bytes.extend(if back { [1, 187, 0, port] } else { [0, port, 1, 187] });
    bytes.extend(rest);
    bytes
}

fuzz_target!(|input: Input| {
    let link = Link { mtu: input.mtu.map(u32::from), rate: Some(BitRate(1_000_000_000)) };
    let mut tasks = tasks(&link);
    let program = Program::new(input.program);
    let (mut now, mut shown) = (Wall(1_000_000_000), Shown::default());
    for act in input.acts {
        let (later, outgoing, link, frame) = match act {
            Act::Frame { later, outgoing, bytes } => (later, outgoing, LinkType::Ethernet, bytes),
            Act::Near { later, six, back, udp, tos, fragment, host, port, rest } => {
                let frame = near(six, back, udp, tos, fragment, host, port, &rest);
                (later.into(), back, LinkType::Raw, frame)
            }
            Act::Close { later } => {
                let until = Wall(now.0.saturating_add(later));
                check(&mut tasks, Period { from: now, until }, std::mem::take(&mut shown));
                continue;
            }
        };
        now = Wall(now.0.saturating_add(later));
        if let Ok(program) = &program {
            let _ = program.matches(&frame, frame.len() as u32);
        }
        if let Ok(packet) = packet::parse(link, &frame, frame.len() as u32) {
            let segments = if frame.len() % 7 == 0 { 3 } else { 1 };
            shown.frames += 1;
            shown.packets += u64::from(segments);
            for task in &mut tasks {
                task.observe(&Observed { at: now, outgoing, segments, packet, frame: &frame });
            }
        }
    }
    check(&mut tasks, Period { from: Wall(0), until: now }, shown);
});

/// What tasks were shown since the last row; merged frames are several packets.
#[derive(Default)]
struct Shown {
    frames: u64,
    packets: u64,
}

fn check(tasks: &mut [Box<dyn Watch>], period: Period, shown: Shown) {
    let (mut volumes, mut keyed) = (0, 0);
    for task in tasks {
        let mut found = Found::default();
        task.close(period, &mut found);
        let digests =
            found.rows.iter().find_map(|row| if let Row::Digests(row) = row { Some(row.clone()) } else { None });
        for row in found.rows {
            match row {
                Row::Volume(row) => {
                    volumes += row.packets;
                    keyed += u32::from(row.key.protocol.is_some());
                }
                Row::Traffic(row) => {
                    assert_eq!(row.packets, shown.packets);
                    assert_eq!(row.slices.iter().map(|bytes| bytes.0).sum::<u64>(), row.bytes.0);
                }
                Row::Digests(row) => assert_eq!(row.observed, shown.frames),
                Row::Rtt(row) => assert!(row.delay.min.0 >= 0 && row.delay.count > 0),
                Row::Capacity(row) => {
                    assert!(row.rate.lo <= row.rate.estimate && row.rate.estimate <= row.rate.hi)
                }
                _ => {}
            }
        }
        if let Some(row) = digests {
            assert_eq!(found.sightings.len() as u64, row.selected);
        }
    }
    assert_eq!(volumes, 2 * shown.packets, "by key, and of all");
    assert!(keyed <= KEYS);
}
