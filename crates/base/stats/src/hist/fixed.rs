//! A histogram with bins of equal width between chosen limits, exact moments beside.
//!
//! This is the histogram of `UDPmon`: the asker chooses low limit, bin width and bin count. What
//! falls outside is counted, not clamped into the edge bins, so a tall last bin is always real.
//! Mean, deviation, skewness and kurtosis are computed from the samples themselves, not from the
//! bins, and include what fell outside.

use std::fmt;

use serde::Serialize;

use crate::moments::Moments;

/// Counts of samples per bin. Bin `i` holds `low + i * width <= x < low + (i + 1) * width`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FixedHistogram {
    low: i64,
    width: u64,
    /// Never empty, at most [`FixedHistogram::MOST_BINS`] long; `new` is the only writer of its
    /// length.
    bins: Vec<u64>,
    underflow: u64,
    overflow: u64,
    moments: Moments,
}

impl FixedHistogram {
    /// The largest number of bins, because the asker may sit on the other side of the network: 8
    /// MiB of counters.
    pub const MOST_BINS: usize = 1 << 20;

    /// An empty histogram of `bins` bins, each `width` wide, the first beginning at `low` (unit of
    /// the samples).
    pub fn new(low: i64, width: u64, bins: usize) -> Result<Self, HistogramShapeError> {
        if width == 0 {
            return Err(HistogramShapeError::ZeroWidth);
        }
        if bins == 0 {
            return Err(HistogramShapeError::NoBins);
        }
        if bins > Self::MOST_BINS {
            return Err(HistogramShapeError::TooManyBins { asked: bins });
        }
        let end = i128::from(low) + i128::from(width) * bins as i128;
        if end > i128::from(i64::MAX) {
            return Err(HistogramShapeError::BeyondRange);
        }
        Ok(Self { low, width, bins: vec![0; bins], underflow: 0, overflow: 0, moments: Moments::new() })
    }

    /// Counts one sample.
    #[inline]
    pub fn observe(&mut self, x: i64) {
        self.moments.observe(x as f64);
        if x < self.low {
            self.underflow += 1;
            return;
        }
        // A quotient beyond `usize` is beyond the last bin as well.
        let bin = usize::try_from(x.abs_diff(self.low) / self.width).unwrap_or(usize::MAX);
        match self.bins.get_mut(bin) {
            Some(count) => *count += 1,
            None => self.overflow += 1,
        }
    }

    /// Adds the counts of a histogram with the same low limit, width and number of bins.
    pub fn merge(&mut self, other: &Self) -> Result<(), ShapeMismatch> {
        if (self.low, self.width, self.bins.len()) != (other.low, other.width, other.bins.len()) {
            return Err(ShapeMismatch);
        }
        for (mine, theirs) in self.bins.iter_mut().zip(&other.bins) {
            *mine += theirs;
        }
        self.underflow += other.underflow;
        self.overflow += other.overflow;
        self.moments.merge(&other.moments);
        Ok(())
    }

    /// The `q`-quantile (nearest rank, then linear inside the bin); off by at most one bin width.
    ///
    /// `None` without samples, for `q` outside `0.0..=1.0`, and when the answer lies below the
    /// first or beyond the last bin: then only the limit is known.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&q) || self.count() == 0 {
            return None;
        }
        let rank = ((q * self.count() as f64).ceil() as u64).max(1);
        let mut within = rank.checked_sub(self.underflow).filter(|&within| within > 0)?;
        for (edge, count) in self.iter() {
            if within <= count {
                // The k-th of n samples of a bin is taken to stand in the middle of the k-th of n
                // slices.
                return Some(edge as f64 + self.width as f64 * (within as f64 - 0.5) / count as f64);
            }
            within -= count;
        }
        None
    }

    /// Each bin as (lower edge, count), empty bins included, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        // The edges stay below `i64::MAX`: `new` checked the end of the last bin.
        self.bins
            .iter()
            .enumerate()
            .map(|(i, &count)| (self.low.wrapping_add_unsigned(i as u64 * self.width), count))
    }

    /// Counts of the bins in order.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// Lower edge of the first bin.
    pub fn low(&self) -> i64 {
        self.low
    }

    /// Width of every bin; never 0.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// Samples below the first bin.
    pub fn underflow(&self) -> u64 {
        self.underflow
    }

    /// Samples at or beyond the end of the last bin.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// All samples, those outside the bins included.
    pub fn count(&self) -> u64 {
        self.moments.count()
    }

    /// Moments of the samples themselves, free of binning, those outside the bins included.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }
}

/// Why no histogram of the wanted shape can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistogramShapeError {
    /// The bin width is zero.
    ZeroWidth,
    /// No bins were asked for.
    NoBins,
    /// More bins than [`FixedHistogram::MOST_BINS`].
    TooManyBins {
        /// How many were asked for.
        asked: usize,
    },
    /// The last bin would end beyond the largest `i64`.
    BeyondRange,
}

impl fmt::Display for HistogramShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroWidth => write!(f, "the bins of a histogram cannot have zero width"),
            Self::NoBins => write!(f, "a histogram needs at least one bin"),
            Self::TooManyBins { asked } => {
                write!(f, "{asked} bins asked for, at most {} are given", FixedHistogram::MOST_BINS)
            }
            Self::BeyondRange => write!(f, "the last bin would end beyond the largest 64-bit value"),
        }
    }
}

impl std::error::Error for HistogramShapeError {}

/// Two histograms differ in low limit, bin width or number of bins and cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShapeMismatch;

impl fmt::Display for ShapeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the histograms differ in low limit, bin width or number of bins")
    }
}

impl std::error::Error for ShapeMismatch {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::truth::assert_close;

    #[test]
    fn edges_belong_to_the_bin_above() {
        let mut hist = FixedHistogram::new(10, 5, 3).unwrap();
        for x in [9, 10, 14, 15, 24, 25] {
            hist.observe(x);
        }
        assert_eq!(hist.iter().collect::<Vec<_>>(), [(10, 2), (15, 1), (20, 1)]);
        assert_eq!((hist.underflow(), hist.overflow(), hist.count()), (1, 1, 6));
        assert_eq!((hist.low(), hist.width(), hist.bins()), (10, 5, &[2, 1, 1][..]));
        assert_close(hist.moments().mean().unwrap(), 97.0 / 6.0, 1e-12);
    }

    #[test]
    fn impossible_shapes_are_refused_with_their_reason() {
        let most = FixedHistogram::MOST_BINS;
        let cases = [
            (1, 0, 0, 5, HistogramShapeError::ZeroWidth),
            (2, 0, 1, 0, HistogramShapeError::NoBins),
            (3, 0, 1, most + 1, HistogramShapeError::TooManyBins { asked: most + 1 }),
            (4, i64::MAX, 1, 1, HistogramShapeError::BeyondRange),
            (5, 0, u64::MAX, most, HistogramShapeError::BeyondRange),
        ];
        for (row, low, width, bins, reason) in cases {
            assert_eq!(FixedHistogram::new(low, width, bins), Err(reason), "row {row}");
        }
    }

    #[test]
    fn quantile_outside_the_bins_is_unknown() {
        let mut hist = FixedHistogram::new(0, 1, 10).unwrap();
        assert_eq!(hist.quantile(0.5), None);
        for x in [-5, 3, 50] {
            hist.observe(x);
        }
        assert_eq!((hist.quantile(0.1), hist.quantile(0.5), hist.quantile(1.0)), (None, Some(3.5), None));
    }

    #[test]
    fn unlike_histograms_do_not_merge() {
        let mut hist = FixedHistogram::new(0, 1, 10).unwrap();
        assert_eq!(hist.merge(&FixedHistogram::new(0, 2, 10).unwrap()), Err(ShapeMismatch));
    }

    proptest! {
        #[test]
        fn no_sample_disappears(low in -(1_i64 << 60)..1 << 60, width in 1..1_u64 << 40, bins in 1..50_usize,
                                near in prop::collection::vec(-(1_i64 << 46)..1 << 46, 0..50),
                                anywhere in prop::collection::vec(any::<i64>(), 0..50)) {
            let mut hist = FixedHistogram::new(low, width, bins).unwrap();
            let samples: Vec<i64> = near.iter().map(|x| low + x).chain(anywhere).collect();
            for &x in &samples {
                hist.observe(x);
            }
            let counted = hist.bins().iter().sum::<u64>() + hist.underflow() + hist.overflow();
            prop_assert_eq!(counted, samples.len() as u64);
            prop_assert_eq!(hist.iter().count(), bins);
            prop_assert_eq!(hist.underflow(), samples.iter().filter(|x| **x < low).count() as u64);
        }

        #[test]
        fn a_shape_is_refused_if_and_only_if_its_last_bin_ends_beyond_the_range(
            low in any::<i64>(), width in 1..u64::MAX, bins in 1..50_usize,
        ) {
            let end = i128::from(low) + i128::from(width) * bins as i128;
            let made = FixedHistogram::new(low, width, bins);
            let refused = (end > i128::from(i64::MAX)).then_some(HistogramShapeError::BeyondRange);
            prop_assert_eq!(made.err(), refused);
        }

        #[test]
        fn quantile_is_within_one_bin_of_the_exact_one(mut samples in prop::collection::vec(0..1000_i64, 1..100),
                                                       q in 0.0..=1.0_f64) {
            let mut hist = FixedHistogram::new(0, 7, 143).unwrap();
            for &x in &samples {
                hist.observe(x);
            }
            samples.sort_unstable();
            let exact = crate::quantile::nearest_rank(&samples, q).unwrap();
            prop_assert!((hist.quantile(q).unwrap() - exact as f64).abs() <= 7.0);
        }
    }
}
