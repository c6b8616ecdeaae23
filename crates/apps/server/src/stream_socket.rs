//! The socket of a UDP stream or of a data channel: connected to its prober, on the responder's own
//! port.
//!
//! The stream must come from the address and port that the prober spoke to, or no firewall or NAT
//! would let it through; and its datagrams must not pass the thread that serves everybody. So a
//! second socket is bound to the same address and port and connected; from then on the kernel gives
//! it what comes from that peer, and all else to the shared one.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use netaware_io::clock;
use netaware_io::options::{self, ConnectError, Reuse, SocketOptions, header};
use netaware_io::probe_socket::Arrival;
use netaware_units::Stamp;
use socket2::SockRef;

use crate::reflector::{LARGEST, Reflector};

/// Opens it. Between bind and connect datagrams of strangers may have come to it: these are served
/// as if they had come to the shared socket.
pub(crate) fn open(
    reflector: &Reflector,
    peer: SocketAddr,
    ours: Option<IpAddr>,
    options: &SocketOptions,
) -> Result<UdpSocket, ConnectError> {
    let local = local_of(reflector, peer, ours);
    let socket = options::bind_udp(local, options, Reuse::Shared)?;
    let system = |source| ConnectError::System { operation: "connect UDP to", address: peer, source };
    let labelled = header::labelled(&SockRef::from(&socket), peer, options.flow_label)
        .map_err(|source| ConnectError::Option { address: peer, source })?;
    socket.connect(labelled).map_err(system)?;
    socket.set_nonblocking(true).map_err(system)?;
    return_strays(reflector, ours, &socket);
    socket.set_nonblocking(false).map_err(system)?;
    Ok(socket)
}

fn local_of(reflector: &Reflector, peer: SocketAddr, ours: Option<IpAddr>) -> SocketAddr {
    let mut local = reflector.local();
    if let Some(ip) = ours {
        local.set_ip(ip);
    }
    // A link-local address means nothing without its link.
    if let (SocketAddr::V6(local), SocketAddr::V6(peer)) = (&mut local, peer)
        && local.ip().is_unicast_link_local()
    {
        local.set_scope_id(peer.scope_id());
    }
    local
}

fn return_strays(reflector: &Reflector, ours: Option<IpAddr>, socket: &UdpSocket) {
    let mut buf = vec![0; LARGEST];
    for _ in 0..MOST_STRAYS {
        let Ok((len, from)) = socket.recv_from(&mut buf) else { return };
        let seen_at = clock::now();
        reflector.serve(
            &mut buf,
            &Arrival {
                len,
                from,
                to: ours,
                rx: Stamp::application(seen_at),
                seen_at,
                ttl: None,
                traffic_class: None,
            },
        );
    }
}

/// The stream's peer is silent before its start, so what is here came within the microseconds
/// before `connect`. The bound is for a flood from the peer itself.
const MOST_STRAYS: usize = 4096;
