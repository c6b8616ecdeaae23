//! A responder whose owner lets each test run for a short time.

use netaware_record::{Outcome, Record};
use netaware_testkit::program::{Finished, Responder, run};
use netaware_units::Span;

fn capped(responder: &Responder, arguments: &[&str]) -> Record {
    asked(responder, "127.0.0.1", arguments).exits_with(0).record()
}

fn asked(responder: &Responder, host: &str, arguments: &[&str]) -> Finished {
    let port = responder.port();
    let fixed = [host, "--port", &port, "--format", "json", "--no-save"];
    run(&[&arguments[..1], &fixed, &arguments[1..]].concat(), Span::from_secs(30))
}

fn warned(record: &Record, words: &str) -> bool {
    record.warnings.iter().any(|it| it.contains(words))
}

#[test]
fn a_cap_on_one_test_does_not_cut_the_echoes_of_a_longer_run() {
    let responder = Responder::start(&["--max-duration", "2s"]);
    let record = capped(&responder, &["test", "-t", "7s", "--rounds", "1", "-b", "5M"]);
    assert_eq!(record.outcome, Outcome::Complete);
    let [version] = &record.versions[..] else { panic!("{record:#?}") };
    assert_eq!(version.latency.as_ref().map(|it| it.sent), Some(200), "{:#?}", record.warnings);
    assert_eq!((version.tcp.len(), version.udp.len()), (4, 2), "{:#?}", record.warnings);
    for tcp in &version.tcp {
        let loaded = tcp.latency_under_load.as_ref().expect("echoes ran beside it");
        assert!(loaded.latency.received > 0, "{tcp:#?}");
    }
    let refused = |it: &&String| it.contains("cap for") || it.contains("UDP flow");
    assert_eq!(record.warnings.iter().find(refused), None, "{:#?}", record.warnings);
}

#[test]
fn latency_longer_than_a_cap_is_shortened_and_not_refused() {
    let responder = Responder::start(&["--max-duration", "2s"]);
    for transport in ["udp", "tcp"] {
        let record = capped(&responder, &["latency", "-t", "4s", "-W", "500ms", "--transport", transport]);
        assert_eq!(record.outcome, Outcome::Complete, "{transport}");
        let told = record.warnings.iter().any(|it| {
            it.contains("no longer than 2.00 s, of which the wait") && it.contains("requests go on for 1.")
        });
        assert!(told, "{transport}: {:#?}", record.warnings);
        let latency = record.versions[0].latency.as_ref().expect(transport);
        assert!((100..200).contains(&latency.sent), "{transport}: {latency:#?}");
        assert!(latency.lost <= latency.sent / 20, "the last ones were still answered: {latency:#?}");
    }
}

#[test]
fn latency_in_turns_outlives_a_cap_on_each_test() {
    let responder = Responder::start(&["--max-duration", "2s"]);
    let record = capped(&responder, &["latency", "-t", "3s", "-W", "500ms", "--transport", "both"]);
    let [version] = &record.versions[..] else { panic!("{record:#?}") };
    for latency in [&version.latency, &version.latency_tcp] {
        let latency = latency.as_ref().expect("measured");
        // 37 or 38 fit each of eight blocks, and one more may go before the end is noticed.
        assert!((280..=320).contains(&latency.sent), "nothing was shortened: {latency:#?}");
        assert!(latency.lost <= latency.sent / 20, "{latency:#?}");
    }
    assert_eq!(record.warnings.iter().find(|it| it.contains("no longer than")), None);
}

#[test]
fn transfers_longer_than_a_cap_are_shortened_and_said_to_be() {
    let responder = Responder::start(&["--max-duration", "1s"]);
    let cases = ["tcp", "udp"].into_iter().flat_map(|command| {
        [("127.0.0.1", "--reverse"), ("::1", "--bidir"), ("::1", "--reverse")]
            .map(|(host, way)| (command, host, way))
    });
    for (command, host, way) in cases {
        let record = asked(&responder, host, &[command, "-t", "4s", "-b", "5M", way]).exits_with(0).record();
        assert!(warned(&record, "allows transfers no longer than 1.00 s"), "{:#?}", record.warnings);
        let version = &record.versions[0];
        // 625 kB in a second.
        let tcp = version.tcp.iter().filter_map(|it| it.bytes.map(|bytes| bytes.0));
        let moved: Vec<u64> = tcp.chain(version.udp.iter().map(|it| it.sent * 1448)).collect();
        assert_eq!(moved.len(), if way == "--bidir" { 2 } else { 1 }, "{record:#?}");
        assert!(moved.iter().all(|bytes| (400_000..700_000).contains(bytes)), "{command} {way}: {moved:?}");
    }
    let rates = asked(&responder, "::1", &["capacity", "-t", "4s"]).exits_with(0).record();
    assert!(warned(&rates, "allows tests no longer than 1.00 s"), "{:#?}", rates.warnings);
}

#[test]
fn transfers_of_a_given_time_end_at_a_cap_on_bytes_and_those_of_a_given_size_are_refused() {
    let responder = Responder::start(&["--max-bytes", "1MB"]);
    let timed: [&[&str]; 5] = [
        &["tcp", "-t", "2s"],
        &["tcp", "-t", "2s", "-b", "20M", "--reverse"],
        &["tcp", "-t", "2s", "-P", "4", "--bidir"],
        &["udp", "-t", "2s", "-b", "20M"],
        &["udp", "-t", "2s", "-b", "20M", "--reverse"],
    ];
    for (arguments, host) in std::iter::zip(timed, ["::1", "127.0.0.1"].into_iter().cycle()) {
        let record = asked(&responder, host, arguments).exits_with(0).record();
        assert_eq!(record.outcome, Outcome::Complete, "{arguments:?}: {record:#?}");
        let said = warned(&record, "allows transfers of no more than 977 KiB");
        assert!(said, "{arguments:?}: {:#?}", record.warnings);
        let version = &record.versions[0];
        let tcp = version.tcp.iter().filter_map(|it| it.bytes.map(|bytes| bytes.0));
        let moved: Vec<u64> = tcp.chain(version.udp.iter().map(|it| it.sent * 1448)).collect();
        assert!(!moved.is_empty(), "{record:#?}");
        assert!(moved.iter().all(|bytes| (600_000..=1_000_000).contains(bytes)), "{arguments:?}: {moved:?}");
    }
    // Nothing is said where nothing is shortened.
    let short = capped(&responder, &["udp", "-t", "300ms", "-b", "2M", "--reverse"]);
    assert!(!warned(&short, "no more than"), "{:#?}", short.warnings);
    let sized: [&[&str]; 2] = [&["tcp", "-n", "5MB"], &["udp", "-n", "5000", "-b", "0", "--reverse"]];
    for arguments in sized {
        let finished = asked(&responder, "127.0.0.1", arguments).exits_with(2);
        assert_eq!(finished.record().outcome, Outcome::Failed, "{arguments:?}");
        let why = "error: nothing was measured: IPv4: the responder at";
        assert!(finished.stderr.contains(why) && finished.stderr.contains("cap for bytes"), "{finished:#?}");
    }
}

#[test]
fn cells_of_a_matrix_above_a_cap_on_bytes_are_left_out_and_the_others_are_run() {
    let responder = Responder::start(&["--max-bytes", "1MB"]);
    let said = "the responder's owner allows transfers of no more than 977 KiB: larger cells are left out";
    let of = |bytes: &'static str| ["matrix", "--bytes", bytes, "--blocks", "10kB", "--runs", "1"];
    let record = asked(&responder, "127.0.0.1", &of("10kB,4MB")).exits_with(0).record();
    assert!(warned(&record, said), "{:#?}", record.warnings);
    let all = asked(&responder, "127.0.0.1", &of("4MB")).exits_with(2);
    assert_eq!(all.record().outcome, Outcome::Failed);
    assert!(all.stderr.contains(&format!("error: nothing was measured: IPv4: {said}")), "{all:#?}");
}

#[test]
fn more_streams_than_the_owner_allows_are_fewer_and_no_failure() {
    let responder = Responder::start(&["--max-streams", "2"]);
    let asked: [(&[&str], usize); 2] = [
        (&["tcp", "-P", "4", "-t", "300ms"], 1),
        (&["test", "-4", "-t", "1s", "--no-udp", "--rounds", "1"], 4),
    ];
    for (arguments, results) in asked {
        let record = capped(&responder, arguments);
        assert_eq!(record.outcome, Outcome::Complete, "{record:#?}");
        let tcp = &record.versions[0].tcp;
        assert_eq!(tcp.len(), results, "{:#?}", record.warnings);
        assert_eq!(tcp.iter().map(|it| it.streams).max(), Some(2), "{arguments:?}");
        let first = record.warnings.first().map(String::as_str);
        let said = "IPv4: the responder's owner allows no more than 2 stream(s) at a time: TCP ran with 2 and not with 4";
        assert_eq!(first, Some(said), "{:#?}", record.warnings);
    }
}
