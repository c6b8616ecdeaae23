//! Takes datagrams from the system with their kernel stamps: one per call, many per call, or
//! merged.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use netaware_units::{ClockSource, Mono, Span};
use netaware_wire::control::{UdpPlan, UdpReceive};

use super::account::{Account, ArrivedAt};
use crate::ancillary::{Ancillary, ClockPair, Control, RealTime};

/// Buffers for one call. Nothing in here is reallocated after `new`: the headers point into it.
pub(super) struct Inbox<'a> {
    socket: &'a UdpSocket,
    how: UdpReceive,
    stride: usize,
    bytes: Vec<u8>,
    controls: Vec<Control>,
    parts: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    clocks: RealTime,
    opened_at: Mono,
    naps: Naps,
    calls: u64,
    parcels: u64,
}

impl<'a> Inbox<'a> {
    /// For a socket that was [asked](ask) at `opened_at`.
    pub(super) fn new(socket: &'a UdpSocket, plan: &UdpPlan, opened_at: Mono) -> Self {
        let (count, stride) = match plan.receive {
            UdpReceive::Single => (1, one_datagram(plan)),
            UdpReceive::Mmsg => (MESSAGES, one_datagram(plan)),
            UdpReceive::Gro => (MERGED, LARGEST),
        };
        let mut inbox = Self {
            socket,
            how: plan.receive,
            stride,
            bytes: vec![0; stride * count],
            controls: (0..count).map(|_| Control::new()).collect(),
            parts: Vec::with_capacity(count),
            // SAFETY: an all-zero header is valid: no name, no data, no control messages.
            messages: vec![unsafe { std::mem::zeroed() }; count],
            clocks: RealTime::start(),
            opened_at,
            naps: Naps::new(socket, plan),
            calls: 0,
            parcels: 0,
        };
        inbox.connect_parts();
        inbox
    }

    /// Waits for datagrams and shows all that came to the account. The wait ends after `LOOK_UP`,
    /// as an error of kind `WouldBlock`.
    pub(super) fn receive(&mut self, account: &mut Account) -> io::Result<()> {
        if !self.naps.are_on() {
            self.take(account, libc::MSG_WAITFORONE)?;
            self.naps.woke();
            return Ok(());
        }
        match self.take(account, libc::MSG_DONTWAIT) {
            Ok(got) if got == self.messages.len() => Ok(()),
            Ok(_) => {
                self.naps.nap_after_some();
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.naps.nap_after_none();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Shows all that lies in the socket to the account, without waiting, and takes no longer than
    /// until then: a sender that does not stop fills the socket again and again.
    pub(super) fn drain(&mut self, account: &mut Account, until: Mono) {
        while crate::clock::now() < until {
            match self.take(account, libc::MSG_DONTWAIT) {
                Ok(_) => {}
                Err(error) if crate::probe_socket::is_refusal(&error) => {}
                Err(_) => return,
            }
        }
    }

    /// One call; gives how many messages came.
    fn take(&mut self, account: &mut Account, flags: libc::c_int) -> io::Result<usize> {
        self.calls += 1;
        for (message, control) in self.messages.iter_mut().zip(&self.controls) {
            message.msg_hdr.msg_controllen = control.0.len() as _;
        }
        // SAFETY: every header points at one part and one control buffer of `self`, none of which
        // has moved. The call writes only there.
        let got = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                self.messages.len() as libc::c_uint,
                flags,
                std::ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        self.parcels += got as u64;
        let pair = ClockPair::read();
        for index in 0..got {
            self.show(index, pair, account);
        }
        Ok(got)
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// What came from the system, each a datagram or several that the kernel had merged.
    pub(super) fn parcels(&self) -> u64 {
        self.parcels
    }

    #[inline]
    fn show(&mut self, index: usize, pair: ClockPair, account: &mut Account) {
        let Some(message) = self.messages.get(index) else { return };
        let length = (message.msg_len as usize).min(self.stride);
        // SAFETY: the kernel has just filled this header.
        let told = unsafe { Ancillary::parse(&message.msg_hdr) };
        let datagram = &self.bytes[index * self.stride..][..length];
        let stamp = self.clocks.map_or_application(told.stamp, pair, self.opened_at);
        let arrived = ArrivedAt { at: stamp.at, by_kernel: stamp.by == ClockSource::Kernel };
        if self.how == UdpReceive::Gro {
            account.take_merged(datagram, told.segment.map_or(length, usize::from), arrived);
        } else {
            account.take(datagram, arrived);
        }
    }

    fn connect_parts(&mut self) {
        for buffer in self.bytes.chunks_exact_mut(self.stride) {
            self.parts.push(libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() });
        }
        for ((message, part), control) in
            self.messages.iter_mut().zip(&mut self.parts).zip(&mut self.controls)
        {
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = (&raw mut control.0).cast();
        }
    }
}

/// Lets datagrams gather while a stream is running fast.
///
/// Somebody who blocks in `recv` must be woken, by an interrupt to his core that on a virtual
/// machine costs the waker about as much as the datagram itself, and on one host it is the sender
/// who pays. So while datagrams keep coming the receiver sleeps by the clock instead, [`NAP`] at a
/// time, and takes what has gathered. Measured on loopback in one run, million datagrams/s without
/// and with naps: 64 B merged 24 and 44, 1472 B merged 6.0 and 10.0, 64 B single 0.21 and 0.41.
/// Stamps are the kernel's, so nothing measured depends on when it wakes. A receive buffer too
/// small to gather in (no privilege) keeps the receiver blocking.
#[derive(Debug)]
struct Naps {
    allowed: bool,
    /// Empty looks since the last datagram; `None` while blocking.
    idle: Option<u32>,
    _precise: crate::pacer::PreciseSleep,
}

impl Naps {
    fn new(socket: &UdpSocket, plan: &UdpPlan) -> Self {
        let buffer = socket2::SockRef::from(socket).recv_buffer_size().unwrap_or(0);
        let is_fast = plan.gap_ps.is_none_or(|gap| gap / u64::from(plan.burst.max(1)) < FAST_GAP_PS);
        Self { allowed: is_fast && buffer >= ROOM, idle: None, _precise: crate::pacer::precise_sleep() }
    }

    fn are_on(&self) -> bool {
        self.idle.is_some()
    }

    fn woke(&mut self) {
        if self.allowed {
            self.idle = Some(0);
        }
    }

    fn nap_after_some(&mut self) {
        self.idle = Some(0);
        crate::clock::sleep(NAP);
    }

    fn nap_after_none(&mut self) {
        let idle = self.idle.unwrap_or(0) + 1;
        self.idle = (idle < IDLE_LOOKS).then_some(idle);
        crate::clock::sleep(NAP);
    }
}

/// Datagrams that this socket dropped because its buffer was full, so far. The same counter as
/// `SO_RXQ_OVFL` tells, but that one comes only with the next datagram, and after the last drop
/// there may be none. `None` where the system does not tell.
pub(super) fn socket_drops(socket: &UdpSocket) -> Option<u64> {
    let mut info = [0_u32; MEMINFO_WORDS];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: `info` has room for `length` bytes.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (status == 0).then(|| info[libc::SK_MEMINFO_DROPS as usize].into())
}

/// Asks for a large buffer past the system's limit, if we may.
pub(super) fn force_receive_buffer(socket: &UdpSocket, bytes: u32) {
    let _ = set(socket, libc::SOL_SOCKET, SO_RCVBUFFORCE, bytes as libc::c_int);
}

/// Room for what the plan says, a little more so that a longer one is seen to be longer.
fn one_datagram(plan: &UdpPlan) -> usize {
    (plan.length as usize + 64).clamp(2048, LARGEST)
}

/// Asks for stamps and merging. What is refused is missing in the result: no stamps, no gaps; no
/// merging, one datagram per message.
pub(super) fn ask(socket: &UdpSocket, plan: &UdpPlan) {
    if plan.receive == UdpReceive::Gro {
        let _ = set(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
    }
    let software = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, software as libc::c_int);
}

fn set(socket: &UdpSocket, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: all of these options take an int.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

const LARGEST: usize = 1 << 16;
/// Datagrams per call when they are not merged; not tuned.
const MESSAGES: usize = 64;
/// Merged messages per call: half a megabyte of buffers, to stay in the second-level cache; not
/// tuned.
const MERGED: usize = 8;
/// At 34 M datagrams/s, merged, 300 KiB gather meanwhile.
const NAP: Span = Span::from_micros(100);
/// Five milliseconds without a datagram: block again.
const IDLE_LOOKS: u32 = 50;
/// Slower streams are not worth napping for.
const FAST_GAP_PS: u64 = 200_000_000;
/// Receive buffer, as the kernel counts it, that holds ten naps at full speed.
const ROOM: usize = 8 << 20;
/// asm-generic/socket.h; not in libc.
const SO_MEMINFO: libc::c_int = 55;
/// asm-generic/socket.h.
const SO_RCVBUFFORCE: libc::c_int = 33;
const MEMINFO_WORDS: usize = 9;
