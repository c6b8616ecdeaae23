//! Real ping and traceroute, over both IP versions.

use std::net::IpAddr;

use netaware_lab::{Report, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::lab::{bundled, scenario};
use netaware_units::Span;

use super::ground::{Judged, VERSIONS, measured, said, to_router_and_back};

/// What ping and the kernels of both hosts add to the round trip of its fastest packet.
const OWN_TIME_OF_TOOLS: Span = Span::from_micros(150);
/// An emulator that is later than this spoils a figure. Otherwise half of the packets tell how late
/// the fastest ones were.
const BOUND: Span = Span::from_millis(1);

/// "rtt min/avg/max/mdev = 20.045/20.061/20.093/0.014 ms"
pub(crate) fn fastest(ping: &str) -> Option<Span> {
    let figures = ping.rsplit_once("mdev = ")?.1;
    let ms: f64 = figures.split('/').next()?.parse().ok()?;
    Some(Span::from_secs_f64(ms / 1000.0))
}

#[test]
fn ping_reads_the_round_trip_of_the_scenario() {
    if !permitted() {
        return;
    }
    let rows = [
        (
            "two hops",
            "[[hop]]\nrate = '10Mbit/s'\ndelay = '3ms'\n[[hop]]\nrate = '100Mbit/s'\ndelay = '7ms'\n",
        ),
        (
            "asymmetric",
            "[[hop]]\nforward = { rate = '1Mbit/s', delay = '2ms' }\nreverse = { rate = '100Mbit/s', delay = '15ms' }\n",
        ),
        (
            "versions",
            "[[hop]]\nv4 = { rate = '80Mbit/s', delay = '15ms' }\nv6 = { rate = '200Mbit/s', delay = '4ms' }\n",
        ),
    ];
    let mut judged = Judged::default();
    for (name, text) in rows {
        let path = scenario(text);
        let (found, report) = measured(&path, |lab| {
            VERSIONS.map(|version| {
                let target = lab.address(Side::B, version).to_string();
                let text = said(lab, Side::A, "ping", &["-n", "-c", "50", "-i", "0.02", "-W", "1", &target]);
                assert!(text.contains("50 received"), "{text}");
                fastest(&text).unwrap_or_else(|| panic!("{text}"))
            })
        });
        let is_valid = judged.is_valid(&report, BOUND);
        let own = there_and_back(&report);
        for (version, found) in VERSIONS.into_iter().zip(found) {
            // 56 bytes behind ICMP's 8.
            let truth = path.base_rtt(version, 64 + version.header_len()).unwrap();
            let excess = found - truth;
            assert!(excess > -ROUNDED, "{name}, {}: {found} instead of {truth}", version.name());
            let right = !is_valid || excess < OWN_TIME_OF_TOOLS + own;
            assert!(right, "{name}, {}: {found} instead of {truth}; {report}", version.name());
        }
    }
    judged.end();
}

/// What the emulator says of half of its packets, for both ways.
fn there_and_back(report: &Report) -> Span {
    (report.lateness_p50.unwrap_or_default() + report.seen_mean.unwrap_or_default()) * 2
}

/// The tools print microseconds, rounded.
const ROUNDED: Span = Span::from_micros(1);

#[test]
fn traceroute_reads_every_hop_with_its_delay() {
    if !permitted() {
        return;
    }
    let mut judged = Judged::default();
    for name in ["three-hops", "ten-hops"] {
        let path = bundled(name);
        let (found, report) = measured(&path, |lab| {
            VERSIONS.map(|version| {
                let target = lab.address(Side::B, version).to_string();
                let flag = if version == IpVersion::V4 { "-4" } else { "-6" };
                // One at a time: beside each other they would wait for each other at the slow
                // links.
                let arguments = [flag, "-n", "-N", "1", "-q", "5", "-w", "2", "-z", "20", &target];
                let text = said(lab, Side::A, "traceroute", &arguments);
                parsed(&text)
            })
        });
        let is_valid = judged.is_valid(&report, BOUND);
        let own = there_and_back(&report);
        for (version, hops) in VERSIONS.into_iter().zip(found) {
            let (last, routers) = hops.split_last().expect("at least the host");
            assert_eq!(routers.len(), path.hops.len() - 1, "{hops:?}");
            for (hop, (from, fastest)) in routers.iter().enumerate() {
                assert_eq!(*from, netaware_lab::Addresses::new(path.hops.len()).router(hop, version));
                let truth = to_router_and_back(&path, hop, version, lengths(version));
                let line =
                    format!("{name}, hop {}, {}: {fastest} instead of {truth}", hop + 1, version.name());
                assert!(*fastest - truth > -ROUNDED, "{line}");
                // Other traffic may have been in the way of all five, and routers answer with some
                // jitter.
                let slack = OWN_TIME_OF_TOOLS + own + path.hops[hop].answers.jitter + waits(name);
                assert!(!is_valid || *fastest - truth < slack, "{line}; {report}");
            }
            let truth = path.base_rtt(version, lengths(version)[0]).unwrap();
            assert!(last.1 > truth - ROUNDED, "{last:?} instead of {truth}");
            let right = !is_valid || last.1 < truth + OWN_TIME_OF_TOOLS + own + waits(name);
            assert!(right, "{last:?} instead of {truth}; {report}");
        }
    }
    judged.end();
}

/// Of a probe of traceroute, and of the error about it as the model counts it (IPv4: header and 8
/// bytes; IPv6: all of it).
fn lengths(version: IpVersion) -> [u32; 2] {
    match version {
        IpVersion::V4 => [60, 56],
        IpVersion::V6 => [80, 128],
    }
}

/// The fastest of five seldom meets more than one full packet at the one link of 100 Mbit/s.
fn waits(name: &str) -> Span {
    if name == "ten-hops" { Span::from_micros(150) } else { Span::ZERO }
}

/// " 2  10.77.2.1  8.1 ms  8.0 ms": address and fastest, by line.
fn parsed(text: &str) -> Vec<(IpAddr, Span)> {
    let hop = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let from = fields.next()?.parse().ok()?;
        let fastest = fields.filter_map(|field| field.parse().ok()).fold(f64::INFINITY, f64::min);
        Some((from, Span::from_secs_f64(fastest / 1000.0)))
    };
    text.lines().skip(1).map(|line| hop(line).unwrap_or_else(|| panic!("{text}"))).collect()
}

#[test]
fn a_silent_router_is_stars_and_a_black_hole_is_silence() {
    if !permitted() {
        return;
    }
    let path = scenario(
        "[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\nanswers = { silent = true }\n[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\nv6 = { black_hole = true }\n",
    );
    let lab = super::ground::up(&path);
    let [four, six] = VERSIONS.map(|version| lab.address(Side::B, version).to_string());
    let text = said(&lab, Side::A, "traceroute", &["-4", "-n", "-q", "1", "-w", "0.3", &four]);
    let hops: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
    assert!(hops.len() == 2 && hops[0].ends_with('*') && hops[1].contains(&four), "{text}");
    assert!(
        said(&lab, Side::A, "ping", &["-n", "-c", "3", "-i", "0.05", "-W", "1", &four])
            .contains("3 received")
    );
    let gone =
        super::ground::tried(&lab, Side::A, "ping", &["-n", "-c", "3", "-i", "0.05", "-W", "0.5", &six]);
    let words = super::ground::words(&gone);
    // "+3 errors" would be somebody's answer.
    assert!(!gone.status.success() && words.contains(" 0 received") && !words.contains("error"), "{words}");
}
