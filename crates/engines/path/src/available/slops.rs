//! Available bandwidth as a range: does the delay rise during a stream of this rate?
//!
//! **Measures** the rates between which streams are now held up and now not: the range in which the
//! available bandwidth moved, averaged over one stream each. **Assumes** one tight link, first in
//! first out, and cross traffic that does not react; no stamp but its own host's is compared, so
//! clocks need no agreement. **Biased** low under heavy load, where bursts look like trends; a
//! shaper's credit is read as bandwidth. **Published**: Jain and Dovrolis, "End-to-end available
//! bandwidth" (SIGCOMM 2002) and "Pathload" (PAM 2002); with arrivals in batches only each batch's
//! last packet counts. Where we differ: fleets leave as one volley, begin near (as
//! [`Curve`](super::Curve) does) and not at the dispersion rate, are smaller, and packets stay
//! large, for those of others are.

mod answer;
mod fleet;
mod search;
#[cfg(test)]
mod tests;

use netaware_stats::interval::Interval;
use netaware_stats::moments::Moments;
use netaware_units::{Mono, Span};

use crate::available::approach::{Approach, Found};
use crate::available::budget::Budget;
use crate::available::health::Health;
use crate::available::passage::Passage;
use crate::available::sender::{Sender, duration};
use crate::{Bound, Estimate, Estimator, Flag, Instrument, Needs, Step, Train, Volley, VolleyReport};

use fleet::Fleet;
use search::{Search, Verdict};

/// The estimator.
#[derive(Debug, Clone)]
pub struct Slops {
    instrument: Instrument,
    sender: Sender,
    budget: Budget,
    health: Health,
    approach: Approach,
    search: Option<Search>,
    fleet: Fleet,
    /// Packets that a stream needs at least to be seen, of the largest length.
    packets: u32,
    longer: u32,
    asked: Volley,
    repeated: bool,
    fleets: u32,
    /// Variances of the streams' stretches, by fleet.
    scatter: Vec<f64>,
    /// How long the streams of all fleets lasted together.
    watched: Span,
    /// Another method has said where to look.
    confirms: bool,
    /// It has met next to no traffic: few streams confirm that, and short ones.
    steady: bool,
    /// Fleets above the available bandwidth: rate, and what its streams were stretched by.
    strained: Vec<(f64, Moments)>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Approaching,
    Searching,
    Content,
    /// Time ended first.
    OutOfTime,
    /// Streams cannot be judged.
    Blind,
}

impl Slops {
    /// It takes no longer by itself.
    pub const LONGEST: Span = Span::from_secs(15);
    /// What a first figure needs.
    pub const NEEDS: Needs = Needs { packets: 1100, train: 20, rounds: 12 };

    /// The longest that it takes by itself on a path like this.
    pub fn longest(instrument: &Instrument) -> Span {
        instrument.longest(Self::LONGEST, Self::NEEDS.packets, Self::NEEDS.rounds)
    }

    /// For hosts like these. It takes 15 s, or what the instrument allows if that is less.
    pub fn new(instrument: &Instrument) -> Self {
        let sender = Sender::new(instrument);
        Self {
            instrument: instrument.clone(),
            approach: Approach::new(&sender),
            sender,
            budget: Budget::new(instrument, Self::longest(instrument)),
            health: Health::default(),
            search: None,
            fleet: Fleet::default(),
            packets: 0,
            longer: 1,
            asked: Volley::default(),
            repeated: false,
            fleets: 0,
            scatter: Vec::new(),
            watched: Span::ZERO,
            confirms: false,
            steady: false,
            strained: Vec::new(),
            state: State::Approaching,
        }
    }

    /// One that begins where another method ended: `available` is looked for first, at a path of
    /// `capacity` bit/s whose trains need `packets` to be seen.
    pub(crate) fn confirming(
        instrument: &Instrument,
        available: &Interval,
        capacity: f64,
        packets: u32,
    ) -> Self {
        let mut slops = Self::new(instrument);
        slops.packets = packets;
        slops.confirms = true;
        slops.steady = available.width() <= STEADY * available.estimate;
        slops.start(available.estimate, capacity);
        if let Some(search) = &mut slops.search {
            search.expect(available.lo, available.hi);
        }
        slops
    }

    /// A method that met next to no traffic has said where the truth is, and the first streams
    /// below and above it agreed.
    pub(crate) fn is_certain(&self) -> bool {
        self.steady && self.search.as_ref().is_some_and(Search::is_confirmed)
    }

    /// What another method's trains met before.
    pub(crate) fn follow(&mut self, health: &Health) {
        self.health = Health::after(health);
    }

    /// Trains have arrived at this rate, bit/s: the load is reckoned by it.
    pub(crate) fn arrived(&mut self, rate: f64) {
        self.budget.knows(rate);
    }

    /// IP bytes sent.
    pub(crate) fn bytes(&self) -> u64 {
        self.budget.bytes
    }

    fn start(&mut self, available: f64, capacity: f64) {
        self.search = Some(Search::new(available, capacity, self.sender.fastest));
        self.state = State::Searching;
    }

    fn compose(&self, now: Mono) -> Volley {
        match (&self.search, self.state) {
            (Some(search), State::Searching) => self.streams(search.rate(), now),
            _ => Volley { trains: vec![self.approach.train(&self.sender)] },
        }
    }

    /// A fleet at `rate`: streams of equal length in time, each with a rest in which its queue
    /// drains.
    fn streams(&self, rate: f64, now: Mono) -> Volley {
        let bits = self.stream_bits(rate, now);
        // Small packets only where bytes are scarce, and none that the host could not send fast
        // enough.
        let slowest = rate * ROOM / self.sender.fastest * f64::from(self.sender.length);
        let length =
            (bits / 8.0 / FEWEST_PACKETS).max(slowest).max(SMALLEST).min(f64::from(self.sender.length));
        let sender = Sender::with_length(&self.instrument, length as u32);
        // A queue that holds less than the fewest is not to overflow.
        let packets = (bits / sender.bits()).max(FEWEST_PACKETS).min(f64::from(sender.longest)) as u32;
        let bits = f64::from(packets) * sender.bits();
        let lasts = Span::from_secs_f64(bits / rate);
        let rest = self.budget.rest(bits, lasts).max(lasts);
        let train: Train = sender.train(rate, packets, rest);
        let streams = if self.steady && !self.repeated { STEADY_STREAMS } else { STREAMS };
        Volley { trains: vec![train; streams] }
    }

    fn stream_bits(&self, rate: f64, now: Mono) -> f64 {
        let share = self.budget.bits_left(now) / (FLEETS_LEFT * STREAMS as f64);
        let full = f64::from(self.sender.length) * 8.0 * PACKETS;
        let batches = BATCHES * self.health.period().secs_f64() * rate;
        let seen = f64::from(self.packets) * self.sender.bits();
        let shortest = if self.steady { STEADY_SHORTEST } else { SHORTEST };
        let read = rate * shortest.secs_f64().max(READ * self.instrument.stamp_error() / 1e9);
        let wanted = full.max(batches).max(seen).max(read) * f64::from(self.longer);
        // Where bytes are scarce streams are shorter, unless nothing could be seen in them then.
        wanted.min(share.max(batches).max(seen))
    }

    fn take_approach(&mut self, passage: &Passage, now: Mono) {
        let packets = (self.budget.bits_left(now) / APPROACH_SHARE / self.sender.bits()) as u32;
        self.approach.take(passage, &self.sender, packets.min(APPROACH_PACKETS));
        if let Some((rate, packets)) = self.approach.arrival {
            self.budget.saw(rate, packets);
        }
        match self.approach.found() {
            None => {}
            Some(Found::Near { available, capacity }) => {
                let packets = self.approach.packets();
                self.packets = if packets > APPROACH_PACKETS { packets } else { 0 };
                self.start(available, capacity);
            }
            Some(_) => self.state = State::Content,
        }
    }

    fn take_fleet(&mut self, report: &VolleyReport) {
        let (Some(search), Some(first)) = (&mut self.search, self.asked.trains.first()) else { return };
        let planned = first_rate(first);
        self.fleet = Fleet::default();
        for (train, report) in self.asked.trains.iter().zip(&report.trains) {
            let passage = Passage::of(train, report);
            self.health.saw(&passage);
            self.fleet.saw(&passage);
            self.watched += duration(train, f64::from(train.length) * 8.0, self.sender.fastest);
        }
        let rate = self.fleet.rate().unwrap_or(planned);
        match self.fleet.verdict() {
            Some(verdict) => {
                search.take(rate, verdict);
                self.repeated = false;
                self.fleets += 1;
                self.scatter.extend(self.fleet.scatter());
                if verdict == Verdict::Above {
                    self.strained.push((rate, *self.fleet.stretches()));
                }
                if search.is_over() || self.fleets >= MOST_FLEETS {
                    self.state = State::Content;
                }
            }
            None if self.repeated => self.state = State::Blind,
            None => {
                self.repeated = true;
                self.longer = self.longer.saturating_mul(3);
            }
        }
    }
}

impl Estimator for Slops {
    fn next(&mut self, now: Mono) -> Step {
        self.budget.begin(now);
        if !matches!(self.state, State::Approaching | State::Searching) {
            return Step::Done;
        }
        let volley = self.compose(now);
        let Some(due) = self.budget.due(now, &volley, &self.sender) else {
            self.state = State::OutOfTime;
            return Step::Done;
        };
        self.budget.charge(&volley);
        self.asked = volley.clone();
        Step::Volley { volley, due }
    }

    fn prolong(&mut self, limit: Span) -> bool {
        if self.state != State::OutOfTime || !self.budget.prolong(limit) {
            return false;
        }
        self.state = if self.search.is_some() { State::Searching } else { State::Approaching };
        true
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, _took: Span) {
        self.budget.heard(now);
        if self.state == State::Searching {
            self.take_fleet(report);
        } else if let (Some(train), Some(report)) = (self.asked.trains.first(), report.trains.first()) {
            let passage = Passage::of(train, report);
            self.health.saw(&passage);
            self.take_approach(&passage, now);
        }
    }

    fn answer(&self) -> Option<Estimate> {
        if let Some(range) = self.search.as_ref().and_then(|search| self.range(search)) {
            return Some(range);
        }
        match self.approach.so_far()? {
            Found::AtLeast { rate, why } => Some(self.at_least(rate, why)),
            Found::Near { available, .. } => {
                let (lo, hi) = (available * 0.5, available * 1.5);
                let rate = Interval { estimate: available, lo, hi, confidence: CONFIDENCE };
                Some(self.estimate(rate, Bound::None, vec![Flag::Noisy]))
            }
            Found::Nothing => None,
        }
    }
}

/// bit/s of a train with even gaps, as planned.
fn first_rate(train: &Train) -> f64 {
    match train.gaps {
        crate::Gaps::Even(ps) if ps > 0 => f64::from(train.length) * 8.0 / ps as f64 * 1e12,
        _ => 0.0,
    }
}

/// Streams of a fleet. Pathload has 12.
const STREAMS: usize = 8;
/// Of a fleet that confirms what hardly varies: three decide.
const STEADY_STREAMS: usize = 5;
/// An interval that is no wider leaves no room for bursts.
const STEADY: f64 = 0.05;
/// Without bursts a stream is long enough when its trend shows.
const STEADY_SHORTEST: Span = Span::from_micros(1250);
/// Packets of a stream. Pathload has 100.
const PACKETS: f64 = 70.0;
/// A stream of fewer cannot have a trend.
const FEWEST_PACKETS: f64 = 40.0;
/// Hosts should be faster than a stream by this.
const ROOM: f64 = 1.3;
/// Smaller packets say more of others' packets than of the link, bytes.
const SMALLEST: f64 = 1000.0;
/// A shorter stream sees bursts and not what is left on average.
const SHORTEST: Span = Span::from_micros(2500);
/// A stream lasts so many times what its stamps err.
const READ: f64 = 600.0;
/// Batches that a stream should have.
const BATCHES: f64 = 12.0;
/// Fleets that bytes are kept for.
const FLEETS_LEFT: f64 = 6.0;
/// More fleets find nothing new.
const MOST_FLEETS: u32 = 7;
/// What the approach may spend, one of so many parts a round.
const APPROACH_SHARE: f64 = 60.0;
/// Packets of a train of the approach.
const APPROACH_PACKETS: u32 = 100;
/// Of a range there is none that could be computed; nine of ten are expected to hold the truth.
const CONFIDENCE: f64 = 0.9;
