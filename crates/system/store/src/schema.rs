//! The layout of the file, and how an older one becomes the present one.
//!
//! `application_id` says that the file is ours and `user_version` which layout it has, so a foreign
//! or newer file is recognised before anything is written to it.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::OpenError;

/// How long a process waits for another one that writes. A save takes milliseconds, so this is for
/// a stuck disk.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// "neta" in ASCII: tells our files from others (SQLite header, offset 68).
const APPLICATION_ID: i32 = 0x6e65_7461;

/// Step `n` turns layout `n` into layout `n + 1`. Steps are only ever added: a released one is
/// never changed.
const STEPS: &[&str] = &["
    CREATE TABLE records (
        id         TEXT    PRIMARY KEY NOT NULL,  -- UUIDv7 with hyphens, lower case: its order is the order in time
        started_at INTEGER NOT NULL,              -- ns since 1970 UTC, by the prober's wall clock
        elapsed    INTEGER NOT NULL,              -- ns
        command    TEXT    NOT NULL,
        host       TEXT    NOT NULL,              -- as typed; empty for a responder of our own
        outcome    TEXT    NOT NULL,
        versions   TEXT    NOT NULL,              -- the IP versions that yielded figures: 'IPv4,IPv6'
        schema     INTEGER NOT NULL,              -- version of the record schema
        json       TEXT    NOT NULL               -- the record itself
    ) STRICT;
    CREATE INDEX records_by_time ON records (started_at);
","
    CREATE TABLE series (
        id         TEXT    PRIMARY KEY NOT NULL,  -- UUIDv7, as the records of the series have it
        kind       TEXT    NOT NULL,              -- 'scan', 'repeat', 'matrix'
        command    TEXT    NOT NULL,
        host       TEXT    NOT NULL,
        label      TEXT,
        planned    INTEGER NOT NULL,              -- points; 0 for a series without an end of its own
        started_at INTEGER NOT NULL,              -- ns since 1970 UTC, by the prober's wall clock
        line       TEXT    NOT NULL               -- JSON array: the words of its command line after the command
    ) STRICT;
    ALTER TABLE records ADD COLUMN label  TEXT;
    ALTER TABLE records ADD COLUMN series TEXT;
    ALTER TABLE records ADD COLUMN point  INTEGER; -- position in the series, from zero
    CREATE INDEX records_by_series ON records (series, point);
    CREATE INDEX records_by_label ON records (label);
"];

/// The layout this program writes.
const LAYOUT: i32 = STEPS.len() as i32;

pub(crate) fn open(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let sql = |operation| move |source| explained(source, path, operation);
    // SQLite would make it for everybody to read. Its own files get the mode of this one.
    netaware_private::make_file(path);
    let mut connection = Connection::open_with_flags(path, flags).map_err(sql("open"))?;
    connection.busy_timeout(PATIENCE).map_err(sql("open"))?;
    // One transaction for all that is read: between two reads another process may lay the file out.
    let snapshot = connection.unchecked_transaction().map_err(sql("read"))?;
    let found = layout(&snapshot, path)?;
    drop(snapshot);
    if found < LAYOUT {
        lay_out(&mut connection, path)?;
    }
    // Kept by the file once set. Where it cannot be had (another process is opening right now, or a
    // file system without shared memory) the old journal is as correct, only readers then wait for
    // a writer.
    let _ = connection.pragma_update(None, "journal_mode", "wal");
    // It is ours, so one that an older version left for everybody to read is taken back.
    netaware_private::narrow_database(path);
    Ok(connection)
}

/// Layout `n + 1` as the present one, in names that go before those of the file and with it are
/// gone again: an older file is read without being changed.
const READ_AS: &[&str] = &["
    CREATE TEMP VIEW records AS
        SELECT id, started_at, elapsed, command, host, outcome, versions, schema, json,
               NULL AS label, NULL AS series, NULL AS point
        FROM main.records;
    CREATE TEMP TABLE series (id TEXT, kind TEXT, command TEXT, host TEXT, label TEXT,
                              planned INTEGER, started_at INTEGER, line TEXT);
"];

pub(crate) fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    let failed = |why| OpenError::of_obstacle(why, path, "read");
    let connection = crate::reading::connect(path).map_err(failed)?;
    let snapshot = connection.unchecked_transaction().map_err(|e| explained(e, path, "read"))?;
    let found = layout(&snapshot, path)?;
    drop(snapshot);
    if found == 0 {
        return Err(OpenError::Empty { path: path.to_path_buf() });
    }
    let sql = |source| explained(source, path, "read");
    if let Some(as_present) = usize::try_from(found - 1).ok().and_then(|older| READ_AS.get(older)) {
        connection.execute_batch(as_present).map_err(sql)?;
    }
    connection.pragma_update(None, "query_only", true).map_err(sql)?;
    Ok(connection)
}

/// The layout of a file that is ours, 0 for one that is still empty. To be called in a transaction.
fn layout(connection: &Connection, path: &Path) -> Result<i32, OpenError> {
    let read = |source| explained(source, path, "read");
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(read);
    let (application, layout) = (number("application_id")?, number("user_version")?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(read)?;
    if application != APPLICATION_ID && (application != 0 || tables > 0 || layout > 0) {
        return Err(OpenError::Foreign { path: path.to_path_buf() });
    }
    if layout > LAYOUT {
        return Err(OpenError::Newer { path: path.to_path_buf(), found: layout, known: LAYOUT });
    }
    Ok(layout)
}

/// All missing steps in one transaction: a process that comes second finds them done, a crash
/// leaves none half done.
fn lay_out(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let sql = |source| explained(source, path, "lay out");
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    let from = usize::try_from(layout(&transaction, path)?).unwrap_or(0);
    for step in STEPS.iter().skip(from) {
        transaction.execute_batch(step).map_err(sql)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sql)?;
    transaction.pragma_update(None, "user_version", LAYOUT).map_err(sql)?;
    transaction.commit().map_err(sql)
}

pub(crate) fn explained(source: rusqlite::Error, path: &Path, operation: &'static str) -> OpenError {
    let path = path.to_path_buf();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Damaged { path, reason: source.to_string() }
        }
        Some(ErrorCode::DiskFull) => OpenError::DiskFull { path },
        Some(ErrorCode::ReadOnly) => OpenError::ReadOnly { path },
        // SQLite does not say why, so the system is asked.
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => match File::open(&path) {
            // SQLite would have made the file if the folder could be written.
            Err(error) if error.kind() == ErrorKind::NotFound => OpenError::ReadOnly { path },
            Err(source) => OpenError::Access { operation, path, source },
            Ok(_) => OpenError::Sql { operation, path, source },
        },
        _ => OpenError::Sql { operation, path, source },
    }
}

/// A file as the first layout had it, with one record in it.
#[cfg(test)]
pub(crate) fn first_layout(path: &Path, record: &netaware_record::Record) {
    crate::place::make_folder(path).unwrap();
    let old = Connection::open(path).unwrap();
    old.execute_batch(STEPS[0]).unwrap();
    old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    old.execute(
        "INSERT INTO records (id, started_at, elapsed, command, host, outcome, versions, schema, json)
         VALUES (?1, ?2, 0, 'tcp', 'lab-b', 'complete', 'IPv4', 1, ?3)",
        (record.id.to_string(), record.started_at.0, serde_json::to_string(record).unwrap()),
    )
    .unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    fn fresh() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/results.db");
        (folder, path)
    }

    #[test]
    fn opening_twice_finds_the_same_layout() {
        let (_folder, path) = fresh();
        for _ in 0..2 {
            let store = Store::open(&path).unwrap();
            assert_eq!(layout(&store.connection, &path).unwrap(), LAYOUT);
            let mode: String =
                store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
            assert_eq!(mode, "wal");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_neighbour_reads_no_results_neither_new_ones_nor_those_of_an_older_version() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

        let (_folder, path) = fresh();
        let modes = || {
            let beside = ["", "-wal", "-shm"].map(|ending| format!("{}{ending}", path.display()));
            let found = beside.iter().filter_map(|name| std::fs::metadata(name).ok());
            found.map(|found| found.mode() & 0o777).collect::<Vec<_>>()
        };
        let store = Store::open(&path).unwrap();
        store.save(&crate::sample::record(1)).unwrap();
        assert_eq!(modes(), [0o600; 3], "the file, its log and its index");
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        drop(store);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let store = Store::open(&path).unwrap();
        assert!(modes().iter().all(|mode| *mode == 0o600), "{:?}", modes());
        drop(store);
        // What is not ours is left alone.
        let theirs = path.with_file_name("other.db");
        Connection::open(&theirs).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
        std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Store::open(&theirs).is_err());
        assert_eq!(std::fs::metadata(&theirs).unwrap().mode() & 0o777, 0o644);
    }

    #[test]
    fn a_file_of_the_first_layout_is_brought_up_to_date_with_all_it_holds() {
        let (_folder, path) = fresh();
        let record = crate::sample::record(1);
        first_layout(&path, &record);
        let store = Store::open(&path).unwrap();
        assert_eq!(layout(&store.connection, &path).unwrap(), LAYOUT);
        assert_eq!(store.get("last").unwrap(), record);
        let listed = store.list(&crate::Filter::default(), 10).unwrap();
        assert_eq!((listed.len(), &listed[0].label, listed[0].series), (1, &None, None));
        let point = crate::sample::point(2, 0);
        store.save_point(&point).unwrap();
        assert_eq!(store.list(&crate::Filter::default(), 10).unwrap().len(), 2);
    }

    #[test]
    fn a_text_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        let text = "these are my notes, please keep them\n".repeat(100);
        std::fs::write(&path, &text).unwrap();
        assert!(matches!(Store::open(&path), Err(OpenError::Damaged { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_database_of_another_program_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(Store::open(&path), Err(OpenError::Foreign { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_newer_layout_is_refused_with_both_numbers() {
        let (_folder, path) = fresh();
        Store::open(&path).unwrap().connection.pragma_update(None, "user_version", LAYOUT + 5).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, OpenError::Newer { found, known, .. } if found == known + 5), "{error}");
    }

    #[test]
    fn a_damaged_file_is_an_error_wherever_the_damage_lies() {
        let (_folder, path) = fresh();
        drop(Store::open(&path).unwrap());
        let good = std::fs::read(&path).unwrap();
        let mut refused = 0;
        for at in (0..good.len()).step_by(97) {
            let mut bad = good.clone();
            bad[at..(at + 40).min(good.len())].fill(0xff);
            std::fs::write(&path, &bad).unwrap();
            // Damage in unused bytes may go unnoticed; what matters is that nothing panics.
            let listed = Store::open(&path).map(|store| store.list(&crate::Filter::default(), 10).is_ok());
            refused += u32::from(!listed.unwrap_or(false));
        }
        assert!(refused > 0);
        std::fs::write(&path, &good[..good.len() / 2]).unwrap();
        let listed = Store::open(&path).map(|store| store.list(&crate::Filter::default(), 10).is_ok());
        assert!(!listed.unwrap_or(false), "half of a file is no store");
    }

    #[test]
    fn a_folder_in_place_of_the_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path(), Path::new("/dev/null")] {
            let error = Store::open(path).unwrap_err();
            assert!(matches!(error, OpenError::NoFile { .. }), "{error}");
        }
    }

    /// SQLite's "unable to open database file" was all that was said.
    #[test]
    fn the_reason_why_a_file_cannot_be_opened_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let of = |path: &Path| {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
            explained(rusqlite::Error::SqliteFailure(code, None), path, "open")
        };
        assert!(matches!(of(&folder.path().join("absent")), OpenError::ReadOnly { .. }));
        let below = of(&file.join("below"));
        assert!(matches!(below, OpenError::Access { .. }), "{below}");
        assert!(matches!(of(&file), OpenError::Sql { .. }), "the system can open it");
    }
}
