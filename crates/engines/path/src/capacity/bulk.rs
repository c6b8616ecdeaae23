//! Capacity from short bulks of packets sent back to back: seconds, and few bytes.
//!
//! ```text
//!   |||||              5, 20, 80 ... packets, until batches and a credit would show     (growth)
//!
//!   |||    |||  |||      |||    |||   twelve bulks of 2k+1, at random distances         (volley)
//!   ├─┤ dispersion of k packets, and of 2k
//! ```
//!
//! What it measures: the distance at which the narrow link sends packets of the largest size. A bulk of k+1 packets whose
//! first and last packet were delayed least in sum has met no cross traffic between them; its dispersion D is that of
//! the narrow link alone, and C = k L / D. k grows until D is 34 times the error of a stamp; under coalescing the bulk is a
//! train of six periods and D goes from batch start to batch start.
//!
//! What it assumes: the sender is faster than the path; the last packets of a bulk leave it as one; clocks keep their
//! rate for the length of a volley.
//!
//! How it is biased: cross traffic that slips into every bulk makes it read low; that shows as a spread of the dispersions that
//! stamps do not explain, and where single packets of cross traffic cannot be told apart from the stamps' error the answer
//! is a lower bound. A queue behind the narrow link that only the first packet meets makes a bulk read high; those bulks
//! do not have the least delay.
//!
//! Published: Kapoor, Chen, Lao, Gerla, Sanadidi, "CapProbe", SIGCOMM 2004; Chen, Sun, Yang, Sanadidi, Gerla, "PBProbe",
//! Computer Communications 31(17), 2008. Where we differ: not the one bulk of the least delay sum but the fastest cluster among
//! the third with the least sums, averaged, so that the error of a stamp averages out and bulks can stay short.

mod growth;
mod verdict;

use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

use super::budget::Budget;
use super::sample::count;
use crate::{Bound, Estimate, Estimator, Flag, Gaps, Instrument, Step, Train, Volley, VolleyReport};

use growth::{Grown, Growth};
use verdict::{Bulks, Reading};

/// The method. It ends within three seconds.
#[derive(Debug, Clone)]
pub struct Bulk {
    instrument: Instrument,
    budget: Budget,
    rng: SplitMix64,
    stage: Stage,
    /// The question that is out.
    asked: Volley,
    bulks: Option<Bulks>,
    grown: Option<Grown>,
    sent: u64,
    came: u64,
    cut_short: bool,
}

#[derive(Debug, Clone)]
enum Stage {
    Growing(Growth),
    Sampling,
    Over,
}

impl Bulk {
    /// Equal seeds ask equal questions of equal paths.
    pub fn new(instrument: &Instrument, seed: u64) -> Self {
        Self {
            instrument: instrument.clone(),
            budget: Budget::new(instrument, LONGEST),
            rng: SplitMix64::new(seed),
            stage: Stage::Growing(Growth::new(instrument)),
            asked: Volley::default(),
            bulks: None,
            grown: None,
            sent: 0,
            came: 0,
            cut_short: false,
        }
    }

    /// Whether the figure needs no second opinion: nothing but stamps spreads the dispersions.
    pub fn is_sure(&self) -> bool {
        self.reading().is_some_and(|reading| reading.is_quiet && !reading.is_bound) && !self.cut_short
    }

    fn reading(&self) -> Option<Reading> {
        self.bulks.as_ref()?.reading()
    }

    /// Bulks at random distances, so many bytes on average as may be sent.
    fn volley(&mut self, packets: u32, pause: f64) -> Volley {
        let bytes = u64::from(packets) * u64::from(self.instrument.largest);
        let share = self.budget.picoseconds(bytes) as f64 / 1000.0;
        let trains = (0..BULKS).map(|_| {
            let rest = (share * (0.5 + self.rng.unit())).max(pause * (1.0 + self.rng.unit()));
            Train {
                packets,
                length: self.instrument.largest,
                gaps: Gaps::BackToBack,
                rest: Span(rest.min(1e12) as i64),
            }
        });
        Volley { trains: trains.collect() }
    }

    fn ask(&mut self) -> Option<(Volley, Span)> {
        match &self.stage {
            Stage::Growing(growth) => Some((growth.volley(), Span::ZERO)),
            Stage::Sampling => {
                let (packets, pause) = self.bulks.as_ref().map(|bulks| (bulks.packets(), bulks.pause()))?;
                let volley = self.volley(packets, pause);
                let lasts = volley.trains.iter().map(|train| train.rest).sum();
                Some((volley, lasts))
            }
            Stage::Over => None,
        }
    }

    fn grow(&mut self, mut growth: Growth, report: &VolleyReport) -> Stage {
        growth.take(report, &mut self.budget);
        match growth.grown(&self.budget) {
            None if growth.is_hopeless() => Stage::Over,
            None => Stage::Growing(growth),
            Some(grown) => {
                self.bulks = Some(Bulks::new(&self.instrument, &grown));
                self.grown = Some(grown);
                Stage::Sampling
            }
        }
    }

    fn sample(&mut self, report: &VolleyReport) -> Stage {
        let Some(bulks) = &mut self.bulks else { return Stage::Over };
        bulks.take(report);
        if bulks.is_content() { Stage::Over } else { Stage::Sampling }
    }

    fn flags(&self, reading: Option<&Reading>) -> Vec<Flag> {
        let mut flags = Vec::new();
        let batching = self.grown.as_ref().and_then(|grown| grown.long.batching);
        flags.extend(batching.map(|batching| batching.flag()));
        let lost = 1.0 - self.came as f64 / self.sent.max(1) as f64;
        if lost > 0.01 {
            flags.push(Flag::Lossy(lost));
        }
        if reading.is_none_or(|reading| reading.is_bound) {
            flags.push(Flag::Ambiguous);
        }
        if reading.is_some_and(|reading| reading.is_host) {
            flags.push(Flag::HostLimited);
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
        if let Some((volley, lasts)) = self.ask() {
            if let Some(due) = self.budget.due(&volley, lasts + self.instrument.rtt) {
                self.budget.spend(&volley);
                self.asked = volley.clone();
                return Step::Volley { volley, due };
            }
            self.cut_short = !self.bulks.as_ref().is_some_and(Bulks::is_enough);
        }
        self.stage = Stage::Over;
        Step::Done
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, _took: Span) {
        self.budget.at(now);
        let (sent, came) = count(&report.trains);
        self.sent += sent;
        self.came += came;
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
        let (bytes, packets) = (self.budget.bytes(), self.budget.packets());
        Some(Estimate { rate, bound, method: "bulk", bytes, packets, took: self.budget.took(), flags })
    }
}

const LONGEST: Span = Span::from_secs(3);
/// Of one volley.
const BULKS: usize = 12;

#[cfg(test)]
mod tests;
