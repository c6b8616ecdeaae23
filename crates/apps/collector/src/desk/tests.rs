use std::sync::atomic::AtomicBool;

use netaware_record::passive::{CaptureLoss, ClockState, DigestRow, Period, Row};
use netaware_store::fleet::{
    BacklogGauge, DelayPoint, DelayQuery, FleetReader, Page, ProbeSummary, RowQuery, StoredRow, TaskSummary,
    Upkeep,
};
use netaware_units::Wall;

use super::*;

/// A store that takes what it is given unless its disk is full, and keeps only the numbers of rows.
#[derive(Clone, Default)]
struct Disk {
    is_full: Arc<AtomicBool>,
    kept: Arc<std::sync::Mutex<Vec<u64>>>,
}

impl FleetReader for Disk {
    fn delays(&self, _: &DelayQuery) -> Result<Page<DelayPoint>, FleetError> {
        unreachable!("the desk reads nothing")
    }

    fn rows(&self, _: &RowQuery) -> Result<Page<StoredRow>, FleetError> {
        unreachable!("the desk reads nothing")
    }

    fn probes(&self, _: &Period) -> Result<Vec<ProbeSummary>, FleetError> {
        unreachable!("the desk reads nothing")
    }

    fn tasks(&self, _: &Period) -> Result<Vec<TaskSummary>, FleetError> {
        unreachable!("the desk reads nothing")
    }
}

impl Fleet for Disk {
    fn take_all(&mut self, batches: &[Batch<'_>]) -> Result<Vec<Taken>, FleetError> {
        if self.is_full.load(Relaxed) {
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(FleetError::Folder { path: "store".into(), source });
        }
        let rows = batches.iter().flat_map(|batch| batch.rows);
        held(&self.kept).extend(rows.map(number));
        Ok(vec![Taken::New; batches.len()])
    }

    fn highest(&self, _: &str, _: &str) -> Result<u64, FleetError> {
        Ok(0)
    }

    fn upkeep(&mut self, _: Wall) -> Result<Upkeep, FleetError> {
        Ok(Upkeep::default())
    }

    fn gauge(&self) -> BacklogGauge {
        BacklogGauge::default()
    }

    fn flush(&mut self, _: Span) -> bool {
        true
    }
}

fn row(number: u64) -> TaskRow {
    let period = Period { from: Wall(0), until: Wall(1_000_000_000) };
    let row = Row::Digests(DigestRow { observed: number, ..DigestRow::default() });
    TaskRow { task: "own".to_owned(), period, row, lost: CaptureLoss::default() }
}

fn number(row: &TaskRow) -> u64 {
    let Row::Digests(digests) = &row.row else { unreachable!("only digests are made here") };
    digests.observed
}

fn desk(disk: &Disk, folder: &std::path::Path) -> Desk {
    let window = Window::open(folder, std::collections::BTreeMap::new(), std::iter::empty()).unwrap();
    let own = Own { name: "collector".to_owned(), incarnation: "1".to_owned(), stores_reports: true };
    let joins = (Joins::none(), window);
    let (_, errands) = counter();
    Desk::new(
        Box::new(disk.clone()),
        Arc::default(),
        joins,
        own,
        Default::default(),
        Export::default(),
        errands,
    )
}

#[test]
fn own_rows_wait_for_a_full_disk_and_beyond_the_most_the_oldest_are_given_up_and_counted() {
    let (disk, folder) = (Disk::default(), tempfile::tempdir().unwrap());
    let mut desk = desk(&disk, folder.path());
    desk.most_waiting = 10;
    let counts = desk.counts.clone();
    let given_up = || counts.rows_given_up.load(Relaxed);
    desk.keep(vec![row(0)]);
    disk.is_full.store(true, Relaxed);
    desk.keep((1..=10).map(row).collect());
    assert_eq!((desk.waiting.len(), given_up(), counts.failures.load(Relaxed)), (10, 0, 1));
    assert!(held(&counts.trouble).is_some(), "the trouble is told");
    desk.keep((11..=13).map(row).collect());
    assert_eq!((desk.waiting.len(), given_up()), (10, 3));
    disk.is_full.store(false, Relaxed);
    desk.keep(Vec::new());
    assert_eq!((desk.waiting.len(), given_up()), (0, 3));
    assert_eq!(*held(&disk.kept), [&[0], &(4..=13).collect::<Vec<u64>>()[..]].concat());
    assert!(held(&counts.trouble).is_none(), "and is over");
}

fn delivery(sequence: u64) -> Delivery {
    let report = ProbeReport {
        probe: "bern".to_owned(),
        sequence,
        period: Period { from: Wall(0), until: Wall(1) },
        captures: Vec::new(),
        clock: ClockState::default(),
        rows: vec![row(sequence)],
        rows_cut: std::collections::BTreeMap::new(),
        exchanges: Vec::new(),
    };
    let (probe, incarnation) = bern();
    let room = Arc::new(tokio::sync::Semaphore::new(1)).try_acquire_owned().unwrap();
    let (sightings, report) = (Vec::new(), Some(report));
    Delivery { probe, incarnation, sequence, sightings, report, bytes: 1, malformed: 0, missing: 0, room }
}

fn bern() -> (Arc<str>, Arc<str>) {
    ("bern".into(), "1".into())
}

#[test]
fn a_batch_that_was_under_way_when_an_earlier_one_was_refused_is_not_taken_in_its_place() {
    let (disk, folder) = (Disk::default(), tempfile::tempdir().unwrap());
    let mut desk = desk(&disk, folder.path());
    let (probe, incarnation) = bern();
    desk.begin(&probe, &incarnation).unwrap();
    let take = |desk: &mut Desk, sequences: &[u64]| {
        let deliveries = sequences.iter().map(|sequence| delivery(*sequence)).collect();
        desk.take(deliveries);
    };
    take(&mut desk, &[1]);
    disk.is_full.store(true, Relaxed);
    take(&mut desk, &[2, 3]);
    disk.is_full.store(false, Relaxed);
    take(&mut desk, &[4]);
    assert_eq!(*held(&disk.kept), [1], "4 waits for 2 and 3");
    assert_eq!(desk.begin(&probe, &incarnation).unwrap(), 1);
    take(&mut desk, &[2, 3]);
    take(&mut desk, &[4]);
    assert_eq!(*held(&disk.kept), [1, 2, 3, 4]);
}
