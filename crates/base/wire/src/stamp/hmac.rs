//! HMAC-SHA-256, the first 128 bits of it (RFC 8762 §4.4).

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::proof::Key;

/// Over everything that it was made of.
pub(super) struct Tag(pub(super) [u8; Tag::LEN]);

impl Tag {
    /// Bytes.
    pub(super) const LEN: usize = 16;

    /// Of the parts one after the other.
    pub(super) fn of(key: &Key, parts: &[&[u8]]) -> Self {
        Self(first_128_bits(key.bytes(), parts))
    }

    /// Compares in constant time.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        subtle::ConstantTimeEq::ct_eq(&self.0[..], given).into()
    }
}

/// HMAC-SHA-256 cut to 128 bits, under any bytes as key.
pub(super) fn first_128_bits(key: &[u8], parts: &[&[u8]]) -> [u8; Tag::LEN] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    let whole = mac.finalize().into_bytes();
    let mut first = [0; Tag::LEN];
    first.copy_from_slice(&whole[..Tag::LEN]);
    first
}
