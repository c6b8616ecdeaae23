//! The configuration that runs, its number, and what each probe is told by it.
//!
//! The state folder keeps both: the text as `running.toml`, the number as `number`. Written first
//! beside and then renamed, the text before the number: after a crash in between the same text gets
//! a number that no probe has seen, which does no harm.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use netaware_private::{exposure, read_secret};
use netaware_store::fleet::without_password;
use netaware_wire::Token;
use netaware_wire::lmap::Instruction;
use netaware_wire::proof::Key;
use tokio::sync::watch;

use crate::config::{Config, Fault, ReadError, Start};
use crate::instruct;
use crate::key_folders::{KeyFolders, OUTSIDE};

/// Why a configuration cannot be put to work.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It is wrong in itself.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file that it names cannot be used.
    #[error("{what} {}: {why}", path.display())]
    File {
        /// Which, in words.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A part that only a new start can change.
    #[error("'{0}' cannot be changed while it runs; change the file and start the collector again")]
    Fixed(&'static str),
    /// No random numbers for a new secret.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// What runs at an instant.
pub(crate) struct Running {
    /// The file.
    pub(crate) config: Config,
    /// Rises with every change.
    pub(crate) number: u64,
    /// What probes are told to seed digests with.
    seed: String,
    keys: BTreeMap<String, Key>,
}

impl Running {
    /// What a probe is told.
    pub(crate) fn instruction(&self, probe: &str) -> Instruction {
        instruct::instruction(&self.config, probe, self.number, &self.seed)
    }

    /// Its key; `None`: it has to show a certificate, if it exists at all.
    pub(crate) fn key(&self, probe: &str) -> Option<&Key> {
        self.keys.get(probe)
    }
}

/// See the module.
pub(crate) struct Controller {
    running: watch::Sender<Arc<Running>>,
    /// One change at a time.
    changing: Mutex<()>,
    state: PathBuf,
    /// Keeps other collectors away from the state folder for as long as this one runs.
    _lock: File,
    folder: PathBuf,
    /// Where keys may be that a change names.
    keys: KeyFolders,
    start: Start,
}

impl Controller {
    /// Puts a configuration to work. What was applied over HTTP before the last end is *not* taken
    /// up again: the file rules, and whoever changed something over HTTP was told so.
    pub(crate) fn start(mut config: Config, start: Start) -> Result<Self, ApplyError> {
        let above = || config.state.as_ref()?.parent().map(Path::to_path_buf);
        let folder = start.folder.clone().or_else(above).unwrap_or_default();
        config.lay_over(&start);
        config.settle(&folder);
        sound(&config)?;
        let state = config.state.clone().unwrap_or_default();
        let made = netaware_private::make_folder(&state);
        made.map_err(|error| file("the state folder", &state, &error.to_string()))?;
        let lock = lock(&state)?;
        let before = std::fs::read_to_string(state.join("number")).ok();
        let before = before.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
        let same = std::fs::read_to_string(state.join("running.toml")).ok() == config.shown().ok();
        let number = if same && before > 0 { before } else { before + 1 };
        let keys = KeyFolders::of(&config, &folder);
        let running = prepare(config, number)?;
        keep(&state, &running)?;
        let running = watch::Sender::new(Arc::new(running));
        Ok(Self { running, changing: Mutex::new(()), state, _lock: lock, folder, keys, start })
    }

    /// What a text that comes over HTTP means here: its paths are this host's and begin where those
    /// of the file do that this collector was started with, and what it was started with beside the
    /// file holds for it as well.
    pub(crate) fn read(&self, text: &str) -> Result<Config, ApplyError> {
        let mut config = Config::read(text)?;
        config.lay_over(&self.start);
        config.settle(&self.folder);
        // What was shown of it, without the password of the store, can be given back.
        let known = self.running().config.store.clone();
        if known.as_deref().map(without_password) == config.store {
            config.store = known;
        }
        Ok(config)
    }

    /// What runs now.
    pub(crate) fn running(&self) -> Arc<Running> {
        self.running.borrow().clone()
    }

    /// Tells of every change.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Running>> {
        self.running.subscribe()
    }

    /// Changes what runs; gives the number of it. Nothing is changed if anything is wrong.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&Config) -> Result<Config, ApplyError>,
    ) -> Result<u64, ApplyError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.running();
        let config = change(&now.config)?;
        sound(&config)?;
        fixed(&now.config, &config)?;
        self.keys_stay_in(&now.config, &config)?;
        if config == now.config {
            return Ok(now.number);
        }
        let running = prepare(config, now.number + 1)?;
        keep(&self.state, &running)?;
        self.running.send_replace(Arc::new(running));
        Ok(now.number + 1)
    }

    /// A key that runs already may stay where it is.
    fn keys_stay_in(&self, now: &Config, then: &Config) -> Result<(), ApplyError> {
        let known: BTreeSet<&PathBuf> =
            now.probes.values().filter_map(|probe| probe.key_file.as_ref()).collect();
        let keys = then.probes.values().filter_map(|probe| probe.key_file.as_ref());
        let mut new = keys.filter(|key| !known.contains(key));
        new.find(|key| !self.keys.may_hold(key)).map_or(Ok(()), |key| Err(file("the key file", key, OUTSIDE)))
    }
}

fn sound(config: &Config) -> Result<(), ApplyError> {
    let faults: Vec<Fault> = config.check();
    if faults.is_empty() { Ok(()) } else { Err(ReadError::Meaning(faults).into()) }
}

/// Sockets, files and threads stand since the start.
fn fixed(now: &Config, then: &Config) -> Result<(), ApplyError> {
    let rows = [
        ("listen", now.listen == then.listen),
        ("state", now.state == then.state),
        ("store", now.store == then.store),
        ("store_buffer", now.store_buffer == then.store_buffer),
        ("secret_file", now.secret_file == then.secret_file),
        ("ipfix", now.ipfix == then.ipfix),
        ("exporters", now.exporters == then.exporters),
        ("export", (&now.export, &now.export_ca) == (&then.export, &then.export_ca)),
        ("shard", now.shard == then.shard),
        ("tls", now.tls == then.tls),
        ("access", now.access == then.access),
        ("retention", now.retention == then.retention),
    ];
    rows.into_iter().find(|(_, same)| !same).map_or(Ok(()), |(name, _)| Err(ApplyError::Fixed(name)))
}

fn file(what: &'static str, path: &Path, why: &str) -> ApplyError {
    ApplyError::File { what, path: path.to_owned(), why: why.to_owned() }
}

/// A state folder is one collector's alone: two would write over what the other keeps in it.
fn lock(state: &Path) -> Result<File, ApplyError> {
    let path = state.join("lock");
    let opened = netaware_private::options().create(true).truncate(false).write(true).open(&path);
    let opened = opened.map_err(|error| file("the state folder", state, &error.to_string()))?;
    match opened.try_lock() {
        Ok(()) => Ok(opened),
        Err(TryLockError::WouldBlock) => {
            let why = "another collector uses it: end that one, or give this one another 'state' in its file";
            Err(file("the state folder", state, why))
        }
        Err(TryLockError::Error(error)) => Err(file("the state folder", state, &error.to_string())),
    }
}

fn prepare(config: Config, number: u64) -> Result<Running, ApplyError> {
    let mut keys = BTreeMap::new();
    let mut exposed = Vec::new();
    for (name, probe) in &config.probes {
        if let Some(path) = &probe.key_file {
            let (bytes, is_exposed) = content(path, "the key file")?;
            if is_exposed {
                exposed.push(path);
            }
            keys.insert(
                name.clone(),
                Key::new(bytes).map_err(|why| file("the key file", path, &why.to_string()))?,
            );
        }
    }
    // One line, however many probes there are.
    if let Some(first) = exposed.first() {
        tracing::warn!("{}; key files of probes that are open to others: {}", exposure(first), exposed.len());
    }
    let path = config.secret_file.clone().unwrap_or_else(|| PathBuf::from("secret"));
    if !path.exists() {
        make_secret(&path, "the fleet's secret")?;
    }
    let seed = instruct::seed(&secret(&path, "the fleet's secret")?);
    Ok(Running { config, number, seed, keys })
}

/// A file's content without the line's end. One that other users can read is warned about.
pub(crate) fn secret(path: &Path, what: &'static str) -> Result<Vec<u8>, ApplyError> {
    let (bytes, is_exposed) = content(path, what)?;
    if is_exposed {
        tracing::warn!("{}", exposure(path));
    }
    Ok(bytes)
}

/// The same, and whether other users can read it.
fn content(path: &Path, what: &'static str) -> Result<(Vec<u8>, bool), ApplyError> {
    // Longer than any secret, so that one that is too long is still found to be so.
    let read = read_secret(path, 4096).map_err(|error| {
        let advice = "make one with: head -c 32 /dev/urandom | base64";
        file(what, path, &format!("{error}; {advice}"))
    })?;
    let mut bytes = read.bytes;
    while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        bytes.pop();
    }
    match bytes.len() {
        0 => Err(file(what, path, "it is empty")),
        1..=1024 => Ok((bytes, read.is_exposed)),
        _ => Err(file(what, path, "it is longer than 1024 bytes")),
    }
}

/// Makes a file with 32 random bytes, in hexadecimal, for its owner alone.
fn make_secret(path: &Path, what: &'static str) -> Result<(), ApplyError> {
    let mut halves = [Token::default(); 2];
    for half in &mut halves {
        getrandom::fill(&mut half.0).map_err(ApplyError::Random)?;
    }
    let text = halves.map(|half| half.to_string()).concat();
    let written = netaware_private::options().write(true).create_new(true).open(path);
    let written = written.and_then(|mut open| open.write_all(text.as_bytes()));
    written.map_err(|error| file(what, path, &error.to_string()))
}

/// The token that the collector makes itself at its first start, where its file names none. The log
/// says where it is, and never what it is.
pub(crate) fn own_token(state: &Path) -> Result<Vec<u8>, ApplyError> {
    let path = state.join("admin-token");
    if !path.exists() {
        make_secret(&path, "the admin token")?;
    }
    netaware_private::narrow(&path);
    tracing::info!("the admin token, which changes need, is in {}", path.display());
    secret(&path, "the admin token")
}

fn keep(state: &Path, running: &Running) -> Result<(), ApplyError> {
    let text = running.config.shown().map_err(|why| file("the configuration", state, &why.to_string()))?;
    for (name, content) in [("running.toml", text), ("number", running.number.to_string())] {
        let (path, beside) = (state.join(name), state.join(format!("{name}.new")));
        let written =
            netaware_private::write(&beside, content).and_then(|()| std::fs::rename(&beside, &path));
        written.map_err(|error| file("the state file", &path, &error.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(folder: &Path, more: &str) -> Config {
        std::fs::write(folder.join("a.key"), "key of a\n").unwrap();
        let mut config = Config::read(&format!("[probes.a]\nkey_file = \"a.key\"\n{more}")).unwrap();
        config.settle(folder);
        config
    }

    const TASK: &str = "[tasks.v]\non = [\"a\"]\nkind = \"volume\"\n";

    #[test]
    fn the_number_rises_with_each_change_and_stays_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let controller = Controller::start(config(folder.path(), ""), Start::default()).unwrap();
        assert_eq!(controller.running().number, 1);
        let seed = controller.running().instruction("a").seed;
        assert_eq!(controller.change(|_| Ok(config(folder.path(), TASK))).unwrap(), 2);
        assert_eq!(controller.change(|now| Ok(now.clone())).unwrap(), 2);
        assert_eq!(controller.running().instruction("a").tasks.len(), 1);
        drop(controller);
        let again = Controller::start(config(folder.path(), TASK), Start::default()).unwrap();
        assert_eq!(again.running().number, 2);
        assert_eq!(again.running().instruction("a").seed, seed);
        drop(again);
        let other = Controller::start(config(folder.path(), ""), Start::default()).unwrap();
        assert_eq!(other.running().number, 3);
    }

    #[test]
    fn a_second_collector_on_one_state_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let start = || Controller::start(config(folder.path(), ""), Start::default());
        let first = start().unwrap();
        let refused = start().err().unwrap().to_string();
        assert!(refused.contains("another collector uses it"), "{refused}");
        drop(first);
        start().unwrap();
    }

    #[test]
    fn what_cannot_be_changed_is_named_and_nothing_changes() {
        let folder = tempfile::tempdir().unwrap();
        let controller = Controller::start(config(folder.path(), ""), Start::default()).unwrap();
        let moved = controller.change(|now| Ok(Config { store: Some("x.db".into()), ..now.clone() }));
        assert!(moved.unwrap_err().to_string().starts_with("'store' cannot be changed while it runs"));
        let bad = controller.change(|now| {
            let mut bad = now.clone();
            bad.groups.insert("g".into(), vec!["nobody".into()]);
            Ok(bad)
        });
        assert!(bad.unwrap_err().to_string().contains("groups.g: there is no probe 'nobody'"));
        assert_eq!(controller.running().number, 1);
    }

    #[test]
    fn what_it_was_started_with_is_laid_over_every_text_and_paths_begin_at_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let start = Start {
            folder: Some(folder.path().to_owned()),
            store: Some("other.db".into()),
            shard: Some("1/2".into()),
            ipfix: vec!["udp://127.0.0.1:4739".into()],
        };
        std::fs::write(folder.path().join("a.key"), "key of a\n").unwrap();
        let text = "state = \"deep/state\"\n[probes.a]\nkey_file = \"a.key\"\n";
        let controller = Controller::start(Config::read(text).unwrap(), start).unwrap();
        let running = controller.running();
        let config = &running.config;
        assert_eq!(config.store, Some(folder.path().join("other.db").display().to_string()));
        assert_eq!((config.shard(), config.ipfix.len()), ((0, 2), 1));
        assert_eq!(controller.read(text).unwrap(), *config);
        // What it says of itself can be given back.
        assert_eq!(controller.read(&config.to_toml().unwrap()).unwrap(), *config);
        let more = format!("{text}{TASK}");
        assert_eq!(controller.change(|_| controller.read(&more)).unwrap(), 2);
        let moved = format!("state = \"elsewhere\"\n{}", text.replace("state = \"deep/state\"", ""));
        let why = controller.change(|_| controller.read(&moved)).unwrap_err().to_string();
        assert!(why.starts_with("'state' cannot be changed"), "{why}");
    }

    #[test]
    fn a_neighbour_reads_neither_what_runs_nor_the_password_in_it() {
        use std::os::unix::fs::MetadataExt as _;

        let folder = tempfile::tempdir().unwrap();
        let store = "store = \"clickhouse://me:sesame@192.0.2.1/db\"\n";
        let text = format!("{store}[probes.a]\nkey_file = \"a.key\"\n");
        std::fs::write(folder.path().join("a.key"), "key of a\n").unwrap();
        let start = || {
            let start = Start { folder: Some(folder.path().to_owned()), ..Start::default() };
            Controller::start(Config::read(&text).unwrap(), start).unwrap()
        };
        let controller = start();
        let state = folder.path().join("netaware-collect");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&state), 0o700);
        for name in ["running.toml", "number", "secret", "lock"] {
            assert_eq!(mode(&state.join(name)), 0o600, "{name}");
        }
        let kept = std::fs::read_to_string(state.join("running.toml")).unwrap();
        assert!(kept.contains("clickhouse://me:***@192.0.2.1/db") && !kept.contains("sesame"), "{kept}");
        // What is shown can be given back, and is no change; a start with the same file is none.
        assert_eq!(controller.read(&kept).unwrap(), controller.running().config);
        assert_eq!(controller.change(|_| controller.read(&kept)).unwrap(), 1);
        drop(controller);
        assert_eq!(start().running().number, 1);
    }

    /// Whoever may change the configuration learned which files there are below root's home.
    #[test]
    fn the_answer_to_a_key_elsewhere_is_the_same_whether_there_is_such_a_file_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("fleet");
        std::fs::create_dir(&keys).unwrap();
        std::fs::write(folder.path().join("there"), "a secret of root\n").unwrap();
        std::os::unix::fs::symlink(folder.path(), keys.join("link")).unwrap();
        let controller = Controller::start(config(&keys, ""), Start::default()).unwrap();
        let refused = |path: &str| {
            let text = format!("[probes.a]\nkey_file = \"a.key\"\n[probes.b]\nkey_file = \"{path}\"\n");
            let why = controller.change(|_| controller.read(&text)).unwrap_err().to_string();
            assert!(why.ends_with(OUTSIDE), "{why}");
            why.replace("there", "NAME").replace("none", "NAME")
        };
        let outside = folder.path().display();
        for place in ["../", "link/", &format!("{outside}/"), &format!("{}/../", keys.display())] {
            assert_eq!(refused(&format!("{place}there")), refused(&format!("{place}none")), "{place}");
        }
        assert_eq!(controller.running().number, 1, "nothing is changed");
        // A key that is missing where it may be is named as such.
        let missing = "[probes.b]\nkey_file = \"b.key\"\n";
        let why = controller.change(|_| controller.read(missing)).unwrap_err().to_string();
        assert!(why.contains("b.key") && why.contains("head -c 32"), "{why}");
        std::fs::write(keys.join("b.key"), "key of b\n").unwrap();
        assert_eq!(controller.change(|_| controller.read(missing)).unwrap(), 2);
    }

    #[test]
    fn the_admin_token_is_made_once_for_its_owner_alone_and_cannot_be_guessed() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin-token");
        let token = own_token(folder.path()).unwrap();
        assert!(token.len() == 64 && token.iter().all(u8::is_ascii_hexdigit));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(own_token(folder.path()).unwrap(), token, "a second start has the same one");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(own_token(other.path()).unwrap(), token);
    }

    #[test]
    fn a_missing_key_says_how_to_make_one() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path(), "");
        std::fs::remove_file(folder.path().join("a.key")).unwrap();
        let why = Controller::start(config, Start::default()).err().unwrap().to_string();
        assert!(why.contains("a.key") && why.contains("head -c 32 /dev/urandom"), "{why}");
    }
}
