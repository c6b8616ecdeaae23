//! Opens TCP and UDP sockets with the options that a measurement asks for.
//!
//! What is asked for and refused is an error that names the option: a test with another congestion
//! control or another DSCP than the one asked for would be a different test. Buffer sizes are the
//! exception: the kernel may give less than asked (`net.core.rmem_max`), and the figure in force is
//! reported with the result.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use netaware_units::Span;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::tcp_info::TcpInfo;
use crate::zone::{self, ZonedIp};

pub mod header;

/// What to set on a socket; the default leaves everything to the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Bytes of send and receive buffer each; absent leaves them to the kernel's tuning.
    pub window: Option<u32>,
    /// `TCP_MAXSEG` in bytes; Linux only.
    pub mss: Option<u32>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// DSCP, 0..=63.
    pub dscp: u8,
    /// TTL of IPv4, hop limit of IPv6, 1..=255.
    pub ttl: Option<u8>,
    /// Flow label of IPv6, 1..=0xfffff; Linux only, for sockets that connect. IPv4 has none and
    /// ignores it.
    pub flow_label: Option<u32>,
    /// `TCP_CONGESTION`; Linux only.
    pub congestion: Option<String>,
    /// Send and receive through this interface only; Linux only.
    pub interface: Option<String>,
    /// Local address to use, with its zone where it needs one.
    pub source: Option<ZonedIp>,
}

impl SocketOptions {
    /// The interface that these options name, if they do: the zone of addresses that lack one.
    pub fn zone(&self) -> Option<u32> {
        let of_source = || self.source.and_then(ZonedIp::zone);
        self.interface.as_deref().and_then(zone::index).or_else(of_source)
    }
}

/// Whether a local address may be in use by another socket of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// No: an address in use is an error.
    No,
    /// Yes, if that socket agrees as well: a connected socket can then sit on the responder's own
    /// port and takes the datagrams of its peer from it.
    Shared,
}

/// Why there is no socket: what was tried, on what address, what the system answered.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The system refused.
    #[error("cannot {operation} {}: {source}", zone::shown(*address))]
    System {
        /// "connect to", "listen on", …
        operation: &'static str,
        /// The address concerned.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The system refused before anything left: this host has no way there, or a rule of its own
    /// forbids it.
    #[error("nothing could be sent to {}: {source}", zone::shown(*address))]
    NotSent {
        /// Whom nothing was sent to.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// An option cannot be had on this socket.
    #[error("cannot use {}: {source}", zone::shown(*address))]
    Option {
        /// The address concerned.
        address: SocketAddr,
        /// Which option, and why.
        source: OptionError,
    },
}

impl ConnectError {
    /// What the system answered.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::System { source, .. } | Self::NotSent { source, .. } => source.raw_os_error(),
            Self::Option { source, .. } => source.source.raw_os_error(),
        }
    }
}

/// Why an option was not set.
#[derive(Debug, thiserror::Error)]
#[error("{option} refused: {source}")]
pub struct OptionError {
    /// The option with the value asked for.
    pub option: String,
    /// The system's answer.
    pub source: io::Error,
}

/// Connects, waiting at most `patience`. Options that shape the handshake (buffers, MSS) are set
/// before it.
pub fn connect_tcp(
    to: SocketAddr,
    options: &SocketOptions,
    patience: Span,
) -> Result<TcpStream, ConnectError> {
    connect_prepared(prepare_connect(to, options)?, patience)
}

/// A TCP socket that has everything but its connection.
#[derive(Debug)]
pub struct Unconnected {
    socket: Socket,
    to: SocketAddr,
}

impl Unconnected {
    /// Takes a local port now, which stays the socket's own whatever becomes of the connection.
    /// `None` where none can be had.
    pub(crate) fn bind_any(&self) -> Option<u16> {
        let port =
            || self.socket.local_addr().ok()?.as_socket().map(|at| at.port()).filter(|port| *port != 0);
        port().or_else(|| {
            let any = match self.to {
                SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
                SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
            };
            self.socket.bind(&SocketAddr::new(any, 0).into()).ok()?;
            port()
        })
    }
}

/// Does what comes before connecting, so that the connection alone can be timed.
///
/// # Errors
/// No socket, or an option is refused.
pub fn prepare_connect(to: SocketAddr, options: &SocketOptions) -> Result<Unconnected, ConnectError> {
    let socket = open("open a TCP socket for", to, Type::STREAM, Protocol::TCP)?;
    prepare_both(&socket, to, options)?;
    set_tcp(&SockRef::from(&socket), options)
        .map_err(|source| ConnectError::Option { address: to, source })?;
    bind_source(&socket, to, options)?;
    let to = labelled(&socket, to, options)?;
    Ok(Unconnected { socket, to })
}

/// Connects what was prepared.
///
/// # Errors
/// What the system says: refused, no way there, no answer within `patience`.
pub fn connect_prepared(prepared: Unconnected, patience: Span) -> Result<TcpStream, ConnectError> {
    let Unconnected { socket, to } = prepared;
    let patience = patience.to_std().max(Duration::from_millis(1));
    match socket.connect_timeout(&to.into(), patience) {
        Ok(()) => Ok(socket.into()),
        Err(source) if is_ours(&source) && TcpInfo::segments_out(&socket) == Some(0) => {
            Err(ConnectError::NotSent { address: to, source })
        }
        // The system tells nobody that a first segment was dropped on its way out of this host, and
        // goes on to try.
        Err(source) if source.kind() == io::ErrorKind::TimedOut && TcpInfo::is_kept_in(&socket) => {
            Err(ConnectError::NotSent { address: to, source: io::Error::from_raw_os_error(EPERM) })
        }
        Err(source) => Err(system("connect to", to)(source)),
    }
}

/// "Operation not permitted": what other sockets are told of a packet that the host's own firewall
/// dropped.
const EPERM: i32 = 1;

/// Whether it may be this host itself that refuses, and no ICMP answer.
fn is_ours(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkUnreachable, PermissionDenied};
    matches!(error.kind(), AddrNotAvailable | HostUnreachable | NetworkUnreachable | PermissionDenied)
}

/// Sets on an accepted socket what can still be set: buffers, MSS, congestion control, DSCP, TTL,
/// `TCP_NODELAY`.
pub fn prepare_tcp(stream: &TcpStream, options: &SocketOptions) -> Result<(), OptionError> {
    let socket = SockRef::from(stream);
    let is_v6 = stream.local_addr().is_ok_and(|address| address.is_ipv6());
    set_shared(&socket, is_v6, options)?;
    set_tcp(&socket, options)
}

/// A UDP socket on a local address.
pub fn bind_udp(local: SocketAddr, options: &SocketOptions, reuse: Reuse) -> Result<UdpSocket, ConnectError> {
    let socket = open("open a UDP socket on", local, Type::DGRAM, Protocol::UDP)?;
    if local.is_ipv6() {
        socket.set_only_v6(true).map_err(system("open a UDP socket on", local))?;
    }
    if reuse == Reuse::Shared {
        socket.set_reuse_address(true).map_err(system("share", local))?;
    }
    prepare_both(&socket, local, options)?;
    socket.bind(&local.into()).map_err(system("bind UDP to", local))?;
    Ok(socket.into())
}

/// A UDP socket that talks to one address only.
pub fn connect_udp(to: SocketAddr, options: &SocketOptions) -> Result<UdpSocket, ConnectError> {
    let socket = open("open a UDP socket for", to, Type::DGRAM, Protocol::UDP)?;
    prepare_both(&socket, to, options)?;
    bind_source(&socket, to, options)?;
    let to = labelled(&socket, to, options)?;
    socket.connect(&to.into()).map_err(system("find a way to", to))?;
    Ok(socket.into())
}

/// Why this host itself lets nothing out to an address, by a byte of UDP from one of its own: a
/// filter of its own drops it, or it knows no way there. `None` where it went out. A socket that is
/// new hears of no error that came from the path, of which `round_trip` is known; zero where it is
/// not.
pub fn refused_here(from: ZonedIp, to: SocketAddr, round_trip: Span) -> Option<io::Error> {
    let options = SocketOptions { source: Some(from), ..SocketOptions::default() };
    let sent = match connect_udp(to, &options) {
        Ok(socket) => socket.send(&[0]).map(|_| ()),
        // An address or interface that this host has lost is looked for elsewhere.
        Err(ConnectError::System { operation: "find a way to", source, .. }) => Err(source),
        Err(_) => Ok(()),
    };
    let is_own = |error: &io::Error| {
        use io::ErrorKind::{
            HostUnreachable, InvalidInput, NetworkDown, NetworkUnreachable, PermissionDenied,
        };
        // A route of kind "blackhole" answers that the argument is invalid.
        [PermissionDenied, NetworkUnreachable, HostUnreachable, NetworkDown, InvalidInput]
            .contains(&error.kind())
    };
    // A filter may drop UDP alone; where the other end answers over TCP, nothing is held back.
    let answers = || match TcpStream::connect_timeout(&to, answers_within(round_trip).to_std()) {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::ConnectionRefused,
    };
    sent.err().filter(is_own).filter(|error| error.kind() != io::ErrorKind::PermissionDenied || !answers())
}

/// How long an answer may take over a path of this round trip: it comes, and once more where it is
/// lost, unless that takes longer than the reason of a failure is worth.
fn answers_within(round_trip: Span) -> Span {
    (ANSWERS_WITHIN + round_trip * 2).min(LONGEST_ANSWER)
}

/// Long beside the round trip of most paths, and short for whoever waits for the reason of a
/// failure.
const ANSWERS_WITHIN: Span = Span::from_secs(1);
/// A longer wait for the reason of a failure is of no use.
const LONGEST_ANSWER: Span = Span::from_secs(3);

/// Sets on an ICMP socket what is asked for, and binds it to the local address asked for.
#[cfg(target_os = "linux")]
pub(crate) fn prepare_icmp(
    socket: &Socket,
    to: SocketAddr,
    options: &SocketOptions,
) -> Result<(), ConnectError> {
    prepare_both(socket, to, options)?;
    bind_source(socket, to, options)
}

/// A listening TCP socket; one of IPv6 leaves IPv4 alone, so that both can have the same port.
pub fn listen_tcp(local: SocketAddr, backlog: i32) -> Result<TcpListener, ConnectError> {
    let socket = open("open a TCP socket on", local, Type::STREAM, Protocol::TCP)?;
    if local.is_ipv6() {
        socket.set_only_v6(true).map_err(system("listen on", local))?;
    }
    // Connections of an earlier run in TIME_WAIT must not keep a responder from starting.
    socket.set_reuse_address(true).map_err(system("listen on", local))?;
    socket.bind(&local.into()).map_err(system("listen on", local))?;
    socket.listen(backlog).map_err(system("listen on", local))?;
    Ok(socket.into())
}

/// Prepares a connection that carries control messages: each leaves at once, and one that is lost
/// on a slow path is sent again soon. As a rule a lost segment is awaited twice as long each time
/// (RFC 6298 §5.5), which behind a queue of 10 s delays a message by a minute; a connection with
/// little in flight does no harm if it waits equally long each time (tcp(7), "thin streams"). The
/// kernel does so only once a loss has ended slow start, which BBR never says of itself
/// (`bbr_ssthresh`), so the congestion control is Reno, which every kernel has. A peer that
/// acknowledges nothing for [`CONTROL_UNACKNOWLEDGED`] is gone (RFC 5482), also for what is still
/// to be sent after closing.
///
/// An option that the system does not have is left out: the connection works without it. Once
/// messages have been answered, the round trip is known better, and this is called again.
pub fn prepare_control<'s>(socket: impl Into<SockRef<'s>>) {
    let socket = socket.into();
    let _ = socket.set_tcp_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        let _ = socket.set_tcp_user_timeout(Some(CONTROL_UNACKNOWLEDGED.to_std()));
        let _ = socket.set_tcp_congestion(b"reno");
        let _ = socket.set_tcp_thin_linear_timeouts(true);
        let (round_trip, _) = TcpInfo::shortest_round_trip(&*socket);
        let is_near = round_trip.is_some_and(|round_trip| round_trip < NEAR);
        set_longest_timeout(&socket, if is_near { CONTROL_RESEND_NEAR } else { CONTROL_RESEND });
    }
}

/// The same for a connection that was made from this end and has carried nothing: where its first
/// segment was sent again, the kernel takes the whole time since the first attempt for the round
/// trip, and a path that looks far may be near.
pub fn prepare_dialled_control<'s>(socket: impl Into<SockRef<'s>>) {
    let socket = socket.into();
    prepare_control(&*socket);
    #[cfg(target_os = "linux")]
    if may_be_near(TcpInfo::shortest_round_trip(&*socket)) {
        set_longest_timeout(&socket, CONTROL_RESEND_NEAR);
    }
}

/// Whether a connection to a near host that sent so many first segments again could have had this
/// round trip: Linux waits a second before each of the first ones (since 6.5), or twice as long
/// each time (RFC 6298 §5.5).
#[cfg(target_os = "linux")]
fn may_be_near((round_trip, resent): (Option<Span>, u64)) -> bool {
    let resent = i64::try_from(resent).unwrap_or(i64::MAX).min(MOST_SYNS);
    let is_near = |waited: i64| {
        round_trip.is_some_and(|it| (Span::ZERO..NEAR).contains(&(it - Span::from_secs(1) * waited)))
    };
    is_near(resent) || is_near((1 << resent) - 1)
}

/// More attempts than any system makes before it gives a connection up.
#[cfg(target_os = "linux")]
const MOST_SYNS: i64 = 10;

/// linux/tcp.h, 6.15 and later.
#[cfg(target_os = "linux")]
const TCP_RTO_MAX_MS: libc::c_int = 44;

/// What a kernel does not have is left out.
#[cfg(target_os = "linux")]
fn set_longest_timeout(socket: &SockRef<'_>, longest: Span) {
    use std::os::fd::AsRawFd;
    let millis = (longest.0 / 1_000_000) as libc::c_int;
    // SAFETY: the option takes an int. An older kernel refuses it, which only makes for longer
    // waits.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_RTO_MAX_MS,
            (&raw const millis).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}

/// Longer than any path is silent that comes back in time for a measurement.
#[cfg(target_os = "linux")]
const CONTROL_UNACKNOWLEDGED: Span = Span::from_secs(60);
/// On a path with a queue of this and more the first segment of a message travels twice: a few
/// hundred bytes.
#[cfg(target_os = "linux")]
const CONTROL_RESEND: Span = Span::from_secs(4);
/// The same of a connection whose segments come at once, or may do so: if its first segment was
/// lost, the kernel takes a second or more for the round trip, and would wait three for each lost
/// message. The other end would take a silence of two such for the end of the path. It is the least
/// that the kernel takes.
#[cfg(target_os = "linux")]
const CONTROL_RESEND_NEAR: Span = Span::from_secs(1);
/// Round trips of paths on which a second is long.
#[cfg(target_os = "linux")]
const NEAR: Span = Span::from_millis(250);

/// Makes the close that follows drop what has not been sent; the peer sees a reset. Ignores
/// failure: the stream is then broken already.
pub fn close_now(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

fn open(
    operation: &'static str,
    address: SocketAddr,
    kind: Type,
    protocol: Protocol,
) -> Result<Socket, ConnectError> {
    Socket::new(Domain::for_address(address), kind, Some(protocol)).map_err(system(operation, address))
}

fn prepare_both(socket: &Socket, address: SocketAddr, options: &SocketOptions) -> Result<(), ConnectError> {
    set_interface(socket, options)
        .and_then(|()| set_shared(&SockRef::from(socket), address.is_ipv6(), options))
        .map_err(|source| ConnectError::Option { address, source })
}

/// What is tried with the address that was asked for as this host's own.
pub const BIND: &str = "bind to";

fn bind_source(socket: &Socket, to: SocketAddr, options: &SocketOptions) -> Result<(), ConnectError> {
    let Some(source) = options.source else { return Ok(()) };
    // A socket may be bound to the address of one link alone.
    let local = source.within(ZonedIp::of(to).zone()).at(0);
    if local.is_ipv4() != to.is_ipv4() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, format!("{to} is of the other IP version"));
        return Err(ConnectError::System { operation: BIND, address: local, source });
    }
    socket.bind(&local.into()).map_err(system(BIND, local))
}

fn set_shared(socket: &SockRef<'_>, is_v6: bool, options: &SocketOptions) -> Result<(), OptionError> {
    if let Some(window) = options.window {
        socket.set_send_buffer_size(window as usize).map_err(refused("send buffer", window))?;
        socket.set_recv_buffer_size(window as usize).map_err(refused("receive buffer", window))?;
    }
    header::set(socket, is_v6, options)
}

fn labelled(socket: &Socket, to: SocketAddr, options: &SocketOptions) -> Result<SocketAddr, ConnectError> {
    header::labelled(&SockRef::from(socket), to, options.flow_label)
        .map_err(|source| ConnectError::Option { address: to, source })
}

fn set_tcp(socket: &SockRef<'_>, options: &SocketOptions) -> Result<(), OptionError> {
    if options.nodelay {
        socket.set_tcp_nodelay(true).map_err(refused("TCP_NODELAY", "on"))?;
    }
    if let Some(mss) = options.mss {
        set_mss(socket, mss).map_err(refused("MSS", mss))?;
    }
    if let Some(name) = &options.congestion {
        set_congestion(socket, name).map_err(refused("congestion control", name))?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn set_interface(socket: &Socket, options: &SocketOptions) -> Result<(), OptionError> {
    let Some(name) = &options.interface else { return Ok(()) };
    socket.bind_device(Some(name.as_bytes())).map_err(refused("interface", name))
}

#[cfg(not(target_os = "linux"))]
fn set_interface(_: &Socket, options: &SocketOptions) -> Result<(), OptionError> {
    options.interface.as_ref().map_or(Ok(()), |name| Err(refused("interface", name)(unsupported())))
}

#[cfg(unix)]
fn set_mss(socket: &SockRef<'_>, mss: u32) -> io::Result<()> {
    socket.set_tcp_mss(mss)
}

#[cfg(not(unix))]
fn set_mss(_: &SockRef<'_>, _: u32) -> io::Result<()> {
    Err(unsupported())
}

#[cfg(target_os = "linux")]
fn set_congestion(socket: &SockRef<'_>, name: &str) -> io::Result<()> {
    socket.set_tcp_congestion(name.as_bytes())
}

#[cfg(not(target_os = "linux"))]
fn set_congestion(_: &SockRef<'_>, _: &str) -> io::Result<()> {
    Err(unsupported())
}

#[cfg(not(target_os = "linux"))]
fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "not on this system")
}

fn system(operation: &'static str, address: SocketAddr) -> impl FnOnce(io::Error) -> ConnectError {
    move |source| ConnectError::System { operation, address, source }
}

fn refused<T: std::fmt::Display>(option: &str, value: T) -> impl FnOnce(io::Error) -> OptionError {
    let option = format!("{option} {value}");
    move |source| OptionError { option, source }
}

/// Any local address of the same IP version.
pub fn unspecified_like(address: SocketAddr) -> SocketAddr {
    let ip =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv6Addr::UNSPECIFIED) };
    SocketAddr::new(ip, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback(port: u16) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)
    }

    #[test]
    fn a_host_that_may_send_is_not_said_to_be_barred() {
        let socket = UdpSocket::bind(loopback(0)).unwrap();
        let open = socket.local_addr().unwrap();
        assert!(refused_here(ZonedIp::of(open), open, Span::ZERO).is_none());
        // Nobody listens there: that is not this host's doing.
        drop(socket);
        assert!(refused_here(ZonedIp::of(open), open, Span::ZERO).is_none());
    }

    /// On a path of 1.2 s a host that drops only UDP was said to let nothing out at all.
    #[test]
    fn an_answer_over_a_far_path_is_waited_for_longer_than_its_round_trip() {
        // Whoever waits for the reason of a failure waits for 3 s at most.
        let within = [0, 1200, 60_000].map(|ms| answers_within(Span::from_millis(ms)));
        assert_eq!(within, [1000, 3000, 3000].map(Span::from_millis));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_control_connection_does_not_wait_twice_as_long_each_time_because_the_system_uses_bbr() {
        let listener = listen_tcp(loopback(0), 1).unwrap();
        let stream =
            connect_tcp(listener.local_addr().unwrap(), &SocketOptions::default(), Span::from_secs(1))
                .unwrap();
        prepare_control(&stream);
        assert_eq!(crate::tcp_info::congestion(&stream).as_deref(), Some("reno"));
        assert!(SockRef::from(&stream).tcp_thin_linear_timeouts().unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_second_that_a_lost_first_segment_took_is_not_the_round_trip_of_a_far_path() {
        let near = |millis, resent| may_be_near((Some(Span::from_millis(millis)), resent));
        assert!(near(1026, 1) && near(2040, 2) && near(3040, 2));
        // The kernel sends a first segment again where its answer takes longer than a second.
        assert!(!near(1300, 1) && !near(3500, 2) && !near(600, 0));
        assert!(!may_be_near((None, 1)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lost_first_segment_does_not_make_a_control_connection_wait_for_seconds() {
        use std::os::fd::AsRawFd;
        let listener = listen_tcp(loopback(0), 1).unwrap();
        let address = listener.local_addr().unwrap();
        let stream = connect_tcp(address, &SocketOptions::default(), Span::from_secs(1)).unwrap();
        prepare_control(&stream);
        let (mut millis, mut length) = (0_i32, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the option writes an int, and as much room is told.
        let asked = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::IPPROTO_TCP,
                TCP_RTO_MAX_MS,
                (&raw mut millis).cast(),
                &raw mut length,
            )
        };
        // Kernels before 6.15 do not have it.
        assert!(asked != 0 || millis == 1000, "{millis} ms");
    }

    #[test]
    fn a_refusal_names_what_was_tried_where_and_the_answer() {
        let listener = listen_tcp(loopback(0), 1).unwrap();
        let to = listener.local_addr().unwrap();
        drop(listener);
        let error = connect_tcp(to, &SocketOptions::default(), Span::from_secs(1)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot connect to {to}: ")), "{error}");
        assert!(error.to_lowercase().contains("refused"), "{error}");
    }

    #[test]
    fn an_option_that_cannot_be_had_is_an_error() {
        let options = SocketOptions { congestion: Some("no-such-thing".into()), ..SocketOptions::default() };
        let error = connect_tcp(loopback(9), &options, Span::from_secs(1)).unwrap_err().to_string();
        assert!(error.contains("congestion control no-such-thing refused"), "{error}");
        let options = SocketOptions { source: Some(Ipv6Addr::LOCALHOST.into()), ..SocketOptions::default() };
        assert!(connect_udp(loopback(9), &options).unwrap_err().to_string().contains("other IP version"));
    }

    #[test]
    fn a_connected_socket_takes_its_peers_datagrams_from_the_shared_port() {
        let shared = bind_udp(loopback(0), &SocketOptions::default(), Reuse::Shared).unwrap();
        let port = shared.local_addr().unwrap();
        let peer = connect_udp(port, &SocketOptions::default()).unwrap();
        let own = bind_udp(port, &SocketOptions::default(), Reuse::Shared).unwrap();
        own.connect(peer.local_addr().unwrap()).unwrap();
        peer.send(b"x").unwrap();
        own.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        assert_eq!(own.recv(&mut [0; 8]).unwrap(), 1);
    }

    #[test]
    fn both_ip_versions_listen_on_one_port() {
        let v4 = listen_tcp(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0), 1).unwrap();
        let port = v4.local_addr().unwrap().port();
        listen_tcp(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port), 1).unwrap();
    }
}
