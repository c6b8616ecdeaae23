//! Two ends, two connections, and what can happen to them.

use std::collections::VecDeque;

use netaware_dual::{Due, Event, Loss, Peer, Setting, Side, Standing, Stream};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::dual::Record;

use crate::explore::Steps;

const NOW: Mono = Mono(0);
const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// What may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    /// Bytes that each end's application sends.
    pub(crate) bytes: [u8; 2],
    /// Wishes that each end has.
    pub(crate) wishes: [u8; 2],
    /// Connections that fail.
    pub(crate) failures: u8,
    /// Room of both ends, bytes.
    pub(crate) room: u32,
}

/// What travels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Frame {
    Opening { generation: u32, own: Peer },
    Welcome { own: Peer },
    Record(Record),
    Data { offset: u64, length: u32 },
}

/// One connection. Index 0 is towards the opener, 1 towards the acceptor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Wire {
    generation: u32,
    /// What is written still arrives.
    works: bool,
    /// What each end has not read yet.
    to: [VecDeque<Frame>; 2],
    /// Whether each end still believes in it.
    held: [bool; 2],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct End {
    stream: Stream,
    given: u64,
    finished: bool,
    /// The last wish's number; the same again is the same wish.
    serial: u32,
    wishes_open: u8,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    left: Budget,
    all: [u8; 2],
    ends: [End; 2],
    wires: [Wire; 2],
}

impl World {
    /// Nothing is connected yet.
    pub(crate) fn new(budget: Budget) -> Self {
        let end = |side| {
            let setting = Setting { side, room: budget.room, longest: 1, ack_delay: Span::ZERO };
            End { stream: Stream::new(setting), given: 0, finished: false, serial: 0, wishes_open: 0 }
        };
        Self {
            left: budget,
            all: budget.bytes,
            ends: [end(Side::Opener), end(Side::Acceptor)],
            wires: Default::default(),
        }
    }

    /// Both connections are there, and nothing is on its way.
    pub(crate) fn connected(budget: Budget) -> Self {
        let mut world = Self::new(budget);
        for over in 0..2 {
            world = world.after(Act::Connect(over));
            while let Some(to) = (0..2).find(|to| !world.wires[over].to[*to].is_empty()) {
                world = world.after(Act::Deliver { over, to });
            }
        }
        world
    }

    /// The opener makes a connection anew once it knows that there is none.
    fn connect(&mut self, at: usize) {
        let own = self.ends[0].stream.own();
        let wire = &mut self.wires[at];
        *wire = Wire { generation: wire.generation + 1, works: true, ..Wire::default() };
        wire.held = [true, true];
        wire.to[1].push_back(Frame::Opening { generation: wire.generation, own });
    }

    fn deliver(&mut self, at: usize, to: usize) {
        let Some(frame) = self.wires[at].to[to].pop_front() else { return };
        let generation = self.wires[at].generation;
        let (ip, stream) = (BOTH[at], &mut self.ends[to].stream);
        match frame {
            Frame::Opening { generation, own } => {
                let mine = stream.own();
                stream.connected(NOW, ip, generation, own).expect("an honest peer");
                if self.wires[at].works {
                    self.wires[at].to[0].push_back(Frame::Welcome { own: mine });
                }
            }
            Frame::Welcome { own } => stream.connected(NOW, ip, generation, own).expect("an honest peer"),
            Frame::Record(record) => stream.take(NOW, ip, record).expect("an honest peer"),
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

    /// An end hears that a connection is no more.
    fn notice(&mut self, at: usize, end: usize) {
        let wire = &mut self.wires[at];
        wire.held[end] = false;
        wire.to[end].clear();
        let generation = wire.generation;
        self.ends[end].stream.lost(NOW, BOTH[at], generation, Loss::Ended);
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
        self.left.wishes[end] -= 1;
        let end = &mut self.ends[end];
        let serial = end.stream.switch(NOW, to).unwrap_or_default();
        if serial > end.serial {
            end.serial = serial;
            end.wishes_open += 1;
        }
    }

    /// Everything that is due goes onto its wire.
    fn write(&mut self) {
        for (index, end) in self.ends.iter_mut().enumerate() {
            for (at, wire) in self.wires.iter_mut().enumerate() {
                while let Some(due) = end.stream.poll(NOW, BOTH[at]) {
                    let frame = match due {
                        Due::Record(record) => Frame::Record(record),
                        Due::Data { offset, length } => {
                            assert!(offset >= end.stream.acked(), "bytes that the driver has forgotten");
                            assert!(offset + u64::from(length) <= end.given, "bytes that it never had");
                            Frame::Data { offset, length }
                        }
                    };
                    if wire.works && end.stream.generation(BOTH[at]) == wire.generation {
                        wire.to[1 - index].push_back(frame);
                    }
                }
            }
            while let Some(event) = end.stream.event() {
                if matches!(event, Event::WishEnded { .. }) {
                    end.wishes_open = end.wishes_open.checked_sub(1).expect("a wish that ended twice");
                }
            }
        }
    }
}

/// What can happen. Ends and connections by number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Give(usize),
    Finish(usize),
    Wish(usize, IpVersion),
    Deliver { over: usize, to: usize },
    Notice { over: usize, end: usize },
    Connect(usize),
    Fail(usize),
}

impl Steps for World {
    type Act = Act;

    fn acts(&self) -> Vec<Act> {
        let mut acts = Vec::new();
        for end in 0..2 {
            let (given, stream) = (self.ends[end].given, &self.ends[end].stream);
            if given < u64::from(self.all[end]) {
                acts.push(Act::Give(end));
            } else if !self.ends[end].finished {
                acts.push(Act::Finish(end));
            }
            if self.left.wishes[end] > 0 {
                acts.extend(BOTH.into_iter().filter(|ip| stream.is_up(*ip)).map(|ip| Act::Wish(end, ip)));
            }
        }
        for (over, wire) in self.wires.iter().enumerate() {
            for to in 0..2 {
                if !wire.to[to].is_empty() {
                    acts.push(Act::Deliver { over, to });
                }
                if !wire.works && wire.held[to] {
                    acts.push(Act::Notice { over, end: to });
                }
            }
            if !wire.held[0] {
                acts.push(Act::Connect(over));
            }
            if wire.works && self.left.failures > 0 {
                acts.push(Act::Fail(over));
            }
        }
        acts
    }

    fn after(&self, act: Act) -> Self {
        let mut world = self.clone();
        match act {
            Act::Give(end) => world.give(end),
            Act::Finish(end) => world.finish(end),
            Act::Wish(end, to) => world.wish(end, to),
            Act::Deliver { over, to } => world.deliver(over, to),
            Act::Notice { over, end } => world.notice(over, end),
            Act::Connect(over) => world.connect(over),
            Act::Fail(over) => {
                world.left.failures -= 1;
                world.wires[over].works = false;
            }
        }
        world.write();
        world
    }

    fn fault_at_end(&self) -> Option<String> {
        for (end, other) in [(0, 1), (1, 0)] {
            let stream = &self.ends[end].stream;
            let ended = stream.standing() == Standing::Finished
                && stream.received() == u64::from(self.all[other])
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
