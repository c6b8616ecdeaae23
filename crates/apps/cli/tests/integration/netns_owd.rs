//! `netaware owd` over a lab path whose delays and losses differ by way, both IP versions, against a reflector in the other namespace.
//!
//! Losses are held against what the kernels of both ends counted, exactly and in every run; delays against the scenario, in
//! one of some runs, as a machine whose cores are taken away spoils them. Both ends have one clock here, and say so. The second
//! reflector is a program of its own in Python, for want of another one in the distribution: it knows RFC 8762 alone. Needs root.

use std::io;
use std::process::Command;

use netaware_lab::{Lab, Side};
use netaware_netns::{Running, Transport, in_one_of, permitted, wait_until_bound};
use netaware_record::{IpVersion, OwdResult, Record};
use netaware_testkit::lab;
use netaware_testkit::program::{Finished, Program, Responder, netaware_path};
use netaware_units::Span;

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
const STAMP: u16 = 8620;
const RUNS: usize = 3;

fn serve(lab: &Lab, options: &[&str]) -> Responder {
    let responder = lab::responder(lab, &[&[&format!("--stamp={STAMP}")[..]], options].concat());
    wait_until_bound(responder.id(), Transport::Udp, STAMP).unwrap();
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

/// UDP datagrams that a host's kernel gave to programs, and those that programs gave to it.
fn counted(lab: &Lab, side: Side, version: IpVersion) -> (u64, u64) {
    let read = || match version {
        IpVersion::V4 => std::fs::read_to_string("/proc/thread-self/net/snmp"),
        IpVersion::V6 => std::fs::read_to_string("/proc/thread-self/net/snmp6"),
    };
    let text = lab.within(side, read).unwrap();
    let number = |name: &str| match version {
        IpVersion::V4 => {
            let mut rows = text.lines().filter(|line| line.starts_with("Udp: ")).map(str::split_whitespace);
            let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
            names.zip(values).find(|(of, _)| *of == name).unwrap().1.parse::<u64>().unwrap()
        }
        IpVersion::V6 => {
            let line = text.lines().find(|line| line.starts_with(&format!("Udp6{name} "))).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        }
    };
    (number("InDatagrams"), number("OutDatagrams"))
}

#[test]
fn delay_and_loss_of_each_way_are_the_paths_own() {
    if !permitted() {
        return;
    }
    let path = "[[hop]]\nforward = { rate = '1Gbit/s', delay = '5ms', loss = 0.05 }\n\
                reverse = { rate = '1Gbit/s', delay = '12ms', loss = 0.03 }\n";
    let mut seeds = 1..;
    in_one_of(RUNS, || {
        let lab = lab::up(path, seeds.next().unwrap_or_default());
        let _reflector = serve(&lab, &[]);
        let before = VERSIONS.map(|version| [Side::A, Side::B].map(|side| counted(&lab, side, version)));
        let record = owd(&lab, &["-c", "400", "-i", "4ms", "--dscp", "EF"], 0).record();
        let after = VERSIONS.map(|version| [Side::A, Side::B].map(|side| counted(&lab, side, version)));
        let report = lab.end().unwrap();
        for (index, version) in VERSIONS.into_iter().enumerate() {
            let found = of(&record, version);
            let change = |side: usize| {
                let (before, after) = (before[index][side], after[index][side]);
                (after.0 - before.0, after.1 - before.1)
            };
            let ((back, left), (there, answered)) = (change(0), change(1));
            let (up, down) = (&found.forward, &found.reverse);
            println!(
                "{}: kernels {left} > {there}, {answered} > {back}; found {} and {}",
                version.name(),
                up.lost,
                down.lost
            );
            // Packets that only close the flow are lost as well as others, and count nowhere.
            if left == 400 {
                assert_eq!((up.lost, down.lost), (left - there, answered - back), "{found:#?}");
            }
            assert_eq!((found.sent, found.lost_somewhere), (400, 0), "{found:#?}");
            assert_eq!(found.received + up.lost + down.lost, 400, "{found:#?}");
            assert_eq!(up.dscp, Some(46), "{found:#?}");
            let clock = found.clock.as_ref().unwrap();
            assert_eq!((clock.method.as_str(), clock.offset), ("same_host", Span::ZERO), "{found:#?}");
            for (way, truth) in [(up, Span::from_millis(5)), (down, Span::from_millis(12))] {
                let delay = way.delay.ok_or("no delay")?;
                let late = report.lateness_p50.unwrap_or_default() + report.oversleep_p99.unwrap_or_default();
                println!(
                    "  mean {} off, smallest {} off; the lab's lateness {late}",
                    delay.mean - truth,
                    delay.min - truth
                );
                assert!(delay.min >= truth, "{found:#?}");
                if delay.min - truth > Span::from_micros(100)
                    || delay.mean - truth > Span::from_micros(20) + late
                {
                    return Err(format!("{truth}: {delay:?}, {report}"));
                }
            }
        }
        Ok(())
    });
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
    let short = ["-c", "100", "-i", "10ms", "-W", "300ms"];
    let with = |more: &[&str]| short.iter().chain(more).copied().map(str::to_owned).collect::<Vec<_>>();
    let run = |more: &[&str], exit: i32| {
        let options = with(more);
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
    let running = Program::start(command);
    netaware_io::clock::sleep(Span::from_millis(1000));
    drop(first);
    // Long enough that some find nobody there.
    netaware_io::clock::sleep(Span::from_millis(200));
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
