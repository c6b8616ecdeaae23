//! Messages from any number of exporters.
//!
//! One thread for datagrams, one for each connection, one for each port that connections come to.
//! Connections and exporters over datagrams are bounded; who comes when all places are taken is
//! refused and counted. A connection that has sent no whole message [`Options::first_message`]
//! after it was made, or none for [`Options::patience`], is closed, as is one that sends anything
//! but IPFIX.
//!
//! Whoever can send from an address can pretend to be the exporter there: over datagrams nobody is
//! authenticated. Listen to UDP in networks of your own.

mod connections;
mod datagrams;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use netaware_io::stop::StopFlag;
use netaware_units::{Mono, Span, Wall};
use netaware_wire::ipfix::{Counts, Found, Interpreter, MessageError, Reader};
use rustls::ServerConfig;

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Over {
    /// RFC 7011 §10.3.
    Udp,
    /// RFC 7011 §10.4.
    Tcp,
    /// TLS over TCP (RFC 7011 §11.1).
    Tls,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        })
    }
}

/// Where to listen, and to how many.
#[derive(Debug, Clone)]
pub struct Options {
    /// Datagrams.
    pub udp: Option<SocketAddr>,
    /// Connections.
    pub tcp: Option<SocketAddr>,
    /// Connections with TLS, and what is shown to them (and asked of them: a client's certificate,
    /// if the configuration says so).
    pub tls: Option<(SocketAddr, Arc<ServerConfig>)>,
    /// Connections at once.
    pub connections: usize,
    /// Exporters over datagrams at once; each is one address and port.
    pub exporters: usize,
    /// A connection has to bring its first whole message after so long.
    pub first_message: Span,
    /// Who says nothing for so long is forgotten.
    pub patience: Span,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            udp: None,
            tcp: None,
            tls: None,
            connections: 64,
            exporters: 1024,
            first_message: Span::from_secs(10),
            patience: Span::from_secs(3600),
        }
    }
}

/// Who said something, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Address and port of the exporter.
    pub peer: SocketAddr,
    /// How it came.
    pub over: Over,
    /// Observation domain.
    pub domain: u32,
    /// When the message left, by the exporter's clock, to the second.
    pub exported_at: Wall,
}

/// Takes what is found. Called by several threads; whoever is slow here makes datagrams be lost in
/// the kernel.
pub type Sink = Arc<dyn Fn(&Origin, Found<'_>) + Send + Sync>;

/// Gives each session where to put what it finds, so that sessions neither wait for each other nor
/// share what they gather.
pub trait Inlets: Send + Sync {
    /// For an exporter that has just begun to speak.
    fn inlet(&self, peer: SocketAddr, over: Over) -> Box<dyn Inlet>;
}

/// Takes what one session finds; dropped when that is over. Whoever is slow here makes connections
/// wait and datagrams be lost in the kernel.
pub trait Inlet: Send {
    /// A record.
    fn found(&mut self, origin: &Origin, found: Found<'_>);
    /// It is `now`, and messages are all taken that have come: called several times a second,
    /// whether any came or not.
    fn turn(&mut self, now: Mono);
}

impl Inlets for Sink {
    fn inlet(&self, _: SocketAddr, _: Over) -> Box<dyn Inlet> {
        Box::new(Shown(self.clone()))
    }
}

/// Shows each record to a function that all sessions share.
struct Shown(Sink);

impl Inlet for Shown {
    fn found(&mut self, origin: &Origin, found: Found<'_>) {
        (self.0)(origin, found);
    }

    fn turn(&mut self, _: Mono) {}
}

/// What came from all exporters since the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// By what was wrong with it.
    pub counts: Counts,
    /// Connections that there are now.
    pub connections: u64,
    /// Exporters over datagrams that there are now.
    pub exporters: u64,
    /// Connections that there was no place for, and datagrams of exporters without a place or that
    /// are not IPFIX.
    pub refused: u64,
    /// Connections that sent something else, or could not agree on TLS.
    pub foreign: u64,
    /// Connections that were closed because nothing came.
    pub silent: u64,
}

impl Totals {
    /// Of several listeners.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.counts.add_change(&Counts::default(), &other.counts);
        self.connections += other.connections;
        self.exporters += other.exporters;
        self.refused += other.refused;
        self.foreign += other.foreign;
        self.silent += other.silent;
        self
    }
}

/// Why nobody listens.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen to IPFIX over {over} at {at}: {source}")]
pub struct ListenError {
    /// How.
    pub over: Over,
    /// Where.
    pub at: SocketAddr,
    /// The system's word.
    pub source: io::Error,
}

/// Listens until it is dropped.
#[derive(Debug)]
pub struct Listener {
    places: Vec<(Over, SocketAddr)>,
    totals: Arc<Mutex<Totals>>,
    stop: StopFlag,
    threads: Vec<JoinHandle<()>>,
}

impl Listener {
    /// Begins to listen.
    ///
    /// # Errors
    /// A port cannot be had, or no thread.
    pub fn open<I: Inlets + Clone + 'static>(options: &Options, inlets: &I) -> Result<Self, ListenError> {
        let mut listener =
            Self { places: Vec::new(), totals: Arc::default(), stop: StopFlag::new(), threads: Vec::new() };
        let shared = Shared {
            inlets: Arc::new(inlets.clone()),
            totals: listener.totals.clone(),
            stop: listener.stop.clone(),
            first_message: options.first_message,
            patience: options.patience,
            places: options.connections,
        };
        if let Some(at) = options.udp {
            let failed = |source| ListenError { over: Over::Udp, at, source };
            let (bound, thread) = datagrams::begin(at, options.exporters, shared.clone()).map_err(failed)?;
            listener.places.push((Over::Udp, bound));
            listener.threads.push(thread);
        }
        let streams = [
            options.tcp.map(|at| (Over::Tcp, at, None)),
            options.tls.as_ref().map(|(at, config)| (Over::Tls, *at, Some(config.clone()))),
        ];
        for (over, at, config) in streams.into_iter().flatten() {
            let failed = |source| ListenError { over, at, source };
            let socket = TcpListener::bind(at).map_err(failed)?;
            listener.places.push((over, socket.local_addr().map_err(failed)?));
            listener.threads.push(connections::begin(socket, config, shared.clone()).map_err(failed)?);
        }
        Ok(listener)
    }

    /// Where it listens: the port that the system chose, where 0 was asked for.
    pub fn address(&self, over: Over) -> Option<SocketAddr> {
        self.places.iter().find(|(of, _)| *of == over).map(|(_, at)| *at)
    }

    /// What came so far. Sessions report several times a second.
    pub fn totals(&self) -> Totals {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.raise();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What all threads of a listener have in common.
#[derive(Clone)]
struct Shared {
    inlets: Arc<dyn Inlets>,
    totals: Arc<Mutex<Totals>>,
    stop: StopFlag,
    first_message: Span,
    patience: Span,
    places: usize,
}

impl Shared {
    fn tell(&self, change: impl FnOnce(&mut Totals)) {
        change(&mut self.totals.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// One exporter's state, where it puts what it says, and what of its counts is in the totals.
struct Session {
    reader: Reader,
    interpreter: Interpreter,
    inlet: Box<dyn Inlet>,
    told: Counts,
    peer: SocketAddr,
    over: Over,
}

impl Session {
    fn new(reader: Reader, peer: SocketAddr, over: Over, shared: &Shared) -> Self {
        let inlet = shared.inlets.inlet(peer, over);
        Self { reader, interpreter: Interpreter::new(), inlet, told: Counts::default(), peer, over }
    }

    fn message(&mut self, now: Wall, message: &[u8]) -> Result<(), MessageError> {
        let Self { reader, interpreter, inlet, peer, over, .. } = self;
        reader.read(now, message, &mut |record| {
            let origin =
                Origin { peer: *peer, over: *over, domain: record.domain, exported_at: record.exported_at };
            inlet.found(&origin, interpreter.interpret(record));
        })
    }

    /// Adds to the totals what came since the last time.
    fn tell(&mut self, totals: &mut Totals) {
        let now = self.reader.counts();
        totals.counts.add_change(&self.told, &now);
        self.told = now;
    }
}
