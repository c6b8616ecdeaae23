//! Packets that vanish without a word: large ones, all of one version, all of everything.

use std::net::{Ipv4Addr, SocketAddr};

use netaware_io::clock;
use netaware_netns::{IpVersion as Family, permitted};
use netaware_record::{IpVersion, MtuFinding, Outcome, Record, VersionResult};
use netaware_testkit::control::Control;
use netaware_testkit::lab::PORT;
use netaware_testkit::pair::{over, prober, responder};
use netaware_testkit::program::Program;
use netaware_units::Span;
use netaware_wire::control::{ClientMessage, ServerMessage};

use super::{modest_pair, side_by_side};

/// What the main job takes, a connect timeout on top, and room for a busy machine.
const BOUND: Span = Span::from_secs(30);

#[test]
fn mtu_black_hole_of_one_version_is_reported_and_the_other_measured() {
    if !permitted() {
        return;
    }
    let families = [(Family::V4, IpVersion::V4, IpVersion::V6), (Family::V6, IpVersion::V6, IpVersion::V4)];
    side_by_side(families, |(family, holed, whole)| {
        let pair = modest_pair("mtu hole");
        pair.blackhole_larger_than(1300, family).unwrap();
        let _responder = responder(&pair, &[]);
        let test = ["test", "both.test", "-t", "4s", "--rounds", "1", "--format", "json"];
        let finished = prober(&pair, &test).finish_within(BOUND).exits_with(0);
        let record = finished.record();
        let path = over(&record, holed).path.as_ref().unwrap();
        assert_eq!(path.mtu_finding, MtuFinding::BlackHole, "{path:#?}");
        // Steps of the search are finer than 32 bytes.
        let mtu = path.mtu.unwrap();
        assert!((1268..=1300).contains(&mtu), "{mtu} instead of 1300");
        assert!(record.warnings.iter().any(|it| it.contains("vanish")), "{:#?}", record.warnings);
        let path = over(&record, whole).path.as_ref().unwrap();
        assert_eq!((path.mtu_finding, path.mtu), (MtuFinding::Confirmed, Some(1500)));
        is_measured(over(&record, whole));
    });
}

#[test]
fn tcp_that_stalls_on_an_mtu_black_hole_names_it_and_nobody_else() {
    if !permitted() {
        return;
    }
    side_by_side([(Family::V4, "-4"), (Family::V6, "-6")], |(family, version)| {
        let pair = modest_pair("tcp on an mtu hole");
        pair.blackhole_larger_than(1300, family).unwrap();
        let _responder = responder(&pair, &[]);
        let tcp = ["tcp", "both.test", version, "-t", "1s", "--format", "json"];
        let finished = prober(&pair, &tcp).finish_within(BOUND).exits_with(2);
        let record = finished.record();
        let tcp = &record.versions[0].tcp[0];
        assert!(tcp.carried_nothing() && tcp.goodput.is_none() && tcp.rfc6349.is_none(), "{tcp:#?}");
        let early = tcp.ended_early.as_deref().unwrap();
        assert!(early.contains("nothing of what was sent arrived"), "{early}");
        assert!(tcp.limit.evidence.contains("bytes vanish and no router says so"), "{:?}", tcp.limit);
        let first = &record.warnings[0];
        assert!(first.contains("vanish") && first.contains("TCP stalled on it"), "{first}");
    });
}

#[test]
fn version_that_is_blackholed_costs_no_more_than_its_timeout() {
    if !permitted() {
        return;
    }
    let families = [(Family::V4, IpVersion::V4, IpVersion::V6), (Family::V6, IpVersion::V6, IpVersion::V4)];
    side_by_side(families, |(family, gone, stays)| {
        let pair = modest_pair("hole");
        let _responder = responder(&pair, &[]);
        let test =
            ["test", "both.test", "-t", "4s", "--rounds", "1", "--connect-timeout", "1s", "--format", "json"];
        let untroubled = prober(&pair, &test).finish_within(BOUND).exits_with(0);
        pair.blackhole(family).unwrap();
        let finished = prober(&pair, &test).finish_within(BOUND).exits_with(0);
        assert!(
            finished.took < untroubled.took + Span::from_secs(4),
            "{} and {}",
            finished.took,
            untroubled.took
        );
        let record = finished.record();
        let why = over(&record, gone).unreachable.as_ref().unwrap();
        let address = pair.right().address(family).to_string();
        assert!(why.reason.contains(&address), "{why:#?}");
        assert_eq!(why.stage, "connect");
        assert!(over(&record, stays).unreachable.is_none());
        is_measured(over(&record, stays));
    });
}

#[test]
fn both_versions_blackholed_end_with_an_error_after_the_timeout() {
    if !permitted() {
        return;
    }
    let pair = modest_pair("both holes");
    let _responder = responder(&pair, &[]);
    pair.blackhole(Family::V4).unwrap();
    pair.blackhole(Family::V6).unwrap();
    side_by_side(["test", "tcp", "udp", "latency"], |command| {
        let prober = prober(&pair, &[command, "both.test", "--connect-timeout", "1s"]);
        let failed = prober.finish_within(Span::from_secs(10)).exits_with(2);
        assert!(failed.stderr.contains("10.77.0.2") && failed.stderr.contains("fd00:77::2"), "{failed:#?}");
    });
}

#[test]
fn version_that_is_blackholed_midway_is_given_up_and_the_other_measured() {
    if !permitted() {
        return;
    }
    // While it measures latency, a single stream, and several of them.
    side_by_side([1000, 2500, 4000], |delay| {
        let pair = modest_pair("midway");
        let _responder = responder(&pair, &[]);
        let prober = prober(&pair, &["test", "both.test", "-t", "6s", "--format", "json"]);
        clock::sleep(Span::from_millis(delay));
        pair.blackhole(Family::V6).unwrap();
        let finished = prober.finish_within(BOUND).exits_with(0);
        let record = finished.record();
        assert!(over(&record, IpVersion::V6).unreachable.is_some(), "after {delay} ms: {record:#?}");
        is_measured(over(&record, IpVersion::V4));
    });
}

#[test]
fn responder_whose_network_vanishes_is_given_up_with_what_there_is() {
    if !permitted() {
        return;
    }
    side_by_side(["tcp", "udp", "latency"], |command| {
        let pair = modest_pair("vanished");
        let _responder = responder(&pair, &[]);
        let rate = if command == "latency" { &[][..] } else { &["-b", "10Mbit/s"] };
        let fixed = [command, "v4.test", "-t", "30s", "--format", "ndjson"];
        let prober = prober(&pair, &[&fixed[..], rate].concat());
        until_it_measures(&prober, command);
        pair.blackhole(Family::V4).unwrap();
        let ended = prober.finish_within(Span::from_secs(10)).exits_with(2);
        let record: Record = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(record.outcome, Outcome::Failed);
        let version = over(&record, IpVersion::V4);
        let something = version.latency.is_some() || !version.tcp.is_empty() || !version.udp.is_empty();
        assert!(something, "{command}: {record:#?}");
    });
}

#[test]
fn prober_whose_network_vanishes_frees_its_place_within_five_seconds() {
    if !permitted() {
        return;
    }
    side_by_side([&["tcp"][..], &["tcp", "-R"], &["udp"], &["udp", "-R"]], |options| {
        let pair = modest_pair("vanished");
        let _responder = responder(&pair, &[]);
        let rate = ["v4.test", "-t", "30s", "-b", "10Mbit/s", "--format", "ndjson"];
        let prober = prober(&pair, &[options, &rate[..]].concat());
        until_it_measures(&prober, options[0]);
        // The next one is within the responder's own namespace, which still has its loopback.
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let (mut next, _) = pair.right().within(|| Ok(Control::session(here))).unwrap();
        next.say(&ClientMessage::Reserve { expected: Span::from_secs(1), join: None });
        next.wait_for(Span::from_secs(2), |it| {
            matches!(it, ServerMessage::Queued { place: 1, .. }).then_some(())
        });
        pair.blackhole(Family::V4).unwrap();
        next.wait_for(Span::from_secs(5), |it| matches!(it, ServerMessage::Admitted { .. }).then_some(()));
    });
}

/// Waits until a prober with `--format ndjson` has measured something: for its first interval, or
/// half a second of `latency`, which prints none.
fn until_it_measures(prober: &Program, command: &str) {
    let words = if command == "latency" { r#""what":"latency""# } else { r#""event":"interval""# };
    let due = clock::now() + Span::from_secs(10);
    while !prober.printed().contains(words) {
        assert!(clock::now() < due, "nothing is measured: {}", prober.complained());
        clock::sleep(Span::from_millis(10));
    }
    if command == "latency" {
        clock::sleep(Span::from_millis(500));
    }
}

fn is_measured(version: &VersionResult) {
    assert!(version.latency.as_ref().is_some_and(|it| it.received > 0), "{version:#?}");
    for streams in [1, 4] {
        let measured = version.tcp.iter().filter(|it| it.streams == streams && it.goodput.is_some()).count();
        assert_eq!(measured, 2, "{streams} streams up and down over {}", version.version.name());
    }
}
