//! What a train of packets sent back to back tells: dispersions from its first packet on.

use crate::{Arrival, Flag, TrainReport};

/// A train that came whole and in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Whole<'a> {
    report: &'a TrainReport,
}

impl<'a> Whole<'a> {
    /// `None` where packets were not sent, were lost or came in another order, or where the sender
    /// paused for so long that the path could have run empty in between.
    pub(super) fn of(report: &'a TrainReport) -> Option<Self> {
        let in_order = (0_u32..).zip(&report.arrivals).all(|(n, arrival)| arrival.number == n);
        if !in_order || report.arrivals.len() != report.sent.len() || report.sent.len() < 2 {
            return None;
        }
        let whole = Self { report };
        (report.sent.iter().all(Option::is_some) && !whole.paused()).then_some(whole)
    }

    pub(super) fn arrivals(&self) -> &'a [Arrival] {
        &self.report.arrivals
    }

    /// Time from the first arrival to that of packet `n`, ns.
    pub(super) fn dispersion(&self, n: usize) -> Option<f64> {
        let arrivals = &self.report.arrivals;
        let span = arrivals.get(n)?.at.checked_sub(arrivals.first()?.at)?;
        (span > 0).then_some(span as f64)
    }

    /// Time from the first sending to that of packet `n`, ns.
    pub(super) fn sending(&self, n: usize) -> Option<f64> {
        let sent = |n: usize| self.report.sent.get(n).copied().flatten();
        Some(sent(n)?.checked_sub(sent(0)?)? as f64)
    }

    /// Delays of the first packet and of packet `n` together, of clocks without a common origin.
    pub(super) fn delay_sum(&self, n: usize) -> Option<f64> {
        let delay = |n: usize| -> Option<f64> {
            let sent = self.report.sent.get(n).copied().flatten()?;
            Some(self.report.arrivals.get(n)?.at.checked_sub(sent)? as f64)
        };
        Some(delay(0)? + delay(n)?)
    }

    /// A packet left later behind its forerunner than the whole train's packets came behind each
    /// other.
    fn paused(&self) -> bool {
        let gaps = self.report.sent.len() - 1;
        let came = self.dispersion(gaps).unwrap_or(0.0);
        let longest =
            (1..=gaps).filter_map(|n| Some(self.sending(n)? - self.sending(n - 1)?)).fold(0.0, f64::max);
        let all = self.sending(gaps).unwrap_or(0.0);
        // Half of the sending time in one gap is a pause, but only if it is long enough to be seen
        // in the arrivals.
        gaps > 1 && longest * 2.0 > all && longest * gaps as f64 > came
    }
}

/// Packets sent, and packets that came, of these trains.
pub(super) fn count(trains: &[TrainReport]) -> (u64, u64) {
    let sent = |train: &TrainReport| train.sent.iter().flatten().count() as u64;
    let came = trains.iter().map(|train| train.arrivals.len() as u64).sum();
    (trains.iter().map(sent).sum(), came)
}

/// Packets that came behind later ones.
pub(super) fn overtaken(trains: &[TrainReport]) -> u64 {
    let of = |train: &TrainReport| {
        let mut highest = None;
        let is_behind = |number: u32| {
            let is_behind = highest.is_some_and(|highest| number < highest);
            highest = highest.max(Some(number));
            is_behind
        };
        train.arrivals.iter().map(|arrival| arrival.number).map(is_behind).filter(|it| *it).count() as u64
    };
    trains.iter().map(of).sum()
}

/// That these were more than a few of all that came.
pub(super) fn reordered(overtaken: u64, came: u64) -> Option<Flag> {
    let share = overtaken as f64 / came.max(1) as f64;
    (share > REORDERED).then_some(Flag::Reordered(share))
}

/// Of all that came.
const REORDERED: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_others_overtook_are_counted_and_told_from_one_in_a_hundred_on() {
        let train = |order: &[u32]| TrainReport {
            sent: order.iter().map(|_| Some(0)).collect(),
            arrivals: order.iter().map(|number| Arrival { number: *number, at: 0 }).collect(),
        };
        assert_eq!(overtaken(&[train(&[0, 2, 1, 4, 3]), train(&[0, 1, 2])]), 2);
        assert_eq!((reordered(1, 100), reordered(2, 8)), (None, Some(Flag::Reordered(0.25))));
    }

    fn report(sent: &[i64], came: &[i64]) -> TrainReport {
        let arrivals = (0..).zip(came).map(|(number, at)| Arrival { number, at: *at }).collect();
        TrainReport { sent: sent.iter().copied().map(Some).collect(), arrivals }
    }

    #[test]
    fn a_train_is_whole_if_all_came_in_order_and_none_left_after_a_pause() {
        let is_whole = |sent: &[i64], came: &[i64]| Whole::of(&report(sent, came)).is_some();
        // Half of the time in one gap is no pause, more of it is one if it shows in the arrivals.
        assert!(is_whole(&[0, 500, 1_000], &[0, 600, 999]));
        assert!(is_whole(&[0, 400, 1_000], &[0, 600, 1_200]));
        assert!(!is_whole(&[0, 400, 1_000], &[0, 600, 1_199]));
        assert!(is_whole(&[0, 1_000], &[0, 10]) && !is_whole(&[0], &[0]));
        assert!(!is_whole(&[0, 500, 1_000], &[0, 600]));
        let (mut swapped, mut unsent) = (report(&[0, 5, 10], &[0, 6, 12]), report(&[0, 5, 10], &[0, 6, 12]));
        swapped.arrivals.swap(1, 2);
        unsent.sent[1] = None;
        assert!(Whole::of(&swapped).is_none() && Whole::of(&unsent).is_none());
        assert_eq!(count(&[swapped, unsent, report(&[0, 5, 10], &[])]), (8, 6));
        let same = report(&[10, 30, 60], &[100, 100, 300]);
        let whole = Whole::of(&same).unwrap();
        assert_eq!([0, 1, 2, 3].map(|n| whole.dispersion(n)), [None, None, Some(200.0), None]);
        assert_eq!([0, 1, 2, 3].map(|n| whole.sending(n)), [Some(0.0), Some(20.0), Some(50.0), None]);
        assert_eq!(whole.arrivals(), same.arrivals);
    }

    #[test]
    fn the_delays_of_two_packets_add_up_whatever_the_clocks_begin_at() {
        for offset in [0, -9_000] {
            let arrivals =
                (0..3).map(|number| Arrival { number, at: offset + 100 + i64::from(number) * 1_000 });
            let report =
                TrainReport { sent: vec![Some(0), Some(500), Some(1_000)], arrivals: arrivals.collect() };
            let whole = Whole::of(&report).unwrap();
            // The third one took 1100 ns, by these clocks.
            let sum = whole.delay_sum(2).unwrap();
            assert!((sum - (1_200 + 2 * offset) as f64).abs() < 1e-9, "{offset}: {sum}");
            assert_eq!(whole.delay_sum(3), None);
        }
    }
}
