//! Trains that somebody does not want: a firewall on the way, or the responder's owner.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netaware_record::Record;
use netaware_testkit::program::{Finished, Responder, run};
use netaware_units::Span;

use super::middle::{Middle, Whim};

const VERSIONS: [(IpAddr, &str); 2] =
    [(IpAddr::V4(Ipv4Addr::LOCALHOST), "-4"), (IpAddr::V6(Ipv6Addr::LOCALHOST), "-6")];

const CAPACITY: &[&str] = &["capacity"];
/// The other methods are content with what one train shows of loopback.
const MAXIMUM: &[&str] = &["available", "--method", "maximum", "--max-load", "100%"];

/// What opening and ending take beside the time asked for, on a busy machine.
const BESIDE: Span = Span::from_secs(5);

/// `-t 2s` against this port.
fn estimate(command: &[&str], ip: IpAddr, version: &str, port: u16) -> Finished {
    let (host, port) = (ip.to_string(), port.to_string());
    let fixed = [host.as_str(), "--port", &port, version, "-t", "2s", "--format", "json"];
    let arguments = [command, &fixed].concat();
    let ended = run(&arguments, Span::from_secs(30));
    assert!(ended.took < Span::from_secs(2) + BESIDE, "{arguments:?}: {}", ended.took);
    ended
}

fn warns(record: &Record, words: &[&str]) {
    let whole = |warning: &&String| words.iter().all(|word| warning.contains(word));
    assert!(record.warnings.iter().any(|it| whole(&it)), "{words:?} are missing: {record:#?}");
}

/// The one version that was asked for is in the record, without a rate.
fn has_no_rate(record: &Record) {
    let [version] = &record.versions[..] else { panic!("{record:#?}") };
    assert!(version.path_rates.is_empty(), "{record:#?}");
}

#[test]
fn where_all_udp_is_dropped_that_is_said_and_no_figure() {
    let responder = Responder::start(&[]);
    for ((ip, version), command) in VERSIONS.into_iter().zip([&["capacity"], &["available"]]) {
        let at = SocketAddr::new(ip, responder.address().port());
        let middle = Middle::before(at, Whim::DropAll, 0);
        let record = estimate(command, ip, version, middle.port).exits_with(2).record();
        warns(&record, &["UDP to the same port gets no answer", "open the port for UDP", &ip.to_string()]);
        has_no_rate(&record);
    }
}

#[test]
fn where_trains_begin_to_be_dropped_that_is_said() {
    let responder = Responder::start(&[]);
    // The set-up passes; then nothing at all, or nothing any more.
    let (at_once, later) = ((0, "none came: something drops the trains"), (10, "began to drop"));
    let [four, six] = VERSIONS;
    // Each two of version, moment and method meet.
    for ((ip, version), (after, said), command) in
        [(four, at_once, CAPACITY), (four, later, MAXIMUM), (six, at_once, MAXIMUM), (six, later, CAPACITY)]
    {
        let at = SocketAddr::new(ip, responder.address().port());
        let middle = Middle::before(at, Whim::Drop, after);
        let ended = estimate(command, ip, version, middle.port);
        let record = ended.record();
        let [rate] = &record.versions[0].path_rates[..] else { panic!("{record:#?}") };
        assert!(rate.flags.iter().any(|flag| flag == "silent"), "{command:?}: {rate:#?}");
        assert!(rate.remarks.iter().any(|it| it.contains(said)), "{command:?}: {rate:#?}");
        assert_eq!(rate.received > 0, after > 0, "{command:?}: {rate:#?}");
        assert!(after > 0 || rate.rate.is_none(), "a rate of nothing: {rate:#?}");
        assert_eq!(ended.code, Some(if rate.rate.is_some() { 0 } else { 2 }));
    }
}

#[test]
fn a_cap_on_the_rate_refuses_trains_and_says_why() {
    let responder = Responder::start(&["--max-rate", "1Gbit/s"]);
    let port = responder.address().port();
    for (ip, version) in VERSIONS {
        for command in [&["capacity"], &["available"]] {
            let ended = estimate(command, ip, version, port).exits_with(2);
            let record = ended.record();
            // It is known before anything is sent.
            assert!(record.elapsed < Span::from_secs(3), "{}", record.elapsed);
            let words = ["cap for rate is 1.00 Gbit/s", "trains exceed any rate", "raise the cap"];
            warns(&record, &words);
            has_no_rate(&record);
        }
    }
}

#[test]
fn a_cap_on_the_duration_shortens_the_method_and_is_said() {
    let responder = Responder::start(&["--max-duration", "2s"]);
    for (ip, version) in VERSIONS {
        let ended = estimate(MAXIMUM, ip, version, responder.address().port()).exits_with(0);
        let record = ended.record();
        warns(&record, &["no longer than 2.00 s", "1.00 s instead of 2.00 s"]);
        let [rate] = &record.versions[0].path_rates[..] else { panic!("{record:#?}") };
        // The test ended by itself, not by the responder's hand.
        assert!(rate.took < Span::from_secs(4) && record.versions[0].unreachable.is_none(), "{rate:#?}");
        assert!(
            !record.warnings.iter().any(|it| it.contains("ended by the responder")),
            "{:?}",
            record.warnings
        );
    }
}

#[test]
fn a_path_that_is_followed_and_lets_no_train_through_any_more_is_not_asked_without_a_pause() {
    let responder = Responder::start(&[]);
    let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), responder.address().port());
    let middle = Middle::before(at, Whim::Drop, 2_000);
    let port = middle.port.to_string();
    let following = ["available", "127.0.0.1", "--port", &port, "-4", "--watch", "--interval", "1s"];
    let arguments = [&following[..], &["-t", "6s", "--format", "ndjson", "--no-save"]].concat();
    let ended = run(&arguments, Span::from_secs(40));
    let points = ended.stdout.lines().filter(|line| line.contains("\"event\":\"rate\"")).count();
    assert!((1..=8).contains(&points), "{points} points in six turns of 1 s");
}
