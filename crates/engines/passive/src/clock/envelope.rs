//! What packets say of two clocks: no packet arrives before it was sent.
//!
//! A packet from a to b with stamps `a` and `b` took `b - a - theta`, which cannot be negative: so
//! `theta`, clock b minus clock a, is at most `b - a`. One from b to a says that it is at least
//! that. The smallest differences one way and the largest of the other way are all that matters;
//! per bin of time one of each is kept. What is left out is a limit less, never a wrong one, so any
//! two envelopes add up to exactly the one of all their packets.

use std::collections::BTreeMap;

use netaware_units::{Span, Wall};
use serde::{Deserialize, Serialize};

/// A limit for the difference of the clocks at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Limit {
    /// Clock b minus clock a, ns.
    pub(crate) difference: i64,
    /// Stamp of clock a.
    pub(crate) at: i64,
}

/// The tightest limits of one bin of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Bin {
    /// Of packets from a to b: not above.
    pub(crate) most: Option<Limit>,
    /// Of packets from b to a: not below.
    pub(crate) least: Option<Limit>,
}

impl Bin {
    fn merge(&mut self, other: &Self) {
        other.most.into_iter().for_each(|limit| self.at_most(limit));
        other.least.into_iter().for_each(|limit| self.at_least(limit));
    }

    #[inline]
    fn at_most(&mut self, limit: Limit) {
        if self.most.is_none_or(|most| limit < most) {
            self.most = Some(limit);
        }
    }

    #[inline]
    fn at_least(&mut self, limit: Limit) {
        // The earlier one of equal limits, whatever the order.
        let rank = |limit: Limit| (limit.difference, std::cmp::Reverse(limit.at));
        if self.least.is_none_or(|least| rank(limit) > rank(least)) {
            self.least = Some(limit);
        }
    }
}

/// Limits of the difference of two clocks over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Width of a bin, ns.
    width: i64,
    bins: BTreeMap<i64, Bin>,
}

impl Envelope {
    /// Of nothing; with bins of `width`, at least 1 us.
    pub fn new(width: Span) -> Self {
        Self { width: width.0.max(1000), bins: BTreeMap::new() }
    }

    /// A packet left a at `sent_at` by a's clock and came to b at `seen_at` by b's.
    #[inline]
    pub fn forward(&mut self, sent_at: Wall, seen_at: Wall) {
        let limit = Limit { difference: seen_at.0.saturating_sub(sent_at.0), at: sent_at.0 };
        self.bin(limit.at).at_most(limit);
    }

    /// A packet left b at `sent_at` by b's clock and came to a at `seen_at` by a's.
    #[inline]
    pub fn reverse(&mut self, sent_at: Wall, seen_at: Wall) {
        let limit = Limit { difference: sent_at.0.saturating_sub(seen_at.0), at: seen_at.0 };
        self.bin(limit.at).at_least(limit);
    }

    /// An exchange: a asked, b answered.
    pub fn exchange(&mut self, exchange: &Exchange) {
        self.forward(exchange.sent, exchange.received);
        self.reverse(exchange.answered, exchange.returned);
    }

    /// Adds all limits of `other`, which must have bins of the same width; others are left out.
    pub fn merge(&mut self, other: &Self) {
        if other.width != self.width {
            return;
        }
        for (number, bin) in &other.bins {
            self.bins.entry(*number).or_default().merge(bin);
        }
    }

    /// Forgets limits before `at`.
    pub fn forget_before(&mut self, at: Wall) {
        self.bins = self.bins.split_off(&at.0.div_euclid(self.width));
    }

    /// Forgets the oldest limits beyond so many bins.
    pub fn keep_newest(&mut self, bins: usize) {
        while self.bins.len() > bins {
            self.bins.pop_first();
        }
    }

    /// Whether it may have been made as `new` was, of packets whose stamps are no further apart
    /// than `longest`.
    pub(crate) fn can_follow(&self, new: &Self, longest: i64) -> bool {
        let sane = |limit: &Limit| {
            limit.at.unsigned_abs() < LATEST && limit.difference.unsigned_abs() <= longest.unsigned_abs()
        };
        let limits = || self.bins.values().flat_map(|bin| [bin.most, bin.least]).flatten();
        self.width == new.width && limits().all(|limit| sane(&limit))
    }

    /// Limits with stamps in `from..until`, in order of bins.
    pub(crate) fn limits(&self, from: i64, until: i64) -> impl Iterator<Item = Bin> + '_ {
        let within = move |limit: &Limit| (from..until).contains(&limit.at);
        let first = from.div_euclid(self.width);
        let last = until.div_euclid(self.width).max(first);
        self.bins
            .range(first..=last)
            .map(|(_, bin)| *bin)
            .map(move |bin| Bin { most: bin.most.filter(within), least: bin.least.filter(within) })
    }

    /// Packets of a join come in the order of digests, so each may be of another bin than the one
    /// before.
    #[inline]
    fn bin(&mut self, at: i64) -> &mut Bin {
        self.bins.entry(at.div_euclid(self.width)).or_default()
    }
}

/// A question of a to b and the answer, each stamped at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The question left a, by a's clock.
    pub sent: Wall,
    /// It came to b, by b's clock.
    pub received: Wall,
    /// The answer left b, by b's clock.
    pub answered: Wall,
    /// It came to a, by a's clock.
    pub returned: Wall,
}

impl Exchange {
    /// Whether its stamps are of this time, and those of either way no further apart than this.
    pub(crate) fn is_within(&self, longest: i64) -> bool {
        let stamps = [self.sent, self.received, self.answered, self.returned];
        let sane = stamps.iter().all(|at| (0..LATEST.cast_signed()).contains(&at.0));
        sane && [(self.sent, self.received), (self.answered, self.returned)]
            .iter()
            .all(|(from, to)| from.0.abs_diff(to.0) <= longest.unsigned_abs())
    }
}

/// The year 2189, ns: differences of stamps before it do not overflow.
const LATEST: u64 = i64::MAX.unsigned_abs() / 4 * 3;

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;

    use super::*;

    #[test]
    fn halves_add_up_to_the_whole() {
        let mut rng = SplitMix64::new(3);
        let mut parts = [Envelope::new(Span(1000)), Envelope::new(Span(1000))];
        let mut whole = Envelope::new(Span(1000));
        for _ in 0..3000 {
            let (at, delay) = (rng.below(100_000) as i64, rng.below(50) as i64);
            let part = rng.below(2);
            for envelope in [&mut parts[part], &mut whole] {
                if delay % 2 == 0 {
                    envelope.forward(Wall(at), Wall(at + 7 + delay));
                } else {
                    envelope.reverse(Wall(at + 7), Wall(at + delay));
                }
            }
        }
        let [mut left, right] = parts;
        left.merge(&right);
        assert_eq!(left, whole);
        assert!(whole.bins.len() <= 102);
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let mut envelope = Envelope::new(Span(1000));
        (0..10).for_each(|at| envelope.forward(Wall(at * 1000), Wall(at * 1000 + 5)));
        envelope.forget_before(Wall(5000));
        assert_eq!(envelope.limits(0, 100_000).count(), 5);
        assert_eq!(envelope.limits(0, 7000).filter(|bin| bin.most.is_some()).count(), 2);
    }

    /// The first stamp that is of no clock: three quarters of what there is room for.
    const END: i64 = 6_917_529_027_641_081_853;

    #[test]
    fn an_exchange_counts_with_stamps_of_this_time_that_are_near_each_other() {
        let rows = [
            ([0, 10, 0, 10], true),
            ([10, 0, 10, 0], true),
            ([0, 11, 0, 10], false),
            ([0, 10, 0, 11], false),
            ([11, 0, 10, 0], false),
            ([-1, 0, 0, 0], false),
            ([END - 1; 4], true),
            ([END - 1, END - 1, END - 1, END], false),
        ];
        for (stamps, want) in rows {
            let [sent, received, answered, returned] = stamps.map(Wall);
            let exchange = Exchange { sent, received, answered, returned };
            assert_eq!(exchange.is_within(10), want, "{stamps:?}");
        }
    }

    #[test]
    fn an_envelope_that_cannot_have_grown_from_another_is_told() {
        let new = Envelope::new(Span(1000));
        let grown = |at: i64, [forward, back]: [i64; 2]| {
            let mut envelope = new.clone();
            envelope.forward(Wall(at), Wall(at + forward));
            envelope.reverse(Wall(at - back), Wall(at));
            envelope
        };
        let sane = grown(5000, [100, 40]);
        assert!(sane.can_follow(&new, 100) && !sane.can_follow(&new, 99));
        assert!(!sane.can_follow(&Envelope::new(Span(2000)), 100), "bins of another width");
        assert!(!grown(5000, [0, 101]).can_follow(&new, 100));
        assert!(grown(END - 1, [0, 0]).can_follow(&new, 100) && !grown(END, [0, 0]).can_follow(&new, 100));
    }

    #[test]
    fn beyond_a_bound_only_the_newest_limits_are_kept() {
        let mut envelope = Envelope::new(Span(1000));
        (0..5).for_each(|at| envelope.forward(Wall(at * 1000), Wall(at * 1000 + 5)));
        for (bins, want) in
            [(9, vec![0, 1000, 2000, 3000, 4000]), (3, vec![2000, 3000, 4000]), (3, vec![2000, 3000, 4000])]
        {
            envelope.keep_newest(bins);
            let kept: Vec<i64> = envelope.limits(0, 5000).filter_map(|bin| Some(bin.most?.at)).collect();
            assert_eq!(kept, want);
        }
    }

    /// The limits of the only bin.
    fn only_bin(envelope: &Envelope) -> Bin {
        let bins: Vec<Bin> = envelope.limits(0, 1000).collect();
        let [bin] = bins.as_slice() else { panic!("{bins:?}") };
        *bin
    }

    #[test]
    fn of_equal_limits_the_earlier_one_is_kept_whatever_the_order() {
        for stamps in [[100, 200], [200, 100]] {
            let mut envelope = Envelope::new(Span(1000));
            for at in stamps {
                envelope.forward(Wall(at), Wall(at + 7));
                envelope.reverse(Wall(at - 5), Wall(at));
            }
            let most = Limit { difference: 7, at: 100 };
            let least = Limit { difference: -5, at: 100 };
            assert_eq!(only_bin(&envelope), Bin { most: Some(most), least: Some(least) }, "{stamps:?}");
        }
    }

    #[test]
    fn the_tightest_limits_of_a_bin_are_kept_not_the_earliest() {
        let mut envelope = Envelope::new(Span(1000));
        for (at, delay) in [(100, 30), (200, 10), (300, 20)] {
            envelope.forward(Wall(at), Wall(at + delay));
            envelope.reverse(Wall(at), Wall(at + delay));
        }
        let most = Limit { difference: 10, at: 200 };
        // The stamp of clock a is that of the arrival.
        let least = Limit { difference: -10, at: 210 };
        assert_eq!(only_bin(&envelope), Bin { most: Some(most), least: Some(least) });
    }

    #[test]
    fn limits_of_bins_of_another_width_are_left_out() {
        let mut envelope = Envelope::new(Span(1000));
        let mut wider = Envelope::new(Span(2000));
        wider.forward(Wall(100), Wall(107));
        envelope.merge(&wider);
        assert_eq!(envelope.limits(0, 4000).count(), 0);
        // Bins are no narrower than 1 us.
        assert_eq!(Envelope::new(Span(999)), Envelope::new(Span(1000)));
        assert_ne!(Envelope::new(Span(1001)), Envelope::new(Span(1000)));
    }

    #[test]
    fn limits_of_a_time_are_those_from_its_first_instant_to_before_its_last() {
        let mut envelope = Envelope::new(Span(1000));
        for at in [-1, 0, 1999, 2000] {
            envelope.forward(Wall(at), Wall(at + 7));
        }
        let stamps = |from: i64, until: i64| -> Vec<i64> {
            envelope.limits(from, until).filter_map(|bin| Some(bin.most?.at)).collect()
        };
        assert_eq!(stamps(0, 2000), [0, 1999]);
        assert_eq!(stamps(-1, 2001), [-1, 0, 1999, 2000]);
        assert!(stamps(1, 1999).is_empty() && stamps(5000, 1000).is_empty());
    }

    #[test]
    fn limits_that_are_forgotten_are_those_of_bins_that_ended_before() {
        let mut envelope = Envelope::new(Span(1000));
        (-2..3).for_each(|bin| envelope.reverse(Wall(bin * 1000), Wall(bin * 1000 + 500)));
        envelope.forget_before(Wall(-1));
        let kept: Vec<i64> = envelope.limits(-9000, 9000).filter_map(|bin| Some(bin.least?.at)).collect();
        assert_eq!(kept, [-500, 500, 1500, 2500]);
    }
}
