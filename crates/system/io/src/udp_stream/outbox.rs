//! Hands datagrams to the system: one by one, many per call, or one buffer that is cut on the way
//! out.

use std::io;
use std::net::UdpSocket;

use netaware_units::{Mono, Span};
use netaware_wire::control::{UdpPlan, UdpSend};
use netaware_wire::datagram::{HEADER_LEN, Header, Kind, MAX_PAYLOAD};
use socket2::SockRef;

use super::refusals::{Answers, may_be_about_another};
use crate::clock;

/// Datagrams of one flow, laid out one after the other in a buffer that is never copied by us. Of
/// each only the number and the time change between calls.
#[derive(Debug)]
pub(super) struct Outbox<'a> {
    socket: &'a UdpSocket,
    flow: u32,
    length: usize,
    /// `how` = Gso: datagrams per segmented buffer.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is cut there"))]
    per_buffer: usize,
    /// Whether the socket cuts what it is given. Then it refuses even a single datagram that does
    /// not fit one packet of the path.
    is_cutting: bool,
    how: UdpSend,
    bytes: Vec<u8>,
    sent: u64,
    calls: u64,
    answers: Answers,
}

impl<'a> Outbox<'a> {
    pub(super) fn new(socket: &'a UdpSocket, flow: u32, plan: &UdpPlan) -> Self {
        let length = (plan.length as usize).clamp(HEADER_LEN, MAX_PAYLOAD);
        let wanted = if plan.gap_ps.is_some() { UdpSend::Single } else { plan.send };
        let how = if cfg!(target_os = "linux") { wanted } else { UdpSend::Single };
        let per_buffer = (most_at_once(socket) / length).clamp(1, MOST_SEGMENTS);
        let count = match how {
            UdpSend::Single | UdpSend::LaunchTime => 1,
            UdpSend::Mmsg => MESSAGES,
            UdpSend::Gso => per_buffer,
        };
        let mut outbox = Self {
            socket,
            flow,
            length,
            per_buffer,
            is_cutting: how == UdpSend::Gso && per_buffer > 1,
            how,
            bytes: vec![0; length * count],
            sent: 0,
            calls: 0,
            answers: Answers::default(),
        };
        outbox.lay_out();
        outbox.prepare(plan);
        outbox
    }

    /// Sends the next one or more datagrams, at most `most`; gives how many left. An error means
    /// that none did.
    #[inline]
    pub(super) fn send(&mut self, most: u64, now: Mono) -> io::Result<u64> {
        let first = self.try_to_send(most, now);
        let sent =
            if first.is_ok() { first } else { self.send_again(first, now, |it| it.try_to_send(most, now)) }?;
        self.sent += sent;
        Ok(sent)
    }

    /// After an error: tries once more where it may have been about an earlier datagram, and notes
    /// what the system answered.
    #[cold]
    fn send_again<T>(
        &mut self,
        first: io::Result<T>,
        now: Mono,
        again: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        self.answers.begin(now);
        let Err(error) = first else { return first };
        if !may_be_about_another(&error) {
            self.answers.note(&error, now, 1);
            return Err(error);
        }
        let second = again(self);
        match &second {
            Ok(_) => self.answers.note(&error, now, 0),
            Err(error) => self.answers.note(error, now, 1),
        }
        second
    }

    #[inline]
    fn try_to_send(&mut self, most: u64, now: Mono) -> io::Result<u64> {
        self.calls += 1;
        match self.how {
            UdpSend::Single | UdpSend::LaunchTime => {
                self.number(1, now);
                self.socket.send(&self.bytes).map(|_| 1)
            }
            UdpSend::Mmsg => self.send_many(most, now),
            UdpSend::Gso => self.send_cut(most, now),
        }
    }

    /// Times of what the system answers count from here.
    pub(super) fn begin(&mut self, at: Mono) {
        self.answers.begin(at);
    }

    /// What the system answered to sends that failed.
    pub(super) fn answers(&mut self) -> Vec<netaware_record::SendRefusal> {
        std::mem::take(&mut self.answers).finish()
    }

    /// Whether the system takes times with datagrams and something behind the socket keeps them.
    #[cfg(target_os = "linux")]
    pub(super) fn can_give_times(&self) -> bool {
        super::queue::releases_at_given_times(self.socket).is_ok() && set_launch_times(self.socket).is_ok()
    }

    /// Hands over the next datagram, which the queueing discipline keeps until then.
    #[cfg(target_os = "linux")]
    pub(super) fn send_to_leave_at(&mut self, at: Mono) -> io::Result<()> {
        let first = self.try_to_hand_over(at);
        if first.is_ok() { first } else { self.send_again(first, at, |it| it.try_to_hand_over(at)) }?;
        self.sent += 1;
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn try_to_hand_over(&mut self, at: Mono) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        self.calls += 1;
        self.number(1, at);
        let mut part = libc::iovec { iov_base: self.bytes.as_mut_ptr().cast(), iov_len: self.length };
        let mut control = LaunchTime::new(at);
        // SAFETY: an all-zero header is a valid empty one.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<LaunchTime>() as _;
        // SAFETY: all that `message` points at lives until the call returns.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) fn length(&self) -> u64 {
        self.length as u64
    }

    /// Tells the receiver how many were sent. Several times, because it may be lost; spaced,
    /// because a full queue that lost one loses its neighbours too.
    pub(super) fn say_end(&self) {
        let mut bytes = [0; HEADER_LEN];
        Header { kind: Kind::End, flow: self.flow, seq: self.sent, sent_at: clock::now().0 }.emit(&mut bytes);
        for _ in 0..ENDS {
            clock::sleep(BETWEEN_ENDS);
            let _ = self.socket.send(&bytes);
        }
    }

    fn lay_out(&mut self) {
        let mut noise = netaware_stats::rng::SplitMix64::new(u64::from(self.flow));
        for datagram in self.bytes.chunks_exact_mut(self.length) {
            datagram.fill_with(|| noise.next_u64() as u8);
            Header { kind: Kind::Data, flow: self.flow, seq: 0, sent_at: 0 }.emit(datagram);
        }
    }

    /// Writes number and time into the first `count` datagrams.
    #[inline]
    fn number(&mut self, count: usize, now: Mono) {
        let at = now.0.to_be_bytes();
        for (datagram, seq) in self.bytes.chunks_exact_mut(self.length).take(count).zip(self.sent..) {
            datagram[SEQ..SEQ + 8].copy_from_slice(&seq.to_be_bytes());
            datagram[SENT_AT..SENT_AT + 8].copy_from_slice(&at);
        }
    }

    fn prepare(&self, plan: &UdpPlan) {
        // A blocked send returns and looks at the stop flag.
        let _ = self.socket.set_write_timeout(Some(super::LOOK_UP.to_std()));
        if plan.gap_ps.is_none() && plan.window.is_none() {
            set_send_buffer(self.socket);
        }
        if self.is_cutting {
            set_segment(self.socket, self.length);
        }
    }

    #[cfg(target_os = "linux")]
    fn send_many(&mut self, most: u64, now: Mono) -> io::Result<u64> {
        use std::os::fd::AsRawFd;
        let count = MESSAGES.min(usize::try_from(most).unwrap_or(MESSAGES));
        self.number(count, now);
        let mut parts: [libc::iovec; MESSAGES] = std::array::from_fn(|index| libc::iovec {
            iov_base: self.bytes[index * self.length..].as_mut_ptr().cast(),
            iov_len: self.length,
        });
        // SAFETY: an all-zero header is valid: no name, no data, no control messages.
        let mut messages: [libc::mmsghdr; MESSAGES] = unsafe { std::mem::zeroed() };
        for (message, part) in messages.iter_mut().zip(&mut parts) {
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: the first `count` messages point at datagrams inside `bytes`, which outlives the
        // call.
        let sent = unsafe {
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count as libc::c_uint, 0)
        };
        u64::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// A path whose MTU is below the datagram cannot be served by segmentation, not even for a
    /// single one; an old kernel takes 64 segments only. We try fewer, and then ordinary datagrams,
    /// which IP cuts up where they do not fit.
    #[cfg(target_os = "linux")]
    fn send_cut(&mut self, most: u64, now: Mono) -> io::Result<u64> {
        let count = self.per_buffer.min(usize::try_from(most).unwrap_or(self.per_buffer));
        self.number(count, now);
        match self.socket.send(&self.bytes[..count * self.length]) {
            Ok(_) => Ok(count as u64),
            Err(error) if self.is_cutting && is_segmentation_refused(&error) => {
                self.per_buffer = if count > SEGMENTS_OF_OLD { SEGMENTS_OF_OLD } else { 1 };
                self.is_cutting = self.per_buffer > 1;
                if !self.is_cutting {
                    set_segment(self.socket, 0);
                }
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "never called there: `new` has chosen single datagrams")]
    fn send_many(&mut self, _: u64, _: Mono) -> io::Result<u64> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "one datagram per call on this system"))
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "never called there: `new` has chosen single datagrams")]
    fn send_cut(&mut self, _: u64, _: Mono) -> io::Result<u64> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "one datagram per call on this system"))
    }
}

/// A control message `SCM_TXTIME`, laid out as cmsg(3) has it on 64-bit systems.
#[cfg(target_os = "linux")]
#[repr(C)]
struct LaunchTime {
    header: libc::cmsghdr,
    nanos: u64,
}

#[cfg(target_os = "linux")]
impl LaunchTime {
    fn new(at: Mono) -> Self {
        // SAFETY: all zeroes is a valid header.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = size_of::<Self>() as _;
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = libc::SCM_TXTIME;
        Self { header, nanos: at.0 }
    }
}

/// Times that come with datagrams are of our clock. Needs no privilege, but an `etf` or `fq` to
/// mean something.
#[cfg(target_os = "linux")]
fn set_launch_times(socket: &UdpSocket) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let times = libc::sock_txtime { clockid: libc::CLOCK_MONOTONIC, flags: 0 };
    // SAFETY: the value is readable for its size.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TXTIME,
            (&raw const times).cast(),
            size_of::<libc::sock_txtime>() as libc::socklen_t,
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(target_os = "linux")]
fn is_segmentation_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO | libc::EOPNOTSUPP))
}

/// Buffers of this socket are cut into datagrams of `length` bytes; 0: not at all.
#[cfg(target_os = "linux")]
pub(crate) fn set_segment(socket: &UdpSocket, length: usize) {
    use std::os::fd::AsRawFd;
    let length = length as libc::c_int;
    // SAFETY: the option takes an int. If it is refused, sending a long buffer is refused too, and
    // handled there.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const length).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}

#[cfg(not(target_os = "linux"))]
fn set_segment(_: &UdpSocket, _: usize) {}

/// Large enough that a sender on a real link waits in `send` and not for the next call.
fn set_send_buffer(socket: &UdpSocket) {
    let _ = SockRef::from(socket).set_send_buffer_size(SEND_BUFFER);
}

/// Places in the header that change from datagram to datagram (see `netaware_wire::datagram`).
const SEQ: usize = 8;
const SENT_AT: usize = 16;

/// The largest buffer that the system cuts into datagrams: what is in it travels through the stack
/// as one packet, whose length has 16 bits.
fn most_at_once(socket: &UdpSocket) -> usize {
    let is_v6 = socket.local_addr().is_ok_and(|local| local.is_ipv6());
    if is_v6 { MAX_PAYLOAD - 20 } else { MAX_PAYLOAD }
}

/// `UDP_MAX_SEGMENTS` of recent kernels.
const MOST_SEGMENTS: usize = 128;
/// The same of older ones.
#[cfg(target_os = "linux")]
const SEGMENTS_OF_OLD: usize = 64;
/// Datagrams per `sendmmsg`. Not tuned: batches of any size gain little over single calls.
const MESSAGES: usize = 32;
const SEND_BUFFER: usize = 4 << 20;
const ENDS: usize = 5;
const BETWEEN_ENDS: Span = Span::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_we_rewrite_are_where_the_header_has_them() {
        let mut bytes = [0; HEADER_LEN];
        bytes[SEQ..SEQ + 8].copy_from_slice(&7_u64.to_be_bytes());
        bytes[SENT_AT..SENT_AT + 8].copy_from_slice(&9_u64.to_be_bytes());
        let mut want = [0; HEADER_LEN];
        Header { kind: Kind::Data, flow: 0, seq: 7, sent_at: 9 }.emit(&mut want);
        assert_eq!(bytes[SEQ..], want[SEQ..]);
    }

    /// No discipline here keeps times: what is shown is that the kernel takes them and the
    /// datagrams arrive whole.
    #[test]
    #[cfg(target_os = "linux")]
    fn datagrams_with_a_time_arrive_whole_and_in_order() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        set_launch_times(&sender).unwrap();
        let gap = Span::from_micros(50);
        let plan = UdpPlan {
            send: UdpSend::LaunchTime,
            packets: Some(20),
            ..crate::udp_stream::tests::plan(64, Some(gap))
        };
        let mut outbox = Outbox::new(&sender, 9, &plan);
        let gap_ps = plan.gap_ps.unwrap();
        let end = crate::udp_stream::launch::send(&mut outbox, &plan, gap_ps, &crate::stop::StopFlag::new());
        assert_eq!((end.sent, end.not_sent, end.released_by_queue, end.gaps), (20, 0, true, None));
        receiver.set_nonblocking(true).unwrap();
        let mut before = None;
        for seq in 0..20 {
            let mut bytes = [0; 100];
            let length = receiver.recv(&mut bytes).unwrap();
            let header = Header::parse(&bytes[..length]).unwrap();
            assert_eq!((length, header.seq, header.flow), (64, seq, 9));
            assert!(before.is_none_or(|before| header.sent_at == before + 50_000), "{header:?}");
            before = Some(header.sent_at);
        }
    }
}
