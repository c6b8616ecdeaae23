//! Least squares over (sent rate, stretch): the tight link's capacity and what is free of it.
//!
//! Above the available bandwidth a first-in-first-out link stretches a train of rate R by X/C +
//! R/C, with C its capacity and X the cross traffic: a line of slope 1/C that crosses 1 at A = C -
//! X (TOPP, Melander et al. 2000). **Weights**: cross traffic adds to a train what arrives while
//! the train does, so the variance of a stretch s over t seconds goes with s / t. **Interval**: the
//! jackknife over trains with Student's t, which needs no model of the traffic. It is too narrow
//! for traffic that varies over longer than the measurement.

use netaware_stats::distribution::student_t_two_sided;
use netaware_stats::interval::Interval;

/// One train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// bit/s, as sent.
    pub(crate) rate: f64,
    /// Sent over received rate.
    pub(crate) stretch: f64,
    /// Seconds.
    pub(crate) lasted: f64,
}

impl Sample {
    /// Of a variance: what cross traffic makes of the stretch is the less certain the shorter a
    /// train is and the more it is stretched.
    pub(crate) fn weight(&self) -> f64 {
        self.lasted / self.stretch
    }
}

/// What fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    /// bit/s; infinite where the stretch does not grow with the rate.
    pub(crate) capacity: f64,
    /// bit/s.
    pub(crate) available: f64,
    /// Share of the stretches' variance that the line explains, 0..=1.
    pub(crate) quality: f64,
    /// Standard deviation of a train's stretch about the line, for a train of one second.
    pub(crate) scatter: f64,
}

/// The sums of which a line is made.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    n: f64,
    w: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Sums {
    fn add(&mut self, sample: &Sample, unit: f64, sign: f64) {
        let (x, y, w) = (sample.rate / unit, sample.stretch - 1.0, sample.weight() * sign);
        self.n += sign;
        self.w += w;
        self.x += w * x;
        self.y += w * y;
        self.xx += w * x * x;
        self.xy += w * x * y;
        self.yy += w * y * y;
    }

    /// Slope and intercept of stretch - 1 against rate in units, the slope kept within bounds.
    fn line(&self, slopes: (f64, f64)) -> (f64, f64) {
        let (mx, my) = (self.x / self.w, self.y / self.w);
        let spread = self.xx / self.w - mx * mx;
        let free = if spread > 1e-9 { (self.xy / self.w - mx * my) / spread } else { 0.0 };
        let slope = free.clamp(slopes.0, slopes.1);
        (slope, my - slope * mx)
    }
}

/// Lines through trains, none of which is flatter or steeper than the capacities `between` (bit/s)
/// say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fitter {
    unit: f64,
    slopes: (f64, f64),
}

impl Fitter {
    /// The tight link's capacity lies between these, bit/s.
    pub(crate) fn new(between: (f64, f64)) -> Self {
        let unit = between.0.max(1.0);
        Self { unit, slopes: (unit / between.1.max(unit), 1.0) }
    }

    fn sums(&self, samples: &[Sample]) -> Sums {
        let mut sums = Sums::default();
        for sample in samples {
            sums.add(sample, self.unit, 1.0);
        }
        sums
    }

    /// The line through all of them; `None` for fewer than two.
    pub(crate) fn fit(&self, samples: &[Sample]) -> Option<Fit> {
        let sums = self.sums(samples);
        if samples.len() < 2 || sums.w.is_nan() || sums.w <= 0.0 {
            return None;
        }
        let (slope, intercept) = sums.line(self.slopes);
        let residual = sums.yy - 2.0 * slope * sums.xy - 2.0 * intercept * sums.y
            + slope * slope * sums.xx
            + 2.0 * slope * intercept * sums.x
            + intercept * intercept * sums.w;
        let total = sums.yy - sums.y * sums.y / sums.w;
        Some(Fit {
            capacity: self.unit / slope,
            available: -intercept / slope * self.unit,
            quality: if total > 0.0 { (1.0 - residual / total).clamp(0.0, 1.0) } else { 0.0 },
            scatter: (residual.max(0.0) / (sums.n - 2.0).max(1.0)).sqrt(),
        })
    }

    /// Available bandwidth and tight capacity with their intervals; `None` for fewer than four
    /// trains.
    pub(crate) fn intervals(&self, samples: &[Sample], confidence: f64) -> Option<(Interval, Interval)> {
        let all = self.fit(samples)?;
        let sums = self.sums(samples);
        let n = samples.len() as f64;
        let degrees = (samples.len() as u64).checked_sub(3).filter(|degrees| *degrees > 0)?;
        let without = |sample: &Sample| {
            let mut rest = sums;
            rest.add(sample, self.unit, -1.0);
            let (slope, intercept) = rest.line(self.slopes);
            (-intercept / slope * self.unit, self.unit / slope)
        };
        let left_out: Vec<(f64, f64)> = samples.iter().map(without).collect();
        let t = student_t_two_sided(confidence, degrees)?;
        let interval = |estimate: f64, values: &dyn Fn(&(f64, f64)) -> f64| {
            let mean = left_out.iter().map(values).sum::<f64>() / n;
            let squares: f64 = left_out.iter().map(|pair| (values(pair) - mean).powi(2)).sum();
            let half = t * (squares * (n - 1.0) / n).sqrt();
            Interval { estimate, lo: estimate - half, hi: estimate + half, confidence }
        };
        let available = interval(all.available, &|pair| pair.0);
        Some((available, interval(all.capacity, &|pair| pair.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netaware_stats::rng::SplitMix64;

    fn on_line(capacity: f64, available: f64, noise: f64, seed: u64) -> Vec<Sample> {
        let mut rng = SplitMix64::new(seed);
        let mut one = |step: u32| {
            let strain = 0.06 + 0.02 * f64::from(step % 12);
            // Sum of twelve draws: normal enough, unit variance.
            let error = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
            Sample {
                rate: available + strain * capacity,
                stretch: 1.0 + strain + noise * error,
                lasted: 0.01,
            }
        };
        (0..24).map(&mut one).collect()
    }

    #[test]
    fn the_line_of_a_fluid_link_is_found_exactly() {
        let fitter = Fitter::new((6e7, 1e9));
        let fit = fitter.fit(&on_line(1e8, 3e7, 0.0, 1)).unwrap();
        assert!(
            (fit.capacity / 1e8 - 1.0).abs() < 1e-9 && (fit.available / 3e7 - 1.0).abs() < 1e-9,
            "{fit:?}"
        );
        assert!(fit.quality > 0.999_999 && fit.scatter < 1e-6);
    }

    /// Rates and stretches less one, in units of 100 Mbit/s and one; all of one weight.
    fn of_one_weight(points: &[(f64, f64)]) -> Vec<Sample> {
        let sample = |(x, y): &(f64, f64)| Sample { rate: x * 1e8, stretch: 1.0 + y, lasted: 1.0 + y };
        points.iter().map(sample).collect()
    }

    #[test]
    fn four_trains_have_the_line_and_the_jackknife_of_the_textbooks() {
        let fitter = Fitter::new((1e8, 1e10));
        let four = of_one_weight(&[(1.0, 1.0), (1.0, 2.0), (3.0, 2.0), (3.0, 3.0)]);
        // y = 1 + x / 2, each off by a half; of a variance of 2 half is left.
        let fit = Fit { capacity: 2e8, available: -2e8, quality: 0.5, scatter: 0.5_f64.sqrt() };
        assert_eq!(fitter.fit(&four), Some(fit));
        // Without one of them: available -7, -1/3, -1 and -5, capacity 4, 4/3, 4/3 and 4.
        let t = student_t_two_sided(0.95, 1).unwrap();
        let (available, capacity) = fitter.intervals(&four, 0.95).unwrap();
        for (found, estimate, half) in
            [(available, -2e8, t * 23.0_f64.sqrt() * 1e8), (capacity, 2e8, t * (16.0_f64 / 3.0).sqrt() * 1e8)]
        {
            let pairs =
                [(found.estimate, estimate), (found.lo, estimate - half), (found.hi, estimate + half)];
            assert!(pairs.iter().all(|(a, b)| (a - b).abs() < 1.0), "{found:?}");
        }
        // Two of one rate have no slope of their own, and nothing to be explained.
        let fit = Fit { capacity: 2e8, available: -5e7, quality: 0.0, scatter: 0.0 };
        assert_eq!(Fitter::new((1e8, 2e8)).fit(&of_one_weight(&[(1.5, 1.0); 2])), Some(fit));
        let timeless: Vec<Sample> = four.iter().map(|sample| Sample { lasted: 0.0, ..*sample }).collect();
        assert_eq!(fitter.fit(&timeless), None);
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_claims() {
        let fitter = Fitter::new((6e7, 1e9));
        let holds = |seed: &u64| {
            let (available, _) = fitter.intervals(&on_line(1e8, 3e7, 0.03, *seed), 0.95).unwrap();
            available.contains(3e7)
        };
        let held = (0..1000).filter(holds).count();
        assert!((915..=985).contains(&held), "{held} of 1000");
    }

    #[test]
    fn a_capacity_that_cannot_be_is_not_believed() {
        let flat: Vec<Sample> =
            on_line(1e8, 3e7, 0.0, 1).into_iter().map(|sample| Sample { stretch: 1.1, ..sample }).collect();
        let fit = Fitter::new((6e7, 2e8)).fit(&flat).unwrap();
        assert!((fit.capacity - 2e8).abs() < 1.0, "{fit:?}");
        assert!(Fitter::new((6e7, 2e8)).fit(&flat[..1]).is_none());
        assert!(Fitter::new((6e7, 2e8)).intervals(&flat[..3], 0.95).is_none());
    }
}
