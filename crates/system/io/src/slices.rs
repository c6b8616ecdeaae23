//! Cuts the time of a transfer into slices at absolute deadlines; a slice's length is what the
//! clock says it was.

use netaware_units::{Mono, Span};

use crate::clock;
use crate::thread::waiting_time;

/// Deadlines every tick since a start. The threads that move data never wait for whoever watches
/// them.
#[derive(Debug)]
pub(crate) struct Slices {
    start: Mono,
    tick: Span,
    next: Mono,
    last: Mono,
    absence: Absence,
}

/// Time in which the program did not run although it was to: it was stopped, or its host was
/// suspended. Waiting for a core is not in it.
#[derive(Debug)]
struct Absence {
    total: Span,
    /// When the thread runs again at the latest, if nothing keeps it from running.
    due_at: Mono,
    /// For how long it has waited for a core in all, and the host has been suspended, when that was
    /// last looked at.
    queued: Option<Span>,
    suspended: Span,
}

impl Absence {
    fn since(now: Mono) -> Self {
        Self { total: Span::ZERO, due_at: now, queued: waiting_time(), suspended: clock::suspended() }
    }

    /// The thread runs. `queued` is for how long it has waited for a core, `suspended` for how long
    /// the host has been suspended, both in all.
    fn look(&mut self, now: Mono, queued: impl Fn() -> Option<Span>, suspended: Span) {
        let asleep = (suspended - std::mem::replace(&mut self.suspended, suspended)).or_zero();
        // The clock stands still in a suspended host.
        if asleep > NOTICEABLE {
            self.total += asleep;
        }
        let late = now - self.due_at;
        if late > NOTICEABLE {
            let waited = queued().zip(self.queued).map(|(queued, before)| queued - before);
            // Where the system does not tell, only what no busy host does is an absence.
            let away = waited.map_or(late, |waited| late - waited);
            let noticeable = if waited.is_some() { NOTICEABLE } else { UNTOLD };
            if away > noticeable {
                self.total += away;
            }
        }
        self.due_at = now;
    }
}

/// A stretch of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    /// Its end, since the start.
    pub(crate) end: Span,
    pub(crate) length: Span,
    /// Nothing comes after it.
    pub(crate) is_last: bool,
}

impl Slices {
    pub(crate) fn starting_at(start: Mono, tick: Span) -> Self {
        let tick = tick.max(SHORTEST_TICK);
        Self { start, tick, next: start + tick, last: start, absence: Absence::since(clock::now()) }
    }

    /// Waits for the end of the slice, or until `is_done`: then the rest is a shorter, last slice.
    /// Whoever makes `is_done` true unparks the calling thread.
    pub(crate) fn wait(&mut self, is_done: impl Fn() -> bool) -> Slice {
        loop {
            let now = clock::now();
            self.absence.look(now, waiting_time, clock::suspended());
            let is_last = is_done();
            if is_last || now >= self.next {
                let slice = Slice { end: now - self.start, length: now - self.last, is_last };
                self.last = now;
                let passed = (now - self.next).or_zero().0 / self.tick.0 + 1;
                self.next += self.tick * passed;
                self.absence.queued = waiting_time();
                return slice;
            }
            let wait = (self.next - now).min(LONGEST_WAIT);
            self.absence.due_at = now + wait;
            std::thread::park_timeout(wait.to_std());
        }
    }
}

impl Slices {
    /// How long the program did not run although it was to, in all.
    pub(crate) fn stood_still(&self) -> Span {
        self.absence.total
    }
}

/// Calls `ready` until it yields something or `is_done`.
pub(crate) fn wait_for<T>(ready: impl Fn() -> Option<T>, is_done: impl Fn() -> bool) -> Option<T> {
    loop {
        let done = is_done();
        if let Some(found) = ready() {
            return Some(found);
        }
        if done {
            return None;
        }
        std::thread::park_timeout(START_CHECK.to_std());
    }
}

/// A plan may come from the network: no slice is shorter than this.
const SHORTEST_TICK: Span = Span::from_millis(1);
/// Covers an unpark that never comes, because a thread could not be started.
const LONGEST_WAIT: Span = Span::from_millis(50);
/// Far below any tick, so that the first slice is not cut.
const START_CHECK: Span = Span::from_millis(2);
/// A busy host whose waiting for a core is known and taken off lets a thread run sooner.
const NOTICEABLE: Span = Span::from_millis(200);
/// A busy host lets a thread wait for a core, but not so long.
const UNTOLD: Span = Span::from_millis(1500);

#[cfg(test)]
mod tests {
    use super::*;

    /// A transfer whose receiver was stopped for 2 s was "limited by unknown: nothing stands out".
    #[test]
    fn a_program_that_was_stopped_did_not_wait_for_a_core() {
        let ms = Span::from_millis;
        let at = |after: i64| Mono(1) + ms(after);
        let absent = |late: i64, queued: [Option<i64>; 2], suspended: i64| {
            let [before, queued] = queued.map(|it| it.map(ms));
            let mut absence = Absence { total: Span::ZERO, due_at: at(50), queued: before, suspended: ms(7) };
            absence.look(at(50 + late), || queued, ms(7 + suspended));
            // Nothing of it is counted twice.
            absence.look(at(60 + late), || queued, ms(7 + suspended));
            absence.total
        };
        assert_eq!(absent(2000, [Some(300), Some(305)], 0), ms(1995));
        assert_eq!(absent(2000, [Some(300), Some(2290)], 0), Span::ZERO, "others had the core");
        assert_eq!(absent(190, [Some(300), Some(300)], 0), Span::ZERO);
        assert_eq!([absent(1400, [None; 2], 0), absent(1600, [None; 2], 0)], [Span::ZERO, ms(1600)]);
        assert_eq!(absent(1, [Some(0); 2], 5000), ms(5000), "the clock stood still meanwhile");
    }
}
