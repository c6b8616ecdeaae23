//! Receives files: takes streams, and has a session for each of them.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use netaware_io::clock;
use netaware_io::signals::quiet_thread;
use netaware_io::stop::StopFlag;
use netaware_io::zone::ZonedIp;
use netaware_stream::{DualListener, Options};
use netaware_wire::proof::Key;

use crate::place::{Existing, Place};
use crate::report::Event;
use crate::roster::Roster;
use crate::sender::STREAM_PATIENCE;
use crate::session::{LOOKED, Session};
use crate::tls::Identity;

/// Where to receive, and from whom.
#[derive(Debug, Clone)]
pub struct ReceiveConfig {
    /// What comes is put there; it has to be a folder.
    pub folder: PathBuf,
    /// What happens to a file that is there already, with other content.
    pub existing: Existing,
    /// 0 is any that is free.
    pub port: u16,
    /// Addresses to listen on; none means all.
    pub bind: Vec<ZonedIp>,
    /// Who does not know it gets nothing but a challenge.
    pub key: Option<Key>,
    /// Encrypts with TLS as this.
    pub identity: Option<Identity>,
    /// Transfers at the same time.
    pub max_transfers: usize,
}

/// Why nothing can be received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The folder cannot be entered.
    #[error("cannot receive into {}: {source}{}", path.display(), advice(source))]
    Folder {
        /// Which.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The port cannot be listened on.
    #[error("cannot listen on port {port}: {source}{}", advice(source))]
    Listen {
        /// Which.
        port: u16,
        /// The system's word.
        source: io::Error,
    },
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "; make it first",
        io::ErrorKind::AddrInUse => "; choose another one with --port, or end what listens there",
        io::ErrorKind::AddrNotAvailable => "; --bind wants an address of this host",
        _ => "",
    }
}

/// Whether to go on after a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// It is told to stop.
    Stopped,
    /// One transfer has come to its end, complete or not. One that broke is waited for.
    OneTransfer,
}

/// Listens for senders.
#[derive(Debug)]
pub struct Receiver {
    listener: DualListener,
    shared: Arc<Shared>,
}

/// What the transfers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) place: Place,
    pub(crate) config: ReceiveConfig,
    pub(crate) roster: Roster,
}

pub(crate) type Tell = Arc<dyn Fn(Event) + Send + Sync>;

impl Receiver {
    /// Listens from now on.
    ///
    /// # Errors
    /// The folder or the port cannot be had.
    pub fn bind(config: ReceiveConfig) -> Result<Self, ReceiveError> {
        let place = Place::new(&config.folder, config.existing)
            .map_err(|source| ReceiveError::Folder { path: config.folder.clone(), source })?;
        let options = Options { patience: STREAM_PATIENCE, ..Options::default() };
        let port = config.port;
        let listener = if config.bind.is_empty() {
            DualListener::bind(port, options)
        } else {
            let addresses: Vec<_> = config.bind.iter().map(|ip| ip.at(port)).collect();
            DualListener::bind_to(&addresses, options)
        };
        let listener = listener.map_err(|source| ReceiveError::Listen { port, source })?;
        Ok(Self { listener, shared: Arc::new(Shared { place, config, roster: Roster::default() }) })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.listener.addresses()
    }

    /// Receives. `tell` is called from the threads of the transfers.
    ///
    /// # Errors
    /// The listener has failed.
    pub fn run(
        &self,
        until: Until,
        stop: &StopFlag,
        tell: impl Fn(Event) + Send + Sync + 'static,
    ) -> io::Result<()> {
        let tell: Tell = Arc::new(tell);
        let mut running: Vec<JoinHandle<()>> = Vec::new();
        let mut transfers = 0;
        let seats = Arc::new(AtomicUsize::new(self.shared.config.max_transfers));
        // One transfer that has come to its end stops the others.
        let own = stop.child();
        while !own.is_raised() {
            match self.listener.accept_until(Some(clock::now() + LOOKED)) {
                Ok((stream, from)) => {
                    running.retain(|thread| !thread.is_finished());
                    if running.len() >= self.shared.config.max_transfers + TURNED_AWAY {
                        stream.shutdown(std::net::Shutdown::Both);
                        continue;
                    }
                    transfers += 1;
                    let mut session = Session::new(transfers, from, stream, &self.shared, &tell, &own);
                    session.seat = Seat::take(&seats);
                    let whole = own.clone();
                    running.push(quiet_thread("transfer", move || {
                        let came_to_its_end = session.run();
                        if came_to_its_end && until == Until::OneTransfer {
                            whole.raise();
                        }
                    })?);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                Err(error) => return Err(error),
            }
        }
        for thread in running {
            let _ = thread.join();
        }
        Ok(())
    }
}

/// One of the transfers that there may be at the same time.
pub(crate) struct Seat(Arc<AtomicUsize>);

impl Seat {
    /// Only one thread takes, so that there are not fewer between the look and the taking.
    fn take(free: &Arc<AtomicUsize>) -> Option<Self> {
        (free.load(Ordering::Acquire) > 0).then(|| {
            free.fetch_sub(1, Ordering::AcqRel);
            Self(free.clone())
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Senders beyond the most that there may be who are told so, instead of being cut off; and those
/// that have been told all.
const TURNED_AWAY: usize = 16;
