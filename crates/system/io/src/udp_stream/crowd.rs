//! Whether others want the core that a stream runs on.

use std::fs::File;

use netaware_units::{Mono, Span};

/// Told by what the calling thread suffers: the time that it was ready to run and did not
/// (`/proc/thread-self/schedstat`, second field). A thread with priority no longer suffers, so for
/// it the count of tasks that are ready to run decides (`/proc/loadavg`).
#[derive(Debug)]
pub(super) struct Crowd {
    schedstat: Option<File>,
    loadavg: Option<File>,
    cores: u32,
    looked_at: Mono,
    waited_then: Span,
    until: Option<Mono>,
}

impl Crowd {
    pub(super) fn new(now: Mono) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let mut crowd = Self {
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            loadavg: File::open("/proc/loadavg").ok(),
            cores,
            looked_at: now,
            waited_then: Span::ZERO,
            until: None,
        };
        crowd.waited_then = crowd.waited().unwrap_or(Span::ZERO);
        crowd
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.until.is_some()
    }

    /// To be called often; reads a file ten times a second.
    pub(super) fn look(&mut self, now: Mono) {
        let passed = now - self.looked_at;
        if passed < LOOK_EVERY {
            return;
        }
        self.looked_at = now;
        let waited = self.waited().unwrap_or(self.waited_then);
        let suffered = waited - self.waited_then;
        self.waited_then = waited;
        self.judge(now, suffered * 100 > passed * SUFFERS_PERCENT);
    }

    fn judge(&mut self, now: Mono, suffers: bool) {
        if suffers {
            self.until = Some(now + HOLD);
        } else if self.until.is_some_and(|until| now >= until) {
            let still = self.runnable().is_some_and(|runnable| runnable > self.cores);
            self.until = still.then(|| now + LOOK_AGAIN);
        }
    }

    fn waited(&self) -> Option<Span> {
        parse_waited(&read(self.schedstat.as_ref()?)?)
    }

    fn runnable(&self) -> Option<u32> {
        parse_runnable(&read(self.loadavg.as_ref()?)?)
    }
}

#[cfg(unix)]
fn read(file: &File) -> Option<String> {
    use std::os::unix::fs::FileExt;
    let mut text = [0; 96];
    let length = file.read_at(&mut text, 0).ok()?;
    Some(String::from_utf8_lossy(text.get(..length)?).into_owned())
}

#[cfg(not(unix))]
fn read(_: &File) -> Option<String> {
    None
}

/// `795566 4200 3`: nanoseconds on a core, nanoseconds waiting for one
/// (Documentation/scheduler/sched-stats.rst).
fn parse_waited(text: &str) -> Option<Span> {
    text.split_whitespace().nth(1)?.parse().ok().map(Span)
}

/// `0.20 0.18 0.12 3/80 11206`: three are runnable (proc_loadavg(5)).
fn parse_runnable(text: &str) -> Option<u32> {
    text.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

const LOOK_EVERY: Span = Span::from_millis(100);
/// A kernel thread that runs for a tick (4 ms) now and then is no crowd; a compiler takes half of
/// the core.
const SUFFERS_PERCENT: i64 = 10;
const HOLD: Span = Span::from_secs(3);
const LOOK_AGAIN: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody_tells() -> Crowd {
        Crowd { schedstat: None, loadavg: None, ..Crowd::new(Mono(0)) }
    }

    #[test]
    fn files_are_read_or_absent() {
        let rows =
            [("0.20 0.18 0.12 3/80 11206\n", Some(3)), ("0.20 0.18", None), ("1 2 3 4 5", None), ("", None)];
        for (text, want) in rows {
            assert_eq!(parse_runnable(text), want, "{text:?}");
        }
        let rows = [("795566 4200 3\n", Some(Span(4200))), ("1", None), ("1 x 3", None), ("", None)];
        for (text, want) in rows {
            assert_eq!(parse_waited(text), want, "{text:?}");
        }
    }

    #[test]
    fn who_suffers_has_company_for_a_while() {
        let mut crowd = nobody_tells();
        assert!(!crowd.is_waiting());
        crowd.judge(Mono(1), true);
        crowd.judge(Mono(2), false);
        assert!(crowd.is_waiting());
        crowd.judge(Mono(1) + HOLD, false);
        assert!(!crowd.is_waiting());
    }

    #[test]
    fn without_files_nobody_waits() {
        let mut crowd = nobody_tells();
        crowd.look(Mono(0) + LOOK_EVERY);
        assert!(!crowd.is_waiting());
    }
}
