//! What a packet costs each task, and several tasks together: `cargo run --release -p
//! netaware-passive --example cost`.
//!
//! Prints nanoseconds a packet, the best of several passes over the same 50,000 packets of 1000
//! flows (parsed beforehand: what is measured is the tasks). Figures are of this machine in this
//! moment; only ratios mean anything elsewhere.

#![expect(clippy::disallowed_methods, reason = "an engine has no clock of its own")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use netaware_passive::{Found, Link, Observed, Seed, Watch, watch};
use netaware_record::passive::Period;
use netaware_units::Wall;
use netaware_wire::lmap::{DigestFunction, What};
use netaware_wire::packet::Packet;

const PACKETS: usize = 50_000;
const FLOWS: usize = 1000;
const PASSES: usize = 9;

fn main() {
    let frames: Vec<Vec<u8>> = (0..PACKETS).map(frame).collect();
    let seen: Vec<Observed<'_>> = frames.iter().enumerate().map(|(n, frame)| observed(n, frame)).collect();
    let names = ["version", "source", "destination", "protocol", "source_port", "destination_port"];
    let by: Vec<String> = names.iter().map(ToString::to_string).collect();
    let digest = |function, share| What::Digest { share, payload: 24, function, initialiser: None };
    let tasks = [
        ("volume, all packets", What::Volume { by: vec![], prefix: None, keys: 1 }),
        ("volume, flows with room", What::Volume { by: by.clone(), prefix: None, keys: 10_000 }),
        ("volume, flows without room", What::Volume { by: by.clone(), prefix: None, keys: 100 }),
        ("traffic", What::Traffic { slice_ms: 100, top: 10 }),
        ("digest, all", digest(DigestFunction::Sip, 1.0)),
        ("digest, 1 in 100", digest(DigestFunction::Sip, 0.01)),
        ("digest by BOB, all", digest(DigestFunction::Bob, 1.0)),
        ("digest by BOB, 1 in 100", digest(DigestFunction::Bob, 0.01)),
        ("rtt", What::Rtt { flows: 10_000 }),
        ("marking", What::Marking { colour_bit: 0, delay_bit: Some(1), block_ms: 1000 }),
        ("capacity", What::Capacity { sources: 1000 }),
    ];
    println!("{:34} {:>10}", "task", "ns/packet");
    for (name, what) in &tasks {
        println!("{name:34} {:10.1}", cost(std::slice::from_ref(what), &seen));
    }
    let [one, traffic, sip, rtt] = [1, 3, 4, 8].map(|n| tasks[n].1.clone());
    let together = [
        ("digest and volume of all", vec![sip.clone(), tasks[0].1.clone()]),
        ("digest and volume by flow", vec![sip.clone(), one.clone()]),
        ("4 tasks: digest, volume, rtt, traffic", vec![sip, one, rtt, traffic]),
    ];
    for (name, several) in &together {
        println!("{name:34} {:10.1}", cost(several, &seen));
    }
}

/// The best pass: others were disturbed.
fn cost(tasks: &[What], seen: &[Observed<'_>]) -> f64 {
    let (seed, link) = (Seed::new([7; 16]), Link { mtu: Some(1500), rate: None });
    let period = Period { from: Wall(0), until: Wall(1_000_000_000) };
    let mut running: Vec<Box<dyn Watch>> =
        tasks.iter().map(|what| watch(what, &seed, &link).expect("the tasks above are possible")).collect();
    let mut best = f64::INFINITY;
    for _ in 0..PASSES {
        let before = Instant::now();
        for observed in seen {
            for task in &mut running {
                task.observe(black_box(observed));
            }
        }
        best = best.min(before.elapsed().as_nanos() as f64 / seen.len() as f64);
        let mut found = Found::default();
        for task in &mut running {
            task.close(period, &mut found);
        }
        black_box(found);
    }
    best
}

/// TCP with timestamps over IPv4 and IPv6 by turns, from the Ethernet header on, cut off at 128
/// bytes.
fn frame(number: usize) -> Vec<u8> {
    let (six, flow) = (number % 2 == 1, number * 7 % FLOWS);
    let mut bytes = vec![0; 12];
    if six {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend(1440_u16.to_be_bytes());
        bytes.extend([6, 64]);
        bytes.extend(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, flow as u16).octets());
        bytes.extend(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 1, 1).octets());
    } else {
        bytes.extend([8, 0, 0x45, 0]);
        bytes.extend(1480_u16.to_be_bytes());
        bytes.extend((number as u16).to_be_bytes());
        bytes.extend([0x40, 0, 64, 6, 0, 0, 10, 0, (flow >> 8) as u8, flow as u8, 10, 1, 0, 1]);
    }
    bytes.extend((flow as u16).to_be_bytes());
    bytes.extend([1, 0xbb]);
    bytes.extend((number as u32 * 1448).to_be_bytes());
    bytes.extend([0, 0, 0, 1, 8 << 4, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
    bytes.extend((number as u32 / 1000).to_be_bytes());
    bytes.extend([0, 0, 0, 1]);
    bytes.resize(128, 0x5a);
    bytes
}

fn observed(number: usize, frame: &[u8]) -> Observed<'_> {
    let bytes = &frame[14..];
    let six = bytes[0] >> 4 == 6;
    let (source, destination): (IpAddr, IpAddr) = if six {
        let address =
            |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[at..at + 16]).expect("16 bytes"));
        (address(8).into(), address(24).into())
    } else {
        let address = |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[at..at + 4]).expect("4 bytes"));
        (address(12).into(), address(16).into())
    };
    let length = 1480;
    let packet = Packet {
        version: bytes[0] >> 4,
        source,
        destination,
        dscp: 0,
        ecn: 0,
        ttl: 64,
        flow_label: 0,
        length,
        identification: (!six).then(|| u16::from_be_bytes([bytes[4], bytes[5]]).into()),
        fragment: if six { 0 } else { 0x4000 },
        later_fragment: false,
        protocol: 6,
        bytes,
        transport: if six { 40 } else { 20 },
        vlans: [0; 2],
        frame_length: length + 14,
    };
    Observed { at: Wall(number as i64 * 1000), outgoing: false, segments: 1, packet, frame }
}
