//! Secrets in files: reading them, and whether others can do so too.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::trust;

/// What a file of a secret holds.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The file's content.
    pub bytes: Vec<u8>,
    /// Whether the file's group or other users may read or change it.
    pub is_exposed: bool,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").field("is_exposed", &self.is_exposed).finish_non_exhaustive()
    }
}

/// Reads a file of a secret, `longest` bytes of it at most.
///
/// # Errors
/// The file cannot be read.
pub fn read_secret(path: &Path, longest: u64) -> io::Result<Secret> {
    let file = File::open(path)?;
    let is_exposed = is_open_to_others(&file.metadata()?) && !is_credential(path);
    let mut bytes = Vec::new();
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(Secret { bytes, is_exposed })
}

/// Whether other users may read or change the secret in a file. A file that cannot be looked at is
/// not exposed; whoever reads it says why it cannot be read.
pub fn is_exposed(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| is_open_to_others(&found)) && !is_credential(path)
}

/// The sentence for the owner of an exposed file.
pub fn exposure(path: &Path) -> String {
    let path = path.display();
    format!("other users of this host may read or change the secret in {path}: run chmod 600 {path}")
}

/// Whether systemd handed the file to this service (`LoadCredential=`). The bits of its group then
/// stand for the one user whom it was made for.
fn is_credential(path: &Path) -> bool {
    is_below(path, std::env::var_os("CREDENTIALS_DIRECTORY").as_deref())
}

fn is_below(path: &Path, folder: Option<&OsStr>) -> bool {
    folder.is_some_and(|folder| !folder.is_empty() && path.starts_with(folder))
}

/// A pipe or a device says nothing of who else can read what comes out of it.
fn is_open_to_others(found: &fs::Metadata) -> bool {
    found.is_file() && opens(trust::access(found).mode)
}

fn opens(mode: u32) -> bool {
    mode & 0o066 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_a_neighbour_can_read_is_found_whatever_the_bits_are() {
        for mode in 0..=0o7777 {
            let [group, others] = [mode / 8 % 8, mode % 8];
            let is_closed = [group, others].into_iter().all(|bits| matches!(bits, 0 | 1));
            assert_eq!(opens(mode), !is_closed, "{mode:o}");
        }
    }

    #[test]
    fn what_systemd_hands_to_a_service_is_for_that_service_alone() {
        let folder = Some(OsStr::new("/run/credentials/netaware-probe.service"));
        assert!(is_below(Path::new("/run/credentials/netaware-probe.service/key"), folder));
        for path in ["/run/credentials/other.service/key", "/etc/netaware/key", "key"] {
            assert!(!is_below(Path::new(path), folder), "{path}");
            assert!(!is_below(Path::new(path), None) && !is_below(Path::new(path), Some(OsStr::new(""))));
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_warning_of_an_exposed_key_says_what_to_run_and_never_the_key() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "sesame").unwrap();
        for (mode, exposed) in [(0o600, false), (0o400, false), (0o640, true), (0o644, true), (0o602, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_exposed(&path), exposed, "{mode:o}");
            let read = read_secret(&path, 1024).unwrap();
            assert_eq!((read.is_exposed, &read.bytes[..]), (exposed, &b"sesame"[..]), "{mode:o}");
            assert!(!format!("{read:?}").contains("sesame") && !format!("{read:?}").contains("115"));
        }
        assert!(exposure(&path).ends_with(&format!("run chmod 600 {}", path.display())));
        assert_eq!(read_secret(&path, 3).unwrap().bytes, b"ses", "a file without an end is cut off");
    }
}
