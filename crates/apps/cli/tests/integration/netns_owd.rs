//! `netaware owd` over a lab path whose delays and losses differ by way, both IP versions, against
//! a reflector in the other namespace.
//!
//! Losses are held against what the kernels of both ends counted, exactly; delays against the
//! scenario: none is early, and a lab that was on time allows some milliseconds, as programs wait
//! for their cores. Within microseconds they are held by [`accuracy`]. Both ends have one clock
//! here, and say so. The second reflector is a program of its own in Python, for want of another
//! one in the distribution: it knows RFC 8762 alone. Needs root.

mod accuracy;

use std::io;
use std::process::Command;

use netaware_io::clock;
use netaware_lab::{Lab, Report, Side};
use netaware_netns::{Running, Transport, permitted, wait_until_bound};
use netaware_record::{IpVersion, OwdResult, Record};
use netaware_testkit::counters::{self, UdpCounters};
use netaware_testkit::figures::judge;
use netaware_testkit::lab;
use netaware_testkit::program::{Finished, Program, Responder, netaware_path};
use netaware_units::Span;

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
const STAMP: u16 = 8620;
const SENT: u64 = 400;

fn serve(lab: &Lab, options: &[&str]) -> Responder {
    let responder = lab::responder(lab, &[&[&format!("--stamp={STAMP}")[..]], options].concat());
    wait_until_bound(responder.id(), Transport::Udp, STAMP).unwrap();
    // It measures its own stamps first, by datagrams to itself that would be counted here.
    let read = || VERSIONS.map(|version| counters::udp(lab, Side::B, version));
    for _ in 0..50 {
        let before = read();
        clock::sleep(Span::from_millis(150));
        if read() == before {
            break;
        }
    }
    responder
}

fn owd(lab: &Lab, options: &[&str], exit: i32) -> Finished {
    let owd = ["owd", "b", "--port", &STAMP.to_string(), "--no-save", "--format", "json"];
    lab::prober(lab, &[&owd, options].concat()).finish_within(Span::from_secs(30)).exits_with(exit)
}

#[track_caller]
fn of(record: &Record, version: IpVersion) -> &OwdResult {
    let found = record.versions.iter().find(|it| it.version == version).and_then(|it| it.owd.as_ref());
    found.unwrap_or_else(|| panic!("nothing over {}: {record:#?}", version.name()))
}

/// Runs once over a path of 5 ms there and 12 ms back that loses one in twenty and three in a
/// hundred. Losses and what else does not depend on time are asserted.
fn over_a_lossy_path() -> (Record, Report) {
    let path = "[[hop]]\nforward = { rate = '1Gbit/s', delay = '5ms', loss = 0.05 }\n\
                reverse = { rate = '1Gbit/s', delay = '12ms', loss = 0.03 }\n";
    let lab = lab::up(path, 1);
    let _reflector = serve(&lab, &[]);
    let read = || VERSIONS.map(|version| [Side::A, Side::B].map(|side| counters::udp(&lab, side, version)));
    let before = read();
    let record = owd(&lab, &["-c", &SENT.to_string(), "-i", "4ms", "--dscp", "EF"], 0).record();
    let after = read();
    let report = lab.end().unwrap();
    for (index, version) in VERSIONS.into_iter().enumerate() {
        let found = of(&record, version);
        let [near, far] = [0, 1].map(|side| {
            let (before, after) = (before[index][side], after[index][side]);
            UdpCounters { received: after.received - before.received, sent: after.sent - before.sent }
        });
        let (up, down) = (&found.forward, &found.reverse);
        println!("{}: near {near:?}, far {far:?}; found {} and {}", version.name(), up.lost, down.lost);
        // Packets that only close the flow are lost as well as others, and count nowhere.
        let closing = near.sent - SENT;
        for (lost, found) in [(near.sent - far.received, up.lost), (far.sent - near.received, down.lost)] {
            assert!(
                (lost.saturating_sub(closing)..=lost).contains(&found),
                "{found} of {lost}, {closing} close"
            );
        }
        assert!(up.lost > 0 && down.lost > 0, "this path took nothing: {found:#?}");
        assert_eq!((found.sent, found.lost_somewhere), (SENT, 0), "{found:#?}");
        assert_eq!(found.received + up.lost + down.lost, SENT, "{found:#?}");
        assert_eq!(up.dscp, Some(46), "{found:#?}");
        let clock = found.clock.as_ref().unwrap();
        assert_eq!((clock.method.as_str(), clock.offset), ("same_host", Span::ZERO), "{found:#?}");
        for (delay, truth) in [(up.delay.unwrap(), UP), (down.delay.unwrap(), DOWN)] {
            assert!(delay.min >= truth - STAMP_ERROR, "{found:#?}");
        }
    }
    (record, report)
}

/// The largest error that is allowed for a kernel stamp on the monotonic clock. It is a guess, not
/// a measured bound.
const STAMP_ERROR: Span = Span::from_micros(50);
const UP: Span = Span::from_millis(5);
const DOWN: Span = Span::from_millis(12);

/// Smallest and mean delays that exceed the truth by more than this.
fn late(record: &Record, smallest: Span, mean: Span) -> Vec<String> {
    let mut late = Vec::new();
    for version in VERSIONS {
        let found = of(record, version);
        for (way, truth) in [(&found.forward, UP), (&found.reverse, DOWN)] {
            let delay = way.delay.unwrap();
            let text = format!(
                "{}: mean {} off, smallest {} off",
                version.name(),
                delay.mean - truth,
                delay.min - truth
            );
            println!("{text}");
            late.extend((delay.min - truth > smallest || delay.mean - truth > mean).then_some(text));
        }
    }
    late
}

#[test]
fn delay_and_loss_of_each_way_are_the_paths_own() {
    if !permitted() {
        return;
    }
    let (record, report) = over_a_lossy_path();
    judge(&late(&record, Span::from_millis(2), Span::from_millis(5)), &report, Span::from_millis(1));
}

#[test]
fn keys_restarts_and_bare_reflectors() {
    if !permitted() {
        return;
    }
    let lab = lab::up("[[hop]]\nrate = '100Mbit/s'\ndelay = '2ms'\n", 1);
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (right, wrong) = (key("right", "sesame"), key("wrong", "open"));
    // Answers that are expected are waited for; that there are none is known sooner.
    let run = |more: &[&str], exit: i32| {
        let patience = if exit == 0 { "3s" } else { "300ms" };
        let fixed = ["-c", "100", "-i", "10ms", "-W", patience];
        let options: Vec<String> = fixed.iter().chain(more).map(|word| (*word).to_owned()).collect();
        owd(&lab, &options.iter().map(String::as_str).collect::<Vec<_>>(), exit)
    };

    let reflector = serve(&lab, &["--key-file", &right]);
    let proven = run(&["--key-file", &right], 0).record();
    for version in VERSIONS {
        let found = of(&proven, version);
        assert!(found.reflector.authenticated && found.reflector.stateful == Some(true), "{found:#?}");
        assert_eq!((found.received, found.lost), (100, 0), "{found:#?}");
    }
    let refused = run(&["--key-file", &wrong], 2);
    assert!(refused.stderr.contains("has the same key"), "{refused:#?}");
    let open = run(&[], 2);
    assert!(open.stderr.contains("answered none of"), "{open:#?}");
    drop(reflector);

    // One that is killed in the middle and comes back.
    let udp = |side| counters::udp(&lab, side, IpVersion::V4);
    let first = serve(&lab, &[]);
    let mut command = lab.command(Side::A, netaware_path());
    command.args([
        "owd",
        "b",
        "-4",
        "--port",
        &STAMP.to_string(),
        "--no-save",
        "--format",
        "json",
        "-c",
        "300",
    ]);
    let (reached, left) = (udp(Side::B).received, || udp(Side::A).sent);
    let running = Program::start(command);
    until("packets arrive", || udp(Side::B).received >= reached + 50);
    drop(first);
    // Some find nobody there.
    let before = left();
    until("packets leave", || left() >= before + 20);
    let second = serve(&lab, &[]);
    let record = running.finish_within(Span::from_secs(30)).exits_with(0).record();
    let found = of(&record, IpVersion::V4);
    assert_eq!(found.reflector.restarts, 1, "{found:#?}");
    assert_eq!(
        (found.sent, found.forward.lost + found.reverse.lost),
        (300, 0),
        "nobody knows where: {found:#?}"
    );
    assert!(found.lost_somewhere > 0 && record.warnings.iter().any(|it| it.contains("anew")), "{record:#?}");
    drop(second);

    let bare = start_bare(&lab);
    for length in ["44B", "128B"] {
        let record = run(&["-4", "-l", length], 0).record();
        let found = of(&record, IpVersion::V4);
        assert_eq!((found.received, found.reflector.stateful), (100, None), "{length}: {found:#?}");
        let clock = found.clock.as_ref().unwrap();
        assert_eq!(
            (clock.method.as_str(), clock.remote_synchronised),
            ("active_exchange", false),
            "{found:#?}"
        );
        assert!(
            found.forward.delay.unwrap().min >= Span::ZERO && clock.bound >= Span::from_millis(2),
            "{found:#?}"
        );
    }
    drop(bare);
    lab.end().unwrap();
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let due = clock::now() + Span::from_secs(10);
    while !is_so() {
        assert!(clock::now() < due, "not within 10 s: {what}");
        clock::sleep(Span::from_millis(5));
    }
}

/// A stateless reflector that copies what it does not know.
const BARE: &str = "
import socket, struct, sys, time
def ntp():
    now = time.time_ns()
    return struct.pack('!II', now // 10**9 + 2208988800, (now % 10**9 << 32) // 10**9)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('0.0.0.0', int(sys.argv[1])))
while True:
    b, a = s.recvfrom(2048)
    came = ntp()
    if len(b) < 44: continue
    base = b[0:4] + ntp() + b'\\x20\\x01' + b[14:16] + came + b[0:14] + b'\\0\\0' + b'\\xff\\0\\0\\0'
    s.sendto(base + b[44:], a)
";

fn start_bare(lab: &Lab) -> Running {
    let mut python: Command = lab.command(Side::B, "python3");
    python.args(["-c", BARE, &STAMP.to_string()]);
    let running = Running::start(&mut python).unwrap_or_else(|error| panic!("{}", io::Error::other(error)));
    wait_until_bound(running.id(), Transport::Udp, STAMP).unwrap();
    running
}
