//! What a captured packet costs, beside what it costs tcpdump, on the same traffic in the same run,
//! in turn.
//!
//! `cargo run --release -p netaware-capture --example rate [SECONDS] [ROUNDS]`, as root; needs
//! tcpdump. One thread sends UDP over a veth pair as fast as it can, one datagram at a time and
//! then with segmentation; the reader's CPU time is the kernel's count for its thread (tcpdump's:
//! for its process, without start and end). What the kernel does to put a packet into a ring is the
//! sender's time and the same for all.
#![expect(unsafe_code, reason = "resource usage and segmentation have no safe wrapper")]
#![expect(clippy::disallowed_methods, reason = "a measurement by hand, whose length needs no precision")]

use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use netaware_capture::{Capture, Options};
use netaware_netns::{Pair, Running};
use netaware_passive::{Found, Link, Observed, Seed, Watch, watch};
use netaware_record::passive::Period;
use netaware_units::{Span, Wall};
use netaware_wire::lmap::What;
use netaware_wire::packet;

const PORT: u16 = 9000;

/// What one reader did in one round.
struct Outcome {
    packets: u64,
    lost: u64,
    cpu_ns: u64,
}

fn main() -> io::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a whole number"));
    let (seconds, rounds) = (numbers.next().unwrap_or(3), numbers.next().unwrap_or(3));
    let pair = Pair::new("rate").expect("namespaces need root");
    println!("{:<34} {:>10} {:>12} {:>8} {:>8}", "", "packets/s", "ns/packet", "lost", "ratio");
    for (traffic, segment) in [("single datagrams of 64 B", 0), ("64 datagrams of 64 B to a frame", 64)] {
        for _ in 0..rounds {
            let reference = under_load(&pair, seconds, segment, tcpdump)?;
            let reference_ns = reference.cpu_ns as f64 / reference.packets.max(1) as f64;
            print(&format!("tcpdump, {traffic}"), &reference, seconds, reference_ns);
            for tasks in [0, 1, 4] {
                let ours = under_load(&pair, seconds, segment, |pair, over| netaware(pair, over, tasks))?;
                print(&format!("netaware, tasks: {tasks}"), &ours, seconds, reference_ns);
            }
        }
    }
    Ok(())
}

fn print(name: &str, outcome: &Outcome, seconds: u64, reference_ns: f64) {
    let each = outcome.cpu_ns as f64 / outcome.packets.max(1) as f64;
    let rate = outcome.packets / seconds;
    println!("{name:<34} {rate:>10} {each:>12.1} {:>8} {:>8.2}", outcome.lost, each / reference_ns);
}

/// Runs a reader while one thread sends for so many seconds.
fn under_load(
    pair: &Pair,
    seconds: u64,
    segment: i32,
    reader: impl FnOnce(&Pair, &AtomicBool) -> io::Result<Outcome> + Send,
) -> io::Result<Outcome> {
    let receiver = pair.right().within(|| UdpSocket::bind((pair.right().v4(), PORT)))?;
    let sender = pair.left().within(|| UdpSocket::bind((pair.left().v4(), 0)))?;
    sender.connect(receiver.local_addr()?)?;
    set_segment(&sender, segment);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reading = scope.spawn(|| reader(pair, &over));
        thread::sleep(Duration::from_millis(700));
        let payload = vec![0; if segment > 0 { 64 * 64 } else { 64 }];
        let begin = Instant::now();
        let sent = AtomicU64::new(0);
        while begin.elapsed() < Duration::from_secs(seconds) {
            for _ in 0..256 {
                let _ = sender.send(&payload);
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
        thread::sleep(Duration::from_millis(300));
        over.store(true, Ordering::Relaxed);
        reading.join().expect("the reader does not panic")
    })
}

fn netaware(pair: &Pair, over: &AtomicBool, tasks: usize) -> io::Result<Outcome> {
    let mut tasks = watches(tasks);
    pair.right().within(|| {
        let mut capture = Capture::open(&Options::new("lan")).map_err(io::Error::other)?;
        let mut errors = [0_u64; packet::PacketError::ALL.len()];
        let (mut found, mut period) = (Found::default(), 0);
        let before = thread_cpu_ns();
        while !over.load(Ordering::Relaxed) {
            let mut see = |frame: netaware_capture::Frame<'_>| match packet::parse(
                frame.link,
                frame.bytes,
                frame.wire_length,
            ) {
                Ok(packet) => {
                    let (outgoing, segments) = (frame.outgoing, frame.segments);
                    let seen = Observed { at: frame.at, outgoing, segments, packet, frame: frame.bytes };
                    for task in &mut tasks {
                        task.observe(&seen);
                    }
                    std::hint::black_box(&seen);
                }
                Err(error) => errors[error.index()] += 1,
            };
            capture.read(Span::from_millis(50), &mut see).map_err(io::Error::other)?;
            for task in &mut tasks {
                task.drain(0, &mut found.sightings);
            }
            found.sightings.clear();
            period += 1;
        }
        let cpu_ns = thread_cpu_ns() - before;
        let span = Period { from: Wall(0), until: Wall(period) };
        for task in &mut tasks {
            task.close(span, &mut found);
        }
        let counts = capture.counts();
        Ok(Outcome { packets: counts.seen, lost: counts.lost_ring + counts.lost_kernel, cpu_ns })
    })
}

/// The first so many of: digests of all packets, volume in all, volume by flow, traffic.
fn watches(count: usize) -> Vec<Box<dyn Watch>> {
    let flow = ["source", "destination", "protocol", "source_port", "destination_port"].map(str::to_owned);
    let all = [
        What::Digest {
            share: 1.0,
            payload: 16,
            function: netaware_wire::lmap::DigestFunction::default(),
            initialiser: None,
        },
        What::Volume { by: Vec::new(), prefix: None, keys: 16 },
        What::Volume { by: flow.to_vec(), prefix: None, keys: 10_000 },
        What::Traffic { slice_ms: 100, top: 10 },
    ];
    let (seed, link) = (Seed::new([7; 16]), Link::default());
    all.iter().take(count).map(|what| watch(what, &seed, &link).expect("a good task")).collect()
}

/// `tcpdump -w /dev/null` with our snap length and ring.
fn tcpdump(pair: &Pair, over: &AtomicBool) -> io::Result<Outcome> {
    let file = tempfile::NamedTempFile::new()?;
    let mut command: Command = pair.right().command("tcpdump");
    command.args(["-i", "lan", "-n", "-s", "256", "-B", "32768", "-Z", "root", "-w", "/dev/null"]);
    let mut tcpdump = Running::start(command.stdin(Stdio::null()).stderr(file.reopen()?))
        .map_err(|error| io::Error::other(error.to_string()))?;
    while !over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
    }
    let cpu_ns = process_cpu_ns(tcpdump.id())?;
    Command::new("sh").args(["-c", &format!("kill -INT {}", tcpdump.id())]).status()?;
    tcpdump.child().wait()?;
    let words = std::fs::read_to_string(file.path())?;
    let count = |what: &str| {
        let line = words.lines().find(|line| line.contains(what)).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    Ok(Outcome { packets: count("captured"), lost: count("dropped by kernel"), cpu_ns })
}

/// CPU time of a process, all its threads: `/proc/PID/schedstat`, ns.
fn process_cpu_ns(id: u32) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/schedstat"))?;
    let first = text.split_whitespace().next().and_then(|number| number.parse().ok());
    first.ok_or_else(|| io::Error::other("schedstat without a number"))
}

fn thread_cpu_ns() -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is valid for writing; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut at) };
    at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64
}

fn set_segment(socket: &UdpSocket, size: i32) {
    const SOL_UDP: i32 = 17;
    const UDP_SEGMENT: i32 = 103;
    // SAFETY: `size` is what this option takes and outlives the call.
    unsafe { libc::setsockopt(socket.as_raw_fd(), SOL_UDP, UDP_SEGMENT, (&raw const size).cast(), 4) };
}
