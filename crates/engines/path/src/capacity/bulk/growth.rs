//! The first trains: longer and longer, until one lasts long enough to show batches and holds more than a usual credit.

use netaware_stats::interval::Interval;
use netaware_stats::quantile::linear;
use netaware_units::Span;

use super::super::budget::Budget;
use super::super::long_train::LongTrain;
use crate::{Gaps, Instrument, Train, TrainReport, Volley, VolleyReport};

/// While trains grow.
#[derive(Debug, Clone)]
pub(super) struct Growth {
    length: u32,
    largest_burst: u64,
    /// Standard deviation of the difference of two stamps of arrivals, ns.
    error: f64,
    packets: u32,
    /// The longest so far, and what became of it.
    long: Option<(LongTrain, TrainReport)>,
    in_vain: u32,
    lossy: u32,
    paced: Paced,
}

/// A train that is too slow to fill a queue, sent after long ones have lost their ends: a policer goes on dropping, a short
/// queue does not.
#[derive(Debug, Clone)]
enum Paced {
    NotNeeded,
    /// ps from packet to packet.
    Asked(u64),
    Seen(TrainReport),
}

/// When they have grown.
#[derive(Debug, Clone)]
pub(super) struct Grown {
    pub(super) long: LongTrain,
    /// At which packets come that nothing holds up, ns; a first guess.
    pub(super) distance: f64,
    report: TrainReport,
}

impl Growth {
    pub(super) fn new(instrument: &Instrument) -> Self {
        Self {
            length: instrument.largest,
            largest_burst: instrument.largest_burst,
            error: difference_error(instrument),
            packets: FIRST,
            long: None,
            in_vain: 0,
            lossy: 0,
            paced: Paced::NotNeeded,
        }
    }

    pub(super) fn volley(&self) -> Volley {
        let gaps = if let Paced::Asked(gap) = self.paced { Gaps::Even(gap) } else { Gaps::BackToBack };
        let train = Train { packets: self.packets, length: self.length, gaps, rest: Span::ZERO };
        Volley { trains: vec![train] }
    }

    /// Nothing comes any more.
    pub(super) const fn is_hopeless(&self) -> bool {
        self.in_vain >= 3
    }

    pub(super) fn take(&mut self, report: &VolleyReport, budget: &mut Budget) {
        let found = report.trains.first().and_then(|train| Some((LongTrain::of(train, self.length)?, train)));
        let Some((long, train)) = found else {
            self.in_vain += 1;
            return;
        };
        budget.saw_rate(long.rate);
        if let Paced::Asked(_) = self.paced {
            self.paced = Paced::Seen(train.clone());
            return;
        }
        let lossy = train.arrivals.len() * 10 < train.sent.len() * 9;
        self.lossy += u32::from(lossy);
        self.long = Some((long, train.clone()));
    }

    /// `None` while it must go on; then `volley` is longer, or slower.
    pub(super) fn grown(&mut self, budget: &Budget) -> Option<Grown> {
        let (long, report) = self.long.as_ref()?;
        let next = self.wanted(long, budget);
        let distance = distance(long, report, self.length, self.error);
        let grown = |report: &TrainReport| Grown { long: *long, distance, report: report.clone() };
        match &self.paced {
            Paced::Seen(paced) => return Some(grown(paced)),
            // It was lost as a whole.
            Paced::Asked(_) => return Some(grown(report)),
            Paced::NotNeeded if self.lossy == 0 && next <= self.packets => return Some(grown(report)),
            Paced::NotNeeded => {}
        }
        // One train may lose a few packets; a second one as well, or the longest, is a policer or a short queue.
        if self.lossy > 1 || next <= self.packets {
            self.paced = Paced::Asked((distance * 8000.0).min(1e15) as u64);
        } else {
            self.packets = next;
        }
        None
    }

    /// Packets that the next train should have: what is missing, but not more than four times as many.
    fn wanted(&self, long: &LongTrain, budget: &Budget) -> u32 {
        let packet = f64::from(self.length);
        let gap = packet * 8e9 / long.rate;
        let of_time = long.batching.map_or(LASTS, |batching| LASTS.max(PERIODS * batching.period));
        let of_bytes = (budget.bytes_left() as f64 / 5.0).min(BYTES);
        let missing_time = if long.lasts < of_time { of_time * 1.2 / gap } else { 0.0 };
        let wanted = missing_time.max(of_bytes / packet);
        let most = (self.largest_burst as f64).min(budget.bytes_left() as f64 / 2.0) / packet;
        (wanted.min(most).min(1e6) as u32).min(self.packets.saturating_mul(4))
    }
}

impl Grown {
    /// The rate behind a knee, if there is one below `peak`.
    pub(super) fn sustained(&self, length: u32, peak: f64) -> Option<Interval> {
        let mut long = self.long;
        long.look_for_knee(&self.report, length, f64::from(length) * 8e9 / peak);
        let (estimate, packets) = long.sustained?;
        let half = estimate * (0.02 + 1.0 / packets as f64);
        let below = estimate < peak * 0.6;
        below.then_some(Interval { estimate, lo: estimate - half, hi: estimate + half, confidence: 0.9 })
    }
}

/// Of a path of which only one train is known: no more than that it carries so much.
pub(super) fn floor(long: &LongTrain) -> Interval {
    Interval { estimate: long.rate, lo: long.rate * 0.9, hi: long.rate, confidence: 0.9 }
}

/// Of the difference of two arrivals; no stamp is better than 10 ns.
pub(super) fn difference_error(instrument: &Instrument) -> f64 {
    std::f64::consts::SQRT_2 * (instrument.receive_error.nanos() as f64).max(10.0)
}

/// The fastest fifth of all windows that are long against the stamps' error; the mean where packets come in batches.
fn distance(long: &LongTrain, report: &TrainReport, length: u32, error: f64) -> f64 {
    let mean = f64::from(length) * 8e9 / long.rate;
    let window = (30.0 * error / mean).ceil() as usize + 1;
    if long.batching.is_some() || report.arrivals.len() < window * 4 {
        return mean;
    }
    let spans = report.arrivals.windows(window + 1).map(|w| w[window].at.saturating_sub(w[0].at) as f64);
    let mut spans: Vec<f64> = spans.filter(|span| *span > 0.0).collect();
    spans.sort_unstable_by(f64::total_cmp);
    linear(&spans, 0.2).map_or(mean, |span| span / window as f64)
}

const FIRST: u32 = 5;
/// ns; four periods of the longest coalescing that is usual.
const LASTS: f64 = 1e6;
const PERIODS: f64 = 5.0;
/// More than most credits.
const BYTES: f64 = 300_000.0;
