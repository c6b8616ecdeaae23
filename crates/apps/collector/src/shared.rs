//! What all connections share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::TrySendError;
use std::time::Duration;

use netaware_io::clock;
use netaware_store::fleet::FleetReader;
use netaware_units::{Mono, Span};
use tokio::sync::Semaphore;

use crate::access::Gate;
use crate::controller::Controller;
use crate::desk::{Counter, DeskCounts, Errand};
use crate::export::Lines;
use crate::foreign::Foreign;
use crate::held;
use crate::joins;
use crate::latest::Latest;
use crate::mesh;
use crate::roster::Roster;
use crate::totals::Totals;

/// Of the listener.
#[derive(Default)]
pub(crate) struct ListenerCounts {
    /// Connections that came.
    pub(crate) connections: AtomicU64,
    /// Those of them that were turned away because there were too many.
    pub(crate) crowded: AtomicU64,
    /// Probes that were refused.
    pub(crate) refused: AtomicU64,
    /// Connections that spoke no known language, or did not finish their first sentence.
    pub(crate) strangers: AtomicU64,
    /// HTTP requests.
    pub(crate) requests: AtomicU64,
}

/// See the module.
pub(crate) struct Shared {
    pub(crate) controller: Controller,
    pub(crate) roster: Arc<Roster>,
    pub(crate) mesh: mesh::Keeper,
    pub(crate) latest: Latest,
    pub(crate) joins: joins::Views,
    pub(crate) desk: Arc<DeskCounts>,
    pub(crate) totals: Arc<Totals>,
    pub(crate) foreign: Arc<Foreign>,
    pub(crate) exported: Lines,
    pub(crate) counts: ListenerCounts,
    pub(crate) gate: Gate,
    /// Kibibytes of batches that may be in memory.
    pub(crate) room: Arc<Semaphore>,
    pub(crate) reader: Mutex<Box<dyn FleetReader>>,
    pub(crate) started_at: netaware_units::Wall,
    counter: Counter,
    sessions: AtomicU64,
    complaints: Mutex<(Option<Mono>, u32)>,
}

/// Batches in memory, all probes together.
pub(crate) const ROOM_KIB: usize = 256 << 10;

impl Shared {
    #[expect(clippy::too_many_arguments, reason = "called once, with what the start has made")]
    pub(crate) fn new(
        controller: Controller,
        roster: Arc<Roster>,
        joins: joins::Views,
        (desk, totals): (Arc<DeskCounts>, Arc<Totals>),
        (foreign, exported): (Arc<Foreign>, Lines),
        gate: Gate,
        reader: Box<dyn FleetReader>,
        counter: Counter,
    ) -> Self {
        Self {
            controller,
            roster,
            mesh: mesh::Keeper::default(),
            latest: Latest::default(),
            joins,
            desk,
            totals,
            foreign,
            exported,
            counts: ListenerCounts::default(),
            gate,
            room: Arc::new(Semaphore::new(ROOM_KIB)),
            reader: Mutex::new(reader),
            started_at: clock::wall(),
            counter,
            sessions: AtomicU64::new(0),
            complaints: Mutex::new((None, 0)),
        }
    }

    /// A number that no connection had before.
    pub(crate) fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }

    /// From now on this is what runs; the joins hear of it by the desk.
    pub(crate) fn follow(&self, config: &crate::Config) {
        let names = config.probes.keys().map(String::as_str).collect();
        self.roster.keep_only(&names, |name| config.probes.get(name).and_then(|probe| probe.position));
        self.mesh.follow(config, clock::now());
        self.latest.follow(config);
    }

    /// Waits for a place in the desk's queue.
    pub(crate) async fn bring(&self, errand: Errand) {
        let mut errand = errand;
        loop {
            match self.counter.try_send(errand) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => return,
                Err(TrySendError::Full(back)) => errand = back,
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// A warning about somebody; ten in ten seconds at most, so that strangers cannot fill the log.
    pub(crate) fn complain(&self, peer: Option<SocketAddr>, what: &str) {
        let now = clock::now();
        let mut complaints = held(&self.complaints);
        if complaints.0.is_none_or(|since| now.since(since) > Span::from_secs(10)) {
            *complaints = (Some(now), 0);
        }
        complaints.1 += 1;
        if complaints.1 <= 10 {
            let peer = peer.map_or_else(|| "somebody".to_owned(), |peer| peer.to_string());
            tracing::warn!("{peer}: {what}");
        }
    }
}
