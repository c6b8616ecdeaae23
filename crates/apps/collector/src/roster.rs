//! What is known of each probe while this process runs: whether it is here, how it is, what it
//! sent.
//!
//! Everything in it can be lost: what has to survive is in the fleet store or in the state folder.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netaware_record::passive::{CaptureHealth, ClockState, InterfaceCapture, Period, ProbeReport};
use netaware_units::{Mono, Span, Wall};
use netaware_wire::lmap::{FromCollector, ProbeStatus};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};

/// Where messages for a probe are put; bounded, so that one that does not read is parted with.
pub(crate) type Outbox = mpsc::Sender<FromCollector>;

/// Messages that may wait for one probe.
pub(crate) const OUTBOX: usize = 256;

/// A probe that has said nothing for so long may be replaced by another of its name.
const QUIET: Span = Span::from_secs(25);

/// A probe as the HTTP API shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ProbeView {
    /// Its name.
    pub name: String,
    /// Whether it is connected.
    pub connected: bool,
    /// From where, if it is or was since this process started.
    pub peer: Option<SocketAddr>,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
    /// When that connection began or ended.
    pub since: Option<Wall>,
    /// Version of netaware.
    pub software: String,
    /// What it can do.
    pub abilities: Vec<String>,
    /// Its interfaces.
    pub interfaces: Vec<String>,
    /// Addresses by which others reach it, as it says.
    pub addresses: Vec<IpAddr>,
    /// Number of the instruction that it follows.
    pub following: Option<u64>,
    /// Tasks that it does not do, and why.
    pub refused: BTreeMap<String, String>,
    /// Batches on its disk that were not taken yet.
    pub waiting_batches: u64,
    /// Bytes of them.
    pub waiting_bytes: u64,
    /// Batches that it gave up because its disk buffer was full.
    pub given_up: u64,
    /// Scheduled runs that it could not start in time.
    pub missed: u64,
    /// Active tasks that run now.
    pub running: Vec<String>,
    /// Resident memory, bytes.
    pub memory: u64,
    /// CPU time since it started, ns.
    pub cpu_ns: u64,
    /// Period of its last report.
    pub last_period: Option<Period>,
    /// Captures of that period.
    pub captures: Vec<InterfaceCapture>,
    /// Its clock then.
    pub clock: Option<ClockState>,
    /// Where it stands, degrees north and east.
    pub position: Option<(f64, f64)>,
    /// What came from it since this process started.
    pub counts: Counts,
}

/// What came from one probe since this process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Counts {
    /// Connections that were let in.
    pub connections: u64,
    /// Connections under this name that were refused: wrong proof, or a second probe of the name.
    pub refused: u64,
    /// Messages in which it said something false of itself.
    pub lies: u64,
    /// Batches taken.
    pub batches: u64,
    /// Batches that were known already and not counted again.
    pub duplicates: u64,
    /// Batches that never came: their numbers were left out.
    pub missing: u64,
    /// Bytes of batches taken.
    pub bytes: u64,
    /// Packet sightings in them.
    pub sightings: u64,
    /// IPFIX messages or records that could not be read.
    pub malformed: u64,
    /// Packets that its captures lost.
    pub lost: u64,
    /// Of these, because a ring was full.
    pub lost_ring: u64,
    /// Of these, in the kernel before a ring.
    pub lost_kernel: u64,
    /// Of these, by the cards; absent where no card's driver counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_nic: Option<u64>,
    /// Frames that stood for several packets: the others were not seen by themselves.
    pub merged: u64,
    /// Periods of captures that may lack packets which a neighbouring one counts as lost.
    pub doubtful: u64,
    /// Rows that are missing because reports were too long.
    pub rows_cut: u64,
    /// Packets that its captures saw.
    pub seen: u64,
    /// Times that its clock jumped.
    pub clock_steps: u64,
    /// Sightings whose stamps are an hour or more ahead of this host's time: they were not joined.
    pub untimely: u64,
}

impl Counts {
    fn add(&mut self, health: &CaptureHealth) {
        self.lost += health.lost();
        self.lost_ring += health.lost_ring;
        self.lost_kernel += health.lost_kernel;
        self.lost_nic = match (self.lost_nic, health.lost_nic) {
            (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
            (sum, more) => sum.or(more),
        };
        self.merged += health.merged;
        self.doubtful += u64::from(health.doubtful);
        self.seen += health.seen;
    }
}

/// A live connection.
struct Session {
    id: u64,
    outbox: Outbox,
    /// Tells the connection to end.
    part: Arc<Notify>,
    incarnation: String,
    heard_at: Mono,
}

#[derive(Default)]
struct Entry {
    view: ProbeView,
    session: Option<Session>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Roster {
    entries: Mutex<BTreeMap<String, Entry>>,
}

/// What a probe says of itself when it comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrival {
    pub(crate) probe: String,
    pub(crate) incarnation: String,
    pub(crate) software: String,
    pub(crate) abilities: Vec<String>,
    pub(crate) interfaces: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) instruction: Option<u64>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) encrypted: bool,
}

/// Why a probe with the right key is not let in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Occupied(pub(crate) Option<SocketAddr>);

impl Roster {
    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        // Whatever panicked while holding it left counts, nothing that could contradict itself.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on these are the probes; connections of others are told to part.
    pub(crate) fn keep_only(&self, names: &BTreeSet<&str>, position: impl Fn(&str) -> Option<(f64, f64)>) {
        let mut entries = self.held();
        entries.retain(|name, entry| {
            let stays = names.contains(name.as_str());
            if !stays && let Some(session) = &entry.session {
                session.part.notify_one();
            }
            stays
        });
        for name in names {
            let entry = entries.entry((*name).to_owned()).or_default();
            (*name).clone_into(&mut entry.view.name);
            entry.view.position = position(name);
        }
    }

    /// Lets a probe in. The same probe (by its incarnation) replaces its own dead connection;
    /// another one of the same name has to wait until this one has been quiet for a while, because
    /// two that send under one name cannot be told apart afterwards.
    pub(crate) fn arrive(
        &self,
        arrival: Arrival,
        id: u64,
        outbox: Outbox,
        part: Arc<Notify>,
        now: (Mono, Wall),
    ) -> Result<(), Occupied> {
        let mut entries = self.held();
        let entry = entries.entry(arrival.probe.clone()).or_default();
        if let Some(old) = &entry.session {
            if old.incarnation != arrival.incarnation && now.0.since(old.heard_at) < QUIET {
                entry.view.counts.refused += 1;
                return Err(Occupied(entry.view.peer));
            }
            old.part.notify_one();
        }
        let incarnation = arrival.incarnation.clone();
        entry.session = Some(Session { id, outbox, part, incarnation, heard_at: now.0 });
        let view = &mut entry.view;
        view.name = arrival.probe;
        view.connected = true;
        view.peer = arrival.peer;
        view.encrypted = arrival.encrypted;
        view.since = Some(now.1);
        view.software = arrival.software;
        view.abilities = arrival.abilities;
        view.interfaces = arrival.interfaces;
        view.addresses = arrival.addresses;
        view.following = arrival.instruction;
        view.counts.connections += 1;
        Ok(())
    }

    /// The connection of that number has ended.
    pub(crate) fn depart(&self, probe: &str, id: u64, at: Wall) {
        let mut entries = self.held();
        let Some(entry) = entries.get_mut(probe) else { return };
        if entry.session.as_ref().is_some_and(|session| session.id == id) {
            entry.session = None;
            entry.view.connected = false;
            entry.view.running.clear();
            entry.view.since = Some(at);
        }
    }

    /// It said something.
    pub(crate) fn heard(&self, probe: &str, id: u64, at: Mono) {
        if let Some(entry) = self.held().get_mut(probe)
            && let Some(session) = entry.session.as_mut().filter(|session| session.id == id)
        {
            session.heard_at = at;
        }
    }

    /// Changes what is shown of it.
    pub(crate) fn note(&self, probe: &str, change: impl FnOnce(&mut ProbeView)) {
        if let Some(entry) = self.held().get_mut(probe) {
            change(&mut entry.view);
        }
    }

    /// Its status message.
    pub(crate) fn status(&self, probe: &str, status: ProbeStatus) {
        self.note(probe, |view| {
            view.waiting_batches = status.waiting_batches;
            view.waiting_bytes = status.waiting_bytes;
            view.given_up = status.given_up;
            view.missed = status.missed;
            view.running = status.running;
            view.memory = status.memory;
            view.cpu_ns = status.cpu_ns;
        });
    }

    /// A report of it that was new.
    pub(crate) fn report(&self, probe: &str, report: &ProbeReport) {
        for (task, rows) in &report.rows_cut {
            tracing::warn!(probe, task, rows, "a report was too long: rows of it are missing");
        }
        self.note(probe, |view| {
            for capture in &report.captures {
                view.counts.add(&capture.health);
            }
            view.counts.rows_cut += report.rows_cut.values().sum::<u64>();
            view.counts.clock_steps += u64::from(report.clock.stepped.is_some());
            if view.last_period.is_none_or(|last| last.until < report.period.until) {
                view.last_period = Some(report.period);
                view.captures.clone_from(&report.captures);
                view.clock = Some(report.clock.clone());
            }
        });
    }

    /// Puts a message into the outbox of a probe that is here. One that does not read is parted
    /// with.
    pub(crate) fn send(&self, probe: &str, message: FromCollector) -> bool {
        let entries = self.held();
        let Some(session) = entries.get(probe).and_then(|entry| entry.session.as_ref()) else { return false };
        let sent = session.outbox.try_send(message).is_ok();
        if !sent {
            session.part.notify_one();
        }
        sent
    }

    /// Names of those that are connected.
    pub(crate) fn here(&self) -> Vec<String> {
        let entries = self.held();
        entries.iter().filter(|(_, entry)| entry.session.is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// All, by name.
    pub(crate) fn views(&self) -> Vec<ProbeView> {
        self.held().values().map(|entry| entry.view.clone()).collect()
    }

    /// One of them.
    pub(crate) fn view(&self, probe: &str) -> Option<ProbeView> {
        self.held().get(probe).map(|entry| entry.view.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(incarnation: &str) -> Arrival {
        Arrival { probe: "a".into(), incarnation: incarnation.into(), ..Arrival::default() }
    }

    fn at(seconds: i64) -> (Mono, Wall) {
        (Mono(0) + Span::from_secs(seconds), Wall(seconds * 1_000_000_000))
    }

    #[test]
    fn a_second_probe_of_a_name_waits_until_the_first_is_quiet() {
        let roster = Roster::default();
        let (outbox, _inbox) = mpsc::channel(1);
        let part = Arc::new(Notify::new());
        roster.arrive(arrival("1"), 1, outbox.clone(), part.clone(), at(0)).unwrap();
        assert!(roster.arrive(arrival("2"), 2, outbox.clone(), part.clone(), at(10)).is_err());
        assert_eq!(roster.view("a").unwrap().counts.refused, 1);
        roster.heard("a", 1, at(20).0);
        assert!(roster.arrive(arrival("2"), 3, outbox.clone(), part.clone(), at(30)).is_err());
        roster.arrive(arrival("2"), 4, outbox, part, at(46)).unwrap();
    }

    #[test]
    fn a_probe_that_comes_back_replaces_its_own_connection_and_the_old_ones_end_changes_nothing() {
        let roster = Roster::default();
        let (outbox, _inbox) = mpsc::channel(1);
        let old = Arc::new(Notify::new());
        roster.arrive(arrival("1"), 1, outbox.clone(), old.clone(), at(0)).unwrap();
        roster.arrive(arrival("1"), 2, outbox, Arc::new(Notify::new()), at(1)).unwrap();
        roster.depart("a", 1, Wall(2));
        assert!(roster.view("a").unwrap().connected);
        roster.depart("a", 2, Wall(3));
        assert!(!roster.view("a").unwrap().connected);
    }

    #[test]
    fn who_does_not_read_is_told_to_part() {
        let roster = Roster::default();
        let (outbox, _inbox) = mpsc::channel(1);
        roster.arrive(arrival("1"), 1, outbox, Arc::new(Notify::new()), at(0)).unwrap();
        let taken = FromCollector::Taken { sequence: 1 };
        assert!(roster.send("a", taken.clone()));
        assert!(!roster.send("a", taken.clone()));
        assert!(!roster.send("nobody", taken));
    }
}
