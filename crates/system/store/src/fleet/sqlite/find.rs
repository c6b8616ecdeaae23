//! Reading, a page at a time.

use std::collections::BTreeMap;

use netaware_record::passive::Period;
use netaware_units::Wall;
use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::SqliteFleet;
use super::take::{DELAY_COLUMNS, delay_of};
use crate::fleet::merge::DelaySum;
use crate::fleet::query::{PointKey, bucket, lives, page_of, version_number};
use crate::fleet::{
    Cursor, DelayPoint, DelayQuery, FleetError, FleetReader, Kind, MOST_ITEMS, Page, ProbeSummary, RowQuery,
    StoredRow, TaskSummary, figures,
};

/// Clauses of a WHERE with their values.
struct Clauses {
    text: String,
    values: Vec<Value>,
}

impl Clauses {
    fn of(period: &Period) -> Self {
        Self { text: "at >= ? AND at < ?".into(), values: vec![period.from.0.into(), period.until.0.into()] }
    }

    fn and(&mut self, clause: &str, values: impl IntoIterator<Item = Value>) {
        self.text.push_str(" AND ");
        self.text.push_str(clause);
        self.values.extend(values);
    }

    fn and_text(&mut self, clause: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.and(clause, [value.clone().into()]);
        }
    }
}

impl FleetReader for SqliteFleet {
    fn delays(&self, query: &DelayQuery) -> Result<Page<DelayPoint>, FleetError> {
        let after: Option<PointKey> = query.after.as_ref().map(Cursor::key).transpose()?;
        let limit = query.limit.clamp(1, MOST_ITEMS) as usize;
        let mut clauses = delay_clauses(query);
        if let Some(key) = &after {
            clauses.and("at >= ?", [key.bucket.into()]);
        }
        let sql = format!("SELECT {DELAY_COLUMNS} FROM delays WHERE {} ORDER BY at", clauses.text);
        let mut statement = self.connection.prepare_cached(&sql).map_err(|e| self.unread(e))?;
        let mut rows = statement.query(params_from_iter(clauses.values)).map_err(|e| self.unread(e))?;
        // Rows come in the order of time, so a span is complete as soon as a row of a later one
        // comes.
        let mut points: BTreeMap<PointKey, DelaySum> = BTreeMap::new();
        let mut items: Vec<(PointKey, DelaySum)> = Vec::new();
        while let Some(row) = rows.next().map_err(|e| self.unread(e))? {
            let (task, sum) =
                delay_of(row).map_err(|e| self.unread(e))?.map_err(|why| self.unreadable(why))?;
            let key = point_key(task, &sum, bucket(sum.period.from, query.resolution));
            if points.last_key_value().is_some_and(|(last, _)| last.bucket < key.bucket) {
                items.extend(std::mem::take(&mut points));
                if items.len() > limit {
                    break;
                }
            }
            if after.as_ref().is_some_and(|after| key <= *after) {
                continue;
            }
            points.entry(key).and_modify(|known| known.add(&sum)).or_insert(sum);
        }
        items.extend(points);
        Ok(page_of(items, limit))
    }

    fn rows(&self, query: &RowQuery) -> Result<Page<StoredRow>, FleetError> {
        let limit = query.limit.clamp(1, MOST_ITEMS) as usize;
        let mut clauses = Clauses::of(&query.period);
        clauses.and("kind = ?", [query.kind.name().to_owned().into()]);
        clauses.and_text("task = ?", query.task.as_ref());
        clauses.and_text("name = ?", query.probe.as_ref());
        if let Some(cursor) = &query.after {
            let (at, id): (i64, i64) = cursor.key()?;
            clauses.and("(at, rows.id) > (?, ?)", [at.into(), id.into()]);
        }
        let sql = format!(
            "SELECT at, until, name, task, json, rows.id FROM rows JOIN origins ON origins.id = origin
             WHERE {} ORDER BY at, rows.id LIMIT {}",
            clauses.text,
            limit + 1
        );
        let mut statement = self.connection.prepare_cached(&sql).map_err(|e| self.unread(e))?;
        let mut rows = statement.query(params_from_iter(clauses.values)).map_err(|e| self.unread(e))?;
        let (mut items, mut last, mut next) = (Vec::new(), (0, 0), None);
        while let Some(row) = rows.next().map_err(|e| self.unread(e))? {
            if items.len() == limit {
                next = Some(Cursor::of(&last));
                break;
            }
            let (stored, key) = self.stored(row)?;
            items.push(stored);
            last = key;
        }
        Ok(Page { items, next })
    }

    fn probes(&self, period: &Period) -> Result<Vec<ProbeSummary>, FleetError> {
        // Bare columns beside one max() are those of its row (SQLite, "Bare columns in an aggregate
        // query").
        let sql = "SELECT name, incarnation, count(*), max(sequence) - min(sequence) + 1 - count(*), sum(seen), sum(lost),
                          sequence, max(at), until, captures, clock
                   FROM reports JOIN origins ON origins.id = origin
                   WHERE at >= ?1 AND at < ?2 GROUP BY origin ORDER BY name, max(at)";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.unread(e))?;
        let mut rows = statement.query([period.from.0, period.until.0]).map_err(|e| self.unread(e))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|e| self.unread(e))? {
            found.push(self.probe(row)?);
        }
        Ok(lives(found))
    }

    fn tasks(&self, period: &Period) -> Result<Vec<TaskSummary>, FleetError> {
        let sql = "SELECT task, kind, name, count(*), min(at), max(at)
                   FROM rows JOIN origins ON origins.id = origin
                   WHERE at >= ?1 AND at < ?2 GROUP BY task, kind, name
                   UNION ALL
                   SELECT task, 'delay', name, count(*), min(at), max(at)
                   FROM delays JOIN origins ON origins.id = origin
                   WHERE at >= ?1 AND at < ?2 GROUP BY task, name
                   ORDER BY 1, 2, 3";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.unread(e))?;
        let mut rows = statement.query([period.from.0, period.until.0]).map_err(|e| self.unread(e))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|e| self.unread(e))? {
            found.push(self.task(row)?);
        }
        Ok(found)
    }
}

impl SqliteFleet {
    fn stored(&self, row: &rusqlite::Row<'_>) -> Result<(StoredRow, (i64, i64)), FleetError> {
        let number = |at: usize| row.get::<_, i64>(at).map_err(|e| self.unread(e));
        let text = |at: usize| row.get::<_, String>(at).map_err(|e| self.unread(e));
        let (at, until) = (number(0)?, number(1)?);
        let (read, lost) = figures::parse(&text(4)?).map_err(|e| self.unreadable(e.to_string()))?;
        let period = Period { from: Wall(at), until: Wall(until) };
        Ok((StoredRow { probe: text(2)?, task: text(3)?, period, row: read, lost }, (at, number(5)?)))
    }

    fn probe(&self, row: &rusqlite::Row<'_>) -> Result<ProbeSummary, FleetError> {
        let number = |at: usize| row.get::<_, i64>(at).map_err(|e| self.unread(e));
        let count = |at: usize| number(at).map(|count| count.max(0).cast_unsigned());
        let text = |at: usize| row.get::<_, String>(at).map_err(|e| self.unread(e));
        Ok(ProbeSummary {
            probe: text(0)?,
            incarnation: text(1)?,
            reports: count(2)?,
            missing: count(3)?,
            seen: count(4)?,
            lost: count(5)?,
            sequence: count(6)?,
            period: Period { from: Wall(number(7)?), until: Wall(number(8)?) },
            captures: serde_json::from_str(&text(9)?).map_err(|e| self.unreadable(e.to_string()))?,
            clock: serde_json::from_str(&text(10)?).map_err(|e| self.unreadable(e.to_string()))?,
        })
    }

    fn task(&self, row: &rusqlite::Row<'_>) -> Result<TaskSummary, FleetError> {
        let number = |at: usize| row.get::<_, i64>(at).map_err(|e| self.unread(e));
        let text = |at: usize| row.get::<_, String>(at).map_err(|e| self.unread(e));
        let kind = text(1)?;
        Ok(TaskSummary {
            task: text(0)?,
            kind: Kind::named(&kind).ok_or_else(|| self.unreadable(format!("a row of kind '{kind}'")))?,
            origin: text(2)?,
            rows: number(3)?.max(0).cast_unsigned(),
            first: Wall(number(4)?),
            last: Wall(number(5)?),
        })
    }
}

fn delay_clauses(query: &DelayQuery) -> Clauses {
    let mut clauses = Clauses::of(&query.period);
    if let Some((from, to)) = &query.pair {
        clauses.and("from_point = ? AND to_point = ?", [from.clone().into(), to.clone().into()]);
    }
    clauses.and_text("task = ?", query.task.as_ref());
    clauses.and_text("method = ?", query.method.as_ref());
    if query.version.is_some() {
        clauses.and("version = ?", [i64::from(version_number(query.version)).into()]);
    }
    clauses
}

fn point_key(task: String, sum: &DelaySum, bucket: i64) -> PointKey {
    let row = &sum.row;
    PointKey {
        bucket,
        task,
        from: row.from.clone(),
        to: row.to.clone(),
        method: row.method.clone(),
        version: version_number(row.version),
    }
}
