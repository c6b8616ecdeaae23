//! Opening a file to read from: nothing is made, brought up to date or left behind.
//!
//! SQLite's write-ahead log asks a reader for a shared file beside the database. Who may write the
//! database may make that file too, and it goes again with the last connection. For who may not, a
//! file without a log is read as it is (`immutable`); one with a log is read if the shared file is
//! there, and else it is an error that says so: results in the log would be missing silently.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::schema::PATIENCE;

/// Why a path is no database to read from, before anything is asked of SQLite.
pub(crate) enum Obstacle {
    /// There is nothing.
    Missing,
    /// A folder, or a device.
    NoFile,
    /// A file of no bytes.
    Empty,
    /// The system does not let us look.
    System(io::Error),
    /// Its log cannot be read from here.
    Log,
    /// SQLite's answer.
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Obstacle {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// A file with something in it.
pub(crate) fn check_file(path: &Path) -> Result<(), Obstacle> {
    match fs::metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(Obstacle::Missing)
        }
        Err(error) => Err(Obstacle::System(error)),
        Ok(about) if !about.is_file() => Err(Obstacle::NoFile),
        Ok(about) if about.len() == 0 && !has_log(path) => Err(Obstacle::Empty),
        Ok(_) => Ok(()),
    }
}

/// Whether a folder or a device is at the path; a path with nothing there is none.
pub(crate) fn is_no_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| !about.is_file())
}

/// A connection that writes nothing. The schema has been read through it.
pub(crate) fn connect(path: &Path) -> Result<Connection, Obstacle> {
    check_file(path)?;
    // Nothing is truncated or made by this.
    if OpenOptions::new().write(true).open(path).is_ok() {
        match connect_as(&path.to_uri(""), OpenFlags::SQLITE_OPEN_READ_WRITE) {
            Err(error) if needs_another_way(&error) => {}
            result => return Ok(result?),
        }
    } else if let Err(error) = OpenOptions::new().read(true).open(path) {
        return Err(Obstacle::System(error));
    }
    let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY;
    if !has_log(path) {
        return Ok(connect_as(&path.to_uri("?immutable=1"), read_only)?);
    }
    if !beside(path, "-shm").exists() {
        return Err(Obstacle::Log);
    }
    match connect_as(&path.to_uri(""), read_only) {
        Err(error) if needs_another_way(&error) => Err(Obstacle::Log),
        result => Ok(result?),
    }
}

fn connect_as(uri: &str, mode: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(uri, mode | OpenFlags::SQLITE_OPEN_URI)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    // The first look at the file finds out whether it can be read in this way.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// Answers of SQLite to files and folders that may not be written.
fn needs_another_way(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(
            ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure
        )
    )
}

fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|about| about.len() > 0)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

trait AsUri {
    /// As a URI of SQLite, with a query.
    fn to_uri(&self, query: &str) -> String;
}

impl AsUri for Path {
    fn to_uri(&self, query: &str) -> String {
        use std::fmt::Write as _;
        let bytes = self.as_os_str().as_encoded_bytes();
        // `//` at the beginning would be read as a host.
        let root = if self.is_absolute() { "file://" } else { "file:" };
        let mut uri = root.to_owned();
        for byte in bytes {
            if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
                uri.push(char::from(*byte));
            } else {
                let _ = write!(uri, "%{byte:02x}");
            }
        }
        uri + query
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::record;
    use crate::{Filter, OpenError, Store};

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn count(path: &Path) -> usize {
        Store::open_to_read(path).unwrap().list(&Filter::default(), 10).unwrap().len()
    }

    #[test]
    fn reading_a_file_that_is_not_there_makes_neither_it_nor_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["typo/r.db", "r.db"] {
            let path = folder.path().join(path);
            let error = Store::open_to_read(&path).unwrap_err();
            assert!(matches!(error, OpenError::Missing { .. }), "{error}");
            let error = Store::open_existing(&path).unwrap_err();
            assert!(matches!(error, OpenError::Missing { .. }), "{error}");
        }
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn reading_leaves_nothing_behind_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // Signs that mean something in a URI.
        let path = folder.path().join("a b%20?#.db");
        Store::open(&path).unwrap().save(&record(1)).unwrap();
        let (before, bytes) = (names(folder.path()), fs::read(&path).unwrap());
        assert_eq!(count(&path), 1);
        let store = Store::open_to_read(&path).unwrap();
        assert!(store.save(&record(2)).is_err(), "it was opened to read");
        drop(store);
        assert_eq!((names(folder.path()), fs::read(&path).unwrap()), (before, bytes));
    }

    #[test]
    fn what_a_writer_has_just_saved_is_read_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.db");
        let writer = Store::open(&path).unwrap();
        for n in 1..4 {
            writer.save(&record(n)).unwrap();
            assert_eq!(count(&path), usize::try_from(n).unwrap());
        }
    }

    #[test]
    fn another_users_file_in_a_folder_that_cannot_be_written_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.db");
        Store::open(&path).unwrap().save(&record(1)).unwrap();
        let uri = path.to_uri("?immutable=1");
        let connection = connect_as(&uri, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let found: i64 = connection.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap();
        assert_eq!((found, names(folder.path()).len()), (1, 1));
    }

    #[test]
    fn a_file_of_an_older_layout_is_read_and_not_brought_up_to_date() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.db");
        crate::schema::first_layout(&path, &record(1));
        let bytes = fs::read(&path).unwrap();
        let store = Store::open_to_read(&path).unwrap();
        let listed = store.list(&Filter::default(), 10).unwrap();
        assert_eq!((listed.len(), &listed[0].label, listed[0].series), (1, &None, None));
        assert_eq!(store.get("last").unwrap(), record(1));
        assert!(store.list_series(&Filter::default(), 10).unwrap().is_empty());
        drop(store);
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn what_is_no_file_of_results_is_said_in_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let (text, empty) = (folder.path().join("notes.txt"), folder.path().join("empty.db"));
        fs::write(&text, "these are my notes\n".repeat(100)).unwrap();
        fs::write(&empty, "").unwrap();
        let other = folder.path().join("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
        let before = names(folder.path());
        let rows = [
            (folder.path(), "is a folder or a device, and no file of results"),
            (Path::new("/dev/null"), "is a folder or a device, and no file of results"),
            (&text, "is no database, or it is damaged"),
            (&empty, "is empty: no result was ever saved in it"),
            (&other, "is a database of another program"),
        ];
        for (path, want) in rows {
            let error = Store::open_to_read(path).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
        assert_eq!(names(folder.path()), before);
    }

    #[test]
    fn a_log_that_cannot_be_read_is_not_left_out_silently() {
        let error = OpenError::of_obstacle(Obstacle::Log, Path::new("r.db"), "read");
        assert!(error.to_string().contains("r.db-wal"), "{error}");
    }
}
