//! `netaware test` and its siblings on long paths and under an owner's caps: what was promised is
//! kept, or taken back before it goes on. Needs root.

use netaware_io::clock;
use netaware_lab::Side;
use netaware_netns::permitted;
use netaware_record::{Outcome, Record, VersionResult};
use netaware_testkit::lab;
use netaware_units::{BitRate, Span};

/// Everybody's satellite, or another continent with a deep queue.
fn far(delay: &str) -> String {
    format!("[[hop]]\nrate = '10Mbit/s'\ndelay = '{delay}'\nqueue = {{ bytes = '1500kB' }}\n")
}

const RATE: BitRate = BitRate(10_000_000);

/// What `netaware` with these arguments found out about such a path, and what it said meanwhile.
fn measured(delay: &str, arguments: &[&str], limit: Span) -> (Record, String) {
    let lab = lab::up(&far(delay), 1);
    let _responder = lab::responder(&lab, &[]);
    let finished = lab::prober(&lab, &[arguments, &["--format", "json"]].concat()).finish_within(limit);
    let finished = finished.exits_with(0);
    (finished.record(), finished.stderr)
}

/// The time that was promised: what was asked for, or the longer one that was said beforehand.
fn promised(said: &str, asked: Span) -> Span {
    let longer = said.lines().filter_map(|it| {
        let whole = it.split("it takes about ").nth(1)?.split(" instead of ").next()?;
        whole.replace(' ', "").parse::<Span>().ok()
    });
    longer.max().unwrap_or(asked)
}

fn ends_in_time(record: &Record, said: &str, asked: Span) {
    let promised = promised(said, asked);
    let most = promised + promised / 10;
    assert!(record.elapsed <= most, "{} instead of {promised}: {:#?}", record.elapsed, record.warnings);
    assert_eq!(record.outcome, Outcome::Complete, "{:#?}", record.warnings);
}

fn nothing_was_refused(record: &Record) {
    let refused = |it: &&String| ["reservation", "lease", "cap for"].iter().any(|word| it.contains(word));
    assert_eq!(record.warnings.iter().find(refused), None, "{:#?}", record.warnings);
}

/// No stream that does not listen to losses was sent at more than 1.25 times the path's rate.
fn udp_does_no_harm(version: &VersionResult) {
    for udp in &version.udp {
        let planned = udp.planned.expect("a test always has a rate");
        assert!(planned > BitRate(0) && planned <= RATE, "{planned}: {udp:#?}");
        assert!(udp.sent_rate.is_some_and(|rate| rate <= RATE.percent(125)), "{udp:#?}");
    }
}

fn tcp_reached_something(version: &VersionResult) {
    for tcp in &version.tcp {
        let goodput = tcp.goodput.map_or(0.0, |it| it.0 as f64);
        assert!(goodput > 0.3 * RATE.0 as f64 && goodput < 1.05 * RATE.0 as f64, "{goodput}: {tcp:#?}");
    }
}

#[test]
fn on_a_long_path_udp_runs_below_what_tcp_was_seen_to_carry() {
    if !permitted() {
        return;
    }
    let asked = Span::from_secs(12);
    let (record, said) = measured("75ms", &["test", "b", "-4", "-t", "12s"], Span::from_secs(40));
    ends_in_time(&record, &said, asked);
    nothing_was_refused(&record);
    let [version] = &record.versions[..] else { panic!("{record:#?}") };
    assert_eq!((version.tcp.len(), version.udp.len()), (2, 2), "{:#?}", record.warnings);
    udp_does_no_harm(version);
    tcp_reached_something(version);
    assert_eq!(version.latency.as_ref().map(|it| it.lost), Some(0));
}

#[test]
fn a_path_on_which_the_time_is_too_short_is_told_before_and_nothing_of_the_tail_is_refused() {
    if !permitted() {
        return;
    }
    let asked = Span::from_secs(4);
    let (record, said) = measured("150ms", &["test", "b", "-4", "-t", "4s", "--no-udp"], Span::from_secs(40));
    let note = "left out: TCP with one stream; it takes about ";
    assert!(
        said.lines().any(|it| it.contains(note) && it.contains("would be enough")),
        "it is said while somebody waits: {said}"
    );
    let is_left_out = |it: &String| it.contains("left out: TCP with one stream") && it.contains("enough");
    assert!(record.warnings.iter().any(is_left_out), "{:#?}", record.warnings);
    ends_in_time(&record, &said, asked);
    nothing_was_refused(&record);
    let [version] = &record.versions[..] else { panic!("{record:#?}") };
    assert_eq!(version.tcp.len(), 2, "{:#?}", record.warnings);
    tcp_reached_something(version);
}

#[test]
fn transfers_of_a_second_over_a_round_trip_of_a_second_keep_their_place() {
    if !permitted() {
        return;
    }
    let (record, _) = measured("500ms", &["udp", "b", "-4", "-t", "1s", "-b", "1M"], Span::from_secs(40));
    nothing_was_refused(&record);
    assert_eq!(record.versions[0].udp.len(), 1, "{record:#?}");
}

#[test]
fn round_trips_of_before_a_wait_in_the_queue_are_not_the_plans() {
    if !permitted() {
        return;
    }
    let lab = lab::up("[[hop]]\nrate = '20Mbit/s'\ndelay = '15ms'\nqueue = { time = '400ms' }\n", 1);
    let _responder = lab::responder(&lab, &[]);
    let others = lab::prober(&lab, &["tcp", "b", "-4", "-t", "5s", "--format", "ndjson"]);
    // Three intervals: the queue is full.
    let due = clock::now() + Span::from_secs(10);
    while others.printed().lines().filter(|line| line.contains("\"interval\"")).count() < 3 {
        assert!(clock::now() < due, "{}", others.printed());
        clock::sleep(Span::from_millis(20));
    }
    let arguments = ["test", "b", "-4", "-t", "4s", "--no-udp", "--format", "json"];
    let finished = lab::prober(&lab, &arguments).finish_within(Span::from_secs(40)).exits_with(0);
    assert!(finished.stderr.contains("waiting for another measurement"), "{}", finished.stderr);
    let record = finished.record();
    let reach = record.versions[0].reach.as_ref().unwrap();
    let longest = reach.connects.iter().max().unwrap();
    assert!(*longest < Span::from_millis(100), "taken while another filled the path: {reach:?}");
}

#[test]
#[ignore = "long: 2 minutes"]
fn both_versions_over_a_satellite_end_when_they_said() {
    if !permitted() {
        return;
    }
    for (time, seconds) in [("15s", 15), ("75s", 75)] {
        let (record, said) = measured("150ms", &["test", "b", "-t", time], Span::from_secs(120));
        ends_in_time(&record, &said, Span::from_secs(seconds));
        nothing_was_refused(&record);
        assert_eq!(record.versions.len(), 2);
        for version in &record.versions {
            assert!(version.latency.is_some() && !version.tcp.is_empty(), "{record:#?}");
            assert_eq!(version.udp.is_empty(), seconds == 15, "{:#?}", record.warnings);
            udp_does_no_harm(version);
            tcp_reached_something(version);
        }
    }
}

#[test]
fn the_hosts_of_these_tests_are_one_round_trip_apart() {
    // The claim of the others stands on it.
    let scenario = lab::scenario(&far("75ms"));
    let rtt = scenario.base_rtt(netaware_record::IpVersion::V4, 92).unwrap();
    assert!((rtt - Span::from_millis(150)).abs() < Span::from_millis(2), "{rtt}");
    assert!(scenario.capacity(Side::A, netaware_record::IpVersion::V4, 1500).is_some());
}
