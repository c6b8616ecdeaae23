//! A fleet's store in one SQLite file.
//!
//! One process writes, any number read at the same time (WAL). What was taken is on the disk when
//! the call returns: every transaction waits for the disk, so many batches at once cost little more
//! than one.

mod find;
mod schema;
mod take;
mod upkeep;

use std::path::{Path, PathBuf};

pub(super) use take::{Failure, number};
pub(super) use upkeep::forget_numbers;

use netaware_units::{Span, Wall};
use rusqlite::{Connection, ErrorCode};

use super::{Ages, BacklogGauge, Batch, Fleet, FleetError, Taken, Upkeep};
use crate::OpenError;

/// An open file.
#[derive(Debug)]
pub struct SqliteFleet {
    connection: Connection,
    path: PathBuf,
    ages: Ages,
}

impl SqliteFleet {
    /// Opens the file to write, and makes it and its folder if they do not exist.
    ///
    /// # Errors
    /// The folder cannot be made, the file is damaged, another program's or newer, the disk is
    /// full, or another process kept it locked for ten seconds.
    pub fn open(path: impl AsRef<Path>, ages: Ages) -> Result<Self, FleetError> {
        let path = path.as_ref().to_path_buf();
        crate::place::make_folder(&path).map_err(|error| match error {
            OpenError::Folder { path, source } => FleetError::Folder { path, source },
            _ => FleetError::Missing { path: path.clone() },
        })?;
        let connection = schema::open(&path)?;
        Ok(Self { connection, path, ages })
    }

    /// Opens the file to read.
    ///
    /// # Errors
    /// There is none, or as for [`SqliteFleet::open`].
    pub fn open_to_read(path: impl AsRef<Path>) -> Result<Self, FleetError> {
        let path = path.as_ref().to_path_buf();
        let connection = schema::open_to_read(&path)?;
        Ok(Self { connection, path, ages: Ages::default() })
    }

    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file grows by `pages` of 4 KiB at most from here on: then the disk counts as full.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn limit_pages(&self, pages: u64) -> Result<(), FleetError> {
        let now: i64 = self
            .connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .map_err(|e| self.unread(e))?;
        let most = now.saturating_add(crate::save::signed(pages));
        self.connection.pragma_update(None, "max_page_count", most).map_err(|e| self.unwritten(e))
    }

    fn unread(&self, source: rusqlite::Error) -> FleetError {
        explained(source, &self.path, "read")
    }

    fn unwritten(&self, source: rusqlite::Error) -> FleetError {
        explained(source, &self.path, "write to")
    }

    fn unreadable(&self, reason: impl Into<String>) -> FleetError {
        FleetError::Unreadable { place: self.path.display().to_string(), reason: reason.into() }
    }
}

impl Fleet for SqliteFleet {
    fn take_all(&mut self, batches: &[Batch<'_>]) -> Result<Vec<Taken>, FleetError> {
        self.take_batches(batches)
    }

    fn highest(&self, name: &str, incarnation: &str) -> Result<u64, FleetError> {
        self.highest_number(name, incarnation)
    }

    fn upkeep(&mut self, now: Wall) -> Result<Upkeep, FleetError> {
        self.keep_up(now)
    }

    fn gauge(&self) -> BacklogGauge {
        BacklogGauge::default()
    }

    fn flush(&mut self, _patience: Span) -> bool {
        true
    }
}

/// What an error of SQLite means for whoever runs the store.
pub(super) fn explained(source: rusqlite::Error, path: &Path, operation: &'static str) -> FleetError {
    let path = path.to_path_buf();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            FleetError::Damaged { path, reason: source.to_string() }
        }
        Some(ErrorCode::DiskFull) => FleetError::DiskFull { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FleetError::Locked { path },
        _ => FleetError::Sql { operation, path, source },
    }
}
