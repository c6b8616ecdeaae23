//! Takes what probes deliver: to the disk first, then to the joins, and only then is the probe told
//! to forget it.
//!
//! One thread, so that the order in which batches of one probe are taken is that in which they
//! came. What lies waiting is put into the store together, in one transaction. What the store says
//! no to is left with the probes, whose disks keep it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use netaware_io::clock;
use netaware_record::passive::{PacketSighting, ProbeReport, TaskRow};
use netaware_store::fleet::{Batch, Fleet, FleetError, Origin, Taken};
use netaware_units::{Mono, Span};
use netaware_wire::lmap::FromCollector;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::config::Config;
use crate::export::Export;
use crate::held;
use crate::joins::Joins;
use crate::parked;
use crate::roster::Roster;
use crate::totals::Totals;
use crate::window::Window;

/// One batch of a probe, read.
pub(crate) struct Delivery {
    pub(crate) probe: Arc<str>,
    pub(crate) incarnation: Arc<str>,
    pub(crate) sequence: u64,
    /// Of each digest task.
    pub(crate) sightings: Vec<(String, Vec<PacketSighting>)>,
    pub(crate) report: Option<ProbeReport>,
    pub(crate) bytes: u64,
    pub(crate) malformed: u64,
    /// Batches before this one that never came; the desk finds out.
    pub(crate) missing: u64,
    /// Room in memory that this takes; given back when it is done with.
    pub(crate) room: OwnedSemaphorePermit,
}

/// Packets that an exporter of somebody else's has reported. Nobody keeps them on a disk.
pub(crate) struct Seen {
    pub(crate) point: Arc<str>,
    pub(crate) sightings: Vec<PacketSighting>,
    /// As [`Delivery::room`].
    pub(crate) room: OwnedSemaphorePermit,
}

/// What the desk is asked to do.
pub(crate) enum Errand {
    Take(Box<Delivery>),
    See(Seen),
    /// Highest number that is on the disk.
    Highest {
        probe: Arc<str>,
        incarnation: Arc<str>,
        reply: oneshot::Sender<Result<u64, String>>,
    },
    /// Rows that were made here.
    Keep(Vec<TaskRow>),
    /// Joins from now on.
    Follow(Box<Config>),
    End,
}

/// For those who bring something. Full means: wait, and let TCP make the probe wait.
pub(crate) type Counter = SyncSender<Errand>;

/// Errands that may wait.
const QUEUE: usize = 1024;
/// Batches in one transaction.
const TOGETHER: usize = 256;
/// Rows of our own in one transaction, or a little more.
const ROWS_TOGETHER: usize = 10_000;
const UPKEEP: Span = Span::from_secs(60);

/// How the desk is, for metrics.
#[derive(Default)]
pub(crate) struct DeskCounts {
    pub(crate) transactions: std::sync::atomic::AtomicU64,
    pub(crate) failures: std::sync::atomic::AtomicU64,
    /// Rows of our own that were given up because the store took nothing for too long.
    pub(crate) rows_given_up: std::sync::atomic::AtomicU64,
    pub(crate) trouble: std::sync::Mutex<Option<String>>,
    pub(crate) backlog: netaware_store::fleet::BacklogGauge,
}

/// Who this collector is among those that share the joins.
pub(crate) struct Own {
    /// Of its own rows in the store.
    pub(crate) name: String,
    /// Of their numbers.
    pub(crate) incarnation: String,
    /// Rows of probes' reports come to each collector, for its joins; the first one stores them.
    pub(crate) stores_reports: bool,
}

/// See the module.
pub(crate) struct Desk {
    fleet: Box<dyn Fleet>,
    roster: Arc<Roster>,
    joins: Joins,
    window: Window,
    own: Own,
    counts: Arc<DeskCounts>,
    totals: Arc<Totals>,
    highest: HashMap<(Arc<str>, Arc<str>), u64>,
    /// Probes that were refused a batch and have not come back since.
    refused: HashSet<Arc<str>>,
    own_sequence: u64,
    /// Own rows that the store did not take yet, and how many may be.
    waiting: Vec<TaskRow>,
    most_waiting: usize,
    export: Export,
    errands: Receiver<Errand>,
}

/// The counter, and the errands that the desk works off.
pub(crate) fn counter() -> (Counter, Receiver<Errand>) {
    sync_channel(QUEUE)
}

impl Desk {
    pub(crate) fn new(
        fleet: Box<dyn Fleet>,
        roster: Arc<Roster>,
        (joins, window): (Joins, Window),
        own: Own,
        (counts, totals): (Arc<DeskCounts>, Arc<Totals>),
        export: Export,
        errands: Receiver<Errand>,
    ) -> Self {
        let highest = HashMap::new();
        Self {
            fleet,
            roster,
            joins,
            window,
            own,
            counts,
            totals,
            highest,
            refused: HashSet::new(),
            own_sequence: 0,
            waiting: Vec::new(),
            most_waiting: MOST_WAITING,
            export,
            errands,
        }
    }

    /// Works until told to end; what the joins hold then is left for the next process, so that a
    /// planned end loses nothing.
    pub(crate) fn run(mut self) {
        let mut upkeep_at = clock::now() + UPKEEP;
        let lost = self.window.lost_rows();
        self.keep(lost);
        loop {
            match self.errands.recv_timeout(Duration::from_millis(200)) {
                Ok(Errand::End) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(first) => {
                    if !self.round(first) {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let rows = self.joins.rows();
            self.keep(rows);
            self.upkeep(&mut upkeep_at);
        }
        self.end();
    }

    /// `false`: the end was asked for.
    fn round(&mut self, first: Errand) -> bool {
        let mut deliveries = Vec::new();
        let mut next = Some(first);
        let mut goes_on = true;
        while let Some(errand) = next.take() {
            match errand {
                Errand::Take(delivery) => deliveries.push(*delivery),
                Errand::Highest { probe, incarnation, reply } => {
                    self.take(std::mem::take(&mut deliveries));
                    let _ = reply.send(self.begin(&probe, &incarnation).map_err(|why| why.to_string()));
                }
                Errand::See(seen) => {
                    self.window.enter_seen(&seen.point, &seen.sightings);
                    self.joins.offer_seen(&seen.point, seen.sightings, seen.room);
                }
                Errand::Keep(rows) => self.waiting.extend(rows),
                Errand::Follow(config) => {
                    self.take(std::mem::take(&mut deliveries));
                    self.joins.follow(&config);
                    self.window.follow(crate::joins::setups(&config));
                }
                Errand::End => {
                    goes_on = false;
                    break;
                }
            }
            if deliveries.len() < TOGETHER && self.waiting.len() < ROWS_TOGETHER {
                next = self.errands.try_recv().ok();
            }
        }
        self.take(deliveries);
        goes_on
    }

    /// A connection of a probe begins: it sends again what was refused. Returns the highest number
    /// that is on the disk.
    fn begin(&mut self, probe: &Arc<str>, incarnation: &Arc<str>) -> Result<u64, FleetError> {
        self.refused.remove(probe);
        self.highest(probe, incarnation)
    }

    fn highest(&mut self, probe: &Arc<str>, incarnation: &Arc<str>) -> Result<u64, FleetError> {
        let key = (probe.clone(), incarnation.clone());
        if let Some(known) = self.highest.get(&key) {
            return Ok(*known);
        }
        let stored = self.fleet.highest(probe, incarnation)?;
        self.highest.insert(key, stored);
        Ok(stored)
    }

    /// To the disk, to the joins, and back to the probe.
    fn take(&mut self, deliveries: Vec<Delivery>) {
        if deliveries.is_empty() {
            return;
        }
        let probes: std::collections::BTreeSet<Arc<str>> =
            deliveries.iter().map(|one| one.probe.clone()).collect();
        match self.try_take(deliveries) {
            Ok(()) => self.well(),
            Err(error) => {
                self.ill(&error);
                self.refused.extend(probes.iter().cloned());
                // Whoever's batch it was keeps it, and tries again in a while.
                for probe in probes {
                    let why = "the collector's store takes nothing at present; keep what you have".to_owned();
                    self.roster.send(&probe, FromCollector::Refusal { why, again_after: Some(10) });
                }
            }
        }
    }

    fn try_take(&mut self, deliveries: Vec<Delivery>) -> Result<(), FleetError> {
        let mut fresh = Vec::with_capacity(deliveries.len());
        let mut expected: HashMap<(Arc<str>, Arc<str>), u64> = HashMap::new();
        let mut answers: HashMap<Arc<str>, u64> = HashMap::new();
        let mut lacking: Vec<(Arc<str>, u64)> = Vec::new();
        for mut delivery in deliveries {
            // It left before the probe heard that an earlier one was refused. If it were taken,
            // that one would be lost.
            if self.refused.contains(&delivery.probe) {
                continue;
            }
            let key = (delivery.probe.clone(), delivery.incarnation.clone());
            let highest = match expected.get(&key) {
                Some(highest) => *highest,
                None => self.highest(&key.0, &key.1)?,
            };
            let answer = answers.entry(key.0.clone()).or_default();
            *answer = (*answer).max(highest.max(delivery.sequence));
            if delivery.sequence <= highest {
                self.roster.note(&key.0, |view| view.counts.duplicates += 1);
                continue;
            }
            delivery.missing = delivery.sequence - highest - 1;
            // To a store that does not know the probe yet those before were told elsewhere,
            // perhaps; its joins lack them all the same.
            let missing = if highest == 0 { 0 } else { delivery.missing };
            lacking.push((key.0.clone(), missing));
            expected.insert(key, delivery.sequence);
            fresh.push(delivery);
        }
        let batches: Vec<Batch<'_>> = fresh.iter().map(|delivery| self.batch(delivery)).collect();
        // The window is told first: what is in it and not in the store does no harm, the other way
        // round would be a lie.
        self.window.enter(&fresh);
        let taken = if batches.is_empty() { Vec::new() } else { self.fleet.take_all(&batches)? };
        drop(batches);
        self.highest.extend(expected);
        // Only now: what the store refuses comes again, and would be counted again.
        for (probe, missing) in lacking {
            self.roster.note(&probe, |view| view.counts.missing += missing);
        }
        for (delivery, taken) in fresh.into_iter().zip(taken) {
            match taken {
                Taken::New => self.pass_on(delivery),
                Taken::Known => self.roster.note(&delivery.probe, |view| view.counts.duplicates += 1),
            }
        }
        for (probe, sequence) in answers {
            self.roster.send(&probe, FromCollector::Taken { sequence });
        }
        Ok(())
    }

    fn batch<'d>(&self, delivery: &'d Delivery) -> Batch<'d> {
        let origin =
            Origin { name: &delivery.probe, incarnation: &delivery.incarnation, sequence: delivery.sequence };
        let report = delivery.report.as_ref();
        let rows = report.filter(|_| self.own.stores_reports).map_or(&[][..], |report| &report.rows);
        Batch { origin, report, rows }
    }

    fn pass_on(&mut self, delivery: Delivery) {
        let sightings: usize = delivery.sightings.iter().map(|(_, seen)| seen.len()).sum();
        self.roster.note(&delivery.probe, |view| {
            view.counts.batches += 1;
            view.counts.bytes += delivery.bytes;
            view.counts.sightings += sightings as u64;
            view.counts.malformed += delivery.malformed;
        });
        if let Some(report) = &delivery.report {
            self.roster.report(&delivery.probe, report);
            if self.own.stores_reports {
                self.totals.add(&report.rows);
                self.export.offer(&report.rows);
            }
        }
        self.joins.offer(delivery);
    }

    /// Rows of our own; those that the store does not take wait, the oldest given up when they are
    /// too many.
    fn keep(&mut self, rows: Vec<TaskRow>) {
        self.waiting.extend(rows);
        if self.waiting.is_empty() {
            return;
        }
        let Own { name, incarnation, .. } = &self.own;
        let origin = Origin { name, incarnation, sequence: self.own_sequence + 1 };
        match self.fleet.keep(origin, &self.waiting) {
            Ok(_) => {
                self.own_sequence += 1;
                self.window.leave(&self.waiting);
                self.totals.add(&self.waiting);
                self.export.offer(&self.waiting);
                self.waiting.clear();
                self.well();
            }
            Err(error) => {
                self.ill(&error);
                let over = self.waiting.len().saturating_sub(self.most_waiting);
                if over > 0 {
                    self.counts.rows_given_up.fetch_add(over as u64, Relaxed);
                    tracing::error!(
                        rows = over,
                        "rows were given up: the store has taken nothing for too long"
                    );
                    self.waiting.drain(..over);
                }
            }
        }
    }

    fn well(&self) {
        self.counts.transactions.fetch_add(1, Relaxed);
        if let Some(was) = held(&self.counts.trouble).take() {
            tracing::info!("the store works again after: {was}");
        }
    }

    fn ill(&self, error: &FleetError) {
        self.counts.failures.fetch_add(1, Relaxed);
        let why = error.to_string();
        let before = held(&self.counts.trouble).replace(why.clone());
        if before.as_ref() != Some(&why) {
            tracing::error!("the store takes nothing: {why}");
        }
    }

    fn upkeep(&mut self, due: &mut Mono) {
        if clock::now() < *due {
            return;
        }
        *due = clock::now() + UPKEEP;
        match self.fleet.upkeep(clock::wall()) {
            Ok(done) if done.more => *due = clock::now() + Span::from_secs(1),
            Ok(_) => {}
            Err(error) => tracing::warn!("upkeep of the store: {error}"),
        }
    }

    fn end(mut self) {
        while let Ok(errand) = self.errands.try_recv() {
            match errand {
                Errand::Keep(rows) => self.waiting.extend(rows),
                Errand::See(seen) => {
                    self.window.enter_seen(&seen.point, &seen.sightings);
                    self.joins.offer_seen(&seen.point, seen.sightings, seen.room);
                }
                // Probes keep what was not taken.
                _ => {}
            }
        }
        let joins = std::mem::replace(&mut self.joins, Joins::none());
        let rows = joins.park(self.window.folder());
        self.keep(rows);
        if !self.waiting.is_empty() {
            parked::forget(self.window.folder());
        }
        self.fleet.flush(Span::from_secs(5));
        self.export.end();
    }
}

const MOST_WAITING: usize = 1_000_000;

#[cfg(test)]
mod tests;
