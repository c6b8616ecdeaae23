//! The rate of a bulk transfer, at the receiver, after its warm-up.
//!
//! **Measures** payload bytes over time, summed over the slices that count, of all rounds: long
//! slices weigh more. The interval is a bootstrap over rounds and blocks of neighbouring slices
//! ([`netaware_stats::bootstrap`]). **Assumes** that the slices after the warm-up come from one
//! distribution, correlated for less than half a second. **Biased**: the interval of a single round
//! knows nothing of other rounds and is too narrow; a slice cut short by the end of the transfer
//! counts in the rate but not in the interval. The receiver's clock starts with the first byte, so
//! what came with it is taken off a count that begins there: of nine segments in eight gaps only
//! eight took that time. **Published**: goodput as in RFC 2647 §3.17; blocks
//! after Künsch 1989.

use netaware_record::{Interval, ReceiverTick};
use netaware_stats::bootstrap::{Resampling, Statistic, hierarchical_paired};
use netaware_units::{BitRate, ByteCount, Span};

use crate::published::{SEED, interval_around};
use crate::warm_up::{WarmUpEnd, rate};

/// One transfer's slices and where its warm-up ended.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredRound<'a> {
    /// All slices, in order.
    pub ticks: &'a [ReceiverTick],
    /// Where counting begins.
    pub warm_up: WarmUpEnd,
    /// What came at the instant with which the first slice begins: it took time before, and belongs
    /// to no rate.
    pub at_start: ByteCount,
}

impl<'a> MeasuredRound<'a> {
    /// The slices that count.
    pub fn counted(&self) -> &'a [ReceiverTick] {
        self.ticks.get(self.warm_up.first()..).unwrap_or_default()
    }

    /// Rates of the full slices that count, in bit/s: samples for the interval and for the
    /// comparison. A slice shorter than half of the longest is left out; it would weigh as much as
    /// the others and know less.
    pub fn rates(&self) -> Vec<f64> {
        let longest = self.counted().iter().map(|tick| tick.length).max().unwrap_or(Span::ZERO);
        let first = self.at_the_beginning();
        let of_slice = |(n, tick): (usize, &ReceiverTick)| {
            let before = if n == 0 { first } else { ByteCount(0) };
            rate(&ReceiverTick { bytes: ByteCount(tick.bytes.0.saturating_sub(before.0)), ..*tick })
        };
        let slices = self.counted().iter().enumerate();
        slices.filter(|(_, tick)| tick.length * 2 >= longest).map(of_slice).collect()
    }

    /// Bytes of the slices that count, and their time.
    fn total(&self) -> (ByteCount, Span) {
        let bytes: ByteCount = self.counted().iter().map(|tick| tick.bytes).sum();
        let time = self.counted().iter().map(|tick| tick.length.or_zero()).sum();
        (ByteCount(bytes.0.saturating_sub(self.at_the_beginning().0)), time)
    }

    /// What came with the beginning of the first slice, where that one counts and others or more
    /// came after it: what came alone is the only rate there is.
    fn at_the_beginning(&self) -> ByteCount {
        let has_more = self.counted().iter().map(|tick| tick.bytes.0).sum::<u64>() > self.at_start.0;
        if self.warm_up.first() == 0 && has_more { self.at_start } else { ByteCount(0) }
    }
}

/// Rate over all rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Goodput {
    /// Payload bytes over time.
    pub rate: BitRate,
    /// The same in bit/s with its 95 % interval; absent when a single slice counts.
    pub interval: Option<Interval>,
    /// Each round's own, in order; rounds in which nothing counted are left out.
    pub rounds: Vec<BitRate>,
    /// Time that counted.
    pub measured: Span,
}

/// Joins rounds of the same transfer; `None` when no time counted in any of them.
pub fn goodput(rounds: &[MeasuredRound<'_>]) -> Option<Goodput> {
    let totals: Vec<(ByteCount, Span)> =
        rounds.iter().map(MeasuredRound::total).filter(|(_, time)| *time > Span::ZERO).collect();
    let bytes = totals.iter().map(|(bytes, _)| *bytes).sum();
    let measured = totals.iter().map(|(_, time)| *time).sum();
    let rate = BitRate::mean(bytes, measured)?;
    let samples: Vec<Vec<f64>> = rounds.iter().map(MeasuredRound::rates).collect();
    let resampled = hierarchical_paired(&samples, block(rounds), &Resampling::new(Statistic::Mean, SEED));
    Some(Goodput {
        rate,
        interval: resampled.map(|resampled| {
            // Student's t knows nothing of rates, which are never below zero.
            let found = interval_around(rate.0 as f64, resampled.interval);
            Interval { lo: found.lo.max(0.0), ..found }
        }),
        rounds: totals.into_iter().filter_map(|(bytes, time)| BitRate::mean(bytes, time)).collect(),
        measured,
    })
}

fn block(rounds: &[MeasuredRound<'_>]) -> usize {
    let longest = rounds.iter().flat_map(MeasuredRound::counted).map(|tick| tick.length.nanos()).max();
    usize::try_from(CORRELATED.nanos() / longest.unwrap_or(0).max(1)).unwrap_or(1).clamp(1, MOST_IN_BLOCK)
}

/// Slices this close belong together: several round trips of a long path, a few sawteeth of a short
/// one.
const CORRELATED: Span = Span::from_millis(500);
/// Keeps blocks of very short slices from reaching over a whole transfer.
const MOST_IN_BLOCK: usize = 50;

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;

    use super::*;

    fn tick(bytes: u64, millis: i64) -> ReceiverTick {
        ReceiverTick { length: Span::from_millis(millis), bytes: ByteCount(bytes), ..ReceiverTick::default() }
    }

    #[test]
    fn rate_is_bytes_over_time_of_what_counts() {
        let (first, second) = ([tick(9, 100), tick(100, 100), tick(50, 50), tick(1, 1)], [tick(400, 100)]);
        let rounds = [
            MeasuredRound { ticks: &first, warm_up: WarmUpEnd::SlowStartOver(1), at_start: ByteCount(0) },
            MeasuredRound { ticks: &second, warm_up: WarmUpEnd::NeverEnded, at_start: ByteCount(0) },
            MeasuredRound { ticks: &second, warm_up: WarmUpEnd::Asked(7), at_start: ByteCount(0) },
        ];
        let goodput = goodput(&rounds).unwrap();
        assert_eq!(goodput.measured, Span::from_millis(251));
        assert_eq!(goodput.rate, BitRate(551 * 8 * 1000 / 251));
        assert_eq!(goodput.rounds, [BitRate(8000), BitRate(32_000)]);
        assert_eq!(rounds[0].rates(), [8000.0, 8000.0]);
        let interval = goodput.interval.unwrap();
        assert!(interval.lo <= interval.estimate && interval.estimate <= interval.hi);
    }

    /// A link of 100 kbit/s carries 96.5 kbit/s of payload: a segment each 120 ms.
    #[test]
    fn the_first_segment_with_which_the_clock_starts_does_not_make_a_link_faster_than_it_is() {
        let ticks = [tick(9 * 1448, 1000)];
        let of = |at_start| {
            let at_start = ByteCount(at_start);
            goodput(&[MeasuredRound { ticks: &ticks, warm_up: WarmUpEnd::NeverEnded, at_start }]).unwrap()
        };
        assert_eq!(of(0).rate, BitRate(104_256));
        assert_eq!(of(1448).rate, BitRate(92_672));
        let later = MeasuredRound {
            ticks: &[ticks[0], ticks[0]],
            warm_up: WarmUpEnd::SlowStartOver(1),
            at_start: ByteCount(1448),
        };
        assert_eq!(goodput(&[later]).unwrap().rate, BitRate(104_256), "it came before what counts");
        let alone = MeasuredRound {
            ticks: &[tick(1448, 100)],
            warm_up: WarmUpEnd::NeverEnded,
            at_start: ByteCount(1448),
        };
        assert!(goodput(&[alone]).unwrap().rate.0 > 0, "the only rate there is");
        assert_eq!(alone.rates().len(), 1);
    }

    #[test]
    fn nothing_that_counts_is_no_rate() {
        assert_eq!(goodput(&[]), None);
        let empty =
            MeasuredRound { ticks: &[], warm_up: WarmUpEnd::SlowStartOver(3), at_start: ByteCount(0) };
        assert_eq!(goodput(&[empty]), None);
        assert_eq!(goodput(&[MeasuredRound { ticks: &[tick(5, 0)], ..empty }]), None);
    }

    #[test]
    fn interval_holds_the_true_rate_as_often_as_it_claims() {
        let mut held = 0;
        for seed in 0..200 {
            let mut rng = SplitMix64::new(seed);
            let rounds: Vec<Vec<ReceiverTick>> = (0..4)
                .map(|_| (0..20).map(|_| tick(900_000 + rng.below(200_001) as u64, 100)).collect())
                .collect();
            let rounds: Vec<_> = rounds
                .iter()
                .map(|ticks| MeasuredRound { ticks, warm_up: WarmUpEnd::Asked(0), at_start: ByteCount(0) })
                .collect();
            let interval = goodput(&rounds).unwrap().interval.unwrap();
            held += usize::from(interval.lo <= 80e6 && 80e6 <= interval.hi);
        }
        assert!(held >= 188, "{held} of 200 at 95 %");
    }

    #[test]
    fn a_slice_cut_short_counts_in_the_rate_and_the_interval_is_stretched_to_hold_it() {
        let ticks = [tick(100, 100), tick(100, 100), tick(100, 100), tick(100, 100), tick(35, 10)];
        let round = MeasuredRound { ticks: &ticks, warm_up: WarmUpEnd::Asked(0), at_start: ByteCount(0) };
        let want = Goodput {
            // 435 bytes in 410 ms.
            rate: BitRate(8_487),
            interval: Some(Interval { estimate: 8_487.0, lo: 8_000.0, hi: 8_487.0, confidence: 0.95 }),
            rounds: vec![BitRate(8_487)],
            measured: Span::from_millis(410),
        };
        assert_eq!(goodput(&[round]), Some(want));
        let alone = MeasuredRound { ticks: &ticks[..1], ..round };
        assert_eq!(goodput(&[alone]).unwrap().interval, None, "a single slice does not vary");
    }

    #[test]
    fn a_block_is_half_a_second_of_slices_but_at_least_one_and_at_most_fifty() {
        for (millis, want) in [(100, 5), (20, 25), (10, 50), (1, 50), (500, 1), (501, 1), (2_000, 1)] {
            let ticks = [tick(1, 1), tick(1, millis), tick(1, 1)];
            let round = MeasuredRound { ticks: &ticks, warm_up: WarmUpEnd::Asked(0), at_start: ByteCount(0) };
            assert_eq!(block(&[round]), want, "{millis} ms");
        }
        assert_eq!(block(&[]), 50);
    }
}
