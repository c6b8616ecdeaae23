//! `netaware probe rtt` beside a host that talks TCP and QUIC over a lab path whose round trip is
//! known, both IP versions:
//!
//! ```text
//!   a: a program that asks, and netaware probe -i lab rtt  ── 20 ms ──►  b: a program that answers
//!                                                          ◄── 5 ms ──
//! ```
//!
//! Nothing of ours is sent: timestamps and acknowledgements of the kernels' own TCP say the round
//! trip, and the spin bit of quinn's QUIC. No round trip is shorter than the path's; a lab that was
//! on time allows some milliseconds more, as programs wait for their cores. Closer it is held by
//! `accuracy` of both. Needs root.

mod accuracy;
mod quic;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;

use netaware_io::clock;
use netaware_lab::{Lab, Report, Side};
use netaware_netns::{Running, permitted};
use netaware_record::IpVersion;
use netaware_record::passive::{ProbeReport, Row, RttRow};
use netaware_testkit::figures::judge;
use netaware_testkit::lab;
use netaware_testkit::program::netaware_path;
use netaware_units::Span;

const PATH: &str = "about = \"rtt\"\n[[hop]]\nforward = { rate = '1Gbit/s', delay = '20ms' }\n\
                    reverse = { rate = '1Gbit/s', delay = '5ms' }\n";
const ROUND_TRIP: Span = Span::from_millis(25);
const PORT: u16 = 7777;
const QUESTIONS: usize = 30;
/// Packets later than this would show in the round trips.
const LATE: Span = Span::from_millis(1);
const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// Asks and waits for each answer, with a pause between: nothing queues, so each round trip is the
/// path's.
fn talk(lab: &Lab, version: IpVersion) {
    let at = SocketAddr::from((lab.address(Side::B, version), PORT));
    let listener = lab.within(Side::B, || TcpListener::bind(at)).unwrap();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut question = [0; 200];
        while stream.read_exact(&mut question).is_ok() {
            stream.write_all(&question).unwrap();
        }
    });
    let mut stream = lab.within(Side::A, || TcpStream::connect(at)).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut answer = [0; 200];
    for _ in 0..QUESTIONS {
        stream.write_all(&[1; 200]).unwrap();
        stream.read_exact(&mut answer).unwrap();
        clock::sleep(Span::from_millis(10));
    }
    drop(stream);
    answering.join().unwrap();
}

/// What a probe beside the first host says of the round trips of this conversation.
fn watched(lab: &Lab, talk: impl FnOnce()) -> Vec<RttRow> {
    let mut command = lab.command(Side::A, netaware_path());
    command.args([
        "probe", "-i", "lab", "rtt", "--format", "ndjson", "--for", "5s", "--period", "1s", "--quiet",
    ]);
    let mut probe = Running::start(command.stdout(Stdio::piped())).unwrap();
    let mut lines = BufReader::new(probe.child().stdout.take().unwrap()).lines();
    // It watches as soon as a period is over.
    lines.next().unwrap().unwrap();
    talk();
    let reports = lines.map(|line| serde_json::from_str::<ProbeReport>(&line.unwrap()).unwrap());
    let rows = reports.flat_map(|report| report.rows);
    let found = rows.filter_map(|row| if let Row::Rtt(row) = row.row { Some(row) } else { None }).collect();
    assert!(probe.child().wait().unwrap().success());
    found
}

/// Has both versions talk over the path at the same time. Returns the round trips that a probe
/// tells.
fn of_conversations(talk: impl Fn(&Lab, IpVersion) + Sync) -> (Vec<RttRow>, Report) {
    let lab = lab::up(PATH, 1);
    let rows = watched(&lab, || {
        std::thread::scope(|scope| {
            let talking = VERSIONS.map(|version| {
                scope.spawn({
                    let (lab, talk) = (&lab, &talk);
                    move || talk(lab, version)
                })
            });
            for one in talking {
                one.join().unwrap();
            }
        });
    });
    (rows, lab.end().unwrap())
}

/// Round trips of TCP over both versions by both methods: that there are enough of them, and none
/// shorter than the path, is asserted. Returns those whose smallest or mean exceeds the path by
/// more than this.
fn late(rows: &[RttRow], smallest: Span, mean: Span) -> Vec<String> {
    let mut late = Vec::new();
    for version in VERSIONS {
        for method in ["timestamps", "acknowledgements"] {
            // Of what left here and was waited for; the other way round it is this host's own
            // answer.
            let ours = rows.iter().filter(|row| {
                row.method == method
                    && row.key.destination_port == Some(PORT)
                    && row.key.destination.is_some_and(|to| to.is_ipv6() == (version == IpVersion::V6))
            });
            let (mut count, mut least, mut sum) = (0, Span(i64::MAX), Span::ZERO);
            for row in ours {
                count += row.delay.count;
                least = least.min(row.delay.min);
                sum += Span(row.delay.sum_ns as i64);
            }
            assert!(count >= QUESTIONS as u64 / 2, "{} by {method}: {rows:#?}", version.name());
            assert!(least >= ROUND_TRIP, "{} by {method}: {least}", version.name());
            let average = Span(sum.0 / count as i64);
            let text =
                format!("{} by {method}: {count} round trips, least {least}, mean {average}", version.name());
            println!("{text}");
            let is_late = least > ROUND_TRIP + smallest || average > ROUND_TRIP + mean;
            late.extend(is_late.then_some(text));
        }
    }
    late
}

#[test]
fn the_round_trip_of_real_tcp_is_the_paths_own() {
    if !permitted() {
        return;
    }
    let (rows, report) = of_conversations(talk);
    judge(&late(&rows, Span::from_millis(5), Span::from_millis(20)), &report, LATE);
}
