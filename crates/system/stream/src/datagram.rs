//! Datagrams over both IP versions.

mod driver;
mod guests;
mod outgoing;
mod sockets;
mod state;

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use netaware_dual::connect::Wanted;
pub use netaware_dual::datagram::{
    End, Event, SessionStatus, Standing as VersionStanding, UnfitRules, VersionStatus,
};
use netaware_dual::policy::{Decision, Rules};
use netaware_dual::{CannotSwitch, Side};
use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::dual::MAX_DATAGRAM;

use crate::judge::Callback;
use crate::leader::Who;
use crate::opening::{self, ConnectError};
use crate::readiness::Readiness;
use driver::Shared;
use state::State;

/// What a socket of datagrams is made with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DatagramOptions {
    /// Between probes over each version, 50 ms to 15 s: what a version costs that nothing is sent
    /// over (64 bytes of UDP each way), and how soon its failure is noticed.
    pub every: Span,
    /// After a wish datagrams go over both versions until one has come over the new one, but no
    /// longer than this. Zero: never.
    pub overlap: Span,
    /// How long neither version may work.
    pub patience: Span,
    /// How long to wait for the first version that works.
    pub connect_patience: Span,
    /// Which versions are tried. `First` tries the other one only while the first does not work.
    pub wanted: Wanted,
    /// Tried first.
    pub preferred: IpVersion,
    /// Switches by itself; without it only on a wish or where a version does not work. Not by
    /// goodput.
    pub policy: Option<Rules>,
    /// Bytes kept of datagrams that nobody has received; beyond them what comes is dropped.
    pub inbox: u32,
    /// Sessions of a bound socket at the same time.
    pub sessions: usize,
}

impl Default for DatagramOptions {
    fn default() -> Self {
        Self {
            every: Span::from_millis(500),
            overlap: Span::from_millis(500),
            patience: Span::from_secs(60),
            connect_patience: Span::from_secs(10),
            wanted: Wanted::Each,
            preferred: IpVersion::V6,
            policy: None,
            inbox: 4 << 20,
            sessions: 1024,
        }
    }
}

/// Names the other end of a session, at this socket and as long as it lives. That of a connected
/// socket is [`PeerId::CONNECTED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u64);

impl PeerId {
    /// The one that a socket is connected to.
    pub const CONNECTED: Self = Self(1);
}

/// An event, and when and to whom it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramHappened {
    /// On the monotonic clock.
    pub at: Mono,
    /// To this session.
    pub peer: PeerId,
    /// What.
    pub event: Event,
}

/// What a socket has seen beside its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketStatus {
    /// Sessions.
    pub sessions: usize,
    /// Datagrams that came and nobody received in time: the inbox was full.
    pub dropped: u64,
    /// Datagrams that the system dropped, as its buffer was full; both versions.
    pub drops: u64,
    /// Datagrams of no session.
    pub strangers: u64,
}

/// Datagrams over IPv4 and IPv6: they go over one version and change to the other one when that is
/// wanted or the first does not work. They may be lost or come in another order, as with UDP; none
/// comes twice.
///
/// A socket is connected and has one session, or bound and has one for each socket that connects to
/// it. Clones are the same socket; all calls may come from any thread. Dropping the last one ends
/// its sessions.
#[derive(Debug, Clone)]
pub struct DualDatagram {
    shared: Arc<Shared>,
    bound: Arc<Vec<SocketAddr>>,
    _holder: Arc<Holder>,
}

/// Goes with the last clone.
#[derive(Debug)]
struct Holder(Arc<Shared>);

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.judge.set(None);
        let mut state = self.0.lock();
        let now = clock::now();
        for peer in state.peers() {
            state.close(now, peer);
        }
        state.released = true;
        drop(state);
        self.0.call_back();
    }
}

impl DualDatagram {
    /// Connects to a host that has bound one; returns when the first version works, the other one
    /// follows by itself. A host whose name does not have all of its addresses can be given as
    /// several names or addresses with commas between.
    ///
    /// # Errors
    /// No address, no answer in time, a refusal, or rules that do not fit datagrams.
    pub fn connect(host: &str, port: u16, options: DatagramOptions) -> Result<Self, ConnectError> {
        Self::connect_to(host, &opening::resolve(host, port)?, options)
    }

    /// Connects to one of these addresses of one host.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_to(
        host: &str,
        addresses: &[SocketAddr],
        options: DatagramOptions,
    ) -> Result<Self, ConnectError> {
        UnfitRules::check(options.policy.as_ref()).map_err(|why| ConnectError::Host(unfit(why)))?;
        let mut sorted = opening::sorted(addresses);
        if let Wanted::Only(only) = options.wanted {
            sorted[only.other().index()].clear();
        }
        let Some(first) = sorted.iter().flatten().next().copied() else {
            return Err(ConnectError::NoAddress { host: host.to_owned() });
        };
        let now = clock::now();
        let mut state = State::new(options, Side::Opener, [None, None]).map_err(ConnectError::Host)?;
        state.open(now, &sorted).map_err(ConnectError::Host)?;
        let socket = Self::new(state, Vec::new()).map_err(ConnectError::Host)?;
        socket.wait_until_up(now + options.connect_patience, first)?;
        Ok(socket)
    }

    fn wait_until_up(&self, deadline: Mono, first: SocketAddr) -> Result<(), ConnectError> {
        let mut state = self.shared.lock();
        state.receivers += 1;
        let done = |state: &State| {
            let session = state.session(PeerId::CONNECTED);
            session.is_none_or(|it| it.current().is_some()) || state.is_over() || state.is_hopeless()
        };
        state = self.shared.drive(state, Who::Application, Some(deadline), done);
        state.receivers -= 1;
        let ended = state.ended();
        if ended.is_none() && state.session(PeerId::CONNECTED).is_some_and(|it| it.current().is_some()) {
            return Ok(());
        }
        let failed = state.failed.take();
        let address = failed.as_ref().map_or(first, |(address, _)| *address);
        Err(match (ended, failed) {
            (Some(End::Refused(why)), _) => ConnectError::Refused { address, why },
            (_, Some((address, source))) => ConnectError::Failed { address, source },
            _ => ConnectError::Failed { address, source: ErrorKind::TimedOut.into() },
        })
    }

    /// Takes sessions at all addresses of both versions; port 0 is any that is free in both.
    ///
    /// # Errors
    /// The port cannot be had in either version, or rules that do not fit datagrams.
    pub fn bind(port: u16, options: DatagramOptions) -> io::Result<Self> {
        let v6 = sockets::bound(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
        let port = v6.as_ref().ok().and_then(|it| it.local_addr().ok()).map_or(port, |it| it.port());
        let v4 = sockets::bound(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
        match (v4, v6) {
            (Err(error), Err(_)) => Err(error),
            // A host may be without one of the versions.
            (v4, v6) => Self::serve([v4.ok(), v6.ok()], options),
        }
    }

    /// Takes sessions at these addresses alone, at most one of each version.
    ///
    /// # Errors
    /// One of them cannot be had, or there are two of one version.
    pub fn bind_to(addresses: &[SocketAddr], options: DatagramOptions) -> io::Result<Self> {
        let mut bound = [None, None];
        for address in addresses {
            let place = &mut bound[IpVersion::of(address.ip()).index()];
            if place.replace(sockets::bound(*address)?).is_some() {
                return Err(io::Error::new(ErrorKind::InvalidInput, "two addresses of one IP version"));
            }
        }
        if bound.iter().all(Option::is_none) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "no address to bind to"));
        }
        Self::serve(bound, options)
    }

    fn serve(
        sockets: [Option<netaware_io::probe_socket::ProbeSocket>; 2],
        options: DatagramOptions,
    ) -> io::Result<Self> {
        UnfitRules::check(options.policy.as_ref()).map_err(unfit)?;
        let bound: io::Result<Vec<SocketAddr>> =
            sockets.iter().flatten().map(netaware_io::probe_socket::ProbeSocket::local_addr).collect();
        let state = State::new(options, Side::Acceptor, sockets.map(|socket| socket.map(Arc::new)))?;
        Self::new(state, bound?)
    }

    fn new(state: State, bound: Vec<SocketAddr>) -> io::Result<Self> {
        let shared = Shared::new(state)?;
        Ok(Self { _holder: Arc::new(Holder(shared.clone())), shared, bound: Arc::new(bound) })
    }

    /// Where it is bound; none for a connected one.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.bound
    }

    /// Sends one datagram to the peer that this socket is connected to.
    ///
    /// # Errors
    /// As [`Self::send_to_until`].
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.send_to_until(bytes, PeerId::CONNECTED, None)
    }

    /// Sends one datagram to this peer.
    ///
    /// # Errors
    /// As [`Self::send_to_until`].
    pub fn send_to(&self, bytes: &[u8], peer: PeerId) -> io::Result<()> {
        self.send_to_until(bytes, peer, None)
    }

    /// Sends one datagram, of at most [`MAX_DATAGRAM`] bytes; those longer than the path's MTU less
    /// 52 (IPv4) or 72 bytes (IPv6) travel in fragments or not at all, as the system has it for
    /// UDP. Waits while the system's buffer is full.
    ///
    /// # Errors
    /// There is no such peer any more (`NotConnected`), no room in time (`TimedOut`), it is too
    /// long (`InvalidInput`), or what the system says. No error does not mean that it came.
    pub fn send_to_until(&self, bytes: &[u8], peer: PeerId, deadline: Option<Mono>) -> io::Result<()> {
        if bytes.len() > MAX_DATAGRAM {
            let words = format!("a datagram of {} bytes; {MAX_DATAGRAM} is the most", bytes.len());
            return Err(io::Error::new(ErrorKind::InvalidInput, words));
        }
        loop {
            let mut state = self.shared.lock();
            let now = clock::now();
            state.work_if_due(now);
            let (error, at) = match state.send(now, peer, bytes) {
                Ok(()) => {
                    self.shared.leave(state);
                    return Ok(());
                }
                Err(failed) => failed,
            };
            if error.kind() != ErrorKind::WouldBlock {
                self.shared.leave(state);
                return Err(error);
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Err(ErrorKind::TimedOut.into());
            }
            driver::wait_to_write(state, at, deadline);
        }
    }

    /// Waits for a datagram of the peer that this socket is connected to; how many bytes of it are
    /// in `out`, what did not fit is cut off.
    ///
    /// # Errors
    /// As [`Self::recv_from_until`].
    pub fn recv(&self, out: &mut [u8]) -> io::Result<usize> {
        self.recv_from_until(out, None).map(|(count, _)| count)
    }

    /// As [`Self::recv`]; with the peer that it came from.
    ///
    /// # Errors
    /// As [`Self::recv_from_until`].
    pub fn recv_from(&self, out: &mut [u8]) -> io::Result<(usize, PeerId)> {
        self.recv_from_until(out, None)
    }

    /// As [`Self::recv_from`], but not longer than that; a deadline that has passed asks whether
    /// one is there.
    ///
    /// # Errors
    /// Nothing came in time (`TimedOut`), or the session of a connected socket has ended
    /// (`NotConnected`).
    pub fn recv_from_until(&self, out: &mut [u8], deadline: Option<Mono>) -> io::Result<(usize, PeerId)> {
        let mut state = self.shared.lock();
        state.receivers += 1;
        if !state.has_some() {
            let done = |state: &State| state.has_some() || state.is_over();
            state = self.shared.drive(state, Who::Application, deadline, done);
        }
        let received = match (state.receive(out), state.ended()) {
            (Some(received), _) => Ok(received),
            (None, Some(why)) => Err(io::Error::new(ErrorKind::NotConnected, why.to_string())),
            (None, None) => Err(ErrorKind::TimedOut.into()),
        };
        state.receivers -= 1;
        state.received_at = clock::now();
        self.shared.leave(state);
        received
    }

    /// Goes over to this version with the next datagram to this peer and asks it to do the same;
    /// the number by which [`Event::WishEnded`] names that.
    ///
    /// # Errors
    /// It cannot be had now.
    pub fn switch(&self, peer: PeerId, to: IpVersion) -> Result<u32, CannotSwitch> {
        let mut state = self.shared.lock();
        let serial = state.switch(clock::now(), peer, to);
        self.shared.leave(state);
        serial
    }

    /// Refuses wishes of peers and makes none until [`Self::release`] has been called as often; all
    /// sessions, also later ones.
    pub fn hold(&self) {
        let mut state = self.shared.lock();
        let holds = state.holds().saturating_add(1);
        state.hold(holds);
    }

    /// Takes back one [`Self::hold`]; whether there was one.
    pub fn release(&self) -> bool {
        let mut state = self.shared.lock();
        let holds = state.holds();
        state.hold(holds.saturating_sub(1));
        holds > 0
    }

    /// How many holds there are.
    pub fn holds(&self) -> u32 {
        self.shared.lock().holds()
    }

    /// Switches by these rules from now on, or no longer by itself; all sessions, also later ones.
    /// Where there is a callback, it decides, and the rules say what is looked at, how often and at
    /// what cost.
    ///
    /// # Errors
    /// The rules do not fit datagrams.
    pub fn set_policy(&self, rules: Option<Rules>) -> Result<(), UnfitRules> {
        let judged = self.shared.judge.is_there();
        let mut state = self.shared.lock();
        let set = state.set_policy(clock::now(), rules, judged);
        self.shared.leave(state);
        set
    }

    /// Lets this decide, or the rules again; all sessions, also later ones. See [`Callback`].
    pub fn set_policy_callback(&self, callback: Option<Callback>) {
        let judged = callback.is_some();
        self.shared.judge.set(callback);
        let mut state = self.shared.lock();
        let rules = state.rules;
        // They have been looked at before.
        let _ = state.set_policy(clock::now(), rules, judged);
        self.shared.leave(state);
    }

    /// What has happened since the last call, oldest first; the oldest of very many are dropped.
    pub fn happened(&self) -> Vec<DatagramHappened> {
        self.shared.lock().happened()
    }

    /// The oldest of [`Self::decisions`] alone.
    pub fn next_decision(&self) -> Option<(PeerId, Decision)> {
        self.shared.lock().next_decision()
    }

    /// What a policy has decided since the last call, with its evidence and what became of it;
    /// oldest first, the oldest of very many are dropped.
    pub fn decisions(&self) -> Vec<(PeerId, Decision)> {
        self.shared.lock().decisions()
    }

    /// How a session stands; `None` where there is none with that peer any more.
    pub fn status(&self, peer: PeerId) -> Option<SessionStatus> {
        self.shared.lock().session(peer).map(netaware_dual::datagram::Session::status)
    }

    /// Where a peer is reached over this version.
    pub fn address(&self, peer: PeerId, ip: IpVersion) -> Option<SocketAddr> {
        self.shared.lock().address(peer, ip)
    }

    /// Those with which there are sessions.
    pub fn peers(&self) -> Vec<PeerId> {
        self.shared.lock().peers()
    }

    /// What the socket has seen beside its sessions.
    pub fn socket_status(&self) -> SocketStatus {
        self.shared.lock().told()
    }

    /// Ends the session with this peer, and tells it.
    pub fn close(&self, peer: PeerId) {
        self.shared.lock().close(clock::now(), peer);
        self.shared.call_back();
    }

    /// A descriptor that is readable when [`Self::recv_from`] would not wait, and always writable;
    /// as that of [`crate::DualStream::descriptor`].
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        let mut state = self.shared.lock();
        let readiness = match state.readiness.take() {
            Some(readiness) => readiness,
            None => Readiness::new()?,
        };
        let descriptor = readiness.descriptor().try_clone_to_owned();
        state.readiness = Some(readiness);
        state.show();
        drop(state);
        self.shared.call_back();
        descriptor
    }
}

fn unfit(why: UnfitRules) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}
