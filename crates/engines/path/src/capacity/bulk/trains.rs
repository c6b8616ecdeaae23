//! Longer trains at several rates, where stamps are too coarse to see single packets: under
//! coalescing, or on fast links.
//!
//! What it measures: the mean distance g of arrivals of trains that left at distance s. On one link
//! g = L/C + (X/C) s for trains faster than what is available, so the height of the line over s = 0
//! gives C (TOPP, DietTopp: Melander, Björkman, Gunningberg 2000; Johnsson, Melander, Björkman
//! 2004). Trains leave back to back, at 2 and 1.25 times, and just at the rate at which the
//! back-to-back ones come.
//!
//! - g is the same for all, and trains at that rate come as they were sent: no load, g is the
//!   narrow link's.
//! - g is the same for all, but trains at that rate come slower: the load is behind the narrow
//!   link, and g is a lower bound.
//! - g grows with s: load at the narrow link or in front of it. The height of the line is the best
//!   guess, and right where there is one loaded link: ambiguous, if the line is straight and not
//!   steep. Otherwise the rate of the back-to-back trains is a lower bound, and that is what the
//!   answer claims.
//!
//! How it is biased: low, and called ambiguous or a lower bound, unless nothing shows any load.

use netaware_stats::interval::Interval;
use netaware_stats::moments::Moments;

use super::super::sample::Whole;
use super::Reading;
use super::growth::{Grown, difference_error};
use crate::batching::{Batching, Dispersion};
use crate::{Gaps, Instrument, VolleyReport};

/// All trains so far.
#[derive(Debug, Clone)]
pub(super) struct Trains {
    length: u32,
    packets: u32,
    batching: Option<Batching>,
    /// ns per packet of the long train in the beginning.
    first_gap: f64,
    /// By rate: distances of sending and of arriving, ns.
    seen: [Vec<(f64, f64)>; RATES.len()],
}

/// How far the reading can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Quiet,
    Line,
    Bound,
}

/// Trains of one rate.
#[derive(Debug, Clone, Copy)]
struct Point {
    sent: f64,
    came: f64,
    /// Standard error of `came`.
    error: f64,
}

impl Trains {
    pub(super) fn new(instrument: &Instrument, grown: &Grown) -> Self {
        let first_gap = f64::from(instrument.largest) * 8e9 / grown.long.rate;
        let of_stamps = STAMPS * difference_error(instrument) / first_gap;
        let batching = grown.long.batching;
        let of_periods = batching.map_or(0.0, |b| (PERIODS * b.period / first_gap).max(PERIODS * b.batch));
        let most = u32::try_from(instrument.largest_burst / u64::from(instrument.largest.max(1)));
        let packets =
            (of_stamps.max(of_periods).min(1e6) as u32).max(30).min(most.unwrap_or(u32::MAX)).max(3);
        Self { length: instrument.largest, packets, batching, first_gap, seen: Default::default() }
    }

    /// As many trains of each rate as fit into a volley of `count`.
    pub(super) fn shapes(&self, count: usize) -> Vec<(u32, Gaps)> {
        let base = self.point(0).map_or(self.first_gap, |point| point.came);
        let shape = |factor: &f64| {
            let gap =
                if *factor > 0.0 { Gaps::Even((base * 1000.0 / factor) as u64) } else { Gaps::BackToBack };
            (self.packets, gap)
        };
        RATES.iter().cycle().take(count).map(shape).collect()
    }

    pub(super) fn pause(&self) -> f64 {
        self.batching.map_or(20_000.0, |batching| 2.0 * batching.period)
    }

    pub(super) fn take(&mut self, report: &VolleyReport) {
        for (train, which) in report.trains.iter().zip((0..RATES.len()).cycle()) {
            let Some(whole) = Whole::of(train) else { continue };
            let last = whole.arrivals().len() - 1;
            let came = Dispersion::of(whole.arrivals(), self.batching.as_ref()).map(|d| d.gap());
            let sent = whole.sending(last).map(|span| span / last as f64);
            self.seen[which].extend(sent.zip(came));
        }
    }

    pub(super) fn reading(&self) -> Option<Reading> {
        let [burst, faster, same] = [self.point(0)?, self.point(2)?, self.point(3)?];
        let twice = self.point(1)?;
        let rise = faster.came / burst.came - 1.0;
        let noise = (faster.error / faster.came).hypot(burst.error / burst.came);
        let behind = same.came / same.sent - 1.0;
        let level = rise <= LEVEL + 2.0 * noise && twice.came / burst.came - 1.0 <= LEVEL + 2.0 * noise;
        let unexpanded = behind <= UNEXPANDED + 2.0 * same.error / same.came;
        let half = 2.0 * burst.error / burst.came + 0.003;
        let is_host = burst.sent > burst.came * 0.97;
        // Where chance could hide as much as a link, nothing has been shown to be absent.
        let clear = 2.0 * noise.max(same.error / same.came) <= CLEAR;
        if level && unexpanded && clear {
            let all = half + rise.abs().min(2.0 * LEVEL);
            return Some(self.said((burst.came, burst.came), all, Trust::Quiet, is_host));
        }
        let slope = (faster.came - burst.came) / (faster.sent - burst.sent);
        let room = burst.sent * 2.2 < burst.came;
        let height = burst.came - slope * burst.sent;
        // A link in front spreads the fastest trains, so that they lie above the line of the
        // others.
        let steep = (faster.came - twice.came) / (faster.sent - twice.sent);
        let of_slow = twice.came - steep * twice.sent;
        // In front of a line that is not bent there may still be a loaded link, but then most of
        // the cross traffic is there.
        let bent = burst.came > (of_slow + steep * burst.sent) * (1.0 + BENT);
        let (slope, height) = if bent { (steep, of_slow) } else { (slope, height) };
        let one_link = !level && room && (0.0..1.0).contains(&slope) && height > burst.came / 2.0;
        let guess = if one_link { height } else { burst.came };
        let trust = if one_link && !bent && slope <= MODEST { Trust::Line } else { Trust::Bound };
        let mut said = self.said((guess, burst.came), half, trust, is_host);
        if trust == Trust::Line {
            // The same slope may be that of several loaded links in a row.
            said.rate.hi *= 1.0 + SEVERAL * slope;
        }
        Some(said)
    }

    /// From distances, the best guess and the one that is certain. Without load both are the same.
    fn said(&self, (guess, certain): (f64, f64), half: f64, trust: Trust, is_host: bool) -> Reading {
        let bits = f64::from(self.length) * 8e9;
        let rate = Interval {
            estimate: bits / guess,
            lo: bits / certain * (1.0 - half).max(0.0),
            hi: bits / guess * (1.0 + 2.0 * half),
            confidence: 0.95,
        };
        let (is_quiet, is_bound) = (trust == Trust::Quiet, trust == Trust::Bound);
        Reading { rate, is_quiet, is_bound, is_host, is_ambiguous: trust == Trust::Line }
    }

    fn point(&self, which: usize) -> Option<Point> {
        let seen = &self.seen[which];
        let came: Moments = seen.iter().map(|(_, came)| *came).collect();
        let sent: Moments = seen.iter().map(|(sent, _)| *sent).collect();
        let error = came.sd()? / (seen.len() as f64).sqrt();
        (seen.len() >= 3).then_some(Point { sent: sent.mean()?, came: came.mean()?, error })
    }
}

/// Times the rate at which back-to-back trains come; zero is back to back.
const RATES: [f64; 4] = [0.0, 2.0, 1.25, 1.0];
/// Differences of less than this are none.
const LEVEL: f64 = 0.01;
/// What chance may make of a difference that is said to be none.
const CLEAR: f64 = 0.04;
/// A load at the narrow link that leaves room for the line to show links in front.
const MODEST: f64 = 0.55;
/// By this, times the load that a line shows, several loaded links may make it low.
const SEVERAL: f64 = 1.5;
/// So far above the line of slower trains lies what a link in front has spread.
const BENT: f64 = 0.015;
/// And so much later may trains come than they were sent.
const UNEXPANDED: f64 = 0.002;
/// A train lasts so many stamp errors: 1 % for one of them.
const STAMPS: f64 = 100.0;
const PERIODS: f64 = 8.0;
