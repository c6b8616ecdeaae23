//! Walks through every order in which two ends, their two connections and what happens to those can act, and holds each state
//! against what a stream promises: bytes come once and in order, every wish ends, no state is without a way to the end, and
//! there both directions go the same way.
//!
//! What the applications do, the wishes and the failures are budgets that are spent in any order; a connection that fails is
//! made anew. Writing is done at once, which leaves nothing out: what a failure would have kept from being written is what it
//! takes from the wire.

mod explore;
mod world;

use explore::explore;
use world::{Budget, World};

fn holds_for(first: World) -> usize {
    let found = explore(first);
    println!("{} states, {} of them final", found.states, found.last);
    assert!(found.last > 0);
    found.states
}

fn budget(bytes: [u8; 2], wishes: [u8; 2], failures: u8) -> Budget {
    Budget { bytes, wishes, failures, room: 4 }
}

#[test]
fn connections_come_up_in_any_order() {
    assert!(holds_for(World::new(budget([1, 0], [0, 0], 0))) > 100);
}

#[test]
fn bytes_both_ways_and_little_room() {
    holds_for(World::connected(Budget { room: 1, ..budget([2, 1], [0, 0], 0) }));
}

#[test]
fn one_wish_of_either_end() {
    holds_for(World::connected(budget([1, 0], [1, 0], 0)));
    holds_for(World::connected(budget([1, 0], [0, 1], 0)));
}

#[test]
fn a_failure_at_any_step() {
    holds_for(World::connected(budget([1, 0], [0, 0], 1)));
}

#[test]
#[ignore = "hundreds of thousands of states; for a release build"]
fn two_wishes_that_cross() {
    holds_for(World::connected(budget([1, 1], [1, 1], 0)));
}

#[test]
#[ignore = "hundreds of thousands of states; for a release build"]
fn a_failure_while_connections_come_up() {
    holds_for(World::new(budget([1, 0], [0, 0], 1)));
}

#[test]
#[ignore = "hundreds of thousands of states; for a release build"]
fn a_wish_and_a_failure_at_any_step() {
    holds_for(World::connected(budget([1, 0], [1, 0], 1)));
    holds_for(World::connected(budget([1, 0], [0, 1], 1)));
}

#[test]
#[ignore = "millions of states; for a release build"]
fn three_wishes() {
    holds_for(World::connected(budget([1, 0], [2, 1], 0)));
    holds_for(World::connected(budget([1, 0], [1, 2], 0)));
}
