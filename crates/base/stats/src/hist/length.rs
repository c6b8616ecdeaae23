//! How often each length occurred: of loss runs, of reordering.

use serde::Serialize;

/// Counts of the lengths 1, 2, ... up to a limit; longer ones are counted together. Memory fixed at
/// creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LengthHistogram {
    /// `bins[i]` counts the length `i + 1`.
    bins: Vec<u64>,
    beyond: u64,
    longest: u64,
}

impl LengthHistogram {
    /// For lengths `1..=limit`, `limit` at most 65536 (more is cut to that).
    pub fn new(limit: usize) -> Self {
        Self { bins: vec![0; limit.min(MOST_BINS)], beyond: 0, longest: 0 }
    }

    /// Counts one occurrence of `length`; a length of 0 is no occurrence.
    pub fn observe(&mut self, length: u64) {
        let Some(index) = length.checked_sub(1) else { return };
        self.longest = self.longest.max(length);
        match usize::try_from(index).ok().and_then(|index| self.bins.get_mut(index)) {
            Some(count) => *count += 1,
            None => self.beyond += 1,
        }
    }

    /// Adds the counts of `other`, e.g. of a parallel stream; what exceeds the limit of `self` goes
    /// beyond.
    pub fn merge(&mut self, other: &Self) {
        for (index, count) in other.bins.iter().enumerate() {
            *self.bins.get_mut(index).unwrap_or(&mut self.beyond) += count;
        }
        self.beyond += other.beyond;
        self.longest = self.longest.max(other.longest);
    }

    /// Counts of the lengths 1, 2, 3, ...
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// Non-empty bins as (length, count), ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (1..).zip(self.bins.iter().copied()).filter(|&(_, count)| count > 0)
    }

    /// How many were longer than the last bin.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The longest of all, 0 if none occurred; exact even beyond the last bin.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// How many occurred in all.
    pub fn count(&self) -> u64 {
        self.bins.iter().sum::<u64>() + self.beyond
    }
}

const MOST_BINS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_beyond_the_limit_are_counted_together() {
        let mut hist = LengthHistogram::new(3);
        for length in [0, 1, 3, 3, 4, u64::MAX] {
            hist.observe(length);
        }
        assert_eq!(hist.iter().collect::<Vec<_>>(), [(1, 1), (3, 2)]);
        assert_eq!((hist.beyond(), hist.longest(), hist.count()), (2, u64::MAX, 5));
    }

    #[test]
    fn merging_into_a_shorter_one_loses_no_count() {
        let (mut short, mut long) = (LengthHistogram::new(2), LengthHistogram::new(9));
        short.observe(1);
        for length in [2, 5, 12] {
            long.observe(length);
        }
        short.merge(&long);
        assert_eq!(short.iter().collect::<Vec<_>>(), [(1, 1), (2, 1)]);
        assert_eq!((short.beyond(), short.longest(), short.count()), (2, 12, 4));
    }

    #[test]
    fn limit_is_bounded() {
        assert_eq!(LengthHistogram::new(usize::MAX).bins().len(), 65_536);
    }
}
