//! What cross traffic left of each link over the time that a network has lived through, whatever
//! was skipped between.

use netaware_netmodel::{Scenario, Side};
use netaware_record::IpVersion;
use netaware_units::Mono;

use crate::simulation::Simulation;

/// Sums over the pieces of time that were lived.
#[derive(Debug)]
pub(super) struct Lived {
    from: Side,
    links: Option<Vec<Link>>,
    began: Mono,
    /// ns of the pieces that are over.
    nanos: f64,
}

#[derive(Debug)]
struct Link {
    /// bit/s of layer 2, parallel links together.
    rate: f64,
    members: f64,
    /// Picoseconds of cross traffic when this piece began, and in the pieces that are over.
    began: u128,
    before: f64,
}

impl Lived {
    /// From now on.
    pub(super) fn new(scenario: &Scenario, from: Side, sim: &Simulation) -> Self {
        let link = |link: &netaware_netmodel::scenario::Link| {
            let [rate] = link.wire(IpVersion::V4).rate.as_slice() else { return None };
            let members = f64::from(link.members.count.max(1));
            Some(Link { rate: rate.value.0 as f64 * members, members, began: 0, before: 0.0 })
        };
        let mut links: Vec<(usize, _)> = scenario.links(from);
        links.sort_by_key(|(hop, _)| *hop);
        let links = links.into_iter().map(|(_, it)| link(it)).collect();
        let mut lived = Self { from, links, began: Mono(0), nanos: 0.0 };
        lived.begin(sim);
        lived
    }

    /// A piece of time begins.
    pub(super) fn begin(&mut self, sim: &Simulation) {
        self.began = sim.now;
        for (hop, link) in self.links.iter_mut().flatten().enumerate() {
            link.began = cross_time(sim, self.from, hop);
        }
    }

    /// It ends, and its network with it.
    pub(super) fn end(&mut self, sim: &Simulation) {
        self.nanos += (sim.now - self.began).nanos() as f64;
        for (hop, link) in self.links.iter_mut().flatten().enumerate() {
            link.before += cross_time(sim, self.from, hop).saturating_sub(link.began) as f64;
        }
    }

    /// bit/s of layer 2, of the link that has least.
    pub(super) fn available(&self, sim: &Simulation) -> Option<f64> {
        let nanos = self.nanos + (sim.now - self.began).nanos() as f64;
        let links = self.links.as_ref().filter(|_| nanos > 0.0)?;
        let left = links.iter().enumerate().map(|(hop, link)| {
            let cross = link.before + cross_time(sim, self.from, hop).saturating_sub(link.began) as f64;
            link.rate * (1.0 - cross / 1000.0 / link.members / nanos).max(0.0)
        });
        left.min_by(f64::total_cmp)
    }
}

fn cross_time(sim: &Simulation, from: Side, hop: usize) -> u128 {
    sim.truth().link(from, hop).map_or(0, netaware_netmodel::truth::LinkTruth::cross_time)
}
