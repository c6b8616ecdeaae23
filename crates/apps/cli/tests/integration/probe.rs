//! `netaware probe --read` as people run it: each kind of task on a made-up file whose truth is
//! known.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use netaware_record::passive::{CapacityRow, MarkingRow, ProbeReport, Row, RttRow, TrafficRow};
use netaware_testkit::program::{netaware_path, output};

/// First stamp, ns: at the beginning of a period of 10 s.
const BEGIN: u64 = 1_795_440_000_000_000_000;
const MS: u64 = 1_000_000;

/// Frames with their stamps (ns after [`BEGIN`]), in order.
#[derive(Default)]
struct Traffic(Vec<(u64, Vec<u8>)>);

impl Traffic {
    /// An IPv4 packet; `near` says which of the two hosts sends.
    fn packet(&mut self, at: u64, near: bool, dscp: u8, protocol: u8, rest: &[u8]) {
        let mut frame = [2; 12].to_vec();
        let length = (20 + rest.len() as u16).to_be_bytes();
        let number = (self.0.len() as u16).to_be_bytes();
        frame.extend([
            8,
            0,
            0x45,
            dscp << 2,
            length[0],
            length[1],
            number[0],
            number[1],
            64,
            0,
            64,
            protocol,
        ]);
        frame.extend([0, 0]);
        let (from, to) = if near { (1, 2) } else { (2, 1) };
        frame.extend([192, 0, 2, from, 192, 0, 2, to]);
        frame.extend(rest);
        self.0.push((at, frame));
    }

    fn udp(&mut self, at: u64, dscp: u8, payload: usize) {
        let mut datagram = [1000, 2000, 8 + payload as u16, 0].map(u16::to_be_bytes).concat();
        datagram.resize(8 + payload, 7);
        self.packet(at, true, dscp, 17, &datagram);
    }

    /// A segment with the timestamps option.
    fn tcp(&mut self, at: u64, near: bool, value: u32, echo: u32) {
        let (from, to) = if near { (40_000_u16, 443_u16) } else { (443, 40_000) };
        let mut segment = [from, to].map(u16::to_be_bytes).concat();
        segment.extend([value, echo].map(u32::to_be_bytes).concat());
        segment.extend([0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        segment.extend([value, echo].map(u32::to_be_bytes).concat());
        segment.extend([7; 10]);
        self.packet(at, near, 0, 6, &segment);
    }

    /// In the classic format with stamps in ns.
    fn write(&self, folder: &Path) -> PathBuf {
        let mut file: Vec<u8> =
            [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, 65_535, 1].into_iter().flat_map(u32::to_le_bytes).collect();
        for (at, frame) in &self.0 {
            let (at, length) = (BEGIN + at, frame.len() as u32);
            let words = [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, length, length];
            file.extend(words.into_iter().flat_map(u32::to_le_bytes));
            file.extend(frame);
        }
        let path = folder.join("made-up.pcap");
        std::fs::write(&path, file).unwrap();
        path
    }
}

/// Rows of all periods.
fn rows(traffic: &Traffic, task: &[&str]) -> Vec<Row> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(netaware_path());
    command.args(["probe", "--period", "10s", "--format", "ndjson", "--read"]);
    let output = output(command.arg(traffic.write(folder.path())).args(task));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let reports = text.lines().map(|line| serde_json::from_str::<ProbeReport>(line).unwrap());
    reports.flat_map(|report| report.rows).map(|row| row.row).collect()
}

#[test]
fn rtt_finds_the_round_trip_of_timestamps_in_a_file() {
    let mut traffic = Traffic::default();
    for n in 0..20_u32 {
        let at = u64::from(n) * 100 * MS;
        traffic.tcp(at, true, 1000 + n, 500 + n);
        traffic.tcp(at + 30 * MS, false, 501 + n, 1000 + n);
    }
    let trips: Vec<RttRow> = rows(&traffic, &["rtt"])
        .into_iter()
        .filter_map(|row| if let Row::Rtt(row) = row { Some(row) } else { None })
        .filter(|row| row.method == "timestamps" && row.key.source_port == Some(40_000))
        .collect();
    let [row] = &trips[..] else { panic!("{trips:?}") };
    assert_eq!((row.delay.count, row.delay.min.0, row.delay.max.0), (20, 30_000_000, 30_000_000));
}

#[test]
fn marking_counts_each_block_of_a_file() {
    let mut traffic = Traffic::default();
    for n in 0..40_u64 {
        let second = n / 10;
        traffic.udp(n * 100 * MS + 50 * MS, (second % 2) as u8, 100);
    }
    let mut blocks: Vec<MarkingRow> = rows(&traffic, &["marking", "--block", "1s"])
        .into_iter()
        .filter_map(|row| if let Row::Marking(row) = row { Some(row) } else { None })
        .collect();
    blocks.sort_by_key(|row| row.block);
    let counts: Vec<(u64, u8, u64)> =
        blocks.iter().map(|row| (row.block - BEGIN / 1_000_000_000, row.colour, row.packets)).collect();
    // The fourth is not over when the file ends, but nothing more can come for it.
    assert_eq!(counts, [(0, 0, 10), (1, 1, 10), (2, 0, 10), (3, 1, 10)]);
}

#[test]
fn capacity_finds_the_rate_that_spaced_the_packets_of_a_file() {
    let mut traffic = Traffic::default();
    // Pairs of 1000 bytes from the IP header on, 800 us apart: 10 Mbit/s.
    for n in 0..400 {
        let at = n * 20 * MS + (n * n * 7919) % (3 * MS);
        traffic.udp(at, 0, 972);
        traffic.udp(at + 800_000, 0, 972);
    }
    let found: Vec<CapacityRow> = rows(&traffic, &["capacity"])
        .into_iter()
        .filter_map(|row| if let Row::Capacity(row) = row { Some(row) } else { None })
        .collect();
    assert!(!found.is_empty());
    let near = |row: &&CapacityRow| (row.rate.estimate / 1e7 - 1.0).abs() < 0.1;
    assert!(found.iter().any(|row| near(&row) && row.method == "packet_pairs"), "{found:?}");
}

#[test]
fn traffic_adds_a_file_up_and_names_who_talks() {
    let mut traffic = Traffic::default();
    for n in 0..50 {
        traffic.udp(n * 100 * MS, 0, 72);
    }
    let sums: Vec<TrafficRow> = rows(&traffic, &["traffic", "--slice", "1s"])
        .into_iter()
        .filter_map(|row| if let Row::Traffic(row) = row { Some(row) } else { None })
        .collect();
    let [row] = &sums[..] else { panic!("{sums:?}") };
    assert_eq!((row.packets, row.bytes.0), (50, 5000));
    assert_eq!(row.slices.iter().map(|slice| slice.0).collect::<Vec<_>>()[..5], [1000; 5]);
    assert_eq!(row.top[0].key.source, Some("192.0.2.1".parse().unwrap()));
}
