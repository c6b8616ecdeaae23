//! A native histogram of Prometheus: buckets that grow by a power of two's root, of which only
//! those with entries are kept.
//!
//! At [`SCHEMA`] 3 eight buckets double the delay: each is 9 % wide, so a quantile read off it is
//! off by no more than that. Delays come as bins of three digits (0.1 % wide) and go by their lower
//! edge: a quantile leans low by at most 0.1 % more. What is 0 or less, which only clocks can make
//! of a delay, is in the zero bucket.

use std::collections::BTreeMap;

use netaware_record::passive::DelayStatistics;

/// Bucket `i` ends at 2^(i / 2^SCHEMA) seconds and includes its end.
pub(crate) const SCHEMA: i32 = 3;
const PER_DOUBLING: f64 = (1 << SCHEMA) as f64;
/// Half a nanosecond: no delay above 0 is smaller.
pub(crate) const ZERO_THRESHOLD: f64 = 5e-10;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sparse {
    pub(crate) zero: u64,
    buckets: BTreeMap<i32, u64>,
}

/// Spans (buckets left out before it, buckets in it) and counts, each as the difference to the one
/// before.
pub(crate) type Spans = (Vec<(i32, u32)>, Vec<i64>);

impl Sparse {
    /// Adds all delays of `delay`; those that are in no bin count as the largest one.
    pub(crate) fn add(&mut self, delay: &DelayStatistics) {
        let mut left = delay.count;
        let mut put = |ns: i64, count: u64| {
            let count = count.min(left);
            left -= count;
            match index(ns) {
                None => self.zero += count,
                Some(index) if count > 0 => *self.buckets.entry(index).or_default() += count,
                Some(_) => {}
            }
        };
        put(0, delay.histogram.underflow);
        for (edge, count) in &delay.histogram.bins {
            put(i64::try_from(*edge).unwrap_or(i64::MAX), *count);
        }
        put(delay.max.0, u64::MAX);
    }

    pub(crate) fn spans(&self) -> Spans {
        let (mut spans, mut deltas): Spans = (Vec::new(), Vec::new());
        let (mut next, mut before) = (None, 0);
        for (index, count) in &self.buckets {
            match (next, spans.last_mut()) {
                (Some(next), Some((_, length))) if next == *index => *length += 1,
                (Some(next), _) => spans.push((index - next, 1)),
                (None, _) => spans.push((*index, 1)),
            }
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            deltas.push(count - before);
            (next, before) = (Some(index + 1), count);
        }
        (spans, deltas)
    }
}

/// `None`: the zero bucket.
fn index(ns: i64) -> Option<i32> {
    (ns > 0).then(|| {
        let exact = (ns as f64 / 1e9).log2() * PER_DOUBLING;
        // An end that is a bucket's own (1 s) must not fall into the next by the logarithm's
        // rounding.
        let near = exact.round();
        if (exact - near).abs() < 1e-9 { near as i32 } else { exact.ceil() as i32 }
    })
}

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;

    #[test]
    fn a_bucket_holds_what_lies_between_its_ends() {
        let end = |index: i32| (f64::from(index) / PER_DOUBLING).exp2();
        for ns in [1, 999, 20_000, 1_000_000, 500_000_000, 1_000_000_000, 1_000_000_001, 86_400_000_000_000] {
            let (seconds, index) = (ns as f64 / 1e9, index(ns).unwrap());
            let slack = 1.0 + 1e-9;
            assert!(end(index - 1) < seconds * slack && seconds <= end(index) * slack, "{ns} in {index}");
        }
        assert_eq!((index(1_000_000_000), index(500_000_000)), (Some(0), Some(-8)));
        assert_eq!((index(0), index(-5)), (None, None));
    }

    #[test]
    fn spans_and_differences_give_the_counts_back_and_none_is_lost() {
        let mut sparse = Sparse::default();
        let mut all = DelayStatistics::default();
        for ns in [-3, 0, 1_000, 1_001, 20_000, 1_000_000, 1_100_000, 1_200_000, 3_600_000_000_000] {
            all.observe(Span(ns));
        }
        sparse.add(&all);
        // A row from elsewhere whose bins do not hold all.
        sparse.add(&DelayStatistics { count: 4, max: Span(1_000_000), ..DelayStatistics::default() });
        let (spans, deltas) = sparse.spans();
        let (mut at, mut count, mut read, mut deltas) = (0, 0, BTreeMap::new(), deltas.into_iter());
        for (offset, length) in spans {
            at += offset;
            for _ in 0..length {
                count += deltas.next().unwrap();
                read.insert(at, count as u64);
                at += 1;
            }
        }
        assert_eq!((deltas.next(), &read), (None, &sparse.buckets));
        assert_eq!(sparse.zero + read.values().sum::<u64>(), 13);
        assert!(sparse.buckets.values().all(|count| *count > 0), "none that is empty");
    }
}
