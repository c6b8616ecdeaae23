//! Listing, reading and deleting records.

use std::ops::ControlFlow;

use netaware_record::{Document as _, IpVersion, Outcome, Record};
use netaware_units::{Span, Wall};
use rusqlite::{OptionalExtension, Row, ToSql, params_from_iter};
use uuid::Uuid;

use crate::save::{outcome_of, versions_of};
use crate::{FindError, Store};

/// What a list shows of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// UUIDv7.
    pub id: Uuid,
    /// By the prober's wall clock.
    pub started_at: Wall,
    /// How long it took.
    pub elapsed: Span,
    /// `test`, `tcp`, `udp` or `latency`.
    pub command: String,
    /// As typed; empty for a responder of the prober's own.
    pub host: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The IP versions that yielded figures.
    pub versions: Vec<IpVersion>,
    /// Given by the person who measured.
    pub label: Option<String>,
    /// The series it belongs to, and its place there.
    pub series: Option<(Uuid, u64)>,
}

/// What an id stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// One measurement.
    Record(Uuid),
    /// Measurements that belong together.
    Series(Uuid),
}

/// Which records to list; the default is all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only of this command.
    pub command: Option<String>,
    /// Only to this host, as it was typed.
    pub host: Option<String>,
    /// Only those that began then or later.
    pub since: Option<Wall>,
    /// Only with this label.
    pub label: Option<String>,
    /// Only this one.
    pub id: Option<Uuid>,
    /// Whether they belong to a series.
    pub series: Among,
}

/// Which records to take by the series they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Among {
    /// All.
    #[default]
    All,
    /// Those of no series.
    Alone,
    /// Those of this one.
    Of(Uuid),
}

impl Filter {
    /// A WHERE clause for records and series alike, with its values; the series is not in it.
    pub(crate) fn clauses(&self) -> (String, Vec<Box<dyn ToSql>>) {
        let mut clauses = vec!["started_at >= ?"];
        let mut values: Vec<Box<dyn ToSql>> = vec![Box::new(self.since.map_or(i64::MIN, |wall| wall.0))];
        let texts = [("command = ?", &self.command), ("host = ?", &self.host), ("label = ?", &self.label)];
        for (clause, value) in texts {
            if let Some(value) = value {
                clauses.push(clause);
                values.push(Box::new(value.clone()));
            }
        }
        if let Some(id) = self.id {
            clauses.push("id = ?");
            values.push(Box::new(id.hyphenated().to_string()));
        }
        (format!("WHERE {}", clauses.join(" AND ")), values)
    }

    /// The same for records only.
    fn record_clauses(&self) -> (String, Vec<Box<dyn ToSql>>) {
        let (mut clauses, mut values) = self.clauses();
        match self.series {
            Among::All => {}
            Among::Alone => clauses.push_str(" AND series IS NULL"),
            Among::Of(series) => {
                clauses.push_str(" AND series = ?");
                values.push(Box::new(series.hyphenated().to_string()));
            }
        }
        (clauses, values)
    }
}

impl Store {
    /// Newest first, at most `limit`.
    ///
    /// # Errors
    /// The file cannot be read, or holds a row that is no record.
    pub fn list(&self, filter: &Filter, limit: u32) -> Result<Vec<Summary>, FindError> {
        let (clauses, mut values) = filter.record_clauses();
        let sql = format!(
            "SELECT id, started_at, elapsed, command, host, outcome, versions, label, series, point FROM records
             {clauses} ORDER BY started_at DESC, id DESC LIMIT ?"
        );
        values.push(Box::new(limit));
        let mut statement = self.connection.prepare(&sql).map_err(|e| self.unread(e))?;
        let bound = params_from_iter(values.iter().map(|value| value as &dyn ToSql));
        let rows = statement.query_map(bound, |row| Ok(self.summary(row))).map_err(|e| self.unread(e))?;
        rows.map(|row| row.map_err(|e| self.unread(e))?).collect()
    }

    /// Shows the records to `visit` one after the other, oldest first, those of one series in the
    /// order of its points. Only one is in memory at a time. `visit` may break off.
    ///
    /// # Errors
    /// The file cannot be read, or holds a record that this netaware cannot read.
    pub fn each(
        &self,
        filter: &Filter,
        mut visit: impl FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), FindError> {
        let (clauses, values) = filter.record_clauses();
        let order =
            if matches!(filter.series, Among::Of(_)) { "point, started_at" } else { "started_at, id" };
        let sql = format!("SELECT id, json FROM records {clauses} ORDER BY {order}");
        let mut statement = self.connection.prepare(&sql).map_err(|e| self.unread(e))?;
        let bound = params_from_iter(values.iter().map(|value| value as &dyn ToSql));
        let mut rows = statement.query(bound).map_err(|e| self.unread(e))?;
        while let Some(row) = rows.next().map_err(|e| self.unread(e))? {
            let text = |column| row.get::<_, String>(column).map_err(|e| self.unread(e));
            let record = Record::from_json(text(1)?.as_bytes())
                .map_err(|e| self.unreadable(&text(0).unwrap_or_default(), &e))?;
            if visit(record).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// What an id stands for: of a record or of a series, whole or its beginning; `last` is the
    /// newest measurement, and the series that it belongs to if it does.
    ///
    /// # Errors
    /// None or several match.
    pub fn resolve(&self, id_or_prefix: &str) -> Result<Found, FindError> {
        if id_or_prefix == "last" {
            let id = self.newest()?.ok_or_else(|| self.unknown(id_or_prefix))?;
            let sql = "SELECT series FROM records WHERE id = ?1";
            let series: Option<String> = self
                .connection
                .query_row(sql, [id.hyphenated().to_string()], |row| row.get(0))
                .map_err(|e| self.unread(e))?;
            return match series {
                Some(series) => self.uuid(&series).map(Found::Series),
                None => Ok(Found::Record(id)),
            };
        }
        let id = self.one_beginning_with(id_or_prefix, ANY_ID)?;
        let sql = "SELECT count(*) FROM records WHERE id = ?1";
        let records: i64 = self
            .connection
            .query_row(sql, [id.hyphenated().to_string()], |row| row.get(0))
            .map_err(|e| self.unread(e))?;
        Ok(if records > 0 { Found::Record(id) } else { Found::Series(id) })
    }

    /// The record with this id, the only one whose id begins so (hyphens do not matter), or for
    /// `last` the newest.
    ///
    /// # Errors
    /// None or several match, or the row cannot be read.
    pub fn get(&self, id_or_prefix: &str) -> Result<Record, FindError> {
        let id = self.find(id_or_prefix)?;
        let json: String = self
            .connection
            .query_row("SELECT json FROM records WHERE id = ?1", [id.hyphenated().to_string()], |row| {
                row.get(0)
            })
            .map_err(|e| self.unread(e))?;
        Record::from_json(json.as_bytes()).map_err(|e| self.unreadable(&id.to_string(), &e))
    }

    /// Deletes the record that [`Store::get`] would read, readable or not, and tells its id.
    ///
    /// # Errors
    /// None or several match, or the file cannot be written.
    pub fn delete(&self, id_or_prefix: &str) -> Result<Uuid, FindError> {
        let id = self.find(id_or_prefix)?;
        self.connection
            .execute("DELETE FROM records WHERE id = ?1", [id.hyphenated().to_string()])
            .map_err(|e| self.unread(e))?;
        Ok(id)
    }

    fn find(&self, given: &str) -> Result<Uuid, FindError> {
        if given == "last" {
            return self.newest()?.ok_or_else(|| self.unknown(given));
        }
        self.one_beginning_with(given, "SELECT id FROM records")
    }

    /// `ids` selects a column `id`.
    pub(crate) fn one_beginning_with(&self, given: &str, ids: &str) -> Result<Uuid, FindError> {
        let prefix = stored_form(given).ok_or_else(|| FindError::NotAnId { given: given.to_owned() })?;
        let matches = self.beginning_with(&prefix, ids)?;
        match matches.as_slice() {
            [] => Err(self.unknown(given)),
            [id] => Ok(*id),
            _ => Err(FindError::Ambiguous { given: given.to_owned(), matches }),
        }
    }

    /// At most a handful: enough to tell none, one and several apart and to show which.
    fn beginning_with(&self, prefix: &str, ids: &str) -> Result<Vec<Uuid>, FindError> {
        // 'g' follows every digit and the hyphen that an id can go on with, so this is a range of
        // the index.
        let sql = format!(
            "SELECT id FROM ({ids}) WHERE id >= ?1 AND id < ?1 || 'g' GROUP BY id ORDER BY id LIMIT 4"
        );
        let mut statement = self.connection.prepare(&sql).map_err(|e| self.unread(e))?;
        let rows =
            statement.query_map([prefix], |row| row.get::<_, String>(0)).map_err(|e| self.unread(e))?;
        rows.map(|row| self.uuid(&row.map_err(|e| self.unread(e))?)).collect()
    }

    fn newest(&self) -> Result<Option<Uuid>, FindError> {
        let sql = "SELECT id FROM records ORDER BY started_at DESC, id DESC LIMIT 1";
        let id: Option<String> =
            self.connection.query_row(sql, [], |row| row.get(0)).optional().map_err(|e| self.unread(e))?;
        id.map(|id| self.uuid(&id)).transpose()
    }

    fn summary(&self, row: &Row<'_>) -> Result<Summary, FindError> {
        let text = |column| row.get::<_, String>(column).map_err(|e| self.unread(e));
        let number = |column| row.get::<_, i64>(column).map_err(|e| self.unread(e));
        let (id, outcome) = (text(0)?, text(5)?);
        Ok(Summary {
            id: self.uuid(&id)?,
            started_at: Wall(number(1)?),
            elapsed: Span(number(2)?),
            command: text(3)?,
            host: text(4)?,
            outcome: outcome_of(&outcome)
                .ok_or_else(|| self.unreadable(&id, &format!("unknown outcome '{outcome}'")))?,
            versions: versions_of(&text(6)?),
            label: row.get(7).map_err(|e| self.unread(e))?,
            series: match row.get::<_, Option<String>>(8).map_err(|e| self.unread(e))? {
                None => None,
                Some(series) => Some((self.uuid(&series)?, number(9)?.max(0).cast_unsigned())),
            },
        })
    }

    pub(crate) fn uuid(&self, text: &str) -> Result<Uuid, FindError> {
        Uuid::parse_str(text).map_err(|e| self.unreadable(text, &e))
    }

    pub(crate) fn unknown(&self, given: &str) -> FindError {
        FindError::Unknown { given: given.to_owned(), path: self.path.clone() }
    }

    pub(crate) fn unreadable(&self, id: &str, reason: &dyn std::fmt::Display) -> FindError {
        FindError::Unreadable { id: id.to_owned(), path: self.path.clone(), reason: reason.to_string() }
    }

    pub(crate) fn unread(&self, source: rusqlite::Error) -> FindError {
        FindError::Sql { path: self.path.clone(), source }
    }
}

/// The ids of records and of series, those included whose plan is not kept.
const ANY_ID: &str = "SELECT id FROM records UNION ALL SELECT id FROM series
    UNION ALL SELECT series AS id FROM records WHERE series IS NOT NULL";

/// "019A2b3c4d5e" as the database has it: "019a2b3c-4d5e". `None` when it cannot be the beginning
/// of an id.
fn stored_form(given: &str) -> Option<String> {
    let digits: String = given.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
    if digits.is_empty() || digits.len() > 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut form = String::with_capacity(36);
    for (n, digit) in digits.chars().enumerate() {
        if matches!(n, 8 | 12 | 16 | 20) {
            form.push('-');
        }
        form.push(digit);
    }
    Some(form)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::record;

    fn store_with(records: u64) -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("results.db")).unwrap();
        for n in 0..records {
            store.save(&record(n)).unwrap();
        }
        (folder, store)
    }

    #[test]
    fn what_was_saved_is_read_back_unchanged() {
        let (_folder, store) = store_with(3);
        for n in 0..3 {
            assert_eq!(store.get(&record(n).id.to_string()).unwrap(), record(n));
        }
        assert_eq!(store.get("last").unwrap(), record(2));
    }

    #[test]
    fn lists_are_newest_first_and_filtered() {
        let (_folder, store) = store_with(6);
        let ids = |filter: &Filter, limit| -> Vec<Uuid> {
            store.list(filter, limit).unwrap().into_iter().map(|s| s.id).collect()
        };
        assert_eq!(ids(&Filter::default(), 2), [record(5).id, record(4).id]);
        let tcp = Filter { command: Some("tcp".into()), ..Filter::default() };
        assert_eq!(ids(&tcp, 10), [record(5).id, record(3).id, record(1).id]);
        let host = Filter { host: Some("elsewhere".into()), ..Filter::default() };
        assert!(ids(&host, 10).is_empty());
        let since = Filter { since: Some(record(4).started_at), ..Filter::default() };
        assert_eq!(ids(&since, 10), [record(5).id, record(4).id]);
    }

    #[test]
    fn a_summary_tells_which_versions_yielded_figures() {
        let (_folder, store) = store_with(1);
        let summary = store.list(&Filter::default(), 1).unwrap().remove(0);
        assert_eq!(summary.versions, [IpVersion::V4]);
        assert_eq!((summary.host.as_str(), summary.outcome), ("lab-b", Outcome::Complete));
    }

    #[test]
    fn a_prefix_must_name_exactly_one() {
        let (_folder, store) = store_with(3);
        let whole = record(1).id.simple().to_string();
        assert_eq!(store.get(&whole[..31]).unwrap_err().to_string().split(' ').nth(1), Some("could"));
        assert_eq!(store.get(&whole.to_uppercase()).unwrap(), record(1));
        assert!(matches!(store.get("ffff"), Err(FindError::Unknown { .. })));
        for bad in ["", "-", "x", "01'; DROP TABLE records", "019%", &"0".repeat(33)] {
            assert!(matches!(store.get(bad), Err(FindError::NotAnId { .. })), "{bad}");
        }
    }

    #[test]
    fn a_deleted_record_is_gone_and_an_unreadable_one_can_be_deleted() {
        let (_folder, store) = store_with(2);
        assert_eq!(store.delete("last").unwrap(), record(1).id);
        store.connection.execute("UPDATE records SET json = '{\"schema\":1}'", []).unwrap();
        let error = store.get("last").unwrap_err();
        assert!(matches!(error, FindError::Unreadable { .. }), "{error}");
        store.delete("last").unwrap();
        assert!(matches!(store.get("last"), Err(FindError::Unknown { .. })));
    }

    #[test]
    fn prefixes_take_the_stored_form() {
        let rows = [("019A2B3C4", Some("019a2b3c-4")), ("01-9", Some("019")), ("g", None), ("", None)];
        for (given, want) in rows {
            assert_eq!(stored_form(given).as_deref(), want, "{given}");
        }
    }
}
