//! What a fleet of probes found: in one SQLite file, or in ClickHouse.
//!
//! A collector [`take`](Fleet::take)s the reports of probes and [`keep`](Fleet::keep)s what it made
//! of them itself (delays between points). Both are numbered by their origin, and what was taken
//! once is not counted again however often it comes. What [`take`](Fleet::take) said yes to
//! survives the end of the process: it is in the file, or in the disk buffer before ClickHouse.
//!
//! Figures get coarser with age ([`Ages`]): rows of a second become rows of a minute, those become
//! rows of an hour, and in the end they go. Counts add up exactly and percentiles are read off
//! added histograms, so a coarse row says what the fine ones would have said together. What cannot
//! be told apart any more is *when* within the minute or the hour.
//!
//! ```no_run
//! # fn main() -> Result<(), netaware_store::fleet::FleetError> {
//! use netaware_store::fleet::{self, DelayQuery};
//! let fleet = fleet::read("clickhouse://ch.example:8123/netaware")?;
//! for point in fleet.delays(&DelayQuery::default())?.items {
//!     println!("{} -> {}: {:?}", point.row.from, point.row.to, point.row.delay.mean());
//! }
//! # Ok(()) }
//! ```

mod clickhouse;
mod codec;
mod error;
mod figures;
mod merge;
mod query;
mod sqlite;
mod thinning;

use std::path::PathBuf;

use netaware_record::passive::{Period, ProbeReport, TaskRow};
use netaware_units::Wall;

pub use error::FleetError;
pub use query::{
    Cursor, DelayPoint, DelayQuery, Kind, MOST_ITEMS, Page, ProbeSummary, RowQuery, StoredRow, TaskSummary,
};
pub use sqlite::SqliteFleet;
pub use thinning::Ages;

/// Where a batch of rows comes from, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin<'a> {
    /// The probe, or the name of a collector for what it made itself.
    pub name: &'a str,
    /// Identity of the counter: another one starts again from 1.
    pub incarnation: &'a str,
    /// Number of the batch, from 1.
    pub sequence: u64,
}

/// One batch to keep.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// Whose, and which.
    pub origin: Origin<'a>,
    /// The report that it is, if it is one of a probe.
    pub report: Option<&'a ProbeReport>,
    /// What was found: the report's rows, or a collector's.
    pub rows: &'a [TaskRow],
}

impl<'a> Batch<'a> {
    /// A report as it came from a probe.
    pub fn report(incarnation: &'a str, report: &'a ProbeReport) -> Self {
        let origin = Origin { name: &report.probe, incarnation, sequence: report.sequence };
        Self { origin, report: Some(report), rows: &report.rows }
    }
}

/// Whether a batch was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is kept now.
    New,
    /// It was kept before; nothing was counted again.
    Known,
}

/// What [`Fleet::upkeep`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Upkeep {
    /// Rows that were added up into coarser ones.
    pub thinned: u64,
    /// Coarser rows that they became.
    pub into: u64,
    /// Rows and reports that were deleted for their age.
    pub deleted: u64,
    /// There is more to do: call again.
    pub more: bool,
}

/// What waits on this host for a store that is elsewhere; all zero for a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Rows that wait.
    pub rows: u64,
    /// Bytes of them on the disk.
    pub bytes: u64,
    /// Rows that were given up since the buffer was made because it was full, oldest first.
    pub given_up: u64,
    /// What the store last answered, if it was no success.
    pub trouble: Option<String>,
}

/// Tells from any thread what waits, as it is when it is asked.
#[derive(Clone, Default)]
pub struct BacklogGauge(Option<std::sync::Arc<dyn Fn() -> Backlog + Send + Sync>>);

impl BacklogGauge {
    fn of(read: impl Fn() -> Backlog + Send + Sync + 'static) -> Self {
        Self(Some(std::sync::Arc::new(read)))
    }

    /// What waits now.
    pub fn read(&self) -> Backlog {
        self.0.as_ref().map(|read| read()).unwrap_or_default()
    }
}

impl std::fmt::Debug for BacklogGauge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.read().fmt(f)
    }
}

/// Reading what a fleet found.
pub trait FleetReader: Send {
    /// Delays between points, added up to the resolution that is asked for, oldest first.
    ///
    /// # Errors
    /// The store cannot be read, or the cursor is not one of ours.
    fn delays(&self, query: &DelayQuery) -> Result<Page<DelayPoint>, FleetError>;

    /// Rows of all other kinds as they are kept, oldest first.
    ///
    /// # Errors
    /// As [`FleetReader::delays`].
    fn rows(&self, query: &RowQuery) -> Result<Page<StoredRow>, FleetError>;

    /// Each probe that reported of this time: how its capture and its clock were, by name.
    ///
    /// # Errors
    /// The store cannot be read.
    fn probes(&self, period: &Period) -> Result<Vec<ProbeSummary>, FleetError>;

    /// Each task that yielded rows in this time, by name, kind and origin.
    ///
    /// # Errors
    /// The store cannot be read.
    fn tasks(&self, period: &Period) -> Result<Vec<TaskSummary>, FleetError>;
}

/// A store that takes what a fleet found.
pub trait Fleet: FleetReader {
    /// Keeps batches, all or none, and says of each whether it was new. When this returns they
    /// survive the end of this process and, in a file, of the machine's power.
    ///
    /// # Errors
    /// The disk is full, the file stays locked or is damaged. None of the batches is kept then:
    /// leave them unacknowledged.
    fn take_all(&mut self, batches: &[Batch<'_>]) -> Result<Vec<Taken>, FleetError>;

    /// Highest number that was taken from this origin; 0 for none.
    ///
    /// # Errors
    /// The store cannot be read.
    fn highest(&self, name: &str, incarnation: &str) -> Result<u64, FleetError>;

    /// Makes old rows coarser and deletes what is too old; a bounded piece of it at a time. To be
    /// called every minute or so.
    ///
    /// # Errors
    /// The store cannot be written; what was not done is done by a later call.
    fn upkeep(&mut self, now: Wall) -> Result<Upkeep, FleetError>;

    /// What has not reached the store yet.
    fn backlog(&self) -> Backlog {
        self.gauge().read()
    }

    /// The same for whoever does not have the store itself.
    fn gauge(&self) -> BacklogGauge;

    /// Waits until all that was taken has reached the store, as long as `patience`; whether it has.
    fn flush(&mut self, patience: netaware_units::Span) -> bool;

    /// One report of a probe; see [`Fleet::take_all`].
    ///
    /// # Errors
    /// As [`Fleet::take_all`].
    fn take(&mut self, incarnation: &str, report: &ProbeReport) -> Result<Taken, FleetError> {
        let taken = self.take_all(&[Batch::report(incarnation, report)])?;
        Ok(taken.first().copied().unwrap_or(Taken::Known))
    }

    /// Rows that a collector made, numbered by itself; see [`Fleet::take_all`].
    ///
    /// # Errors
    /// As [`Fleet::take_all`].
    fn keep(&mut self, origin: Origin<'_>, rows: &[TaskRow]) -> Result<Taken, FleetError> {
        let taken = self.take_all(&[Batch { origin, report: None, rows }])?;
        Ok(taken.first().copied().unwrap_or(Taken::Known))
    }
}

/// How a store is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// When figures get coarser and when they go.
    pub ages: Ages,
    /// File of the disk buffer before ClickHouse; `None`: `fleet-buffer.db` beside
    /// [`default_place`].
    pub buffer: Option<PathBuf>,
    /// Bytes in that buffer at most; when it is full the oldest are given up and counted.
    pub buffer_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { ages: Ages::default(), buffer: None, buffer_bytes: 4 << 30 }
    }
}

/// Opens a store to write to and makes what is missing: a path, or
/// `clickhouse://[user[:password]@]host[:port]/database` (`clickhouses://` for TLS).
///
/// # Errors
/// As [`open_with`].
pub fn open(place: &str) -> Result<Box<dyn Fleet>, FleetError> {
    open_with(place, &Settings::default())
}

/// The same with settings.
///
/// # Errors
/// The place makes no sense; the file is damaged, another program's or newer, or the disk is full.
/// A ClickHouse that is away is no error: what it should have waits in the buffer.
pub fn open_with(place: &str, settings: &Settings) -> Result<Box<dyn Fleet>, FleetError> {
    if clickhouse::is_address(place) {
        return Ok(Box::new(clickhouse::ClickhouseFleet::open(place, settings)?));
    }
    Ok(Box::new(SqliteFleet::open(path(place)?, settings.ages)?))
}

/// Opens a store to read from; nothing is made.
///
/// # Errors
/// As [`open_with`]; also when there is no such file.
pub fn read(place: &str) -> Result<Box<dyn FleetReader>, FleetError> {
    if clickhouse::is_address(place) {
        return clickhouse::reader(place);
    }
    Ok(Box::new(SqliteFleet::open_to_read(path(place)?)?))
}

/// A place as it may be shown: with `***` for a password.
pub fn without_password(place: &str) -> String {
    if place.contains("://") { clickhouse::without_password(place) } else { place.to_owned() }
}

/// Returns the file of the authority that a place at ClickHouse is known by (`?ca=FILE`).
pub fn authority_of(place: &str) -> Option<PathBuf> {
    if place.contains("://") { clickhouse::authority_of(place) } else { None }
}

/// A URL of something else is not taken for a file.
fn path(place: &str) -> Result<&str, FleetError> {
    match place.split_once("://") {
        None => Ok(place),
        // Without the rest, which may hold a password.
        Some((scheme, _)) => {
            Err(FleetError::Place { given: format!("{scheme}://…"), why: "its scheme is not known" })
        }
    }
}

/// `netaware/fleet.db`, in the folder of [`crate::default_path`] where that is not named by hand.
///
/// # Errors
/// No home folder is known.
pub fn default_place() -> Result<PathBuf, crate::OpenError> {
    Ok(crate::default_path()?.with_file_name("fleet.db"))
}
