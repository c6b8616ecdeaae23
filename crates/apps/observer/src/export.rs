//! Reports and sightings as IPFIX to collectors of anybody's, without a channel back.
//!
//! Each collector has a queue and a thread of its own, so that one that hangs holds nobody up.
//! IPFIX has no acknowledgements and nothing is kept on disk: what a collector does not take is
//! lost to it, and counted. Counts of packets lean low there and nowhere else. Each batch of packet
//! reports brings what chose them along, so that a collector that came late, or missed datagrams,
//! understands the next batch.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use netaware_io::clock;
use netaware_ipfix::{ExportCounts, ExportError, Exporter};
use netaware_record::passive::{PacketSighting, ProbeReport, Row};
use netaware_wire::ipfix::sightings::Selection;
use netaware_wire::lmap::Task;

use crate::link::held;
use crate::selections::Selectors;
use crate::watch::report::Outlet;

/// Batches that wait for one collector. A station hands out sightings 8192 at a time, so this is 17
/// MB at most.
const WAITING: usize = 64;

/// What happens while a collector is slower than the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenSlow {
    /// What it has no room for is lost to it and counted: packets on a wire do not wait.
    Lose,
    /// Everything waits: a file can be read later.
    Wait,
}

/// What became of everything for one collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Which, as it was named.
    pub target: String,
    /// What was sent, and lost on the way out.
    pub counts: ExportCounts,
    /// Batches that its queue had no room for.
    pub crowded: u64,
}

impl Exported {
    /// Batches and datagrams that this end knows to be lost.
    pub fn lost(&self) -> u64 {
        self.crowded + self.counts.batches_lost + self.counts.datagrams_refused
    }
}

#[derive(Debug, Clone)]
enum Batch {
    Sightings(Arc<(Selection, Vec<PacketSighting>)>),
    Report(Arc<ProbeReport>, Arc<[Selection]>),
}

#[derive(Debug)]
struct Line {
    target: String,
    batches: SyncSender<Batch>,
    counts: Arc<Mutex<ExportCounts>>,
    crowded: u64,
    thread: JoinHandle<()>,
}

/// See the module.
#[derive(Debug)]
pub struct Export {
    lines: Vec<Line>,
    slow: WhenSlow,
    /// By task and interface, numbered from 1; packets observed and chosen since the beginning.
    selections: BTreeMap<(String, String), Selection>,
    selectors: Selectors,
}

impl Export {
    /// Starts a thread for each of `exporters`, which come with what to call them.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn new(exporters: Vec<(String, Exporter)>, slow: WhenSlow) -> std::io::Result<Self> {
        let start = |(target, exporter): (String, Exporter)| {
            let (batches, waiting) = mpsc::sync_channel(WAITING);
            let counts: Arc<Mutex<ExportCounts>> = Arc::default();
            let (shared, name) = (counts.clone(), target.clone());
            let thread = std::thread::Builder::new()
                .name("probe-export".into())
                .spawn(move || send_all(exporter, &name, &waiting, &shared))?;
            Ok(Line { target, batches, counts, crowded: 0, thread })
        };
        let lines: std::io::Result<Vec<Line>> = exporters.into_iter().map(start).collect();
        Ok(Self { lines: lines?, slow, selections: BTreeMap::new(), selectors: Selectors::default() })
    }

    /// Sends what waits and ends. A collector that does not answer holds this up for 8 s at most.
    pub fn finish(self) -> Vec<Exported> {
        let end = |line: Line| {
            let Line { target, batches, counts, crowded, thread } = line;
            drop(batches);
            if thread.join().is_err() {
                tracing::error!(target, "the exporting thread panicked");
            }
            let counts = *held(&counts);
            Exported { target, counts, crowded }
        };
        self.lines.into_iter().map(end).collect()
    }

    fn send(&mut self, batch: &Batch) {
        for line in &mut self.lines {
            let sent = match self.slow {
                WhenSlow::Wait => line.batches.send(batch.clone()).is_ok(),
                WhenSlow::Lose => match line.batches.try_send(batch.clone()) {
                    Ok(()) => true,
                    Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
                },
            };
            if !sent {
                if line.crowded == 0 {
                    tracing::warn!(
                        target = line.target,
                        "takes less than there is; what has no room is lost"
                    );
                }
                line.crowded += 1;
            }
        }
    }

    fn selection(&mut self, task: &str, interface: &str) -> &mut Selection {
        let next = self.selections.len() as u64 + 1;
        let key = (task.to_owned(), interface.to_owned());
        let selection = self.selections.entry(key).or_insert_with(|| Selection {
            sequence: next,
            task: task.to_owned(),
            interface: interface.to_owned(),
            ..Selection::default()
        });
        self.selectors.fill(selection);
        selection
    }
}

impl Outlet for Export {
    fn sightings(&mut self, task: &str, interface: &str, sightings: &[PacketSighting]) {
        let selection = self.selection(task, interface).clone();
        self.send(&Batch::Sightings(Arc::new((selection, sightings.to_vec()))));
    }

    fn tasks(&mut self, tasks: &BTreeMap<String, Task>) {
        self.selectors.learn(tasks);
    }

    fn report(&mut self, mut report: ProbeReport) {
        self.selectors.hear(&report);
        // What a digest task counted goes with its selection; the rows of several interfaces are of
        // one task, and belong to the first of its selections.
        let interface = report.captures.first().map(|capture| capture.interface.clone()).unwrap_or_default();
        let mut counted: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        report.rows.retain(|row| match &row.row {
            Row::Digests(digests) => {
                let sums = counted.entry(row.task.clone()).or_default();
                *sums = (sums.0 + digests.observed, sums.1 + digests.selected);
                false
            }
            _ => true,
        });
        for (task, (observed, selected)) in counted {
            let known = self.selections.keys().find(|(named, _)| *named == task);
            let at = known.map_or_else(|| interface.clone(), |(_, at)| at.clone());
            let selection = self.selection(&task, &at);
            selection.observed += observed;
            selection.selected += selected;
        }
        let selections = self.selections.values().cloned().collect();
        self.send(&Batch::Report(Arc::new(report), selections));
    }
}

fn send_all(mut exporter: Exporter, target: &str, waiting: &Receiver<Batch>, shared: &Mutex<ExportCounts>) {
    // `None`: not tried yet. Each change is told once.
    let mut reached = None;
    for batch in waiting {
        let sent = send(&mut exporter, &batch);
        *held(shared) = exporter.counts();
        match &sent {
            Ok(()) if reached != Some(true) => tracing::info!(target, "exporting"),
            Err(why) if reached != Some(false) => {
                tracing::warn!("{why}; it is tried again, what comes meanwhile is lost to it");
            }
            Ok(()) | Err(_) => {}
        }
        reached = Some(sent.is_ok());
    }
}

fn send(exporter: &mut Exporter, batch: &Batch) -> Result<(), ExportError> {
    let (now, at) = (clock::now(), clock::wall());
    match batch {
        Batch::Sightings(chosen) => exporter.send(now, at, &mut |emitter, out| {
            let (selection, sightings) = &**chosen;
            emitter.selection(selection, out);
            for sighting in sightings {
                emitter.packet(selection.sequence, sighting, out);
            }
        }),
        Batch::Report(report, selections) => exporter.send(now, at, &mut |emitter, out| {
            for capture in &report.captures {
                emitter.capture(&capture.interface, &capture.health, out);
            }
            for selection in &**selections {
                emitter.selection(selection, out);
            }
            for row in &report.rows {
                emitter.row(row, out);
            }
        }),
    }
}

#[cfg(test)]
mod tests;
