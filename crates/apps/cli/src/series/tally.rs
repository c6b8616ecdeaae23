//! What became of the points of a series.

use netaware_record::{Conclusion, Record};

use crate::exit::Exit;

/// Counts, and the first few of what went wrong.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Complete before this run.
    pub(super) before: u64,
    pub(super) measured: u64,
    failed: Positions,
    gaps: Positions,
    /// Points that missed a threshold.
    missed: Positions,
}

/// Positions in the plan, counted from one as people count; the first few by number.
#[derive(Debug, Default)]
struct Positions {
    count: u64,
    first: Vec<u64>,
}

/// More would not be read.
const NAMED: usize = 20;

impl Positions {
    fn add(&mut self, index: u64) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(index + 1);
        }
    }

    /// "failed points: 3 (4, 5, 9)".
    fn line(&self, what: &str) -> Option<String> {
        let named: Vec<String> = self.first.iter().map(u64::to_string).collect();
        let more = self.count - self.first.len() as u64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (self.count > 0).then(|| format!("{what}: {} ({}{more})", self.count, named.join(", ")))
    }
}

impl Tally {
    /// So many points were complete before this run.
    pub(super) fn after(before: u64) -> Self {
        Self { before, ..Self::default() }
    }

    /// A point was tried.
    pub(super) fn point(&mut self, index: u64, record: &Record) {
        if is_failed(record) {
            self.failed.add(index);
        } else {
            self.measured += 1;
        }
        if record.expectations.iter().any(|expectation| !expectation.held) {
            self.missed.add(index);
        }
    }

    /// A point could not even be tried.
    pub(super) fn refused(&mut self, index: u64) {
        self.failed.add(index);
    }

    /// Its time passed.
    pub(super) fn gap(&mut self, index: u64) {
        self.gaps.add(index);
    }

    /// One line each for what went wrong.
    pub(super) fn lines(&self) -> Vec<String> {
        [
            self.failed.line("failed points"),
            self.gaps.line("gaps, points whose time passed"),
            self.missed.line("points that missed a threshold"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// 0 if any point was measured, in this run or before.
    pub(super) fn exit(&self) -> Exit {
        if self.measured + self.before == 0 {
            Exit::NotMeasured
        } else if self.missed.count > 0 {
            Exit::ThresholdFailed
        } else {
            Exit::Done
        }
    }
}

/// No IP version yielded anything, though nobody ended it.
pub(super) fn is_failed(record: &Record) -> bool {
    record.conclusion() == Conclusion::Failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixture;

    #[test]
    fn a_series_has_measured_if_any_point_has() {
        let mut tally = Tally::default();
        assert_eq!(tally.exit(), Exit::NotMeasured);
        let mut nothing = fixture::nothing();
        nothing.expectations.clear();
        tally.point(0, &nothing);
        assert_eq!(tally.exit(), Exit::NotMeasured);
        tally.point(1, &fixture::udp());
        assert_eq!((tally.exit(), tally.measured), (Exit::Done, 1));
        tally.point(2, &fixture::half());
        assert_eq!(tally.exit(), Exit::ThresholdFailed);
        assert_eq!(Tally::after(3).exit(), Exit::Done);
    }

    #[test]
    fn what_went_wrong_is_one_line_however_much_it_is() {
        let mut tally = Tally::default();
        (0..1000).for_each(|index| tally.gap(index));
        tally.refused(6);
        let lines = tally.lines();
        assert_eq!(lines[0], "failed points: 1 (7)");
        assert!(lines[1].starts_with("gaps, points whose time passed: 1000 (1, 2, 3"));
        assert!(lines[1].ends_with("19, 20 and 980 more)"), "{}", lines[1]);
    }
}
