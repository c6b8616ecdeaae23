//! Walks through every order in which two ends, their connections and what happens to those can
//! act, and holds each step against what a stream promises: bytes come once and in order, every
//! wish ends, it cannot go on for ever, and where nothing is left to do all has come, and both
//! directions go the same way.
//!
//! What the applications do, the wishes and the failures are budgets that are spent in any order; a
//! connection that fails is made anew. Frames that mean nothing any more are left out ([`tidy`]),
//! which leaves a twentieth of the states; the small walks are made with and without that, and end
//! alike. What is walked through in the gate, and what in hours (`cargo xtask nightly --only
//! walks`), and how many states that are, is written down in docs/dual-stack-stream.md.

mod explore;
mod name;
mod sabotage;
mod tidy;
mod world;

use std::thread;

use explore::{Explored, explore};
use sabotage::Sabotage;
use world::{Budget, Pace, World};

/// From where, and what happens.
#[derive(Debug, Clone, Copy)]
enum Walk {
    Connected(Budget),
    Unconnected(Budget),
}

impl Walk {
    fn go(self, tidy: bool) -> Result<Explored, String> {
        let found = match self {
            Self::Connected(budget) => explore(World::connected(Budget { tidy, ..budget })),
            Self::Unconnected(budget) => explore(World::new(Budget { tidy, ..budget })),
        }?;
        let Explored { states, steps, finals, longest } = &found;
        println!(
            "{states} states, {steps} steps, {} ends, the longest way {longest}: {self:?}",
            finals.len()
        );
        assert!(!finals.is_empty());
        Ok(found)
    }

    fn holds(self) {
        self.go(true).unwrap_or_else(|fault| panic!("{fault}"));
    }

    /// With every frame as well, and no other end is reached.
    fn holds_and_leaves_nothing_out(self) {
        let [some, every] = [true, false].map(|tidy| self.go(tidy).unwrap_or_else(|fault| panic!("{fault}")));
        assert_eq!(some.finals, every.finals);
        assert!(some.states < every.states);
    }

    /// That something is wrong is found with frames left out as well as without.
    fn does_not_hold(self) {
        for tidy in [true, false] {
            // The gate allows a test to survive the panics of a thread with this name.
            let walk = thread::Builder::new().name("panics on purpose".to_owned());
            let found = walk.spawn(move || self.go(tidy)).unwrap().join();
            assert!(!matches!(found, Ok(Ok(_))), "nothing was found by {self:?}");
        }
    }
}

fn budget(bytes: [u8; 2], wishes: [u8; 2], fail: [u8; 2]) -> Budget {
    Budget {
        bytes,
        wishes,
        holds: [0; 2],
        fail,
        room: 4,
        sabotage: None,
        tidy: true,
        paces: [Pace::AtOnce; 2],
    }
}

/// What is due is written record by record, at any time later.
fn slowly(bytes: [u8; 2], wishes: [u8; 2], fail: [u8; 2]) -> Walk {
    Walk::Connected(Budget { paces: [Pace::Late; 2], ..budget(bytes, wishes, fail) })
}

/// Each end may be held once, at any time, for any time.
fn held(bytes: [u8; 2], wishes: [u8; 2], holds: [u8; 2]) -> Walk {
    held_and_failing(bytes, wishes, holds, [0; 2])
}

fn held_and_failing(bytes: [u8; 2], wishes: [u8; 2], holds: [u8; 2], fail: [u8; 2]) -> Walk {
    Walk::Connected(Budget { holds, ..budget(bytes, wishes, fail) })
}

/// All of these together, with a failure of either connection.
fn each_with_a_failure(
    walk: impl Fn([u8; 2], [u8; 2], [u8; 2]) -> Walk,
    all_bytes: &[[u8; 2]],
    all_wishes: &[[u8; 2]],
) {
    for bytes in all_bytes {
        for wishes in all_wishes {
            for fail in [[1, 0], [0, 1]] {
                walk(*bytes, *wishes, fail).holds();
            }
        }
    }
}

/// One end writes what is due at once, and the other one at any time later.
fn slowly_at(slow: usize) -> impl Fn([u8; 2], [u8; 2], [u8; 2]) -> Walk {
    let mut paces = [Pace::AtOnce; 2];
    paces[slow] = Pace::Late;
    move |bytes, wishes, fail| Walk::Connected(Budget { paces, ..budget(bytes, wishes, fail) })
}

fn connected(bytes: [u8; 2], wishes: [u8; 2], fail: [u8; 2]) -> Walk {
    Walk::Connected(budget(bytes, wishes, fail))
}

#[test]
fn connections_come_up_in_any_order() {
    Walk::Unconnected(budget([1, 0], [0, 0], [0, 0])).holds_and_leaves_nothing_out();
}

#[test]
fn bytes_both_ways_and_little_room() {
    Walk::Connected(Budget { room: 1, ..budget([2, 1], [0, 0], [0, 0]) }).holds_and_leaves_nothing_out();
}

#[test]
fn one_wish_of_either_end() {
    connected([1, 0], [1, 0], [0, 0]).holds_and_leaves_nothing_out();
    connected([1, 0], [0, 1], [0, 0]).holds_and_leaves_nothing_out();
}

#[test]
fn wishes_that_cross() {
    connected([0, 0], [1, 1], [0, 0]).holds();
}

#[test]
fn a_failure_at_any_step() {
    connected([1, 0], [0, 0], [1, 0]).holds_and_leaves_nothing_out();
    connected([1, 0], [0, 0], [0, 1]).holds_and_leaves_nothing_out();
}

#[test]
fn a_wish_and_a_failure_at_any_step() {
    connected([1, 0], [1, 0], [1, 0]).holds();
    connected([1, 0], [0, 1], [0, 1]).holds();
}

#[test]
fn sockets_that_take_nothing_for_a_while() {
    slowly([1, 0], [0, 0], [0, 0]).holds_and_leaves_nothing_out();
    slowly([1, 0], [1, 0], [0, 0]).holds();
}

#[test]
fn an_end_that_is_held_at_any_step() {
    held([1, 0], [1, 0], [1, 0]).holds_and_leaves_nothing_out();
    held([1, 0], [1, 0], [0, 1]).holds_and_leaves_nothing_out();
    held([1, 0], [0, 1], [1, 0]).holds_and_leaves_nothing_out();
    held([1, 0], [0, 1], [0, 1]).holds_and_leaves_nothing_out();
    held([0, 0], [1, 1], [1, 1]).holds();
    held_and_failing([1, 0], [0, 0], [1, 0], [1, 0]).holds();
}

#[test]
fn what_is_broken_is_found() {
    let sabotaged = |sabotage, bytes, wishes, fail| {
        Walk::Connected(Budget { sabotage: Some(sabotage), ..budget(bytes, wishes, fail) }).does_not_hold();
    };
    sabotaged(Sabotage::AnswersLost, [1, 0], [1, 0], [0, 0]);
    sabotaged(Sabotage::EndTooLate, [1, 0], [1, 0], [0, 0]);
    sabotaged(Sabotage::AcknowledgedAhead, [1, 0], [0, 0], [1, 0]);
    sabotaged(Sabotage::WelcomeAhead, [1, 0], [0, 0], [1, 0]);
    sabotaged(Sabotage::CrossedIsGranted, [0, 0], [1, 1], [0, 0]);
}

const ONE_WISH: &[[u8; 2]] = &[[1, 0], [0, 1]];
const TWO_WISHES: &[[u8; 2]] = &[[2, 0], [1, 1], [0, 2]];
const THREE_WISHES: &[[u8; 2]] = &[[3, 0], [2, 1], [1, 2], [0, 3]];

/// The walks for nightly: without leaving out as far as that goes.
mod long {
    use super::*;

    #[test]
    #[ignore = "long: 1 minute, millions of states"]
    fn wishes_that_cross_and_failures_with_every_frame() {
        connected([1, 1], [1, 1], [0, 0]).holds_and_leaves_nothing_out();
        connected([1, 0], [1, 0], [1, 0]).holds_and_leaves_nothing_out();
        connected([1, 0], [0, 1], [1, 0]).holds_and_leaves_nothing_out();
        connected([1, 0], [1, 0], [0, 1]).holds_and_leaves_nothing_out();
        connected([1, 0], [0, 1], [0, 1]).holds_and_leaves_nothing_out();
        connected([1, 0], [2, 1], [0, 0]).holds_and_leaves_nothing_out();
    }

    #[test]
    #[ignore = "long: 1 minute, millions of states"]
    fn two_wishes_and_ends_that_are_held_at_any_step() {
        for wishes in [[2, 0], [1, 1], [0, 2]] {
            for holds in [[1, 0], [0, 1], [1, 1]] {
                held([1, 0], wishes, holds).holds();
            }
        }
        for (wishes, holds) in [([1, 0], [1, 0]), ([1, 0], [0, 1]), ([0, 1], [1, 0]), ([0, 1], [0, 1])] {
            held_and_failing([1, 0], wishes, holds, [1, 0]).holds();
            held_and_failing([1, 0], wishes, holds, [0, 1]).holds();
        }
    }

    #[test]
    #[ignore = "long: 1 minute, millions of states"]
    fn a_failure_while_connections_come_up() {
        Walk::Unconnected(budget([1, 0], [0, 0], [1, 0])).holds();
        Walk::Unconnected(budget([1, 0], [0, 0], [0, 1])).holds();
    }

    #[test]
    #[ignore = "long: 1 minute, millions of states"]
    fn sockets_that_take_nothing_for_a_while() {
        for wishes in [[1, 0], [0, 1], [1, 1]] {
            slowly([1, 0], wishes, [0, 0]).holds();
        }
        slowly([2, 1], [0, 0], [0, 0]).holds();
        slowly([1, 0], [0, 0], [1, 0]).holds();
        slowly([1, 0], [0, 0], [0, 1]).holds();
        slowly([1, 0], [1, 0], [1, 0]).holds();
        slowly([1, 0], [0, 1], [0, 1]).holds();
    }

    #[test]
    #[ignore = "long: 1 minute, millions of states"]
    fn two_failures_at_any_step() {
        for fail in [[2, 0], [1, 1], [0, 2]] {
            connected([1, 0], [0, 0], fail).holds();
            connected([1, 0], [1, 0], fail).holds();
            connected([1, 0], [0, 1], fail).holds();
        }
    }

    #[test]
    #[ignore = "long: 1 minute, millions of states"]
    fn three_wishes_and_a_failure_at_any_step() {
        for wishes in [[3, 0], [2, 1], [1, 2], [0, 3]] {
            for fail in [[0, 0], [1, 0], [0, 1]] {
                connected([1, 0], wishes, fail).holds();
            }
        }
    }

    #[test]
    #[ignore = "long: 1 minute, millions of states"]
    fn bytes_both_ways_and_a_wish_and_a_failure_at_any_step() {
        each_with_a_failure(connected, &[[1, 1], [2, 1], [3, 0]], ONE_WISH);
        each_with_a_failure(connected, &[[2, 2]], &[[0, 0]]);
    }

    #[test]
    #[ignore = "long: 1 minute, millions of states"]
    fn bytes_both_ways_and_two_wishes_and_a_failure_at_any_step() {
        each_with_a_failure(connected, &[[1, 1]], TWO_WISHES);
    }

    #[test]
    #[ignore = "long: 1 minute, millions of states"]
    fn sockets_that_take_nothing_for_a_while_and_bytes_both_ways_and_a_failure() {
        each_with_a_failure(slowly, &[[1, 1]], &[[0, 0]]);
        each_with_a_failure(slowly_at(0), &[[1, 0]], ONE_WISH);
        each_with_a_failure(slowly_at(1), &[[1, 0]], ONE_WISH);
    }

    #[test]
    #[ignore = "long: 1 minute, millions of states"]
    fn bytes_both_ways_and_a_failure_while_connections_come_up() {
        let unconnected = |bytes, wishes, fail| Walk::Unconnected(budget(bytes, wishes, fail));
        each_with_a_failure(unconnected, &[[1, 1]], &[[0, 0]]);
        each_with_a_failure(unconnected, &[[1, 0]], ONE_WISH);
    }
}

/// Minutes each, and not a part of the suite `long`: `cargo xtask nightly --only walks`.
mod deep {
    use super::*;

    #[test]
    #[ignore = "tens of millions of states; cargo xtask nightly --only walks"]
    fn bytes_both_ways_and_three_wishes_and_a_failure_at_any_step() {
        each_with_a_failure(connected, &[[1, 1]], THREE_WISHES);
    }

    #[test]
    #[ignore = "tens of millions of states; cargo xtask nightly --only walks"]
    fn more_bytes_and_wishes_and_a_failure_at_any_step() {
        each_with_a_failure(connected, &[[2, 1]], &[[1, 1]]);
        each_with_a_failure(connected, &[[2, 2]], ONE_WISH);
        each_with_a_failure(connected, &[[2, 0]], TWO_WISHES);
        each_with_a_failure(connected, &[[2, 0]], THREE_WISHES);
    }

    #[test]
    #[ignore = "tens of millions of states; cargo xtask nightly --only walks"]
    fn sockets_that_take_nothing_for_a_while_and_two_wishes_and_a_failure() {
        each_with_a_failure(slowly, &[[1, 0]], TWO_WISHES);
        each_with_a_failure(slowly, &[[1, 1]], ONE_WISH);
    }

    #[test]
    #[ignore = "tens of millions of states; cargo xtask nightly --only walks"]
    fn one_end_whose_sockets_take_nothing_for_a_while_and_three_wishes_and_a_failure() {
        for slow in [0, 1] {
            each_with_a_failure(slowly_at(slow), &[[1, 0]], THREE_WISHES);
        }
    }
}
