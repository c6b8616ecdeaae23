//! The first trains on a path of which nothing is known: short, and longer only if what came allows
//! it.

use netaware_units::Span;

use crate::{Volley, VolleyReport};

/// How far it has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Scout {
    /// Trains with a rate.
    seen: u32,
    /// Trains without.
    in_vain: u32,
    /// A longer one lost packets.
    is_lossy: bool,
}

impl Scout {
    /// Packets of the next train; `None` if enough is known. `most` is what the path bears at once.
    pub(super) fn packets(&self, rate: Option<f64>, most: f64) -> Option<u32> {
        if rate.is_none() {
            return (self.in_vain < MOST_IN_VAIN).then_some(FIRST);
        }
        // A second short one, where no longer one fits: jitter may have drawn the first apart.
        let next = (FIRST << (2 * self.seen.min(4))).min(LONGEST).min(most as u32).max(FIRST);
        let is_enough = match self.seen {
            ..SHORT_TRAINS => false,
            _ => next == FIRST || self.seen >= TRAINS,
        };
        (!is_enough && !self.is_lossy).then_some(next)
    }

    /// The rate at which the train came, bit/s. `beyond` is what its report took beyond the round
    /// trip: packets that come at once, as from a radio link that gathers them, took no less than
    /// that.
    pub(super) fn observe(&mut self, asked: &Volley, report: &VolleyReport, beyond: Span) -> Option<f64> {
        let (train, report) = (asked.trains.first()?, report.trains.first()?);
        let left = report.sent.iter().flatten().count();
        let is_whole = report.arrivals.len() >= left;
        let (first, last) = (report.arrivals.first(), report.arrivals.last());
        let (Some(first), Some(last)) = (first, last.filter(|_| report.arrivals.len() >= 2)) else {
            self.in_vain += 1;
            return None;
        };
        // A bucket's credit may have paid for the first half.
        let from = if report.arrivals.len() >= HALVED { report.arrivals.len() / 2 } else { 0 };
        let first = report.arrivals.get(from).unwrap_or(first);
        let of_all = (report.arrivals.len() - 1) as f64;
        // What came at once with the first of them did not take any time.
        let behind = report.arrivals.iter().skip(from).filter(|it| it.at > first.at).count();
        let gaps = behind.max(1) as f64;
        let bits = f64::from(train.length) * 8.0 * gaps;
        let mut lasted = Span(last.at.saturating_sub(first.at).max(0)).max(SHORTEST);
        if is_whole {
            let share = Span::from_secs_f64(beyond.min(MOST_BEYOND).or_zero().secs_f64() * gaps / of_all);
            lasted = lasted.max(share);
        }
        self.is_lossy |= !is_whole && self.seen > 0;
        self.seen += 1;
        Some(bits / lasted.secs_f64())
    }
}

/// Packets of the first train: two gaps, and room in any queue.
const FIRST: u32 = 3;
/// Packets of a train whose second half has a rate.
const HALVED: usize = 12;
/// Packets of the longest.
const LONGEST: u32 = 48;
/// Trains with a rate, at most.
const TRAINS: u32 = 3;
/// Trains that may be lost.
const MOST_IN_VAIN: u32 = 4;
/// Trains that are sent even if they can be no longer than the first.
const SHORT_TRAINS: u32 = 2;
/// What three packets take at least, as far as anybody knows.
const SHORTEST: Span = Span::from_millis(1);
/// A report that takes longer than this beyond the round trip was late for another reason.
const MOST_BEYOND: Span = Span::from_millis(50);
