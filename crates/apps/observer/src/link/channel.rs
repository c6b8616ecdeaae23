//! Frames over TCP, encrypted or not, read with a patience.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use netaware_io::zone;
use netaware_wire::frame::{self, MAX_FRAME};
use rustls::{ClientConnection, StreamOwned};
use socket2::{SockRef, TcpKeepalive};

use super::session::Broken;
use super::{CollectorAddress, Trust};

const CONNECT: Duration = Duration::from_secs(5);
/// A collector that takes nothing for so long is gone, or as good as.
const WRITE: Duration = Duration::from_secs(30);

enum Carrier {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Carrier {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &tls.sock,
        }
    }
}

/// See the module.
pub(super) struct Channel {
    carrier: Carrier,
    /// What has come and was not taken.
    come: Vec<u8>,
    patience: Duration,
}

impl Channel {
    /// Connects to the first address that answers; IPv6 and IPv4 in turn, so that one that is dead
    /// costs one wait only.
    pub(super) fn dial(address: &CollectorAddress, trust: &Trust) -> Result<Self, Broken> {
        let socket = connect(address)?;
        let set = socket.set_nodelay(true).and_then(|()| socket.set_write_timeout(Some(WRITE)));
        set.map_err(Broken::Connection)?;
        let alive =
            TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5));
        SockRef::from(&socket).set_tcp_keepalive(&alive).map_err(Broken::Connection)?;
        #[cfg(target_os = "linux")]
        SockRef::from(&socket).set_tcp_user_timeout(Some(WRITE)).map_err(Broken::Connection)?;
        let tls = trust.connection(&address.host).map_err(|why| Broken::Tls(why.to_string()))?;
        let carrier = match tls {
            None => Carrier::Plain(socket),
            Some(tls) => Carrier::Tls(Box::new(shaken(tls, socket)?)),
        };
        let mut channel = Self { carrier, come: Vec::new(), patience: Duration::ZERO };
        channel.wait_at_most(Duration::from_millis(100))?;
        Ok(channel)
    }

    /// What both ends know of the encryption (RFC 9266); nothing without.
    pub(super) fn binding(&self) -> Result<Vec<u8>, Broken> {
        let Carrier::Tls(tls) = &self.carrier else { return Ok(Vec::new()) };
        let exported = tls.conn.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[]));
        exported.map(Vec::from).map_err(|why| Broken::Tls(why.to_string()))
    }

    /// How long [`Channel::next`] waits.
    pub(super) fn wait_at_most(&mut self, patience: Duration) -> Result<(), Broken> {
        if self.patience != patience {
            self.carrier.socket().set_read_timeout(Some(patience)).map_err(Broken::Connection)?;
            self.patience = patience;
        }
        Ok(())
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let sent = match &mut self.carrier {
            Carrier::Plain(socket) => socket.write_all(bytes),
            Carrier::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
        };
        sent.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Broken::Slow,
            _ => Broken::Connection(error),
        })
    }

    /// The body of the next frame; `None` when none came in time.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        loop {
            if let Some(head) = self.come.first_chunk::<4>() {
                let length = frame::body_len(*head).map_err(|why| Broken::Protocol(why.to_string()))?;
                if self.come.len() >= 4 + length {
                    let body = self.come[4..4 + length].to_vec();
                    self.come.drain(..4 + length);
                    return Ok(Some(body));
                }
            }
            if !self.receive()? {
                return Ok(None);
            }
        }
    }

    /// `false`: nothing came in time. What is kept is never longer than a frame and what one read
    /// brings.
    fn receive(&mut self) -> Result<bool, Broken> {
        debug_assert!(self.come.len() <= 4 + MAX_FRAME);
        let mut room = [0; 16 * 1024];
        let read = match &mut self.carrier {
            Carrier::Plain(socket) => socket.read(&mut room),
            Carrier::Tls(tls) => tls.read(&mut room),
        };
        match read {
            Ok(0) => Err(Broken::Closed),
            Ok(count) => {
                self.come.extend_from_slice(&room[..count]);
                Ok(true)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(false),
                ErrorKind::UnexpectedEof => Err(Broken::Closed),
                _ => Err(Broken::Connection(error)),
            },
        }
    }
}

fn connect(address: &CollectorAddress) -> Result<TcpStream, Broken> {
    let cannot = |source: io::Error| Broken::Dial { address: address.to_string(), source };
    let found: Vec<SocketAddr> =
        zone::resolve(&address.host, address.port).map_err(cannot)?.into_iter().take(16).collect();
    let mut failed = io::Error::from(ErrorKind::AddrNotAvailable);
    for target in in_turn(found) {
        match TcpStream::connect_timeout(&target, CONNECT) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(cannot(failed))
}

/// The resolver's order, but for versions, which alternate.
fn in_turn(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = found.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut order = Vec::new();
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            return order;
        }
        order.extend(pair.into_iter().flatten());
    }
}

fn shaken(
    tls: ClientConnection,
    socket: TcpStream,
) -> Result<StreamOwned<ClientConnection, TcpStream>, Broken> {
    socket.set_read_timeout(Some(CONNECT)).map_err(Broken::Connection)?;
    let mut stream = StreamOwned::new(tls, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(|error| Broken::Tls(error.to_string()))?;
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_take_turns_beginning_with_the_resolvers_first() {
        let found = ["[::1]:1", "[::2]:1", "[::3]:1", "192.0.2.1:1"].map(|text| text.parse().unwrap());
        let order: Vec<String> = in_turn(found.to_vec()).iter().map(ToString::to_string).collect();
        assert_eq!(order, ["[::1]:1", "192.0.2.1:1", "[::2]:1", "[::3]:1"]);
    }

    #[test]
    fn addresses_of_collectors_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<CollectorAddress>().map(|a| a.to_string()).ok();
        assert_eq!(read("lab-b").as_deref(), Some("lab-b:14234"));
        assert_eq!(read("tls://lab-b:99").as_deref(), Some("tls://lab-b:99"));
        assert_eq!(read("2001:db8::1").as_deref(), Some("[2001:db8::1]:14234"));
        assert_eq!(read("[2001:db8::1]:5").as_deref(), Some("[2001:db8::1]:5"));
        assert_eq!(read("192.0.2.1:5").as_deref(), Some("192.0.2.1:5"));
        for wrong in ["", "http://x", "x:0", "x:y", "[x]:1", "[::1", "a/b", ":1", "x:99999"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
