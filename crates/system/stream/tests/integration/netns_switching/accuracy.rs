//! How short the stalls are in real time.

use super::*;

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn a_requested_switch_stalls_the_reader_for_less_than_one_and_a_half_round_trips() {
    if permitted() {
        let stalls = stalls_of_five_switches();
        assert!(stalls[2] <= Span::from_millis(60), "{stalls:?}");
    }
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn a_dead_version_is_left_within_a_second() {
    if permitted() {
        let stall = stall_of_a_death();
        assert!(stall <= Span::from_secs(1), "a stall of {stall}");
    }
}
