//! Does a real lab do what its drawing promises, and leave nothing behind? It runs alone.

use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};

use netaware_io::clock;
use netaware_lab::{
    Lab, LabError, LabOptions, LabState, Phase, RecordedPackets, Removed, Side, TruthDetail, TruthFile, down,
};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::lab;
use netaware_units::Span;

/// Two hops of 5 ms each.
const PATH: &str = "about = \"a test\"\n[[hop]]\nrate = \"100Mbit/s\"\ndelay = \"5ms\"\n\
                    [[hop]]\nrate = \"100Mbit/s\"\ndelay = \"5ms\"\n";

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

fn options(prefix: &str) -> LabOptions {
    LabOptions { prefix: prefix.to_owned(), scenario_name: "a test".to_owned(), ..LabOptions::default() }
}

fn up(prefix: &str) -> Lab {
    lab::start(&lab::scenario(PATH), &options(prefix))
}

fn namespaces() -> String {
    let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn is_there(prefix: &str) -> bool {
    let names = namespaces();
    names.contains(&format!("{prefix}-a"))
        || names.contains(&format!("{prefix}-b"))
        || Path::new("/run/netaware-lab").join(prefix).exists()
        || Path::new("/etc/netns").join(format!("{prefix}-a")).exists()
}

/// Until what has to come, however busy the machine is.
const PATIENCE: Span = Span::from_secs(20);

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = clock::now() + PATIENCE;
    while !holds() {
        assert!(clock::now() < deadline, "not within {PATIENCE}: {what}");
        clock::sleep(Span::from_millis(10));
    }
}

/// One datagram each way; the round trip.
fn exchange(lab: &Lab, version: IpVersion) -> Option<Span> {
    let bind = |side| {
        let socket = lab.within(side, || UdpSocket::bind((lab.address(side, version), 7))).unwrap();
        socket.set_read_timeout(Some(Span::from_secs(5).to_std())).unwrap();
        socket
    };
    let (near, far) = (bind(Side::A), bind(Side::B));
    let begin = clock::now();
    near.send_to(&[7; 100], (lab.address(Side::B, version), 7)).ok()?;
    let mut buffer = [0; 200];
    let (length, from) = far.recv_from(&mut buffer).ok()?;
    far.send_to(&buffer[..length], from).ok()?;
    near.recv(&mut buffer).ok()?;
    Some(clock::now() - begin)
}

#[test]
fn both_versions_take_the_time_that_the_scenario_says() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let lab = up(prefix);
    for version in VERSIONS {
        let exchange = |_| exchange(&lab, version).expect("both datagrams arrive");
        let round_trips: Vec<Span> = (0..EXCHANGES).map(exchange).collect();
        // Wide above, because this may run beside others: lateness has a bench of its own.
        let least = *round_trips.iter().min().unwrap();
        assert!(least >= Span::from_millis(20), "{version:?}: {round_trips:?}");
        assert!(least < Span::from_millis(40), "{version:?}: {round_trips:?}");
    }
    let report = lab.end().unwrap();
    assert_eq!((report.taken, report.own_drops.total(), report.ended), (4 * EXCHANGES, 0, None));
    assert!(!is_there(prefix));
}

#[test]
fn nothing_leads_out_of_a_lab() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let lab = up(prefix);
    for side in [Side::A, Side::B] {
        for list in [["-4", "route"], ["-6", "route"]] {
            let shown = lab.command(side, "ip").args(list).output().unwrap();
            let shown = String::from_utf8(shown.stdout).unwrap();
            assert!(!shown.contains("default"), "{shown}");
        }
        let links = lab.command(side, "ip").args(["-oneline", "link"]).output().unwrap();
        assert_eq!(String::from_utf8(links.stdout).unwrap().lines().count(), 2, "lo and the path");
        let refused = lab.within(side, || UdpSocket::bind("0.0.0.0:0")?.send_to(b"x", "192.0.2.1:9"));
        assert!(refused.is_err());
    }
}

fn said(lab: &Lab, program: &str, arguments: &[&str]) -> String {
    let output = lab.command(Side::A, program).args(arguments).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{program} {arguments:?}: {out}{err}");
    out
}

#[test]
fn ping_and_traceroute_see_the_routers_and_their_delays() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let lab = up(prefix);
    for (version, flag) in [(IpVersion::V4, "-4"), (IpVersion::V6, "-6")] {
        let (router, host) = (lab.addresses().router(0, version), lab.address(Side::B, version));
        for (target, least_ms) in [(router, 10.0), (host, 20.0)] {
            let text = said(&lab, "ping", &["-c", "3", "-i", "0.2", "-W", "1", &target.to_string()]);
            assert!(text.contains("3 received"), "{text}");
            let fastest = text.rsplit_once("= ").and_then(|(_, tail)| tail.split('/').next()?.parse().ok());
            assert!(fastest.is_some_and(|ms: f64| (least_ms..least_ms + 5.0).contains(&ms)), "{text}");
        }
        let text = said(&lab, "traceroute", &[flag, "-n", "-w", "1", "-q", "1", &host.to_string()]);
        let hops: Vec<IpAddr> =
            text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect();
        assert_eq!(hops, [router, host], "{text}");
    }
}

#[test]
fn a_second_lab_of_the_same_prefix_is_refused_and_two_of_different_ones_live_together() {
    if !permitted() {
        return;
    }
    let (prefix, other) = (&lab::prefix(), &lab::prefix());
    let scenario = lab::scenario(PATH);
    let (one, two) = (up(prefix), up(other));
    let refused = Lab::up(&scenario, &options(prefix)).unwrap_err();
    assert!(matches!(refused, LabError::AlreadyThere { .. }));
    assert!(refused.to_string().contains(&format!("lab down --prefix {prefix}")), "{refused}");
    assert!(exchange(&one, IpVersion::V4).is_some() && exchange(&two, IpVersion::V4).is_some());
    drop(two);
    assert!(exchange(&one, IpVersion::V6).is_some(), "the other one's end does not matter");
    assert!(LabState::all().iter().any(|state| state.prefix == *prefix && state.is_running()));
}

/// Set for the program that waits in its lab.
const PREFIX: &str = "NETAWARE_TEST_PREFIX";

/// Run by the test after it, in a process of its own.
#[test]
#[ignore = "waits to be killed"]
fn a_program_that_waits_in_its_lab() {
    let _lab = up(&std::env::var(PREFIX).expect("the test below started this"));
    loop {
        clock::sleep(Span::from_secs(1));
    }
}

#[test]
fn what_a_killed_program_left_of_its_lab_is_in_nobodys_way() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "netns_lab::a_program_that_waits_in_its_lab", "--ignored"])
        .env(PREFIX, prefix)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let is_up = || LabState::read(prefix).is_some_and(|state| state.phase == Phase::Up);
    let deadline = clock::now() + PATIENCE;
    while !is_up() {
        assert!(program.try_wait().unwrap().is_none(), "it has ended");
        if clock::now() > deadline {
            program.kill().unwrap();
            panic!("its lab is not up within {PATIENCE}");
        }
        clock::sleep(Span::from_millis(20));
    }
    let scenario = lab::scenario(PATH);
    let refused = Lab::up(&scenario, &options(prefix));
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(matches!(refused, Err(LabError::AlreadyThere { .. })), "it is held by the living");
    assert!(is_there(prefix), "and stays when its holder is killed");
    let lab = up(prefix);
    assert!(exchange(&lab, IpVersion::V4).is_some());
    lab.end().unwrap();
    assert!(!is_there(prefix));
}

#[test]
fn what_others_made_is_refused_and_left_alone() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let [ours, other] = &["a", "b"].map(|side| format!("{prefix}-{side}"));
    let run = |arguments: &[&str]| assert!(Command::new("ip").args(arguments).status().unwrap().success());
    run(&["netns", "add", other]);
    let scenario = lab::scenario(PATH);
    let refused = Lab::up(&scenario, &options(prefix)).unwrap_err();
    let down = down(prefix);
    let names = namespaces();
    run(&["netns", "delete", other]);
    assert!(matches!(refused, LabError::Foreign { .. }), "{refused}");
    assert_eq!(down.unwrap(), Removed::default());
    assert!(names.contains(other) && !names.contains(ours), "{names}");
}

#[test]
fn a_namespace_that_took_the_name_of_ours_survives_down() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let [ours, other] = &["a", "b"].map(|side| format!("{prefix}-{side}"));
    let lab = up(prefix);
    let run = |arguments: &[&str]| assert!(Command::new("ip").args(arguments).status().unwrap().success());
    run(&["netns", "delete", other]);
    run(&["netns", "add", other]);
    drop(lab);
    let names = namespaces();
    run(&["netns", "delete", other]);
    assert!(names.contains(other) && !names.contains(ours), "{names}");
}

#[test]
fn the_end_of_a_lab_is_the_end_of_what_runs_in_it() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let lab = up(prefix);
    let mut child = lab.command(Side::B, "sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    await_that("it runs in the lab", || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", child.id()));
        name.is_ok_and(|name| name.trim() == "sleep")
    });
    lab.end().unwrap();
    let mut ended = None;
    await_that("it has ended", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert!(!ended.unwrap().success());
    assert!(!is_there(prefix));
    assert_eq!(down(prefix).unwrap(), Removed::default(), "there is nothing left to do");
}

/// Packets that come faster than the emulator takes them lie in the device: the probe of a host has
/// stamped them before that, so the truth must not be without it.
#[test]
fn a_burst_lies_in_the_device_and_the_truth_says_for_how_long() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth");
    let scenario = lab::scenario(PATH);
    let truth = TruthFile { path: path.clone(), detail: TruthDetail::Packets };
    let lab = Lab::up(&scenario, &LabOptions { truth: Some(truth), ..options(prefix) }).unwrap();
    let far = lab.within(Side::B, || UdpSocket::bind((lab.address(Side::B, IpVersion::V6), 7))).unwrap();
    let near = lab.within(Side::A, || UdpSocket::bind("[::]:0")).unwrap();
    let begin = clock::now();
    for number in 0..BURST {
        let mut payload = [0; 100];
        payload[..8].copy_from_slice(&number.to_be_bytes());
        near.send_to(&payload, far.local_addr().unwrap()).unwrap();
    }
    let took = clock::now() - begin;
    // Each of them has come, or the receiving socket had no room for it: either way it is in the
    // truth.
    far.set_read_timeout(Some(Span::from_millis(600).to_std())).unwrap();
    while far.recv(&mut [0; 200]).is_ok() {}
    let report = lab.end().unwrap();
    let packets = RecordedPackets::read(&path).unwrap();
    let sum = packets.sum(|packet| packet.length == Some(148));
    assert_eq!((sum.sent, sum.unstamped), (BURST, 0));
    let [mean, max] = [sum.waited_mean, sum.waited_max];
    assert!(mean > 0.0 && max > mean && max < 1e9, "{mean} {max}");
    // They leave one by one: of the first the delay is that of the path, and whoever waits arrives
    // later by it.
    let late = report.lateness_max.map_or(0.0, |late| late.0 as f64);
    let longest = took.0 as f64 + max + late;
    assert!(sum.min >= 10e6 && sum.max < 10e6 + longest + 50e6, "{sum:?}");
}

const BURST: u64 = 2_000;
/// Round trips over each version.
const EXCHANGES: u64 = 10;

#[test]
fn the_truth_opens_with_the_scenario_and_closes_with_the_report() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let path = std::env::temp_dir().join(format!("lab-truth-{}.ndjson", std::process::id()));
    let scenario = lab::scenario(PATH);
    let truth = TruthFile { path: path.clone(), detail: TruthDetail::Packets };
    let lab = Lab::up(&scenario, &LabOptions { truth: Some(truth), ..options(prefix) }).unwrap();
    exchange(&lab, IpVersion::V4).unwrap();
    // Long enough for two intervals of each direction.
    clock::sleep(Span::from_millis(300));
    lab.end().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!((lines[0]["type"].as_str(), lines[0]["seed"].as_u64()), (Some("lab"), Some(1)));
    assert_eq!((of("packet"), of("report")), (2, 1));
    for packet in lines.iter().filter(|line| line["type"] == "packet") {
        assert!(packet["waited"].as_u64().is_some_and(|waited| waited < 1_000_000_000), "{packet}");
    }
    assert!(of("interval") >= 4, "{text}");
    assert_eq!(lines.last().unwrap()["type"], "report");
}
