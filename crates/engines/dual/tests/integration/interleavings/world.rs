//! Two ends, their connections, and what can happen to them.
//!
//! Whatever happens, happens at one end: it takes a frame from a queue of its own, does something
//! of its own accord, or hears that a connection is no more; then it appends frames to queues of
//! the other end.
//!
//! - Which connections will fail is settled before the first step ([`Budget::fail`]), and each end
//!   hears of it whenever it likes, before or after the other one. The instant of the failure
//!   itself need not be a step: what it swallows are frames that their reader did not take before
//!   it heard, and those are dropped then.
//! - A connection made anew has queues of its own, beside those of the one before, which the
//!   acceptor may not have heard of.
//! - Frames for an end that has given the connection up are dropped, as it would never take them.
//! - Writing is done at once, or record by record at any time later, which is many more orders: an
//!   end may then hear of what it is about to say.

use std::collections::VecDeque;

use netaware_dual::{Due, Event, Loss, Peer, Reason, Setting, Side, Standing, Stream};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::dual::Record;

use super::explore::Steps;
use super::name::{Name, name};
use super::sabotage::Sabotage;
use super::tidy::{Heard, tidy};

const NOW: Mono = Mono(0);
const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// What will happen, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    /// Bytes that each end's application sends.
    pub(crate) bytes: [u8; 2],
    /// Wishes that each end has.
    pub(crate) wishes: [u8; 2],
    /// Times that each end is held for a while.
    pub(crate) holds: [u8; 2],
    /// So many connections of each IP version fail, the first ones.
    pub(crate) fail: [u8; 2],
    /// Room of both ends, bytes.
    pub(crate) room: u32,
    pub(crate) sabotage: Option<Sabotage>,
    /// Whether frames that mean nothing any more are left out.
    pub(crate) tidy: bool,
    /// How soon each end writes what is due.
    pub(crate) paces: [Pace; 2],
}

/// How soon an end writes what is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Pace {
    /// All of it, with what made it due.
    AtOnce,
    /// One record, at any time later: as where sockets take no more for a while.
    Late,
}

/// What travels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    Opening { own: Peer },
    Welcome { own: Peer },
    Record(Record),
    Data { offset: u64, length: u32 },
}

/// One connection. Index 0 is towards the opener, 1 towards the acceptor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Wire {
    generation: u32,
    /// What each end has not taken yet.
    to: [VecDeque<Frame>; 2],
    /// Whether each end still believes in it.
    held: [bool; 2],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct End {
    stream: Stream,
    wishes: u8,
    holds: u8,
    given: u64,
    finished: bool,
    /// The last wish's number; the same again is the same wish.
    serial: u32,
    wishes_open: u8,
    heard: Heard,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    budget: Budget,
    ends: [End; 2],
    /// By IP version, those that some end believes in, older ones first.
    wires: [Vec<Wire>; 2],
    /// By IP version, how many there have been.
    made: [u32; 2],
}

/// A connection: of which IP version, and which one of that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Which {
    ip: usize,
    generation: u32,
}

/// What an end can do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Give(usize),
    Finish(usize),
    Wish(usize, IpVersion),
    Hold(usize),
    Release(usize),
    Take(usize, Which),
    Notice(usize, Which),
    Connect(usize),
    Write(usize, usize),
}

impl Act {
    fn end(self) -> usize {
        match self {
            Self::Give(end)
            | Self::Finish(end)
            | Self::Wish(end, _)
            | Self::Hold(end)
            | Self::Release(end)
            | Self::Take(end, _)
            | Self::Notice(end, _)
            | Self::Write(end, _) => end,
            Self::Connect(_) => 0,
        }
    }
}

impl World {
    /// Nothing is connected yet.
    pub(crate) fn new(budget: Budget) -> Self {
        let end = |side: Side| {
            let setting = Setting { side, room: budget.room, longest: 1, ack_delay: Span::ZERO };
            let [wishes, holds] = [budget.wishes, budget.holds].map(|each| each[side as usize]);
            let stream = Stream::new(setting);
            End {
                stream,
                wishes,
                holds,
                given: 0,
                finished: false,
                serial: 0,
                wishes_open: 0,
                heard: Heard::default(),
            }
        };
        let ends = [end(Side::Opener), end(Side::Acceptor)];
        Self { budget, ends, wires: Default::default(), made: [0; 2] }
    }

    /// Both connections are there, and nothing is on its way.
    pub(crate) fn connected(budget: Budget) -> Self {
        let mut world = Self::new(Budget { paces: [Pace::AtOnce; 2], ..budget });
        for ip in 0..2 {
            world = world.after(Act::Connect(ip));
            while let Some(to) = (0..2).find(|to| !world.wires[ip][0].to[*to].is_empty()) {
                world = world.after(Act::Take(to, Which { ip, generation: 1 }));
            }
        }
        world.budget = budget;
        world
    }

    /// The opener makes a connection once it knows that there is none.
    fn connect(&mut self, ip: usize) {
        let own = self.ends[0].stream.own();
        let to = [VecDeque::new(), VecDeque::from([Frame::Opening { own }])];
        self.made[ip] += 1;
        self.wires[ip].push(Wire { generation: self.made[ip], to, held: [true; 2] });
    }

    fn wire(&mut self, which: Which) -> Option<&mut Wire> {
        self.wires[which.ip].iter_mut().find(|wire| wire.generation == which.generation)
    }

    fn take(&mut self, to: usize, which: Which) {
        let Some(frame) = self.wire(which).and_then(|wire| wire.to[to].pop_front()) else { return };
        let (ip, generation) = (BOTH[which.ip], which.generation);
        if matches!(frame, Frame::Opening { .. }) {
            for old in self.wires[which.ip].iter_mut().filter(|wire| wire.generation < generation) {
                old.held[to] = false;
                old.to[to].clear();
            }
        }
        let end = &mut self.ends[to];
        if end.stream.is_up(ip) || !matches!(frame, Frame::Record(_)) {
            end.heard.take(&frame);
        }
        let stream = &mut end.stream;
        match frame {
            Frame::Opening { own } => {
                let mine = stream.own();
                stream.connected(NOW, ip, generation, own).expect("an honest peer");
                self.put(to, which, Frame::Welcome { own: mine });
            }
            Frame::Welcome { own } => stream.connected(NOW, ip, generation, own).expect("an honest peer"),
            Frame::Record(record) => drop(stream.take(NOW, ip, record).expect("an honest peer")),
            Frame::Data { offset, length } => {
                let before = stream.received();
                stream.take(NOW, ip, Record::Data { offset, length }).expect("an honest peer");
                stream.arrived(NOW, offset, length).expect("an honest peer");
                let came = stream.received() - before;
                stream.consumed(NOW, came);
            }
        }
        let (received, given) = (self.ends[to].stream.received(), self.ends[1 - to].given);
        assert!(received <= given, "bytes that nobody sent");
    }

    /// Where the other end believes in the connection.
    fn put(&mut self, from: usize, which: Which, frame: Frame) {
        let sabotage = self.budget.sabotage;
        let Some(wire) = self.wire(which).filter(|wire| wire.held[1 - from]) else { return };
        match sabotage {
            Some(sabotage) => sabotage.put(&mut wire.to[1 - from], frame),
            None => wire.to[1 - from].push_back(frame),
        }
    }

    /// An end hears that a connection is no more.
    fn notice(&mut self, end: usize, which: Which) {
        let Some(wire) = self.wire(which) else { return };
        wire.held[end] = false;
        wire.to[end].clear();
        self.ends[end].stream.lost(NOW, BOTH[which.ip], which.generation, Loss::Ended);
    }

    fn give(&mut self, end: usize) {
        let end = &mut self.ends[end];
        end.given += 1;
        end.stream.queued(1);
    }

    fn finish(&mut self, end: usize) {
        self.ends[end].finished = true;
        self.ends[end].stream.finish();
    }

    fn wish(&mut self, end: usize, to: IpVersion) {
        let end = &mut self.ends[end];
        end.wishes -= 1;
        let serial = end.stream.switch(NOW, to).unwrap_or_default();
        if serial > end.serial {
            end.serial = serial;
            end.wishes_open += 1;
        }
    }

    fn hold(&mut self, end: usize) {
        self.ends[end].holds -= 1;
        self.ends[end].stream.hold();
    }

    /// Everything that is due at an end goes onto its wires.
    fn write(&mut self, from: usize) {
        for ip in [0, 1, 0] {
            while self.write_one(from, ip) {}
        }
    }

    /// Whether there was anything.
    fn write_one(&mut self, from: usize, ip: usize) -> bool {
        let Some(due) = self.ends[from].stream.poll(NOW, BOTH[ip]) else { return false };
        let end = &self.ends[from];
        let frame = match due {
            // The number of turns is for people; no end looks at it.
            Due::Record(Record::Marker { offset, .. }) => {
                Frame::Record(Record::Marker { offset, switches: 0 })
            }
            Due::Record(record) => Frame::Record(record),
            Due::Data { offset, length } => {
                assert!(offset >= end.stream.acked(), "bytes that the driver has forgotten");
                assert!(offset + u64::from(length) <= end.given, "bytes that it never had");
                Frame::Data { offset, length }
            }
        };
        let generation = end.stream.generation(BOTH[ip]);
        self.put(from, Which { ip, generation }, frame);
        true
    }

    fn hear_events(&mut self, of: usize) {
        let end = &mut self.ends[of];
        while let Some(event) = end.stream.event() {
            if let Event::Turning { reason, .. } = event {
                assert!(reason == Reason::Loss || !end.stream.is_held(), "a held end has turned");
            }
            if matches!(event, Event::WishEnded { .. }) {
                end.wishes_open = end.wishes_open.checked_sub(1).expect("a wish that ended twice");
            }
        }
        let is_open = end.stream.standing() == Standing::Open;
        assert!(is_open || end.wishes_open == 0, "a stream has ended, and a wish of it has not");
    }

    /// What an end can do now.
    fn acts_of(&self, end: usize, acts: &mut Vec<Act>) {
        let one = &self.ends[end];
        if one.given < u64::from(self.budget.bytes[end]) {
            acts.push(Act::Give(end));
        } else if !one.finished {
            acts.push(Act::Finish(end));
        }
        if one.wishes > 0 {
            acts.extend(BOTH.into_iter().filter(|ip| one.stream.is_up(*ip)).map(|ip| Act::Wish(end, ip)));
        }
        if one.stream.is_held() {
            acts.push(Act::Release(end));
        } else if one.holds > 0 {
            acts.push(Act::Hold(end));
        }
        for (ip, wires) in self.wires.iter().enumerate() {
            for wire in wires.iter().filter(|wire| wire.held[end]) {
                let which = Which { ip, generation: wire.generation };
                if !wire.to[end].is_empty() {
                    acts.push(Act::Take(end, which));
                }
                if wire.generation <= u32::from(self.budget.fail[ip]) {
                    acts.push(Act::Notice(end, which));
                }
            }
        }
        if self.budget.paces[end] == Pace::Late {
            let due = |ip: &usize| one.stream.clone().poll(NOW, BOTH[*ip]).is_some();
            acts.extend((0..2).filter(due).map(|ip| Act::Write(end, ip)));
        }
        if end == 0 {
            let without = |ip: &usize| !self.wires[*ip].iter().any(|wire| wire.held[0]);
            acts.extend((0..2).filter(without).map(Act::Connect));
        }
    }

    /// Leaves out frames that mean nothing any more, as [`super::tidy`] argues.
    fn tidy(&mut self) {
        for (ip, wires) in self.wires.iter_mut().enumerate() {
            for wire in wires {
                for (end, queue) in self.ends.iter().zip(&mut wire.to) {
                    tidy(queue, end.heard, &end.stream, BOTH[ip]);
                }
            }
        }
    }

    fn fault_at_end(&self) -> Option<String> {
        for (end, other) in [(0, 1), (1, 0)] {
            let stream = &self.ends[end].stream;
            let ended = stream.standing() == Standing::Finished
                && stream.received() == u64::from(self.budget.bytes[other])
                && stream.is_settled()
                && self.ends[end].wishes_open == 0;
            if !ended {
                return Some(format!("end {end} has not ended: {stream:#?}"));
            }
        }
        let ways = [0, 1].map(|end| self.ends[end].stream.current());
        (ways[0] != ways[1]).then(|| format!("the directions go {ways:?}"))
    }
}

impl Steps for World {
    type Act = Act;

    fn acts(&self) -> Vec<Act> {
        let mut acts = Vec::new();
        (0..2).for_each(|end| self.acts_of(end, &mut acts));
        acts
    }

    fn after(&self, act: Act) -> Self {
        let mut world = self.clone();
        match act {
            Act::Give(end) => world.give(end),
            Act::Finish(end) => world.finish(end),
            Act::Wish(end, to) => world.wish(end, to),
            Act::Hold(end) => world.hold(end),
            Act::Release(end) => assert!(world.ends[end].stream.release(NOW)),
            Act::Take(end, which) => world.take(end, which),
            Act::Notice(end, which) => world.notice(end, which),
            Act::Connect(ip) => world.connect(ip),
            Act::Write(end, ip) => _ = world.write_one(end, ip),
        }
        if self.budget.paces[act.end()] == Pace::AtOnce {
            world.write(act.end());
        }
        world.hear_events(act.end());
        for wires in &mut world.wires {
            wires.retain(|wire| wire.held.contains(&true));
        }
        if world.budget.tidy {
            world.tidy();
        }
        world
    }

    fn end(&self) -> Result<Name, String> {
        self.fault_at_end().map_or_else(|| Ok(name(&(&self.ends, &self.wires))), Err)
    }
}
