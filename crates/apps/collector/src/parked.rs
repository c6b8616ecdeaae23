//! What joins hold, on the disk from a planned end to the next start.
//!
//! A file for each join in `joins` of the state folder: a first line, the words of the join, what
//! is known besides (JSON), the length of that, and a checksum. It is read once, and taken away
//! before anything else happens: a process that is killed later must not leave it for another.
//! Where anything is in doubt there was no file, and what it held is told as `unobserved` from
//! `window.log`.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use netaware_passive::join::{Join, JoinSettings, LedgerState};
use serde::{Deserialize, Serialize};

use crate::joins::{LostTimes, Setup};
use crate::lacks::Lacks;

/// What the joins of a collector know of probes beside their sightings.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Gaps {
    pub(crate) lacks: Lacks,
    pub(crate) lost: LostTimes,
}

/// Joins of the process before this one, by name.
#[derive(Default)]
pub(crate) struct Parked {
    pub(crate) joins: BTreeMap<String, Join>,
    pub(crate) gaps: Gaps,
}

#[derive(Serialize, Deserialize)]
struct Known {
    task: String,
    settings: JoinSettings,
    ledger: LedgerState,
    gaps: Gaps,
}

/// The first line; another layout gets another.
const MAGIC: &[u8] = b"netaware join 2\n";
/// More than the largest join has; a longer file is none of ours.
const LONGEST: u64 = 4 << 30;

/// Where the joins of a state folder are.
fn folder(state: &Path) -> PathBuf {
    state.join("joins")
}

/// Takes what lies there: of joins that are wanted as they were, what they held. All files are gone
/// after that.
pub(crate) fn take(state: &Path, setups: &BTreeMap<String, Setup>) -> Parked {
    let mut parked = Parked::default();
    let Ok(files) = fs::read_dir(folder(state)) else { return parked };
    for path in files.filter_map(|file| Some(file.ok()?.path())) {
        let bytes = read(&path);
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!("{}: {error}; what it holds is not used", path.display());
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(setup) = setups.get(name) else { continue };
        if let Some((join, gaps)) = bytes.and_then(|bytes| resume(&bytes, setup)) {
            parked.joins.insert(name.to_owned(), join);
            // Each file has those of all.
            parked.gaps = gaps;
        } else {
            tracing::warn!("{}: not what a join with these settings left", path.display());
        }
    }
    parked
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let is_ours = fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LONGEST);
    is_ours.then(|| fs::read(path).ok()).flatten()
}

fn resume(bytes: &[u8], setup: &Setup) -> Option<(Join, Gaps)> {
    let (sealed, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(sealed) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let (rest, length) = sealed.strip_prefix(MAGIC)?.split_last_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (words, known) = rest.split_at_checked(rest.len().checked_sub(length)?)?;
    let Known { task, settings, ledger, gaps } = serde_json::from_slice(known).ok()?;
    if task != setup.task || settings != setup.settings {
        return None;
    }
    Some((Join::restore(settings, words, ledger)?, gaps))
}

/// Leaves what a join holds.
pub(crate) fn put(state: &Path, name: &str, join: &mut Join, setup: &Setup, gaps: Gaps) -> io::Result<()> {
    let folder = folder(state);
    netaware_private::make_folder(&folder)?;
    let (path, beside) = (folder.join(name), folder.join(format!(".{name}")));
    let written = write(&beside, join, setup, gaps).and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        drop(fs::remove_file(&beside));
    }
    written
}

fn write(path: &Path, join: &mut Join, setup: &Setup, gaps: Gaps) -> io::Result<()> {
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    let mut seal =
        Seal { file: BufWriter::with_capacity(1 << 20, file), sum: crc32fast::Hasher::new(), failed: None };
    seal.add(MAGIC);
    let ledger = join.save(&mut |bytes| seal.add(bytes));
    let known = Known { task: setup.task.clone(), settings: setup.settings.clone(), ledger, gaps };
    let known = serde_json::to_vec(&known)?;
    seal.add(&known);
    seal.add(&(known.len() as u64).to_le_bytes());
    seal.end()
}

/// A file whose end tells whether it is whole.
struct Seal {
    file: BufWriter<File>,
    sum: crc32fast::Hasher,
    failed: Option<io::Error>,
}

impl Seal {
    fn add(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        if self.failed.is_none() {
            self.failed = self.file.write_all(bytes).err();
        }
    }

    fn end(self) -> io::Result<()> {
        let Self { mut file, sum, failed } = self;
        if let Some(error) = failed {
            return Err(error);
        }
        file.write_all(&sum.finalize().to_le_bytes())?;
        file.into_inner()?.sync_all()
    }
}

/// Takes away what was put: rows that the joins had made are nowhere, and would be told by nobody.
pub(crate) fn forget(state: &Path) {
    drop(fs::remove_dir_all(folder(state)));
}

#[cfg(test)]
mod tests {
    use netaware_passive::join::PointId;
    use netaware_record::passive::PacketSighting;
    use netaware_units::Wall;

    use super::*;

    /// Length and checksum.
    const TAIL: usize = 12;

    fn setup(task: &str) -> Setup {
        Setup { task: task.into(), settings: JoinSettings::of(["a", "b"]) }
    }

    fn put_one(state: &Path) -> Vec<u8> {
        let mut join = Join::new(setup("delay").settings).unwrap();
        let seen = PacketSighting { digest: 7, at: Wall(5), length: 100, ttl: 64, version: 4 };
        join.offer(PointId(0), &[seen; 3]);
        let mut gaps = Gaps::default();
        gaps.lacks.add("a", 2);
        gaps.lost.insert(("j".into(), "b".into(), 5));
        put(state, "j", &mut join, &setup("delay"), gaps).unwrap();
        fs::read(folder(state).join("j")).unwrap()
    }

    fn taken(state: &Path, task: &str) -> Parked {
        take(state, &[("j".to_owned(), setup(task))].into())
    }

    #[test]
    fn what_was_put_is_taken_once() {
        let state = tempfile::tempdir().unwrap();
        put_one(state.path());
        let mut parked = taken(state.path(), "delay");
        assert_eq!(parked.joins["j"].counts().held, 3);
        assert_eq!(parked.gaps.lacks.of_report("a"), 2);
        assert_eq!(parked.gaps.lost.len(), 1);
        assert!(taken(state.path(), "delay").joins.is_empty());
    }

    #[test]
    fn what_is_not_whole_or_of_another_join_is_not_used_and_goes() {
        let state = tempfile::tempdir().unwrap();
        let whole = put_one(state.path());
        assert!(taken(state.path(), "another task").joins.is_empty());
        let path = folder(state.path()).join("j");
        assert!(!path.exists());
        for at in (0..whole.len()).step_by(7) {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            fs::write(&path, &changed).unwrap();
            assert!(taken(state.path(), "delay").joins.is_empty(), "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(taken(state.path(), "delay").joins.is_empty(), "cut at {at}");
        }
        // With a checksum that fits it is for the join to say no; a packet's time may be any.
        let rows = [(MAGIC.len(), 0xff, 1), (whole.len() - TAIL - 2, b'!', 0), (whole.len() - TAIL, 0xff, 0)];
        for (at, with, accepted) in rows {
            let mut changed = whole[..whole.len() - 4].to_vec();
            changed[at..at + 2].fill(with);
            let sum = crc32fast::hash(&changed);
            changed.extend(sum.to_le_bytes());
            fs::write(&path, &changed).unwrap();
            let parked = taken(state.path(), "delay");
            assert_eq!(parked.joins.len(), accepted, "{at}");
            assert!(parked.joins.values().all(|join| join.counts().held == 3), "{at}");
        }
        fs::create_dir_all(&path).unwrap();
        assert!(taken(state.path(), "delay").joins.is_empty(), "a folder");
    }
}
