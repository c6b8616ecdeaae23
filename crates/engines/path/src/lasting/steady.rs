//! A steady train after it has passed: how much slower it came than it left, in parts.

use netaware_stats::moments::Moments;
use netaware_stats::quantile::{linear, median};

use crate::batching::{Batching, Dispersion, starts};
use crate::capacity::long_train::knee;
use crate::{Arrival, Train, TrainReport};

/// Trains of one rate that left without a rest between them, as one.
#[derive(Debug, Clone, Default)]
pub(super) struct Steady {
    length: u32,
    sent: Vec<Option<i64>>,
    arrivals: Vec<Arrival>,
    batching: Option<Batching>,
}

/// How a part of it was stretched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch {
    /// bit/s as sent.
    pub(super) rate: f64,
    /// Sent over received rate, what was lost counted as not received.
    pub(super) by: f64,
    /// Standard error of that.
    pub(super) error: f64,
}

impl Steady {
    pub(super) fn of(trains: &[Train], reports: &[TrainReport]) -> Self {
        let mut all = Self { length: trains.first().map_or(0, |train| train.length), ..Self::default() };
        let (mut latest, mut highest) = (i64::MIN, None);
        for (train, report) in trains.iter().zip(reports) {
            let begin = all.sent.len() as u32;
            all.sent.extend(report.sent.iter().take(train.packets as usize));
            // What was overtaken says nothing of a rate.
            for arrival in report.arrivals.iter().filter(|it| it.number < train.packets) {
                let number = begin + arrival.number;
                if arrival.at >= latest && highest.is_none_or(|highest| number > highest) {
                    (latest, highest) = (arrival.at, Some(number));
                    all.arrivals.push(Arrival { number, at: arrival.at });
                }
            }
            all.sent.resize((begin + train.packets) as usize, None);
        }
        all.batching = Batching::of(&all.arrivals).filter(|found| found.batch >= REAL_BATCH);
        all
    }

    /// What came of the packets of a part, 0..1 of the train.
    fn part(&self, from: f64, to: f64) -> (&[Arrival], std::ops::Range<usize>) {
        let at = |share: f64| ((self.sent.len() as f64 * share) as usize).min(self.sent.len());
        let place = |number: usize| self.arrivals.partition_point(|it| (it.number as usize) < number);
        (&self.arrivals[place(at(from))..place(at(to))], at(from)..at(to))
    }

    /// Share of a part that was lost, 0 to 1. If a receiver claims more packets than left, nothing
    /// was lost.
    pub(super) fn lost(&self, from: f64, to: f64) -> f64 {
        let (came, numbers) = self.part(from, to);
        let left = self.sent[numbers].iter().flatten().count();
        (1.0 - came.len() as f64 / left.max(1) as f64).max(0.0)
    }

    /// bit/s that a part came at, and that it left at.
    fn rates(&self, from: f64, to: f64) -> Option<(f64, f64)> {
        let (came, numbers) = self.part(from, to);
        let received = Dispersion::of(came, self.batching.as_ref())?.rate(self.length);
        let mut left = self.sent[numbers].iter().flatten();
        let (first, last, between) = (left.next()?, left.next_back()?, left.count() + 1);
        let span = last.checked_sub(*first).filter(|span| *span > 0)? as f64;
        Some((received, between as f64 * f64::from(self.length) * 8e9 / span))
    }

    /// How a part was stretched. What chance makes of it is seen in its quarters.
    pub(super) fn stretch(&self, from: f64, to: f64) -> Option<Stretch> {
        let (received, sent) = self.rates(from, to)?;
        let quarter = (to - from) / 4.0;
        let mut quarters = Moments::new();
        for number in 0..4 {
            let begin = from + f64::from(number) * quarter;
            if let Some((received, sent)) = self.rates(begin, begin + quarter) {
                quarters.observe(sent / received);
            }
        }
        let by = sent / received;
        let chance = quarters.sd().filter(|_| quarters.count() > 2).unwrap_or(by) / 2.0;
        Some(Stretch { rate: sent, by, error: chance.max(LEAST_ERROR * by) })
    }

    /// Whether it came well at first and then, all at once, at a lower rate that stayed: what a
    /// credit makes of it. Cross traffic that was there from the begin makes no step, and bursts
    /// none that stays.
    pub(super) fn steps_down(&self) -> bool {
        let rates = self.block_rates();
        if rates.len() < FEWEST_BLOCKS {
            return false;
        }
        (1..rates.len() - BLOCKS_BEHIND).any(|at| {
            // The block in which it happens is of both kinds.
            let (head, tail) = (moments(&rates[..at]), moments(&rates[at + 1..]));
            let (Some(high), Some(low)) = (head.mean(), tail.mean()) else { return false };
            let squares = |of: &Moments| of.variance().unwrap_or(0.0) * (of.count().max(1) - 1) as f64;
            let freedom = (head.count() + tail.count() - 2).max(1) as f64;
            let scatter = ((squares(&head) + squares(&tail)) / freedom).sqrt().max(LEAST_ERROR * high);
            let error = scatter * (1.0 / head.count() as f64 + 1.0 / tail.count() as f64).sqrt();
            high > STEP * low && high - low > SURE * error
        })
    }

    /// Whether some of its first packets came as near as they left, and then none: a credit that is
    /// too short for a step. Beside cross traffic some always do.
    pub(super) fn has_knee(&self) -> bool {
        let Some((_, sent)) = self.rates(0.0, 1.0).filter(|_| self.batching.is_none()) else { return false };
        let behind = knee(&self.arrivals, f64::from(self.length) * 8e9 / sent, self.length);
        behind.is_some_and(|(_, packets)| packets * 4 > self.arrivals.len() * 3)
    }

    /// bit/s of arrival, block by block: of equal numbers of packets sent, from batch begin to
    /// batch begin where there are batches.
    fn block_rates(&self) -> Vec<f64> {
        let last = self.arrivals.len().saturating_sub(1);
        let begins = self.batching.is_some().then(|| starts(&self.arrivals));
        let edge = |block: usize| {
            let number = self.sent.len() * block / BLOCKS;
            let at = self.arrivals.partition_point(|it| (it.number as usize) < number).min(last);
            begins.as_ref().map_or(Some(at), |begins| {
                let next = begins.partition_point(|begin| *begin < at);
                begins.get(next).or_else(|| begins.last()).copied()
            })
        };
        let mut edges: Vec<usize> = (0..=BLOCKS).filter_map(edge).collect();
        edges.dedup();
        let rate = |pair: &[usize]| {
            Dispersion::between(&self.arrivals, pair[0], pair[1]).map(|it| it.rate(self.length))
        };
        edges.windows(2).filter_map(rate).collect()
    }

    /// bit/s at which packets of which none between was lost come one after the other, the faster
    /// ones; where they come in batches, at which they left.
    pub(super) fn passes(&self) -> Option<f64> {
        let joined = |pair: &&[Arrival]| pair[1].number == pair[0].number + 1 && pair[1].at > pair[0].at;
        let mut gaps: Vec<f64> = self
            .arrivals
            .windows(2)
            .filter(joined)
            .map(|pair| pair[1].at.saturating_sub(pair[0].at) as f64)
            .collect();
        if self.batching.is_some() || gaps.len() < FEWEST_PAIRS {
            return self.rates(0.0, 1.0).map(|(_, sent)| sent);
        }
        gaps.sort_unstable_by(f64::total_cmp);
        linear(&gaps, FASTER).map(|gap| f64::from(self.length) * 8e9 / gap)
    }

    /// Whether packets are lost while those that come have not waited in a full queue: what a
    /// policer does, and chance.
    pub(super) fn drops_without_queue(&self) -> bool {
        let (came, _) = self.part(0.5, 1.0);
        if came.len() < FEWEST_POLICED || self.lost(0.5, 1.0) < LOSSY {
            return false;
        }
        let delay = |arrival: &Arrival| {
            let sent = self.sent.get(arrival.number as usize).copied().flatten()?;
            Some((i128::from(arrival.at) - i128::from(sent)) as f64)
        };
        let delays: Vec<f64> = self.arrivals.iter().filter_map(delay).collect();
        let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
        let longest = delays.iter().copied().fold(0.0, f64::max) - least;
        let late: Vec<f64> = came.iter().filter_map(delay).collect();
        let Some(waits) = median(&late).map(|late| late - least) else { return false };
        let packet = self.rates(0.0, 1.0).map_or(0.0, |(_, sent)| f64::from(self.length) * 8e9 / sent);
        let period = self.batching.map_or(0.0, |found| found.period);
        waits < FULL * longest || waits < FEW * packet + period
    }
}

fn moments(values: &[f64]) -> Moments {
    let mut moments = Moments::new();
    for value in values {
        moments.observe(*value);
    }
    moments
}

/// Stamps that err by more than a gap look like smaller batches.
const REAL_BATCH: f64 = 2.5;
const BLOCKS: usize = 16;
/// Fewer, where batches are long, show no step.
const FEWEST_BLOCKS: usize = 6;
/// Blocks behind a step: it stays.
const BLOCKS_BEHIND: usize = 3;
/// A rate over a lower one that makes a step.
const STEP: f64 = 1.12;
/// Standard errors of a step.
const SURE: f64 = 6.0;
/// Of a stretch, and of a block's rate: no part is better known.
const LEAST_ERROR: f64 = 0.007;
/// Loss that is more than stray.
const LOSSY: f64 = 0.04;
const FEWEST_PAIRS: usize = 3;
/// Of the gaps: quicker ones are the stamps'.
const FASTER: f64 = 0.25;
const FEWEST_POLICED: usize = 8;
/// Of the longest wait: less is no full queue.
const FULL: f64 = 0.5;
/// Packets that others make wait without a queue that is full.
const FEW: f64 = 4.0;
