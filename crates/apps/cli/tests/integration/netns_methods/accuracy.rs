//! How near the figures of each method are to the truth, with the emulator at its best.

use netaware_record::RateBound;

use super::*;

/// Holds each figure of both versions to `tolerance`.
fn reads(path: &str, arguments: &[&str], seconds: i64, wanted: &[Want], tolerance: f64) {
    if !permitted() {
        return;
    }
    let (_, figures, report) = figures(path, arguments, seconds, BOTH, wanted);
    let far = |(found, want): &(PathRate, Want)| {
        let error = found.rate.as_ref().map(|rate| rate.estimate / want.truth - 1.0);
        let is_near = error.is_some_and(|error| error.abs() <= tolerance) && found.bound == RateBound::None;
        (!is_near).then(|| format!("{arguments:?}, {error:+.4?} off: {}", text(found, want)))
    };
    let off: Vec<String> = figures.iter().filter_map(far).collect();
    judge(&off, &report, LATE);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn bulks_read_the_capacity_of_both_directions() {
    let both = [capacity("bulk", UP), capacity("bulk", DOWN)];
    reads(IDLE, &["capacity", "--method", "bulk", "--bidir"], 3, &both, 0.03);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn pathrate_reads_the_capacity() {
    reads(IDLE, &["capacity", "--method", "pathrate"], 7, &[capacity("pathrate", UP)], 0.03);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn the_curve_reads_what_is_available_in_both_directions() {
    let both = [available("curve", UP), available("curve", DOWN)];
    reads(&loaded(), &["available", "--method", "curve", "--bidir"], 4, &both, 0.1);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn slops_reads_what_is_available() {
    reads(&loaded(), &["available", "--method", "slops", "-R"], 6, &[available("slops", DOWN)], 0.1);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn spruce_reads_what_is_available() {
    let spruce = ["available", "--method", "spruce", "--link-rate", "40Mbit/s"];
    reads(&loaded(), &spruce, 6, &[available("spruce", UP)], 0.1);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn chirps_read_what_is_available() {
    reads(&loaded(), &["available", "--method", "chirp"], 5, &[available("chirp", UP)], 0.1);
}

/// The first congestion takes a search back by thirty rows; it has to climb again and then be there
/// for a sub-interval.
#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn both_searches_reach_the_maximum() {
    let up = ["available", "--method", "maximum", "--max-load", "100%"];
    reads(IDLE, &up, 7, &[maximum(UP)], 0.05);
    reads(
        IDLE,
        &["available", "--method", "maximum-c", "--max-load", "100%", "-R"],
        7,
        &[maximum(DOWN)],
        0.05,
    );
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn tailgating_reads_the_narrow_link() {
    if !permitted() {
        return;
    }
    let (found, report) = tailgated(14);
    let far = |(version, hops): &(IpVersion, HopsResult)| {
        let rate = hops.hops[1].capacity.as_ref().map(|it| it.rate.estimate / 10e6 - 1.0);
        let is_near = rate.is_some_and(|error| error.abs() < 0.1);
        (!is_near).then(|| format!("{}: {:#?}", version.name(), hops.hops[1]))
    };
    let off: Vec<String> = found.iter().filter_map(far).collect();
    judge(&off, &report, LATE);
}
