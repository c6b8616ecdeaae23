//! What is asked in each phase, and what is kept of the answers.

use netaware_stats::interval::Interval;
use netaware_stats::moments::Moments;

use super::super::budget::Budget;
use super::super::long_train::LongTrain;
use super::super::sample::Whole;
use super::PathrateRules;
use super::modal::{Modal, Pair};
use crate::batching::{Batching, Dispersion, starts};
use crate::{Bound, Flag, Instrument, RateMode, TrainReport, VolleyReport};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Longest,
    Preliminary,
    /// With so many packets in a train, the size of this number, and so many packets too short so
    /// far.
    Modes {
        packets: u32,
        size: u32,
    },
    /// Trains so far.
    Long {
        trains: u32,
    },
    /// The same under coalescing.
    Batches {
        trains: u32,
    },
    Over,
}

#[derive(Debug, Clone)]
pub(super) struct Phases {
    phase: Phase,
    rules: PathrateRules,
    largest: u32,
    smallest: u32,
    largest_burst: u64,
    /// Standard deviation of the difference of two stamps, ns.
    error: f64,
    longest: u32,
    batching: Option<Batching>,
    /// Of the trains that were asked for: packets and bytes of each packet.
    asked: Vec<(u32, u32)>,
    preliminary: Vec<Pair>,
    pairs: Vec<Pair>,
    aborted: bool,
    /// ns per packet of long trains.
    long: Vec<f64>,
    /// bit/s from batch start to batch start, of all trains.
    batches: Vec<f64>,
}

/// What is known.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub(super) rate: Interval,
    pub(super) bound: Bound,
    pub(super) flags: Vec<Flag>,
}

impl Phases {
    pub(super) fn new(instrument: &Instrument, rules: PathrateRules) -> Self {
        Self {
            phase: Phase::Longest,
            rules,
            largest: instrument.largest,
            smallest: SMALLEST.max(instrument.smallest).min(instrument.largest),
            largest_burst: instrument.largest_burst,
            error: std::f64::consts::SQRT_2 * (instrument.receive_error.nanos() as f64).max(10.0),
            longest: 2,
            batching: None,
            asked: Vec::new(),
            preliminary: Vec::new(),
            pairs: Vec::new(),
            aborted: false,
            long: Vec::new(),
            batches: Vec::new(),
        }
    }

    /// Between trains at least, ns.
    pub(super) fn pause(&self) -> f64 {
        self.batching.map_or(20_000.0, |batching| 2.0 * batching.period)
    }

    /// Packets and length of each train of the next volley; `None` at the end.
    pub(super) fn wanted(&mut self, budget: &Budget) -> Option<Vec<(u32, u32)>> {
        let wanted = match self.phase {
            Phase::Longest => self.lengths(),
            Phase::Preliminary => {
                let lengths = 2..=self.longest.clamp(2, 10);
                lengths.flat_map(|packets| vec![(packets, self.largest); 7]).collect()
            }
            Phase::Modes { packets, size } => vec![(packets, self.size(packets, size)); PAIRS],
            Phase::Long { .. } => vec![(self.longest, self.largest); self.trains(self.longest, budget)],
            Phase::Batches { .. } => {
                let packets = self.batch_train();
                vec![(packets, self.largest); self.trains(packets, budget).min(5)]
            }
            Phase::Over => return None,
        };
        self.asked.clone_from(&wanted);
        (!wanted.is_empty()).then_some(wanted)
    }

    /// What was wanted costs too much: on to the next phase, if there is one.
    pub(super) fn skip(&mut self) -> bool {
        self.phase = match self.phase {
            Phase::Modes { .. } => Phase::Long { trains: 0 },
            _ => Phase::Over,
        };
        self.phase != Phase::Over
    }

    pub(super) fn take(&mut self, report: &VolleyReport, budget: &mut Budget) {
        let asked = std::mem::take(&mut self.asked);
        let trains = || report.trains.iter().zip(&asked);
        self.phase = match self.phase {
            Phase::Longest => self.take_longest(trains(), budget),
            Phase::Preliminary => {
                let pairs: Vec<Pair> =
                    trains().filter_map(|(train, asked)| self.pair(train, *asked)).collect();
                self.preliminary.extend(pairs);
                self.after_preliminary()
            }
            Phase::Modes { packets, size } => self.take_pairs(trains(), packets, size),
            Phase::Long { trains: count } => {
                self.long.extend(
                    report.trains.iter().filter_map(|t| Some(Dispersion::of(&t.arrivals, None)?.gap())),
                );
                self.after_long(count + asked.len() as u32)
            }
            Phase::Batches { trains: count } => {
                report.trains.iter().for_each(|train| self.take_batches(train));
                if count >= 10 { Phase::Over } else { Phase::Batches { trains: count + asked.len() as u32 } }
            }
            Phase::Over => Phase::Over,
        };
    }

    /// Of the longest trains, bit/s.
    pub(super) fn dispersion_rate(&self) -> Option<f64> {
        let kept = trimmed(&self.long, 10);
        let gap = kept.iter().copied().collect::<Moments>().mean()?;
        Some(f64::from(self.largest) * 8e9 / gap)
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        let mut flags: Vec<Flag> = self.batching.iter().map(Batching::flag).collect();
        if self.batching.is_some() {
            let (rate, bound) = self.of_batches()?;
            return Some(Verdict { rate, bound, flags });
        }
        let modal = Modal { rules: &self.rules, largest: self.largest, error: self.error };
        let preliminary = modal.preliminary(&self.preliminary)?;
        if preliminary.alike {
            return Some(Verdict { rate: preliminary.rate, bound: Bound::None, flags });
        }
        let adr = self.dispersion_rate();
        if !self.aborted
            && let Some((rate, ambiguous)) = modal.mode_above(&self.pairs, preliminary.bin, adr)
        {
            flags.extend(ambiguous.then_some(Flag::Ambiguous));
            flags.extend(modal.is_coarse(rate.estimate).then_some(Flag::Noisy));
            return Some(Verdict { rate, bound: Bound::None, flags });
        }
        let estimate = adr.unwrap_or(preliminary.rate.estimate);
        let half = preliminary.bin / 2.0;
        let rate = Interval { estimate, lo: estimate - half, hi: estimate + half, confidence: 0.9 };
        flags.push(Flag::Ambiguous);
        Some(Verdict { rate, bound: Bound::AtLeast, flags })
    }

    /// Of the pairs, where there are enough that were long enough.
    pub(super) fn modes(&self) -> Vec<RateMode> {
        let modal = Modal { rules: &self.rules, largest: self.largest, error: self.error };
        match modal.preliminary(&self.preliminary) {
            Some(preliminary) if !self.aborted => {
                modal.told(&self.pairs, preliminary.bin, self.dispersion_rate())
            }
            _ => Vec::new(),
        }
    }

    fn lengths(&self) -> Vec<(u32, u32)> {
        let most = (self.largest_burst / u64::from(self.largest.max(1))).clamp(2, 50) as u32;
        [10, 25, 50].iter().filter(|n| **n <= most).map(|n| (*n, self.largest)).collect()
    }

    fn size(&self, packets: u32, number: u32) -> u32 {
        let step = (self.largest - self.smallest) / SIZES + 1;
        (self.smallest + step * number + MORE * (packets - 2)).min(self.largest)
    }

    fn batch_train(&self) -> u32 {
        let most = u32::try_from(self.largest_burst / u64::from(self.largest.max(1))).unwrap_or(u32::MAX);
        let of_periods = self.batching.map_or(0.0, |batching| 8.0 * batching.batch);
        (of_periods.min(1e6) as u32).max(200).min(most).max(2)
    }

    /// As many as remain of 500 and of the bytes, in volleys of 20.
    fn trains(&self, packets: u32, budget: &Budget) -> usize {
        let bytes = u64::from(packets) * u64::from(self.largest);
        let affordable = budget.bytes_left() / bytes.max(1);
        affordable.min(20) as usize
    }

    fn take_longest<'a>(
        &mut self,
        trains: impl Iterator<Item = (&'a TrainReport, &'a (u32, u32))>,
        budget: &mut Budget,
    ) -> Phase {
        for (train, (packets, length)) in trains {
            if train.arrivals.len() == train.sent.len() {
                self.longest = self.longest.max(*packets);
            }
            if let Some(long) = LongTrain::of(train, *length) {
                budget.saw_rate(long.rate);
                self.batching = long.batching.or(self.batching);
            }
        }
        if self.batching.is_some() { Phase::Batches { trains: 0 } } else { Phase::Preliminary }
    }

    fn after_preliminary(&self) -> Phase {
        let modal = Modal { rules: &self.rules, largest: self.largest, error: self.error };
        match modal.preliminary(&self.preliminary) {
            Some(preliminary) if preliminary.alike => Phase::Over,
            Some(_) => Phase::Modes { packets: 2, size: 0 },
            None => Phase::Over,
        }
    }

    fn take_pairs<'a>(
        &mut self,
        trains: impl Iterator<Item = (&'a TrainReport, &'a (u32, u32))>,
        packets: u32,
        size: u32,
    ) -> Phase {
        let before = self.pairs.len();
        let mut whole = 0;
        for (train, asked) in trains {
            whole += usize::from(Whole::of(train).is_some());
            self.pairs.extend(self.pair(train, *asked));
        }
        let too_short = whole - (self.pairs.len() - before).min(whole);
        if too_short * 4 > PAIRS {
            self.aborted = packets + 1 > (self.longest / 4).max(2);
            let more = Phase::Modes { packets: packets + 1, size: 0 };
            return if self.aborted { Phase::Long { trains: 0 } } else { more };
        }
        if size + 1 < SIZES { Phase::Modes { packets, size: size + 1 } } else { Phase::Long { trains: 0 } }
    }

    fn after_long(&self, trains: u32) -> Phase {
        let gaps: Moments = self.long.iter().copied().collect();
        let error = gaps.sd().zip(gaps.mean()).map(|(sd, mean)| sd / mean / (gaps.count() as f64).sqrt());
        let known = trains >= 60 && error.is_some_and(|error| error < 0.005);
        if known || trains >= LONG_TRAINS { Phase::Over } else { Phase::Long { trains } }
    }

    fn take_batches(&mut self, train: &TrainReport) {
        let Some(whole) = Dispersion::of(&train.arrivals, self.batching.as_ref()) else { return };
        self.long.push(whole.gap());
        let between = starts(&train.arrivals);
        let rates = between.windows(2).filter_map(|pair| {
            Some(Dispersion::between(&train.arrivals, pair[0], pair[1])?.rate(self.largest))
        });
        let floor = 0.9 * whole.rate(self.largest);
        self.batches.extend(rates.filter(|rate| *rate >= floor));
    }

    /// `None` for one that is too short to be told from the stamps' error.
    fn pair(&self, train: &TrainReport, (packets, length): (u32, u32)) -> Option<Pair> {
        let span = Whole::of(train)?.dispersion(packets as usize - 1)?;
        let gaps = f64::from(packets - 1);
        (span >= TOO_SHORT * self.error).then_some(Pair { length, gap: span / gaps, gaps })
    }

    fn of_batches(&self) -> Option<(Interval, Bound)> {
        let mut sorted = self.batches.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let adr = self.dispersion_rate()?;
        let top = netaware_stats::quantile::linear(&sorted, 0.9).unwrap_or(adr);
        let half = top * 0.01;
        let rate = Interval { estimate: top, lo: (top - half).min(adr), hi: top + half, confidence: 0.9 };
        // Steady traffic would stretch all of them alike, and within batches no packet of it shows.
        Some((rate, Bound::AtLeast))
    }
}

/// Without the `most` smallest and the `most` largest, or a tenth of each where there are few;
/// sorted.
pub(super) fn trimmed(values: &[f64], most: usize) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let cut = most.min(sorted.len() / 10);
    sorted[cut..sorted.len() - cut].to_vec()
}

/// Bytes of the IP packets that phase I begins with.
const SMALLEST: u32 = 572;
/// Bytes by which they grow when trains do.
const MORE: u32 = 275;
const SIZES: u32 = 40;
const PAIRS: usize = 25;
const LONG_TRAINS: u32 = 500;
/// A dispersion of fewer stamp errors says nothing.
const TOO_SHORT: f64 = 10.0;
