//! Delays to collectors of anybody's, as IPFIX (docs/ipfix.md).
//!
//! What goes into the store goes to them as well: rows that joins have made, and those that probes
//! report of their own packets. Each has a queue and a thread, so that one that hangs holds nobody
//! up. IPFIX has no acknowledgements: what one does not take is lost to it, and counted; the store
//! has it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use netaware_io::clock;
use netaware_ipfix::{ExportCounts, Exporter, Over, Target};
use netaware_record::passive::{Row, TaskRow};
use netaware_tls::{Judge, Trust};

use crate::config::Config;
use crate::controller::ApplyError;
use crate::held;

/// Observation domain of all that a collector exports.
const DOMAIN: u32 = 1;
/// Batches that wait for one collector.
const WAITING: usize = 64;

/// What became of rows for one of them.
#[derive(Debug, Default)]
pub(crate) struct LineCounts {
    pub(crate) sent: Mutex<ExportCounts>,
    /// Batches that its queue had no room for.
    pub(crate) crowded: AtomicU64,
}

/// The counts of each, by what it is called in the file.
pub(crate) type Lines = Arc<[(String, Arc<LineCounts>)]>;

struct Line {
    counts: Arc<LineCounts>,
    batches: SyncSender<Arc<[TaskRow]>>,
    thread: JoinHandle<()>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Export(Vec<Line>);

impl Export {
    /// A thread for each. Nobody is connected to before there is something to say.
    ///
    /// # Errors
    /// What is to be believed cannot be read.
    pub(crate) fn start(config: &Config) -> Result<(Self, Lines), ApplyError> {
        let mut export = Self::default();
        let mut lines = Vec::new();
        // What is no target does not come here: the file's check has refused it.
        for target in config.export.iter().filter_map(|text| text.parse::<Target>().ok()) {
            let exporter = exporter(&target, config.export_ca.as_deref())?;
            let counts = Arc::<LineCounts>::default();
            lines.push((target.to_string(), counts.clone()));
            export.0.extend(Line::start(exporter, target.to_string(), counts));
        }
        Ok((export, lines.into()))
    }

    /// Rows that are in the store; those that are no delays stay here.
    pub(crate) fn offer(&self, rows: &[TaskRow]) {
        if self.0.is_empty() {
            return;
        }
        let delays: Arc<[TaskRow]> =
            rows.iter().filter(|row| matches!(row.row, Row::Delay(_))).cloned().collect();
        if delays.is_empty() {
            return;
        }
        for line in &self.0 {
            let full = line.batches.try_send(delays.clone()).is_err();
            line.counts.crowded.fetch_add(u64::from(full), Relaxed);
        }
    }

    /// Sends what waits and ends. A collector that does not answer holds this up for 8 s at most.
    pub(crate) fn end(self) {
        for Line { batches, thread, .. } in self.0 {
            drop(batches);
            let _ = thread.join();
        }
    }
}

fn exporter(target: &Target, authority: Option<&Path>) -> Result<Exporter, ApplyError> {
    let tls = match authority
        .filter(|_| target.over == Over::Tls)
        .map(|path| (path, Trust::tls(Judge::Authority(path), None)))
    {
        Some((_, Ok(Trust::Tls(config)))) => Some(config),
        Some((path, Err(why))) => {
            let path = path.to_owned();
            return Err(ApplyError::File { what: "the authority of 'export'", path, why: why.to_string() });
        }
        Some((_, Ok(Trust::Plain))) | None => None,
    };
    Ok(Exporter::new(target.clone(), tls, DOMAIN))
}

impl Line {
    fn start(exporter: Exporter, target: String, counts: Arc<LineCounts>) -> Option<Self> {
        let (batches, waiting) = sync_channel(WAITING);
        let shared = counts.clone();
        let work = move || send_all(exporter, &target, &waiting, &shared);
        let thread = std::thread::Builder::new().name("export".into()).spawn(work);
        let thread = thread.map_err(|why| tracing::error!("no thread to export with: {why}")).ok()?;
        Some(Self { counts, batches, thread })
    }
}

fn send_all(mut exporter: Exporter, target: &str, waiting: &Receiver<Arc<[TaskRow]>>, counts: &LineCounts) {
    // `None`: not tried yet. Each change is told once.
    let mut reached = None;
    for rows in waiting {
        let sent = exporter.rows(clock::now(), clock::wall(), &rows);
        *held(&counts.sent) = exporter.counts();
        match &sent {
            Ok(()) if reached != Some(true) => tracing::info!(target, "exporting delays"),
            Err(why) if reached != Some(false) => {
                tracing::warn!("{why}; it is tried again, what comes meanwhile is lost to it");
            }
            Ok(()) | Err(_) => {}
        }
        reached = Some(sent.is_ok());
    }
}
