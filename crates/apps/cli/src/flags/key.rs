//! The shared key: from a file or the environment, never from an argument, where every user of the
//! host could read it. A file that others can read is no better; that is a warning.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};
use netaware_private::{exposure, is_exposed, read_secret};
use netaware_wire::proof::MAX_KEY;

/// The environment variable that holds the key itself.
pub(crate) const VARIABLE: &str = "NETAWARE_KEY";

/// Longer than any key, so that one that is too long is still found to be so.
const LONGEST_FILE: u64 = 1 << 20;

/// The file's content without the line's end, else the variable's, else nothing.
pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<Option<Vec<u8>>> {
    if let Some(path) = file {
        let read = read_secret(path, LONGEST_FILE);
        let read = read.with_context(|| format!("cannot read the key in {}", path.display()))?;
        if read.is_exposed {
            warn(path);
        }
        return checked(read.bytes).with_context(|| format!("the key in {}", path.display())).map(Some);
    }
    match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        None => Ok(None),
        Some(value) => {
            checked(value.into_encoded_bytes()).with_context(|| format!("the key in {VARIABLE}")).map(Some)
        }
    }
}

/// Warns of a file of a secret that others can read or change: a private key of a certificate, a
/// token. [`read`] does so itself.
pub(crate) fn warn_if_exposed(path: &Path) {
    if is_exposed(path) {
        warn(path);
    }
}

/// Once for each file: a series reads its key for each of its measurements.
fn warn(path: &Path) {
    static WARNED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let is_new = WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
    if is_new {
        eprintln!("warning: {}", exposure(path));
    }
}

fn checked(mut bytes: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        bytes.pop();
    }
    match bytes.len() {
        0 => bail!("it is empty"),
        len if len > MAX_KEY => bail!("it has {len} bytes; {MAX_KEY} are the limit"),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_line_is_no_part_of_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "sesame \r\n").unwrap();
        assert_eq!(read(Some(&path)).unwrap(), Some(b"sesame ".to_vec()));
    }

    #[test]
    fn errors_name_the_file_and_never_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let error = format!("{:#}", read(Some(&path)).unwrap_err());
        assert!(error.contains("cannot read the key in") && error.contains("No such file"), "{error}");
        std::fs::write(&path, "\n").unwrap();
        assert!(format!("{:#}", read(Some(&path)).unwrap_err()).ends_with("it is empty"));
        std::fs::write(&path, "s".repeat(1025)).unwrap();
        let error = format!("{:#}", read(Some(&path)).unwrap_err());
        assert!(error.ends_with("it has 1025 bytes; 1024 are the limit"), "{error}");
    }
}
