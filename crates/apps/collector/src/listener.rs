//! One port for everybody: the first bytes tell a probe from a browser, and encryption from none.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use netaware_wire::lmap::PREFACE;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
    strangers: Arc<Semaphore>,
    guests: Arc<Semaphore>,
    probes: Arc<Semaphore>,
}

impl Listener {
    pub(crate) fn new(shared: Arc<Shared>, tls: Option<TlsAcceptor>) -> Arc<Self> {
        let places = |count| Arc::new(Semaphore::new(count));
        Arc::new(Self {
            pages: http::router(shared.clone()),
            shared,
            tls,
            strangers: places(MOST_STRANGERS),
            guests: places(MOST_GUESTS),
            probes: places(MOST_PROBES),
        })
    }

    /// Accepts for ever.
    pub(crate) async fn accept(self: Arc<Self>, socket: TcpListener) {
        loop {
            match socket.accept().await {
                Ok((stream, peer)) => {
                    self.shared.counts.connections.fetch_add(1, Relaxed);
                    let Ok(place) = self.strangers.clone().try_acquire_owned() else {
                        self.shared.counts.crowded.fetch_add(1, Relaxed);
                        continue;
                    };
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(self.clone().open(stream, peer, place));
                }
                Err(error) => {
                    // Out of descriptors, most likely: those who leave give some back.
                    self.shared.complain(None, &format!("cannot accept a connection: {error}"));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn open(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        let mut first = [0];
        let looked = timeout(OPENING, stream.peek(&mut first)).await;
        let encrypted = matches!(looked, Ok(Ok(1))) && first[0] == HANDSHAKE;
        match (&self.tls, encrypted) {
            (Some(tls), true) => {
                let Ok(Ok(stream)) = timeout(OPENING, tls.accept(stream)).await else {
                    self.shared.counts.strangers.fetch_add(1, Relaxed);
                    return;
                };
                let (_, connection) = stream.get_ref();
                let binding =
                    connection.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[]));
                let Ok(binding) = binding else { return };
                let certificate = connection.peer_certificates().and_then(|chain| chain.first());
                let certificate = certificate.map(|first| first.clone().into_owned());
                let peer = Peer { address: Some(peer), encrypted, binding: binding.to_vec(), certificate };
                self.greet(stream, peer, place).await;
            }
            _ => self.greet(stream, Peer { address: Some(peer), ..Peer::default() }, place).await,
        }
    }

    async fn greet<S>(&self, mut stream: S, peer: Peer, place: OwnedSemaphorePermit)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut head = [0; PREFACE.len()];
        let Ok(Ok(_)) = timeout(OPENING, stream.read_exact(&mut head)).await else {
            self.shared.counts.strangers.fetch_add(1, Relaxed);
            return;
        };
        let crowd = if head == PREFACE { &self.probes } else { &self.guests };
        let Ok(_seat) = crowd.clone().try_acquire_owned() else {
            self.shared.counts.crowded.fetch_add(1, Relaxed);
            return;
        };
        drop(place);
        if head == PREFACE {
            session::serve(self.shared.clone(), stream, peer).await;
        } else if METHODS.iter().any(|method| head.starts_with(method)) {
            let (reader, writer) = tokio::io::split(stream);
            let whole = tokio::io::join(std::io::Cursor::new(head).chain(reader), writer);
            http::serve(self.pages.clone(), whole, peer.address).await;
        } else {
            self.shared.counts.strangers.fetch_add(1, Relaxed);
        }
    }
}

/// First byte of a TLS record that begins a connection (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;
const METHODS: [&[u8]; 6] = [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS "];
