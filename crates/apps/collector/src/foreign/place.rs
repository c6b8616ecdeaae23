//! Where to listen, as people write it.

use std::net::SocketAddr;
use std::sync::Arc;

use netaware_io::zone;
use netaware_ipfix::{Options, Over};
use netaware_wire::ipfix::{PORT, PORT_TLS};
use rustls::ServerConfig;

/// Transport and address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) over: Over,
    at: SocketAddr,
}

impl Place {
    /// `udp://[::]:4739`, `tcp://192.0.2.1:4739`, `tls://:4740` for all addresses; the port is
    /// 4739, with TLS 4740, unless given.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (scheme, address) = text.split_once("://")?;
        let (over, usual) = match scheme {
            "udp" => (Over::Udp, PORT),
            "tcp" => (Over::Tcp, PORT),
            "tls" => (Over::Tls, PORT_TLS),
            _ => return None,
        };
        let whole = match address.strip_prefix(':') {
            Some(port) => format!("[::]:{port}"),
            None => address.to_owned(),
        };
        let at = zone::parse_socket(&whole).or_else(|_| zone::parse_ip(&whole).map(|ip| ip.at(usual)));
        Some(Self { over, at: at.ok()? })
    }

    /// For a listener at this place alone. Without `tls` nobody listens at a place that asks for
    /// it; the file's check sees to that.
    pub(super) fn options(self, tls: Option<&Arc<ServerConfig>>, usual: &Options) -> Options {
        let at = |over| (over == self.over).then_some(self.at);
        Options {
            udp: at(Over::Udp),
            tcp: at(Over::Tcp),
            tls: at(Over::Tls).zip(tls.cloned()),
            ..usual.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_people_write_them() {
        let place = |over, at: &str| Some(Place { over, at: at.parse().unwrap() });
        let rows = [
            ("udp://:4739", place(Over::Udp, "[::]:4739")),
            ("udp://[::]", place(Over::Udp, "[::]:4739")),
            ("tcp://192.0.2.1:99", place(Over::Tcp, "192.0.2.1:99")),
            ("tls://192.0.2.1", place(Over::Tls, "192.0.2.1:4740")),
        ];
        for (text, want) in rows {
            assert_eq!(Place::read(text), want, "{text}");
        }
        for wrong in ["4739", "sctp://:4739", "udp://", "udp://x:y"] {
            assert_eq!(Place::read(wrong), None, "{wrong}");
        }
    }
}
