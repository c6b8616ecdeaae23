//! The largest IP packet that passes there and back unfragmented.
//!
//! **Measures** which sizes of echo requests, sent with "don't fragment", are answered by an answer
//! as long. **Assumes** that the responder forbids fragmentation too (else only the way there is
//! tested), that a size which passes once always passes, and that losses by chance do not depend on
//! the size: a size fails only by tries in which a smaller one was answered, and only after so many
//! that chance does not explain it. **Biased** low on a path that loses much, where the time may be
//! over before that is so: then no black hole is found. An answer that comes after its time is
//! taken as proof all the same and the search goes on with more patience. A path wider than the
//! believed MTU is not found out: the system refuses to send such packets. **Published**: RFC 4821
//! and RFC 8899 (packetization-layer discovery: probes of our own rather than trust in ICMP),
//! RFC 1191, RFC 8201. Where we differ: sizes are tried several at once, common ones first, so that
//! a black hole costs seconds and not minutes.

mod bounds;
mod losses;

use std::collections::VecDeque;

use netaware_engine::{Engine, Input, NotSent, Output};
use netaware_record::{IpVersion, MtuFinding};
use netaware_units::{Mono, Span};
use netaware_wire::datagram::{ECHO_LEN, Header, Kind, MAX_PAYLOAD};

use bounds::{Bounds, Failure};
use losses::Losses;

/// What to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathMtuPlan {
    /// Number of the flow, from its set-up.
    pub flow: u32,
    /// Sets the headers and the smallest size tried: 576 (IPv4) or 1280 (IPv6).
    pub version: IpVersion,
    /// What the system believes (`IP_MTU`); the search starts here. Cut to the largest datagram
    /// there is.
    pub believed: u32,
    /// How long each try is awaited; at least twice the round trip.
    pub timeout: Span,
    /// How long the search may take in all; when it is over, what has passed so far is the result.
    pub budget: Span,
    /// When to begin.
    pub start: Mono,
}

impl PathMtuPlan {
    /// A search over a path that took `connect` to answer a small packet. Its patience and its time
    /// follow the path: the tries of the believed size are always awaited to their end, and then
    /// those that prove its failure. So a black hole is found on every path that loses nothing
    /// else, if not its exact edge.
    pub fn following(flow: u32, version: IpVersion, believed: u32, connect: Span, start: Mono) -> Self {
        let timeout = SHORTEST_TRY.max((connect * 3).min(connect + LONGEST_BEYOND));
        let budget = SHORTEST_BUDGET.max(timeout * i64::from(TRIES + MOST_TO_PROVE));
        Self { flow, version, believed, timeout, budget, start }
    }

    /// Bytes that the buffer given to `poll` must hold.
    pub fn longest_datagram(&self) -> usize {
        self.payload_of(self.top())
    }

    fn headers(&self) -> u32 {
        self.version.header_len() + UDP_HEADER
    }

    fn payload_of(&self, packet: u32) -> usize {
        packet.saturating_sub(self.headers()) as usize
    }

    /// The believed MTU, as far as a datagram can use it.
    fn top(&self) -> u32 {
        self.believed.clamp(self.headers() + ECHO_LEN as u32, self.headers() + MAX_PAYLOAD as u32)
    }

    fn floor(&self) -> u32 {
        match self.version {
            IpVersion::V4 => 576,
            IpVersion::V6 => 1280,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathMtu {
    /// Largest IP packet that was answered; `None` if none was. A lower bound when the budget ended
    /// the search.
    pub mtu: Option<u32>,
    /// How that compares with what the system believed.
    pub finding: MtuFinding,
    /// Smallest IP packet that was tried and not answered, where that is the bound.
    pub vanishes: Option<u32>,
    /// Datagrams sent.
    pub sent: u32,
}

/// The engine. Its one event is the result.
#[derive(Debug)]
pub struct PathMtuSearch {
    plan: PathMtuPlan,
    bounds: Bounds,
    /// Doubled when an answer comes after its time.
    timeout: Span,
    /// Sizes being tried and not yet answered or refused.
    sweep: Vec<u32>,
    tries: u32,
    /// Tries of the sweep in which a smaller size was answered.
    tries_that_count: u32,
    to_send: VecDeque<u32>,
    /// When the present try of the sweep is over.
    try_ends_at: Mono,
    /// The number of its first datagram.
    try_begins_with: usize,
    /// By their numbers.
    sent: Vec<Request>,
    /// Of sizes that pass.
    losses: Losses,
    reported: bool,
    stopped: bool,
}

/// A datagram that was sent.
#[derive(Debug, Clone, Copy)]
struct Request {
    size: u32,
    sent_at: Mono,
    is_answered: bool,
}

impl PathMtuSearch {
    /// A search that has not begun.
    pub fn new(plan: PathMtuPlan) -> Self {
        Self {
            bounds: Bounds::new(plan.top(), plan.floor().min(plan.top())),
            timeout: plan.timeout.max(Span(1)),
            plan,
            sweep: Vec::new(),
            tries: 0,
            tries_that_count: 0,
            to_send: VecDeque::new(),
            try_ends_at: plan.start,
            try_begins_with: 0,
            sent: Vec::new(),
            losses: Losses::default(),
            reported: false,
            stopped: false,
        }
    }

    fn result(&self) -> PathMtu {
        PathMtu {
            mtu: self.bounds.passed(),
            finding: self.bounds.finding(),
            vanishes: self.bounds.vanishes(),
            sent: self.sent.len() as u32,
        }
    }

    fn is_over(&self, now: Mono) -> bool {
        self.stopped || now >= self.plan.start + self.plan.budget || self.sent.len() >= MOST_DATAGRAMS
    }

    /// Ends a try whose time is over, or a sweep that is settled, and chooses what to send next.
    /// False when nothing is left to find out.
    fn go_on(&mut self, now: Mono) -> bool {
        if !self.sweep.is_empty() && now >= self.try_ends_at {
            self.end_try();
        }
        if self.sweep.is_empty() {
            self.sweep = self.bounds.next_sizes();
            (self.tries, self.tries_that_count) = (0, 0);
            // A sweep that is settled early leaves nothing to wait for.
            self.try_ends_at = now;
        }
        if !self.sweep.is_empty() && now >= self.try_ends_at {
            self.tries += 1;
            self.try_begins_with = self.sent.len();
            self.to_send.extend(&self.sweep);
            // It goes last: where a queue overflows, the try does not count.
            self.to_send.extend(self.bounds.passed());
            self.try_ends_at = now + self.timeout;
        }
        !self.sweep.is_empty()
    }

    /// Sizes without an answer fail together, because all of them were in the same tries. Before
    /// anything has passed nobody can tell whether they are lost or everything is: then their
    /// failure is a doubtful one.
    fn end_try(&mut self) {
        let why = if let Some(passed) = self.bounds.passed() {
            let those_that_pass = self.sent[self.try_begins_with..].iter().filter(|it| it.size <= passed);
            let (sent, answered) = those_that_pass
                .fold((0, 0), |(sent, answered), it| (sent + 1, answered + usize::from(it.is_answered)));
            self.losses.observe(sent, answered);
            self.tries_that_count += u32::from(answered > 0);
            if self.losses.chance_of(self.tries_that_count) >= BAD_LUCK {
                return;
            }
            Failure::Silent
        } else {
            Failure::Doubtful
        };
        if self.tries >= TRIES {
            for size in std::mem::take(&mut self.sweep) {
                self.bounds.fail(size, why);
            }
        }
    }

    fn send(&mut self, now: Mono, size: u32, out: &mut [u8]) -> Output<PathMtu> {
        let (len, seq) = (self.plan.payload_of(size), self.sent.len() as u64);
        self.sent.push(Request { size, sent_at: now, is_answered: false });
        out[..len].fill(0);
        Header { kind: Kind::EchoRequest, flow: self.plan.flow, seq, sent_at: now.0 }.emit(&mut out[..len]);
        Output::Send { len, tag: seq, due: now }
    }

    fn number_of(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq).ok().filter(|number| *number < self.sent.len())
    }

    fn take_datagram(&mut self, now: Mono, bytes: &[u8]) {
        let Ok(header) = Header::parse(bytes) else { return };
        let Some(number) = self.number_of(header.seq) else { return };
        let Request { size, sent_at, .. } = self.sent[number];
        let ours =
            header.kind == Kind::EchoReply && header.flow == self.plan.flow && header.sent_at == sent_at.0;
        if !ours || bytes.len() != self.plan.payload_of(size) {
            return;
        }
        self.sent[number].is_answered = true;
        let is_late = number < self.try_begins_with;
        if self.bounds.pass(size) && is_late {
            self.timeout = self.timeout * 2;
            self.abandon_sweep();
        } else {
            self.follow(now - sent_at);
        }
        self.settle(|open| open <= size);
    }

    /// What an answer took bounds how long the next ones are awaited.
    fn follow(&mut self, took: Span) {
        let wait = took + (took / 4).max(SHORTEST_TRY);
        self.timeout = if took > self.timeout { wait } else { self.timeout.min(wait) };
    }

    fn take_refusal(&mut self, tag: u64, why: NotSent) {
        let Some(number) = self.number_of(tag) else { return };
        let size = self.sent[number].size;
        match why {
            NotSent::TooBig(told) => {
                let told = told.and_then(|mtu| u32::try_from(mtu.0).ok());
                self.bounds.told(size, told);
                let too_big = self.bounds.smallest_failed();
                self.settle(|open| open >= too_big);
            }
            // The tries go on; if the last one is refused too, that is what the size failed of.
            _ if self.tries >= TRIES && self.sweep.contains(&size) => {
                self.bounds.fail(size, Failure::Refused);
                self.settle(|open| open == size);
            }
            _ => {}
        }
    }

    fn settle(&mut self, settled: impl Fn(u32) -> bool) {
        self.sweep.retain(|size| !settled(*size));
        self.to_send.retain(|size| !settled(*size));
    }

    fn abandon_sweep(&mut self) {
        self.sweep.clear();
        self.to_send.clear();
    }
}

impl Engine for PathMtuSearch {
    type Event = PathMtu;

    fn handle(&mut self, now: Mono, input: Input<'_>) {
        match input {
            Input::Stop => self.stopped = true,
            Input::Datagram { bytes, .. } => self.take_datagram(now, bytes),
            Input::NotSent { tag, why } => self.take_refusal(tag, why),
            Input::Wake | Input::Handed { .. } | Input::Sent { .. } => {}
        }
    }

    /// # Panics
    /// When `out` is shorter than [`PathMtuPlan::longest_datagram`].
    fn poll(&mut self, now: Mono, out: &mut [u8]) -> Output<PathMtu> {
        if self.reported {
            return Output::Done;
        }
        if now < self.plan.start && !self.stopped {
            return Output::Wait(self.plan.start);
        }
        if self.is_over(now) || !self.go_on(now) {
            self.reported = true;
            return Output::Event(self.result());
        }
        match self.to_send.pop_front() {
            Some(size) => self.send(now, size, out),
            None => Output::Wait(self.try_ends_at.min(self.plan.start + self.plan.budget)),
        }
    }
}

/// RFC 768.
const UDP_HEADER: u32 = 8;
/// A size has at least so many tries: at 5 % random loss each way one of a thousand has no answer.
const TRIES: u32 = 3;
/// A size has failed once it is less likely than this that its packets were lost by chance.
const BAD_LUCK: f64 = 0.001;
/// Once the believed size had its tries, so many more show that it fails on a path that loses
/// nothing else: one in which a size passes, and four with a single smaller size in each.
const MOST_TO_PROVE: u32 = 5;
/// A try is awaited three round trips, at least this long; on a long path a round trip and as much
/// as a slow link may need for a large packet there and back.
const SHORTEST_TRY: Span = Span::from_millis(100);
const LONGEST_BEYOND: Span = Span::from_millis(500);
/// A search on a short path takes this long at most.
const SHORTEST_BUDGET: Span = Span::from_secs(3);
/// No search needs a tenth of it; bounds what forged answers could make us send.
const MOST_DATAGRAMS: usize = 1000;

#[cfg(test)]
mod tests;
