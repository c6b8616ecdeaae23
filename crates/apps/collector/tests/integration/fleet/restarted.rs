//! A collector that is ended on purpose while packets wait to be joined, and started again.

use netaware_record::passive::{PacketSighting, Period};

use super::joined::{awaited, periods_ago, rows_of};
use super::probe::{Probe, seen};
use super::{TWO, start};

fn packets(place: usize, period: Period, delay: i64, ttl: u8) -> Vec<PacketSighting> {
    let at = |n: i64| period.from.0 + 100_000_000 + n * 1_000_000 + delay;
    (0..500).map(|n| seen(place as u64 * 1000 + n as u64, at(n), ttl)).collect()
}

#[test]
fn a_collector_that_was_ended_and_started_goes_on_and_no_packet_is_unobserved() {
    let folder = tempfile::tempdir().unwrap();
    let patient = TWO.replace("report_patience = \"1s\"", "report_patience = \"3s\"");
    let collector = start(folder.path(), &patient);
    let periods = periods_ago(5, 20);
    // The first point's packets are taken, the second's are still on its disk when the process
    // ends.
    let mut a = Probe::join(collector.address, "a");
    for (place, period) in periods.iter().enumerate().take(3) {
        a.batch(place as u64 + 1, *period, &packets(place, *period, 0, 64));
    }
    a.until_taken(3);
    collector.end();

    let collector = start(folder.path(), &patient);
    let (mut a, mut b) = (Probe::join(collector.address, "a"), Probe::join(collector.address, "b"));
    assert_eq!((a.taken, b.taken), (3, 0));
    for (place, period) in periods.iter().enumerate() {
        let mut come = packets(place, *period, 250_000, 63);
        // What is lost is told as lost: that the points watched is known across the restart.
        come.retain(|packet| place != 2 || packet.at.0 / 1_000_000 % 10 != 5);
        if place > 2 {
            a.batch(place as u64 + 1, *period, &packets(place, *period, 0, 64));
        }
        b.batch(place as u64 + 1, *period, &come);
    }
    a.until_taken(5);
    b.until_taken(5);
    let want = [2500, 2450, 50, 0];
    assert_eq!(awaited(&collector, want), want, "packets, matched, lost, unobserved");
    assert_eq!(rows_of(&collector, "a,b").len(), 5, "a row for each period");
    collector.end();
    let left = std::fs::read_dir(folder.path().join("netaware-collect/joins")).unwrap();
    assert_eq!(left.count(), 1, "the file of the one join, for the next start");
}
