//! Which files a receiver compares with what is sent, and so lets the sender know their content.
//!
//! Who has no key must not find out what the owner's files hold, neither by their digests nor by
//! whether a file is skipped. So a receiver without a key compares only files that came to it since
//! it began, and only if nobody has changed them since.

use std::collections::{HashSet, VecDeque};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which files are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparing {
    /// All: the sender has proven that it knows the key.
    Everything,
    /// Those that came since the receiver began: anybody may be the sender.
    WhatCame,
}

/// Files that came; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Known {
    comparing: Comparing,
    came: Arc<Mutex<Came>>,
}

/// The newest of the files that came.
#[derive(Debug, Default)]
struct Came {
    fingerprints: HashSet<u128>,
    oldest_first: VecDeque<u128>,
}

impl Known {
    pub(super) fn new(comparing: Comparing) -> Self {
        Self { comparing, came: Arc::default() }
    }

    pub(super) fn compares_everything(&self) -> bool {
        self.comparing == Comparing::Everything
    }

    /// Returns whether this file came and is as it was then.
    pub(super) fn has(&self, about: &Metadata) -> bool {
        self.lock().fingerprints.contains(&fingerprint(about))
    }

    /// Lets a file take its place, and remembers it. Nobody is told in between that it is unknown.
    pub(super) fn noting<E>(
        &self,
        file: &File,
        take_its_place: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        if self.compares_everything() {
            return take_its_place();
        }
        let mut came = self.lock();
        take_its_place()?;
        // A file that is not remembered is not compared, which costs a repetition at most.
        if let Ok(about) = file.metadata() {
            came.add(fingerprint(&about), MOST_KNOWN);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Came> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Came {
    fn add(&mut self, fingerprint: u128, most: usize) {
        if self.fingerprints.insert(fingerprint) {
            self.oldest_first.push_back(fingerprint);
        }
        while self.oldest_first.len() > most {
            if let Some(oldest) = self.oldest_first.pop_front() {
                self.fingerprints.remove(&oldest);
            }
        }
    }
}

/// Returns what changes with any change of a file, its content included: the system sets the time
/// of its last change of status, and no user can.
fn fingerprint(about: &Metadata) -> u128 {
    let mut hasher = blake3::Hasher::new();
    for number in [about.dev(), about.ino(), about.len()] {
        hasher.update(&number.to_le_bytes());
    }
    for number in [about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec()] {
        hasher.update(&number.to_le_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    u128::from_le_bytes(bytes)
}

/// Some 12 MiB.
const MOST_KNOWN: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_end_are_not_remembered() {
        let mut came = Came::default();
        for n in [1, 2, 3, 3, 4] {
            came.add(n, 3);
        }
        assert_eq!((came.fingerprints.len(), came.oldest_first.len()), (3, 3));
        assert!(!came.fingerprints.contains(&1) && came.fingerprints.contains(&4));
    }
}
