//! Numbers that look random and are the same for the same seed (SplitMix64; Steele, Lea and Flood,
//! 2014).

#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `most`.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.draw() % most
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.draw().to_le_bytes()[..part.len()]);
        }
    }

    /// Places in so many bytes, the last first, none within the last twentieth.
    pub(crate) fn places(&mut self, count: usize, bytes: u64) -> Vec<u64> {
        let mut places: Vec<u64> = (0..count).map(|_| self.below(bytes / 20 * 19)).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        places
    }
}
