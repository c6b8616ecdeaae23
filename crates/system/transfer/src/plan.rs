//! What is to be sent: files and folders, found before anything travels.
//!
//! Links that are named are followed, as `cp` does; those found in folders are not, and are told,
//! as is what is neither file nor folder. Only names and lengths are kept, about 150 bytes of
//! memory for each entry.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use netaware_wire::transfer::{EntryPath, Mode, Stamp};

use crate::error::{Failure, SendError};

/// Something to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where it is here.
    pub(crate) source: PathBuf,
    /// Its name there.
    pub(crate) path: EntryPath,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    /// With its length when it was found.
    File(u64),
    /// The end of a folder.
    Seal,
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) entries: Vec<Entry>,
    /// What cannot be sent.
    pub(crate) failures: Vec<Failure>,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Plan {
    /// Of what a person named.
    ///
    /// # Errors
    /// Something that was named cannot be read, has no name of its own, or has that of another one.
    pub(crate) fn of(named: &[PathBuf]) -> Result<Self, SendError> {
        let mut plan = Self::default();
        let mut names = HashSet::new();
        for path in named {
            let unnamed = |why: &str| SendError::Name { path: path.clone(), why: why.to_owned() };
            let about =
                fs::metadata(path).map_err(|source| SendError::Read { path: path.clone(), source })?;
            // "." and ".." have a name, too.
            let whole = if path.file_name().is_some() {
                path.clone()
            } else {
                fs::canonicalize(path).map_err(|source| SendError::Read { path: path.clone(), source })?
            };
            let name = whole.file_name().ok_or_else(|| unnamed("it has no name; name what is in it"))?;
            let name = name.to_str().ok_or_else(|| unnamed("its name is not UTF-8; rename it"))?;
            if !names.insert(name.to_owned()) {
                return Err(unnamed("another one of the same name is to be sent; send them apart"));
            }
            let target = EntryPath::new(name).map_err(|why| unnamed(&why.to_string()))?;
            if !about.is_dir() && !about.is_file() {
                return Err(unnamed("it is neither a file nor a folder"));
            }
            plan.add(path, &target, &about);
        }
        Ok(plan)
    }

    fn add(&mut self, source: &Path, path: &EntryPath, about: &Metadata) {
        let entry = |kind| Entry { source: source.to_owned(), path: path.clone(), kind };
        if about.is_file() {
            self.files += 1;
            self.bytes += about.len();
            self.entries.push(entry(Kind::File(about.len())));
            return;
        }
        self.entries.push(entry(Kind::Folder));
        match within(source) {
            Ok(inner) => inner.into_iter().for_each(|name| self.add_within(source, path, &name)),
            Err(why) => self.fail(path.as_str(), &why),
        }
        self.entries.push(entry(Kind::Seal));
    }

    fn add_within(&mut self, folder: &Path, path: &EntryPath, name: &std::ffi::OsStr) {
        let source = folder.join(name);
        let shown = format!("{path}/{}", name.to_string_lossy());
        let Some(name) = name.to_str() else {
            return self.fail(&shown, "its name is not UTF-8");
        };
        if name.ends_with(EntryPath::PARTIAL) {
            return self.fail(&shown, "it is a file that has not come completely");
        }
        let inner = match EntryPath::new(format!("{path}/{name}")) {
            Ok(inner) => inner,
            Err(why) => return self.fail(&shown, &why.to_string()),
        };
        match fs::symlink_metadata(&source) {
            Ok(about) if about.is_symlink() => {
                self.fail(&shown, "it is a symbolic link; name what it points to");
            }
            Ok(about) if about.is_dir() || about.is_file() => self.add(&source, &inner, &about),
            Ok(_) => self.fail(&shown, "it is neither a file nor a folder"),
            Err(why) => self.fail(&shown, &why.to_string()),
        }
    }

    fn fail(&mut self, path: &str, why: &str) {
        self.failures.push(Failure { path: path.to_owned(), why: why.to_owned() });
    }
}

/// The names in a folder, sorted.
fn within(folder: &Path) -> Result<Vec<std::ffi::OsString>, String> {
    let read = fs::read_dir(folder).and_then(|all| all.map(|one| Ok(one?.file_name())).collect());
    let mut names: Vec<_> = read.map_err(|why: std::io::Error| why.to_string())?;
    names.sort_unstable();
    Ok(names)
}

/// What travels of permissions and times.
pub(crate) fn attributes(about: &Metadata) -> (Mode, Stamp) {
    let nanos = u32::try_from(about.mtime_nsec()).unwrap_or(0).min(999_999_999);
    (Mode::from(about.mode()), Stamp { seconds: about.mtime(), nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_what_is_in_them_and_are_sealed_after() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
        fs::create_dir_all(top.join("b/empty")).unwrap();
        fs::write(top.join("b/x"), "123").unwrap();
        fs::write(top.join("a"), "").unwrap();
        let plan = Plan::of(&[top]).unwrap();
        let shown: Vec<_> = plan.entries.iter().map(|it| (it.path.as_str(), it.kind)).collect();
        let want = [
            ("top", Kind::Folder),
            ("top/a", Kind::File(0)),
            ("top/b", Kind::Folder),
            ("top/b/empty", Kind::Folder),
            ("top/b/empty", Kind::Seal),
            ("top/b/x", Kind::File(3)),
            ("top/b", Kind::Seal),
            ("top", Kind::Seal),
        ];
        assert_eq!(shown, want);
        assert_eq!((plan.files, plan.bytes, plan.failures.len()), (2, 3, 0));
    }

    #[test]
    fn links_and_what_is_no_file_are_told_and_not_sent() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
        fs::create_dir(&top).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", top.join("link")).unwrap();
        std::os::unix::net::UnixListener::bind(top.join("socket")).unwrap();
        fs::write(top.join(".x.netaware-part"), "x").unwrap();
        let plan = Plan::of(&[top]).unwrap();
        assert_eq!((plan.entries.len(), plan.files), (2, 0));
        let failed: Vec<_> = plan.failures.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(failed, ["top/.x.netaware-part", "top/link", "top/socket"]);
    }

    #[test]
    fn what_cannot_be_named_is_refused_before_anything_travels() {
        let place = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|folder| place.path().join(folder));
        for folder in [&a, &b] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("same"), "x").unwrap();
        }
        let error = |paths: &[PathBuf]| Plan::of(paths).unwrap_err().to_string();
        assert!(error(&[a.join("same"), b.join("same")]).contains("the same name"));
        assert!(error(&[a.join("none")]).contains("cannot read"));
        assert!(error(&["/".into()]).contains("no name"));
        assert_eq!(Plan::of(&[a.join(".")]).unwrap().entries[0].path.as_str(), "a");
    }
}
