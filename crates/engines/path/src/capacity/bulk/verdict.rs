//! From bulks to a capacity.

use netaware_stats::interval::Interval;
use netaware_stats::modes::clusters;
use netaware_stats::moments::Moments;
use netaware_stats::quantile::{linear, median};

use super::super::sample::Whole;
use super::growth::{Grown, difference_error};
use crate::batching::{Batching, starts};
use crate::{Instrument, TrainReport, VolleyReport};

/// All bulks so far.
#[derive(Debug, Clone)]
pub(super) struct Bulks {
    length: u32,
    /// Standard deviation of the difference of two stamps, ns.
    error: f64,
    /// k
    step: usize,
    packets: u32,
    batching: Option<Batching>,
    /// Dispersions of k packets, and of 2k; under coalescing those from batch start to batch start, and of whole trains.
    short: Vec<Sample>,
    long: Vec<Sample>,
    volleys: u32,
}

/// One dispersion.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// ns per packet.
    gap: f64,
    /// The same at the sender.
    sent_gap: f64,
    packets: f64,
    /// Delays of the first and the last packet above the least of the volley, ns.
    delay: f64,
}

/// What the bulks say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    /// bit/s
    pub(super) rate: Interval,
    /// Stamps explain how the dispersions spread.
    pub(super) is_quiet: bool,
    /// Cross traffic may be in all of them.
    pub(super) is_bound: bool,
    /// They came as they were sent.
    pub(super) is_host: bool,
}

/// A place where dispersions gather.
#[derive(Debug, Clone, Copy)]
struct Cluster {
    gap: f64,
    /// Standard error of `gap`.
    error: f64,
    /// Of the samples that were looked at.
    share: f64,
    /// How far the truth may lie off besides, as a share.
    slack: f64,
    /// Median of all samples.
    middle: f64,
    quiet: bool,
}

impl Bulks {
    pub(super) fn new(instrument: &Instrument, grown: &Grown) -> Self {
        let error = difference_error(instrument);
        let most = u32::try_from(instrument.largest_burst / u64::from(instrument.largest.max(1))).unwrap_or(u32::MAX);
        let batching = grown.long.batching;
        let (step, packets) = match &batching {
            None => {
                let mut step = (STAMPS * error / grown.distance).ceil().clamp(1.0, 64.0);
                if grown.distance >= APART * error {
                    step = step.min(4.0);
                }
                (step as usize, 2 * step as u32 + 1)
            }
            Some(batching) => {
                let packets = (PERIODS * batching.period / grown.distance).max(PERIODS * batching.batch);
                (1, (packets.min(1e6) as u32).max(20))
            }
        };
        let packets = packets.min(most).max(3);
        Self {
            length: instrument.largest,
            error,
            step: step.min((packets as usize - 1) / 2),
            packets,
            batching,
            short: Vec::new(),
            long: Vec::new(),
            volleys: 0,
        }
    }

    pub(super) const fn packets(&self) -> u32 {
        self.packets
    }

    /// Between bulks at least, ns.
    pub(super) fn pause(&self) -> f64 {
        self.batching.map_or(20_000.0, |batching| 2.0 * batching.period)
    }

    pub(super) fn take(&mut self, report: &VolleyReport) {
        self.volleys += 1;
        let (short, long) = (self.short.len(), self.long.len());
        for train in &report.trains {
            match self.batching {
                None => self.take_bulk(train),
                Some(_) => self.take_batches(train),
            }
        }
        above_the_least(&mut self.short[short..]);
        above_the_least(&mut self.long[long..]);
    }

    fn take_bulk(&mut self, train: &TrainReport) {
        let Some(whole) = Whole::of(train) else { return };
        self.short.extend(sample(&whole, self.step));
        self.long.extend(sample(&whole, 2 * self.step));
    }

    fn take_batches(&mut self, train: &TrainReport) {
        let Some(whole) = Whole::of(train) else { return };
        let arrivals = whole.arrivals();
        let starts = starts(arrivals);
        let sent_gap = whole.sending(arrivals.len() - 1).unwrap_or(0.0) / (arrivals.len() - 1) as f64;
        let between = |from: usize, to: usize| {
            let span = arrivals[to].at.saturating_sub(arrivals[from].at) as f64;
            let packets = (to - from) as f64;
            Sample { gap: span / packets, sent_gap, packets, delay: 0.0 }
        };
        self.short.extend(starts.windows(2).map(|pair| between(pair[0], pair[1])));
        if let (Some(first), Some(last)) = (starts.first(), starts.last())
            && last > first
        {
            self.long.push(between(*first, *last));
        }
    }

    /// Enough to say something that more of the same would hardly change.
    pub(super) fn is_enough(&self) -> bool {
        self.long.len() >= FEWEST && self.reading().is_some_and(|reading| !reading.is_bound)
    }

    pub(super) fn is_content(&self) -> bool {
        let precise = |reading: Reading| {
            let share = reading.rate.width() / 2.0 / reading.rate.estimate;
            reading.is_host || share < if reading.is_quiet { 0.005 } else { 0.0075 }
        };
        let enough = self.volleys >= 3 && self.is_enough() && self.reading().is_some_and(precise);
        enough && (self.reading().is_some_and(|reading| reading.is_quiet) || self.volleys >= 10)
            || self.volleys >= MOST_VOLLEYS
    }

    pub(super) fn reading(&self) -> Option<Reading> {
        let short = self.cluster(&self.short)?;
        let long = self.cluster(&self.long)?;
        let bits = f64::from(self.length) * 8e9;
        let agree = (short.gap / long.gap - 1.0).abs()
            <= 0.01 + 3.0 * (short.error / short.gap).hypot(long.error / long.gap);
        let (best, is_bound) = if long.quiet && agree {
            (long, false)
        } else if short.quiet || (self.tells_packets_apart(&short) && short.share >= STRONG) {
            (short, false)
        } else {
            (short, true)
        };
        let estimate = bits / best.gap;
        let half = estimate * (2.0 * best.error / best.gap + best.slack + 0.002);
        let mut rate = Interval { estimate, lo: estimate - half, hi: estimate + half, confidence: 0.95 };
        if is_bound {
            rate = rate.widened_to((bits / best.middle).min(bits / long.middle) * 0.98, rate.hi);
        } else if self.batching.is_some() && !best.quiet {
            rate = rate.widened_to(bits / long.gap, rate.hi);
        }
        Some(Reading { rate, is_quiet: best.quiet, is_bound, is_host: self.is_host() })
    }

    /// Whether one packet of cross traffic more would be seen.
    fn tells_packets_apart(&self, cluster: &Cluster) -> bool {
        cluster.gap >= APART * self.error || self.batching.is_some()
    }

    fn is_host(&self) -> bool {
        let of = |of: fn(&Sample) -> f64| median(&self.long.iter().map(of).collect::<Vec<_>>());
        match (of(|sample| sample.sent_gap), of(|sample| sample.gap)) {
            (Some(sent), Some(came)) => sent > came * 0.97,
            _ => false,
        }
    }

    fn cluster(&self, samples: &[Sample]) -> Option<Cluster> {
        if samples.len() < FEWEST {
            return None;
        }
        let packets = samples.iter().map(|sample| sample.packets).sum::<f64>() / samples.len() as f64;
        let noise = self.error / packets;
        let all = sorted(samples.iter().map(|sample| sample.gap));
        let middle = linear(&all, 0.5)?;
        let spread = (linear(&all, 0.84)? - linear(&all, 0.16)?) / 2.0;
        let grain = if self.batching.is_some() { 0.01 } else { 0.004 };
        if spread <= 1.3 * noise + grain * middle {
            let core = &all[all.len() / 10..all.len() - all.len() / 10];
            let gap = core.iter().sum::<f64>() / core.len() as f64;
            let error = spread / (all.len() as f64).sqrt();
            return Some(Cluster { gap, error, share: 1.0, slack: 0.0, middle, quiet: true });
        }
        let kept = if self.batching.is_some() { all } else { least_delayed(samples) };
        fastest(&kept, 4.0 * noise + 0.01 * middle, middle)
    }
}

/// The cluster of the shortest gaps that is no stray.
fn fastest(kept: &[f64], width: f64, middle: f64) -> Option<Cluster> {
    let found = clusters(kept, width, 40);
    let strongest = found.first()?.len();
    let least = (strongest as f64 / 4.0).max(4.0).min(strongest as f64);
    let window = found.into_iter().filter(|w| w.len() as f64 >= least).min_by_key(|w| w.start)?;
    let inside: Moments = kept[window.clone()].iter().copied().collect();
    let (gap, count) = (inside.mean()?, window.len() as f64);
    let error = inside.sd().unwrap_or(0.0) / count.sqrt();
    let (share, slack) = (count / kept.len() as f64, width / 8.0 / gap);
    Some(Cluster { gap, error, share, slack, middle, quiet: false })
}

fn sample(whole: &Whole<'_>, n: usize) -> Option<Sample> {
    let packets = n as f64;
    Some(Sample {
        gap: whole.dispersion(n)? / packets,
        sent_gap: whole.sending(n)? / packets,
        packets,
        delay: whole.delay_sum(n)?,
    })
}

fn above_the_least(samples: &mut [Sample]) {
    let least = samples.iter().map(|sample| sample.delay).fold(f64::INFINITY, f64::min);
    for sample in samples {
        sample.delay -= least;
    }
}

/// Gaps of the third of the samples that were delayed least, but of 24 at least, sorted.
fn least_delayed(samples: &[Sample]) -> Vec<f64> {
    let mut by_delay = samples.to_vec();
    by_delay.sort_unstable_by(|a, b| a.delay.total_cmp(&b.delay));
    by_delay.truncate((samples.len() / 3).max(24));
    sorted(by_delay.iter().map(|sample| sample.gap))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// A bulk lasts so many stamp errors: 3 % for one of them, 0.4 % for sixty.
const STAMPS: f64 = 34.0;
/// Packets whose transmission lasts so many stamp errors can be counted one by one.
const APART: f64 = 6.0;
/// A cluster that holds this share of what was least delayed is no accident.
const STRONG: f64 = 0.12;
const PERIODS: f64 = 6.0;
const FEWEST: usize = 8;
const MOST_VOLLEYS: u32 = 20;
