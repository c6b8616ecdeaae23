//! A responder whose owner lets each test run for a short time.

use netaware_record::{Outcome, Record};
use netaware_testkit::program::{Responder, run};
use netaware_units::Span;

fn capped(responder: &Responder, arguments: &[&str]) -> Record {
    let port = responder.port();
    let fixed = ["127.0.0.1", "-4", "--port", &port, "--format", "json"];
    run(&[&arguments[..1], &fixed, &arguments[1..]].concat(), Span::from_secs(30)).exits_with(0).record()
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
        let told =
            record.warnings.iter().any(|it| it.contains("no longer than 2.00 s: requests go on for 1."));
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
        assert!((280..=304).contains(&latency.sent), "nothing was shortened: {latency:#?}");
        assert!(latency.lost <= latency.sent / 20, "{latency:#?}");
    }
    assert_eq!(record.warnings.iter().find(|it| it.contains("no longer than")), None);
}
