//! Proofs of knowing a shared key, and the cookie that proves an address.
//!
//! HMAC-SHA-256 (RFC 2104, FIPS 180-4). The key never travels; both nonces are in both proofs, so
//! neither side can be made to sign what it did not choose; the labels keep a proof of one side
//! from being played back as the other's.

use std::fmt::{self, Write};
use std::net::SocketAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::Token;

type HmacSha256 = Hmac<Sha256>;

/// The longest [`Key`], bytes.
pub const MAX_KEY: usize = 1024;

/// A shared key. Printing it shows nothing of it.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// Why bytes are no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyError {
    /// Anybody could guess it.
    Empty,
    /// Over the limit.
    TooLong(usize),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the key is empty"),
            Self::TooLong(length) => write!(f, "the key has {length} bytes; {MAX_KEY} are the limit"),
        }
    }
}

impl std::error::Error for KeyError {}

impl Key {
    /// Takes 1 to [`MAX_KEY`] bytes.
    ///
    /// # Errors
    /// Fewer or more.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, KeyError> {
        let bytes = bytes.into();
        match bytes.len() {
            0 => Err(KeyError::Empty),
            length if length > MAX_KEY => Err(KeyError::TooLong(length)),
            _ => Ok(Self(bytes)),
        }
    }

    /// For proofs.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// The prober's proof, 64 hexadecimal digits.
pub fn client(key: &[u8], responder_nonce: Token, prober_nonce: Token) -> String {
    proof(b"netaware prober 1", key, responder_nonce, prober_nonce)
}

/// The responder's proof.
pub fn server(key: &[u8], responder_nonce: Token, prober_nonce: Token) -> String {
    proof(b"netaware responder 1", key, responder_nonce, prober_nonce)
}

/// The proof of who sends files. `binding` is what both ends know of the encryption below, 32 bytes
/// of its key material (RFC 9266) or nothing: somebody in between has another one.
pub fn sender(key: &[u8], receiver_nonce: Token, sender_nonce: Token, binding: &[u8]) -> String {
    bound(b"netaware sender 1", key, receiver_nonce, sender_nonce, binding)
}

/// The proof of who receives files.
pub fn receiver(key: &[u8], receiver_nonce: Token, sender_nonce: Token, binding: &[u8]) -> String {
    bound(b"netaware receiver 1", key, receiver_nonce, sender_nonce, binding)
}

/// The proof of a probe that it has the key of that name. `binding` as in [`sender`].
pub fn fleet_probe(
    key: &[u8],
    collector_nonce: Token,
    probe_nonce: Token,
    name: &str,
    binding: &[u8],
) -> String {
    named(b"netaware fleet probe 1", key, collector_nonce, probe_nonce, name, binding)
}

/// The proof of a collector to the probe of that name.
pub fn fleet_collector(
    key: &[u8],
    collector_nonce: Token,
    probe_nonce: Token,
    name: &str,
    binding: &[u8],
) -> String {
    named(b"netaware fleet collector 1", key, collector_nonce, probe_nonce, name, binding)
}

/// Compares in constant time.
pub fn matches(expected: &str, given: &str) -> bool {
    subtle::ConstantTimeEq::ct_eq(expected.as_bytes(), given.as_bytes()).into()
}

/// The proof of the relay that local programs connect to.
pub fn relay_near(key: &[u8], far_nonce: Token, near_nonce: Token) -> String {
    proof(b"netaware relay near 1", key, far_nonce, near_nonce)
}

/// The proof of the relay that connects to servers.
pub fn relay_far(key: &[u8], far_nonce: Token, near_nonce: Token) -> String {
    proof(b"netaware relay far 1", key, far_nonce, near_nonce)
}

/// A value that only someone who receives packets at `address` can know. It is not stored: the
/// responder computes it again when it comes back, so a flood of knocks costs no memory.
pub fn cookie(secret: &[u8; 32], address: SocketAddr, session: Token, test: u32) -> Token {
    let ip = match address.ip() {
        std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        std::net::IpAddr::V6(v6) => v6.octets(),
    };
    let digest =
        hmac(secret, &[b"cookie", &ip, &address.port().to_be_bytes(), &session.0, &test.to_be_bytes()]);
    let mut cookie = [0; 16];
    cookie.copy_from_slice(&digest[..16]);
    Token(cookie)
}

fn proof(label: &[u8], key: &[u8], responder_nonce: Token, prober_nonce: Token) -> String {
    bound(label, key, responder_nonce, prober_nonce, &[])
}

fn bound(label: &[u8], key: &[u8], theirs: Token, ours: Token, binding: &[u8]) -> String {
    hexadecimal(&hmac(key, &[label, &theirs.0, &ours.0, binding]))
}

/// The name's length stands before it, so that no name runs into the binding.
fn named(label: &[u8], key: &[u8], theirs: Token, ours: Token, name: &str, binding: &[u8]) -> String {
    let length = (name.len() as u64).to_be_bytes();
    hexadecimal(&hmac(key, &[label, &theirs.0, &ours.0, &length, name.as_bytes(), binding]))
}

fn hexadecimal(digest: &[u8; 32]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
    let mut mac = HmacSha256::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_of_one_side_is_no_proof_of_the_other() {
        let (a, b) = (Token([1; 16]), Token([2; 16]));
        assert_ne!(client(b"k", a, b), server(b"k", a, b));
        assert_ne!(client(b"k", a, b), client(b"k", b, a));
        assert_ne!(client(b"k", a, b), client(b"K", a, b));
        assert!(matches(&client(b"k", a, b), &client(b"k", a, b)));
    }

    #[test]
    fn a_proof_for_one_protocol_or_one_connection_is_none_for_another() {
        let (a, b) = (Token([1; 16]), Token([2; 16]));
        let proofs = [
            client(b"k", a, b),
            server(b"k", a, b),
            sender(b"k", a, b, &[]),
            receiver(b"k", a, b, &[]),
            sender(b"k", a, b, &[1; 32]),
            sender(b"k", a, b, &[2; 32]),
            fleet_probe(b"k", a, b, "berlin", &[]),
            fleet_probe(b"k", a, b, "bern", &[]),
            fleet_probe(b"k", a, b, "ber", b"n"),
            fleet_probe(b"k", a, b, "bern", &[1; 32]),
            fleet_collector(b"k", a, b, "bern", &[]),
        ];
        for (n, proof) in proofs.iter().enumerate() {
            assert!(!proofs[..n].contains(proof), "proof {n}");
        }
    }

    #[test]
    fn keys_have_bounds_and_a_printed_one_tells_nothing() {
        assert_eq!(Key::new([]).unwrap_err(), KeyError::Empty);
        assert_eq!(Key::new(vec![0; 1025]).unwrap_err(), KeyError::TooLong(1025));
        assert_eq!(format!("{:?}", Key::new(*b"sesame").unwrap()), "Key(…)");
    }

    #[test]
    fn hmac_agrees_with_rfc_4231_case_2() {
        let digest = hmac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        assert_eq!(digest[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        assert_eq!(digest[28..], [0x64, 0xec, 0x38, 0x43]);
    }

    #[test]
    fn a_cookie_is_bound_to_its_address_and_test() {
        let here: SocketAddr = "192.0.2.1:5".parse().unwrap();
        let there: SocketAddr = "192.0.2.1:6".parse().unwrap();
        let cookie = |address, test| cookie(&[7; 32], address, Token([1; 16]), test);
        assert_ne!(cookie(here, 1), cookie(there, 1));
        assert_ne!(cookie(here, 1), cookie(here, 2));
    }
}
