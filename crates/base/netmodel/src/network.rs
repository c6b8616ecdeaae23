//! One scenario with one seed.

use netaware_units::Mono;

use crate::scenario::Scenario;
use crate::{Fate, HostClock, Packet, Side, Truth};

/// A path on which time passes. See the crate's header for the contract.
#[derive(Debug)]
pub struct Network {
    clocks: [HostClock; 2],
    truth: Truth,
}

impl Network {
    /// The path of `scenario` at time zero. Equal seeds make equal networks.
    pub fn new(scenario: &Scenario, _seed: u64) -> Self {
        let clocks = scenario.hosts.each_ref().map(|host| HostClock::new(host.clock.clone()));
        Self { clocks, truth: Truth::new(scenario.hops.len()) }
    }

    /// A host sends a packet. `at` must not be before the time of an earlier call.
    pub fn offer(&mut self, _at: Mono, _from: Side, _packet: Packet) {}

    /// The earliest instant at which [`Network::advance`] may have a fate to tell; `None` when nothing is under way.
    pub fn next_event(&self) -> Option<Mono> {
        None
    }

    /// Lets time pass up to and including `now` and tells the fates that fell in it, in order of time.
    pub fn advance(&mut self, _now: Mono, _sink: &mut dyn FnMut(Fate)) {}

    /// The clock of a host.
    pub fn clock(&self, side: Side) -> HostClock {
        self.clocks[side.index()].clone()
    }

    /// What really happened so far.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }
}
