//! Time in which the program did not run although it was to: it was stopped, or its host was
//! suspended. Waiting for a core is not in it.

use netaware_units::{Mono, Span};

use crate::clock;
use crate::thread::waiting_time;

/// Adds up such times of one thread, which says until when it sleeps and looks when it runs again.
#[derive(Debug)]
pub struct Absence {
    total: Span,
    /// When the thread runs again at the latest, if nothing keeps it from running.
    due_at: Mono,
    /// For how long it has waited for a core in all, and the host has been suspended, when that was
    /// last looked at.
    queued: Option<Span>,
    suspended: Span,
    /// A shorter time does not count.
    noticeable: Span,
}

impl Absence {
    /// Of the calling thread from now on, as far as one is longer than `noticeable`.
    pub fn longer_than(noticeable: Span) -> Self {
        let (queued, suspended) = (waiting_time(), clock::suspended());
        Self { total: Span::ZERO, due_at: clock::now(), queued, suspended, noticeable }
    }

    /// The thread sleeps, and runs again then at the latest.
    pub fn sleeps_until(&mut self, at: Mono) {
        self.due_at = at;
    }

    /// The thread runs.
    pub fn look(&mut self, now: Mono) {
        self.look_at(now, waiting_time, clock::suspended());
    }

    /// Its waiting for a core up to now is no matter of later looks.
    pub fn begin_anew(&mut self) {
        self.queued = waiting_time();
    }

    /// Returns the sum of these times.
    pub fn total(&self) -> Span {
        self.total
    }

    /// `queued` is for how long the thread has waited for a core, `suspended` for how long the host
    /// has been suspended, both in all.
    fn look_at(&mut self, now: Mono, queued: impl Fn() -> Option<Span>, suspended: Span) {
        let asleep = (suspended - std::mem::replace(&mut self.suspended, suspended)).or_zero();
        // The clock stands still in a suspended host.
        if asleep > self.noticeable {
            self.total += asleep;
        }
        let late = now - self.due_at;
        if late > self.noticeable {
            let waited = queued().zip(self.queued).map(|(queued, before)| queued - before);
            // Where the system does not tell, only what no busy host does is an absence.
            let away = waited.map_or(late, |waited| late - waited);
            let noticeable = if waited.is_some() { self.noticeable } else { UNTOLD };
            if away > noticeable {
                self.total += away;
            }
        }
        self.due_at = now;
    }
}

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
            let mut absence = Absence {
                total: Span::ZERO,
                due_at: at(50),
                queued: before,
                suspended: ms(7),
                noticeable: ms(200),
            };
            absence.look_at(at(50 + late), || queued, ms(7 + suspended));
            // Nothing of it is counted twice.
            absence.look_at(at(60 + late), || queued, ms(7 + suspended));
            absence.total()
        };
        assert_eq!(absent(2000, [Some(300), Some(305)], 0), ms(1995));
        assert_eq!(absent(2000, [Some(300), Some(2290)], 0), Span::ZERO, "others had the core");
        assert_eq!(absent(190, [Some(300), Some(300)], 0), Span::ZERO);
        assert_eq!([absent(1400, [None; 2], 0), absent(1600, [None; 2], 0)], [Span::ZERO, ms(1600)]);
        assert_eq!(absent(1, [Some(0); 2], 5000), ms(5000), "the clock stood still meanwhile");
    }
}
