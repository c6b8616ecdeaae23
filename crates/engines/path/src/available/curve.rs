//! Available bandwidth from how much longer trains take to arrive than to leave, against their
//! rate.
//!
//! **Measures** the available bandwidth and the capacity of the tight link. Above the available
//! bandwidth A a train of rate R is stretched by 1 + (R - A) / C; a line through trains of several
//! rates has both. **Assumes** one tight link, first in first out, with cross traffic that does not
//! react. **Biased**: where the queue runs empty during a train the stretch is too large and A too
//! low; so the first quarter of each train does not count, and rates keep a distance from A of
//! twice what chance makes of one train. Several tight links make the line steeper, so that C reads
//! low and A hardly moves. **Published**: feedback convergence, Jin and Tierney (LBNL 2002, IMC
//! 2003); regression, TOPP (Melander, Björkman and Gunningberg 2000) and DietTopp (Johnsson et al.
//! 2004). Where we differ: trains are chosen by strain, not by rate, rates are those of the actual
//! send stamps, and the interval is a jackknife over trains.

mod answer;
mod narrow;
mod plan;
#[cfg(test)]
mod tests;

use netaware_stats::interval::Interval;
use netaware_units::{Mono, Span};

use crate::available::approach::{Approach, Ceiling, Found};
use crate::available::budget::Budget;
use crate::available::health::Health;
use crate::available::line::{Fit, Fitter, Sample};
use crate::available::passage::{Passage, Unusable};
use crate::available::sender::Sender;
use crate::{Estimate, Estimator, Instrument, Needs, Step, Volley, VolleyReport};

use narrow::Reading;
use plan::Plan;

/// The tight link, as the line through the trains has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TightLink {
    /// bit/s of the IP layer.
    pub capacity: Interval,
    /// Share of the stretches' variance that the line explains, 0..=1. Low on an idle path with
    /// noisy stamps too.
    pub quality: f64,
}

impl TightLink {
    /// Itself, unless its interval is wider than the figure: from nothing to a multiple of what may
    /// be true is no figure, and there is no bound of a tight link. Nor is a line that explains
    /// nothing of what the trains met.
    pub fn known(self) -> Option<Self> {
        let Interval { estimate, lo, hi, .. } = self.capacity;
        (lo > 0.0 && hi - lo <= estimate && self.quality > 0.0).then_some(self)
    }
}

/// The estimator.
#[derive(Debug, Clone)]
pub struct Curve {
    sender: Sender,
    budget: Budget,
    health: Health,
    approach: Approach,
    /// Standard error of a train's ends, ns.
    stamp_error: f64,
    plan: Plan,
    samples: Vec<Sample>,
    asked: Volley,
    too_short: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Approaching,
    Fitting,
    Done(End),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Content,
    OutOfTime,
}

impl Curve {
    /// It takes no longer by itself.
    pub const LONGEST: Span = Span::from_secs(5);
    /// What a first figure needs.
    pub const NEEDS: Needs = Needs { packets: 240, train: 8, rounds: 10 };

    /// The longest that it takes by itself on a path like this.
    pub fn longest(instrument: &Instrument) -> Span {
        instrument.longest(Self::LONGEST, Self::NEEDS.packets, Self::NEEDS.rounds)
    }

    /// For hosts like these. It takes 5 s, or what the instrument allows if that is less.
    pub fn new(instrument: &Instrument) -> Self {
        let sender = Sender::new(instrument);
        let stamp_error = instrument.stamp_error();
        Self {
            approach: Approach::new(&sender),
            sender,
            budget: Budget::new(instrument, Self::longest(instrument)),
            health: Health::default(),
            stamp_error: stamp_error * std::f64::consts::SQRT_2,
            plan: Plan::new(stamp_error),
            samples: Vec::new(),
            asked: Volley::default(),
            too_short: 0,
            state: State::Approaching,
        }
    }

    /// Whether it ended because time did.
    pub(crate) fn was_cut_short(&self) -> bool {
        self.state == State::Done(End::OutOfTime) && self.samples.len() < ENOUGH_TRAINS
    }

    /// Another method has sent so many IP bytes since this one paused.
    pub(crate) fn spent_elsewhere(&mut self, bytes: u64) {
        self.budget.spent_elsewhere(bytes);
    }

    /// Available bandwidth and tight capacity that it would look near to, bit/s.
    pub(crate) fn near(&self) -> Option<(f64, f64)> {
        self.plan.near
    }

    /// Packets that a train needs so that its dispersion shows.
    pub(crate) fn packets(&self) -> u32 {
        self.plan.packets
    }

    /// What was odd about its trains.
    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// Rate that few trains arrived faster than, bit/s.
    pub(crate) fn arrival_rate(&self) -> f64 {
        self.budget.capacity()
    }

    fn compose(&mut self, now: Mono) -> Volley {
        match self.state {
            State::Approaching => Volley { trains: vec![self.approach.train(&self.sender)] },
            _ => self.plan.volley(&self.sender, &self.budget, &self.health, now),
        }
    }

    fn take_approach(&mut self, passage: &Passage, now: Mono) {
        let bits = self.budget.bits_left(now) / APPROACH_SHARE;
        let packets = (bits / self.sender.bits()) as u32;
        self.approach.take(passage, &self.sender, packets.min(plan::ENOUGH));
        if let Some((rate, packets)) = self.approach.arrival {
            self.budget.saw(rate, packets);
        }
        match self.approach.found() {
            None => {}
            Some(Found::Near { available, capacity }) => {
                self.plan.begin(available, capacity, self.approach.packets());
                self.state = State::Fitting;
            }
            Some(_) => self.state = State::Done(End::Content),
        }
    }

    fn take_train(&mut self, passage: &Passage) {
        // A train that its sender cut may be too short to say anything.
        match passage.dispersion(SKIP) {
            Ok(seen) if seen.packets >= FEWEST_PACKETS => {
                self.budget.saw(seen.received_rate(), seen.packets);
                self.samples.push(Sample {
                    rate: seen.rate(),
                    stretch: seen.stretch(),
                    lasted: seen.sent_ns / 1e9,
                });
            }
            Err(Unusable::TooShort) => self.too_short += 1,
            _ => {}
        }
    }

    /// The trains that a line may go through, and the line.
    fn reading(&self) -> Option<Reading> {
        // The approach's trains are short: what a bucket lets through at once is not what it lasts
        // for.
        let arrivals = self.samples.iter().map(|sample| sample.rate / sample.stretch);
        let fastest = arrivals.fold(0.0, f64::max);
        let fitter = Fitter::new((fastest, MOST_TIGHT * fastest.max(self.approach.fastest_arrival)));
        Reading::of(&self.samples, fitter)
    }

    /// Whether more trains would hardly change the figure.
    fn is_content(&self, reading: &Reading) -> bool {
        let Some((available, _)) = reading.fitter.intervals(&reading.used, CONFIDENCE) else { return false };
        let (lo, hi) = (available.lo.min(reading.range.0), available.hi.max(reading.range.1));
        hi - lo <= 2.0 * NARROW * available.estimate && !self.hides_traffic(reading)
    }

    fn refit(&mut self, now: Mono) {
        let reading = self.reading();
        if let Some(reading) = &reading {
            let scatter = reading.fitter.fit(&self.samples).map_or(0.0, |all| all.scatter);
            self.plan.improve(&reading.fit, scatter, reading.narrow);
        }
        if self.too_short > 0 {
            self.plan.lengthen(&self.sender);
            self.too_short = 0;
        }
        let is_content = reading.as_ref().is_some_and(|reading| self.is_content(reading));
        let is_smooth = || reading.is_some_and(|it| self.train_chance(&it) < SMOOTH * it.fit.available);
        let has_room = || self.plan.has_room(&self.sender, &self.budget, &self.health, now);
        let is_done = if self.plan.is_done() { is_content || !has_room() } else { is_content && is_smooth() };
        if is_done && self.plan.is_begun() {
            self.state = State::Done(End::Content);
        }
    }

    /// Faster trains cannot be sent, and those that can pass untouched.
    fn untouched(&self) -> Option<f64> {
        let fastest = self.samples.iter().map(|sample| sample.rate).fold(0.0, f64::max);
        let near_top: Vec<f64> =
            self.samples.iter().filter(|sample| sample.rate > 0.9 * fastest).map(|s| s.stretch).collect();
        let stretch = netaware_stats::quantile::median(&near_top)?;
        (fastest > 0.95 * self.sender.fastest && stretch < 1.0 + LEAST_STRAIN).then_some(fastest / stretch)
    }
}

/// What a fluid link would make of it.
fn strain(sample: &Sample, fit: &Fit) -> f64 {
    (sample.rate - fit.available) / fit.capacity
}

impl Estimator for Curve {
    fn next(&mut self, now: Mono) -> Step {
        self.budget.begin(now);
        if let State::Done(_) = self.state {
            return Step::Done;
        }
        let volley = self.compose(now);
        let Some(due) = self.budget.due(now, &volley, &self.sender) else {
            self.state = State::Done(End::OutOfTime);
            return Step::Done;
        };
        self.budget.charge(&volley);
        self.asked = volley.clone();
        Step::Volley { volley, due }
    }

    fn prolong(&mut self, limit: Span) -> bool {
        if !self.was_cut_short() || !self.budget.prolong(limit) {
            return false;
        }
        self.state = if self.plan.near.is_some() { State::Fitting } else { State::Approaching };
        true
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, _took: Span) {
        self.budget.heard(now);
        let asked = std::mem::take(&mut self.asked);
        for (train, report) in asked.trains.iter().zip(&report.trains) {
            let passage = Passage::of(train, report);
            self.health.saw(&passage);
            match self.state {
                State::Approaching => self.take_approach(&passage, now),
                _ => self.take_train(&passage),
            }
        }
        if self.state == State::Fitting && asked.trains.len() > 1 {
            self.refit(now);
        }
    }

    fn answer(&self) -> Option<Estimate> {
        if let Some(rate) = self.untouched() {
            return Some(self.at_least(rate, Ceiling::Sender));
        }
        let fitted = self.reading().filter(|reading| reading.used.len() >= 4);
        fitted.and_then(|reading| self.fitted(&reading)).or_else(|| self.rough())
    }

    /// `None` without a regression that the answer stands on.
    fn tight_link(&self) -> Option<TightLink> {
        if self.untouched().is_some() {
            return None;
        }
        let reading = self.reading().filter(|reading| reading.used.len() >= 4)?;
        let (_, capacity) = reading.fitter.intervals(&reading.used, CONFIDENCE)?;
        TightLink { capacity, quality: reading.fit.quality }.known()
    }
}

/// Trains that make a figure, if time ends before all are sent.
const ENOUGH_TRAINS: usize = 12;
/// What the approach may spend, rounds times what is left over for the trains.
const APPROACH_SHARE: f64 = 40.0;
/// Part of a train in which the queue may run empty.
const SKIP: f64 = 0.25;
/// A train of fewer says nothing.
const FEWEST_PACKETS: f64 = 6.0;
/// Trains with less than this do not fit a line: some of them met no queue at all.
const LEAST_STRAIN: f64 = 0.02;
/// The tight link is at most so much faster than the narrow one.
const MOST_TIGHT: f64 = 10.0;
const CONFIDENCE: f64 = 0.95;
/// Half an interval of this share of the figure needs no more trains.
const NARROW: f64 = 0.05;
/// What chance makes of one train's figure where traffic is so smooth that half of the trains are
/// enough.
const SMOOTH: f64 = 0.015;
