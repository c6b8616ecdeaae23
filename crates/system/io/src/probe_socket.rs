//! A UDP socket whose datagrams know when they left and when they came.
//!
//! With [`Stamping::Kernel`] arrivals carry the kernel's software stamp and, on a connected socket,
//! departures too: the kernel gives those through the error queue, from where
//! [`ProbeSocket::sent_stamps`] takes them. The stamps of a network card are not asked for: a
//! card's clock is another clock, and without a card to prove the mapping on we would print
//! precision that nobody has checked.
//!
//! Waiting is a plain blocking `recvmsg` wherever the deadline is far enough. Measured on loopback
//! (64 B, both ends alike, p50 of the round trip): blocking 9.2 us, `ppoll` then `recvmsg` 10.9 us,
//! sockperf 9.9 us. Waiting awake is the driver's choice, see [`crate::driver::AnswerWait`].
//!
//! Outside Linux everything works with the application's stamps; TTL, destination address and drops
//! are absent.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(all(test, target_os = "linux"))]
mod tests;
#[cfg(target_os = "linux")]
mod wait;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

#[cfg(target_os = "linux")]
use linux::System;
use netaware_units::{Mono, Stamp};
#[cfg(not(target_os = "linux"))]
use portable::System;

/// Who takes the stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stamping {
    /// The program, around its system calls.
    Application,
    /// The kernel's network stack, where the system offers it.
    #[default]
    Kernel,
}

/// Who may cut a datagram that is larger than the path allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DontFragment {
    /// Fragmenting is allowed, here and (IPv4) on the way.
    Never,
    /// Not fragmented; the kernel refuses what exceeds the path MTU that it has learned
    /// (`IP_PMTUDISC_DO`).
    Kernel,
    /// Not fragmented; only the device's MTU limits what leaves (`IP_PMTUDISC_PROBE`).
    Probe,
}

/// A datagram that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes of it in the buffer; what did not fit there is cut off.
    pub len: usize,
    /// Its sender.
    pub from: SocketAddr,
    /// The local address that it was sent to, on a socket that is not connected. An answer leaves
    /// from it.
    pub to: Option<IpAddr>,
    /// When it came.
    pub rx: Stamp,
    /// When the program had it: `rx` and the wake-up.
    pub seen_at: Mono,
    /// TTL (IPv4) or hop limit (IPv6) that it came with.
    pub ttl: Option<u8>,
    /// DSCP and ECN that it came with, as the byte in its header.
    pub traffic_class: Option<u8>,
}

/// Takes part in a measurement. One thread receives at a time; any thread may send.
#[derive(Debug)]
pub struct ProbeSocket {
    system: System,
}

impl ProbeSocket {
    /// Prepares a bound, and possibly connected, socket. Fails only if the socket itself is
    /// unusable: a system that refuses kernel stamps gives [`Stamping::Application`], visible in
    /// each stamp.
    ///
    /// A connected socket also reports what ICMP says about its datagrams and what the local device
    /// queue drops (`IP_RECVERR`); an unconnected one does not, so that nobody on the way can
    /// disturb a responder.
    pub fn new(socket: UdpSocket, stamping: Stamping) -> io::Result<Self> {
        Ok(Self { system: System::new(socket, stamping)? })
    }

    /// Waits for a datagram until the deadline (`None`: for ever). `Ok(None)` on timeout or when a
    /// signal came.
    ///
    /// On a connected socket an ICMP answer to an *earlier* datagram comes as an error:
    /// `ConnectionRefused`, `HostUnreachable`, `NetworkUnreachable`, or EMSGSIZE. The socket stays
    /// usable; see [`is_refusal`].
    pub fn receive(&self, buf: &mut [u8], until: Option<Mono>) -> io::Result<Option<Arrival>> {
        self.system.receive(buf, until)
    }

    /// Takes a datagram that is already there. Errors as in [`Self::receive`].
    pub fn try_receive(&self, buf: &mut [u8]) -> io::Result<Option<Arrival>> {
        self.system.try_receive(buf)
    }

    /// Sends to the connected peer. Never blocks: a full buffer is `WouldBlock`, a full device
    /// queue ENOBUFS.
    ///
    /// An error may also be the ICMP answer to an earlier datagram, as in [`Self::receive`]; this
    /// one has then not left.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.system.send(bytes)
    }

    /// Sends from an unconnected socket, from the given local address when the socket is bound to
    /// all of them. Never blocks. No transmit stamp is taken.
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr, from: Option<IpAddr>) -> io::Result<()> {
        self.system.send_to(bytes, to, from)
    }

    /// Takes the transmit stamps that have come: which send, counting those that succeeded from 0,
    /// and when it left. A stamp may be missing (a dropped datagram, a stepped clock) and is then
    /// never given.
    pub fn sent_stamps(&self) -> impl Iterator<Item = (u32, Stamp)> + '_ {
        std::iter::from_fn(|| self.system.next_sent_stamp())
    }

    /// Whether sends on this socket get transmit stamps.
    pub fn stamps_sends(&self) -> bool {
        self.system.stamps_sends()
    }

    /// How many sends have succeeded on a socket that stamps them: the number of the next one in
    /// [`Self::sent_stamps`].
    pub(crate) fn stamped_sends(&self) -> u32 {
        self.system.stamped_sends()
    }

    /// Datagrams that this socket has dropped since it exists, because its buffer was full.
    pub fn drops(&self) -> u64 {
        self.system.drops()
    }

    /// Where it is bound.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket().local_addr()
    }

    /// The socket itself, for its options. Receiving on it directly would lose stamps.
    pub fn socket(&self) -> &UdpSocket {
        self.system.socket()
    }

    /// Stamps of the application given where the kernel's were asked for: the kernel had none, or
    /// the clock stepped.
    pub fn stamp_fallbacks(&self) -> u64 {
        self.system.stamp_fallbacks()
    }

    /// Says who may fragment from now on. Outside Linux: unsupported.
    pub fn set_dont_fragment(&self, rule: DontFragment) -> io::Result<()> {
        self.system.set_dont_fragment(rule)
    }

    /// What the kernel believes the path MTU to be, of a connected socket.
    pub fn path_mtu(&self) -> Option<u32> {
        self.system.path_mtu()
    }
}

/// Whether an error of a connected socket is the network's or the peer's answer to an earlier
/// datagram, after which the socket works as before.
pub fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied};
    let kind = error.kind();
    matches!(kind, ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied)
        || is_too_big(error)
        || is_protocol_refusal(error)
}

/// Whether a datagram exceeded the path MTU that the system knows.
pub(crate) fn is_too_big(error: &io::Error) -> bool {
    #[cfg(unix)]
    let too_big = error.raw_os_error() == Some(libc::EMSGSIZE);
    #[cfg(not(unix))]
    let too_big = error.kind() == io::ErrorKind::FileTooLarge;
    too_big
}

/// The rarer ICMP codes: protocol unreachable, host isolated, source route failed, parameter
/// problem.
fn is_protocol_refusal(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    let rare = [libc::ENOPROTOOPT, libc::EOPNOTSUPP, libc::ENONET, libc::EPROTO, libc::EHOSTDOWN];
    #[cfg(not(target_os = "linux"))]
    let rare: [i32; 0] = [];
    error.raw_os_error().is_some_and(|errno| rare.contains(&errno))
}
