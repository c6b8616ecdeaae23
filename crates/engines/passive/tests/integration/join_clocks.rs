//! Clocks that disagree, through join and estimate together: the truth is known, and every row must
//! hold it within its own bound.

use netaware_passive::clock::Exchange;
use netaware_passive::join::{Direction, Join, JoinSettings, Joined, Pair, PointId};
use netaware_record::passive::{ClockState, DelayRow, PacketSighting, Period};
use netaware_stats::rng::SplitMix64;
use netaware_units::{Span, Wall};

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_800_000_000 * SECOND;
const PERIOD: i64 = 10 * SECOND;

/// Two points, 2000 packets/s in all, both ways unless told otherwise.
struct World<'a> {
    /// Clock b minus the truth at an instant; clock a is right.
    off: &'a dyn Fn(i64) -> i64,
    /// Smallest delays from a to b and back.
    least: [i64; 2],
    /// Mean of the exponential queueing delay.
    queue: f64,
    loss: f64,
    seconds: i64,
    ways: usize,
    clocks: [ClockState; 2],
}

/// What really happened to the packets of one direction and period.
#[derive(Default, Clone, Debug)]
struct Truth {
    delays: Vec<i64>,
    lost: u64,
}

fn unsynchronised() -> ClockState {
    ClockState { source: "none".into(), ..ClockState::default() }
}

impl World<'_> {
    /// Rows and the truth of both directions, by period.
    fn run(&self, mut join: Join, seed: u64) -> (Vec<Joined>, Vec<[Truth; 2]>) {
        let mut rng = SplitMix64::new(seed);
        let mut seen: [Vec<PacketSighting>; 2] = Default::default();
        let mut truth = vec![<[Truth; 2]>::default(); (self.seconds * SECOND / PERIOD) as usize + 1];
        let mut at = START;
        while at < START + self.seconds * SECOND {
            at += (-(1.0 - rng.unit()).ln() * 5e5) as i64;
            let way = rng.below(self.ways);
            let delay = self.least[way] + (-(1.0 - rng.unit()).ln() * self.queue) as i64;
            let digest = rng.next_u64();
            let stamp = |point: usize, at: i64| Wall(if point == 0 { at } else { at + (self.off)(at) });
            let sighting = |at, ttl| PacketSighting { digest, at, length: 900, ttl, version: 6 };
            let sent = stamp(way, at);
            seen[way].push(sighting(sent, 64));
            // Periods are those of the first point's own clock.
            let Some(truth) = truth.get_mut(((sent.0 - START) / PERIOD) as usize) else { continue };
            if rng.unit() < self.loss {
                truth[way].lost += 1;
            } else {
                seen[1 - way].push(sighting(stamp(1 - way, at + delay), 63));
                truth[way].delays.push(delay);
            }
        }
        for (point, seen) in seen.iter().enumerate() {
            join.offer(PointId(point as u8), seen);
        }
        let mut joined = Vec::new();
        // Watching begins before and ends after the packets.
        for second in -10..self.seconds + 10 {
            let from = START + second * SECOND;
            let period = Period { from: Wall(from), until: Wall(from + SECOND) };
            for point in 0..2 {
                join.watched(PointId(point as u8), period, 0, &self.clocks[point]);
            }
            joined.append(&mut join.advance(Wall(from)));
        }
        joined.append(&mut join.finish());
        (joined, truth)
    }
}

fn join() -> Join {
    Join::new(JoinSettings { report_patience: Span::from_secs(3600), ..JoinSettings::of(["a", "b"]) })
        .unwrap()
}

/// Rows with their truth, those of the last period left out, which is a part of one.
fn rows<'a>(
    joined: &'a [Joined],
    truth: &'a [[Truth; 2]],
) -> impl Iterator<Item = (&'a DelayRow, &'a Truth)> {
    joined.iter().flat_map(move |joined| {
        let number = ((joined.period.from.0 - START) / PERIOD) as usize;
        let of = move |row: &'a DelayRow| (row, &truth[number][usize::from(row.from == "b")]);
        joined.delays.iter().filter(move |_| number + 1 < truth.len()).map(of)
    })
}

fn assert_holds(row: &DelayRow, truth: &Truth) {
    let bound = row.clock_bound.expect("something is known").0;
    let least = *truth.delays.iter().min().unwrap();
    let most = *truth.delays.iter().max().unwrap();
    let mean = truth.delays.iter().sum::<i64>() / truth.delays.len() as i64;
    assert_eq!((row.packets, row.matched, row.lost, row.unobserved), {
        let matched = truth.delays.len() as u64;
        (matched + truth.lost, matched, truth.lost, 0)
    });
    assert!(row.delay.min >= Span::ZERO, "{row:?}");
    assert!((row.delay.max.0 - most).abs() <= bound, "max {} for {most} +- {bound}", row.delay.max);
    if row.below_bound == 0 {
        assert!((row.delay.min.0 - least).abs() <= bound, "min {} for {least} +- {bound}", row.delay.min);
        assert!(
            (row.delay.mean().unwrap().0 - mean).abs() <= bound,
            "{} for {mean} +- {bound}",
            row.delay.mean().unwrap()
        );
    }
}

#[test]
fn clocks_50_ms_and_50_ppm_apart_are_taken_off_within_the_stated_bound() {
    for seed in 0..2 {
        // From symmetric to quite asymmetric.
        let least = [2_000_000 + seed as i64 * 2_800_000, 3_000_000];
        let world = World {
            off: &|at| 50_000_000 + (at - START) / 20_000,
            least,
            queue: 4e5,
            loss: 0.01,
            seconds: 60,
            ways: 2,
            clocks: [unsynchronised(), unsynchronised()],
        };
        let (joined, truth) = world.run(join(), seed);
        let mut count = 0;
        for (row, truth) in rows(&joined, &truth) {
            assert_holds(row, truth);
            let bound = row.clock_bound.unwrap().0;
            assert!(bound <= i64::midpoint(least[0], least[1]) + 100_000, "{bound} with {least:?}");
            assert_eq!(row.clock_method, "traffic_both_ways");
            count += 1;
        }
        assert_eq!(count, 12, "six periods both ways");
    }
}

/// Rows of collectors together, sums of squares left out, which depend on the order.
fn added(of: &[Vec<Joined>]) -> Vec<Joined> {
    let mut sum: Vec<Joined> = Vec::new();
    for joined in of.iter().flatten() {
        let mut joined = joined.clone();
        for row in &mut joined.delays {
            (row.delay.sum_squares, row.ipdv.sum_squares) = (0.0, 0.0);
        }
        match sum.iter_mut().find(|before| before.period == joined.period) {
            None => sum.push(joined),
            Some(before) => {
                before.delays.iter_mut().zip(&joined.delays).for_each(|(sum, row)| sum.merge(row));
            }
        }
    }
    sum
}

#[test]
fn collectors_with_half_of_the_traffic_each_know_the_clocks_alike() {
    for (ways, method) in [(2, "traffic_both_ways"), (1, "none")] {
        let world = World {
            off: &|at| 50_000_000 + (at - START) / 20_000,
            least: [2_000_000, 3_000_000],
            queue: 4e5,
            loss: 0.01,
            seconds: 40,
            ways,
            clocks: [unsynchronised(), unsynchronised()],
        };
        let of_part = |part| {
            let patient = Span::from_secs(3600);
            let settings =
                JoinSettings { lanes: 2, part, report_patience: patient, ..JoinSettings::of(["a", "b"]) };
            world.run(Join::new(settings).unwrap(), 4)
        };
        let (whole, truth) = of_part((0, 1));
        let halves = [(0, 2), (1, 2)].map(|part| of_part(part).0);
        let offsets = |joined: &[Joined]| -> Vec<_> {
            joined.iter().flat_map(|joined| &joined.delays).map(|row| (row.offset, row.clock_bound)).collect()
        };
        // The last packets may all be of one half.
        let [one, other] = halves.each_ref().map(|joined| offsets(joined));
        assert!(
            one.iter().zip(&other).all(|(one, other)| one == other) && one.len() > 3,
            "{one:?}, {other:?}"
        );
        let both = added(&halves);
        let whole = added(&[whole]);
        assert_eq!(both.len(), whole.len());
        for (both, one) in both.iter().zip(whole) {
            assert_eq!((both.period, &both.delays), (one.period, &one.delays));
        }
        assert_eq!(rows(&both, &truth).count(), 4 * ways, "four periods each way");
        for (row, truth) in rows(&both, &truth) {
            assert_eq!((row.clock_method.as_str(), row.delay.count), (method, truth.delays.len() as u64));
            if ways == 2 {
                assert_holds(row, truth);
                // One in sixteen packets says it: less exact than all, and not by much.
                assert!(row.clock_bound.unwrap() <= Span::from_micros(2_500 + 250), "{:?}", row.clock_bound);
            }
        }
    }
}

#[test]
fn traffic_one_way_only_is_helped_by_exchanges() {
    let off = |at: i64| -20_000_000 - (at - START) / 50_000;
    let world = World {
        off: &off,
        least: [1_000_000, 0],
        queue: 2e5,
        loss: 0.0,
        seconds: 30,
        ways: 1,
        clocks: [unsynchronised(), unsynchronised()],
    };
    let mut with = join();
    let mut rng = SplitMix64::new(5);
    for at in (START..START + 30 * SECOND).step_by(SECOND as usize / 20) {
        let waits = [(); 2].map(|()| (-(1.0 - rng.unit()).ln() * 2e5) as i64);
        let there = at + 1_000_000 + waits[0];
        let back = there + 30_000;
        // b asks: everything is seen from the other end.
        with.exchange(
            PointId(1),
            PointId(0),
            &Exchange {
                sent: Wall(at + off(at)),
                received: Wall(there),
                answered: Wall(back),
                returned: Wall(back + 1_200_000 + waits[1] + off(back)),
            },
        );
    }
    let (joined, truth) = world.run(with, 1);
    assert_eq!(rows(&joined, &truth).count(), 3, "three periods one way");
    for (row, truth) in rows(&joined, &truth) {
        assert_eq!(row.clock_method, "active_exchange");
        assert_holds(row, truth);
        assert!(row.clock_bound.unwrap() <= Span::from_micros(1_100 + 100), "{:?}", row.clock_bound);
    }
    let (joined, truth) = world.run(join(), 1);
    assert_eq!(rows(&joined, &truth).count(), 3, "as many without exchanges");
    for row in joined.iter().flat_map(|joined| &joined.delays) {
        assert_eq!((row.clock_bound, row.clock_method.as_str(), row.delay.min), (None, "none", Span::ZERO));
        assert!(row.warnings.iter().any(|warning| warning.starts_with("nothing is known")));
    }
}

#[test]
fn a_clock_that_jumps_costs_some_delays_and_no_truth() {
    let jump = START + 34 * SECOND + 123_456_789;
    let world = World {
        off: &|at| if at < jump { 3_000_000 } else { -400_000_000 },
        least: [1_500_000, 1_500_000],
        queue: 3e5,
        loss: 0.005,
        seconds: 60,
        ways: 2,
        clocks: [unsynchronised(), unsynchronised()],
    };
    let (joined, truth) = world.run(join(), 11);
    assert_eq!(rows(&joined, &truth).count(), 12, "six periods both ways");
    for (row, truth) in rows(&joined, &truth) {
        assert_eq!(row.matched + row.lost + row.unobserved, row.packets);
        let most = *truth.delays.iter().max().unwrap();
        // The periods of b's clock overlap where it jumped back, so only sums over all are exact
        // there.
        assert!(row.delay.max.0 <= most + row.clock_bound.unwrap().0 + 2_000_000, "{row:?}");
    }
    let split: Vec<&DelayRow> = joined
        .iter()
        .flat_map(|joined| &joined.delays)
        .filter(|row| row.warnings.iter().any(|warning| warning.contains("did not run steadily")))
        .collect();
    assert!((1..=2).contains(&split.len()), "{split:?}");
    assert!(split.iter().all(|row| row.delay.count > row.matched / 2), "{split:?}");
    let lost: u64 = joined.iter().flat_map(|joined| &joined.delays).map(|row| row.lost).sum();
    let truly: u64 = truth.iter().flatten().map(|truth| truth.lost).sum();
    assert_eq!(lost, truly, "a jump loses no packet");
}

#[test]
fn good_daemons_are_believed_and_a_small_delay_is_flagged() {
    let kept = ClockState {
        source: "ptp4l".into(),
        synchronised: true,
        bound: Some(Span::from_micros(40)),
        ..ClockState::default()
    };
    // Off by 50 us, within what both say; the delay of 30 us comes out negative one way.
    let world = World {
        off: &|_| -50_000,
        least: [30_000, 200_000],
        queue: 1e4,
        loss: 0.0,
        seconds: 20,
        ways: 2,
        clocks: [kept.clone(), kept],
    };
    let (joined, truth) = world.run(join(), 2);
    assert_eq!(rows(&joined, &truth).count(), 4, "two periods both ways");
    for (row, truth) in rows(&joined, &truth) {
        assert_eq!(
            (row.clock_method.as_str(), row.clock_bound),
            ("clock_daemons", Some(Span::from_micros(80)))
        );
        assert_holds(row, truth);
        if row.from == "a" {
            assert!(row.below_bound > row.matched * 9 / 10 && row.delay.count < row.matched, "{row:?}");
        }
    }
}

#[test]
fn daemons_that_claim_too_much_are_refuted_by_packets() {
    let boasting = ClockState {
        source: "chrony".into(),
        synchronised: true,
        bound: Some(Span::from_micros(10)),
        ..ClockState::default()
    };
    let world = World {
        off: &|_| 9_000_000,
        least: [1_000_000, 1_000_000],
        queue: 1e5,
        loss: 0.0,
        seconds: 20,
        ways: 2,
        clocks: [boasting.clone(), boasting],
    };
    let (joined, truth) = world.run(join(), 3);
    assert_eq!(rows(&joined, &truth).count(), 4, "two periods both ways");
    for (row, truth) in rows(&joined, &truth) {
        assert_eq!(row.clock_method, "traffic_both_ways");
        assert!(row.warnings.iter().any(|warning| warning.contains("further apart")), "{:?}", row.warnings);
        assert_holds(row, truth);
    }
}

/// Three points on a bridged way: no TTL tells their order, delays between neighbours are 300 us,
/// and clocks are 20 ms ahead and 10 ms behind that of the first. Traffic both ways says so.
#[test]
fn points_of_one_ttl_are_in_the_order_of_corrected_stamps() {
    let off = [0, 20_000_000, -10_000_000];
    let mut join = Join::new(JoinSettings {
        report_patience: Span::from_secs(3600),
        ..JoinSettings::of(["here", "middle", "there"])
    })
    .unwrap();
    let mut rng = SplitMix64::new(7);
    // Some packets with a router between, whose way is beyond doubt, tell of the clocks; then the
    // bridged ones.
    let mut truth = [0_u64; 2];
    for n in 0..40_000_i64 {
        let at = START + 2 * SECOND + n * 400_000;
        let (backwards, bridged) = (n % 2 == 1, n % 4 < 2);
        let digest = rng.next_u64();
        for (point, off) in off.iter().enumerate() {
            let step = if backwards { 2 - point } else { point } as i64;
            let queue = (-(1.0 - rng.unit()).ln() * 2e4) as i64;
            let stamp = Wall(at + step * 300_000 + if step > 0 { queue } else { 0 } + off);
            let ttl = if bridged { 64 } else { 64 - step as u8 };
            let seen = PacketSighting { digest, at: stamp, length: 900, ttl, version: 6 };
            join.offer(PointId(point as u8), &[seen]);
        }
        truth[usize::from(backwards)] += 1;
    }
    for second in -10..40 {
        let from = START + second * SECOND;
        let period = Period { from: Wall(from), until: Wall(from + SECOND) };
        for point in 0..3 {
            join.watched(PointId(point), period, 0, &unsynchronised());
        }
    }
    let joined = join.finish();
    let mut paths = std::collections::BTreeMap::<Vec<String>, u64>::new();
    for path in joined.iter().flat_map(|joined| &joined.paths) {
        *paths.entry(path.points.clone()).or_default() += path.packets;
    }
    let way = |points: [&str; 3]| points.map(str::to_owned).to_vec();
    let of = |row: &&DelayRow| (row.from.as_str(), row.to.as_str()) == ("here", "middle");
    let forward: u64 =
        joined.iter().flat_map(|joined| &joined.delays).filter(of).map(|row| row.matched).sum();
    assert_eq!(forward, truth[0], "neither is the direction of any packet mistaken");
    let want = [(way(["here", "middle", "there"]), truth[0]), (way(["there", "middle", "here"]), truth[1])];
    assert_eq!(paths, want.into(), "by raw stamps 'middle' would always be the last");
}

#[test]
fn a_filter_that_gives_the_direction_needs_no_routers() {
    let pairs = vec![Pair { direction: Direction::Given, ..Pair::new("a", "b") }];
    let settings = JoinSettings { pairs, ..JoinSettings::of(["a", "b"]) };
    let mut join = Join::new(settings).unwrap();
    let seen = |at: i64| PacketSighting { digest: 1, at: Wall(START + at), length: 60, ttl: 64, version: 4 };
    // b's clock is behind, and no TTL says which was first.
    join.offer(PointId(0), &[seen(500)]);
    join.offer(PointId(1), &[seen(0)]);
    let joined = join.finish();
    let row = &joined[0].delays[0];
    assert_eq!((row.from.as_str(), row.matched, joined[0].delays.len()), ("a", 1, 1));
}
