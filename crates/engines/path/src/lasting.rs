//! Whether a figure lasts: what a token bucket's credit hides from every method whose trains are
//! shorter than the credit.
//!
//! ```text
//!  the method's own trains ...                 one steady train at its figure          only if that was held back
//!  ||| | | |  | |  |||| ...                    | | | | | | | | | | | | | |             |||||||||| | | | | | | |  |  |  |
//!                                              └ passes ┘└ held back ────┘             └ drained ┘└ two lower rates ─┘
//! ```
//!
//! **Measures** whether packets at the rate that a method has found still pass after 300 kB (or 10
//! ms, a quarter of what the method sent, or less if the load allows no more). A policer then drops
//! without a queue, a shaper's packets come at the token rate. If so, what lasts is read from the
//! drained bucket: sent over received rate is (R + X) / T for probes at R beside cross traffic X,
//! so that a line through three rates has the token rate T (the capacity) and T - X (what is
//! available). A link without a bucket has a line, too, but its T is no less than the rate that the
//! method has found, and random loss has a line without a slope: neither is taken for a bucket.
//! **Assumes** that the cross traffic goes through the bucket too, and does not react. **Biased**:
//! a credit that outlasts the steady train is not seen; the figure is then the peak, which is what
//! the path had left while it was measured. **Published**: the regression is TOPP's (Melander et
//! al. 2000), for a bucket instead of a link; that a policer drops without a queue is the mark of
//! Flach et al., "An Internet-wide analysis of traffic policing" (SIGCOMM 2016).

mod drained;
mod steady;
#[cfg(test)]
mod tests;

use netaware_stats::interval::Interval;
use netaware_units::{Mono, Span};

use crate::available::TightLink;
use crate::available::sender::Sender;
use crate::{Bound, Estimate, Estimator, Flag, Instrument, RateMode, Step, Train, Volley, VolleyReport};

use drained::line;
use steady::Steady;

/// What the method's figure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// The narrow link's rate: behind a bucket its token rate.
    Capacity,
    /// What cross traffic leaves.
    Available,
}

/// A method whose figure is put to the test before it is believed.
#[derive(Debug, Clone)]
pub struct Lasting<M> {
    method: M,
    metric: Metric,
    sender: Sender,
    instrument: Instrument,
    /// What a test takes no longer than, unless there is a trace of a bucket.
    own: Span,
    /// Of a method that follows a path: the test comes in the middle, and again after so long.
    every: Option<Span>,
    begin: Option<Mono>,
    /// From then on time has earned bytes for steady trains.
    earning: Mono,
    stage: Stage,
    asked: Volley,
    /// Of the steady trains alone.
    bytes: u64,
    packets: u64,
    /// When the last steady train was over.
    ended: Option<Mono>,
    /// Fastest rate at which packets passed one after the other while others were dropped without a
    /// queue, bit/s.
    policed: f64,
    found: Option<Found>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Measuring {
        check_at: Option<Mono>,
    },
    /// A steady train is on its way, at this rate, bit/s.
    Steady(f64),
    /// It was held back, from `peak` down to `arrived`, bit/s.
    Held {
        rate: f64,
        peak: f64,
        arrived: f64,
    },
    /// A bucket that holds back trains of this rate, bit/s, is being drained and read: so many
    /// trains for each of the rates.
    Drained {
        peak: f64,
        trains: [usize; RATES],
    },
    Over,
}

/// What the steady trains said.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Found {
    /// A bucket: the rate that its credit buys, and what lasts, bit/s.
    Bucket { peak: f64, lasts: Interval, bound: Bound },
    /// It came at this rate in the end, and what held it back cannot be told, bit/s.
    Unclear(f64),
}

impl<M: Estimator> Lasting<M> {
    /// Of a method that takes no longer than `longest` by itself. It is given nine tenths of that,
    /// or of what `instrument` allows if that is less; the test of its figure has what is left, of
    /// time and of load. Where that is too little, none is made.
    pub fn new(
        instrument: &Instrument,
        metric: Metric,
        longest: Span,
        method: impl FnOnce(&Instrument) -> M,
    ) -> Self {
        let own = instrument.time_limit.min(longest).or_zero();
        let of_method = Instrument { time_limit: own - own / 10, ..instrument.clone() };
        Self { own, ..Self::around(method(&of_method), metric, instrument.clone(), None) }
    }

    /// Of a method that follows a path until the instrument's time is over: the test comes a tenth
    /// of `every` after its first figure, and again `every` so often.
    pub fn watching(instrument: &Instrument, metric: Metric, every: Span, method: M) -> Self {
        Self::around(method, metric, instrument.clone(), Some(every))
    }

    fn around(method: M, metric: Metric, instrument: Instrument, every: Option<Span>) -> Self {
        Self {
            method,
            metric,
            sender: Sender::new(&instrument),
            own: instrument.time_limit,
            instrument,
            every,
            begin: None,
            earning: Mono(0),
            stage: Stage::Measuring { check_at: None },
            asked: Volley::default(),
            bytes: 0,
            packets: 0,
            ended: None,
            policed: 0.0,
            found: None,
        }
    }

    /// The rate that is put to the test, bit/s.
    fn peak(&self) -> Option<f64> {
        let answer = self.method.answer()?;
        // What was cut short, or seen by a host that could not, may be any rate: nothing is sent at
        // that.
        let guessed = answer.flags.iter().any(|flag| matches!(flag, Flag::CutShort | Flag::HostLimited));
        let usable = (answer.bound != Bound::AtMost && !guessed) || self.policed > 0.0;
        let figure = credited(&answer).unwrap_or(answer.rate.estimate);
        // Packets that only seem to come at once, as of a batch, make no flood.
        let rate = figure.max(self.policed.min(MOST_CREDITED * figure)).min(self.sender.fastest);
        (usable && rate.is_finite() && rate > 0.0).then_some(rate)
    }

    /// bytes a second that the load allows of `rate`, bit/s, or of what the method has found, if
    /// that is less: of a bucket nobody knows yet what lasts.
    fn allowed(&self, rate: f64) -> f64 {
        let rate = self.method.answer().map_or(rate, |answer| rate.min(answer.rate.estimate));
        let load = self.instrument.max_load;
        if load.is_finite() { load.clamp(0.001, 1.0) * rate / 8.0 } else { 0.1 * rate / 8.0 }
    }

    /// Bytes that what is left of the time earns at `rate`, and that come in it at `comes`, bit/s.
    fn room(&self, now: Mono, rate: f64, comes: f64, limit: Span) -> f64 {
        let limit = limit.or_zero();
        let end = self.begin.unwrap_or(now) + limit - self.instrument.rtt * 4 - PATIENCE.min(limit / 20);
        let earned = self.allowed(rate) * end.since(self.earning).or_zero().secs_f64();
        earned.min(comes / 8.0 * end.since(now).or_zero().secs_f64())
    }

    /// Packets of a steady train, if there is room for one that says something.
    fn size(&self, rate: f64, room: f64) -> Option<u32> {
        let answer = self.method.answer()?;
        let figure = credited(&answer).unwrap_or(answer.rate.estimate);
        // What comes faster than the method has found to pass may fill a queue.
        let most = self.instrument.largest_burst as f64 / (1.0 - figure / rate).max(0.01);
        // Who follows a path has sent much in the end, and is tested again and again.
        let spent = if self.every.is_none() { self.method.answer()?.bytes as f64 } else { 0.0 };
        let wanted = BYTES.max(rate / 8.0 * LASTS).max(spent * SHARE).min(most).min(MOST_BYTES);
        let packets = wanted.min(room) / f64::from(self.sender.length);
        (packets >= FEWEST).then_some(packets as u32)
    }

    /// As many packets at one rate as are wanted, in trains that follow each other as if they were
    /// one.
    fn steady(&self, rate: f64, packets: u32) -> Vec<Train> {
        let longest = self.sender.longest;
        let gap = Span::from_secs_f64(self.sender.bits() / rate);
        let train = |number: u32| self.sender.train(rate, longest.min(packets - number * longest), gap);
        (0..packets.div_ceil(longest)).map(train).collect()
    }

    /// Whether one of the method's own trains was policed, and at what rate its packets pass one
    /// after the other.
    fn watch(&mut self, report: &VolleyReport) {
        for (train, report) in self.asked.trains.iter().zip(&report.trains) {
            let one = Steady::of(std::slice::from_ref(train), std::slice::from_ref(report));
            if one.drops_without_queue() {
                self.policed = self.policed.max(one.passes().unwrap_or(0.0));
            }
        }
    }

    /// Not before its bytes are earned.
    fn ask(&mut self, now: Mono, rate: f64, trains: Vec<Train>) -> Step {
        let volley = Volley { trains };
        let bytes = volley.bytes() as f64;
        let lasts = Span::from_secs_f64(bytes * 8.0 / rate);
        let due = now.max(self.earning + Span::from_secs_f64(bytes / self.allowed(rate)) - lasts);
        self.bytes += volley.bytes();
        self.packets += volley.trains.iter().map(|train| u64::from(train.packets)).sum::<u64>();
        self.asked = volley.clone();
        Step::Volley { volley, due }
    }

    fn begin_check(&mut self, now: Mono) -> Option<Step> {
        let rate = self.peak()?;
        // Held back, it takes longer to come than to leave.
        let limit = if self.policed > 0.0 { self.instrument.time_limit } else { self.own };
        let packets = self.size(rate, self.room(now, rate, rate / SLOWER, limit))?;
        self.stage = Stage::Steady(rate);
        Some(self.ask(now, rate, self.steady(rate, packets)))
    }

    /// Trains that drain a bucket of which packets come at `arrived`, bit/s, and then read it: from
    /// a rate that is much too high to one that is a little too high, and at last at one that it
    /// has tokens for.
    fn drained(&mut self, now: Mono, rate: f64, peak: f64, arrived: f64) -> Option<Step> {
        let (high, low) = ((HIGHER * rate).min(self.sender.fastest), NEAR * arrived);
        let rates: [f64; RATES] = [rate, high, f64::midpoint(high, low), low, arrived / 2.0];
        let parts = f64::from(PARTS.iter().sum::<u32>()) / f64::from(PARTS[0]);
        let packets = self.size(rate, self.room(now, rate, arrived, self.instrument.time_limit) / parts)?;
        let volley =
            rates.iter().zip(PARTS).map(|(rate, part)| self.steady(*rate, packets * part / PARTS[0]));
        let volley: Vec<Vec<Train>> = volley.collect();
        let mut trains = [0; RATES];
        trains.iter_mut().zip(&volley).for_each(|(count, part)| *count = part.len());
        self.stage = Stage::Drained { peak, trains };
        Some(self.ask(now, rate, volley.concat()))
    }

    fn measure_on(&mut self, now: Mono) {
        self.earning = now;
        self.stage = match self.every {
            Some(every) => Stage::Measuring { check_at: Some(now + every) },
            None => Stage::Over,
        };
    }

    /// The first steady train: was it held back?
    fn take_steady(&mut self, rate: f64, report: &VolleyReport) {
        let steady = Steady::of(&self.asked.trains, &report.trains);
        self.found = None;
        let Some(tail) = steady.stretch(0.5, 1.0) else { return };
        let drops = steady.drops_without_queue();
        if tail.by > HELD && (drops || steady.steps_down() || steady.has_knee()) {
            // Beside dropped ones packets pass no faster than the link behind carries them.
            let peak = if drops { steady.passes().map_or(rate, |passes| passes.min(rate)) } else { rate };
            self.stage = Stage::Held { rate, peak, arrived: tail.rate / tail.by };
        }
    }

    fn take_drained(&mut self, peak: f64, trains: [usize; RATES], report: &VolleyReport) {
        let (mut asked, mut came) = (&self.asked.trains[..], &report.trains[..]);
        let parts = trains.map(|count| {
            let here;
            (here, asked) = asked.split_at(count.min(asked.len()));
            let reports;
            (reports, came) = came.split_at(count.min(came.len()));
            Steady::of(here, reports)
        });
        let [_, high, middle, low, slow] = &parts;
        // What is lost although there are tokens for it is not lost to a policer.
        let lost = high.lost(0.0, 1.0);
        let by_chance = lost > STRAY && slow.lost(0.2, 1.0) > CHANCE * lost;
        let stretches = [high, middle, low].map(|part| part.stretch(0.2, 1.0));
        self.found = match stretches {
            [Some(high), Some(middle), Some(low)] if !by_chance => {
                line(peak, &[high, middle, low], self.metric)
            }
            _ => None,
        };
    }
}

/// What short bulks pass at, if the method has seen that by itself, bit/s.
fn credited(answer: &Estimate) -> Option<f64> {
    answer.flags.iter().find_map(|flag| if let Flag::Shaped { peak } = flag { Some(*peak) } else { None })
}

impl<M: Estimator> Estimator for Lasting<M> {
    fn next(&mut self, now: Mono) -> Step {
        if self.begin.is_none() {
            (self.begin, self.earning) = (Some(now), now);
        }
        if let Stage::Held { rate, peak, arrived } = self.stage {
            self.measure_on(now);
            if let Some(step) = self.drained(now, rate, peak, arrived) {
                return step;
            }
            self.found = Some(Found::Unclear(arrived));
        }
        let Stage::Measuring { check_at } = self.stage else { return Step::Done };
        match (self.every, check_at) {
            (Some(_), Some(at)) if now >= at => {
                if let Some(step) = self.begin_check(now) {
                    return step;
                }
                self.measure_on(now);
            }
            (Some(every), None) if self.method.answer().is_some() => {
                self.stage = Stage::Measuring { check_at: Some(now + every / 10) };
            }
            _ => {}
        }
        let mut step = self.method.next(now);
        // Its own time is over, and more may be left.
        let limit = self.instrument.time_limit.or_zero();
        let has_more = step == Step::Done && self.every.is_none() && self.own < limit;
        if has_more && self.method.prolong(limit - limit / 10) {
            self.own = limit;
            step = self.method.next(now);
        }
        if let Step::Volley { volley, .. } = &step {
            self.asked = volley.clone();
            return step;
        }
        (self.stage, self.earning) = (Stage::Over, now);
        if self.every.is_some() { Step::Done } else { self.begin_check(now).unwrap_or(Step::Done) }
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, took: Span) {
        let stage = self.stage;
        match stage {
            Stage::Steady(rate) => {
                self.ended = Some(now);
                self.measure_on(now);
                self.take_steady(rate, report);
            }
            Stage::Drained { peak, trains } => {
                self.ended = Some(now);
                self.measure_on(now);
                self.take_drained(peak, trains, report);
            }
            Stage::Measuring { .. } | Stage::Held { .. } | Stage::Over => {
                self.watch(report);
                self.method.take(now, report, took);
            }
        }
    }

    fn may_not_last(&self) -> bool {
        matches!(self.found, Some(Found::Unclear(_)))
    }

    fn answer(&self) -> Option<Estimate> {
        let mut answer = self.method.answer()?;
        answer.bytes += self.bytes;
        answer.packets += self.packets;
        // Of it all, with the time that its bytes had to wait for.
        if let (Some(begin), Some(ended)) = (self.begin, self.ended) {
            answer.took = answer.took.max(ended.since(begin));
        }
        match self.found {
            None => {}
            Some(Found::Bucket { peak, lasts, bound }) => {
                answer.flags.retain(|flag| !matches!(flag, Flag::Shaped { .. }));
                answer.flags.push(Flag::Shaped { peak });
                (answer.rate, answer.bound) = (lasts, bound);
            }
            Some(Found::Unclear(arrived)) => {
                answer.rate.lo = answer.rate.lo.min(arrived);
                if !answer.flags.contains(&Flag::Ambiguous) {
                    answer.flags.push(Flag::Ambiguous);
                }
            }
        }
        Some(answer)
    }

    /// Of a bucket a line through trains that lived on its credit says nothing.
    fn tight_link(&self) -> Option<TightLink> {
        if matches!(self.found, Some(Found::Bucket { .. })) { None } else { self.method.tight_link() }
    }

    /// They are the peak rate's where a token bucket holds the figure down.
    fn modes(&self) -> Vec<RateMode> {
        self.method.modes()
    }
}

/// Bytes of a steady train: more than most credits.
const BYTES: f64 = 300_000.0;
/// But so long at least, s, since credits grow with rates, and batches must be many; and not more
/// bytes.
const LASTS: f64 = 0.01;
/// And no less than this of what the method has sent.
const SHARE: f64 = 0.25;
const MOST_BYTES: f64 = 12_500_000.0;
/// Packets of one that says something.
const FEWEST: f64 = 40.0;
/// Times the method's figure that a credit may buy: what policers leave is seldom less than a tenth
/// of their link.
const MOST_CREDITED: f64 = 10.0;
/// Times that what is held back may take longer to come.
const SLOWER: f64 = 8.0;
/// For the last packet.
const PATIENCE: Span = Span::from_millis(300);
/// A train that takes no longer than this was not held back.
const HELD: f64 = 1.1;
/// Rates that a bucket is drained and read at, and how many packets of each, relative to each
/// other.
const RATES: usize = 5;
const PARTS: [u32; RATES] = [4, 4, 4, 4, 2];
/// The highest of them over the rate that is put to the test.
const HIGHER: f64 = 1.5;
/// The lowest that is held back, over that at which the steady train came: still more than lasts.
const NEAR: f64 = 1.15;
/// Loss up to this share is stray.
const STRAY: f64 = 0.04;
/// Loss that is no less than this of what it was at the highest rate is chance.
const CHANCE: f64 = 0.6;
