//! What the two ends of a data channel must know of each other before it opens.
//!
//! A page's flow of datagrams travels in a WebRTC data channel. Everything about it is fixed
//! (docs/protocol.md §9), so instead of session descriptions only the three things travel that
//! differ: who may ask (ICE, RFC 8445), and whose certificate it is (DTLS).

use serde::{Deserialize, Serialize};

/// Longest message of a data channel. Each then fits one DATA chunk and one datagram of every
/// browser and of ours: our SCTP cuts at 1062 bytes and Chromium's at some 1160, and with all
/// headers it stays below 1280 bytes, which every path over IPv6 carries.
pub const MAX_CHANNEL_PAYLOAD: usize = 1024;

/// One end of a data channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelEnd {
    /// ICE user name: 4 to 256 characters (RFC 8839 §5.4).
    pub ufrag: String,
    /// ICE password: 22 to 256 characters.
    pub pwd: String,
    /// SHA-256 of the DTLS certificate: 32 bytes in hexadecimal with colons between them, as in a
    /// session description.
    pub fingerprint: String,
}

impl ChannelEnd {
    /// What is wrong with it, if anything is.
    pub fn fault(&self) -> Option<&'static str> {
        if !is_ice_word(&self.ufrag, 4) {
            return Some("ufrag must have 4 to 256 letters, digits, + or /");
        }
        if !is_ice_word(&self.pwd, 22) {
            return Some("pwd must have 22 to 256 letters, digits, + or /");
        }
        self.digest()
            .is_none()
            .then_some("fingerprint must be 32 bytes in hexadecimal, with colons between them")
    }

    /// The bytes of the fingerprint.
    pub fn digest(&self) -> Option<[u8; 32]> {
        let mut digest = [0; 32];
        let mut pairs = self.fingerprint.split(':');
        for byte in &mut digest {
            let pair = pairs.next().filter(|pair| pair.len() == 2)?;
            *byte = pair
                .bytes()
                .try_fold(0, |byte, digit| Some(byte << 4 | char::from(digit).to_digit(16)? as u8))?;
        }
        pairs.next().is_none().then_some(digest)
    }

    /// A digest as it travels.
    pub fn fingerprint(digest: &[u8; 32]) -> String {
        let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }
}

/// `ice-char` is a letter, a digit, + or / (RFC 8839 §5.4).
fn is_ice_word(text: &str, shortest: usize) -> bool {
    (shortest..=LONGEST_ICE_WORD).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
}

const LONGEST_ICE_WORD: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn end() -> ChannelEnd {
        let fingerprint = ChannelEnd::fingerprint(&std::array::from_fn(|n| n as u8 * 7));
        ChannelEnd { ufrag: "aB+/".to_owned(), pwd: "p".repeat(22), fingerprint }
    }

    #[test]
    fn a_digest_reads_as_it_was_written() {
        let end = end();
        assert_eq!((end.fault(), end.fingerprint.len()), (None, 95));
        assert_eq!(end.digest(), Some(std::array::from_fn(|n| n as u8 * 7)));
        let lower = ChannelEnd { fingerprint: end.fingerprint.to_lowercase(), ..end.clone() };
        assert_eq!(lower.digest(), end.digest());
    }

    #[test]
    fn whatever_does_not_fit_is_named() {
        let rows: [(ChannelEnd, &str); 9] = [
            (ChannelEnd { ufrag: "abc".into(), ..end() }, "ufrag"),
            (ChannelEnd { ufrag: "a".repeat(257), ..end() }, "ufrag"),
            (ChannelEnd { ufrag: "ab:d".into(), ..end() }, "ufrag"),
            (ChannelEnd { pwd: "p".repeat(21), ..end() }, "pwd"),
            (ChannelEnd { pwd: "\r\na=x ".repeat(9), ..end() }, "pwd"),
            (ChannelEnd { fingerprint: String::new(), ..end() }, "fingerprint"),
            (ChannelEnd { fingerprint: end().fingerprint + ":00", ..end() }, "fingerprint"),
            (ChannelEnd { fingerprint: end().fingerprint.replace("00:", "+0:"), ..end() }, "fingerprint"),
            (ChannelEnd { fingerprint: end().fingerprint.replace("00:", "é:"), ..end() }, "fingerprint"),
        ];
        for (end, what) in rows {
            assert!(end.fault().is_some_and(|fault| fault.starts_with(what)), "{end:?}");
        }
    }
}
