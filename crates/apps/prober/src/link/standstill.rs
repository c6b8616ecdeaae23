//! When the responder's program did not run, because it was stopped or its host was suspended.
//!
//! The answer to each ping says for how long that was in all. **Assumes** that a ping was waiting
//! for an answer when the program went on, or came soon: pings leave every second. So the time ends
//! when the answer comes, or up to a ping's distance before.

use std::sync::{Arc, Mutex, PoisonError};

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
}

impl Standstills {
    /// It says so by an answer that came now.
    pub(super) fn told(&self, in_all: Span, now: Mono, round_trip: Span) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).found.clone()
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
}
