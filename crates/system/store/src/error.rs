//! One error per attempt: to open, to save, to find.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::reading::Obstacle;

/// Why the file of results could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Neither `XDG_DATA_HOME` nor `HOME` is set.
    #[error(
        "no place for results: neither XDG_DATA_HOME nor HOME is set; name a file with --store or NETAWARE_STORE"
    )]
    NoHome,
    /// The folder of the file cannot be made.
    #[error("cannot make the folder of {}: {source}", .path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// There is no such file, and reading makes none.
    #[error("no file of results at {}", .path.display())]
    Missing {
        /// Which.
        path: PathBuf,
    },
    /// A folder, or a device.
    #[error("{} is a folder or a device, and no file of results", .path.display())]
    NoFile {
        /// Which.
        path: PathBuf,
    },
    /// A file without a byte.
    #[error("{} is empty: no result was ever saved in it", .path.display())]
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// The system does not let this user at it.
    #[error("cannot {operation} {}: {source}", .path.display())]
    Access {
        /// What was tried: "open", "read".
        operation: &'static str,
        /// Which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Results are in a log beside the file that this user cannot read.
    #[error("{0} cannot be read as a whole: newer results are in {0}-wal, which this user cannot read with it; \
             have the owner of the file run 'netaware results list' once", .path.display())]
    Log {
        /// Which.
        path: PathBuf,
    },
    /// The file or its folder may not be written by this user.
    #[error("{} cannot be written: this user may not write the file or its folder; name another file with --store", .path.display())]
    ReadOnly {
        /// Which.
        path: PathBuf,
    },
    /// The file holds something that is no SQLite database, or a damaged one.
    #[error("{} is no database, or it is damaged ({reason}); move it away or name another file with --store", .path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// SQLite's words.
        reason: String,
    },
    /// A database, but another program's.
    #[error("{} is a database of another program; name another file with --store", .path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
    },
    /// Written by a later netaware.
    #[error("{} was written by a newer netaware (layout {found}, this one knows {known}); update netaware or name another file with --store", .path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its layout.
        found: i32,
        /// Ours.
        known: i32,
    },
    /// No space left to lay the file out.
    #[error("the disk that holds {} is full", .path.display())]
    DiskFull {
        /// Which.
        path: PathBuf,
    },
    /// Anything else that SQLite reports.
    #[error("cannot {operation} {}: {source}{}", .path.display(), hint(.source))]
    Sql {
        /// What was tried: "open", "lay out".
        operation: &'static str,
        /// Which file.
        path: PathBuf,
        /// SQLite's answer.
        source: rusqlite::Error,
    },
}

impl OpenError {
    pub(crate) fn of_obstacle(why: Obstacle, path: &Path, operation: &'static str) -> Self {
        let of = path.to_path_buf();
        match why {
            Obstacle::Missing => Self::Missing { path: of },
            Obstacle::NoFile => Self::NoFile { path: of },
            Obstacle::Empty => Self::Empty { path: of },
            Obstacle::System(source) => Self::Access { operation, path: of, source },
            Obstacle::Log => Self::Log { path: of },
            Obstacle::Sql(source) => crate::schema::explained(source, path, operation),
        }
    }
}

/// Why a record was not saved. The measurement itself is not affected.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// No space left.
    #[error("the disk that holds {} is full", .path.display())]
    DiskFull {
        /// The file of results.
        path: PathBuf,
    },
    /// Another process kept the file locked for too long.
    #[error("{} stayed locked by another process", .path.display())]
    Locked {
        /// The file of results.
        path: PathBuf,
    },
    /// The file or its folder may not be written by this user.
    #[error("{} cannot be written: this user may not write the file or its folder; name another file with --store", .path.display())]
    ReadOnly {
        /// The file of results.
        path: PathBuf,
    },
    /// A record with this id is there already.
    #[error("{} already holds {id}", .path.display())]
    Known {
        /// The file of results.
        path: PathBuf,
        /// Of the record.
        id: Uuid,
    },
    /// The record has no JSON form (a number that is not finite, for example).
    #[error("the record cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Anything else that SQLite reports.
    #[error("cannot write to {}: {source}{}", .path.display(), hint(.source))]
    Sql {
        /// The file of results.
        path: PathBuf,
        /// SQLite's answer.
        source: rusqlite::Error,
    },
}

/// Why a record was not found, read or deleted.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Not made of hexadecimal digits and hyphens, or too long.
    #[error("'{given}' is no id: give the first digits of one from 'netaware results list', or 'last'")]
    NotAnId {
        /// What was typed.
        given: String,
    },
    /// Nothing saved matches.
    #[error("no result with the id {given} in {}; 'netaware results list' shows what there is", .path.display())]
    Unknown {
        /// What was typed.
        given: String,
        /// The file of results.
        path: PathBuf,
    },
    /// No series was ever measured.
    #[error("no series in {}; --scan and --every make them", .path.display())]
    NoSeries {
        /// The file of results.
        path: PathBuf,
    },
    /// Several match.
    #[error("{given} could mean {} results: {}", .matches.len(), shown(.matches))]
    Ambiguous {
        /// What was typed.
        given: String,
        /// The first few that match.
        matches: Vec<Uuid>,
    },
    /// What is stored under this id is no record that this netaware can read.
    #[error("the result {id} in {} cannot be read: {reason}", .path.display())]
    Unreadable {
        /// Of the row.
        id: String,
        /// The file of results.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Anything else that SQLite reports.
    #[error("cannot read or change {}: {source}{}", .path.display(), hint(.source))]
    Sql {
        /// The file of results.
        path: PathBuf,
        /// SQLite's answer.
        source: rusqlite::Error,
    },
}

/// What to look at where SQLite names only a number.
pub(crate) fn hint(source: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode;
    match source.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) => {
            "; the system could not read or write it: see whether its disk is full, read-only or faulty"
        }
        Some(ErrorCode::CannotOpen) => {
            "; see whether its folder can be written to: files beside it are needed to read it"
        }
        _ => "",
    }
}

fn shown(ids: &[Uuid]) -> String {
    ids.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ")
}
