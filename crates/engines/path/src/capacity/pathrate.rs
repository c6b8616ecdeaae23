//! Capacity by the modes of packet-pair dispersions, with the rate of long trains as a lower end.
//!
//! ```text
//!  longest train      |||||||||||||||||||||||||||||||     10, 25, 50 packets; batches?
//!  preliminary        || ||| |||| ... ||||||||||          7 of each length from 2 to 10; all alike: the answer
//!  phase I            ||    ||  ||     ||   ||            25 pairs of each of 40 sizes
//!  phase II           |||||||||||||||     |||||||||||     up to 500 of the longest
//! ```
//!
//! What it measures: the bandwidths at which pairs gather. One of these modes is the capacity;
//! others come from cross traffic between the two packets (slower) and from queues behind the
//! narrow link (faster). Long trains come at the asymptotic dispersion rate (ADR), which lies
//! between the available bandwidth and the capacity. Of the modes above it, the one that is
//! strongest and sharpest wins.
//!
//! What it assumes: that some pairs come through unharmed; that the sender is faster than the path.
//!
//! How it is biased: under heavy load the mode of a faster link behind the narrow one may win
//! (high), or none stands above the ADR, which is then given as what it is, a lower bound. Steady
//! traffic in step with the pairs can make a mode of its own; it is told by the sizes of its
//! packets, which a link's own mode has all of.
//!
//! Published: Dovrolis, Ramanathan, Moore, IEEE/ACM Trans. Networking 12(6), 2004. Where we differ:
//! trains leave in volleys, as fast as the allowed load admits, not one in half a second; a
//! dispersion is too short when the stamps' error is more than a tenth of it, not by a calibration
//! of system calls; the mean of the preliminary trains is that of their gaps; pairs of all sizes in
//! the winning mode are fitted with a line over their size, so that what layer 2 adds to each
//! packet does not pull the figure down; the long trains are as many as the allowed load admits, 20
//! at least, and end when their mean is known to half a per cent; the merit is with the ordinary
//! kurtosis ([`PathrateRules::merit`]).

mod modal;
mod phases;

use netaware_stats::modes::Mode;
use netaware_stats::quantile::median;
use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

use super::budget::Budget;
use super::sample::{Whole, count, overtaken, reordered};
use crate::path_change::Levels;
use crate::{
    Bound, Estimate, Estimator, Flag, Gaps, Instrument, Needs, RateMode, Step, Train, TrainReport, Volley,
    VolleyReport,
};

use phases::{Phases, Verdict};

/// What may be set.
#[derive(Debug, Clone, Copy)]
pub struct PathrateRules {
    /// Window of the mode search as a share of the range from the 10th to the 90th percentile.
    pub bin_share: f64,
    /// What decides among modes.
    pub merit: fn(&Mode) -> f64,
    /// Stop after the preliminary trains if their bandwidths vary by less than this (standard
    /// deviation / mean).
    pub alike: f64,
    /// All must be over by then.
    pub time_limit: Span,
}

impl Default for PathrateRules {
    fn default() -> Self {
        Self { bin_share: 0.125, merit: Mode::merit, alike: 0.05, time_limit: Pathrate::LONGEST }
    }
}

/// The method. It ends within its time limit, 30 s unless the rules say less.
#[derive(Debug, Clone)]
pub struct Pathrate {
    instrument: Instrument,
    budget: Budget,
    rng: SplitMix64,
    phases: Phases,
    sent: u64,
    came: u64,
    overtaken: u64,
    levels: Levels,
    /// Of each train, the time of leaving as a share of the time of arriving.
    hurry: Vec<f64>,
    cut_short: bool,
    over: bool,
}

impl Pathrate {
    /// It takes no longer by itself, unless the rules say so.
    pub const LONGEST: Span = Span::from_secs(30);
    /// What a first figure needs.
    pub const NEEDS: Needs = Needs { packets: 800, train: 3, rounds: 40 };

    /// The longest that it takes by itself on a path like this.
    pub fn longest(instrument: &Instrument) -> Span {
        instrument.longest(Self::LONGEST, Self::NEEDS.packets, Self::NEEDS.rounds)
    }

    /// Equal seeds ask equal questions of equal paths.
    pub fn new(instrument: &Instrument, rules: PathrateRules, seed: u64) -> Self {
        Self {
            instrument: instrument.clone(),
            budget: Budget::new(instrument, rules.time_limit),
            rng: SplitMix64::new(seed),
            phases: Phases::new(instrument, rules),
            sent: 0,
            came: 0,
            overtaken: 0,
            levels: Levels::default(),
            hurry: Vec::new(),
            cut_short: false,
            over: false,
        }
    }

    /// The asymptotic dispersion rate so far, bit/s.
    pub fn dispersion_rate(&self) -> Option<f64> {
        self.phases.dispersion_rate()
    }

    /// What the phase wants, at random distances that keep the load.
    fn volley(&mut self) -> Option<Volley> {
        let wanted = self.phases.wanted(&self.budget)?;
        let pause = self.phases.pause();
        let trains = wanted.into_iter().map(|(packets, length)| {
            let share = match self.budget.picoseconds(u64::from(packets) * u64::from(length)) {
                0 => UNKNOWN,
                share => share as f64 / 1000.0,
            };
            let rest = (share * (0.5 + self.rng.unit())).max(pause * (1.0 + self.rng.unit()));
            Train { packets, length, gaps: Gaps::BackToBack, rest: Span(rest.min(1e12) as i64) }
        });
        Some(Volley { trains: trains.collect() })
    }

    fn flags(&self, verdict: &Verdict) -> Vec<Flag> {
        let mut flags = verdict.flags.clone();
        let lost = 1.0 - self.came as f64 / self.sent.max(1) as f64;
        if lost > 0.01 {
            flags.push(Flag::Lossy(lost));
        }
        flags.extend(reordered(self.overtaken, self.came));
        if self.levels.changed() {
            flags.push(Flag::PathChanged);
        }
        if self.cut_short {
            flags.push(Flag::CutShort);
        }
        flags
    }
}

impl Estimator for Pathrate {
    fn next(&mut self, now: Mono) -> Step {
        self.budget.at(now);
        while !self.over {
            let Some(volley) = self.volley() else {
                self.over = true;
                break;
            };
            let lasts: Span = volley.trains.iter().map(|train| train.rest).sum();
            if let Some(due) = self.budget.due(&volley, lasts + self.instrument.rtt) {
                self.budget.spend(&volley);
                return Step::Volley { volley, due };
            }
            self.cut_short = true;
            self.over = !self.phases.skip();
        }
        Step::Done
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, _took: Span) {
        self.budget.at(now);
        let (sent, came) = count(&report.trains);
        self.sent += sent;
        self.came += came;
        self.overtaken += overtaken(&report.trains);
        report.trains.iter().for_each(|train| self.levels.saw_train(train));
        self.hurry.extend(report.trains.iter().filter_map(hurry));
        self.phases.take(report, &mut self.budget);
    }

    fn answer(&self) -> Option<Estimate> {
        let verdict = self.phases.verdict()?;
        let mut flags = self.flags(&verdict);
        let (bytes, packets) = (self.budget.bytes(), self.budget.packets());
        let (rate, mut bound, took) = (verdict.rate, verdict.bound, self.budget.took());
        if median(&self.hurry).is_some_and(|hurry| hurry > AS_SENT) {
            bound = Bound::AtLeast;
            flags.push(Flag::HostLimited);
        }
        Some(Estimate { rate, bound, method: "pathrate", bytes, packets, took, flags })
    }

    fn modes(&self) -> Vec<RateMode> {
        self.phases.modes()
    }
}

fn hurry(train: &TrainReport) -> Option<f64> {
    let whole = Whole::of(train)?;
    let last = whole.arrivals().len() - 1;
    Some(whole.sending(last)? / whole.dispersion(last)?)
}

/// Trains that take this share of the time of arriving to leave come as they were sent: the sender
/// set the rate.
const AS_SENT: f64 = 0.97;
/// Between trains as long as no rate is known, ns.
const UNKNOWN: f64 = 20e6;

#[cfg(test)]
mod tests;
