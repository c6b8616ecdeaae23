//! A mix of packet sizes.

use netaware_stats::rng::SplitMix64;

use crate::scenario::SizeShare;

#[derive(Debug, Clone)]
pub(super) struct Sizes {
    /// Size, and the share of packets up to and including it.
    cumulated: Vec<(u32, f64)>,
    mean: f64,
}

impl Sizes {
    /// `shares` is not empty and adds up to one.
    pub(super) fn new(shares: &[SizeShare]) -> Self {
        let mut sum = 0.0;
        let cumulated = shares.iter().map(|size| {
            sum += size.share;
            (size.bytes, sum)
        });
        let mean = shares.iter().map(|size| f64::from(size.bytes) * size.share).sum();
        Self { cumulated: cumulated.collect(), mean }
    }

    pub(super) const fn mean(&self) -> f64 {
        self.mean
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut SplitMix64) -> u32 {
        if let [(only, _)] = self.cumulated[..] {
            return only;
        }
        let drawn = rng.unit();
        let (last, _) = self.cumulated[self.cumulated.len() - 1];
        self.cumulated.iter().find(|(_, upto)| drawn < *upto).map_or(last, |(bytes, _)| *bytes)
    }
}
