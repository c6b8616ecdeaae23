//! What did not come, or comes much later, is told from what the network lost.

use netaware_record::passive::{PacketSighting, Period};
use netaware_units::Wall;

use super::joined::{awaited, periods, periods_ago};
use super::probe::{Probe, seen};
use super::{TWO, start};

fn packets(place: usize, period: Period, delay: i64, ttl: u8) -> Vec<PacketSighting> {
    let at = |n: i64| period.from.0 + 100_000_000 + n * 1_000_000 + delay;
    (0..500).map(|n| seen(place as u64 * 1000 + n as u64, at(n), ttl)).collect()
}

#[test]
fn packets_of_batches_that_never_came_or_could_not_be_read_are_unobserved_and_none_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let (mut a, mut b) = (Probe::join(collector.address, "a"), Probe::join(collector.address, "b"));
    let mut sequence = 0;
    for (place, period) in periods(10).into_iter().enumerate() {
        a.batch(place as u64 + 1, period, &packets(place, period, 0, 64));
        let come = packets(place, period, 250_000, 63);
        let (first, second) = come.split_at(200);
        sequence += 1;
        match place {
            // The probe's disk was full: the number is used up, and the smaller report still had
            // room.
            2 => {}
            6 => b.raw(sequence, &[0; 40], b""),
            _ => b.bytes(sequence, first, b""),
        }
        sequence += 1;
        let behind = b.report(sequence, period, 500);
        b.bytes(sequence, second, &serde_json::to_vec(&behind).unwrap());
    }
    a.until_taken(10);
    b.until_taken(sequence);
    let sums = awaited(&collector, [5000, 4600, 0, 400]);
    assert_eq!(sums, [5000, 4600, 0, 400], "packets, matched, lost, unobserved");
    let view = collector.ask("/api/v1/probes");
    assert!(view.to_string().contains(r#""missing":1"#), "{view}");
}

#[test]
fn what_lay_on_disks_for_hours_is_joined_as_if_it_had_come_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let collector =
        start(folder.path(), &TWO.replace("report_patience = \"1s\"", "report_patience = \"2s\""));
    let (mut a, mut b) = (Probe::join(collector.address, "a"), Probe::join(collector.address, "b"));
    // Three hours, all but a few seconds: some of it would pass an hour's limit for one point and
    // not for the other.
    let backlog = periods_ago(6, 3 * 3600).into_iter().chain(periods_ago(6, 3600));
    for (place, period) in backlog.enumerate() {
        let is_inner = [2, 3, 8, 9].contains(&place);
        let come = packets(place, period, 250_000, 63).into_iter().enumerate();
        let come: Vec<_> = come.filter(|(n, _)| !is_inner || n % 10 != 0).map(|(_, one)| one).collect();
        a.batch(place as u64 + 1, period, &packets(place, period, 0, 64));
        b.batch(place as u64 + 1, period, &come);
    }
    a.until_taken(12);
    b.until_taken(12);
    let sums = awaited(&collector, [6000, 5800, 200, 0]);
    assert_eq!(sums, [6000, 5800, 200, 0], "packets, matched, lost, unobserved");
}

#[test]
fn stamps_of_a_time_to_come_are_lacking_in_the_reports_that_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let (mut a, mut b) = (Probe::join(collector.address, "a"), Probe::join(collector.address, "b"));
    for (place, period) in periods(8).into_iter().enumerate() {
        a.batch(place as u64 + 1, period, &packets(place, period, 0, 64));
        let mut come = packets(place, period, 250_000, 63);
        if place == 3 {
            come[..100].iter_mut().for_each(|one| one.at = Wall(one.at.0 + 7_200_000_000_000));
        }
        b.batch(place as u64 + 1, period, &come);
    }
    a.until_taken(8);
    b.until_taken(8);
    let sums = awaited(&collector, [4000, 3900, 0, 100]);
    assert_eq!(sums, [4000, 3900, 0, 100], "packets, matched, lost, unobserved");
}
