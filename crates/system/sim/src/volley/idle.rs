//! How idle time is passed without drawing the cross traffic that falls into it.
//!
//! Where nothing on the path but its queues and its sources remembers the past, the network may
//! stand still while the clocks of the hosts go on: it wakes up in the state in which it fell
//! asleep, which is as good a draw from the steady state as any other, once it has forgotten the
//! train that came before. So after each train the network first lives on for a settling time, and
//! only the rest is skipped. The settling time is
//!
//! - the longest delay of the train's packets / (1 - load), in which the queue that the train has
//!   left drains, and
//! - eight relaxation times of each queue, 1 / (1 - sqrt(load))² transmissions (those of M/M/1;
//!   Morse 1955), and at random up to twice that, so that even traffic does not meet all trains in
//!   the same phase.
//!
//! What it leans to: trains far apart see traffic that is as much alike as if they were close
//! together, so what differs from train to train averages out a little more slowly than on a path
//! that is not skipped. Sources with long memory (on-off, TCP), schedules, buckets and whatever
//! else depends on the hour are never skipped.

use netaware_netmodel::scenario::{Cross, Link, Pattern, Schedule};
use netaware_netmodel::{Scenario, Side};
use netaware_record::IpVersion;
use netaware_stats::rng::SplitMix64;
use netaware_units::Span;

/// What a steady path needs to come to rest.
#[derive(Debug)]
pub(super) struct Idle {
    relaxation: Span,
    /// Largest share of any link that cross traffic takes, below one.
    load: f64,
    pub(super) rng: SplitMix64,
}

impl Idle {
    /// `None` where time must not be skipped.
    pub(super) fn of(scenario: &Scenario, from: Side, seed: u64) -> Option<Self> {
        if !scenario.cross.iter().all(is_steady) {
            return None;
        }
        let links = scenario.links(from);
        let mut idle = Self { relaxation: Span::ZERO, load: 0.0, rng: SplitMix64::new(seed ^ 0x6964_6c65) };
        for (hop, link) in links {
            if !keeps_no_time(link) {
                return None;
            }
            let passing = scenario.cross.iter().filter(|cross| cross.from == from && passes(cross, hop));
            idle.add(link, passing)?;
        }
        Some(idle)
    }

    /// How long after a train with this longest delay.
    pub(super) fn settle(&mut self, longest: Span) -> Span {
        let relaxation = self.relaxation.nanos() as f64 * (1.0 + self.rng.unit());
        let drain = if self.load > 0.0 { longest.or_zero().nanos() as f64 / (1.0 - self.load) } else { 0.0 };
        Span((relaxation + drain) as i64)
    }

    /// A little while at random.
    pub(super) fn shift(&mut self) -> Span {
        Span((self.relaxation.nanos() as f64 / 32.0 * self.rng.unit()) as i64)
    }

    fn add<'a>(&mut self, link: &Link, passing: impl Iterator<Item = &'a Cross>) -> Option<()> {
        let rate = link.wire(IpVersion::V4).rate.first()?.value.0 as f64;
        let (mut load, mut largest) = (0.0, 0_u32);
        for cross in passing {
            let mean: f64 = cross.sizes.iter().map(|size| f64::from(size.bytes) * size.share).sum();
            load += mean_rate(&cross.pattern)? * (mean + f64::from(link.overhead)) / mean / rate;
            largest = largest.max(cross.sizes.iter().map(|size| size.bytes).max().unwrap_or(0));
        }
        let load = load / f64::from(link.members.count.max(1));
        if load >= 1.0 {
            return None;
        }
        let transmission = f64::from(largest + link.overhead) * 8.0 * 1e9 / rate;
        let times = RELAXATIONS / (1.0 - load.sqrt()).powi(2);
        self.relaxation += Span((transmission * times) as i64);
        self.load = self.load.max(load);
        Some(())
    }
}

fn mean_rate(pattern: &Pattern) -> Option<f64> {
    match pattern {
        Pattern::Constant { rate } | Pattern::Poisson { rate } | Pattern::Pareto { rate, .. } => {
            Some(rate.0 as f64)
        }
        Pattern::OnOff { .. } | Pattern::Tcp { .. } => None,
    }
}

fn is_steady(cross: &Cross) -> bool {
    let always = match &cross.schedule {
        Schedule::Steps(steps) => steps.len() == 1 && steps[0].at <= Span::ZERO,
        Schedule::Square { .. } => false,
    };
    always && mean_rate(&cross.pattern).is_some()
}

/// Whether nothing on it depends on what time it is, or on how long ago something was.
fn keeps_no_time(link: &Link) -> bool {
    let wires = link.wires.iter().all(|wire| wire.rate.len() == 1 && wire.delay.len() == 1);
    wires && link.bucket.is_none() && link.aggregation.is_none() && link.queue.codel.is_none()
}

fn passes(cross: &Cross, hop: usize) -> bool {
    let (first, last) = (cross.enter.min(cross.leave), cross.enter.max(cross.leave));
    (first..=last).contains(&hop)
}

const RELAXATIONS: f64 = 8.0;
