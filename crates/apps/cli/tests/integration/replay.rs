//! A capture file gives the same report each time it is read, to the byte: no clock and no thread's
//! luck is in it.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use netaware_record::passive::ProbeReport;
use netaware_testkit::program::{netaware_path, output};
use netaware_units::Wall;
use netaware_wire::packet::LinkType;
use netaware_wire::pcap::{Interface, Record, Writer};

const PACKETS: u32 = 20_000;
const SECOND: i64 = 1_000_000_000;

/// A frame of one of 3000 flows, IPv4 and IPv6, UDP and TCP with timestamps: each second one
/// answers the one before.
fn frame(number: u32) -> Vec<u8> {
    let flow = (number / 2).wrapping_mul(2_654_435_761) % 3000;
    let (six, back) = (flow & 1 == 1, number & 1 == 1);
    let ports = [1000 + flow as u16, 443];
    let [from, to] = if back { [ports[1], ports[0]] } else { ports };
    let mut transport: Vec<u8> = [from, to].map(u16::to_be_bytes).concat();
    let protocol = if flow.is_multiple_of(3) {
        transport.extend([0, 58, 0, 0]);
        transport.extend([flow as u8; 50]);
        17
    } else {
        transport.extend([number, number].map(u32::to_be_bytes).concat());
        transport.extend([8 << 4, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        transport.extend([number, number.saturating_sub(1)].map(u32::to_be_bytes).concat());
        transport.extend([flow as u8; 30]);
        6
    };
    let length = transport.len() as u16;
    let mut frame = [2; 12].to_vec();
    if six {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([protocol, 64]);
        for last in if back { [2, 1] } else { [1, 2] } {
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
    } else {
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((length + 20).to_be_bytes());
        frame.extend((number as u16).to_be_bytes());
        frame.extend([64, 0, 64, protocol, 0, 0]);
        for last in if back { [2, 1] } else { [1, 2] } {
            frame.extend([192, 0, 2, last]);
        }
    }
    frame.extend(transport);
    frame
}

/// Six seconds of it.
fn write(path: PathBuf, begin: impl FnOnce(File) -> std::io::Result<Writer<File>>) -> PathBuf {
    let mut writer = begin(File::create(&path).unwrap()).unwrap();
    for number in 0..PACKETS {
        let bytes = frame(number);
        let at = Wall(1_700_000_000 * SECOND + i64::from(number) * 6 * SECOND / i64::from(PACKETS));
        let wire_length = bytes.len() as u32;
        let record = Record { at, wire_length, bytes: &bytes, link: 1, interface: 0, outgoing: None };
        writer.write(&record).unwrap();
    }
    drop(writer.finish().unwrap());
    path
}

fn read(path: &Path) -> String {
    let mut command = Command::new(netaware_path());
    command.args(["probe", "volume", "traffic", "rtt", "capacity", "marking", "digest"]);
    // Far fewer than there are, so that much has to be given up.
    command.args(["--by", "source,source_port", "--keys", "40", "--format", "ndjson", "--read"]).arg(path);
    let output = output(&mut command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_file_gives_the_same_bytes_each_time_though_tables_overflow() {
    let folder = tempfile::tempdir().unwrap();
    let interfaces = [Interface { name: "lan".to_owned(), link: LinkType::Ethernet, snap: 256 }];
    let files = [
        write(folder.path().join("a.pcap"), |file| Writer::pcap(file, LinkType::Ethernet, 256)),
        write(folder.path().join("a.pcapng"), |file| Writer::pcapng(file, &interfaces)),
    ];
    for path in files {
        let first = read(&path);
        let reports: Vec<ProbeReport> =
            first.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(reports.len(), 6);
        assert_eq!(
            reports.iter().map(|report| report.captures[0].health.seen).sum::<u64>(),
            u64::from(PACKETS)
        );
        for task in ["volume", "traffic", "rtt", "digest"] {
            assert!(reports.iter().any(|report| report.rows.iter().any(|row| row.task == task)), "no {task}");
        }
        assert!(reports.iter().all(|report| report.clock.source == "none" && report.clock.bound.is_none()));
        for _ in 0..2 {
            assert!(read(&path) == first, "{} was read differently", path.display());
        }
    }
}

#[test]
fn a_file_of_which_nothing_passes_says_nothing_of_the_present() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path().join("a.pcap"), |file| Writer::pcap(file, LinkType::Ethernet, 256));
    let mut command = Command::new(netaware_path());
    let output = output(command.args(["probe", "-f", "icmp", "--format", "ndjson", "--read"]).arg(&path));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}
