//! Addresses of one link alone, between two namespaces: a link-local IPv6 address keeps its zone
//! from the command line to the sockets of every command and back into the result. And probes that
//! this host itself did not let out, which nobody lost. Needs root.

use netaware_io::clock;
use netaware_netns::{Pair, Side, Transport, permitted, wait_until_bound};
use netaware_record::{IpVersion, ReachProtocol, Record, VersionResult};
use netaware_testkit::pair::{over, prober, responder};
use netaware_testkit::program::{Finished, Program, Responder, netaware_path};
use netaware_units::Span;

const LIMIT: Span = Span::from_secs(30);
const NEAR: &str = "fe80::a:1";
const FAR: &str = "fe80::a:2";
const STAMP: u16 = 8620;

fn pair(name: &str) -> Pair {
    let pair = Pair::new(name).unwrap();
    for (side, address) in [(pair.left(), NEAR), (pair.right(), FAR)] {
        let address = format!("{address}/64");
        side.ip(&["address", "add", &address, "dev", side.device(), "nodad"]).unwrap();
    }
    pair
}

fn zoned(side: &Side, address: &str) -> String {
    format!("{address}%{}", side.device())
}

fn start(pair: &Pair, arguments: &[&str]) -> Program {
    prober(pair, &[arguments, &["--no-save", "--format", "json"]].concat())
}

#[track_caller]
fn v6(finished: &Finished) -> (Record, VersionResult) {
    let record = finished.record();
    let found = over(&record, IpVersion::V6).clone();
    (record, found)
}

/// Arguments, and what their result has to show.
type Run<'a> = (&'a [&'a str], &'a dyn Fn(&VersionResult) -> bool);

#[test]
fn a_zone_is_not_lost_on_its_way_to_any_socket() {
    if !permitted() {
        return;
    }
    let pair = pair("zones");
    let (near, far) = (zoned(pair.left(), NEAR), zoned(pair.left(), FAR));
    let everywhere = responder(&pair, &[&format!("--stamp={STAMP}")]);
    wait_until_bound(everywhere.id(), Transport::Udp, STAMP).unwrap();
    // A responder on the address of the link alone says where it listens as it was asked to.
    let bound = zoned(pair.right(), FAR);
    let mut alone = pair.right().command(netaware_path());
    alone.args(["serve", "-B", &bound, "--port", "14240"]);
    let alone = Responder::launch(alone, &[], 14_240);
    let at = format!("[{far}]:14240");
    let stamp = STAMP.to_string();
    let runs: [Run<'_>; 7] = [
        (&["latency", &far, "-c", "20", "-B", &near], &|it| {
            it.latency.as_ref().is_some_and(|l| l.received > 0)
        }),
        (&["latency", &at, "-c", "20", "--tcp"], &|it| it.latency.as_ref().is_some_and(|l| l.received > 0)),
        (&["tcp", &at, "-t", "1s", "-P", "2", "-R", "-B", NEAR], &|it| !it.tcp.is_empty()),
        (&["udp", &far, "-t", "1s", "-b", "1M"], &|it| !it.udp.is_empty()),
        (&["owd", &far, "--port", &stamp, "-c", "20"], &|it| it.owd.as_ref().is_some_and(|o| o.received > 0)),
        (&["hops", &far, "-t", "3s", "--no-trains", "-B", &near], &|it| it.hops.is_some()),
        (&["reach", FAR, "--interface", "lan", "--tcp-port", "14240", "-t", "2s"], &|it| {
            let tcp = it.reach_probes.iter().find(|it| it.protocol == ReachProtocol::Tcp);
            tcp.is_some_and(|tcp| tcp.answers == ["accepted"])
                && it.reach_probes.iter().any(|it| it.protocol == ReachProtocol::Echo && it.answered > 0)
        }),
    ];
    let programs: Vec<_> = runs.iter().map(|(arguments, _)| start(&pair, arguments)).collect();
    for ((arguments, holds), program) in runs.iter().zip(programs) {
        let finished = program.finish_within(LIMIT).exits_with(0);
        let (record, found) = v6(&finished);
        assert!(holds(&found), "{arguments:?}: {record:#?}");
        assert_eq!(found.address.as_ref(), Some(&far), "{arguments:?}");
        // The kernel may have given the device an address of its own.
        let bound = arguments.contains(&"-B");
        let local = found.local.unwrap_or_default();
        assert!(local == near || (!bound && local.ends_with("%lan")), "{arguments:?}: {local}");
    }
    drop((everywhere, alone));
}

#[test]
fn a_zone_is_not_lost_by_what_fills_the_path_nor_by_what_carries_other_peoples_data() {
    if !permitted() {
        return;
    }
    let pair = pair("zones-filled");
    let far = zoned(pair.left(), FAR);
    let responder = responder(&pair, &[]);
    let runs: [Run<'_>; 6] = [
        (&["udp", &far, "-t", "300ms", "-R", "-b", "1M"], &|it| it.udp[0].received > 0),
        // Without a rate: over an echo flow first.
        (&["udp", &far, "-t", "300ms"], &|it| it.udp[0].received > 0),
        (&["matrix", &far, "--runs", "1", "--bytes", "1kB", "--blocks", "500"], &|it| it.matrix.len() == 3),
        (&["capacity", &far, "-t", "1s"], &|it| !it.path_rates.is_empty()),
        (&["available", &far, "-t", "1s"], &|it| !it.path_rates.is_empty()),
        (&["test", &far, "-t", "2s"], &|it| it.latency.is_some() && it.tcp.len() >= 2 && it.udp.len() >= 2),
    ];
    // The responder has one place for them, so they wait for each other.
    let programs: Vec<_> = runs.iter().map(|(arguments, _)| start(&pair, arguments)).collect();
    for ((arguments, holds), program) in runs.iter().zip(programs) {
        let (record, found) = v6(&program.finish_within(LIMIT).exits_with(0));
        assert!(holds(&found), "{arguments:?}: {record:#?}");
        assert_eq!(found.address.as_ref(), Some(&far), "{arguments:?}");
    }
    // What listens on such an address names it as it was typed.
    let bound = zoned(pair.right(), FAR);
    let rows: [&[&str]; 2] = [
        &["receive", ".", "-B", &bound],
        &["relay", "--accept", &format!("[{bound}]:4444"), "--forward", "127.0.0.1:9", "--public"],
    ];
    for arguments in rows {
        let mut command = pair.right().command(netaware_path());
        let folder = tempfile::tempdir().unwrap();
        command.args(arguments).current_dir(folder.path());
        let program = Program::start(command);
        until(|| program.printed().contains("listening on "), || program.complained());
        let first = program.printed().lines().next().unwrap_or_default().to_owned();
        assert!(first.contains(&format!("listening on [{bound}]:")), "{first}");
    }
    drop(responder);
}

fn until(is_so: impl Fn() -> bool, why: impl Fn() -> String) {
    let due = clock::now() + Span::from_secs(10);
    while !is_so() {
        assert!(clock::now() < due, "{}", why());
        clock::sleep(Span::from_millis(5));
    }
}

#[test]
fn what_this_hosts_own_firewall_drops_is_not_sent_and_not_lost() {
    if !permitted() {
        return;
    }
    let pair = pair("own-firewall");
    let far = zoned(pair.left(), FAR);
    let drop_all =
        "add table inet own; add chain inet own out { type filter hook output priority 0; policy drop; }";
    let status = pair.left().command("nft").arg(drop_all).status().unwrap();
    assert!(status.success());
    let runs: [&[&str]; 3] =
        [&["reach", &far, "-t", "4s"], &["hops", &far, "-t", "4s"], &["owd", &far, "-c", "20"]];
    let programs: Vec<_> = runs.iter().map(|arguments| start(&pair, arguments)).collect();
    for (arguments, program) in runs.iter().zip(programs) {
        let finished = program.finish_within(LIMIT).exits_with(2);
        let (record, found) = v6(&finished);
        let why = found.unreachable.unwrap_or_else(|| panic!("{record:#?}"));
        assert!(
            why.reason.starts_with("nothing could be sent to ") && why.reason.contains("fe80::a:2%lan"),
            "{arguments:?}: {why:?}"
        );
        assert!(why.reason.contains("Operation not permitted"), "{arguments:?}: {why:?}");
        assert!(why.advice.contains("firewall of this host"), "{arguments:?}: {why:?}");
    }
}

#[test]
fn what_this_hosts_own_firewall_drops_of_one_protocol_or_in_part_is_not_lost() {
    if !permitted() {
        return;
    }
    let filtered = |name: &str, rule: &str| {
        let pair = pair(name);
        let table = "add table inet own; add chain inet own out { type filter hook output priority 0; };";
        let rules = format!("{table} add rule inet own out {rule}");
        assert!(pair.left().command("nft").arg(&rules).status().unwrap().success(), "{rules}");
        pair
    };
    let blocked = filtered("own-udp", "meta l4proto { udp, icmp, ipv6-icmp } drop");
    let in_part = filtered("own-part", "udp dport 14233 udp length > 500 numgen inc mod 4 < 2 drop");
    let _responders = [responder(&blocked, &[]), responder(&in_part, &[])];
    let (v4, v6) = (blocked.right().v4().to_string(), in_part.right().v6().to_string());
    let reach = start(&blocked, &["reach", &v4, "--tcp-port", "14233", "-t", "1s"]);
    let silent = start(&blocked, &["reach", &v4, "-t", "1s", "--no-tcp"]);
    let latency = start(&blocked, &["latency", &v4, "-c", "5"]);
    let stream = ["udp", &v6, "-t", "1s", "-b", "2M", "-l", "1000", "--expect", "udp.loss<0.1%"];
    let udp = start(&in_part, &stream);

    let found = over(&reach.finish_within(LIMIT).exits_with(0).record(), IpVersion::V4).clone();
    for probe in &found.reach_probes {
        let counts = (probe.asked, probe.answered, probe.not_sent);
        if probe.protocol == ReachProtocol::Tcp {
            assert!(probe.answered > 0 && probe.not_sent == 0, "{probe:#?}");
        } else {
            assert!(probe.asked == 0 && probe.not_sent > 0, "{counts:?}: {probe:#?}");
        }
    }
    for (program, what) in [(silent, "reach"), (latency, "latency")] {
        let finished = program.finish_within(LIMIT).exits_with(2);
        let said = &finished.stderr;
        assert!(
            said.contains("nothing could be sent to ") && said.contains("not permitted"),
            "{what}: {said}"
        );
        assert!(said.contains("no firewall of this host"), "{what}: {said}");
    }
    let finished = udp.finish_within(LIMIT);
    let record = finished.record();
    let udp = &over(&record, IpVersion::V6).udp[0];
    assert!(udp.not_sent > Some(0) && udp.received > 0, "{udp:#?}");
    assert_eq!((udp.loss.lost, udp.sent), (0, udp.received), "{udp:#?}");
    // Where not everything was sent, no loss has been measured that could be small enough.
    assert_ne!(finished.code, Some(0), "{finished:#?}");
}

/// The kernel itself says "host unreachable" where ARP or neighbour discovery has no answer, with
/// this host's own address as the sender of the error.
#[test]
fn what_this_host_says_of_a_missing_neighbour_is_no_hop_and_no_answer() {
    if !permitted() {
        return;
    }
    let pair = pair("neighbour");
    let runs: Vec<_> = ["10.77.0.77", "fd00:77::77"]
        .into_iter()
        .flat_map(|host| ["hops", "reach"].map(|command| [command, host, "-t", "6s", "--max-hops", "3"]))
        .map(|[command, host, t, time, hops, three]| {
            let of_hops: &[&str] = if command == "hops" { &[hops, three] } else { &[] };
            start(&pair, &[&[command, host, t, time], of_hops].concat())
        })
        .collect();
    for program in runs {
        let finished = program.finish_within(LIMIT).exits_with(2);
        let record = finished.record();
        let [found] = &record.versions[..] else { panic!("{record:#?}") };
        let why = found.unreachable.as_ref().unwrap_or_else(|| panic!("{record:#?}"));
        assert!(found.hops.is_none() && found.reach_probes.is_empty(), "{found:#?}");
        assert!(why.advice.contains("ARP or neighbour discovery had no answer"), "{why:?}");
        assert!(!why.reason.contains("answers"), "{why:?}");
    }
}

/// A request that waits for the answer to the one before asks little where nothing comes.
#[test]
fn a_ping_pong_whose_route_is_gone_did_not_measure_to_its_end() {
    if !permitted() {
        return;
    }
    let pair = pair("ping-pong");
    let _responder = responder(&pair, &[]);
    let host = pair.right().v4().to_string();
    let arguments = ["latency", &host, "--ping-pong", "-t", "4s", "--expect", "loss<1%"];
    let program = start(&pair, &arguments);
    clock::sleep(Span::from_secs(1));
    pair.left().ip(&["route", "delete", "10.77.0.0/24"]).unwrap();
    let finished = program.finish_within(LIMIT).exits_with(2);
    let record = finished.record();
    let found = over(&record, IpVersion::V4);
    let why = found.unreachable.as_ref().unwrap_or_else(|| panic!("{record:#?}"));
    // The session may be found dead as well by then, and its end has the same cause.
    let words = ["not sent", "no answer", "this host lets no packets out"];
    assert!(words.iter().any(|word| why.reason.contains(word)), "{why:?}");
    assert!(record.expectations.iter().all(|it| !it.held), "{:#?}", record.expectations);
    assert!(record.elapsed > Span::from_secs(3), "it does not end before its time: {}", record.elapsed);
}

/// Datagrams are dropped at the responder, while the control connection lives.
#[test]
fn a_stream_that_could_not_begin_is_a_phase_that_failed() {
    if !permitted() {
        return;
    }
    let pair = pair("begins");
    let _responder = responder(&pair, &[]);
    let host = pair.right().v4().to_string();
    let arguments = ["udp", &host, "--bidir", "-b", "1M", "-t", "1s", "--expect", "udp.up>1k"];
    let trains = ["capacity", &host, "--bidir", "-t", "2s", "--expect", "capacity>1k"];
    let runs = [&arguments[..], &trains[..]];
    let drop_udp = "add table inet own; add chain inet own in { type filter hook input priority 0; }; add rule inet own in \
         meta l4proto udp drop";
    // The set-up of trains and streams goes over UDP, too.
    assert!(pair.right().command("nft").arg(drop_udp).status().unwrap().success());
    for arguments in runs {
        let finished = start(&pair, arguments).finish_within(LIMIT).exits_with(2);
        let record = finished.record();
        let found = over(&record, IpVersion::V4);
        assert!(!found.failed_phases.is_empty(), "{record:#?}");
        assert!(record.expectations.iter().all(|it| !it.held), "{:#?}", record.expectations);
    }
}
