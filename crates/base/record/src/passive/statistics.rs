//! Delays as they are added up: exact extremes and sums, three significant digits for everything
//! between.
//!
//! Two of these merge into exactly what one over all delays would have been, whatever the order:
//! bins, counts and integer sums add up, and only the sum of squares is rounded (to one part in
//! 2^53 at each addition). A quantile is the middle of its bin, within 0.05 % of the delay that it
//! stands for.

use netaware_stats::hist::DelayHistogram;
use netaware_units::Span;

use super::{DelayRow, DelayStatistics, PathTaken, PathsRow, Quantiles};
use crate::Histogram;

impl DelayStatistics {
    /// Counts one delay. For a few at a time; for millions there is [`DelayTally`].
    ///
    /// A negative delay counts in `min`, in the sums and in the histogram's `underflow`.
    pub fn observe(&mut self, delay: Span) {
        let single = Self {
            count: 1,
            min: delay,
            max: delay,
            sum_ns: i128::from(delay.0),
            sum_squares: delay.0 as f64 * delay.0 as f64,
            histogram: one_bin(delay),
        };
        self.merge(&single);
    }

    /// Adds all delays of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        (self.min, self.max) = match self.count {
            0 => (other.min, other.max),
            _ => (self.min.min(other.min), self.max.max(other.max)),
        };
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.sum_squares += other.sum_squares;
        self.histogram.digits = Some(DIGITS);
        self.histogram.underflow = self.histogram.underflow.saturating_add(other.histogram.underflow);
        self.histogram.overflow = self.histogram.overflow.saturating_add(other.histogram.overflow);
        merge_bins(&mut self.histogram.bins, &other.histogram.bins);
    }

    /// Arithmetic mean, exact to the nanosecond; `None` of nothing.
    pub fn mean(&self) -> Option<Span> {
        let mean = self.sum_ns.checked_div(i128::from(self.count))?;
        i64::try_from(mean).ok().map(Span)
    }

    /// Sample standard deviation; `None` of fewer than two. From sums of squares: with a deviation
    /// below 1e-7 of the mean it is no more than rounding.
    pub fn sd(&self) -> Option<Span> {
        if self.count < 2 {
            return None;
        }
        let (n, sum) = (self.count as f64, self.sum_ns as f64);
        let variance = (self.sum_squares - sum * sum / n) / (n - 1.0);
        Some(Span(variance.max(0.0).sqrt().round() as i64))
    }

    /// The `q`-quantile (nearest rank), `q` in `0.0..=1.0`; `None` of nothing, or beyond.
    pub fn quantile(&self, q: f64) -> Option<Span> {
        if self.count == 0 || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count);
        Some(self.at_rank(rank))
    }

    /// The same of packets of which `lost` never came, whose delay counts as infinite (RFC 7679
    /// §5.1): `None` too when the quantile falls among those.
    pub fn quantile_with_losses(&self, q: f64, lost: u64) -> Option<Span> {
        if self.count == 0 || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let all = self.count.saturating_add(lost);
        let rank = ((q * all as f64).ceil() as u64).clamp(1, all);
        (rank <= self.count).then(|| self.at_rank(rank))
    }

    /// The `q`-quantile of the delay variation D - D(min) (PDV, RFC 5481 §4.2): needs no clocks
    /// that agree.
    pub fn variation_quantile(&self, q: f64) -> Option<Span> {
        Some((self.quantile(q)? - self.min).or_zero())
    }

    /// Of the delays.
    pub fn quantiles(&self) -> Quantiles {
        Quantiles::by(|q| self.quantile(q))
    }

    /// Of the delay variation: [`Self::variation_quantile`].
    pub fn variation_quantiles(&self) -> Quantiles {
        Quantiles::by(|q| self.variation_quantile(q))
    }

    fn at_rank(&self, rank: u64) -> Span {
        if rank == 1 {
            return self.min;
        }
        if rank == self.count {
            return self.max;
        }
        let mut below = self.histogram.underflow;
        if rank <= below {
            // Negative ones are not told apart.
            return self.min;
        }
        for (edge, count) in &self.histogram.bins {
            below = below.saturating_add(*count);
            if rank <= below {
                let middle = edge.saturating_add(width_of(*edge) / 2);
                let middle = Span(i64::try_from(middle).unwrap_or(i64::MAX));
                return middle.clamp(self.min, self.max);
            }
        }
        self.max
    }
}

/// Counts delays fast; [`DelayTally::finish`] makes the row of them. The first few are kept as they
/// are; beyond, it takes 265 KiB.
#[derive(Debug, Clone)]
pub struct DelayTally {
    few: Vec<u64>,
    bins: Option<Box<DelayHistogram>>,
    count: u64,
    negative: u64,
    min: i64,
    max: i64,
    sum_ns: i128,
    sum_squares: f64,
}

impl DelayTally {
    /// Of nothing yet.
    pub fn new() -> Self {
        Self {
            few: Vec::new(),
            bins: None,
            count: 0,
            negative: 0,
            min: i64::MAX,
            max: i64::MIN,
            sum_ns: 0,
            sum_squares: 0.0,
        }
    }

    /// Counts one delay; what exceeds one hour counts as one hour in the histogram and in full
    /// elsewhere.
    #[inline]
    pub fn observe(&mut self, delay: Span) {
        self.count += 1;
        self.min = self.min.min(delay.0);
        self.max = self.max.max(delay.0);
        self.sum_ns += i128::from(delay.0);
        self.sum_squares += delay.0 as f64 * delay.0 as f64;
        match (u64::try_from(delay.0), &mut self.bins) {
            (Ok(ns), Some(bins)) => bins.observe(ns),
            (Ok(ns), None) => self.observe_few(ns),
            (Err(_), _) => self.negative += 1,
        }
    }

    fn observe_few(&mut self, ns: u64) {
        self.few.push(ns);
        if self.few.len() == FEW {
            let bins = self.bins.insert(Box::default());
            for ns in std::mem::take(&mut self.few) {
                bins.observe(ns);
            }
        }
    }

    /// What was counted.
    pub fn finish(&self) -> DelayStatistics {
        if self.count == 0 {
            return DelayStatistics::default();
        }
        let bins = match &self.bins {
            Some(bins) => bins.lower_edges().collect(),
            None => few_bins(&self.few),
        };
        DelayStatistics {
            count: self.count,
            min: Span(self.min),
            max: Span(self.max),
            sum_ns: self.sum_ns,
            sum_squares: self.sum_squares,
            histogram: Histogram {
                bins,
                digits: Some(DIGITS),
                underflow: self.negative,
                ..Histogram::default()
            },
        }
    }
}

impl Default for DelayTally {
    fn default() -> Self {
        Self::new()
    }
}

impl Quantiles {
    fn by(quantile: impl Fn(f64) -> Option<Span>) -> Self {
        Self { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) }
    }

    /// The median first.
    pub fn as_array(self) -> [Option<Span>; 3] {
        [self.p50, self.p95, self.p99]
    }
}

impl DelayRow {
    /// Of no packets, between points without names.
    pub fn empty(method: &str) -> Self {
        Self {
            from: String::new(),
            to: String::new(),
            version: None,
            method: method.to_owned(),
            packets: 0,
            matched: 0,
            lost: 0,
            unobserved: 0,
            late: 0,
            duplicates: 0,
            reordered: 0,
            collisions: 0,
            given_up: 0,
            patience: Span::ZERO,
            delay: DelayStatistics::default(),
            ipdv: DelayStatistics::default(),
            offset: Span::ZERO,
            clock_bound: None,
            clock_method: String::new(),
            below_bound: 0,
            warnings: Vec::new(),
        }
    }

    /// Adds what another collector found of the same pair, version and period in its part of the
    /// digests.
    ///
    /// Counts and distributions add up. Where the two took off different offsets, each delay keeps
    /// the one that was taken off it, and the wider bound stands for all.
    pub fn merge(&mut self, other: &Self) {
        for (mine, its) in [
            (&mut self.packets, other.packets),
            (&mut self.matched, other.matched),
            (&mut self.lost, other.lost),
            (&mut self.unobserved, other.unobserved),
            (&mut self.late, other.late),
            (&mut self.duplicates, other.duplicates),
            (&mut self.reordered, other.reordered),
            (&mut self.collisions, other.collisions),
            (&mut self.given_up, other.given_up),
            (&mut self.below_bound, other.below_bound),
        ] {
            *mine = mine.saturating_add(its);
        }
        self.patience = self.patience.max(other.patience);
        let (ours, theirs) = (self.delay.count, other.delay.count);
        if ours == 0 {
            self.offset = other.offset;
            self.clock_method.clone_from(&other.clock_method);
            self.clock_bound = other.clock_bound;
        } else if theirs > 0 {
            // An unknown bound spoils the whole: the sum knows no more than its worst part.
            self.clock_bound = self.clock_bound.zip(other.clock_bound).map(|(mine, its)| mine.max(its));
        }
        self.delay.merge(&other.delay);
        self.ipdv.merge(&other.ipdv);
        for warning in &other.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
    }

    /// Lost of those of which it is known whether they came, 0..1; `None` where that is none.
    pub fn loss_ratio(&self) -> Option<f64> {
        let known = self.matched.saturating_add(self.lost);
        (known > 0).then(|| self.lost as f64 / known as f64)
    }

    /// Of the delays with what was lost as infinitely late (RFC 7679 §5.1): `None` where the
    /// quantile is infinite, or of nothing.
    pub fn quantiles_with_losses(&self) -> Quantiles {
        Quantiles::by(|q| self.delay.quantile_with_losses(q, self.lost))
    }
}

impl PathsRow {
    /// Paths that a row names, at most: a network has few, only nonsense has many.
    pub const MOST: usize = 64;

    /// Adds packets of one path.
    pub fn count(&mut self, path: &PathTaken) {
        let has_room = self.paths.len() < Self::MOST;
        match self.paths.iter_mut().find(|known| known.points == path.points) {
            Some(known) => known.packets = known.packets.saturating_add(path.packets),
            None if has_room => self.paths.push(path.clone()),
            None => self.others = self.others.saturating_add(path.packets),
        }
    }
}

fn few_bins(delays: &[u64]) -> Vec<(u64, u64)> {
    let mut bins = delays.iter().map(|ns| (edge_of((*ns).min(DelayHistogram::LONGEST_NS)), 1)).collect();
    add_up_equals(&mut bins);
    bins
}

fn one_bin(delay: Span) -> Histogram {
    let digits = Some(DIGITS);
    match u64::try_from(delay.0) {
        Ok(ns) => Histogram {
            bins: vec![(edge_of(ns.min(DelayHistogram::LONGEST_NS)), 1)],
            digits,
            ..Histogram::default()
        },
        Err(_) => Histogram { digits, underflow: 1, ..Histogram::default() },
    }
}

/// Width of the bin that begins at `edge`, ns.
fn width_of(edge: u64) -> u64 {
    1 << edge.checked_ilog2().unwrap_or(0).saturating_sub(LINEAR_BITS - 1)
}

/// Where the bin of a delay begins, ns.
fn edge_of(ns: u64) -> u64 {
    // The histogram begins at 1 ns and puts what is less there, and the library names that bin 0.
    ns & !(width_of(ns) - 1)
}

fn merge_bins(into: &mut Vec<(u64, u64)>, from: &[(u64, u64)]) {
    if let [(edge, count)] = from {
        // One delay at a time must not copy the whole.
        match into.binary_search_by_key(edge, |bin| bin.0) {
            Ok(at) => into[at].1 = into[at].1.saturating_add(*count),
            Err(at) => into.insert(at, (*edge, *count)),
        }
        return;
    }
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(into.len() + from.len());
    merged.extend_from_slice(into);
    merged.extend_from_slice(from);
    add_up_equals(&mut merged);
    *into = merged;
}

/// Sorts bins, and makes one of those with the same edge.
fn add_up_equals(bins: &mut Vec<(u64, u64)>) {
    bins.sort_unstable_by_key(|bin| bin.0);
    bins.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
}

/// As in [`DelayHistogram`].
const DIGITS: u8 = 3;

/// Rows of little traffic are many, and must not take a histogram each.
const FEW: usize = 256;

/// Three digits take 2048 bins for the smallest values, one each (2^11), and 1024 for each doubling
/// after that.
const LINEAR_BITS: u32 = 11;

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;

    use super::*;

    fn tallied(delays: &[i64]) -> DelayStatistics {
        let mut tally = DelayTally::new();
        for ns in delays {
            tally.observe(Span(*ns));
        }
        tally.finish()
    }

    fn one_by_one(delays: &[i64]) -> DelayStatistics {
        let mut sum = DelayStatistics::default();
        for ns in delays {
            sum.observe(Span(*ns));
        }
        sum
    }

    /// Over all magnitudes up to an hour; some negative.
    fn drawn(n: usize, seed: u64) -> Vec<i64> {
        let mut rng = SplitMix64::new(seed);
        (0..n)
            .map(|_| {
                let magnitude = rng.below(41);
                (rng.next_u64() >> (63 - magnitude)) as i64 - if rng.below(20) == 0 { 1000 } else { 0 }
            })
            .collect()
    }

    #[test]
    fn slow_and_fast_way_find_the_very_same() {
        let delays = drawn(5000, 1);
        let (slow, fast) = (one_by_one(&delays), tallied(&delays));
        assert_eq!(slow.histogram, fast.histogram);
        assert_eq!(
            (slow.count, slow.min, slow.max, slow.sum_ns),
            (fast.count, fast.min, fast.max, fast.sum_ns)
        );
    }

    #[test]
    fn merged_halves_are_the_whole() {
        let delays = drawn(4000, 2);
        let (left, right) = delays.split_at(1234);
        let mut merged = tallied(left);
        merged.merge(&tallied(right));
        let whole = tallied(&delays);
        assert_eq!(merged.histogram, whole.histogram);
        assert_eq!(
            (merged.count, merged.min, merged.max, merged.sum_ns),
            (whole.count, whole.min, whole.max, whole.sum_ns)
        );
        assert!((merged.sum_squares / whole.sum_squares - 1.0).abs() < 1e-12);
        merged.merge(&DelayStatistics::default());
        assert_eq!(merged.count, whole.count);
    }

    #[test]
    fn quantiles_are_within_a_two_thousandth_of_the_sorted_delays() {
        let mut delays: Vec<i64> = drawn(3000, 3).into_iter().map(|ns| ns.abs() + 1).collect();
        let sum = tallied(&delays);
        delays.sort_unstable();
        for q in [0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = delays[((q * 3000.0_f64).ceil() as usize).clamp(1, 3000) - 1];
            let found = sum.quantile(q).unwrap().0;
            assert!((found - exact).abs() as f64 <= 0.000_5 * exact as f64 + 0.5, "{q}: {found} for {exact}");
        }
        assert_eq!(sum.quantile(1.5), None);
    }

    #[test]
    fn nothing_has_no_mean_and_no_quantile() {
        let nothing = DelayStatistics::default();
        assert_eq!((nothing.mean(), nothing.sd(), nothing.quantile(0.5)), (None, None, None));
        assert_eq!(DelayTally::new().finish(), nothing);
    }

    #[test]
    fn mean_and_deviation_of_known_numbers() {
        let sum = tallied(&[2_000, 4_000, 4_000, 4_000, 5_000, 5_000, 7_000, 9_000]);
        assert_eq!(sum.mean(), Some(Span(5_000)));
        // Sample deviation: sqrt(32 / 7) thousand.
        assert_eq!(sum.sd(), Some(Span(2_138)));
        assert_eq!(sum.variation_quantile(1.0), Some(Span(7_000)));
    }

    #[test]
    fn paths_beyond_those_that_a_row_names_are_counted_together() {
        let path = |n: usize, packets| PathTaken { points: vec![format!("p{n}")], packets };
        let mut row = PathsRow { paths: (0..PathsRow::MOST).map(|n| path(n, 10)).collect(), others: 1 };
        row.count(&path(3, 5));
        row.count(&path(999, 7));
        assert_eq!((row.paths.len(), row.others), (PathsRow::MOST, 8));
        assert_eq!(row.paths[3], path(3, 15));
    }

    #[test]
    fn what_was_lost_is_infinitely_late() {
        let sum = tallied(&[1_000; 95]);
        assert_eq!(sum.quantile_with_losses(0.95, 5), Some(Span(1_000)));
        assert_eq!(sum.quantile_with_losses(0.96, 5), None);
        assert_eq!(sum.quantiles().as_array(), [Some(Span(1_000)); 3]);
        assert_eq!(sum.variation_quantiles().as_array(), [Some(Span::ZERO); 3]);
    }

    #[test]
    fn the_wider_bound_holds_for_a_merged_row_and_one_without_delays_adds_none() {
        let row = |delays: usize, clock_bound: Option<i64>, offset: i64, clock_method: &str| DelayRow {
            delay: tallied(&vec![5; delays]),
            clock_bound: clock_bound.map(Span),
            offset: Span(offset),
            clock_method: clock_method.to_owned(),
            ..DelayRow::empty("passive")
        };
        // Number of delays and bound of the one and of the other, and the bound of both together.
        let rows = [
            ((1, Some(10)), (1, Some(20)), Some(20)),
            ((1, Some(20)), (1, Some(10)), Some(20)),
            ((2, Some(10)), (3, None), None),
            ((2, None), (3, Some(10)), None),
            ((1, Some(10)), (0, Some(20)), Some(10)),
            ((1, Some(10)), (0, None), Some(10)),
            ((0, Some(10)), (1, Some(5)), Some(5)),
            ((0, Some(10)), (1, None), None),
            ((0, None), (1, Some(10)), Some(10)),
        ];
        for (n, ((ours, our_bound), (theirs, their_bound), want)) in rows.into_iter().enumerate() {
            let mut sum = row(ours, our_bound, 1, "clock_daemons");
            sum.merge(&row(theirs, their_bound, 2, "active_exchange"));
            assert_eq!(sum.clock_bound, want.map(Span), "row {n}");
            assert_eq!(sum.delay.count, (ours + theirs) as u64, "row {n}");
            let kept = if ours == 0 { (Span(2), "active_exchange") } else { (Span(1), "clock_daemons") };
            assert_eq!((sum.offset, sum.clock_method.as_str()), kept, "row {n}");
        }
    }
}
