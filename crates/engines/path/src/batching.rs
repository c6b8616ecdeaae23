//! What interrupt coalescing and polling do to arrivals, found and taken out: shared by all
//! methods.
//!
//! ```text
//!  on the wire    | | | | | | | | | | | | | | | | | |
//!  handed over         ||||||      ||||||      ||||||        the first of a batch starts the timer,
//!                      ▲           ▲           ▲             so from first to first is what passed on the wire
//! ```
//!
//! - [`Batching::of`]: is a train handed over in batches, how long is the period, how many packets
//!   has one;
//! - [`Dispersion`]: bytes and time of a train between two arrivals that can be trusted: its ends,
//!   or batch starts;
//! - [`starts`], [`lasts`]: the packets that waited alike, of which rates are, and those that
//!   waited least, whose delays count;
//! - [`smooth`]: gaps of sender and receiver averaged over each batch, for trains whose rate
//!   changes within them;
//! - [`least_duration`]: how long a train must be. Methods plan their trains by it and by a number
//!   of periods; what comes in too few batches all the same is sent again longer, then slower, and
//!   in the end the figure is a bound.
//!
//! Assumes that a card hands over when a timer runs out that the first packet of a batch started,
//! or when so many packets are there. A card with a free-running timer makes the distance of two
//! batch starts wrong by up to one packet's gap.

mod dispersion;
mod duration;
mod smoothing;

use netaware_stats::quantile::median;

use crate::{Arrival, Flag};

pub use dispersion::Dispersion;
pub use duration::least_duration;
pub use smoothing::smooth;

/// How arrivals are handed over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batching {
    /// From the first packet of a batch to that of the next, median, ns.
    pub period: f64,
    /// Packets of one, on average.
    pub batch: f64,
}

impl Batching {
    /// Of a train that was sent back to back; `None` if it was not handed over in batches.
    ///
    /// The rule is Pathload's and Pathrate's: more than 60 % of the gaps are too short to be real.
    /// What is too short they take from the cost of a receiving call; here it is a quarter of the
    /// gap at which half of the train's time is spent, so that nothing need be calibrated. Small
    /// batches under load stay below the 60 %, so a sixth is enough of gaps below a twentieth of
    /// it: no link behind the narrow one makes those unless it is twenty times as fast and full.
    pub fn of(arrivals: &[Arrival]) -> Option<Self> {
        let gaps = arrivals.len().checked_sub(1).filter(|gaps| *gaps >= FEWEST_GAPS)?;
        let typical = typical_gap(arrivals)?;
        let shorter =
            |than: f64| arrivals.windows(2).filter(|pair| gap(pair) <= typical * than).count() as f64;
        if shorter(SHORT) < SHARE * gaps as f64 && shorter(TINY) < SIXTH * gaps as f64 {
            return None;
        }
        let starts = starts(arrivals);
        let distances: Vec<f64> =
            starts.windows(2).map(|pair| (arrivals[pair[1]].at - arrivals[pair[0]].at) as f64).collect();
        let period = median(&distances)?;
        let packets = starts.last()?.checked_sub(*starts.first()?)?;
        (period > 0.0).then(|| Self { period, batch: packets as f64 / distances.len() as f64 })
    }

    /// As a reader is told.
    pub fn flag(&self) -> Flag {
        Flag::Coalescing { period: netaware_units::Span(self.period as i64), batch: self.batch }
    }
}

/// Places in `arrivals` at which a batch begins, but for the first, which may have been cut:
/// whoever came after more than half of the gap at which half of the time is spent. In a train
/// without batches that is nearly everybody.
pub fn starts(arrivals: &[Arrival]) -> Vec<usize> {
    let Some(typical) = typical_gap(arrivals) else { return Vec::new() };
    let begins = |(n, pair): (usize, &[Arrival])| (gap(pair) > typical / 2.0).then_some(n + 1);
    arrivals.windows(2).enumerate().filter_map(begins).collect()
}

/// Places in `arrivals` of the last packet of each batch, the one that has waited least; the
/// train's last batch apart, which more packets could have joined.
pub fn lasts(arrivals: &[Arrival]) -> Vec<usize> {
    starts(arrivals).into_iter().map(|start| start - 1).collect()
}

fn gap(pair: &[Arrival]) -> f64 {
    pair[1].at.saturating_sub(pair[0].at) as f64
}

/// Half of the train's time is spent in gaps that are not shorter: the distance of batches, where
/// there are batches, and of packets, where there are none. Noise of the stamps within a batch does
/// not move it.
fn typical_gap(arrivals: &[Arrival]) -> Option<f64> {
    let mut gaps: Vec<f64> = arrivals.windows(2).map(gap).filter(|gap| *gap > 0.0).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    let half = gaps.iter().sum::<f64>() / 2.0;
    let mut sum = 0.0;
    gaps.into_iter().rev().find(|gap| {
        sum += gap;
        sum >= half
    })
}

/// Share of short gaps from which on a train counts as batched: Pathload 1.3.2.
const SHARE: f64 = 0.6;
/// Of the typical gap: shorter is short.
const SHORT: f64 = 0.25;
/// Of the typical gap: so short is no link.
const TINY: f64 = 0.05;
/// Share of those from which on a train counts as batched.
const SIXTH: f64 = 1.0 / 6.0;
/// A train with fewer says nothing.
const FEWEST_GAPS: usize = 8;

#[cfg(test)]
mod tests;
