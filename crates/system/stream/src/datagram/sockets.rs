//! UDP sockets of one version each.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use netaware_io::probe_socket::{ProbeSocket, Stamping};
use socket2::{Domain, Protocol, Socket, Type};

/// Waits at an address.
pub(super) fn bound(address: SocketAddr) -> io::Result<ProbeSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    prepared(socket.into())
}

/// Talks to one address alone. The system chooses from which of its own, as the routes are now.
pub(super) fn connected(to: SocketAddr) -> io::Result<ProbeSocket> {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    prepared(socket)
}

/// With the program's own stamps: the kernel's would need its error queue read after each datagram
/// sent.
fn prepared(socket: UdpSocket) -> io::Result<ProbeSocket> {
    // As far as the system allows: bursts wait there while nobody reads.
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(BUFFER);
    ProbeSocket::new(socket, Stamping::Application)
}

/// Whether an error means that there is no way to the other end, for now.
pub(super) fn is_no_way(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::ConnectionRefused,
        ErrorKind::NetworkUnreachable,
        ErrorKind::HostUnreachable,
        ErrorKind::NetworkDown,
        ErrorKind::AddrNotAvailable,
        ErrorKind::PermissionDenied,
    ];
    kinds.contains(&error.kind())
}

const BUFFER: usize = 1 << 20;
