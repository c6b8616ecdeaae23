//! The probe socket over Linux's `recvmsg`, `sendmsg` and error queue.

use std::collections::VecDeque;
use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::{c_int, msghdr, socklen_t};
use netaware_units::{Mono, Span, Stamp};
use socket2::{SockAddr, SockAddrStorage};

use super::wait::{Wait, choose};
use super::{Arrival, DontFragment, Stamping, is_refusal};
use crate::ancillary::{Ancillary, CONTROL_BYTES, ClockPair, Control, RealTime, Report, emit_source};
use crate::clock;

#[derive(Debug)]
pub(super) struct System {
    socket: UdpSocket,
    /// Of a connected socket.
    peer: Option<SocketAddr>,
    ipv6: bool,
    stamping: Stamping,
    /// Flags of `SO_TIMESTAMPING` when sends are stamped.
    send_stamp_flags: Option<u32>,
    opened_at: Mono,
    /// What `SO_RCVTIMEO` is set to, in ns; zero: not yet.
    timeout: AtomicI64,
    /// An ICMP answer (errno) met while draining the error queue, which takes it off the socket;
    /// given to the next call. Zero: none.
    refused: AtomicI32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    clocks: RealTime,
    /// Sends that succeeded.
    sends: u32,
    /// The send that the kernel numbers 0: it starts anew after a send that failed, because kernels
    /// differ in whether such a one consumes a number.
    numbered_from: u32,
    /// Stamps that have not come yet; an upper bound.
    awaited: u32,
    /// Stamps taken from the error queue while waiting for something else. Bounded by `STASH`.
    stash: VecDeque<(u32, Stamp)>,
}

impl System {
    pub(super) fn new(socket: UdpSocket, stamping: Stamping) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        let peer = socket.peer_addr().ok();
        let ipv6 = socket.local_addr()?.is_ipv6();
        let stamping = match stamping {
            Stamping::Kernel if set_stamping(socket.as_raw_fd(), RECEIVE_FLAGS).is_ok() => Stamping::Kernel,
            _ => Stamping::Application,
        };
        let system = Self {
            send_stamp_flags: send_stamp_flags(&socket, stamping, peer),
            socket,
            peer,
            ipv6,
            stamping,
            opened_at: clock::now(),
            timeout: AtomicI64::new(0),
            refused: AtomicI32::new(0),
            state: Mutex::new(State::new()),
        };
        system.ask_for_details()?;
        Ok(system)
    }

    /// TTL and marks always; the local address only where it can differ; ICMP only where one peer
    /// is at stake.
    fn ask_for_details(&self) -> io::Result<()> {
        self.set(libc::IP_RECVTTL, libc::IPV6_RECVHOPLIMIT, 1)?;
        self.set(libc::IP_RECVTOS, libc::IPV6_RECVTCLASS, 1)?;
        if self.peer.is_some() {
            self.set(libc::IP_RECVERR, libc::IPV6_RECVERR, 1)
        } else {
            self.set(libc::IP_PKTINFO, libc::IPV6_RECVPKTINFO, 1)
        }
    }

    pub(super) fn receive(&self, buf: &mut [u8], until: Option<Mono>) -> io::Result<Option<Arrival>> {
        self.take_refusal()?;
        loop {
            let timeout = Span(self.timeout.load(Ordering::Relaxed));
            match choose(clock::now(), until, timeout) {
                Wait::Over => return self.try_receive(buf),
                Wait::Block(wanted) => {
                    self.set_timeout(timeout, wanted)?;
                    match self.take(buf, 0) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
                        arrival => return arrival.map(Some),
                    }
                }
                Wait::Poll(left) => {
                    self.drain_error_queue();
                    self.take_refusal()?;
                    if !self.poll(left)? {
                        return Ok(None);
                    }
                    if let Some(arrival) = self.try_receive(buf)? {
                        return Ok(Some(arrival));
                    }
                }
            }
        }
    }

    pub(super) fn try_receive(&self, buf: &mut [u8]) -> io::Result<Option<Arrival>> {
        match self.take(buf, libc::MSG_DONTWAIT) {
            Ok(arrival) => Ok(Some(arrival)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => self.take_refusal().map(|()| None),
                io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            },
        }
    }

    fn take(&self, buf: &mut [u8], flags: c_int) -> io::Result<Arrival> {
        let mut control = Control::new();
        let mut name = Name::new();
        let name_for = if self.peer.is_none() { Some(&mut name) } else { None };
        let (len, told) = receive_message(self.socket.as_raw_fd(), buf, name_for, &mut control, flags)
            .inspect_err(|error| self.forget_refusal(error))?;
        let from = match self.peer {
            Some(peer) => peer,
            None => name.address().ok_or(io::ErrorKind::InvalidData)?,
        };
        let (rx, seen_at) = self.arrival_stamp(&told);
        let Ancillary { to, ttl, traffic_class, .. } = told;
        Ok(Arrival { len, from, to, rx, seen_at, ttl, traffic_class })
    }

    fn arrival_stamp(&self, told: &Ancillary) -> (Stamp, Mono) {
        match self.stamping {
            Stamping::Application => {
                let seen_at = clock::now();
                (Stamp::application(seen_at), seen_at)
            }
            Stamping::Kernel => {
                let pair = ClockPair::read();
                let rx = self.state().clocks.map_or_application(told.stamp, pair, self.opened_at);
                (rx, pair.before)
            }
        }
    }

    /// Whether the socket has something to say before the time is over; a signal counts as silence.
    fn poll(&self, left: Span) -> io::Result<bool> {
        let mut watched = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let nanos = left.or_zero().nanos();
        let left =
            libc::timespec { tv_sec: (nanos / 1_000_000_000) as _, tv_nsec: (nanos % 1_000_000_000) as _ };
        // SAFETY: one valid pollfd, a valid timespec, no signal mask.
        let ready = unsafe { libc::ppoll(&raw mut watched, 1, &raw const left, std::ptr::null()) };
        match ready {
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) }
            }
            0 => Ok(false),
            _ => Ok(true),
        }
    }

    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.take_refusal()?;
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the slice is valid for reading for the whole call.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
        let answer = if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
        let answer = answer.inspect_err(|error| self.forget_refusal(error));
        if let Some(flags) = self.send_stamp_flags {
            self.count_send(answer.is_ok(), flags);
        }
        answer
    }

    fn count_send(&self, left: bool, flags: u32) {
        if left {
            let mut state = self.state();
            state.sends = state.sends.wrapping_add(1);
            state.awaited += 1;
            return;
        }
        self.drain_error_queue();
        let fd = self.socket.as_raw_fd();
        // Taking the option away and setting it again makes the kernel count from 0.
        let restarted = set_stamping(fd, flags & !libc::SOF_TIMESTAMPING_OPT_ID).and(set_stamping(fd, flags));
        debug_assert!(restarted.is_ok(), "both sets of flags have been accepted before");
        let mut state = self.state();
        state.numbered_from = state.sends;
        state.awaited = 0;
    }

    pub(super) fn send_to(&self, bytes: &[u8], to: SocketAddr, from: Option<IpAddr>) -> io::Result<()> {
        let to = SockAddr::from(to);
        let mut control = Control::new();
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: an all-zero header is a valid empty one.
        let mut message: msghdr = unsafe { zeroed() };
        message.msg_name = to.as_ptr().cast_mut().cast();
        message.msg_namelen = to.len();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if let Some(from) = from {
            message.msg_controllen = emit_source(&mut control, from) as _;
            message.msg_control = (&raw mut control.0).cast();
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: all that `message` points at lives until the call returns; sendmsg only reads it.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, flags) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub(super) fn next_sent_stamp(&self) -> Option<(u32, Stamp)> {
        let stashed = self.state().stash.pop_front();
        if stashed.is_some() {
            return stashed;
        }
        while self.state().awaited > 0 {
            match self.next_report()? {
                Reported::Stamp(id, stamp) => return Some((id, stamp)),
                Reported::Other => {}
            }
        }
        None
    }

    /// Empties the error queue, because a queue that holds something keeps `ppoll` from sleeping.
    fn drain_error_queue(&self) {
        while let Some(report) = self.next_report() {
            if let Reported::Stamp(id, stamp) = report {
                let mut state = self.state();
                if state.stash.len() == STASH {
                    state.stash.pop_front();
                }
                state.stash.push_back((id, stamp));
            }
        }
    }

    /// Takes one message off the error queue; `None` when it is empty.
    fn next_report(&self) -> Option<Reported> {
        let mut control = Control::new();
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        let (_, told) = receive_message(self.socket.as_raw_fd(), &mut [], None, &mut control, flags).ok()?;
        let pair = ClockPair::read();
        let mut state = self.state();
        match told.report {
            Some(Report::Sent { id }) => {
                state.awaited = state.awaited.saturating_sub(1);
                let id = state.numbered_from.wrapping_add(id);
                let mapped = told.stamp.and_then(|stamp| state.clocks.map(stamp, pair, self.opened_at));
                if mapped.is_none() {
                    state.clocks.count_fallback();
                }
                Some(mapped.map_or(Reported::Other, |stamp| Reported::Stamp(id, stamp)))
            }
            Some(Report::Refused { errno }) => {
                self.refused.store(errno, Ordering::Relaxed);
                Some(Reported::Other)
            }
            None => Some(Reported::Other),
        }
    }

    fn take_refusal(&self) -> io::Result<()> {
        if self.refused.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        match self.refused.swap(0, Ordering::Relaxed) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// The same ICMP answer lies in the error queue and as an error on the socket. Once the caller
    /// has the latter, the former must not be told again.
    #[cold]
    fn forget_refusal(&self, told: &io::Error) {
        if is_refusal(told) {
            self.drain_error_queue();
            self.refused.store(0, Ordering::Relaxed);
        }
    }

    fn set_timeout(&self, present: Span, wanted: Span) -> io::Result<()> {
        if present != wanted {
            self.socket.set_read_timeout(Some(wanted.to_std()))?;
            self.timeout.store(wanted.nanos(), Ordering::Relaxed);
        }
        Ok(())
    }

    pub(super) fn stamps_sends(&self) -> bool {
        self.send_stamp_flags.is_some()
    }

    pub(super) fn stamped_sends(&self) -> u32 {
        self.state().sends
    }

    /// The counter behind `SO_RXQ_OVFL`, read when it is wanted: no cost per datagram, and what was
    /// dropped after the last arrival counts too.
    pub(super) fn drops(&self) -> u64 {
        let mut figures = [0_u32; 9];
        let mut len = size_of_val(&figures) as socklen_t;
        // SAFETY: the array is writable for `len` bytes.
        let answer = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_MEMINFO,
                (&raw mut figures).cast(),
                &raw mut len,
            )
        };
        if answer == 0 { u64::from(figures[libc::SK_MEMINFO_DROPS as usize]) } else { 0 }
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    pub(super) fn stamp_fallbacks(&self) -> u64 {
        self.state().clocks.fallbacks()
    }

    pub(super) fn set_dont_fragment(&self, rule: DontFragment) -> io::Result<()> {
        let value = match rule {
            DontFragment::Never => libc::IP_PMTUDISC_DONT,
            DontFragment::Kernel => libc::IP_PMTUDISC_DO,
            DontFragment::Probe => libc::IP_PMTUDISC_PROBE,
        };
        // The values of IPv6 are the same numbers.
        self.set(libc::IP_MTU_DISCOVER, libc::IPV6_MTU_DISCOVER, value)
    }

    pub(super) fn path_mtu(&self) -> Option<u32> {
        let (level, name) =
            if self.ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
        let mut mtu: c_int = 0;
        let mut len = size_of::<c_int>() as socklen_t;
        // SAFETY: `mtu` is writable for `len` bytes.
        let answer = unsafe {
            libc::getsockopt(self.socket.as_raw_fd(), level, name, (&raw mut mtu).cast(), &raw mut len)
        };
        if answer == 0 { u32::try_from(mtu).ok() } else { None }
    }

    fn set(&self, ipv4: c_int, ipv6: c_int, value: c_int) -> io::Result<()> {
        let (level, name) = if self.ipv6 { (libc::IPPROTO_IPV6, ipv6) } else { (libc::IPPROTO_IP, ipv4) };
        set_option(self.socket.as_raw_fd(), level, name, value)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new() -> Self {
        Self {
            clocks: RealTime::start(),
            sends: 0,
            numbered_from: 0,
            awaited: 0,
            stash: VecDeque::with_capacity(STASH),
        }
    }
}

/// What came from the error queue.
enum Reported {
    Stamp(u32, Stamp),
    Other,
}

/// Room for the sender's address.
struct Name(SockAddrStorage, socklen_t);

impl Name {
    fn new() -> Self {
        Self(SockAddrStorage::zeroed(), 0)
    }

    fn address(self) -> Option<SocketAddr> {
        // SAFETY: the kernel has written an address of that length.
        unsafe { SockAddr::new(self.0, self.1) }.as_socket()
    }
}

fn receive_message(
    fd: RawFd,
    buf: &mut [u8],
    name: Option<&mut Name>,
    control: &mut Control,
    flags: c_int,
) -> io::Result<(usize, Ancillary)> {
    let mut part = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    // SAFETY: an all-zero header is a valid empty one.
    let mut message: msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control.0).cast();
    message.msg_controllen = CONTROL_BYTES as _;
    let name = name.map(|name| {
        message.msg_name = (&raw mut name.0).cast();
        message.msg_namelen = name.0.size_of();
        &mut name.1
    });
    // SAFETY: every buffer that `message` names lives until the call returns and is as long as it
    // says.
    let len = unsafe { libc::recvmsg(fd, &raw mut message, flags) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    if let Some(name_len) = name {
        *name_len = message.msg_namelen;
    }
    // SAFETY: just filled by recvmsg.
    let told = unsafe { Ancillary::parse(&message) };
    Ok((len.min(buf.len()), told))
}

fn send_stamp_flags(socket: &UdpSocket, stamping: Stamping, peer: Option<SocketAddr>) -> Option<u32> {
    let wanted = stamping == Stamping::Kernel && peer.is_some();
    let flags = RECEIVE_FLAGS | SEND_FLAGS;
    (wanted && set_stamping(socket.as_raw_fd(), flags).is_ok()).then_some(flags)
}

fn set_stamping(fd: RawFd, flags: u32) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed())
}

fn set_option(fd: RawFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let len = size_of::<c_int>() as socklen_t;
    // SAFETY: `value` is readable for `len` bytes.
    let answer = unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

const RECEIVE_FLAGS: u32 = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
/// Taken where the datagram enters the queue of its interface, not where it leaves it: a queue in
/// this host is part of the round trip that an application gets, and a stamp behind it would hide a
/// shaper or a bloated queue on our own interface. Stamps come numbered, and without a copy of the
/// datagram.
const SEND_FLAGS: u32 =
    libc::SOF_TIMESTAMPING_TX_SCHED | libc::SOF_TIMESTAMPING_OPT_ID | libc::SOF_TIMESTAMPING_OPT_TSONLY;
/// asm-generic/socket.h; libc does not have it. Linux 4.12 and later.
const SO_MEMINFO: c_int = 55;
/// Stamps kept for a caller that is slow to fetch them; more than a second of a probe every
/// millisecond.
const STASH: usize = 1024;
