//! Reads the small text files through which Linux tells about itself.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The file's text, or `None` where there is no such file, no permission, or no text.
///
/// Bounded at [`LARGEST`]: beyond that the rest is cut off, which the parsers survive like any
/// broken input.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Like [`read`], without the line end; `None` for an empty file.
pub(crate) fn read_line(path: impl AsRef<Path>) -> Option<String> {
    read(path).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// `/proc/stat` and `/proc/cpuinfo` of a host with 2,000 processors have 1 to 3 MB.
const LARGEST: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_absence() {
        assert_eq!(read("/proc/there/is/no/such/file"), None);
        assert_eq!(read_line("/dev/null"), None);
    }
}
