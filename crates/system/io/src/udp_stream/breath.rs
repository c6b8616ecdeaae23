//! Keeps the core for a paced stream whose gaps leave no room for sleep, with as little harm as possible.
//!
//! Measured at gaps of 10 and 20 us on two virtual cores, the longest hole in ten seconds, holes above 2 ms (few runs each):
//!
//! | thread that only spins | host at rest | beside a busy compiler |
//! |---|---|---|
//! | as an ordinary thread | 1 to 4 ms, 0 to 2 | 5 to 12 ms, 170 to 240 |
//! | with priority | 50 ms, one each second | 50 ms, one each second |
//! | with priority, off the core 5 % of the time | | 50 ms, one each second |
//! | with priority, off the core 9 % of the time | | 1 to 12 ms, a few; one of 77 ms in two minutes |
//!
//! A thread with priority that does not sleep has the core taken from it for 5 % of each second, in one piece. So while
//! nobody waits the stream runs as an ordinary thread; when somebody does it takes priority and leaves the core by itself.
//! Many short sleeps would disturb the gaps least, but below 15 us a sleep costs as much CPU time as it lasts and frees
//! nothing. So a breath is taken every 4 ms and lasts some 350 us: one gap in two hundred (at 20 us) is long, those after
//! it are short until the plan is caught up with. Whether somebody waits `/proc/loadavg` tells, which counts a task that
//! waits as runnable; and a hole tells.

use std::fs::File;

use netaware_units::{Mono, Span};

use crate::{clock, priority, thread};

/// Time off the core that is owed to others, kept by the thread's own CPU clock.
#[derive(Debug)]
pub(super) struct Breath {
    owed: Span,
    settled_at: Mono,
    cpu_then: Span,
    crowd: Crowd,
    /// Runs with priority, and therefore must sleep.
    has_priority: bool,
}

impl Breath {
    pub(super) fn new(start: Mono) -> Self {
        let cpu_then = thread::cpu_time_exact();
        Self { owed: Span::ZERO, settled_at: start, cpu_then, crowd: Crowd::new(), has_priority: false }
    }

    /// To be called in every gap that is too short for a sleep; costs a comparison nearly always.
    #[inline]
    pub(super) fn take_if_owed(&mut self, now: Mono) {
        if now - self.settled_at >= SETTLE_EVERY {
            self.settle_and_sleep(now);
        }
    }

    /// Somebody took the core for long enough to leave datagrams out.
    pub(super) fn note_hole(&mut self, now: Mono) {
        self.crowd.waiting_until(now + AFTER_A_HOLE);
    }

    #[cold]
    fn settle_and_sleep(&mut self, now: Mono) {
        self.settle(now, thread::cpu_time_exact());
        let wanted = self.crowd.is_waiting(now);
        if wanted != self.has_priority {
            // Without the privilege for it we go on as an ordinary thread, and sleeping would not help that one.
            self.has_priority = if wanted { priority::raise() } else { !priority::lower() };
            self.owed = Span::ZERO;
        }
        if self.has_priority && self.owed > LEAST_BREATH {
            clock::sleep_until(now + self.owed);
        }
    }

    fn settle(&mut self, now: Mono, cpu: Span) {
        let passed = now - self.settled_at;
        let idle = (passed - (cpu - self.cpu_then)).or_zero();
        let owed = self.owed + passed * SHARE_PERCENT / 100 - idle;
        self.owed = Span(owed.0.clamp(-MOST_OWED.0, MOST_OWED.0));
        (self.settled_at, self.cpu_then) = (now, cpu);
    }
}

/// Whether more tasks want to run than there are cores.
#[derive(Debug)]
struct Crowd {
    loadavg: Option<File>,
    cores: u32,
    waiting: bool,
    looked_at: Mono,
    /// A hole is better evidence than a look.
    sure_until: Mono,
}

impl Crowd {
    fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let loadavg = File::open("/proc/loadavg").ok();
        Self { loadavg, cores, waiting: false, looked_at: Mono(0), sure_until: Mono(0) }
    }

    fn waiting_until(&mut self, until: Mono) {
        self.sure_until = until;
    }

    fn is_waiting(&mut self, now: Mono) -> bool {
        if now < self.sure_until {
            return true;
        }
        // The kernel takes the core after most of a second of starving: several looks fit in between.
        if now - self.looked_at >= LOOK_EVERY {
            self.looked_at = now;
            self.waiting = self.runnable().is_some_and(|runnable| runnable > self.cores);
        }
        self.waiting
    }

    #[cfg(unix)]
    fn runnable(&self) -> Option<u32> {
        use std::os::unix::fs::FileExt;
        let mut text = [0; 64];
        let length = self.loadavg.as_ref()?.read_at(&mut text, 0).ok()?;
        parse_runnable(std::str::from_utf8(text.get(..length)?).ok()?)
    }

    #[cfg(not(unix))]
    fn runnable(&self) -> Option<u32> {
        None
    }
}

/// `0.20 0.18 0.12 3/80 11206`: three are runnable (proc_loadavg(5)).
#[cfg_attr(not(any(unix, test)), expect(dead_code, reason = "nobody tells there"))]
fn parse_runnable(text: &str) -> Option<u32> {
    text.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

const SHARE_PERCENT: i64 = 9;
const SETTLE_EVERY: Span = Span::from_millis(4);
const LEAST_BREATH: Span = Span::from_micros(50);
/// No debt is paid off in one go.
const MOST_OWED: Span = Span::from_micros(600);
const LOOK_EVERY: Span = Span::from_millis(100);
const AFTER_A_HOLE: Span = Span::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_owed_follows_the_cpu_clock_and_is_bounded_both_ways() {
        let mut breath = Breath { cpu_then: Span::ZERO, ..Breath::new(Mono(0)) };
        breath.settle(Mono(1_000_000), Span::from_millis(1));
        assert_eq!(breath.owed, Span::from_micros(90));
        breath.settle(Mono(2_000_000), Span::from_micros(1_900));
        assert_eq!(breath.owed, Span::from_micros(80));
        breath.settle(Mono(9_000_000_000), Span::from_micros(1_900));
        assert_eq!(breath.owed, -MOST_OWED);
        breath.settle(Mono(99_000_000_000), Span::from_secs(99));
        assert_eq!(breath.owed, MOST_OWED);
    }

    #[test]
    fn runnable_tasks_are_read_or_absent() {
        let rows =
            [("0.20 0.18 0.12 3/80 11206\n", Some(3)), ("0.20 0.18", None), ("1 2 3 4 5", None), ("", None)];
        for (text, want) in rows {
            assert_eq!(parse_runnable(text), want, "{text:?}");
        }
    }

    #[test]
    fn after_a_hole_somebody_is_taken_to_wait_whatever_the_load() {
        let mut breath = Breath::new(Mono(0));
        breath.crowd.loadavg = None;
        assert!(!breath.crowd.is_waiting(Mono(1)));
        breath.note_hole(Mono(1));
        assert!(breath.crowd.is_waiting(Mono(2)));
        assert!(!breath.crowd.is_waiting(Mono(1) + AFTER_A_HOLE));
    }
}
