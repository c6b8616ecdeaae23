//! The thread behind a reflector's socket: it blocks in the kernel between packets and costs
//! nothing then.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use netaware_probe::stamp::reflector::{Incoming, Reflector, ReflectorCounts, ReflectorSettings};
use netaware_units::{ClockSource, Mono, Span};
use netaware_wire::stamp::ErrorEstimate;
use socket2::SockRef;

use super::clock_quality;
use crate::clock;
use crate::options::{ConnectError, Reuse, SocketOptions, bind_udp, header};
use crate::probe_socket::{Arrival, ProbeSocket, Stamping};
use crate::stop::StopFlag;
use crate::zone::ZonedIp;

/// A reflector that is bound to an address; [`ReflectorSocket::run`] answers.
#[derive(Debug)]
pub struct ReflectorSocket {
    socket: ProbeSocket,
    local: SocketAddr,
    reflector: Reflector,
    /// DSCP that the socket has now.
    dscp: u8,
    quality: ErrorEstimate,
    quality_at: Mono,
}

/// Why there is no reflector.
#[derive(Debug, thiserror::Error)]
pub enum ReflectorError {
    /// The address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] ConnectError),
    /// A socket that cannot be used.
    #[error("cannot use the UDP socket on {local}: {source}")]
    Socket {
        /// Where it is bound.
        local: SocketAddr,
        /// What the system answered.
        source: io::Error,
    },
}

impl ReflectorSocket {
    /// Listens on an address; port 0 lets the system choose.
    ///
    /// # Errors
    /// It is taken, or not permitted: ports below 1024 need CAP_NET_BIND_SERVICE.
    pub fn bind(local: SocketAddr, settings: ReflectorSettings) -> Result<Self, ReflectorError> {
        let socket = bind_udp(local, &SocketOptions::default(), Reuse::No)?;
        let unusable = |source| ReflectorError::Socket { local, source };
        let socket = ProbeSocket::new(socket, Stamping::Kernel).map_err(unusable)?;
        let local = socket.local_addr().map_err(unusable)?;
        Ok(Self {
            socket,
            local,
            reflector: Reflector::new(settings),
            dscp: 0,
            quality: clock_quality(),
            quality_at: clock::now(),
        })
    }

    /// Where it listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Answers until the flag is raised and somebody has called [`wake`]; `admits` says who is
    /// answered at all.
    ///
    /// # Errors
    /// The socket can no longer be used.
    pub fn run(mut self, stop: &StopFlag, admits: &dyn Fn(IpAddr) -> bool) -> io::Result<ReflectorCounts> {
        let mut packet = vec![0; LARGEST];
        while !stop.is_raised() {
            let until = clock::now() + LOOK_AT_STOP;
            if let Some(arrival) = self.socket.receive(&mut packet, Some(until))?
                && admits(arrival.from.ip())
            {
                self.answer(&mut packet, &arrival);
            }
        }
        Ok(self.reflector.counts())
    }

    fn answer(&mut self, packet: &mut [u8], arrival: &Arrival) {
        let Some(packet) = packet.get_mut(..arrival.len) else { return };
        let zero = clock::wall_at_zero_quickly();
        let incoming = Incoming {
            now: arrival.seen_at,
            received_at: zero.plus(arrival.rx.at),
            from: arrival.from,
            to: arrival.to,
            port: self.local.port(),
            ttl: arrival.ttl,
            traffic_class: arrival.traffic_class,
            stamped_by_kernel: arrival.rx.by != ClockSource::Application,
            error: self.quality(arrival.seen_at),
            synchronised_by: if self.quality.synchronised { NTP } else { NOTHING },
        };
        let Ok(ready) = self.reflector.take(&incoming, packet) else { return };
        self.mark(ready.dscp);
        ready.seal(packet, zero.plus(clock::now()), self.reflector.key());
        // An answer that cannot leave is a loss to the sender, as on the network.
        let _ = self.socket.send_to(packet, arrival.from, arrival.to);
    }

    /// Looked at every few seconds: without news a bound grows by 500 us a second.
    fn quality(&mut self, now: Mono) -> ErrorEstimate {
        if now.since(self.quality_at) > QUALITY_LASTS {
            self.quality = clock_quality();
            self.quality_at = now;
        }
        self.quality
    }

    fn mark(&mut self, dscp: u8) {
        let socket = SockRef::from(self.socket.socket());
        if dscp != self.dscp && header::set_dscp(&socket, self.local.is_ipv6(), dscp).is_ok() {
            self.dscp = dscp;
        }
    }
}

/// Makes a reflector look at its flag at once.
pub fn wake(local: SocketAddr) {
    let ip = match local.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        _ => ZonedIp::of(local),
    };
    if let Ok(socket) = UdpSocket::bind(ip.at(0)) {
        let _ = socket.send_to(b"", ip.at(local.port()));
    }
}

/// No UDP datagram is longer.
const LARGEST: usize = 65_535;
const LOOK_AT_STOP: Span = Span::from_secs(1);
const QUALITY_LASTS: Span = Span::from_secs(4);
/// IANA, STAMP Synchronization Sources: the kernel does not say whether NTP or PTP; both are
/// steered alike.
const NTP: u8 = 1;
/// IANA: local free running.
const NOTHING: u8 = 5;
