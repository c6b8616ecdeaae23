//! How exact a lab is on a machine that lends nobody its cores.

use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::inconclusive;
use netaware_units::Span;

use super::delay::{BOUND, MEDIAN_BOUND, PATHS, added};
use super::ground::VERSIONS;
use super::model::difference;
use super::rate::error_of_rate;

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn the_least_that_is_added_to_a_constant_delay_is_twenty_microseconds() {
    if !permitted() {
        return;
    }
    for (name, text) in PATHS {
        for added in added(name, text).0 {
            assert!(added.least <= BOUND && added.half <= MEDIAN_BOUND, "{}", added.line);
        }
    }
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn the_lab_delays_a_probe_stream_as_the_simulator_does_up_to_its_latest_hundredth() {
    if !permitted() {
        return;
    }
    for version in VERSIONS {
        let (wrong, report) = difference(version, 5000, &[1, 10, 25, 50, 75, 90, 99]);
        // Fifty probes are a hundredth: one pause of the emulator moves as many.
        match report.lateness_max.filter(|late| !wrong.is_empty() && *late > Span::from_millis(1)) {
            Some(late) => return inconclusive(format!("a packet was {late} late: {}", wrong.join("; "))),
            None => assert!(wrong.is_empty(), "not as simulated:\n{}", wrong.join("\n")),
        }
    }
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn iperf3_gets_the_rate_of_each_version_and_direction_within_a_hundredth() {
    if !permitted() {
        return;
    }
    for combination in [(IpVersion::V4, false), (IpVersion::V6, false), (IpVersion::V4, true)] {
        let (error, _, line) = error_of_rate(combination, 8);
        assert!(error.abs() < 0.01, "{line}");
    }
}
