//! What of WebRTC shares our UDP port: told apart by its first byte (RFC 7983 §7), and whom a STUN
//! request asks.
//!
//! Ours begin with `N` (78), STUN with 0 to 3, DTLS with 20 to 63. Requests below 24 bytes begin
//! with anything and are never of WebRTC: a STUN request that we answer has a user name and a proof
//! and is longer.

/// What a datagram is, as far as its beginning tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guest {
    /// STUN (RFC 8489).
    Stun,
    /// A DTLS record (RFC 6347).
    Dtls,
}

impl Guest {
    /// `None` for all else.
    #[inline]
    pub fn of(datagram: &[u8]) -> Option<Self> {
        match *datagram.first()? {
            0..=3 if datagram.len() >= STUN_HEADER && datagram[4..8] == MAGIC_COOKIE => Some(Self::Stun),
            20..=63 => Some(Self::Dtls),
            _ => None,
        }
    }
}

/// Whom a binding request asks: what stands before the colon of its user name (RFC 8445 §7.2.2).
/// `None` for everything that is no whole binding request, or has no such name.
///
/// Nothing is proven by it: the request's own proof needs the password.
pub fn asked(datagram: &[u8]) -> Option<&str> {
    let header = datagram.first_chunk::<STUN_HEADER>()?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_request = header[..2] == BINDING_REQUEST && header[4..8] == MAGIC_COOKIE;
    let mut rest = &datagram[STUN_HEADER..];
    if !is_request || rest.len() != length {
        return None;
    }
    while let Some((head, after)) = rest.split_first_chunk::<ATTRIBUTE_HEADER>() {
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let value = after.get(..length)?;
        if head[..2] == USERNAME {
            return Some(str::from_utf8(value).ok()?.split_once(':')?.0);
        }
        rest = after.get(length.next_multiple_of(4)..)?;
    }
    None
}

const STUN_HEADER: usize = 20;
const ATTRIBUTE_HEADER: usize = 4;
const BINDING_REQUEST: [u8; 2] = [0, 1];
const MAGIC_COOKIE: [u8; 4] = 0x2112_A442_u32.to_be_bytes();
const USERNAME: [u8; 2] = [0, 6];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, value) in attributes {
            body.extend(kind.to_be_bytes());
            body.extend((value.len() as u16).to_be_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut bytes = vec![0, 1];
        bytes.extend((body.len() as u16).to_be_bytes());
        bytes.extend(MAGIC_COOKIE);
        bytes.extend([7; 12]);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn the_first_byte_tells_ours_from_guests() {
        let stun = request(&[]);
        assert_eq!(Guest::of(&stun), Some(Guest::Stun));
        let rows: [(&[u8], Option<Guest>); 8] = [
            (b"", None),
            (b"Na\x05", None),
            (&[22, 254, 253], Some(Guest::Dtls)),
            (&[63], Some(Guest::Dtls)),
            (&[64], None),
            (&[19], None),
            (&stun[..19], None),
            (&[0; 24], None),
        ];
        for (bytes, want) in rows {
            assert_eq!(Guest::of(bytes), want, "{bytes:?}");
        }
    }

    #[test]
    fn a_request_tells_whom_it_asks() {
        let asks = |attributes: &[(u16, &[u8])]| asked(&request(attributes)).map(str::to_owned);
        assert_eq!(asks(&[(0x8022, b"odd length"), (6, b"ours:theirs"), (8, &[1; 20])]), Some("ours".into()));
        assert_eq!(asks(&[(6, b"nobody")]), None);
        assert_eq!(asks(&[(6, b"\xff:a")]), None);
        assert_eq!(asks(&[(8, &[1; 20])]), None);
    }

    #[test]
    fn what_is_no_whole_request_asks_nobody() {
        let whole = request(&[(6, b"ours:theirs")]);
        assert_eq!(asked(&whole), Some("ours"));
        for length in 0..whole.len() {
            assert_eq!(asked(&whole[..length]), None, "{length}");
        }
        let mut response = whole.clone();
        response[0] = 1;
        assert_eq!(asked(&response), None);
        let mut overlong = whole;
        overlong[23] = 200;
        assert_eq!(asked(&overlong), None);
    }

    proptest! {
        #[test]
        fn noise_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Guest::of(&bytes), asked(&bytes));
            let mut framed = request(&[]);
            framed.extend(&bytes);
            let length = (framed.len() - STUN_HEADER) as u16;
            framed[2..4].copy_from_slice(&length.to_be_bytes());
            let _ = asked(&framed);
        }
    }
}
