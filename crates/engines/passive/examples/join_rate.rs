//! How many sightings a join takes per second on one core, with expiry.
//!
//! ```text
//! cargo run --release -p netaware-passive --example join_rate -- [MILLIONS] [POINTS]
//! ```
//!
//! A path of POINTS points (2) carries one packet each 200 ns of virtual time; one in a hundred is
//! lost before the second point, so expiry has work all the time. Sightings come in batches of 10
//! ms of one point, each after the other. What is printed counts everything from `offer` to
//! finished rows; making the sightings does not count. Losses must come out exactly, none of them
//! as `unobserved`, and no packet may be matched with another: the delay of each is known. It fails
//! below five million sightings a second.

use std::time::{Duration, Instant};

use netaware_passive::join::{Join, JoinSettings, Joined, PointId};
use netaware_record::passive::{ClockState, PacketSighting, Period};
use netaware_units::{Span, Wall};

/// Sightings a second of one core, at least.
const FLOOR: f64 = 5e6;

/// When the first packet is sent.
const START: i64 = 10_000_000_000;
/// Between packets, ns.
const GAP: i64 = 200;
/// Packets of a batch.
const BATCH: i64 = 50_000;
/// From point to point, ns.
const DELAY: i64 = 1_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<i64>().expect("a whole number"));
    let packets = arguments.next().unwrap_or(10) * 1_000_000;
    let points = arguments.next().unwrap_or(2);
    let mut join = Join::new(JoinSettings {
        period: Span::from_secs(1),
        patience: Span::from_millis(500),
        lateness: Span::from_millis(500),
        clocks_apart: Span::from_millis(10),
        most_sightings: 100_000_000,
        ..JoinSettings::of((0..points).map(|point| format!("p{point}")))
    })
    .expect("the settings are sound");
    let (mut busy, mut offered, mut lost) = (Duration::ZERO, 0, 0);
    let mut rows: Vec<Joined> = Vec::new();
    let mut batch = Vec::new();
    let clock = ClockState { identity: Some("one".into()), ..ClockState::default() };
    // Watching begins before the first packet, so that the first losses are known to be losses.
    for point in 0..points {
        let until = Wall(START + point * DELAY);
        join.watched(PointId(point as u8), Period { from: Wall(0), until }, 0, &clock);
    }
    for first in (0..packets).step_by(BATCH as usize) {
        for point in 0..points {
            batch.clear();
            for number in first..(first + BATCH).min(packets) {
                if point > 0 && is_lost(number) {
                    lost += u64::from(point == 1);
                    continue;
                }
                batch.push(PacketSighting {
                    digest: scattered(number as u64),
                    at: Wall(START + number * GAP + point * DELAY),
                    length: 1500,
                    ttl: 64 - point as u8,
                    version: 4,
                });
            }
            let period = Period {
                from: Wall(START + first * GAP + point * DELAY),
                until: Wall(START + (first + BATCH).min(packets) * GAP + point * DELAY),
            };
            let begun = now();
            join.offer(PointId(point as u8), &batch);
            join.watched(PointId(point as u8), period, 0, &clock);
            rows.append(&mut join.advance(period.from));
            busy += begun.elapsed();
            offered += batch.len() as u64;
        }
    }
    // Watching goes on behind the last packet, so that the last losses are known to be losses.
    for point in 0..points {
        let end = START + packets * GAP + point * DELAY;
        join.watched(
            PointId(point as u8),
            Period { from: Wall(end), until: Wall(end + 2_000_000_000) },
            0,
            &clock,
        );
    }
    let begun = now();
    rows.append(&mut join.finish());
    busy += begun.elapsed();
    report(&rows, offered, lost, busy, points);
}

fn report(rows: &[Joined], offered: u64, lost: u64, busy: Duration, points: i64) {
    let first: Vec<_> = rows
        .iter()
        .flat_map(|joined| &joined.delays)
        .filter(|row| (&*row.from, &*row.to) == ("p0", "p1"))
        .collect();
    let sum =
        |of: fn(&netaware_record::passive::DelayRow) -> u64| first.iter().map(|row| of(row)).sum::<u64>();
    let wrong =
        first.iter().filter(|row| (row.delay.min, row.delay.max) != (Span(DELAY), Span(DELAY))).count();
    let rate = offered as f64 / busy.as_secs_f64();
    println!(
        "{points} points, {offered} sightings in {:.2} s: {:.2} million/s; lost {} of {lost}, unobserved {}, periods with a wrong delay: {wrong}",
        busy.as_secs_f64(),
        rate / 1e6,
        sum(|row| row.lost),
        sum(|row| row.unobserved),
    );
    assert_eq!((sum(|row| row.lost), sum(|row| row.unobserved)), (lost, 0));
    assert_eq!(wrong, 0);
    assert!(rate >= FLOOR, "{:.2} million sightings/s are fewer than {:.0}", rate / 1e6, FLOOR / 1e6);
}

fn is_lost(number: i64) -> bool {
    scattered(number as u64 ^ 0x5555).is_multiple_of(100)
}

/// A bijection (SplitMix64's), so that digests are different and look random.
fn scattered(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures itself; nothing of it is a result")]
fn now() -> Instant {
    Instant::now()
}
