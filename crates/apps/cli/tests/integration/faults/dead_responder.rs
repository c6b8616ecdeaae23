//! The responder dies, freezes or is asked to stop: the prober ends soon and prints what it has.

use netaware_io::clock;
use netaware_record::{Outcome, Record, VersionResult};
use netaware_testkit::program::{Finished, Program, Responder, netaware, run, signal};
use netaware_units::Span;

use super::{side_by_side, until_it_measures, until_it_prints};

const ENDS_WITHIN: Span = Span::from_secs(8);
const RATE: &[&str] = &["-t", "20s", "-b", "20Mbit/s"];
const REVERSE: &[&str] = &["-t", "20s", "-b", "20Mbit/s", "-R"];
const FULL: &[&str] = &["-t", "20s"];
const EVERY_KIND: [(&str, &[&str]); 5] =
    [("tcp", RATE), ("tcp", REVERSE), ("udp", RATE), ("udp", REVERSE), ("latency", FULL)];

#[test]
fn tcp_prober_outlives_a_killed_responder_with_what_it_has() {
    for options in [RATE, REVERSE, FULL] {
        let record = ends_with_what_it_has("KILL", "tcp", options, When::Measuring);
        assert!(
            any(&record, |version| version.tcp.iter().any(|tcp| tcp.bytes.is_some_and(|bytes| bytes.0 > 0))),
            "{record:#?}"
        );
    }
}

#[test]
fn udp_prober_outlives_a_killed_responder_with_what_it_has() {
    for options in [RATE, REVERSE] {
        let record = ends_with_what_it_has("KILL", "udp", options, When::Measuring);
        assert!(
            any(&record, |version| version.udp.iter().any(|udp| udp.sent + udp.received > 0)),
            "{record:#?}"
        );
    }
}

#[test]
fn latency_prober_outlives_a_killed_responder_with_what_it_has() {
    let record = ends_with_what_it_has("KILL", "latency", FULL, When::Measuring);
    assert!(
        any(&record, |version| version.latency.as_ref().is_some_and(|it| it.received > 10)),
        "{record:#?}"
    );
}

#[test]
fn main_job_outlives_a_responder_killed_in_any_phase() {
    // When it has begun with this, and has measured latency before.
    for phase in [", 1 stream", ", 4 streams", "\"UDP "] {
        let record = ends_with_what_it_has("KILL", "test", &["-t", "3s"], When::In(phase));
        let measured = |version: &VersionResult| version.latency.is_some() || !version.tcp.is_empty();
        assert!(any(&record, measured), "{phase}: {record:#?}");
    }
}

#[test]
fn responder_killed_in_the_first_moment_is_no_hang() {
    for command in ["tcp", "udp", "latency", "test"] {
        for delay in [5, 20, 60, 200] {
            let finished = after_signal("KILL", command, &[], When::After(Span::from_millis(delay)));
            assert!(!finished.stderr.contains("panicked"), "{finished:#?}");
            finished.exits_with(2);
        }
    }
}

#[test]
fn prober_gives_up_a_responder_that_stops_moving() {
    side_by_side(EVERY_KIND, |(command, options)| {
        ends_with_what_it_has("STOP", command, options, When::Measuring);
    });
}

#[test]
fn responder_asked_to_stop_ends_running_tests_with_partial_results() {
    let by = ["TERM", "HUP", "INT", "TERM", "HUP"];
    side_by_side(std::iter::zip(EVERY_KIND, by), |((command, options), by)| {
        let responder = Responder::start(&[]);
        let prober = prober(&responder, command, options);
        clock::sleep(Span::from_secs(2));
        signal(by, responder.id());
        let ended = responder.into_program().finish_within(ENDS_WITHIN).exits_with(0);
        assert!(ended.stderr.contains(&format!("SIG{by}: ending")), "{ended:#?}");
        // Always the same, whichever of the last messages was read first.
        let finished = prober.finish_within(ENDS_WITHIN).exits_with(2);
        let record = last_record(&finished);
        assert_eq!(record.outcome, Outcome::Failed, "{finished:#?}");
        assert!(finished.stderr.contains("was stopped"), "{finished:#?}");
        // Half of the two seconds at the least: this is a result, not a rest of one.
        let enough = |version: &VersionResult| {
            version.tcp.iter().any(|it| it.goodput.is_some() && it.measured > Span::from_millis(500))
                || version.udp.iter().any(|it| it.received > 1000)
                || version.latency.as_ref().is_some_and(|it| it.received > 10)
        };
        assert!(any(&record, enough), "{command}: {record:#?}");
    });
}

#[test]
fn a_responder_that_is_stopped_in_the_midst_of_many_transfers_leaves_what_was_measured() {
    let many: [(&str, &[&str]); 2] = [("test", &["-t", "12s"]), ("matrix", &["--runs", "300"])];
    side_by_side(many, |(command, options)| {
        let responder = Responder::start(&[]);
        let prober = prober(&responder, command, options);
        until_it_prints(&prober, if command == "test" { ", 1 stream" } else { "\"event\"" });
        clock::sleep(Span::from_secs(1));
        signal("TERM", responder.id());
        responder.into_program().finish_within(ENDS_WITHIN).exits_with(0);
        let finished = prober.finish_within(ENDS_WITHIN).exits_with(2);
        assert!(finished.stderr.contains("was stopped"), "{finished:#?}");
        let record = last_record(&finished);
        assert_eq!(record.outcome, Outcome::Failed, "{finished:#?}");
        assert!(record.has_figures(), "{command}: {record:#?}");
    });
}

#[test]
fn idle_responder_stops_at_once_when_asked() {
    for name in ["TERM", "INT", "HUP"] {
        let responder = Responder::start(&[]);
        run(&["latency", "127.0.0.1", "--port", &responder.port(), "-t", "200ms"], Span::from_secs(10))
            .exits_with(0);
        signal(name, responder.id());
        responder.into_program().finish_within(Span::from_secs(2)).exits_with(0);
    }
}

/// When a responder is sent its signal.
#[derive(Clone, Copy)]
enum When {
    /// So long after the prober's start.
    After(Span),
    /// As soon as the prober has measured something.
    Measuring,
    /// As soon as the prober has begun this phase.
    In(&'static str),
}

fn ends_with_what_it_has(by: &str, command: &str, options: &[&str], when: When) -> Record {
    let finished = after_signal(by, command, options, when).exits_with(2);
    assert!(!finished.stderr.trim().is_empty(), "it says why: {finished:#?}");
    let record = last_record(&finished);
    assert_eq!(record.outcome, Outcome::Failed, "{record:#?}");
    record
}

/// The record, with which line-wise JSON ends.
fn last_record(finished: &Finished) -> Record {
    let last = finished.stdout.lines().last().unwrap_or_else(|| panic!("{finished:#?}"));
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {finished:#?}"))
}

/// Starts both, sends the responder a signal, and waits for the prober's end.
fn after_signal(by: &str, command: &str, options: &[&str], when: When) -> Finished {
    let responder = Responder::start(&[]);
    let prober = prober(&responder, command, options);
    match when {
        When::After(delay) => clock::sleep(delay),
        When::Measuring => until_it_measures(&prober, command),
        When::In(phase) => until_it_prints(&prober, phase),
    }
    signal(by, responder.id());
    prober.finish_within(ENDS_WITHIN)
}

fn prober(responder: &Responder, command: &str, options: &[&str]) -> Program {
    let port = responder.port();
    let fixed = [command, "127.0.0.1", "--port", &port, "--format", "ndjson"];
    Program::start(netaware(&[&fixed[..], options].concat()))
}

fn any(record: &Record, holds: impl Fn(&VersionResult) -> bool) -> bool {
    record.versions.iter().any(holds)
}
