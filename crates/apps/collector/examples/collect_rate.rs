//! How many IPFIX messages of other exporters a collector takes in a second, over TCP on loopback,
//! store and join included:
//!
//! ```text
//! cargo run --release -p netaware-collector --example collect_rate -- [seconds] [messages/s]
//! ```
//!
//! Without a rate, or with 0, as many are sent as it takes.
//!
//! Three exporters, each with a connection, all in one thread here: one of flows (half of the
//! messages), and two of packet reports that see the same packets 0.376 ms apart, which the
//! collector joins to delays. Messages have 1400 bytes: 17 flows (of 8,000 different ones, as far
//! as a second goes), or 57 reports. Every report has a digest and a stamp of its own. At the end
//! all has to be accounted for: what was sent, what the collector counted, and the packets in its
//! rows. It fails if a message or a packet is missing, and, unless it was told to send fewer, if
//! the collector takes fewer than 100,000 messages a second.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use netaware_collector::{Client, Collector, Config};
use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_record::passive::{FlowKey, PacketSighting, VolumeRow};
use netaware_units::{ByteCount, Mono, Span, Wall};
use netaware_wire::ipfix::{Emitter, Transport};

/// Bytes of a message.
const LENGTH: usize = 1400;
/// Bytes that are handed to the kernel at once.
const CHUNK: usize = 60_000;
/// Sequence number in a message.
const SEQUENCE: std::ops::Range<usize> = 8..12;
/// Head of a message and of its set.
const HEADS: usize = 20;
/// Bytes of a packet report: selection, stamp, digest and three more.
const REPORT: usize = 24;
const MESSAGES_OF_FLOWS: u64 = 470;

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (seconds, rate) = (arguments.next().unwrap_or(10), arguments.next().unwrap_or(0));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("collect.toml");
    std::fs::write(&path, TOML).expect("the file");
    let collector = Collector::start(Config::load(&path).expect("a configuration")).expect("a collector");
    let (page, at, stopper) =
        (collector.addresses()[0], collector.ipfix_addresses()[0].1, collector.stopper());
    let thread = std::thread::spawn(move || collector.run());
    let client = Client::new(&format!("http://{page}"), None, None).expect("an address");

    let (begin, before) = (clock::now(), threads());
    let sent = Senders::new(at).run(begin, Span::from_secs(seconds as i64), rate);
    let lasted = (clock::now() - begin).secs_f64();
    let received = count(&client, "messages_total");
    let used = threads();
    while count(&client, "messages_total") < sent.messages
        && clock::now() - begin < Span::from_secs(seconds as i64 + 20)
    {
        clock::sleep(Span::from_millis(20));
    }
    let all = (clock::now() - begin).secs_f64();
    let counted = ["messages_total", "missing_total", "flows_total", "sightings_total"]
        .map(|name| count(&client, name));
    println!(
        "sent {:.0} messages/s, received {:.0}/s; of {} sent {} received in {all:.2} s, {} missing; {:.2} M flows/s, {:.2} M packet reports/s",
        sent.messages as f64 / lasted,
        received as f64 / lasted,
        sent.messages,
        counted[0],
        counted[1],
        counted[2] as f64 / all / 1e6,
        counted[3] as f64 / all / 1e6,
    );
    let mut total = 0.0;
    for (name, now) in &used {
        let cpu = now - before.get(name).copied().unwrap_or_default();
        total += cpu;
        if cpu / lasted > 0.005 {
            println!("  {name:<16} {:.2} cores", cpu / lasted);
        }
    }
    println!(
        "  {:<16} {:.2} cores, {:.2} us a message",
        "all",
        total / lasted,
        total / received as f64 * 1e6
    );
    // The joins settle what they hold, and the store takes the last rows.
    let of = |name: &str| -> f64 {
        let metrics = client.ask("GET", "/metrics", "").expect("an answer").body;
        metrics
            .lines()
            .filter(|line| line.starts_with(name) && line.contains("from=\"left\""))
            .map(value)
            .sum()
    };
    let give_up_at = clock::now() + Span::from_secs(30);
    while of("netaware_path_packets_total") < sent.packets as f64 && clock::now() < give_up_at {
        clock::sleep(Span::from_millis(200));
    }
    println!(
        "packets {} sent as reports of each point, {} in rows: {} matched, {} lost, {} unobserved",
        sent.packets,
        of("netaware_path_packets_total"),
        of("netaware_path_matched_total"),
        of("netaware_path_lost_total"),
        of("netaware_path_unobserved_total"),
    );
    let rows = ["packets", "matched", "lost", "unobserved"]
        .map(|figure| of(&format!("netaware_path_{figure}_total")) as u64);
    stopper.stop();
    thread.join().expect("no panic").expect("an orderly end");
    assert_eq!((counted[0], counted[1]), (sent.messages, 0), "messages taken, and missing");
    assert_eq!(rows, [sent.packets, sent.packets, 0, 0], "packets, matched, lost and unobserved");
    let floor = if rate > 0 { FLOOR.min(0.99 * rate as f64) } else { FLOOR };
    let taken = received as f64 / lasted;
    assert!(taken >= floor, "{taken:.0} messages/s are fewer than {floor:.0}");
}

/// Messages a second that a collector takes on two cores, at least.
const FLOOR: f64 = 100_000.0;

const TOML: &str = r#"
listen = ["127.0.0.1:0"]
ipfix = ["tcp://127.0.0.1:0"]
[exporters.left]
address = "127.0.0.1"
domain = 1
[exporters.right]
address = "127.0.0.1"
domain = 2
[joins.path]
points = ["left", "right"]
pairs = [["left", "right"]]
patience = "500ms"
report_patience = "2s"
"#;

/// A connection and what waits to be handed to the kernel.
struct Line {
    stream: TcpStream,
    waiting: Vec<u8>,
    sequence: u32,
}

impl Line {
    fn new(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).expect("connected");
        Self { stream, waiting: Vec::with_capacity(2 * CHUNK), sequence: 0 }
    }

    fn send(&mut self, message: &mut [u8], records: u32) {
        message[SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        self.sequence = self.sequence.wrapping_add(records);
        self.waiting.extend_from_slice(message);
        if self.waiting.len() > CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.stream.write_all(&self.waiting).expect("taken");
        self.waiting.clear();
    }
}

#[derive(Default)]
struct Sent {
    messages: u64,
    /// Of each point.
    packets: u64,
}

struct Senders {
    lines: [Line; 3],
    flows: Vec<(Vec<u8>, u32)>,
    /// A message full of packet reports, whose stamps and digests are put right each time.
    reports: Vec<u8>,
    digest: u64,
    sent: Sent,
}

impl Senders {
    fn new(at: SocketAddr) -> Self {
        let mut lines = [Line::new(at), Line::new(at), Line::new(at)];
        let (templates, flows) = made_flows();
        let (announced, reports) = made_reports();
        lines[0].waiting.extend(templates);
        for (line, domain) in lines[1..].iter_mut().zip([1_u32, 2]) {
            let mut own = announced.clone();
            own[12..16].copy_from_slice(&domain.to_be_bytes());
            line.waiting.extend(own);
        }
        // The messages with the templates.
        let sent = Sent { messages: 3, packets: 0 };
        Self { lines, flows, reports, digest: 0, sent }
    }

    fn run(mut self, begin: Mono, lasts: Span, rate: u64) -> Sent {
        let mut next = 0;
        loop {
            let passed = clock::now() - begin;
            if passed >= lasts {
                break;
            }
            if rate > 0 && self.sent.messages as f64 > passed.secs_f64() * rate as f64 {
                clock::sleep(Span::from_millis(1));
                continue;
            }
            for _ in 0..20 {
                for _ in 0..2 {
                    next = (next + 1) % self.flows.len();
                    let (message, flows) = &mut self.flows[next];
                    self.lines[0].send(message, *flows);
                }
                self.packets();
                self.sent.messages += 4;
            }
        }
        self.lines.iter_mut().for_each(Line::flush);
        self.sent
    }

    /// The same packets at both points.
    fn packets(&mut self) {
        let reports = (self.reports.len() - HEADS) / REPORT;
        let at = clock::wall();
        for (domain, later) in [(1_u32, 0), (2, 376_000)] {
            self.reports[12..16].copy_from_slice(&domain.to_be_bytes());
            let stamp = ntp(Wall(at.0 + later)).to_be_bytes();
            for (n, report) in self.reports[HEADS..].chunks_exact_mut(REPORT).enumerate() {
                let digest = (self.digest + n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                report[4..12].copy_from_slice(&stamp);
                report[12..20].copy_from_slice(&digest.to_be_bytes());
            }
            self.lines[domain as usize].send(&mut self.reports, reports as u32);
        }
        self.digest += reports as u64;
        self.sent.packets += reports as u64;
    }
}

/// Seconds since 1900 in 32 bits, and their fraction in as many (RFC 5905 §6).
fn ntp(at: Wall) -> u64 {
    let (seconds, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
    let whole = (seconds as u64 + 2_208_988_800) & 0xffff_ffff;
    whole << 32 | ((nanos as u64) << 32).div_ceil(1_000_000_000)
}

/// The message with the template and one flow, and full ones without it, each with its number of
/// flows.
fn made_flows() -> (Vec<u8>, Vec<(Vec<u8>, u32)>) {
    let at = clock::wall();
    let mut emitter = Emitter::new(9, LENGTH, Transport::Stream);
    let row = |n: u64| VolumeRow {
        key: FlowKey {
            version: Some(IpVersion::V4),
            source: Some(std::net::Ipv4Addr::from(0x0a00_0000 + n as u32).into()),
            destination: Some([192, 0, 2, 1].into()),
            protocol: Some(6),
            source_port: Some(n as u16),
            destination_port: Some(443),
            ..FlowKey::default()
        },
        packets: 1 + n % 100,
        bytes: ByteCount(1000 * (1 + n % 100)),
        first_at: Wall(at.0 - 1_000_000_000),
        last_at: at,
        packets_error: 0,
        rest: false,
    };
    let mut first = Vec::new();
    emitter.begin(at, &mut |_| {});
    emitter.volume(&row(0), &mut |_| {});
    emitter.finish(&mut |bytes| first.extend_from_slice(bytes));
    let mut full = Vec::new();
    for n in 0.. {
        emitter.volume(&row(n), &mut |bytes| full.push(bytes.to_vec()));
        if full.len() as u64 >= MESSAGES_OF_FLOWS {
            break;
        }
    }
    let sequences: Vec<u32> = full.iter().map(|one| be32(&one[SEQUENCE])).collect();
    let counts = sequences.windows(2).map(|two| two[1].wrapping_sub(two[0]));
    let counted: Vec<u32> = counts.chain([sequences[1] - sequences[0]]).collect();
    // The flow of the first message is not sent again.
    let line_begins = be32(&first[SEQUENCE]);
    assert_eq!(line_begins, 0);
    (without_records(&first), full.into_iter().zip(counted).collect())
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

/// The message with the template alone, and one full of reports.
fn made_reports() -> (Vec<u8>, Vec<u8>) {
    let mut emitter = Emitter::new(1, LENGTH, Transport::Stream);
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let mut out = |bytes: &[u8]| messages.push(bytes.to_vec());
    emitter.begin(clock::wall(), &mut out);
    let seen = PacketSighting { digest: 1, at: clock::wall(), length: 1500, ttl: 64, version: 4 };
    (0..200).for_each(|_| emitter.packet(1, &seen, &mut out));
    (without_records(&messages[0]), messages.swap_remove(1))
}

/// A message cut off behind its first set, which has the templates.
fn without_records(message: &[u8]) -> Vec<u8> {
    let set = usize::from(u16::from_be_bytes([message[18], message[19]]));
    let mut alone = message[..16 + set].to_vec();
    alone[2..4].copy_from_slice(&(16 + set as u16).to_be_bytes());
    alone
}

fn value(line: &str) -> f64 {
    line.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

fn count(client: &Client, name: &str) -> u64 {
    let metrics = client.ask("GET", "/metrics", "").expect("an answer").body;
    let begin = format!("netaware_collector_ipfix_{name} ");
    metrics.lines().find(|line| line.starts_with(&begin)).map_or(0, |line| value(line) as u64)
}

/// CPU seconds of this process's threads by their name, as the scheduler has measured them.
fn threads() -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").expect("/proc").flatten() {
        let read = |file| std::fs::read_to_string(task.path().join(file));
        let (Ok(name), Ok(times)) = (read("comm"), read("schedstat")) else { continue };
        let on_cpu_ns = times.split(' ').next().and_then(|word| word.parse::<f64>().ok());
        *all.entry(name.trim_end().to_owned()).or_default() += on_cpu_ns.unwrap_or(0.0) / 1e9;
    }
    all
}
