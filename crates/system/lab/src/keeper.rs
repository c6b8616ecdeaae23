//! The thread beside the emulator that may block: it writes the truth and, each second, the
//! emulator's own report.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};

use netaware_io::clock;
use netaware_netmodel::{Fate, Truth};
use netaware_units::{Mono, Span};

use crate::emulator::Subject;
use crate::namespace::DEVICE;
use crate::tally::Tally;
use crate::truth::{Line, TruthTap, TruthWriter};
use crate::world::Witness;
use crate::{Report, state};

/// What the emulator has published last; written by it four times a second and at its end.
#[derive(Clone)]
pub(crate) struct Published(Arc<Mutex<Standing>>);

struct Standing {
    tally: Tally,
    raised: bool,
    core: Option<usize>,
    ended: Option<String>,
    /// `/proc/net/dev` of both hosts.
    counters: [File; 2],
    not_read: u64,
}

impl Published {
    pub(crate) fn new(tally: Tally, counters: [File; 2]) -> Self {
        let standing = Standing { tally, raised: false, core: None, ended: None, counters, not_read: 0 };
        Self(Arc::new(Mutex::new(standing)))
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the thread runs, told once.
    pub(crate) fn begun(&self, raised: bool, core: Option<usize>) {
        let mut standing = self.locked();
        (standing.raised, standing.core) = (raised, core);
    }

    /// The last word of the loop.
    pub(crate) fn ended(&self, tally: &Tally, why: Option<String>) {
        let mut standing = self.locked();
        standing.tally.clone_from(tally);
        standing.ended = why;
    }

    /// Never waits: who reads at this moment sees the numbers of a quarter of a second ago.
    fn offer(&self, tally: &Tally) {
        if let Ok(mut standing) = self.0.try_lock() {
            standing.tally.clone_from(tally);
        }
    }

    pub(crate) fn report(&self) -> Report {
        let mut standing = self.locked();
        let fresh: u64 = standing.counters.iter_mut().filter_map(dropped).sum();
        // A device that is gone tells nothing any more; what it told last still holds.
        standing.not_read = standing.not_read.max(fresh);
        let mut report = Report::of(&standing.tally, standing.not_read, standing.raised, standing.core);
        report.ended.clone_from(&standing.ended);
        report
    }
}

/// Packets that the device's queue had no room for.
fn dropped(counters: &mut File) -> Option<u64> {
    let mut text = String::new();
    counters.seek(SeekFrom::Start(0)).ok()?;
    counters.read_to_string(&mut text).ok()?;
    parse_dropped(&text)
}

/// "  lab: bytes packets errs drop fifo frame compressed multicast bytes packets errs drop …",
/// received first.
fn parse_dropped(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

/// The loop's side: publishes and tells.
pub(crate) struct Scribe {
    published: Published,
    published_at: Mono,
    tap: Option<TruthTap>,
    missing: u64,
}

impl Scribe {
    pub(crate) fn new(published: Published, tap: Option<TruthTap>) -> Self {
        Self { published, published_at: Mono(0), tap, missing: 0 }
    }
}

impl Witness for Scribe {
    #[inline]
    fn fate(&mut self, fate: &Fate, late: Span, of: Option<Subject>) {
        if let Some(tap) = &mut self.tap {
            self.missing += u64::from(!tap.fate(fate, late, of));
        }
    }

    #[inline]
    fn round(&mut self, now: Mono, truth: &Truth, tally: &mut Tally) {
        if now - self.published_at < PUBLISH_EVERY {
            return;
        }
        self.published_at = now;
        if let Some(tap) = &mut self.tap {
            self.missing += tap.intervals(truth);
        }
        tally.truth_missing = self.missing;
        self.published.offer(tally);
    }
}

/// Runs until the loop has ended: writes what comes, and the report each second.
pub(crate) fn keep(
    lines: &Receiver<Line>,
    mut writer: Option<TruthWriter>,
    published: &Published,
    prefix: &str,
) {
    let mut written_at = clock::now();
    loop {
        match lines.recv_timeout(LOOK_EVERY.to_std()) {
            Ok(line) => {
                if let Some(writer) = &mut writer {
                    writer.write(&line);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if clock::now() - written_at >= REPORT_EVERY {
            written_at = clock::now();
            // The state folder may be gone already; the report is told on the way out, too.
            let _ = state::write_report(prefix, &published.report());
            if let Some(writer) = &mut writer {
                writer.flush();
            }
        }
    }
    if let Some(writer) = writer {
        writer.close(&published.report());
    }
}

const PUBLISH_EVERY: Span = Span::from_millis(250);
const REPORT_EVERY: Span = Span::from_secs(1);
const LOOK_EVERY: Span = Span::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_the_sending_queue_are_found_among_the_columns() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 0 0 0 0 0 0 0 0 0 0 0 9 0 0 0 0\n   \
                    lab: 100 2 0 7 0 0 0 0 300 4 0 5 0 0 0 0\n";
        assert_eq!(parse_dropped(text), Some(5));
        assert_eq!(parse_dropped("lo: 1"), None);
    }
}
