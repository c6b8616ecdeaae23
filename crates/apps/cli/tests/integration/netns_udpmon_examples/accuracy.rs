//! What the commands of the page say of time, with the emulator at its best.

use netaware_testkit::figures::judge;

use super::*;

/// One in a hundred packets later than this would show.
const LATE: Span = Span::from_micros(200);

fn are_in_time(commands: &[&str]) {
    if permitted() {
        let (spoiled, report) = of_page(commands);
        judge(&spoiled, &report, LATE);
    }
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn latencies_are_those_of_the_cable() {
    are_in_time(&LATENCIES);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn streams_arrive_at_the_pace_of_the_cable() {
    are_in_time(&STREAMS);
}
