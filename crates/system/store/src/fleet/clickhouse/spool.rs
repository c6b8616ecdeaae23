//! The buffer on this host's disk: what was taken and has not reached ClickHouse.
//!
//! Rows wait in the form in which they are sent. When the buffer is full the oldest go, and are
//! counted: what is newest says most about how the network is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::row_binary::{self, Rows};
use super::schema::Table;
use crate::fleet::sqlite::{Failure, explained, forget_numbers, number};
use crate::fleet::{Backlog, Batch, FleetError, Origin, Taken};
use crate::save::signed;
use crate::schema::PATIENCE;

/// "netq" in ASCII (SQLite header, offset 68).
const APPLICATION_ID: i32 = 0x6e65_7471;

const LAYOUT: &str = "
    CREATE TABLE IF NOT EXISTS origins (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, incarnation TEXT NOT NULL, highest INTEGER NOT NULL,
        below INTEGER NOT NULL, UNIQUE (name, incarnation)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS taken (
        origin INTEGER NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (origin, sequence)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS waiting (
        id    INTEGER PRIMARY KEY AUTOINCREMENT,
        part  TEXT    NOT NULL,   -- table in ClickHouse
        batch INTEGER,            -- insert that it is sent with; NULL: not sent yet
        rows  INTEGER NOT NULL,
        bytes BLOB    NOT NULL    -- RowBinary
    ) STRICT;
    CREATE INDEX IF NOT EXISTS waiting_by_batch ON waiting (batch) WHERE batch IS NOT NULL;
    CREATE TABLE IF NOT EXISTS state (
        name     TEXT    NOT NULL,  -- of this buffer, for tokens
        batch    INTEGER NOT NULL,  -- number of the next insert
        given_up INTEGER NOT NULL   -- rows
    ) STRICT;
";

/// Bytes of one insert, about: enough for ClickHouse's liking, little enough to be sent again.
const INSERT_BYTES: i64 = 16 << 20;

/// What the buffer, its sender and whoever asks know together.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// Rang whenever the state changes.
    pub(super) bell: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) backlog: Backlog,
    pub(super) stop: bool,
}

impl Shared {
    /// A thread that panicked while it held this left counts behind that are at worst a batch off.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.lock().backlog.clone()
    }
}

/// The writing end of the buffer.
#[derive(Debug)]
pub(super) struct Spool {
    connection: Connection,
    path: PathBuf,
    most_bytes: u64,
    shared: Arc<Shared>,
}

impl Spool {
    /// The buffer, and whether it is new.
    pub(super) fn open(path: &Path, most_bytes: u64) -> Result<(Self, bool), FleetError> {
        crate::place::make_folder(path).map_err(|_| FleetError::Missing { path: path.to_path_buf() })?;
        let sql = |source| explained(source, path, "open");
        let mut connection = open(path)?;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
        transaction.execute_batch(LAYOUT).map_err(sql)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sql)?;
        let is_new = transaction
            .query_row("SELECT name FROM state", [], |row| row.get::<_, String>(0))
            .optional()
            .map_err(sql)?
            .is_none();
        if is_new {
            let name = uuid::Uuid::now_v7().simple().to_string();
            transaction.execute("INSERT INTO state VALUES (?1, 1, 0)", [name]).map_err(sql)?;
        }
        let (rows, bytes, given_up) = transaction
            .query_row(
                "SELECT coalesce(sum(rows), 0), coalesce(sum(length(bytes)), 0), (SELECT given_up FROM state) FROM waiting",
                [],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)),
            )
            .map_err(sql)?;
        transaction.commit().map_err(sql)?;
        let shared = Arc::new(Shared::default());
        let count = |n: i64| n.max(0).cast_unsigned();
        shared.lock().backlog =
            Backlog { rows: count(rows), bytes: count(bytes), given_up: count(given_up), trouble: None };
        Ok((Self { connection, path: path.to_path_buf(), most_bytes, shared }, is_new))
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// All numbers up to these count as taken.
    pub(super) fn remember(&mut self, known: &[(String, String, u64)]) -> Result<(), FleetError> {
        let sql = |source| explained(source, &self.path, "write to");
        let insert =
            "INSERT OR IGNORE INTO origins (name, incarnation, highest, below) VALUES (?1, ?2, ?3, ?3 + 1)";
        for (name, incarnation, highest) in known {
            self.connection.execute(insert, (name, incarnation, signed(*highest))).map_err(sql)?;
        }
        Ok(())
    }

    pub(super) fn take_all(&mut self, batches: &[Batch<'_>]) -> Result<Vec<Taken>, FleetError> {
        let path = &self.path;
        let sql = |source| explained(source, path, "write to");
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(sql)?;
        let mut taken = Vec::with_capacity(batches.len());
        let (mut new, mut kept) = (Encoded::default(), (0, 0));
        // What comes at once may be more than there is room for: then its oldest have to be apart
        // from its newest.
        let apart = (self.most_bytes / 16).clamp(1, INSERT_BYTES.unsigned_abs());
        for batch in batches {
            taken.push(encode(&transaction, batch, &mut new).map_err(|failure| failure.explained(path))?);
            if new.bytes() >= apart {
                keep(&transaction, &mut new, &mut kept).map_err(sql)?;
            }
        }
        keep(&transaction, &mut new, &mut kept).map_err(sql)?;
        let (rows, bytes) = kept;
        // Under the lock, so that the sender does not take out at the same time what is given up
        // here.
        let mut state = self.shared.lock();
        let over = (state.backlog.bytes + bytes).saturating_sub(self.most_bytes);
        let (rows_gone, bytes_gone) = give_up(&transaction, over).map_err(sql)?;
        transaction.commit().map_err(sql)?;
        let backlog = &mut state.backlog;
        backlog.rows = (backlog.rows + rows).saturating_sub(rows_gone);
        backlog.bytes = (backlog.bytes + bytes).saturating_sub(bytes_gone);
        backlog.given_up += rows_gone;
        self.shared.bell.notify_all();
        Ok(taken)
    }

    pub(super) fn highest(&self, name: &str, incarnation: &str) -> Result<u64, FleetError> {
        let sql = "SELECT highest FROM origins WHERE name = ?1 AND incarnation = ?2";
        let highest: Option<i64> = self
            .connection
            .query_row(sql, (name, incarnation), |row| row.get(0))
            .optional()
            .map_err(|source| explained(source, &self.path, "read"))?;
        Ok(highest.unwrap_or(0).max(0).cast_unsigned())
    }

    pub(super) fn forget_numbers(&mut self) -> Result<(), FleetError> {
        let sql = |source| explained(source, &self.path, "write to");
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
        forget_numbers(&transaction).map_err(|failure| failure.explained(&self.path))?;
        transaction.commit().map_err(sql)
    }
}

/// Rows by table.
#[derive(Default)]
struct Encoded([Rows; Table::COUNT]);

impl Encoded {
    fn bytes(&self) -> u64 {
        self.0.iter().map(|part| part.bytes.len() as u64).sum()
    }
}

/// Adds what is new of a batch, and marks that as taken.
fn encode(transaction: &Transaction<'_>, batch: &Batch<'_>, new: &mut Encoded) -> Result<Taken, Failure> {
    let origin: &Origin<'_> = &batch.origin;
    let (_, known) = number(transaction, origin)?;
    if known == Taken::Known {
        return Ok(known);
    }
    if let Some(report) = batch.report {
        row_binary::report(&mut new.0[Table::Reports as usize], origin, report)?;
    }
    for (position, row) in batch.rows.iter().enumerate() {
        row_binary::row(&mut new.0, origin, position, row)?;
    }
    Ok(known)
}

/// Lets what was encoded wait, and counts its rows and bytes.
fn keep(
    transaction: &Transaction<'_>,
    new: &mut Encoded,
    (rows, bytes): &mut (u64, u64),
) -> rusqlite::Result<()> {
    let Encoded(parts) = std::mem::take(new);
    for (table, part) in Table::ALL.iter().zip(&parts).filter(|(_, part)| part.count > 0) {
        transaction
            .prepare_cached("INSERT INTO waiting (part, rows, bytes) VALUES (?1, ?2, ?3)")?
            .execute((table.name(), signed(part.count), &part.bytes))?;
        *rows += part.count;
        *bytes += part.bytes.len() as u64;
    }
    Ok(())
}

/// Deletes the oldest until so many bytes are free; tells how many rows and bytes went. The newest
/// stay even if they alone are more than the limit.
fn give_up(transaction: &Transaction<'_>, bytes: u64) -> rusqlite::Result<(u64, u64)> {
    let (mut rows_gone, mut bytes_gone) = (0_u64, 0_u64);
    while bytes_gone < bytes {
        let oldest = transaction
            .query_row(
                "SELECT id, rows, length(bytes) FROM waiting WHERE id < (SELECT max(id) FROM waiting) ORDER BY id LIMIT 1",
                [],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)),
            )
            .optional()?;
        let Some((id, rows, length)) = oldest else { break };
        transaction.prepare_cached("DELETE FROM waiting WHERE id = ?1")?.execute([id])?;
        rows_gone += rows.max(0).cast_unsigned();
        bytes_gone += length.max(0).cast_unsigned();
    }
    if rows_gone > 0 {
        transaction.execute("UPDATE state SET given_up = given_up + ?1", [signed(rows_gone)])?;
    }
    Ok((rows_gone, bytes_gone))
}

fn open(path: &Path) -> Result<Connection, FleetError> {
    let sql = |source| explained(source, path, "open");
    // SQLite would make it for everybody to read. Its own files get the mode of this one.
    netaware_private::make_file(path);
    let connection = Connection::open(path).map_err(sql)?;
    connection.busy_timeout(PATIENCE).map_err(sql)?;
    let application: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sql)?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sql)?;
    if application != APPLICATION_ID && (application != 0 || tables > 0) {
        return Err(FleetError::Foreign { path: path.to_path_buf() });
    }
    connection.pragma_update(None, "journal_mode", "wal").map_err(sql)?;
    connection.pragma_update(None, "synchronous", "full").map_err(sql)?;
    // It is ours, so one that an older version left for everybody to read is taken back.
    netaware_private::narrow_database(path);
    Ok(connection)
}

/// The reading end of the buffer, for the thread that sends.
#[derive(Debug)]
pub(super) struct Outlet {
    connection: Connection,
    path: PathBuf,
}

/// One insert: always the same bytes under the same token, however often it is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Insert {
    pub(super) batch: i64,
    pub(super) token: String,
    pub(super) table: Table,
    pub(super) rows: Rows,
}

impl Outlet {
    pub(super) fn open(path: &Path) -> Result<Self, FleetError> {
        Ok(Self { connection: open(path)?, path: path.to_path_buf() })
    }

    /// The oldest that waits: one that was begun, or as many of the oldest table's rows as go into
    /// one.
    pub(super) fn next(&mut self) -> Result<Option<Insert>, FleetError> {
        let path = self.path.clone();
        let sql = |source| explained(source, &path, "write to");
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
        let insert = next(&transaction).map_err(sql)?;
        transaction.commit().map_err(sql)?;
        Ok(insert)
    }

    /// It is there: its rows wait no longer.
    ///
    /// As in [`Spool::take_all`] the file is locked before the counts are: the other way about,
    /// each could wait for the other.
    pub(super) fn done(&mut self, batch: i64, shared: &Shared) -> Result<(), FleetError> {
        let sql = |source| explained(source, &self.path, "write to");
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
        let (rows, bytes) = transaction
            .query_row(
                "SELECT coalesce(sum(rows), 0), coalesce(sum(length(bytes)), 0) FROM waiting WHERE batch = ?1",
                [batch],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
            )
            .map_err(sql)?;
        transaction.execute("DELETE FROM waiting WHERE batch = ?1", [batch]).map_err(sql)?;
        let mut state = shared.lock();
        transaction.commit().map_err(sql)?;
        let backlog = &mut state.backlog;
        backlog.rows = backlog.rows.saturating_sub(rows.max(0).cast_unsigned());
        backlog.bytes = backlog.bytes.saturating_sub(bytes.max(0).cast_unsigned());
        shared.bell.notify_all();
        Ok(())
    }
}

fn next(transaction: &Transaction<'_>) -> rusqlite::Result<Option<Insert>> {
    let begun = "SELECT batch FROM waiting WHERE batch IS NOT NULL ORDER BY batch LIMIT 1";
    let begun: Option<i64> = transaction.query_row(begun, [], |row| row.get(0)).optional()?;
    let batch = match begun {
        Some(batch) => batch,
        None => match seal(transaction)? {
            Some(batch) => batch,
            None => return Ok(None),
        },
    };
    let name: String = transaction.query_row("SELECT name FROM state", [], |row| row.get(0))?;
    let mut rows = Rows::default();
    let mut part = String::new();
    let mut statement =
        transaction.prepare_cached("SELECT part, rows, bytes FROM waiting WHERE batch = ?1 ORDER BY id")?;
    let mut found = statement.query([batch])?;
    while let Some(row) = found.next()? {
        part = row.get(0)?;
        rows.count += row.get::<_, i64>(1)?.max(0).cast_unsigned();
        rows.bytes.extend(row.get::<_, Vec<u8>>(2)?);
    }
    // Rows of a table that is not known any more cannot be sent; none is ever taken out of the
    // list.
    let table = Table::named(&part).unwrap_or(Table::Rows);
    Ok(Some(Insert { batch, token: format!("{name}-{batch}"), table, rows }))
}

/// Gives the oldest rows of one table the number of an insert. If some of them are given up later,
/// the rest is sent under the same token: ClickHouse then has either all of them or the rest, never
/// a row twice.
fn seal(transaction: &Transaction<'_>) -> rusqlite::Result<Option<i64>> {
    let oldest = "SELECT part FROM waiting ORDER BY id LIMIT 1";
    let part: Option<String> = transaction.query_row(oldest, [], |row| row.get(0)).optional()?;
    let Some(part) = part else { return Ok(None) };
    let batch: i64 =
        transaction
            .query_row("UPDATE state SET batch = batch + 1 RETURNING batch - 1", [], |row| row.get(0))?;
    let sql = "UPDATE waiting SET batch = ?1 WHERE id IN (
                 SELECT id FROM (SELECT id, sum(length(bytes)) OVER (ORDER BY id) AS total, length(bytes) AS own
                                 FROM (SELECT id, bytes FROM waiting WHERE part = ?2 ORDER BY id LIMIT 10000))
                 WHERE total <= ?3 OR total = own)";
    transaction.execute(sql, (batch, part, INSERT_BYTES))?;
    Ok(Some(batch))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netaware_record::passive::{ClockState, DigestRow, Period, ProbeReport, Row, TaskRow};
    use netaware_units::Wall;

    use super::*;

    fn row() -> TaskRow {
        let period = Period { from: Wall(1), until: Wall(2) };
        TaskRow::new("t".repeat(1000), period, Row::Digests(DigestRow::default()))
    }

    fn report() -> ProbeReport {
        ProbeReport {
            probe: "p".to_owned(),
            sequence: 0,
            period: Period { from: Wall(1), until: Wall(2) },
            captures: Vec::new(),
            clock: ClockState::default(),
            rows: Vec::new(),
            rows_cut: BTreeMap::new(),
            exchanges: Vec::new(),
        }
    }

    fn take(spool: &mut Spool, sequence: u64) -> Taken {
        let origin = Origin { name: "p", incarnation: "x", sequence };
        spool.take_all(&[Batch { origin, report: None, rows: &[row()] }]).unwrap()[0]
    }

    #[test]
    fn what_waits_survives_and_is_sent_under_the_same_token_until_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("buffer.db");
        let (mut spool, is_new) = Spool::open(&path, 1 << 20).unwrap();
        assert!(is_new);
        assert_eq!(
            (take(&mut spool, 1), take(&mut spool, 2), take(&mut spool, 2)),
            (Taken::New, Taken::New, Taken::Known)
        );
        let first = Outlet::open(&path).unwrap().next().unwrap().unwrap();
        take(&mut spool, 3);
        drop(spool);
        let (mut spool, is_new) = Spool::open(&path, 1 << 20).unwrap();
        assert!(!is_new);
        assert_eq!(
            (take(&mut spool, 3), spool.highest("p", "x").unwrap(), spool.shared.backlog().rows),
            (Taken::Known, 3, 3)
        );
        let mut outlet = Outlet::open(&path).unwrap();
        let again = outlet.next().unwrap().unwrap();
        assert_eq!(again, first);
        assert_eq!(again.rows.count, 2);
        outlet.done(again.batch, &spool.shared()).unwrap();
        assert_eq!(spool.shared.backlog().rows, 1);
        let second = outlet.next().unwrap().unwrap();
        assert_eq!(second.rows.count, 1);
        assert_ne!(second.token, first.token);
        outlet.done(second.batch, &spool.shared()).unwrap();
        assert_eq!((spool.shared.backlog().rows, spool.shared.backlog().bytes), (0, 0));
        assert_eq!(outlet.next().unwrap(), None);
    }

    #[test]
    fn when_it_is_full_the_oldest_go_and_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("buffer.db");
        let (mut spool, _) = Spool::open(&path, 5000).unwrap();
        for sequence in 1..=20 {
            take(&mut spool, sequence);
        }
        let backlog = spool.shared.backlog();
        assert!(backlog.bytes <= 5000 && backlog.rows >= 3, "{backlog:?}");
        assert_eq!(backlog.rows + backlog.given_up, 20);
        drop(spool);
        let (spool, _) = Spool::open(&path, 5000).unwrap();
        assert_eq!(spool.shared.backlog(), backlog, "counts survive");
        let sent = Outlet::open(&path).unwrap().next().unwrap().unwrap();
        assert_eq!(sent.rows.count, backlog.rows);
        // The newest are those that stayed: their numbers end the row.
        let position = sent.rows.bytes.len() - 12;
        assert_eq!(sent.rows.bytes[position..position + 8], 20_u64.to_le_bytes());
    }

    #[test]
    fn of_more_at_once_than_there_is_room_for_the_newest_stay_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("buffer.db");
        let (mut spool, _) = Spool::open(&path, 5000).unwrap();
        let (rows, report) = ([row()], report());
        let batch = |sequence| {
            let origin = Origin { name: "p", incarnation: "x", sequence };
            Batch { origin, report: Some(&report), rows: &rows }
        };
        spool.take_all(&(1..=20).map(batch).collect::<Vec<_>>()).unwrap();
        let backlog = spool.shared.backlog();
        assert_eq!(backlog.rows + backlog.given_up, 40);
        let mut outlet = Outlet::open(&path).unwrap();
        let mut left = BTreeMap::new();
        while let Some(insert) = outlet.next().unwrap() {
            left.insert(insert.table as usize, insert.rows.count);
            outlet.done(insert.batch, &spool.shared()).unwrap();
        }
        let [of_rows, of_reports] = [Table::Rows, Table::Reports].map(|table| left[&(table as usize)]);
        assert!(of_rows >= 3 && of_rows.abs_diff(of_reports) <= 1, "{left:?}");
        assert_eq!(of_rows + of_reports, backlog.rows);
    }

    /// A disk of its own in memory, which is really full when it is full: pages of the log need
    /// room as well.
    struct SmallDisk(tempfile::TempDir);

    impl SmallDisk {
        /// `None` without the right to mount.
        fn new() -> Option<Self> {
            let folder = tempfile::tempdir().unwrap();
            let mount = std::process::Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=1m", "netaware-test"])
                .arg(folder.path())
                .output();
            if mount.is_ok_and(|output| output.status.success()) {
                return Some(Self(folder));
            }
            assert_ne!(
                std::env::var("CI").as_deref(),
                Ok("true"),
                "cannot mount, and CI=true: a skip would hide that"
            );
            eprintln!("SKIPPED: needs root to mount a small disk");
            None
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(self.0.path()).status();
        }
    }

    /// Takes what room is left for a file of this name.
    fn fill(path: &Path) {
        let mut file = std::fs::File::create(path).unwrap();
        while std::io::Write::write(&mut file, &[0; 512]).is_ok_and(|written| written > 0) {}
    }

    #[test]
    fn a_full_disk_is_said_and_nothing_is_lost_or_sent_twice_once_there_is_room() {
        let Some(disk) = SmallDisk::new() else { return };
        let folder = disk.0.path();
        let path = folder.join("buffer.db");
        let ballast = folder.join("ballast");
        let (mut spool, _) = Spool::open(&path, 1 << 30).unwrap();
        let mut outlet = Outlet::open(&path).unwrap();
        let batch = |sequence| Origin { name: "p", incarnation: "x", sequence };
        for sequence in 1..=10 {
            take(&mut spool, sequence);
        }
        let begun = outlet.next().unwrap().unwrap();
        assert_eq!(begun.rows.count, 10);
        std::fs::write(&ballast, vec![0; 300 << 10]).unwrap();
        let mut taken = 10;
        let error = loop {
            assert!(taken < 10_000, "it never gets full");
            match spool.take_all(&[Batch { origin: batch(taken + 1), report: None, rows: &[row()] }]) {
                Ok(_) => taken += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, FleetError::DiskFull { .. }), "{error}");
        assert!(taken > 10 && error.to_string().contains("buffer.db"), "{taken}: {error}");
        assert_eq!((spool.highest("p", "x").unwrap(), spool.shared.backlog().rows), (taken, taken));
        fill(&folder.join("rest"));
        // What it cannot note as sent it sends again, under the same token.
        for _ in 0..3 {
            let error = outlet.done(begun.batch, &spool.shared()).unwrap_err();
            assert!(matches!(error, FleetError::DiskFull { .. }), "{error}");
            assert_eq!(outlet.next().unwrap().as_ref(), Some(&begun));
        }
        std::fs::remove_file(&ballast).unwrap();
        let mut sent = BTreeMap::new();
        for sequence in taken + 1..=taken + 5 {
            assert_eq!(take(&mut spool, sequence), Taken::New);
        }
        while let Some(insert) = outlet.next().unwrap() {
            sent.insert(insert.token, insert.rows.count);
            outlet.done(insert.batch, &spool.shared()).unwrap();
        }
        assert_eq!(sent.values().sum::<u64>(), taken + 5);
        assert_eq!((spool.shared.backlog().rows, spool.shared.backlog().given_up), (0, 0));
    }

    #[test]
    fn what_clickhouse_knows_is_not_taken_again_by_a_new_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, _) = Spool::open(&folder.path().join("buffer.db"), 1 << 20).unwrap();
        spool.remember(&[("p".into(), "x".into(), 7)]).unwrap();
        assert_eq!((take(&mut spool, 7), take(&mut spool, 8)), (Taken::Known, Taken::New));
    }

    #[test]
    fn another_database_is_not_used_as_a_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.db");
        drop(crate::Store::open(&path).unwrap());
        assert!(matches!(Spool::open(&path, 1), Err(FleetError::Foreign { .. })));
    }
}
