//! Delays of many things at once: a histogram that takes memory only for what it has seen.

use std::collections::BTreeMap;

use netaware_record::Histogram;
use netaware_record::passive::DelayStatistics;
use netaware_stats::hist::DelayHistogram;
use netaware_units::Span;

/// The same bins as [`DelayHistogram`], three significant digits, but each only once something is
/// in it: a few hundred bytes instead of 265 KiB, a few times slower. At most 2048 + 1024 bins for
/// each doubling, so 34,000 for anything up to an hour.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delays {
    bins: BTreeMap<u64, u64>,
    count: u64,
    negative: u64,
    min: i64,
    max: i64,
    sum: i128,
    sum_squares: f64,
}

impl Delays {
    /// Counts one. Longer than an hour counts as that in its bin; negative ones are in the moments
    /// and in `underflow`.
    pub fn observe(&mut self, delay: Span) {
        let ns = delay.0;
        (self.min, self.max) = if self.count == 0 { (ns, ns) } else { (self.min.min(ns), self.max.max(ns)) };
        self.count += 1;
        self.sum += i128::from(ns);
        self.sum_squares += (ns as f64).powi(2);
        match u64::try_from(ns) {
            Ok(ns) => *self.bins.entry(lower_edge(ns.min(DelayHistogram::LONGEST_NS))).or_default() += 1,
            Err(_) => self.negative += 1,
        }
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        (self.min, self.max) = match self.count {
            0 => (other.min, other.max),
            _ => (self.min.min(other.min), self.max.max(other.max)),
        };
        self.count += other.count;
        self.negative += other.negative;
        self.sum += other.sum;
        self.sum_squares += other.sum_squares;
        for (edge, count) in &other.bins {
            *self.bins.entry(*edge).or_default() += count;
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The lower edge of the bin in which the median (nearest rank) is; `None` of nothing.
    pub fn median(&self) -> Option<Span> {
        let rank = self.count.div_ceil(2).saturating_sub(self.negative);
        let mut before = 0;
        let middle = self.bins.iter().find(|(_, count)| {
            before += **count;
            before >= rank.max(1)
        });
        middle.map(|(edge, _)| Span(edge.cast_signed()))
    }

    /// As a row carries them.
    pub fn statistics(&self) -> DelayStatistics {
        let histogram = Histogram {
            bins: self.bins.iter().map(|(edge, count)| (*edge, *count)).collect(),
            digits: Some(3),
            underflow: self.negative,
            ..Histogram::default()
        };
        DelayStatistics {
            count: self.count,
            min: Span(self.min),
            max: Span(self.max),
            sum_ns: self.sum,
            sum_squares: self.sum_squares,
            histogram,
        }
    }
}

/// Where the bin of `ns` begins: its eleven leading bits.
fn lower_edge(ns: u64) -> u64 {
    let shift = (64 - ns.leading_zeros()).saturating_sub(11);
    ns >> shift << shift
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_has_no_median() {
        assert_eq!(Delays::default().median(), None);
        assert_eq!(Delays::default().statistics().count, 0);
    }

    #[test]
    fn negative_delays_are_counted_apart() {
        let mut delays = Delays::default();
        for ns in [-5, 10, 20] {
            delays.observe(Span(ns));
        }
        let said = delays.statistics();
        assert_eq!((said.count, said.min, said.max, said.sum_ns), (3, Span(-5), Span(20), 25));
        assert_eq!((said.histogram.underflow, said.histogram.bins), (1, vec![(10, 1), (20, 1)]));
    }

    proptest! {
        #[test]
        fn bins_are_those_of_the_dense_histogram(samples in prop::collection::vec(0..2 * DelayHistogram::LONGEST_NS, 1..60),
                                                 cut in 0..60_usize) {
            let (mut left, mut right, mut dense) = (Delays::default(), Delays::default(), DelayHistogram::new());
            for (n, ns) in samples.iter().enumerate() {
                (if n < cut { &mut left } else { &mut right }).observe(Span(ns.cast_signed()));
                dense.observe(*ns);
            }
            left.merge(&right);
            let said = left.statistics();
            prop_assert_eq!(&said.histogram.bins, &dense.lower_edges().collect::<Vec<_>>());
            prop_assert_eq!(said.min.0.cast_unsigned(), *samples.iter().min().unwrap());
            prop_assert_eq!(said.max.0.cast_unsigned(), *samples.iter().max().unwrap());
            prop_assert_eq!(said.sum_ns, samples.iter().map(|ns| i128::from(*ns)).sum::<i128>());
            let (said, exact) = (left.median().unwrap().0 as f64, dense.quantile(0.5).unwrap() as f64);
            prop_assert!((said - exact).abs() <= exact / 1024.0 + 1.0 || exact > 3.5e12, "{} {}", said, exact);
        }
    }

    #[test]
    fn merged_delays_are_those_of_both() {
        let observed = |delays: &[i64]| {
            let mut found = Delays::default();
            for ns in delays {
                found.observe(Span(*ns));
            }
            found
        };
        let mut merged = observed(&[-5, 3, 5003]);
        merged.merge(&observed(&[-7, 3, 4097]));
        let want = DelayStatistics {
            count: 6,
            min: Span(-7),
            max: Span(5003),
            sum_ns: 9094,
            sum_squares: 41_815_510.0,
            histogram: Histogram {
                bins: vec![(3, 2), (4096, 1), (5000, 1)],
                digits: Some(3),
                underflow: 2,
                ..Histogram::default()
            },
        };
        assert_eq!(merged.statistics(), want);
        assert_eq!((merged.count(), merged.median()), (6, Some(Span(3))));
        merged.merge(&Delays::default());
        assert_eq!(merged.statistics(), want);
        let mut empty = Delays::default();
        empty.merge(&observed(&[10, 20]));
        assert_eq!(empty, observed(&[10, 20]));
        assert_eq!(
            [&[10, 20][..], &[1, 2, 3], &[5, 5, 9, 9]].map(|delays| observed(delays).median()),
            [10, 2, 5].map(|ns| Some(Span(ns)))
        );
    }

    #[test]
    fn a_bin_begins_at_the_eleven_leading_bits() {
        for (ns, edge) in
            [(0, 0), (1, 1), (2047, 2047), (2048, 2048), (2049, 2048), (4099, 4096), (4100, 4100)]
        {
            assert_eq!(lower_edge(ns), edge);
        }
    }
}
