//! What a curve answers: the line's figure with its interval, a bound, or what the approach had.

use netaware_stats::interval::Interval;
use netaware_stats::trend::mann_kendall;

use super::{ALIKE, APART, CONFIDENCE, Curve, plan, strain};
use crate::available::approach::{Ceiling, Found};
use crate::available::line::{Fit, Fitter, Sample};
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

    pub(super) fn fitted(&self, fitter: &Fitter, used: &[Sample]) -> Option<Estimate> {
        let (available, capacity) = fitter.intervals(used, CONFIDENCE)?;
        let fit = fitter.fit(used)?;
        let mut rate = self.widened(available, &fit, used);
        let mut flags = Vec::new();
        if Self::is_elastic(used, &fit) {
            flags.push(Flag::Elastic);
        }
        if self.kink().is_none() && is_bent(&self.samples, &fit) {
            flags.push(Flag::Ambiguous);
            // Far trains that a narrow link slowed make the line too steep, and what is available too much.
            rate.lo -= UNSEEN_KINK * rate.estimate;
        }
        let most = capacity.hi.max(self.approach.fastest_arrival);
        rate.estimate = rate.estimate.clamp(0.0, most);
        (rate.lo, rate.hi) =
            (rate.lo.clamp(0.0, rate.estimate), rate.hi.clamp(rate.estimate, most.max(rate.hi)));
        let side = (rate.hi - rate.estimate).max(rate.estimate - rate.lo);
        if side > NOISY * rate.estimate || self.is_bursty(&fit, used) || used.len() < FEWEST_TRAINS {
            flags.push(Flag::Noisy);
        }
        let nothing_left = rate.estimate <= 0.0;
        Some(self.estimate(rate, if nothing_left { Bound::AtMost } else { Bound::None }, flags))
    }

    /// What chance makes of one train's figure, bit/s.
    fn train_chance(&self, fit: &Fit, used: &[Sample]) -> f64 {
        // As steps of the stamps at least, so that nothing is divided by nothing.
        let stamps = self.stamp_error / 1e9 / mean_duration(used);
        (fit.scatter / mean_duration(used).sqrt()).max(stamps) * fit.capacity
    }

    /// Whether traffic moves the figure much from train to train. Through a narrow link there is little room above what is left
    /// of the tight one: trains are strained little, and less of it matters.
    fn is_bursty(&self, fit: &Fit, used: &[Sample]) -> bool {
        let varied = if self.kink().is_some() { VARIED_BEHIND } else { VARIED };
        self.train_chance(fit, used) > varied * fit.available.max(0.0)
    }

    /// By what the jackknife cannot see: stamps that err alike, and a queue that ran empty.
    fn widened(&self, interval: Interval, fit: &Fit, used: &[Sample]) -> Interval {
        let lasted = mean_duration(used);
        let stamps = self.stamp_error / 1e9 / lasted * fit.capacity / (used.len() as f64).sqrt();
        let empty = plan::empty(used, fit) * fit.capacity;
        let floor = FLOOR * interval.estimate.abs() + 2.0 * stamps;
        let estimate = interval.estimate + empty;
        let more = if self.is_bursty(fit, used) { BURSTY * interval.width() / 2.0 } else { 0.0 } + floor;
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

/// Whether there may be a narrow link in front of the tight one, whose kink is not seen well enough to leave the far trains out:
/// trains between the near and the far ones are stretched less than a line through those would have it, or those two may have
/// come alike, for all that their scatter tells, though more arrives than is said to be available.
fn is_bent(samples: &[Sample], fit: &Fit) -> bool {
    let mut by_rate = samples.to_vec();
    by_rate.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let part = by_rate.len() / 6;
    if part < 2 {
        return false;
    }
    let (rest, far) = by_rate.split_at(by_rate.len() - part);
    let (near, middle) = rest.split_at(rest.len() - part);
    let [near, middle, far] = [near, middle, far].map(group);
    let along = (middle.rate - near.rate) / (far.rate - near.rate).max(1.0);
    let below = near.stretch + along * (far.stretch - near.stretch) - middle.stretch;
    let error = middle.error.hypot((1.0 - along) * near.error).hypot(along * far.error);
    let faster = far.rate / middle.rate - 1.0;
    if faster < APART - 1.0 || middle.rate < APART * near.rate {
        return false;
    }
    let came_faster = far.rate / far.stretch / (middle.rate / middle.stretch) - 1.0;
    let scatter = (far.error / far.stretch).hypot(middle.error / middle.stretch);
    let may_be_alike = came_faster < ALIKE * faster + 2.0 * scatter;
    let more_arrives = fit.available < ALL * far.rate / far.stretch;
    below > BENT * error.max(LEAST_BEND) || (may_be_alike && more_arrives)
}

/// Means of some trains, and the standard error of their stretch.
struct Group {
    rate: f64,
    stretch: f64,
    error: f64,
}

fn group(samples: &[Sample]) -> Group {
    let stretches: netaware_stats::moments::Moments = samples.iter().map(|sample| sample.stretch).collect();
    let count = samples.len().max(1) as f64;
    Group {
        rate: samples.iter().map(|sample| sample.rate).sum::<f64>() / count,
        stretch: stretches.mean().unwrap_or(1.0),
        error: stretches.sd().unwrap_or(0.0) / count.sqrt(),
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
const NOISY: f64 = 0.2;
/// Bursts have bursts, which so few trains do not see: the interval grows by this.
const BURSTY: f64 = 0.4;
/// Traffic that moves the figure by more than this from train to train is told as noisy.
const VARIED: f64 = 0.25;
/// The same where the tight link lies behind the narrow one.
const VARIED_BEHIND: f64 = 0.05;
/// Standard errors by which the middle lies below, and the least that a standard error counts as.
const BENT: f64 = 2.5;
const LEAST_BEND: f64 = 0.003;
/// Share of the estimate by which it may be too high if a kink was not seen.
const UNSEEN_KINK: f64 = 0.35;
/// What is available counts as all that arrives from this share on.
const ALL: f64 = 0.93;
/// Share of the cross traffic that must go away.
const ELASTIC: f64 = 0.2;
/// Losses above this share are more than stray.
const LOSS_LIMIT: f64 = 0.02;
