//! Writing records.

use netaware_record::{Document as _, IpVersion, Outcome, Record};
use rusqlite::{Connection, ErrorCode};
use uuid::Uuid;

use crate::{SaveError, Store};

impl Store {
    /// Keeps a record. It is on the disk when this returns.
    ///
    /// # Errors
    /// The disk is full, the file stays locked, or a record with this id is there already.
    pub fn save(&self, record: &Record) -> Result<(), SaveError> {
        insert(&self.connection, record, &record.to_json()?).map_err(|source| self.unsaved(source, record.id))
    }

    /// Keeps a record in place of earlier ones of the same point of its series: those of a failed
    /// attempt, when the series is resumed. A record without a series is kept as by
    /// [`Store::save`].
    ///
    /// # Errors
    /// As [`Store::save`]; the earlier ones are then kept.
    pub fn save_point(&self, record: &Record) -> Result<(), SaveError> {
        let json = record.to_json()?;
        let replaced = || {
            let transaction = self.connection.unchecked_transaction()?;
            if let Some(series) = &record.series {
                let place = (series.id.hyphenated().to_string(), signed(series.index));
                transaction.execute("DELETE FROM records WHERE series = ?1 AND point = ?2", place)?;
            }
            insert(&transaction, record, &json)?;
            transaction.commit()
        };
        replaced().map_err(|source| self.unsaved(source, record.id))
    }

    /// Keeps a record of somebody else, of whom the file takes no more than there is room: the
    /// records that came first make room for it. Their times are the sender's word and count for
    /// nothing.
    ///
    /// # Errors
    /// As [`Store::save`]; nothing is then deleted.
    pub fn save_within(&self, record: &Record, room: Room) -> Result<(), SaveError> {
        let json = record.to_json()?;
        let kept = || {
            let transaction = self.connection.unchecked_transaction()?;
            insert(&transaction, record, &json)?;
            transaction.execute(MAKE_ROOM, (i64::from(room.records), signed(room.bytes)))?;
            transaction.commit()
        };
        kept().map_err(|source| self.unsaved(source, record.id))
    }

    pub(crate) fn unsaved(&self, source: rusqlite::Error, id: Uuid) -> SaveError {
        let path = self.path.clone();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => SaveError::DiskFull { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => SaveError::Locked { path },
            Some(ErrorCode::ReadOnly) => SaveError::ReadOnly { path },
            Some(ErrorCode::ConstraintViolation) => SaveError::Known { path, id },
            _ => SaveError::Sql { path, source },
        }
    }
}

/// How much a file takes of records that others send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Most records.
    pub records: u32,
    /// Most bytes of their JSON in all; the newest record is kept whatever its length.
    pub bytes: u64,
}

/// Rows are numbered as they come.
const MAKE_ROOM: &str = "DELETE FROM records WHERE rowid IN (
    SELECT number FROM (
        SELECT rowid AS number,
               ROW_NUMBER() OVER newest AS place,
               SUM(octet_length(json)) OVER newest AS bytes
        FROM records
        WINDOW newest AS (ORDER BY rowid DESC))
    WHERE place > 1 AND (place > ?1 OR bytes > ?2))";

fn insert(connection: &Connection, record: &Record, json: &str) -> rusqlite::Result<()> {
    let measured: Vec<IpVersion> =
        record.versions.iter().filter(|v| v.has_figures()).map(|v| v.version).collect();
    let sql = "INSERT INTO records (id, started_at, elapsed, command, host, outcome, versions, schema, json,
                                    label, series, point)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let row = (
        record.id.hyphenated().to_string(),
        record.started_at.0,
        record.elapsed.0,
        &record.command,
        &record.request.host,
        outcome_word(record.outcome),
        version_words(&measured),
        record.schema,
        json,
        &record.label,
        record.series.as_ref().map(|series| series.id.hyphenated().to_string()),
        record.series.as_ref().map(|series| signed(series.index)),
    );
    connection.execute(sql, row).map(|_| ())
}

/// SQLite knows no larger number; no series has so many points.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn version_words(versions: &[IpVersion]) -> String {
    versions.iter().map(|v| v.name()).collect::<Vec<_>>().join(",")
}

pub(crate) fn versions_of(words: &str) -> Vec<IpVersion> {
    [IpVersion::V4, IpVersion::V6].into_iter().filter(|v| words.split(',').any(|w| w == v.name())).collect()
}

pub(crate) fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Complete => "complete",
        Outcome::Interrupted => "interrupted",
        Outcome::Failed => "failed",
    }
}

pub(crate) fn outcome_of(word: &str) -> Option<Outcome> {
    [Outcome::Complete, Outcome::Interrupted, Outcome::Failed].into_iter().find(|o| outcome_word(*o) == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;
    use crate::sample::record;

    #[test]
    fn a_full_disk_is_named_and_what_was_saved_before_survives() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("results.db")).unwrap();
        let pages: i64 = store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        store.connection.pragma_update(None, "max_page_count", pages + 8).unwrap();
        let mut saved = 0;
        let error = loop {
            assert!(saved < 10_000, "it never gets full");
            match store.save(&record(saved)) {
                Ok(()) => saved += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, SaveError::DiskFull { .. }), "{error}");
        assert!(error.to_string().contains("results.db"), "{error}");
        assert!(saved > 0);
        assert_eq!(store.list(&Filter::default(), 1000).unwrap().len() as u64, saved);
    }

    #[test]
    fn the_same_id_twice_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("results.db")).unwrap();
        store.save(&record(1)).unwrap();
        assert!(matches!(store.save(&record(1)), Err(SaveError::Known { id, .. }) if id == record(1).id));
    }

    #[test]
    fn a_stranger_cannot_fill_a_file_and_cannot_keep_its_records_by_their_times() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("strangers.db")).unwrap();
        let ids = || -> Vec<Uuid> {
            store.list(&Filter::default(), 1000).unwrap().into_iter().map(|summary| summary.id).collect()
        };
        let room = Room { records: 3, bytes: u64::MAX };
        // The one that says it is of the future came first.
        for n in [900, 1, 2, 3] {
            store.save_within(&record(n), room).unwrap();
        }
        assert_eq!(ids(), [3, 2, 1].map(|n| record(n).id));
        assert!(matches!(store.save_within(&record(2), room), Err(SaveError::Known { .. })));
        assert_eq!(ids().len(), 3, "what is refused makes no room");
        // They differ by one byte at most.
        let one = record(4).to_json().unwrap().len() as u64;
        store.save_within(&record(4), Room { records: 100, bytes: 2 * one }).unwrap();
        assert_eq!(ids(), [4, 3].map(|n| record(n).id));
        store.save_within(&record(5), Room { records: 100, bytes: 1 }).unwrap();
        assert_eq!(ids(), [record(5).id]);
    }

    #[test]
    fn writers_at_the_same_time_all_succeed() {
        const WRITERS: u64 = 8;
        const EACH: u64 = 25;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.db");
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let path = &path;
                scope.spawn(move || {
                    // Opened here, so that laying out the new file is raced as well.
                    let store = Store::open(path).unwrap();
                    for n in 0..EACH {
                        store.save(&record(writer * EACH + n)).unwrap();
                    }
                });
            }
        });
        let store = Store::open(&path).unwrap();
        assert_eq!(store.list(&Filter::default(), 1000).unwrap().len() as u64, WRITERS * EACH);
    }

    #[test]
    fn a_file_that_is_being_laid_out_is_not_taken_for_a_foreign_one() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("results.db");
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| Store::open(&path).unwrap());
                }
            });
        }
    }

    #[test]
    fn words_for_outcomes_and_versions_read_back() {
        for outcome in [Outcome::Complete, Outcome::Interrupted, Outcome::Failed] {
            assert_eq!(outcome_of(outcome_word(outcome)), Some(outcome));
        }
        for versions in [&[][..], &[IpVersion::V6], &[IpVersion::V4, IpVersion::V6]] {
            assert_eq!(versions_of(&version_words(versions)), versions);
        }
    }
}
