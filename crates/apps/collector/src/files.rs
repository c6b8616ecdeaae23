//! Which files a collector needs, for who confines it before it starts.
//!
//! A change over HTTP names other keys of probes, in the folders that [`KeyFolders`] allows, and no
//! other file: all else is fixed from the start on.

use std::path::{Path, PathBuf};

use netaware_store::fleet;

use crate::config::Config;
use crate::key_folders::KeyFolders;

/// Files and folders of a collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// What is read: tokens, certificates and their keys, and the folders of the probes' keys.
    pub reads: Vec<PathBuf>,
    /// Folders that are written to.
    pub writes: Vec<PathBuf>,
    /// The database, if the store is a file.
    pub database: Option<PathBuf>,
}

impl Files {
    /// Those of a configuration whose paths are settled ([`Config::settle`]); `folder` is that of
    /// its file.
    pub fn of(config: &Config, folder: &Path) -> Self {
        let tls = config
            .tls
            .iter()
            .flat_map(|tls| [Some(&tls.certificate), Some(&tls.key), tls.client_ca.as_ref()]);
        let access = &config.access;
        let others = [&config.export_ca, &access.admin_token_file, &access.read_token_file];
        let named = tls.flatten().chain(others.into_iter().flatten()).cloned();
        let keys = KeyFolders::of(config, folder).into_paths();
        let mut reads: Vec<PathBuf> = named.chain(keys).collect();
        let mut writes: Vec<PathBuf> = config.state.iter().cloned().collect();
        let in_state = |path: &Path| config.state.as_deref().is_some_and(|state| path.starts_with(state));
        if let Some(secret) = config.secret_file.as_deref().filter(|path| !in_state(path)) {
            // It is made at the first start.
            let made_in = secret.parent().filter(|_| !secret.exists());
            writes.extend(made_in.map(Path::to_path_buf));
            reads.push(secret.to_path_buf());
        }
        let place = config.store.as_deref().unwrap_or_default();
        let is_file = !place.is_empty() && !place.contains("://");
        reads.extend(fleet::authority_of(place));
        Self { reads, writes, database: is_file.then(|| PathBuf::from(place)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> Files {
        let mut config = Config::read(text).unwrap();
        config.settle(Path::new("/fleet"));
        Files::of(&config, Path::new("/fleet"))
    }

    #[test]
    fn a_collector_needs_its_state_its_store_and_its_keys_and_no_other_file() {
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect::<Vec<_>>();
        let usual = files("");
        assert_eq!(usual.reads, paths(&["/fleet/keys"]));
        assert_eq!(usual.writes, paths(&["/fleet/netaware-collect"]));
        assert_eq!(usual.database, Some("/fleet/netaware-collect/fleet.db".into()));
        let elsewhere = files(
            "state = \"/state\"\nstore = \"clickhouses://ch/x?ca=/etc/a%20b.pem\"\n\
             [tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n\
             [access]\nadmin_token_file = \"token\"\n\
             [probes.bern]\nkey_file = \"secrets/bern.key\"\n",
        );
        let reads = ["/fleet/c.pem", "/fleet/k.pem", "/fleet/token", "/fleet/secrets", "/etc/a b.pem"];
        assert_eq!(elsewhere.reads, paths(&reads));
        assert_eq!((elsewhere.writes, elsewhere.database), (paths(&["/state"]), None));
    }

    #[test]
    fn a_secret_that_is_not_made_yet_is_made_in_its_folder() {
        let found = files("secret_file = \"/nonexistent/secret\"\n");
        assert!(
            found.writes.contains(&"/nonexistent".into())
                && found.reads.contains(&"/nonexistent/secret".into())
        );
    }
}
