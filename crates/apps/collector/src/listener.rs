//! One port for everybody: the first bytes tell a probe from a browser, and encryption from none.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use netaware_pool::{AtShare, Limits, Place, Places, Standing};
use netaware_wire::lmap::PREFACE;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::http;
use crate::session::{self, Peer};
use crate::shared::Shared;

/// From the connection's start until it is known what it is.
const OPENING: Duration = Duration::from_secs(5);
/// Connections that nobody knows yet.
const MOST_STRANGERS: usize = 512;
/// Connections of browsers and programs.
const MOST_GUESTS: usize = 256;
/// Connections of probes.
const MOST_PROBES: usize = 4096;
/// All of them.
pub(crate) const MOST: usize = MOST_STRANGERS + MOST_GUESTS + MOST_PROBES;

/// See the module.
pub(crate) struct Listener {
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    pages: axum::Router,
    strangers: Places,
    guests: Places,
    probes: Places,
}

impl Listener {
    pub(crate) fn new(shared: Arc<Shared>, tls: Option<TlsAcceptor>) -> Arc<Self> {
        Arc::new(Self {
            pages: http::router(shared.clone()),
            shared,
            tls,
            strangers: Places::new(brief(MOST_STRANGERS)),
            guests: Places::new(brief(MOST_GUESTS)),
            probes: Places::new(PROBES),
        })
    }

    /// Accepts for ever.
    pub(crate) async fn accept(self: Arc<Self>, socket: TcpListener) {
        loop {
            match socket.accept().await {
                Ok((stream, peer)) => {
                    self.shared.counts.connections.fetch_add(1, Relaxed);
                    let evicted = Arc::new(Notify::new());
                    let Some(place) = self.enter(&self.strangers, peer, &evicted) else { continue };
                    let _ = stream.set_nodelay(true);
                    let serving = self.clone().open(stream, peer, place, evicted.clone());
                    let shared = self.shared.clone();
                    tokio::spawn(async move {
                        tokio::select! {
                            () = serving => {}
                            () = evicted.notified() => {
                                shared.counts.crowded.fetch_add(1, Relaxed);
                            }
                        }
                    });
                }
                Err(error) => {
                    // Out of descriptors, most likely: those who leave give some back.
                    self.shared.complain(None, &format!("cannot accept a connection: {error}"));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// A place whose loss raises `evicted`.
    fn enter(&self, places: &Places, peer: SocketAddr, evicted: &Arc<Notify>) -> Option<Place> {
        let tell = evicted.clone();
        let entered = places.enter(peer.ip(), Standing::Unproven, move || tell.notify_one());
        if entered.is_err() {
            self.shared.counts.crowded.fetch_add(1, Relaxed);
        }
        entered.ok()
    }

    async fn open(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, place: Place, evicted: Arc<Notify>) {
        let mut first = [0];
        let looked = timeout(OPENING, stream.peek(&mut first)).await;
        let encrypted = matches!(looked, Ok(Ok(1))) && first[0] == HANDSHAKE;
        let Some(tls) = self.tls.as_ref().filter(|_| encrypted) else {
            let peer = Peer { address: Some(peer), ..Peer::default() };
            return self.greet(stream, peer, place, &evicted).await;
        };
        let Ok(Ok(stream)) = timeout(OPENING, tls.accept(stream)).await else {
            self.shared.counts.strangers.fetch_add(1, Relaxed);
            return;
        };
        let (_, connection) = stream.get_ref();
        let binding = connection.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[]));
        let Ok(binding) = binding else { return };
        let certificate = connection.peer_certificates().and_then(|chain| chain.first());
        let certificate = certificate.map(|first| first.clone().into_owned());
        let peer = Peer { address: Some(peer), encrypted, binding: binding.to_vec(), certificate };
        self.greet(stream, peer, place, &evicted).await;
    }

    async fn greet<S>(&self, mut stream: S, peer: Peer, place: Place, evicted: &Arc<Notify>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut head = [0; PREFACE.len()];
        let Ok(Ok(_)) = timeout(OPENING, stream.read_exact(&mut head)).await else {
            self.shared.counts.strangers.fetch_add(1, Relaxed);
            return;
        };
        let crowd = if head == PREFACE { &self.probes } else { &self.guests };
        let Some(address) = peer.address else { return };
        let Some(seat) = self.enter(crowd, address, evicted) else { return };
        drop(place);
        if head == PREFACE {
            session::serve(self.shared.clone(), stream, peer, seat).await;
        } else if METHODS.iter().any(|method| head.starts_with(method)) {
            let (reader, writer) = tokio::io::split(stream);
            let whole = tokio::io::join(std::io::Cursor::new(head).chain(reader), writer);
            http::serve(self.pages.clone(), whole, peer.address).await;
            drop(seat);
        } else {
            self.shared.counts.strangers.fetch_add(1, Relaxed);
        }
    }
}

/// Places that are held briefly: a newcomer takes that of an older connection. A fleet may share
/// one address, and so may all who come through a reverse proxy.
fn brief(all: usize) -> Limits {
    Limits { all, reserved: 0, per_host: all / 2, per_site: all / 4 * 3, at_share: AtShare::Evict }
}

/// A quarter is kept for probes that have proven who they are; many may share one address.
const PROBES: Limits = Limits {
    all: MOST_PROBES,
    reserved: MOST_PROBES / 4,
    per_host: 256,
    per_site: 512,
    at_share: AtShare::Evict,
};
/// First byte of a TLS record that begins a connection (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;
const METHODS: [&[u8]; 6] = [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS "];

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use netaware_pool::Pool;

    use super::*;

    const SHARED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    /// Probes that had shown their key lost their places to the next ones of the same address while
    /// the store was asked about them.
    #[test]
    fn a_fleet_behind_one_address_comes_back_whole() {
        let mut probes = Pool::new(PROBES);
        for n in 0..1000 {
            let entered = probes.enter(SHARED, Standing::Unproven, n).unwrap();
            assert_eq!(entered.evicted, None, "{n}");
            probes.prove(entered.id);
        }
        assert_eq!(probes.len(), 1000);
    }

    #[test]
    fn one_address_that_is_silent_leaves_half_of_the_brief_places_to_the_others() {
        for all in [MOST_STRANGERS, MOST_GUESTS] {
            let mut pool = Pool::new(brief(all));
            for n in 0..2000 {
                pool.enter(SHARED, Standing::Unproven, n).unwrap();
            }
            assert_eq!(pool.held_by_host(SHARED), all / 2);
            for n in 0..all / 2 {
                assert_eq!(pool.enter(OTHER, Standing::Unproven, n).unwrap().evicted, None, "{n}");
            }
        }
    }
}
