//! Round trips by TCP timestamps.

use std::collections::VecDeque;

use netaware_units::{Span, Wall};

/// Of one direction: timestamps that wait for their echo.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    newest: Option<u32>,
    /// Ascending by the clock of the sender; each stands for the first packet that carried it.
    waiting: VecDeque<(u32, Wall)>,
}

impl Stamps {
    /// A packet went out with `value`. Only the first packet of a value can be timed: its echo may
    /// be for that one, and a later one would come out too short. A bare acknowledgement cannot be
    /// timed (nobody answers it), but spoils its value.
    #[inline]
    pub(super) fn sent(&mut self, value: u32, at: Wall, carries: bool) {
        if self.newest.is_some_and(|newest| !later(value, newest)) {
            return;
        }
        self.newest = Some(value);
        if carries && self.waiting.len() < MOST_WAITING {
            self.waiting.push_back((value, at));
        }
    }

    /// The other side echoed `value`: the round trip, if this is the first echo of something that
    /// waits.
    #[inline]
    pub(super) fn echoed(&mut self, value: u32, at: Wall) -> Option<Span> {
        while let Some((first, sent_at)) = self.waiting.front().copied() {
            if later(first, value) {
                return None;
            }
            self.waiting.pop_front();
            if first == value {
                return Some(at.since(sent_at));
            }
        }
        None
    }
}

/// In serial arithmetic (RFC 7323 §5.2).
fn later(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// More than a sender's clock of 1 ms can make in half a second's round trip; of what is beyond
/// only a part is timed.
const MOST_WAITING: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    const US: i64 = 1000;

    /// Round trips of 200 us under a clock of 1 ms: each value is on several packets, and each is
    /// echoed several times.
    #[test]
    fn values_that_repeat_within_a_millisecond_do_not_come_out_short() {
        let mut stamps = Stamps::default();
        let mut found = Vec::new();
        for n in 0..100_i64 {
            let at = n * 100 * US;
            stamps.sent((at / (1000 * US)) as u32, Wall(at), true);
            let echo = (at - 200 * US).div_euclid(1000 * US);
            if echo >= 0 {
                found.extend(stamps.echoed(echo as u32, Wall(at + US)));
            }
        }
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|rtt| *rtt == Span(201 * US)), "{found:?}");
    }

    #[test]
    fn a_bare_acknowledgement_spoils_its_value() {
        let mut stamps = Stamps::default();
        stamps.sent(5, Wall(0), false);
        stamps.sent(5, Wall(10), true);
        assert_eq!(stamps.echoed(5, Wall(12)), None);
        stamps.sent(6, Wall(20), true);
        assert_eq!(stamps.echoed(6, Wall(50)), Some(Span(30)));
        assert_eq!(stamps.echoed(6, Wall(60)), None);
    }

    #[test]
    fn the_clock_of_the_sender_may_wrap() {
        let mut stamps = Stamps::default();
        stamps.sent(u32::MAX, Wall(0), true);
        stamps.sent(0, Wall(10), true);
        stamps.sent(1, Wall(20), true);
        assert_eq!(stamps.echoed(0, Wall(35)), Some(Span(25)));
        assert_eq!(stamps.echoed(u32::MAX, Wall(36)), None);
        assert_eq!(stamps.echoed(1, Wall(37)), Some(Span(17)));
    }

    #[test]
    fn what_nobody_echoes_has_a_bound() {
        let mut stamps = Stamps::default();
        for value in 1..100_000 {
            stamps.sent(value, Wall(value.into()), true);
        }
        assert_eq!(stamps.waiting.len(), MOST_WAITING);
        assert_eq!(stamps.echoed(99_999, Wall(0)), None);
        assert!(stamps.waiting.is_empty());
    }
}
