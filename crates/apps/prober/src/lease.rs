//! How long the responder's place is needed beyond the time that transfers send.
//!
//! A lease that is too short refuses the tail of a measurement; one that is too long only makes the
//! wait look longer that others are told. So every exchange is counted with its round trips, and a
//! place that ends too soon all the same is asked for again ([`crate::lane::keep_reserved`]).

use netaware_units::Span;

use crate::lane::Lane;

/// What opening, attaching, starting and ending one transfer take, `connects` connections or knocks
/// having been made one after the other.
pub(crate) fn exchanges(round_trip: Span, connects: i64) -> Span {
    FIXED + round_trip.or_zero() * (ROUND_TRIPS + 2 * connects.max(1))
}

/// The same with queues that are waited for at the end for up to `drain`, as the plan of the
/// transfer says: for a lease that must not run out.
pub(crate) fn exchanges_at_most(round_trip: Span, connects: i64, drain: Span) -> Span {
    exchanges(round_trip, connects) + drain
}

/// What `transfers` of each version that is alive need beside the time that they send.
pub(crate) fn around(lanes: &[Lane], transfers: i64, connects: i64) -> Span {
    let alive = lanes.iter().filter(|lane| lane.is_alive());
    alive.map(|lane| exchanges(lane.round_trip(), connects) * transfers).sum()
}

/// What one exchange with the responder takes: a round trip, or more where packets are lost, as
/// opening the sessions has shown. Over a version that nobody answered there is none.
pub(crate) fn exchange(lanes: &[Lane]) -> Span {
    let alive = lanes.iter().filter(|lane| lane.is_alive());
    alive
        .map(|lane| exchange_of(lane.round_trip(), lane.opening, lane.unanswered_for))
        .max()
        .unwrap_or_default()
}

/// The same of one version whose opening took so long. The time for which first segments were
/// `unanswered` is TCP's time-out, of a second and more, and tells nothing of later exchanges.
fn exchange_of(round_trip: Span, opening: Span, unanswered: Span) -> Span {
    round_trip.max((opening - unanswered).or_zero() / OPENING_ROUND_TRIPS)
}

/// Of opening a session, or a little more: connecting a few times, hello, welcome.
pub(crate) const OPENING_ROUND_TRIPS: i64 = 10;
/// On a path without delay.
const FIXED: Span = Span::from_millis(60);
/// Open, start, end; what is sent begins half a round trip later, and is heard of half of one.
const ROUND_TRIPS: i64 = 4;

#[cfg(test)]
mod tests {
    use netaware_record::Direction;
    use netaware_wire::control::{TcpPlan, TestPlan};

    use super::*;

    #[test]
    fn a_lease_contains_the_round_trips_of_its_exchanges() {
        assert_eq!(exchanges(Span::ZERO, 1), FIXED);
        assert_eq!(exchanges(Span::from_millis(300), 1) - FIXED, Span::from_millis(1800));
        assert_eq!(exchanges(Span::from_millis(300), 64) - FIXED, Span::from_millis(300) * 132);
    }

    /// "An exchange with the responder takes 212 ms" was said of a path of 20 ms.
    #[test]
    fn a_syn_that_was_lost_does_not_make_every_exchange_slow() {
        let millis = Span::from_millis;
        assert_eq!(exchange_of(millis(20), millis(2120), millis(2000)), millis(20));
        assert_eq!(exchange_of(millis(20), millis(120), Span::ZERO), millis(20));
        // A greeting that was sent again is what an exchange may take.
        assert_eq!(exchange_of(millis(20), millis(420), Span::ZERO), millis(42));
    }

    #[test]
    fn a_lease_does_not_end_during_a_deep_drain() {
        for seconds in [1, 10, 30, 600] {
            let plan = TcpPlan::new(Direction::Forward, Span::from_secs(seconds));
            let needed = exchanges_at_most(Span::from_millis(600), 1, plan.longest_drain());
            assert!(needed > TestPlan::Tcp(plan).longest_drain(), "{seconds} s");
        }
    }
}
