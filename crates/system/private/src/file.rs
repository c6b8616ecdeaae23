//! Files and folders that nobody but their owner may look into.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// For files that are made: their owner may read and write them, nobody else anything.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a folder that only its owner may enter. One that is there stays as it is, and those above
/// it are made as usual, so that another user whom it is given to still comes to it.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    if let Some(above) = folder.parent().filter(|above| !above.exists()) {
        fs::create_dir_all(above)?;
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes an empty file where there is none. It is for libraries that make files with modes of their
/// own, as SQLite does; they find this one. A failure is not reported: whoever opens the file next
/// says why it cannot be opened.
pub fn make_file(path: &Path) {
    if !path.exists() {
        drop(options().write(true).create(true).truncate(false).open(path));
    }
}

/// Replaces what is in a file.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = options().write(true).create(true).truncate(true).open(path)?;
    // One that was there before has the mode that it was made with.
    narrow(path);
    file.write_all(content.as_ref())
}

/// Takes from others what they may do with a file of this user's. A file of another user is left
/// as it is, and so is one that is not there.
pub fn narrow(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

        let Ok(found) = fs::metadata(path) else { return };
        if found.is_file() && found.uid() == crate::trust::user() && found.mode() & 0o077 != 0 {
            drop(fs::set_permissions(path, fs::Permissions::from_mode(found.mode() & 0o700)));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// The same for a database of SQLite and the files that SQLite keeps beside it. No file is opened:
/// closing one would end the locks that this process holds on it.
pub fn narrow_database(path: &Path) {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut name: OsString = path.as_os_str().to_owned();
        name.push(ending);
        narrow(&PathBuf::from(name));
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_neighbour_can_enter_no_folder_and_read_no_file_that_we_make() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("deep/own");
        make_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        let [made, written] = ["made", "written"].map(|name| folder.join(name));
        make_file(&made);
        write(&written, "secret").unwrap();
        assert_eq!([mode(&made), mode(&written)], [0o600, 0o600]);
        assert_eq!(fs::read(&written).unwrap(), b"secret");
        // A second time nothing is lost and nothing becomes wider.
        make_folder(&folder).unwrap();
        make_file(&written);
        assert_eq!(fs::read(&written).unwrap(), b"secret");
    }

    #[test]
    fn a_file_that_an_older_version_left_to_others_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.db");
        for (before, after) in [(0o644, 0o600), (0o666, 0o600), (0o640, 0o600), (0o444, 0o400)] {
            let names =
                ["results.db", "results.db-wal", "results.db-shm"].map(|name| folder.path().join(name));
            for name in &names {
                fs::write(name, "").unwrap();
                set_mode(name, before);
            }
            narrow_database(&path);
            for name in &names {
                assert_eq!(mode(name), after, "{} was {before:o}", name.display());
                set_mode(name, 0o600);
            }
        }
        set_mode(&path, 0o644);
        write(&path, "new").unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"new".to_vec()));
        narrow(&folder.path().join("none"));
        narrow(folder.path());
        assert!(!folder.path().join("none").exists());
    }
}
