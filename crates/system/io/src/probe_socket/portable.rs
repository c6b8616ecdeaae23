//! The probe socket over what every system has: the application's stamps, and no word about TTL,
//! drops or path MTU.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use netaware_units::{Mono, Span, Stamp};

use super::{Arrival, DontFragment, Stamping};
use crate::clock;

#[derive(Debug)]
pub(super) struct System {
    socket: UdpSocket,
}

impl System {
    pub(super) fn new(socket: UdpSocket, _: Stamping) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    pub(super) fn receive(&self, buf: &mut [u8], until: Option<Mono>) -> io::Result<Option<Arrival>> {
        let left = until.map(|until| until.since(clock::now()));
        if left.is_some_and(|left| left <= Span::ZERO) {
            return self.try_receive(buf);
        }
        self.socket.set_nonblocking(false)?;
        // Zero would mean for ever.
        let timeout = left.map(|left| left.max(Span::from_micros(1)).to_std());
        let arrival = self.socket.set_read_timeout(timeout).and_then(|()| self.try_receive(buf));
        self.socket.set_nonblocking(true)?;
        arrival
    }

    pub(super) fn try_receive(&self, buf: &mut [u8]) -> io::Result<Option<Arrival>> {
        match self.socket.recv_from(buf) {
            Ok((len, from)) => {
                let seen_at = clock::now();
                Ok(Some(Arrival {
                    len,
                    from,
                    to: None,
                    rx: Stamp::application(seen_at),
                    seen_at,
                    ttl: None,
                    traffic_class: None,
                }))
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            },
        }
    }

    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.socket.send(bytes).map(drop)
    }

    pub(super) fn send_to(&self, bytes: &[u8], to: SocketAddr, from: Option<IpAddr>) -> io::Result<()> {
        match from {
            None => self.socket.send_to(bytes, to).map(drop),
            Some(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(super) fn next_sent_stamp(&self) -> Option<(u32, Stamp)> {
        None
    }

    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(super) fn stamps_sends(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(super) fn stamped_sends(&self) -> u32 {
        0
    }

    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(super) fn drops(&self) -> u64 {
        0
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(super) fn stamp_fallbacks(&self) -> u64 {
        0
    }

    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(super) fn set_dont_fragment(&self, _: DontFragment) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(super) fn path_mtu(&self) -> Option<u32> {
        None
    }
}
