//! The join against a slow one that is written from the definitions, and against itself in parts.

use std::collections::BTreeMap;

use netaware_passive::join::{
    Join, JoinSettings, Joined, Ledger, Matcher, Part, PointId, is_clock_sample, shard_of,
};
use netaware_record::IpVersion;
use netaware_record::passive::{ClockState, DelayRow, DelayStatistics, PacketSighting, Period};
use netaware_units::{Span, Wall};
use proptest::prelude::*;

/// A case takes some ms without optimisation.
const CASES: u32 = 150;

const MS: i64 = 1_000_000;
const SLOT: i64 = 100 * MS;
const SLOTS: usize = 60;
const START: i64 = 1_000 * SLOT;

fn settings(points: usize, lanes: u16) -> JoinSettings {
    JoinSettings {
        period: Span(10 * SLOT),
        patience: Span::from_millis(150),
        lateness: Span::from_millis(100),
        clocks_apart: Span::from_millis(10),
        lanes,
        ..JoinSettings::of((0..points).map(|point| format!("p{point}")))
    }
}

/// One packet on its way over all points, or what of it was seen.
#[derive(Debug, Clone)]
struct Journey {
    /// Small ones collide.
    digest: u64,
    at_ms: i64,
    length: u16,
    /// Of each point: whether it saw it, how many ms after the one before, how many copies more.
    hops: Vec<(bool, i64, u8)>,
    backwards: bool,
    routed: bool,
}

fn journey(points: usize) -> impl Strategy<Value = Journey> {
    let hop = (
        prop::bool::weighted(0.85),
        prop_oneof![9 => -2_i64..60, 1 => 0_i64..400],
        prop::bool::weighted(0.1),
    );
    (
        prop_oneof![1 => 0_u64..6, 4 => any::<u64>()],
        0..(SLOTS as i64 - 10) * 100,
        prop_oneof![Just(100_u16), Just(101)],
        prop::collection::vec(hop, points),
        any::<bool>(),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(digest, at_ms, length, hops, backwards, routed)| {
            let hops = hops.into_iter().map(|(seen, after, twice)| (seen, after, u8::from(twice)));
            Journey { digest, at_ms, length, hops: hops.collect(), backwards, routed }
        })
}

/// What each point saw; every stamp is different.
fn sightings(journeys: &[Journey], points: usize) -> Vec<Vec<PacketSighting>> {
    let mut seen = vec![Vec::new(); points];
    let mut unique = 0;
    for journey in journeys {
        let mut at = journey.at_ms;
        for (nth, (was_seen, after, copies)) in journey.hops.iter().enumerate() {
            at += if nth == 0 { 0 } else { *after };
            let point = if journey.backwards { points - 1 - nth } else { nth };
            for copy in 0..=i64::from(*copies) {
                unique += 1;
                if *was_seen {
                    seen[point].push(PacketSighting {
                        digest: journey.digest,
                        at: Wall(START + (at + copy * 3) * MS + unique),
                        length: journey.length,
                        ttl: 64 - if journey.routed { nth as u8 } else { 0 },
                        version: if journey.digest % 3 == 0 { 4 } else { 6 },
                    });
                }
            }
        }
    }
    seen
}

/// Slots in which a point lost packets.
#[derive(Debug, Clone)]
struct Lossy(Vec<usize>);

/// The same host for all, so that there is nothing to know of clocks.
fn clock() -> ClockState {
    ClockState { identity: Some("here".into()), ..ClockState::default() }
}

fn slot(number: usize) -> Period {
    let from = START + number as i64 * SLOT;
    Period { from: Wall(from), until: Wall(from + SLOT) }
}

/// Rows by period, pair and version; the sums of squares, which depend on the order, are left out.
type Rows = BTreeMap<(Wall, String, String, bool), DelayRow>;

fn keyed(joined: impl IntoIterator<Item = Joined>) -> Rows {
    let mut rows = Rows::new();
    for (period, mut row) in joined.into_iter().flat_map(|joined| {
        let from = joined.period.from;
        joined.delays.into_iter().map(move |row| (from, row))
    }) {
        row.delay.sum_squares = 0.0;
        row.ipdv.sum_squares = 0.0;
        row.warnings.clear();
        let key = (period, row.from.clone(), row.to.clone(), row.version == Some(IpVersion::V6));
        assert!(rows.insert(key, row).is_none(), "a row comes once");
    }
    rows
}

/// The definitions, one after the other, each in the most naive way.
mod oracle {
    use super::*;

    #[derive(Default)]
    struct Tally {
        /// Sent, and seen or what else became of it.
        packets: Vec<(i64, Result<i64, &'static str>)>,
        duplicates: u64,
        collisions: u64,
    }

    type Seen = (i64, u16, u8, usize, u8);

    pub(super) fn rows(seen: &[Vec<PacketSighting>], lossy: &[Lossy], settings: &JoinSettings) -> Rows {
        let mut by_digest: BTreeMap<u64, Vec<Seen>> = BTreeMap::new();
        for (point, sightings) in seen.iter().enumerate() {
            for it in sightings {
                by_digest.entry(it.digest).or_default().push((it.at.0, it.length, it.ttl, point, it.version));
            }
        }
        let window = (settings.patience + settings.lateness + settings.clocks_apart * 2).0;
        let mut tallies: BTreeMap<(i64, usize, usize, bool, u16), Tally> = BTreeMap::new();
        for (digest, mut all) in by_digest {
            all.sort_unstable();
            while !all.is_empty() {
                let first = all[0].0;
                let packet: Vec<Seen> = all.iter().copied().filter(|seen| seen.0 <= first + window).collect();
                all.retain(|seen| seen.0 > first + window);
                let lane = shard_of(digest, settings.lanes);
                settle(&packet, lossy, settings, &mut |at, from, to, version, note| {
                    let period = at.div_euclid(settings.period.0) * settings.period.0;
                    let tally = tallies.entry((period, from, to, version == 6, lane)).or_default();
                    match note {
                        Note::Packet(outcome) => tally.packets.push((at, outcome)),
                        Note::Duplicates(copies) => tally.duplicates += copies,
                        Note::Collision => tally.collisions += 1,
                    }
                });
            }
        }
        collect(tallies, settings)
    }

    enum Note {
        Packet(Result<i64, &'static str>),
        Duplicates(u64),
        Collision,
    }

    /// When, from, to, version.
    type Write<'a> = &'a mut dyn FnMut(i64, usize, usize, u8, Note);

    fn settle(packet: &[Seen], lossy: &[Lossy], settings: &JoinSettings, write: Write<'_>) {
        let collided = packet.iter().any(|seen| (seen.1, seen.4) != (packet[0].1, packet[0].4));
        for from in 0..lossy.len() {
            for to in (0..lossy.len()).filter(|to| *to != from) {
                let at = |point| packet.iter().filter(move |seen| seen.3 == point).collect::<Vec<_>>();
                let (sent, came) = (at(from), at(to));
                let Some(first) = sent.first() else { continue };
                if collided {
                    for (nth, one) in sent.iter().enumerate() {
                        write(one.0, from, to, one.4, Note::Packet(Err("collided")));
                        if nth == 0 {
                            write(one.0, from, to, one.4, Note::Collision);
                        }
                    }
                    continue;
                }
                let mut certain = sent.len() == 1 || sent.len() == came.len();
                if let Some(other) = came.first() {
                    let ours = first.2 > other.2 || first.2 == other.2 && first.0 < other.0;
                    if !ours {
                        continue;
                    }
                    // Of copies whose way only stamps tell no delay is taken.
                    certain &= first.2 != other.2 || (sent.len(), came.len()) == (1, 1);
                }
                for (nth, one) in sent.iter().enumerate() {
                    let outcome = match came.get(nth) {
                        Some(came) if certain => Ok(came.0),
                        Some(_) => Err("copied"),
                        None => Err(missing(one.0, &lossy[to], settings)),
                    };
                    write(one.0, from, to, one.4, Note::Packet(outcome));
                }
                let copies = came.len().saturating_sub(sent.len()) as u64;
                write(first.0, from, to, first.4, Note::Duplicates(copies));
            }
        }
    }

    fn missing(at: i64, lossy: &Lossy, settings: &JoinSettings) -> &'static str {
        let reach = (settings.patience + settings.clocks_apart).0;
        let slots = (at - reach - START).div_euclid(SLOT)..=(at + reach - 1 - START).div_euclid(SLOT);
        let watched =
            |slot: i64| usize::try_from(slot).is_ok_and(|slot| slot < SLOTS && !lossy.0.contains(&slot));
        if slots.into_iter().all(watched) { "lost" } else { "unobserved" }
    }

    fn collect(tallies: BTreeMap<(i64, usize, usize, bool, u16), Tally>, settings: &JoinSettings) -> Rows {
        let mut rows = Rows::new();
        for ((period, from, to, six, _), mut tally) in tallies {
            if tally.packets.is_empty() {
                continue;
            }
            tally.packets.sort_unstable_by_key(|packet| packet.0);
            let late = |packet: &(i64, Result<i64, &str>)| {
                packet.1.is_ok_and(|seen| seen - packet.0 > settings.patience.0)
            };
            let delays: Vec<Option<i64>> = tally
                .packets
                .iter()
                .map(|packet| if late(packet) { None } else { packet.1.ok().map(|seen| seen - packet.0) })
                .collect();
            let count = |what| tally.packets.iter().filter(|packet| packet.1 == Err(what)).count() as u64;
            let arrived: Vec<(i64, i64)> = tally
                .packets
                .iter()
                .zip(&delays)
                .filter_map(|(packet, delay)| Some((packet.0, packet.0 + (*delay)?)))
                .collect();
            let overtaken = |one: &(i64, i64)| arrived.iter().any(|other| other.0 > one.0 && other.1 < one.1);
            let late = tally.packets.iter().filter(|packet| late(packet)).count() as u64;
            let name = |point| settings.points[point as usize].clone();
            let found = DelayRow {
                packets: tally.packets.len() as u64,
                matched: arrived.len() as u64 + count("copied"),
                lost: count("lost") + late,
                unobserved: count("unobserved"),
                late,
                duplicates: tally.duplicates,
                reordered: arrived.iter().filter(|one| overtaken(one)).count() as u64,
                collisions: tally.collisions,
                below_bound: delays.iter().flatten().filter(|delay| **delay < 0).count() as u64,
                delay: sum(delays.iter().flatten().copied().filter(|delay| *delay >= 0)),
                ipdv: sum(delays.windows(2).filter_map(|pair| Some((pair[1]? - pair[0]?).abs()))),
                ..empty(name(from as u8), name(to as u8), six, settings)
            };
            let key = (Wall(period), found.from.clone(), found.to.clone(), six);
            rows.entry(key)
                .or_insert_with(|| empty(name(from as u8), name(to as u8), six, settings))
                .merge(&found);
        }
        for row in rows.values_mut() {
            (row.delay.sum_squares, row.ipdv.sum_squares) = (0.0, 0.0);
        }
        rows
    }

    fn sum(delays: impl Iterator<Item = i64>) -> DelayStatistics {
        let mut sum = DelayStatistics::default();
        delays.for_each(|delay| sum.observe(Span(delay)));
        sum
    }

    fn empty(from: String, to: String, six: bool, settings: &JoinSettings) -> DelayRow {
        DelayRow {
            from,
            to,
            version: Some(if six { IpVersion::V6 } else { IpVersion::V4 }),
            method: "passive".into(),
            packets: 0,
            matched: 0,
            lost: 0,
            unobserved: 0,
            late: 0,
            duplicates: 0,
            reordered: 0,
            collisions: 0,
            given_up: 0,
            patience: settings.patience,
            delay: DelayStatistics::default(),
            ipdv: DelayStatistics::default(),
            offset: Span::ZERO,
            clock_bound: Some(Span::ZERO),
            clock_method: "same_host".into(),
            below_bound: 0,
            warnings: Vec::new(),
        }
    }
}

/// Offers everything in pieces, in an order that the seed decides, advancing now and then; the
/// reports come last.
fn offer_in_disorder(
    matcher: &mut Matcher,
    seen: &[Vec<PacketSighting>],
    lossy: &[Lossy],
    seed: u64,
) -> Vec<Part> {
    let mut rng = netaware_stats::rng::SplitMix64::new(seed);
    let mut pieces: Vec<(usize, &[PacketSighting])> = seen
        .iter()
        .enumerate()
        .flat_map(|(point, all)| all.chunks(7).map(move |piece| (point, piece)))
        .collect();
    for at in (1..pieces.len()).rev() {
        pieces.swap(at, rng.below(at + 1));
    }
    let mut parts = Vec::new();
    for (point, piece) in pieces {
        matcher.offer(PointId(point as u8), piece);
        parts.append(&mut matcher.advance(Wall(START + SLOTS as i64 * SLOT)));
    }
    for number in 0..SLOTS {
        for (point, lossy) in lossy.iter().enumerate() {
            matcher.watched(PointId(point as u8), slot(number), u64::from(lossy.0.contains(&number)));
        }
        parts.append(&mut matcher.advance(Wall(START + SLOTS as i64 * SLOT)));
    }
    parts.append(&mut matcher.finish());
    parts
}

fn ledger(settings: &JoinSettings) -> Ledger {
    let mut ledger = Ledger::new(settings.clone()).unwrap();
    for point in 0..settings.points.len() {
        let all = Period { from: Wall(0), until: Wall(i64::MAX / 4) };
        ledger.watched(PointId(point as u8), all, 0, &clock());
    }
    ledger
}

fn scenario() -> impl Strategy<Value = (Vec<Journey>, Vec<Lossy>, u64)> {
    (2_usize..4).prop_flat_map(|points| {
        (
            prop::collection::vec(journey(points), 0..80),
            prop::collection::vec(prop::collection::vec(0..SLOTS, 0..8).prop_map(Lossy), points),
            any::<u64>(),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_equal_the_definitions_whatever_the_order((journeys, lossy, seed) in scenario()) {
        let points = lossy.len();
        let settings = settings(points, 1);
        let seen = sightings(&journeys, points);
        let mut matcher = Matcher::new(settings.clone()).unwrap();
        let parts = offer_in_disorder(&mut matcher, &seen, &lossy, seed);
        prop_assert_eq!(matcher.counts().came_late + matcher.counts().absurd + matcher.counts().held, 0);
        let mut ledger = ledger(&settings);
        let found = keyed(parts.into_iter().map(|part| ledger.settle(part)));
        prop_assert_eq!(found, oracle::rows(&seen, &lossy, &settings));
    }

    #[test]
    fn parts_of_the_digest_space_make_the_very_rows_of_one((journeys, lossy, seed) in scenario(), shards in 2_u16..5) {
        let points = lossy.len();
        let settings = settings(points, 1);
        let seen = sightings(&journeys, points);
        let mut merged: BTreeMap<Period, Part> = BTreeMap::new();
        for shard in 0..shards {
            let of_shard = |all: &Vec<PacketSighting>| {
                all.iter().copied().filter(|it| shard_of(it.digest, shards) == shard).collect()
            };
            let seen: Vec<Vec<PacketSighting>> = seen.iter().map(of_shard).collect();
            let mut matcher = Matcher::new(settings.clone()).unwrap();
            for part in offer_in_disorder(&mut matcher, &seen, &lossy, seed ^ u64::from(shard)) {
                let period = part.period();
                match merged.remove(&period) {
                    None => { merged.insert(period, part); }
                    Some(mut whole) => {
                        prop_assert!(whole.merge(part).is_ok());
                        merged.insert(period, whole);
                    }
                }
            }
        }
        let mut whole = Matcher::new(settings.clone()).unwrap();
        let parts = offer_in_disorder(&mut whole, &seen, &lossy, seed);
        let mut one = ledger(&settings);
        let mut other = ledger(&settings);
        let of_one: Vec<Joined> = parts.into_iter().map(|part| one.settle(part)).collect();
        let of_parts: Vec<Joined> = merged.into_values().map(|part| other.settle(part)).collect();
        // Everything: rows, warnings, sums of squares, paths.
        prop_assert_eq!(of_parts, of_one);
    }

    #[test]
    fn collectors_that_share_lanes_add_up_to_one((journeys, lossy, seed) in scenario(), shards in 2_u16..4) {
        let points = lossy.len();
        let settings = settings(points, shards);
        let seen = sightings(&journeys, points);
        let mut sum = Rows::new();
        for shard in 0..shards {
            let mut join = Join::new(JoinSettings { part: (shard, shards), ..settings.clone() }).unwrap();
            let (mut taken, mut elsewhere) = (0, 0);
            for (point, all) in seen.iter().enumerate() {
                // As probes divide it; what is none of its business does it no harm.
                let goes_there = |it: &PacketSighting| {
                    shard_of(it.digest, shards) == shard || is_clock_sample(it.digest) || seed % 2 == 0
                };
                let part: Vec<PacketSighting> = all.iter().copied().filter(goes_there).collect();
                let own = part.iter().filter(|it| shard_of(it.digest, shards) == shard).count();
                (taken, elsewhere) = (taken + own as u64, elsewhere + (part.len() - own) as u64);
                join.offer(PointId(point as u8), &part);
                // Of the time around the slots only the clocks are known.
                for from in [START - 100 * SLOT, START + SLOTS as i64 * SLOT] {
                    let around = Period { from: Wall(from), until: Wall(from + 100 * SLOT) };
                    join.watched(PointId(point as u8), around, 1, &clock());
                }
                for number in 0..SLOTS {
                    let lost = u64::from(lossy[point].0.contains(&number));
                    join.watched(PointId(point as u8), slot(number), lost, &clock());
                }
            }
            let counts = join.counts();
            prop_assert_eq!((counts.taken, counts.elsewhere), (taken, elsewhere));
            for (key, row) in keyed(join.finish()) {
                match sum.get_mut(&key) {
                    Some(before) => before.merge(&row),
                    None => { sum.insert(key, row); }
                }
            }
        }
        prop_assert_eq!(sum, oracle::rows(&seen, &lossy, &settings));
    }
}
