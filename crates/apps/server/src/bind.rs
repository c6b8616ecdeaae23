//! The sockets of a responder: one port, TCP and UDP, on every address.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use netaware_io::options::{self, ConnectError, Reuse, SocketOptions};
use netaware_io::zone::ZonedIp;

use crate::Config;

/// Why a responder cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program has the port.
    #[error("port {port} is in use: {source}; stop the other program or choose another port")]
    InUse {
        /// The port asked for.
        port: u16,
        /// What was tried, where.
        source: ConnectError,
    },
    /// An address cannot be listened on.
    #[error("{}{}", .0, address_advice(.0))]
    Address(ConnectError),
    /// The system chose ports for TCP that were never free for UDP and the other addresses as well.
    #[error("no port is free for both TCP and UDP on all addresses: {0}")]
    NoCommonPort(ConnectError),
    /// No STAMP reflector.
    #[error("no STAMP reflector: {source}; {}", stamp_advice(*port))]
    Stamp {
        /// The port asked for.
        port: u16,
        /// What was tried, where.
        source: netaware_io::stamp::reflector::ReflectorError,
    },
    /// The sockets are there, something else that a responder needs is not.
    #[error("cannot {operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

/// An address with both its sockets.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) tcp: TcpListener,
    pub(crate) udp: UdpSocket,
}

/// Where a responder listens, and where it could not although nobody insisted.
#[derive(Debug)]
pub(crate) struct Doors {
    pub(crate) open: Vec<Door>,
    pub(crate) absent: Vec<ConnectError>,
}

pub(crate) fn open(config: &Config) -> Result<Doors, BindError> {
    let mut tries = if config.port == 0 { TRIES } else { 1 };
    loop {
        tries -= 1;
        match open_all(config) {
            Err(error) if is_in_use(&error) && config.port != 0 => {
                return Err(BindError::InUse { port: config.port, source: error });
            }
            Err(error) if is_in_use(&error) && tries == 0 => return Err(BindError::NoCommonPort(error)),
            Err(error) if is_in_use(&error) => {}
            other => return other.map_err(BindError::Address),
        }
    }
}

fn open_all(config: &Config) -> Result<Doors, ConnectError> {
    let wanted = wanted(config);
    let mut doors = Doors { open: Vec::new(), absent: Vec::new() };
    let mut port = config.port;
    for ip in wanted {
        match open_one(ip.at(port)) {
            Ok(door) => {
                port = door.address.port();
                doors.open.push(door);
            }
            // A host without one IP version still serves the other; an address that was named must
            // be there.
            Err(error) if config.bind.is_empty() && !is_in_use(&error) => doors.absent.push(error),
            Err(error) => return Err(error),
        }
    }
    match doors.absent.pop() {
        Some(error) if doors.open.is_empty() => Err(error),
        absent => {
            doors.absent.extend(absent);
            Ok(doors)
        }
    }
}

pub(crate) fn wanted(config: &Config) -> Vec<ZonedIp> {
    if config.bind.is_empty() {
        return vec![Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
    }
    let mut wanted = Vec::new();
    for ip in &config.bind {
        if !wanted.contains(ip) {
            wanted.push(*ip);
        }
    }
    wanted
}

fn open_one(address: SocketAddr) -> Result<Door, ConnectError> {
    let system = |source| ConnectError::System { operation: "listen on", address, source };
    let tcp = options::listen_tcp(address, BACKLOG)?;
    let address = tcp.local_addr().map_err(system)?;
    let window = SocketOptions { window: Some(ECHO_BUFFER), ..SocketOptions::default() };
    // Shared, because the socket of each UDP stream sits on the same address and port.
    let udp = options::bind_udp(address, &window, Reuse::Shared)?;
    Ok(Door { address, tcp, udp })
}

fn address_advice(error: &ConnectError) -> &'static str {
    let is_foreign = matches!(error, ConnectError::System { source, .. } if source.kind() == io::ErrorKind::AddrNotAvailable);
    if is_foreign { "; --bind wants an address of this host" } else { "" }
}

fn stamp_advice(port: u16) -> &'static str {
    if (1..1024).contains(&port) {
        "ports below 1024 need CAP_NET_BIND_SERVICE: give it, or another port with --stamp=PORT"
    } else {
        "stop the other program or choose another port"
    }
}

fn is_in_use(error: &ConnectError) -> bool {
    matches!(error, ConnectError::System { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
}

/// With a port chosen by the system.
const TRIES: u32 = 16;
/// The streams of one test arrive at once: 512 of them.
const BACKLOG: i32 = 1024;
/// Room for the requests of a thousand flows while the reflecting thread has no core. The kernel
/// may give less (`net.core.rmem_max`).
const ECHO_BUFFER: u32 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn on(ip: &str, port: u16) -> Config {
        Config { port, bind: vec![ip.parse().unwrap()], ..Config::default() }
    }

    #[test]
    fn one_port_serves_tcp_and_udp_on_all_addresses() {
        let doors = open(&Config { port: 0, ..Config::default() }).unwrap();
        let port = doors.open[0].address.port();
        assert_ne!(port, 0);
        for door in &doors.open {
            assert_eq!(door.tcp.local_addr().unwrap().port(), port);
            assert_eq!(door.udp.local_addr().unwrap().port(), port);
        }
    }

    #[test]
    fn a_port_in_use_is_named() {
        for udp in [false, true] {
            let (tcp_blocker, udp_blocker);
            let port = if udp {
                udp_blocker = UdpSocket::bind("127.0.0.1:0").unwrap();
                udp_blocker.local_addr().unwrap().port()
            } else {
                tcp_blocker = TcpListener::bind("127.0.0.1:0").unwrap();
                tcp_blocker.local_addr().unwrap().port()
            };
            let error = open(&on("127.0.0.1", port)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("port {port} is in use: cannot ")), "{error}");
            assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
        }
    }

    #[test]
    fn an_address_that_was_named_and_is_not_there_is_an_error() {
        let error = open(&on("192.0.2.1", 0)).unwrap_err().to_string();
        assert!(error.contains("192.0.2.1"), "{error}");
    }
}
