//! The load search of RFC 9097: which row of the table of rates next.

use netaware_units::Span;

/// How the load is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// Additive: ten rows up at a time until congestion, then one (RFC 9097 Appendix A).
    TypeB,
    /// Multiplicative first, with further fast phases later: finds a fast path in a second.
    TypeC,
}

/// What came of a feedback interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Feedback {
    /// Packets lost or out of order.
    pub(super) errors: u64,
    /// Over the least delay so far.
    pub(super) delay_variation: Span,
}

/// The search as it stands.
#[derive(Debug, Clone)]
pub(super) struct LoadSearch {
    search: Search,
    row: u32,
    top: u32,
    /// Consecutive congested intervals while the search was fast.
    slow: u32,
    /// Type C: good intervals since the last doubling, and since congestion.
    good: u32,
    fast: bool,
    /// Type C: good steps before the next fast phase.
    patience: u32,
}

/// bit/s of a row.
pub(super) fn rate_of(row: u32) -> f64 {
    match row {
        0 => 0.5e6,
        1..=HIGH_SPEED => f64::from(row) * 1e6,
        row if row <= TEN_GIGABIT => 1e9 + f64::from(row - HIGH_SPEED) * 1e8,
        row => 1e10 + f64::from(row - TEN_GIGABIT) * 1e9,
    }
}

/// The last row that the host can send.
pub(super) fn highest_row(fastest: f64) -> u32 {
    (1..=LAST).rev().find(|row| rate_of(*row) <= fastest * 1.001).unwrap_or(0)
}

impl LoadSearch {
    pub(super) fn new(search: Search, top: u32) -> Self {
        Self { search, row: 1.min(top), top, slow: 0, good: 0, fast: true, patience: FIRST_PATIENCE }
    }

    pub(super) fn row(&self) -> u32 {
        self.row
    }

    pub(super) fn is_at_top(&self) -> bool {
        self.row == self.top
    }

    /// Moves, and says whether the path is congested.
    pub(super) fn take(&mut self, feedback: &Feedback) -> bool {
        let congested = feedback.errors > ERRORS || feedback.delay_variation > UPPER;
        let clear = feedback.errors <= ERRORS && feedback.delay_variation < LOWER;
        match self.search {
            Search::TypeB => self.additive(clear, congested),
            Search::TypeC => self.multiplicative(clear, congested),
        }
        congested
    }

    fn additive(&mut self, clear: bool, congested: bool) {
        if clear {
            if self.row < HIGH_SPEED && self.slow < SLOW {
                self.up_to((self.row + FAST_ROWS).min(HIGH_SPEED));
                self.slow = 0;
            } else {
                self.up_to(self.row + 1);
            }
        } else if congested {
            self.slow += 1;
            if self.row < HIGH_SPEED && self.slow == SLOW {
                self.down(FAST_ROWS * BACK_UP);
            } else {
                self.down(1);
            }
        }
    }

    fn multiplicative(&mut self, clear: bool, congested: bool) {
        if congested {
            self.down(if self.fast { self.row / 4 + 1 } else { 1 });
            if self.fast {
                self.fast = false;
            } else {
                self.good = 0;
            }
        } else if clear {
            self.good += 1;
            if self.fast && self.good.is_multiple_of(2) {
                self.up_to(self.row.saturating_mul(2));
            } else if !self.fast {
                self.up_to(self.row + 1);
                self.try_fast_again();
            }
        }
    }

    /// The congestion may have been somebody else's, and over.
    fn try_fast_again(&mut self) {
        if self.good >= self.patience {
            self.fast = true;
            self.good = 0;
            self.patience += FIRST_PATIENCE;
        }
    }

    fn up_to(&mut self, row: u32) {
        self.row = row.min(self.top);
    }

    fn down(&mut self, rows: u32) {
        self.row = self.row.saturating_sub(rows);
    }
}

/// Row of 1 Gbit/s, from which on rows are 100 Mbit/s apart.
const HIGH_SPEED: u32 = 1000;
/// Row of 10 Gbit/s, where the table of the standard ends.
const TEN_GIGABIT: u32 = 1090;
/// Row of 400 Gbit/s.
const LAST: u32 = TEN_GIGABIT + 390;
/// Sequence errors that are none.
const ERRORS: u64 = 10;
/// Delay variation below this is clear.
const LOWER: Span = Span::from_millis(30);
/// Delay variation above this is congestion.
const UPPER: Span = Span::from_millis(90);
/// Rows of a fast step.
const FAST_ROWS: u32 = 10;
/// Congested intervals that end the fast phase.
const SLOW: u32 = 3;
/// Fast steps taken back at its end.
const BACK_UP: u32 = 3;
/// Good steps before the second fast phase; each later one needs so many more.
const FIRST_PATIENCE: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAR: Feedback = Feedback { errors: 0, delay_variation: Span::ZERO };
    const HELD: Feedback = Feedback { errors: 10, delay_variation: Span::from_millis(60) };
    const LOSSY: Feedback = Feedback { errors: 11, delay_variation: Span::ZERO };
    const QUEUED: Feedback = Feedback { errors: 0, delay_variation: Span::from_millis(91) };

    fn rows(search: Search, feedback: &[(Feedback, u32)]) -> Vec<u32> {
        let mut load = LoadSearch::new(search, 1090);
        let row = |(feedback, times): &(Feedback, u32)| {
            for _ in 0..*times {
                load.take(feedback);
            }
            load.row()
        };
        feedback.iter().map(row).collect()
    }

    #[test]
    fn type_b_climbs_by_tens_and_steps_back_thirty_rows_once() {
        let told = [(CLEAR, 9), (HELD, 4), (QUEUED, 2), (LOSSY, 1), (CLEAR, 5), (QUEUED, 1)];
        assert_eq!(rows(Search::TypeB, &told), [91, 91, 89, 59, 64, 63]);
    }

    #[test]
    fn one_bad_interval_does_not_end_the_fast_phase() {
        assert_eq!(rows(Search::TypeB, &[(CLEAR, 2), (LOSSY, 1), (CLEAR, 2)]), [21, 20, 40]);
    }

    #[test]
    fn type_b_goes_on_by_single_rows_above_a_gigabit() {
        assert_eq!(rows(Search::TypeB, &[(CLEAR, 100), (CLEAR, 5), (LOSSY, 3)]), [1000, 1005, 1002]);
    }

    #[test]
    fn type_c_doubles_every_second_interval_and_tries_again() {
        assert_eq!(rows(Search::TypeC, &[(CLEAR, 14), (LOSSY, 1)]), [128, 95]);
        let again = rows(Search::TypeC, &[(CLEAR, 14), (LOSSY, 2), (CLEAR, 5), (CLEAR, 2)]);
        assert_eq!(again, [128, 94, 99, 198]);
    }

    #[test]
    fn rows_are_those_of_the_standard_and_go_on() {
        let rates = [(0, 0.5e6), (1, 1e6), (1000, 1e9), (1001, 1.1e9), (1090, 1e10), (1091, 1.1e10)];
        for (row, rate) in rates {
            assert!((rate_of(row) - rate).abs() < 1.0, "row {row}");
        }
        assert_eq!((highest_row(1e8), highest_row(2.05e9), highest_row(1e3)), (100, 1010, 0));
    }
}
