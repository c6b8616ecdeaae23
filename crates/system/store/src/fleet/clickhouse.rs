//! A fleet's store in ClickHouse, with a buffer on this host's disk before it.
//!
//! What is taken goes into the buffer, a SQLite file, in one transaction with the mark that it was
//! taken; a thread of its own sends it on in large inserts, oldest first, and takes it out of the
//! buffer when ClickHouse has said yes. While ClickHouse is away the buffer grows to its limit;
//! then the oldest rows are given up and counted. An insert whose answer was lost is sent again,
//! the very same bytes with the same token, which ClickHouse knows for the last thousands of
//! inserts (`insert_deduplication_token`); raw rows have keys that make duplicates fall together
//! even later (`ReplacingMergeTree`).

mod address;
mod find;
mod http;
mod row_binary;
mod schema;
mod sender;
mod spool;
mod sums;

use std::path::PathBuf;

use netaware_record::passive::Period;
use netaware_units::{Span, Wall};

use super::{
    Ages, BacklogGauge, Batch, DelayPoint, DelayQuery, Fleet, FleetError, FleetReader, Page, ProbeSummary,
    RowQuery, Settings, StoredRow, Taken, TaskSummary, Upkeep,
};
pub(super) use address::{authority_of, without_password};

use address::Address;
use find::Finder;
use http::Http;
use sender::Sender;
use spool::Spool;

/// A store in ClickHouse to write to.
#[derive(Debug)]
pub(super) struct ClickhouseFleet {
    finder: Finder,
    spool: Spool,
    sender: Sender,
}

impl ClickhouseFleet {
    pub(super) fn open(place: &str, settings: &Settings) -> Result<Self, FleetError> {
        let http = Http::new(Address::parse(place)?)?;
        let path = buffer_path(settings)?;
        let (mut spool, is_new) = Spool::open(&path, settings.buffer_bytes)?;
        if is_new {
            // A buffer that was lost has lost what was taken; ClickHouse still knows. If it is
            // away, raw rows that come again fall together by their keys, sums by the minute would
            // count them twice.
            if let Ok(known) = find::taken(&http) {
                spool.remember(&known)?;
            }
        }
        let sender = Sender::start(http.clone(), &path, settings.ages, spool.shared())?;
        Ok(Self { finder: Finder::new(http, Some(settings.ages)), spool, sender })
    }
}

/// A store in ClickHouse to read from. Nothing is asked of it yet: whoever writes may not have made
/// the tables.
pub(super) fn reader(place: &str) -> Result<Box<dyn FleetReader>, FleetError> {
    let http = Http::new(Address::parse(place)?)?;
    Ok(Box::new(Finder::new(http, None)))
}

/// Whether this names a ClickHouse rather than a file.
pub(super) fn is_address(place: &str) -> bool {
    place.starts_with("clickhouse://") || place.starts_with("clickhouses://")
}

fn buffer_path(settings: &Settings) -> Result<PathBuf, FleetError> {
    let usual = || super::default_place().map(|place| place.with_file_name("fleet-buffer.db"));
    settings.buffer.clone().map_or_else(usual, Ok).map_err(|_| FleetError::Place {
        given: "the buffer before ClickHouse".into(),
        why: "neither XDG_DATA_HOME nor HOME is set",
    })
}

impl FleetReader for ClickhouseFleet {
    fn delays(&self, query: &DelayQuery) -> Result<Page<DelayPoint>, FleetError> {
        self.finder.delays(query)
    }

    fn rows(&self, query: &RowQuery) -> Result<Page<StoredRow>, FleetError> {
        self.finder.rows(query)
    }

    fn probes(&self, period: &Period) -> Result<Vec<ProbeSummary>, FleetError> {
        self.finder.probes(period)
    }

    fn tasks(&self, period: &Period) -> Result<Vec<TaskSummary>, FleetError> {
        self.finder.tasks(period)
    }
}

impl Fleet for ClickhouseFleet {
    fn take_all(&mut self, batches: &[Batch<'_>]) -> Result<Vec<Taken>, FleetError> {
        self.spool.take_all(batches)
    }

    fn highest(&self, name: &str, incarnation: &str) -> Result<u64, FleetError> {
        self.spool.highest(name, incarnation)
    }

    /// Ages are ClickHouse's to keep (TTL, materialised views); this only forgets old numbers in
    /// the buffer.
    fn upkeep(&mut self, _now: Wall) -> Result<Upkeep, FleetError> {
        self.spool.forget_numbers()?;
        Ok(Upkeep::default())
    }

    fn gauge(&self) -> BacklogGauge {
        let shared = self.spool.shared();
        BacklogGauge::of(move || shared.backlog())
    }

    fn flush(&mut self, patience: Span) -> bool {
        self.sender.flush(patience)
    }
}

/// `text` as a literal of ClickHouse's SQL.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\0' => out.push_str("\\0"),
            _ => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// An instant as ClickHouse's SQL has it. Its DateTime64(9) ends in April 2262, as ours do, and
/// begins in 1900.
fn instant(ns: i64) -> String {
    format!("fromUnixTimestamp64Nano(toInt64({}), 'UTC')", ns.max(-2_208_988_800_000_000_000))
}

/// The ages as they are kept beside the tables.
fn seconds(ages: Ages) -> [i64; 4] {
    [ages.to_minutes, ages.to_hours, ages.delete, ages.delete_single].map(|age| age.0 / 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_end_where_they_should() {
        assert_eq!(quoted("o'b\\"), r"'o\'b\\'");
        assert_eq!(quoted("a\nü"), "'a\nü'");
    }

    #[test]
    fn what_is_no_address_is_a_file() {
        for (place, is) in
            [("clickhouse://h/db", true), ("clickhouses://h/db", true), ("clickhouse", false), ("/x", false)]
        {
            assert_eq!(is_address(place), is, "{place}");
        }
    }
}
