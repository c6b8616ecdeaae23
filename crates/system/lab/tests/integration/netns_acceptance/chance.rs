//! Loss and duplication of 100,000 real packets of each version.

use std::net::UdpSocket;
use std::path::Path;

use netaware_io::clock;
use netaware_io::pacer::{self, Pacer};
use netaware_lab::{Lab, LabOptions, Side, TruthDetail, TruthFile};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::lab::{self, options, scenario};
use netaware_units::Span;

use super::ground::{Judged, VERSIONS};
use super::wire::make_room;

const PACKETS: u32 = 100_000;
/// 20,000/s.
const GAP_PS: u64 = 50_000_000;
/// Half the width of the interval that a binomial count misses once in a hundred.
const NINETY_NINE: f64 = 2.576;

/// Lateness does not matter here.
const ANY_TIME: Span = Span::from_secs(3600);

/// What the receiver counted.
#[derive(Debug, Default)]
struct Count {
    distinct: u32,
    copies: u32,
    /// Dropped by the receiving socket: the path had delivered them.
    socket: u64,
}

#[track_caller]
fn assert_binomial(happened: u32, probability: f64, what: &str) {
    let (mean, n) = (f64::from(PACKETS) * probability, f64::from(PACKETS));
    let half = NINETY_NINE * (n * probability * (1.0 - probability)).sqrt();
    println!("{what}: {happened} of {PACKETS}, {mean:.0} ± {half:.0} expected");
    assert!(
        (f64::from(happened) - mean).abs() <= half,
        "{what}: {happened} instead of {mean:.0} ± {half:.0}"
    );
}

#[test]
fn loss_and_duplication_of_real_packets_are_within_the_binomial_interval() {
    if !permitted() {
        return;
    }
    // The draws depend on the seed and the packets, not on when these come: a count that is right
    // is right every time.
    let path = scenario("[[hop]]\nrate = '1Gbit/s'\ndelay = '2ms'\nloss = '1%'\nduplication = '2%'\n");
    let mut judged = Judged::default();
    for (seed, version) in [1, 2].into_iter().zip(VERSIONS) {
        let folder = tempfile::tempdir().unwrap();
        let truth = folder.path().join("truth");
        let file = TruthFile { path: truth.clone(), detail: TruthDetail::Intervals };
        let lab = lab::start(&path, &LabOptions { seed, truth: Some(file), ..options() });
        let count = stream(&lab, version);
        let report = lab.end().unwrap();
        // However late it was: what the emulator or the receiving socket dropped by its own fault
        // is no chance.
        if !judged.is_valid(&report, ANY_TIME) || !judged.has_room(count.socket) {
            continue;
        }
        let lost = PACKETS - count.distinct;
        assert_eq!(u64::from(lost), lost_in_truth(&truth), "the truth and the receiver agree to the packet");
        assert_binomial(lost, 0.01, &format!("{}, lost", version.name()));
        // Only what was not lost is sent twice.
        assert_binomial(count.copies, 0.02 * 0.99, &format!("{}, copied", version.name()));
    }
    judged.end();
}

/// One thread sends and receives: while it does not have its core nothing is sent, so no socket
/// overflows.
fn stream(lab: &Lab, version: IpVersion) -> Count {
    let [from, to] = [Side::A, Side::B].map(|side| lab.address(side, version));
    let receiver = lab.within(Side::B, || UdpSocket::bind((to, PORT))).unwrap();
    make_room(&receiver);
    let sender = lab.within(Side::A, || UdpSocket::bind((from, 0))).unwrap();
    sender.connect((to, PORT)).unwrap();
    receiver.set_nonblocking(true).unwrap();
    let mut pacer = Pacer::new(clock::now() + Span::from_millis(50), GAP_PS);
    let (mut seen, mut count) = (vec![false; PACKETS as usize], Count::default());
    for number in 0..PACKETS {
        pacer::wait_until(pacer.due());
        pacer.advance();
        sender.send(&number.to_be_bytes()).unwrap();
        take(&receiver, &mut seen, &mut count);
    }
    // Half a second of silence closes the intervals of the truth; by then the last ones have come,
    // too.
    clock::sleep(Span::from_millis(600));
    take(&receiver, &mut seen, &mut count);
    count.socket = refused_by_sockets(lab);
    count
}

const PORT: u16 = 9;

/// Whatever has come.
fn take(receiver: &UdpSocket, seen: &mut [bool], count: &mut Count) {
    let mut buffer = [0; 64];
    while receiver.recv(&mut buffer).is_ok() {
        let number = u32::from_be_bytes(*buffer.first_chunk().unwrap());
        if std::mem::replace(&mut seen[number as usize], true) {
            count.copies += 1;
        } else {
            count.distinct += 1;
        }
    }
}

/// `RcvbufErrors` of both versions on host B.
fn refused_by_sockets(lab: &Lab) -> u64 {
    lab.within(Side::B, || {
        let four = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
        let six = std::fs::read_to_string("/proc/thread-self/net/snmp6")?;
        Ok(column(&four, "Udp:", "RcvbufErrors") + row(&six, "Udp6RcvbufErrors"))
    })
    .unwrap()
}

/// A line of names above a line of numbers.
fn column(table: &str, head: &str, name: &str) -> u64 {
    let mut lines = table.lines().filter(|line| line.starts_with(head));
    let (names, numbers) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.split_whitespace().position(|field| field == name).unwrap();
    numbers.split_whitespace().nth(place).unwrap().parse().unwrap()
}

fn row(table: &str, name: &str) -> u64 {
    let line = table.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Sum over the intervals of what link 0 lost of A's packets. Half a second of silence has closed
/// them all.
fn lost_in_truth(file: &Path) -> u64 {
    let loss = netaware_netmodel::DropCause::Loss as usize;
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let forward = lines.filter(|line| line["type"] == "interval" && line["from"] == "a");
    forward.filter_map(|line| line["links"][0]["dropped"][loss].as_u64()).sum()
}
