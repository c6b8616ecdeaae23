//! Two sockets and their error queues.

use std::collections::VecDeque;
use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};

use libc::{c_int, c_void, socklen_t};
use netaware_path::hops::{Fate, HostStamps, Kind, LateAnswer, Probe, Reply, Round, RoundReport, Told, What};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::icmp::{self, Echo, Message, Verdict};
use socket2::{Domain, Protocol, Socket, Type};

use super::{EchoAccess, HopCounts};
use crate::ancillary::{Ancillary, CONTROL_BYTES, ClockPair, Control, RealTime, emit_ttl};
use crate::clock;
use crate::options::{ConnectError, SocketOptions, connect_udp, prepare_icmp};
use crate::probe_socket::is_refusal;
use crate::stop::StopFlag;
use crate::zone::ZonedIp;

#[derive(Debug)]
pub(super) struct System {
    version: IpVersion,
    destination: IpAddr,
    udp: Socket,
    echo: Option<EchoSocket>,
    access: EchoAccess,
    clocks: RealTime,
    opened_at: Mono,
    /// Number of the next probe.
    next: u32,
    /// What originate stamps are made of.
    secret: u32,
    counts: HopCounts,
    /// Probes that were given up, by number, the latest last.
    given_up: VecDeque<GivenUp>,
    /// Answers to them in this round.
    late: Vec<LateAnswer>,
    /// Routers and the TTL at which each answered: for those that quote no payload.
    known: Vec<(IpAddr, u8)>,
    buf: Vec<u8>,
}

/// A probe whose round ended before its answer came.
#[derive(Debug, Clone, Copy)]
struct GivenUp {
    number: u32,
    kind: Kind,
    ttl: u8,
    sent_at: Mono,
}

#[derive(Debug)]
struct EchoSocket {
    socket: Socket,
    /// Of a raw socket: the kernel writes that of an unprivileged one.
    id: Option<u16>,
}

/// A round under way.
struct Underway<'a> {
    probes: &'a [Probe],
    told: Vec<Told>,
    /// Number of the first.
    first: u32,
}

/// What a message was read from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    Errors,
    Arrivals,
}

impl System {
    pub(super) fn open(destination: SocketAddr, options: &SocketOptions) -> Result<Self, ConnectError> {
        let version = IpVersion::of(destination.ip());
        let udp = Socket::from(connect_udp(destination, options)?);
        let failed = |source: io::Error| ConnectError::System {
            operation: "hear of ICMP errors from",
            address: destination,
            source,
        };
        prepare(&udp, version).map_err(failed)?;
        let (echo, access) = match open_echo(destination, options) {
            Ok(echo) => (Some(echo), EchoAccess::Granted),
            Err(error) => (None, EchoAccess::Refused(error.to_string())),
        };
        let opened_at = clock::now();
        Ok(Self {
            version,
            destination: destination.ip(),
            udp,
            echo,
            access,
            clocks: RealTime::start(),
            opened_at,
            // Answers to an earlier run's probes must not look like ours.
            next: (opened_at.0 >> 10) as u32,
            secret: secret(),
            counts: HopCounts::default(),
            given_up: VecDeque::new(),
            late: Vec::new(),
            known: Vec::new(),
            buf: vec![0; LARGEST],
        })
    }

    pub(super) fn echo(&self) -> &EchoAccess {
        &self.access
    }

    pub(super) fn timestamps(&self) -> bool {
        self.version == IpVersion::V4 && self.echo.as_ref().is_some_and(|echo| echo.id.is_some())
    }

    pub(super) fn counts(&self) -> HopCounts {
        HopCounts { unstamped: self.clocks.fallbacks(), ..self.counts }
    }

    pub(super) fn local(&self) -> Option<ZonedIp> {
        self.udp.local_addr().ok()?.as_socket().map(ZonedIp::of)
    }

    pub(super) fn mtu(&self) -> Option<u32> {
        let (level, name) = match self.version {
            IpVersion::V4 => (libc::IPPROTO_IP, libc::IP_MTU),
            IpVersion::V6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
        };
        let mut mtu: c_int = 0;
        let mut len = size_of::<c_int>() as socklen_t;
        // SAFETY: `mtu` is writable for `len` bytes.
        let answer = unsafe {
            libc::getsockopt(self.udp.as_raw_fd(), level, name, (&raw mut mtu).cast(), &raw mut len)
        };
        if answer == 0 { u32::try_from(mtu).ok() } else { None }
    }

    pub(super) fn run(&mut self, round: &Round, stop: &StopFlag) -> RoundReport {
        let never = Told { sent_at: clock::now(), fate: Fate::NotSent };
        let mut underway =
            Underway { probes: &round.probes, told: vec![never; round.probes.len()], first: self.next };
        self.next = self.next.wrapping_add(round.probes.len() as u32);
        let mut previous = clock::now();
        for (place, probe) in round.probes.iter().enumerate() {
            let due = previous + probe.after;
            while probe.after > Span::ZERO && clock::now() < due && !stop.is_raised() {
                self.listen(due, &mut underway);
            }
            if stop.is_raised() {
                break;
            }
            self.send(place, &mut underway);
            previous = underway.told[place].sent_at;
        }
        let until = clock::now() + round.patience;
        while underway.waits() && clock::now() < until && !stop.is_raised() {
            self.listen(until.min(clock::now() + LOOK_AT_STOP), &mut underway);
        }
        let (told, first) = (underway.told, underway.first);
        self.give_up(round, &told, first);
        RoundReport { probes: told, late: std::mem::take(&mut self.late) }
    }

    /// Remembers who has not answered, so that an answer that is only late is not taken for none.
    fn give_up(&mut self, round: &Round, told: &[Told], first: u32) {
        for ((number, probe), told) in (0..).zip(&round.probes).zip(told) {
            if told.fate == Fate::Silent {
                self.given_up.push_back(GivenUp {
                    number: first.wrapping_add(number),
                    kind: probe.kind,
                    ttl: probe.ttl,
                    sent_at: told.sent_at,
                });
            }
        }
        while self.given_up.len() > MOST_GIVEN_UP {
            self.given_up.pop_front();
        }
    }

    /// Notes the answer to a probe of an earlier round. An echo has the last digits of its number.
    fn note_late(&mut self, kind: Kind, number: u32, reply: Reply) {
        let digits = if kind == Kind::Udp { u32::MAX } else { u32::from(u16::MAX) };
        let is_it = |it: &GivenUp| it.kind == kind && it.number & digits == number & digits;
        if let Some(place) = self.given_up.iter().rposition(is_it)
            && let Some(probe) = self.given_up.remove(place)
        {
            let (ttl, sent_at) = (probe.ttl, probe.sent_at);
            let (rtt, from, what) = (reply.at.since(sent_at), reply.from, reply.what);
            self.late.push(LateAnswer { kind, ttl, sent_at, rtt, from, what });
        }
    }

    fn send(&mut self, place: usize, underway: &mut Underway<'_>) {
        let probe = underway.probes[place];
        let number = underway.first.wrapping_add(place as u32);
        let header = self.version.header_len();
        let ip_payload = (probe.length.saturating_sub(header) as usize).clamp(12, LARGEST);
        let mut bytes = [0_u8; LARGEST];
        let (socket, payload) = match (probe.kind, &self.echo) {
            (Kind::Udp, _) => {
                let payload = &mut bytes[..ip_payload - UDP_HEADER];
                payload[..TAG].copy_from_slice(&number.to_be_bytes());
                (&self.udp, payload)
            }
            (Kind::Echo, Some(echo)) => {
                let request = &mut bytes[..ip_payload];
                let named = Echo { id: echo.id.unwrap_or(0), seq: number as u16 };
                icmp::emit_echo_request(self.version, named, request);
                (&echo.socket, request)
            }
            (Kind::Timestamp, Some(EchoSocket { socket, id: Some(id) })) if self.version == IpVersion::V4 => {
                let named = Echo { id: *id, seq: number as u16 };
                let request = icmp::timestamp_request(named, self.originate(number as u16));
                bytes[..icmp::TIMESTAMP_LEN].copy_from_slice(&request);
                (socket, &mut bytes[..icmp::TIMESTAMP_LEN])
            }
            (Kind::Echo | Kind::Timestamp, _) => return,
        };
        let mute = probe.mute && probe.kind == Kind::Udp && self.version == IpVersion::V6;
        if mute {
            let _ = set(socket.as_raw_fd(), libc::SOL_UDP, UDP_NO_CHECK6_TX, &1_i32);
        }
        let (told, refused) = self.attempt(socket, payload, probe.ttl);
        if let Some(told) = told {
            underway.told[place] = told;
        }
        if mute {
            let _ = set(socket.as_raw_fd(), libc::SOL_UDP, UDP_NO_CHECK6_TX, &0_i32);
        }
        self.counts.refused = refused.or(self.counts.refused);
    }

    /// Sends, if need be again: an error of an earlier probe is told in place of sending this one,
    /// each once. Nothing, and the system's reason, where it has not left.
    fn attempt(&self, socket: &Socket, payload: &[u8], ttl: u8) -> (Option<Told>, Option<i32>) {
        let (mut refused, mut why) = (None, None);
        for _ in 0..MOST_TRIES {
            let sent_at = clock::now();
            match send_with_ttl(socket.as_raw_fd(), payload, self.version, ttl) {
                Ok(()) => return (Some(Told { sent_at, fate: Fate::Silent }), None),
                Err(error) if is_refusal(&error) => {
                    let too_big = error.raw_os_error() == Some(libc::EMSGSIZE);
                    let fate = if too_big { Fate::TooBig(self.mtu().unwrap_or(0)) } else { Fate::NotSent };
                    refused = Some(Told { sent_at, fate });
                    why = error.raw_os_error().filter(|_| !too_big);
                }
                Err(error) => {
                    why = error.raw_os_error();
                    break;
                }
            }
        }
        (refused, why)
    }

    /// Waits until something comes or the time is over, and takes all there is.
    fn listen(&mut self, until: Mono, underway: &mut Underway<'_>) {
        let fds = [Some(self.udp.as_raw_fd()), self.echo.as_ref().map(|echo| echo.socket.as_raw_fd())];
        let watched = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut watched = fds.map(|fd| watched(fd.unwrap_or(-1)));
        let nanos = (until - clock::now()).or_zero().nanos();
        let left =
            libc::timespec { tv_sec: (nanos / 1_000_000_000) as _, tv_nsec: (nanos % 1_000_000_000) as _ };
        // SAFETY: two valid pollfds (a negative descriptor is ignored), a valid timespec, no signal
        // mask.
        let ready = unsafe { libc::ppoll(watched.as_mut_ptr(), 2, &raw const left, std::ptr::null()) };
        if ready <= 0 {
            return;
        }
        for (fd, kind) in fds.into_iter().zip([Kind::Udp, Kind::Echo]) {
            let Some(fd) = fd else { continue };
            while self.take(fd, kind, Queue::Errors, underway) {}
            while self.take(fd, kind, Queue::Arrivals, underway) {}
        }
    }

    /// Takes one message; false when there is none.
    fn take(&mut self, fd: RawFd, kind: Kind, queue: Queue, underway: &mut Underway<'_>) -> bool {
        let mut buf = std::mem::take(&mut self.buf);
        let received = receive(fd, &mut buf, queue);
        let pair = ClockPair::read();
        let more = match received {
            Ok((len, told)) => {
                let at = self.clocks.map_or_application(told.stamp, pair, self.opened_at).at;
                let bytes = buf.get(..len).unwrap_or_default();
                match queue {
                    Queue::Errors => self.take_error(kind, bytes, &told, at, underway),
                    Queue::Arrivals => self.take_arrival(kind, bytes, at, underway),
                }
                true
            }
            // An error on the socket that its queue has told already.
            Err(error) => queue == Queue::Arrivals && is_refusal(&error),
        };
        self.buf = buf;
        more
    }

    fn take_error(
        &mut self,
        kind: Kind,
        bytes: &[u8],
        told: &Ancillary,
        at: Mono,
        underway: &mut Underway<'_>,
    ) {
        let Some(error) = told.icmp.filter(|error| !error.is_local) else { return };
        let Some(from) = error.from else { return };
        let Some(verdict) = Verdict::of(self.version, error.kind, error.code, error.info) else { return };
        if verdict == Verdict::Refused && from != self.destination && self.is_own(from) {
            self.counts.no_neighbour += 1;
            return;
        }
        let place = match kind {
            // The kernel hands over what followed the quoted UDP header, or the quoted ICMP message
            // as a whole.
            Kind::Udp => match bytes.first_chunk::<TAG>() {
                Some(tag) => Some(u32::from_be_bytes(*tag).wrapping_sub(underway.first)),
                None => self.guessed(from, underway),
            },
            Kind::Echo | Kind::Timestamp => self.echo_place(icmp::quoted_echo(bytes), underway.first),
        };
        let Some(place) = place else {
            self.counts.unmatched += 1;
            return;
        };
        let what = match verdict {
            Verdict::TimeExceeded => What::TimeExceeded,
            Verdict::PortUnreachable => What::PortUnreachable,
            // A destination that says so itself has been reached.
            Verdict::Refused if from == self.destination => What::PortUnreachable,
            Verdict::Refused => What::Refused,
            Verdict::TooBig(mtu) => What::TooBig(mtu),
        };
        let before = match kind {
            Kind::Udp => UDP_HEADER,
            Kind::Echo | Kind::Timestamp => 0,
        };
        // Two IP headers: the error's and the quoted one.
        let length = 2 * self.version.header_len() + (icmp::HEADER_LEN + before + bytes.len()) as u32;
        let reply = Reply { at, from, what, length: Some(length), ident: None, stamps: None };
        if !underway.answered(place, kind == Kind::Udp, reply) {
            self.note_late(kind, underway.first.wrapping_add(place), reply);
        }
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.local().is_some_and(|local| local.ip() == address)
    }

    /// The place of a probe whose answer quotes no payload: the only one that waits, or the oldest
    /// with the TTL at which this router has answered before.
    fn guessed(&mut self, from: IpAddr, underway: &Underway<'_>) -> Option<u32> {
        let stories = underway.probes.iter().zip(&underway.told).enumerate();
        let waiting =
            stories.filter(|(_, (probe, told))| probe.kind == Kind::Udp && told.fate == Fate::Silent);
        let waiting: Vec<(usize, u8)> = waiting.map(|(place, (probe, _))| (place, probe.ttl)).collect();
        let known = self.known.iter().find(|(address, _)| *address == from).map(|(_, ttl)| *ttl);
        let place = match (known, &waiting[..]) {
            (Some(ttl), _) => waiting.iter().find(|(_, of)| *of == ttl).map(|(place, _)| *place),
            (None, [(place, ttl)]) => {
                if self.known.len() < MOST_KNOWN {
                    self.known.push((from, *ttl));
                }
                Some(*place)
            }
            _ => None,
        };
        place.and_then(|place| u32::try_from(place).ok())
    }

    fn take_arrival(&mut self, kind: Kind, bytes: &[u8], at: Mono, underway: &mut Underway<'_>) {
        if kind == Kind::Udp {
            self.counts.talked += 1;
            return;
        }
        let has_header =
            self.version == IpVersion::V4 && self.echo.as_ref().is_some_and(|echo| echo.id.is_some());
        let message = if has_header { icmp::behind_ipv4(bytes) } else { Some(bytes) };
        let Some(message) = message else { return };
        let (echo, what, stamps) = match Message::parse(self.version, message) {
            Ok(Message::EchoReply(echo)) => (echo, What::EchoReply, None),
            Ok(Message::TimestampReply(named, told)) => {
                // Nobody who has not seen the request knows its originate stamp.
                if told.originate != self.originate(named.seq) {
                    self.counts.forged += 1;
                    return;
                }
                let stamps = HostStamps { receive: told.receive, transmit: told.transmit };
                (named, What::TimestampReply, Some(stamps))
            }
            _ => return,
        };
        let Some(place) = self.echo_place(Some(echo), underway.first) else { return };
        let kind = if stamps.is_some() { Kind::Timestamp } else { Kind::Echo };
        let length = message.len() as u32 + self.version.header_len();
        let from = self.destination;
        let ident = bytes.get(4..6).filter(|_| has_header).map(|id| u16::from_be_bytes([id[0], id[1]]));
        let reply = Reply { at, from, what, length: Some(length), ident, stamps };
        if underway.kind(place).is_none() {
            self.note_late(kind, underway.first.wrapping_add(place), reply);
        }
        if underway.kind(place) == Some(kind) {
            underway.answered(place, false, reply);
        }
    }

    /// The originate stamp of a question: marked as no time of day (RFC 792), so that it gives no
    /// clock away, a host that only copies it is found out, and no stranger guesses it.
    fn originate(&self, seq: u16) -> u32 {
        let mixed = (self.secret ^ u32::from(seq)).wrapping_mul(0x9e37_79b1);
        icmp::NON_STANDARD | mixed ^ (mixed >> 15)
    }

    /// How many probes after the first of the round it is; a raw socket also hears of other
    /// people's echoes.
    fn echo_place(&self, echo: Option<Echo>, first: u32) -> Option<u32> {
        let (echo, own) = (echo?, self.echo.as_ref()?);
        if own.id.is_some_and(|id| id != echo.id) {
            return None;
        }
        Some(u32::from(echo.seq.wrapping_sub(first as u16)))
    }
}

impl Underway<'_> {
    /// Takes the first answer to a probe of this round; later copies are nobody's. Whether it is of
    /// this round.
    fn answered(&mut self, place: u32, is_udp: bool, reply: Reply) -> bool {
        let place = place as usize;
        let (Some(probe), Some(told)) = (self.probes.get(place), self.told.get_mut(place)) else {
            return false;
        };
        if (probe.kind == Kind::Udp) == is_udp && told.fate == Fate::Silent {
            told.fate = Fate::Answered(reply);
        }
        true
    }

    fn kind(&self, place: u32) -> Option<Kind> {
        self.probes.get(place as usize).map(|probe| probe.kind)
    }

    fn waits(&self) -> bool {
        self.probes.iter().zip(&self.told).any(|(probe, told)| probe.awaited && told.fate == Fate::Silent)
    }
}

/// An ICMP socket for echoes.
fn open_echo(destination: SocketAddr, options: &SocketOptions) -> io::Result<EchoSocket> {
    let version = IpVersion::of(destination.ip());
    let (domain, protocol) = match version {
        IpVersion::V4 => (Domain::IPV4, Protocol::ICMPV4),
        IpVersion::V6 => (Domain::IPV6, Protocol::ICMPV6),
    };
    // A raw one sees the whole answer; where that is not permitted, an unprivileged one does.
    let (socket, id) = match Socket::new(domain, Type::RAW, Some(protocol)) {
        Ok(socket) => (socket, Some((clock::now().0 >> 8) as u16)),
        Err(_) => (Socket::new(domain, Type::DGRAM, Some(protocol))?, None),
    };
    prepare_icmp(&socket, destination, options).map_err(|error| io::Error::other(error.to_string()))?;
    // The zone of a link-local address must not be lost with the port.
    socket.connect(&ZonedIp::of(destination).at(0).into())?;
    prepare(&socket, version)?;
    // A train's questions and answers are more than a socket usually holds; beyond what the system
    // allows only with CAP_NET_ADMIN.
    let (fd, room) = (socket.as_raw_fd(), ROOM as c_int);
    let _ = socket.set_recv_buffer_size(ROOM).and(set(fd, libc::SOL_SOCKET, SO_RCVBUFFORCE, &room));
    let _ = socket.set_send_buffer_size(ROOM).and(set(fd, libc::SOL_SOCKET, SO_SNDBUFFORCE, &room));
    if id.is_some() {
        only_replies(&socket, version)?;
    }
    Ok(EchoSocket { socket, id })
}

/// Errors, stamps, and packets that are never cut up.
fn prepare(socket: &Socket, version: IpVersion) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    match version {
        IpVersion::V4 => {
            set(fd, libc::IPPROTO_IP, libc::IP_RECVERR, &1_i32)?;
            set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &libc::IP_PMTUDISC_PROBE)?;
        }
        IpVersion::V6 => {
            set(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, &1_i32)?;
            set(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, &libc::IPV6_PMTUDISC_PROBE)?;
            set(fd, libc::IPPROTO_IPV6, IPV6_DONTFRAG, &1_i32)?;
        }
    }
    let stamps = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
    // Without them arrivals have the application's stamps, which are counted.
    let _ = set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &stamps);
    Ok(())
}

/// What a stranger cannot know; the clock where the system has no randomness.
fn secret() -> u32 {
    let mut bytes = [0_u8; 4];
    // SAFETY: `bytes` is writable for its length.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    if got == bytes.len() as isize { u32::from_ne_bytes(bytes) } else { clock::now().0 as u32 }
}

/// A raw socket hears every ICMP message of the host otherwise.
fn only_replies(socket: &Socket, version: IpVersion) -> io::Result<()> {
    match version {
        IpVersion::V4 => {
            let wanted = 1_u32 << ECHO_REPLY_V4 | 1 << TIMESTAMP_REPLY;
            set(socket.as_raw_fd(), SOL_RAW, ICMP_FILTER, &!wanted)
        }
        IpVersion::V6 => {
            // A bit for each type that is kept out.
            let mut blocked = [u32::MAX; 8];
            blocked[ECHO_REPLY_V6 / 32] &= !(1 << (ECHO_REPLY_V6 % 32));
            set(socket.as_raw_fd(), libc::IPPROTO_ICMPV6, ICMP6_FILTER, &blocked)
        }
    }
}

pub(crate) fn set<T>(fd: RawFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let value: *const T = value;
    // SAFETY: `value` is readable for its size.
    let answer =
        unsafe { libc::setsockopt(fd, level, name, value.cast::<c_void>(), size_of::<T>() as socklen_t) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn send_with_ttl(fd: RawFd, bytes: &[u8], version: IpVersion, ttl: u8) -> io::Result<()> {
    let mut control = Control::new();
    let control_len = emit_ttl(&mut control, version == IpVersion::V6, ttl);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: an all-zero header is a valid empty one.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control.0).cast();
    message.msg_controllen = control_len as _;
    // SAFETY: all that `message` points at lives until the call returns; sendmsg only reads it.
    let sent = unsafe { libc::sendmsg(fd, &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn receive(fd: RawFd, buf: &mut [u8], queue: Queue) -> io::Result<(usize, Ancillary)> {
    let mut control = Control::new();
    let mut part = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    // SAFETY: an all-zero header is a valid empty one.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control.0).cast();
    message.msg_controllen = CONTROL_BYTES as _;
    let flags = libc::MSG_DONTWAIT
        | match queue {
            Queue::Errors => libc::MSG_ERRQUEUE,
            Queue::Arrivals => 0,
        };
    // SAFETY: every buffer that `message` names lives until the call returns and is as long as it
    // says.
    let len = unsafe { libc::recvmsg(fd, &raw mut message, flags) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: just filled by recvmsg.
    let told = unsafe { Ancillary::parse(&message) };
    Ok((len.min(buf.len()), told))
}

/// The number at the head of a payload, bytes.
const TAG: usize = 4;
const UDP_HEADER: usize = 8;
/// A jumbo frame.
const LARGEST: usize = 9216;
const MOST_TRIES: usize = 8;
/// Of probes that may be answered late.
const MOST_GIVEN_UP: usize = 1024;
/// More routers than any path has.
const MOST_KNOWN: usize = 256;
const LOOK_AT_STOP: Span = Span::from_millis(50);
/// 128 packets of 9000 bytes, as the kernel accounts for them.
const ROOM: usize = 2 << 20;
/// asm-generic/socket.h.
const SO_SNDBUFFORCE: c_int = 32;
const SO_RCVBUFFORCE: c_int = 33;
/// linux/in6.h, linux/udp.h, linux/icmp.h and linux/icmpv6.h; libc lacks some of them.
const IPV6_DONTFRAG: c_int = 62;
const UDP_NO_CHECK6_TX: c_int = 101;
const SOL_RAW: c_int = 255;
const ICMP_FILTER: c_int = 1;
const ICMP6_FILTER: c_int = 1;
const ECHO_REPLY_V4: u32 = 0;
const TIMESTAMP_REPLY: u32 = 14;
const ECHO_REPLY_V6: usize = 129;
