//! From reports to batches on disk, one buffer for each collector.
//!
//! Each collector gets the sightings of its share of the digests (the top bits decide), and the report of each period behind them:
//! it has to know when this probe watched, and how well. Rows go to the first alone, so that nothing is counted twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use netaware_passive::join::shard_of;
use netaware_record::passive::{PacketSighting, ProbeReport, Row};
use netaware_units::Wall;
use netaware_wire::ipfix::sightings::{self, Selection};
use netaware_wire::lmap::MAX_BATCH;

use crate::buffer::{Batch, Buffer};
use crate::link::held;
use crate::watch::report::Outlet;

/// Sightings that are put into one batch: 2 MiB.
const BATCH: usize = 80_000;
/// Over TCP a message may be as long as IPFIX allows.
const MESSAGE: usize = 65_535;

/// Sightings of one task on one interface.
type Chosen = BTreeMap<(String, String), Vec<PacketSighting>>;

/// See the module.
#[derive(Debug)]
pub struct Mail {
    boxes: Vec<Letterbox>,
}

#[derive(Debug)]
struct Letterbox {
    buffer: Arc<Mutex<Buffer>>,
    chosen: Chosen,
    count: usize,
    /// What had been given up when the last report was made.
    given_up: u64,
}

impl Mail {
    /// For collectors in the order in which they were named.
    pub fn new(buffers: Vec<Arc<Mutex<Buffer>>>) -> Self {
        let boxes = buffers.into_iter().map(|buffer| Letterbox {
            buffer,
            chosen: Chosen::new(),
            count: 0,
            given_up: 0,
        });
        Self { boxes: boxes.collect() }
    }
}

impl Outlet for Mail {
    fn sightings(&mut self, task: &str, interface: &str, sightings: Vec<PacketSighting>) {
        let shards = u16::try_from(self.boxes.len()).unwrap_or(u16::MAX);
        let key = (task.to_owned(), interface.to_owned());
        for sighting in sightings {
            let letterbox = &mut self.boxes[usize::from(shard_of(sighting.digest, shards))];
            letterbox.chosen.entry(key.clone()).or_default().push(sighting);
            letterbox.count += 1;
            if letterbox.count >= BATCH {
                letterbox.post(Vec::new(), sighting.at, &BTreeMap::new());
            }
        }
    }

    fn report(&mut self, mut report: ProbeReport) {
        let totals = totals(&report);
        for (place, letterbox) in self.boxes.iter_mut().enumerate() {
            letterbox.report(&mut report, &totals);
            if place == 0 {
                report.rows.clear();
            }
        }
    }
}

/// Task to packets observed and selected.
fn totals(report: &ProbeReport) -> BTreeMap<String, (u64, u64)> {
    let mut totals: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in &report.rows {
        if let Row::Digests(digests) = &row.row {
            let total = totals.entry(row.task.clone()).or_default();
            total.0 += digests.observed;
            total.1 += digests.selected;
        }
    }
    totals
}

impl Letterbox {
    fn report(&mut self, report: &mut ProbeReport, totals: &BTreeMap<String, (u64, u64)>) {
        let mut buffer = held(&self.buffer);
        report.sequence = buffer.next();
        let given_up = buffer.given_up();
        drop(buffer.sync());
        drop(buffer);
        if let Some(first) = report.captures.first_mut() {
            first.health.reports_given_up = given_up - self.given_up;
        }
        self.given_up = given_up;
        // A report of our own always serialises; one without bytes would be refused by the buffer and counted.
        let mut json = serde_json::to_vec(report).unwrap_or_default();
        if json.len() > MAX_BATCH as usize / 2 {
            json = shortened(report);
        }
        self.post(json, report.period.until, totals);
    }

    fn post(&mut self, report: Vec<u8>, at: Wall, totals: &BTreeMap<String, (u64, u64)>) {
        let chosen = std::mem::take(&mut self.chosen);
        self.count = 0;
        let parts: Vec<(Selection, Vec<PacketSighting>)> = chosen
            .into_iter()
            .zip(1..)
            .map(|(((task, interface), sightings), sequence)| {
                let (observed, selected) = totals.get(&task).copied().unwrap_or((0, 0));
                (
                    Selection { sequence, task, interface, observed, selected, ..Selection::default() },
                    sightings,
                )
            })
            .collect();
        let selections = parts.iter().map(|(one, _)| (one.task.clone(), one.sequence)).collect();
        let mut ipfix = Vec::new();
        if !parts.is_empty() {
            let parts: Vec<_> = parts.iter().map(|(one, sightings)| (one, &sightings[..])).collect();
            sightings::emit(1, at, &parts, MESSAGE, &mut ipfix);
        }
        held(&self.buffer).append(&Batch { ipfix, report, selections });
    }
}

/// A report that is too long for a batch loses the rows of the task that has most, the least important first: rows come in
/// order of importance.
fn shortened(report: &ProbeReport) -> Vec<u8> {
    let mut report = report.clone();
    loop {
        let json = serde_json::to_vec(&report).unwrap_or_default();
        if json.len() <= MAX_BATCH as usize / 2 || report.rows.is_empty() {
            return json;
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &report.rows {
            *counts.entry(&row.task).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let Some((task, keep)) = most.map(|(task, count)| (task.to_owned(), count / 2)) else { return json };
        let mut seen = 0;
        report.rows.retain(|row| {
            seen += usize::from(row.task == task);
            row.task != task || seen <= keep
        });
        tracing::warn!(task, "a report is too long: only the first {keep} rows of this task are sent");
    }
}
