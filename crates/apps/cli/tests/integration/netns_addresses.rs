//! Addresses of one link alone, between two namespaces: a link-local IPv6 address keeps its zone
//! from the command line to the sockets of every command and back into the result. And probes that
//! this host itself did not let out, which nobody lost. Needs root.

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
