//! The layout of a fleet's file, and how an older one becomes the present one. A line of layouts of
//! its own, apart from the file of results: each has its own `application_id`, so that neither is
//! taken for the other.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::explained;
use crate::fleet::FleetError;
use crate::reading::{self, Obstacle};
use crate::schema::PATIENCE;

/// "netf" in ASCII (SQLite header, offset 68).
const APPLICATION_ID: i32 = 0x6e65_7466;

/// Step `n` turns layout `n` into layout `n + 1`. Steps are only ever added: a released one is
/// never changed.
const STEPS: &[&str] = &["
    CREATE TABLE origins (              -- whoever numbers batches: probes, and collectors for what they make themselves
        id          INTEGER PRIMARY KEY,
        name        TEXT    NOT NULL,
        incarnation TEXT    NOT NULL,   -- of its counter
        highest     INTEGER NOT NULL,   -- number taken
        below       INTEGER NOT NULL,   -- all numbers below this count as taken
        UNIQUE (name, incarnation)
    ) STRICT;
    CREATE TABLE taken (                -- which numbers from there on were taken
        origin      INTEGER NOT NULL,
        sequence    INTEGER NOT NULL,
        PRIMARY KEY (origin, sequence)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE reports (              -- how a probe was
        origin      INTEGER NOT NULL,
        sequence    INTEGER NOT NULL,
        at          INTEGER NOT NULL,   -- ns since 1970 UTC by the probe's wall clock, as all times here
        until       INTEGER NOT NULL,
        seen        INTEGER NOT NULL,   -- packets, all interfaces
        lost        INTEGER NOT NULL,   -- packets, all causes
        captures    TEXT    NOT NULL,   -- JSON
        clock       TEXT    NOT NULL,   -- JSON
        PRIMARY KEY (origin, sequence)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX reports_by_time ON reports (at);
    CREATE TABLE delays (
        id           INTEGER PRIMARY KEY,
        level        INTEGER NOT NULL,  -- 0 as taken, 1 added up by the minute, 2 by the hour
        at           INTEGER NOT NULL,
        until        INTEGER NOT NULL,
        origin       INTEGER NOT NULL,
        task         TEXT    NOT NULL,
        from_point   TEXT    NOT NULL,
        to_point     TEXT    NOT NULL,
        method       TEXT    NOT NULL,
        version      INTEGER NOT NULL,  -- 4, 6, or 0 for both together
        rows         INTEGER NOT NULL,  -- that were added up
        packets      INTEGER NOT NULL,
        matched      INTEGER NOT NULL,
        lost         INTEGER NOT NULL,
        unobserved   INTEGER NOT NULL,
        late         INTEGER NOT NULL,
        duplicates   INTEGER NOT NULL,
        reordered    INTEGER NOT NULL,
        collisions   INTEGER NOT NULL,
        given_up     INTEGER NOT NULL,
        below_bound  INTEGER NOT NULL,
        patience     INTEGER NOT NULL,  -- ns
        clock_offset INTEGER NOT NULL,  -- ns
        clock_bound  INTEGER,           -- ns
        clock_method TEXT    NOT NULL,
        warnings     TEXT,              -- JSON array
        delay        BLOB    NOT NULL,  -- count, extremes, sums and bins (fleet/codec.rs)
        ipdv         BLOB    NOT NULL
    ) STRICT;
    CREATE INDEX delays_by_time ON delays (at);
    CREATE INDEX delays_by_pair ON delays (from_point, to_point, at);
    CREATE INDEX delays_as_taken ON delays (at) WHERE level = 0;
    CREATE INDEX delays_by_minute ON delays (at) WHERE level = 1;
    CREATE TABLE rows (                 -- of all other kinds
        id          INTEGER PRIMARY KEY,
        level       INTEGER NOT NULL,
        kind        TEXT    NOT NULL,
        at          INTEGER NOT NULL,
        until       INTEGER NOT NULL,
        origin      INTEGER NOT NULL,
        task        TEXT    NOT NULL,
        sum_key     TEXT,               -- rows of a kind, task and origin with the same key add up; NULL: never
        json        TEXT    NOT NULL
    ) STRICT;
    CREATE INDEX rows_by_time ON rows (kind, at);
    CREATE INDEX rows_as_taken ON rows (at) WHERE level = 0;
    CREATE INDEX rows_by_minute ON rows (at) WHERE level = 1;
    CREATE INDEX rows_single ON rows (at) WHERE sum_key IS NULL;
"];

pub(super) fn open(path: &Path) -> Result<Connection, FleetError> {
    open_as(path, STEPS)
}

fn open_as(path: &Path, steps: &[&str]) -> Result<Connection, FleetError> {
    let sql = |operation| move |source| explained(source, path, operation);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    // SQLite would make it for everybody to read. Its own files get the mode of this one.
    netaware_private::make_file(path);
    let mut connection = Connection::open_with_flags(path, flags).map_err(sql("open"))?;
    connection.busy_timeout(PATIENCE).map_err(sql("open"))?;
    // Before anything is written, and in a transaction: between two reads another process may lay
    // the file out.
    let snapshot = connection.unchecked_transaction().map_err(sql("read"))?;
    let found = layout(&snapshot, path, steps)?;
    drop(snapshot);
    connection.pragma_update(None, "journal_mode", "wal").map_err(sql("open"))?;
    // A probe forgets what we say we have.
    connection.pragma_update(None, "synchronous", "full").map_err(sql("open"))?;
    if found < steps.len() {
        lay_out(&mut connection, path, steps)?;
    }
    // It is ours, so one that an older version left for everybody to read is taken back.
    netaware_private::narrow_database(path);
    Ok(connection)
}

pub(super) fn open_to_read(path: &Path) -> Result<Connection, FleetError> {
    let connection = reading::connect(path).map_err(|why| of_obstacle(why, path))?;
    connection.pragma_update(None, "query_only", true).map_err(|e| explained(e, path, "read"))?;
    if layout(&connection, path, STEPS)? < STEPS.len() {
        return Err(FleetError::Foreign { path: path.to_path_buf() });
    }
    Ok(connection)
}

fn of_obstacle(why: Obstacle, path: &Path) -> FleetError {
    let of = path.to_path_buf();
    match why {
        Obstacle::Missing => FleetError::Missing { path: of },
        Obstacle::NoFile | Obstacle::Empty => FleetError::NoStore { path: of },
        Obstacle::System(source) => FleetError::Access { path: of, source },
        Obstacle::Log => FleetError::Log { path: of },
        Obstacle::Sql(source) => explained(source, path, "read"),
    }
}

/// The layout of a file that is ours, 0 for one that is still empty; one that more steps have led
/// to is refused.
fn layout(connection: &Connection, path: &Path, steps: &[&str]) -> Result<usize, FleetError> {
    let read = |source| explained(source, path, "read");
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(read);
    let (application, layout) = (number("application_id")?, number("user_version")?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(read)?;
    if application != APPLICATION_ID && (application != 0 || tables > 0 || layout > 0) {
        return Err(FleetError::Foreign { path: path.to_path_buf() });
    }
    if layout > number_of(steps) {
        return Err(FleetError::Newer { path: path.to_path_buf(), found: layout, known: number_of(steps) });
    }
    Ok(usize::try_from(layout).unwrap_or(0))
}

/// All missing steps in one transaction: a process that comes second finds them done, a crash
/// leaves none half done.
fn lay_out(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), FleetError> {
    let sql = |source| explained(source, path, "lay out");
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    let from = layout(&transaction, path, steps)?;
    for step in steps.iter().skip(from) {
        transaction.execute_batch(step).map_err(sql)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sql)?;
    transaction.pragma_update(None, "user_version", number_of(steps)).map_err(sql)?;
    transaction.commit().map_err(sql)
}

/// The layout that so many steps lead to, as a file has it.
fn number_of(steps: &[&str]) -> i32 {
    steps.len() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{Ages, DelayQuery, FleetReader, SqliteFleet};

    #[test]
    fn a_file_of_results_is_not_taken_for_one_of_a_fleet_nor_the_other_way_round() {
        let folder = tempfile::tempdir().unwrap();
        let (results, fleet) = (folder.path().join("results.db"), folder.path().join("fleet.db"));
        drop(crate::Store::open(&results).unwrap());
        drop(SqliteFleet::open(&fleet, Ages::default()).unwrap());
        assert!(matches!(SqliteFleet::open(&results, Ages::default()), Err(FleetError::Foreign { .. })));
        assert!(matches!(SqliteFleet::open_to_read(&results), Err(FleetError::Foreign { .. })));
        assert!(matches!(crate::Store::open(&fleet), Err(OpenError::Foreign { .. })));
        assert!(SqliteFleet::open_to_read(&fleet).is_ok());
    }

    use crate::OpenError;

    #[test]
    fn a_newer_layout_is_refused_with_both_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.db");
        open(&path).unwrap().pragma_update(None, "user_version", number_of(STEPS) + 5).unwrap();
        for error in [open(&path).unwrap_err(), open_to_read(&path).unwrap_err()] {
            assert!(matches!(error, FleetError::Newer { found, known, .. } if found == known + 5), "{error}");
        }
    }

    /// The present layout, and one more step.
    fn with(further: &'static str) -> Vec<&'static str> {
        STEPS.iter().copied().chain([further]).collect()
    }

    #[test]
    fn an_older_layout_becomes_the_next_by_the_step_that_is_missing_and_keeps_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.db");
        let older = open(&path).unwrap();
        older.execute("INSERT INTO origins VALUES (7, 'bern', 'first', 41, 40)", []).unwrap();
        drop(older);
        let next = with("ALTER TABLE origins ADD COLUMN site TEXT NOT NULL DEFAULT 'here'");
        // The second time there is nothing left to do: the step would fail, for the column is
        // there.
        for _ in 0..2 {
            let file = open_as(&path, &next).unwrap();
            let row = "SELECT name, highest, site FROM origins WHERE id = 7";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let found: (String, i64, String) = file.query_row(row, [], read).unwrap();
            assert_eq!(found, ("bern".to_owned(), 41, "here".to_owned()));
            assert_eq!(layout(&file, &path, &next).unwrap(), next.len());
        }
        // A program without that step does not touch it.
        let refused = SqliteFleet::open(&path, Ages::default()).unwrap_err();
        assert!(matches!(refused, FleetError::Newer { found, known, .. } if found == known + 1), "{refused}");
    }

    #[test]
    fn a_step_that_fails_half_way_leaves_the_older_layout_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.db");
        drop(open(&path).unwrap());
        let broken = with("CREATE TABLE half (x); INSERT INTO nowhere VALUES (1)");
        assert!(open_as(&path, &broken).is_err());
        let file = open(&path).unwrap();
        assert_eq!(layout(&file, &path, STEPS).unwrap(), STEPS.len());
        let half: i64 = file
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'half'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(half, 0);
    }

    #[test]
    fn a_damaged_file_is_an_error_that_says_what_to_do_wherever_the_damage_lies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.db");
        drop(SqliteFleet::open(&path, Ages::default()).unwrap());
        let good = std::fs::read(&path).unwrap();
        let mut told = 0;
        for at in (0..good.len()).step_by(997) {
            let mut bad = good.clone();
            bad[at..(at + 400).min(good.len())].fill(0xff);
            std::fs::write(&path, &bad).unwrap();
            let read = SqliteFleet::open(&path, Ages::default())
                .and_then(|fleet| fleet.delays(&DelayQuery::default()).map(|_| ()));
            // Damage in unused bytes may go unnoticed; what matters is that nothing panics.
            if let Err(error @ FleetError::Damaged { .. }) = read {
                assert!(error.to_string().contains(".recover"), "{error}");
                told += 1;
            }
        }
        assert!(told > 0);
    }

    #[test]
    fn what_is_not_there_is_not_made_by_reading() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.db");
        assert!(matches!(SqliteFleet::open_to_read(&path), Err(FleetError::Missing { .. })));
        assert!(!path.exists());
    }
}
