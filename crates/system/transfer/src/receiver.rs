//! Receives files: takes streams, and has a session for each of them.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use netaware_io::clock;
use netaware_io::signals::quiet_thread;
use netaware_io::stop::StopFlag;
use netaware_io::zone::ZonedIp;
use netaware_pool::{AtShare, Limits, Places, Standing};
use netaware_stream::{DualListener, Options};
use netaware_wire::proof::Key;

use crate::place::{Comparing, Existing, Place};
use crate::report::Event;
use crate::roster::Roster;
use crate::sender::STREAM_PATIENCE;
use crate::session::{LOOKED, Session};
use crate::tls::Identity;
use netaware_pool::Reports;

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
    /// Connections that have not proven the key or, without one, not said hello.
    pub(crate) opening: Places,
    /// Transfers at the same time.
    pub(crate) seats: Places,
    /// Streams of transfers that are over, until their senders have the last words.
    pub(crate) leaving: Places,
    /// Which of those that were not let in are reported.
    pub(crate) reports: Reports,
}

pub(crate) type Tell = Arc<dyn Fn(Event) + Send + Sync>;

impl Receiver {
    /// Listens from now on.
    ///
    /// # Errors
    /// The folder or the port cannot be had.
    pub fn bind(config: ReceiveConfig) -> Result<Self, ReceiveError> {
        let comparing = if config.key.is_some() { Comparing::Everything } else { Comparing::WhatCame };
        let place = Place::new(&config.folder, config.existing, comparing)
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
        let shared = Shared {
            place,
            roster: Roster::default(),
            opening: Places::new(BRIEF),
            seats: Places::new(seats(config.max_transfers)),
            leaving: Places::new(BRIEF),
            reports: Reports::default(),
            config,
        };
        Ok(Self { listener, shared: Arc::new(shared) })
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
        let most = self.shared.config.max_transfers + 2 * BRIEF.all + ENDING;
        // One transfer that has come to its end stops the others.
        let own = stop.child();
        while !own.is_raised() {
            match self.listener.accept_until(Some(clock::now() + LOOKED)) {
                Ok((stream, from)) => {
                    running.retain(|thread| !thread.is_finished());
                    let evicted = stream.clone();
                    let on_eviction = move || evicted.shutdown(Shutdown::Both);
                    let opening = self.shared.opening.enter(from.ip(), Standing::Unproven, on_eviction);
                    let Some(opening) = opening.ok().filter(|_| running.len() < most) else {
                        stream.shutdown(Shutdown::Both);
                        continue;
                    };
                    transfers += 1;
                    let session = Session::new(transfers, (stream, from), opening, &self.shared, &tell, &own);
                    let whole = own.clone();
                    let thread = quiet_thread("transfer", move || {
                        let came_to_its_end = session.run();
                        if came_to_its_end && until == Until::OneTransfer {
                            whole.raise();
                        }
                    });
                    // Without a thread the stream ends here. A host that has no more of them has
                    // some again later, and the receiver goes on.
                    running.extend(thread);
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

/// Limits what is held for seconds by whoever connects: who is silent is the first to go. One host
/// has a quarter of it, and one site half.
const BRIEF: Limits = Limits { all: 64, reserved: 0, per_host: 16, per_site: 32, at_share: AtShare::Evict };

/// Limits the transfers at the same time. With a key everybody who has a seat has proven it.
/// Without one a host may have all of them until another host comes.
fn seats(max_transfers: usize) -> Limits {
    Limits {
        all: max_transfers,
        reserved: 0,
        per_host: max_transfers,
        per_site: max_transfers,
        at_share: AtShare::Refuse,
    }
}

/// Threads of connections that were evicted and have not noticed it yet.
const ENDING: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use netaware_pool::Pool;

    use super::*;

    #[test]
    fn a_host_that_took_all_seats_without_a_key_leaves_one_to_the_next_host() {
        let [first, second] = [1, 2].map(|n| IpAddr::from([192, 0, 2, n]));
        let mut seats = Pool::new(seats(4));
        for n in 0..4 {
            seats.enter(first, Standing::Unproven, n).unwrap();
        }
        assert_eq!(seats.enter(second, Standing::Unproven, 4).unwrap().evicted, Some(0));
        assert!(seats.enter(first, Standing::Unproven, 5).is_err());
    }

    #[test]
    fn who_has_the_key_keeps_its_seat() {
        let [first, second] = [1, 2].map(|n| IpAddr::from([192, 0, 2, n]));
        let mut seats = Pool::new(seats(1));
        seats.enter(first, Standing::Proven, 0).unwrap();
        assert!(seats.enter(second, Standing::Proven, 1).is_err());
        assert!(seats.enter(second, Standing::Unproven, 2).is_err());
    }
}
