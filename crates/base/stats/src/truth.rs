//! Noise with known parameters, and comparison of floats: what the truth tests of this crate share.

use crate::rng::SplitMix64;

/// Fails unless the two differ by less than `tolerance`.
#[track_caller]
pub(crate) fn assert_close(left: f64, right: f64, tolerance: f64) {
    assert!((left - right).abs() < tolerance, "{left} is not within {tolerance} of {right}");
}

/// One draw of the standard normal distribution (Box and Muller 1958).
pub(crate) fn normal(rng: &mut SplitMix64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).cos()
}

/// `n` values of a stationary AR(1) process with unit variance, zero mean and lag-one correlation
/// `phi`.
pub(crate) fn autocorrelated(rng: &mut SplitMix64, n: usize, phi: f64) -> Vec<f64> {
    let mut x = normal(rng);
    let innovation = (1.0 - phi * phi).sqrt();
    std::iter::repeat_with(|| {
        x = phi * x + innovation * normal(rng);
        x
    })
    .take(n)
    .collect()
}
