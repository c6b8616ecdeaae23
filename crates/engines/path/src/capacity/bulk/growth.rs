//! The first trains: longer and longer, until one lasts long enough to show batches and holds more
//! than a usual credit.

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

/// Trains that are too slow to fill a queue, sent after long ones have lost their ends: a policer
/// goes on dropping, a short queue does not. The first is as fast as it may be, for policers that
/// leave much of the link; packets that it loses while none of the others waits are a policer's.
/// Elsewhere a slow one decides.
#[derive(Debug, Clone)]
enum Paced {
    NotNeeded,
    /// ps from packet to packet.
    Asked(u64),
    AskedSlowly(u64),
    Seen(TrainReport),
    Policed(TrainReport, f64, usize),
}

/// When they have grown.
#[derive(Debug, Clone)]
pub(super) struct Grown {
    pub(super) long: LongTrain,
    /// At which packets come that nothing holds up, ns; a first guess.
    pub(super) distance: f64,
    report: TrainReport,
    /// What a policer let through, bit/s, and packets that tell it.
    policed: Option<(f64, usize)>,
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
        let gaps = match self.paced {
            Paced::Asked(gap) | Paced::AskedSlowly(gap) => Gaps::Even(gap),
            _ => Gaps::BackToBack,
        };
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
        match self.paced {
            Paced::Asked(gap) => {
                let lossless = train.arrivals.len() * 20 >= train.sent.len() * 19;
                self.paced = match policed(train, self.length, gap as f64 / 1000.0 / FAST) {
                    Some((rate, packets)) => Paced::Policed(train.clone(), rate, packets),
                    None if lossless => Paced::Seen(train.clone()),
                    None => Paced::AskedSlowly((gap as f64 / FAST * SLOW) as u64),
                };
                return;
            }
            Paced::AskedSlowly(_) => {
                self.paced = Paced::Seen(train.clone());
                return;
            }
            _ => {}
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
        let grown =
            |report: &TrainReport| Grown { long: *long, distance, report: report.clone(), policed: None };
        match &self.paced {
            Paced::Seen(paced) => return Some(grown(paced)),
            Paced::Policed(paced, rate, packets) => {
                return Some(Grown { policed: Some((*rate, *packets)), ..grown(paced) });
            }
            // It was lost as a whole.
            Paced::Asked(_) | Paced::AskedSlowly(_) if self.in_vain > 0 => return Some(grown(report)),
            Paced::Asked(_) | Paced::AskedSlowly(_) => return None,
            Paced::NotNeeded if self.lossy == 0 && next <= self.packets => return Some(grown(report)),
            Paced::NotNeeded => {}
        }
        // One train may lose a few packets; a second one as well, or the longest, is a policer or a
        // short queue.
        if self.lossy > 1 || next <= self.packets {
            self.paced = Paced::Asked((distance * FAST * 1000.0).min(1e15) as u64);
        } else {
            self.packets = next;
        }
        None
    }

    /// Packets that the next train should have: what is missing, but not more than four times as
    /// many.
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
        let (estimate, packets) = self.policed.or(long.sustained)?;
        let half = estimate * (0.02 + 1.0 / packets as f64);
        let below = estimate < peak * 0.6;
        below.then_some(Interval { estimate, lo: estimate - half, hi: estimate + half, confidence: 0.9 })
    }
}

/// What came of the last part of a paced train that lost packets while none of those that came had
/// waited: bit/s, and packets that tell it. `distance` is that of packets that nothing holds up,
/// ns.
fn policed(train: &TrainReport, length: u32, distance: f64) -> Option<(f64, usize)> {
    let begin = (train.sent.len() as f64 * CREDIT) as usize;
    let tail: Vec<_> = train.arrivals.iter().filter(|it| it.number as usize >= begin).collect();
    let delay = |arrival: &crate::Arrival| {
        let sent = train.sent.get(arrival.number as usize).copied().flatten()?;
        Some((i128::from(arrival.at) - i128::from(sent)) as f64)
    };
    let least = train.arrivals.iter().filter_map(delay).fold(f64::INFINITY, f64::min);
    let waits: Vec<f64> = tail.iter().filter_map(|it| Some(delay(it)? - least)).collect();
    let lossy = tail.len() * 20 < (train.sent.len() - begin) * 19;
    let flat = netaware_stats::quantile::median(&waits)? < 2.0 * distance;
    let (first, last) = (tail.first()?, tail.last()?);
    let span = last.at.checked_sub(first.at).filter(|span| *span > 0)?;
    let gaps = tail.len() - 1;
    (lossy && flat && gaps >= FEWEST_POLICED)
        .then(|| (f64::from(length) * 8e9 * gaps as f64 / span as f64, gaps))
}

/// Of a path of which only one train is known: no more than that it carries so much.
pub(super) fn floor(long: &LongTrain) -> Interval {
    Interval { estimate: long.rate, lo: long.rate * 0.9, hi: long.rate, confidence: 0.9 }
}

/// Of the difference of two arrivals; no stamp is better than 10 ns.
pub(super) fn difference_error(instrument: &Instrument) -> f64 {
    std::f64::consts::SQRT_2 * (instrument.receive_error.nanos() as f64).max(10.0)
}

/// The fastest fifth of all windows that are long against the stamps' error; the mean where packets
/// come in batches.
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

/// Distances of the paced trains, as multiples of that of packets that nothing holds up: no more
/// than a policer may leave, and so slow that nothing but a policer drops.
const FAST: f64 = 1.6;
const SLOW: f64 = 8.0;
/// Part of a paced train in which a credit may be used up.
const CREDIT: f64 = 0.65;
const FEWEST_POLICED: usize = 8;
const FIRST: u32 = 5;
/// ns; four periods of the longest coalescing that is usual.
const LASTS: f64 = 1e6;
const PERIODS: f64 = 5.0;
/// More than most credits.
const BYTES: f64 = 300_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arrival;
    use crate::capacity::made_up::instrument;

    /// Packets that left 100 us apart and came so, but for those that were lost.
    fn train(packets: u32, lost: &[u32]) -> TrainReport {
        let at = |number: u32| i64::from(number) * 100_000;
        let came = (0..packets).filter(|number| !lost.contains(number));
        TrainReport {
            sent: (0..packets).map(|number| Some(at(number))).collect(),
            arrivals: came.map(|number| Arrival { number, at: at(number) }).collect(),
        }
    }

    #[test]
    fn a_paced_train_that_lost_more_than_one_of_twenty_early_on_is_sent_more_slowly() {
        let host = instrument();
        let gaps_after = |lost: &[u32]| {
            let mut growth = Growth { paced: Paced::Asked(1_600_000), ..Growth::new(&host) };
            let mut budget = Budget::new(&host, Span::from_secs(3));
            growth.take(&VolleyReport { trains: vec![train(20, lost)] }, &mut budget);
            growth.volley().trains[0].gaps.clone()
        };
        assert_eq!(gaps_after(&[3]), Gaps::BackToBack);
        // Eight times the distance of which 1.6 times was too fast.
        assert_eq!(gaps_after(&[3, 4]), Gaps::Even(8_000_000));
    }

    #[test]
    fn a_policer_is_told_from_the_end_of_a_train_that_loses_packets_without_a_queue() {
        let rate = |gaps: u32, packets_lost: u32| {
            Some((1.2e13 * f64::from(gaps) / (f64::from(gaps + packets_lost) * 100_000.0), gaps as usize))
        };
        // The last fourteen of forty.
        assert_eq!(policed(&train(40, &[30]), 1500, 50_000.0), rate(12, 1));
        assert_eq!(policed(&train(40, &[3, 4, 5]), 1500, 50_000.0), None);
        // Nine that came are enough, eight are not.
        assert_eq!(policed(&train(40, &[27, 28, 29, 30, 31]), 1500, 50_000.0), rate(8, 5));
        assert_eq!(policed(&train(40, &[27, 28, 29, 30, 31, 32]), 1500, 50_000.0), None);
        // Those that came had waited for as long as two packets take.
        let waited = |by: i64| {
            let mut report = train(40, &[30]);
            report.arrivals.iter_mut().filter(|it| it.number >= 26).for_each(|it| it.at += by);
            policed(&report, 1500, 50_000.0)
        };
        assert_eq!((waited(99_999), waited(100_000)), (rate(12, 1), None));
    }

    #[test]
    fn what_a_policer_lets_through_is_told_if_it_is_less_than_six_tenths_of_the_peak() {
        let report = train(40, &[]);
        let long = LongTrain::of(&report, 1500).unwrap();
        let grown = Grown { long, distance: 12_000.0, report, policed: Some((6e7, 50)) };
        let told = grown.sustained(1500, 1.01e8).unwrap();
        // Two per cent, and one packet of fifty.
        for (found, want) in
            [(told.estimate, 6e7), (told.lo, 5.76e7), (told.hi, 6.24e7), (told.confidence, 0.9)]
        {
            assert!((found / want - 1.0).abs() < 1e-9, "{told:?}");
        }
        assert_eq!(grown.sustained(1500, 0.99e8), None);
    }
}
