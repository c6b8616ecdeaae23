//! A program that did not run for a while, and what its socket holds of that time.
//!
//! A process that is stopped, or a host that is suspended, comes back long after it was to be
//! woken. Answers came meanwhile and have not been read: their stamps say that they were in time.
//! So loss, which is a verdict by the clock, is not given before the driver has had time to read
//! them.
//! **Biased**: packets that were lost get their verdict [`READING`] later.

use netaware_units::{Mono, Span};

/// When an engine was to be woken, and when it was.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Standstill {
    wake_at: Option<Mono>,
    /// From when on the program did not run, and until when it reads what came meanwhile.
    reading: Option<(Mono, Mono)>,
}

impl Standstill {
    /// The engine asks to be woken then.
    pub(crate) fn wake_at(&mut self, at: Mono) {
        self.wake_at = Some(at);
    }

    /// The engine is called.
    pub(crate) fn observe(&mut self, now: Mono) {
        if let Some(wake_at) = self.wake_at.filter(|at| now.since(*at) > NOTICEABLE) {
            // What was due then has not been done.
            let since = self.reading_at(now).map_or(wake_at - Span(1), |(since, _)| since);
            self.reading = Some((since, now + READING));
            self.wake_at = None;
        }
    }

    /// The instant up to which what has not come was lost: all that came before it has been read.
    pub(crate) fn judged(&self, now: Mono) -> Mono {
        self.reading_at(now).map_or(now, |(since, _)| since)
    }

    /// A verdict that is due at `at` is given then, or once all has been read.
    pub(crate) fn verdict_at(&self, at: Mono, now: Mono) -> Mono {
        self.reading_at(now).map_or(at, |(_, until)| at.max(until))
    }

    fn reading_at(&self, now: Mono) -> Option<(Mono, Mono)> {
        self.reading.filter(|(_, until)| now < *until)
    }
}

/// A busy host wakes a program sooner.
const NOTICEABLE: Span = Span::from_millis(100);
/// A full socket buffer is read in less.
const READING: Span = Span::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(ms * 1_000_000)
    }

    #[test]
    fn nothing_is_judged_before_what_came_in_a_standstill_has_been_read() {
        let mut standstill = Standstill::default();
        standstill.observe(at(50));
        assert_eq!(standstill.judged(at(50)), at(50));
        standstill.wake_at(at(60));
        standstill.observe(at(70));
        assert_eq!(standstill.judged(at(70)), at(70), "somebody else had the core");
        standstill.wake_at(at(80));
        standstill.observe(at(6_000));
        assert_eq!(standstill.judged(at(6_050)), at(80) - Span(1));
        assert_eq!(standstill.verdict_at(at(1_000), at(6_050)), at(6_100));
        assert_eq!(standstill.verdict_at(at(7_000), at(6_050)), at(7_000));
        assert_eq!(
            (standstill.judged(at(6_100)), standstill.verdict_at(at(1), at(6_100))),
            (at(6_100), at(1))
        );
    }
}
