//! The truth as lines of JSON (NDJSON), for whoever judges a measurement afterwards.
//!
//! ```text
//! {"type":"lab",…}        first: scenario, seed, and what time zero is on this host's clocks
//! {"type":"interval",…}   each 100 ms and direction: available bandwidth, and every link
//! {"type":"packet",…}     on request: the fate of each packet, how long it waited to be taken, and how late it was handed over
//! {"type":"report",…}     last: the emulator's own error
//! ```
//!
//! Times inside are nanoseconds since time zero. The loop never writes: it hands lines to a thread
//! that does, and what that thread has no room for is counted as missing.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError};

use netaware_netmodel::truth::{LinkInterval, SCALES};
use netaware_netmodel::{Fate, Side, Truth};
use netaware_units::{BitRate, Mono, Span, Wall};
use serde::Serialize;

use crate::emulator::Subject;
use crate::{LabError, Report};

/// Where the truth goes, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruthFile {
    /// Replaced if it exists.
    pub path: PathBuf,
    /// How much.
    pub detail: TruthDetail,
}

/// How much of the truth is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TruthDetail {
    /// A line each 100 ms and direction.
    #[default]
    Intervals,
    /// The fate of each packet, too.
    Packets,
}

/// One line, as the loop hands it over.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Line {
    Interval {
        from: Side,
        start: Mono,
        length: Span,
        /// Of the path: the least of its links.
        available: BitRate,
        /// By hop, as numbered from A.
        links: Vec<LinkInterval>,
    },
    Packet {
        #[serde(flatten)]
        fate: Fate,
        late: Span,
        #[serde(flatten)]
        of: Option<Subject>,
    },
}

/// The first line.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "lab")]
pub(crate) struct Opening<'a> {
    pub(crate) version: u32,
    pub(crate) scenario: &'a str,
    pub(crate) seed: u64,
    /// Time zero on `CLOCK_MONOTONIC`.
    pub(crate) zero_mono: Mono,
    /// Time zero by this host's clock, good to some microseconds.
    pub(crate) zero_wall: Wall,
}

/// The last line.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "report")]
struct Closing<'a> {
    #[serde(flatten)]
    report: &'a Report,
}

/// The intervals that are written: one of the four scales of the model.
const SCALE: usize = 2;

/// The loop's end of the line.
pub(crate) struct TruthTap {
    lines: SyncSender<Line>,
    detail: TruthDetail,
    told: u64,
}

impl TruthTap {
    pub(crate) fn new(lines: SyncSender<Line>, detail: TruthDetail) -> Self {
        Self { lines, detail, told: 0 }
    }

    /// Tells a fate if that is wanted; false if it went missing.
    pub(crate) fn fate(&mut self, fate: &Fate, late: Span, of: Option<Subject>) -> bool {
        self.detail == TruthDetail::Intervals || self.hand_over(Line::Packet { fate: *fate, late, of })
    }

    /// Tells the intervals that were closed since the last call; the number of lines that went
    /// missing.
    pub(crate) fn intervals(&mut self, truth: &Truth) -> u64 {
        let closed = truth.link(Side::A, 0).map_or(0, |link| link.closed(SCALE));
        let fresh = std::mem::replace(&mut self.told, closed);
        let lines = (fresh..closed).flat_map(|number| [Side::A, Side::B].map(|from| (from, number)));
        lines
            .filter_map(|(from, number)| interval(truth, from, number))
            .map(|l| !self.hand_over(l))
            .filter(|m| *m)
            .count() as u64
    }

    fn hand_over(&self, line: Line) -> bool {
        !matches!(self.lines.try_send(line), Err(TrySendError::Full(_)))
    }
}

fn interval(truth: &Truth, from: Side, number: u64) -> Option<Line> {
    let hops = (0..).map_while(|hop| truth.link(from, hop));
    let links: Option<Vec<LinkInterval>> = hops
        .map(|link| {
            let kept = link.intervals(SCALE);
            let forgotten = link.closed(SCALE) - kept.len() as u64;
            kept.get(usize::try_from(number.checked_sub(forgotten)?).ok()?).copied()
        })
        .collect();
    let links = links?;
    let available = links.iter().map(|link| link.available).min()?;
    Some(Line::Interval { from, start: links[0].start, length: SCALES[SCALE], available, links })
}

/// The file's end of the line.
pub(crate) struct TruthWriter {
    file: BufWriter<File>,
    path: PathBuf,
    failed: bool,
}

impl TruthWriter {
    pub(crate) fn create(path: &Path) -> Result<Self, LabError> {
        let file = File::create(path).map_err(LabError::file(path))?;
        Ok(Self { file: BufWriter::new(file), path: path.to_owned(), failed: false })
    }

    /// A full disk is said once, and then the lines are gone: the run itself goes on.
    pub(crate) fn write(&mut self, line: &impl Serialize) {
        let written = serde_json::to_writer(&mut self.file, line)
            .map_err(io::Error::from)
            .and_then(|()| self.file.write_all(b"\n"));
        self.complain(written);
    }

    pub(crate) fn flush(&mut self) {
        let flushed = self.file.flush();
        self.complain(flushed);
    }

    pub(crate) fn close(mut self, report: &Report) {
        self.write(&Closing { report });
        self.flush();
    }

    fn complain(&mut self, result: io::Result<()>) {
        if let (Err(error), false) = (result, self.failed) {
            self.failed = true;
            let path = self.path.display();
            // Unlike `eprintln!` this is no panic when whoever reads stderr has gone.
            let _ =
                writeln!(io::stderr(), "warning: the truth is not complete: could not write {path}: {error}");
        }
    }
}
