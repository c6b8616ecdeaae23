//! What is true of a path, to be held against what a method said.

use netaware_netmodel::truth::SCALES;
use netaware_netmodel::{Scenario, Side};
use netaware_record::IpVersion;
use netaware_units::{BitRate, Span};
use serde::Serialize;

use crate::simulation::Simulation;

/// Of one IP version and one length of packet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathTruth {
    /// Bytes of the IP packets that it is true of.
    pub length: u32,
    /// Round trip of a lone packet at time zero: transmissions and propagation, nothing random.
    /// Absent where packets of this length do not get through.
    pub base_rtt: Option<Span>,
    /// Largest IP packet that gets through there and back, bytes.
    pub path_mtu: u32,
    /// Routers between the hosts.
    pub routers: usize,
    /// From A to B.
    pub forward: WayTruth,
    /// From B to A.
    pub reverse: WayTruth,
}

/// Of one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WayTruth {
    /// One-way delay of a lone packet at time zero.
    pub base_delay: Option<Span>,
    /// IP-layer capacity at time zero (RFC 5136) for packets of this length.
    pub capacity: Option<BitRate>,
    /// What cross traffic left of the tightest link while the method ran, in bit/s of layer 2.
    /// Absent for runs shorter than a millisecond.
    pub available: Option<Available>,
}

/// Available bandwidth over the intervals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Available {
    /// Length of an interval: the longest of 1 ms, 10 ms and 100 ms of which the run has ten.
    pub interval: Span,
    /// Of the worst interval.
    pub least: BitRate,
    /// Over all.
    pub mean: BitRate,
    /// Of the best interval.
    pub most: BitRate,
}

impl PathTruth {
    /// After a run of packets of `length` over `version`.
    pub fn of(scenario: &Scenario, sim: &Simulation, version: IpVersion, length: u32) -> Self {
        let way = |from| WayTruth {
            base_delay: scenario.base_delay(from, version, length),
            capacity: scenario.capacity(from, version, length),
            available: Available::of(sim, from),
        };
        Self {
            length,
            base_rtt: scenario.base_rtt(version, length),
            path_mtu: scenario.path_mtu(Side::A, version).min(scenario.path_mtu(Side::B, version)),
            routers: scenario.hops.len().saturating_sub(1),
            forward: way(Side::A),
            reverse: way(Side::B),
        }
    }
}

impl Available {
    /// Of the path from this host.
    pub fn of(sim: &Simulation, from: Side) -> Option<Self> {
        // Not by the second: a run of a few seconds has too few of those.
        let rates = |scale| -> Vec<u64> {
            sim.truth().available(from, scale).into_iter().map(|(_, rate)| rate.0).collect()
        };
        let (scale, rates) = [2, 1, 0]
            .into_iter()
            .map(|scale| (scale, rates(scale)))
            .find(|(scale, rates)| rates.len() >= ENOUGH || (*scale == 0 && !rates.is_empty()))?;
        let sum: u128 = rates.iter().map(|rate| u128::from(*rate)).sum();
        Some(Self {
            interval: SCALES[scale],
            least: BitRate(rates.iter().copied().min()?),
            mean: BitRate((sum / rates.len() as u128) as u64),
            most: BitRate(rates.iter().copied().max()?),
        })
    }
}

/// Intervals that a scale needs to be shown.
const ENOUGH: usize = 10;
