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

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;
    use crate::Arrival;
    use crate::capacity::made_up::instrument;

    fn phases() -> Phases {
        Phases::new(&instrument(), PathrateRules::default())
    }

    /// Packets that left 500 ns apart and came at these times, ns.
    fn train(came: &[i64]) -> TrainReport {
        let arrivals: Vec<Arrival> =
            (0..).zip(came).map(|(number, at)| Arrival { number, at: *at }).collect();
        let sent = arrivals.iter().map(|arrival| Some(i64::from(arrival.number) * 500)).collect();
        TrainReport { sent, arrivals }
    }

    #[test]
    fn batches_that_come_at_less_than_nine_tenths_of_the_whole_trains_rate_are_left_out() {
        // Batches of four packets, one each 1 ms and one after 2 ms.
        let batch = |at: i64| (0..4).map(move |packet| at * 1_000_000 + packet * 1_000);
        let came: Vec<i64> = [0, 1, 2, 3, 5, 6, 7, 8].into_iter().flat_map(batch).collect();
        let mut phases = phases();
        phases.batching = Some(Batching { period: 1e6, batch: 4.0 });
        phases.take_batches(&train(&came));
        // From the second batch to the last but one twenty packets take 6 ms: 40 Mbit/s. Four
        // packets are 48 Mbit/s in 1 ms, and 24 in 2 ms.
        assert_eq!((phases.long, phases.batches), (vec![300_000.0], vec![4.8e7; 5]));
    }

    #[test]
    fn ends_of_sorted_values_are_cut_off_up_to_a_tenth_of_them_each() {
        let cut = |count: u32, most: usize| {
            let values: Vec<f64> = (0..count).rev().map(f64::from).collect();
            let kept = trimmed(&values, most);
            (kept.len(), kept.first().copied(), kept.last().copied())
        };
        assert_eq!(cut(9, 10), (9, Some(0.0), Some(8.0)));
        assert_eq!(cut(10, 10), (8, Some(1.0), Some(8.0)));
        assert_eq!(cut(300, 10), (280, Some(10.0), Some(289.0)));
        assert_eq!(cut(0, 10), (0, None, None));
    }

    #[test]
    fn the_longest_trains_are_those_that_a_burst_has_room_for() {
        let lengths = |largest_burst: u64| {
            let phases = Phases::new(&Instrument { largest_burst, ..instrument() }, PathrateRules::default());
            phases.lengths().iter().map(|(packets, _)| *packets).collect::<Vec<u32>>()
        };
        assert_eq!(lengths(10 * 1500 - 1), Vec::<u32>::new());
        assert_eq!(lengths(10 * 1500), [10]);
        assert_eq!(lengths(25 * 1500 - 1), [10]);
        assert_eq!(lengths(50 * 1500), [10, 25, 50]);
    }

    #[test]
    fn sizes_rise_from_572_bytes_and_with_the_packets_of_a_train() {
        let phases = phases();
        // A fortieth of 928 and one byte are 24.
        let rows = [((2, 0), 572), ((2, 1), 596), ((2, 38), 1484), ((2, 39), 1500), ((3, 0), 847)];
        for ((packets, number), size) in rows {
            assert_eq!(phases.size(packets, number), size, "{number} of {packets}");
        }
    }

    #[test]
    fn trains_have_eight_batches_but_200_packets_at_least_and_what_a_burst_holds_at_most() {
        let packets = |batch: Option<f64>, largest_burst: u64| {
            let host = Instrument { largest_burst, ..instrument() };
            let mut phases = Phases::new(&host, PathrateRules::default());
            phases.batching = batch.map(|batch| Batching { period: 1e6, batch });
            phases.batch_train()
        };
        let rows = [
            (None, 750_000, 200),
            (Some(20.0), 750_000, 200),
            (Some(30.0), 750_000, 240),
            (Some(100.0), 750_000, 500),
            (Some(30.0), 150_000, 100),
            (Some(30.0), 1_500, 2),
        ];
        for (batch, burst, want) in rows {
            assert_eq!(packets(batch, burst), want, "{batch:?} {burst}");
        }
    }

    #[test]
    fn a_pair_counts_from_ten_errors_of_its_stamps_on() {
        // Two stamps err by 141.42 ns.
        let pair = |span: i64| phases().pair(&train(&[0, span]), (2, 1500));
        assert_eq!(pair(1_414), None);
        assert_eq!(pair(1_415), Some(Pair { length: 1500, gap: 1_415.0, gaps: 1.0 }));
        let three = phases().pair(&train(&[0, 1_000, 1_500]), (3, 1500));
        assert_eq!(three, Some(Pair { length: 1500, gap: 750.0, gaps: 2.0 }));
    }

    #[test]
    fn more_than_a_quarter_of_short_pairs_makes_trains_longer_until_that_is_too_long() {
        let after = |short: usize, longest: u32, (packets, size): (u32, u32)| {
            let mut phases = Phases { longest, ..phases() };
            let reports: Vec<TrainReport> =
                (0..PAIRS).map(|number| train(&[0, if number < short { 1_000 } else { 2_000 }])).collect();
            let asked = vec![(2, 1500); PAIRS];
            let next = phases.take_pairs(reports.iter().zip(&asked), packets, size);
            (next, phases.aborted, phases.pairs.len())
        };
        // Six of 25 are less than a quarter, seven are more.
        assert_eq!(after(6, 50, (2, 0)), (Phase::Modes { packets: 2, size: 1 }, false, 19));
        assert_eq!(after(7, 50, (2, 0)), (Phase::Modes { packets: 3, size: 0 }, false, 18));
        assert_eq!(after(0, 50, (2, 38)), (Phase::Modes { packets: 2, size: 39 }, false, 25));
        assert_eq!(after(0, 50, (2, 39)), (Phase::Long { trains: 0 }, false, 25));
        // No more than a quarter of the longest train.
        assert_eq!(after(7, 12, (2, 0)), (Phase::Modes { packets: 3, size: 0 }, false, 18));
        assert_eq!(after(7, 11, (2, 0)), (Phase::Long { trains: 0 }, true, 18));
    }

    #[test]
    fn long_trains_are_over_once_their_mean_is_known_to_half_a_per_cent() {
        let after = |off: f64, trains: u32| {
            let mut phases = phases();
            phases.long = [1_000.0 - off, 1_000.0 + off].repeat(30);
            phases.after_long(trains)
        };
        // A deviation of 1.008 times what they are off, over the root of sixty.
        assert_eq!(after(38.0, 60), Phase::Over);
        assert_eq!(after(38.0, 59), Phase::Long { trains: 59 });
        assert_eq!(after(39.0, 60), Phase::Long { trains: 60 });
        assert_eq!((after(39.0, 499), after(39.0, 500)), (Phase::Long { trains: 499 }, Phase::Over));
        assert_eq!(phases().after_long(60), Phase::Long { trains: 60 });
    }

    #[test]
    fn the_fastest_tenth_of_batches_is_a_bound_down_to_the_rate_of_whole_trains() {
        let mut phases = phases();
        assert_eq!(phases.of_batches(), None);
        // 1500 bytes each 300 us are 40 Mbit/s.
        phases.long = vec![300_000.0; 3];
        let (rate, bound) = phases.of_batches().unwrap();
        assert_eq!(bound, Bound::AtLeast);
        let near = |found: f64, want: f64| (found / want - 1.0).abs() < 1e-9;
        assert!(near(rate.estimate, 4e7) && near(rate.lo, 3.96e7) && near(rate.hi, 4.04e7), "{rate:?}");
        // Of eleven values the tenth is the one at nine tenths.
        phases.batches = (0..11).rev().map(|step| 4e7 + f64::from(step) * 1e6).collect();
        let (rate, _) = phases.of_batches().unwrap();
        assert!(near(rate.estimate, 4.9e7) && near(rate.lo, 4e7) && near(rate.hi, 4.949e7), "{rate:?}");
    }

    #[test]
    fn a_pause_between_trains_is_two_periods_of_batches_or_20_us() {
        let mut phases = phases();
        assert!((phases.pause() - 20_000.0).abs() < 1e-9);
        phases.batching = Some(Batching { period: 70_000.0, batch: 4.0 });
        assert!((phases.pause() - 140_000.0).abs() < 1e-9);
    }

    #[test]
    fn what_costs_too_much_is_skipped_for_long_trains_once() {
        let mut phases = Phases { phase: Phase::Modes { packets: 2, size: 7 }, ..phases() };
        assert_eq!((phases.skip(), phases.phase), (true, Phase::Long { trains: 0 }));
        assert_eq!((phases.skip(), phases.phase), (false, Phase::Over));
        let mut budget = Budget::new(&instrument(), Span::from_secs(30));
        phases.take(&VolleyReport { trains: vec![train(&[0, 2_000])] }, &mut budget);
        assert_eq!((phases.phase, phases.wanted(&budget)), (Phase::Over, None));
    }
}
