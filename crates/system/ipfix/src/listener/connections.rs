//! Connections, each with a thread of its own.

use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use netaware_io::clock;
use netaware_pool::{AtShare, Limits, Places, Standing};
use netaware_units::{Mono, Span};
use netaware_wire::ipfix::{MAX_MESSAGE, Reader, Transport, message};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{Over, Session, Shared};

/// How often the stop flag is looked at.
const TURN: Span = Span::from_millis(50);
/// Bytes that are read at once: several messages, so that a call is paid for by many of them.
const ROOM: usize = 4 * MAX_MESSAGE;

pub(super) fn begin(
    socket: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    shared: Shared,
) -> io::Result<JoinHandle<()>> {
    socket.set_nonblocking(true)?;
    let places = Places::new(limits(shared.places));
    thread::Builder::new().name("ipfix-accept".into()).spawn(move || {
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        while !shared.stop.is_raised() {
            match socket.accept() {
                Ok((stream, peer)) => {
                    threads.retain(|thread| !thread.is_finished());
                    threads.extend(admit(stream, peer, tls.as_ref(), &places, &shared));
                }
                Err(_) => clock::sleep(TURN),
            }
        }
        for thread in threads {
            let _ = thread.join();
        }
    })
}

fn admit(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<&Arc<ServerConfig>>,
    places: &Places,
    shared: &Shared,
) -> Option<JoinHandle<()>> {
    let place = Place::take(&stream, peer, places, shared);
    let Some(place) = place else {
        shared.tell(|totals| totals.refused += 1);
        return None;
    };
    let tls = tls.cloned();
    let work = move || {
        let ended = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(TURN.to_std())))
            .and_then(|()| stream.set_write_timeout(Some(place.shared.first_message.to_std())))
            .map_err(|_| Ended::Closed)
            .and_then(|()| converse(stream, peer, tls, &place.shared));
        if let Err(ended) = ended {
            place.shared.tell(|totals| match ended {
                Ended::Foreign => totals.foreign += 1,
                Ended::Silent => totals.silent += 1,
                Ended::Closed => {}
            });
        }
    };
    thread::Builder::new().name("ipfix-stream".into()).spawn(work).ok()
}

/// One of the places for connections, given back when it is dropped.
struct Place {
    _place: netaware_pool::Place,
    shared: Shared,
}

impl Place {
    fn take(stream: &TcpStream, peer: SocketAddr, places: &Places, shared: &Shared) -> Option<Self> {
        let twin = stream.try_clone().ok()?;
        let end = move || {
            // That ends the thread's read.
            let _ = twin.shutdown(Shutdown::Both);
        };
        let place = places.enter(peer.ip(), Standing::Unproven, end).ok()?;
        shared.tell(|totals| totals.connections += 1);
        Some(Self { _place: place, shared: shared.clone() })
    }
}

/// Many exporters may share one address. When all places are taken, a newcomer takes one from an
/// address that holds at least two more.
fn limits(all: usize) -> Limits {
    Limits { all, reserved: 0, per_host: all, per_site: all, at_share: AtShare::Refuse }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.tell(|totals| totals.connections -= 1);
    }
}

/// Why a connection is over.
enum Ended {
    /// By the other end, or by its failing.
    Closed,
    /// It sent something that is not IPFIX, or no TLS.
    Foreign,
    /// It sent nothing.
    Silent,
}

fn converse(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    shared: &Shared,
) -> Result<(), Ended> {
    let over = if tls.is_some() { Over::Tls } else { Over::Tcp };
    let mut session = Session::new(Reader::new(Transport::Stream), peer, over, shared);
    let ended = match tls {
        None => read(stream, &mut session, shared),
        Some(config) => {
            let connection = ServerConnection::new(config).map_err(|_| Ended::Closed)?;
            read(StreamOwned::new(connection, stream), &mut session, shared)
        }
    };
    shared.tell(|totals| session.tell(totals));
    ended
}

fn read(mut stream: impl Read, session: &mut Session, shared: &Shared) -> Result<(), Ended> {
    let mut buffer = vec![0; ROOM];
    let mut filled = 0;
    let (mut give_up_at, mut tell_at) = (clock::now() + shared.first_message, Mono(0));
    while !shared.stop.is_raised() {
        let came = stream.read(&mut buffer[filled..]);
        let now = clock::now();
        match came {
            Ok(0) => return Err(Ended::Closed),
            Ok(bytes) => filled += bytes,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    if now >= give_up_at {
                        return Err(Ended::Silent);
                    }
                }
                // What rustls cannot read.
                ErrorKind::InvalidData => return Err(Ended::Foreign),
                _ => return Err(Ended::Closed),
            },
        }
        let used = messages(&buffer[..filled], session)?;
        if used > 0 {
            buffer.copy_within(used..filled, 0);
            filled -= used;
            give_up_at = now + shared.patience;
        } else if now >= give_up_at {
            return Err(Ended::Silent);
        }
        if now >= tell_at {
            tell_at = now + TURN;
            shared.tell(|totals| session.tell(totals));
            session.inlet.turn(now);
        }
    }
    Ok(())
}

/// Reads the whole messages at the beginning; gives their bytes. What is left is less than one
/// message, so it always has room.
fn messages(bytes: &[u8], session: &mut Session) -> Result<usize, Ended> {
    let wall = clock::wall();
    let mut left = bytes;
    loop {
        match message::first(left) {
            Ok(Some((one, rest))) => {
                // A set of impossible length ends its message only, and is counted.
                let _ = session.message(wall, one);
                left = rest;
            }
            Ok(None) => return Ok(bytes.len() - left.len()),
            Err(_) => return Err(Ended::Foreign),
        }
    }
}
