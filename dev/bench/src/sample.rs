//! What several runs of one thing gave.

/// Figures of several runs, in the order run; a failed run is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sample(Vec<(u32, f64)>);

impl Sample {
    pub(crate) fn push(&mut self, round: u32, value: f64) {
        self.0.push((round, value));
    }

    /// `None` when no run gave a figure.
    pub(crate) fn median(&self) -> Option<f64> {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            count if count % 2 == 1 => Some(sorted[middle]),
            _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
        }
    }

    /// Smallest and largest. With five runs a quartile would be no more than a single run, so the
    /// whole range is told.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let sorted = self.sorted();
        Some((*sorted.first()?, *sorted.last()?))
    }

    /// Round by round, `self` over `other`; rounds that one of them lacks do not count, nor those
    /// where `other` is 0.
    pub(crate) fn ratio(&self, other: &Self) -> Self {
        let partner = |round| other.0.iter().find(|(theirs, value)| *theirs == round && *value != 0.0);
        let pairs = self.0.iter().filter_map(|&(round, ours)| Some((round, ours / partner(round)?.1)));
        Self(pairs.collect())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.0.iter().map(|&(_, value)| value).collect();
        values.sort_by(f64::total_cmp);
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample((0..).zip(values.iter().copied()).collect())
    }

    #[test]
    fn median_is_the_middle_or_between_the_two_middles() {
        assert_eq!(sample(&[3.0, 1.0, 2.0]).median(), Some(2.0));
        assert_eq!(sample(&[4.0, 1.0, 2.0, 3.0]).median(), Some(2.5));
        assert_eq!(Sample::default().median(), None);
    }

    #[test]
    fn ratios_pair_the_same_round_only() {
        let (mut ours, mut theirs) = (Sample::default(), Sample::default());
        ours.push(0, 10.0);
        ours.push(2, 30.0);
        theirs.push(1, 1.0);
        theirs.push(2, 15.0);
        assert_eq!(ours.ratio(&theirs), Sample(vec![(2, 2.0)]));
    }
}
