//! Packets that vanish without a word: large ones, all of one version, all of everything.

use netaware_io::clock;
use netaware_netns::{IpVersion as Family, Pair, permitted};
use netaware_record::{IpVersion, MtuFinding, Outcome, VersionResult};
use netaware_testkit::pair::{over, prober, responder};
use netaware_testkit::program::{Program, netaware_path};
use netaware_units::Span;

/// What the main job takes, a connect timeout on top, and room for a busy machine.
const BOUND: Span = Span::from_secs(30);

#[test]
fn mtu_black_hole_of_one_version_is_reported_and_the_other_measured() {
    if !permitted() {
        return;
    }
    for (family, holed, whole) in
        [(Family::V4, IpVersion::V4, IpVersion::V6), (Family::V6, IpVersion::V6, IpVersion::V4)]
    {
        let pair = Pair::new("mtu hole").unwrap();
        pair.blackhole_larger_than(1300, family).unwrap();
        let _responder = responder(&pair, &[]);
        let finished =
            prober(&pair, &["test", "both.test", "--format", "json"]).finish_within(BOUND).exits_with(0);
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
    }
}

#[test]
fn version_that_is_blackholed_costs_no_more_than_its_timeout() {
    if !permitted() {
        return;
    }
    for (family, gone, stays) in
        [(Family::V4, IpVersion::V4, IpVersion::V6), (Family::V6, IpVersion::V6, IpVersion::V4)]
    {
        let pair = Pair::new("hole").unwrap();
        let _responder = responder(&pair, &[]);
        let test = ["test", "both.test", "-t", "8s", "--connect-timeout", "1s", "--format", "json"];
        let untroubled = prober(&pair, &test).finish_within(BOUND).exits_with(0);
        pair.blackhole(family).unwrap();
        let finished = prober(&pair, &test).finish_within(BOUND).exits_with(0);
        assert!(
            finished.took < untroubled.took + Span::from_secs(2),
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
    }
}

#[test]
fn both_versions_blackholed_end_with_an_error_after_the_timeout() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("both holes").unwrap();
    let _responder = responder(&pair, &[]);
    pair.blackhole(Family::V4).unwrap();
    pair.blackhole(Family::V6).unwrap();
    for command in ["test", "tcp", "udp", "latency"] {
        let prober = prober(&pair, &[command, "both.test", "--connect-timeout", "1s"]);
        let failed = prober.finish_within(Span::from_secs(4)).exits_with(2);
        assert!(failed.stderr.contains("10.77.0.2") && failed.stderr.contains("fd00:77::2"), "{failed:#?}");
    }
}

#[test]
fn version_that_is_blackholed_midway_is_given_up_and_the_other_measured() {
    if !permitted() {
        return;
    }
    for delay in [2, 5, 9] {
        let pair = Pair::new("midway").unwrap();
        let _responder = responder(&pair, &[]);
        let prober = prober(&pair, &["test", "both.test", "--format", "json"]);
        clock::sleep(Span::from_secs(delay));
        pair.blackhole(Family::V6).unwrap();
        let finished = prober.finish_within(BOUND).exits_with(0);
        let record = finished.record();
        assert!(over(&record, IpVersion::V6).unreachable.is_some(), "after {delay} s: {record:#?}");
        is_measured(over(&record, IpVersion::V4));
    }
}

#[test]
fn responder_whose_network_vanishes_is_given_up_with_what_there_is() {
    if !permitted() {
        return;
    }
    for command in ["tcp", "udp", "latency"] {
        let pair = Pair::new("vanished").unwrap();
        let _responder = responder(&pair, &[]);
        let rate = if command == "latency" { &[][..] } else { &["-b", "20Mbit/s"] };
        let fixed = [command, "v4.test", "-t", "30s", "--format", "json"];
        let prober = prober(&pair, &[&fixed[..], rate].concat());
        clock::sleep(Span::from_secs(2));
        pair.blackhole(Family::V4).unwrap();
        let record = prober.finish_within(Span::from_secs(5)).exits_with(2).record();
        assert_eq!(record.outcome, Outcome::Failed);
        let version = over(&record, IpVersion::V4);
        let something = version.latency.is_some() || !version.tcp.is_empty() || !version.udp.is_empty();
        assert!(something, "{command}: {record:#?}");
    }
}

#[test]
fn prober_whose_network_vanishes_frees_its_place_within_five_seconds() {
    if !permitted() {
        return;
    }
    for options in [&["tcp"][..], &["tcp", "-R"], &["udp"], &["udp", "-R"]] {
        let pair = Pair::new("vanished").unwrap();
        let _responder = responder(&pair, &[]);
        let rate = ["v4.test", "-t", "30s", "-b", "20Mbit/s"];
        let _prober = prober(&pair, &[options, &rate[..]].concat());
        clock::sleep(Span::from_secs(2));
        pair.blackhole(Family::V4).unwrap();
        let vanished_at = clock::now();
        // From within the responder's own namespace, which still has its loopback.
        let mut next = pair.right().command(netaware_path());
        next.args(["tcp", "127.0.0.1", "-t", "500ms", "-n", "1KiB"]);
        Program::start(next).finish_within(Span::from_secs(8)).exits_with(0);
        let waited = clock::now() - vanished_at;
        assert!(
            waited < Span::from_secs(6),
            "{options:?}: served after {waited}, a second of which is its own test"
        );
    }
}

fn is_measured(version: &VersionResult) {
    assert!(version.latency.as_ref().is_some_and(|it| it.received > 0), "{version:#?}");
    for streams in [1, 4] {
        let measured = version.tcp.iter().filter(|it| it.streams == streams && it.goodput.is_some()).count();
        assert_eq!(measured, 2, "{streams} streams up and down over {}", version.version.name());
    }
}
