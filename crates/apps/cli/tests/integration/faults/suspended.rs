//! The prober or the responder is stopped for a while, as a laptop is whose lid is closed: nobody
//! else is blamed.

use netaware_io::clock;
use netaware_record::{LimitedBy, Outcome, Record, VersionResult};
use netaware_testkit::program::{Program, Responder, netaware, signal};
use netaware_units::Span;

use super::{side_by_side, until_it_prints};

/// A command, and the words with which it says that it measures.
const COMMANDS: [(&[&str], &str); 4] = [
    (&["latency", "-t", "20s"], r#""what":"latency""#),
    (&["tcp", "-t", "20s", "--rate", "10M"], r#""event":"interval""#),
    (&["tcp", "-t", "20s", "--rate", "10M", "-R"], r#""event":"interval""#),
    (&["matrix", "--runs", "60"], "TCP_NODELAY"),
];

#[test]
fn a_prober_that_was_stopped_for_6_s_blames_nobody_whatever_it_measured() {
    side_by_side(COMMANDS, |(command, measuring)| {
        let responder = Responder::start(&[]);
        let to = ["127.0.0.1", "--port", &responder.port(), "--format", "ndjson"].map(str::to_owned);
        let to: Vec<&str> = to.iter().map(String::as_str).collect();
        let prober = Program::start(netaware(&[command, &to].concat()));
        until_it_prints(&prober, measuring);
        signal("STOP", prober.id());
        clock::sleep(Span::from_secs(6));
        signal("CONT", prober.id());
        let finished = prober.finish_within(Span::from_secs(8)).exits_with(2);
        let last = finished.stdout.lines().last().unwrap_or_else(|| panic!("{finished:#?}"));
        let record: Record = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {finished:#?}"));
        assert_eq!(record.outcome, Outcome::Failed, "{command:?}");
        assert!(record.warnings.iter().any(|it| it.contains("did not run netaware")), "{record:#?}");
        nobody_is_blamed(&record.versions[0], command);
    });
}

#[test]
fn a_responder_that_was_stopped_is_no_address_translator_and_loses_nothing() {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let to = ["127.0.0.1", "--port", &port, "-4", "--format", "ndjson", "--no-save"];
    let asking = ["latency", "-c", "250", "--spacing", "10ms"];
    let prober = Program::start(netaware(&[&asking, &to[..]].concat()));
    until_it_prints(&prober, r#""what":"latency""#);
    // Some are answered first. It is stopped over the end of the requests, and of what they are
    // waited for.
    clock::sleep(Span::from_secs(1));
    signal("STOP", responder.id());
    clock::sleep(Span::from_millis(2800));
    signal("CONT", responder.id());
    let finished = prober.finish_within(Span::from_secs(10)).exits_with(0);
    let last = finished.stdout.lines().last().unwrap_or_else(|| panic!("{finished:#?}"));
    let record: Record = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {finished:#?}"));
    let latency = record.versions[0].latency.as_ref().unwrap();
    assert_eq!((latency.sent, latency.lost), (250, 0), "{latency:#?}");
    assert!(latency.unknown > 0, "{latency:#?}");
    let says = |what: &str| record.warnings.iter().any(|warning| warning.contains(what));
    assert!(says("the responder's host did not run netaware for "), "{:?}", record.warnings);
    assert!(!says("address translator"), "{:?}", record.warnings);
}

fn nobody_is_blamed(found: &VersionResult, command: &[&str]) {
    let reason = found.unreachable.as_ref().map_or("", |it| it.reason.as_str());
    assert!(reason.contains("this host did not run netaware"), "{command:?}: {reason}");
    if let Some(latency) = &found.latency {
        assert_eq!(latency.lost, 0, "{command:?}: {latency:#?}");
        assert_eq!(latency.sent, latency.received + latency.unknown, "{command:?}: {latency:#?}");
    }
    for tcp in &found.tcp {
        let early = tcp.ended_early.as_deref().unwrap_or_default();
        assert!(early.contains("this host did not run netaware"), "{command:?}: {early}");
        assert_ne!(tcp.limit.by, LimitedBy::Network, "{command:?}: {:?}", tcp.limit);
    }
    let runs = found.matrix.iter().flat_map(|result| &result.cells).flat_map(|cell| &cell.runs);
    for run in runs {
        assert_eq!(run.lost.0, 0, "{command:?}: {run:?}");
    }
}
