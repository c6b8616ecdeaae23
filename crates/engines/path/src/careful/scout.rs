//! The first trains on a path of which nothing is known: short, and longer only if what came allows
//! it.

use netaware_units::Span;

use crate::{TrainReport, Volley, VolleyReport};

/// How far it has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Scout {
    /// Trains with a rate.
    seen: u32,
    /// Trains without.
    in_vain: u32,
    /// A longer one lost packets.
    is_lossy: bool,
    /// Packets of that one that a queue seems to have held before it overflowed.
    overflow: Option<u32>,
    /// Two trains that fit that queue have been sent.
    is_tried: bool,
    /// They came whole, though a policer would not have had tokens for the second: bytes.
    fits: Option<f64>,
}

impl Scout {
    /// Packets of the next train; `None` if enough is known. `most` is what the path bears at once.
    pub(super) fn packets(&self, rate: Option<f64>, most: f64) -> Option<u32> {
        if self.is_confirming() {
            return self.overflow;
        }
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

    /// Whether the next two trains are to show that a queue was too short for the one before: the
    /// second follows as soon as that queue is empty, before a policer has tokens for it.
    pub(super) fn is_confirming(&self) -> bool {
        self.overflow.is_some() && !self.is_tried
    }

    /// Bytes of a train that the path's queue holds, where a longer one made it overflow.
    pub(super) fn fits(&self) -> Option<f64> {
        self.fits
    }

    /// The rate at which the train came, bit/s. `beyond` is what its report took beyond the round
    /// trip: packets that come at once, as from a radio link that gathers them, took no less than
    /// that.
    pub(super) fn observe(&mut self, asked: &Volley, report: &VolleyReport, beyond: Span) -> Option<f64> {
        let train = asked.trains.first()?;
        if self.is_confirming() {
            self.is_tried = true;
            let bytes = |packets: u32| f64::from(packets) * f64::from(train.length);
            let is_whole = |it: &TrainReport| it.arrivals.len() == train.packets as usize;
            let are_whole = report.trains.len() >= 2 && report.trains.iter().all(is_whole);
            self.fits = self.overflow.map(bytes).filter(|_| are_whole);
            return None;
        }
        let report = report.trains.first()?;
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
        if !is_whole && self.seen > 0 {
            self.is_lossy = true;
            self.overflow = overflow(report);
        }
        self.seen += 1;
        Some(bits / lasted.secs_f64())
    }
}

/// Packets that a queue held of a train before it overflowed. `None` if the train lost nothing, or
/// lost what did not find a full queue: a policer drops without one, and chance at any fill.
fn overflow(report: &TrainReport) -> Option<u32> {
    let delay = |arrival: &crate::Arrival| {
        let sent = report.sent.get(arrival.number as usize).copied().flatten()?;
        Some(arrival.at.saturating_sub(sent))
    };
    let came = &report.arrivals;
    let (first, last) = (came.first()?, came.last()?);
    // Packets in order without a gap, up to the first that was lost.
    let whole = (0..).zip(came).take_while(|(number, arrival)| arrival.number == *number).count();
    if whole < FEWEST_THAT_FILL || came.len() >= report.sent.iter().flatten().count() {
        return None;
    }
    let delays = came.iter().filter_map(delay);
    let least = delays.clone().min()?;
    let longest = delays.max()?.saturating_sub(least) as f64;
    let before_loss = delay(&came[whole - 1])?.saturating_sub(least) as f64;
    let took = last.at.saturating_sub(first.at) as f64;
    let is_full = before_loss >= NEARLY_FULL * longest && longest >= FILLED * took;
    is_full.then(|| whole.max(FEWEST_THAT_FIT) as u32)
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
/// Packets before the first loss of a train that filled a queue, and of one that is taken to fit.
const FEWEST_THAT_FILL: usize = 4;
const FEWEST_THAT_FIT: usize = 8;
/// Share of the longest wait of a train that the packet before the first loss waited; and of the
/// time in which the train came that its last packets waited in the queue that it filled.
const NEARLY_FULL: f64 = 0.85;
const FILLED: f64 = 0.5;
