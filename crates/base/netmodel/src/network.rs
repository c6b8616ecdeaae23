//! One scenario with one seed.
//!
//! Time passes in slices. Within a slice each direction is worked off stage by stage, so that every
//! stage sees its packets in order of time without a queue of events for the whole network. A slice
//! is shorter than anything takes to act backwards (an ICMP answer, the feedback of a responsive
//! source), so nothing arrives in a stage's past.

mod bucket;
mod codel;
pub(crate) mod draw;
mod fair;
mod filter;
mod outlet;
pub(crate) mod pace;
mod probes;
mod receiver;
pub(crate) mod server;
mod stage;
pub(crate) mod time_queue;
mod wire;

use netaware_units::Mono;

use crate::scenario::{Hop, Pattern, Scenario};
use crate::source::{Outcome, Source};
use crate::{Fate, HostClock, Kind, Packet, Side, Truth};

use outlet::{Fates, Lane, Outlet, Router, hand_over};
use pace::ps;
use probes::{Probe, Probes};
use receiver::Receiver;
use server::{Carried, OFFERED};
use stage::Stage;
use time_queue::TimeQueue;

/// A path on which time passes. See the crate's header for the contract. Its time ends after 100
/// days.
#[derive(Debug, Clone)]
pub struct Network {
    clocks: [HostClock; 2],
    truth: Truth,
    directions: [Direction; 2],
    probes: Probes,
    routers: Vec<Router>,
    fates: Fates,
    /// Picoseconds that a slice may last.
    lookahead: u64,
    /// When the truth has the next interval to close.
    next_close: u64,
    outcomes: Vec<(u64, u32, Outcome)>,
    answers: Vec<(u64, u32, usize)>,
}

/// One way along the path.
#[derive(Debug, Clone)]
struct Direction {
    from: Side,
    stages: Vec<Stage>,
    /// First stage of each hop, hops as numbered from A.
    first_of_hop: Vec<usize>,
    /// By number of the source in the scenario.
    lanes: Vec<Lane>,
    /// Stage of each source, and its place there.
    source_at: Vec<(usize, usize)>,
    receiver: Option<Receiver>,
    /// By stage: no packet that is there, and no answer about it, reaches a host sooner than this.
    soonest: Vec<u64>,
}

const MILLISECOND: u64 = 1_000_000_000;
/// 100 days.
const END: u64 = 8_640_000 * pace::SECOND;

impl Network {
    /// The path of `scenario` at time zero. Equal seeds make equal networks.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let routers = scenario.hops.iter().enumerate();
        let mut directions = [Side::A, Side::B].map(|side| Direction::new(scenario, side, seed));
        let soonest = directions.each_ref().map(|there| {
            let back = &directions[there.from.other().index()];
            soonest(scenario, there, back)
        });
        for (direction, soonest) in directions.iter_mut().zip(soonest) {
            direction.soonest = soonest;
        }
        Self {
            clocks: scenario.hosts.each_ref().map(|host| HostClock::new(host.clock.clone())),
            truth: Truth::new(scenario.hops.len()),
            directions,
            probes: Probes::default(),
            routers: routers.map(|(n, hop)| Router::new(hop.answers, seed, n)).collect(),
            fates: Fates(std::array::from_fn(|_| TimeQueue::new())),
            lookahead: lookahead(scenario),
            next_close: MILLISECOND,
            outcomes: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// From now on chance is another one: copies of a network part ways.
    pub fn reseed(&mut self, seed: u64) {
        for direction in &mut self.directions {
            let side = direction.from as u64;
            direction.stages.iter_mut().for_each(|stage| stage.reseed(seed, side));
        }
        for (number, router) in self.routers.iter_mut().enumerate() {
            router.reseed(seed, number);
        }
    }

    /// Forgets the intervals of the truth so far; its sums go on.
    pub fn forget(&mut self) {
        self.truth.forget();
    }

    /// A host sends a packet, which filters take for UDP without ports. `at` must not be before the
    /// time of an earlier call.
    pub fn offer(&mut self, at: Mono, from: Side, packet: Packet) {
        self.offer_kind(at, from, packet, Kind::default());
    }

    /// As [`Network::offer`], with what filters look at.
    pub fn offer_kind(&mut self, at: Mono, from: Side, packet: Packet, kind: Kind) {
        let at = picoseconds(at);
        let probe = Probe {
            packet,
            kind,
            from,
            offered_at: at,
            duplicate: false,
            corrupted_bit: None,
            member: 0,
            answer: None,
        };
        let tag = self.probes.insert(probe) | OFFERED;
        let carried = Carried { length: packet.length, tag, version: packet.version };
        self.directions[from.index()].stages[0].inbox.push(at, carried);
    }

    /// The earliest instant at which [`Network::advance`] may have a fate to tell; `None` when
    /// nothing is under way. It may turn out that there is none yet; then the next answer is later.
    pub fn next_event(&self) -> Option<Mono> {
        let told = self.fates.0.iter().map(TimeQueue::head).min().unwrap_or(u64::MAX);
        let under_way = self.directions.iter().map(Direction::next_offered).min().unwrap_or(u64::MAX);
        let next = told.min(under_way);
        (next < u64::MAX).then(|| outlet::mono(next))
    }

    /// Not later than the next instant at which a host receives something, a packet or an ICMP
    /// error; `None` when nothing is under way. Who only wants to know that may let time pass in
    /// larger steps than by [`Network::next_event`]: drops are told by the `advance` that comes.
    pub fn next_arrival(&self) -> Option<Mono> {
        let told = self.fates.0[..2].iter().map(TimeQueue::head).min().unwrap_or(u64::MAX);
        let under_way = self.directions.iter().map(Direction::next_arrival).min().unwrap_or(u64::MAX);
        let next = told.min(under_way);
        (next < u64::MAX).then(|| outlet::mono(next))
    }

    /// Lets time pass up to and including `now` and tells the fates that fell in it, in order of
    /// time.
    pub fn advance(&mut self, now: Mono, sink: &mut dyn FnMut(Fate)) {
        let end = picoseconds(now);
        loop {
            let start = self.directions.iter().map(Direction::wake).min().unwrap_or(u64::MAX);
            if start > end {
                break;
            }
            self.close(start);
            let until = end.min(start.saturating_add(self.lookahead - 1));
            for side in [Side::A, Side::B] {
                self.run(side, until);
            }
        }
        self.close(end);
        self.tell(end, sink);
    }

    /// The clock of a host.
    pub fn clock(&self, side: Side) -> HostClock {
        self.clocks[side.index()].clone()
    }

    /// What really happened so far.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Offered packets whose fate has not been told yet; copies of them do not count. Looks at
    /// every one.
    pub fn under_way(&self) -> usize {
        self.probes.originals() + self.fates.originals()
    }

    /// Packets of any kind that wait in queues which decide at their head (CoDel, aggregation) of
    /// the link of `hop`.
    pub fn waiting(&self, from: Side, hop: usize) -> usize {
        let direction = &self.directions[from.index()];
        direction.first_of_hop.get(hop).map_or(0, |stage| direction.stages[*stage].waiting())
    }

    fn run(&mut self, side: Side, until: u64) {
        let direction = &mut self.directions[side.index()];
        for n in 0..direction.stages.len() {
            if direction.stages[n].inbox.wake > until {
                continue;
            }
            let (done, rest) = direction.stages.split_at_mut(n + 1);
            let Some(stage) = done.last_mut() else { continue };
            let mut outlet = Outlet {
                from: side,
                probes: &mut self.probes,
                fates: &mut self.fates,
                routers: &mut self.routers,
                truth: &mut self.truth.links[side.index()][stage.hop],
                lanes: &direction.lanes,
                next: rest.first_mut().map(|stage| &mut stage.inbox),
                receiver: &mut direction.receiver,
                outcomes: &mut self.outcomes,
                answers: &mut self.answers,
            };
            stage.run(until, &mut outlet);
        }
        if let Some(receiver) = &mut direction.receiver {
            receiver.run(until, |at, slot| hand_over(&mut self.probes, &mut self.fates, side, at, slot));
        }
        for (at, tag, outcome) in self.outcomes.drain(..) {
            direction.tell_source(at, tag, outcome);
        }
        self.send_answers(side);
    }

    /// Answers to packets from `side` travel back from where the router stands.
    fn send_answers(&mut self, side: Side) {
        let back = &mut self.directions[side.other().index()];
        for (at, slot, router) in self.answers.drain(..) {
            let hop = if side == Side::A { router } else { router + 1 };
            let probe = self.probes.get(slot);
            let packet =
                Carried { length: probe.length(), tag: slot | OFFERED, version: probe.packet.version };
            debug_assert_eq!(probe.from, side, "an answer goes back to who sent the packet");
            self.truth.links[back.from.index()][hop].answer_entered();
            let stage = &mut back.stages[back.first_of_hop[hop]];
            // Marked as seen: the router that sends it does not take from its own hop limit, nor do
            // others.
            stage.inbox.push(at, packet);
        }
    }

    fn close(&mut self, now: u64) {
        if now < self.next_close {
            return;
        }
        for direction in &mut self.directions {
            for (hop, stage) in direction.first_of_hop.iter().enumerate() {
                let stage = &mut direction.stages[*stage];
                let members = stage.members();
                let link = &mut self.truth.links[direction.from.index()][hop];
                link.close(now, members, |at| stage.capacity(at));
            }
        }
        self.next_close = (now / MILLISECOND + 1) * MILLISECOND;
    }

    fn tell(&mut self, end: u64, sink: &mut dyn FnMut(Fate)) {
        loop {
            let heads = self.fates.0.each_ref().map(TimeQueue::head);
            let mut first = 0;
            for n in 1..heads.len() {
                if heads[n] < heads[first] {
                    first = n;
                }
            }
            if heads[first] > end {
                return;
            }
            let Some((_, fate)) = self.fates.0[first].pop() else { return };
            sink(fate);
        }
    }
}

fn picoseconds(at: Mono) -> u64 {
    at.0.saturating_mul(1000).min(END)
}

/// Nothing acts backwards sooner than this.
fn lookahead(scenario: &Scenario) -> u64 {
    let answers = scenario.hops.iter().map(|hop| ps(hop.answers.delay));
    let back = scenario.cross.iter().filter_map(|cross| match cross.pattern {
        Pattern::Tcp { back, .. } => Some(ps(back)),
        _ => None,
    });
    answers.chain(back).min().unwrap_or(MILLISECOND).clamp(1, MILLISECOND)
}

/// By stage of `there`, see [`Direction::soonest`]: on to the end, or back from a router in front
/// of a stage on the way.
fn soonest(scenario: &Scenario, there: &Direction, back: &Direction) -> Vec<u64> {
    let way_back: Vec<u64> = sums_to_the_end(back);
    let mut soonest = vec![0; there.stages.len()];
    let mut rest = 0;
    for (n, stage) in there.stages.iter().enumerate().rev() {
        rest += stage.least_delay();
        if let Some(router) = stage.router {
            let hop = if there.from == Side::A { router } else { router + 1 };
            rest = rest.min(ps(scenario.hops[router].answers.delay) + way_back[back.first_of_hop[hop]]);
        }
        soonest[n] = rest;
    }
    soonest
}

/// By stage, the least delay from there to the host.
fn sums_to_the_end(direction: &Direction) -> Vec<u64> {
    let mut sums = vec![0; direction.stages.len()];
    let mut rest = 0;
    for (n, stage) in direction.stages.iter().enumerate().rev() {
        rest += stage.least_delay();
        sums[n] = rest;
    }
    sums
}

impl Direction {
    fn new(scenario: &Scenario, from: Side, seed: u64) -> Self {
        let hops = scenario.hops.len();
        let order: Vec<usize> = if from == Side::A { (0..hops).collect() } else { (0..hops).rev().collect() };
        let (mut stages, mut first_of_hop) = (Vec::new(), vec![0; hops]);
        for (n, hop) in order.into_iter().enumerate() {
            // Router i stands at the far end of hop i as seen from A.
            let router = (n > 0).then(|| if from == Side::A { hop - 1 } else { hop });
            first_of_hop[hop] = stages.len();
            stages.extend(stages_of(&scenario.hops[hop], hop, from, router, seed));
        }
        let receiver = scenario.hosts[from.other().index()].receive.as_ref().map(Receiver::new);
        let (lanes, source_at, soonest) = (Vec::new(), Vec::new(), Vec::new());
        let mut direction = Self { from, stages, first_of_hop, lanes, source_at, receiver, soonest };
        for (n, cross) in scenario.cross.iter().enumerate() {
            let back = match cross.pattern {
                Pattern::Tcp { back, .. } => Some(ps(back)),
                _ => None,
            };
            direction.lanes.push(Lane { leave: cross.leave, back });
            let stage = direction.first_of_hop[cross.enter];
            direction.source_at.push((stage, direction.stages[stage].sources.len()));
            if cross.from == from {
                let source = Source::new(cross, n, seed);
                let inbox = &mut direction.stages[stage].inbox;
                inbox.wake = inbox.wake.min(source.next_at());
                direction.stages[stage].sources.push(source);
            }
        }
        direction
    }

    /// When there is something to do; `u64::MAX` for never.
    fn wake(&self) -> u64 {
        let stages = self.stages.iter().map(|stage| stage.inbox.wake).min().unwrap_or(u64::MAX);
        self.receiver.as_ref().map_or(stages, |receiver| receiver.wake().min(stages))
    }

    fn next_offered(&self) -> u64 {
        let stages = self.stages.iter().map(Stage::next_offered).min().unwrap_or(u64::MAX);
        self.receiver.as_ref().map_or(stages, |receiver| receiver.wake().min(stages))
    }

    fn next_arrival(&self) -> u64 {
        let stages = self.stages.iter().zip(&self.soonest);
        let stages = stages.map(|(stage, soonest)| stage.next_offered().saturating_add(*soonest)).min();
        let stages = stages.unwrap_or(u64::MAX);
        self.receiver.as_ref().map_or(stages, |receiver| receiver.wake().min(stages))
    }

    fn tell_source(&mut self, at: u64, tag: u32, outcome: Outcome) {
        let (stage, place) = self.source_at[(tag >> 16) as usize];
        let stage = &mut self.stages[stage];
        stage.sources[place].hear(at, tag & 0xffff, outcome);
        stage.inbox.wake = stage.inbox.wake.min(stage.sources[place].next_at());
    }
}

fn stages_of(hop: &Hop, number: usize, from: Side, router: Option<usize>, seed: u64) -> Vec<Stage> {
    let link = if from == Side::A { &hop.forward } else { &hop.reverse };
    let mut stages = vec![Stage::link(number, link, router, seed, from as u64)];
    for (n, switch) in link.switches.iter().enumerate() {
        stages.push(Stage::switch(number, link, switch, n + 1 == link.switches.len()));
    }
    stages
}
