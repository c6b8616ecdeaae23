//! Random bits, written as hexadecimal digits: 128 of a session, 256 of a responder's owner.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Names a session, a reservation, a nonce or a cookie. Comparison is constant-time, `Debug` shows
/// only its beginning: whoever holds a session's token may add traffic to it, so it does not belong
/// in logs.
#[derive(Clone, Copy, Default)]
pub struct Token(pub [u8; 16]);

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        subtle::ConstantTimeEq::ct_eq(&self.0[..], &other.0[..]).into()
    }
}

impl Eq for Token {}

impl std::hash::Hash for Token {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// Not 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseTokenError;

impl fmt::Display for ParseTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token is 32 hexadecimal digits")
    }
}

impl std::error::Error for ParseTokenError {}

impl FromStr for Token {
    type Err = ParseTokenError;
    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        bytes_of(text).map(Self).ok_or(ParseTokenError)
    }
}

/// `N` bytes of twice as many hexadecimal digits.
fn bytes_of<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Opens what only a responder's owner sees. Longer than a session's [`Token`], so that neither is
/// taken for the other. Comparison is constant-time, and `Debug` shows nothing of it.
#[derive(Clone, Copy)]
pub struct OwnerToken(pub [u8; 32]);

impl PartialEq for OwnerToken {
    fn eq(&self, other: &Self) -> bool {
        subtle::ConstantTimeEq::ct_eq(&self.0[..], &other.0[..]).into()
    }
}

impl Eq for OwnerToken {}

impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerToken(…)")
    }
}

/// Not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseOwnerTokenError;

impl fmt::Display for ParseOwnerTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an owner's token is 64 hexadecimal digits")
    }
}

impl std::error::Error for ParseOwnerTokenError {}

impl FromStr for OwnerToken {
    type Err = ParseOwnerTokenError;
    fn from_str(text: &str) -> Result<Self, ParseOwnerTokenError> {
        bytes_of(text).map(Self).ok_or(ParseOwnerTokenError)
    }
}

impl Serialize for OwnerToken {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OwnerToken {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let token = Token(*b"0123456789abcdef");
        assert_eq!(token.to_string().parse(), Ok(token));
        assert_eq!("é".repeat(16).parse::<Token>(), Err(ParseTokenError));
        assert!(!format!("{token:?}").contains("3334"));
    }

    #[test]
    fn the_token_of_a_session_is_none_of_an_owner() {
        let (session, owner) = (Token([7; 16]), OwnerToken([7; 32]));
        assert_eq!(owner.to_string().parse(), Ok(owner));
        assert_eq!(session.to_string().parse::<OwnerToken>(), Err(ParseOwnerTokenError));
        assert_eq!(owner.to_string().parse::<Token>(), Err(ParseTokenError));
        assert!(!format!("{owner:?}").contains("07"));
    }
}
