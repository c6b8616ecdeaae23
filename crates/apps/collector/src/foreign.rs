//! IPFIX of other exporters: their flow records become volumes in the fleet store.

mod listen;

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;

pub(crate) use listen::{Foreign, start};

/// What came, for metrics.
#[derive(Debug, Default)]
pub(crate) struct ForeignCounts {
    pub(crate) messages: AtomicU64,
    pub(crate) flows: AtomicU64,
    /// Messages and records that could not be read.
    pub(crate) malformed: AtomicU64,
    /// Records that never came, by the sequence numbers.
    pub(crate) missing: AtomicU64,
}
/// Transport and address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Udp(SocketAddr),
    Tcp(SocketAddr),
}

impl Place {
    /// `udp://[::]:4739`, `tcp://192.0.2.1:4739`, `udp://:4739` for all addresses; the port is 4739 unless given.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (scheme, address) = text.split_once("://")?;
        let whole = match address.strip_prefix(':') {
            Some(port) => format!("[::]:{port}"),
            None => address.to_owned(),
        };
        let address = whole.parse().or_else(|_| {
            whole.trim_matches(['[', ']']).parse().map(|ip: std::net::IpAddr| SocketAddr::new(ip, PORT))
        });
        match scheme {
            "udp" => address.ok().map(Self::Udp),
            "tcp" => address.ok().map(Self::Tcp),
            _ => None,
        }
    }
}

/// RFC 7011 §10.1.
const PORT: u16 = 4739;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_people_write_them() {
        let all: SocketAddr = "[::]:4739".parse().unwrap();
        assert_eq!(Place::read("udp://:4739"), Some(Place::Udp(all)));
        assert_eq!(Place::read("udp://[::]"), Some(Place::Udp(all)));
        assert_eq!(Place::read("tcp://192.0.2.1:99"), Some(Place::Tcp("192.0.2.1:99".parse().unwrap())));
        for wrong in ["4739", "sctp://:4739", "udp://", "udp://x:y"] {
            assert_eq!(Place::read(wrong), None, "{wrong}");
        }
    }
}
