//! Paths on which the IP versions differ.

use netaware_lab::Side;
use netaware_netns::permitted;
use netaware_record::{Direction, Metric, Preference, Use};

use super::super::measured::over_text;
use super::ledger::{Ledger, VERSIONS};

/// Idle round trips of the probes that were sent, IPv6 minus IPv4, ns.
fn true_difference(run: &super::super::measured::Measured) -> f64 {
    let [four, six] = VERSIONS.map(|version| run.base_rtt(version));
    (six - four).0 as f64
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn faster_ipv6_is_preferred_with_its_true_lead() {
    if !permitted() {
        return;
    }
    // As the bundled `ipv6-faster`, at rates that leave the hosts time to spare.
    let path =
        "[[hop]]\nv4 = { rate = '30Mbit/s', delay = '15ms' }\nv6 = { rate = '60Mbit/s', delay = '8ms' }\n";
    let run = over_text("IPv6 faster", path, &["-t", "10s"]);
    let mut ledger = Ledger::of(&run);
    ledger.whole();
    ledger.verdict(Use::Bulk, Preference::V6);
    ledger.verdict(Use::Interactive, Preference::V6);
    // Medians carry what the hosts take, which differs by some microseconds: to a hundredth of the
    // difference.
    let truth = true_difference(&run);
    let comparison = run.record.comparison.clone().unwrap_or_default();
    let idle = comparison.metrics.iter().find(|it| it.metric == Metric::IdleRtt);
    let right = idle.is_some_and(|it| (it.difference.estimate / truth - 1.0).abs() < 0.01);
    ledger.note(right, &format!("idle RTT, IPv6 - IPv4: {:?}; truth {truth}", idle.map(|it| it.difference)));
    let [four, six] = VERSIONS.map(|version| run.payload_rate(Side::A, version));
    ledger.difference(Metric::TcpParallel, Direction::Forward, six - four);
    ledger.close();
}
