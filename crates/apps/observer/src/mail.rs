//! From reports to batches on disk, one buffer for each collector.
//!
//! Each collector gets the sightings of its share of the digests (the top bits decide), the few of
//! the clock sample whose share they are of no matter, so that all find the same clocks, and the
//! report of each period behind them: it has to know when this probe watched, and how well. So what
//! digest tasks did goes to each; other rows go to the first alone, so that nothing is counted
//! twice.

mod room;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use netaware_passive::join::{is_clock_sample, shard_of};
use netaware_record::Document as _;
use netaware_record::passive::{PacketSighting, ProbeReport, Row};
use netaware_units::Wall;
use netaware_wire::ipfix::sightings::{self, Selection};
use netaware_wire::lmap::{MAX_BATCH, Task};

use crate::buffer::{Batch, Buffer};
use crate::link::held;
use crate::selections::Selectors;
use crate::watch::report::Outlet;

/// Sightings that are put into one batch: 2 MiB.
const BATCH: usize = 80_000;
/// Bytes of a report: the other half of a batch is for sightings.
const REPORT: usize = MAX_BATCH as usize / 2;
/// Over TCP a message may be as long as IPFIX allows.
const MESSAGE: usize = 65_535;

/// Task to packets observed and selected.
type Totals = BTreeMap<String, (u64, u64)>;

/// Sightings of one task on one interface.
type Chosen = BTreeMap<(String, String), Vec<PacketSighting>>;

/// See the module.
#[derive(Debug)]
pub struct Mail {
    boxes: Vec<Letterbox>,
    selectors: Selectors,
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
        Self { boxes: boxes.collect(), selectors: Selectors::default() }
    }
}

impl Outlet for Mail {
    fn sightings(&mut self, task: &str, interface: &str, sightings: &[PacketSighting]) {
        let shards = u16::try_from(self.boxes.len()).unwrap_or(u16::MAX);
        let key = (task.to_owned(), interface.to_owned());
        for (shard, letterbox) in (0..shards).zip(&mut self.boxes) {
            let is_theirs = |seen: &&PacketSighting| {
                shard_of(seen.digest, shards) == shard || is_clock_sample(seen.digest)
            };
            let mut theirs = sightings.iter().filter(is_theirs).peekable();
            while theirs.peek().is_some() {
                let chosen = letterbox.chosen.entry(key.clone()).or_default();
                let before = chosen.len();
                chosen.extend(theirs.by_ref().take(BATCH - letterbox.count));
                letterbox.count += chosen.len() - before;
                if let Some(last) = chosen.last().filter(|_| letterbox.count >= BATCH) {
                    let at = last.at;
                    letterbox.post(Vec::new(), at, &BTreeMap::new(), &self.selectors);
                }
            }
        }
    }

    fn tasks(&mut self, tasks: &BTreeMap<String, Task>) {
        self.selectors.learn(tasks);
    }

    fn report(&mut self, mut report: ProbeReport) {
        self.selectors.hear(&report);
        let totals = totals(&report);
        for (place, letterbox) in self.boxes.iter_mut().enumerate() {
            letterbox.report(&mut report, &totals, &self.selectors);
            if place == 0 {
                report.rows.retain(|row| matches!(row.row, Row::Digests(_)));
            }
        }
    }
}

fn totals(report: &ProbeReport) -> Totals {
    let mut totals = Totals::new();
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
    fn report(&mut self, report: &mut ProbeReport, totals: &Totals, selectors: &Selectors) {
        let mut buffer = held(&self.buffer);
        report.sequence = buffer.next();
        let given_up = buffer.given_up();
        drop(buffer.sync());
        drop(buffer);
        if let Some(first) = report.captures.first_mut() {
            first.health.reports_given_up = given_up - self.given_up;
        }
        self.given_up = given_up;
        // A report of our own always serialises; one without bytes would be refused by the buffer
        // and counted.
        let mut json = report.to_json().unwrap_or_default().into_bytes();
        if json.len() > REPORT {
            let mut shorter = report.clone();
            room::fit(&mut shorter, REPORT);
            tracing::warn!(cut = ?shorter.rows_cut, "a report is too long: the least rows are put together or cut");
            json = shorter.to_json().unwrap_or_default().into_bytes();
        }
        self.post(json, report.period.until, totals, selectors);
    }

    fn post(&mut self, report: Vec<u8>, at: Wall, totals: &Totals, selectors: &Selectors) {
        let chosen = std::mem::take(&mut self.chosen);
        self.count = 0;
        let parts: Vec<(Selection, Vec<PacketSighting>)> = chosen
            .into_iter()
            .zip(1..)
            .map(|(((task, interface), sightings), sequence)| {
                let (observed, selected) = totals.get(&task).copied().unwrap_or((0, 0));
                let mut selection =
                    Selection { sequence, task, interface, observed, selected, ..Selection::default() };
                selectors.fill(&mut selection);
                (selection, sightings)
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

#[cfg(test)]
mod tests {
    use netaware_record::passive::{ClockState, DigestRow, FlowKey, Period, TaskRow, VolumeRow};
    use netaware_units::{ByteCount, Span};
    use netaware_wire::ipfix::sightings::BOB;
    use netaware_wire::lmap::{DigestFunction, What};

    use super::*;
    use crate::buffer::BufferSettings;

    const PERIOD: Period = Period { from: Wall(0), until: Wall(1_000_000_000) };

    fn report(rows: Vec<Row>) -> ProbeReport {
        ProbeReport {
            probe: "p".into(),
            sequence: 0,
            period: PERIOD,
            captures: Vec::new(),
            clock: ClockState { bound: Some(Span(1500)), ..ClockState::default() },
            rows: rows.into_iter().map(|row| TaskRow::new("t", PERIOD, row)).collect(),
            rows_cut: BTreeMap::new(),
            exchanges: Vec::new(),
        }
    }

    /// What `mail` puts on the disk for each of so many collectors.
    fn posted(collectors: usize, mail: impl FnOnce(&mut Mail)) -> Vec<Batch> {
        let folders: Vec<_> = (0..collectors).map(|_| tempfile::tempdir().unwrap()).collect();
        let open = |folder: &tempfile::TempDir| {
            let settings = BufferSettings { folder: folder.path().into(), most: ByteCount(64 << 20) };
            Arc::new(Mutex::new(Buffer::open(settings).unwrap()))
        };
        let buffers: Vec<_> = folders.iter().map(open).collect();
        mail(&mut Mail::new(buffers.clone()));
        buffers.iter().map(|buffer| held(buffer).after(0).unwrap().1).collect()
    }

    #[test]
    fn packet_reports_say_how_their_task_chose_and_how_good_the_clock_is() {
        let what = What::Digest { share: 0.5, payload: 20, function: DigestFunction::Bob, initialiser: None };
        let task = Task { interface: None, filter: None, what, schedule: None };
        let seen = |digest| PacketSighting { digest, at: Wall(5), length: 100, ttl: 64, version: 6 };
        let batches = posted(2, |mail| {
            mail.tasks(&[("t".to_owned(), task)].into());
            mail.sightings("t", "eth0", &[1, 0x7fff_ffff, 0x8000_0000].map(seen));
            let row = DigestRow { observed: 6, selected: 3, ..DigestRow::default() };
            mail.report(report(vec![Row::Digests(row)]));
        });
        let digests: Vec<Vec<u64>> = batches
            .iter()
            .map(|batch| {
                let read = sightings::read(&batch.ipfix).unwrap();
                let [(selection, seen)] = &read.selections[..] else { panic!("{read:?}") };
                assert_eq!((selection.hash.algorithm, selection.hash.payload_size), (BOB, 20));
                assert_eq!(selection.hash.output, (0, u32::MAX.into()));
                assert_eq!(selection.hash.selected, (0, (1 << 31) - 1));
                assert_eq!(selection.stamp_error, Some(Span(1500)));
                assert_eq!((selection.observed, selection.selected), (6, 3));
                seen.iter().map(|one| one.digest).collect()
            })
            .collect();
        assert_eq!(digests, [vec![1, 0x7fff_ffff], vec![0x8000_0000]], "digests of 32 bits are shared too");
    }

    #[test]
    fn each_collector_gets_its_share_and_all_of_the_clock_sample() {
        let digests: Vec<u64> = (1..=2000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let seen =
            |digest: &u64| PacketSighting { digest: *digest, at: Wall(5), length: 100, ttl: 64, version: 6 };
        let batches = posted(3, |mail| {
            mail.sightings("t", "eth0", &digests.iter().map(seen).collect::<Vec<_>>());
            mail.report(report(vec![Row::Digests(DigestRow::default())]));
        });
        for (share, batch) in (0..).zip(&batches) {
            let read = sightings::read(&batch.ipfix).unwrap();
            let found: Vec<u64> = read.selections[0].1.iter().map(|one| one.digest).collect();
            let is_for_it = |digest: &&u64| shard_of(**digest, 3) == share || is_clock_sample(**digest);
            assert_eq!(found, digests.iter().filter(is_for_it).copied().collect::<Vec<_>>());
            assert!(
                (710..790).contains(&found.len()),
                "a third, and a sixteenth of the others: {}",
                found.len()
            );
        }
    }

    #[test]
    fn a_report_of_many_flows_fits_a_batch_and_its_volume_is_whole() {
        let volume = |n: u32| {
            let key = FlowKey { source: Some(std::net::Ipv4Addr::from(n).into()), ..FlowKey::default() };
            let (packets, bytes) = (n.into(), ByteCount(n.into()));
            let (first_at, last_at) = (PERIOD.from, PERIOD.from);
            Row::Volume(VolumeRow { key, packets, bytes, first_at, last_at, packets_error: 0, rest: false })
        };
        let batches = posted(1, |mail| mail.report(report((1..=20_000).map(volume).collect())));
        let json = &batches[0].report;
        assert!(json.len() <= REPORT && json.len() > REPORT / 4, "{}", json.len());
        let sent: ProbeReport = serde_json::from_slice(json).unwrap();
        let packets = |row: &TaskRow| if let Row::Volume(row) = &row.row { row.packets } else { 0 };
        assert_eq!(sent.rows.iter().map(packets).sum::<u64>(), 20_000 * 20_001 / 2);
    }

    #[test]
    fn each_collector_hears_what_digest_tasks_did_and_the_first_alone_the_rest() {
        let volume = VolumeRow {
            key: FlowKey::default(),
            packets: 1,
            bytes: ByteCount(1),
            first_at: Wall(0),
            last_at: Wall(0),
            packets_error: 0,
            rest: false,
        };
        let rows = vec![Row::Volume(volume), Row::Digests(DigestRow::default())];
        let batches = posted(3, |mail| mail.report(report(rows)));
        let kinds = batches.iter().map(|batch| {
            let report: ProbeReport = serde_json::from_slice(&batch.report).unwrap();
            report.rows.iter().map(|row| matches!(row.row, Row::Digests(_))).collect::<Vec<_>>()
        });
        assert_eq!(kinds.collect::<Vec<_>>(), [vec![false, true], vec![true], vec![true]]);
    }
}
