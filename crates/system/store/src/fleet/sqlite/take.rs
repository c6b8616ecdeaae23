//! Writing what was not written before.

use netaware_record::passive::{DelayRow, Period, ProbeReport, Row, TaskRow};
use netaware_units::{Span, Wall};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params_from_iter};

use super::SqliteFleet;
use crate::fleet::merge::{self, DelaySum};
use crate::fleet::query::version_number;
use crate::fleet::thinning::{HOUR, MINUTE};
use crate::fleet::{Batch, FleetError, Kind, Origin, Taken, codec, figures};
use crate::save::signed;

/// Numbers this far below the highest are no longer remembered one by one: a probe sends what it
/// has in order, so none of them is new. Should one be all the same, it is lost rather than counted
/// twice.
pub(super) const REMEMBERED: i64 = 100_000;

/// Columns of a row of delays, in the order in which [`put_delay`] gives and `find` reads them.
pub(super) const DELAY_COLUMNS: &str = "at, until, task, from_point, to_point, method, version, rows, packets, matched, lost, \
    unobserved, late, duplicates, reordered, collisions, given_up, below_bound, patience, clock_offset, clock_bound, \
    clock_method, warnings, delay, ipdv";

/// How many these are.
const DELAY_VALUES: usize = 25;

impl SqliteFleet {
    pub(super) fn take_batches(&mut self, batches: &[Batch<'_>]) -> Result<Vec<Taken>, FleetError> {
        let path = &self.path;
        let unwritten = |source| super::explained(source, path, "write to");
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(unwritten)?;
        let mut taken = Vec::with_capacity(batches.len());
        for batch in batches {
            taken.push(take(&transaction, batch).map_err(|error| error.explained(path))?);
        }
        transaction.commit().map_err(unwritten)?;
        Ok(taken)
    }

    pub(super) fn highest_number(&self, name: &str, incarnation: &str) -> Result<u64, FleetError> {
        let sql = "SELECT highest FROM origins WHERE name = ?1 AND incarnation = ?2";
        let highest: Option<i64> = self
            .connection
            .query_row(sql, (name, incarnation), |row| row.get(0))
            .optional()
            .map_err(|e| self.unread(e))?;
        Ok(highest.unwrap_or(0).max(0).cast_unsigned())
    }
}

/// Why a batch was not written.
pub(in crate::fleet) enum Failure {
    Sql(rusqlite::Error),
    Json(serde_json::Error),
}

impl Failure {
    pub(in crate::fleet) fn explained(self, path: &std::path::Path) -> FleetError {
        match self {
            Self::Sql(source) => super::explained(source, path, "write to"),
            Self::Json(error) => FleetError::Json(error),
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

fn take(transaction: &Transaction<'_>, batch: &Batch<'_>) -> Result<Taken, Failure> {
    let (origin, taken) = number(transaction, &batch.origin)?;
    if taken == Taken::Known {
        return Ok(taken);
    }
    if let Some(report) = batch.report {
        put_report(transaction, origin, batch.origin.sequence, report)?;
    }
    for row in batch.rows {
        put(transaction, origin, row)?;
    }
    Ok(Taken::New)
}

/// The origin's number in this file, and whether its batch is new; if so it is marked as taken.
pub(in crate::fleet) fn number(
    connection: &Connection,
    origin: &Origin<'_>,
) -> rusqlite::Result<(i64, Taken)> {
    let sequence = signed(origin.sequence);
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO origins (name, incarnation, highest, below) VALUES (?1, ?2, 0, 0)",
        )?
        .execute((origin.name, origin.incarnation))?;
    let (id, below): (i64, i64) = connection
        .prepare_cached("SELECT id, below FROM origins WHERE name = ?1 AND incarnation = ?2")?
        .query_row((origin.name, origin.incarnation), |row| Ok((row.get(0)?, row.get(1)?)))?;
    if sequence < below {
        return Ok((id, Taken::Known));
    }
    let new = connection
        .prepare_cached("INSERT OR IGNORE INTO taken (origin, sequence) VALUES (?1, ?2)")?
        .execute((id, sequence))?;
    if new == 0 {
        return Ok((id, Taken::Known));
    }
    connection
        .prepare_cached("UPDATE origins SET highest = max(highest, ?2) WHERE id = ?1")?
        .execute((id, sequence))?;
    Ok((id, Taken::New))
}

fn put_report(
    transaction: &Transaction<'_>,
    origin: i64,
    sequence: u64,
    report: &ProbeReport,
) -> Result<(), Failure> {
    let total = |of: fn(&netaware_record::passive::InterfaceCapture) -> u64| {
        signed(report.captures.iter().map(of).fold(0, u64::saturating_add))
    };
    let sql = "INSERT INTO reports (origin, sequence, at, until, seen, lost, captures, clock)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    transaction.prepare_cached(sql)?.execute((
        origin,
        signed(sequence),
        report.period.from.0,
        report.period.until.0,
        total(|capture| capture.health.seen),
        total(|capture| capture.health.lost()),
        serde_json::to_string(&report.captures)?,
        serde_json::to_string(&report.clock)?,
    ))?;
    Ok(())
}

fn put(transaction: &Transaction<'_>, origin: i64, row: &TaskRow) -> Result<(), Failure> {
    let level = level(&row.period);
    match &row.row {
        Row::Delay(delay) => {
            let sum = DelaySum::of(row.period, 1, delay.as_ref().clone());
            put_delay(transaction, level, origin, &row.task, &sum)
        }
        other => put_row(transaction, level, origin, row, merge::key(other).as_deref()),
    }
}

/// A row that is as long as coarse ones is one from the beginning.
fn level(period: &Period) -> i64 {
    let length = period.until.since(period.from);
    i64::from(length >= MINUTE) + i64::from(length >= HOUR)
}

pub(super) fn put_delay(
    transaction: &Transaction<'_>,
    level: i64,
    origin: i64,
    task: &str,
    sum: &DelaySum,
) -> Result<(), Failure> {
    let row = &sum.row;
    let warnings = match row.warnings.as_slice() {
        [] => Value::Null,
        some => serde_json::to_string(some)?.into(),
    };
    let head: [Value; 8] = [
        sum.period.from.0.into(),
        sum.period.until.0.into(),
        task.to_owned().into(),
        row.from.clone().into(),
        row.to.clone().into(),
        row.method.clone().into(),
        i64::from(version_number(row.version)).into(),
        signed(sum.rows).into(),
    ];
    let counts = merge::counts(row).map(|count| Value::from(signed(count)));
    let tail: [Value; 7] = [
        row.patience.0.into(),
        row.offset.0.into(),
        row.clock_bound.map(|bound| bound.0).into(),
        row.clock_method.clone().into(),
        warnings,
        codec::emit(&row.delay).into(),
        codec::emit(&row.ipdv).into(),
    ];
    let places = ", ?".repeat(DELAY_VALUES);
    let sql = format!("INSERT INTO delays (level, origin, {DELAY_COLUMNS}) VALUES (?, ?{places})");
    let values = [level.into(), origin.into()].into_iter().chain(head).chain(counts).chain(tail);
    transaction.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    Ok(())
}

pub(super) fn put_row(
    transaction: &Transaction<'_>,
    level: i64,
    origin: i64,
    row: &TaskRow,
    sum_key: Option<&str>,
) -> Result<(), Failure> {
    let sql = "INSERT INTO rows (level, kind, at, until, origin, task, sum_key, json)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    transaction.prepare_cached(sql)?.execute((
        level,
        Kind::of(&row.row).name(),
        row.period.from.0,
        row.period.until.0,
        origin,
        &row.task,
        sum_key,
        figures::emit(row)?,
    ))?;
    Ok(())
}

/// A delay row from its columns, or what is wrong with them.
pub(super) fn delay_of(
    row: &rusqlite::Row<'_>,
) -> rusqlite::Result<Result<(String, DelaySum), &'static str>> {
    let count = |at: usize| row.get::<_, i64>(at).map(|count| count.max(0).cast_unsigned());
    let mut delay: DelayRow = merge::empty_row();
    delay.from = row.get(3)?;
    delay.to = row.get(4)?;
    delay.method = row.get(5)?;
    delay.version = crate::fleet::query::version_of(row.get(6)?);
    for (n, field) in merge::counts_mut(&mut delay).into_iter().enumerate() {
        *field = count(8 + n)?;
    }
    delay.patience = Span(row.get(18)?);
    delay.offset = Span(row.get(19)?);
    delay.clock_bound = row.get::<_, Option<i64>>(20)?.map(Span);
    delay.clock_method = row.get(21)?;
    if let Some(json) = row.get::<_, Option<String>>(22)? {
        let Ok(warnings) = serde_json::from_str(&json) else { return Ok(Err("warnings that are no list")) };
        delay.warnings = warnings;
    }
    for (column, place) in [(23, &mut delay.delay), (24, &mut delay.ipdv)] {
        let bytes: Vec<u8> = row.get(column)?;
        let Some(read) = codec::parse(&bytes) else { return Ok(Err("a damaged distribution")) };
        *place = read;
    }
    let period = Period { from: Wall(row.get(0)?), until: Wall(row.get(1)?) };
    Ok(Ok((row.get(2)?, DelaySum { period, rows: count(7)?, row: delay })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_their_values() {
        let columns: Vec<&str> = DELAY_COLUMNS.split(", ").collect();
        assert_eq!(columns.len(), DELAY_VALUES);
        assert_eq!(columns[8..18], merge::COUNTS);
    }
}
