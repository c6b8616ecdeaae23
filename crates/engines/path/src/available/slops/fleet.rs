//! Streams of one rate, and what they say together.
//!
//! Constants are pathload's: PCT above 0.605 and PDT above 0.44 are a rise, below 0.495 and 0.36
//! none, in between unclear; a fleet rises or not if six of ten usable streams say so, else it is
//! grey. PCT here is over the number of steps, as published, where pathload divides by the number
//! of values; with eight medians its bounds are then 0.69 and 0.57.

use netaware_stats::moments::Moments;
use netaware_stats::trend::{block_medians, pct, pdt};

use super::search::Verdict;
use crate::available::passage::Passage;

/// What one stream says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trend {
    Rising,
    Level,
    /// The tests contradict each other, or neither decides.
    Unclear,
}

/// Counts over the streams of one fleet.
#[derive(Debug, Clone, Default)]
pub(super) struct Fleet {
    streams: u32,
    rising: u32,
    level: u32,
    unclear: u32,
    /// Lost more than a stream may.
    lossy: u32,
    /// Lost so much that the rate is too high whatever the others say.
    broken: u32,
    rates: Vec<f64>,
    stretches: Moments,
}

impl Fleet {
    /// One more stream.
    pub(super) fn saw(&mut self, passage: &Passage) {
        self.streams += 1;
        let lost = passage.lost();
        self.broken += u32::from(lost >= BROKEN);
        self.lossy += u32::from(lost >= LOSSY);
        let usable = passage.len() * 2 >= passage.sent as usize && passage.len() >= FEWEST;
        match passage.dispersion(0.0) {
            Ok(seen) if usable => {
                self.rates.push(seen.rate());
                self.stretches.observe(seen.stretch());
            }
            _ => return,
        }
        match trend(passage) {
            Some(Trend::Rising) => self.rising += 1,
            Some(Trend::Level) => self.level += 1,
            Some(Trend::Unclear) => self.unclear += 1,
            None => {}
        }
    }

    /// Median of the rates as sent, bit/s.
    pub(super) fn rate(&self) -> Option<f64> {
        netaware_stats::quantile::median(&self.rates)
    }

    /// Stretches of the streams.
    pub(super) fn stretches(&self) -> &Moments {
        &self.stretches
    }

    /// Variance of the streams' stretches.
    pub(super) fn scatter(&self) -> Option<f64> {
        self.stretches.variance()
    }

    /// `None` if too few streams could be judged.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        if self.streams == 0 {
            return None;
        }
        // A queue that overflows is a queue that is full.
        if self.broken * 5 > self.streams || self.lossy * 2 >= self.streams {
            return Some(Verdict::Above);
        }
        let usable = self.rising + self.level + self.unclear;
        if usable * 2 < self.streams {
            return None;
        }
        let most = |count: u32| f64::from(count) >= MAJORITY * f64::from(usable);
        Some(if most(self.rising) {
            Verdict::Above
        } else if most(self.level) {
            Verdict::Below
        } else {
            Verdict::Grey
        })
    }
}

/// Of the delays' block medians; where there are few batches, of the delays of their last packets
/// as they are.
fn trend(passage: &Passage) -> Option<Trend> {
    let delays = passage.delays();
    let few = passage.batching().is_some() && delays.len() < MANY_BATCHES;
    let medians = if few { delays } else { block_medians(&delays) };
    if medians.len() < FEWEST_MEDIANS {
        return None;
    }
    let n = medians.len() as f64;
    // Pathload's figures are over the number of values.
    let steps = pct(&medians)? * (n - 1.0) / n;
    let decided = |value: f64, rise: f64, none: f64| match value {
        value if value > rise => Trend::Rising,
        value if value < none => Trend::Level,
        _ => Trend::Unclear,
    };
    let (by_steps, by_difference) = (decided(steps, 0.605, 0.495), decided(pdt(&medians)?, 0.44, 0.36));
    Some(match (by_steps, by_difference) {
        (a, b) if a == b => a,
        (Trend::Unclear, clear) | (clear, Trend::Unclear) => clear,
        _ => Trend::Unclear,
    })
}

/// Share of a stream's packets.
const BROKEN: f64 = 0.15;
/// Share of a stream's packets.
const LOSSY: f64 = 0.03;
/// Share of the usable streams that decides.
const MAJORITY: f64 = 0.6;
/// Packets of a stream that can be judged.
const FEWEST: usize = 24;
/// From so many on, batches make blocks that have medians.
const MANY_BATCHES: usize = 25;
/// Values of a series that can have a trend.
const FEWEST_MEDIANS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrival, Gaps, Train, TrainReport};
    use netaware_units::Span;

    fn stream(growth: i64, lost: u32) -> Passage {
        let train = Train { packets: 64, length: 1500, gaps: Gaps::Even(100_000_000), rest: Span::ZERO };
        let wobble = |number: u32| i64::from((number * 7919) % 13) * 100;
        let arrival = |number: u32| Arrival {
            number,
            at: i64::from(number) * 100_000 + wobble(number) + growth * i64::from(number),
        };
        let sent = (0..64).map(|number| Some(number * 100_000)).collect();
        Passage::of(&train, &TrainReport { sent, arrivals: (0..64 - lost).map(arrival).collect() })
    }

    #[test]
    fn delays_that_grow_are_a_trend_and_noise_is_none() {
        assert_eq!(trend(&stream(500, 0)), Some(Trend::Rising));
        assert_ne!(trend(&stream(0, 0)), Some(Trend::Rising));
    }

    #[test]
    fn six_of_ten_decide() {
        let cases = [
            (1, 6, 4, 0, Some(Verdict::Above)),
            (2, 4, 6, 0, Some(Verdict::Below)),
            (3, 5, 5, 0, Some(Verdict::Grey)),
            (4, 3, 3, 4, Some(Verdict::Grey)),
            (5, 2, 2, 0, None),
        ];
        for (row, rising, level, unclear, verdict) in cases {
            let fleet = Fleet { streams: 10, rising, level, unclear, ..Fleet::default() };
            assert_eq!(fleet.verdict(), verdict, "row {row}");
        }
    }

    #[test]
    fn a_fleet_that_loses_much_is_above() {
        let mut fleet = Fleet::default();
        for _ in 0..10 {
            fleet.saw(&stream(0, 12));
        }
        assert_eq!(fleet.verdict(), Some(Verdict::Above));
        assert_eq!(Fleet::default().verdict(), None);
    }
}
