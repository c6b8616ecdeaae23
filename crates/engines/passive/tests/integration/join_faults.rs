//! What goes wrong around a join, and that none of it is taken for a loss of the network.

use netaware_passive::join::{Expects, Join, JoinSettings, Joined, Pair, PointId};
use netaware_record::passive::{ClockState, DelayRow, PacketSighting, Period};
use netaware_units::{Span, Wall};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;
const A: PointId = PointId(0);
const B: PointId = PointId(1);
const C: PointId = PointId(2);

fn settings() -> JoinSettings {
    JoinSettings {
        period: Span::from_secs(1),
        patience: Span::from_millis(200),
        lateness: Span::from_millis(200),
        clocks_apart: Span::from_millis(10),
        report_patience: Span::from_secs(5),
        ..JoinSettings::of(["a", "b", "c"])
    }
}

/// Only from a to b.
fn join(settings: JoinSettings) -> Join {
    Join::new(JoinSettings { pairs: vec![Pair::new("a", "b")], ..settings }).unwrap()
}

/// A packet each millisecond of `from..until` (ms), `hop` hops and ms behind the first point.
fn packets(from: i64, until: i64, hop: u8) -> Vec<PacketSighting> {
    let packet = |ms: i64| PacketSighting {
        digest: (ms as u64).wrapping_mul(0x2545_f491_4f6c_dd1d),
        at: Wall((ms + i64::from(hop)) * MS),
        length: 100,
        ttl: 64 - hop,
        version: 4,
    };
    (from..until).map(packet).collect()
}

fn watched(join: &mut Join, point: PointId, from: i64, until: i64, lost: u64) {
    let clock = ClockState { identity: Some("one".into()), ..ClockState::default() };
    join.watched(point, Period { from: Wall(from * MS), until: Wall(until * MS) }, lost, &clock);
}

/// Packets, matched, lost, unobserved, late, given up of all rows from a to b.
fn totals(joined: &[Joined]) -> [u64; 6] {
    let rows =
        joined.iter().flat_map(|joined| &joined.delays).filter(|row| (&*row.from, &*row.to) == ("a", "b"));
    rows.fold([0; 6], |sum, row: &DelayRow| {
        let these = [row.packets, row.matched, row.lost, row.unobserved, row.late, row.given_up];
        std::array::from_fn(|at| sum[at] + these[at])
    })
}

#[test]
fn a_report_that_never_comes_makes_unobserved_packets_and_no_losses() {
    let mut join = join(settings());
    join.offer(A, &packets(1000, 4000, 0));
    watched(&mut join, A, 0, 9000, 0);
    watched(&mut join, C, 0, 9000, 0);
    // b's report of the third second is missing; in the others it saw all but a tenth.
    for (from, until) in [(1000, 2000), (3000, 4000)] {
        let mut seen = packets(from, until, 1);
        seen.retain(|packet| packet.at.0 / MS % 10 != 5);
        join.offer(B, &seen);
    }
    watched(&mut join, B, 0, 2001, 0);
    watched(&mut join, B, 3001, 9000, 0);
    assert!(join.advance(Wall(6 * SECOND)).iter().all(|joined| joined.period.until <= Wall(2 * SECOND)));
    let mut joined = join.advance(Wall(30 * SECOND));
    joined.append(&mut join.finish());
    let [packets, matched, lost, unobserved, ..] = totals(&joined);
    assert_eq!((packets, matched, packets - matched - lost), (3000, 1800, unobserved));
    // A loss within patience and clocks of the gap is unobserved as well: 21 before and 21 behind
    // of those 200.
    assert_eq!(unobserved, 1000 + 21 + 21);
}

#[test]
fn a_capture_that_lost_packets_makes_its_time_unobserved() {
    let mut join = join(settings());
    join.offer(A, &packets(1000, 2000, 0));
    join.offer(B, &packets(1000, 1900, 1));
    watched(&mut join, A, 0, 9000, 0);
    watched(&mut join, B, 0, 9000, 3);
    let joined = join.finish();
    assert_eq!(totals(&joined)[..4], [1000, 900, 0, 100]);
    assert!(joined[0].delays[0].warnings.iter().any(|warning| warning.contains("'b' lost 3 packets")));
}

#[test]
fn a_collector_that_was_restarted_knows_that_it_knows_nothing_of_before() {
    // The first one dies with everything that b reported up to 2 s; a's last report was not taken
    // yet and comes again.
    let mut join = join(settings());
    join.offer(A, &packets(1000, 4000, 0));
    join.offer(B, &packets(2000, 4000, 1));
    watched(&mut join, A, 1000, 9000, 0);
    watched(&mut join, B, 2000, 9000, 0);
    let [packets, matched, lost, unobserved, ..] = totals(&join.finish());
    assert_eq!((packets, matched, lost, unobserved), (3000, 2000, 0, 1000));
}

#[test]
fn what_comes_after_its_time_was_settled_changes_nothing() {
    let mut join = join(settings());
    join.offer(A, &packets(1000, 2000, 0));
    watched(&mut join, A, 0, 60_000, 0);
    watched(&mut join, C, 0, 60_000, 0);
    // b is waited for, but not without end.
    assert!(join.advance(Wall(26 * SECOND)).is_empty());
    let mut joined = join.advance(Wall(31 * SECOND));
    assert_eq!(totals(&joined)[..4], [1000, 0, 0, 1000]);
    // b was cut off for a minute.
    join.offer(B, &packets(1000, 2000, 1));
    watched(&mut join, B, 0, 60_000, 0);
    joined.append(&mut join.finish());
    assert_eq!(totals(&joined)[..4], [1000, 0, 0, 1000]);
    assert_eq!(join.counts().came_late, 1000);
}

#[test]
fn a_packet_that_was_handed_over_with_the_next_period_is_no_loss() {
    let mut join = join(settings());
    let mut joined = Vec::new();
    for second in 1..9 {
        let (from, until) = (second * 1000, (second + 1) * 1000);
        // The last eight of each second lay in b's ring when it reported on that second.
        let b_from = if second == 1 { from } else { from - 8 };
        join.offer(A, &packets(from, until, 0));
        join.offer(B, &packets(b_from, until - 8, 1));
        for point in [A, B, C] {
            watched(&mut join, point, from, until, 0);
        }
        joined.append(&mut join.advance(Wall(until * MS)));
    }
    join.offer(B, &packets(8992, 9000, 1));
    joined.append(&mut join.finish());
    assert_eq!(totals(&joined), [8000, 8000, 0, 0, 0, 0]);
    assert_eq!(join.counts().came_late, 0);
}

#[test]
fn what_lay_on_disks_while_the_collector_was_away_is_joined() {
    let mut join = join(settings());
    // It is back after an hour; the probes send ten seconds of it in each second.
    let hour = 3600;
    let mut joined = Vec::new();
    for second in 0..400 {
        let (from, until) = (second * 10_000, (second + 1) * 10_000);
        for (point, hop) in [(A, 0), (B, 1), (C, 2)] {
            join.offer(point, &packets(from, from + 100, hop));
            watched(&mut join, point, from, until, 0);
            joined.append(&mut join.advance(Wall((hour + second) * SECOND)));
        }
    }
    joined.append(&mut join.finish());
    let [packets, matched, lost, unobserved, ..] = totals(&joined);
    assert_eq!((lost, unobserved, join.counts().came_late), (0, 0, 0));
    assert_eq!((packets, matched), (40_000, 40_000));
}

#[test]
fn a_packet_that_comes_after_patience_is_late_and_stays_lost() {
    let mut join = join(settings());
    join.offer(A, &packets(1000, 1010, 0));
    let slow =
        |packet: &PacketSighting| PacketSighting { at: Wall(packet.at.0 + 250 * MS), ttl: 63, ..*packet };
    join.offer(B, &packets(1000, 1010, 0).iter().map(slow).collect::<Vec<_>>());
    for point in [A, B, C] {
        watched(&mut join, point, 0, 9000, 0);
    }
    assert_eq!(totals(&join.finish())[..5], [10, 0, 10, 0, 10]);
}

#[test]
fn full_memory_gives_up_the_oldest_and_says_how_many() {
    let mut join = join(JoinSettings { most_sightings: 2000, ..settings() });
    // a's reports come all at once, b's not at all before: a's oldest cannot wait.
    join.offer(A, &packets(1000, 6000, 0));
    assert!(join.counts().held <= 2000);
    join.offer(B, &packets(1000, 6000, 1));
    for point in [A, B, C] {
        watched(&mut join, point, 0, 9000, 0);
    }
    let given_up = join.counts().given_up;
    let [packets, matched, lost, unobserved, _, row_given_up] = totals(&join.finish());
    assert_eq!((packets, lost), (5000, 0));
    assert_eq!(packets, matched + unobserved + row_given_up);
    assert!(given_up >= 2999 && row_given_up >= 2999 && row_given_up <= join.counts().given_up);
}

#[test]
fn full_memory_still_joins_what_has_its_partner() {
    let mut join = join(JoinSettings { most_sightings: 1500, ..settings() });
    for from in (1000..9000).step_by(100) {
        join.offer(A, &packets(from, from + 100, 0));
        join.offer(B, &packets(from, from + 100, 1));
    }
    for point in [A, B, C] {
        watched(&mut join, point, 0, 12_000, 0);
    }
    assert_eq!(totals(&join.finish()), [8000, 8000, 0, 0, 0, 0]);
}

#[test]
fn nonsense_is_counted_and_not_kept() {
    let mut join = join(settings());
    join.advance(Wall(10 * SECOND));
    let at = |ns: i64| PacketSighting { at: Wall(ns), ..packets(0, 1, 0)[0] };
    join.offer(A, &[at(-1), at(i64::MAX), at(i64::MIN), at(3600 * SECOND)]);
    join.offer(PointId(9), &[at(10 * SECOND)]);
    assert_eq!((join.counts().absurd, join.counts().held), (5, 0));
    watched(&mut join, PointId(9), 0, 10, 0);
    join.watched(A, Period { from: Wall(i64::MAX), until: Wall(i64::MIN) }, 0, &ClockState::default());
    join.watched(A, Period { from: Wall(i64::MIN), until: Wall(i64::MAX) }, 0, &ClockState::default());
    assert!(join.advance(Wall(i64::MAX)).is_empty() && join.finish().is_empty());
}

#[test]
fn a_stamp_may_be_ahead_by_a_period_a_window_and_what_clocks_are_apart_and_no_more() {
    let mut join = join(settings());
    join.advance(Wall(10 * SECOND));
    // The window is patience, lateness, and clocks apart on either side.
    let latest = 10 * SECOND + (1000 + (200 + 200 + 2 * 10) + 10) * MS;
    let at = |ns: i64| PacketSighting { at: Wall(ns), ..packets(0, 1, 0)[0] };
    join.offer(A, &[at(latest), at(latest + 1)]);
    let counts = join.counts();
    assert_eq!((counts.taken, counts.absurd, counts.held), (1, 1, 1));
}

#[test]
fn in_a_mesh_a_packet_that_went_elsewhere_is_no_loss() {
    let mesh = |expects| {
        let pairs = vec![Pair { expects, ..Pair::new("a", "b") }, Pair { expects, ..Pair::new("a", "c") }];
        let mut join = Join::new(JoinSettings { pairs, ..settings() }).unwrap();
        join.offer(A, &packets(1000, 2000, 0));
        join.offer(B, &packets(1000, 1500, 1));
        join.offer(C, &packets(1500, 1990, 1));
        for point in [A, B, C] {
            watched(&mut join, point, 0, 9000, 0);
        }
        join.finish()
    };
    assert_eq!(totals(&mesh(Expects::Everything))[..3], [1000, 500, 500]);
    let joined = mesh(Expects::NothingSeenElsewhere);
    // Ten were seen nowhere else, and nobody knows which of the two they were for.
    assert_eq!(totals(&joined)[..3], [510, 500, 10]);
    let paths: Vec<(String, u64)> =
        joined[0].paths.iter().map(|path| (path.points.join(" "), path.packets)).collect();
    assert_eq!(paths, [("a b".to_owned(), 500), ("a c".to_owned(), 490), ("a".to_owned(), 10)]);
}
