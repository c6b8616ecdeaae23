//! The secret of a fleet, and keys made from it.
//!
//! All probes of a fleet must make the same digest of the same packet and choose the same packets,
//! and nobody else may know which: who did could send packets that are never chosen, or that all
//! look alike (RFC 5475 §6.2.4.1 wants the initialiser and the range kept private). Everything that
//! has to be secret is derived from one seed under a label, so that no two uses share a key.

use std::fmt;

use thiserror::Error;

use crate::digest::Sip;

/// 128 bits that the controller drew for its fleet. Printed by nothing, its `Debug` included.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed([u8; 16]);

/// Two words for one use.
#[derive(Clone, Copy)]
pub struct Key(pub(crate) u64, pub(crate) u64);

impl Seed {
    /// From its bytes.
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// From 32 hexadecimal digits, as an instruction carries it.
    pub fn parse(digits: &str) -> Result<Self, SeedError> {
        let mut bytes = [0; 16];
        if digits.len() != 32 || !digits.is_ascii() {
            return Err(SeedError { length: digits.len() });
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'));
            let value = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
            *byte = value.ok_or(SeedError { length: digits.len() })?;
        }
        Ok(Self(bytes))
    }

    /// A key for the use that `label` names: both words are SipHash-1-3 of the label and a number
    /// under the seed.
    pub fn key(&self, label: &str) -> Key {
        let word = |number: u64| {
            let mut sip = Sip::new(self.words());
            sip.word(number);
            sip.bytes(label.as_bytes())
        };
        Key(word(0), word(1))
    }

    fn words(&self) -> Key {
        let half =
            |n: usize| self.0[n..n + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        Key(half(0), half(8))
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(secret)")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

/// It is not 32 hexadecimal digits; the digits themselves are not told, they are nearly a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a seed is 32 hexadecimal digits, this is {length} characters of something else")]
pub struct SeedError {
    length: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_thirty_two_hexadecimal_digits_are_a_seed() {
        assert!(Seed::parse("00112233445566778899aabbccddeeFF").is_ok());
        for wrong in [
            "",
            "0011",
            "00112233445566778899aabbccddeefg",
            "+0112233445566778899aabbccddeeff",
            "äääääääääääääääää",
        ] {
            assert!(Seed::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_and_seeds_make_different_keys_and_nothing_prints_them() {
        let seed = Seed::parse("00112233445566778899aabbccddeeff").unwrap();
        let (a, b) = (seed.key("digest"), seed.key("tables"));
        assert!(a.0 != b.0 && a.1 != b.1 && a.0 != a.1);
        assert_eq!(a.0, seed.clone().key("digest").0);
        assert_ne!(a.0, Seed::new([7; 16]).key("digest").0);
        assert_eq!(format!("{seed:?} {a:?}"), "Seed(secret) Key(secret)");
    }
}
