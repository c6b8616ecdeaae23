//! Cuts the time of a transfer into slices at absolute deadlines; a slice's length is what the
//! clock says it was.

use netaware_units::{Mono, Span};

use crate::absence::Absence;
use crate::clock;

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
        Self { start, tick, next: start + tick, last: start, absence: Absence::longer_than(NOTICEABLE) }
    }

    /// Waits for the end of the slice, or until `is_done`: then the rest is a shorter, last slice.
    /// Whoever makes `is_done` true unparks the calling thread.
    pub(crate) fn wait(&mut self, is_done: impl Fn() -> bool) -> Slice {
        self.wait_or_end(|| None, is_done)
    }

    /// The same of a stream that is waited for after its end: a slice ends where the stream does.
    pub(crate) fn wait_or_end(
        &mut self,
        ended_at: impl Fn() -> Option<Mono>,
        is_done: impl Fn() -> bool,
    ) -> Slice {
        loop {
            let now = clock::now();
            self.absence.look(now);
            if let Some(at) = ended_at().map(|at| at.min(now)).filter(|at| *at > self.last) {
                let slice = Slice { end: at - self.start, length: at - self.last, is_last: false };
                self.last = at;
                return slice;
            }
            let is_last = is_done();
            if is_last || now >= self.next {
                let slice = Slice { end: now - self.start, length: now - self.last, is_last };
                self.last = now;
                let passed = (now - self.next).or_zero().0 / self.tick.0 + 1;
                self.next += self.tick * passed;
                self.absence.begin_anew();
                return slice;
            }
            let wait = (self.next - now).min(LONGEST_WAIT);
            self.absence.sleeps_until(now + wait);
            std::thread::park_timeout(wait.to_std());
        }
    }
}

impl Slices {
    /// How long the program did not run although it was to, in all.
    pub(crate) fn stood_still(&self) -> Span {
        self.absence.total()
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
