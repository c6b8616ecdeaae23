//! Prints how exact an emulator is, and how many packets it carries: `lateness [SECONDS]`, as root,
//! in a release build, on a machine where nothing else runs.
//!
//! | line | what is offered | what is held against what |
//! |---|---|---|
//! | lateness | 100 Mbit/s of 1500-byte packets, a path of 10 ms | release against deadline, by the emulator itself |
//! | rate | 200 Mbit/s into a link of 100 Mbit/s | packets that the far device received in 3/5 of the time against the link's rate |
//! | delay | one small packet at a time | between the two sockets against the scenario's arithmetic |
//! | packets/s | as many small packets as go, one way and both | handed over, as long as the emulator lost none by itself |
//!
//! Everything but the emulator runs on core 0, so a rate that is not reached may be the senders':
//! `offered` tells.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use netaware_io::pacer::{self, Pacer};
use netaware_io::{clock, thread};
use netaware_lab::{Lab, LabOptions, Report, Scenario, Side, scenarios};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const PORT: u16 = 9;
/// 1500 bytes of IP.
const FULL: usize = 1472;
/// 64 bytes of IP.
const SMALL: usize = 36;
const PICOSECONDS: u64 = 1_000_000_000_000;

fn main() -> Result<(), Failure> {
    let seconds: u32 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let length = Span::from_secs(seconds.into());
    lateness(length)?;
    rate(length)?;
    delay()?;
    for per_second in [50_000, 100_000, 150_000, 200_000] {
        packets(length, &[Side::A], Some(per_second))?;
    }
    packets(length, &[Side::A], None)?;
    packets(length, &[Side::A, Side::B], Some(150_000))?;
    packets(length, &[Side::A, Side::B], None)
}

fn scenario(hop: &str) -> Result<Scenario, Failure> {
    Ok(scenarios::parse("bench", format!("about = \"bench\"\n[[hop]]\n{hop}"))?.scenario)
}

fn up(hop: &str) -> Result<(Lab, Scenario), Failure> {
    let path = scenario(hop)?;
    let options = LabOptions { prefix: "lateness".to_owned(), ..LabOptions::default() };
    Ok((Lab::up(&path, &options)?, path))
}

fn told(report: &Report) {
    let asleep =
        report.oversleep_p99.map_or(String::new(), |late| format!(", sleeps overrun by {late} (1 in 100)"));
    println!("    {report}");
    println!(
        "    core {:?}, raised {}, {} taken after a sleep{asleep}",
        report.core, report.raised, report.woken
    );
}

fn lateness(length: Span) -> Result<(), Failure> {
    let (lab, _) = up("rate = '10Gbit/s'\ndelay = '10ms'\n")?;
    let sink = Sink::start(&lab, Side::B)?;
    let sent = send(&lab, Side::A, FULL, Some(PICOSECONDS * 12_000 / 100_000_000), length)?;
    let came = sink.end()?;
    let report = lab.end()?;
    let [p50, p99, max] =
        [report.lateness_p50, report.lateness_p99, report.lateness_max].map(Option::unwrap_or_default);
    println!(
        "lateness at 100 Mbit/s of 1500 B: p50 {p50}, p99 {p99}, max {max}; sent {sent}, came {}",
        came.count
    );
    told(&report);
    Ok(())
}

fn rate(length: Span) -> Result<(), Failure> {
    let (lab, _) = up("rate = '100Mbit/s'\ndelay = '10ms'\nqueue = { packets = 1000 }\n")?;
    let sink = Sink::start(&lab, Side::B)?;
    let (began, ended) = std::thread::scope(|scope| {
        let sender =
            scope.spawn(|| send(&lab, Side::A, FULL, Some(PICOSECONDS * 12_000 / 200_000_000), length));
        clock::sleep(length / 5);
        let began = received(&lab);
        clock::sleep(length * 3 / 5);
        let ended = received(&lab);
        let sent = sender.join().unwrap_or_else(|_| Err(panicked()));
        sent.and_then(|_| Ok((began?, ended?)))
    })?;
    sink.end()?;
    let report = lab.end()?;
    let rate = (ended.1 - began.1) as f64 * 12_000.0 / (ended.0 - began.0).secs_f64();
    println!(
        "rate of a full 100 Mbit/s link: {:.4} Mbit/s, {:+.3} %",
        rate / 1e6,
        (rate / 1e8 - 1.0) * 100.0
    );
    told(&report);
    Ok(())
}

/// What the device of host B has received until now: sockets that overflow meanwhile do not matter.
fn received(lab: &Lab) -> io::Result<(Mono, u64)> {
    let text = lab.within(Side::B, || std::fs::read_to_string("/proc/thread-self/net/dev"))?;
    let at = clock::now();
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("lab:"));
    let count = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    count.map(|count| (at, count)).ok_or_else(|| io::Error::other("no device 'lab'"))
}

fn delay() -> Result<(), Failure> {
    let (lab, path) = up("rate = '1Gbit/s'\ndelay = '5ms'\n")?;
    for (version, from) in [(IpVersion::V4, Side::A), (IpVersion::V6, Side::B)] {
        let truth =
            path.base_delay(from, version, SMALL as u32 + 8 + version.header_len()).unwrap_or_default();
        let delays = one_by_one(&lab, version, from, 500)?;
        let mut errors: Vec<Span> = delays.into_iter().map(|delay| delay - truth).collect();
        errors.sort_unstable();
        let quantile = |per_cent: usize| errors[(errors.len() - 1) * per_cent / 100];
        let (name, least, half, most) = (version.name(), quantile(0), quantile(50), quantile(99));
        println!(
            "delay of 5 ms, {name}, between sockets: {least} (least), {half} (half), {most} (99 of 100) more"
        );
    }
    told(&lab.end()?);
    Ok(())
}

/// One thread that never sleeps sends and receives, so that no wake-up of ours is in the figure.
fn one_by_one(lab: &Lab, version: IpVersion, from: Side, count: usize) -> io::Result<Vec<Span>> {
    let socket = |side| lab.within(side, || UdpSocket::bind((lab.address(side, version), PORT)));
    let (near, far) = (socket(from)?, socket(from.other())?);
    far.set_nonblocking(true)?;
    let target = SocketAddr::from((lab.address(from.other(), version), PORT));
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let _ = thread::pin(0);
            (0..count).map(|_| one(&near, &far, target)).collect()
        });
        work.join().unwrap_or_else(|_| Err(panicked()))
    })
}

fn one(near: &UdpSocket, far: &UdpSocket, target: SocketAddr) -> io::Result<Span> {
    let begin = clock::now();
    near.send_to(&[7; SMALL], target)?;
    let mut buffer = [0; 2 * SMALL];
    while clock::now() < begin + Span::from_secs(1) {
        match far.recv(&mut buffer) {
            Ok(_) => return Ok(clock::now() - begin),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn packets(length: Span, from: &[Side], per_second: Option<u64>) -> Result<(), Failure> {
    let (lab, _) = up("rate = '100Gbit/s'\ndelay = '1ms'\nqueue = { packets = 100000 }\n")?;
    let sinks: Vec<Sink> =
        from.iter().map(|side| Sink::start(&lab, side.other())).collect::<io::Result<_>>()?;
    let begin = clock::now();
    let (hosts, gap) = (&lab, per_second.map(|rate| PICOSECONDS / rate));
    let sent: io::Result<Vec<u64>> = std::thread::scope(|scope| {
        let start = |side: &Side| {
            let side = *side;
            scope.spawn(move || send(hosts, side, SMALL, gap, length))
        };
        let senders: Vec<_> = from.iter().map(start).collect();
        let done = senders.into_iter().map(|sender| sender.join().unwrap_or_else(|_| Err(panicked())));
        done.collect()
    });
    let sent = sent?;
    let elapsed = (clock::now() - begin).secs_f64();
    for sink in sinks {
        sink.end()?;
    }
    let report = lab.end()?;
    let ways = if from.len() == 1 { "one way" } else { "both ways, sum" };
    let asked = per_second.map_or("as many as go".to_owned(), |rate| format!("{rate}/s"));
    let offered = sent.iter().sum::<u64>() as f64 / elapsed;
    println!(
        "packets/s {ways}, {asked}: offered {offered:.0}, handed over {:.0}, lost by the emulator {} ({:?})",
        report.released as f64 / elapsed,
        report.own_drops.total(),
        report.own_drops,
    );
    told(&report);
    Ok(())
}

fn panicked() -> io::Error {
    io::Error::other("a thread panicked")
}

/// Sends datagrams from a host for a while; how many went.
fn send(lab: &Lab, from: Side, payload: usize, gap_ps: Option<u64>, length: Span) -> io::Result<u64> {
    let sender = lab.within(from, || UdpSocket::bind((lab.address(from, IpVersion::V4), 0)))?;
    sender.connect((lab.address(from.other(), IpVersion::V4), PORT))?;
    std::thread::scope(|scope| {
        let work = scope.spawn(move || {
            let _ = thread::pin(0);
            let (bytes, start) = (vec![0; payload], clock::now());
            let mut pacer = Pacer::new(start, gap_ps.unwrap_or(0));
            let mut sent = 0;
            while clock::now() < start + length {
                if gap_ps.is_some() {
                    pacer::wait_until(pacer.due());
                    pacer.advance();
                }
                sent += u64::from(sender.send(&bytes).is_ok());
            }
            sent
        });
        work.join().map_err(|_| panicked())
    })
}

/// What arrived at a host.
#[derive(Debug, Default)]
struct Came {
    count: u64,
    first: Mono,
    last: Mono,
}

/// A thread that takes whatever comes, until nothing has come for half a second.
struct Sink(std::thread::JoinHandle<Came>);

impl Sink {
    fn start(lab: &Lab, side: Side) -> io::Result<Self> {
        let socket = lab.within(side, || UdpSocket::bind((lab.address(side, IpVersion::V4), PORT)))?;
        socket.set_read_timeout(Some(Span::from_millis(500).to_std()))?;
        Ok(Self(std::thread::spawn(move || {
            let _ = thread::pin(0);
            let (mut came, mut buffer) = (Came::default(), [0; 2048]);
            while socket.recv(&mut buffer).is_ok() {
                came.last = clock::now();
                if came.count == 0 {
                    came.first = came.last;
                }
                came.count += 1;
            }
            came
        })))
    }

    fn end(self) -> io::Result<Came> {
        self.0.join().map_err(|_| panicked())
    }
}
