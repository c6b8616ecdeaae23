//! The search for the path MTU, over a path whose MTU is known.

use netaware_netmodel::{Scenario, Side};
use netaware_probe::{PathMtuPlan, PathMtuSearch};
use netaware_record::{IpVersion, PathFacts, VersionResult};

use super::{Figure, Found, Unit, WaySummary};
use crate::simulation::{Flow, Simulation};
use crate::truth::PathTruth;

pub(super) fn run(scenario: &Scenario, seed: u64, version: IpVersion) -> Found {
    let mut sim = Simulation::new(scenario, seed);
    let believed = sim.known_mtu(Side::A, version);
    let connect = scenario.base_rtt(version, SYN).unwrap_or_default();
    let mut search =
        PathMtuSearch::new(PathMtuPlan::following(1, version, believed, connect, sim.local_now(Side::A)));
    let mut found = None;
    let drive = sim.run(&Flow::new(version), &mut search, |event| found = Some(event));
    let path = PathFacts {
        mtu: found.and_then(|found| found.mtu),
        mtu_finding: found.map(|found| found.finding).unwrap_or_default(),
        mtu_vanishes: found.and_then(|found| found.vanishes),
        mtu_believed: Some(believed),
        ..PathFacts::default()
    };
    let truth = PathTruth::of(scenario, &sim, version, scenario.path_mtu(Side::A, version));
    let (mtu, sent) = (path.mtu.map(f64::from), drive.way(Side::A).sent as f64);
    let figures = vec![
        Figure::new("path MTU", Unit::Bytes, mtu, Some(f64::from(truth.path_mtu))),
        Figure::only_true("packets sent", Unit::Count, Some(sent)),
        Figure::only_true("MTU of the first link", Unit::Bytes, Some(f64::from(believed))),
    ];
    Found {
        version,
        figures,
        truth,
        forward: WaySummary::of(drive.way(Side::A)),
        reverse: WaySummary::of(drive.way(Side::B)),
        elapsed: drive.ended_at.since(drive.began_at),
        result: VersionResult { path: Some(path), ..VersionResult::new(version) },
    }
}

/// A connect's round trip is that of a small packet.
const SYN: u32 = 60;
