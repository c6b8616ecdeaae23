//! What a curve answers: the line's figure with its interval, a bound, or what the approach had.

use netaware_stats::interval::Interval;
use netaware_stats::trend::mann_kendall;

use super::narrow::Reading;
use super::{CONFIDENCE, Curve, plan, strain};
use crate::available::approach::{Ceiling, Found};
use crate::available::line::{Fit, Sample};
use crate::{Bound, Estimate, Flag};

impl Curve {
    pub(super) fn estimate(&self, rate: Interval, bound: Bound, mut flags: Vec<Flag>) -> Estimate {
        flags.extend(self.health.flags(LOSS_LIMIT));
        if self.was_cut_short() {
            flags.push(Flag::CutShort);
        }
        Estimate {
            rate,
            bound,
            method: "curve",
            bytes: self.budget.bytes,
            packets: self.budget.packets,
            took: self.budget.took(),
            flags,
        }
    }

    pub(super) fn at_least(&self, rate: f64, why: Ceiling) -> Estimate {
        let interval = Interval { estimate: rate, lo: rate * 0.97, hi: rate, confidence: CONFIDENCE };
        let flags = if why == Ceiling::Sender { vec![Flag::HostLimited] } else { Vec::new() };
        self.estimate(interval, Bound::AtLeast, flags)
    }

    /// Only the approach is there, or too little beside it.
    pub(super) fn rough(&self) -> Option<Estimate> {
        match self.approach.so_far()? {
            Found::Near { available, .. } => {
                let (lo, hi) = (available * 0.5, available * 1.5);
                let rate = Interval { estimate: available, lo, hi, confidence: CONFIDENCE };
                let flags =
                    if self.was_cut_short() { vec![Flag::Noisy] } else { vec![Flag::Noisy, Flag::CutShort] };
                Some(self.estimate(rate, Bound::None, flags))
            }
            Found::AtLeast { rate, why } => Some(self.at_least(rate, why)),
            Found::Nothing => None,
        }
    }

    pub(super) fn fitted(&self, reading: &Reading) -> Option<Estimate> {
        let (available, capacity) = reading.fitter.intervals(&reading.used, CONFIDENCE)?;
        let mut rate = self.widened(available, reading);
        let mut flags = Vec::new();
        if Self::is_elastic(&reading.used, &reading.fit) {
            flags.push(Flag::Elastic);
        }
        let (lo, hi) = reading.range;
        if hi - lo > UNTOLD * rate.estimate || self.hides_traffic(reading) {
            flags.push(Flag::Ambiguous);
        }
        (rate.lo, rate.hi) = (rate.lo.min(lo), rate.hi.max(hi));
        let most = capacity.hi.max(self.approach.fastest_arrival);
        rate.estimate = rate.estimate.max(0.0).min(most);
        (rate.lo, rate.hi) = (rate.lo.max(0.0).min(rate.estimate), rate.hi.max(rate.estimate));
        let side = (rate.hi - rate.estimate).max(rate.estimate - rate.lo);
        let is_few = reading.used.len() < FEWEST_TRAINS;
        if side > NOISY * rate.estimate || self.is_bursty(reading) || is_few {
            flags.push(Flag::Noisy);
        }
        let nothing_left = rate.estimate <= 0.0;
        Some(self.estimate(rate, if nothing_left { Bound::AtMost } else { Bound::None }, flags))
    }

    /// What chance makes of one train's figure, bit/s.
    pub(super) fn train_chance(&self, Reading { used, fit, .. }: &Reading) -> f64 {
        // As steps of the stamps at least, so that nothing is divided by nothing.
        let stamps = self.stamp_error / 1e9 / mean_duration(used);
        (fit.scatter / mean_duration(used).sqrt()).max(stamps) * fit.capacity
    }

    /// Whether trains vary by more than the little traffic that the line leaves room for could make
    /// them: then all of them were faster than a narrow link, and what is behind it looks like an
    /// idle path.
    pub(super) fn hides_traffic(&self, Reading { used, fit, .. }: &Reading) -> bool {
        let lasted = mean_duration(used);
        let of_stamps = 2.0 * (self.stamp_error / 1e9).powi(2) / lasted;
        let packet = self.sender.bits() / fit.capacity;
        let load = (1.0 - fit.available / fit.capacity).max(LEAST_LOAD);
        fit.scatter * fit.scatter > of_stamps + GRAIN * load * packet
    }

    /// Whether traffic moves the figure much for all the trains that there are.
    fn is_bursty(&self, reading: &Reading) -> bool {
        let chance = self.train_chance(reading) / (reading.used.len() as f64).sqrt();
        chance > VARIED * reading.fit.available.max(0.0)
    }

    /// By what the jackknife cannot see: stamps that err alike, a queue that ran empty, and cross
    /// traffic that is no fluid.
    fn widened(&self, interval: Interval, reading: &Reading) -> Interval {
        let Reading { used, fit, .. } = reading;
        let lasted = mean_duration(used);
        let stamps = self.stamp_error / 1e9 / lasted * fit.capacity / (used.len() as f64).sqrt();
        let empty = plan::empty(used, fit) * fit.capacity;
        let cross = (fit.capacity - fit.available).max(0.0);
        let floor = FLOOR * interval.estimate.abs() + GRAINS * cross + 2.0 * stamps;
        let estimate = interval.estimate + empty;
        let more = if self.is_bursty(reading) { BURSTY * interval.width() / 2.0 } else { 0.0 } + floor;
        Interval { estimate, lo: interval.lo - more, hi: interval.hi + more + 2.0 * empty, ..interval }
    }

    /// Cross traffic shrank while the probes went on.
    fn is_elastic(used: &[Sample], fit: &Fit) -> bool {
        let rest: Vec<f64> = used.iter().map(|sample| sample.stretch - 1.0 - strain(sample, fit)).collect();
        let third = (rest.len() / 3).max(1);
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
        let fell = mean(rest.get(..third).unwrap_or_default())
            - mean(rest.get(rest.len() - third..).unwrap_or_default());
        let cross = 1.0 - fit.available / fit.capacity;
        fell > ELASTIC * cross && mann_kendall(&rest).is_some_and(|trend| trend.z < -3.0)
    }
}

/// Seconds.
fn mean_duration(used: &[Sample]) -> f64 {
    used.iter().map(|sample| sample.lasted).sum::<f64>() / used.len().max(1) as f64
}

/// A regression over fewer is told as noisy.
const FEWEST_TRAINS: usize = 8;
/// Of interval widths that a fluid path would have.
const FLOOR: f64 = 0.015;
/// An interval of more than this to each side is told as noisy.
const NOISY: f64 = 0.05;
/// Bursts have bursts, which so few trains do not see: the interval grows by this.
const BURSTY: f64 = 0.4;
/// Traffic that moves the figure of all trains by more than this is told as noisy.
const VARIED: f64 = 0.05;
/// Of the cross traffic, what an interval has on top.
const GRAINS: f64 = 0.01;
/// Variance of the work that comes in a second, over that of Poisson traffic with packets as long
/// as the probes, that smooth traffic of a light load may have; and the load that counts at least.
const GRAIN: f64 = 1.6;
const LEAST_LOAD: f64 = 0.02;
/// Figures that a narrow link may make so different are told as ambiguous.
const UNTOLD: f64 = 0.15;
/// Share of the cross traffic that must go away.
const ELASTIC: f64 = 0.2;
/// Losses above this share are more than stray.
const LOSS_LIMIT: f64 = 0.02;
