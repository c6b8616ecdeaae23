//! How long a stream is kept for what is still to be sent: while its peer acknowledges more.
//!
//! A path of 64 kbit/s takes half an hour for a full window, so no fixed time would be enough. What
//! counts is the time in which the peer acknowledged nothing more.

use netaware_units::{Mono, Span};

/// A stream that no application holds any more, and what its peer has acknowledged since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Draining {
    /// When it was first looked at.
    pub(crate) began_at: Mono,
    /// When the peer was last seen to have acknowledged more.
    moved_at: Mono,
    acked: u64,
    longest_round_trip: Span,
}

impl Draining {
    pub(crate) fn new(now: Mono, acked: u64) -> Self {
        Self { began_at: now, moved_at: now, acked, longest_round_trip: Span::ZERO }
    }

    /// Notes how many bytes the peer has acknowledged by now.
    pub(crate) fn look(&mut self, now: Mono, acked: u64) {
        if acked > self.acked {
            (self.moved_at, self.acked) = (now, acked);
        }
    }

    /// Notes how long a connection of the stream takes there and back.
    pub(crate) fn takes(&mut self, round_trip: Span) {
        self.longest_round_trip = self.longest_round_trip.max(round_trip);
    }

    /// Whether the peer has acknowledged nothing more for this long and four round trips, or for
    /// [`MOST_PATIENCE`].
    pub(crate) fn is_stuck(&self, now: Mono, patience: Span) -> bool {
        now - self.moved_at > (patience + self.longest_round_trip * ROUND_TRIPS).min(MOST_PATIENCE)
    }
}

/// A stream whose peer acknowledges nothing for so long is given up.
pub(crate) const MOST_PATIENCE: Span = Span::from_secs(60);
/// A retransmission time-out and the acknowledgement of what is sent again take less.
const ROUND_TRIPS: i64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Mono {
        Mono(0) + Span::from_secs(seconds)
    }

    /// 16 MiB at 64 kbit/s, of which 160 kB are acknowledged every 20 s.
    #[test]
    fn a_stream_that_drains_for_longer_than_the_patience_is_not_given_up() {
        let mut draining = Draining::new(at(0), 0);
        for turn in 1..=105_u32 {
            let now = at(20 * i64::from(turn));
            draining.look(now, 160_000 * u64::from(turn));
            assert!(!draining.is_stuck(now + Span::from_secs(19), MOST_PATIENCE), "turn {turn}");
        }
        // 35 minutes later nothing more comes.
        draining.look(at(2159), 160_000 * 105);
        assert!(!draining.is_stuck(at(2160), MOST_PATIENCE));
        assert!(draining.is_stuck(at(2161), MOST_PATIENCE));
        assert_eq!(draining.began_at, at(0));
    }

    #[test]
    fn a_program_that_ends_waits_longer_where_round_trips_are_long() {
        let five = Span::from_secs(5);
        let mut draining = Draining::new(at(0), 0);
        assert!(!draining.is_stuck(at(5), five) && draining.is_stuck(at(6), five));
        draining.takes(Span::from_millis(2500));
        draining.takes(Span::from_millis(40));
        assert!(!draining.is_stuck(at(15), five) && draining.is_stuck(at(16), five));
        draining.look(at(14), 1);
        assert!(!draining.is_stuck(at(29), five) && draining.is_stuck(at(30), five));
        // One that sends nothing is no reason to stay for ever.
        draining.takes(Span::from_secs(100));
        assert!(draining.is_stuck(at(14 + 61), five));
    }
}
