//! A flood of ten million flows, as somebody makes who forges addresses: memory stays bounded,
//! every packet is in some row, and those who really send much are found. `cargo test --release -p
//! netaware-passive --test integration -- --ignored`

use netaware_passive::{Found, Link, Observed, Seed, Watch, watch};
use netaware_record::passive::{Period, Row};
use netaware_units::Wall;
use netaware_wire::lmap::What;
use netaware_wire::packet::{self, LinkType};

const FLOWS: u32 = 10_000_000;
/// Keys that a task may hold.
const KEYS: u32 = 10_000;
/// After so many packets of the flood comes one of each heavy flow.
const BETWEEN: u32 = 100;
const HEAVY: u16 = 20;
/// Bytes that all tasks together may come to have.
const MEMORY: u64 = 64 << 20;

/// UDP over IPv6 from an address that is the flow's own.
fn frame(flow: u32, port: u16) -> [u8; 62] {
    let mut bytes = [0; 62];
    bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
    bytes[14] = 0x60;
    bytes[18..22].copy_from_slice(&[0, 8, 17, 64]);
    bytes[22..26].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
    bytes[34..38].copy_from_slice(&flow.to_be_bytes());
    bytes[38..42].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
    bytes[54..56].copy_from_slice(&port.to_be_bytes());
    bytes[56..60].copy_from_slice(&[0, 9, 0, 8]);
    bytes
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

fn show(tasks: &mut [Box<dyn Watch>], number: u64, bytes: &[u8]) {
    let packet = packet::parse(LinkType::Ethernet, bytes, bytes.len() as u32).unwrap();
    let at = Wall(number as i64 * 1000);
    let seen = Observed { at, outgoing: false, segments: 1, packet, frame: bytes };
    for task in tasks {
        task.observe(&seen);
    }
}

#[test]
#[ignore = "long: some seconds; measures the memory of its process, so it runs alone"]
fn memory_is_bounded_and_heavy_flows_are_kept() {
    let names = ["source", "destination", "protocol", "source_port", "destination_port"];
    let by: Vec<String> = names.iter().map(ToString::to_string).collect();
    let kinds = [
        What::Volume { by, prefix: None, keys: KEYS },
        What::Traffic { slice_ms: 100, top: 10 },
        What::Rtt { flows: KEYS },
        What::Marking { colour_bit: 0, delay_bit: Some(1), block_ms: 1000 },
        What::Capacity { sources: KEYS },
    ];
    let (seed, link) = (Seed::new([7; 16]), Link::default());
    let mut tasks: Vec<Box<dyn Watch>> =
        kinds.iter().map(|what| watch(what, &seed, &link).unwrap()).collect();
    let before = resident();
    let mut number = 0;
    for flow in 0..FLOWS {
        show(&mut tasks, number, &frame(flow, 1));
        number += 1;
        if flow % BETWEEN == 0 {
            for port in 1000..1000 + HEAVY {
                show(&mut tasks, number, &frame(u32::MAX, port));
                number += 1;
            }
        }
    }
    let grown = resident().saturating_sub(before);
    println!("{number} packets of {FLOWS} flows: {} MiB", grown >> 20);
    assert!(grown < MEMORY, "grown by {grown} bytes");

    let mut found = Found::default();
    let period = Period { from: Wall(0), until: Wall(number as i64 * 1000) };
    tasks[0].close(period, &mut found);
    let rows: Vec<_> = found
        .rows
        .iter()
        .map(|row| match row {
            Row::Volume(row) => row,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(rows.len() <= KEYS as usize + 1, "{} rows", rows.len());
    assert_eq!(rows.iter().map(|row| row.packets).sum::<u64>(), number);
    let each = u64::from(FLOWS / BETWEEN);
    for port in 1000..1000 + HEAVY {
        let row = rows.iter().find(|row| row.key.source_port == Some(port)).expect("a heavy flow");
        assert!(row.packets <= each && each <= row.packets + row.packets_error, "{row:?}");
    }
}
