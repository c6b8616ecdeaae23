//! A seeded source of pseudo-random numbers for resampling. Not for secrets, not for cookies.
//!
//! `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014)
//! is eight lines, has period 2^64, and its outputs are fixed by the seed on every platform. That
//! reproducibility is why we do not take a library: a general generator may change its stream
//! between versions, and a stored interval would no longer recompute.

mod exponential;

/// The generator. Two of them with the same seed yield the same numbers for ever.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator whose stream is fixed by `seed`; every seed is as good as another.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`, and 0 if `bound` is 0.
    ///
    /// Multiply and shift (Lemire 2019) without the rejection step: some results are more likely
    /// than others by one part in 2^64 / `bound`, far below what any resampling could show.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A number in `0.0..1.0`, a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::assert_close;

    #[test]
    fn stream_equals_the_published_reference() {
        let mut rng = SplitMix64::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn bounded_draws_are_even_and_inside() {
        let mut rng = SplitMix64::new(1);
        let mut seen = [0_u32; 7];
        for _ in 0..70_000 {
            seen[rng.below(7)] += 1;
        }
        // Each count is binomial with sd 93; five of those.
        assert!(seen.iter().all(|&n| n.abs_diff(10_000) < 465), "{seen:?}");
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn unit_draws_average_one_half() {
        let mut rng = SplitMix64::new(2);
        let mean = (0..100_000).map(|_| rng.unit()).sum::<f64>() / 100_000.0;
        assert_close(mean, 0.5, 0.005);
    }
}
