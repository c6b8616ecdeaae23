//! Paths on which the IP versions differ.

use netaware_lab::Side;
use netaware_netns::permitted;
use netaware_record::MtuFinding::{BlackHole, Learnt};
use netaware_record::{Direction, IpVersion, Metric, Preference, Use};
use netaware_units::Span;

use super::ledger::{Ledger, VERSIONS};
use super::measured::{over, over_text};

/// Idle round trips of the probes that were sent, IPv6 minus IPv4, ns.
fn true_difference(run: &super::measured::Measured) -> f64 {
    let [four, six] = VERSIONS.map(|version| {
        let payload = run.version(version).latency.as_ref().map_or(0, |it| it.payload.0 as u32);
        run.scenario.base_rtt(version, payload + 8 + version.header_len()).unwrap_or_default()
    });
    (six - four).0 as f64
}

#[test]
fn faster_ipv6_is_preferred_with_its_true_lead() {
    if !permitted() {
        return;
    }
    // As the bundled `ipv6-faster`, at rates that leave the hosts time to spare.
    let path =
        "[[hop]]\nv4 = { rate = '30Mbit/s', delay = '15ms' }\nv6 = { rate = '60Mbit/s', delay = '8ms' }\n";
    let run = over_text("IPv6 faster", path, &["-t", "20s"]);
    let mut ledger = Ledger::of(&run);
    ledger.whole();
    ledger.verdict(Use::Bulk, Preference::V6);
    ledger.verdict(Use::Interactive, Preference::V6);
    // Medians carry what the hosts take, which differs by some microseconds: to a hundredth of the difference.
    let truth = true_difference(&run);
    let comparison = run.record.comparison.clone().unwrap_or_default();
    let idle = comparison.metrics.iter().find(|it| it.metric == Metric::IdleRtt);
    let right = idle.is_some_and(|it| (it.difference.estimate / truth - 1.0).abs() < 0.01);
    ledger.note(right, &format!("idle RTT, IPv6 - IPv4: {:?}; truth {truth}", idle.map(|it| it.difference)));
    let [four, six] = VERSIONS.map(|version| ledger.payload_rate(Side::A, version));
    ledger.difference(Metric::TcpParallel, Direction::Forward, six - four);
    ledger.close();
}

#[test]
fn faster_ipv4_is_preferred_and_the_tunnel_found() {
    if !permitted() {
        return;
    }
    let path = "[[hop]]\nv4 = { rate = '60Mbit/s', delay = '8ms' }\nv6 = { rate = '30Mbit/s', delay = '20ms' }\n\
                [[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\nv6 = { mtu = 1480 }\n";
    let run = over_text("IPv4 faster", path, &["-t", "20s"]);
    let mut ledger = Ledger::of(&run);
    ledger.whole();
    ledger.verdict(Use::Bulk, Preference::V4);
    ledger.verdict(Use::Interactive, Preference::V4);
    for (version, mtu) in [(IpVersion::V4, 1500), (IpVersion::V6, 1480)] {
        let path = run.version(version).path.clone().unwrap_or_default();
        ledger.note(path.mtu == Some(mtu), &format!("{} MTU: {path:?}; truth {mtu}", version.name()));
    }
    ledger.close();
}

#[test]
fn swallowed_ipv6_is_named_and_ipv4_measured() {
    if !permitted() {
        return;
    }
    let path = "[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n\
                [[hop]]\nrate = '40Mbit/s'\ndelay = '6ms'\nv6 = { black_hole = true }\n";
    let run = over_text("IPv6 black hole", path, &["-t", "12s", "--connect-timeout", "1s"]);
    let mut ledger = Ledger::of(&run);
    ledger.hops(IpVersion::V4);
    ledger.idle_rtt(IpVersion::V4, Span::ZERO);
    ledger.rates(IpVersion::V4);
    let why = run.version(IpVersion::V6).unreachable.clone();
    let right = why.as_ref().is_some_and(|why| why.stage == "connect" && why.reason.contains("fd77::2"));
    ledger.note(right, &format!("IPv6: {why:?}"));
    let advised = run.record.comparison.clone().unwrap_or_default().verdicts;
    let never = advised.iter().all(|verdict| verdict.prefer != Preference::V6);
    ledger.note(never, &format!("advice: {advised:?}"));
    ledger.close();
}

#[test]
fn tunnel_that_answers_and_tunnel_that_is_silent_are_told_apart() {
    if !permitted() {
        return;
    }
    for (name, finding) in [("small-mtu", Learnt), ("mtu-black-hole", BlackHole)] {
        let run = over(name, &["-t", "6s", "--no-tcp", "--no-udp"]);
        let mut ledger = Ledger::of(&run);
        for version in VERSIONS {
            let path = run.version(version).path.clone().unwrap_or_default();
            // The search among sizes that nobody names has steps of up to 32 bytes.
            let right =
                path.mtu_finding == finding && path.mtu.is_some_and(|mtu| (1369..=1400).contains(&mtu));
            ledger.note(right, &format!("{}: {path:?}; truth {finding:?}, 1400", version.name()));
            ledger.hops(version);
            ledger.idle_rtt(version, Span::ZERO);
        }
        ledger.close();
    }
}
