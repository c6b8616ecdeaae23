//! The loop of a run: the next instant at which anything can happen, then everything that happens
//! at it.

use netaware_engine::{Engine, Input};
use netaware_netmodel::{Answer, Fate, Packet, Side};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::drive::{Drive, Ended, index};
use crate::seat::{NEVER, Ready, Seat};
use crate::simulation::{Flow, Fragments, Simulation, version_index};
use crate::under_way::UnderWay;

pub(crate) struct Run<'a, N: Engine, F: Engine> {
    near: Seat<'a, N>,
    far: Seat<'a, F>,
    world: World<'a>,
    stop_at: Mono,
    cut_off_at: Mono,
    fates: Vec<Fate>,
    /// How often in a row time has not moved.
    standing_still: u32,
}

/// Everything between the two seats.
struct World<'a> {
    sim: &'a mut Simulation,
    flow: Flow,
    under_way: UnderWay,
    drive: Drive,
}

impl<'a, N: Engine, F: Engine> Run<'a, N, F> {
    pub(crate) fn new(sim: &'a mut Simulation, flow: Flow, near: &'a mut N, far: &'a mut F) -> Self {
        let [a, b] = sim.clocks.each_ref().map(Clone::clone);
        let now = sim.now;
        Self {
            near: Seat::new(Side::A, near, a),
            far: Seat::new(Side::B, far, b),
            stop_at: flow.stop_after.map_or(NEVER, |after| now + after),
            cut_off_at: now + flow.cut_off_after,
            fates: Vec::new(),
            standing_still: 0,
            world: World {
                under_way: UnderWay::new(sim.next_id, sim.makes_copies),
                drive: Drive::new(now),
                sim,
                flow,
            },
        }
    }

    pub(crate) fn go(mut self, on_event: &mut dyn FnMut(N::Event)) -> Drive {
        let start = self.world.sim.now;
        self.far.feed(start, Input::Wake, &mut |_| {});
        self.near.feed(start, Input::Wake, on_event);
        while !self.near.done {
            let next = self.next();
            if next > self.cut_off_at {
                break;
            }
            self.world.sim.now = next;
            self.step(next, on_event);
        }
        self.finish()
    }

    /// The next instant at which something can happen; [`NEVER`] if nothing is left that could.
    fn next(&mut self) -> Mono {
        let now = self.world.sim.now;
        let network = self.world.sim.network.next_arrival().unwrap_or(NEVER);
        let next = network.min(self.near.next_at()).min(self.far.next_at()).min(self.stop_at);
        if next > now {
            self.standing_still = 0;
            return next;
        }
        // Engines that always find something to send at once would keep time from passing.
        self.standing_still += 1;
        if self.standing_still > MOST_AT_ONCE { now + Span::from_micros(1) } else { now }
    }

    /// Everything that happens at this instant: arrivals before departures, so that an answer can
    /// go out at once.
    fn step(&mut self, at: Mono, on_event: &mut dyn FnMut(N::Event)) {
        self.deliver(at, on_event);
        if at >= self.stop_at {
            self.stop_at = NEVER;
            self.near.feed(at, Input::Stop, on_event);
        }
        self.world.send_due(at, &mut self.far, &mut |_| {});
        self.world.send_due(at, &mut self.near, on_event);
        self.far.wake_if_due(at, &mut |_| {});
        self.near.wake_if_due(at, on_event);
    }

    fn deliver(&mut self, at: Mono, on_event: &mut dyn FnMut(N::Event)) {
        if self.world.sim.network.next_arrival().is_none_or(|arrival| arrival > at) {
            return;
        }
        let mut fates = std::mem::take(&mut self.fates);
        self.world.sim.network.advance(at, &mut |fate| fates.push(fate));
        for fate in fates.drain(..) {
            match fate {
                Fate::Delivered { to: Side::A, .. } => {
                    self.world.hand_over(at, fate, &mut self.near, on_event);
                }
                Fate::Delivered { to: Side::B, .. } => {
                    self.world.hand_over(at, fate, &mut self.far, &mut |_| {});
                }
                Fate::Answered { id, answer, .. } => self.world.answered(at, id, answer),
                Fate::Dropped { id, cause, .. } => {
                    self.world.settle(at, id, |way| way.dropped[cause as usize] += 1);
                }
            }
        }
        self.fates = fates;
    }

    fn finish(mut self) -> Drive {
        self.learn_of_drops();
        let World { sim, under_way, mut drive, .. } = self.world;
        sim.next_id = under_way.next();
        drive.ended_at = sim.now;
        drive.ended = if self.near.done { Ended::Done } else { Ended::CutOff };
        drive
    }
}

impl<N: Engine, F: Engine> Run<'_, N, F> {
    /// Of those that the network would have told with the next arrival.
    fn learn_of_drops(&mut self) {
        let at = self.world.sim.now;
        let mut fates = std::mem::take(&mut self.fates);
        self.world.sim.network.advance(at, &mut |fate| fates.push(fate));
        for fate in fates {
            if let Fate::Dropped { id, cause, .. } = fate {
                self.world.settle(at, id, |way| way.dropped[cause as usize] += 1);
            }
        }
    }
}

impl World<'_> {
    fn send_due<E: Engine>(&mut self, at: Mono, seat: &mut Seat<'_, E>, on_event: &mut dyn FnMut(E::Event)) {
        for _ in 0..MOST_AT_ONCE {
            let Some(ready) = seat.take_due(at) else { return };
            self.send(at, seat, ready, on_event);
        }
    }

    fn send<E: Engine>(
        &mut self,
        at: Mono,
        seat: &mut Seat<'_, E>,
        ready: Ready,
        on_event: &mut dyn FnMut(E::Event),
    ) {
        let (side, version) = (seat.side, self.flow.version);
        let length = ready.bytes.len() as u32 + version.header_len() + UDP_HEADER;
        let may_be_cut = version == IpVersion::V4 && self.flow.fragments == Fragments::Allowed;
        let mtu = self.sim.mtu[index(side)][version_index(version)];
        if length > mtu && !may_be_cut {
            self.drive.way_mut(side).not_sent += 1;
            return seat.too_big(at, ready, mtu, on_event);
        }
        let (tag, due) = (ready.tag, ready.due());
        let id = self.under_way.push(side, tag, ready.bytes);
        let packet = Packet {
            id,
            version,
            length,
            hop_limit: HOP_LIMIT,
            flow: self.flow.flow,
            dont_fragment: !may_be_cut,
        };
        self.sim.network.offer(at, side, packet);
        self.drive.way_mut(side).sent += 1;
        if let Some(spare) = self.under_way.spare() {
            seat.recycle(spare);
        }
        seat.sent(at, tag, due, on_event);
    }

    fn hand_over<E: Engine>(
        &mut self,
        at: Mono,
        fate: Fate,
        seat: &mut Seat<'_, E>,
        on_event: &mut dyn FnMut(E::Event),
    ) {
        let Fate::Delivered { id, at: arrived_at, hop_limit, duplicate, corrupted_bit, delay, .. } = fate
        else {
            return;
        };
        let Some(entry) = self.under_way.get(id) else { return };
        let (from, tag) = (entry.from, entry.tag);
        let way = self.drive.way_mut(from);
        if corrupted_bit.is_some() {
            // One bit of header or payload: a checksum sees it. (IPv6 leaves a few bits of its
            // header unprotected; we are stricter.)
            way.corrupted += u64::from(!duplicate);
        } else {
            if duplicate {
                way.copies += 1;
            } else {
                way.delays.push((tag, delay));
            }
            let bytes = std::mem::take(&mut entry.bytes);
            seat.receive(at, arrived_at, &bytes, hop_limit, on_event);
            if let Some(entry) = self.under_way.get(id) {
                entry.bytes = bytes;
            }
        }
        if !duplicate {
            self.under_way.settle(id, at);
        }
    }

    fn answered(&mut self, at: Mono, id: u64, answer: Answer) {
        let Some(from) = self.under_way.get(id).map(|entry| entry.from) else { return };
        match answer {
            Answer::TimeExceeded => self.settle(at, id, |way| way.time_exceeded += 1),
            Answer::TooBig { mtu } => {
                self.settle(at, id, |way| way.too_big += 1);
                let version = self.flow.version;
                let known = &mut self.sim.mtu[index(from)][version_index(version)];
                // Linux believes nothing smaller.
                *known = (*known).min(mtu.max(smallest_believed(version)));
            }
        }
    }

    fn settle(&mut self, at: Mono, id: u64, count: impl FnOnce(&mut crate::drive::Way)) {
        let Some(from) = self.under_way.get(id).map(|entry| entry.from) else { return };
        count(self.drive.way_mut(from));
        self.under_way.settle(id, at);
    }
}

/// `net.ipv4.route.min_pmtu`, and RFC 8200 §5.
const fn smallest_believed(version: IpVersion) -> u32 {
    match version {
        IpVersion::V4 => 552,
        IpVersion::V6 => 1280,
    }
}

/// RFC 768.
const UDP_HEADER: u32 = 8;
/// Linux' default.
const HOP_LIMIT: u8 = 64;
/// Things that may happen at one instant; more of them are an engine that does not let time pass.
const MOST_AT_ONCE: u32 = 100_000;
