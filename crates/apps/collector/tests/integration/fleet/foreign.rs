//! IPFIX of exporters that are not ours, through a collector that runs.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream, UdpSocket};

use netaware_io::clock;
use netaware_ipfix::{Exporter, Over};
use netaware_record::IpVersion;
use netaware_record::passive::{FlowKey, PacketSighting, VolumeRow};
use netaware_units::{ByteCount, Span, Wall};
use netaware_wire::ipfix::{Emitter, Transport};

use super::joined::{periods, rows_between};
use super::probe::seen;
use super::{Running, TWO, start};

/// With places for UDP and TCP, and a join of two exporters that are told apart by their domain.
fn start_open(folder: &std::path::Path) -> Running {
    let text = format!(
        "ipfix = [\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"]{TWO}\
[exporters.left]\naddress = \"127.0.0.1\"\ndomain = 1\n[exporters.right]\naddress = \"127.0.0.1\"\ndomain = 2\n\
[joins.others]\npoints = [\"left\", \"right\"]\npatience = \"500ms\"\nreport_patience = \"2s\"\n"
    );
    start(folder, &text)
}

pub(crate) fn place(collector: &Running, over: Over) -> SocketAddr {
    collector.ipfix.iter().find(|(of, _)| *of == over).unwrap().1
}

/// Packets and bytes of the flows from `task`, by their port.
pub(crate) fn volumes(collector: &Running, task: &str) -> BTreeMap<u64, (u64, u64)> {
    let page = collector.ask(&format!("/api/v1/rows/volume?from=0&limit=10000&task={task}"));
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for item in page["items"].as_array().unwrap() {
        let row = &item["row"];
        let sum = sums.entry(row["key"]["destination_port"].as_u64().unwrap_or(0)).or_default();
        let of = |field: &str| row[field].as_u64().unwrap_or_else(|| panic!("{row}"));
        *sum = (sum.0 + of("packets"), sum.1 + of("bytes"));
    }
    sums
}

/// A counter of `/metrics`.
pub(crate) fn count(collector: &Running, name: &str) -> u64 {
    let metrics = collector.client().ask("GET", "/metrics", "").unwrap().body;
    let line =
        metrics.lines().find_map(|line| line.strip_prefix(&format!("netaware_collector_ipfix_{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

pub(crate) fn wait(what: &str, done: impl Fn() -> bool) {
    let until = clock::now() + Span::from_secs(15);
    while !done() {
        assert!(clock::now() < until, "{what}");
        clock::sleep(Span::from_millis(20));
    }
}

pub(crate) fn flow(port: u16, packets: u64) -> VolumeRow {
    let now = clock::wall();
    VolumeRow {
        key: FlowKey {
            version: Some(IpVersion::V4),
            source: Some("192.0.2.1".parse().unwrap()),
            destination_port: Some(port),
            ..FlowKey::default()
        },
        packets,
        bytes: ByteCount(packets * 100),
        first_at: Wall(now.0 - 1_000_000_000),
        last_at: now,
        packets_error: 0,
        rest: false,
    }
}

/// One message for each of `rows` of an exporter that sends datagrams, numbered on.
fn messages(rows: &[VolumeRow]) -> Vec<Vec<u8>> {
    let mut emitter = Emitter::new(9, 512, Transport::Datagrams);
    let mut all = Vec::new();
    for row in rows {
        let mut out = |bytes: &[u8]| all.push(bytes.to_vec());
        emitter.begin(clock::wall(), &mut out);
        emitter.volume(row, &mut out);
        emitter.finish(&mut out);
    }
    all
}

#[test]
fn flows_over_each_transport_are_rows_with_what_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start_open(folder.path());
    for (over, port) in [(Over::Udp, 1000), (Over::Tcp, 2000)] {
        let target = format!("{over}://{}", place(&collector, over)).parse().unwrap();
        let mut exporter = Exporter::new(target, None, 9);
        for _ in 0..3 {
            let sent = exporter.send(clock::now(), clock::wall(), &mut |emitter, out| {
                (0..50).for_each(|n| emitter.volume(&flow(port + n, u64::from(n) + 1), out));
            });
            sent.unwrap();
        }
    }
    let flows = || volumes(&collector, "ipfix-127.0.0.1");
    wait("300 records", || count(&collector, "flows_total") == 300);
    wait("all rows", || flows().values().map(|(packets, _)| packets).sum::<u64>() == 2 * 3 * 1275);
    let flows = flows();
    assert_eq!((flows[&1049], flows[&2000], flows.len()), ((150, 15_000), (3, 300), 100));
    assert_eq!((count(&collector, "missing_total"), count(&collector, "malformed_total")), (0, 0));
}

#[test]
fn packet_reports_of_two_exporters_become_delays_and_what_one_did_not_see_is_unobserved() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start_open(folder.path());
    let period = periods(1)[0];
    let at = |n: u64| period.from.0 + 100_000_000 + n as i64 * 100_000;
    let sent: Vec<PacketSighting> = (0..5000).map(|n| seen(n, at(n), 64)).collect();
    let come = (0..5000).filter(|n| n % 10 != 0);
    let delay = |n: u64| 376_000 + n as i64 % 5 * 10_000;
    let come: Vec<PacketSighting> = come.map(|n| seen(n, at(n) + delay(n), 63)).collect();
    let report = |domain, packets: &[PacketSighting]| {
        let target = format!("tcp://{}", place(&collector, Over::Tcp)).parse().unwrap();
        let mut exporter = Exporter::new(target, None, domain);
        let sent = exporter.send(clock::now(), clock::wall(), &mut |emitter, out| {
            for packet in packets {
                emitter.packet(1, packet, out);
            }
        });
        sent.unwrap();
    };
    report(1, &sent);
    report(2, &come);
    report(3, &come[..7]);
    let sums = || rows_between(&collector, "left", "right");
    wait("all is settled", || sums() == [5000, 4500, 0, 500]);
    let page = collector.ask("/api/v1/delays?from=-1h&pair=left,right");
    let row = &page["items"][0]["row"];
    // Nothing is known of their clocks: delays are those above the least, and no bound stands
    // beside them.
    assert_eq!((row["clock_method"].as_str(), row.get("clock_bound")), (Some("none"), None));
    assert_eq!((&row["delay"]["min"], &row["delay"]["max"]), (&0.into(), &40_000.into()));
    assert_eq!(
        (count(&collector, "sightings_total"), count(&collector, "sightings_unnamed_total")),
        (9500, 7)
    );
}

#[test]
fn malformed_repeated_and_replayed_messages_are_counted_by_cause_and_change_no_figure() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start_open(folder.path());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(place(&collector, Over::Udp)).unwrap();
    let all = messages(&(1..=40).map(|n| flow(n, 10)).collect::<Vec<_>>());
    let send = |message: &[u8]| {
        socket.send(message).unwrap();
    };
    for message in &all[..20] {
        send(message);
    }
    // Twice, twice after others, and one of an hour ago; then a gap of three that one fills late.
    send(&all[19]);
    send(&all[3]);
    let mut old = all[4].clone();
    let exported_at = u32::from_be_bytes(old[4..8].try_into().unwrap()) - 3600;
    old[4..8].copy_from_slice(&exported_at.to_be_bytes());
    send(&old);
    for message in &all[23..] {
        send(message);
    }
    wait("the gap is seen", || count(&collector, "missing_total") == 3);
    send(&all[21]);
    // A set whose length lies, a message cut off, and something else altogether.
    let mut lies = all[39].clone();
    lies[11] += 1;
    lies[18..20].copy_from_slice(&900_u16.to_be_bytes());
    send(&lies);
    send(&all[30][..40]);
    send(b"GET / HTTP/1.1\r\n\r\n");
    wait("all is read", || count(&collector, "messages_bad_total") == 3);
    let counts = ["missing", "late", "duplicates", "replays", "restarts", "templates_changed"];
    let counted = counts.map(|name| count(&collector, &format!("{name}_total")));
    assert_eq!(counted, [3, 1, 2, 1, 0, 0], "{counts:?}");
    let flows = || volumes(&collector, "ipfix-127.0.0.1");
    wait("38 flows", || flows().len() == 38);
    assert!(flows().values().all(|sum| *sum == (10, 1000)), "{:?}", flows());
}

#[test]
fn a_template_that_changes_is_followed_by_the_collector_and_data_without_one_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start_open(folder.path());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(place(&collector, Over::Udp)).unwrap();
    // Set 300 is (destination port, packets) of 2 and 4 bytes, later (packets, destination port) of
    // 8 and 2.
    let message = |number: u32, set: u16, body: &[u8]| {
        let length = 16 + 4 + body.len() as u16;
        let mut bytes = [10_u16.to_be_bytes(), length.to_be_bytes()].concat();
        bytes.extend((clock::wall().0 / 1_000_000_000).to_be_bytes()[4..].iter());
        bytes.extend(number.to_be_bytes());
        bytes.extend(5_u32.to_be_bytes());
        bytes.extend([set.to_be_bytes(), (4 + body.len() as u16).to_be_bytes()].concat());
        bytes.extend_from_slice(body);
        socket.send(&bytes).unwrap();
    };
    message(0, 300, &[0, 80, 0, 0, 0, 1]);
    message(0, 2, &[1, 44, 0, 2, 0, 11, 0, 2, 0, 2, 0, 4]);
    message(0, 300, &[0, 80, 0, 0, 0, 7]);
    message(1, 2, &[1, 44, 0, 2, 0, 2, 0, 8, 0, 11, 0, 2]);
    message(1, 300, &[0, 0, 0, 0, 0, 0, 0, 9, 0, 81]);
    wait("both flows", || volumes(&collector, "ipfix-127.0.0.1") == [(80, (7, 0)), (81, (9, 0))].into());
    let counted = ["sets_unknown_total", "templates_changed_total"].map(|name| count(&collector, name));
    assert_eq!(counted, [1, 1]);
}

#[test]
fn silent_strangers_and_a_crowd_of_addresses_are_bounded_and_datagrams_are_read_all_the_same() {
    netaware_host::raise_open_files(4096);
    let folder = tempfile::tempdir().unwrap();
    let collector = start_open(folder.path());
    let silent: Vec<TcpStream> =
        (0..70).map(|_| TcpStream::connect(place(&collector, Over::Tcp)).unwrap()).collect();
    wait("no more than there are places for", || {
        (count(&collector, "connections"), count(&collector, "refused_total")) == (64, 6)
    });
    let sockets: Vec<UdpSocket> = (0..1100).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let message = messages(&[flow(80, 1)]).remove(0);
    for (sent, socket) in sockets.iter().enumerate() {
        socket.send_to(&message, place(&collector, Over::Udp)).unwrap();
        // Small buffers of kernels must not decide this.
        if sent % 50 == 49 {
            wait("these are read", || {
                count(&collector, "exporters") + count(&collector, "refused_total") - 6 == sent as u64 + 1
            });
        }
    }
    assert_eq!((count(&collector, "exporters"), count(&collector, "refused_total")), (1024, 6 + 76));
    wait("the flows of those who had a place", || {
        volumes(&collector, "ipfix-127.0.0.1").get(&80) == Some(&(1024, 102_400))
    });
    drop(silent);
}
