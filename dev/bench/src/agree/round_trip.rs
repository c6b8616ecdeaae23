//! Round trips over the idle path: evenly spaced, and one after the other.

use std::path::Path;

use netaware_netns::IpVersion;

use super::VERSIONS;
use super::compare::{Comparison, Figure, Told};
use super::path::Paths;
use crate::contest::Contest;
use crate::peers::sockperf::{Tells, Waits};
use crate::peers::{irtt, netaware, ping, qperf, sockperf};

const PAYLOAD: u32 = 64;
const SPACING_MS: u32 = 10;
/// From 1 ms on ping prints three significant digits of a round trip, but the mean to the
/// microsecond.
const PING_DIGIT_US: f64 = 100.0;
const PING_MEAN_DIGIT_US: f64 = 1.0;

pub(super) fn comparisons<'a>(paths: &'a Paths, ours: &'a Path, seconds: u32) -> Vec<Comparison<'a>> {
    let spaced = VERSIONS.map(|version| spaced(paths, ours, version, seconds));
    spaced.into_iter().chain(VERSIONS.map(|version| ping_pong(paths, ours, version, seconds))).collect()
}

/// By figure: its name, ours between the kernels' stamps, and the last digit that ping prints of
/// it.
const FIGURES: [(&str, &str, f64); 3] = [
    ("mean us", "kernel mean us", PING_MEAN_DIGIT_US),
    ("p50 us", "kernel p50 us", PING_DIGIT_US),
    ("p99 us", "kernel p99 us", PING_DIGIT_US),
];

fn by_kernel(figure: &'static str) -> Told {
    Told::by("netaware", figure).called("netaware, kernels' stamps")
}

fn by_application(figure: &'static str) -> Told {
    Told::by("netaware", figure).called("netaware, application")
}

fn spaced<'a>(paths: &'a Paths, ours: &'a Path, version: IpVersion, seconds: u32) -> Comparison<'a> {
    let path = &paths.plain;
    let contenders = vec![
        path.contender("netaware", version, move |at| {
            netaware::spaced(ours, at, PAYLOAD, SPACING_MS, seconds)
        }),
        path.contender("ping", version, move |at| ping::spaced(at, PAYLOAD, SPACING_MS, seconds)),
        path.contender("irtt", version, move |at| irtt::spaced(at, PAYLOAD, SPACING_MS, seconds)),
    ];
    let truth = path.round_trip_us(version, PAYLOAD).ok();
    let figure = |(name, kernel, digit): (&'static str, &'static str, f64)| Figure {
        name,
        decimals: 1,
        truth,
        pairings: vec![
            [Told::by("ping", name).to(digit), by_kernel(kernel)],
            [Told::by("irtt", name), by_application(name)],
            [Told::by("irtt", name), by_kernel(kernel)],
        ],
    };
    let title = format!("{}, {}, every {SPACING_MS} ms", path.name, super::name(version));
    let contest = Contest { title, contenders, claims: Vec::new() };
    Comparison { contest, figures: FIGURES.map(figure).into() }
}

const SOCKPERF: &str = "sockperf, twice";
const QPERF: &str = "qperf, twice";

/// sockperf and qperf tell half the round trip. qperf tells the mean only, as time over number of
/// exchanges, so one exchange more or less is its last digit.
fn ping_pong<'a>(paths: &'a Paths, ours: &'a Path, version: IpVersion, seconds: u32) -> Comparison<'a> {
    let path = &paths.plain;
    let mut contenders = vec![
        path.contender("netaware", version, move |at| netaware::ping_pong(ours, at, PAYLOAD, seconds)),
        path.contender(QPERF, version, move |at| qperf::udp_latency(at, PAYLOAD, seconds)),
    ];
    // The server of version 3.7, which Debian 12 ships, does not start with an IPv6 address.
    let sockperf = (version == IpVersion::V4).then_some(SOCKPERF);
    if let Some(name) = sockperf {
        contenders.push(path.contender(name, version, move |at| {
            sockperf::ping_pong(at, PAYLOAD, seconds, Waits::Asleep, Tells::Half)
        }));
    }
    let truth = path.round_trip_us(version, PAYLOAD).ok();
    let exchange = truth.map_or(0.0, |rtt_us| rtt_us * rtt_us / (f64::from(seconds) * 1e6));
    let figure = |(name, kernel, _): (&'static str, &'static str, f64)| {
        let qperf = (name == "mean us").then(|| Told::by(QPERF, name).to(exchange));
        let peers: Vec<Told> = qperf.into_iter().chain(sockperf.map(|peer| Told::by(peer, name))).collect();
        let applications = peers.iter().map(|peer| [*peer, by_application(name)]);
        let kernels = peers.iter().map(|peer| [*peer, by_kernel(kernel)]);
        Figure { name, decimals: 1, truth, pairings: applications.chain(kernels).collect() }
    };
    let title = format!("{}, {}, ping-pong", path.name, super::name(version));
    let contest = Contest { title, contenders, claims: Vec::new() };
    Comparison { contest, figures: FIGURES.map(figure).into() }
}
