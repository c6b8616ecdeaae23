//! How fast trains passed the path at most, whatever their arrivals look like.
//!
//! A host, a network interface or an emulator may hand over many packets at once: their arrivals
//! say nothing of how far apart they came. But the last packet of a train cannot have come before
//! all of the train had passed the path, and the first cannot have come sooner than the least
//! one-way delay after it left. What lies between is what the train took, or more. So this many
//! bits in that time are a rate that the path was seen to carry: a lower bound that holds.
//! **Biased** low by what hosts delay a stamp.

use std::ops::Range;

use crate::{TrainReport, Volley, VolleyReport};

/// The trains so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Transits(Vec<Transit>);

/// What one train took.
#[derive(Debug, Clone, Copy)]
struct Transit {
    /// When its first packet left, by the sender's clock, ns.
    sent: i64,
    /// From then to its last arrival, ns, of two clocks without a common origin.
    took: i64,
    /// Shortest one-way delay of its packets, by the same clocks, ns.
    least: i64,
    /// That came, without the first packet.
    bits: f64,
}

impl Transits {
    pub(super) fn observe(&mut self, asked: &Volley, report: &VolleyReport) {
        for (train, report) in asked.trains.iter().zip(&report.trains) {
            self.0.extend(Transit::of(f64::from(train.length) * 8.0, report));
        }
        let many = self.0.len().saturating_sub(MAX_TRAINS);
        self.0.drain(..many);
    }

    /// bit/s of the fastest train of many packets, or of all if none has many.
    pub(super) fn fastest(&self) -> Option<f64> {
        self.fastest_within(i64::MIN..i64::MAX)
    }

    /// The same of the trains that left before that time, ns by the sender's clock.
    pub(super) fn fastest_before(&self, end: i64) -> Option<f64> {
        self.fastest_within(i64::MIN..end)
    }

    /// The same of those that left then or later.
    pub(super) fn fastest_from(&self, begin: i64) -> Option<f64> {
        self.fastest_within(begin..i64::MAX)
    }

    fn fastest_within(&self, time: Range<i64>) -> Option<f64> {
        let all = || self.0.iter().filter(|it| time.contains(&it.sent));
        let most = all().map(|it| it.bits).fold(0.0, f64::max);
        let long = all().filter(|it| it.bits * 2.0 >= most && it.bits > 0.0);
        long.map(|it| it.bits * 1e9 / (it.took - self.least_around(it)).max(1) as f64).reduce(f64::max)
    }

    /// Shortest delay at about that time: clocks drift apart.
    fn least_around(&self, of: &Transit) -> i64 {
        let around = self.0.iter().filter(|it| (it.sent - of.sent).abs() <= AROUND);
        around.map(|it| it.least).min().unwrap_or(of.least)
    }
}

impl Transit {
    fn of(bits: f64, report: &TrainReport) -> Option<Self> {
        let last = report.arrivals.iter().map(|it| it.at).max()?;
        let first = report.arrivals.iter().map(|it| it.number).min()?;
        let sent = report.sent.get(first as usize).copied().flatten()?;
        let least = super::carried::delays(report).min()?;
        let bits = bits * report.arrivals.len().saturating_sub(1) as f64;
        Some(Self { sent, took: last.saturating_sub(sent), least, bits })
    }
}

/// Trains that are remembered.
const MAX_TRAINS: usize = 512;
/// ns within which two hosts' clocks keep their distance to some 0.1 ms.
const AROUND: i64 = 2_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrival, Gaps, Train};
    use netaware_units::Span;

    /// A train of `packets` that leaves at `sent` µs, a packet each 2 µs, and comes at these, µs.
    fn observe(transits: &mut Transits, sent: i64, came: &[i64]) {
        let packets = came.len() as u32;
        let train = Train { packets, length: 1500, gaps: Gaps::BackToBack, rest: Span::ZERO };
        let sent = (0..).take(came.len()).map(|number: i64| Some((sent + 2 * number) * 1000)).collect();
        let arrivals = (0..).zip(came).map(|(number, at)| Arrival { number, at: at * 1000 }).collect();
        let report = VolleyReport { trains: vec![TrainReport { sent, arrivals }] };
        transits.observe(&Volley { trains: vec![train] }, &report);
    }

    #[test]
    fn packets_that_are_handed_over_at_once_are_no_bound_of_gigabits() {
        // 100 Mbit/s, 10 ms away: a packet takes 120 µs.
        let mut transits = Transits::default();
        observe(&mut transits, 0, &[10_120, 10_240, 10_360]);
        observe(&mut transits, 50_000, &[72_004; 100]);
        let rate = transits.fastest().unwrap();
        assert!(rate < 1.02e8 && rate > 0.9e8, "{rate}");
    }

    #[test]
    fn what_a_path_carried_before_is_told_by_the_trains_of_before() {
        let mut transits = Transits::default();
        let came = |each: i64, from: i64| (0..100).map(|n| from + 10_000 + each * n).collect::<Vec<_>>();
        observe(&mut transits, 0, &came(12, 0));
        observe(&mut transits, 50_000, &came(120, 50_000));
        let rates = [60_000_000, 40_000_000, 0].map(|end| transits.fastest_before(end));
        assert!(rates[0].is_some_and(|rate| (rate / 1e9 - 1.0).abs() < 0.02), "{rates:?}");
        assert!(rates[2].is_none(), "{rates:?}");
        let now = transits.fastest_from(40_000_000).unwrap();
        assert!((now / 1e8 - 1.0).abs() < 0.02, "{now}");
    }

    #[test]
    fn a_train_that_came_as_it_left_has_about_its_rate() {
        let mut transits = Transits::default();
        let came: Vec<i64> = (0..100).map(|number| 10_000 + 12 * number).collect();
        observe(&mut transits, 0, &came);
        let rate = transits.fastest().unwrap();
        assert!((rate / 1e9 - 1.0).abs() < 0.01, "{rate}");
    }
}
