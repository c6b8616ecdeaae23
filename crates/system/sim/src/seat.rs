//! An engine in its place: its host's clock, what it wants sent, and when it wants to be woken.

use netaware_engine::{Engine, Input, NotSent, Output, Tag};
use netaware_netmodel::Side;
use netaware_units::{ByteCount, ClockSource, Mono, Span, Stamp};

use crate::clock::LocalClock;
use crate::planned::{Planned, Turn};

pub(crate) struct Seat<'a, E: Engine> {
    pub(crate) side: Side,
    engine: &'a mut E,
    clock: LocalClock,
    planned: Planned,
    /// True time.
    wake_at: Mono,
    pub(crate) done: bool,
    out: Vec<u8>,
}

/// A datagram whose time has come.
pub(crate) struct Ready {
    pub(crate) tag: Tag,
    pub(crate) bytes: Vec<u8>,
    due: Mono,
}

impl<'a, E: Engine> Seat<'a, E> {
    pub(crate) fn new(side: Side, engine: &'a mut E, clock: LocalClock) -> Self {
        Self {
            side,
            engine,
            clock,
            planned: Planned::default(),
            wake_at: NEVER,
            done: false,
            out: vec![0; LARGEST],
        }
    }

    /// When it has something to send, or wants to be woken: true time.
    pub(crate) fn next_at(&self) -> Mono {
        if self.done {
            return NEVER;
        }
        self.send_at().min(self.wake_at)
    }

    fn send_at(&self) -> Mono {
        self.planned.next_due().map_or(NEVER, |due| self.clock.when(due))
    }

    /// The first promise: after every `handle`, `poll` until it waits or is done.
    pub(crate) fn feed(&mut self, at: Mono, input: Input<'_>, on_event: &mut dyn FnMut(E::Event)) {
        if self.done {
            return;
        }
        let now = self.clock.reading(at);
        self.engine.handle(now, input);
        loop {
            match self.engine.poll(now, &mut self.out) {
                Output::Send { len, tag, due } => {
                    self.planned.single(due, tag, &self.out[..len.min(LARGEST)]);
                }
                Output::Train { count, len, gap, tag, due } => self.planned.train(due, tag, count, len, gap),
                Output::Event(event) => on_event(event),
                // Whoever wants to be woken in the past wants time to pass, which here nothing else
                // sees to.
                Output::Wait(until) if until <= now => {
                    self.wake_at = at + COMING_ROUND;
                    return;
                }
                Output::Wait(until) => {
                    self.wake_at = self.clock.when(until);
                    return;
                }
                Output::Done => {
                    self.done = true;
                    return;
                }
            }
        }
    }

    /// Takes the next datagram if it is due at the true instant `at`. It must be answered by `sent`
    /// or `not_sent`.
    pub(crate) fn take_due(&mut self, at: Mono) -> Option<Ready> {
        if self.done || self.send_at() > at {
            return None;
        }
        Some(match self.planned.pop()? {
            Turn::Single { due, tag, bytes } => Ready { tag, bytes, due },
            Turn::OfTrain { due, tag, len } => {
                let written = self.engine.fill(tag, &mut self.out[..len.min(LARGEST)]).min(len);
                let mut bytes = self.planned.buffer();
                bytes.extend_from_slice(&self.out[..written]);
                Ready { tag, bytes, due }
            }
        })
    }

    /// It has left; `tag` and `due` are those of the [`Ready`].
    pub(crate) fn sent(&mut self, at: Mono, tag: Tag, due: Mono, on_event: &mut dyn FnMut(E::Event)) {
        let now = self.clock.reading(at);
        if now > due {
            self.feed(at, Input::Handed { tag, at: now }, on_event);
        }
        self.feed(at, Input::Sent { tag, tx: stamp(now) }, on_event);
    }

    /// It is larger than the path MTU that the host knows.
    pub(crate) fn too_big(&mut self, at: Mono, ready: Ready, mtu: u32, on_event: &mut dyn FnMut(E::Event)) {
        let why = NotSent::TooBig(Some(ByteCount(u64::from(mtu))));
        self.planned.recycle(ready.bytes);
        self.feed(at, Input::NotSent { tag: ready.tag, why }, on_event);
    }

    /// A datagram has come.
    pub(crate) fn receive(
        &mut self,
        at: Mono,
        arrived_at: Mono,
        bytes: &[u8],
        ttl: u8,
        on_event: &mut dyn FnMut(E::Event),
    ) {
        let rx = stamp(self.clock.reading(arrived_at));
        self.feed(at, Input::Datagram { bytes, rx, ttl: Some(ttl) }, on_event);
    }

    pub(crate) fn wake_if_due(&mut self, at: Mono, on_event: &mut dyn FnMut(E::Event)) {
        if at >= self.wake_at {
            self.feed(at, Input::Wake, on_event);
        }
    }

    pub(crate) fn recycle(&mut self, bytes: Vec<u8>) {
        self.planned.recycle(bytes);
    }
}

impl Ready {
    pub(crate) const fn due(&self) -> Mono {
        self.due
    }
}

/// The best that a kernel could do.
const fn stamp(at: Mono) -> Stamp {
    Stamp { at, by: ClockSource::Kernel, error: Span::ZERO }
}

pub(crate) const NEVER: Mono = Mono(u64::MAX);
/// What a host takes at least to come round to the same thing again.
const COMING_ROUND: Span = Span::from_micros(1);
/// No UDP datagram is longer.
const LARGEST: usize = 65_535;
