//! A row of first-in-first-out links with cross traffic, in a few lines: what the truth tests of
//! this folder run against.
//!
//! A queue is Lindley's recursion over the arrivals of probes and cross packets; with constant
//! traffic and long trains it obeys the fluid equations, which `curve` is held against. Time that
//! passes without probes is jumped over, and the queue is given two thousand cross packets to
//! settle before the next one.

use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

use crate::{Arrival, Estimate, Estimator, Gaps, Instrument, Step, Train, TrainReport, Volley, VolleyReport};

/// The instant at which every run begins, ns.
const BEGIN: f64 = 1e9;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Traffic {
    Even,
    Poisson,
}

#[derive(Debug, Clone)]
pub(crate) struct Hop {
    pub(crate) capacity: f64,
    pub(crate) cross: f64,
    pub(crate) traffic: Traffic,
    /// Bytes of a cross packet.
    pub(crate) size: f64,
    /// Bytes.
    pub(crate) queue: f64,
    free: f64,
    next: f64,
}

impl Hop {
    pub(crate) fn new(capacity: f64, load: f64, traffic: Traffic) -> Self {
        let queue = (capacity / 8.0 * 0.1).max(64_000.0);
        Self { capacity, cross: capacity * load, traffic, size: 1000.0, queue, free: 0.0, next: 0.0 }
    }

    fn gap(&self, rng: &mut SplitMix64) -> f64 {
        let mean = self.size * 8.0 / self.cross * 1e9;
        let u = 1.0 - rng.unit();
        match self.traffic {
            Traffic::Even => mean,
            Traffic::Poisson => -mean * u.ln(),
        }
    }

    /// Lets cross traffic arrive until `at`.
    fn settle(&mut self, at: f64, rng: &mut SplitMix64) {
        if self.cross <= 0.0 {
            return;
        }
        let mean = self.size * 8.0 / self.cross * 1e9;
        if at - self.next > 2500.0 * mean {
            self.next = at - (2000.0 + rng.unit()) * mean;
        }
        let service = self.size * 8.0 / self.capacity * 1e9;
        while self.next <= at {
            let waits = (self.free - self.next).max(0.0) * self.capacity / 8e9;
            if waits <= self.queue {
                self.free = self.free.max(self.next) + service;
            }
            self.next += self.gap(rng);
        }
    }

    /// When a packet that comes `at` is through; `None` if there is no room.
    fn pass(&mut self, at: f64, bytes: f64, rng: &mut SplitMix64) -> Option<f64> {
        self.settle(at, rng);
        let waits = (self.free - at).max(0.0) * self.capacity / 8e9;
        if waits > self.queue {
            return None;
        }
        self.free = self.free.max(at) + bytes * 8.0 / self.capacity * 1e9;
        Some(self.free)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) hops: Vec<Hop>,
    /// ns from the first packet of a batch to its interrupt.
    pub(crate) coalescing: f64,
    pub(crate) loss: f64,
    /// Every so many ns the sender pauses for so many.
    pub(crate) hog: Option<(f64, f64)>,
    /// From this instant on the path is longer by so much, ns.
    pub(crate) detour: Option<(f64, f64)>,
    /// Tokens per second in bits, bucket in bytes.
    pub(crate) policer: Option<(f64, f64)>,
    /// One of so many packets is held back for this long, ns.
    pub(crate) reordering: Option<(u64, f64)>,
    /// From this instant on the cross traffic is multiplied so.
    pub(crate) swell: Option<(f64, f64)>,
    /// From the first instant to the second, ns, the receiver takes nothing. Then it takes
    /// everything that came meanwhile.
    stall: Option<(f64, f64)>,
    tokens: (f64, f64),
    rng: SplitMix64,
    rtt: f64,
    gap: f64,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) answer: Option<Estimate>,
    pub(crate) took: f64,
    pub(crate) bits: f64,
    pub(crate) volleys: u32,
}

pub(crate) fn instrument(capacity: f64) -> Instrument {
    Instrument {
        largest: 1500,
        smallest: 64,
        rtt: Span::from_millis(10),
        send_gap: Span(((1500.0 * 8.0 / capacity / 2.0 * 1e9) as i64).max(1)),
        send_error: Span(100),
        receive_error: Span(500),
        largest_burst: ((capacity / 8.0 * 0.05) as u64).max(150_000),
        max_load: 0.1,
        time_limit: Span::from_secs(60),
        carried: None,
    }
}

impl Path {
    pub(crate) fn new(hops: Vec<Hop>, seed: u64) -> Self {
        let fastest = hops.iter().map(|hop| hop.capacity).fold(f64::INFINITY, f64::min);
        Self {
            hops,
            coalescing: 0.0,
            loss: 0.0,
            hog: None,
            detour: None,
            policer: None,
            reordering: None,
            swell: None,
            stall: None,
            tokens: (0.0, 0.0),
            rng: SplitMix64::new(seed),
            rtt: 1e7,
            gap: instrument(fastest).send_gap.nanos() as f64,
        }
    }

    pub(crate) fn single(capacity: f64, load: f64, traffic: Traffic, seed: u64) -> Self {
        Self::new(vec![Hop::new(capacity, load, traffic)], seed)
    }

    /// Lets the receiver stall once: so long after the first packet may leave, and for so long, ns.
    pub(crate) fn stall_after(&mut self, after: f64, lasts: f64) {
        self.stall = Some((BEGIN + after, BEGIN + after + lasts));
    }

    /// When the packets of a train are sent, from `start` on.
    fn departures(&self, train: &Train, start: f64) -> Vec<f64> {
        let gaps: Box<dyn Iterator<Item = f64>> = match &train.gaps {
            Gaps::BackToBack => Box::new(std::iter::repeat(self.gap)),
            Gaps::Even(ps) => Box::new(std::iter::repeat(*ps as f64 / 1000.0)),
            Gaps::Each(each) => Box::new(each.iter().map(|ps| *ps as f64 / 1000.0)),
        };
        let mut due = start;
        let mut last = f64::MIN;
        std::iter::once(0.0)
            .chain(gaps)
            .take(train.packets as usize)
            .map(|gap| {
                due += gap;
                last = self.held_up(due.max(last + self.gap * 0.999));
                last
            })
            .collect()
    }

    fn held_up(&self, at: f64) -> f64 {
        let Some((every, pause)) = self.hog else { return at };
        let phase = at.rem_euclid(every);
        if phase < pause { at + pause - phase } else { at }
    }

    fn police(&mut self, at: f64, bytes: f64) -> bool {
        let Some((rate, bucket)) = self.policer else { return true };
        let (tokens, before) = self.tokens;
        let tokens = (tokens + (at - before) * rate / 8e9).min(bucket);
        let passes = tokens >= bytes;
        self.tokens = (if passes { tokens - bytes } else { tokens }, at);
        passes
    }

    fn cross(&mut self, at: f64, bytes: f64) -> Option<f64> {
        if let Some((_, by)) = self.swell.take_if(|(from, _)| at >= *from) {
            for hop in &mut self.hops {
                hop.cross *= by;
            }
        }
        if !self.police(at, bytes) || self.rng.unit() < self.loss {
            return None;
        }
        let rng = &mut self.rng;
        let mut through = self.hops.iter_mut().try_fold(at, |at, hop| hop.pass(at, bytes, rng))?;
        if let Some((_, by)) = self.detour.filter(|(from, _)| at >= *from) {
            through += by;
        }
        if let Some((one_of, by)) = self.reordering
            && self.rng.next_u64().is_multiple_of(one_of)
        {
            through += by;
        }
        if let Some((_, until)) = self.stall.filter(|(from, until)| (*from..*until).contains(&through)) {
            through = until;
        }
        Some(through)
    }

    /// What becomes of a volley that begins at `start`, and when its last packet has arrived.
    pub(crate) fn carry(&mut self, volley: &Volley, start: f64) -> (VolleyReport, f64) {
        let (mut at, mut over) = (start, start);
        let mut report = VolleyReport::default();
        let mut all = Vec::new();
        for (index, train) in volley.trains.iter().enumerate() {
            at += train.rest.nanos() as f64;
            let departures = self.departures(train, at);
            at = departures.last().copied().unwrap_or(at);
            for (number, due) in (0_u32..).zip(&departures) {
                if let Some(through) = self.cross(*due, f64::from(train.length)) {
                    over = over.max(through);
                    all.push((through, index, number));
                }
            }
            let sent = departures.iter().map(|due| Some(due.round() as i64)).collect();
            report.trains.push(TrainReport { sent, arrivals: Vec::new() });
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.hand_over(&all, &mut report);
        (report, over.max(at))
    }

    /// The receiver's clock is 77 s ahead.
    fn hand_over(&self, all: &[(f64, usize, u32)], report: &mut VolleyReport) {
        let mut interrupt = f64::MIN;
        let mut inside = 0.0;
        for (through, train, number) in all {
            if *through > interrupt {
                (interrupt, inside) = (*through + self.coalescing, 0.0);
            }
            let stamp = if self.coalescing > 0.0 { interrupt + inside } else { *through };
            inside += 20.0;
            report.trains[*train]
                .arrivals
                .push(Arrival { number: *number, at: 77_000_000_000 + stamp as i64 });
        }
    }

    /// Drives a method to its end.
    pub(crate) fn run(&mut self, method: &mut (impl Estimator + ?Sized)) -> Outcome {
        let (mut now, mut bits, mut volleys) = (BEGIN, 0.0, 0);
        let begin = now;
        while let Step::Volley { volley, due } = method.next(Mono(now as u64)) {
            let start = now.max(due.0 as f64) + self.rtt / 2.0;
            let (report, over) = self.carry(&volley, start);
            let back = over + self.coalescing + self.rtt / 2.0;
            now = back;
            bits += volley.bytes() as f64 * 8.0;
            volleys += 1;
            method.take(Mono(now as u64), &report, Span((back - start) as i64));
            assert!(volleys < 10_000, "no end");
        }
        Outcome { answer: method.answer(), took: (now - begin) / 1e9, bits, volleys }
    }
}

#[test]
fn a_long_train_is_stretched_as_the_fluid_says() {
    for (load, rate) in [(0.5, 8e7), (0.8, 4e7), (0.2, 9e7)] {
        let mut path = Path::single(1e8, load, Traffic::Even, 1);
        path.hops[0].queue = 1e9;
        let gap = (12_000.0 / rate * 1e12) as u64;
        let train = Train { packets: 2000, length: 1500, gaps: Gaps::Even(gap), rest: Span::ZERO };
        let (report, _) = path.carry(&Volley { trains: vec![train] }, 1e9);
        let arrivals = &report.trains[0].arrivals;
        let took = (arrivals[1999].at - arrivals[0].at) as f64 / 1e9;
        let stretch = took / (1999.0 * 12_000.0 / rate);
        let fluid = (1e8 * load + rate) / 1e8;
        assert!((stretch / fluid - 1.0).abs() < 2e-3, "{stretch} for {fluid}");
    }
}
