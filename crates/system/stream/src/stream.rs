//! The stream as an application sees it.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use netaware_dual::connect::Wanted;
use netaware_dual::policy::{Decision, Rules};
use netaware_dual::{CannotSwitch, Side, Standing};
use netaware_io::clock;
use netaware_io::tcp_info::TcpInfo;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::Token;

use crate::judge::Callback;
use crate::keeper;
use crate::leader::Who;
use crate::link::Direct;
use crate::opening::{self, ConnectError};
use crate::options::{Happened, Options};
use crate::race;
use crate::readiness::Readiness;
use crate::shared::Shared;
use crate::steer::Steer;

/// Bytes both ways over IPv4 and IPv6. Clones are the same stream; all calls may come from any
/// thread. Dropping the last one ends this direction, and what is still to be sent goes on its way.
#[derive(Debug, Clone)]
pub struct DualStream {
    shared: Arc<Shared>,
    _holder: Arc<Holder>,
}

/// Goes with the last clone.
#[derive(Debug)]
struct Holder(Arc<Shared>);

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.judge.set(None);
        let mut state = self.0.lock();
        state.released = true;
        state.stream.finish();
        state.write(clock::now());
        drop(state);
        self.0.call_back();
    }
}

/// One connection as it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkStatus {
    /// Of the other end.
    pub peer: Option<SocketAddr>,
    /// Which one of its IP version.
    pub generation: u32,
    /// Smoothed round trip, where the kernel tells.
    pub round_trip: Option<Span>,
}

/// How a stream stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Status {
    /// Whether bytes can travel.
    pub standing: Standing,
    /// Where this direction goes.
    pub current: Option<IpVersion>,
    /// The connection over IPv4.
    pub v4: Option<LinkStatus>,
    /// That over IPv6.
    pub v6: Option<LinkStatus>,
    /// Bytes that the peer has.
    pub acknowledged: u64,
    /// Bytes that it may not have.
    pub unacknowledged: u64,
    /// Bytes that came.
    pub received: u64,
}

impl DualStream {
    /// Connects to a host that listens with a [`crate::DualListener`], as [`Options::wanted`] says;
    /// the other connection follows by itself. A host whose name does not have all of its addresses
    /// can be given as several names or addresses with commas between.
    ///
    /// # Errors
    /// No address, no connection, or a refusal.
    pub fn connect(host: &str, port: u16, options: Options) -> Result<Self, ConnectError> {
        Self::connect_to(host, &opening::resolve(host, port)?, options)
    }

    /// Connects to one of these addresses of one host.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_to(host: &str, addresses: &[SocketAddr], options: Options) -> Result<Self, ConnectError> {
        let sorted = opening::sorted(addresses);
        let usable = match options.wanted {
            Wanted::Only(ip) => !sorted[ip.index()].is_empty(),
            Wanted::First | Wanted::Each => !addresses.is_empty(),
        };
        if !usable {
            return Err(ConnectError::NoAddress { host: host.to_owned() });
        }
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(|why| ConnectError::Host(io::Error::other(why.to_string())))?;
        let firsts = sorted.each_ref().map(|addresses| addresses.first().copied());
        let shared = Shared::new(Token(name), Side::Opener, options, firsts).map_err(ConnectError::Host)?;
        let shared = Arc::new(shared);
        race::run(&shared, sorted)?;
        Self::kept(shared).map_err(ConnectError::Host)
    }

    /// A stream of which at least one connection is there.
    pub(crate) fn kept(shared: Arc<Shared>) -> io::Result<Self> {
        keeper::start(shared.clone())?;
        Ok(Self { _holder: Arc::new(Holder(shared.clone())), shared })
    }

    /// A descriptor that is readable when [`Self::recv`] would not wait and writable when
    /// [`Self::send`] would not: for `poll`, `epoll` and event loops. It is not to be read or
    /// written. From the first call on the stream's keeper works for it all the time.
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

    /// Takes bytes to be sent; how many, at least one of some. Waits while the window is full.
    ///
    /// # Errors
    /// The stream has ended or failed.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.send_until(bytes, None)
    }

    /// As [`Self::send`], but not longer than that; a deadline that has passed asks whether there
    /// is room now.
    ///
    /// # Errors
    /// No room came in time (`TimedOut`), or the stream has ended or failed.
    pub fn send_until(&self, bytes: &[u8], deadline: Option<Mono>) -> io::Result<usize> {
        self.send_vectored_until(&[IoSlice::new(bytes)], deadline)
    }

    /// As [`Self::send_until`], of bytes that lie in several places, as if they lay behind each
    /// other: they need no buffer to be put together in, and go in one record as far as it takes
    /// them.
    ///
    /// # Errors
    /// As there.
    pub fn send_vectored_until(&self, parts: &[IoSlice<'_>], deadline: Option<Mono>) -> io::Result<usize> {
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(0);
        }
        let mut state = self.shared.lock();
        state.calls += 1;
        if state.space() == 0 {
            state = self.shared.drive(state, Who::Application, None, deadline, |state, _| {
                state.space() > 0 || state.check().is_err()
            });
        }
        let done = match state.check() {
            Err(error) => Err(error),
            Ok(()) if state.stream.is_finishing() => Err(ErrorKind::BrokenPipe.into()),
            Ok(()) if state.space() == 0 => Err(ErrorKind::TimedOut.into()),
            Ok(()) => {
                let most = state.space().min(MOST_AT_ONCE);
                state.append(parts, most)
            }
        };
        self.shared.leave(state);
        done
    }

    /// Reads what has come; waits until something has. Zero is the end of the peer's direction.
    ///
    /// # Errors
    /// The stream has failed.
    pub fn recv(&self, out: &mut [u8]) -> io::Result<usize> {
        self.recv_until(out, None)
    }

    /// As [`Self::recv`], but not longer than that.
    ///
    /// # Errors
    /// Nothing came in time (`TimedOut`), or the stream has failed.
    pub fn recv_until(&self, out: &mut [u8], deadline: Option<Mono>) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        let mut state = self.shared.lock();
        state.calls += 1;
        let mut count = state.take(out);
        if count == 0 && !state.stream.has_all() && state.check().is_ok() {
            let mut direct = Direct { out, done: 0 };
            state = self.shared.drive(state, Who::Application, Some(&mut direct), deadline, |state, done| {
                let here = done > 0 || state.stream.unread() > 0;
                here || state.stream.has_all() || state.check().is_err()
            });
            count = direct.done;
            if count == 0 {
                count = state.take(out);
            }
        }
        let done = match (count, state.stream.has_all(), state.check()) {
            (0, false, Err(error)) => Err(error),
            (0, false, Ok(())) => Err(ErrorKind::TimedOut.into()),
            _ => Ok(count),
        };
        self.shared.leave(state);
        done
    }

    /// Asks for both directions to go over this IP version; the number by which
    /// [`netaware_dual::Event::WishEnded`] names it.
    ///
    /// # Errors
    /// It cannot be had now.
    pub fn switch(&self, to: IpVersion) -> Result<u32, CannotSwitch> {
        let mut state = self.shared.lock();
        let now = clock::now();
        let serial = state.stream.switch(now, to);
        state.write(now);
        drop(state);
        self.shared.call_back();
        serial
    }

    /// Keeps this direction where it is until [`Self::release`] has been called as often: the
    /// peer's wishes are refused and this end has none. A wish made before waits: where the peer
    /// grants it meanwhile, the peer's direction turns, and this one when it is released. A turn
    /// that has begun ends, and a connection that is lost is left all the same.
    pub fn hold(&self) {
        self.shared.lock().stream.hold();
    }

    /// Takes back one [`Self::hold`]; whether there was one.
    pub fn release(&self) -> bool {
        let mut state = self.shared.lock();
        let now = clock::now();
        let was_held = state.stream.release(now);
        state.write(now);
        drop(state);
        self.shared.call_back();
        was_held
    }

    /// How many holds there are.
    pub fn holds(&self) -> u32 {
        self.shared.lock().stream.holds()
    }

    /// Ends this direction (`Write`), or gives up the whole stream.
    pub fn shutdown(&self, how: Shutdown) {
        let mut state = self.shared.lock();
        if how == Shutdown::Write {
            state.stream.finish();
        } else {
            state.stream.abandon();
        }
        state.write(clock::now());
        drop(state);
        self.shared.call_back();
    }

    /// Waits until the peer has everything and both directions have ended, or until the deadline.
    ///
    /// # Errors
    /// The deadline has passed, or the stream has failed.
    pub fn finish(&self, deadline: Mono) -> io::Result<()> {
        self.shutdown(Shutdown::Write);
        let mut state = self.shared.lock();
        state.calls += 1;
        state = self.shared.drive(state, Who::Application, None, Some(deadline), |state, _| {
            state.stream.standing() != Standing::Open || state.check().is_err()
        });
        let done = match state.stream.standing() {
            Standing::Finished => Ok(()),
            _ => Err(state.check().err().unwrap_or_else(|| ErrorKind::TimedOut.into())),
        };
        self.shared.leave(state);
        done
    }

    /// What has happened since the last call, oldest first; the oldest of very many are dropped.
    pub fn happened(&self) -> Vec<Happened> {
        self.shared.lock().happened.drain(..).collect()
    }

    /// Switches by these rules from now on, or no longer by itself. Where there is a callback, it
    /// decides, and the rules say what is looked at, how often and at what cost.
    pub fn set_policy(&self, rules: Option<Rules>) {
        let judged = self.shared.judge.is_there();
        let mut state = self.shared.lock();
        state.rules = rules;
        state.steer = Steer::made(rules, judged, clock::now());
    }

    /// The rules that it has been given, which a callback may overrule.
    pub fn policy(&self) -> Option<Rules> {
        self.shared.lock().rules
    }

    /// Lets this decide, or the rules again; without rules it is shown what bulk transfer looks at.
    /// See [`Callback`].
    pub fn set_policy_callback(&self, callback: Option<Callback>) {
        let judged = callback.is_some();
        self.shared.judge.set(callback);
        let mut state = self.shared.lock();
        state.steer = Steer::made(state.rules, judged, clock::now());
    }

    /// What a policy has decided since the last call, with its evidence and what became of it;
    /// oldest first, the oldest of very many are dropped.
    pub fn decisions(&self) -> Vec<Decision> {
        let mut state = self.shared.lock();
        std::iter::from_fn(|| state.decisions.take()).collect()
    }

    /// The oldest of [`Self::decisions`] alone.
    pub fn next_decision(&self) -> Option<Decision> {
        self.shared.lock().decisions.take()
    }

    /// Where the other end of the connection over this IP version is, of the one there is or was
    /// last. Behind a translator it may be an address of the other IP version.
    pub fn peer_address(&self, ip: IpVersion) -> Option<SocketAddr> {
        self.shared.lock().peers[ip.index()]
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        let state = self.shared.lock();
        let link = |at: usize| {
            let link = state.links[at].as_ref()?;
            Some(LinkStatus {
                peer: link.socket.peer_addr().ok(),
                generation: link.generation,
                round_trip: TcpInfo::read(&link.socket).map(|info| info.rtt).filter(|rtt| *rtt > Span::ZERO),
            })
        };
        Status {
            standing: state.stream.standing(),
            current: state.stream.current(),
            v4: link(0),
            v6: link(1),
            acknowledged: state.stream.acked(),
            unacknowledged: state.kept.len(),
            received: state.stream.received(),
        }
    }

    /// Ends a connection as if the network had: for tests of what then happens.
    #[doc(hidden)]
    pub fn cut(&self, ip: IpVersion) {
        if let Some(link) = &self.shared.lock().links[ip.index()] {
            let _ = link.socket.shutdown(Shutdown::Both);
        }
        self.shared.call_back();
    }
}

impl Read for &DualStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.recv(out)
    }
}

impl Write for &DualStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send_vectored_until(parts, None)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for DualStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.recv(out)
    }
}

impl Write for DualStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send_vectored_until(parts, None)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copied before the next write; larger sends come back for more.
const MOST_AT_ONCE: usize = 512 * 1024;
