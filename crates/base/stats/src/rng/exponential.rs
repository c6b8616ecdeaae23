//! Exponential draws without a logarithm in all but one of a hundred.
//!
//! The area under e^-x is cut into 256 layers of equal area; a point of a random layer mostly lies
//! under the curve for its x alone (Marsaglia and Tsang, "The ziggurat method for generating random
//! variables", J. Stat. Software 5(8), 2000).

use std::sync::LazyLock;

use super::SplitMix64;

/// Where the last layer ends and the tail begins, and the area of each; for 256 layers, from the
/// paper's condition that the innermost layer closes at zero.
const TAIL: f64 = 7.697_117_470_131_05;
const AREA: f64 = 0.003_949_659_822_581_557;
const LAYERS: usize = 256;

/// Right edges of the layers, falling to zero, and the curve there.
struct Layers {
    x: [f64; LAYERS + 1],
    y: [f64; LAYERS + 1],
}

static TABLE: LazyLock<Layers> = LazyLock::new(|| {
    let mut x = [0.0; LAYERS + 1];
    x[0] = AREA / (-TAIL).exp();
    x[1] = TAIL;
    for n in 2..LAYERS {
        x[n] = -(AREA / x[n - 1] + (-x[n - 1]).exp()).ln();
    }
    Layers { x, y: x.map(|x| (-x).exp()) }
});

impl SplitMix64 {
    /// An exponential draw with mean one.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        let Layers { x, y } = &*TABLE;
        loop {
            let bits = self.next_u64();
            let layer = (bits & 0xff) as usize;
            let drawn = (bits >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0) * x[layer];
            if drawn < x[layer + 1] {
                return drawn;
            }
            if layer == 0 {
                // What is left of an exponential has the same distribution.
                return TAIL - (1.0 - self.unit()).ln();
            }
            if y[layer] + (y[layer + 1] - y[layer]) * self.unit() < (-drawn).exp() {
                return drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layers_close_at_zero_and_have_equal_areas() {
        let Layers { x, y } = &*TABLE;
        for n in 1..LAYERS {
            let area = x[n] * (y[n + 1] - y[n]);
            assert!((area / AREA - 1.0).abs() < 1e-9, "{n}: {area}");
        }
    }

    #[test]
    fn as_many_draws_lie_below_each_bound_as_the_curve_says() {
        let mut rng = SplitMix64::new(3);
        let count = 2_000_000;
        let mut draws: Vec<f64> = (0..count).map(|_| rng.exponential()).collect();
        draws.sort_unstable_by(f64::total_cmp);
        // Kolmogorov's bound at one in a million.
        let bound = 2.6 / f64::from(count).sqrt();
        for (n, drawn) in draws.iter().enumerate() {
            let (seen, said) = (n as f64 / f64::from(count), 1.0 - (-drawn).exp());
            assert!((seen - said).abs() < bound, "{drawn}: {seen} for {said}");
        }
        let beyond = draws.iter().filter(|drawn| **drawn > 9.0).count() as f64;
        let wanted = f64::from(count) * (-9.0_f64).exp();
        assert!((beyond - wanted).abs() < 5.0 * wanted.sqrt(), "{beyond} for {wanted}");
    }
}
