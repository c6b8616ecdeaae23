//! How a measurement that was not left alone ends: interrupted, or held against an expectation.

mod log_reader;

use netaware_record::{Outcome, Record};
use netaware_testkit::program::{Program, Responder, netaware, netaware_path, run, signal};
use netaware_units::Span;

use super::{side_by_side, until_it_measures, until_it_prints, until_it_says};

#[test]
fn interrupted_measurement_prints_what_was_measured_and_says_so() {
    let responder = Responder::start(&[]);
    let port = responder.port();
    for (command, by) in [("tcp", "HUP"), ("udp", "TERM"), ("latency", "HUP"), ("test", "INT")] {
        let fixed = [command, "127.0.0.1", "--port", &port, "-t", "12s", "--format", "ndjson"];
        let rate = if matches!(command, "tcp" | "udp") { &["-b", "20Mbit/s"][..] } else { &[] };
        let started = Program::start(netaware(&[&fixed[..], rate].concat()));
        match command {
            // It prints no intervals; latency comes before the streams.
            "test" => until_it_prints(&started, ", 1 stream"),
            _ => until_it_measures(&started, command),
        }
        signal(by, started.id());
        let finished = started.finish_within(Span::from_secs(3)).exits_with(0);
        let record: Record = serde_json::from_str(finished.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(record.outcome, Outcome::Interrupted, "{finished:#?}");
        assert!(finished.stderr.contains(&format!("SIG{by}: ending early")), "{finished:#?}");
        let version = &record.versions[0];
        let something = version.latency.is_some() || !version.tcp.is_empty() || !version.udp.is_empty();
        assert!(something, "{record:#?}");
    }
}

#[test]
fn a_matrix_or_a_survey_of_hops_that_is_interrupted_prints_what_it_has() {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let matrix = ["matrix", "127.0.0.1", "--port", &port, "--runs", "300", "--format", "ndjson"];
    let hops = ["hops", "127.0.0.1", "-t", "12s", "--format", "ndjson"];
    let cases: [(&[&str], &str); 3] = [(&matrix, "HUP"), (&hops, "HUP"), (&hops, "TERM")];
    side_by_side(cases, |(arguments, by)| {
        let started = Program::start(netaware(arguments));
        until_it_prints(&started, "\"event\"");
        netaware_io::clock::sleep(Span::from_secs(1));
        signal(by, started.id());
        let finished = started.finish_within(Span::from_secs(3)).exits_with(0);
        let record: Record = serde_json::from_str(finished.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(record.outcome, Outcome::Interrupted, "{finished:#?}");
        assert!(record.has_figures(), "{record:#?}");
        assert!(finished.stderr.contains(&format!("SIG{by}: ending early")), "{finished:#?}");
    });
}

#[test]
fn a_measurement_under_nohup_outlives_its_terminal() {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let mut command = std::process::Command::new("nohup");
    command.arg(netaware_path());
    command.args(["latency", "127.0.0.1", "--port", &port, "-t", "2s", "--format", "ndjson", "--no-save"]);
    let started = Program::start(command);
    until_it_measures(&started, "latency");
    signal("HUP", started.id());
    let finished = started.finish_within(Span::from_secs(10)).exits_with(0);
    let record: Record = serde_json::from_str(finished.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(record.outcome, Outcome::Complete, "{finished:#?}");
}

#[test]
fn a_reader_who_goes_away_ends_the_measurement_quietly() {
    let responder = Responder::start(&[]);
    let program = netaware_path().display().to_string();
    let latency = format!("{program} latency 127.0.0.1 --port {} --no-save", responder.port());
    for script in [
        // Of results, of results and messages, and of messages alone.
        format!("{{ {latency} -t 10s --format ndjson; echo $? >&2; }} | head -n 1"),
        format!("{{ {latency} -t 10s --format ndjson 2>&1; echo $? >&3; }} 3>&2 | head -n 1"),
        format!("{latency} -t 300ms 2>&1 >/dev/null | true; echo ${{PIPESTATUS[0]}} >&2"),
    ] {
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &script]);
        let finished = Program::start(command).finish_within(Span::from_secs(8));
        assert!(!finished.stderr.contains("panicked"), "{script}: {finished:#?}");
        assert_eq!(finished.stderr.lines().last(), Some("0"), "{script}: {finished:#?}");
    }
}

#[test]
fn what_could_not_be_measured_is_not_complete_in_any_format() {
    let dead = ["127.0.0.1", "--port", "1", "--connect-timeout", "1s", "--no-save"];
    for command in ["test", "tcp", "udp", "latency", "matrix", "capacity", "available"] {
        let finished = run(&[&[command], &dead[..], &["--format", "json"]].concat(), Span::from_secs(10));
        let record = finished.exits_with(2).record();
        assert_eq!(record.outcome, Outcome::Failed, "{command}");
        let why = record.versions[0].unreachable.as_ref().unwrap();
        assert!(why.reason.contains("connection refused"), "{command}: {why:?}");
    }
    let commands =
        ["test", "tcp", "udp", "latency", "matrix", "capacity", "available", "hops", "reach", "owd"];
    side_by_side(commands, |command| {
        let unknown = [command, "no-such-host.invalid", "--no-save", "--format"];
        for format in ["text", "json", "ndjson", "csv", "udpmon"] {
            let finished = run(&[&unknown[..], &[format]].concat(), Span::from_secs(30)).exits_with(2);
            if finished.stderr.contains(" form: use --format") {
                continue;
            }
            assert!(finished.stderr.contains("the name lookup failed"), "{command} {format}: {finished:#?}");
            let record = match format {
                "json" => finished.record(),
                "ndjson" => serde_json::from_str(finished.stdout.lines().last().unwrap()).unwrap(),
                // No row for what there is not; the heading of CSV at the most.
                _ => {
                    assert!(finished.stdout.lines().count() <= 1, "{command} {format}: {finished:#?}");
                    continue;
                }
            };
            assert_eq!(record.outcome, Outcome::Failed, "{command} {format}");
        }
    });
    for nothing in [["tcp", "-n", "0"], ["udp", "-n", "0"], ["tcp", "-t", "0"], ["latency", "-c", "0"]] {
        let finished = run(&[&nothing[..], &dead[..]].concat(), Span::from_secs(5)).exits_with(2);
        assert!(finished.stdout.is_empty() && finished.stderr.contains("invalid value '0'"), "{finished:#?}");
    }
}

#[test]
fn a_second_interrupt_ends_at_once_and_nothing_was_measured() {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let tcp = ["tcp", "127.0.0.1", "--port", &port, "-t", "10s", "-b", "20Mbit/s", "--format", "ndjson"];
    let started = Program::start(netaware(&tcp));
    until_it_measures(&started, "tcp");
    // It waits for what a silent responder has counted.
    signal("STOP", responder.id());
    signal("INT", started.id());
    until_it_says(&started, "once more quits at once");
    signal("INT", started.id());
    let finished = started.finish_within(Span::from_secs(3));
    assert_eq!(finished.code, Some(2), "{finished:#?}");
}

#[test]
fn a_long_run_says_how_it_stands_when_asked() {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let latency = ["latency", "127.0.0.1", "--port", &port, "-t", "10s", "--format", "ndjson"];
    let started = Program::start(netaware(&latency));
    until_it_measures(&started, "latency");
    signal("USR1", started.id());
    until_it_says(&started, " s left");
    let said = started.complained();
    signal("INT", started.id());
    let finished = started.finish_within(Span::from_secs(3)).exits_with(0);
    assert!(said.contains("latency"), "{said:?} {finished:#?}");
}

#[test]
fn interrupted_text_says_interrupted() {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let tcp = ["tcp", "127.0.0.1", "--port", &port, "-t", "10s", "-b", "20Mbit/s"];
    let started = Program::start(netaware(&tcp));
    // Lines of intervals have a heading.
    until_it_prints(&started, "\n");
    signal("INT", started.id());
    let finished = started.finish_within(Span::from_secs(3)).exits_with(0);
    assert!(finished.stdout.to_lowercase().contains("interrupted"), "{finished:#?}");
}

#[test]
fn expectation_decides_the_exit_code() {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let fixed = ["latency", "127.0.0.1", "--port", &port, "-t", "500ms", "--format", "json"];
    for (expectation, code) in [("rtt.p99<10s", 0), ("rtt.p99<1ns", 1)] {
        let arguments = [&fixed[..], &["--expect", expectation]].concat();
        let finished = run(&arguments, Span::from_secs(10)).exits_with(code);
        let record = finished.record();
        assert_eq!(record.expectations.len(), 1);
        assert_eq!(record.expectations[0].text, expectation);
        assert_eq!(record.expectations[0].held, code == 0);
        assert!(!record.expectations[0].found.is_empty(), "{finished:#?}");
    }
    let both = [&fixed[..], &["--expect", "rtt.p99<10s", "--expect", "rtt.p50<1ns"]].concat();
    run(&both, Span::from_secs(10)).exits_with(1);
}

#[test]
fn expectation_that_cannot_be_read_is_refused_before_measuring() {
    let responder = Responder::start(&[]);
    for nonsense in ["rtt.p99", "colour<3", "rtt.p99<fast"] {
        let arguments =
            ["latency", "127.0.0.1", "--port", &responder.port(), "-t", "5s", "--expect", nonsense];
        let finished = run(&arguments, Span::from_secs(2)).exits_with(2);
        assert!(finished.stderr.contains(nonsense) && finished.stderr.contains("--expect"), "{finished:#?}");
    }
}

#[test]
fn every_command_prints_what_the_schema_promises() {
    let schema = run(&["schema"], Span::from_secs(5)).exits_with(0).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let responder = Responder::start(&[]);
    for command in ["test", "tcp", "udp", "latency"] {
        let port = responder.port();
        let fixed = [command, "127.0.0.1", "--port", &port, "-t", "1500ms", "--format", "json"];
        let modest: &[&str] = match command {
            "test" => &["--rounds", "1"],
            "latency" => &[],
            _ => &["-b", "20Mbit/s"],
        };
        let finished = run(&[&fixed[..], modest].concat(), Span::from_secs(20)).exits_with(0);
        let printed: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
        let errors: Vec<String> = schema.iter_errors(&printed).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{command}: {errors:#?}");
    }
}

#[test]
fn line_wise_json_ends_with_the_record() {
    let responder = Responder::start(&[]);
    for command in ["tcp", "udp", "latency"] {
        let arguments =
            [command, "127.0.0.1", "--port", &responder.port(), "-t", "1500ms", "--format", "ndjson"];
        let finished = run(&arguments, Span::from_secs(10)).exits_with(0);
        let lines: Vec<serde_json::Value> =
            finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.len() > 1, "{finished:#?}");
        let record: Record = serde_json::from_value(lines[lines.len() - 1].clone()).unwrap();
        assert_eq!((record.command.as_str(), record.outcome), (command, Outcome::Complete));
    }
}
