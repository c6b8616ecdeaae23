//! What one exporter's session says, gathered and handed over many records at a time.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use netaware_io::clock;
use netaware_ipfix::{Inlet, Origin};
use netaware_record::passive::{PacketSighting, Period, Row, TaskRow, VolumeRow};
use netaware_units::{Mono, Span, Wall};
use netaware_wire::ipfix::Found;
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use super::flows::Flows;
use super::{Entrance, ForeignCounts};
use crate::desk::{Errand, Seen};

/// Flows wait for others of their key for so long.
const FLOWS: Span = Span::from_secs(1);
/// Packet reports that are handed over together: 128 KiB.
const TOGETHER: usize = 4096;
/// Between two looks whether there is room again.
const PAUSE: Span = Span::from_millis(2);

/// See the module.
pub(super) struct Gathering {
    entrance: Entrance,
    peer: IpAddr,
    /// As many as a reader lets one session have.
    domains: Vec<Domain>,
    /// Whose record came last: records of one message are of one domain.
    last: usize,
    tally: Tally,
    flows_due: Mono,
}

struct Domain {
    number: u32,
    task: String,
    /// Its name as a point of joins.
    point: Option<Arc<str>>,
    flows: Flows,
    seen: Vec<PacketSighting>,
}

/// Counted here and told now and then, so that sessions do not fight for one line of the cache.
#[derive(Default)]
struct Tally {
    flows: u64,
    untimed: u64,
    sightings: u64,
    unnamed: u64,
    frames: u64,
    delays: u64,
    others: u64,
}

impl Gathering {
    pub(super) fn new(entrance: Entrance, peer: IpAddr) -> Self {
        let flows_due = clock::now() + FLOWS;
        Self { entrance, peer, domains: Vec::new(), last: 0, tally: Tally::default(), flows_due }
    }

    fn domain(&mut self, number: u32) -> &mut Domain {
        if self.domains.get(self.last).is_none_or(|domain| domain.number != number) {
            let known = self.domains.iter().position(|domain| domain.number == number);
            self.last = known.unwrap_or(self.domains.len());
            if known.is_none() {
                self.domains.push(Domain::new(&self.entrance, self.peer, number));
            }
        }
        &mut self.domains[self.last]
    }

    fn hand_over_flows(&mut self) {
        for domain in &mut self.domains {
            let rows: Vec<TaskRow> =
                domain.flows.take().into_iter().map(|row| of_task(&domain.task, row)).collect();
            if !rows.is_empty() {
                // The desk is gone when the collector ends.
                let _ = self.entrance.0.counter.send(Errand::Keep(rows));
            }
        }
    }

    fn hand_over_seen(&mut self) {
        for domain in &mut self.domains {
            domain.hand_over(&self.entrance);
        }
    }
}

impl Inlet for Gathering {
    fn found(&mut self, origin: &Origin, found: Found<'_>) {
        match found {
            Found::Flow(flow) => {
                self.tally.flows += 1;
                self.tally.untimed += u64::from(!flow.timed);
                self.domain(origin.domain).flows.add(flow.row);
            }
            Found::Packet { sighting, .. } => {
                let domain = self.domain(origin.domain);
                if domain.point.is_none() {
                    self.tally.unnamed += 1;
                    return;
                }
                domain.seen.push(sighting);
                let is_full = domain.seen.len() >= TOGETHER;
                self.tally.sightings += 1;
                if is_full {
                    self.hand_over_seen();
                }
            }
            Found::Frame(_) => self.tally.frames += 1,
            Found::Delay(_) => self.tally.delays += 1,
            Found::Statistics { .. } | Found::Options => {}
            Found::Other => self.tally.others += 1,
        }
    }

    fn turn(&mut self, now: Mono) {
        self.tally.tell(&self.entrance.0.counts);
        self.hand_over_seen();
        if now >= self.flows_due {
            self.flows_due = now + FLOWS;
            self.hand_over_flows();
        }
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        self.tally.tell(&self.entrance.0.counts);
        self.hand_over_seen();
        self.hand_over_flows();
    }
}

impl Domain {
    fn new(entrance: &Entrance, peer: IpAddr, number: u32) -> Self {
        let point = entrance.name(peer, number);
        let task = point.as_ref().map_or_else(|| format!("ipfix-{peer}"), |name| format!("ipfix-{name}"));
        Self { number, task, point, flows: Flows::default(), seen: Vec::new() }
    }

    fn hand_over(&mut self, entrance: &Entrance) {
        let Some(point) = self.point.as_ref().filter(|_| !self.seen.is_empty()) else { return };
        let sightings = std::mem::take(&mut self.seen);
        let Some(room) = room(entrance, sightings.len()) else { return };
        let _ = entrance.0.counter.send(Errand::See(Seen { point: point.clone(), sightings, room }));
    }
}

/// Waits until there is room for so many packet reports; `None`: the collector ends.
fn room(entrance: &Entrance, sightings: usize) -> Option<OwnedSemaphorePermit> {
    let bytes = sightings * size_of::<PacketSighting>();
    let kibibytes = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    loop {
        match entrance.0.room.clone().try_acquire_many_owned(kibibytes) {
            Ok(room) => return Some(room),
            Err(TryAcquireError::NoPermits) => clock::sleep(PAUSE),
            Err(TryAcquireError::Closed) => return None,
        }
    }
}

fn of_task(task: &str, row: VolumeRow) -> TaskRow {
    // The end of a period is not in it.
    let until = Wall(row.last_at.max(row.first_at).0.saturating_add(1));
    let period = Period { from: row.first_at, until };
    TaskRow::new(task, period, Row::Volume(row))
}

impl Tally {
    fn tell(&mut self, counts: &ForeignCounts) {
        let Self { flows, untimed, sightings, unnamed, frames, delays, others } = std::mem::take(self);
        let add = |to: &AtomicU64, number| to.fetch_add(number, Relaxed);
        add(&counts.flows, flows);
        add(&counts.untimed, untimed);
        add(&counts.sightings, sightings);
        add(&counts.unnamed, unnamed);
        add(&counts.frames, frames);
        add(&counts.delays, delays);
        add(&counts.others, others);
    }
}
