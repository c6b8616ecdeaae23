//! IPFIX of other exporters: their flow records become volumes in the fleet store, packet reports
//! of those that `collect.toml` names go to the joins.
//!
//! ```text
//!  exporters ──► listener (system/ipfix) ──► a gathering for each session ──► desk ──► fleet store, joins
//! ```
//!
//! A gathering hands over many records at a time. When the desk does not keep up it waits:
//! connections are not read then, and datagrams are lost in the kernel, which their sequence
//! numbers tell (`missing`).

mod flows;
mod gathering;
mod place;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use netaware_ipfix::{Inlet, Inlets, ListenError, Listener, Options, Over, Totals};
use rustls::ServerConfig;
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::desk::Counter;
use crate::held;

use gathering::Gathering;
pub(crate) use place::Place;

/// Kibibytes of packet reports of others that may be in memory: those of probes have room of their
/// own.
const ROOM_KIB: usize = 64 << 10;

/// What became of records, for metrics.
#[derive(Debug, Default)]
pub(crate) struct ForeignCounts {
    pub(crate) flows: AtomicU64,
    /// Flows whose exporter told no time.
    pub(crate) untimed: AtomicU64,
    /// Packet reports that went to the joins.
    pub(crate) sightings: AtomicU64,
    /// Packet reports of exporters that are no point.
    pub(crate) unnamed: AtomicU64,
    /// Packet reports without a digest.
    pub(crate) frames: AtomicU64,
    pub(crate) delays: AtomicU64,
    /// Records that are none of these and no options.
    pub(crate) others: AtomicU64,
    /// The highest number of missing records: it falls when what was missing comes late, and what
    /// is shown must not.
    missing: AtomicU64,
}

/// Who exporters are, and where what they say goes.
#[derive(Clone)]
pub(crate) struct Entrance(Arc<Inside>);

struct Inside {
    /// Name, address, and domain if it has that of several.
    names: Vec<(Arc<str>, IpAddr, Option<u32>)>,
    counts: Arc<ForeignCounts>,
    counter: Counter,
    room: Arc<Semaphore>,
}

impl Entrance {
    pub(crate) fn new(config: &Config, counter: Counter) -> Self {
        let names = config.exporters.iter();
        let names =
            names.map(|(name, rule)| (name.as_str().into(), rule.address.to_canonical(), rule.domain));
        let room = Arc::new(Semaphore::new(ROOM_KIB));
        Self(Arc::new(Inside { names: names.collect(), counts: Arc::default(), counter, room }))
    }

    /// Its name in `collect.toml`; one that is given for the very domain goes before one for all
    /// domains of an address.
    fn name(&self, address: IpAddr, domain: u32) -> Option<Arc<str>> {
        let of = |wanted: Option<u32>| {
            let mut names = self.0.names.iter();
            names.find(|(_, at, of)| *at == address && *of == wanted).map(|(name, ..)| name.clone())
        };
        of(Some(domain)).or_else(|| of(None))
    }
}

impl Inlets for Entrance {
    fn inlet(&self, peer: SocketAddr, _: Over) -> Box<dyn Inlet> {
        Box::new(Gathering::new(self.clone(), peer.ip().to_canonical()))
    }
}

/// Listens until it is ended.
pub(crate) struct Foreign {
    listeners: Mutex<Vec<Listener>>,
    counts: Arc<ForeignCounts>,
}

impl Foreign {
    /// Listens at all places, each with `usual` bounds of its own; `tls` is what those with TLS
    /// show.
    ///
    /// # Errors
    /// One of them cannot be listened at.
    pub(crate) fn open(
        places: &[Place],
        tls: Option<&Arc<ServerConfig>>,
        entrance: &Entrance,
        usual: &Options,
    ) -> Result<Self, ListenError> {
        let open = |place: &Place| Listener::open(&place.options(tls, usual), entrance);
        let listeners: Result<Vec<Listener>, _> = places.iter().map(open).collect();
        Ok(Self { listeners: Mutex::new(listeners?), counts: entrance.0.counts.clone() })
    }

    /// Where it listens, in the order of the places.
    pub(crate) fn addresses(&self) -> Vec<(Over, SocketAddr)> {
        let overs = [Over::Udp, Over::Tcp, Over::Tls];
        let of = |listener: &Listener| {
            let at = |over| listener.address(over).map(|at| (over, at));
            overs.into_iter().filter_map(at).collect::<Vec<_>>()
        };
        held(&self.listeners).iter().flat_map(of).collect()
    }

    /// What came at all places.
    pub(crate) fn totals(&self) -> Totals {
        let listeners = held(&self.listeners);
        let mut totals = listeners.iter().fold(Totals::default(), |sum, one| sum.plus(&one.totals()));
        drop(listeners);
        let before = self.counts.missing.fetch_max(totals.counts.missing, Relaxed);
        totals.counts.missing = totals.counts.missing.max(before);
        totals
    }

    pub(crate) fn counts(&self) -> &ForeignCounts {
        &self.counts
    }

    /// Listens no longer; what was gathered is handed over before this returns.
    pub(crate) fn end(&self) {
        let listeners = std::mem::take(&mut *held(&self.listeners));
        drop(listeners);
    }
}

#[cfg(test)]
mod tests;
