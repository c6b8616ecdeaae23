//! What one long train tells besides its rate: batches, and a rate that falls once a credit is used
//! up.
//!
//! A token bucket lets short bulks through at the rate of the link behind it and everything else at
//! its own. Its mark in a long train is a knee: packets at the distance of the link, then not a
//! single one that near. Load makes distances longer too, but some packets always have no cross
//! traffic between them; under coalescing, where single distances cannot be seen, only a fall to
//! less than half is taken for a knee.

use crate::batching::{Batching, Dispersion};
use crate::{Arrival, TrainReport};

/// Findings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LongTrain {
    pub(super) batching: Option<Batching>,
    /// Of the whole train, bit/s.
    pub(super) rate: f64,
    /// Time from its first arrival to its last, ns.
    pub(super) lasts: f64,
    /// Behind the knee, bit/s, and the packets that this is known from.
    pub(super) sustained: Option<(f64, usize)>,
}

impl LongTrain {
    /// Of packets of `length` bytes; `None` of fewer than two arrivals.
    pub(super) fn of(report: &TrainReport, length: u32) -> Option<Self> {
        let arrivals = &report.arrivals;
        let batching = Batching::of(arrivals);
        let ends = Dispersion::of(arrivals, None)?;
        let whole = Dispersion::of(arrivals, batching.as_ref()).unwrap_or(ends);
        Some(Self { batching, rate: whole.rate(length), lasts: ends.span, sustained: None })
    }

    /// Looks for a knee, knowing the distance (ns) at which packets come that nothing holds up.
    pub(super) fn look_for_knee(&mut self, report: &TrainReport, length: u32, distance: f64) {
        let arrivals = &report.arrivals;
        self.sustained = match self.batching {
            None => knee(arrivals, distance.max(sent_gap(report)), length),
            Some(_) => halves(arrivals, distance, length),
        };
    }
}

/// Mean distance of sending, ns.
fn sent_gap(report: &TrainReport) -> f64 {
    let mut sent = report.sent.iter().flatten();
    let (Some(first), Some(last)) = (sent.next(), sent.next_back()) else { return 0.0 };
    last.saturating_sub(*first) as f64 / (report.sent.len() - 1) as f64
}

/// The rate behind a knee, bit/s, and the packets that it is known from; `distance` is that of
/// packets that nothing holds up, ns.
pub(crate) fn knee(arrivals: &[Arrival], distance: f64, length: u32) -> Option<(f64, usize)> {
    let near = |pair: &[Arrival]| (pair[1].at.saturating_sub(pair[0].at) as f64) < distance * NEAR;
    let last_near = arrivals.windows(2).rposition(near)?;
    let begin = last_near + 2;
    let behind = Dispersion::between(arrivals, begin, arrivals.len().checked_sub(1)?)?;
    let whole = Dispersion::of(arrivals, None)?;
    let lasts = behind.packets >= FEWEST_BEHIND && behind.span > whole.span / 4.0;
    lasts.then(|| (behind.rate(length), behind.packets as usize))
}

fn halves(arrivals: &[Arrival], distance: f64, length: u32) -> Option<(f64, usize)> {
    let end = arrivals.len().checked_sub(1)?;
    let late = Dispersion::between(arrivals, end / 2, end)?;
    let early = Dispersion::between(arrivals, 0, end / 4)?;
    let falls = late.gap() > 2.0 * distance && early.gap() < late.gap() / 2.0;
    (falls && late.packets >= FEWEST_BEHIND * 2).then(|| (late.rate(length), late.packets as usize))
}

/// A packet that comes within this times the shortest distance has been held up by nothing.
const NEAR: f64 = 1.5;
/// Packets behind a knee, which last a quarter of the train: a policer lets few pass.
const FEWEST_BEHIND: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn train(gaps: impl Iterator<Item = i64>) -> TrainReport {
        let mut at = 0;
        let arrivals = (0..).zip(gaps).map(|(number, gap)| {
            at += gap;
            Arrival { number, at }
        });
        let arrivals: Vec<Arrival> = arrivals.collect();
        TrainReport { sent: vec![Some(0); arrivals.len()], arrivals }
    }

    #[test]
    fn behind_a_credit_of_twenty_packets_the_rate_is_that_of_the_bucket() {
        let report = train((0..200).map(|n| if n < 20 { 12_000 } else { 240_000 }));
        let mut long = LongTrain::of(&report, 1500).unwrap();
        long.look_for_knee(&report, 1500, 12_000.0);
        let (rate, packets) = long.sustained.unwrap();
        assert!((rate / 50e6 - 1.0).abs() < 1e-9 && packets > 170, "{rate} {packets}");
    }

    #[test]
    fn behind_a_knee_are_five_packets_that_last_more_than_a_quarter_of_the_train() {
        let of = |gaps: [(usize, i64); 3]| {
            let gaps = gaps.into_iter().flat_map(|(count, gap)| std::iter::repeat_n(gap, count));
            knee(&train(std::iter::once(0).chain(gaps)).arrivals, 100.0, 1500)
        };
        // 12,000 bit in 400 ns. The first gap behind the last near one is of both kinds.
        assert_eq!(of([(6, 100), (0, 0), (6, 400)]), Some((3e10, 5)));
        assert_eq!(of([(6, 100), (0, 0), (5, 400)]), None);
        assert_eq!(of([(55, 100), (0, 0), (6, 400)]), Some((3e10, 5)));
        assert_eq!(of([(56, 100), (0, 0), (6, 400)]), None);
        // Half as much again is not near.
        assert_eq!(of([(6, 100), (1, 150), (6, 400)]), Some((3e10, 6)));
        assert_eq!(of([(6, 100), (1, 149), (6, 400)]), Some((3e10, 5)));
        let report = |sent: &[Option<i64>]| TrainReport { sent: sent.to_vec(), arrivals: Vec::new() };
        assert!((sent_gap(&report(&[Some(100), None, Some(700)])) - 300.0).abs() < 1e-9);
        assert!(sent_gap(&report(&[Some(100)])).abs() < 1e-9);
    }

    #[test]
    fn a_rate_falls_to_less_than_half_and_to_less_than_half_of_what_nothing_holds_up() {
        let of = |early: i64, late: i64, distance: f64| {
            let gaps = (0..41).map(|n| if n <= 20 { early } else { late });
            halves(&train(gaps).arrivals, distance, 1500)
        };
        assert_eq!(of(199, 400, 199.0), Some((3e10, 20)));
        assert_eq!(of(200, 400, 199.0), None);
        assert_eq!(of(199, 400, 200.0), None);
    }

    #[test]
    fn load_is_no_knee() {
        let report = train((0..200).map(|n| if n % 5 == 0 { 12_000 } else { 36_000 }));
        let mut long = LongTrain::of(&report, 1500).unwrap();
        long.look_for_knee(&report, 1500, 12_000.0);
        assert_eq!(long.sustained, None);
    }

    #[test]
    fn a_rate_that_falls_to_less_than_half_is_told_by_ten_packets_and_not_by_nine() {
        let falls = |packets: i64| train((0..packets).map(|n| if n < 10 { 12_000 } else { 240_000 }));
        let (rate, packets) = halves(&falls(20).arrivals, 12_000.0, 1500).unwrap();
        assert!((rate / 50e6 - 1.0).abs() < 1e-9 && packets == 10, "{rate} {packets}");
        assert_eq!(halves(&falls(19).arrivals, 12_000.0, 1500), None);
        assert_eq!(halves(&train((0..40).map(|_| 240_000)).arrivals, 12_000.0, 1500), None);
    }
}
