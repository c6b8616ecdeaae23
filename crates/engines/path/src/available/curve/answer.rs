//! What a curve answers: the line's figure with its interval, a bound, or what the approach had.

use netaware_stats::interval::Interval;
use netaware_stats::trend::mann_kendall;

use super::narrow::Reading;
use super::{CONFIDENCE, Curve, State, plan, strain};
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
                // Where time was left, the trains behind the approach said nothing.
                let is_over = matches!(self.state, State::Done(_));
                let why = if is_over { Flag::Unreadable } else { Flag::CutShort };
                let flags = if self.was_cut_short() { vec![Flag::Noisy] } else { vec![Flag::Noisy, why] };
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
            - mean(rest.get(rest.len().saturating_sub(third)..).unwrap_or_default());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::available::fifo::instrument;
    use crate::available::line::Fitter;

    /// 40 Mbit/s are available of 100.
    const FIT: Fit = Fit { capacity: 1e8, available: 4e7, quality: 1.0, scatter: 0.0 };

    fn sample(stretch: f64) -> Sample {
        Sample { rate: 6e7, stretch, lasted: 0.04 }
    }

    /// A reading of four trains of 40 ms each, with this line.
    fn reading(fit: Fit) -> Reading {
        let fitter = Fitter::new((1e8, 1e9));
        Reading { narrow: f64::INFINITY, used: vec![sample(1.2); 4], fitter, fit, range: (0.0, 0.0) }
    }

    /// The estimator with stamps that make the ends of a train wrong by so much, ns.
    fn curve(stamp_error: f64) -> Curve {
        Curve { stamp_error, ..Curve::new(&instrument(1e8)) }
    }

    #[test]
    fn traffic_is_elastic_if_a_fifth_of_it_went_away_for_certain() {
        // The line has a stretch of 1.2; what is above it shrinks by the same from train to train.
        let is_elastic = |(trains, step): (u32, f64)| {
            let used: Vec<Sample> =
                (0..trains).map(|number| sample(1.5 - step * f64::from(number))).collect();
            Curve::is_elastic(&used, &FIT)
        };
        // Others have 0.6 of the link, of which a fifth is 0.12. Thirds of twelve trains are eight
        // steps apart. Six trains that fall all the time are 2.63 standard errors, seven are 3.004.
        let rows = [(12, 0.016), (12, 0.014), (12, -0.016), (6, 0.1), (7, 0.1)];
        assert_eq!(rows.map(is_elastic), [true, false, false, false, true]);
    }

    #[test]
    fn trains_last_their_mean_and_none_of_them_no_time() {
        let lasted = |lasted: f64| Sample { lasted, ..sample(1.2) };
        assert!((mean_duration(&[lasted(0.02), lasted(0.07)]) - 0.045).abs() < 1e-12);
        assert!(mean_duration(&[]).abs() < 1e-12);
    }

    #[test]
    fn traffic_is_hidden_if_trains_vary_by_more_than_stamps_and_a_light_load_make_them() {
        let hides = |(stamp_error, available, scatter): (f64, f64, f64)| {
            curve(stamp_error).hides_traffic(&reading(Fit { available, scatter, ..FIT }))
        };
        // A packet takes 0.12 ms of the link. For a load of 0.6, 1.6 times that is 0.0001152 s,
        // whose root is 0.01073.
        let loaded = [(1e3, 4e7, 0.0107), (1e3, 4e7, 0.0108)];
        assert_eq!(loaded.map(hides), [false, true]);
        // No load counts as one of 0.02: the root of 0.00000384 is 0.00196.
        let idle = [(1e3, 1e8, 0.00195), (1e3, 1e8, 0.00197)];
        assert_eq!(idle.map(hides), [false, true]);
        // Stamps that err by 1 ms add twice the square of that over 40 ms, which is 0.00005 s.
        let coarse = [(1e6, 1e8, 0.0073), (1e6, 1e8, 0.0074)];
        assert_eq!(coarse.map(hides), [false, true]);
    }

    #[test]
    fn chance_makes_of_one_train_what_its_length_leaves_of_the_scatter_or_what_stamps_make() {
        let chance = |stamp_error: f64, scatter: f64| {
            curve(stamp_error).train_chance(&reading(Fit { scatter, ..FIT }))
        };
        // 0.02 over the root of 40 ms is a tenth of the capacity; 1 ms of 40 is a fortieth.
        for (found, want) in [(chance(0.0, 0.02), 1e7), (chance(1e6, 0.0), 2.5e6), (chance(1e6, 0.02), 1e7)] {
            assert!((found - want).abs() < 1.0, "{found} for {want}");
        }
    }

    #[test]
    fn trains_are_bursty_if_chance_moves_the_figure_of_all_by_a_twentieth() {
        // Of four trains it is half of what it is of one: 0.008 makes 2 of 40 Mbit/s.
        let is_bursty = |scatter: f64| curve(0.0).is_bursty(&reading(Fit { scatter, ..FIT }));
        assert_eq!([0.0079, 0.0081].map(is_bursty), [false, true]);
    }

    #[test]
    fn a_host_that_cannot_send_faster_is_told_and_a_receiver_is_not() {
        for (why, flags) in [(Ceiling::Sender, vec![Flag::HostLimited]), (Ceiling::Receiver, Vec::new())] {
            let told = curve(0.0).at_least(1e8, why);
            let ends = [(told.rate.estimate, 1e8), (told.rate.lo, 0.97e8), (told.rate.hi, 1e8)];
            assert!(ends.iter().all(|(found, want)| (found - want).abs() < 1.0), "{told:?}");
            assert_eq!((told.bound, told.flags), (Bound::AtLeast, flags));
        }
    }
}
