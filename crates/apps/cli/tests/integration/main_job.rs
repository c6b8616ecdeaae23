//! The main job as a newcomer runs it: no host, no option, one machine.

mod accuracy;
mod caps;

use netaware_record::{IpVersion, Outcome, Record, Side, TcpResult, VersionResult};
use netaware_testkit::program::{Program, netaware, run};
use netaware_units::Span;

#[test]
fn without_a_host_it_measures_its_own_responder_over_both_versions() {
    let finished = run(&["test", "--format", "json"], Span::from_secs(40)).exits_with(0);
    assert!(finished.stderr.contains("loopback"), "it says what it measures: {}", finished.stderr);
    let record = finished.record();
    assert_eq!(record.outcome, Outcome::Complete);
    assert!(record.request.own_responder && record.request.host.is_empty());
    assert_eq!(
        record.versions.iter().map(|it| it.version).collect::<Vec<_>>(),
        [IpVersion::V4, IpVersion::V6]
    );
    record.versions.iter().for_each(is_complete);
    record.versions.iter().for_each(does_not_blame_the_network);
    is_compared(&record);
}

#[test]
fn text_is_a_table_of_both_versions_within_eighty_columns_and_without_colours() {
    let finished = run(&["test", "-t", "2s", "--rounds", "1"], Span::from_secs(30)).exits_with(0);
    for word in ["IPv4", "IPv6", "bulk transfer", "interactive", "media"] {
        assert!(finished.stdout.contains(word), "'{word}' is missing:\n{}", finished.stdout);
    }
    for line in finished.stdout.lines() {
        assert!(line.chars().count() <= 80, "too wide: {line}");
        assert!(!line.contains('\u{1b}'), "colours without a terminal: {line}");
    }
    assert!(finished.stdout.contains("own responder"), "{}", finished.stdout);
}

#[test]
fn result_is_saved_and_shown_again_unless_told_otherwise() {
    let shelf = tempfile::tempdir().unwrap();
    let store = shelf.path().join("store.db");
    let at = ["--store", store.to_str().unwrap()];
    let short = ["test", "-t", "1s", "--rounds", "1", "--no-udp", "--format", "json"];
    run(&[&short[..], &at, &["--no-save"]].concat(), Span::from_secs(20)).exits_with(0);
    let saved = run(&[&short[..], &at].concat(), Span::from_secs(20)).exits_with(0).record();
    let id = saved.id.to_string();

    let listed = run(&[&["results", "list"], &at[..]].concat(), Span::from_secs(5)).exits_with(0).stdout;
    let lines = listed.lines().filter(|line| line.contains(&id[..8])).count();
    assert_eq!(lines, 1, "one result, because the other was not to be saved:\n{listed}");

    let show = [&["results", "show", &*id], &at[..], &["--format", "json"]].concat();
    assert_eq!(run(&show, Span::from_secs(5)).exits_with(0).record(), saved);
    let text = [&["results", "show", &*id], &at[..]].concat();
    assert!(run(&text, Span::from_secs(5)).exits_with(0).stdout.contains("IPv6"));
    let unknown = [&["results", "show", "00000000-0000-7000-8000-000000000000"], &at[..]].concat();
    run(&unknown, Span::from_secs(5)).exits_with(2);
}

#[test]
fn store_of_the_environment_is_used() {
    let prober = Program::start(netaware(&["test", "-t", "1s", "--no-tcp", "--no-udp"]));
    let store = prober.store();
    // The store lives in the program's own folder, so look at it before that goes.
    let due = netaware_io::clock::now() + Span::from_secs(20);
    while !store.exists() {
        assert!(netaware_io::clock::now() < due, "nothing was saved to {}", store.display());
        netaware_io::clock::sleep(Span::from_millis(10));
    }
    prober.finish_within(Span::from_secs(20)).exits_with(0);
}

fn is_complete(version: &VersionResult) {
    assert!(version.unreachable.is_none(), "{:#?}", version.unreachable);
    let reach = version.reach.as_ref().unwrap();
    assert!(!reach.connects.is_empty() && reach.connects.iter().all(|it| *it > Span::ZERO), "{reach:#?}");
    assert!(version.path.as_ref().unwrap().mtu.is_some(), "{:#?}", version.path);
    let latency = version.latency.as_ref().unwrap();
    // One that came after its patience is lost, if the machine stood still.
    let is_enough = latency.sent >= 200 && latency.received >= 190;
    assert!(is_enough && latency.received + latency.lost == latency.sent, "200 exchanges: {latency:#?}");
    assert!(latency.rtt.is_some() && latency.ipdv.is_some() && latency.pdv.is_some(), "{latency:#?}");
    for streams in [1, 4] {
        let directions =
            version.tcp.iter().filter(|it| it.streams == streams && it.goodput.is_some()).count();
        assert_eq!(directions, 2, "{streams} streams up and down");
    }
    assert_eq!(version.udp.iter().filter(|it| it.received > 0).count(), 2, "UDP up and down");
    let loaded = version.tcp.iter().filter_map(|it| it.latency_under_load.as_ref());
    assert!(
        loaded.filter(|it| it.round_trips_per_minute.is_some()).count() >= 2,
        "latency under load, both ways"
    );
}

/// There is no network on loopback: the host is what limits, or nothing is said to.
fn does_not_blame_the_network(version: &VersionResult) {
    assert_eq!((version.tcp.len(), version.udp.len()), (4, 2), "{version:#?}");
    let limits = version.tcp.iter().map(|TcpResult { limit, .. }| limit);
    for limit in limits {
        assert!(matches!(limit.side, Side::Host | Side::Unknown), "{limit:#?}");
        assert!(!limit.evidence.is_empty() && !limit.evidence.contains('\n'), "{limit:#?}");
    }
    for udp in &version.udp {
        assert_ne!(udp.limit.side, Side::Network, "{:#?}", udp.limit);
    }
}

fn is_compared(record: &Record) {
    let comparison = record.comparison.as_ref().unwrap();
    assert_eq!(comparison.verdicts.len(), 3);
    assert!(comparison.verdicts.iter().all(|verdict| !verdict.because.is_empty()), "{comparison:#?}");
    assert!(!comparison.metrics.is_empty(), "{comparison:#?}");
    for metric in &comparison.metrics {
        assert!(metric.difference.lo <= metric.difference.hi && metric.pairs > 0, "{metric:#?}");
    }
}
