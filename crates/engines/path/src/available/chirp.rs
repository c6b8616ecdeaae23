//! Available bandwidth all the time, for little traffic: trains whose rate rises.
//!
//! **Measures** the rate from which on a chirp, a train of rising rate, queues, and follows it.
//! Each chirp has an estimate of its own from where its queueing delay rises and does not come back
//! (its excursions); those only aim the next chirps. The figure is that of a Kalman filter over the
//! strains of the chirps' steps above it. **Assumes** one tight link, first in first out; that the
//! available bandwidth moves little from volley to volley, against [`tracker`]'s allowance.
//! **Biased** low under bursts, since a step is short, and more so the smaller the packets; slow to
//! follow a jump: some volleys. **Published**: excursions, Ribeiro et al., "pathChirp" (PAM 2003);
//! rates dense around the centre, Goldoni et al., "ASSOLO" (2009); filter, Ekelin et al., "BART"
//! (NOMS 2006). Where we differ: rates are those of the actual send stamps, steps are as many
//! packets as batches of the receiver need, and one answer rests on both ideas.

mod excursion;
mod pattern;
#[cfg(test)]
mod tests;
mod tracker;

use netaware_stats::interval::Interval;
use netaware_units::{Mono, Span};

use crate::available::approach::{Approach, Ceiling, Found};
use crate::available::budget::Budget;
use crate::available::health::Health;
use crate::available::passage::{Passage, Segment};
use crate::available::sender::Sender;
use crate::{Bound, Estimate, Estimator, Flag, Instrument, Needs, Step, Volley, VolleyReport};

use pattern::Pattern;
use tracker::{Strain, Tracker};

/// The estimator. It has a new answer after every volley.
#[derive(Debug, Clone)]
pub struct Chirp {
    instrument: Instrument,
    sender: Sender,
    budget: Budget,
    health: Health,
    approach: Approach,
    aim: Aim,
    tracker: Option<Tracker>,
    pattern: Pattern,
    asked: Volley,
    over: bool,
    silent: u32,
}

/// Where the next chirps look.
#[derive(Debug, Clone, Copy)]
struct Aim {
    /// bit/s.
    centre: f64,
    /// Of the rates, to each side, as a share of the centre.
    reach: f64,
}

impl Chirp {
    /// It takes no longer by itself.
    pub const LONGEST: Span = Span::from_secs(10);
    /// What a first figure needs.
    pub const NEEDS: Needs = Needs { packets: 1500, train: 20, rounds: 20 };

    /// The longest that it takes by itself on a path like this.
    pub fn longest(instrument: &Instrument) -> Span {
        instrument.longest(Self::LONGEST, Self::NEEDS.packets, Self::NEEDS.rounds)
    }

    /// One figure: it takes 10 s, or what the instrument allows if that is less.
    pub fn new(instrument: &Instrument) -> Self {
        Self::within(instrument, Self::longest(instrument))
    }

    /// Follows the path until the instrument's time is over.
    pub fn watching(instrument: &Instrument) -> Self {
        Self::within(instrument, instrument.time_limit)
    }

    fn within(instrument: &Instrument, limit: Span) -> Self {
        let sender = Sender::new(instrument);
        let load = instrument.max_load.min(LOAD);
        let lighter = Instrument { max_load: load, ..instrument.clone() };
        Self {
            budget: Budget::new(&lighter, limit),
            instrument: lighter,
            approach: Approach::new(&sender),
            sender,
            health: Health::default(),
            aim: Aim { centre: 0.0, reach: 0.0 },
            tracker: None,
            pattern: Pattern::default(),
            asked: Volley::default(),
            over: false,
            silent: 0,
        }
    }

    fn compose(&mut self) -> Volley {
        if self.tracker.is_none() {
            return Volley { trains: vec![self.approach.train(&self.sender)] };
        }
        let rates = pattern::rates(self.aim.centre, self.aim.reach, self.sender.fastest);
        let capacity = self.approach.fastest_arrival;
        let bytes = LOAD * capacity / 8.0 / CHIRPS_A_SECOND / rates.len() as f64;
        let packets = (bytes / f64::from(self.sender.length)).clamp(1.0, STEP);
        let length = bytes / packets;
        let top = rates.last().map_or(0.0, |rate| rate / self.sender.fastest * f64::from(self.sender.length));
        let length = length.max(top).max(SMALLEST).min(f64::from(self.sender.length)) as u32;
        let sender = Sender::with_length(&self.instrument, length);
        let batches = BATCHES * self.health.period().secs_f64();
        let least = READ * self.instrument.stamp_error() / 1e9;
        self.pattern = Pattern::new(&rates, &sender, packets as u32, least.max(batches));
        let train = self.pattern.train(&sender);
        let bits = f64::from(train.packets) * sender.bits();
        let rest = self.budget.rest(bits, self.pattern.lasts());
        Volley { trains: vec![crate::Train { rest, ..train }; CHIRPS] }
    }

    fn take_first(&mut self, passage: &Passage) {
        self.approach.take(passage, &self.sender, 0);
        let arrived = self.approach.fastest_arrival;
        if let Some((rate, packets)) = self.approach.arrival {
            self.budget.saw(rate, packets);
        }
        match self.approach.found() {
            Some(Found::Near { available, .. }) => self.start(available, arrived),
            // One sample is enough: everything up to its rate of arrival is looked at.
            None if arrived > 0.0 => self.start(arrived * 0.55, arrived),
            None => {}
            Some(_) => self.over = true,
        }
    }

    fn start(&mut self, centre: f64, capacity: f64) {
        self.aim = Aim { centre, reach: WIDE };
        self.tracker = Some(Tracker::new(centre, capacity));
    }

    fn take_chirps(&mut self, passages: &[Passage]) {
        let chirps: Vec<Vec<Option<Segment>>> =
            passages.iter().map(|passage| passage.segments(self.pattern.edges())).collect();
        let seen = chirps.iter().flatten().flatten().count();
        if seen * 2 < chirps.iter().map(Vec::len).sum() {
            self.silent += 1;
            self.over |= self.silent >= MOST_SILENT;
            return;
        }
        self.silent = 0;
        let own: Vec<f64> = chirps.iter().filter_map(|chirp| excursion::estimate(chirp)).collect();
        let Some(tracker) = &mut self.tracker else { return };
        tracker.take(&strains(&chirps));
        // Chirps with holes have no estimate of their own.
        let mean =
            if own.is_empty() { tracker.available() } else { own.iter().sum::<f64>() / own.len() as f64 };
        tracker.aimed(mean);
        self.aim(mean);
    }

    /// Towards where chirps and filter say, wide as long as they disagree.
    fn aim(&mut self, chirps: f64) {
        let Some(tracked) = self.tracker.as_ref().map(Tracker::available) else { return };
        let centre = f64::midpoint(tracked, chirps);
        let apart = (tracked - chirps).abs() / centre.max(1.0);
        let reach = (2.0 * apart).clamp(NARROW, WIDE).max(self.aim.reach * 0.7).min(WIDE);
        let lowest = self.approach.fastest_arrival * 0.02;
        self.aim = Aim { centre: centre.max(lowest).min(self.sender.fastest), reach };
    }

    fn estimate(&self, rate: Interval, bound: Bound, mut flags: Vec<Flag>) -> Estimate {
        flags.extend(self.health.flags(LOSS_LIMIT));
        Estimate {
            rate,
            bound,
            method: "chirp",
            bytes: self.budget.bytes,
            packets: self.budget.packets,
            took: self.budget.took(),
            flags,
        }
    }
}

/// Mean strain of each step over the chirps, with its variance.
fn strains(chirps: &[Vec<Option<Segment>>]) -> Vec<Strain> {
    let steps = chirps.iter().map(Vec::len).max().unwrap_or(0);
    let strain = |step: usize| {
        let parts: Vec<&Segment> = chirps.iter().filter_map(|chirp| chirp.get(step)?.as_ref()).collect();
        let sum = |of: fn(&Segment) -> f64| parts.iter().map(|part| of(part)).sum::<f64>();
        let (sent, received) = (sum(|part| part.sent_ns), sum(|part| part.received_ns));
        (!parts.is_empty() && sent > 0.0).then(|| {
            let strain = received / sent - 1.0;
            let squares: f64 =
                parts.iter().map(|part| (part.received_ns / part.sent_ns - 1.0 - strain).powi(2)).sum();
            let n = parts.len() as f64;
            Strain {
                rate: sum(|part| part.bits) / sent * 1e9,
                strain,
                variance: squares / (n * (n - 1.0).max(1.0)),
            }
        })
    };
    (0..steps).filter_map(strain).collect()
}

impl Estimator for Chirp {
    fn next(&mut self, now: Mono) -> Step {
        self.budget.begin(now);
        if self.over {
            return Step::Done;
        }
        let volley = self.compose();
        let Some(due) = self.budget.due(now, &volley, &self.sender) else {
            self.over = true;
            return Step::Done;
        };
        self.budget.charge(&volley);
        self.asked = volley.clone();
        Step::Volley { volley, due }
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, _took: Span) {
        self.budget.heard(now);
        let asked = std::mem::take(&mut self.asked);
        let passages: Vec<Passage> = asked
            .trains
            .iter()
            .zip(&report.trains)
            .map(|(train, report)| Passage::of(train, report))
            .collect();
        for passage in &passages {
            self.health.saw(passage);
        }
        if self.tracker.is_some() {
            self.take_chirps(&passages);
        } else if let Some(passage) = passages.first() {
            self.take_first(passage);
        }
    }

    fn answer(&self) -> Option<Estimate> {
        if let Some(Found::AtLeast { rate, why }) = self.approach.found() {
            let interval = Interval { estimate: rate, lo: rate * 0.97, hi: rate, confidence: CONFIDENCE };
            let flags = if why == Ceiling::Sender { vec![Flag::HostLimited] } else { Vec::new() };
            return Some(self.estimate(interval, Bound::AtLeast, flags));
        }
        let tracker = self.tracker.as_ref()?;
        let rate = tracker.interval(CONFIDENCE)?;
        let wide = rate.width() > 2.0 * NOISY * rate.estimate || tracker.rounds() < SETTLED;
        let mut flags = Vec::new();
        if tracker.tightness() > tracker::APART {
            flags.push(Flag::Ambiguous);
        }
        if wide {
            flags.push(Flag::Noisy);
        }
        Some(self.estimate(rate, Bound::None, flags))
    }
}

/// Share of the capacity that chirps use.
const LOAD: f64 = 0.02;
/// Chirps of a volley.
const CHIRPS: usize = 3;
/// Packets are made smaller rather than that chirps become rarer.
const CHIRPS_A_SECOND: f64 = 4.0;
/// Packets of a step, where bytes suffice.
const STEP: f64 = 3.0;
/// Batches of a step.
const BATCHES: f64 = 2.5;
/// A step lasts so many times what its stamps err.
const READ: f64 = 15.0;
/// But not smaller than this, bytes.
const SMALLEST: f64 = 1000.0;
/// Reach of the first chirps and of the last.
const WIDE: f64 = 0.8;
const NARROW: f64 = 0.45;
/// Volleys in a row of which nothing arrives.
const MOST_SILENT: u32 = 4;
/// Rounds until the filter has forgotten where it began.
const SETTLED: u32 = 3;
const LOSS_LIMIT: f64 = 0.02;
/// An interval of more than this to each side is told as noisy.
const NOISY: f64 = 0.09;

const CONFIDENCE: f64 = 0.95;
