//! Capacity from short bulks of packets sent back to back: seconds, and few bytes.
//!
//! ```text
//!   |||||              5, 20, 80 ... packets, until batches and a credit would show     (growth)
//!
//!   |||    |||  |||      |||    |||   twelve bulks of 2k+1, at random distances         (volley)
//!   ├┤ dispersion of one gap, of k, of 2k
//!
//!   ||||||||  | | | | | | | |  |  |  |  |  |  |  |     where stamps are too coarse: longer trains, back to back and
//!                                                      at 2, 1.25 and 1 times the rate at which those come (volley)
//! ```
//!
//! What it measures: the distance at which the narrow link sends packets of the largest size. A
//! bulk of k+1 packets whose first and last packet were delayed least in sum has met no cross
//! traffic between them; its dispersion D is that of the narrow link alone, and C = k L / D. k
//! grows until D is 34 times the error of a stamp, but never beyond four packets where single
//! packets can be told apart; a longer dispersion counts only where it agrees with the shorter
//! ones. Under coalescing, and where stamps are too coarse to tell packets apart, see [`trains`].
//!
//! What it assumes: the sender is faster than the path; the last packets of a bulk leave it as one;
//! clocks keep their rate for the length of a volley.
//!
//! How it is biased: cross traffic that slips into every bulk makes it read low; that shows as a
//! spread of the dispersions that stamps do not explain, and where single packets of cross traffic
//! cannot be told apart from the stamps' error the answer is a lower bound. A queue behind the
//! narrow link that only the first packet meets makes a bulk read high; those bulks do not have the
//! least delay.
//!
//! Published: Kapoor, Chen, Lao, Gerla, Sanadidi, "CapProbe", SIGCOMM 2004; Chen, Sun, Yang,
//! Sanadidi, Gerla, "PBProbe", Computer Communications 31(17), 2008. Where we differ: not the one
//! bulk of the least delay sum but the strongest cluster among the sixth with the least sums,
//! averaged, so that the error of a stamp averages out and bulks can stay short.

mod bulks;
mod growth;
mod trains;

use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

use super::budget::Budget;
use super::sample::{count, overtaken, reordered};
use crate::path_change::Levels;
use crate::{Bound, Estimate, Estimator, Flag, Gaps, Instrument, Needs, Step, Train, Volley, VolleyReport};

use bulks::Bulks;
use growth::{Grown, Growth};
use trains::Trains;

/// The method. It ends within three seconds, unless it is [prolonged](Estimator::prolong).
#[derive(Debug, Clone)]
pub struct Bulk {
    instrument: Instrument,
    budget: Budget,
    rng: SplitMix64,
    stage: Stage,
    plan: Option<Plan>,
    grown: Option<Grown>,
    volleys: u32,
    sent: u64,
    came: u64,
    overtaken: u64,
    levels: Levels,
    /// Its time ended before enough volleys were sent.
    cut_short: bool,
    /// It has more time than it takes by itself, for those volleys.
    is_prolonged: bool,
}

#[derive(Debug, Clone)]
enum Stage {
    Growing(Box<Growth>),
    Sampling,
    Over,
}

/// What is sent after the growth.
#[derive(Debug, Clone)]
enum Plan {
    Bulks(Bulks),
    Trains(Trains),
}

/// What they say.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reading {
    /// bit/s
    rate: netaware_stats::interval::Interval,
    /// Nothing but stamps spreads the dispersions.
    is_quiet: bool,
    /// The truth may lie above: cross traffic may be in all of them.
    is_bound: bool,
    /// They came as they were sent.
    is_host: bool,
    /// They gather in more than one place.
    is_ambiguous: bool,
}

impl Plan {
    fn new(instrument: &Instrument, grown: &Grown) -> Self {
        if grown.long.batching.is_none() && grown.distance >= APART * growth::difference_error(instrument) {
            Self::Bulks(Bulks::new(instrument, grown))
        } else {
            Self::Trains(Trains::new(instrument, grown))
        }
    }

    /// Packets and distances of each train of a volley.
    fn shapes(&self) -> Vec<(u32, Gaps)> {
        match self {
            Self::Bulks(bulks) => vec![(bulks.packets(), Gaps::BackToBack); BULKS],
            Self::Trains(trains) => trains.shapes(BULKS),
        }
    }

    /// Between them at least, ns.
    fn pause(&self) -> f64 {
        match self {
            Self::Bulks(_) => 20_000.0,
            Self::Trains(trains) => trains.pause(),
        }
    }

    fn take(&mut self, report: &VolleyReport) {
        match self {
            Self::Bulks(bulks) => bulks.take(report),
            Self::Trains(trains) => trains.take(report),
        }
    }

    fn reading(&self) -> Option<Reading> {
        match self {
            Self::Bulks(bulks) => bulks.reading(),
            Self::Trains(trains) => trains.reading(),
        }
    }
}

impl Bulk {
    /// It takes no longer by itself.
    pub const LONGEST: Span = Span::from_secs(3);
    /// What a first figure needs.
    pub const NEEDS: Needs = Needs { packets: 300, train: 3, rounds: 14 };

    /// The longest that it takes by itself on a path like this.
    pub fn longest(instrument: &Instrument) -> Span {
        instrument.longest(Self::LONGEST, Self::NEEDS.packets, Self::NEEDS.rounds)
    }

    /// Equal seeds ask equal questions of equal paths.
    pub fn new(instrument: &Instrument, seed: u64) -> Self {
        Self {
            instrument: instrument.clone(),
            budget: Budget::new(instrument, Self::longest(instrument)),
            rng: SplitMix64::new(seed),
            stage: Stage::Growing(Box::new(Growth::new(instrument))),
            plan: None,
            grown: None,
            volleys: 0,
            sent: 0,
            came: 0,
            overtaken: 0,
            levels: Levels::default(),
            cut_short: false,
            is_prolonged: false,
        }
    }

    /// Whether the figure needs no second opinion: nothing but stamps spreads the dispersions.
    pub fn is_sure(&self) -> bool {
        self.reading().is_some_and(|reading| reading.is_quiet && !reading.is_bound) && !self.cut_short
    }

    fn reading(&self) -> Option<Reading> {
        self.plan.as_ref()?.reading()
    }

    /// More of the same would hardly change the figure.
    fn is_content(&self) -> bool {
        let Some(reading) = self.reading() else { return self.volleys >= MOST_VOLLEYS };
        let share = reading.rate.width() / 2.0 / reading.rate.estimate;
        let open = reading.is_bound || reading.is_ambiguous;
        match self.volleys {
            ..ENOUGH_VOLLEYS => false,
            _ if self.is_prolonged => true,
            _ if reading.is_host => true,
            // What trains cannot tell by now they never will.
            5.. if reading.is_bound && matches!(self.plan, Some(Plan::Trains(_))) => true,
            ENOUGH_VOLLEYS..10 => reading.is_quiet && !open && share < 0.005,
            10..MOST_VOLLEYS => !open && share < 0.0075,
            _ => true,
        }
    }

    /// At random distances, so many bytes on average as may be sent.
    fn volley(&mut self) -> Option<Volley> {
        let plan = self.plan.as_ref()?;
        let (shapes, pause) = (plan.shapes(), plan.pause());
        let length = self.instrument.largest;
        let trains = shapes.into_iter().map(|(packets, gaps)| {
            let share = self.budget.picoseconds(u64::from(packets) * u64::from(length)) as f64 / 1000.0;
            let rest = (share * (0.5 + self.rng.unit())).max(pause * (1.0 + self.rng.unit()));
            Train { packets, length, gaps, rest: Span(rest.min(1e12) as i64) }
        });
        Some(Volley { trains: trains.collect() })
    }

    fn ask(&mut self) -> Option<(Volley, Span)> {
        match &self.stage {
            Stage::Growing(growth) => Some((growth.volley(), Span::ZERO)),
            Stage::Sampling => {
                let volley = self.volley()?;
                let lasts = volley.trains.iter().map(|train| train.rest).sum();
                Some((volley, lasts))
            }
            Stage::Over => None,
        }
    }

    fn grow(&mut self, mut growth: Box<Growth>, report: &VolleyReport) -> Stage {
        growth.take(report, &mut self.budget);
        match growth.grown(&self.budget) {
            None if growth.is_hopeless() => Stage::Over,
            None => Stage::Growing(growth),
            Some(grown) => {
                self.plan = Some(Plan::new(&self.instrument, &grown));
                self.grown = Some(grown);
                Stage::Sampling
            }
        }
    }

    fn sample(&mut self, report: &VolleyReport) -> Stage {
        self.volleys += 1;
        if let Some(plan) = &mut self.plan {
            plan.take(report);
        }
        if self.is_content() { Stage::Over } else { Stage::Sampling }
    }

    fn flags(&self, reading: Option<&Reading>) -> Vec<Flag> {
        let mut flags = Vec::new();
        let batching = self.grown.as_ref().and_then(|grown| grown.long.batching);
        flags.extend(batching.map(|batching| batching.flag()));
        let lost = 1.0 - self.came as f64 / self.sent.max(1) as f64;
        if lost > 0.01 {
            flags.push(Flag::Lossy(lost));
        }
        flags.extend(reordered(self.overtaken, self.came));
        if reading.is_none_or(|reading| reading.is_bound || reading.is_ambiguous) {
            flags.push(Flag::Ambiguous);
        }
        if reading.is_some_and(|reading| reading.is_host) {
            flags.push(Flag::HostLimited);
        }
        if self.levels.changed() {
            flags.push(Flag::PathChanged);
        }
        if self.cut_short {
            flags.push(Flag::CutShort);
        }
        flags
    }
}

impl Estimator for Bulk {
    fn next(&mut self, now: Mono) -> Step {
        self.budget.at(now);
        if self.cut_short {
            return Step::Done;
        }
        if let Some((volley, lasts)) = self.ask() {
            if let Some(due) = self.budget.due(&volley, lasts + self.instrument.rtt) {
                self.budget.spend(&volley);
                return Step::Volley { volley, due };
            }
            self.cut_short = self.volleys < ENOUGH_VOLLEYS;
        }
        if !self.cut_short {
            self.stage = Stage::Over;
        }
        Step::Done
    }

    fn prolong(&mut self, limit: Span) -> bool {
        if !self.cut_short || limit <= self.budget.limit() {
            return false;
        }
        self.budget.prolong(limit);
        (self.cut_short, self.is_prolonged) = (false, true);
        true
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, _took: Span) {
        self.budget.at(now);
        let (sent, came) = count(&report.trains);
        self.sent += sent;
        self.came += came;
        self.overtaken += overtaken(&report.trains);
        report.trains.iter().for_each(|train| self.levels.saw_train(train));
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Growing(growth) => self.grow(growth, report),
            Stage::Sampling => self.sample(report),
            Stage::Over => Stage::Over,
        };
    }

    fn answer(&self) -> Option<Estimate> {
        let grown = self.grown.as_ref()?;
        let reading = self.reading();
        let mut flags = self.flags(reading.as_ref());
        let (mut rate, mut bound) = match &reading {
            None => (growth::floor(&grown.long), Bound::AtLeast),
            Some(reading) if reading.is_bound || reading.is_host => (reading.rate, Bound::AtLeast),
            Some(reading) => (reading.rate, Bound::None),
        };
        if let Some(sustained) = grown.sustained(self.instrument.largest, rate.estimate) {
            flags.push(Flag::Shaped { peak: rate.estimate });
            (rate, bound) = (sustained, Bound::None);
        }
        // Few and scattered readings make an interval that begins below what a rate can be.
        rate.lo = rate.lo.max(0.0);
        let (bytes, packets) = (self.budget.bytes(), self.budget.packets());
        Some(Estimate { rate, bound, method: "bulk", bytes, packets, took: self.budget.took(), flags })
    }
}

/// Of one volley.
const BULKS: usize = 12;
const MOST_VOLLEYS: u32 = 50;
/// Volleys without which time is said to have cut it short.
const ENOUGH_VOLLEYS: u32 = 3;
/// Packets whose transmission lasts so many stamp errors can be counted one by one.
const APART: f64 = 6.0;

#[cfg(test)]
mod tests;
