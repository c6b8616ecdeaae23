//! Paths that do nothing but carry: rate, delay, queue, hops.

use netaware_netns::permitted;
use netaware_record::Direction;
use netaware_units::Span;

use super::super::measured::{over, over_text};
use super::ledger::{Ledger, VERSIONS};

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn asymmetric_line_is_read_both_ways() {
    if !permitted() {
        return;
    }
    let run = over("asymmetric", &["-t", "10s"]);
    let mut ledger = Ledger::of(&run);
    ledger.whole();
    ledger.close();
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn bufferbloat_shows_as_a_rise_of_the_round_trip_by_the_queue() {
    if !permitted() {
        return;
    }
    // 300 ms of queue towards B, 20 ms back.
    let path = "[[hop]]\nforward = { rate = '20Mbit/s', delay = '10ms', queue = { time = '300ms' } }\n\
                reverse = { rate = '20Mbit/s', delay = '10ms', queue = { time = '20ms' } }\n";
    let run = over_text("bufferbloat", path, &["-t", "40s", "-C", "cubic"]);
    let mut ledger = Ledger::of(&run);
    for version in VERSIONS {
        ledger.hops(version);
        ledger.idle_rtt(version, Span::ZERO);
        for tcp in run.version(version).tcp.iter().filter(|tcp| tcp.streams > 1) {
            let direction = tcp.pedigree.direction;
            let queue = Span::from_millis(if direction == Direction::Forward { 300 } else { 20 });
            let loaded = tcp.latency_under_load.as_ref().and_then(|loaded| loaded.latency.rtt);
            let base =
                run.version(version).latency.as_ref().and_then(|it| it.rtt).map_or(Span::ZERO, |rtt| rtt.min);
            let what = format!(
                "{} {} under load: {loaded:?}; queue {queue}, base {base}",
                version.name(),
                direction.name()
            );
            // Not more than the queue holds (and the acknowledgements' way back adds a packet or
            // two), but for a few that waited for this host; and at its fullest the sender fills
            // more than half of it.
            let right = loaded.is_some_and(|rtt| {
                rtt.p95 <= base + queue + Span::from_millis(2) && rtt.max >= base + queue / 2
            });
            ledger.note(right, &what);
        }
        ledger.rates(version);
    }
    ledger.close();
}
