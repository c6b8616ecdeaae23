//! One file of batches.
//!
//! ```text
//! header   "NAWbuf\x01\n" (8)  incarnation (16)  first number (8)  checksum of these (4)
//! batch    checksum of the rest (4)  number (8)  ipfix (4)  report (4)  selections (4)  then so many bytes of each
//! ```
//!
//! Numbers are big-endian, checksums CRC-32 (IEEE): they recognise torn writes and rot, not malice;
//! the folder is ours alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use netaware_wire::Token;
use netaware_wire::lmap::MAX_BATCH;

use super::{Batch, BufferError, failed};

/// Length of a file's header.
pub(super) const HEADER: u64 = 36;
/// Length of what stands before a batch.
const HEAD: usize = 24;
const MAGIC: &[u8; 8] = b"NAWbuf\x01\n";
/// Names of 128 tasks fit in it.
const MAX_SELECTIONS: u32 = 16 * 1024;

/// Where a batch lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) sequence: u64,
    pub(super) segment: u64,
    offset: u64,
    ipfix: u32,
    report: u32,
    selections: u32,
}

impl Entry {
    /// Bytes on the disk.
    pub(super) fn length(&self) -> u64 {
        HEAD as u64 + u64::from(self.ipfix) + u64::from(self.report) + u64::from(self.selections)
    }
}

/// A file that is open.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) incarnation: Token,
    /// The number that its first batch has or gets.
    pub(super) first: u64,
    /// That of the last in it.
    pub(super) last: Option<u64>,
    pub(super) length: u64,
    path: PathBuf,
    file: File,
}

impl Segment {
    /// A new one, on the disk when this returns.
    pub(super) fn create(
        folder: &Path,
        number: u64,
        incarnation: Token,
        first: u64,
    ) -> Result<Self, BufferError> {
        let path = folder.join(file_name(number));
        let made = Self::write_header(&path, number, incarnation, first).and_then(|made| {
            made.file.sync_all()?;
            sync_folder(folder)?;
            Ok(made)
        });
        made.map_err(|source| {
            // Half a header would be taken for a torn one later; it is gone sooner like this.
            drop(fs::remove_file(&path));
            failed("write", &path, source)
        })
    }

    /// A new one under a name that nobody looks at until it is published.
    pub(super) fn prepare(folder: &Path, number: u64, incarnation: Token) -> Result<Self, BufferError> {
        let path = folder.join(format!("{}.part", file_name(number)));
        Self::write_header(&path, number, incarnation, 1).map_err(|source| failed("write", &path, source))
    }

    /// Gives a prepared one its name.
    pub(super) fn publish(&mut self, folder: &Path) -> Result<(), BufferError> {
        let path = folder.join(file_name(self.number));
        let published = self.file.sync_all().and_then(|()| fs::rename(&self.path, &path));
        published.and_then(|()| sync_folder(folder)).map_err(|source| failed("write", &path, source))?;
        self.path = path;
        Ok(())
    }

    fn write_header(path: &Path, number: u64, incarnation: Token, first: u64) -> io::Result<Self> {
        let file =
            OpenOptions::new().create(true).truncate(true).read(true).write(true).mode(0o600).open(path)?;
        let mut header = Vec::with_capacity(HEADER as usize);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&incarnation.0);
        header.extend_from_slice(&first.to_be_bytes());
        let checksum = crc32fast::hash(&header);
        header.extend_from_slice(&checksum.to_be_bytes());
        file.write_all_at(&header, 0)?;
        Ok(Self { number, incarnation, first, last: None, length: HEADER, path: path.to_owned(), file })
    }

    /// Opens one and finds what is whole in it; the rest is cut off. `None`: the header is not
    /// whole.
    pub(super) fn open(path: &Path) -> Result<Option<(Self, Vec<Entry>)>, BufferError> {
        netaware_private::narrow(path);
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let mut file = opened.map_err(|source| failed("open", path, source))?;
        let on_disk = file.metadata().map_err(|source| failed("read", path, source))?.len();
        let mut header = [0; HEADER as usize];
        let (Ok(()), Some(number)) = (file.read_exact(&mut header), number_of(path)) else { return Ok(None) };
        let (fields, checksum) = header.split_at(32);
        if &fields[..8] != MAGIC || crc32fast::hash(fields).to_be_bytes() != *checksum {
            return Ok(None);
        }
        let mut incarnation = Token::default();
        incarnation.0.copy_from_slice(&fields[8..24]);
        let first = be64(&fields[24..]);
        let path = path.to_owned();
        let mut segment = Self { number, incarnation, first, last: None, length: HEADER, path, file };
        let entries = segment.scan(on_disk);
        if segment.length < on_disk {
            let cut = segment.file.set_len(segment.length);
            cut.map_err(|source| failed("write", &segment.path, source))?;
        }
        Ok(Some((segment, entries)))
    }

    fn scan(&mut self, on_disk: u64) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some(entry) = self.entry_at(self.length, on_disk) {
            let rises = entry.sequence >= self.first && self.last.is_none_or(|last| entry.sequence > last);
            if !rises || self.read(&entry).is_none() {
                break;
            }
            self.length += entry.length();
            self.last = Some(entry.sequence);
            entries.push(entry);
        }
        entries
    }

    fn entry_at(&self, offset: u64, on_disk: u64) -> Option<Entry> {
        let mut head = [0; HEAD];
        self.file.read_exact_at(&mut head, offset).ok()?;
        let entry = Entry {
            sequence: be64(&head[4..12]),
            segment: self.number,
            offset,
            ipfix: be32(&head[12..16]),
            report: be32(&head[16..20]),
            selections: be32(&head[20..24]),
        };
        let bounded = u64::from(entry.ipfix) + u64::from(entry.report) <= u64::from(MAX_BATCH)
            && entry.selections <= MAX_SELECTIONS;
        (bounded && offset + entry.length() <= on_disk).then_some(entry)
    }

    /// The batch, if it is still what was written.
    pub(super) fn read(&self, entry: &Entry) -> Option<Batch> {
        let mut bytes = vec![0; entry.length() as usize];
        self.file.read_exact_at(&mut bytes, entry.offset).ok()?;
        let (checksum, rest) = bytes.split_at(4);
        if crc32fast::hash(rest).to_be_bytes() != *checksum || be64(&rest[..8]) != entry.sequence {
            return None;
        }
        let body = &rest[HEAD - 4..];
        let (ipfix, body) = body.split_at(entry.ipfix as usize);
        let (report, selections) = body.split_at(entry.report as usize);
        let selections = serde_json::from_slice(selections).ok()?;
        Some(Batch { ipfix: ipfix.to_vec(), report: report.to_vec(), selections })
    }

    /// Adds the bytes of [`emit`]. Where that fails, what was written of it is cut off again.
    pub(super) fn append(&mut self, bytes: &[u8], sequence: u64) -> Result<Entry, BufferError> {
        if let Err(source) = self.file.write_all_at(bytes, self.length) {
            // Should this fail as well, the next batch overwrites it, or its checksum tells.
            drop(self.file.set_len(self.length));
            return Err(failed("write", &self.path, source));
        }
        let entry = Entry {
            sequence,
            segment: self.number,
            offset: self.length,
            ipfix: be32(&bytes[12..16]),
            report: be32(&bytes[16..20]),
            selections: be32(&bytes[20..24]),
        };
        self.length += bytes.len() as u64;
        self.last = Some(sequence);
        Ok(entry)
    }

    pub(super) fn sync(&self) -> Result<(), BufferError> {
        self.file.sync_data().map_err(|source| failed("write", &self.path, source))
    }

    /// Deletes the file. One that stays behind is removed or taken up at the next start; its
    /// numbers are known by then.
    pub(super) fn remove(self) {
        drop(fs::remove_file(&self.path));
    }
}

/// A batch as it lies on the disk.
pub(super) fn emit(sequence: u64, batch: &Batch) -> Vec<u8> {
    let selections = serde_json::to_vec(&batch.selections).unwrap_or_else(|_| b"{}".to_vec());
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&sequence.to_be_bytes());
    for part in [&batch.ipfix, &batch.report, &selections] {
        bytes.extend_from_slice(&(part.len() as u32).to_be_bytes());
    }
    for part in [&batch.ipfix, &batch.report, &selections] {
        bytes.extend_from_slice(part);
    }
    let checksum = crc32fast::hash(&bytes[4..]);
    bytes[..4].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Segments of a folder, oldest first; what was never published goes.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, BufferError> {
    let listed = fs::read_dir(folder).map_err(|source| failed("read", folder, source))?;
    let mut paths: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    for part in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "part")) {
        drop(fs::remove_file(part));
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "batches") && number_of(path).is_some());
    paths.sort_by_key(|path| number_of(path));
    Ok(paths)
}

fn file_name(number: u64) -> String {
    format!("{number:016x}.batches")
}

fn number_of(path: &Path) -> Option<u64> {
    u64::from_str_radix(path.file_name()?.to_str()?.strip_suffix(".batches")?, 16).ok()
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn be64(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |eight| u64::from_be_bytes(*eight))
}

fn be32(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |four| u32::from_be_bytes(*four))
}
