//! Questions to ClickHouse.

use netaware_record::Histogram;
use netaware_record::passive::{DelayStatistics, Period};
use netaware_units::{Span, Wall};
use serde_json::Value;

use super::http::Http;
use super::schema::{delay_reads, delay_sums, keys};
use super::sums::{self, Sums};
use super::{instant, quoted, seconds};
use crate::fleet::merge::{self, DelaySum, MIXED};
use crate::fleet::query::{PointKey, lives, page_of, version_number, version_of};
use crate::fleet::thinning::{HOUR, MINUTE};
use crate::fleet::{
    Ages, Cursor, DelayPoint, DelayQuery, FleetError, FleetReader, Kind, MOST_ITEMS, Page, ProbeSummary,
    RowQuery, StoredRow, TaskSummary, figures,
};

/// Numbers as numbers; 128-bit ones are asked for as text.
const FORMAT: &str = "SETTINGS output_format_json_quote_64bit_integers = 0 FORMAT JSONCompactEachRow";

/// Reads a fleet's tables.
#[derive(Debug)]
pub(super) struct Finder {
    http: Http,
    /// `None`: whatever the tables are kept by when a question is asked.
    ages: Option<Ages>,
}

impl FleetReader for Finder {
    fn delays(&self, query: &DelayQuery) -> Result<Page<DelayPoint>, FleetError> {
        let limit = query.limit.clamp(1, MOST_ITEMS) as usize;
        let sql = delays_sql(query, self.ages()?, limit + 1)?;
        let points = self.rows_of(&sql, point)?;
        Ok(page_of(points, limit))
    }

    fn rows(&self, query: &RowQuery) -> Result<Page<StoredRow>, FleetError> {
        let limit = query.limit.clamp(1, MOST_ITEMS) as usize;
        let sql = rows_sql(query, self.ages()?, limit + 1)?;
        let mut found = self.rows_of(&sql, |row| stored(row, query.kind))?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(_, key)| Cursor::of(key));
        Ok(Page { items: found.into_iter().map(|(row, _)| row).collect(), next })
    }

    fn probes(&self, period: &Period) -> Result<Vec<ProbeSummary>, FleetError> {
        let sql = format!(
            "SELECT origin, incarnation, count(), toInt64(max(sequence)) - toInt64(min(sequence)) + 1 - toInt64(count()), sum(seen),
                    sum(lost), argMax(sequence, r.at), toUnixTimestamp64Nano(max(r.at)), toUnixTimestamp64Nano(argMax(until, r.at)),
                    argMax(captures, r.at), argMax(clock, r.at)
             FROM reports AS r FINAL WHERE {} GROUP BY origin, incarnation ORDER BY origin, max(r.at) {FORMAT}",
            within("r.at", period)
        );
        Ok(lives(self.rows_of(&sql, probe)?))
    }

    fn tasks(&self, period: &Period) -> Result<Vec<TaskSummary>, FleetError> {
        self.rows_of(&tasks_sql(period, &Borders::of(self.ages()?)), task)
    }
}

impl Finder {
    pub(super) fn new(http: Http, ages: Option<Ages>) -> Self {
        Self { http, ages }
    }

    /// Each row of the answer, made into what it means; `None` from `of` means that it has another
    /// form than was asked for.
    fn rows_of<T>(&self, sql: &str, of: impl Fn(&Row) -> Option<T>) -> Result<Vec<T>, FleetError> {
        let answer = self.http.ask(sql)?;
        let unreadable = || FleetError::Unreadable {
            place: self.http.address.shown(),
            reason: "a row of the answer has an unknown form".into(),
        };
        let one =
            |line: &str| serde_json::from_str(line).ok().and_then(|row| of(&Row(row))).ok_or_else(unreadable);
        answer.lines().map(one).collect()
    }

    fn ages(&self) -> Result<Ages, FleetError> {
        self.ages.map_or_else(|| self.ages_of_tables(), Ok)
    }

    fn ages_of_tables(&self) -> Result<Ages, FleetError> {
        let sql = format!(
            "SELECT to_minutes, to_hours, gone, gone_single FROM ages ORDER BY made DESC LIMIT 1 {FORMAT}"
        );
        let age = |row: &Row, at| row.number(at).map(Span::from_secs);
        let found = self.rows_of(&sql, |row| {
            Some(Ages {
                to_minutes: age(row, 0)?,
                to_hours: age(row, 1)?,
                delete: age(row, 2)?,
                delete_single: age(row, 3)?,
            })
        })?;
        Ok(found.first().copied().unwrap_or_default())
    }
}

/// Numbers taken from each origin, by what its rows say: for a buffer that is new.
pub(super) fn taken(http: &Http) -> Result<Vec<(String, String, u64)>, FleetError> {
    let part = |table: &str| {
        format!("SELECT toString(origin) AS o, toString(incarnation) AS i, sequence FROM {table}")
    };
    let sql = format!(
        "SELECT o, i, max(sequence) FROM ({} UNION ALL {} UNION ALL {}) GROUP BY o, i {FORMAT}",
        part("delays"),
        part("rows"),
        part("reports")
    );
    let finder = Finder::new(http.clone(), None);
    finder.rows_of(&sql, |row| Some((row.text(0)?, row.text(1)?, row.count(2)?)))
}

/// A row of an answer.
struct Row(Vec<Value>);

impl Row {
    fn number(&self, at: usize) -> Option<i64> {
        self.0.get(at)?.as_i64()
    }

    fn count(&self, at: usize) -> Option<u64> {
        self.0.get(at)?.as_u64()
    }

    fn text(&self, at: usize) -> Option<String> {
        self.0.get(at)?.as_str().map(str::to_owned)
    }

    fn texts(&self, at: usize) -> Option<Vec<String>> {
        let texts = self.0.get(at)?.as_array()?;
        texts.iter().map(|text| text.as_str().map(str::to_owned)).collect()
    }

    fn counts(&self, at: usize) -> Option<Vec<u64>> {
        self.0.get(at)?.as_array()?.iter().map(Value::as_u64).collect()
    }
}

/// Rows that begin in a time.
fn within(at: &str, period: &Period) -> String {
    format!("{at} >= {} AND {at} < {}", instant(period.from.0), instant(period.until.0))
}

fn delays_sql(query: &DelayQuery, ages: Ages, limit: usize) -> Result<String, FleetError> {
    let mut which = vec![within("t.at", &query.period)];
    if let Some((from, to)) = &query.pair {
        which.push(format!("from_point = {} AND to_point = {}", quoted(from), quoted(to)));
    }
    for (name, value) in [("task", &query.task), ("method", &query.method)] {
        which.extend(value.as_ref().map(|value| format!("{name} = {}", quoted(value))));
    }
    if query.version.is_some() {
        which.push(format!("version = {}", version_number(query.version)));
    }
    let mut rest = String::new();
    if let Some(cursor) = &query.after {
        let key: PointKey = cursor.key()?;
        which.push(format!("t.at >= {}", instant(key.bucket)));
        let names = [&key.task, &key.from, &key.to, &key.method].map(|name| quoted(name)).join(", ");
        rest = format!("WHERE (bucket, {}) > ({}, {names}, {})", keys(), key.bucket, key.version);
    }
    let which = which.join(" AND ");
    let read = delay_reads();
    let parts: Vec<String> = parts(query, ages)
        .into_iter()
        .map(|(table, when)| {
            format!("SELECT {read} FROM {table} AS t{} WHERE {which} AND {when}", last(table))
        })
        .collect();
    Ok(format!(
        "SELECT {} FROM (SELECT intDiv(toUnixTimestamp64Nano(d.at), {step}) * {step} AS bucket, {keys}, {}
         FROM ({}) AS d GROUP BY bucket, {keys}) {rest} ORDER BY bucket, {keys} LIMIT {limit} {FORMAT}",
        point_columns(),
        delay_sums("d"),
        parts.join(" UNION ALL "),
        step = query.resolution.0.max(1),
        keys = keys(),
    ))
}

/// From which tables, and from when to when. Coarse tables hold everything that came in, so they
/// serve recent times as well where nothing finer is asked for; raw rows older than their age may
/// be half gone, so they are not looked at.
fn parts(query: &DelayQuery, ages: Ages) -> Vec<Part> {
    let fits = |length: Span| {
        let whole = |at: Wall| at.0 % length.0 == 0 || at.0 == i64::MAX;
        query.resolution.0 > 0
            && query.resolution.0 % length.0 == 0
            && whole(query.period.from)
            && whole(query.period.until)
    };
    if fits(HOUR) {
        return vec![("delays_1h", "true".into())];
    }
    let borders = Borders::of(ages);
    let [raw, minutes, hours] = borders.parts(["delays", "delays_1m", "delays_1h"]);
    if fits(MINUTE) {
        return vec![("delays_1m", format!("t.at >= {}", borders.hours_until)), hours];
    }
    vec![raw, minutes, hours]
}

/// Instants before which rows are only looked at where they are added up, as expressions.
struct Borders {
    /// By the minute, from [`Self::hours_until`] on.
    minutes_until: String,
    /// By the hour.
    hours_until: String,
    /// What is never added up is gone before it.
    singles_from: String,
}

impl Borders {
    /// At beginnings of whole minutes and hours, so that none is read half here and half there.
    fn of(ages: Ages) -> Self {
        let [to_minutes, to_hours, _, single] = seconds(ages);
        let since = |age: i64, length: i64| {
            format!(
                "toStartOfInterval(now('UTC') - toIntervalSecond({age}), toIntervalSecond({length})) + toIntervalSecond({length})"
            )
        };
        Self {
            minutes_until: since(to_minutes, 60),
            hours_until: since(to_hours, 3600),
            singles_from: format!("now('UTC') - toIntervalSecond({single})"),
        }
    }

    /// Where rows are looked at, in tables of rows as they came, by the minute and by the hour.
    fn parts(&self, [raw, minutes, hours]: [&'static str; 3]) -> [Part; 3] {
        let Self { minutes_until, hours_until, .. } = self;
        [
            (raw, format!("t.at >= {minutes_until}")),
            (minutes, format!("t.at >= {hours_until} AND t.at < {minutes_until}")),
            (hours, format!("t.at < {hours_until}")),
        ]
    }
}

/// A table, and when its rows are looked at.
type Part = (&'static str, String);

/// Copies of a raw row count once; parts of a sum are added up by the question.
fn last(table: &str) -> &'static str {
    if table.ends_with("_1m") || table.ends_with("_1h") { "" } else { " FINAL" }
}

/// In the order in which [`point`] reads them.
fn point_columns() -> String {
    let statistics = |of: &str| {
        format!(
            "{of}_count, {of}_min, {of}_max, toString({of}_sum), {of}_squares, {of}_under, {of}_over, {of}_bins.1, {of}_bins.2"
        )
    };
    format!(
        "bucket, {}, toUnixTimestamp64Nano(from_at), toUnixTimestamp64Nano(until), rows, {}, patience, clock_offset.2, clock_bound,
         unbounded, clock_methods, warnings, {}, {}",
        keys(),
        merge::COUNTS.join(", "),
        statistics("delay"),
        statistics("ipdv")
    )
}

fn point(row: &Row) -> Option<(PointKey, DelaySum)> {
    let mut figures = merge::empty_row();
    let version = u8::try_from(row.count(5)?).ok()?;
    let key = PointKey {
        bucket: row.number(0)?,
        task: row.text(1)?,
        from: row.text(2)?,
        to: row.text(3)?,
        method: row.text(4)?,
        version,
    };
    (figures.from, figures.to, figures.method) = (key.from.clone(), key.to.clone(), key.method.clone());
    figures.version = version_of(version);
    for (n, count) in merge::counts_mut(&mut figures).into_iter().enumerate() {
        *count = row.count(9 + n)?;
    }
    figures.patience = Span(row.number(19)?);
    figures.offset = Span(row.number(20)?);
    figures.clock_bound = row.number(21).filter(|_| row.count(22) == Some(0)).map(Span);
    let mut methods = row.texts(23)?;
    figures.clock_method = if methods.len() == 1 { methods.remove(0) } else { MIXED.into() };
    figures.warnings = row.texts(24)?;
    figures.delay = statistics(row, 25)?;
    figures.ipdv = statistics(row, 34)?;
    let period = Period { from: Wall(row.number(6)?), until: Wall(row.number(7)?) };
    Some((key, DelaySum::of(period, row.count(8)?, figures)))
}

fn statistics(row: &Row, at: usize) -> Option<DelayStatistics> {
    let (edges, counts) = (row.counts(at + 7)?, row.counts(at + 8)?);
    let histogram = Histogram {
        bins: edges.into_iter().zip(counts).collect(),
        digits: Some(3),
        underflow: row.count(at + 5)?,
        overflow: row.count(at + 6)?,
        ..Histogram::default()
    };
    Some(DelayStatistics {
        count: row.count(at)?,
        min: Span(row.number(at + 1).unwrap_or(0)),
        max: Span(row.number(at + 2).unwrap_or(0)),
        sum_ns: row.text(at + 3)?.parse().ok()?,
        // JSON has no word for what is not finite.
        sum_squares: row.0.get(at + 4)?.as_f64().unwrap_or(0.0),
        histogram,
    })
}

/// What tells rows apart, in the order in which they are given: time, origin, incarnation, number,
/// position.
type RowKey = (i64, String, String, u64, u64);

fn rows_sql(query: &RowQuery, ages: Ages, limit: usize) -> Result<String, FleetError> {
    let mut which = vec![format!("kind = {}", quoted(query.kind.name())), within("t.at", &query.period)];
    which.extend(query.task.as_ref().map(|task| format!("t.task = {}", quoted(task))));
    which.extend(query.probe.as_ref().map(|probe| format!("t.origin = {}", quoted(probe))));
    let order = "at, origin, incarnation, sequence, position";
    let mut rest = String::new();
    if let Some(cursor) = &query.after {
        let (at, origin, incarnation, sequence, position): RowKey = cursor.key()?;
        let names = format!("{}, {}", quoted(&origin), quoted(&incarnation));
        which.push(format!("t.at >= {}", instant(at)));
        rest = format!("WHERE ({order}) > ({}, {names}, {sequence}, {position})", instant(at));
    }
    let page = format!("{rest} ORDER BY {order} LIMIT {limit}");
    let parts: Vec<String> = row_parts(query.kind, ages)
        .into_iter()
        .map(|(table, when)| rows_of(table, &format!("{} AND {when}", which.join(" AND ")), &page))
        .collect();
    Ok(format!(
        "SELECT toUnixTimestamp64Nano(at), toUnixTimestamp64Nano(from_at), toUnixTimestamp64Nano(until), origin, task, json,
                incarnation, sequence, position
         FROM ({}) {page} {FORMAT}",
        parts.join(" UNION ALL "),
    ))
}

/// From which tables rows of a kind are read, and from when to when.
fn row_parts(kind: Kind, ages: Ages) -> Vec<Part> {
    let borders = Borders::of(ages);
    if sums::SUMMED.contains(&kind) {
        borders.parts(["rows", "rows_1m", "rows_1h"]).into()
    } else {
        vec![("rows", format!("t.at >= {}", borders.singles_from))]
    }
}

/// Those of one table. Raw ones are cut to the page before anything is put together, so that
/// ClickHouse reads no more of them.
fn rows_of(table: &str, which: &str, page: &str) -> String {
    if last(table).is_empty() {
        return sums::read(table, which);
    }
    format!(
        "SELECT * FROM (SELECT t.at AS at, t.at AS from_at, t.until AS until, toString(t.origin) AS origin,
                toString(t.task) AS task, json, toString(t.incarnation) AS incarnation, sequence,
                toUInt64(t.position) AS position
         FROM {table} AS t FINAL WHERE {which}) {page}"
    )
}

/// A sum is told from a row by its number: those of origins begin at 1.
fn stored(row: &Row, kind: Kind) -> Option<(StoredRow, RowKey)> {
    let period = Period { from: Wall(row.number(1)?), until: Wall(row.number(2)?) };
    let (probe, sequence, json) = (row.text(3)?, row.count(7)?, row.text(5)?);
    let (figures, lost) = match sequence {
        0 => {
            let sums = serde_json::from_str::<Sums>(&json).ok()?;
            let lost = sums.lost();
            (sums.row(kind)?, lost)
        }
        _ => figures::parse(&json).ok()?,
    };
    let key = (row.number(0)?, probe.clone(), row.text(6)?, sequence, row.count(8)?);
    Some((StoredRow { probe, task: row.text(4)?, period, row: figures, lost }, key))
}

/// Rows that are kept of each task, kind and origin: those of each age where they are looked at.
fn tasks_sql(period: &Period, borders: &Borders) -> String {
    let which = within("t.at", period);
    let kept = |table: &str, kind: &str, who: &str, when: &str| {
        format!(
            "SELECT toString(t.task) AS name, {kind} AS kind_name, {who} AS who, t.at AS at FROM {table} AS t FINAL
             WHERE {which} AND {when}"
        )
    };
    let rows = borders.parts(["rows", "rows_1m", "rows_1h"]).map(|(table, when)| {
        let when = match table {
            "rows" => format!("if(kind IN ({}), {when}, t.at >= {})", sums::summed(), borders.singles_from),
            _ => when,
        };
        kept(table, "toString(kind)", "toString(t.origin)", &when)
    });
    let delays = borders
        .parts(["delays", "delays_1m", "delays_1h"])
        .map(|(table, when)| kept(table, "'delay'", "arrayJoin(t.origins)", &when));
    format!(
        "SELECT name, kind_name, who, count(), toUnixTimestamp64Nano(min(at)), toUnixTimestamp64Nano(max(at))
         FROM ({}) GROUP BY name, kind_name, who ORDER BY name, kind_name, who {FORMAT}",
        rows.into_iter().chain(delays).collect::<Vec<_>>().join(" UNION ALL ")
    )
}

fn probe(row: &Row) -> Option<ProbeSummary> {
    Some(ProbeSummary {
        probe: row.text(0)?,
        incarnation: row.text(1)?,
        reports: row.count(2)?,
        missing: row.number(3)?.max(0).cast_unsigned(),
        seen: row.count(4)?,
        lost: row.count(5)?,
        sequence: row.count(6)?,
        period: Period { from: Wall(row.number(7)?), until: Wall(row.number(8)?) },
        captures: serde_json::from_str(&row.text(9)?).ok()?,
        clock: serde_json::from_str(&row.text(10)?).ok()?,
    })
}

fn task(row: &Row) -> Option<TaskSummary> {
    Some(TaskSummary {
        task: row.text(0)?,
        kind: Kind::named(&row.text(1)?)?,
        origin: row.text(2)?,
        rows: row.count(3)?,
        first: Wall(row.number(4)?),
        last: Wall(row.number(5)?),
    })
}
