//! Does it find the rate that the shaper was set to, the one who limits, and the better version?

use netaware_netns::{Pair, permitted};
use netaware_record::{Comparison, IpVersion, Metric, Preference, Record, Side, Use};
use netaware_testkit::pair::{over, prober, responder};
use netaware_units::{BitRate, Span};

const SLOW: BitRate = BitRate(40_000_000);
const FAST: BitRate = BitRate(80_000_000);

#[test]
fn faster_version_is_found_with_the_rates_of_its_shapers() {
    if !permitted() {
        return;
    }
    let record = measured_behind(SLOW, FAST);
    reads_the_shapers(&record, SLOW, FAST);
    blames_the_network(&record);
    let comparison = record.comparison.as_ref().unwrap();
    assert_eq!(preference(comparison, Use::Bulk), Preference::V6, "{comparison:#?}");
    for metric in comparison.metrics.iter().filter(|it| is_rate(it.metric)) {
        assert!(metric.difference.lo > 0.0, "IPv6 is faster beyond doubt: {metric:#?}");
    }
}

#[test]
fn slower_ipv6_is_found_just_as_well() {
    if !permitted() {
        return;
    }
    let record = measured_behind(FAST, SLOW);
    reads_the_shapers(&record, FAST, SLOW);
    let comparison = record.comparison.as_ref().unwrap();
    assert_eq!(preference(comparison, Use::Bulk), Preference::V4, "{comparison:#?}");
}

#[test]
fn equal_shapers_show_no_difference() {
    if !permitted() {
        return;
    }
    let record = measured_behind(SLOW, SLOW);
    reads_the_shapers(&record, SLOW, SLOW);
    blames_the_network(&record);
    let comparison = record.comparison.as_ref().unwrap();
    for purpose in [Use::Bulk, Use::Interactive, Use::Media] {
        assert_eq!(
            preference(comparison, purpose),
            Preference::NoDifferenceShown,
            "{purpose:?}: {comparison:#?}"
        );
    }
}

/// Once more where a figure is off: sixteen of TCP's in a second or two each are at the mercy of whatever else the machine does.
fn measured_behind(v4: BitRate, v6: BitRate) -> Record {
    let first = measured_once(v4, v6);
    let off = off_the_shapers(&first, v4, v6);
    if off.is_empty() {
        return first;
    }
    println!("a second run, as the first has {off:?}");
    measured_once(v4, v6)
}

fn measured_once(v4: BitRate, v6: BitRate) -> Record {
    let pair = Pair::new("shapers").unwrap();
    pair.shape_two_classes(v4, v6).unwrap();
    let _responder = responder(&pair, &[]);
    let prober = prober(&pair, &["test", "both.test", "--format", "json"]);
    let finished = prober.finish_within(Span::from_secs(40)).exits_with(0);
    assert!(finished.took < Span::from_secs(25), "about 15 s were promised: {}", finished.took);
    finished.record()
}

fn reads_the_shapers(record: &Record, v4: BitRate, v6: BitRate) {
    let off = off_the_shapers(record, v4, v6);
    assert!(off.is_empty(), "{off:#?}");
}

/// Figures that are not within 5 % of what the shaper leaves for payload: it counts frames with their 14 B of Ethernet header.
fn off_the_shapers(record: &Record, v4: BitRate, v6: BitRate) -> Vec<String> {
    let mut off = Vec::new();
    for (version, rate, segment) in [(IpVersion::V4, v4, 1448.0), (IpVersion::V6, v6, 1428.0)] {
        let expected = rate.0 as f64 * segment / 1514.0;
        let results = &over(record, version).tcp;
        assert_eq!(results.len(), 4, "one stream and several, up and down");
        for tcp in results {
            let goodput = tcp.goodput.unwrap().0 as f64;
            let (direction, streams) = (tcp.pedigree.direction.name(), tcp.streams);
            let error = goodput / expected - 1.0;
            let what = format!(
                "{} {direction}, {streams} streams: {goodput:.0} bit/s is {:.1} % off {expected:.0}",
                version.name(),
                error * 100.0
            );
            off.extend((error.abs() >= 0.05).then_some(what));
        }
    }
    off
}

fn blames_the_network(record: &Record) {
    for version in &record.versions {
        for tcp in &version.tcp {
            let (direction, streams) = (tcp.pedigree.direction.name(), tcp.streams);
            let who = format!("{} {direction}, {streams} streams: {:#?}", version.version.name(), tcp.limit);
            assert_eq!(tcp.limit.side, Side::Network, "{who}");
            assert!(!tcp.limit.evidence.is_empty(), "{who}");
        }
    }
}

fn preference(comparison: &Comparison, purpose: Use) -> Preference {
    comparison.verdicts.iter().find(|verdict| verdict.purpose == purpose).unwrap().prefer
}

fn is_rate(metric: Metric) -> bool {
    matches!(metric, Metric::TcpSingle | Metric::TcpParallel)
}
