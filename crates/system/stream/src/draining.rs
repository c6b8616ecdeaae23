//! How long a stream is kept for what is still to be sent: while its peer acknowledges more.
//!
//! A path of 64 kbit/s takes half an hour for a full window, so no fixed time would be enough. What
//! counts is the time in which the peer acknowledged nothing more. A peer acknowledges in steps as
//! small as it likes, so only a step of some size counts: a stream of 16 MiB is then kept for 17
//! hours at most, and not for ever.

use netaware_units::{Mono, Span};

/// A stream that no application holds any more, and what its peer has acknowledged since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Draining {
    /// When it was first looked at.
    pub(crate) began_at: Mono,
    /// When the peer was last seen to have acknowledged a step more.
    moved_at: Mono,
    /// What it had acknowledged then.
    acked: u64,
    /// Fewer bytes are no progress, unless they are the last ones.
    step: u64,
    longest_round_trip: Span,
}

impl Draining {
    pub(crate) fn new(now: Mono, acked: u64, step: u64) -> Self {
        Self { began_at: now, moved_at: now, acked, step, longest_round_trip: Span::ZERO }
    }

    /// Notes how many bytes the peer has acknowledged by now, and how many are left.
    pub(crate) fn look(&mut self, now: Mono, acked: u64, left: u64) {
        let more = acked.saturating_sub(self.acked);
        if more >= self.step || (more > 0 && left == 0) {
            (self.moved_at, self.acked) = (now, acked);
        }
    }

    /// Notes how long a connection of the stream takes there and back.
    pub(crate) fn takes(&mut self, round_trip: Span) {
        self.longest_round_trip = self.longest_round_trip.max(round_trip);
    }

    /// Whether the peer has acknowledged no step more for this long and four round trips, or for
    /// [`MOST_PATIENCE`].
    pub(crate) fn is_stuck(&self, now: Mono, patience: Span) -> bool {
        now - self.moved_at > (patience + self.longest_round_trip * ROUND_TRIPS).min(MOST_PATIENCE)
    }

    /// Whether a program that ends waits for it no longer: it is stuck, or was waited for as long
    /// as a peer may keep a program from ending.
    pub(crate) fn has_had_its_time(&self, now: Mono, patience: Span) -> bool {
        self.is_stuck(now, patience) || now - self.began_at > MOST_AT_THE_END
    }
}

/// A stream whose peer acknowledges nothing for so long is given up.
pub(crate) const MOST_PATIENCE: Span = Span::from_secs(60);
/// A path of 64 kbit/s takes 2 s for it, and one of 2.2 kbit/s takes [`MOST_PATIENCE`].
pub(crate) const STEP: u64 = 16 * 1024;
/// In all, however much the peer acknowledges.
const MOST_AT_THE_END: Span = Span::from_secs(60);
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
        let mut draining = Draining::new(at(0), 0, STEP);
        for turn in 1..=105_u32 {
            let now = at(20 * i64::from(turn));
            draining.look(now, 160_000 * u64::from(turn), 1);
            assert!(!draining.is_stuck(now + Span::from_secs(19), MOST_PATIENCE), "turn {turn}");
        }
        // 35 minutes later nothing more comes.
        draining.look(at(2159), 160_000 * 105, 1);
        assert!(!draining.is_stuck(at(2160), MOST_PATIENCE));
        assert!(draining.is_stuck(at(2161), MOST_PATIENCE));
        assert_eq!(draining.began_at, at(0));
    }

    #[test]
    fn a_peer_that_acknowledges_a_byte_at_a_time_does_not_hold_a_stream() {
        let mut draining = Draining::new(at(0), 100, STEP);
        for second in 1..=60_u32 {
            draining.look(at(i64::from(second)), 100 + u64::from(second), 1 << 24);
        }
        assert!(!draining.is_stuck(at(60), MOST_PATIENCE) && draining.is_stuck(at(61), MOST_PATIENCE));
        // Small steps count together.
        draining.look(at(70), 100 + STEP - 1, 1 << 24);
        assert!(draining.is_stuck(at(70), MOST_PATIENCE));
        draining.look(at(71), 100 + STEP, 1 << 24);
        assert!(!draining.is_stuck(at(131), MOST_PATIENCE) && draining.is_stuck(at(132), MOST_PATIENCE));
        // The last bytes count, once.
        draining.look(at(140), 100 + STEP + 1, 0);
        draining.look(at(150), 100 + STEP + 1, 0);
        assert!(!draining.is_stuck(at(200), MOST_PATIENCE) && draining.is_stuck(at(201), MOST_PATIENCE));
    }

    #[test]
    fn a_peer_that_acknowledges_a_byte_at_a_time_does_not_keep_a_program_from_ending() {
        let five = Span::from_secs(5);
        let mut draining = Draining::new(at(0), 0, 1);
        for second in 1..=61_u32 {
            draining.look(at(i64::from(second)), u64::from(second), 1 << 24);
            let had = draining.has_had_its_time(at(i64::from(second)), five);
            assert_eq!(had, second > 60, "after {second} s");
        }
        // One that is stuck is not waited for so long.
        assert!(Draining::new(at(0), 0, 1).has_had_its_time(at(6), five));
    }

    #[test]
    fn a_program_that_ends_waits_longer_where_round_trips_are_long() {
        let five = Span::from_secs(5);
        let mut draining = Draining::new(at(0), 0, 1);
        assert!(!draining.is_stuck(at(5), five) && draining.is_stuck(at(6), five));
        draining.takes(Span::from_millis(2500));
        draining.takes(Span::from_millis(40));
        assert!(!draining.is_stuck(at(15), five) && draining.is_stuck(at(16), five));
        draining.look(at(14), 1, 1);
        assert!(!draining.is_stuck(at(29), five) && draining.is_stuck(at(30), five));
        // One that sends nothing is no reason to stay for ever.
        draining.takes(Span::from_secs(100));
        assert!(draining.is_stuck(at(14 + 61), five));
    }
}
