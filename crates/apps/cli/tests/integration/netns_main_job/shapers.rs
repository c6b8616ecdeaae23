//! Does it find the rate that the shaper was set to, the one who limits, and the better version?

use std::ops::Range;

use netaware_netns::{Pair, permitted};
use netaware_record::{Comparison, IpVersion, Metric, Preference, Record, Side, Use};
use netaware_testkit::pair::{over, prober, responder};
use netaware_units::{BitRate, Span};

use super::side_by_side;

pub(super) const SLOW: BitRate = BitRate(40_000_000);
pub(super) const FAST: BitRate = BitRate(80_000_000);

/// A shaper's token bucket lets more than its rate through in a short transfer: at most this share
/// of the rate.
const CREDIT: f64 = 0.25;

#[test]
fn no_rate_is_above_its_shapers_and_the_slower_version_is_never_preferred() {
    if !permitted() {
        return;
    }
    let cases = [(SLOW, FAST, Preference::V4), (FAST, SLOW, Preference::V6)];
    side_by_side(cases, |(v4, v6, slower)| {
        let record = measured_behind(v4, v6, "8s");
        let above = off_the_shapers(&record, v4, v6, f64::NEG_INFINITY..CREDIT);
        assert!(above.is_empty(), "{above:#?}");
        let comparison = record.comparison.as_ref().unwrap();
        assert_ne!(preference(comparison, Use::Bulk), slower, "{comparison:#?}");
    });
}

/// Runs the main job for this time behind shapers of these rates.
pub(super) fn measured_behind(v4: BitRate, v6: BitRate, time: &str) -> Record {
    let pair = Pair::new("shapers").unwrap();
    pair.shape_two_classes(v4, v6).unwrap();
    let _responder = responder(&pair, &[]);
    let prober = prober(&pair, &["test", "both.test", "-t", time, "--format", "json"]);
    prober.finish_within(Span::from_secs(40)).exits_with(0).record()
}

/// All rates of TCP are as close as this to what the shapers leave for payload.
pub(super) fn reads_the_shapers(record: &Record, v4: BitRate, v6: BitRate, close: f64) {
    let off = off_the_shapers(record, v4, v6, -close..close);
    assert!(off.is_empty(), "{off:#?}");
}

/// Figures whose relative distance from what the shaper leaves for payload is not `allowed`: it
/// counts frames with their 14 B of Ethernet header.
fn off_the_shapers(record: &Record, v4: BitRate, v6: BitRate, allowed: Range<f64>) -> Vec<String> {
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
            off.extend((!allowed.contains(&error)).then_some(what));
        }
    }
    off
}

pub(super) fn blames_the_network(record: &Record) {
    for version in &record.versions {
        assert_eq!(version.tcp.len(), 4, "one stream and several, up and down");
        for tcp in &version.tcp {
            let (direction, streams) = (tcp.pedigree.direction.name(), tcp.streams);
            let who = format!("{} {direction}, {streams} streams: {:#?}", version.version.name(), tcp.limit);
            assert_eq!(tcp.limit.side, Side::Network, "{who}");
            assert!(!tcp.limit.evidence.is_empty(), "{who}");
        }
    }
}

pub(super) fn preference(comparison: &Comparison, purpose: Use) -> Preference {
    comparison.verdicts.iter().find(|verdict| verdict.purpose == purpose).unwrap().prefer
}

pub(super) fn is_rate(metric: Metric) -> bool {
    matches!(metric, Metric::TcpSingle | Metric::TcpParallel)
}
