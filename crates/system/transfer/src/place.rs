//! The folder into which a receiver puts what comes.
//!
//! Everything is reached from one descriptor of that folder, part by part and never through a
//! symbolic link, so that neither names nor links lead out of it. A file comes under another name
//! beside its place, locked against a second transfer of the same one, and takes its place by a
//! rename once its digest is right.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use netaware_wire::transfer::{Digest, Done, EntryPath, Have, Mode, RefusalCode, Stamp};
use rustix::fs::{
    Access, AtFlags, CWD, FileType, FlockOperation, Mode as Bits, OFlags, RenameFlags, Timespec, Timestamps,
    accessat, fchmod, fdatasync, flock, futimens, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::receiving::Announced;

/// Why an entry does not come to be here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: RefusalCode,
    pub(crate) why: String,
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        Self { code: RefusalCode::System, why: io::Error::from(error).to_string() }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self { code: RefusalCode::System, why: error.to_string() }
    }
}

fn refused<T>(code: RefusalCode, why: &str) -> Result<T, Refusal> {
    Err(Refusal { code, why: why.to_owned() })
}

/// What may be done with a file that stands where another one is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the other one does not come.
    Keep,
    /// The other one takes its place once it is complete.
    Overwrite,
}

/// The folder.
#[derive(Debug)]
pub(crate) struct Place {
    root: OwnedFd,
    existing: Existing,
}

/// A file on its way.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) file: Announced,
    folder: OwnedFd,
    /// Open and locked from the first look on, where there was one, else from the first byte.
    partial: Option<File>,
    /// Of what is there, and from the first byte on of what comes.
    hasher: blake3::Hasher,
    /// What was found; what was there already in its place has no partial file.
    have: Option<Have>,
    /// What was taken from an earlier transfer.
    pub(crate) kept: u64,
    unreported: bool,
}

impl Place {
    /// # Errors
    /// It is no folder, or nothing can be put there.
    pub(crate) fn new(path: &Path, existing: Existing) -> io::Result<Self> {
        let root = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Bits::empty())?;
        // Told before anybody sends, as far as it can be told: the disk may fill, and folders in it
        // may be others'.
        accessat(&root, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
        Ok(Self { root, existing })
    }

    /// Makes a folder, unless there is one.
    pub(crate) fn make_folder(&self, path: &EntryPath) -> Result<Done, Refusal> {
        let parent = self.parent(path)?;
        match mkdirat(&parent, path.name(), Bits::RWXU) {
            Ok(()) => Ok(Done::Written),
            Err(Errno::EXIST) => {
                enter(parent.as_fd(), path.name())?;
                Ok(Done::Present)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a folder its permissions and its time.
    pub(crate) fn seal(&self, path: &EntryPath, mode: Mode, mtime: Stamp) -> Result<(), Refusal> {
        let folder = enter(self.parent(path)?.as_fd(), path.name())?;
        dress(folder.as_fd(), mode, mtime)?;
        Ok(())
    }

    /// Looks for what is there of a file; `busy` is called now and then meanwhile.
    /// [`RefusalCode::Busy`] may pass.
    ///
    /// # Errors
    /// The file cannot come.
    pub(crate) fn examine(
        &self,
        file: Announced,
        busy: &mut dyn FnMut() -> bool,
    ) -> Result<Incoming, Refusal> {
        let folder = self.parent(&file.path)?;
        let there = match statat(&folder, file.path.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some((FileType::from_raw_mode(stat.st_mode), stat.st_size as u64)),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        let mut incoming = Incoming {
            file,
            folder,
            partial: None,
            hasher: blake3::Hasher::new(),
            have: None,
            kept: 0,
            unreported: false,
        };
        match there {
            Some((kind, _)) if kind != FileType::RegularFile => {
                return refused(RefusalCode::Exists, "something that is no file stands there");
            }
            Some((_, bytes)) if self.existing == Existing::Keep && bytes != incoming.file.bytes => {
                return refused(RefusalCode::Exists, DIFFERENT);
            }
            Some((_, 0)) if incoming.file.bytes == 0 && self.existing == Existing::Keep => {
                incoming.unreported = true;
                return Ok(incoming);
            }
            Some(_) if self.existing == Existing::Keep => {
                incoming.look_at_complete(busy)?;
                return Ok(incoming);
            }
            _ => {}
        }
        if !incoming.look_at_partial(busy)? && there.is_some_and(|(_, bytes)| bytes == incoming.file.bytes) {
            incoming.partial = None;
            incoming.look_at_complete(busy)?;
            if let Some(have) = &mut incoming.have {
                have.complete = false;
            }
        }
        Ok(incoming)
    }

    /// Everything that was put here is on the disk afterwards.
    pub(crate) fn settle(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.root)?)
    }

    /// The folder in which an entry is.
    fn parent(&self, path: &EntryPath) -> Result<OwnedFd, Refusal> {
        let mut folder = self.root.try_clone()?;
        for name in path.folders() {
            folder = enter(folder.as_fd(), name)?;
        }
        Ok(folder)
    }

    pub(crate) fn existing(&self) -> Existing {
        self.existing
    }
}

impl Incoming {
    /// As the sender is told.
    pub(crate) fn have(&self) -> Option<Have> {
        self.have
    }

    /// What was found stands in the file's place.
    fn look_at_complete(&mut self, busy: &mut dyn FnMut() -> bool) -> Result<(), Refusal> {
        let mut found = self.open_complete()?;
        let bytes = hash(&mut found, &mut self.hasher, busy)?;
        if bytes > 0 {
            let digest = Digest(self.hasher.finalize().into());
            self.have = Some(Have { bytes, digest, complete: true });
        }
        Ok(())
    }

    fn open_complete(&self) -> Result<File, Refusal> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.folder, self.file.path.name(), flags, Bits::empty())?.into())
    }

    /// Whether there was something of an earlier transfer.
    fn look_at_partial(&mut self, busy: &mut dyn FnMut() -> bool) -> Result<bool, Refusal> {
        let Some(mut partial) = self.open_partial(OFlags::empty())? else { return Ok(false) };
        let length = partial.metadata()?.len();
        if length == 0 || length > self.file.bytes {
            self.partial = Some(partial);
            return Ok(false);
        }
        let bytes = hash(&mut partial, &mut self.hasher, busy)?;
        self.partial = Some(partial);
        let digest = Digest(self.hasher.finalize().into());
        self.have = Some(Have { bytes, digest, complete: false });
        Ok(true)
    }

    fn open_partial(&self, more: OFlags) -> Result<Option<File>, Refusal> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
        let opened = openat(&self.folder, self.file.path.partial_name(), flags, Bits::RUSR | Bits::WUSR);
        let partial = match opened {
            Ok(opened) => File::from(opened),
            Err(Errno::NOENT) if !more.contains(OFlags::CREATE) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // One that has another name, too, may be somebody's.
        let about = partial.metadata()?;
        if !about.is_file() || about.nlink() > 1 {
            return refused(RefusalCode::Exists, "something else stands where it would come");
        }
        match flock(&partial, FlockOperation::NonBlockingLockExclusive) {
            // Between the opening and the lock it may have taken its place.
            Ok(()) if self.is_still_partial(&partial)? => Ok(Some(partial)),
            Ok(()) | Err(Errno::WOULDBLOCK) => {
                refused(RefusalCode::Busy, "another transfer brings it just now")
            }
            Err(error) => Err(error.into()),
        }
    }

    fn is_still_partial(&self, partial: &File) -> Result<bool, Refusal> {
        let about = partial.metadata()?;
        match statat(&self.folder, self.file.path.partial_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(stat.st_ino == about.ino() && stat.st_dev == about.dev()),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Bytes come from there on: from the start, or behind what was found.
    pub(crate) fn begin(&mut self, from: u64) -> Result<(), Refusal> {
        if from > 0 {
            if let Some(partial) = &mut self.partial {
                partial.seek(SeekFrom::Start(from))?;
                self.kept = from;
            }
            return Ok(());
        }
        if self.unreported {
            return Ok(());
        }
        self.hasher = blake3::Hasher::new();
        self.have = None;
        if self.partial.is_none() {
            self.partial = self.open_partial(OFlags::CREATE)?;
        }
        if let Some(partial) = &mut self.partial {
            partial.set_len(0)?;
            partial.seek(SeekFrom::Start(0))?;
        }
        Ok(())
    }

    /// The next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let Some(partial) = &mut self.partial else {
            return refused(RefusalCode::Protocol, "it is there already");
        };
        partial.write_all(bytes)?;
        self.hasher.update(bytes);
        Ok(())
    }

    /// All bytes have come: it takes its place, if they are those that were sent.
    pub(crate) fn end(self, digest: Digest, existing: Existing) -> Result<Done, Refusal> {
        let is_right = Digest(self.hasher.finalize().into()) == digest;
        let Some(partial) = &self.partial else {
            return if is_right { Ok(Done::Present) } else { refused(RefusalCode::Exists, DIFFERENT) };
        };
        let name = self.file.path.partial_name();
        if !is_right {
            unlinkat(&self.folder, &name, AtFlags::empty())?;
            return refused(RefusalCode::Digest, "what came is not what was sent; send it again");
        }
        if self.file.bytes >= SYNCED_ALONE {
            fdatasync(partial)?;
        }
        dress(partial.as_fd(), self.file.mode, self.file.mtime)?;
        let target = self.file.path.name();
        let renamed = match existing {
            Existing::Overwrite => renameat(&self.folder, &name, &self.folder, target),
            Existing::Keep => {
                match renameat_with(&self.folder, &name, &self.folder, target, RenameFlags::NOREPLACE) {
                    // A file system without that: somebody may still come in between.
                    Err(Errno::INVAL | Errno::NOSYS) => renameat(&self.folder, &name, &self.folder, target),
                    renamed => renamed,
                }
            }
        };
        match renamed {
            Ok(()) => Ok(Done::Written),
            // Another transfer has brought the same file meanwhile: the one of a sender that was
            // killed may still have had its bytes.
            Err(Errno::EXIST) if self.is_in_place(digest) => {
                unlinkat(&self.folder, &name, AtFlags::empty())?;
                Ok(Done::Present)
            }
            Err(Errno::EXIST) => refused(RefusalCode::Exists, DIFFERENT),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the file that has this one's name is a regular file with this content.
    fn is_in_place(&self, digest: Digest) -> bool {
        let mut hasher = blake3::Hasher::new();
        let hashed = self.open_complete().and_then(|mut file| hash(&mut file, &mut hasher, &mut || true));
        hashed.is_ok_and(|bytes| bytes == self.file.bytes) && Digest(hasher.finalize().into()) == digest
    }

    /// The sender leaves it. What has come stays for another time.
    pub(crate) fn give_up(self) -> Refusal {
        if self.have.is_some_and(|have| have.complete) {
            return Refusal { code: RefusalCode::Exists, why: DIFFERENT.to_owned() };
        }
        let is_empty = |partial: &File| partial.metadata().is_ok_and(|about| about.len() == 0);
        if self.partial.as_ref().is_some_and(is_empty) {
            // An empty file left behind is a blemish, no failure.
            let _ = unlinkat(&self.folder, self.file.path.partial_name(), AtFlags::empty());
        }
        Refusal { code: RefusalCode::GivenUp, why: "the sender gave it up".to_owned() }
    }
}

fn enter(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Refusal> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Bits::empty()) {
        Ok(folder) => Ok(folder),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            refused(RefusalCode::NotAFolder, "a link or a file stands where a folder has to be")
        }
        Err(error) => Err(error.into()),
    }
}

fn dress(file: BorrowedFd<'_>, mode: Mode, mtime: Stamp) -> Result<(), Errno> {
    let time = Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanos.into() };
    fchmod(file, Bits::from_raw_mode(mode.bits()))?;
    futimens(file, &Timestamps { last_access: time, last_modification: time })
}

/// Reads all of it; `busy` is called for every few megabytes and ends it by `false`.
fn hash(
    file: &mut File,
    hasher: &mut blake3::Hasher,
    busy: &mut dyn FnMut() -> bool,
) -> Result<u64, Refusal> {
    let mut buffer = vec![0; HASHED_AT_ONCE];
    let mut done = 0;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(done);
        }
        hasher.update(&buffer[..count]);
        done += count as u64;
        if !busy() {
            return refused(RefusalCode::System, "the receiver is ending");
        }
    }
}

const DIFFERENT: &str =
    "a different file of that name is there (the receiver's --overwrite would replace it)";
const HASHED_AT_ONCE: usize = 1 << 20;
/// Smaller ones are put on the disk together, at the end.
const SYNCED_ALONE: u64 = 1 << 20;

#[cfg(test)]
mod tests;
