//! Whether a file is the word of this user or of root.
//!
//! Settings decide which key is asked for and where results go, so a file that somebody else wrote
//! would rule a program of root that is started beside it. A file counts only if it and its folder
//! belong to this user or to root, and nobody else may write to either. A folder with the sticky
//! bit, such as `/tmp`, is a folder that everybody may write to.
#![cfg_attr(unix, expect(unsafe_code, reason = "one system call, which takes nothing"))]

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// Who owns a file or a folder, and who may do what with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Number of the user.
    pub owner: u32,
    /// Bits of the mode, `0o002` for "others may write" among them.
    pub mode: u32,
}

/// Why something may be the word of another user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Neither this user nor root owns it.
    Owner(u32),
    /// Its group may write to it.
    Group,
    /// Every user may write to it.
    Everybody,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(owner) => write!(f, "belongs to another user (number {owner})"),
            Self::Group => f.write_str("can be written by its group"),
            Self::Everybody => f.write_str("can be written by every user"),
        }
    }
}

const ROOT: u32 = 0;

/// Decides whether a file or a folder is the word of `user` or of root; `None`: it is.
pub fn doubt(access: Access, user: u32) -> Option<Doubt> {
    if access.owner != user && access.owner != ROOT {
        Some(Doubt::Owner(access.owner))
    } else if access.mode & 0o002 != 0 {
        Some(Doubt::Everybody)
    } else if access.mode & 0o020 != 0 {
        Some(Doubt::Group)
    } else {
        None
    }
}

/// What a file of settings says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settings {
    /// There is no such file.
    Missing,
    /// It may be the word of another user, for this reason.
    Ignored(String),
    /// Its text, which this user or root wrote.
    Text(String),
}

/// Reads a file of settings if it is the word of this user or of root.
///
/// Nobody can exchange the file between the checks and the reading: its folder is judged first, and
/// the file itself is opened before it is judged. In a folder that passes, only this user and root
/// can rename or replace anything. The present folder, as the folder of a relative path, stays the
/// same for as long as the process does not leave it.
///
/// # Errors
/// It is this user's or root's, and cannot be read.
pub fn read_settings(path: &Path) -> io::Result<Settings> {
    read_as(path, user())
}

fn read_as(path: &Path, user: u32) -> io::Result<Settings> {
    let is_missing =
        |error: &io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    match path.symlink_metadata() {
        Err(error) if is_missing(&error) => return Ok(Settings::Missing),
        found => found?,
    };
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match folder(above) {
        Err(error) => return Ok(Settings::Ignored(format!("its folder cannot be looked at: {error}"))),
        Ok(found) => {
            if let Some(why) = doubt(access(&found), user) {
                return Ok(Settings::Ignored(format!("its folder {why}")));
            }
        }
    }
    // Before it is opened, because a pipe of somebody else would not come back from that. A
    // symbolic link has no mode of its own.
    let found = path.symlink_metadata()?;
    let Access { owner, mode } = access(&found);
    let mode = if found.is_symlink() { 0 } else { mode };
    if let Some(why) = doubt(Access { owner, mode }, user) {
        return Ok(Settings::Ignored(format!("it {why}")));
    }
    let mut file = match File::open(path) {
        Err(error) if is_missing(&error) => return Ok(Settings::Missing),
        opened => opened?,
    };
    if let Some(why) = doubt(access(&file.metadata()?), user) {
        return Ok(Settings::Ignored(format!("it {why}")));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Settings::Text(text))
}

/// A folder, opened and then asked, so that what is judged is what is held.
#[cfg(unix)]
fn folder(path: &Path) -> io::Result<fs::Metadata> {
    File::open(path)?.metadata()
}

#[cfg(not(unix))]
fn folder(path: &Path) -> io::Result<fs::Metadata> {
    fs::metadata(path)
}

#[cfg(unix)]
pub(crate) fn access(found: &fs::Metadata) -> Access {
    use std::os::unix::fs::MetadataExt as _;

    Access { owner: found.uid(), mode: found.mode() & 0o7777 }
}

#[cfg(not(unix))]
pub(crate) fn access(_: &fs::Metadata) -> Access {
    Access { owner: ROOT, mode: 0 }
}

/// The user in whose name this process acts.
#[cfg(unix)]
pub(crate) fn user() -> u32 {
    // SAFETY: it takes nothing, touches no memory and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(not(unix))]
pub(crate) fn user() -> u32 {
    ROOT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every mode and every kind of owner, against the rule in other words.
    #[test]
    fn no_owner_and_no_mode_lets_a_neighbours_word_count() {
        let (user, neighbour) = (1000, 1001);
        for (owner, is_ours) in [(ROOT, true), (user, true), (neighbour, false), (u32::MAX, false)] {
            for mode in 0..=0o7777_u32 {
                let digits = format!("{mode:04o}");
                let writes = |place: usize| matches!(digits.as_bytes()[place], b'2' | b'3' | b'6' | b'7');
                let counts = is_ours && !writes(2) && !writes(3);
                let found = doubt(Access { owner, mode }, user);
                assert_eq!(found.is_none(), counts, "owner {owner}, mode {mode:o}: {found:?}");
            }
        }
        // For root the word of a user is that of another one.
        assert_eq!(doubt(Access { owner: user, mode: 0o600 }, ROOT), Some(Doubt::Owner(user)));
        // The sticky bit keeps nobody from making a file there first.
        assert_eq!(doubt(Access { owner: ROOT, mode: 0o1777 }, user), Some(Doubt::Everybody));
    }

    #[cfg(unix)]
    mod files {
        use std::os::unix::fs::PermissionsExt as _;

        use super::*;

        fn place() -> (tempfile::TempDir, std::path::PathBuf) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("netaware.toml");
            fs::write(&path, "port = 1").unwrap();
            set_mode(&path, 0o644);
            (folder, path)
        }

        fn set_mode(path: &Path, mode: u32) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }

        fn ignored(path: &Path, user: u32) -> String {
            match read_as(path, user).unwrap() {
                Settings::Ignored(why) => why,
                other => panic!("{other:?}"),
            }
        }

        #[test]
        fn a_file_that_a_neighbour_could_have_written_is_ignored_with_the_reason() {
            let (folder, path) = place();
            assert_eq!(read_settings(&path).unwrap(), Settings::Text("port = 1".to_owned()));
            set_mode(&path, 0o666);
            assert_eq!(ignored(&path, user()), "it can be written by every user");
            set_mode(&path, 0o664);
            assert_eq!(ignored(&path, user()), "it can be written by its group");
            set_mode(&path, 0o644);
            for (mode, why) in
                [(0o770, "its group"), (0o777, "every user"), (0o1777, "every user"), (0o703, "every user")]
            {
                set_mode(folder.path(), mode);
                assert_eq!(ignored(&path, user()), format!("its folder can be written by {why}"), "{mode:o}");
            }
            set_mode(folder.path(), 0o755);
            assert_eq!(read_settings(&path).unwrap(), Settings::Text("port = 1".to_owned()));
        }

        #[test]
        fn a_link_leads_to_no_file_that_a_neighbour_may_write() {
            let (folder, path) = place();
            let link = folder.path().join("link.toml");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            assert_eq!(read_settings(&link).unwrap(), Settings::Text("port = 1".to_owned()));
            set_mode(&path, 0o666);
            assert_eq!(ignored(&link, user()), "it can be written by every user");
            fs::remove_file(&path).unwrap();
            assert_eq!(read_settings(&link).unwrap(), Settings::Missing);
            assert_eq!(read_settings(&path.join("below")).unwrap(), Settings::Missing);
        }

        /// The files of these tests are another user's for a user of another number.
        #[test]
        fn the_folder_of_a_neighbour_is_refused_before_his_file_is_opened() {
            let (_folder, path) = place();
            let (owner, other) = (user(), user().wrapping_add(1).max(1));
            if owner == ROOT {
                // Root's word counts for everybody.
                assert!(matches!(read_as(&path, other).unwrap(), Settings::Text(_)));
            } else {
                let why = format!("its folder belongs to another user (number {owner})");
                assert_eq!(ignored(&path, other), why);
            }
        }
    }
}
