//! What the main job says of shapers whose rates are known, to some percent. It depends on the
//! machine, so nightly runs each of these ten times.

use netaware_netns::permitted;
use netaware_record::{Preference, Use};

use super::shapers::{
    FAST, SLOW, blames_the_network, is_rate, measured_behind, preference, reads_the_shapers,
};

/// How far a rate may be from its shaper's, as a share of it.
const CLOSE: f64 = 0.05;

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn faster_version_is_found_with_the_rates_of_its_shapers_to_5_percent() {
    if !permitted() {
        return;
    }
    let record = measured_behind(SLOW, FAST, "15s");
    reads_the_shapers(&record, SLOW, FAST, CLOSE);
    blames_the_network(&record);
    let comparison = record.comparison.as_ref().unwrap();
    assert_eq!(preference(comparison, Use::Bulk), Preference::V6, "{comparison:#?}");
    let rates: Vec<_> = comparison.metrics.iter().filter(|it| is_rate(it.metric)).collect();
    assert_eq!(rates.len(), 4, "one stream and several, up and down");
    for metric in rates {
        assert!(metric.difference.lo > 0.0, "IPv6 is faster beyond doubt: {metric:#?}");
    }
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn equal_shapers_show_no_difference() {
    if !permitted() {
        return;
    }
    let record = measured_behind(SLOW, SLOW, "15s");
    reads_the_shapers(&record, SLOW, SLOW, CLOSE);
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
