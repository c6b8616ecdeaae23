//! Results kept in one SQLite file: written by every measurement, read by `netaware results`.
//!
//! The record's JSON is the truth; the other columns repeat what a list needs, so that listing
//! never parses JSON. Measurements that belong together share a [`SeriesPlan`], which holds what it
//! takes to continue them. Several processes may use the same file at once (WAL, and a writer waits
//! for its turn). A file that is not ours, is newer than this program, or is damaged is an error
//! that names it, and is left as it is.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use netaware_store::{Filter, Store};
//! let store = Store::open_default()?;
//! for summary in store.list(&Filter::default(), 20)? {
//!     println!("{} {} {}", summary.id, summary.command, summary.host);
//! }
//! # Ok(()) }
//! ```

mod error;
mod find;
pub mod fleet;
mod place;
mod reading;
#[cfg(test)]
mod sample;
mod save;
mod schema;
mod series;

use std::path::{Path, PathBuf};

use rusqlite::Connection;

pub use error::{FindError, OpenError, SaveError};
pub use find::{Among, Filter, Found, Summary};
pub use place::{PATH_VARIABLE, default_path, strangers_path};
pub use save::Room;
pub use series::{Overview, SeriesPlan};

/// An open file of results. Cheap to open, so nobody needs to keep one.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the file, and makes it and its folder if they do not exist.
    ///
    /// # Errors
    /// The folder cannot be made, a folder or a device is in place of the file, the file is no
    /// database, belongs to another program, was written by a newer netaware, the disk is full, or
    /// another process kept it locked for ten seconds.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_path_buf();
        if reading::is_no_file(&path) {
            return Err(OpenError::NoFile { path });
        }
        place::make_folder(&path)?;
        let connection = schema::open(&path)?;
        Ok(Self { connection, path })
    }

    /// Opens a file that is there already, to change it.
    ///
    /// # Errors
    /// There is none, or as [`Store::open`].
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        reading::check_file(path).map_err(|why| OpenError::of_obstacle(why, path, "open"))?;
        Self::open(path)
    }

    /// Opens a file that is there already, to read it. Nothing is made, brought up to date or left
    /// behind; what changes the file is an error later on.
    ///
    /// # Errors
    /// There is no such file, it holds nothing, or as [`Store::open`].
    pub fn open_to_read(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_path_buf();
        let connection = schema::open_to_read(&path)?;
        Ok(Self { connection, path })
    }

    /// Opens the file at [`default_path`].
    ///
    /// # Errors
    /// As [`Store::open`], and when no home folder is known.
    pub fn open_default() -> Result<Self, OpenError> {
        Self::open(default_path()?)
    }

    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
