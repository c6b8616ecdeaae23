//! `netaware probe` as people run it, between two namespaces:
//!
//! ```text
//!   right ── sends datagrams ── veth ── left: netaware probe -i lan volume …
//! ```
//!
//! Every datagram is counted, over both IP versions, and none is lost. Needs root: `cargo xtask netns`.

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::process::Stdio;

use netaware_netns::{IpVersion, Pair, Running, permitted};
use netaware_record::passive::{ProbeReport, Row};

const NETAWARE: &str = env!("CARGO_BIN_EXE_netaware");
const PORT: u16 = 9099;

fn send(pair: &Pair, version: IpVersion, count: usize) {
    let to = pair.left().address(version);
    let sent = pair.right().within(|| {
        let any = if version == IpVersion::V4 { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)?;
        for _ in 0..count {
            // Nobody listens there: an answer by ICMP may be told at the next call, and counts as sent.
            drop(socket.send_to(&[7; 100], (to, PORT)));
        }
        Ok(())
    });
    sent.unwrap();
}

fn counted(reports: &[ProbeReport], six: bool) -> u64 {
    let rows = reports.iter().flat_map(|report| &report.rows);
    let packets = rows.filter_map(|row| match &row.row {
        Row::Volume(volume) => {
            let ours = volume.key.destination_port == Some(PORT) && volume.key.protocol == Some(17);
            (ours && volume.key.destination.is_some_and(|to| to.is_ipv6() == six)).then_some(volume.packets)
        }
        _ => None,
    });
    packets.sum()
}

#[test]
fn every_datagram_is_counted_over_both_versions_and_privileges_are_gone() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("probe").unwrap();
    let mut command = pair.left().command(NETAWARE);
    command
        .args([
            "probe",
            "-i",
            pair.left().device(),
            "volume",
            "--by",
            "destination,protocol,destination_port",
        ])
        .args(["--format", "ndjson", "--for", "5s", "--quiet"])
        .stdout(Stdio::piped());
    let mut probe = Running::start(&mut command).unwrap();
    let mut lines = BufReader::new(probe.child().stdout.take().unwrap()).lines();
    // The first report shows that the tasks run.
    let first = lines.next().unwrap().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", probe.id())).unwrap();
    let uid = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert!(!uid.split_whitespace().any(|word| word == "0"), "still root: {uid}");
    send(&pair, IpVersion::V4, 1000);
    send(&pair, IpVersion::V6, 700);
    let lines = std::iter::once(first).chain(lines.map(Result::unwrap));
    let reports: Vec<ProbeReport> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert!(probe.child().wait().unwrap().success());
    assert!(reports.len() >= 4, "{} reports in 5 s", reports.len());
    assert_eq!((counted(&reports, false), counted(&reports, true)), (1000, 700));
    for report in &reports {
        assert_eq!(report.captures.len(), 1);
        assert_eq!(report.captures[0].health.lost(), 0);
        assert!(!report.clock.source.is_empty());
    }
    assert!(
        reports.windows(2).all(|pair| pair[0].period.until == pair[1].period.from),
        "periods leave a gap"
    );
}
