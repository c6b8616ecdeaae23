//! NH: what is to be hashed of a packet, up to 19 pairs of words, brought down to 128 bits under a
//! long key.
//!
//! Two different packets come to the same 128 bits with a probability of at most 2^-64 over the
//! keys (Black, Halevi, Krawczyk, Krovetz and Rogaway: UMAC, CRYPTO 1999, theorem 4.2). The
//! products do not wait for each other, as the rounds of a cipher do, so a packet's 80 bytes cost a
//! few ns. It hides nothing: what leaves the probe is a keyed hash of its result.

use netaware_wire::lmap::MOST_PAYLOAD;

use super::Sip;
use crate::seed::Key;

/// Pairs before the payload: of the header, and of each address.
pub(super) const BEFORE: usize = 3;
const PAIRS: usize = BEFORE + MOST_PAYLOAD as usize / 16;

/// The long key.
#[derive(Clone)]
pub(super) struct Compressor(Box<[[u64; 2]; PAIRS]>);

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compressor(secret)")
    }
}

impl Compressor {
    /// Its words are SipHash-1-3 of their numbers.
    pub(super) fn new(key: Key) -> Self {
        let word = |number: usize| {
            let mut sip = Sip::new(key);
            sip.word(number as u64);
            sip.end()
        };
        Self(Box::new(std::array::from_fn(|pair| [word(2 * pair), word(2 * pair + 1)])))
    }

    /// `before`: pairs of words that tell among other things how long the payload is. `zeros`: bits
    /// of the payload's first words (lowest byte first) that count as zero. Of the payload no more
    /// than [`MOST_PAYLOAD`] bytes are looked at.
    #[inline]
    pub(super) fn compress(&self, before: [[u64; 2]; BEFORE], payload: &[u8], zeros: [[u64; 2]; 2]) -> u128 {
        let keys = &*self.0;
        let mut sum = product(keys[0], before[0]);
        sum = sum.wrapping_add(product(keys[1], before[1]));
        sum = sum.wrapping_add(product(keys[2], before[2]));
        let (whole, rest) = payload.as_chunks::<16>();
        let keys = &keys[BEFORE..];
        for (n, (sixteen, key)) in whole.iter().zip(keys).enumerate() {
            sum = sum.wrapping_add(product(*key, without(halves(*sixteen), zeros, n)));
        }
        if let Some(key) = keys.get(whole.len()).filter(|_| !rest.is_empty()) {
            sum = sum.wrapping_add(product(*key, without(last(payload, rest), zeros, whole.len())));
        }
        sum
    }
}

#[inline]
fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let word = u128::from_le_bytes(bytes);
    [word as u64, (word >> 64) as u64]
}

/// The bytes behind the last whole sixteen, filled up with zeros.
#[inline]
fn last(payload: &[u8], rest: &[u8]) -> [u64; 2] {
    let word = match payload.last_chunk::<16>() {
        Some(sixteen) => u128::from_le_bytes(*sixteen) >> (128 - 8 * rest.len()),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte)),
    };
    [word as u64, (word >> 64) as u64]
}

/// Pair `n` without the bits that count as zero.
#[inline]
fn without(pair: [u64; 2], zeros: [[u64; 2]; 2], n: usize) -> [u64; 2] {
    match n {
        0 => [pair[0] & !zeros[0][0], pair[1] & !zeros[0][1]],
        1 => [pair[0] & !zeros[1][0], pair[1] & !zeros[1][1]],
        _ => pair,
    }
}

#[inline]
fn product(key: [u64; 2], pair: [u64; 2]) -> u128 {
    u128::from(pair[0].wrapping_add(key[0])) * u128::from(pair[1].wrapping_add(key[1]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As it is written in the paper, over words of a payload that is filled up with zeros.
    fn oracle(keys: &Compressor, before: [[u64; 2]; BEFORE], payload: &[u8], zeros: [[u64; 2]; 2]) -> u128 {
        let mut bytes = payload.to_vec();
        bytes.resize(payload.len().next_multiple_of(16), 0);
        let masks = zeros.as_flattened().iter().flat_map(|word| word.to_le_bytes());
        for (byte, mask) in bytes.iter_mut().zip(masks) {
            *byte &= !mask;
        }
        let word = |n: usize| u64::from_le_bytes(bytes[8 * n..8 * n + 8].try_into().unwrap());
        let payload = (0..bytes.len() / 16).map(|n| [word(2 * n), word(2 * n + 1)]);
        before.into_iter().chain(payload).zip(keys.0.iter()).fold(0, |sum: u128, (m, k)| {
            sum.wrapping_add(u128::from(m[0].wrapping_add(k[0])) * u128::from(m[1].wrapping_add(k[1])))
        })
    }

    proptest! {
        #[test]
        fn equals_the_papers_sum(payload in prop::collection::vec(any::<u8>(), 0..=256), before: [[u64; 2]; BEFORE],
                                 key: (u64, u64), zeros: [[u64; 2]; 2]) {
            let keys = Compressor::new(Key(key.0, key.1));
            prop_assert_eq!(keys.compress(before, &payload, zeros), oracle(&keys, before, &payload, zeros));
        }
    }

    #[test]
    fn what_is_beyond_the_longest_payload_is_not_looked_at() {
        let keys = Compressor::new(Key(1, 2));
        let (longest, longer) = ([7; MOST_PAYLOAD as usize], [7; MOST_PAYLOAD as usize + 5]);
        let compress = |payload: &[u8]| keys.compress([[1, 2]; BEFORE], payload, [[0; 2]; 2]);
        assert_eq!(compress(&longest), compress(&longer));
    }
}
