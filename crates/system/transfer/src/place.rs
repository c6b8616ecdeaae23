//! The folder into which a receiver puts what comes.
//!
//! Everything is reached from one descriptor of that folder, part by part and never through a
//! symbolic link, so that neither names nor links lead out of it. A file comes under another name
//! beside its place, locked against a second transfer of the same one, and takes its place by a
//! rename once its digest is right.
//!
//! Permissions are the sender's only within what the owner's umask allows, and nothing that comes
//! can be written by others. What the owner had in the folder keeps its permissions.

mod folders;
mod known;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use netaware_units::Mono;
use netaware_wire::transfer::{Digest, Done, EntryPath, Have, Mode, RefusalCode, Stamp};
use rustix::fs::{
    Access, AtFlags, CWD, FileType, FlockOperation, Mode as Bits, OFlags, RenameFlags, Timespec, Timestamps,
    accessat, fchmod, fdatasync, flock, fstat, futimens, mkdirat, openat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::receiving::Announced;
use folders::Folders;
pub(crate) use known::Comparing;
use known::Known;

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
    /// The permissions that anything new may have at most.
    allowed: u32,
    known: Known,
    folders: Mutex<Folders>,
}

/// A file on its way.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) file: Announced,
    folder: OwnedFd,
    existing: Existing,
    allowed: u32,
    known: Known,
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
    pub(crate) fn new(path: &Path, existing: Existing, comparing: Comparing) -> io::Result<Self> {
        let root = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Bits::empty())?;
        // Told before anybody sends, as far as it can be told: the disk may fill, and folders in it
        // may be others'.
        accessat(&root, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
        Ok(Self {
            root,
            existing,
            allowed: allowed(umask()),
            known: Known::new(comparing),
            folders: Mutex::default(),
        })
    }

    /// Makes a folder for a transfer, unless there is one. Until it is sealed it is its owner's
    /// alone.
    pub(crate) fn make_folder(&self, path: &EntryPath, transfer: u64, now: Mono) -> Result<Done, Refusal> {
        let parent = self.parent(path)?;
        match mkdirat(&parent, path.name(), Bits::RWXU) {
            Ok(()) => {
                let made = fstat(enter(parent.as_fd(), path.name())?)?;
                let (id, mode) = ((made.st_dev, made.st_ino), made.st_mode & PERMISSIONS);
                self.folders().made(id, mode, transfer, now);
                Ok(Done::Written)
            }
            Err(Errno::EXIST) => {
                enter(parent.as_fd(), path.name())?;
                Ok(Done::Present)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a folder that a transfer made its permissions and its time. One that was there before
    /// keeps both.
    pub(crate) fn seal(
        &self,
        path: &EntryPath,
        mode: Mode,
        mtime: Stamp,
        transfer: u64,
        now: Mono,
    ) -> Result<Done, Refusal> {
        let folder = enter(self.parent(path)?.as_fd(), path.name())?;
        let about = fstat(&folder)?;
        let modes = (about.st_mode & PERMISSIONS, mode.bits() & self.allowed);
        if !self.folders().may_seal((about.st_dev, about.st_ino), modes, transfer, now) {
            return Ok(Done::Present);
        }
        dress(folder.as_fd(), modes.1, mtime)?;
        Ok(Done::Written)
    }

    /// A transfer is over.
    pub(crate) fn leave(&self, transfer: u64, now: Mono) {
        self.folders().leave(transfer, now);
    }

    fn folders(&self) -> MutexGuard<'_, Folders> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
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
            existing: self.existing,
            allowed: self.allowed,
            known: self.known.clone(),
            partial: None,
            hasher: blake3::Hasher::new(),
            have: None,
            kept: 0,
            unreported: false,
        };
        let Some((kind, bytes)) = there else {
            incoming.look_at_partial(busy)?;
            return Ok(incoming);
        };
        if kind != FileType::RegularFile {
            return refused(RefusalCode::Exists, "something that is no file stands there");
        }
        let is_as_long = bytes == incoming.file.bytes;
        match self.existing {
            Existing::Keep => {
                // Who may not compare gets the same answer whatever the length and the content.
                let Some(mut found) = incoming.open_comparable()? else {
                    return refused(RefusalCode::Exists, NOT_COMPARED);
                };
                if !is_as_long {
                    return refused(RefusalCode::Exists, DIFFERENT);
                }
                if bytes == 0 {
                    incoming.unreported = true;
                } else {
                    incoming.look_at_complete(&mut found, busy)?;
                }
            }
            Existing::Overwrite => {
                if !incoming.look_at_partial(busy)?
                    && is_as_long
                    && let Some(mut found) = incoming.open_comparable()?
                {
                    incoming.partial = None;
                    incoming.look_at_complete(&mut found, busy)?;
                    if let Some(have) = &mut incoming.have {
                        have.complete = false;
                    }
                }
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
}

impl Incoming {
    /// As the sender is told.
    pub(crate) fn have(&self) -> Option<Have> {
        self.have
    }

    /// What was found stands in the file's place.
    fn look_at_complete(&mut self, found: &mut File, busy: &mut dyn FnMut() -> bool) -> Result<(), Refusal> {
        let bytes = hash(found, &mut self.hasher, busy)?;
        if bytes > 0 {
            let digest = Digest(self.hasher.finalize().into());
            self.have = Some(Have { bytes, digest, complete: true });
        }
        Ok(())
    }

    /// Opens the file that has this one's name, if the sender may learn whether both are the same.
    fn open_comparable(&self) -> Result<Option<File>, Refusal> {
        if self.known.compares_everything() {
            return self.open_complete().map(Some);
        }
        let Ok(found) = self.open_complete() else { return Ok(None) };
        let is_known = found.metadata().is_ok_and(|about| self.known.has(&about));
        Ok(is_known.then_some(found))
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
    pub(crate) fn end(self, digest: Digest) -> Result<Done, Refusal> {
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
        dress(partial.as_fd(), self.mode(), self.file.mtime)?;
        let target = self.file.path.name();
        let replace = || renameat(&self.folder, &name, &self.folder, target);
        let renamed = self.known.noting(partial, || match self.existing {
            Existing::Overwrite => replace(),
            Existing::Keep => {
                match renameat_with(&self.folder, &name, &self.folder, target, RenameFlags::NOREPLACE) {
                    // A file system without that: somebody may still come in between.
                    Err(Errno::INVAL | Errno::NOSYS) => replace(),
                    renamed => renamed,
                }
            }
        });
        match renamed {
            Ok(()) => Ok(Done::Written),
            // Another transfer has brought the same file meanwhile: the one of a sender that was
            // killed may still have had its bytes.
            Err(Errno::EXIST) if self.is_in_place(digest) => {
                unlinkat(&self.folder, &name, AtFlags::empty())?;
                Ok(Done::Present)
            }
            Err(Errno::EXIST) if self.known.compares_everything() => refused(RefusalCode::Exists, DIFFERENT),
            Err(Errno::EXIST) => refused(RefusalCode::Exists, NOT_COMPARED),
            Err(error) => Err(error.into()),
        }
    }

    /// The permissions of the file: of one that it replaces, or those that were sent, as far as the
    /// owner's umask allows them.
    fn mode(&self) -> u32 {
        let replaced = match self.existing {
            Existing::Keep => None,
            Existing::Overwrite => statat(&self.folder, self.file.path.name(), AtFlags::SYMLINK_NOFOLLOW)
                .ok()
                .filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile),
        };
        replaced.map_or(self.file.mode.bits() & self.allowed, |stat| stat.st_mode & PERMISSIONS)
    }

    /// Whether the file that has this one's name is a regular file with this content. It is no
    /// where the sender may not learn that.
    fn is_in_place(&self, digest: Digest) -> bool {
        let Ok(Some(mut found)) = self.open_comparable() else { return false };
        let mut hasher = blake3::Hasher::new();
        let hashed = hash(&mut found, &mut hasher, &mut || true);
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

/// Returns the permissions that something new may have: what the owner's umask leaves, without
/// writing by the group and by others in any case, since a sender is none of them.
fn allowed(umask: u32) -> u32 {
    PERMISSIONS & !umask & !0o022
}

/// Returns the umask of this process. If the system does not tell it, all but the owner's
/// permissions are taken away.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    parse_umask(&status).unwrap_or(0o077)
}

/// Reads `Umask: 0022` (proc_pid_status(5)). The system call would change it for a moment.
fn parse_umask(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok().filter(|umask| *umask <= PERMISSIONS)
}

fn dress(file: BorrowedFd<'_>, mode: u32, mtime: Stamp) -> Result<(), Errno> {
    let time = Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanos.into() };
    fchmod(file, Bits::from_raw_mode(mode))?;
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
/// Said of any file that is there, equal or not.
const NOT_COMPARED: &str = "a file of that name is there, and a receiver without a key does not compare it (its \
                            --overwrite would replace it)";
/// Without set-user, set-group and sticky bits.
const PERMISSIONS: u32 = 0o777;
const HASHED_AT_ONCE: usize = 1 << 20;
/// Smaller ones are put on the disk together, at the end.
const SYNCED_ALONE: u64 = 1 << 20;

#[cfg(test)]
mod tests;
