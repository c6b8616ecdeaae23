//! Keeps batches on disk until a collector has them on its own.
//!
//! A folder of segment files, each a row of batches ([`segment`] has the layout). Batches are
//! appended to the newest; a segment goes when all in it were taken. Bounded: when there is no
//! room, be it ours or the disk's, the oldest segment is given up with what is in it, and
//! [`Buffer::given_up`] counts the batches.
//!
//! A number must never be used for two batches, or the collector would take the second for a copy
//! of the first. So nothing is sent before [`Buffer::sync`], and the newest segment stays, even
//! when it is empty, to say what comes next. A state folder that was brought back from a backup is
//! behind what the collector knows; then [`Buffer::start_anew`] takes another identity.
//!
//! After a crash, or a loss of power, the end of the newest segment may be torn: everything from
//! the first batch whose checksum does not fit is cut off. What was synced comes before it.

mod segment;

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use netaware_units::ByteCount;
use netaware_wire::Token;
use netaware_wire::lmap::MAX_BATCH;

use segment::{Entry, Segment};

/// What goes to a collector at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// IPFIX messages back to back.
    pub ipfix: Vec<u8>,
    /// JSON of a report, or nothing.
    pub report: Vec<u8>,
    /// Names of the tasks whose sightings are in it.
    pub selections: BTreeMap<String, u64>,
}

/// How much is kept, and where.
#[derive(Debug, Clone)]
pub struct BufferSettings {
    /// A folder for this alone.
    pub folder: PathBuf,
    /// At most so much in all.
    pub most: ByteCount,
}

/// Why there is no buffer.
#[derive(Debug, thiserror::Error)]
pub enum BufferError {
    /// The folder or a file in it cannot be used.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// "open", "read", "write", ...
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Another probe has it.
    #[error("{} is in use by another probe; give this one a --state of its own", .0.display())]
    InUse(PathBuf),
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

/// See the module.
#[derive(Debug)]
pub struct Buffer {
    settings: BufferSettings,
    incarnation: Token,
    /// Oldest first; the last is the one that is written to.
    segments: VecDeque<Segment>,
    /// What was not taken yet, by rising number.
    waiting: VecDeque<Entry>,
    next: u64,
    given_up: u64,
    /// Something was written since the last [`Buffer::sync`].
    unsynced: bool,
    /// Held as long as this lives.
    _lock: File,
    /// Bytes that may still be written before the disk is "full".
    #[cfg(test)]
    disk_room: Option<u64>,
}

impl Buffer {
    /// Opens what is in the folder, or begins.
    ///
    /// # Errors
    /// The folder cannot be used, or another process uses it. Damaged segments are no error: what
    /// is whole in them is kept.
    pub fn open(settings: BufferSettings) -> Result<Self, BufferError> {
        let folder = settings.folder.clone();
        netaware_private::make_folder(&folder).map_err(|source| failed("create", &folder, source))?;
        let lock = lock(&folder)?;
        let (segments, waiting) = recover(&folder)?;
        let mut buffer = Self {
            settings,
            incarnation: Token::default(),
            next: 1,
            segments,
            waiting,
            given_up: 0,
            unsynced: false,
            _lock: lock,
            #[cfg(test)]
            disk_room: None,
        };
        if let Some(last) = buffer.segments.back() {
            buffer.incarnation = last.incarnation;
            buffer.next = last.last.map_or(last.first, |sequence| sequence + 1);
            // A process that was killed may have left its last words in memory only.
            buffer.unsynced = true;
        } else {
            buffer.incarnation = random()?;
            buffer.roll()?;
        }
        Ok(buffer)
    }

    /// Who numbered these batches; new with an empty folder.
    pub fn incarnation(&self) -> Token {
        self.incarnation
    }

    /// Batches that were given up since this was opened.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Batches that were not taken yet, and their bytes.
    pub fn waiting(&self) -> (u64, ByteCount) {
        (self.waiting.len() as u64, ByteCount(self.waiting.iter().map(Entry::length).sum()))
    }

    /// The number that the next batch gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Adds a batch; makes room for it if it must. `None`: there is no room even so, or it is empty
    /// or longer than [`MAX_BATCH`], and it is given up and counted. The number is used up either
    /// way, so that the collector sees the gap.
    pub fn append(&mut self, batch: &Batch) -> Option<u64> {
        let sequence = self.next;
        self.next += 1;
        let length = batch.ipfix.len() + batch.report.len();
        let fits = length > 0 && length <= MAX_BATCH as usize;
        let stored = fits.then(|| segment::emit(sequence, batch)).filter(|bytes| self.store(bytes, sequence));
        if stored.is_none() {
            self.given_up += 1;
        }
        stored.map(|_| sequence)
    }

    fn store(&mut self, bytes: &[u8], sequence: u64) -> bool {
        let needed = bytes.len() as u64;
        if needed + segment::HEADER > self.settings.most.0 {
            return false;
        }
        let full = self
            .segments
            .back()
            .is_none_or(|last| last.last.is_some() && last.length + needed > self.segment_size());
        if full && !self.rolled() {
            return false;
        }
        while self.size() + needed > self.settings.most.0 {
            if !self.give_up_oldest() {
                return false;
            }
        }
        while !self.write(bytes, sequence) {
            // The disk is full, or broken: what is older makes room.
            if self.segments.len() < 2 || !self.give_up_oldest() {
                return false;
            }
        }
        true
    }

    fn write(&mut self, bytes: &[u8], sequence: u64) -> bool {
        #[cfg(test)]
        if let Some(room) = &mut self.disk_room {
            if *room < bytes.len() as u64 {
                return false;
            }
            *room -= bytes.len() as u64;
        }
        let Some(last) = self.segments.back_mut() else { return false };
        match last.append(bytes, sequence) {
            Ok(entry) => {
                self.waiting.push_back(entry);
                self.unsynced = true;
                true
            }
            Err(_) => false,
        }
    }

    /// A new segment, if need be in the place of the oldest.
    fn rolled(&mut self) -> bool {
        loop {
            if self.roll().is_ok() {
                return true;
            }
            if self.segments.len() < 2 || !self.give_up_oldest() {
                return false;
            }
        }
    }

    fn roll(&mut self) -> Result<(), BufferError> {
        self.sync()?;
        let number = self.segments.back().map_or(1, |last| last.number + 1);
        // The number of the batch that is being stored was counted already if there is one before
        // it.
        let first = if self.segments.is_empty() { self.next } else { self.next - 1 };
        let segment = Segment::create(&self.settings.folder, number, self.incarnation, first)?;
        self.segments.push_back(segment);
        Ok(())
    }

    /// Takes the oldest segment away with what is in it; a new one is begun if it was the only one.
    fn give_up_oldest(&mut self) -> bool {
        if self.segments.len() < 2 && self.roll().is_err() {
            return false;
        }
        let Some(oldest) = self.segments.pop_front() else { return false };
        let before = self.waiting.len();
        self.waiting.retain(|entry| entry.segment != oldest.number);
        self.given_up += (before - self.waiting.len()) as u64;
        #[cfg(test)]
        if let Some(room) = &mut self.disk_room {
            *room += oldest.length;
        }
        oldest.remove();
        true
    }

    fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.length).sum()
    }

    /// An eighth of everything, so that giving one up gives little up; never so short that files
    /// become many.
    fn segment_size(&self) -> u64 {
        (self.settings.most.0 / 8).clamp(4096, 16 << 20)
    }

    /// The next batch after this number. Bytes that changed since they were written are given up
    /// and counted.
    pub fn after(&mut self, sequence: u64) -> Option<(u64, Batch)> {
        loop {
            let place = self.waiting.partition_point(|entry| entry.sequence <= sequence);
            let entry = *self.waiting.get(place)?;
            let segment = self.segments.iter().find(|segment| segment.number == entry.segment);
            if let Some(batch) = segment.and_then(|segment| segment.read(&entry)) {
                return Some((entry.sequence, batch));
            }
            self.waiting.remove(place);
            self.given_up += 1;
        }
    }

    /// Makes sure that what was appended survives a loss of power.
    ///
    /// # Errors
    /// The disk does not take it; nothing may be sent then.
    pub fn sync(&mut self) -> Result<(), BufferError> {
        if self.unsynced
            && let Some(last) = self.segments.back()
        {
            last.sync()?;
        }
        self.unsynced = false;
        Ok(())
    }

    /// The collector has everything up to this number.
    pub fn taken(&mut self, sequence: u64) {
        while self.waiting.front().is_some_and(|entry| entry.sequence <= sequence) {
            self.waiting.pop_front();
        }
        let waiting_in = self.waiting.front().map(|entry| entry.segment);
        while self.segments.len() > 1
            && self
                .segments
                .front()
                .is_some_and(|oldest| waiting_in.is_none_or(|first| oldest.number < first))
        {
            if let Some(oldest) = self.segments.pop_front() {
                oldest.remove();
            }
        }
    }

    /// Takes another identity and numbers what waits from 1 on: for a folder that is behind what
    /// the collector knows of it.
    ///
    /// # Errors
    /// The disk does not take it; then everything is as before.
    pub fn start_anew(&mut self) -> Result<(), BufferError> {
        let incarnation = random()?;
        let batches: Vec<Entry> = self.waiting.iter().copied().collect();
        let number = self.segments.back().map_or(1, |last| last.number + 1);
        let mut next = 1;
        let mut made = Segment::prepare(&self.settings.folder, number, incarnation)?;
        let mut waiting = VecDeque::new();
        for entry in batches {
            let segment = self.segments.iter().find(|segment| segment.number == entry.segment);
            let Some(batch) = segment.and_then(|segment| segment.read(&entry)) else {
                // Its number is left out, so that the collector knows that something is missing
                // there.
                self.given_up += 1;
                next += 1;
                continue;
            };
            waiting.push_back(made.append(&segment::emit(next, &batch), next)?);
            next += 1;
        }
        made.publish(&self.settings.folder)?;
        for old in self.segments.drain(..) {
            old.remove();
        }
        self.segments.push_back(made);
        (self.incarnation, self.waiting, self.next, self.unsynced) = (incarnation, waiting, next, false);
        Ok(())
    }
}

/// What is in the folder: whole batches of the newest identity. Half-made files are removed.
fn recover(folder: &Path) -> Result<(VecDeque<Segment>, VecDeque<Entry>), BufferError> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut entries: Vec<Vec<Entry>> = Vec::new();
    for path in segment::files(folder)? {
        // Without a whole header nothing in it was ever synced, or it cannot be told whose it is.
        match Segment::open(&path)? {
            None => drop(fs::remove_file(&path)),
            Some((segment, found)) => {
                segments.push(segment);
                entries.push(found);
            }
        }
    }
    let incarnation = segments.last().map(|last| last.incarnation);
    let mut kept = VecDeque::new();
    let mut waiting = VecDeque::new();
    let mut above = 0;
    for (segment, found) in segments.into_iter().zip(entries) {
        if Some(segment.incarnation) != incarnation {
            segment.remove();
            continue;
        }
        for entry in found.into_iter().filter(|entry| entry.sequence > above) {
            waiting.push_back(entry);
        }
        above = waiting.back().map_or(above, |last: &Entry| last.sequence);
        kept.push_back(segment);
    }
    Ok((kept, waiting))
}

fn lock(folder: &Path) -> Result<File, BufferError> {
    let path = folder.join("lock");
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = opened.map_err(|source| failed("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(BufferError::InUse(folder.to_owned())),
        Err(fs::TryLockError::Error(source)) => Err(failed("lock", &path, source)),
    }
}

fn random() -> Result<Token, BufferError> {
    let mut token = Token::default();
    getrandom::fill(&mut token.0).map_err(BufferError::Random)?;
    Ok(token)
}

pub(crate) fn failed(what: &'static str, path: &Path, source: io::Error) -> BufferError {
    BufferError::File { what, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
