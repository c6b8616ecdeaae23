//! The first words on a connection, from the side that connects.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use netaware_dual::Peer;
use netaware_io::zone;
use netaware_record::IpVersion;
use netaware_units::Span;
use netaware_wire::dual::{FRAMING_VERSION, Join, OPENING_LEN, Opening, Refusal, WELCOME_LEN, Welcome};

use crate::shared::Shared;

/// Why there is no stream.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name has no address of the IP versions wanted.
    #[error("'{host}' has no address of the IP version wanted")]
    NoAddress {
        /// The name.
        host: String,
    },
    /// The resolver failed.
    #[error("'{host}' cannot be resolved: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The system's word.
        source: io::Error,
    },
    /// No attempt led to a connection; the last one's reason.
    #[error("cannot connect to {}: {source}", zone::shown(*address))]
    Failed {
        /// The last one tried.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The other end does not take the stream.
    #[error("{} refuses the stream: {why}", zone::shown(*address))]
    Refused {
        /// The address.
        address: SocketAddr,
        /// Why.
        why: Refusal,
    },
    /// This host cannot hold a stream.
    #[error("no stream can be made here: {0}")]
    Host(io::Error),
}

/// The addresses of a host, given as one name or address or as several with commas between.
pub(crate) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let (mut addresses, mut failed) = (Vec::new(), None);
    for name in host.split(',').map(str::trim) {
        match zone::resolve(name, port) {
            Ok(found) => addresses.extend(found),
            Err(source) => failed = Some(ConnectError::Resolve { host: name.to_owned(), source }),
        }
    }
    match failed {
        Some(failed) if addresses.is_empty() => Err(failed),
        _ => Ok(addresses),
    }
}

/// A socket whose openings are done.
pub(crate) type Opened = (TcpStream, u32, Peer);

/// Connects and says which stream the connection is for.
pub(crate) fn connect(
    shared: &Shared,
    address: SocketAddr,
    ip: IpVersion,
    join: Join,
) -> Result<Opened, ConnectError> {
    let patience = shared.options.connect_patience;
    let socket = TcpStream::connect_timeout(&address, patience.to_std())
        .map_err(|source| ConnectError::Failed { address, source })?;
    open(shared, socket, address, ip, join)
}

/// Says which stream a connection is for.
pub(crate) fn open(
    shared: &Shared,
    mut socket: TcpStream,
    address: SocketAddr,
    ip: IpVersion,
    join: Join,
) -> Result<Opened, ConnectError> {
    let failed = |source: io::Error| ConnectError::Failed { address, source };
    let patience = shared.options.connect_patience;
    let (own, generation) = {
        let mut state = shared.lock();
        let generation = state.next_generation(ip);
        (state.stream.own(), generation)
    };
    let speaks = (FRAMING_VERSION, FRAMING_VERSION);
    let opening =
        Opening { speaks, join, ip, generation, room: own.room, received: own.received, stream: shared.name };
    let mut bytes = [0; WELCOME_LEN];
    socket.set_nodelay(true).map_err(failed)?;
    socket.set_read_timeout(Some(patience.to_std())).map_err(failed)?;
    socket.write_all(&opening.emit()).map_err(failed)?;
    socket.read_exact(&mut bytes).map_err(|why| failed(unanswered(why)))?;
    match Welcome::parse(&bytes, speaks).map_err(|why| failed(io::Error::other(why)))? {
        Welcome::Accepted { room, received, .. } => Ok((socket, generation, Peer { room, received })),
        Welcome::Refused(why) => Err(ConnectError::Refused { address, why }),
    }
}

/// Something takes connections there and does not answer an opening.
fn unanswered(why: io::Error) -> io::Error {
    match why.kind() {
        // A read that has a time limit ends so on Linux.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            io::Error::new(io::ErrorKind::TimedOut, "it is connected, and what is there does not answer")
        }
        io::ErrorKind::UnexpectedEof => {
            io::Error::new(why.kind(), "it was connected, and what is there has closed without an answer")
        }
        _ => why,
    }
}

/// Reads an opening from a connection that somebody made.
pub(crate) fn read(socket: &mut TcpStream, patience: Span) -> io::Result<Opening> {
    let mut bytes = [0; OPENING_LEN];
    socket.set_read_timeout(Some(patience.to_std()))?;
    socket.set_nodelay(true)?;
    socket.read_exact(&mut bytes)?;
    Opening::parse(&bytes).map_err(io::Error::other)
}

/// Where the addresses of both versions stand, of those that a resolver gave.
pub(crate) fn sorted(addresses: &[SocketAddr]) -> [Vec<SocketAddr>; 2] {
    let mut sorted = [Vec::new(), Vec::new()];
    for address in addresses {
        sorted[IpVersion::of(address.ip()).index()].push(*address);
    }
    sorted
}
