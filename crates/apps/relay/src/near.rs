//! The end that local programs connect to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_stream::AsyncDualStream;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::RelayError;
use crate::carry::{abandon, carry};
use crate::end::{Shared, prepare, reset, stopped};
use crate::speech;

/// Where programs connect to, and where the far relay is.
#[derive(Debug, Clone)]
pub struct Near {
    /// Plain TCP is taken here.
    pub listen: Vec<SocketAddr>,
    /// Name or addresses of the far relay's host, with commas between.
    pub to: String,
    /// Its port.
    pub port: u16,
    /// Which of its services; empty is the one without a name.
    pub service: String,
}

/// Listening sockets.
#[derive(Debug)]
pub(crate) struct Lobby(Vec<TcpListener>);

impl Lobby {
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(|it| it.local_addr().ok()).collect()
    }
}

/// Within the runtime.
pub(crate) fn listen(near: &Near) -> Result<Lobby, RelayError> {
    let mut lobby = Vec::new();
    // A port that the system chooses is the same for all.
    let mut chosen = 0;
    for address in &near.listen {
        let mut address = *address;
        if address.port() == 0 {
            address.set_port(chosen);
        }
        let listener = bind(address).map_err(|source| RelayError::Listen { address, source })?;
        chosen = listener.local_addr()?.port();
        lobby.push(listener);
    }
    Ok(Lobby(lobby))
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Until it is stopped; connections go on.
pub(crate) async fn serve(shared: &Arc<Shared>, near: Arc<Near>, lobby: Lobby) {
    let mut listening = JoinSet::new();
    for listener in lobby.0 {
        listening.spawn(accept(shared.clone(), near.clone(), listener));
    }
    stopped(shared.orders()).await;
    listening.shutdown().await;
}

async fn accept(shared: Arc<Shared>, near: Arc<Near>, listener: TcpListener) {
    loop {
        // Those for whom there is no place wait in the system's queue.
        if shared.places.available_permits() == 0 {
            warn!("{} connections are open; others wait (--max)", shared.settings.max);
        }
        let Ok(place) = shared.places.clone().acquire_owned().await else { return };
        // A place is held by a connection, never by somebody who waits for one.
        drop(place);
        let (local, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(why) => {
                warn!("cannot take a connection: {why}");
                sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(place) = shared.places.clone().acquire_owned().await else { return };
        let (shared, near) = (shared.clone(), near.clone());
        tokio::spawn(async move {
            serve_one(&shared, &near, local, from).await;
            drop(place);
        });
    }
}

async fn serve_one(shared: &Shared, near: &Near, local: TcpStream, from: SocketAddr) {
    let number = shared.number();
    prepare(&local);
    let began_at = clock::now();
    let connected = AsyncDualStream::connect(&near.to, near.port, shared.settings.options).await;
    let mut dual = match connected {
        Ok(dual) => dual,
        Err(why) => {
            warn!("#{number}: {from} is turned away: {why}");
            reset(&local);
            return;
        }
    };
    if let Err(why) = speech::ask(&mut dual, shared.settings.key.as_ref(), &near.service).await {
        warn!("#{number}: {from} is turned away: {why}");
        abandon(&local, dual.stream());
        return;
    }
    let over = dual.stream().status().current.map_or("none", IpVersion::name);
    info!("#{number}: {from} is connected over {over} after {}", clock::now() - began_at);
    carry(number, local, dual, shared.orders()).await;
}

const BACKLOG: i32 = 128;
/// After a failure to accept, which is most likely a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
