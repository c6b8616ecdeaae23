//! Where samples gather: local modes, and the narrow clusters of samples that noise alone tells
//! apart.
//!
//! A histogram would depend on where its bins begin; both methods here slide a window of given
//! width over the sorted samples instead. [`modes`] is the mode search of Pathrate (Dovrolis,
//! Ramanathan, Moore, "Packet-dispersion techniques and a capacity-estimation methodology",
//! IEEE/ACM Trans. Networking 12(6), 2004): the fullest window is the centre of a bell, which is
//! followed to both sides for as long as the windows do not grow again, nor leave a hole as wide as
//! themselves. [`clusters`] is its first step alone.
//!
//! Bias: both always find something, in flat noise too. Look at [`Mode::share`] and
//! [`Mode::merit`].

use std::ops::Range;

use crate::moments::Moments;

/// How bells are told apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModeRules {
    /// Of the window, in the unit of the samples.
    pub width: f64,
    /// A window belongs to the bell while it holds less than this times what its neighbour towards
    /// the centre holds.
    pub tolerance: f64,
    /// A mode has more samples than this in its central window.
    pub fewest: usize,
}

impl ModeRules {
    /// Pathrate's tolerance of 10 % and its 15 samples.
    pub const fn new(width: f64) -> Self {
        Self { width, tolerance: 1.10, fewest: 15 }
    }
}

/// Samples that gather around a place.
#[derive(Debug, Clone, PartialEq)]
pub struct Mode {
    /// Lowest sample of the fullest window.
    pub lo: f64,
    /// Highest sample of the fullest window.
    pub hi: f64,
    /// Samples in that window.
    pub count: usize,
    /// All samples of the bell, as places in the sorted samples.
    pub bell: Range<usize>,
    /// Of the bell, 3 for normal noise; `None` for fewer than three samples, or equal ones.
    pub kurtosis: Option<f64>,
    /// Of all samples, those of the central window, 0..=1.
    pub share: f64,
}

impl Mode {
    /// Middle of the central window.
    pub fn middle(&self) -> f64 {
        f64::midpoint(self.lo, self.hi)
    }

    /// How sharp and how strong it is: kurtosis of the bell times share of the central window.
    /// Pathrate's program leaves out a division in the kurtosis, so that its figure is this times
    /// the size of the bell and favours wide bells; we take the kurtosis of the textbooks. A bell
    /// of equal samples is as sharp as can be and counts as 3.
    pub fn merit(&self) -> f64 {
        self.kurtosis.unwrap_or(3.0) * self.share
    }

    /// The figure of merit as Pathrate's papers describe it: share of the bell in its centre times
    /// share of the centre.
    pub fn peak_merit(&self) -> f64 {
        self.count as f64 / self.bell.len().max(1) as f64 * self.share
    }
}

/// Local modes of ascending `sorted`, strongest window first.
pub fn modes(sorted: &[f64], rules: &ModeRules) -> Vec<Mode> {
    let mut free = Free::new(sorted);
    let mut found = Vec::new();
    while let Some(centre) = free.fullest(rules.width) {
        let bell = free.bell(&centre, rules);
        free.take(bell.clone());
        if centre.len() > rules.fewest {
            found.push(mode(sorted, &centre, bell));
        }
    }
    found
}

/// Windows of `width` without common samples, fullest first, over ascending `sorted`; at most
/// `most` of them.
pub fn clusters(sorted: &[f64], width: f64, most: usize) -> Vec<Range<usize>> {
    let mut free = Free::new(sorted);
    let mut found = Vec::new();
    while found.len() < most
        && let Some(window) = free.fullest(width)
    {
        free.take(window.clone());
        found.push(window);
    }
    found
}

fn mode(sorted: &[f64], centre: &Range<usize>, bell: Range<usize>) -> Mode {
    let moments: Moments = sorted[bell.clone()].iter().copied().collect();
    let kurtosis = moments.excess_kurtosis().filter(|_| bell.len() >= 3).map(|excess| excess + 3.0);
    Mode {
        lo: sorted[centre.start],
        hi: sorted[centre.end - 1],
        count: centre.len(),
        kurtosis,
        share: centre.len() as f64 / sorted.len() as f64,
        bell,
    }
}

/// Samples that belong to no mode yet.
struct Free<'a> {
    sorted: &'a [f64],
    taken: Vec<bool>,
}

impl<'a> Free<'a> {
    fn new(sorted: &'a [f64]) -> Self {
        Self { sorted, taken: vec![false; sorted.len()] }
    }

    /// The window with most samples, none of them taken.
    fn fullest(&self, width: f64) -> Option<Range<usize>> {
        let (mut best, mut start) = (0..0, 0);
        for end in 0..self.sorted.len() {
            if self.taken[end] {
                start = end + 1;
                continue;
            }
            while self.sorted[end] - self.sorted[start] > width {
                start += 1;
            }
            if end + 1 - start > best.len() {
                best = start..end + 1;
            }
        }
        (!best.is_empty()).then_some(best)
    }

    /// The window that ends with the sample at `last`.
    fn ending(&self, last: usize, width: f64) -> Range<usize> {
        let mut start = last;
        while start > 0 && !self.taken[start - 1] && self.sorted[last] - self.sorted[start - 1] <= width {
            start -= 1;
        }
        start..last + 1
    }

    /// The window that begins with the sample at `first`.
    fn beginning(&self, first: usize, width: f64) -> Range<usize> {
        let mut end = first + 1;
        let free = |n: usize| n < self.sorted.len() && !self.taken[n];
        while free(end) && self.sorted[end] - self.sorted[first] <= width {
            end += 1;
        }
        first..end
    }

    fn bell(&self, centre: &Range<usize>, rules: &ModeRules) -> Range<usize> {
        let (mut bell, mut window) = (centre.clone(), centre.clone());
        while let Some(next) = self.downhill_left(&window, rules) {
            bell.start = bell.start.min(next.start);
            window = next;
        }
        window = centre.clone();
        while let Some(next) = self.downhill_right(&window, rules) {
            bell.end = bell.end.max(next.end);
            window = next;
        }
        bell
    }

    /// The fullest of the windows that end inside `window` or just below it, unless it is fuller
    /// than a bell allows.
    fn downhill_left(&self, window: &Range<usize>, rules: &ModeRules) -> Option<Range<usize>> {
        let near = |below: &usize| self.sorted[window.start] - self.sorted[*below] <= rules.width;
        let below = window.start.checked_sub(1).filter(|below| !self.taken[*below]).filter(near)?;
        let candidates = (below..window.end - 1).map(|last| self.ending(last, rules.width));
        let next = candidates.max_by_key(ExactSizeIterator::len)?;
        is_downhill(&next, window, rules).then_some(next)
    }

    fn downhill_right(&self, window: &Range<usize>, rules: &ModeRules) -> Option<Range<usize>> {
        let near = |above: &usize| self.sorted[*above] - self.sorted[window.end - 1] <= rules.width;
        let free = |above: &usize| *above < self.sorted.len() && !self.taken[*above];
        let above = Some(window.end).filter(free).filter(near)?;
        let candidates = (window.start + 1..=above).rev().map(|first| self.beginning(first, rules.width));
        let next = candidates.max_by_key(ExactSizeIterator::len)?;
        is_downhill(&next, window, rules).then_some(next)
    }

    fn take(&mut self, range: Range<usize>) {
        self.taken[range].fill(true);
    }
}

fn is_downhill(next: &Range<usize>, window: &Range<usize>, rules: &ModeRules) -> bool {
    (next.len() as f64) < window.len() as f64 * rules.tolerance
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::SplitMix64;
    use crate::truth::{assert_close, normal};

    fn mixture(parts: &[(usize, f64, f64)], seed: u64) -> Vec<f64> {
        let mut rng = SplitMix64::new(seed);
        let mut samples: Vec<f64> = parts
            .iter()
            .flat_map(|(count, mean, sd)| {
                (0..*count).map(|_| mean + sd * normal(&mut rng)).collect::<Vec<_>>()
            })
            .collect();
        samples.sort_unstable_by(f64::total_cmp);
        samples
    }

    #[test]
    fn three_bells_are_three_modes_strongest_first() {
        let samples = mixture(&[(300, 50.0, 1.0), (500, 100.0, 1.0), (200, 75.0, 1.0)], 1);
        let found = modes(&samples, &ModeRules::new(3.0));
        assert!(found.len() >= 3, "{found:?}");
        for (mode, truth) in found.iter().zip([100.0, 50.0, 75.0]) {
            assert_close(mode.middle(), truth, 1.0);
        }
        assert!(found[0].share > 0.4 && found[0].bell.len() >= 480, "{:?}", found[0]);
    }

    #[test]
    fn one_normal_bell_is_one_mode_with_the_kurtosis_of_the_normal() {
        let samples = mixture(&[(4000, 10.0, 1.0)], 2);
        let found = modes(&samples, &ModeRules::new(1.0));
        assert!(found[0].bell.len() > 3500, "{found:?}");
        assert_close(found[0].kurtosis.unwrap(), 3.0, 0.5);
    }

    #[test]
    fn a_sharp_mode_beats_a_broad_one_of_the_same_share() {
        let sharp = mixture(&[(280, 50.0, 0.3), (20, 50.0, 3.0), (900, 100.0, 8.0)], 3);
        let found = modes(&sharp, &ModeRules::new(4.0));
        let merit = |near: f64| {
            found.iter().filter(|m| (m.middle() - near).abs() < 8.0).map(Mode::merit).fold(0.0, f64::max)
        };
        assert!(merit(50.0) > merit(100.0), "{found:?}");
    }

    #[test]
    fn few_samples_are_no_mode_and_none_are_nothing() {
        assert!(modes(&[1.0; 15], &ModeRules::new(1.0)).is_empty());
        assert_eq!(modes(&[1.0; 16], &ModeRules::new(1.0)).len(), 1);
        assert!(modes(&[], &ModeRules::new(1.0)).is_empty() && clusters(&[], 1.0, 9).is_empty());
    }

    proptest! {
        #[test]
        fn clusters_never_overlap_and_never_exceed_the_width(
            mut samples in proptest::collection::vec(0.0..100.0_f64, 0..200), width in 0.0..50.0_f64,
        ) {
            samples.sort_unstable_by(f64::total_cmp);
            let found = clusters(&samples, width, usize::MAX);
            prop_assert_eq!(found.iter().map(ExactSizeIterator::len).sum::<usize>(), samples.len());
            for window in &found {
                prop_assert!(samples[window.end - 1] - samples[window.start] <= width);
            }
            prop_assert!(found.windows(2).all(|pair| pair[0].len() >= pair[1].len()));
        }

        #[test]
        fn bells_share_no_sample(
            mut samples in proptest::collection::vec(0.0..100.0_f64, 0..300), width in 0.1..50.0_f64,
        ) {
            samples.sort_unstable_by(f64::total_cmp);
            let found = modes(&samples, &ModeRules { fewest: 0, ..ModeRules::new(width) });
            let bells: usize = found.iter().map(|mode| mode.bell.len()).sum();
            prop_assert_eq!(bells, samples.len());
        }
    }
}
