//! Another path in the middle of a measurement, seen by the delay.
//!
//! A train's **level** is the least difference of its two clocks before it fills a queue. The path
//! has changed if some instant parts the levels into two groups that do not touch, with more
//! between the groups than within either. Clocks that drift apart and queues that come and go do
//! not do that; a clock that is set does. It needs three trains on each side, so a change near the
//! begin or the end is not seen.

use crate::{TrainReport, Volley, VolleyReport};

/// Levels in the order of sending, ns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Levels(Vec<i128>);

impl Levels {
    /// One more train.
    pub(crate) fn saw(&mut self, level: i128) {
        self.0.push(level);
    }

    /// One more train, whose first quarter (one packet at least) has not met its own queue.
    pub(crate) fn saw_train(&mut self, report: &TrainReport) {
        let early = (report.sent.len() / 4).max(1);
        let delay = |arrival: &crate::Arrival| {
            let sent = report.sent.get(arrival.number as usize).copied().flatten()?;
            Some(i128::from(arrival.at) - i128::from(sent))
        };
        let level = report.arrivals.iter().filter(|it| (it.number as usize) < early).filter_map(delay).min();
        self.0.extend(level);
    }

    /// Whether the delay moved by more than queues explain.
    pub(crate) fn changed(&self) -> bool {
        self.changed_by(LEAST_STEP)
    }

    /// The same, and by more than `least`, ns.
    pub(crate) fn changed_by(&self, least: i128) -> bool {
        let behind: Vec<Ends> = ends(self.0.iter().rev()).into_iter().rev().collect();
        let parts = ends(self.0.iter()).into_iter().zip(behind.into_iter().skip(1));
        let count = self.0.len().saturating_sub(1);
        (0..).zip(parts).any(|(at, (a, b))| {
            let between = (b.least - a.most).max(a.least - b.most);
            let within = (a.most - a.least).max(b.most - b.least);
            at + 1 >= APART && at + APART <= count && between > least && between > within
        })
    }
}

/// The same of the trains of each packet length: on a slow link a shorter packet takes less time,
/// and that is not another path.
#[derive(Debug, Clone, Default)]
pub(crate) struct LevelsByLength(Vec<(u32, Levels)>);

impl LevelsByLength {
    /// What became of the trains of a volley.
    pub(crate) fn saw(&mut self, asked: &Volley, report: &VolleyReport) {
        for (train, report) in asked.trains.iter().zip(&report.trains) {
            let known = self.0.iter().position(|(length, _)| *length == train.length);
            let at = known.unwrap_or_else(|| {
                self.0.push((train.length, Levels::default()));
                self.0.len() - 1
            });
            self.0[at].1.saw_train(report);
        }
    }

    /// Whether the delay of packets of any length moved by more than queues explain.
    pub(crate) fn changed(&self) -> bool {
        self.0.iter().any(|(_, levels)| levels.changed())
    }
}

#[derive(Clone, Copy)]
struct Ends {
    least: i128,
    most: i128,
}

/// Of the levels up to each.
fn ends<'a>(levels: impl Iterator<Item = &'a i128>) -> Vec<Ends> {
    let widen = |so_far: &mut Option<Ends>, level: &i128| {
        let old = so_far.unwrap_or(Ends { least: *level, most: *level });
        let new = Ends { least: old.least.min(*level), most: old.most.max(*level) };
        *so_far = Some(new);
        Some(new)
    };
    levels.scan(None, widen).collect()
}

/// Trains on either side of a change.
const APART: usize = 3;
/// A step of less than 20 us is not told from how a host hands packets over, ns.
const LEAST_STEP: i128 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(levels: impl IntoIterator<Item = i128>) -> bool {
        Levels(levels.into_iter().collect()).changed()
    }

    #[test]
    fn a_step_is_another_path() {
        for by in [2_000_000, -2_000_000] {
            assert!(changed((0..20).map(|n| 5_000_000 + n % 3 * 100_000 + if n < 8 { 0 } else { by })));
        }
    }

    #[test]
    fn it_takes_three_trains_on_either_side() {
        let step = |at: i128, of: i128| changed((0..of).map(|n| if n < at { 0 } else { 1_000_000 }));
        assert_eq!([2, 3, 7, 8].map(|at| step(at, 10)), [false, true, true, false]);
        assert!(step(3, 6) && !step(3, 5) && !changed([]) && !changed([1]));
    }

    #[test]
    fn a_step_is_more_than_hosts_and_more_than_queues_make() {
        let step = |by: i128| changed([0, 0, 0, by, by, by]);
        assert_eq!([20_000, 20_001, -20_000, -20_001].map(step), [false, true, false, true]);
        // Within either group the levels differ by 50 us.
        let before = |by: i128| changed([0, 20_000, 50_000, by, by, by]);
        let behind = |by: i128| changed([0, 0, 0, by, by + 20_000, by + 50_000]);
        assert_eq!([100_000, 100_001].map(before), [false, true]);
        assert_eq!([50_000, 50_001].map(behind), [false, true]);
    }

    #[test]
    fn queues_and_drifting_clocks_are_not() {
        assert!(!changed([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9].map(|n| n * 300_000)));
        assert!(!changed((0..30).map(|n| n * 50_000)));
        assert!(!changed([0, 0, 9_000_000]));
    }

    #[test]
    fn a_train_counts_by_what_has_not_met_its_own_queue() {
        let arrival = |number: u32, at: i64| crate::Arrival { number, at };
        let report = TrainReport {
            sent: vec![Some(10), Some(11), Some(12), Some(13)],
            arrivals: vec![arrival(1, 100), arrival(0, 130), arrival(9, 1)],
        };
        let mut levels = Levels::default();
        levels.saw_train(&report);
        levels.saw_train(&TrainReport::default());
        assert_eq!(levels.0, [120]);
    }

    #[test]
    fn a_quarter_of_a_train_has_not_met_its_own_queue() {
        let arrivals = [(0, 130), (1, 125), (2, 90), (3, 80)];
        let report = TrainReport {
            sent: vec![Some(10); 8],
            arrivals: arrivals.map(|(number, at)| crate::Arrival { number, at }).to_vec(),
        };
        let mut levels = Levels::default();
        levels.saw_train(&report);
        assert_eq!(levels.0, [115]);
    }
}
