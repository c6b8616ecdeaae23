//! How near RFC 6349's figures are to the truth, with the emulator at its best.

use netaware_testkit::figures::judge;

use super::*;

/// One in a hundred packets later than this would show in the round trips.
const LATE: Span = Span::from_millis(1);

fn nothing_is_off(measure: impl Fn() -> (Vec<String>, Report)) {
    if permitted() {
        let (off, report) = measure();
        judge(&off, &report, LATE);
    }
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn a_link_that_is_filled_has_a_ratio_of_one_and_its_slow_start() {
    nothing_is_off(filled);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn every_hundredth_packet_lost_is_one_per_cent_of_efficiency() {
    nothing_is_off(losing);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn blocks_spaced_wider_than_the_path_needs_leave_on_time_and_arrive_as_fast() {
    nothing_is_off(spaced);
}
