//! A Kalman filter of two states over strains: BART's, with several rates a round (MR-BART).
//!
//! Above the available bandwidth the strain is a u + b, with a = 1/C and b = -A/C. The state (a, b)
//! walks at random by what is allowed it per round; each strain of a rate above the present
//! estimate corrects it by its own variance. Rates are in units of the capacity seen first, so that
//! the numbers below hold for all links. **Interval**: from the filter's own covariance, widened by
//! what the chirps' own estimates say against it. **Biased** low where steps are short against
//! bursts: strains near the available bandwidth are too large, therefore those below a least strain
//! do not count.

use netaware_stats::distribution::student_t_two_sided;
use netaware_stats::interval::Interval;

/// What one step of the chirps of a volley met.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::struct_field_names, reason = "it is what the literature calls it")]
pub(super) struct Strain {
    /// bit/s.
    pub(super) rate: f64,
    /// Received over sent time, less one.
    pub(super) strain: f64,
    /// Of the strain.
    pub(super) variance: f64,
}

/// The filter.
#[derive(Debug, Clone)]
pub(super) struct Tracker {
    unit: f64,
    a: f64,
    b: f64,
    /// Covariances: of a, of a and b, of b.
    p: [f64; 3],
    rounds: u32,
    /// Mean of the chirps' own estimates, exponentially forgotten, bit/s.
    chirps: Option<f64>,
}

impl Tracker {
    /// Begins at `available` of a link of `capacity`, bit/s, and believes neither.
    pub(super) fn new(available: f64, capacity: f64) -> Self {
        let unit = capacity.max(1.0);
        Self { unit, a: 0.9, b: -0.9 * available / unit, p: [0.05, -0.03, 0.3], rounds: 0, chirps: None }
    }

    /// bit/s.
    pub(super) fn available(&self) -> f64 {
        (-self.b / self.a * self.unit).max(0.0)
    }

    /// Capacity of the tight link over the fastest rate at which anything arrived: far above one
    /// behind a narrow link.
    pub(super) fn tightness(&self) -> f64 {
        1.0 / self.a
    }

    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// What the chirps of a volley say by themselves, bit/s.
    pub(super) fn aimed(&mut self, mean: f64) {
        self.chirps = Some(self.chirps.map_or(mean, |old| old + FORGET * (mean - old)));
    }

    /// One volley.
    pub(super) fn take(&mut self, strains: &[Strain]) {
        self.p[0] += WALK_A;
        self.p[2] += WALK_B;
        self.rounds += 1;
        let pooled = strains.iter().map(|strain| strain.variance * strain.weight()).sum::<f64>()
            / strains.len().max(1) as f64;
        let mut strained: Vec<&Strain> = strains.iter().filter(|strain| self.counts(strain)).collect();
        // The highest first: they are the surest to be above.
        strained.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        for strain in strained {
            // Few chirps do not know their own variance; that of all steps, by their lengths, does.
            let variance = (pooled / strain.weight()).max(strain.variance / 4.0);
            self.correct(strain.rate / self.unit, strain.strain, variance.max(LEAST_VARIANCE));
        }
        self.a = self.a.clamp(0.05, 1.2);
        self.b = self.b.min(0.0);
    }

    fn counts(&self, strain: &Strain) -> bool {
        let expected = self.a * strain.rate / self.unit + self.b;
        expected > LEAST_STRAIN && strain.strain.is_finite()
    }

    fn correct(&mut self, u: f64, strain: f64, variance: f64) {
        let [paa, pab, pbb] = self.p;
        let (ha, hb) = (paa * u + pab, pab * u + pbb);
        let s = ha * u + hb + variance;
        let (ka, kb) = (ha / s, hb / s);
        let error = strain - self.a * u - self.b;
        self.a += ka * error;
        self.b += kb * error;
        self.p = [paa - ka * ha, pab - ka * hb, pbb - kb * hb];
    }

    /// bit/s; `None` before the first volley.
    pub(super) fn interval(&self, confidence: f64) -> Option<Interval> {
        if self.rounds == 0 {
            return None;
        }
        let x = -self.b / self.a;
        let [paa, pab, pbb] = self.p;
        let variance = (pbb + 2.0 * x * pab + x * x * paa).max(0.0) / (self.a * self.a);
        let t = student_t_two_sided(confidence, u64::from(self.rounds.max(2)))?;
        let half = t * variance.sqrt() * self.unit;
        let estimate = self.available();
        // Bursts strain steps near A too, so the truth is above; behind a narrow link steps come
        // late to a queue, so it is below.
        let burst = BURST * (self.unit - estimate).max(0.0);
        let hidden = if self.tightness() > APART { HIDDEN * estimate } else { 0.0 };
        let floor = FLOOR * estimate;
        let own = self.chirps.unwrap_or(estimate);
        let interval = Interval {
            estimate,
            lo: estimate - half - floor - hidden,
            hi: estimate + half + floor + burst,
            confidence,
        };
        let wide = interval.widened_to(own, own);
        Some(Interval { lo: wide.lo.max(0.0), ..wide })
    }
}

impl Strain {
    /// A step of low rate lasts longer, so its strain varies less.
    fn weight(&self) -> f64 {
        1.0 / self.rate.max(1.0)
    }
}

/// Variance by which 1/C may move in a round: a path's capacity hardly does.
const WALK_A: f64 = 1e-5;
/// Variance by which -A/C may move in a round: 2 % of the capacity.
const WALK_B: f64 = 4e-4;
/// Strains expected below this do not count.
const LEAST_STRAIN: f64 = 0.04;
/// Of a strain: no stamps are better.
const LEAST_VARIANCE: f64 = 1e-5;
/// Weight of the newest volley among the chirps' own estimates.
const FORGET: f64 = 0.2;
/// A tight link so much faster than what arrives stands behind a narrow one.
pub(super) const APART: f64 = 1.6;
/// Of the estimate, what a narrow link in front may make it too high by.
const HIDDEN: f64 = 0.2;
/// Of what others seem to use, what bursts may make of it.
const BURST: f64 = 0.25;
/// What no filter sees, as a share of the estimate.
const FLOOR: f64 = 0.08;

#[cfg(test)]
mod tests {
    use super::*;

    fn volley(available: f64, capacity: f64, centre: f64) -> Vec<Strain> {
        let strain = |step: u32| {
            let rate = centre * (0.5 + 0.1 * f64::from(step));
            Strain { rate, strain: ((rate - available) / capacity).max(0.0), variance: 1e-4 }
        };
        (0..12).map(strain).collect()
    }

    #[test]
    fn it_finds_a_fluid_link_from_a_wrong_beginning() {
        for begin in [20e6, 50e6, 80e6] {
            let mut tracker = Tracker::new(begin, 90e6);
            for _ in 0..30 {
                tracker.take(&volley(40e6, 100e6, tracker.available().max(10e6)));
            }
            assert!((tracker.available() / 40e6 - 1.0).abs() < 0.03, "{begin}: {tracker:?}");
        }
    }

    #[test]
    fn a_strain_corrects_by_the_variance_of_all_in_proportion_to_its_rate() {
        let mut tracker = Tracker::new(40e6, 100e6);
        let strain = |rate: f64, strain: f64| Strain { rate, strain, variance: 0.1 };
        // The first is expected to be 0.36 and is more; the second is no strain, but has a
        // variance.
        tracker.take(&[strain(80e6, 0.46), strain(10e6, 0.0)]);
        // 0.1 / 80 and 0.1 / 10 are 0.45 / 80 on average.
        let (ha, hb) = (0.050_01 * 0.8 - 0.03, -0.03 * 0.8 + 0.300_4);
        let s = ha * 0.8 + hb + 0.45;
        let near = |found: f64, want: f64| (found - want).abs() < 1e-9;
        assert!(near(tracker.a, 0.9 + ha / s * 0.1) && near(tracker.b, -0.36 + hb / s * 0.1), "{tracker:?}");
        let p = [0.050_01 - ha * ha / s, -0.03 - ha * hb / s, 0.300_4 - hb * hb / s];
        assert!(tracker.p.iter().zip(p).all(|(found, want)| near(*found, want)), "{tracker:?}");
        assert_eq!((tracker.rounds(), tracker.chirps), (1, None));
    }

    #[test]
    fn it_follows_a_jump() {
        let mut tracker = Tracker::new(40e6, 100e6);
        for round in 0..60 {
            let truth = if round < 30 { 40e6 } else { 70e6 };
            tracker.take(&volley(truth, 100e6, tracker.available().max(10e6)));
        }
        assert!((tracker.available() / 70e6 - 1.0).abs() < 0.05, "{tracker:?}");
        assert!(tracker.interval(0.95).unwrap().contains(70e6));
    }

    #[test]
    fn before_the_first_volley_it_knows_nothing() {
        assert_eq!(Tracker::new(1e6, 1e7).interval(0.95), None);
    }
}
