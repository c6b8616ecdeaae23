//! `netaware probe --export` as people run it, with the collectors of the field at the other end,
//! and `netaware collect run --ipfix` with an exporter of the field at the other.
//!
//! A capture file is the source, so that the truth is known and no privilege is needed. Where a
//! tool is not installed its test says so and passes; in CI all of them are.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use netaware_io::clock;
use netaware_ipfix::{Listener, Options, Over, Sink};
use netaware_netns::{Transport, wait_until_bound};
use netaware_testkit::program::{free_port, netaware_path, output};
use netaware_units::Span;
use netaware_wire::ipfix::Found;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Packets of each flow.
const PACKETS: u64 = 40;

/// Whether a tool can be started; in CI it must.
fn installed(tool: &str) -> bool {
    let there = Command::new(tool).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(there || std::env::var_os("CI").is_none(), "{tool} is needed in CI");
    if !there {
        eprintln!("skipped: {tool} is not installed");
    }
    there
}

/// A frame with a UDP datagram of 100 bytes, each with a content of its own.
fn frame(six: bool, port: u16, n: u8) -> Vec<u8> {
    let mut frame = [2; 12].to_vec();
    if six {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 108, 17, 64]);
        for last in [1, 2] {
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
    } else {
        frame.extend([8, 0, 0x45, 0, 0, 128, 0, n, 64, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
    }
    frame.extend([port, 2000, 108, 0].map(u16::to_be_bytes).concat());
    frame.extend([n; 100]);
    frame
}

/// Two flows, one of each version, 100 ms between their packets, in a capture file in the classic
/// format.
fn capture(folder: &Path) -> PathBuf {
    let mut file: Vec<u8> =
        [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 1].into_iter().flat_map(u32::to_le_bytes).collect();
    for n in 0..PACKETS {
        for (six, port) in [(false, 1000), (true, 1001)] {
            let frame = frame(six, port, n as u8);
            let length = frame.len() as u32;
            let at = 1_795_440_000_000 + n * 100;
            let words = [(at / 1000) as u32, (at % 1000) as u32 * 1000, length, length];
            file.extend(words.into_iter().flat_map(u32::to_le_bytes));
            file.extend(frame);
        }
    }
    let path = folder.join("traffic.pcap");
    std::fs::write(&path, file).unwrap();
    path
}

fn probe(folder: &Path, arguments: &[&str]) -> Output {
    let file = capture(folder);
    let mut command = Command::new(netaware_path());
    output(command.args(["probe", "--period", "10s", "--read"]).arg(file).args(arguments))
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
fn nfcapd_takes_the_flows_of_a_file_over_udp() {
    if !installed("nfcapd") || !installed("nfdump") {
        return;
    }
    let (folder, flows) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let port = free_port();
    let nfcapd = Command::new("nfcapd")
        .args(["-b", "127.0.0.1", "-p", &port.to_string(), "-t", "300", "-w"])
        .arg(flows.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until_bound(nfcapd.id(), Transport::Udp, port).unwrap();
    let to = format!("udp://127.0.0.1:{port}");
    let output = probe(folder.path(), &["--export", &to, "volume", "digest"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "", "nothing is printed beside an export");
    // What is in its socket when it is told to end would stay unread.
    let due = clock::now() + Span::from_secs(10);
    while unread(port) > 0 {
        assert!(clock::now() < due, "nfcapd reads nothing");
        clock::sleep(Span::from_millis(5));
    }
    end(nfcapd);
    let dumped = Command::new("nfdump")
        .arg("-R")
        .arg(flows.path())
        .args(["-q", "-N", "-o", "fmt:%pr %sap %dap %pkt %byt %td"])
        .output()
        .unwrap();
    let lines = text(&dumped.stdout);
    let mut told: Vec<String> =
        lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    told.sort();
    // From the first packet to the last: 3.9 s.
    let expected = [
        format!("17 192.0.2.1:1000 198.51.100.2:2000 {PACKETS} {} 3.900", PACKETS * 128),
        format!("17 2001:db8::1.1001 2001:db8::2.2000 {PACKETS} {} 3.900", PACKETS * 148),
    ];
    assert_eq!(told, expected, "{lines}{}", text(&dumped.stderr));
}

/// Bytes that lie in the socket of a UDP port of this host, still unread.
fn unread(port: u16) -> u64 {
    let table = std::fs::read_to_string("/proc/net/udp").unwrap();
    let ours =
        |line: &&str| line.split_whitespace().nth(1).is_some_and(|it| it.ends_with(&format!(":{port:04X}")));
    let queue = |line: &str| line.split_whitespace().nth(4)?.split_once(':').map(|it| it.1.to_owned());
    let queues = table.lines().skip(1).filter(ours).filter_map(queue);
    queues.map(|bytes| u64::from_str_radix(&bytes, 16).unwrap()).sum()
}

/// What a collector over TCP was sent, as a capture of it: one frame per 1400 bytes, so that tshark
/// can put it together.
fn received(listener: &TcpListener) -> Vec<u8> {
    let (mut stream, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn tshark_reads_flows_and_packet_reports_of_a_file_over_tcp() {
    if !installed("tshark") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp://{}", listener.local_addr().unwrap());
    let taking = std::thread::spawn(move || received(&listener));
    let hash = ["--function", "bob", "--payload", "16", "--initialiser", "0x9a3f9a3f"];
    let output = probe(folder.path(), &[&["--export", &to, "volume", "digest"], &hash[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let bytes = taking.join().unwrap();
    // tshark opens a file of IPFIX messages as such (RFC 5655).
    let file = folder.path().join("received.ipfix");
    std::fs::File::create(&file).unwrap().write_all(&bytes).unwrap();
    // It refuses names of fields that it does not know.
    let tshark = |arguments: &[&str]| {
        let output = Command::new("tshark").arg("-r").arg(&file).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let read = tshark(&["-V"]);
    for word in ["Malformed", "Expert Info", "No template found", "Unexpected"] {
        assert!(!read.contains(word), "{word}: {read}");
    }
    let values = |field: &str| {
        let read = tshark(&["-T", "fields", "-E", "aggregator=,", "-e", field]);
        read.split([',', '\n']).filter(|value| !value.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut digests = values("cflow.digest_hash_value");
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len() as u64, 2 * PACKETS, "each packet has its own");
    assert_eq!(values("cflow.flow_end_reason").len(), 2, "two flows");
    let selector = [
        ("selector_algorithm", "6"),
        ("hash_ippayload_offset", "0"),
        ("hash_ippayload_size", "16"),
        ("hash_output_range_max", "4294967295"),
        ("hash_selected_range_max", "4294967295"),
    ];
    for (field, value) in selector {
        let told = values(&format!("cflow.{field}"));
        assert!(!told.is_empty() && told.iter().all(|one| one == value), "{field}: {told:?}");
    }
    assert!(values("cflow.hash_initialiser_value").is_empty(), "a secret");
    assert!(values("cflow.absolute_error").is_empty(), "nobody knows how good the clock of a file was");
    let observed = values("cflow.selector_id_total_pkts_observed");
    assert_eq!(observed.last().map(String::as_str), Some("80"), "{observed:?}");
}

#[test]
fn over_tls_only_a_collector_that_is_known_gets_anything() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (pem, other) = (folder.path().join("ca.pem"), folder.path().join("other.pem"));
    std::fs::write(&pem, made.cert.pem()).unwrap();
    let another = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&other, another.cert.pem()).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
    let server = ServerConfig::builder_with_provider(netaware_tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let heard: Arc<Mutex<Vec<u64>>> = Arc::default();
    let into = heard.clone();
    let sink: Sink = Arc::new(move |_, found| {
        if let Found::Flow(flow) = found {
            into.lock().unwrap().push(flow.row.packets);
        }
    });
    let any = ([127, 0, 0, 1], 0).into();
    let options = Options { tls: Some((any, Arc::new(server))), ..Options::default() };
    let listener = Listener::open(&options, &sink).unwrap();
    let to = format!("tls://localhost:{}", listener.address(Over::Tls).unwrap().port());
    let export = |ca: &Path| probe(folder.path(), &["--export", &to, "--ca", ca.to_str().unwrap(), "volume"]);
    let refused = export(&other);
    assert_eq!(refused.status.code(), Some(2));
    let why = text(&refused.stderr);
    assert!(why.contains("no TLS with") && why.contains("not all was exported"), "{why}");
    assert!(heard.lock().unwrap().is_empty());
    let taken = export(&pem);
    assert!(taken.status.success(), "{}", text(&taken.stderr));
    let until = clock::now() + Span::from_secs(10);
    while heard.lock().unwrap().len() < 2 {
        assert!(clock::now() < until, "two flows");
        clock::sleep(Span::from_millis(5));
    }
    assert_eq!(*heard.lock().unwrap(), [PACKETS, PACKETS]);
}

/// A process that is ended when it goes out of scope.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A collector as people start it.
struct Collecting {
    _process: Running,
    page: String,
    ipfix: String,
}

fn collect(folder: &Path) -> Collecting {
    let file = folder.join("collect.toml");
    std::fs::write(&file, "listen = [\"127.0.0.1:0\"]\n").unwrap();
    let mut child = Command::new(netaware_path())
        .args(["collect", "run", "--ipfix", "udp://127.0.0.1:0", "--config"])
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut said = |begin: &str| lines.find_map(|line| line.strip_prefix(begin).map(str::to_owned)).unwrap();
    let page = said("collecting on ").split(';').next().unwrap().to_owned();
    let ipfix = said("taking IPFIX at udp://");
    Collecting { _process: Running(child), page, ipfix }
}

impl Collecting {
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.page).unwrap();
        let page = &self.page;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {page}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// A count of `/metrics`.
    fn count(&self, name: &str) -> u64 {
        let metrics = self.get("/metrics");
        let line =
            metrics.lines().find_map(|line| line.strip_prefix(&format!("netaware_collector_ipfix_{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
    }

    /// Source port, packets and bytes of the volumes in the store.
    fn volumes(&self) -> Vec<[u64; 3]> {
        let rows: serde_json::Value = serde_json::from_str(&self.get("/api/v1/rows/volume?from=0")).unwrap();
        let row = |item: &serde_json::Value| {
            let number = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{item}"));
            let row = &item["row"];
            [number(&row["key"]["source_port"]), number(&row["packets"]), number(&row["bytes"])]
        };
        let mut volumes: Vec<_> = rows["items"].as_array().unwrap().iter().map(row).collect();
        volumes.sort_unstable();
        volumes
    }

    fn await_until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let until = clock::now() + Span::from_secs(10);
        while !done(self) {
            assert!(clock::now() < until, "{what}");
            clock::sleep(Span::from_millis(20));
        }
    }
}

/// Exports the traffic of the file above.
fn softflowd(folder: &Path, to: &str, options: &[&str]) -> Running {
    let started = Command::new("softflowd")
        .arg("-r")
        .arg(capture(folder))
        .args(["-d", "-n", to, "-c", "none", "-p"])
        .arg(folder.join("pid"))
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Running(started.unwrap())
}

#[test]
fn flows_of_softflowd_are_rows_of_the_collector_with_the_counts_of_the_traffic() {
    if !installed("softflowd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let collector = collect(folder.path());
    let _softflowd = softflowd(folder.path(), &collector.ipfix, &["-v", "10", "-A", "nano"]);
    let expected = [[1000, PACKETS, PACKETS * 128], [1001, PACKETS, PACKETS * 148]];
    collector.await_until("both flows", |collector| collector.volumes().len() == 2);
    assert_eq!(collector.volumes(), expected);
    let counts = ["flows_total", "missing_total", "malformed_total", "sets_unknown_total"];
    assert_eq!(counts.map(|name| collector.count(name)), [2, 0, 0, 0], "{counts:?}");
}

#[test]
fn packet_reports_of_softflowd_which_have_no_digest_are_counted_by_the_collector() {
    if !installed("softflowd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let collector = collect(folder.path());
    let _softflowd = softflowd(folder.path(), &collector.ipfix, &["-v", "psamp"]);
    collector.await_until("80 packets", |collector| collector.count("frames_total") == 2 * PACKETS);
    assert_eq!((collector.count("missing_total"), collector.volumes().len()), (0, 0));
}
