//! Rounds that measure: probes of all sizes to each hop, and trains.

use netaware_units::Span;

use super::super::round::{Kind, Probe};
use super::super::route::Route;
use super::super::survey::LEAST_GAP;
use super::super::trains::{self, FAR};
use super::{Asked, Hops};

impl Hops {
    pub(super) fn each_hop_large(&self) -> Vec<(Probe, Asked)> {
        let mut asked = self.each_hop(self.largest, self.time_of(self.largest));
        // The echo that ends it becomes large as well: how long does the largest take there and
        // back?
        for (probe, what) in &mut asked {
            if *what == Asked::Whole {
                probe.length = self.largest;
            }
        }
        asked
    }

    /// One probe or pair for each hop, again and again for about as long as answers take: then
    /// waiting for the last of them costs no more than asking did.
    pub(super) fn sizes_round(&mut self) -> Vec<(Probe, Asked)> {
        if self.turn.is_multiple_of(SETTLE_EVERY) {
            // The first few round trips may have met queues, or a host that was busy.
            self.settle_gap();
        }
        let mut asked = Vec::new();
        let mut took = Span::ZERO;
        while asked.len() < MOST_PROBES && (took < self.round_trip() || asked.is_empty()) {
            let cycle = self.cycle();
            if cycle.is_empty() {
                break;
            }
            took += cycle.iter().map(|(probe, _)| probe.after).sum();
            asked.extend(cycle);
        }
        if let Some((first, _)) = asked.first_mut() {
            first.after += std::mem::replace(&mut self.queue, Span::ZERO);
        }
        asked
    }

    /// The longest of the smallest round trips.
    pub(super) fn round_trip(&self) -> Span {
        let far = (1..=self.end).filter_map(|ttl| Some(self.hop(ttl).rtt(self.plan.smallest)?.0)).max();
        far.unwrap_or(Span::ZERO).min(MOST_SENDING)
    }

    fn cycle(&mut self) -> Vec<(Probe, Asked)> {
        let mut asked = Vec::new();
        let turn = self.cycles;
        self.cycles += 1;
        let small_too = turn.is_multiple_of(SMALL_EVERY);
        for n in 0..self.end {
            let ttl = 1 + (u32::from(n) + turn) % u32::from(self.end);
            let ttl = u8::try_from(ttl).unwrap_or(self.end);
            let (every, answers) = (self.hop(ttl).pace.every, self.hop(ttl).answered > 0);
            let due = turn.is_multiple_of(every);
            match self.routes[usize::from(ttl) - 1] {
                Some(Route::Direct { from }) if due => asked.extend(self.sized(ttl, from)),
                Some(Route::TwoWay) if due => asked.extend(self.sized(ttl, self.plan.smallest)),
                Some(route @ (Route::TailByEcho | Route::TailByHop(_))) => {
                    asked.extend(self.pair(ttl, route));
                }
                _ => {}
            }
            // A rationed hop is asked by its own pace, not by that of the small ones.
            if answers && (if every > 1 { due } else { small_too }) {
                asked.extend(self.alone(ttl, self.plan.smallest, self.gap));
            }
        }
        if turn.is_multiple_of(2) && self.whole.1 > 0 {
            asked.extend(self.whole(self.gap));
        }
        if turn % LARGE_EVERY == 1 && self.whole.1 > 0 {
            let large = |(probe, asked)| (Probe { length: self.largest, ..probe }, asked);
            asked.extend(self.whole(self.gap).map(large));
        }
        asked
    }

    fn sized(&mut self, ttl: u8, from: u32) -> Option<(Probe, Asked)> {
        let length = self.next_size(ttl, from);
        if self.is_destination(ttl) && self.whole.1 > 0 {
            let probe =
                Probe { ttl: FAR, length, kind: Kind::Echo, after: self.gap, awaited: true, mute: false };
            return Some((probe, Asked::Hop { ttl }));
        }
        self.alone(ttl, length, self.gap)
    }

    fn pair(&mut self, ttl: u8, route: Route) -> [(Probe, Asked); 2] {
        let bytes = self.next_size(ttl, self.leader_from());
        // The host's own answer to it would be in the way of that to the small one.
        let mute = self.is_destination(ttl);
        let leader = Probe { ttl, length: bytes, kind: Kind::Udp, after: self.gap, awaited: false, mute };
        let (tail_ttl, kind) = match route {
            Route::TailByHop(hop) => (hop, Kind::Udp),
            _ => (FAR, Kind::Echo),
        };
        let tail = Probe {
            ttl: tail_ttl,
            length: self.plan.tail,
            kind,
            after: Span::ZERO,
            awaited: true,
            mute: false,
        };
        [(leader, Asked::Leader { ttl }), (tail, Asked::Tail { ttl, bytes })]
    }

    /// The small packet keeps up only while a link takes longer for the large one than the link
    /// before for the small one.
    pub(in crate::hops) fn leader_from(&self) -> u32 {
        (self.plan.tail * LEADER_TO_TAIL).max(self.largest * 2 / 5).min(self.largest * 3 / 5)
    }

    /// In random order, each as often as the others.
    fn next_size(&mut self, ttl: u8, from: u32) -> u32 {
        let place = usize::from(ttl) - 1;
        if self.logs[place].order.is_empty() {
            let mut order = self.sizes(from);
            for n in (1..order.len()).rev() {
                order.swap(n, self.rng.below(n + 1));
            }
            self.logs[place].order = order;
        }
        self.logs[place].order.pop().unwrap_or(self.largest)
    }

    fn sizes(&self, from: u32) -> Vec<u32> {
        if !self.plan.sizes.is_empty() {
            let given = self.plan.sizes.iter().copied().filter(|size| *size >= from && *size <= self.largest);
            let given: Vec<u32> = given.collect();
            if given.len() >= super::super::slope::LEAST_SIZES {
                return given;
            }
        }
        let room = self.largest.saturating_sub(from);
        (0..SIZES).map(|n| from + room * n / (SIZES - 1)).collect()
    }

    pub(super) fn train_round(&mut self) -> Vec<(Probe, Asked)> {
        let last = if self.reached { self.end - 1 } else { self.end };
        let hops: Vec<u8> = (1..=last).filter(|ttl| self.hop(*ttl).answered > 0).collect();
        let destination = (self.reached && self.echo_answers()).then_some(self.end);
        if hops.is_empty() && destination.is_none() {
            return Vec::new();
        }
        let Some(load) = self.train_load() else { return Vec::new() };
        self.train = trains::build(&hops, destination, self.plan.smallest, self.train_wait(), load);
        self.train.probes.iter().map(|probe| (*probe, Asked::Train)).collect()
    }

    /// What the path takes the largest probe for at most, unless that is too little to see: an
    /// answer may have taken a part of it, or none on a path that is slower one way.
    fn train_each(&self) -> Span {
        if self.serial > LEAST_GAP { self.serial } else { Span::ZERO }
    }

    fn train_load(&self) -> Option<usize> {
        trains::load(self.largest, self.train_each())
    }

    /// In front of each train as long as its load takes: of a second the trains fill a part.
    pub(super) fn train_wait(&self) -> Span {
        let load = self.train_load().map_or(0, trains::load_bytes);
        let takes = self.train_each() * load / i64::from(self.largest.max(1));
        takes.max(self.gap * 4)
    }
}

/// Sizes between the smallest and the largest.
const SIZES: u32 = 8;
/// Turns between small packets to each hop.
const SMALL_EVERY: u32 = 4;
/// Turns between large echoes, which tell how far apart probes have to be.
const LARGE_EVERY: u32 = 8;
/// Rounds between looks at that.
const SETTLE_EVERY: u32 = 8;
/// The large packet is at least so many times as long as the small one, so that a link ten times as
/// fast as the one before does not part them.
const LEADER_TO_TAIL: u32 = 12;
/// In one round of sizes; the count of a round's probes stays far below that of an echo's number.
const MOST_PROBES: usize = 200;
const MOST_SENDING: Span = Span::from_millis(500);
