//! The tools of the field read what we write, and we read what they write: nfcapd, tshark,
//! softflowd.
//!
//! Where a tool is not installed its test says so and passes; in CI all of them are (`cargo xtask
//! ci` installs them).

mod pcap;

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use netaware_io::clock;
use netaware_ipfix::{Exporter, Listener, Options, Origin, Over, Sink};
use netaware_netns::{Transport as Bound, wait_until_bound};
use netaware_record::IpVersion;
use netaware_record::passive::{
    CaptureHealth, DelayRow, DelayStatistics, FlowKey, PacketSighting, Period, VolumeRow,
};
use netaware_units::{ByteCount, Span, Wall};
use netaware_wire::ipfix::sightings::{self, Selection};
use netaware_wire::ipfix::{Emitter, Found, Transport};

use pcap::{Capture, datagram, segment};

const SECOND: i64 = 1_000_000_000;

/// Whether a tool can be started; in CI it must.
fn installed(tool: &str) -> bool {
    let there = Command::new(tool).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(there || std::env::var_os("CI").is_none(), "{tool} is needed in CI");
    if !there {
        eprintln!("skipped: {tool} is not installed");
    }
    there
}

fn volume(n: u64, version: IpVersion, at: Wall) -> VolumeRow {
    let (source, destination) = match version {
        IpVersion::V4 => ("192.0.2.1".parse(), "198.51.100.2".parse()),
        IpVersion::V6 => ("2001:db8::1".parse(), "2001:db8:1::2".parse()),
    };
    VolumeRow {
        key: FlowKey {
            version: Some(version),
            source: source.ok(),
            destination: destination.ok(),
            protocol: Some(17),
            source_port: Some(40_000 + n as u16),
            destination_port: Some(443),
            dscp: Some(46),
            flow_label: (version == IpVersion::V6).then_some(0xabcde),
            ..FlowKey::default()
        },
        packets: n,
        bytes: ByteCount(n * 1000),
        first_at: Wall(at.0 - 10 * SECOND),
        last_at: Wall(at.0 - 2 * SECOND),
        packets_error: 0,
        rest: false,
    }
}

/// Ten flows of each version.
fn flows(at: Wall) -> Vec<VolumeRow> {
    let of = |version| (1..=10).map(move |n| volume(n, version, at));
    of(IpVersion::V4).chain(of(IpVersion::V6)).collect()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the tool starts");
    // A field that a tool does not know is an error, and would otherwise look like one that is
    // empty.
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Asks a process of ours to end, and waits for it.
fn end(mut child: Child) {
    let _ = Command::new("kill").arg(child.id().to_string()).status();
    let _ = child.wait();
}

#[test]
fn nfcapd_takes_our_flows_with_their_counts() {
    if !installed("nfcapd") || !installed("nfdump") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let nfcapd = Command::new("nfcapd")
        .args(["-b", "127.0.0.1", "-p", &port.to_string(), "-t", "300", "-w"])
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until_bound(nfcapd.id(), Bound::Udp, port).unwrap();
    let at = clock::wall();
    let mut exporter = Exporter::new(format!("udp://127.0.0.1:{port}").parse().unwrap(), None, 7);
    exporter
        .send(clock::now(), at, &mut |emitter, out| {
            for flow in flows(at) {
                emitter.volume(&flow, out);
            }
        })
        .unwrap();
    // What is in its socket when it is told to end may stay unread.
    wait("nfcapd reads what came", || unread(port) == 0);
    end(nfcapd);
    let dumped = run(Command::new("nfdump").arg("-R").arg(folder.path()).args([
        "-q",
        "-N",
        "-o",
        "fmt:%pr %sap %dap %tos %pkt %byt %td",
    ]));
    let lines = text(&dumped.stdout);
    let mut told: Vec<Vec<String>> =
        lines.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
    told.sort();
    let mut expected: Vec<Vec<String>> = flows(at).iter().map(as_nfdump).collect();
    expected.sort();
    assert_eq!(told, expected, "{lines}{}", text(&dumped.stderr));
}

/// Bytes that the UDP socket of a port holds.
fn unread(port: u16) -> u64 {
    // A line: number, local address and port, remote ones, state, bytes to send and bytes to read,
    // all in hexadecimal.
    let table = std::fs::read_to_string("/proc/net/udp").unwrap();
    let local = format!(":{port:04X}");
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|words| words.get(1).is_some_and(|address| address.ends_with(&local)));
    let queues = line.expect("its socket is open")[4].to_owned();
    u64::from_str_radix(queues.split_once(':').unwrap().1, 16).unwrap()
}

/// A flow as the format above prints it: IPv6 addresses are shortened and set off from their port
/// by a dot.
fn as_nfdump(flow: &VolumeRow) -> Vec<String> {
    let key = &flow.key;
    let (source, destination, between) = match key.version {
        Some(IpVersion::V4) => ("192.0.2.1", "198.51.100.2", ':'),
        _ => ("2001:db8::1", "2001:db8:1::2", '.'),
    };
    let ports = (key.source_port.unwrap(), key.destination_port.unwrap());
    [
        "17".to_owned(),
        format!("{source}{between}{}", ports.0),
        format!("{destination}{between}{}", ports.1),
        "184".to_owned(),
        flow.packets.to_string(),
        flow.bytes.0.to_string(),
        "8.000".to_owned(),
    ]
    .to_vec()
}

fn path(at: Wall) -> (DelayRow, Period) {
    let delay = DelayStatistics {
        count: 9,
        min: Span(1_000_000),
        max: Span(3_000_000),
        sum_ns: 18_000_000,
        ..DelayStatistics::default()
    };
    let row = DelayRow {
        from: "left".into(),
        to: "right".into(),
        version: Some(IpVersion::V4),
        method: "passive".into(),
        packets: 10,
        matched: 9,
        lost: 1,
        unobserved: 0,
        late: 0,
        duplicates: 0,
        reordered: 0,
        collisions: 0,
        given_up: 0,
        patience: Span::from_secs(1),
        delay,
        ipdv: DelayStatistics::default(),
        offset: Span::ZERO,
        clock_bound: None,
        clock_method: "same_host".into(),
        below_bound: 0,
        warnings: Vec::new(),
    };
    (row, Period { from: Wall(at.0 - 10 * SECOND), until: at })
}

/// One of everything that we send, as datagrams in a capture file.
fn everything(file: &Path, at: Wall) {
    let mut capture = Capture::new();
    let mut emitter = Emitter::new(7, 1400, Transport::Datagrams);
    let mut out = |message: &[u8]| capture.add(at, &datagram(4, 4739, 4739, message));
    emitter.begin(at, &mut out);
    for flow in flows(at) {
        emitter.volume(&flow, &mut out);
    }
    let rest = VolumeRow { rest: true, packets_error: 3, ..volume(1, IpVersion::V4, at) };
    emitter.volume(&rest, &mut out);
    let (row, period) = path(at);
    emitter.delay(&row, period, &mut out);
    emitter.capture("eth0", &CaptureHealth { seen: 9, lost_ring: 2, ..CaptureHealth::default() }, &mut out);
    let selection =
        Selection { sequence: 1, task: "delay".into(), stamp_error: Some(Span(1500)), ..<_>::default() };
    emitter.selection(&selection, &mut out);
    for digest in 0..100 {
        let seen = PacketSighting { digest, at, length: 1500, ttl: 63, version: 4 };
        emitter.packet(1, &seen, &mut out);
    }
    emitter.finish(&mut out);
    let mut batch = Vec::new();
    let seen = [PacketSighting { digest: 5, at, length: 40, ttl: 64, version: 6 }];
    sightings::emit(8, at, &[(&selection, &seen)], 1400, &mut batch);
    capture.add(at, &datagram(4, 4740, 4739, &batch));
    capture.write(file);
}

#[test]
fn tshark_finds_nothing_wrong_with_anything_we_send() {
    if !installed("tshark") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ours.pcap");
    everything(&file, Wall(1_795_440_000 * SECOND + 123_456_789));
    let tshark = |arguments: &[&str]| {
        let output = run(Command::new("tshark")
            .arg("-r")
            .arg(&file)
            .args(["-d", "udp.port==4739,cflow"])
            .args(arguments));
        text(&output.stdout)
    };
    let read = tshark(&["-V"]);
    for word in ["Malformed", "Expert Info", "No template found", "Unexpected"] {
        let at = read.find(word);
        assert!(at.is_none(), "{}", &read[at.unwrap_or(0).saturating_sub(2000)..]);
    }
    // 21 flows, a delay, a capture, and reports; one of the delays' and one of the reports'
    // elements show that they are known.
    let count = |field: &str| {
        let read = tshark(&["-T", "fields", "-E", "aggregator=,", "-e", field]);
        read.split([',', '\n']).filter(|value| !value.is_empty()).count()
    };
    assert_eq!(count("cflow.flowset_id"), read.matches("FlowSet Id:").count());
    assert_eq!(count("cflow.digest_hash_value"), 101);
    assert_eq!(count("cflow.selector_id_total_pkts_observed"), 2);
    assert_eq!(count("cflow.flow_end_reason"), 21);
    assert_eq!(count("cflow.drop_packets"), 1);
    assert!(read.contains("2026"), "observation times are of that year");
}

/// A listener for softflowd and what it found.
fn listen() -> (Listener, Arc<Mutex<Vec<Heard>>>) {
    let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
    let into = heard.clone();
    let sink: Sink = Arc::new(move |origin: &Origin, found| {
        assert_eq!(origin.domain, 0);
        let mut into = into.lock().unwrap();
        match found {
            Found::Flow(flow) => into.push(Heard::Flow(flow.row, flow.timed)),
            Found::Frame(frame) => into.push(Heard::Frame(frame.at, frame.bytes.to_vec())),
            _ => {}
        }
    });
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let options = Options { udp: Some(any), ..Options::default() };
    (Listener::open(&options, &sink).unwrap(), heard)
}

#[derive(Debug)]
enum Heard {
    Flow(VolumeRow, bool),
    Frame(Option<Wall>, Vec<u8>),
}

/// 40 rounds of one packet of each of three flows, 100 ms apart; two hours ago, in whole seconds.
fn traffic(capture: &mut Capture) -> (Wall, Vec<Vec<u8>>) {
    let begin = Wall((clock::wall().0 / SECOND - 7200) * SECOND);
    let mut frames = Vec::new();
    for round in 0..40 {
        let at = Wall(begin.0 + round * SECOND / 10);
        for frame in [
            datagram(4, 1000, 2000, &[0; 100]),
            datagram(6, 1001, 2001, &[0; 200]),
            segment(4, 1002, 2002, &[0; 300]),
        ] {
            capture.add(at, &frame);
            frames.push(frame);
        }
    }
    (begin, frames)
}

/// Runs until it is dropped, in case that it does not end by itself.
struct Softflowd(Child);

impl Drop for Softflowd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn softflowd(file: &Path, folder: &Path, listener: &Listener, options: &[&str]) -> Softflowd {
    let to = listener.address(Over::Udp).unwrap().to_string();
    let started = Command::new("softflowd")
        .arg("-r")
        .arg(file)
        .args(["-d", "-n", &to])
        .arg("-p")
        .arg(folder.join("pid"))
        // With a control socket it may wait for somebody to connect there before it reads a file.
        .args(["-c", "none"])
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Softflowd(started.expect("softflowd starts"))
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let deadline = clock::now() + Span::from_secs(5);
    while !done() {
        assert!(clock::now() < deadline, "{what}");
        clock::sleep(Span::from_millis(5));
    }
}

#[test]
fn flows_of_softflowd_have_the_counts_and_times_of_the_traffic() {
    if !installed("softflowd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("traffic.pcap");
    let mut capture = Capture::new();
    let (begin, _) = traffic(&mut capture);
    capture.write(&file);
    // Times since its start, with the start in its options (adjusted to the file by -a), and
    // absolute ones of two resolutions.
    for options in [&["-v", "10", "-a"][..], &["-v", "10", "-A", "milli"], &["-v", "10", "-A", "nano"]] {
        let (listener, heard) = listen();
        let _softflowd = softflowd(&file, folder.path(), &listener, options);
        wait("three flows", || heard.lock().unwrap().len() == 3);
        for said in heard.lock().unwrap().iter() {
            let Heard::Flow(row, timed) = said else { panic!("{said:?}") };
            let bytes = match row.key.source_port {
                Some(1000) => 100 + 28,
                Some(1001) => 200 + 48,
                Some(1002) => 300 + 40,
                port => panic!("{port:?}"),
            };
            assert_eq!((row.packets, row.bytes), (40, ByteCount(40 * bytes)), "{options:?}");
            let off = row
                .first_at
                .since(begin)
                .abs()
                .max(row.last_at.since(Wall(begin.0 + 39 * SECOND / 10)).abs());
            assert!(*timed && off <= Span::from_millis(2), "{options:?}: off by {off}");
        }
        assert_eq!((listener.totals().counts.missing, listener.totals().counts.sets_unknown), (0, 0));
    }
}

#[test]
fn packet_reports_of_softflowd_are_the_packets() {
    if !installed("softflowd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("traffic.pcap");
    let mut capture = Capture::new();
    let (begin, frames) = traffic(&mut capture);
    capture.write(&file);
    let (listener, heard) = listen();
    let _softflowd = softflowd(&file, folder.path(), &listener, &["-v", "psamp"]);
    wait("120 packets", || heard.lock().unwrap().len() == frames.len());
    for (n, (said, frame)) in heard.lock().unwrap().iter().zip(&frames).enumerate() {
        let Heard::Frame(Some(at), bytes) = said else { panic!("{said:?}") };
        assert_eq!(bytes, frame);
        let truth = Wall(begin.0 + n as i64 / 3 * SECOND / 10);
        // It adds a microsecond when it makes the fraction.
        assert!(at.since(truth).abs() <= Span::from_micros(2), "{n}: {}", at.since(truth));
    }
    assert_eq!(listener.totals().counts.missing, 0);
}

fn free_port() -> u16 {
    UdpSocket::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
