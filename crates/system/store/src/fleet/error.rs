//! Why a fleet's store could not be opened, written or read, and what to do about it.

use std::path::PathBuf;

/// What went wrong with a store of a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Neither a path nor a URL that is known.
    #[error(
        "'{given}' is no store: {why}; give a path, or clickhouse://[user[:password]@]host[:port]/database"
    )]
    Place {
        /// What was given, without a password.
        given: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no such file, and reading makes none.
    #[error("no fleet store at {}; name the one that 'netaware collect' writes with --store", .path.display())]
    Missing {
        /// Which.
        path: PathBuf,
    },
    /// A folder, a device or a file without a byte.
    #[error("{} is a folder, a device or an empty file, and no fleet store; name another file with --store", .path.display())]
    NoStore {
        /// Which.
        path: PathBuf,
    },
    /// The system does not let this user at it.
    #[error("cannot read {}: {source}", .path.display())]
    Access {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Rows are in a log beside the file that this user cannot read.
    #[error("{0} cannot be read as a whole: newer rows are in {0}-wal, which this user cannot read with it; \
             read it as the user who runs 'netaware collect'", .path.display())]
    Log {
        /// Which.
        path: PathBuf,
    },
    /// The folder of the file cannot be made.
    #[error("cannot make the folder of {}: {source}", .path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// No SQLite database, or a damaged one.
    #[error("{} is no database, or it is damaged ({reason}); move it away and start again, or save what can be saved with \
             'sqlite3 FILE .recover'", .path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// SQLite's words.
        reason: String,
    },
    /// A database, but no fleet store.
    #[error("{} is a database, but no fleet store; name another file with --store", .path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
    },
    /// Written by a later netaware.
    #[error("{} was written by a newer netaware (layout {found}, this one knows {known}); update netaware", .path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its layout.
        found: i32,
        /// Ours.
        known: i32,
    },
    /// No space left.
    #[error("the disk that holds {} is full; free some space, or let figures go earlier (ages of the store). Probes keep \
             what is not taken", .path.display())]
    DiskFull {
        /// Which.
        path: PathBuf,
    },
    /// Another process kept the file locked for too long.
    #[error("{} stayed locked by another process; two collectors need a store each", .path.display())]
    Locked {
        /// Which.
        path: PathBuf,
    },
    /// Anything else that SQLite reports.
    #[error("cannot {operation} {}: {source}{}", .path.display(), crate::error::hint(.source))]
    Sql {
        /// What was tried.
        operation: &'static str,
        /// Which file.
        path: PathBuf,
        /// SQLite's answer.
        source: rusqlite::Error,
    },
    /// What is stored cannot be understood.
    #[error("{place} holds a row that this netaware cannot read: {reason}")]
    Unreadable {
        /// File or URL.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// A row that has no stored form (a number that is not finite, for example).
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Not a cursor of ours.
    #[error("this is no cursor of an earlier page; start from the first page")]
    Cursor,
    /// ClickHouse did not answer.
    #[error(
        "ClickHouse at {place} does not answer: {reason}; is it running, and is this its HTTP port (8123, with TLS 8443)?"
    )]
    Away {
        /// URL without a password.
        place: String,
        /// Why.
        reason: String,
    },
    /// ClickHouse answered with an error.
    #[error("ClickHouse at {place} refuses: {reason}")]
    Refused {
        /// URL without a password.
        place: String,
        /// Its words, shortened.
        reason: String,
    },
}
