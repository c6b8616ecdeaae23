//! The narrowest link there and back, from how far apart two echoes sent back to back are answered.

use netaware_stats::interval::Interval;
use netaware_stats::quantile;
use netaware_units::Span;

use crate::estimate::Bound;

/// A pair of echoes that both came back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    /// Round trip of both together.
    pub(super) delay: Span,
    /// Between the answers.
    pub(super) apart: Span,
    /// Between the departures.
    pub(super) sent_apart: Span,
}

/// The narrowest link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Narrowest {
    /// bit/s.
    pub(super) rate: Interval,
    pub(super) bound: Bound,
    /// The host sends or stamps no better.
    pub(super) is_host_limited: bool,
    /// Between the departures of a pair, as a rule.
    pub(super) sent_apart: Span,
}

/// From the pairs of least delay. What the host cannot send closer together than the answers come
/// is a lower bound, and so is what the error of two stamps might make of nothing; answers that are
/// handed over in batches say nothing.
pub(super) fn capacity(pairs: &[Pair], length: u32, stamp_error: Span) -> Option<Narrowest> {
    if pairs.len() < LEAST_PAIRS || are_batched(pairs) {
        return None;
    }
    let mut sorted = pairs.to_vec();
    sorted.sort_by_key(|pair| pair.delay);
    sorted.truncate((pairs.len() / 5).max(LEAST_PAIRS));
    let mut apart: Vec<f64> = sorted.iter().map(|pair| pair.apart.nanos() as f64).collect();
    let mut sent: Vec<f64> = sorted.iter().map(|pair| pair.sent_apart.nanos() as f64).collect();
    apart.sort_unstable_by(f64::total_cmp);
    let bits = f64::from(length) * 8e9;
    let rate = |apart: f64| bits / apart.max(1.0);
    let (first, last, confidence) = median_ranks(apart.len());
    // Of a distance by two stamps; that many pairs make it less is not relied upon.
    let error = stamp_error.or_zero().nanos() as f64 * std::f64::consts::SQRT_2;
    let median = quantile::linear(&apart, 0.5)?;
    let interval = Interval {
        estimate: rate(median),
        lo: rate(*apart.get(last)? + error),
        hi: rate(*apart.get(first)? - error),
        confidence,
    };
    let sent_apart = quantile::median_in_place(&mut sent)?;
    let (sent, sent_apart) = (rate(sent_apart), Span(sent_apart as i64));
    if interval.estimate * 1.25 > sent || error > MOST_ERROR * median {
        let least = interval.lo.min(sent);
        let rate = Interval { estimate: least, lo: least, hi: least, confidence };
        return Some(Narrowest { rate, bound: Bound::AtLeast, is_host_limited: true, sent_apart });
    }
    Some(Narrowest { rate: interval, bound: Bound::None, is_host_limited: false, sent_apart })
}

/// Whether half of the pairs' answers were handed over together: an interface that waits for more
/// before it interrupts the host leaves nothing of what was between them.
pub(super) fn are_batched(pairs: &[Pair]) -> bool {
    let together = pairs.iter().filter(|pair| pair.apart < BATCHED).count();
    !pairs.is_empty() && together * 2 >= pairs.len()
}

/// Between which of `n` sorted samples, from 0, the median of where they come from lies with 95 %
/// (the sign test), and with how much if they are too few for that: then from the least to the
/// most.
fn median_ranks(n: usize) -> (usize, usize, f64) {
    if n > MANY {
        // By the normal distribution, before the binomial's terms are too small to be told from
        // zero.
        let first = ((n as f64 - 1.96 * (n as f64).sqrt()) / 2.0).floor() as usize;
        return (first, n - 1 - first, 0.95);
    }
    // P(at most `first` of n are below the median), by the binomial distribution of a fair coin.
    let mut term = 0.5_f64.powi(n as i32);
    let (mut below, mut first) = (term, 0);
    while first + 1 < n / 2 {
        let next = term * (n - first) as f64 / (first + 1) as f64;
        if below + next > 0.025 {
            break;
        }
        (term, below, first) = (next, below + next, first + 1);
    }
    (first, n.saturating_sub(first + 1), 1.0 - 2.0 * below)
}

const LEAST_PAIRS: usize = 5;
/// Of the distance of two answers: beyond it the upper end says nothing, so the figure is a lower
/// bound.
const MOST_ERROR: f64 = 0.5;
const MANY: usize = 200;
/// A host takes packets out of one batch within a few microseconds; 1500 bytes take as long at 2.4
/// Gbit/s.
const BATCHED: Span = Span::from_micros(5);

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair whose answers come so far apart, ns, sent 10 us apart.
    fn pair(delay_ms: i64, apart: i64) -> Pair {
        Pair { delay: Span::from_millis(delay_ms), apart: Span(apart), sent_apart: Span::from_micros(10) }
    }

    #[test]
    fn the_fifth_of_the_pairs_that_was_delayed_least_has_the_figure() {
        // 1500 bytes in 120 us are 100 Mbit/s; what was delayed more came further apart.
        let mut pairs = vec![pair(30, 200_000); 24];
        pairs.extend([119_000, 122_000, 120_000, 120_000, 121_000, 120_000].map(|apart| pair(20, apart)));
        let error = 1_000.0 * std::f64::consts::SQRT_2;
        let rate = Interval {
            estimate: 1e8,
            lo: 1.2e13 / (122_000.0 + error),
            hi: 1.2e13 / (119_000.0 - error),
            confidence: 0.96875,
        };
        let sent_apart = Span::from_micros(10);
        assert_eq!(
            capacity(&pairs, 1500, Span(1_000)),
            Some(Narrowest { rate, bound: Bound::None, is_host_limited: false, sent_apart })
        );
        // Of few pairs five count, and fewer say nothing.
        let few = [120_000; 5].map(|apart| pair(20, apart));
        let rate = Interval { estimate: 1e8, lo: 1e8, hi: 1e8, confidence: 0.9375 };
        assert_eq!(
            capacity(&few, 1500, Span::ZERO),
            Some(Narrowest { rate, bound: Bound::None, is_host_limited: false, sent_apart })
        );
        assert_eq!(capacity(&few[1..], 1500, Span::ZERO), None);
    }

    #[test]
    fn a_bound_is_the_least_of_what_pairs_and_their_sending_allow() {
        let narrowest = |apart: i64, sent_apart: i64, error: i64| {
            let pairs = [Pair { sent_apart: Span(sent_apart), ..pair(20, apart) }; 5];
            capacity(&pairs, 1500, Span(error)).unwrap()
        };
        let bound = |least: f64, sent_apart: i64| Narrowest {
            rate: Interval { estimate: least, lo: least, hi: least, confidence: 0.9375 },
            bound: Bound::AtLeast,
            is_host_limited: true,
            sent_apart: Span(sent_apart),
        };
        assert_eq!(narrowest(12_000, 10_000, 0), bound(1e9, 10_000));
        assert_eq!(narrowest(8_000, 10_000, 0), bound(1.2e9, 10_000));
        // Sent a quarter faster than the link is fast enough.
        assert_eq!(narrowest(120_000, 96_000, 0).bound, Bound::None);
        assert_eq!(narrowest(120_000, 96_001, 0), bound(1e8, 96_001));
        // Two stamps that err by half of the distance together.
        assert_eq!(narrowest(120_000, 10_000, 42_426).bound, Bound::None);
        let error = 42_427.0 * std::f64::consts::SQRT_2;
        assert_eq!(narrowest(120_000, 10_000, 42_427), bound(1.2e13 / (120_000.0 + error), 10_000));
    }

    #[test]
    fn half_of_the_answers_within_five_microseconds_are_batched() {
        let batched = |apart: &[i64]| are_batched(&apart.iter().map(|ns| pair(20, *ns)).collect::<Vec<_>>());
        assert!(batched(&[4_999, 5_000]) && !batched(&[4_999, 5_000, 5_000]));
        assert!(batched(&[1, 2, 120_000, 120_000]) && !batched(&[]));
        assert_eq!(
            capacity(&[1, 2, 3, 120_000, 120_000, 120_000].map(|ns| pair(20, ns)), 1500, Span(0)),
            None
        );
    }

    #[test]
    fn a_link_as_fast_as_the_host_sends_is_a_bound() {
        let slow = |apart: i64| Pair {
            delay: Span::from_millis(20),
            apart: Span::from_micros(apart),
            sent_apart: Span::from_micros(10),
        };
        let found = capacity(&[slow(11); 9], 1500, Span::ZERO).unwrap();
        assert!(found.bound == Bound::AtLeast && found.is_host_limited && found.rate.lo < 1.2e9, "{found:?}");
    }

    #[test]
    fn the_median_lies_between_two_ranks() {
        // From tables of the sign test.
        let rows = [
            (2_000, 956, 1_043, 0.95),
            (5, 0, 4, 0.9375),
            (6, 0, 5, 0.96875),
            (9, 1, 7, 0.9609),
            (20, 5, 14, 0.9586),
            (100, 39, 60, 0.9648),
            (200, 85, 114, 0.96),
            (201, 86, 114, 0.95),
        ];
        for (n, first, last, confidence) in rows {
            let (f, l, c) = median_ranks(n);
            assert!((f, l) == (first, last) && (c - confidence).abs() < 1e-3, "{n}: {f} {l} {c}");
        }
    }
}
