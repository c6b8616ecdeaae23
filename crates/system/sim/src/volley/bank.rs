//! States in which a steady path has come to rest, to begin trains from.
//!
//! Coming to rest after a train costs more than the train. So the first states are lived up to and
//! kept, and from then on a train begins from one of them, drawn at random, with a chance of its
//! own from there on. Several paths of one scenario may share a bank: what they are held against is
//! what was left of the link while they were looked at.

use netaware_netmodel::Network;
use netaware_stats::rng::SplitMix64;
use netaware_units::Mono;

/// Of one scenario and direction.
#[derive(Debug, Default)]
pub struct Bank(Vec<Rest>);

#[derive(Debug)]
struct Rest {
    network: Network,
    now: Mono,
}

impl Bank {
    /// One more state, unless there are enough.
    pub(super) fn keep(&mut self, network: &Network, now: Mono) {
        if self.0.len() < ENOUGH {
            let mut network = network.clone();
            network.forget();
            self.0.push(Rest { network, now });
        }
    }

    /// A network at rest and its time; `None` as long as there are too few.
    pub(super) fn draw(&self, rng: &mut SplitMix64) -> Option<(Network, Mono)> {
        if self.0.len() < ENOUGH {
            return None;
        }
        let rest = self.0.get(rng.below(ENOUGH))?;
        let mut network = rest.network.clone();
        network.reseed(rng.next_u64());
        Some((network, rest.now))
    }
}

/// States that stand for all.
const ENOUGH: usize = 512;
