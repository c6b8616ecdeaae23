//! What all connections of a responder share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use netaware_host::describe;
use netaware_io::zone::ZonedIp;
use netaware_io::{clock, volley};
use netaware_record::{HostInfo, StampTiming};
use netaware_tls::Identity;
use netaware_units::Mono;
use netaware_wire::Token;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::admission::{Admission, Outlook, SessionId};
use crate::channel::Certificate;
use crate::complaints::Complaints;
use crate::config::Config;
use crate::event::Event;
use crate::flows::FlowTable;
use crate::meter::EchoCaps;
use crate::names::Names;
use crate::pools::Pools;
use crate::reflector::Reflector;
use crate::roster::Roster;
use crate::session::Rules;
use crate::together::Together;
use crate::web::{LastLook, Shelf};

/// Where events of a session go. Unbounded, because its task never waits for anything but events:
/// what may pile up is bounded by what the test threads produce while it runs once.
pub(crate) type Events = UnboundedSender<Event>;

pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) rules: Rules,
    pub(crate) flows: Arc<FlowTable>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) reflectors: Vec<Arc<Reflector>>,
    pub(crate) pools: Pools,
    /// The owner's caps, for echoes.
    pub(crate) echo_caps: Arc<EchoCaps>,
    /// By reservation.
    together: Mutex<HashMap<Token, Weak<Together>>>,
    certificate: OnceLock<Option<Certificate>>,
    pub(crate) complaints: Complaints,
    /// Turns true when the responder is to stop.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) admission: Mutex<Admission>,
    pub(crate) roster: Roster,
    pub(crate) last_look: LastLook,
    pub(crate) began_at: Mono,
    /// By the session's local address, which decides the interface.
    hosts: Mutex<HashMap<ZonedIp, HostInfo>>,
    /// Of this host; measured once.
    stamps: OnceLock<Option<StampTiming>>,
    tickets: AtomicU64,
    /// Shakes hands with browsers, where the owner has a certificate.
    pub(crate) tls: Option<TlsAcceptor>,
    /// By which browsers may ask.
    pub(crate) names: Names,
    /// Of results that pages send.
    pub(crate) shelf: Option<Shelf>,
}

impl Context {
    pub(crate) fn new(
        config: Config,
        flows: Arc<FlowTable>,
        registry: Arc<Registry>,
        reflectors: Vec<Arc<Reflector>>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let software = concat!("netaware ", env!("CARGO_PKG_VERSION")).to_owned();
        Self {
            rules: Rules { key: config.key.clone(), limits: config.limits(), software },
            flows,
            registry,
            reflectors,
            pools: Pools::new(&config),
            echo_caps: Arc::new(EchoCaps::new(&config.limits())),
            together: Mutex::default(),
            certificate: OnceLock::new(),
            complaints: Complaints::default(),
            stopping,
            roster: Roster::default(),
            last_look: LastLook::default(),
            began_at: clock::now(),
            admission: Mutex::new(Admission::new(config.max_concurrent, config.longest_lease())),
            hosts: Mutex::default(),
            stamps: OnceLock::new(),
            tickets: AtomicU64::new(0),
            tls: config.identity.as_ref().map(acceptor),
            names: Names::new(&describe(&[]).name, config.names.clone(), config.identity.clone()),
            shelf: config.results.clone().map(Shelf::new),
            config,
        }
    }

    /// A number that no session has had: each reservation gets its own, so that news of an old one
    /// is recognised.
    pub(crate) fn ticket(&self) -> SessionId {
        SessionId(self.tickets.fetch_add(1, Ordering::Relaxed))
    }

    /// Changes the admission queue and passes on what it has to say.
    pub(crate) fn admit(&self, change: impl FnOnce(&mut Admission)) {
        let notices = {
            let mut admission = locked(&self.admission);
            change(&mut admission);
            admission.notices()
        };
        for (ticket, notice) in notices {
            self.registry.notify(ticket, Event::Notice(ticket, notice));
        }
    }

    /// Who holds a place and who waits for one.
    pub(crate) fn outlook(&self, now: Mono) -> Outlook {
        locked(&self.admission).outlook(now)
    }

    /// What the throughput tests of a reservation do together, for each session that shares it.
    pub(crate) fn together(&self, reservation: Token) -> Arc<Together> {
        let mut known = locked(&self.together);
        known.retain(|_, one| one.strong_count() > 0);
        if let Some(one) = known.get(&reservation).and_then(Weak::upgrade) {
            return one;
        }
        let fresh = Arc::new(Together::default());
        known.insert(reservation, Arc::downgrade(&fresh));
        fresh
    }

    /// This host as seen by whoever speaks to `local`, with what its stamps and sends are worth,
    /// since who asks it for trains has to know. Waits for [`Self::measure_stamps`] if that is not
    /// over.
    pub(crate) fn host(&self, local: ZonedIp) -> HostInfo {
        if let Some(known) = locked(&self.hosts).get(&local) {
            return known.clone();
        }
        // Others' sessions need what is locked here, and this may take a second.
        let host = HostInfo { stamps: self.measure_stamps(), ..describe(&[local.at(0)]) };
        let mut hosts = locked(&self.hosts);
        if hosts.len() >= MAX_HOSTS {
            hosts.clear();
        }
        hosts.insert(local, host.clone());
        host
    }

    /// What this host's stamps and sends are worth. Takes between 50 ms and a second the first
    /// time, which is done before the first session needs it: its prober would take that for the
    /// path's.
    pub(crate) fn measure_stamps(&self) -> Option<StampTiming> {
        *self.stamps.get_or_init(volley::stamp_timing)
    }

    /// What this responder's data channels show; made when the first one is opened. `None` without
    /// random bytes.
    pub(crate) fn certificate(&self) -> Option<&Certificate> {
        self.certificate.get_or_init(Certificate::make).as_ref()
    }

    pub(crate) fn warn(&self, peer: std::net::SocketAddr, why: &str) {
        self.complaints.warn(clock::now(), peer, why);
    }
}

fn acceptor(identity: &Identity) -> TlsAcceptor {
    let mut config = (*identity.config()).clone();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Which session an arriving connection, flow or notice belongs to.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    by_token: Mutex<HashMap<Token, Events>>,
    by_ticket: Mutex<HashMap<SessionId, Events>>,
}

impl Registry {
    pub(crate) fn add(&self, token: Token, events: Events) {
        locked(&self.by_token).insert(token, events);
    }

    pub(crate) fn remove(&self, token: Token) {
        locked(&self.by_token).remove(&token);
    }

    pub(crate) fn add_ticket(&self, ticket: SessionId, events: Events) {
        locked(&self.by_ticket).insert(ticket, events);
    }

    pub(crate) fn remove_ticket(&self, ticket: SessionId) {
        locked(&self.by_ticket).remove(&ticket);
    }

    /// Gives the event back when there is no such session.
    pub(crate) fn tell(&self, token: Token, event: Event) -> Result<(), Event> {
        match locked(&self.by_token).get(&token) {
            Some(events) => events.send(event).map_err(|unsent| unsent.0),
            None => Err(event),
        }
    }

    fn notify(&self, ticket: SessionId, event: Event) {
        if let Some(events) = locked(&self.by_ticket).get(&ticket) {
            // A session that is gone needs no news.
            let _ = events.send(event);
        }
    }
}

/// A thread that panicked while it held a lock leaves consistent data here: every change is one
/// call.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const MAX_HOSTS: usize = 64;
