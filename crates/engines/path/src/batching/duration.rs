//! How long trains must be under stamps that err.

/// How long a train must last, ns, so that stamps that are wrong by `error` ns at each end make its
/// rate wrong by no more than `accuracy`: sqrt(2) error / accuracy, which is 141 errors for one per
/// cent. Coalescing apart: methods ask for a number of periods of their own besides.
pub fn least_duration(error: f64, accuracy: f64) -> f64 {
    std::f64::consts::SQRT_2 * error / accuracy.max(1e-6)
}
