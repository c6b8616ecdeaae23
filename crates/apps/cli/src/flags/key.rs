//! The shared key: from a file or the environment, never from an argument, where every user of the
//! host could read it.

use std::path::Path;

use anyhow::{Context, bail};
use netaware_wire::proof::MAX_KEY;

/// The environment variable that holds the key itself.
pub(crate) const VARIABLE: &str = "NETAWARE_KEY";

/// The file's content without the line's end, else the variable's, else nothing.
pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<Option<Vec<u8>>> {
    if let Some(path) = file {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read the key in {}", path.display()))?;
        return checked(bytes).with_context(|| format!("the key in {}", path.display())).map(Some);
    }
    match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        None => Ok(None),
        Some(value) => {
            checked(value.into_encoded_bytes()).with_context(|| format!("the key in {VARIABLE}")).map(Some)
        }
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
