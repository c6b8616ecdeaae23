//! Old rows become coarser, and in the end they go: in pieces, so that nobody waits long for the
//! file.

use std::collections::BTreeMap;

use netaware_record::passive::{Period, TaskRow};
use netaware_units::{Span, Wall};
use rusqlite::{Transaction, TransactionBehavior};

use super::SqliteFleet;
use super::take::{DELAY_COLUMNS, Failure, REMEMBERED, delay_of, put_delay, put_row};
use crate::fleet::merge::{self, DelaySum};
use crate::fleet::query::{bucket, version_number};
use crate::fleet::{FleetError, Upkeep, figures};

/// Rows of a table that one call adds up or deletes, at most.
const PIECE: usize = 20_000;

/// What rows of a span must share to become one.
type SumKey = (i64, i64, String, [String; 3], u8);

impl SqliteFleet {
    pub(super) fn keep_up(&mut self, now: Wall) -> Result<Upkeep, FleetError> {
        let ages = self.ages;
        let path = &self.path;
        let unwritten = |source| super::explained(source, path, "write to");
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(unwritten)?;
        let mut done = Upkeep::default();
        let run = || -> Result<(), Failure> {
            for (from_level, (age, length)) in ages.steps().into_iter().enumerate() {
                // A span that is not yet old to its end stays fine, so that none is added up in two
                // halves.
                let before = bucket(Wall(now.0.saturating_sub(age.0)), length);
                thin_delays(&transaction, from_level, before, length, &mut done)?;
                thin_rows(&transaction, from_level, before, length, &mut done)?;
            }
            let old = now.0.saturating_sub(ages.delete.0);
            let old_single = now.0.saturating_sub(ages.delete_single.0);
            delete(&transaction, "delays", "id", "at < ?1", old, &mut done)?;
            delete(&transaction, "rows", "id", "at < ?1", old, &mut done)?;
            delete(&transaction, "rows", "id", "sum_key IS NULL AND at < ?1", old_single, &mut done)?;
            delete(&transaction, "reports", "(origin, sequence)", "at < ?1", old_single, &mut done)?;
            forget_numbers(&transaction)?;
            Ok(())
        };
        let mut run = run;
        run().map_err(|failure| failure.explained(path))?;
        transaction.commit().map_err(unwritten)?;
        Ok(done)
    }
}

fn thin_delays(
    transaction: &Transaction<'_>,
    from_level: usize,
    before: i64,
    length: Span,
    done: &mut Upkeep,
) -> Result<(), Failure> {
    let sql = format!(
        "SELECT {DELAY_COLUMNS}, id, origin FROM delays WHERE level = {from_level} AND at < ?1 ORDER BY at LIMIT {PIECE}"
    );
    let mut sums: BTreeMap<SumKey, DelaySum> = BTreeMap::new();
    let mut gone: Vec<(i64, i64)> = Vec::new();
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut rows = statement.query([before])?;
    while let Some(row) = rows.next()? {
        // Rows that cannot be read stay as they are for whoever repairs the file; in the end they
        // go with their age.
        let Ok((task, sum)) = delay_of(row)? else { continue };
        let span = bucket(sum.period.from, length);
        gone.push((span, row.get(25)?));
        let names = [sum.row.from.clone(), sum.row.to.clone(), sum.row.method.clone()];
        let key = (span, row.get(26)?, task, names, version_number(sum.row.version));
        sums.entry(key).and_modify(|known| known.add(&sum)).or_insert(sum);
    }
    drop(rows);
    let whole = whole_spans(&gone);
    for (_, id) in gone.iter().filter(|(span, _)| *span < whole) {
        transaction.prepare_cached("DELETE FROM delays WHERE id = ?1")?.execute([id])?;
        done.thinned += 1;
    }
    for ((_, origin, task, ..), sum) in sums.iter().filter(|(key, _)| key.0 < whole) {
        put_delay(transaction, from_level as i64 + 1, *origin, task, sum)?;
        done.into += 1;
    }
    done.more |= gone.len() == PIECE;
    Ok(())
}

fn thin_rows(
    transaction: &Transaction<'_>,
    from_level: usize,
    before: i64,
    length: Span,
    done: &mut Upkeep,
) -> Result<(), Failure> {
    let sql = format!(
        "SELECT at, until, task, origin, kind, sum_key, json, id FROM rows
         WHERE level = {from_level} AND at < ?1 AND sum_key IS NOT NULL ORDER BY at LIMIT {PIECE}"
    );
    let mut sums: BTreeMap<(i64, i64, [String; 3]), TaskRow> = BTreeMap::new();
    let mut gone: Vec<(i64, i64)> = Vec::new();
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut rows = statement.query([before])?;
    while let Some(row) = rows.next()? {
        let period = Period { from: Wall(row.get(0)?), until: Wall(row.get(1)?) };
        let Ok((figures, lost)) = figures::parse(&row.get::<_, String>(6)?) else { continue };
        let span = bucket(period.from, length);
        gone.push((span, row.get(7)?));
        let task: String = row.get(2)?;
        let key = (span, row.get(3)?, [task.clone(), row.get(4)?, row.get(5)?]);
        sums.entry(key)
            .and_modify(|sum| {
                merge::add(&mut sum.row, &figures);
                merge::add_lost(&mut sum.lost, &lost);
                sum.period.until = sum.period.until.max(period.until);
            })
            .or_insert_with(|| TaskRow { task, period, row: figures.clone(), lost });
    }
    drop(rows);
    let whole = whole_spans(&gone);
    for (_, id) in gone.iter().filter(|(span, _)| *span < whole) {
        transaction.prepare_cached("DELETE FROM rows WHERE id = ?1")?.execute([id])?;
        done.thinned += 1;
    }
    for ((_, origin, [_, _, key]), sum) in sums.iter().filter(|(key, _)| key.0 < whole) {
        put_row(transaction, from_level as i64 + 1, *origin, sum, Some(key))?;
        done.into += 1;
    }
    done.more |= gone.len() == PIECE;
    Ok(())
}

/// Spans that begin before this are read to their end. The last one of a full piece may go on,
/// unless it is the only one: then it is added up in parts, which the next coarser step or a query
/// adds to each other.
fn whole_spans(read: &[(i64, i64)]) -> i64 {
    match (read.first(), read.last()) {
        (Some((first, _)), Some((last, _))) if read.len() == PIECE && first < last => *last,
        _ => i64::MAX,
    }
}

fn delete(
    transaction: &Transaction<'_>,
    table: &str,
    key: &str,
    condition: &str,
    before: i64,
    done: &mut Upkeep,
) -> Result<(), Failure> {
    let columns = key.trim_matches(['(', ')']);
    let sql = format!(
        "DELETE FROM {table} WHERE {key} IN (SELECT {columns} FROM {table} WHERE {condition} LIMIT {PIECE})"
    );
    let deleted = transaction.prepare_cached(&sql)?.execute([before])?;
    done.deleted += deleted as u64;
    done.more |= deleted == PIECE;
    Ok(())
}

/// Numbers far below an origin's highest are remembered as "all below".
pub(in crate::fleet) fn forget_numbers(transaction: &Transaction<'_>) -> Result<(), Failure> {
    let sql =
        format!("UPDATE origins SET below = highest - {REMEMBERED} WHERE below < highest - 2 * {REMEMBERED}");
    if transaction.prepare_cached(&sql)?.execute([])? > 0 {
        let sql = "DELETE FROM taken WHERE sequence < (SELECT below FROM origins WHERE id = taken.origin)";
        transaction.prepare_cached(sql)?.execute([])?;
    }
    Ok(())
}
