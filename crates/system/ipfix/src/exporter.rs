//! Rows to one collector.
//!
//! A connection is made when there is something to send and kept. When it breaks, what was being
//! sent is lost to that collector and counted: IPFIX has no acknowledgements, and what a kernel has
//! taken may be lost without anybody telling. (To collectors of ours probes use another channel,
//! which has them.) Each new connection is a new session: templates first, sequence numbers from
//! 0. Attempts are made no more often than after 1 s, then 2, to 60 s.

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use netaware_io::zone;
use netaware_record::passive::{ProbeReport, TaskRow};
use netaware_tls::Refusal;
use netaware_units::{Mono, Span, Wall};
use netaware_wire::ipfix::{Emitter, Transport};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::{Over, Target};

/// An attempt to connect ends after this.
const CONNECT_PATIENCE: Span = Span::from_secs(3);
/// A collector that takes nothing for so long is given up.
const WRITE_PATIENCE: Span = Span::from_secs(5);
const FIRST_PAUSE: Span = Span::from_secs(1);
const LONGEST_PAUSE: Span = Span::from_secs(60);

/// Puts records into messages: each goes to the emitter, with where full messages go.
pub type Fill<'a> = &'a mut dyn FnMut(&mut Emitter, &mut dyn FnMut(&[u8]));

/// What became of what was to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportCounts {
    /// Messages that the kernel took.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Batches that were lost, wholly or in part, because there was no connection or it broke.
    pub batches_lost: u64,
    /// Messages that could not be sent as datagrams (too long, no buffers, nobody listening).
    pub datagrams_refused: u64,
    /// Connections made.
    pub connections: u64,
    /// Rows that IPFIX has no words for.
    pub rows_skipped: u64,
}

/// Why a batch did not leave.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The next attempt is not due yet.
    #[error("{target} could not be reached; the next attempt is due in {after}")]
    Waiting {
        /// Whom.
        target: Target,
        /// How long.
        after: Span,
    },
    /// No connection.
    #[error("cannot connect to {target}: {source}")]
    Connect {
        /// Whom.
        target: Target,
        /// The system's word.
        source: io::Error,
    },
    /// It broke.
    #[error("cannot send to {target}: {source}")]
    Send {
        /// Whom.
        target: Target,
        /// The system's word.
        source: io::Error,
    },
    /// TLS is asked for and was not set up, or the name cannot be one of a certificate.
    #[error("no TLS with {target}: {why}")]
    Tls {
        /// Whom.
        target: Target,
        /// Why.
        why: String,
    },
}

/// One collector and the session with it.
#[derive(Debug)]
pub struct Exporter {
    target: Target,
    tls: Option<Arc<ClientConfig>>,
    domain: u32,
    session: Option<Session>,
    retry_at: Mono,
    pause: Span,
    counts: ExportCounts,
}

#[derive(Debug)]
struct Session {
    line: Line,
    emitter: Emitter,
}

/// TLS says that it ends (RFC 8446 §6.1), so that the collector knows that nothing was cut off.
impl Drop for Session {
    fn drop(&mut self) {
        if let Line::Tls(stream) = &mut self.line {
            stream.conn.send_close_notify();
            drop(stream.flush());
        }
    }
}

#[derive(Debug)]
enum Line {
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Udp(UdpSocket),
}

impl Exporter {
    /// Connects to nobody yet. `tls` says whom to believe and is needed for TLS only; `domain` is
    /// the observation domain.
    pub fn new(target: Target, tls: Option<Arc<ClientConfig>>, domain: u32) -> Self {
        let counts = ExportCounts::default();
        Self { target, tls, domain, session: None, retry_at: Mono(0), pause: FIRST_PAUSE, counts }
    }

    /// What became of everything so far.
    pub fn counts(&self) -> ExportCounts {
        self.counts
    }

    /// Sends what a probe reports of a period: the state of its captures, and its rows.
    ///
    /// # Errors
    /// There is no connection, or it broke: the batch is lost to this collector.
    pub fn report(&mut self, now: Mono, report: &ProbeReport) -> Result<(), ExportError> {
        self.send(now, report.period.until, &mut |emitter, out| {
            for capture in &report.captures {
                emitter.capture(&capture.interface, &capture.health, out);
            }
            for row in &report.rows {
                emitter.row(row, out);
            }
        })
    }

    /// Sends rows alone.
    ///
    /// # Errors
    /// As [`Self::report`].
    pub fn rows(&mut self, now: Mono, at: Wall, rows: &[TaskRow]) -> Result<(), ExportError> {
        self.send(now, at, &mut |emitter, out| rows.iter().for_each(|row| emitter.row(row, out)))
    }

    /// Sends whatever `fill` puts into messages that say that they left `at`.
    ///
    /// # Errors
    /// As [`Self::report`].
    pub fn send(&mut self, now: Mono, at: Wall, fill: Fill<'_>) -> Result<(), ExportError> {
        let sent = self.try_send(now, at, fill);
        self.counts.batches_lost += u64::from(sent.is_err());
        sent
    }

    fn try_send(&mut self, now: Mono, at: Wall, fill: Fill<'_>) -> Result<(), ExportError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.begin(now)?,
        };
        let counts = &mut self.counts;
        let skipped = session.emitter.skipped();
        let mut broken = None;
        let line = &mut session.line;
        let mut out = |message: &[u8]| {
            if broken.is_none() {
                broken = line.message(message, counts).err();
            }
        };
        session.emitter.begin(at, &mut out);
        fill(&mut session.emitter, &mut out);
        session.emitter.finish(&mut out);
        self.counts.rows_skipped += session.emitter.skipped() - skipped;
        match broken.or_else(|| session.line.flush().err()) {
            None => {
                self.session = Some(session);
                Ok(())
            }
            Some(source) => {
                session.line.abandon();
                self.later(now);
                Err(ExportError::Send { target: self.target.clone(), source })
            }
        }
    }

    fn begin(&mut self, now: Mono) -> Result<Session, ExportError> {
        if now < self.retry_at {
            return Err(ExportError::Waiting { target: self.target.clone(), after: self.retry_at - now });
        }
        match self.connect() {
            Ok(line) => {
                self.counts.connections += 1;
                self.pause = FIRST_PAUSE;
                let transport =
                    if self.target.over == Over::Udp { Transport::Datagrams } else { Transport::Stream };
                Ok(Session { line, emitter: Emitter::new(self.domain, self.target.message, transport) })
            }
            Err(error) => {
                self.later(now);
                Err(error)
            }
        }
    }

    fn later(&mut self, now: Mono) {
        self.retry_at = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn connect(&self) -> Result<Line, ExportError> {
        let failed = |source| ExportError::Connect { target: self.target.clone(), source };
        let addresses = zone::resolve(&self.target.host, self.target.port).map_err(failed)?;
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match self.connect_to(address) {
                Ok(Line::Tcp(tcp)) if self.target.over == Over::Tls => return self.encrypt(tcp),
                Ok(line) => return Ok(line),
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    fn connect_to(&self, address: SocketAddr) -> io::Result<Line> {
        if self.target.over == Over::Udp {
            let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
            let socket = UdpSocket::bind(any)?;
            socket.connect(address)?;
            return Ok(Line::Udp(socket));
        }
        let stream = TcpStream::connect_timeout(&address, CONNECT_PATIENCE.to_std())?;
        stream.set_write_timeout(Some(WRITE_PATIENCE.to_std()))?;
        stream.set_read_timeout(Some(WRITE_PATIENCE.to_std()))?;
        stream.set_nodelay(true)?;
        Ok(Line::Tcp(stream))
    }

    fn encrypt(&self, tcp: TcpStream) -> Result<Line, ExportError> {
        let refused = |why: String| ExportError::Tls { target: self.target.clone(), why };
        let config = self.tls.clone().ok_or_else(|| refused("no certificate to believe was given".into()))?;
        let name = ServerName::try_from(self.target.host.clone()).map_err(|why| refused(why.to_string()))?;
        let connection = ClientConnection::new(config, name).map_err(|why| refused(why.to_string()))?;
        let mut stream = StreamOwned::new(connection, tcp);
        // Who is not believed is known before the first row leaves.
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|why| {
                refused(Refusal::of(&why).map_or_else(|| why.to_string(), |refusal| refusal.to_string()))
            })?;
        }
        Ok(Line::Tls(Box::new(stream)))
    }
}

impl Line {
    fn message(&mut self, message: &[u8], counts: &mut ExportCounts) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(message)?,
            Self::Tls(stream) => stream.write_all(message)?,
            // What one datagram met says nothing of the next: templates are repeated, the rest is
            // counted.
            Self::Udp(socket) if socket.send(message).is_err() => {
                counts.datagrams_refused += 1;
                return Ok(());
            }
            Self::Udp(_) => {}
        }
        counts.messages += 1;
        counts.bytes += message.len() as u64;
        Ok(())
    }

    /// Nothing more leaves, and nobody waits for a collector that does not take it.
    fn abandon(&mut self) {
        let stream = match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => &mut stream.sock,
            Self::Udp(_) => return,
        };
        drop(stream.shutdown(Shutdown::Both));
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(stream) => stream.flush(),
            Self::Tcp(_) | Self::Udp(_) => Ok(()),
        }
    }
}
