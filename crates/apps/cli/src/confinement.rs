//! What programs that go on until they are ended take from themselves after their start, and how it
//! is said.

use std::path::{Path, PathBuf};

use netaware_confine::Report;

/// One line for each part of it, with `-v`.
pub(crate) fn log(report: &Report) {
    for line in report.lines() {
        tracing::debug!("{line}");
    }
}

/// Returns the folder of a database, in which SQLite keeps its journals. Where the file is a link
/// they are beside what it leads to.
pub(crate) fn folder_of(database: &Path) -> PathBuf {
    let real = database.canonicalize().unwrap_or_else(|_| database.to_owned());
    match real.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_are_beside_the_database_and_not_beside_a_link_to_it() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        let (file, link) = (top.join("real/results.db"), top.join("link.db"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!([folder_of(&file), folder_of(&link)], [top.join("real"), top.join("real")]);
        assert_eq!(folder_of(Path::new("there is none.db")), Path::new("."));
    }
}
