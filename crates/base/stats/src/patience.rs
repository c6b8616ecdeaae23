//! How long an answer is waited for before it is called lost.
//!
//! Loss is a verdict, not an observation: the answer may still be travelling. A patience that is
//! fixed calls every answer of a slow path lost (a satellite with a queue takes 1.2 s, NB-IoT up to
//! 10 s), and one that is long makes a person wait at a fast path. So patience follows the path: it
//! is [`TIMES`] times the longest round trip seen so far, at least what the caller says and at most
//! [`MOST`]. The first round trip may be that of a handshake. An answer that comes after the
//! verdict counts as well: it is the best sign that patience was too short.
//!
//! **Assumes** that the next round trip is below [`TIMES`] times the longest so far, so a delay
//! that grows more slowly than that is followed without a loss. **Biased**: one slow answer makes
//! all later ones waited for longer, which costs time and never makes a loss. **Published**: RFC
//! 6298 §2 has a smoothed round trip and its variation instead, for deciding when to send again; to
//! be wrong costs one packet there. Here it would make a loss of what was only slow, so the longest
//! round trip counts and is not forgotten.

use netaware_units::Span;

/// How a patience that is given is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// So long and no longer: a person said so.
    Exactly,
    /// Longer where the path is slower.
    AtLeast,
}

/// How long to wait, and what it follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    least: Span,
    most: Span,
    /// While nothing is known of the path.
    unknown: Span,
    /// Longest round trips that are waited for, and beyond them.
    times: i64,
    margin: Span,
    longest: Option<Span>,
}

impl Patience {
    /// Always so long, as a person said.
    pub const fn fixed(patience: Span) -> Self {
        Self {
            least: patience,
            most: patience,
            unknown: patience,
            times: TIMES,
            margin: Span::ZERO,
            longest: None,
        }
    }

    /// Follows the path, and is never shorter than this.
    pub fn following(least: Span) -> Self {
        Self {
            least,
            most: MOST.max(least),
            unknown: UNKNOWN.max(least),
            times: TIMES,
            margin: Span::ZERO,
            longest: None,
        }
    }

    /// For a method that asks round by round and goes on after each, as those from one end do: its
    /// time is given, routers and hosts that never answer are usual, and each of them costs the
    /// patience in every round. So that is `times` the longest round trip and a little more, and no
    /// second at least. An answer that comes later still lengthens it, and is no loss. `unknown` is
    /// waited for while nobody has answered.
    pub const fn of_rounds(times: i64, unknown: Span) -> Self {
        Self { least: Span::ZERO, most: MOST, unknown, times, margin: ROUND_MARGIN, longest: None }
    }

    /// Either of the two.
    pub fn of(patience: Span, waiting: Waiting) -> Self {
        match waiting {
            Waiting::Exactly => Self::fixed(patience),
            Waiting::AtLeast => Self::following(patience),
        }
    }

    /// Never longer than this, unless that is below the least.
    #[must_use]
    pub fn at_most(self, most: Span) -> Self {
        Self { most: self.most.min(most).max(self.least), ..self }
    }

    /// The same with a round trip that is known from elsewhere, as from a handshake.
    #[must_use]
    pub fn knowing(mut self, rtt: Option<Span>) -> Self {
        if let Some(rtt) = rtt {
            self.observe(rtt);
        }
        self
    }

    /// Takes note of a round trip, in time or late.
    pub fn observe(&mut self, rtt: Span) {
        self.longest = self.longest.max(Some(rtt.or_zero()));
    }

    /// How long an answer is waited for from now on.
    pub fn span(&self) -> Span {
        let wanted = self.longest.map_or(self.unknown, |longest| longest * self.times + self.margin);
        wanted.max(self.least).min(self.most)
    }
}

/// How long the receiver of a stream of datagrams goes on listening once it has heard of the end,
/// on a path of this round trip. The end queues behind the data, so that only what travels by
/// another way comes after it, and that is hardly later than [`TIMES`] round trips.
pub fn after_the_end(round_trip: Span) -> Span {
    (round_trip.or_zero() * TIMES + MIN_AFTER_END).min(MAX_AFTER_END)
}

/// What two queues of a host may differ by.
const MIN_AFTER_END: Span = Span::from_millis(50);
/// No path needs more.
const MAX_AFTER_END: Span = Span::from_millis(300);
/// Longest round trips that are waited for: a repeated segment of TCP takes less, too (RFC 6298).
pub const TIMES: i64 = 4;
/// What hosts and routers take to answer, beside the path.
const ROUND_MARGIN: Span = Span::from_millis(100);
/// Longer is waited for only where a person says so.
pub const MOST: Span = Span::from_secs(15);
/// Where nobody has answered yet: longer than the paths take that people use.
pub const UNKNOWN: Span = Span::from_secs(5);
/// What a fast path is given: processors, sleeping radios and routes take their time as well.
pub const LEAST: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    #[test]
    fn patience_follows_the_longest_round_trip_between_its_bounds() {
        let mut patience = Patience::following(LEAST);
        assert_eq!(patience.span(), UNKNOWN);
        let rows =
            [(20, 1000), (250, 1000), (300, 1200), (1200, 4800), (50, 4800), (3000, 12_000), (9000, 15_000)];
        for (rtt, want) in rows {
            patience.observe(MS * rtt);
            assert_eq!(patience.span(), MS * want, "{rtt} ms");
        }
        assert_eq!(patience.at_most(MS * 2000).span(), MS * 2000);
        assert_eq!(patience.at_most(MS).span(), LEAST);
    }

    #[test]
    fn what_a_person_typed_is_not_changed_by_the_path() {
        let typed = Patience::fixed(MS * 300).knowing(Some(MS * 1200));
        assert_eq!(typed.span(), MS * 300);
        assert_eq!(Patience::fixed(MS * 40_000).span(), MS * 40_000);
    }

    #[test]
    fn who_asks_in_rounds_waits_shorter_for_those_who_never_answer() {
        let hops = Patience::of_rounds(2, MS * 1000);
        assert_eq!(hops.span(), MS * 1000);
        let path = |rtt| hops.knowing(Some(MS * rtt)).span();
        assert_eq!([path(20), path(600), path(9000)], [140, 1300, 15_000].map(|want| MS * want));
    }

    #[test]
    fn a_handshake_is_the_first_round_trip() {
        assert_eq!(Patience::following(LEAST).knowing(Some(MS * 1200)).span(), MS * 4800);
        assert_eq!(Patience::following(LEAST).knowing(None).span(), UNKNOWN);
    }

    #[test]
    fn a_stream_is_listened_to_after_its_end_by_one_rule() {
        let path = |rtt| after_the_end(MS * rtt);
        assert_eq!([path(0), path(1), path(20), path(200)], [50, 54, 130, 300].map(|want| MS * want));
    }
}
