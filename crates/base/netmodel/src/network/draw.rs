//! Draws from the distributions of the model.

use netaware_stats::rng::SplitMix64;

/// A generator for one part of the network, unrelated to those of the others.
pub(crate) fn generator(seed: u64, part: &[u64]) -> SplitMix64 {
    let mix =
        |state, value: &u64| SplitMix64::new(state ^ value.wrapping_mul(0xd6e8_feb8_6659_fd93)).next_u64();
    SplitMix64::new(part.iter().fold(SplitMix64::new(seed).next_u64(), mix))
}

/// Whether something of this probability happens. Draws nothing for zero.
#[inline]
pub(crate) fn happens(rng: &mut SplitMix64, probability: f64) -> bool {
    probability > 0.0 && rng.unit() < probability
}

/// Between zero (excluded) and one (included).
#[inline]
fn positive_unit(rng: &mut SplitMix64) -> f64 {
    1.0 - rng.unit()
}

/// Mean one; the smallest value is (alpha - 1) / alpha.
#[inline]
pub(crate) fn pareto(rng: &mut SplitMix64, alpha: f64) -> f64 {
    // Its logarithm is exponential.
    (alpha - 1.0) / alpha * (rng.exponential() / alpha).exp()
}

/// Pareto moved to start at zero (Lomax); mean one.
#[inline]
pub(crate) fn lomax(rng: &mut SplitMix64, alpha: f64) -> f64 {
    (alpha - 1.0) * (positive_unit(rng).powf(-1.0 / alpha) - 1.0)
}

/// Standard normal (Box and Muller 1958).
pub(crate) fn normal(rng: &mut SplitMix64) -> f64 {
    let radius = (2.0 * rng.exponential()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).cos()
}
