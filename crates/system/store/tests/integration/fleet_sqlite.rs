//! The fleet store in a SQLite file: what every store must do, and what only a file can suffer.

use netaware_record::passive::{ClockState, DigestRow, Period, ProbeReport, Row, TaskRow};
use netaware_store::fleet::{self, Ages, Fleet, FleetError, FleetReader, Kind, RowQuery, SqliteFleet, Taken};
use netaware_units::{Span, Wall};

use super::cases::{self, grow_old};

const BASE: Wall = Wall(1_790_000_000_000_000_000);

fn fresh() -> (tempfile::TempDir, SqliteFleet) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteFleet::open(folder.path().join("deep/fleet.db"), Ages::default()).unwrap();
    (folder, store)
}

fn digests(sequence: u64) -> ProbeReport {
    let period = Period {
        from: Wall(BASE.0 + sequence.cast_signed()),
        until: Wall(BASE.0 + sequence.cast_signed() + 1),
    };
    let row = Row::Digests(DigestRow { observed: sequence, ..DigestRow::default() });
    ProbeReport {
        probe: "p".into(),
        sequence,
        period,
        captures: Vec::new(),
        clock: ClockState::default(),
        rows: vec![TaskRow::new("w".repeat(3000), period, row)],
        rows_cut: std::collections::BTreeMap::new(),
        exchanges: Vec::new(),
    }
}

#[test]
fn a_file_does_what_every_store_must() {
    for (claim, case) in cases::CASES.iter().chain(cases::OLD_CASES.iter().map(|(_, case)| case)) {
        eprintln!("{claim}");
        let (_folder, mut store) = fresh();
        case(&mut store, BASE);
    }
}

#[test]
fn a_url_is_not_taken_for_a_file_and_its_password_is_not_repeated() {
    let error = fleet::open("postgres://me:secret@host/db").map(|_| ()).unwrap_err();
    assert!(matches!(error, FleetError::Place { .. }), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn a_full_disk_is_an_error_that_says_what_to_do_and_what_was_taken_stays() {
    let (_folder, mut store) = fresh();
    store.limit_pages(8).unwrap();
    let mut taken = 0;
    let error = loop {
        assert!(taken < 10_000, "it never gets full");
        match store.take("aa", &digests(taken + 1)) {
            Ok(known) => assert_eq!(known, Taken::New),
            Err(error) => break error,
        }
        taken += 1;
    };
    assert!(matches!(error, FleetError::DiskFull { .. }), "{error}");
    assert!(
        error.to_string().contains("fleet.db") && error.to_string().contains("free some space"),
        "{error}"
    );
    assert!(taken > 0);
    assert_eq!(store.highest("p", "aa").unwrap(), taken, "what was refused is not marked as taken");
    assert_eq!(store.rows(&RowQuery::of(Kind::Digests)).unwrap().items.len() as u64, taken);
}

/// Rows, and what they counted together.
fn counted(store: &SqliteFleet) -> (usize, u64) {
    let items = store.rows(&RowQuery::of(Kind::Digests)).unwrap().items;
    let counted =
        items.iter().map(|stored| if let Row::Digests(row) = &stored.row { row.observed } else { 0 });
    (items.len(), counted.sum())
}

#[test]
fn rows_get_coarser_and_go_at_the_ages_that_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let hours = |n: i64| Span::from_secs(n * 3600);
    let ages = Ages { to_minutes: hours(2), to_hours: hours(5), delete: hours(9), delete_single: hours(7) };
    let mut store = SqliteFleet::open(folder.path().join("fleet.db"), ages).unwrap();
    // Two in one minute, the third in the next of the same hour.
    for sequence in 1..=3_u64 {
        let from = Wall(BASE.0 + 40_000_000_000 * sequence.cast_signed());
        let mut report = digests(sequence);
        report.period = Period { from, until: Wall(from.0 + 1_000_000_000) };
        report.rows[0].period = report.period;
        store.take("aa", &report).unwrap();
    }
    let always = Period { from: Wall(0), until: Wall(i64::MAX) };
    // Hours after them: how many rows there are, what they counted, and whether the reports are
    // there.
    let table = [
        (1, 3, 6, true),
        (3, 2, 6, true),
        (4, 2, 6, true),
        (6, 1, 6, true),
        (8, 1, 6, false),
        (10, 0, 0, false),
    ];
    for (after, rows, sum, reports) in table {
        let now = Wall(BASE.0 + hours(after).0);
        grow_old(&mut store, now);
        assert_eq!(counted(&store), (rows, sum), "{after} h");
        assert_eq!(!store.probes(&always).unwrap().is_empty(), reports, "{after} h");
    }
}

#[test]
fn a_reader_sees_what_a_writer_took_while_it_writes() {
    let (folder, mut store) = fresh();
    let path = folder.path().join("deep/fleet.db");
    let reader = fleet::read(path.to_str().unwrap()).unwrap();
    for sequence in 1..=5 {
        store.take("aa", &digests(sequence)).unwrap();
        assert_eq!(reader.rows(&RowQuery::of(Kind::Digests)).unwrap().items.len() as u64, sequence);
    }
}

#[test]
fn what_is_too_old_goes_and_numbers_are_still_known() {
    let (_folder, mut store) = fresh();
    for sequence in 1..=3 {
        store.take("aa", &digests(sequence)).unwrap();
    }
    let later = Wall(BASE.0 + Span::from_secs(6 * 365 * 86_400).0);
    let deleted = grow_old(&mut store, later);
    assert!(deleted >= 4, "three reports and what their rows became: {deleted}");
    assert!(store.rows(&RowQuery::of(Kind::Digests)).unwrap().items.is_empty());
    assert_eq!(store.take("aa", &digests(2)).unwrap(), Taken::Known);
    assert_eq!(store.highest("p", "aa").unwrap(), 3);
}
