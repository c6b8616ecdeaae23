//! Capture files as a source of frames.

use std::fs::File;
use std::path::{Path, PathBuf};

use netaware_units::{ClockSource, Span};
use netaware_wire::packet::LinkType;
use netaware_wire::pcap::{FileError, Reader};

use crate::capture::ReadError;
use crate::counts::Counts;
use crate::filter::{self, FilterError};
use crate::frame::Frame;
use crate::options::Direction;
use crate::tagged::TaggedFilter;

/// Why a file cannot be a source.
#[derive(Debug, thiserror::Error)]
pub enum FileOpenError {
    /// The system refused.
    #[error("could not open {}: {source}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// It is no capture file.
    #[error(transparent)]
    File(#[from] FileSourceError),
    /// The filter cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// Why a file cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum FileSourceError {
    /// Damage, or not a capture file.
    #[error("{} {fault}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        fault: FileError,
    },
    /// Frames of a kind that is not read here.
    #[error("{} has frames of link type {number}, which are not read here", path.display())]
    LinkType {
        /// Which file.
        path: PathBuf,
        /// As in tcpdump.org/linktypes.html.
        number: u32,
    },
    /// The filter cannot be compiled for frames of this kind.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// Reads a pcap or pcapng file as a capture is read. Time is the file's: nothing waits, and the
/// same file gives the same frames in the same order every time.
///
/// Direction is that of pcapng's flags, of cooked frames and of ipnet's; frames that do not say
/// count as received. Whether frames were merged by offloads a file does not say:
/// [`Frame::segments`] is 1.
pub struct FileSource {
    path: PathBuf,
    reader: Reader<File>,
    filter: Option<String>,
    direction: Direction,
    /// One for each link type that came up.
    programs: Vec<(LinkType, TaggedFilter)>,
    counts: Counts,
    /// What the writer lost, as far as told at the last `counts`.
    told: u64,
}

impl FileSource {
    /// Opens a file; `filter` in tcpdump's language.
    ///
    /// # Errors
    /// Why it cannot be read, or the filter not used.
    pub fn open(path: &Path, filter: Option<&str>, direction: Direction) -> Result<Self, FileOpenError> {
        let file =
            File::open(path).map_err(|source| FileOpenError::Open { path: path.to_owned(), source })?;
        let reader =
            Reader::new(file).map_err(|fault| FileSourceError::Damaged { path: path.to_owned(), fault })?;
        // A mistake in the filter is told before the first frame, though frames may be of another
        // kind.
        let mut source = Self {
            path: path.to_owned(),
            reader,
            filter: wanted(filter),
            direction,
            programs: Vec::new(),
            counts: Counts::default(),
            told: 0,
        };
        source.program(LinkType::Ethernet)?;
        Ok(source)
    }

    /// Shows the next frames, some thousand at most; 0 at the end of the file. There is nothing to
    /// be patient for.
    ///
    /// # Errors
    /// Why the file cannot be read from here on; what was shown before stands.
    pub fn read(&mut self, _patience: Span, see: &mut dyn FnMut(Frame<'_>)) -> Result<usize, ReadError> {
        let mut shown = 0;
        while shown < AT_ONCE {
            let record = match self.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(fault) => {
                    return Err(FileSourceError::Damaged { path: self.path.clone(), fault }.into());
                }
            };
            let number = record.link;
            let Some(link) = LinkType::of_number(number) else {
                return Err(FileSourceError::LinkType { path: self.path.clone(), number }.into());
            };
            let frame = Frame {
                at: record.at,
                stamped_by: ClockSource::Kernel,
                outgoing: record.outgoing.or_else(|| said_outgoing(link, record.bytes)).unwrap_or(false),
                bytes: record.bytes,
                wire_length: record.wire_length,
                link,
                segments: 1,
                interface: record.interface,
            };
            let wanted = match self.direction {
                Direction::Both => true,
                Direction::In => !frame.outgoing,
                Direction::Out => frame.outgoing,
            };
            if !wanted || !passes(&mut self.programs, self.filter.as_deref(), &frame)? {
                continue;
            }
            self.counts.seen += 1;
            self.counts.seen_bytes += u64::from(frame.wire_length);
            shown += 1;
            see(frame);
        }
        Ok(shown)
    }

    /// What was shown since the last call, and what whoever wrote the file says was lost, as far as
    /// that was read.
    pub fn counts(&mut self) -> Counts {
        let lost = self.reader.lost();
        let mut counts = std::mem::take(&mut self.counts);
        counts.lost_by_writer = lost.saturating_sub(self.told);
        counts.lost_ring = counts.lost_by_writer;
        self.told = lost;
        counts
    }

    /// Another filter from now on, `None`: everything.
    ///
    /// # Errors
    /// It cannot be used; then everything passes.
    pub fn set_filter(&mut self, filter: Option<&str>) -> Result<(), FilterError> {
        self.programs.clear();
        self.filter = wanted(filter);
        let usable = self.program(LinkType::Ethernet);
        if usable.is_err() {
            self.filter = None;
        }
        usable
    }

    fn program(&mut self, link: LinkType) -> Result<(), FilterError> {
        let Some(text) = &self.filter else { return Ok(()) };
        program(&mut self.programs, text, link).map(|_| ())
    }
}

impl std::fmt::Debug for FileSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSource").field("path", &self.path).finish_non_exhaustive()
    }
}

fn wanted(filter: Option<&str>) -> Option<String> {
    filter.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn passes(
    programs: &mut Vec<(LinkType, TaggedFilter)>,
    filter: Option<&str>,
    frame: &Frame<'_>,
) -> Result<bool, FileSourceError> {
    let Some(text) = filter else { return Ok(true) };
    Ok(program(programs, text, frame.link)?.matches(frame))
}

/// The program for this link type, made when it is first needed.
fn program<'a>(
    programs: &'a mut Vec<(LinkType, TaggedFilter)>,
    text: &str,
    link: LinkType,
) -> Result<&'a TaggedFilter, FilterError> {
    let known = programs.iter().position(|(known, _)| *known == link);
    let place = known.unwrap_or(programs.len());
    if known.is_none() {
        programs.push((link, TaggedFilter::new(filter::compile(text, link)?)?));
    }
    Ok(&programs[place].1)
}

/// Cooked frames say whether they were sent, in their packet type, and those of ipnet in their hook
/// type: 0 received, 1 sent, 2 neither.
fn said_outgoing(link: LinkType, bytes: &[u8]) -> Option<bool> {
    let kind = match link {
        LinkType::Cooked => *bytes.get(1)?,
        LinkType::CookedV2 => *bytes.get(10)?,
        LinkType::IpNet => return Some(*bytes.get(3)? == 1),
        _ => return None,
    };
    Some(kind == libc::PACKET_OUTGOING)
}

/// Frames of one `read`: reports are closed between reads.
const AT_ONCE: usize = 4096;

#[cfg(test)]
mod tests {
    use netaware_units::Wall;
    use netaware_wire::pcap::{Interface, Record, Writer};

    use super::*;

    /// An Ethernet frame of a UDP datagram to this port, in VLAN 5 if `tagged`.
    fn frame(port: u16, tagged: bool) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        if tagged {
            bytes.extend([0x81, 0, 0, 5]);
        }
        bytes.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9]);
        bytes.extend(port.to_be_bytes());
        bytes.extend([0, 8, 0, 0]);
        bytes
    }

    /// Two interfaces, Ethernet and raw; ports 53 and 80 on each, sent and received, and three
    /// lost.
    fn file(folder: &Path) -> PathBuf {
        let path = folder.join("test.pcapng");
        let interfaces = [("lan", LinkType::Ethernet), ("tun", LinkType::Raw)]
            .map(|(name, link)| Interface { name: name.to_owned(), link, snap: 256 });
        let mut writer = Writer::pcapng(File::create(&path).unwrap(), &interfaces).unwrap();
        for number in 0..8_i64 {
            let (raw, port, outgoing) =
                (number & 1 == 1, if number & 2 == 0 { 53 } else { 80 }, number & 4 == 4);
            let bytes = frame(port, number == 0);
            let bytes = if raw { &bytes[14..] } else { &bytes };
            let record = Record {
                at: Wall(number),
                wire_length: bytes.len() as u32,
                bytes,
                link: 0,
                interface: u32::from(raw),
                outgoing: Some(outgoing),
            };
            writer.write(&record).unwrap();
        }
        writer.lost(0, 1, 2).unwrap();
        path
    }

    fn shown(path: &Path, filter: Option<&str>, direction: Direction) -> (Vec<i64>, Counts) {
        let mut source = FileSource::open(path, filter, direction).unwrap();
        let mut times = Vec::new();
        while source.read(Span::ZERO, &mut |frame| times.push(frame.at.0)).unwrap() > 0 {}
        (times, source.counts())
    }

    #[test]
    fn a_file_is_shown_in_order_with_what_its_writer_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        let (times, counts) = shown(&path, None, Direction::Both);
        assert_eq!(times, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((counts.seen, counts.lost_by_writer, counts.health().lost()), (8, 3, 3));
        assert_eq!(shown(&path, None, Direction::Out).0, [4, 5, 6, 7]);
        assert_eq!(shown(&path, None, Direction::In).0, [0, 1, 2, 3]);
        assert_eq!(shown(&path, None, Direction::Both).0, times, "the same every time");
    }

    #[test]
    fn filters_apply_to_each_link_type_and_see_tags() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        assert_eq!(shown(&path, Some("udp dst port 80"), Direction::Both).0, [2, 3, 6, 7]);
        assert_eq!(shown(&path, Some("udp dst port 53"), Direction::Both).0, [1, 4, 5], "0 is tagged");
        let tagged = Some("port 53 or (vlan 5 and port 53)");
        let mut source = FileSource::open(&path, tagged, Direction::Both).unwrap();
        let mut times = Vec::new();
        let error = source.read(Span::ZERO, &mut |frame| times.push(frame.at.0)).unwrap_err();
        assert_eq!(
            (times, error.to_string().contains("no VLAN support for Raw IP")),
            (vec![0], true),
            "{error}"
        );
        let error = FileSource::open(&path, Some("prt 5"), Direction::Both).unwrap_err();
        assert!(matches!(error, FileOpenError::Filter(FilterError::Syntax { .. })), "{error}");
    }

    #[test]
    fn a_filter_can_be_set_when_the_file_can_no_longer_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        let mut source = FileSource::open(&path, None, Direction::Both).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(source.set_filter(Some("prt 5")).is_err());
        source.set_filter(Some("udp dst port 80")).unwrap();
        let mut times = Vec::new();
        source.read(Span::ZERO, &mut |frame| times.push(frame.at.0)).unwrap();
        assert_eq!(times, [2, 3, 6, 7]);
    }

    #[test]
    fn what_is_no_capture_or_ends_early_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "no capture at all").unwrap();
        let error = FileSource::open(&path, None, Direction::Both).unwrap_err();
        assert!(error.to_string().contains("neither pcap nor pcapng"), "{error}");
        let whole = std::fs::read(file(folder.path())).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 70]).unwrap();
        let mut source = FileSource::open(&path, None, Direction::Both).unwrap();
        let mut seen = 0;
        let error = source.read(Span::ZERO, &mut |_| seen += 1).unwrap_err();
        assert!(error.to_string().contains("ends within a packet"), "{error}");
        assert_eq!((seen, source.counts().seen), (7, 7), "what came before stands");
        let missing = FileSource::open(&folder.path().join("none"), None, Direction::Both);
        assert!(matches!(missing, Err(FileOpenError::Open { .. })));
    }
}
