//! The folders in which a change over HTTP may name keys of probes.
//!
//! The collector may read files that the sender of a change may not. So a change must neither have
//! it read files that are no keys, nor find out which files there are. A key has to be in a folder
//! in which the file that the collector was started with has keys, or below it. Every path
//! elsewhere gets the same answer, whether there is a file or not, and a path that cannot be below
//! such a folder is not looked at on the disk.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::config::Config;

/// What is said about a path that leads elsewhere.
pub(crate) const OUTSIDE: &str = "a key has to be in a folder of keys of the file that the collector was started with, \
     or below it, without '..' and without a link that leads out of it";

/// The folders; see the module.
pub(crate) struct KeyFolders(BTreeSet<PathBuf>);

impl KeyFolders {
    /// Those of the keys in a file that the collector is started with; `keys` beside that file
    /// where it names none.
    pub(crate) fn of(config: &Config, beside: &Path) -> Self {
        let keys = config.probes.values().filter_map(|probe| probe.key_file.as_deref());
        let mut folders: BTreeSet<PathBuf> = keys.filter_map(Path::parent).map(Path::to_path_buf).collect();
        if folders.is_empty() {
            folders.insert(beside.join("keys"));
        }
        Self(folders)
    }

    /// Each of them.
    pub(crate) fn into_paths(self) -> impl Iterator<Item = PathBuf> {
        self.0.into_iter()
    }

    /// Whether a key may be there.
    pub(crate) fn may_hold(&self, key: &Path) -> bool {
        if key.components().any(|part| part == Component::ParentDir) {
            return false;
        }
        self.0.iter().filter(|folder| key.starts_with(folder)).any(|folder| is_below(folder, key))
    }
}

/// Whether the path is still below the folder once all links are followed. A key that does not
/// exist may be there: the sender is told that it is missing.
fn is_below(folder: &Path, key: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let leads_below = |path: &Path| path.canonicalize().is_ok_and(|real| real.starts_with(&folder));
    let is_link = key.symlink_metadata().is_ok_and(|found| found.is_symlink());
    key.parent().is_some_and(leads_below) && (!is_link || leads_below(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_the_folder_of_keys() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        std::fs::create_dir_all(at("fleet/keys/more")).unwrap();
        for path in ["secret", "fleet/keys/a.key", "fleet/keys/more/b.key", "fleet/collect.toml"] {
            std::fs::write(at(path), "secret").unwrap();
        }
        for (link, to) in [
            ("fleet/keys/out.key", "secret"),
            ("fleet/keys/nowhere.key", "missing"),
            ("fleet/keys/in.key", "fleet/keys/a.key"),
            ("fleet/keys/home", ""),
        ] {
            std::os::unix::fs::symlink(at(to), at(link)).unwrap();
        }
        let mut config = Config::read("[probes.a]\nkey_file = \"keys/a.key\"\n").unwrap();
        config.settle(&at("fleet"));
        let folders = KeyFolders::of(&config, &at("fleet"));
        let rows = [
            ("fleet/keys/a.key", true),
            ("fleet/keys/./a.key", true),
            ("fleet/keys/more/b.key", true),
            ("fleet/keys/missing.key", true),
            ("fleet/keys/in.key", true),
            ("secret", false),
            ("missing", false),
            ("fleet/collect.toml", false),
            ("fleet/keys", false),
            ("fleet/keys/../collect.toml", false),
            ("fleet/keys/more/../a.key", false),
            ("fleet/keys/out.key", false),
            ("fleet/keys/nowhere.key", false),
            ("fleet/keys/home/secret", false),
            ("fleet/keys/home/missing", false),
            ("fleet/keys/none/missing", false),
            ("fleet/keys-too/a.key", false),
        ];
        for (path, holds) in rows {
            assert_eq!(folders.may_hold(&at(path)), holds, "{path}");
        }
        assert!(!folders.may_hold(Path::new("/etc/hostname")) && !folders.may_hold(Path::new("")));
        // Without any key at the start there is one folder that is meant for them.
        let folders = KeyFolders::of(&Config::default(), &at("fleet"));
        assert!(folders.may_hold(&at("fleet/keys/a.key")) && !folders.may_hold(&at("fleet/collect.toml")));
    }
}
