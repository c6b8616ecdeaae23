//! One store-and-forward device and the wire behind it.
//!
//! A direction of the path is a row of stages: for each hop the link's transmitter with the router
//! in front of it, then its hidden switches. A stage takes everything that comes up to an instant
//! in order of time, from three sources: what the stage before sent, cross traffic that passes, and
//! cross traffic that enters here.

use netaware_stats::rng::SplitMix64;

use super::bucket::TokenBucket;
use super::codel::Verdict;
use super::draw::generator;
use super::filter::FilterState;
use super::outlet::Outlet;
use super::pace::ps;
use super::server::{Carried, Server, Service, Waiting};
use super::time_queue::TimeQueue;
use super::wire::WireState;
use crate::scenario::{
    Aggregation, Balance, BucketKind, Change, Link, Loss, Members, MtuAnswer, Queue, Switch, Wire,
};
use crate::source::Source;
use crate::{Answer, DropCause};

/// What comes to a stage from elsewhere.
#[derive(Debug, Clone)]
pub(super) struct Inbox {
    pub(super) offered: TimeQueue<Carried>,
    pub(super) passing: TimeQueue<Carried>,
    /// Not later than the next thing to do in this stage.
    pub(super) wake: u64,
}

impl Inbox {
    pub(super) fn push(&mut self, at: u64, packet: Carried) {
        let queue = if packet.slot().is_some() { &mut self.offered } else { &mut self.passing };
        queue.push(at, packet);
        self.wake = self.wake.min(at);
    }
}

#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) inbox: Inbox,
    /// As numbered from A.
    pub(super) hop: usize,
    /// Whether this is the transmitter of the hop rather than a hidden switch.
    pub(super) leads: bool,
    pub(super) last_of_hop: bool,
    /// The router in front of it, by number.
    pub(super) router: Option<usize>,
    pub(super) sources: Vec<Source>,
    overhead: u64,
    servers: Vec<Server>,
    members: Members,
    member_step: u64,
    turn: usize,
    shaper: Option<TokenBucket>,
    policer: Option<TokenBucket>,
    aggregation: Option<Aggregation>,
    deferred: bool,
    filters: Vec<FilterState>,
    fair: bool,
    wires: [WireState; 2],
    bucket_rate: u64,
    rng: SplitMix64,
    /// One transmitter with a queue, and a wire that only delays.
    plain: bool,
}

impl Stage {
    pub(super) fn link(hop: usize, link: &Link, router: Option<usize>, seed: u64, side: u64) -> Self {
        let apart = link.wires.iter().any(|wire| wire.apart);
        let servers = usize::from(link.members.count) * (1 + usize::from(apart));
        let mtu = link.wires[0].mtu.max(link.wires[1].mtu);
        let bucket = |kind| link.bucket.filter(|bucket| bucket.kind == kind);
        Self {
            inbox: Inbox { offered: TimeQueue::new(), passing: TimeQueue::new(), wake: u64::MAX },
            hop,
            leads: true,
            last_of_hop: link.switches.is_empty(),
            router,
            sources: Vec::new(),
            overhead: u64::from(link.overhead),
            servers: (0..servers).map(|_| Server::new(link, mtu)).collect(),
            members: link.members,
            member_step: ps(link.members.delay_step),
            turn: 0,
            shaper: bucket(BucketKind::Shaper).map(|bucket| TokenBucket::new(&bucket)),
            policer: bucket(BucketKind::Policer).map(|bucket| TokenBucket::new(&bucket)),
            aggregation: link.aggregation,
            deferred: link.aggregation.is_some() || link.queue.codel.is_some() || link.queue.fair,
            filters: link.filters.iter().map(FilterState::new).collect(),
            fair: link.queue.fair,
            wires: link.wires.each_ref().map(WireState::new),
            bucket_rate: link.bucket.map_or(u64::MAX, |bucket| bucket.rate.0),
            rng: generator(seed, &[1, side, hop as u64]),
            plain: is_plain(link),
        }
    }

    pub(super) fn switch(hop: usize, link: &Link, switch: &Switch, last: bool) -> Self {
        let wire = Wire {
            rate: vec![Change { at: netaware_units::Span::ZERO, value: switch.rate }],
            apart: false,
            delay: vec![Change { at: netaware_units::Span::ZERO, value: switch.delay }],
            mtu: u32::MAX,
            mtu_answer: MtuAnswer::Silent,
            black_hole: false,
            outages: Vec::new(),
            loss: Loss::None,
            duplication: 0.0,
            reordering: None,
            jitter: None,
            corruption: 0.0,
        };
        let members = Members { count: 1, balance: Balance::Packet, delay_step: netaware_units::Span::ZERO };
        let bare = Link {
            overhead: link.overhead,
            queue: Queue { fair: false, ..link.queue },
            bucket: None,
            members,
            aggregation: None,
            switches: Vec::new(),
            filters: Vec::new(),
            rewrite: None,
            wires: [wire.clone(), wire],
        };
        let mut stage = Self::link(hop, &bare, None, 0, 0);
        (stage.leads, stage.last_of_hop, stage.deferred) = (false, last, false);
        stage.servers = vec![Server::endless()];
        stage
    }

    pub(super) fn reseed(&mut self, seed: u64, side: u64) {
        self.rng = generator(seed, &[1, side, self.hop as u64]);
        self.sources.iter_mut().for_each(|source| source.reseed(seed));
    }

    /// When there is something to do here; `u64::MAX` for never.
    fn next_work(&self) -> u64 {
        let sources = self.sources.iter().map(Source::next_at).min().unwrap_or(u64::MAX);
        let arrivals = self.inbox.offered.head().min(self.inbox.passing.head()).min(sources);
        if self.deferred { arrivals.min(self.next_service()) } else { arrivals }
    }

    fn next_service(&self) -> u64 {
        self.servers.iter().map(|server| server.next_start(self.shaper.as_ref())).min().unwrap_or(u64::MAX)
    }

    /// Not later than the next time at which an offered packet can get further here.
    pub(super) fn next_offered(&self) -> u64 {
        let waiting = self.servers.iter().filter(|server| server.offered_waiting > 0);
        let served = waiting.map(|server| server.next_start(self.shaper.as_ref())).min().unwrap_or(u64::MAX);
        self.inbox.offered.head().min(served)
    }

    /// No packet is at the next stage sooner than this after it has come here.
    pub(super) fn least_delay(&self) -> u64 {
        self.wires.iter().map(WireState::least_delay).min().unwrap_or(0)
    }

    /// All parallel links together, or the token bucket if that is slower.
    pub(super) fn capacity(&mut self, at: u64) -> u64 {
        (self.wires[0].rate.at(at) * u64::from(self.members.count)).min(self.bucket_rate)
    }

    /// How many transmitters share that capacity.
    pub(super) const fn members(&self) -> u64 {
        self.members.count as u64
    }

    pub(super) fn waiting(&self) -> usize {
        self.servers.iter().map(Server::waits).sum()
    }

    /// Handles everything up to `until`.
    pub(super) fn run(&mut self, until: u64, outlet: &mut Outlet<'_>) {
        loop {
            let (offered, passing) = (self.inbox.offered.head(), self.inbox.passing.head());
            let (source, entering) = self.next_source();
            if offered.min(passing).min(entering) > until {
                break;
            }
            if offered <= passing && offered <= entering {
                let Some((at, packet)) = self.inbox.offered.pop() else { break };
                self.arrive(at, packet, outlet);
            } else if passing <= entering {
                let Some((at, packet)) = self.inbox.passing.pop() else { break };
                self.arrive(at, packet, outlet);
            } else if self.plain && outlet.ends_here(&self.sources[source], self.hop) {
                let others = self.sources.iter().enumerate().filter(|(n, _)| *n != source);
                let other = others.map(|(_, source)| source.next_at()).min().unwrap_or(u64::MAX);
                let before = offered.min(passing).min(other).min(until.saturating_add(1));
                self.crowd(source, before, outlet);
            } else if let Some(packet) = self.sources[source].emit() {
                self.arrive(entering, packet, outlet);
            }
        }
        if self.deferred {
            self.serve(until, outlet);
        }
        self.inbox.wake = self.next_work();
    }

    /// Cross traffic of one source that is on this link alone, up to `before`, which does at once
    /// what [`Stage::arrive`] does step by step. A packet at the very instant of another's comes in
    /// turn.
    fn crowd(&mut self, source: usize, before: u64, outlet: &mut Outlet<'_>) {
        loop {
            let at = self.sources[source].next_at();
            let Some(packet) = self.sources[source].emit() else { return };
            let wire = &mut self.wires[packet.wire()];
            if packet.length > wire.mtu {
                self.arrive(at, packet, outlet);
            } else {
                let bytes = u64::from(packet.length) + self.overhead;
                let server = &mut self.servers[0];
                let start = server.start_for(at, bytes, None);
                if server.admits(at, start, bytes) {
                    server.remember(at, start, bytes);
                    let service = server.transmit(start, bytes, wire.per_byte.at(start));
                    outlet.truth.passed(at, start, service.depart);
                } else {
                    outlet.truth.arrived(at);
                    outlet.truth.waited(at, start - at);
                    outlet.drop(at, self.hop, packet, DropCause::Queue);
                }
            }
            if self.sources[source].next_at() >= before {
                return;
            }
        }
    }

    #[inline]
    fn next_source(&self) -> (usize, u64) {
        let mut best = (0, u64::MAX);
        for (n, source) in self.sources.iter().enumerate() {
            if source.next_at() < best.1 {
                best = (n, source.next_at());
            }
        }
        best
    }

    fn arrive(&mut self, at: u64, packet: Carried, outlet: &mut Outlet<'_>) {
        if self.deferred {
            self.serve(at, outlet);
        }
        let mut bytes = u64::from(packet.length) + self.overhead;
        if self.leads {
            outlet.truth.arrived(at);
            match self.enter(at, packet, outlet) {
                Some(more) => bytes += more,
                None => return,
            }
        }
        let server = self.choose(packet, outlet);
        let start = self.servers[server].start_for(at, bytes, self.shaper.as_ref());
        let flow = if self.fair { outlet.flow(packet) } else { 0 };
        let is_admitted = self.servers[server].admits_fairly(at, flow, bytes);
        if !is_admitted.unwrap_or_else(|| self.servers[server].admits(at, start, bytes)) {
            outlet.truth.waited(at, start - at);
            outlet.drop(at, self.hop, packet, DropCause::Queue);
            return;
        }
        if self.deferred {
            self.servers[server].enqueue(flow, Waiting { at, bytes, packet });
            return;
        }
        self.servers[server].remember(at, start, bytes);
        let service = self.transmit(server, start, bytes, packet.wire());
        self.book(at, service, packet, outlet);
        self.send(server, service.depart, packet, outlet);
    }

    /// Router, MTU and policer: `None` when the packet ends here, else the bytes that fragmentation
    /// adds.
    fn enter(&mut self, at: u64, packet: Carried, outlet: &mut Outlet<'_>) -> Option<u64> {
        if let (Some(router), Some(slot)) = (self.router, packet.slot())
            && outlet.hop_limit_is_over(slot)
        {
            outlet.refuse(at, router, router, slot, Answer::TimeExceeded, DropCause::HopLimit);
            return None;
        }
        let wire = &self.wires[packet.wire()];
        if wire.black_hole {
            outlet.drop(at, self.hop, packet, DropCause::BlackHole);
            return None;
        }
        if wire.is_out(at) {
            outlet.drop(at, self.hop, packet, DropCause::Outage);
            return None;
        }
        if let Some(slot) = packet.slot().filter(|_| !self.filters.is_empty()) {
            let seen = outlet.seen(packet, slot);
            if let Some(cause) = self.filters.iter_mut().find_map(|filter| filter.judge(at, seen)) {
                outlet.drop(at, self.hop, packet, cause);
                return None;
            }
        }
        let mut more = 0;
        if packet.length > wire.mtu {
            more = u64::from(packet.length.div_ceil(wire.mtu) - 1) * (20 + self.overhead);
            if !outlet.may_fragment(packet) {
                let answer = Answer::TooBig { mtu: wire.mtu };
                match (wire.mtu_answer, self.router, packet.slot()) {
                    (MtuAnswer::Icmp, Some(router), Some(slot)) => {
                        outlet.refuse(at, self.hop, router, slot, answer, DropCause::Mtu);
                    }
                    _ => outlet.drop(at, self.hop, packet, DropCause::Mtu),
                }
                return None;
            }
        }
        if let Some(policer) = &mut self.policer {
            let bytes = u64::from(packet.length) + self.overhead + more;
            if policer.earliest(bytes) > at {
                outlet.drop(at, self.hop, packet, DropCause::Policer);
                return None;
            }
            policer.take(at, bytes);
        }
        Some(more)
    }

    fn choose(&mut self, packet: Carried, outlet: &mut Outlet<'_>) -> usize {
        let count = usize::from(self.members.count);
        let group = if self.wires[1].apart || self.wires[0].apart { packet.wire() * count } else { 0 };
        if count == 1 {
            if self.leads {
                outlet.takes_member(packet, 0);
            }
            return group;
        }
        let member = match self.members.balance {
            Balance::Packet => {
                self.turn = (self.turn + 1) % count;
                self.turn
            }
            Balance::Flow => SplitMix64::new(outlet.flow(packet) ^ self.hop as u64).below(count),
        };
        outlet.takes_member(packet, member);
        group + member
    }

    #[inline]
    fn transmit(&mut self, server: usize, start: u64, bytes: u64, wire: usize) -> Service {
        if let Some(shaper) = &mut self.shaper {
            shaper.take(start, bytes);
        }
        let per_byte = self.wires[wire].per_byte.at(start);
        self.servers[server].transmit(start, bytes, per_byte)
    }

    /// A shaper slower than its link occupies it for as long as the tokens take to come.
    #[inline]
    fn book(&mut self, at: u64, service: Service, packet: Carried, outlet: &mut Outlet<'_>) {
        if !self.leads {
            return;
        }
        outlet.truth.waited(at, service.start - at);
        let mut end = service.depart;
        if self.shaper.is_some() {
            let rate = self.wires[0].rate.at(service.start);
            let longer =
                u128::from(end - service.start) * u128::from(rate) / u128::from(self.bucket_rate.min(rate));
            end = service.start.saturating_add(longer as u64);
        }
        outlet.truth.occupied(service.start, end, packet.slot().is_some());
    }

    fn send(&mut self, server: usize, depart: u64, packet: Carried, outlet: &mut Outlet<'_>) {
        let Some(crossing) = self.wires[packet.wire()].cross(depart, &mut self.rng) else {
            outlet.drop(depart, self.hop, packet, DropCause::Loss);
            return;
        };
        let member = (server % usize::from(self.members.count)) as u64;
        let at = crossing.at + member * self.member_step;
        if crossing.corrupted
            && let Some(slot) = packet.slot()
        {
            let bit = self.rng.below(packet.length as usize * 8) as u32;
            outlet.corrupt(slot, bit);
        }
        if crossing.copied {
            let copy = outlet.copy(packet);
            if self.leads {
                outlet.truth.copied();
            }
            outlet.pass(at, packet, self);
            outlet.pass(at, copy, self);
        } else {
            outlet.pass(at, packet, self);
        }
    }

    /// Serves queues whose order of service is decided at their head, all of them in order of time:
    /// so chance is drawn in the same order however often this is called.
    fn serve(&mut self, until: u64, outlet: &mut Outlet<'_>) {
        loop {
            let starts = self.servers.iter().map(|server| server.next_start(self.shaper.as_ref()));
            let Some((start, server)) = starts.zip(0..).min().filter(|(start, _)| *start <= until) else {
                return;
            };
            match self.aggregation {
                Some(aggregation) => self.serve_many(server, start, aggregation, outlet),
                None => self.serve_one(server, start, outlet),
            }
        }
    }

    fn serve_one(&mut self, server: usize, start: u64, outlet: &mut Outlet<'_>) {
        let Some(waiting) = self.servers[server].dequeue() else { return };
        if self.servers[server].judge(start, &waiting) == Verdict::Drop {
            outlet.truth.waited(start, start - waiting.at);
            outlet.drop(start, self.hop, waiting.packet, DropCause::CoDel);
            return;
        }
        let service = self.transmit(server, start, waiting.bytes, waiting.packet.wire());
        self.book(waiting.at, service, waiting.packet, outlet);
        self.send(server, service.depart, waiting.packet, outlet);
    }

    fn serve_many(&mut self, server: usize, start: u64, limit: Aggregation, outlet: &mut Outlet<'_>) {
        let contention = (self.rng.unit() * ps(limit.contention) as f64) as u64;
        let (mut bytes, mut sent) = (0, Vec::new());
        let mut at = start;
        while let Some(head) = self.servers[server].waiting.front().copied() {
            let full = sent.len() >= limit.packets as usize || bytes + head.bytes > limit.bytes;
            if head.at > start || (full && !sent.is_empty()) {
                break;
            }
            self.servers[server].dequeue();
            if self.servers[server].judge(start, &head) == Verdict::Drop {
                outlet.drop(start, self.hop, head.packet, DropCause::CoDel);
                continue;
            }
            bytes += head.bytes;
            let service = self.transmit(server, at, head.bytes, head.packet.wire());
            self.book(head.at, service, head.packet, outlet);
            at = service.depart;
            sent.push(head.packet);
        }
        if sent.is_empty() {
            return;
        }
        let access = ps(limit.access) + contention;
        self.servers[server].hold(access);
        outlet.truth.occupied(at, at + access, sent.iter().all(|packet| packet.slot().is_some()));
        for packet in sent {
            self.send(server, at + access, packet, outlet);
        }
    }
}

fn is_plain(link: &Link) -> bool {
    let is_plain_wire = |wire: &Wire| {
        let whole = matches!(wire.loss, Loss::None) && wire.duplication <= 0.0 && wire.corruption <= 0.0;
        whole
            && !wire.apart
            && !wire.black_hole
            && wire.outages.is_empty()
            && wire.reordering.is_none()
            && wire.jitter.is_none()
    };
    let is_one = link.members.count == 1 && link.switches.is_empty();
    let is_queue = link.bucket.is_none() && link.aggregation.is_none() && link.queue.codel.is_none();
    let is_queue = is_queue && !link.queue.fair;
    is_one && is_queue && link.wires.iter().all(is_plain_wire)
}
