//! Measurements that belong together: what was planned, and how far it got.

use std::ops::Range;

use netaware_record::SeriesKind;
use netaware_units::Wall;
use rusqlite::{OptionalExtension, Row, ToSql, params, params_from_iter};
use uuid::Uuid;

use crate::save::signed;
use crate::{Filter, FindError, SaveError, Store};

/// What a series is, and all that is needed to continue it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesPlan {
    /// UUIDv7 that its records share.
    pub id: Uuid,
    /// What makes it a series.
    pub kind: SeriesKind,
    /// The command of each of its records.
    pub command: String,
    /// As typed; empty for a responder of the prober's own.
    pub host: String,
    /// The label of its records.
    pub label: Option<String>,
    /// Points; zero for a series without an end of its own.
    pub planned: u64,
    /// When its first point was due, by the prober's wall clock.
    pub started_at: Wall,
    /// The words of its command line after the command, without those that only say where its
    /// output goes. The shared key is never among them: it comes from a file or from the
    /// environment.
    pub line: Vec<String>,
}

/// A series in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// What was planned.
    pub plan: SeriesPlan,
    /// Points with a record that is complete.
    pub complete: u64,
    /// Points with a record that is not: failed or interrupted.
    pub broken: u64,
}

const COLUMNS: &str = "id, kind, command, host, label, planned, started_at, line";

impl Store {
    /// Keeps the plan of a series that begins.
    ///
    /// # Errors
    /// The disk is full, the file stays locked, or the series is there already.
    pub fn save_series(&self, plan: &SeriesPlan) -> Result<(), SaveError> {
        let sql = format!("INSERT INTO series ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
        let row = params![
            plan.id.hyphenated().to_string(),
            kind_word(plan.kind),
            plan.command,
            plan.host,
            plan.label,
            signed(plan.planned),
            plan.started_at.0,
            serde_json::to_string(&plan.line)?,
        ];
        self.connection.execute(&sql, row).map(|_| ()).map_err(|source| self.unsaved(source, plan.id))
    }

    /// The plan of the series with this id, of the only one whose id begins so, or for `last` of
    /// the newest.
    ///
    /// # Errors
    /// None or several match, or the row cannot be read.
    pub fn series(&self, id_or_prefix: &str) -> Result<SeriesPlan, FindError> {
        let id = if id_or_prefix == "last" {
            let sql = "SELECT id FROM series ORDER BY started_at DESC, id DESC LIMIT 1";
            let newest = self.connection.query_row(sql, [], |row| row.get::<_, String>(0)).optional();
            let newest = newest.map_err(|e| self.unread(e))?;
            newest.ok_or(FindError::NoSeries { path: self.path.clone() })?
        } else {
            self.one_beginning_with(id_or_prefix, "SELECT id FROM series")?.hyphenated().to_string()
        };
        let sql = format!("SELECT {COLUMNS} FROM series WHERE id = ?1");
        self.connection.query_row(&sql, [id], |row| Ok(self.plan(row))).map_err(|e| self.unread(e))?
    }

    /// Newest first, at most `limit`. The filter's `series` has no meaning here.
    ///
    /// # Errors
    /// The file cannot be read, or holds a row that is no plan.
    pub fn list_series(&self, filter: &Filter, limit: u32) -> Result<Vec<Overview>, FindError> {
        let (clauses, mut values) = filter.clauses();
        let sql = format!(
            "SELECT {COLUMNS},
                    (SELECT count(DISTINCT point) FROM records WHERE series = series.id AND outcome = 'complete'),
                    (SELECT count(DISTINCT point) FROM records WHERE series = series.id AND outcome <> 'complete')
             FROM series {clauses} ORDER BY started_at DESC, id DESC LIMIT ?"
        );
        values.push(Box::new(limit));
        let mut statement = self.connection.prepare(&sql).map_err(|e| self.unread(e))?;
        let bound = params_from_iter(values.iter().map(|value| value as &dyn ToSql));
        let rows = statement.query_map(bound, |row| Ok(self.overview(row))).map_err(|e| self.unread(e))?;
        rows.map(|row| row.map_err(|e| self.unread(e))?).collect()
    }

    /// The points of a series that need not be measured again, as runs of successive positions,
    /// ascending: a scan without holes is one run, however long.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn complete_points(&self, series: Uuid) -> Result<Vec<Range<u64>>, FindError> {
        let sql = "SELECT point FROM records WHERE series = ?1 AND outcome = 'complete' ORDER BY point";
        let mut statement = self.connection.prepare(sql).map_err(|e| self.unread(e))?;
        let points = statement
            .query_map([series.hyphenated().to_string()], |row| row.get::<_, i64>(0))
            .map_err(|e| self.unread(e))?;
        let mut runs: Vec<Range<u64>> = Vec::new();
        for point in points {
            let point = unsigned(point.map_err(|e| self.unread(e))?);
            match runs.last_mut() {
                Some(run) if run.contains(&point) => {}
                Some(run) if run.end == point => run.end += 1,
                _ => runs.push(point..point + 1),
            }
        }
        Ok(runs)
    }

    /// Deletes a series with all its records, and tells how many those were.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn delete_series(&self, series: Uuid) -> Result<usize, FindError> {
        let id = series.hyphenated().to_string();
        let deleted = || {
            let transaction = self.connection.unchecked_transaction()?;
            let records = transaction.execute("DELETE FROM records WHERE series = ?1", [&id])?;
            transaction.execute("DELETE FROM series WHERE id = ?1", [&id])?;
            transaction.commit().map(|()| records)
        };
        deleted().map_err(|e| self.unread(e))
    }

    fn overview(&self, row: &Row<'_>) -> Result<Overview, FindError> {
        let count = |column| row.get::<_, i64>(column).map(unsigned).map_err(|e| self.unread(e));
        Ok(Overview { plan: self.plan(row)?, complete: count(8)?, broken: count(9)? })
    }

    fn plan(&self, row: &Row<'_>) -> Result<SeriesPlan, FindError> {
        let text = |column| row.get::<_, String>(column).map_err(|e| self.unread(e));
        let (id, kind, line) = (text(0)?, text(1)?, text(7)?);
        Ok(SeriesPlan {
            id: self.uuid(&id)?,
            kind: kind_of(&kind)
                .ok_or_else(|| self.unreadable(&id, &format!("unknown kind of series '{kind}'")))?,
            command: text(2)?,
            host: text(3)?,
            label: row.get(4).map_err(|e| self.unread(e))?,
            planned: row.get(5).map(unsigned).map_err(|e| self.unread(e))?,
            started_at: Wall(row.get(6).map_err(|e| self.unread(e))?),
            line: serde_json::from_str(&line).map_err(|e| self.unreadable(&id, &e))?,
        })
    }
}

fn unsigned(count: i64) -> u64 {
    count.max(0).cast_unsigned()
}

fn kind_word(kind: SeriesKind) -> &'static str {
    match kind {
        SeriesKind::Scan => "scan",
        SeriesKind::Repeat => "repeat",
        SeriesKind::Matrix => "matrix",
    }
}

fn kind_of(word: &str) -> Option<SeriesKind> {
    [SeriesKind::Scan, SeriesKind::Repeat, SeriesKind::Matrix]
        .into_iter()
        .find(|kind| kind_word(*kind) == word)
}

#[cfg(test)]
mod tests {
    use netaware_record::Outcome;

    use super::*;
    use crate::sample::{SERIES, point, record};
    use crate::{Among, Found};

    fn plan() -> SeriesPlan {
        SeriesPlan {
            id: SERIES,
            kind: SeriesKind::Scan,
            command: "udp".into(),
            host: "lab-b".into(),
            label: Some("hall B".into()),
            planned: 10,
            started_at: record(0).started_at,
            line: vec!["--scan=length=64..1500+8".into(), "--".into(), "lab-b".into()],
        }
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("results.db")).unwrap();
        (folder, store)
    }

    #[test]
    fn a_plan_is_read_back_by_id_prefix_and_as_the_newest() {
        let (_folder, store) = store();
        assert!(matches!(store.series("last"), Err(FindError::NoSeries { .. })));
        store.save_series(&plan()).unwrap();
        for given in [&SERIES.to_string(), "019A2B3C0000", "last"] {
            assert_eq!(store.series(given).unwrap(), plan());
        }
        assert!(matches!(store.series("ff"), Err(FindError::Unknown { .. })));
        assert!(matches!(store.save_series(&plan()), Err(SaveError::Known { .. })));
    }

    #[test]
    fn complete_points_are_runs_and_a_second_attempt_replaces_the_first() {
        let (_folder, store) = store();
        for (n, index) in [(0, 0), (1, 1), (2, 2), (3, 7), (4, 5)] {
            let outcome = if index == 1 { Outcome::Failed } else { Outcome::Complete };
            store.save_point(&netaware_record::Record { outcome, ..point(n, index) }).unwrap();
        }
        store.save(&record(9)).unwrap();
        assert_eq!(store.complete_points(SERIES).unwrap(), [0..1, 2..3, 5..6, 7..8]);
        store.save_point(&point(6, 1)).unwrap();
        assert_eq!(store.complete_points(SERIES).unwrap(), [0..3, 5..6, 7..8]);
        let of_series = Filter { series: Among::Of(SERIES), ..Filter::default() };
        assert_eq!(store.list(&of_series, 100).unwrap().len(), 5);
    }

    #[test]
    fn a_series_is_one_line_of_a_list_and_its_records_are_read_in_the_order_of_points() {
        let (_folder, store) = store();
        store.save_series(&plan()).unwrap();
        for (n, index) in [(1, 2), (2, 0), (3, 1)] {
            store.save_point(&point(n, index)).unwrap();
        }
        store.save(&record(9)).unwrap();
        let listed = store.list_series(&Filter::default(), 10).unwrap();
        assert_eq!(listed, [Overview { plan: plan(), complete: 3, broken: 0 }]);
        let alone = Filter { series: Among::Alone, ..Filter::default() };
        assert_eq!(store.list(&alone, 10).unwrap().len(), 1);
        let mut seen = Vec::new();
        let of_series = Filter { series: Among::Of(SERIES), ..Filter::default() };
        store
            .each(&of_series, |record| {
                seen.push(record.series.unwrap().index);
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(seen, [0, 1, 2]);
        let labelled = Filter { label: Some("hall B".into()), ..Filter::default() };
        assert_eq!(store.list(&labelled, 10).unwrap().len(), 3);
        assert_eq!(store.list_series(&labelled, 10).unwrap().len(), 1);
        let other = Filter { label: Some("VPN".into()), ..Filter::default() };
        assert!(
            store.list(&other, 10).unwrap().is_empty() && store.list_series(&other, 10).unwrap().is_empty()
        );
    }

    #[test]
    fn an_id_means_a_record_or_a_series() {
        let (_folder, store) = store();
        store.save_series(&plan()).unwrap();
        store.save_point(&point(1, 0)).unwrap();
        assert_eq!(store.resolve("last").unwrap(), Found::Series(SERIES));
        store.save(&record(9)).unwrap();
        assert_eq!(store.resolve("last").unwrap(), Found::Record(record(9).id));
        assert_eq!(store.resolve("019a2b3c0000").unwrap(), Found::Series(SERIES));
        assert_eq!(store.resolve(&point(1, 0).id.to_string()).unwrap(), Found::Record(point(1, 0).id));
        assert!(matches!(store.resolve("019a2b3c"), Err(FindError::Ambiguous { .. })));
        assert_eq!(store.delete_series(SERIES).unwrap(), 1);
        assert!(matches!(store.resolve("019a2b3c0000"), Err(FindError::Unknown { .. })));
    }
}
