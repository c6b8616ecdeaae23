//! What is known of each lab on this host, kept below `/run/netaware-lab` for whoever comes later:
//! `down` after a crash, `list`, `exec`.
//!
//! ```text
//! /run/netaware-lab/PREFIX/lab.json       who holds it, what was made, how it is marked
//! /run/netaware-lab/PREFIX/report.json    the emulator's own error, rewritten each second
//! /run/netaware-lab/PREFIX.report.json    the last report of a lab that ended
//! ```
//!
//! The folder is the lock: it is made before anything else is touched and removed after everything
//! else is gone. All files are replaced as a whole, so a reader never sees half of one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use netaware_units::Wall;
use serde::{Deserialize, Serialize};

use crate::process::ProcessId;
use crate::{LabError, Report};

/// One lab, as its holder wrote it down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabState {
    /// In front of the names of its namespaces.
    pub prefix: String,
    /// Written into its namespaces and files; who bears another mark is not ours.
    pub mark: String,
    /// Whether it was finished.
    pub phase: Phase,
    /// Who runs the emulator.
    pub holder: ProcessId,
    /// How it is to be ended.
    pub holding: Holding,
    /// Name or file of the scenario.
    pub scenario: String,
    /// Its one line.
    pub about: String,
    /// Of the model's randomness.
    pub seed: u64,
    /// How many hops the path has.
    pub hops: usize,
    /// Of the hosts' devices, A and B, bytes.
    pub mtu: [u32; 2],
    /// The core that is for its emulator, counted from 0.
    #[serde(default)]
    pub core: Option<usize>,
    /// When it was brought up, by this host's clock.
    pub since: Wall,
}

/// How far the making got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A namespace may be there that does not bear the mark yet.
    Making,
    /// Everything is there and marked.
    Up,
}

/// What the holder is, which decides whether `lab down` may end it, and whether what it left
/// behind when it was killed stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holding {
    /// A program that made the lab for itself, such as a test: `lab down` leaves a living one
    /// alone.
    #[default]
    Library,
    /// The command `netaware lab up`: ends, and takes its lab along, when told by SIGTERM.
    Command,
    /// The command `netaware lab run`: ends in the same way, and its lab is for its programs alone.
    Run,
}

impl Holding {
    /// Whether a person may still be looking at a lab whose holder was killed.
    pub(crate) fn stays_behind(self) -> bool {
        match self {
            Self::Library | Self::Run => false,
            Self::Command => true,
        }
    }

    /// Whether a living holder may be told to end by others.
    pub(crate) fn ends_when_told(self) -> bool {
        match self {
            Self::Library => false,
            Self::Command | Self::Run => true,
        }
    }
}

const ROOT: &str = "/run/netaware-lab";
const STATE: &str = "lab.json";
const REPORT: &str = "report.json";
const LONGEST_PREFIX: usize = 32;

/// A prefix that is safe in names of files and namespaces.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), LabError> {
    let harmless = prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let fits = (1..=LONGEST_PREFIX).contains(&prefix.len());
    if harmless && fits && !prefix.starts_with('-') {
        return Ok(());
    }
    Err(LabError::BadPrefix(prefix.to_owned()))
}

fn folder(prefix: &str) -> PathBuf {
    Path::new(ROOT).join(prefix)
}

fn farewell(prefix: &str) -> PathBuf {
    Path::new(ROOT).join(format!("{prefix}.report.json"))
}

/// Takes the prefix; only one can.
pub(crate) fn claim(prefix: &str) -> Result<(), LabError> {
    fs::create_dir_all(ROOT).map_err(LabError::file(ROOT))?;
    let folder = folder(prefix);
    match fs::create_dir(&folder) {
        Ok(()) => {
            let _ = fs::remove_file(farewell(prefix));
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(LabError::AlreadyThere { prefix: prefix.to_owned() })
        }
        Err(source) => Err(LabError::File { path: folder, source }),
    }
}

/// Gives the prefix back. Nothing there is no error.
pub(crate) fn unclaim(prefix: &str) -> Result<(), LabError> {
    let folder = folder(prefix);
    for name in [STATE, REPORT] {
        let _ = fs::remove_file(folder.join(name));
        let _ = fs::remove_file(folder.join(name).with_extension("new"));
    }
    match fs::remove_dir(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LabError::File { path: folder, source: error })
        }
        _ => Ok(()),
    }
}

/// Whether somebody has the prefix, even if nothing is written down yet.
pub(crate) fn is_claimed(prefix: &str) -> bool {
    folder(prefix).exists()
}

/// Writes a file as a whole.
fn replace<T: Serialize>(path: &Path, value: &T) -> Result<(), LabError> {
    let new = path.with_extension("new");
    let text = serde_json::to_vec_pretty(value).map_err(io::Error::from).map_err(LabError::file(path))?;
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).map_err(LabError::file(path))
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

impl LabState {
    pub(crate) fn write(&self) -> Result<(), LabError> {
        replace(&folder(&self.prefix).join(STATE), self)
    }

    /// The lab of this prefix, up or left behind.
    pub fn read(prefix: &str) -> Option<Self> {
        check_prefix(prefix).ok()?;
        read(&folder(prefix).join(STATE)).filter(|state: &Self| state.prefix == prefix)
    }

    /// All labs of this host, by prefix.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = prefixes().iter().filter_map(|prefix| Self::read(prefix)).collect();
        all.sort_by(|a, b| a.prefix.cmp(&b.prefix));
        all
    }

    /// Whether its emulator runs.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Up && self.holder.lives()
    }

    /// What its emulator said of itself, at most a second ago.
    pub fn report(&self) -> Option<Report> {
        read(&folder(&self.prefix).join(REPORT))
    }
}

/// Everything that is claimed, also what was never written down.
pub(crate) fn prefixes() -> Vec<String> {
    let entries = fs::read_dir(ROOT).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

pub(crate) fn write_report(prefix: &str, report: &Report) -> Result<(), LabError> {
    replace(&folder(prefix).join(REPORT), report)
}

/// Leaves the last report where it outlives the lab.
pub(crate) fn write_farewell(prefix: &str, report: &Report) -> Result<(), LabError> {
    replace(&farewell(prefix), report)
}

/// The last report of a lab that ended, once.
pub(crate) fn take_farewell(prefix: &str) -> Option<Report> {
    let path = farewell(prefix);
    let report = read(&path);
    let _ = fs::remove_file(path);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second Ctrl-C left it behind, and each later `lab run` was refused until `lab down`.
    #[test]
    fn what_a_killed_run_left_is_no_reason_to_refuse_the_next_one() {
        let rows =
            [(Holding::Library, false, false), (Holding::Command, true, true), (Holding::Run, false, true)];
        for (holding, stays, ends) in rows {
            assert_eq!((holding.stays_behind(), holding.ends_when_told()), (stays, ends), "{holding:?}");
        }
    }

    #[test]
    fn a_prefix_cannot_leave_its_folder_nor_be_an_option() {
        for good in ["lab", "a", "Lab-2", &"x".repeat(32)] {
            assert!(check_prefix(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "-f", "a b", "ä", "a.report", &"x".repeat(33)] {
            assert!(check_prefix(bad).is_err(), "{bad}");
        }
    }
}
