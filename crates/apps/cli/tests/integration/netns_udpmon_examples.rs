//! The commands of the guide's page of UDPmon's examples, as they stand there, on the path they
//! were printed on: what they say agrees with what that path can do. Long scans have fewer and
//! shorter points here. What is counted, what is arithmetic, and that nothing is faster than the
//! path, holds in every run; how long something took, and what was late, is held by [`accuracy`].
//! Needs root: `cargo xtask netns`.

mod accuracy;
mod fields;
mod path;

use netaware_lab::{Report, Side};
use netaware_netns::permitted;
use netaware_testkit::lab;
use netaware_testkit::program::{Program, netaware_path};
use netaware_units::Span;

use self::fields::{LatencyLine, TcpLine, UdpLine};
use self::path::{DELAY_US, V4, V6, Version};

const PAGE: &str = include_str!("../../../../../docs/guide/udpmon-examples.md");
const SCENARIO: &str = "two-hosts-100m";

/// A command of the page, what of it is shortened here, and what its output must be. The check
/// asserts what holds in every run, and returns what a machine that takes its cores away has
/// spoiled.
struct Example {
    command: &'static str,
    instead: Option<(&'static str, &'static str)>,
    check: fn(&str) -> Vec<String>,
}

const EXAMPLES: &[Example] = &[
    Example {
        command: "latency b --ping-pong -c 1000 --request 64B --response 64B --format udpmon",
        instead: None,
        check: |out| latency(out, Carrier::Udp, 1000, &[64]),
    },
    Example {
        command: "latency b --ping-pong -c 2000 --request 64B --scan response=64..1500+8 --format udpmon",
        instead: Some((
            "-c 2000 --request 64B --scan response=64..1500+8",
            "-c 200 --request 64B --scan response=64..1500+400",
        )),
        check: |out| latency(out, Carrier::Udp, 200, &[64, 464, 864, 1264]),
    },
    Example {
        command: "latency b --ping-pong -c 1000 --request 64B --response 64B --hist 1us,50us",
        instead: None,
        check: histogram,
    },
    Example {
        command: "latency b --tcp --ping-pong -c 1000 --request 64B --response 64B --format udpmon",
        instead: None,
        check: |out| latency(out, Carrier::Tcp, 1000, &[64]),
    },
    Example {
        command: "latency b --tcp --ping-pong -c 2000 --request 64B --scan response=64..1500+8 --format udpmon",
        instead: Some((
            "-c 2000 --request 64B --scan response=64..1500+8",
            "-c 200 --request 64B --scan response=64..1500+400",
        )),
        check: |out| latency(out, Carrier::Tcp, 200, &[64, 464, 864, 1264]),
    },
    Example {
        command: "latency b --tcp --ping-pong -c 1000 --request 64B --response 64B --hist 1us,50us",
        instead: None,
        check: histogram,
    },
    Example {
        command: "udp b -l 50 --spacing 20us -n 1000 --format udpmon",
        instead: None,
        check: |out| udp(out, 50, 1000, &[20]),
    },
    Example {
        command: "udp b -l 50 --scan spacing=0us..100us+10us -n 1000 --format udpmon",
        instead: Some(("100us+10us", "100us+50us")),
        check: |out| udp(out, 50, 1000, &[0, 50, 100]),
    },
    Example {
        command: "udp b -l 1400 --spacing 80us -n 300 --format udpmon",
        instead: None,
        check: |out| udp(out, 1400, 300, &[80]),
    },
    Example {
        command: "tcp b -l 1000 --block-spacing 100us --blocks 10000 -P 2 --format udpmon",
        instead: Some(("--blocks 10000", "--blocks 2000")),
        check: |out| tcp(out, 2000, &[(100, 2)]),
    },
    Example {
        command: "tcp b -l 1000 --scan block-spacing=0us..600us+8us --blocks 10000 -P 3 --format udpmon",
        instead: Some(("600us+8us --blocks 10000", "600us+300us --blocks 1000")),
        check: |out| tcp(out, 1000, &[(0, 3), (300, 3), (600, 3)]),
    },
    Example {
        command: "tcp b -l 1000 --block-spacing 96us --blocks 10000 -P 20 --format udpmon",
        instead: Some(("--blocks 10000", "--blocks 2000")),
        check: |out| tcp(out, 2000, &[(96, 20)]),
    },
    Example {
        command: "tcp b -l 1000 --scan streams=1..20+1 --block-spacing 100us --blocks 10000 --format udpmon",
        instead: Some((
            "1..20+1 --block-spacing 100us --blocks 10000",
            "1..20+10 --block-spacing 100us --blocks 1000",
        )),
        check: |out| tcp(out, 1000, &[(100, 1), (100, 11)]),
    },
    Example {
        command: "matrix b --label 'hall A'",
        instead: Some(("--label 'hall A'", "--label 'hall A' --runs 1 --format csv")),
        check: matrix,
    },
];

/// Runs all commands of the page that begin so, and returns what each had spoiled.
fn of_page(commands: &[&str]) -> (Vec<String>, Report) {
    let lab = lab::start(&lab::bundled(SCENARIO), &lab::options());
    let responder = lab::responder(&lab, &[]);
    let mut spoiled = Vec::new();
    let wanted = |example: &&Example| commands.iter().any(|of| example.command.starts_with(of));
    for example in EXAMPLES.iter().filter(wanted) {
        let line = example.instead.map_or(example.command.to_owned(), |(of, by)| {
            assert!(example.command.contains(of), "{}", example.command);
            example.command.replace(of, by)
        });
        let mut prober = lab.command(Side::A, "sh");
        prober.args(["-c", &format!("exec {} {line} -q", netaware_path().display())]);
        let finished = Program::start(prober).finish_within(Span::from_secs(50)).exits_with(0);
        println!("netaware {line}: {}", finished.took);
        spoiled.extend((example.check)(&finished.stdout));
    }
    drop(responder);
    (spoiled, lab.end().unwrap())
}

const LATENCIES: [&str; 1] = ["latency "];
const STREAMS: [&str; 2] = ["udp ", "tcp "];

/// How late something was is of no account here.
fn can_be_had_again(commands: &[&str]) {
    if permitted() {
        let (spoiled, _) = of_page(commands);
        println!("late, which is judged in nightly:\n{}", spoiled.join("\n"));
    }
}

#[test]
fn the_latencies_that_the_page_prints_can_be_had_again() {
    can_be_had_again(&LATENCIES);
}

#[test]
fn the_streams_that_the_page_prints_can_be_had_again() {
    can_be_had_again(&STREAMS);
}

#[test]
fn the_matrix_that_the_page_prints_can_be_had_again() {
    can_be_had_again(&["matrix "]);
}

#[test]
fn every_command_of_the_page_is_among_those_that_are_run() {
    let run = [&LATENCIES[..], &STREAMS, &["matrix "]].concat();
    assert!(EXAMPLES.iter().all(|example| run.iter().any(|of| example.command.starts_with(of))));
}

#[test]
fn the_page_has_these_commands_and_no_others() {
    let of_page: Vec<&str> = PAGE.lines().filter_map(|line| line.strip_prefix("$ netaware ")).collect();
    let here: Vec<&str> = EXAMPLES.iter().map(|example| example.command).collect();
    let measuring = |line: &&&str| !line.starts_with("lab ") && !line.starts_with("results ");
    assert_eq!(of_page.iter().filter(measuring).copied().collect::<Vec<_>>(), here);
}

#[derive(Clone, Copy)]
enum Carrier {
    Udp,
    Tcp,
}

/// Lines come in pairs: IPv4, then IPv6.
fn pairs(out: &str) -> Vec<(Version, &str)> {
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len() % 2, 0, "{out}");
    [V4, V6].into_iter().cycle().zip(lines).collect()
}

fn latency(out: &str, carrier: Carrier, loops: u64, responses: &[u64]) -> Vec<String> {
    let mut spoiled = Vec::new();
    let lines = pairs(out);
    assert_eq!(lines.len(), responses.len() * 2, "{out}");
    for ((version, line), response) in lines.into_iter().zip(responses.iter().flat_map(|n| [*n, *n])) {
        let found = LatencyLine::read(line);
        assert_eq!((found.response, found.request, found.outstanding), (response, 64, 1), "{line}");
        assert_eq!(found.bad, 0, "{line}");
        assert_eq!(found.loops, loops, "{line}");
        assert!(found.timeouts < loops, "{line}");
        spoiled.extend((found.timeouts > 0).then(|| format!("{} came late: {line}", found.timeouts)));
        let on_cable = |payload| match carrier {
            Carrier::Udp => version.udp_us(payload),
            Carrier::Tcp => version.tcp_us(payload),
        };
        let least = 2.0 * DELAY_US + on_cable(64) + on_cable(response);
        assert!(found.min >= least, "no round trip is shorter than its path, {least} us: {line}");
        // Two hosts, each with its stack, in front of an emulator.
        spoiled.extend((found.min > least + 400.0).then(|| format!("above {least} us: {line}")));
        assert!(found.min <= found.mean && found.mean <= found.max, "{line}");
        // All the time of all loops is hardly more than the exchanges themselves.
        assert!(found.per_loop >= found.mean * 0.99, "{line}");
        let megabytes = 2.0 * response as f64 / found.per_loop;
        assert!((found.megabytes / megabytes - 1.0).abs() < 1e-3, "{line}");
    }
    spoiled
}

fn histogram(out: &str) -> Vec<String> {
    let entries = |line: &str| {
        let (edge, count) = line.trim().split_once(" ; ")?;
        Some((edge.trim().parse::<f64>().ok()?, count.trim().parse::<u64>().ok()?))
    };
    let bins: Vec<(f64, u64)> = out.lines().filter_map(entries).collect();
    assert!(bins.iter().all(|(edge, _)| *edge >= 50.0), "the lowest edge is 50 us: {out}");
    let counted: u64 = bins.iter().map(|(_, count)| count).sum();
    assert!((1..=2000).contains(&counted), "1000 of each version: {counted}\n{out}");
    let is_low = counted >= 1500;
    (!is_low)
        .then(|| format!("too many lie above the histogram: {counted} in it\n{out}"))
        .into_iter()
        .collect()
}

fn udp(out: &str, payload: u64, packets: u64, spacings: &[u64]) -> Vec<String> {
    let mut spoiled = Vec::new();
    let lines = pairs(out);
    assert_eq!(lines.len(), spacings.len() * 2, "{out}");
    for ((version, line), spacing) in lines.into_iter().zip(spacings.iter().flat_map(|us| [*us, *us])) {
        let found = UdpLine::read(line);
        assert_eq!((&*found.from, &*found.to), version.addresses, "{line}");
        assert_eq!((found.payload, found.spacing), (payload, spacing as f64), "{line}");
        // A sender without a core leaves out what is overdue, and says so by what it sent.
        assert!(found.sent <= packets, "{line}");
        assert_eq!((found.received + found.lost, found.out_of_order), (found.sent, 0), "{line}");
        assert!(found.received > 1, "{line}");
        let is_whole = found.sent > packets / 2 && found.lost == 0;
        spoiled.extend((!is_whole).then(|| format!("left out or lost: {line}")));
        // What leaves faster than the cable takes it arrives at the cable's pace, and else at its
        // own.
        let slowest = version.udp_us(payload).max(found.per_frame_sent);
        let error = found.per_frame_received / slowest - 1.0;
        spoiled.extend((error.abs() >= 0.02).then(|| format!("{slowest} us: {line}")));
        let bits = payload as f64 * 8.0 / found.per_frame_received;
        assert!((found.rate / bits - 1.0).abs() < 0.01, "{line}");
        let wire = (payload + version.around_udp) as f64 * 8.0 / found.per_frame_received;
        assert!((found.wire_rate / wire - 1.0).abs() < 0.01, "{line}");
        assert!(found.entries < found.received && found.quartiles.is_sorted(), "{line}");
    }
    spoiled
}

fn tcp(out: &str, blocks: u64, points: &[(u64, usize)]) -> Vec<String> {
    let mut spoiled = Vec::new();
    let lines = pairs(out);
    assert_eq!(lines.len(), points.len() * 2, "{out}");
    for ((version, line), (spacing, streams)) in lines.into_iter().zip(points.iter().flat_map(|p| [*p, *p])) {
        let found = TcpLine::read(line);
        assert_eq!((found.block, found.spacing), (1000, spacing as f64), "{line}");
        assert_eq!(found.streams.len(), streams, "{line}");
        let (bytes, reads) = found.streams.iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        assert_eq!((found.blocks, bytes), (blocks, blocks * 1000), "{line}");
        assert!(reads >= streams as u64, "{line}");
        // Blocks leave no earlier than planned, and arrive no faster than the cable carries them.
        assert!(found.given >= (blocks - 1) as f64 * spacing as f64 * 0.999, "{line}");
        let fastest = (bytes - FIRST_READ.min(bytes)) as f64 * version.tcp_us_per_byte();
        assert!((found.megabytes / (bytes as f64 / found.given) - 1.0).abs() < 1e-3, "{line}");
        // Whoever waits for a core to read finds more in the buffers.
        spoiled.extend((found.received < fastest * 0.99).then(|| format!("{fastest} us: {line}")));
    }
    spoiled
}

/// What may lie in the receiver's buffers when its time begins.
const FIRST_READ: u64 = 64 << 10;

fn matrix(out: &str) -> Vec<String> {
    let rows: Vec<&str> = out.lines().collect();
    // 17 pairs with three protocols over two versions, below a heading.
    assert_eq!(rows.len(), 1 + 17 * 3 * 2, "{out}");
    Vec::new()
}
