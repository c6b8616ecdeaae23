//! A host with two versions, a responder with one.

use netaware_netns::permitted;
use netaware_record::{IpVersion, Preference};
use netaware_testkit::pair::{over, prober, responder};
use netaware_units::Span;

use super::{modest_pair, side_by_side};

#[test]
fn version_that_nobody_listens_on_is_explained_and_the_other_measured() {
    if !permitted() {
        return;
    }
    let cases = [
        ("10.77.0.2", IpVersion::V6, IpVersion::V4, "fd00:77::2"),
        ("fd00:77::2", IpVersion::V4, IpVersion::V6, "10.77.0.2"),
    ];
    side_by_side(cases, |(bound, gone, stays, address)| {
        let pair = modest_pair("one version");
        let _responder = responder(&pair, &["--bind", bound]);
        let test = ["test", "both.test", "-t", "3s", "--rounds", "1", "--format", "json"];
        let record = prober(&pair, &test).finish_within(Span::from_secs(20)).exits_with(0).record();
        let why = over(&record, gone).unreachable.as_ref().unwrap();
        assert!(why.reason.contains(address) && why.reason.contains("refused"), "{why:#?}");
        let measured = over(&record, stays);
        assert!(measured.unreachable.is_none() && measured.latency.is_some() && !measured.tcp.is_empty());
        let verdicts = record.comparison.unwrap().verdicts;
        assert_eq!(verdicts.len(), 3);
        let without_comparison = [Preference::from(stays), Preference::NotCompared];
        assert!(verdicts.iter().all(|it| without_comparison.contains(&it.prefer)), "{verdicts:#?}");
    });
}

#[test]
fn text_explains_the_missing_version() {
    if !permitted() {
        return;
    }
    let pair = modest_pair("one version");
    let _responder = responder(&pair, &["--bind", "10.77.0.2"]);
    let finished = prober(&pair, &["test", "both.test", "-t", "1s", "--no-tcp", "--no-udp"])
        .finish_within(Span::from_secs(20))
        .exits_with(0);
    assert!(
        finished.stdout.contains("fd00:77::2") && finished.stdout.contains("refused"),
        "{}",
        finished.stdout
    );
}

#[test]
fn name_with_one_address_says_that_the_other_version_has_none() {
    if !permitted() {
        return;
    }
    let pair = modest_pair("one address");
    let _responder = responder(&pair, &[]);
    let test = ["test", "v4.test", "-t", "1s", "--no-tcp", "--no-udp", "--format", "json"];
    let record = prober(&pair, &test).finish_within(Span::from_secs(20)).exits_with(0).record();
    let why = over(&record, IpVersion::V6).unreachable.as_ref().unwrap();
    assert_eq!(why.stage, "resolve");
    assert!(why.reason.contains("v4.test"), "{why:#?}");
}
