//! Which folders a sender may give permissions and a time: those that a transfer made, as long as
//! nobody else has changed their permissions, and not for ever.
//!
//! A transfer that broke off goes on over another stream, which does not make its folders again.
//! So what a transfer made is remembered for a while after its end. The owner's own folders are
//! never in here.

use std::collections::{BTreeMap, BTreeSet};

use netaware_units::{Mono, Span};

/// A folder on this host: its device and its number there.
pub(super) type Id = (u64, u64);

/// The folders that were made and are not sealed.
#[derive(Debug, Default)]
pub(super) struct Folders(BTreeMap<Id, Made>);

#[derive(Debug)]
struct Made {
    /// Its permissions as they were set here last.
    mode: u32,
    /// Transfers that brought it and go on.
    holders: BTreeSet<u64>,
    /// How long it is remembered, once no transfer holds it.
    until: Option<Mono>,
}

impl Folders {
    /// Remembers a folder that a transfer has made, unless it has made too many others that it did
    /// not seal: these keep the permissions that they were made with.
    pub(super) fn made(&mut self, id: Id, mode: u32, transfer: u64, now: Mono) {
        self.forget(now);
        let unsealed = self.0.values().filter(|made| made.holders.contains(&transfer)).count();
        if unsealed < MOST_OF_ONE {
            self.0.insert(id, Made { mode, holders: BTreeSet::from([transfer]), until: None });
        }
    }

    /// Returns whether a transfer may give a folder the permissions `next`, which it has then.
    pub(super) fn may_seal(&mut self, id: Id, (mode, next): (u32, u32), transfer: u64, now: Mono) -> bool {
        self.forget(now);
        let Some(made) = self.0.get_mut(&id) else { return false };
        let is_ours = made.mode == mode;
        made.mode = next;
        made.holders.remove(&transfer);
        if !is_ours || made.holders.is_empty() {
            self.0.remove(&id);
        }
        is_ours
    }

    /// A transfer is over.
    pub(super) fn leave(&mut self, transfer: u64, now: Mono) {
        for made in self.0.values_mut() {
            if made.holders.remove(&transfer) && made.holders.is_empty() {
                made.until = Some(now + REMEMBERED);
            }
        }
        self.forget(now);
        let left = |(id, made): (&Id, &Made)| made.until.map(|until| (until, *id));
        let mut left: Vec<_> = self.0.iter().filter_map(left).collect();
        left.sort_unstable();
        for (_, id) in &left[..left.len().saturating_sub(MOST_LEFT)] {
            self.0.remove(id);
        }
    }

    fn forget(&mut self, now: Mono) {
        self.0.retain(|_, made| made.until.is_none_or(|until| now < until));
    }
}

/// A sender tries again for a minute, if it is not told otherwise.
const REMEMBERED: Span = Span::from_secs(120);
/// A path has at most 256 names, and 64 entries are announced ahead of what is done.
const MOST_OF_ONE: usize = 512;
/// Folders of transfers that are over.
const MOST_LEFT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Mono {
        Mono(0) + Span::from_secs(seconds)
    }

    #[test]
    fn the_owners_folders_are_never_sealed_and_those_of_a_transfer_once() {
        let mut folders = Folders::default();
        assert!(!folders.may_seal((1, 1), (0o700, 0o755), 7, at(0)), "the owner's");
        folders.made((1, 2), 0o700, 7, at(0));
        assert!(folders.may_seal((1, 2), (0o700, 0o755), 7, at(1)));
        assert!(!folders.may_seal((1, 2), (0o755, 0o500), 7, at(2)));
    }

    #[test]
    fn a_folder_that_the_owner_has_taken_over_is_not_sealed() {
        let mut folders = Folders::default();
        folders.made((1, 2), 0o700, 7, at(0));
        assert!(!folders.may_seal((1, 2), (0o750, 0o755), 7, at(1)));
        assert!(!folders.may_seal((1, 2), (0o755, 0o755), 7, at(2)), "it is the owner's from then on");
    }

    #[test]
    fn a_transfer_that_goes_on_over_another_stream_seals_its_folders_and_a_late_one_does_not() {
        let mut folders = Folders::default();
        folders.made((1, 2), 0o700, 7, at(0));
        folders.made((1, 3), 0o700, 7, at(0));
        // The stream that broke may not have been noticed yet.
        assert!(folders.may_seal((1, 2), (0o700, 0o755), 8, at(1)));
        folders.leave(7, at(2));
        assert!(folders.may_seal((1, 3), (0o700, 0o755), 8, at(121)));
        folders.made((1, 4), 0o700, 9, at(200));
        folders.leave(9, at(200));
        assert!(!folders.may_seal((1, 4), (0o700, 0o755), 10, at(320)));
    }

    #[test]
    fn folders_without_end_are_not_remembered() {
        let mut folders = Folders::default();
        for transfer in 0..10 {
            for n in 0..600 {
                folders.made((transfer, n), 0o700, transfer, at(0));
            }
            assert_eq!(folders.0.values().filter(|made| made.until.is_none()).count(), 512);
            folders.leave(transfer, at(transfer.cast_signed()));
        }
        assert_eq!(folders.0.len(), 4096);
        assert!(!folders.may_seal((0, 0), (0o700, 0o755), 99, at(10)), "the oldest are forgotten");
        assert!(folders.may_seal((9, 0), (0o700, 0o755), 99, at(10)));
    }
}
