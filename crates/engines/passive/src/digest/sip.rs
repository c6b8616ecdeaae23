//! SipHash-1-3 over words and bytes, with a second result for the selection.
//!
//! Our own forty lines and not a library's, because packets come as words that need no copying: a
//! general `Hasher` buffers each write, and that costs more than the hash. The first result is the
//! standard one and is tested against the standard library.

use crate::seed::Key;

/// A hash in the making: first words, then bytes once.
#[derive(Debug, Clone)]
pub(crate) struct Sip {
    v: [u64; 4],
    words: u64,
}

impl Sip {
    #[inline]
    pub(crate) fn new(key: Key) -> Self {
        let Key(k0, k1) = key;
        // "somepseudorandomlygeneratedbytes", as Aumasson and Bernstein have it.
        let start =
            [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573];
        Self { v: [start[0] ^ k0, start[1] ^ k1, start[2] ^ k0, start[3] ^ k1], words: 0 }
    }

    /// Eight bytes, the lowest first.
    #[inline]
    pub(crate) fn word(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.v[0] ^= word;
        self.words += 1;
    }

    /// The last bytes, and the hash of all.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let (whole, rest) = bytes.as_chunks::<8>();
        for eight in whole {
            self.word(u64::from_le_bytes(*eight));
        }
        self.close(rest)
    }

    /// The hash of the words.
    #[inline]
    pub(crate) fn end(&mut self) -> u64 {
        self.close(&[])
    }

    #[inline]
    fn close(&mut self, rest: &[u8]) -> u64 {
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let length = self.words * 8 + rest.len() as u64;
        self.word(last | length << 56);
        self.v[2] ^= 0xff;
        self.finish()
    }

    /// 64 bits more, independent of the first; after [`Self::bytes`] or [`Self::end`]. Made as
    /// SipHash's 128-bit form makes its second half.
    #[inline]
    pub(crate) fn second(&mut self) -> u64 {
        self.v[1] ^= 0xdd;
        self.finish()
    }

    #[inline]
    fn finish(&mut self) -> u64 {
        self.round();
        self.round();
        self.round();
        self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]
    }

    #[inline]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.v;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        d = d.rotate_left(21) ^ a;
        b = b.rotate_left(17) ^ c;
        self.v = [a, b, c.rotate_left(32), d];
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hasher};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equals_the_standard_librarys_siphash(words in prop::collection::vec(any::<u64>(), 0..5),
                                                bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            // The standard library hashes by SipHash-1-3 under the key 0.
            let mut oracle = DefaultHasher::new();
            let mut sip = Sip::new(Key(0, 0));
            for word in words {
                oracle.write(&word.to_le_bytes());
                sip.word(word);
            }
            oracle.write(&bytes);
            prop_assert_eq!(sip.bytes(&bytes), oracle.finish());
        }
    }

    #[test]
    fn the_second_result_is_another() {
        let mut sip = Sip::new(Key(1, 2));
        let first = sip.bytes(b"packet");
        assert_ne!(first, sip.second());
    }
}
