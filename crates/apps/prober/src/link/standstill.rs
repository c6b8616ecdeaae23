//! When the responder's program did not run, because it was stopped or its host was suspended.
//!
//! The answer to each ping says for how long that was in all. **Assumes** that a ping was waiting
//! for an answer when the program went on, or came soon: pings leave every second. So the time ends
//! when the answer comes, or up to a ping's distance before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netaware_units::{Mono, Span};
use netaware_wire::control::PING_EVERY;

/// One of these times, on this host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standstill {
    /// For how long it did not run.
    pub(crate) lasted: Span,
    /// It was between these two instants; what was sent to it in that time it may not have read.
    pub(crate) from: Mono,
    pub(crate) until: Mono,
}

impl Standstill {
    /// Whether what left then may have come while the program did not run.
    pub(crate) fn met(&self, left_at: Mono) -> bool {
        (self.from..=self.until).contains(&left_at)
    }
}

/// Those of one session, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standstills(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    in_all: Span,
    /// When the last answer came.
    at: Option<Mono>,
    found: Vec<Standstill>,
    /// Packets of trains that were left out because of one.
    left_out: u64,
}

impl Standstills {
    /// It says so by an answer that came now.
    pub(super) fn told(&self, in_all: Span, now: Mono, round_trip: Span) {
        let mut told = self.told_so_far();
        let before = told.at.replace(now);
        // No longer than since its last answer.
        let since = before.map_or(Span(i64::MAX), |at| now - at + round_trip);
        let lasted = (in_all - told.in_all).min(since);
        if lasted <= Span::ZERO || told.found.len() >= MAX_TOLD {
            return;
        }
        told.in_all = in_all;
        // What came before the last answer left was read.
        let earliest = now - lasted - PING_EVERY - round_trip * 2;
        let from = before.map_or(earliest, |at| earliest.max(at - round_trip));
        told.found.push(Standstill { lasted, from, until: now });
    }

    pub(crate) fn all(&self) -> Vec<Standstill> {
        self.told_so_far().found.clone()
    }

    /// Whether it has said so then or later. It says each of them once, with the first answer after
    /// it has gone on.
    pub(crate) fn is_told_since(&self, at: Mono) -> bool {
        self.told_so_far().found.last().is_some_and(|last| last.until >= at)
    }

    /// Whether an answer has come after that instant, whatever it said.
    pub(super) fn is_answered_after(&self, at: Mono) -> bool {
        self.told_so_far().at.is_some_and(|answered_at| answered_at > at)
    }

    /// What became of so many packets of trains is unknown because of one, and they count nowhere.
    pub(crate) fn leave_out(&self, packets: u64) {
        self.told_so_far().left_out += packets;
    }

    /// How many packets of trains were left out.
    pub(crate) fn left_out(&self) -> u64 {
        self.told_so_far().left_out
    }

    fn told_so_far(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a responder says must not fill this host's memory.
const MAX_TOLD: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_responder_that_stood_still_has_not_read_what_came_meanwhile() {
        let at = |ms: u64| Mono(ms * 1_000_000);
        let ms = Span::from_millis;
        let told = Standstills::default();
        for (now, in_all) in [(1020, 0), (2020, 0), (5540, 2500), (6020, 2500), (7020, 3300)] {
            told.told(ms(in_all), at(now), ms(20));
        }
        let [first, second] = told.all().try_into().unwrap();
        assert_eq!(first, Standstill { lasted: ms(2500), from: at(2000), until: at(5540) });
        assert_eq!(second, Standstill { lasted: ms(800), from: at(6000), until: at(7020) });
        assert_eq!([1999, 2000, 4000, 5541].map(|ms| first.met(at(ms))), [false, true, true, false]);
        // A path that was silent for long before tells no more than the responder does.
        let silent = Standstills::default();
        silent.told(ms(0), at(1000), ms(20));
        silent.told(ms(600), at(9000), ms(20));
        assert_eq!(silent.all()[0].from, at(9000 - 600 - 1000 - 40));
        // Who says nothing has run.
        assert!(Standstills::default().all().is_empty());
    }

    /// `available -R` beside a stop: "124 packets in a row were lost" on a path that lost none.
    #[test]
    fn trains_under_way_when_a_standstill_is_told_have_met_it_and_later_ones_have_not() {
        let at = |ms: u64| Mono(ms * 1_000_000);
        let told = Standstills::default();
        told.told(Span::ZERO, at(1000), Span::from_millis(20));
        assert!(!told.is_told_since(at(500)) && told.is_answered_after(at(500)));
        assert!(!told.is_answered_after(at(1000)), "the answer has to come later");
        told.told(Span::from_secs(2), at(3000), Span::from_millis(20));
        assert!(told.is_told_since(at(1100)) && told.is_told_since(at(3000)));
        assert!(!told.is_told_since(at(3001)));
        // The next answer repeats the sum, and tells of no other one.
        told.told(Span::from_secs(2), at(4000), Span::from_millis(20));
        assert!(!told.is_told_since(at(3001)) && told.is_answered_after(at(3001)));
        // A clone is of the same session.
        told.clone().leave_out(124);
        told.leave_out(3);
        assert_eq!(told.left_out(), 127);
    }
}
