//! How often a join takes one packet for another: tests only.
//!
//! With 64 bits it never happens within a test's patience, so digests of made-up traffic are cut to
//! 24 up to 32 bits, where it does, and held against the closed form: each bit more must halve it.
//! At 64 bits the same line is then below one in 10^9.
#![cfg(test)]

use netaware_record::passive::{ClockState, PacketSighting, Period};
use netaware_units::{Span, Wall};
use netaware_wire::lmap::DigestFunction;

use super::{Join, JoinSettings, PointId};
use crate::Seed;
use crate::digest::{Choice, DigestSettings, Digester};
use crate::made_up::Made;

/// Bits that are left of a digest.
const BITS: [u32; 5] = [24, 26, 28, 30, 32];

/// Packets of each point in [`LASTS`].
const PACKETS: u32 = 1 << 18;
const LASTS: i64 = 10_000_000_000;
/// Sightings of one digest within this are taken for one packet.
const WINDOW: i64 = 2_000_000_000;

/// Packets of few hosts that differ by what counts: sequence numbers and identifications, or the
/// payload's first bytes.
fn digests(numbers: std::ops::Range<u32>) -> Vec<u64> {
    let settings =
        DigestSettings { share: 1.0, payload: 16, function: DigestFunction::Sip, initialiser: None };
    let digester = Digester::new(&settings, &Seed::new([5; 16])).unwrap();
    let digest = |number: u32| {
        let made = if number.is_multiple_of(2) {
            Made::tcp4().identification(number as u16).sequence(number.wrapping_mul(1448), 1)
        } else {
            Made::udp6().payload(&number.to_be_bytes())
        };
        let Ok(Choice::Selected(digest)) = digester.choose(&made.packet()) else { panic!("all are chosen") };
        digest
    };
    numbers.map(digest).collect()
}

/// Both ends of a digest: the highest bits, and the lowest.
fn cuts(bits: u32) -> [fn(u64, u32) -> u64; 2] {
    assert!(bits < 64);
    [|digest, bits| digest >> (64 - bits), |digest, bits| digest & ((1 << bits) - 1)]
}

/// Whether a count of rare events is what was expected: five deviations of Poisson's law, and one
/// event.
fn is_law(found: u64, expected: f64) -> bool {
    (found as f64 - expected).abs() <= 5.0 * expected.sqrt() + 1.0
}

/// Packets spread evenly over `from..until`.
fn sightings(
    digests: &[u64],
    (from, until): (i64, i64),
    ttl: u8,
    cut: impl Fn(u64) -> u64,
) -> Vec<PacketSighting> {
    let count = digests.len() as i64;
    let at = |nth: usize| Wall(from + (until - from) / count * nth as i64);
    // All alike but for the digest: whatever differs besides would only help.
    let seen = |(nth, digest): (usize, &u64)| PacketSighting {
        digest: cut(*digest),
        at: at(nth),
        length: 100,
        ttl,
        version: 4,
    };
    digests.iter().enumerate().map(seen).collect()
}

#[test]
fn digests_that_are_cut_collide_as_often_as_random_numbers_do() {
    let all = digests(0..PACKETS);
    for bits in BITS {
        for cut in cuts(bits) {
            let mut short: Vec<u64> = all.iter().map(|digest| cut(*digest, bits)).collect();
            short.sort_unstable();
            let pairs: u64 = short.chunk_by(|a, b| a == b).map(|same| pairs_of(same.len() as u64)).sum();
            let expected = pairs_of(PACKETS.into()) as f64 / f64::from(bits).exp2();
            assert!(is_law(pairs, expected), "{bits} bits: {pairs} pairs instead of {expected:.1}");
        }
    }
}

fn pairs_of(count: u64) -> u64 {
    count * (count - 1) / 2
}

/// None of a's packets reaches b, which sees as many others: every match is a false one.
#[test]
fn false_matches_are_twice_the_window_times_the_rate_in_the_digests_range() {
    let start = 1_000 * LASTS;
    // b sees its packets a window longer on either side, so that all of a's packets have equal
    // chances.
    let longer = (LASTS + 2 * WINDOW) / (LASTS / i64::from(PACKETS));
    let (sent, others) = (digests(0..PACKETS), digests(PACKETS..PACKETS + longer as u32));
    let rate = f64::from(PACKETS) / Span(LASTS).secs_f64();
    let chance = |bits: u32, rate: f64, window: Span| 2.0 * window.secs_f64() * rate / f64::from(bits).exp2();
    for bits in BITS {
        for cut in cuts(bits) {
            let mut join = Join::new(JoinSettings {
                period: Span(LASTS),
                patience: Span(WINDOW),
                lateness: Span::ZERO,
                clocks_apart: Span::ZERO,
                ..JoinSettings::of(["a", "b"])
            })
            .unwrap();
            let cut = |digest| cut(digest, bits);
            join.offer(PointId(0), &sightings(&sent, (start, start + LASTS), 64, cut));
            let around = (start - WINDOW, start + LASTS + WINDOW);
            join.offer(PointId(1), &sightings(&others, around, 63, cut));
            let always = Period { from: Wall(0), until: Wall(start + 10 * LASTS) };
            let clock = ClockState { identity: Some("one".into()), ..ClockState::default() };
            for point in [PointId(0), PointId(1)] {
                join.watched(point, always, 0, &clock);
            }
            let joined = join.finish();
            let of_a = joined.iter().flat_map(|joined| &joined.delays).filter(|row| row.from == "a");
            let (packets, lost) = of_a.fold((0, 0), |sum, row| (sum.0 + row.packets, sum.1 + row.lost));
            assert_eq!(packets, u64::from(PACKETS));
            let expected = f64::from(PACKETS) * chance(bits, rate, Span(WINDOW));
            let found = packets - lost;
            assert!(is_law(found, expected), "{bits} bits: {found} false matches instead of {expected:.1}");
        }
    }
    // The same line at 64 bits, ten million packets/s and 20 s.
    assert!(chance(64, 1e7, Span::from_secs(20)) < 1e-9);
}
