//! A path on a virtual clock for the tests of the engines: two links, a responder, a driver. It
//! knows the truth.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netaware_engine::{Engine, Input, NotSent, Output};
use netaware_stats::rng::SplitMix64;
use netaware_units::{ByteCount, ClockSource, Mono, RemoteMono, Span, Stamp};
use netaware_wire::datagram::EchoStamps;
use netaware_wire::echo;

/// One direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) delay: Span,
    /// Uniformly distributed, on top of `delay`.
    pub(crate) jitter: Span,
    /// Probability that a datagram vanishes.
    pub(crate) loss: f64,
    /// Probability that it comes twice.
    pub(crate) doubling: f64,
}

impl Link {
    pub(crate) fn of(delay: Span) -> Self {
        Self { delay, jitter: Span::ZERO, loss: 0.0, doubling: 0.0 }
    }

    fn arrivals(&self, at: Mono, rng: &mut SplitMix64) -> Vec<Mono> {
        let copies = if rng.unit() < self.loss { 0 } else { 1 + usize::from(rng.unit() < self.doubling) };
        (0..copies).map(|_| at + self.delay + Span((self.jitter.0 as f64 * rng.unit()) as i64)).collect()
    }
}

/// What happens to datagrams that are too big.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    /// Everything fits.
    None,
    /// IP packets above this vanish.
    Silent(u32),
    /// Above this the first vanishes and teaches the sender's system, which then refuses to send.
    Telling(u32),
}

#[derive(Debug, Clone)]
pub(crate) struct VirtualPath {
    pub(crate) forward: Link,
    pub(crate) reverse: Link,
    pub(crate) responder: Span,
    /// Payload of answers; absent: as long as their requests.
    pub(crate) response: Option<usize>,
    /// The responder stands still: what comes from the first instant to the second is answered at
    /// the second.
    pub(crate) stall: Option<(Mono, Mono)>,
    /// How long after its departure the transmit stamp of a request is known; may exceed the round
    /// trip.
    pub(crate) stamp_lag: Span,
    pub(crate) bottleneck: Bottleneck,
    /// IP and UDP headers, for the bottleneck.
    pub(crate) headers: u32,
    pub(crate) seed: u64,
    /// When to press Ctrl-C.
    pub(crate) stop_at: Option<Mono>,
}

impl VirtualPath {
    pub(crate) fn symmetric(delay: Span) -> Self {
        Self {
            forward: Link::of(delay),
            reverse: Link::of(delay),
            responder: Span::from_micros(30),
            response: None,
            stall: None,
            stamp_lag: Span::from_micros(5),
            bottleneck: Bottleneck::None,
            headers: 28,
            seed: 1,
            stop_at: None,
        }
    }

    /// Drives `engine` from `Mono(0)` until it is done; events come with their time.
    pub(crate) fn drive<E: Engine>(&self, engine: &mut E) -> Vec<(Mono, E::Event)> {
        Driver::new(self.clone()).run(engine)
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Request(Vec<u8>),
    Answer(Vec<u8>),
    Sent(u64, Mono),
    Refused(u64, u64),
    Stop,
}

struct Driver {
    path: VirtualPath,
    rng: SplitMix64,
    now: Mono,
    /// The number breaks ties, so that runs repeat exactly.
    agenda: BinaryHeap<Reverse<(Mono, u64, Happening)>>,
    added: u64,
    learnt: bool,
}

impl Driver {
    fn new(path: VirtualPath) -> Self {
        let rng = SplitMix64::new(path.seed);
        Self { path, rng, now: Mono(0), agenda: BinaryHeap::new(), added: 0, learnt: false }
    }

    fn add(&mut self, at: Mono, what: Happening) {
        self.added += 1;
        self.agenda.push(Reverse((at, self.added, what)));
    }

    fn run<E: Engine>(mut self, engine: &mut E) -> Vec<(Mono, E::Event)> {
        let mut events = Vec::new();
        let mut out = vec![0; 65_536];
        if let Some(at) = self.path.stop_at {
            self.add(at, Happening::Stop);
        }
        for _ in 0..MOST_STEPS {
            match engine.poll(self.now, &mut out) {
                Output::Event(event) => events.push((self.now, event)),
                Output::Send { len, tag, due } => self.send(engine, &out[..len], tag, due),
                Output::Train { .. } => panic!("no engine here sends trains"),
                Output::Wait(until) => self.advance(engine, until),
                Output::Done => return events,
            }
        }
        panic!("engine still not done at {:?}", self.now);
    }

    fn send<E: Engine>(&mut self, engine: &mut E, bytes: &[u8], tag: u64, due: Mono) {
        let leaves = due.max(self.now);
        let packet = bytes.len() as u32 + self.path.headers;
        let passes = match self.path.bottleneck {
            Bottleneck::None => true,
            Bottleneck::Silent(mtu) => packet <= mtu,
            Bottleneck::Telling(mtu) if packet > mtu && self.learnt => {
                return self.add(leaves, Happening::Refused(tag, u64::from(mtu)));
            }
            Bottleneck::Telling(mtu) => {
                self.learnt |= packet > mtu;
                packet <= mtu
            }
        };
        engine.handle(self.now, Input::Handed { tag, at: leaves - Span::from_micros(2) });
        self.add(leaves + self.path.stamp_lag, Happening::Sent(tag, leaves));
        if passes {
            for at in self.path.forward.arrivals(leaves, &mut self.rng) {
                self.add(at, Happening::Request(bytes.to_vec()));
            }
        }
    }

    fn advance<E: Engine>(&mut self, engine: &mut E, until: Mono) {
        let next = self.agenda.peek().map(|Reverse((at, ..))| *at);
        let Some(at) = next.filter(|at| *at <= until) else {
            self.now = self.now.max(until);
            return engine.handle(self.now, Input::Wake);
        };
        self.now = self.now.max(at);
        let Some(Reverse((_, _, what))) = self.agenda.pop() else { return };
        match what {
            Happening::Request(bytes) => self.answer(bytes),
            Happening::Answer(bytes) => {
                let rx = Stamp { at: self.now, by: ClockSource::Kernel, error: Span(50) };
                // The program wakes up a little later than the packet arrives.
                self.now += WAKE_UP;
                engine.handle(self.now, Input::Datagram { bytes: &bytes, rx, ttl: Some(57) });
            }
            Happening::Sent(tag, at) => {
                let tx = Stamp { at, by: ClockSource::Kernel, error: Span(50) };
                engine.handle(self.now, Input::Sent { tag, tx });
            }
            Happening::Refused(tag, mtu) => {
                let why = NotSent::TooBig(Some(ByteCount(mtu)));
                engine.handle(self.now, Input::NotSent { tag, why });
            }
            Happening::Stop => engine.handle(self.now, Input::Stop),
        }
    }

    /// The responder's clock runs from another zero.
    fn answer(&mut self, mut bytes: Vec<u8>) {
        let stalled = self.path.stall.filter(|(from, to)| (*from..*to).contains(&self.now));
        let held = self.path.responder + stalled.map_or(Span::ZERO, |(_, to)| to.since(self.now));
        let received_at = RemoteMono(self.now.0.wrapping_add(ELSEWHERE));
        let answered_at = RemoteMono(received_at.0 + held.0.cast_unsigned());
        let stamps = EchoStamps { received_at, answered_at, ttl: 61, kernel_stamp: true };
        let request = bytes.len();
        let response = self.path.response.unwrap_or(request);
        bytes.resize(request.max(response), 0);
        echo::answer(&mut bytes, request, response, FLOW, &stamps).expect("a request");
        bytes.truncate(response);
        for at in self.path.reverse.arrivals(self.now + held, &mut self.rng) {
            self.add(at, Happening::Answer(bytes.clone()));
        }
    }
}

/// Of every engine here that has one; short requests do not carry it.
pub(crate) const FLOW: u32 = 7;
/// From the kernel's receive stamp to the program's.
pub(crate) const WAKE_UP: Span = Span::from_micros(8);
const ELSEWHERE: u64 = 1 << 60;
const MOST_STEPS: usize = 3_000_000;
