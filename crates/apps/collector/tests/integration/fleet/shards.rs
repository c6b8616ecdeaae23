//! Two collectors that share the digests, beside one that has them all.

use std::path::Path;

use netaware_passive::join::{is_clock_sample, shard_of};
use netaware_record::passive::{DelayRow, PacketSighting, ProbeReport};

use super::clocks::{PACKETS, World};
use super::joined::{awaited, awaited_of, periods, rows, rows_of};
use super::probe::{Probe, seen};
use super::{Running, TWO, start};

/// A collector and the two probes' connections to it.
struct Site {
    collector: Running,
    probes: [Probe; 2],
    /// Index and number of parts.
    shard: (u16, u16),
}

impl Site {
    /// `more` is said of the join.
    fn new(folder: &Path, shard: (u16, u16), more: &str) -> Self {
        std::fs::create_dir(folder).unwrap();
        let text = match shard {
            (_, 1) => TWO.to_owned(),
            (index, parts) => format!("shard = \"{}/{parts}\"\n{TWO}", index + 1),
        };
        let text = format!("{text}{more}");
        let collector = start(folder, &text);
        let probes = ["a", "b"].map(|name| Probe::join(collector.address, name));
        Self { collector, probes, shard }
    }

    /// As a probe's mail divides it: each collector its part of the sightings and the clock sample,
    /// and the report to each.
    fn batch(&mut self, of: usize, told: &ProbeReport, all: &[PacketSighting]) {
        let (index, parts) = self.shard;
        let mine: Vec<PacketSighting> = all
            .iter()
            .copied()
            .filter(|one| shard_of(one.digest, parts) == index || is_clock_sample(one.digest))
            .collect();
        self.probes[of].bytes(told.sequence, &mine, &serde_json::to_vec(told).unwrap());
        self.probes[of].until_taken(told.sequence);
    }
}

/// One with all digests, about whose join `more` is said, and two with half of them.
fn three(folder: &Path, more: &str) -> [Site; 3] {
    [((0, 1), more), ((0, 2), ""), ((1, 2), "")]
        .map(|(shard, more)| Site::new(&folder.join(format!("{}-of-{}", shard.0, shard.1)), shard, more))
}

fn added(rows: Vec<DelayRow>) -> DelayRow {
    rows.into_iter()
        .map(|mut row| {
            // A sum of fractions depends on the order.
            (row.delay.sum_squares, row.ipdv.sum_squares) = (0.0, 0.0);
            row
        })
        .reduce(|mut sum, row| {
            sum.merge(&row);
            sum
        })
        .unwrap()
}

#[test]
fn two_collectors_with_half_of_the_digests_each_find_what_one_finds() {
    let folder = tempfile::tempdir().unwrap();
    let mut sites = three(folder.path(), "");
    for (place, period) in periods(12).into_iter().enumerate() {
        let at = |n: u64| period.from.0 + 100_000_000 + n as i64 * 1_000_000;
        let number = |n: u64| place as u64 * 1000 + n;
        let sent: Vec<PacketSighting> = (0..400).map(|n| seen(number(n), at(n), 64)).collect();
        // The second probe refuses its task from the ninth period on (no such interface, say), and
        // reports all the same.
        let runs = place < 8;
        let come = (0..400).filter(|n| runs && (place != 3 || n % 4 != 0));
        let come: Vec<PacketSighting> =
            come.map(|n| seen(number(n), at(n) + 250_000 + n as i64 * 777, 63)).collect();
        for site in &mut sites {
            let sequence = place as u64 + 1;
            site.batch(0, &site.probes[0].report(sequence, period, sent.len()), &sent);
            let mut told = site.probes[1].report(sequence, period, come.len());
            told.rows.retain(|_| runs);
            site.batch(1, &told, &come);
        }
    }
    let [whole, first, second] = &sites;
    let want = [4800, 3100, 100, 1600];
    assert_eq!(awaited(&whole.collector, want), want, "packets, matched, lost, unobserved");
    let parts = [&first.collector, &second.collector];
    assert_eq!(awaited_of(&parts, want), want, "packets, matched, lost, unobserved of both");
    let (one, both) = (added(rows(&whole.collector)), added(parts.map(rows).concat()));
    assert_eq!(both.delay, one.delay, "with its histogram");
    assert_eq!((both.duplicates, both.collisions, both.late), (0, 0, 0));
}

#[test]
fn two_collectors_take_off_the_clocks_that_one_takes_off_and_compare_the_same_neighbours() {
    halves_add_up_where_clocks_are_known_by("active_exchange");
}

#[test]
fn two_collectors_find_the_same_clocks_where_only_traffic_tells_of_them() {
    halves_add_up_where_clocks_are_known_by("traffic_both_ways");
}

fn halves_add_up_where_clocks_are_known_by(method: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut sites = three(folder.path(), "lanes = 2\n");
    let periods = periods(8);
    let mut world = World::new(periods[0].from.0);
    for (place, period) in periods.into_iter().enumerate() {
        let both = world.both_ways(place, period);
        for site in &mut sites {
            "another kernel".clone_into(&mut site.probes[1].kernel);
            for (of, seen) in both.iter().enumerate() {
                let mut told = site.probes[of].report(place as u64 + 1, period, seen.len());
                if of == 0 && method == "active_exchange" {
                    told.exchanges.push(world.exchanges(period));
                }
                site.batch(of, &told, seen);
            }
        }
    }
    let [whole, first, second] = &sites;
    let want = [8 * PACKETS, 8 * PACKETS, 0, 0];
    assert_eq!(awaited(&whole.collector, want), want);
    let parts = [&first.collector, &second.collector];
    assert_eq!(awaited_of(&parts, want), want);
    for pair in ["a,b", "b,a"] {
        let of_pair =
            |site: &Running| rows_of(site, pair).into_iter().map(|(_, row)| row).collect::<Vec<_>>();
        let one = added(of_pair(&whole.collector));
        assert_eq!(one.clock_method, method);
        assert_eq!(added(parts.map(of_pair).concat()), one);
    }
}
