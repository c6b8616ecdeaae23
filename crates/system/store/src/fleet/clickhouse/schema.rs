//! The tables, and how an older layout becomes the present one.
//!
//! Rows go into `delays`, `rows` and `reports`; materialised views add them up by the minute and by
//! the hour while they come in (those of `rows`: [`super::sums`]). Raw rows, minutes and hours each
//! go at their age by TTL. The columns of `delays` have one list, from which tables, views and
//! questions are made, so that a sum in a view, of a view and of raw rows cannot differ.

use super::http::Http;
use super::{seconds, sums};
use crate::fleet::{Ages, FleetError};

/// Where rows are written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Delays = 0,
    Rows = 1,
    Reports = 2,
}

impl Table {
    pub(super) const COUNT: usize = 3;
    pub(super) const ALL: [Self; Self::COUNT] = [Self::Delays, Self::Rows, Self::Reports];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Delays => "delays",
            Self::Rows => "rows",
            Self::Reports => "reports",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Columns in the order in which rows are written.
    pub(super) fn columns(self) -> String {
        let identity = "origin, incarnation, sequence, position";
        match self {
            Self::Delays => {
                let keys = DELAY_KEYS.iter().map(|(name, _)| *name);
                let sums = all_sums().map(|(name, ..)| name);
                format!("at, {}, {identity}", keys.chain(sums).collect::<Vec<_>>().join(", "))
            }
            Self::Rows => format!("kind, at, until, task, json, {identity}"),
            Self::Reports => format!("at, until, seen, lost, captures, clock, {identity}"),
        }
    }
}

/// What is not added up, beside the time.
pub(super) const DELAY_KEYS: [(&str, &str); 5] = [
    ("task", "LowCardinality(String)"),
    ("from_point", "LowCardinality(String)"),
    ("to_point", "LowCardinality(String)"),
    ("method", "LowCardinality(String)"),
    ("version", "UInt8"),
];

/// What is added up: name, type, and how.
pub(super) const DELAY_SUMS: [(&str, &str, &str); 36] = [
    ("from_at", "DateTime64(9, 'UTC')", "min"),
    ("until", "DateTime64(9, 'UTC')", "max"),
    ("rows", "UInt64", "sum"),
    ("packets", "UInt64", "sum"),
    ("matched", "UInt64", "sum"),
    ("lost", "UInt64", "sum"),
    ("unobserved", "UInt64", "sum"),
    ("late", "UInt64", "sum"),
    ("duplicates", "UInt64", "sum"),
    ("reordered", "UInt64", "sum"),
    ("collisions", "UInt64", "sum"),
    ("given_up", "UInt64", "sum"),
    ("below_bound", "UInt64", "sum"),
    ("patience", "Int64", "max"),
    // When, and what it was then: the largest is the latest.
    ("clock_offset", "Tuple(Int64, Int64)", "max"),
    ("clock_bound", "Nullable(Int64)", "max"),
    // Rows without a bound: a sum with any has none.
    ("unbounded", "UInt64", "sum"),
    ("clock_methods", "Array(String)", "groupUniqArrayArray"),
    ("warnings", "Array(String)", "groupUniqArrayArray"),
    // Whose rows they are: the probe's, or the collector's own.
    ("origins", "Array(String)", "groupUniqArrayArray"),
    ("delay_count", "UInt64", "sum"),
    ("delay_min", "Nullable(Int64)", "min"),
    ("delay_max", "Nullable(Int64)", "max"),
    ("delay_sum", "Int128", "sum"),
    ("delay_squares", "Float64", "sum"),
    ("delay_under", "UInt64", "sum"),
    ("delay_over", "UInt64", "sum"),
    // Lower edges, ns, and counts.
    ("delay_bins", "Tuple(Array(UInt64), Array(UInt64))", "sumMap"),
    ("ipdv_count", "UInt64", "sum"),
    ("ipdv_min", "Nullable(Int64)", "min"),
    ("ipdv_max", "Nullable(Int64)", "max"),
    ("ipdv_sum", "Int128", "sum"),
    ("ipdv_squares", "Float64", "sum"),
    ("ipdv_under", "UInt64", "sum"),
    ("ipdv_over", "UInt64", "sum"),
    ("ipdv_bins", "Tuple(Array(UInt64), Array(UInt64))", "sumMap"),
];

/// Layout of the tables; a released one is never changed but by a further step.
const LAYOUT: u32 = 1;

/// Inserts whose tokens each table remembers: at one a second more than two hours of them.
const WINDOW: u32 = 10_000;

/// Makes what is missing.
pub(super) fn lay_out(http: &Http, ages: Ages) -> Result<(), FleetError> {
    let database = &http.address.database;
    http.ask_server(&format!("CREATE DATABASE IF NOT EXISTS {database}"))?;
    http.ask("CREATE TABLE IF NOT EXISTS layout (version UInt32, made DateTime) ENGINE = MergeTree ORDER BY version")?;
    let found = http.ask("SELECT max(version) FROM layout FORMAT TSV")?;
    let found: u32 = found.trim().parse().unwrap_or(0);
    if found > LAYOUT {
        let reason = format!("the tables have layout {found}, this netaware knows {LAYOUT}: update netaware");
        return Err(FleetError::Refused { place: http.address.shown(), reason });
    }
    if found < 1 {
        for statement in first_layout(ages, Place::ONE) {
            http.ask(&statement)?;
        }
        http.ask("INSERT INTO layout VALUES (1, now())")?;
    }
    keep_ages(http, ages)
}

/// Ages are settings, so they may change: the tables are told, and readers look them up.
fn keep_ages(http: &Http, ages: Ages) -> Result<(), FleetError> {
    let [to_minutes, to_hours, delete, single] = seconds(ages);
    let found = http.ask(
        "SELECT to_minutes, to_hours, gone, gone_single FROM ages ORDER BY made DESC LIMIT 1 FORMAT TSV",
    )?;
    if found.trim() == format!("{to_minutes}\t{to_hours}\t{delete}\t{single}") {
        return Ok(());
    }
    for (table, age) in aged(ages) {
        http.ask(&format!("ALTER TABLE {table} MODIFY TTL {}", ttl(&age)))?;
    }
    http.ask(&format!("INSERT INTO ages VALUES (now64(9), {to_minutes}, {to_hours}, {delete}, {single})"))
        .map(|_| ())
}

/// Tables, and the seconds for which their rows stay.
fn aged(ages: Ages) -> [(&'static str, String); 7] {
    let [to_minutes, to_hours, delete, single] = seconds(ages).map(|age| age.to_string());
    [
        ("rows", format!("if({}, {to_minutes}, {single})", is_summed())),
        ("delays", to_minutes),
        ("delays_1m", to_hours.clone()),
        ("delays_1h", delete.clone()),
        ("rows_1m", to_hours),
        ("rows_1h", delete),
        ("reports", single),
    ]
}

/// Whether a row of `rows` is also added up.
fn is_summed() -> String {
    format!("kind IN ({})", sums::summed())
}

fn ttl(age: &str) -> String {
    format!("toDateTime(at) + toIntervalSecond({age})")
}

/// Where tables are made: on one server, or on each shard of a cluster under names of their own.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Behind the name of each table that holds rows.
    local: &'static str,
    /// Behind the name of what is made.
    on: &'static str,
}

impl Place {
    const ONE: Self = Self { local: "", on: "" };

    /// A table that holds rows.
    fn table(self, name: &str) -> String {
        format!("{name}{}{}", self.local, self.on)
    }

    fn view(self, name: &str) -> String {
        format!("{name}_view{}", self.on)
    }

    /// Where a view puts its rows.
    fn into(self, name: &str) -> String {
        format!("{name}{}", self.local)
    }

    /// What a view reads; its columns are called by the table's name.
    fn source(self, name: &str) -> String {
        if self.local.is_empty() { name.to_owned() } else { format!("{name}{} AS {name}", self.local) }
    }
}

fn first_layout(ages: Ages, place: Place) -> Vec<String> {
    let settings =
        format!("SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = {WINDOW}");
    let end = |table: &str| {
        let age = aged(ages).into_iter().find(|(name, _)| *name == table);
        age.map_or_else(String::new, |(_, age)| format!("TTL {} {settings}", ttl(&age)))
    };
    let identity =
        "origin LowCardinality(String), incarnation LowCardinality(String), sequence UInt64, position UInt32";
    let mut statements = vec![
        format!(
            "CREATE TABLE IF NOT EXISTS {} (made DateTime64(9, 'UTC'), to_minutes Int64, to_hours Int64, gone Int64,
             gone_single Int64) ENGINE = MergeTree ORDER BY made",
            place.table("ages")
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {} ({}, {identity}) ENGINE = ReplacingMergeTree
             PARTITION BY toYYYYMMDD(at)
             ORDER BY (task, from_point, to_point, method, version, at, origin, incarnation, sequence, position) {}",
            place.table("delays"),
            delay_columns(|kind, _| kind.to_owned()),
            end("delays")
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {} (kind LowCardinality(String), at DateTime64(9, 'UTC'), until DateTime64(9, 'UTC'),
             task LowCardinality(String), json String CODEC(ZSTD(3)), {identity}) ENGINE = ReplacingMergeTree
             PARTITION BY (toYYYYMMDD(at), {}) ORDER BY (kind, task, at, origin, incarnation, sequence, position) {}",
            place.table("rows"),
            // Apart, because parts go as a whole and these go at ages of their own.
            is_summed(),
            end("rows")
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {} (at DateTime64(9, 'UTC'), until DateTime64(9, 'UTC'), seen UInt64, lost UInt64,
             captures String CODEC(ZSTD(3)), clock String CODEC(ZSTD(3)), {identity}) ENGINE = ReplacingMergeTree
             PARTITION BY toYYYYMMDD(at) ORDER BY (origin, incarnation, sequence, position) {}",
            place.table("reports"),
            end("reports")
        ),
    ];
    for (length, table, partition) in [(60, "delays_1m", "toYYYYMM(at)"), (3600, "delays_1h", "toYear(at)")] {
        statements.push(format!(
            "CREATE TABLE IF NOT EXISTS {} ({}) ENGINE = AggregatingMergeTree PARTITION BY {partition}
             ORDER BY (task, from_point, to_point, method, version, at) {}",
            place.table(table),
            delay_columns(|kind, how| format!("SimpleAggregateFunction({how}, {kind})")),
            end(table)
        ));
        statements.push(format!(
            "CREATE MATERIALIZED VIEW IF NOT EXISTS {} TO {} AS
             SELECT {}, {}, {} FROM {} GROUP BY at, {}",
            place.view(table),
            place.into(table),
            span("delays.at", length, "at"),
            keys(),
            delay_sums("delays"),
            place.source("delays"),
            keys()
        ));
    }
    for (length, table, partition) in [(60, "rows_1m", "toYYYYMM(at)"), (3600, "rows_1h", "toYear(at)")] {
        statements.push(format!(
            "CREATE TABLE IF NOT EXISTS {} ({}) ENGINE = AggregatingMergeTree PARTITION BY {partition}
             ORDER BY (kind, task, at, origin, key, method, slice, rest) {}",
            place.table(table),
            sums::columns(),
            end(table)
        ));
        statements.push(format!(
            "CREATE MATERIALIZED VIEW IF NOT EXISTS {} TO {} AS {}",
            place.view(table),
            place.into(table),
            sums::view(&span("rows.at", length, "at"), &place.source("rows"))
        ));
    }
    statements
}

/// `at` and the columns of a table of delays; `of` makes a type of a type and how it is added up.
fn delay_columns(of: impl Fn(&str, &str) -> String) -> String {
    let keys = DELAY_KEYS.iter().map(|(name, kind)| format!("{name} {kind}"));
    let sums = all_sums().map(|(name, kind, how)| format!("{name} {}", of(kind, how)));
    let columns: Vec<String> = keys.chain(sums).collect();
    format!("at DateTime64(9, 'UTC'), {}", columns.join(", "))
}

fn all_sums() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    DELAY_SUMS.into_iter()
}

/// The sums over rows of a table of delays, raw or added up.
pub(super) fn delay_sums(table: &str) -> String {
    all_sums().map(|(name, _, how)| format!("{how}({table}.{name}) AS {name}")).collect::<Vec<_>>().join(", ")
}

/// All columns of a table of delays that are read.
pub(super) fn delay_reads() -> String {
    let sums = all_sums().map(|(name, ..)| name);
    format!("at, {}, {}", keys(), sums.collect::<Vec<_>>().join(", "))
}

pub(super) fn keys() -> String {
    DELAY_KEYS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The beginning of the span of so many seconds that holds an instant.
fn span(at: &str, seconds: u32, name: &str) -> String {
    let ns = u64::from(seconds) * 1_000_000_000;
    format!("fromUnixTimestamp64Nano(intDiv(toUnixTimestamp64Nano({at}), {ns}) * {ns}, 'UTC') AS {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::merge;

    /// The tables of rows, and by what a row's shard is chosen: all of a pair of points, of a task
    /// at a probe, are on one.
    const SHARDED: [(&str, &str); 9] = [
        ("delays", "cityHash64(task, from_point, to_point)"),
        ("delays_1m", "cityHash64(task, from_point, to_point)"),
        ("delays_1h", "cityHash64(task, from_point, to_point)"),
        ("rows", "cityHash64(origin, task)"),
        ("rows_1m", "cityHash64(origin, task)"),
        ("rows_1h", "cityHash64(origin, task)"),
        ("reports", "cityHash64(origin)"),
        ("ages", "0"),
        ("layout", "0"),
    ];

    /// What makes the tables on every shard of the cluster `fleet`, and above them those that a
    /// collector and readers use.
    fn sharded() -> String {
        let (ages, place) = (Ages::default(), Place { local: "_local", on: " ON CLUSTER fleet" });
        let mut statements = first_layout(ages, place);
        statements.push(format!(
            "CREATE TABLE IF NOT EXISTS {} (version UInt32, made DateTime) ENGINE = MergeTree ORDER BY version",
            place.table("layout")
        ));
        for (name, key) in SHARDED {
            statements.push(format!(
                "CREATE TABLE IF NOT EXISTS {name} ON CLUSTER fleet AS {name}_local
                 ENGINE = Distributed(fleet, currentDatabase(), {name}_local, {key})"
            ));
        }
        let [to_minutes, to_hours, delete, single] = seconds(ages);
        let told = format!("now64(9), {to_minutes}, {to_hours}, {delete}, {single}");
        let at_once = "SETTINGS insert_distributed_sync = 1";
        statements.push(format!("INSERT INTO ages {at_once} SELECT {told}"));
        statements.push(format!("INSERT INTO layout {at_once} SELECT {LAYOUT}, now()"));
        let lines = |statement: &str| statement.lines().map(str::trim).collect::<Vec<_>>().join("\n  ");
        let written: Vec<String> = statements.iter().map(|statement| lines(statement) + ";\n\n").collect();
        written.concat()
    }

    /// `BLESS=1 cargo test -p netaware-store` writes it anew.
    #[test]
    fn the_file_for_a_cluster_is_what_one_server_gets() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../packaging/clickhouse/sharded.sql");
        let head = "-- Tables of a fleet's store on the cluster `fleet`: docs/clickhouse.md, \"Sharded\". Made from crates/system/store.\n\n";
        let text = format!("{head}{}", sharded().trim_end()) + "\n";
        if std::env::var_os("BLESS").is_some() {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "CI has nothing to bless");
            std::fs::write(path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
        assert!(
            !text.contains("FROM delays ") && !text.contains("FROM rows "),
            "views read what is on their shard"
        );
    }

    #[test]
    fn counts_have_the_names_that_they_have_in_a_file() {
        let names: Vec<&str> = DELAY_SUMS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names[3..13], merge::COUNTS);
        assert!(Table::Delays.columns().contains("ipdv_over, ipdv_bins, origin"));
    }
}
