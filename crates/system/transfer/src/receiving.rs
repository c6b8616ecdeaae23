//! What a receiver has to do for a message, as far as it can be said without files and sockets. The
//! sender may be hostile: what it may not say ends the transfer, and what it may say costs a
//! bounded amount of memory.

use std::collections::BTreeMap;

use netaware_wire::transfer::{Digest, EntryPath, MAX_AHEAD, Mode, SenderMessage, Stamp};

/// A file as it was announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) path: EntryPath,
    pub(crate) bytes: u64,
    pub(crate) mode: Mode,
    pub(crate) mtime: Stamp,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    Nothing,
    /// Show how much there is to come.
    Plan {
        files: u64,
        bytes: u64,
    },
    MakeFolder {
        entry: u64,
        path: EntryPath,
    },
    /// Look for what is there of it.
    Examine {
        entry: u64,
        file: Announced,
    },
    /// Take its bytes from there on.
    Begin {
        entry: u64,
        from: u64,
    },
    /// Compare, and put it in its place.
    End {
        entry: u64,
        digest: Digest,
    },
    /// Leave it.
    GiveUp {
        entry: u64,
    },
    /// Put everything on the disk.
    Finish,
}

/// How a sender broke the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("a message that cannot be said then")]
    OutOfTurn,
    #[error("more entries at once than there may be")]
    TooMany,
    #[error("more bytes than were announced")]
    TooLong,
    #[error("a file goes on where nothing is")]
    From,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Folder,
    /// Not examined yet, or examined and not begun: the receiver has so many bytes.
    File {
        bytes: u64,
        have: Option<u64>,
        examined: bool,
    },
    Seal {
        path: EntryPath,
        mode: Mode,
        mtime: Stamp,
    },
}

/// A folder whose permissions and time can be set now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sealed {
    pub(crate) entry: u64,
    pub(crate) path: EntryPath,
    pub(crate) mode: Mode,
    pub(crate) mtime: Stamp,
}

/// The file that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Coming {
    entry: u64,
    /// Still to come at most.
    left: u64,
}

/// Over one stream.
#[derive(Debug, Default)]
pub(crate) struct Receiving {
    /// Announced and not over.
    items: BTreeMap<u64, Item>,
    /// Numbers only rise.
    next: u64,
    coming: Option<Coming>,
    planned: bool,
    finished: bool,
}

impl Receiving {
    /// Takes in a message; what it asks for.
    ///
    /// # Errors
    /// It may not be said now.
    pub(crate) fn take(&mut self, message: SenderMessage) -> Result<Task, Violation> {
        if self.finished {
            return Err(Violation::OutOfTurn);
        }
        Ok(match message {
            SenderMessage::Wait => Task::Nothing,
            SenderMessage::Plan { files, bytes } if !self.planned => {
                self.planned = true;
                Task::Plan { files, bytes }
            }
            SenderMessage::Directory { entry, path } => {
                self.announce(entry, Item::Folder)?;
                Task::MakeFolder { entry, path }
            }
            SenderMessage::File { entry, path, bytes, mode, mtime } => {
                self.announce(entry, Item::File { bytes, have: None, examined: false })?;
                Task::Examine { entry, file: Announced { path, bytes, mode, mtime } }
            }
            SenderMessage::Seal { entry, path, mode, mtime } => {
                self.announce(entry, Item::Seal { path, mode, mtime })?;
                Task::Nothing
            }
            SenderMessage::Begin { entry, from } => self.begin(entry, from)?,
            SenderMessage::End { entry, digest } => {
                self.ends(entry)?;
                if self.items.contains_key(&entry) { Task::End { entry, digest } } else { Task::Nothing }
            }
            SenderMessage::GiveUp { entry } => self.give_up(entry)?,
            SenderMessage::Finish if self.items.is_empty() && self.coming.is_none() => {
                self.finished = true;
                Task::Finish
            }
            _ => return Err(Violation::OutOfTurn),
        })
    }

    /// Takes in a chunk; the file that it belongs to, unless that is over.
    ///
    /// # Errors
    /// No file has begun, or it is longer than announced.
    pub(crate) fn chunk(&mut self, length: usize) -> Result<Option<u64>, Violation> {
        let coming = self.coming.as_mut().ok_or(Violation::OutOfTurn)?;
        coming.left = coming.left.checked_sub(length as u64).ok_or(Violation::TooLong)?;
        Ok(self.items.contains_key(&coming.entry).then_some(coming.entry))
    }

    /// So much of a file is there: the sender is told.
    pub(crate) fn examined(&mut self, entry: u64, found: Option<u64>) {
        if let Some(Item::File { have, examined, .. }) = self.items.get_mut(&entry) {
            (*have, *examined) = (found, true);
        }
    }

    /// An entry is over, whichever way.
    pub(crate) fn over(&mut self, entry: u64) {
        self.items.remove(&entry);
    }

    /// The next folder whose entries are all over.
    pub(crate) fn sealed(&mut self) -> Option<Sealed> {
        let first = self.items.first_entry()?;
        if !matches!(first.get(), Item::Seal { .. }) {
            return None;
        }
        match first.remove_entry() {
            (entry, Item::Seal { path, mode, mtime }) => Some(Sealed { entry, path, mode, mtime }),
            _ => None,
        }
    }

    fn announce(&mut self, entry: u64, item: Item) -> Result<(), Violation> {
        if entry < self.next {
            return Err(Violation::OutOfTurn);
        }
        if self.items.len() >= MAX_AHEAD {
            return Err(Violation::TooMany);
        }
        self.next = entry.checked_add(1).ok_or(Violation::OutOfTurn)?;
        self.items.insert(entry, item);
        Ok(())
    }

    fn begin(&mut self, entry: u64, from: u64) -> Result<Task, Violation> {
        if self.coming.is_some() {
            return Err(Violation::OutOfTurn);
        }
        let Some(Item::File { bytes, have, examined: true }) = self.items.get(&entry) else {
            return Err(Violation::OutOfTurn);
        };
        if from != 0 && Some(from) != *have {
            return Err(Violation::From);
        }
        self.coming = Some(Coming { entry, left: bytes.saturating_sub(from) });
        Ok(Task::Begin { entry, from })
    }

    /// Of the file that comes.
    fn ends(&mut self, entry: u64) -> Result<(), Violation> {
        match self.coming.take() {
            Some(coming) if coming.entry == entry => Ok(()),
            _ => Err(Violation::OutOfTurn),
        }
    }

    /// Of the file that comes, or of one that has not begun.
    fn give_up(&mut self, entry: u64) -> Result<Task, Violation> {
        match (self.coming, self.items.get(&entry)) {
            (Some(coming), _) if coming.entry != entry => Err(Violation::OutOfTurn),
            (Some(_), None) => {
                self.coming = None;
                Ok(Task::Nothing)
            }
            (_, Some(Item::File { examined: true, .. })) => {
                self.coming = None;
                Ok(Task::GiveUp { entry })
            }
            _ => Err(Violation::OutOfTurn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> EntryPath {
        EntryPath::new(name).unwrap()
    }

    const MTIME: Stamp = Stamp { seconds: 0, nanos: 0 };

    fn file(entry: u64, bytes: u64) -> SenderMessage {
        SenderMessage::File { entry, path: path("f"), bytes, mode: 0o644.into(), mtime: MTIME }
    }

    fn end(entry: u64) -> SenderMessage {
        SenderMessage::End { entry, digest: Digest([0; 32]) }
    }

    #[test]
    fn a_file_goes_on_where_the_receiver_is_and_nowhere_else() {
        let mut receiving = Receiving::default();
        receiving.take(file(0, 10)).unwrap();
        assert_eq!(
            receiving.take(SenderMessage::Begin { entry: 0, from: 0 }),
            Err(Violation::OutOfTurn),
            "not examined"
        );
        receiving.examined(0, Some(4));
        assert_eq!(receiving.take(SenderMessage::Begin { entry: 0, from: 5 }), Err(Violation::From));
        receiving.take(SenderMessage::Begin { entry: 0, from: 4 }).unwrap();
        assert_eq!(receiving.chunk(6), Ok(Some(0)));
        assert_eq!(receiving.chunk(1), Err(Violation::TooLong));
    }

    #[test]
    fn chunks_of_a_file_that_is_over_are_dropped_until_its_end() {
        let mut receiving = Receiving::default();
        receiving.take(file(0, 10)).unwrap();
        receiving.examined(0, None);
        receiving.take(SenderMessage::Begin { entry: 0, from: 0 }).unwrap();
        receiving.over(0);
        assert_eq!(receiving.chunk(5), Ok(None));
        assert_eq!(receiving.take(SenderMessage::GiveUp { entry: 0 }), Ok(Task::Nothing));
        assert_eq!(receiving.chunk(5), Err(Violation::OutOfTurn));
        assert_eq!(receiving.take(SenderMessage::Finish), Ok(Task::Finish));
        assert_eq!(receiving.take(SenderMessage::Wait), Err(Violation::OutOfTurn));
    }

    #[test]
    fn a_folder_is_sealed_when_what_came_before_is_over() {
        let mut receiving = Receiving::default();
        receiving.take(SenderMessage::Directory { entry: 0, path: path("d") }).unwrap();
        receiving.over(0);
        receiving.take(file(1, 1)).unwrap();
        let seal = SenderMessage::Seal { entry: 2, path: path("d"), mode: 0o555.into(), mtime: MTIME };
        assert_eq!(receiving.take(seal), Ok(Task::Nothing));
        assert_eq!(receiving.sealed(), None);
        assert_eq!(receiving.take(SenderMessage::Finish), Err(Violation::OutOfTurn));
        receiving.over(1);
        assert_eq!(receiving.sealed().map(|sealed| sealed.entry), Some(2));
        assert_eq!(receiving.take(SenderMessage::Finish), Ok(Task::Finish));
    }

    #[test]
    fn a_sender_that_breaks_the_rules_is_found() {
        let mut receiving = Receiving::default();
        assert_eq!(receiving.chunk(1), Err(Violation::OutOfTurn));
        assert_eq!(receiving.take(end(0)), Err(Violation::OutOfTurn));
        assert_eq!(receiving.take(SenderMessage::GiveUp { entry: 3 }), Err(Violation::OutOfTurn));
        receiving.take(file(5, 1)).unwrap();
        assert_eq!(receiving.take(file(5, 1)), Err(Violation::OutOfTurn));
        assert_eq!(receiving.take(file(u64::MAX, 1)), Err(Violation::OutOfTurn));
        for n in 1..MAX_AHEAD as u64 {
            receiving.take(file(5 + n, 1)).unwrap();
        }
        assert_eq!(receiving.take(file(1000, 1)), Err(Violation::TooMany));
    }
}
