//! Clocks that are 50 ms and 50 ppm apart: what is known of them comes from packets, and every
//! delay holds within its bound.

use netaware_record::passive::{ClockExchange, ClockExchanges, DelayRow, PacketSighting, Period};
use netaware_units::Wall;

use super::joined::{awaited_of, periods, rows_of};
use super::probe::{Probe, seen};
use super::{Running, TWO, start};

/// Smallest delay from a to b, and back, ns; the middle of all limits is off by half the
/// difference.
const LEAST: [i64; 2] = [4_000_000, 6_000_000];
pub(crate) const PACKETS: u64 = 250;
const PERIODS: i64 = 24;
/// All of one way.
const ALL: u64 = PERIODS as u64 * PACKETS;
/// Before, the round trip allows more rates of the clocks than that: they are apart by 50 ms, so
/// lines go on for 50 ms beyond a period.
const KNOWN_AFTER: i64 = 20_000_000_000;

/// The clock of b when that of a, which is right, shows this.
fn clock_b(at: i64, began: i64) -> i64 {
    at + 50_000_000 + (at - began) / 20_000
}

/// And the other way round, to the nanosecond.
fn clock_a(at: i64, began: i64) -> i64 {
    let near = at - 50_000_000;
    near - (near - began) / 20_001
}

/// Up to 0.4 ms of waiting, small values most frequent; the same for the same packet.
fn queue(number: u64) -> i64 {
    let drawn = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as i64;
    (((drawn * drawn) >> 20) * 400_000) >> 20
}

/// What happened to the packets of one period and way.
struct Truth {
    /// When by the clock of the point that saw them first.
    period: i64,
    delays: Vec<i64>,
}

pub(crate) struct World {
    began: i64,
    truth: [Vec<Truth>; 2],
}

impl World {
    /// Both clocks begin to part at this time.
    pub(crate) fn new(began: i64) -> Self {
        Self { began, truth: [Vec::new(), Vec::new()] }
    }

    /// One period's packets as a and as b saw them.
    pub(crate) fn both_ways(&mut self, place: usize, period: Period) -> [Vec<PacketSighting>; 2] {
        let [one, other] = [0, 1].map(|way| self.packets(way, place, period));
        [0, 1].map(|of| [&one[of][..], &other[of][..]].concat())
    }

    /// One period's packets one way (0: from a), as a and as b saw them.
    fn packets(&mut self, way: usize, place: usize, period: Period) -> [Vec<PacketSighting>; 2] {
        let mut seen_at = [Vec::new(), Vec::new()];
        let mut delays = Vec::new();
        for n in 0..PACKETS {
            let number = (way * 100_000 + place * 1000) as u64 + n;
            let delay = LEAST[way] + queue(number);
            let sent = period.from.0 + n as i64 * 4_000_000;
            delays.push(delay);
            // By the clock of who saw it first.
            let left = if way == 0 { sent } else { clock_a(sent, self.began) };
            let (at_a, at_b) = if way == 0 { (left, left + delay) } else { (left + delay, left) };
            let [ttl_a, ttl_b] = if way == 0 { [64, 63] } else { [63, 64] };
            seen_at[0].push(seen(number, at_a, ttl_a));
            seen_at[1].push(seen(number, clock_b(at_b, self.began), ttl_b));
        }
        self.truth[way].push(Truth { period: period.from.0, delays });
        seen_at
    }

    /// Our own packets of a period, two of each sixteenth, as a probe chooses them.
    pub(crate) fn exchanges(&self, period: Period) -> ClockExchanges {
        // One of six in a bin is the best there, another the best back.
        let best = |n: i64| (0..6).map(|k| queue((n * 6 + k) as u64)).min().unwrap();
        let one = |n: i64| {
            let sent = period.from.0 + n * 31_250_000;
            let number = sent / 31_250_000;
            let [waits, waits_back] = if n % 2 == 0 {
                [best(number), queue(number as u64)]
            } else {
                [queue(number as u64), best(number)]
            };
            let there = sent + LEAST[0] + waits;
            let back = there + 30_000 + LEAST[1] + waits_back;
            ClockExchange {
                sent_at: Wall(sent),
                received_at: Wall(clock_b(there, self.began)),
                answered_at: Wall(clock_b(there + 30_000, self.began)),
                came_at: Wall(back),
            }
        };
        ClockExchanges { with: "b".into(), tightest: (0..32).map(one).collect() }
    }

    /// Plays it to a collector; how many ways there is traffic, and whether the probes exchange
    /// packets of their own.
    fn play(collector: &Running, ways: usize, own: Own) -> Self {
        let periods = periods(PERIODS);
        let mut world = Self::new(periods[0].from.0);
        let (mut a, mut b) = (Probe::join(collector.address, "a"), Probe::join(collector.address, "b"));
        "another kernel".clone_into(&mut b.kernel);
        for (place, period) in periods.into_iter().enumerate() {
            let mut both = [Vec::new(), Vec::new()];
            for way in 0..ways {
                let [at_a, at_b] = world.packets(way, place, period);
                both[0].extend(at_a);
                both[1].extend(at_b);
            }
            let sequence = place as u64 + 1;
            let mut told = a.report(sequence, period, both[0].len());
            if let Own::Exchanges = own {
                told.exchanges.push(world.exchanges(period));
            }
            a.bytes(sequence, &both[0], &serde_json::to_vec(&told).unwrap());
            b.batch(sequence, period, &both[1]);
        }
        a.until_taken(PERIODS as u64);
        b.until_taken(PERIODS as u64);
        world
    }

    fn held_by(&self, way: usize, rows: &[(i64, DelayRow)], method: &str) {
        assert_eq!(rows.len(), PERIODS as usize);
        let unknowable = i64::midpoint(LEAST[0], LEAST[1]);
        let known_from = rows.iter().map(|(at, _)| *at).min().unwrap() + KNOWN_AFTER;
        for (at, row) in rows {
            let truth = self.truth[way].iter().find(|truth| truth.period == *at).unwrap();
            assert_eq!((row.clock_method.as_str(), row.matched, row.lost), (method, PACKETS, 0), "{row:?}");
            assert_eq!(row.delay.count, PACKETS, "none came out negative");
            let bound = row.clock_bound.unwrap().0;
            assert!(*at < known_from || bound <= unknowable + 100_000, "bound {bound}");
            let mean = truth.delays.iter().sum::<i64>() / PACKETS as i64;
            let (least, most) = (*truth.delays.iter().min().unwrap(), *truth.delays.iter().max().unwrap());
            let found_mean = (row.delay.sum_ns / i128::from(PACKETS)) as i64;
            for (what, found, truth) in
                [("mean", found_mean, mean), ("min", row.delay.min.0, least), ("max", row.delay.max.0, most)]
            {
                assert!((found - truth).abs() <= bound, "{what}: {found} is not {truth} within {bound}");
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Own {
    Nothing,
    Exchanges,
}

#[test]
fn clocks_50_ms_and_50_ppm_apart_are_known_from_traffic_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let world = World::play(&collector, 2, Own::Nothing);
    let want = [ALL, ALL, 0, 0];
    assert_eq!(awaited_of(&[&collector], want), want);
    world.held_by(0, &rows_of(&collector, "a,b"), "traffic_both_ways");
    world.held_by(1, &rows_of(&collector, "b,a"), "traffic_both_ways");
}

#[test]
fn clocks_50_ms_and_50_ppm_apart_are_known_from_exchanges_where_traffic_goes_one_way() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let world = World::play(&collector, 1, Own::Exchanges);
    let want = [ALL, ALL, 0, 0];
    assert_eq!(awaited_of(&[&collector], want), want);
    world.held_by(0, &rows_of(&collector, "a,b"), "active_exchange");
}
