//! Available bandwidth from the gaps of pairs, where the tight link's capacity is known.
//!
//! **Measures** the mean over pairs of A = C - X with X = (C g_out - L) / g_in: what arrived
//! between the packets of a pair. A pair leaves L/C apart, so that the queue cannot run empty
//! between the two; pairs come as a Poisson process, so that they see time averages. Some time
//! ahead of each pair a packet wakes whoever sleeps on the way: the first packet after a pause is
//! handled, and stamped, later than the second. **Assumes** that C is the tight link's, that the
//! tight link is the narrow one and is first in first out. **Biased** by as much as C is wrong;
//! high if a faster, loaded link behind pulls pairs together; low by whatever loaded links in front
//! spread them, so that the interval reaches higher than the spread of the pairs alone would have
//! it. The original floors each pair's X at zero and A at -0.8 C, which reads low where stamps err
//! to both sides (a gap of 12 us at 1 Gbit/s does); here only the mean is kept within 0 and C. It
//! also re-derives C from a gap cut to whole microseconds (+2.6 % at 100 Mbit/s, +9 % at 1 Gbit/s);
//! here gaps are those of the stamps and C is the one given. **Published**: Strauss, Katabi and
//! Kaashoek, "A measurement study of available bandwidth estimation tools" (IMC 2003).

use netaware_stats::distribution::student_t_two_sided;
use netaware_stats::interval::Interval;
use netaware_stats::moments::Moments;
use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

use crate::available::budget::Budget;
use crate::available::sender::Sender;
use crate::{
    Bound, Estimate, Estimator, Flag, Gaps, Instrument, Needs, Step, Train, TrainReport, Volley, VolleyReport,
};

/// The estimator.
#[derive(Debug, Clone)]
pub struct Spruce {
    sender: Sender,
    budget: Budget,
    capacity: Interval,
    rng: SplitMix64,
    cross: Moments,
    asked: Volley,
    seen: Seen,
    out_of_time: bool,
}

/// Pairs by what became of them.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    asked: u32,
    lost: u32,
    /// Left too far apart.
    late: u32,
    /// Arrived closer than the narrow link allows.
    merged: u32,
}

impl Spruce {
    /// It takes no longer by itself.
    pub const LONGEST: Span = Span::from_secs(15);
    /// What a first figure needs.
    pub const NEEDS: Needs = Needs { packets: 600, train: 3, rounds: 6 };

    /// The longest that it takes by itself on a path like this.
    pub fn longest(instrument: &Instrument) -> Span {
        instrument.longest(Self::LONGEST, Self::NEEDS.packets, Self::NEEDS.rounds)
    }

    /// For a tight link of this capacity, bit/s with its bounds. `seed` fixes the distances of the
    /// pairs. It takes 15 s, or what the instrument allows if that is less.
    pub fn new(instrument: &Instrument, capacity: Interval, seed: u64) -> Self {
        let load = instrument.max_load.min(LOAD);
        let mut budget =
            Budget::new(&Instrument { max_load: load, ..instrument.clone() }, Self::longest(instrument));
        budget.knows(capacity.lo);
        Self {
            sender: Sender::new(instrument),
            budget,
            capacity,
            rng: SplitMix64::new(seed),
            cross: Moments::new(),
            asked: Volley::default(),
            seen: Seen::default(),
            out_of_time: false,
        }
    }

    /// L/C in ns.
    fn narrow_gap(&self) -> f64 {
        self.sender.bits() / self.capacity.estimate * 1e9
    }

    fn is_sound(&self) -> bool {
        let c = self.capacity;
        c.lo.is_finite() && c.lo > 0.0 && c.hi.is_finite() && c.estimate >= c.lo
    }

    fn compose(&mut self, now: Mono) -> Volley {
        let gap = (self.narrow_gap() * 1000.0).round() as u64;
        // At least what the load allows, at most what spreads the pairs over the time that there
        // is.
        let pair = Span::from_secs_f64(self.narrow_gap() / 1e9);
        let least = self.budget.rest(3.0 * self.sender.bits(), pair).secs_f64();
        let left = f64::from((PAIRS.saturating_sub(self.seen.asked)).max(1));
        let mean = (self.budget.time_left(now).secs_f64() / left * 0.8).min(PAUSE).max(least);
        let count = PAIRS_A_VOLLEY.min(PAIRS - self.seen.asked);
        let wake = gap.saturating_mul(WAKE).max(SHORTEST_WAKE.nanos().unsigned_abs() * 1000);
        let mut train = || {
            let rest = Span::from_secs_f64(-mean * (1.0 - self.rng.unit()).ln());
            Train { packets: 3, length: self.sender.length, gaps: Gaps::Each(vec![wake, gap]), rest }
        };
        Volley { trains: (0..count).map(|_| train()).collect() }
    }

    fn take_pair(&mut self, report: &TrainReport) {
        self.seen.asked += 1;
        let at = |number: u32| report.arrivals.iter().find(|arrival| arrival.number == number).map(|a| a.at);
        let sent = |number: usize| report.sent.get(number).copied().flatten();
        let (Some(a), Some(b), Some(sa), Some(sb)) = (at(1), at(2), sent(1), sent(2)) else {
            self.seen.lost += 1;
            return;
        };
        let between = |later: i64, earlier: i64| (i128::from(later) - i128::from(earlier)) as f64;
        let (g_in, g_out) = (between(sb, sa), between(b, a));
        if g_in <= 0.0 || g_in > LATE * self.narrow_gap() {
            self.seen.late += 1;
            return;
        }
        self.seen.merged += u32::from(g_out < MERGED * self.narrow_gap());
        self.cross.observe((g_out - self.narrow_gap()) / g_in);
    }

    fn estimate(&self, rate: Interval, bound: Bound, mut flags: Vec<Flag>) -> Estimate {
        let lost = f64::from(self.seen.lost) / f64::from(self.seen.asked.max(1));
        if lost > LOSS_LIMIT {
            flags.push(Flag::Lossy(lost));
        }
        if self.out_of_time {
            flags.push(Flag::CutShort);
        }
        Estimate {
            rate,
            bound,
            method: "spruce",
            bytes: self.budget.bytes,
            packets: self.budget.packets,
            took: self.budget.took(),
            flags,
        }
    }

    /// Pairs say nothing here: all that is known is the capacity.
    fn at_most(&self, flag: Flag) -> Estimate {
        let c = self.capacity;
        let rate = Interval { estimate: c.estimate, lo: 0.0, hi: c.hi, confidence: c.confidence };
        self.estimate(rate, Bound::AtMost, vec![flag])
    }
}

impl Estimator for Spruce {
    fn next(&mut self, now: Mono) -> Step {
        self.budget.begin(now);
        if self.out_of_time || self.seen.asked >= PAIRS || !self.is_sound() {
            return Step::Done;
        }
        let volley = self.compose(now);
        let Some(due) = self.budget.due(now, &volley, &self.sender) else {
            self.out_of_time = true;
            return Step::Done;
        };
        self.budget.charge(&volley);
        self.asked = volley.clone();
        Step::Volley { volley, due }
    }

    fn prolong(&mut self, limit: Span) -> bool {
        let goes_on = self.out_of_time && self.budget.prolong(limit);
        self.out_of_time &= !goes_on;
        goes_on
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, _took: Span) {
        self.budget.heard(now);
        let asked = std::mem::take(&mut self.asked);
        for at in 0..asked.trains.len() {
            self.take_pair(report.trains.get(at).unwrap_or(&TrainReport::default()));
        }
    }

    fn answer(&self) -> Option<Estimate> {
        let used = self.cross.count();
        if self.seen.late > self.seen.asked / 2 {
            return Some(self.at_most(Flag::HostLimited));
        }
        if u64::from(self.seen.merged) * 5 > used && used > 0 {
            return Some(self.at_most(Flag::Coalescing { period: Span::ZERO, batch: 2.0 }));
        }
        let (mean, deviation) = (self.cross.mean()?, self.cross.sd()?);
        let half = student_t_two_sided(CONFIDENCE, used.saturating_sub(1).max(1))? * deviation
            / (used as f64).sqrt();
        let c = self.capacity;
        // Where the capacity is wrong, L/C and C are, and the gap that was asked for stays.
        let at = |capacity: f64| {
            let wrong = self.sender.bits() / self.narrow_gap() * 1e9 / capacity;
            capacity * (1.0 - mean - (1.0 - wrong))
        };
        let ends = [at(c.lo), at(c.estimate), at(c.hi)];
        let lo = ends.iter().copied().fold(f64::INFINITY, f64::min) - half * c.estimate;
        // Other hops spread pairs, too, and what they add reads as traffic of the tight one.
        let elsewhere = ELSEWHERE * mean.clamp(0.0, 1.0);
        let hi = ends.iter().copied().fold(0.0, f64::max) + half.max(elsewhere) * c.estimate;
        let estimate = ends[1].max(0.0).min(c.estimate);
        let rate = Interval {
            estimate,
            lo: lo.max(0.0).min(estimate),
            hi: hi.max(estimate),
            confidence: CONFIDENCE,
        };
        let wide = rate.width() > 2.0 * NOISY * estimate || used < u64::from(FEWEST);
        Some(self.estimate(rate, Bound::None, if wide { vec![Flag::Noisy] } else { Vec::new() }))
    }
}

/// As published.
const PAIRS: u32 = 100;
/// The packet that wakes goes so many L/C ahead of the pair, and as long at least: its own queue is
/// gone by then, and whoever woke is awake still.
const WAKE: u64 = 6;
const SHORTEST_WAKE: Span = Span::from_micros(300);
const PAIRS_A_VOLLEY: u32 = 20;
/// Mean pause between pairs, s.
const PAUSE: f64 = 0.1;
/// Share of the capacity that pairs use, as published.
const LOAD: f64 = 0.05;
/// A pair that left further apart than so many L/C may have seen the queue run empty.
const LATE: f64 = 1.25;
/// No narrow link lets two packets arrive this close, as a share of L/C.
const MERGED: f64 = 0.5;
const LOSS_LIMIT: f64 = 0.1;
/// Pairs that make a figure.
const FEWEST: u32 = 20;
const NOISY: f64 = 0.1;
/// Share of what pairs were stretched by that other hops may have done. Simulated paths of three
/// and five loaded hops, and with a narrow link in front of the tight one, need no more where the
/// load is 50 % or less.
const ELSEWHERE: f64 = 0.5;
const CONFIDENCE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::available::fifo::{Path, Traffic, instrument};

    fn known(capacity: f64) -> Interval {
        Interval { estimate: capacity, lo: capacity * 0.99, hi: capacity * 1.01, confidence: 0.95 }
    }

    fn run(path: &mut Path, capacity: f64, told: f64) -> Option<Estimate> {
        let outcome = path.run(&mut Spruce::new(&instrument(capacity), known(told), 3));
        assert!(outcome.took <= 15.0 && outcome.bits <= 0.0505 * capacity * outcome.took, "{outcome:?}");
        outcome.answer
    }

    #[test]
    fn the_mean_over_pairs_is_without_bias() {
        for load in [0.2, 0.5, 0.8] {
            let answers = (0..90)
                .filter_map(|seed| run(&mut Path::single(1e8, load, Traffic::Poisson, seed), 1e8, 1e8));
            let rates: Vec<f64> = answers.map(|answer| answer.rate.estimate).collect();
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            assert!((mean - 1e8 * (1.0 - load)).abs() < 0.03 * 1e8, "{load}: {mean}");
        }
    }

    #[test]
    fn the_interval_holds_the_truth() {
        let holds = |seed: &u64| {
            let answer = run(&mut Path::single(1e8, 0.5, Traffic::Poisson, *seed), 1e8, 1e8).unwrap();
            answer.rate.contains(5e7)
        };
        let held = (0..50).filter(holds).count();
        assert!(held >= 43, "{held} of 50");
    }

    #[test]
    fn a_gigabit_idle_is_not_read_nine_percent_high() {
        let answer = run(&mut Path::single(1e9, 0.0, Traffic::Even, 1), 1e9, 1e9).unwrap();
        assert!((answer.rate.estimate / 1e9 - 1.0).abs() < 0.005, "{answer:?}");
    }

    #[test]
    fn batches_leave_a_bound() {
        let mut path = Path::single(1e8, 0.5, Traffic::Poisson, 1);
        path.coalescing = 250_000.0;
        let answer = run(&mut path, 1e8, 1e8).unwrap();
        assert_eq!(answer.bound, Bound::AtMost);
        assert!(matches!(answer.flags[..], [Flag::Coalescing { .. }]));
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        let mut path = Path::single(1e8, 0.0, Traffic::Even, 1);
        path.loss = 1.1;
        assert_eq!(run(&mut path, 1e8, 1e8), None);
        for nonsense in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut spruce = Spruce::new(&instrument(1e8), known(nonsense), 1);
            assert_eq!((spruce.next(Mono(0)), spruce.answer()), (Step::Done, None));
        }
    }
}
