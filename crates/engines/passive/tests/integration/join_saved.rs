//! A join that is put away and taken up again, at any moment; and what somebody made of the bytes
//! meanwhile.

use netaware_passive::clock::Exchange;
use netaware_passive::join::{Join, JoinSettings, Joined, PointId};
use netaware_record::passive::{ClockState, PacketSighting, Period};
use netaware_units::{Span, Wall};
use proptest::prelude::*;

const MS: i64 = 1_000_000;
const START: i64 = 1_000_000 * MS;
const SLOT: i64 = 100 * MS;

fn settings() -> JoinSettings {
    JoinSettings {
        period: Span(5 * SLOT),
        patience: Span::from_millis(150),
        lateness: Span::from_millis(100),
        clocks_apart: Span::from_millis(50),
        ..JoinSettings::of(["a", "b", "c"])
    }
}

/// What a point said in a slot: some packets, and how many it lost; now and then an exchange with
/// another.
#[derive(Debug, Clone)]
struct Slot {
    seen: Vec<(u64, i64)>,
    lost: u64,
}

fn slots() -> impl Strategy<Value = Vec<[Slot; 3]>> {
    let packet = (0_u64..400, 0..100 * MS);
    let slot = (prop::collection::vec(packet, 0..12), prop_oneof![8 => Just(0_u64), 1 => 1_u64..5])
        .prop_map(|(seen, lost)| Slot { seen, lost });
    prop::collection::vec([slot.clone(), slot.clone(), slot], 1..40)
}

fn tell(join: &mut Join, number: usize, slot: &[Slot; 3]) -> Vec<Joined> {
    let from = START + number as i64 * SLOT;
    for (point, told) in slot.iter().enumerate() {
        let ttl = 64 - point as u8;
        let sighting = |(digest, at): &(u64, i64)| PacketSighting {
            digest: digest.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            at: Wall(from + at),
            length: 100 + (digest % 2) as u16,
            ttl,
            version: if digest % 3 == 0 { 4 } else { 6 },
        };
        let point = PointId(point as u8);
        join.offer(point, &told.seen.iter().map(sighting).collect::<Vec<_>>());
        let at = |ms: i64| Wall(from + ms * MS);
        let exchange = Exchange { sent: at(1), received: at(5), answered: at(6), returned: at(9) };
        join.exchange(point, PointId((point.0 + 1) % 3), &exchange);
        let clock = ClockState { source: "none".into(), ..ClockState::default() };
        join.watched(point, Period { from: Wall(from), until: Wall(from + SLOT) }, told.lost, &clock);
    }
    join.advance(Wall(from + SLOT))
}

fn put_away(join: &mut Join) -> (Vec<u8>, netaware_passive::join::LedgerState) {
    let mut bytes = Vec::new();
    let known = join.save(&mut |word| bytes.extend_from_slice(word));
    (bytes, known)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_join_that_is_put_away_at_any_moment_goes_on_as_if_nothing_had_been(slots in slots(), away in any::<prop::sample::Index>()) {
        let away = away.index(slots.len());
        let mut whole = Join::new(settings()).unwrap();
        let mut parted = Join::new(settings()).unwrap();
        let (mut want, mut found) = (Vec::new(), Vec::new());
        for (number, slot) in slots.iter().enumerate() {
            want.append(&mut tell(&mut whole, number, slot));
            found.append(&mut tell(&mut parted, number, slot));
            if number == away {
                let counts = parted.counts();
                let (bytes, known) = put_away(&mut parted);
                parted = Join::restore(settings(), &bytes, known).unwrap();
                prop_assert_eq!(parted.counts(), counts);
            }
        }
        want.append(&mut whole.finish());
        found.append(&mut parted.finish());
        prop_assert_eq!(found, want);
    }

    #[test]
    fn bytes_that_were_changed_are_refused_or_are_a_join(
        slots in slots(), at in any::<prop::sample::Index>(), to in any::<u64>(), cut in any::<prop::sample::Index>(),
    ) {
        let mut join = Join::new(settings()).unwrap();
        for (number, slot) in slots.iter().enumerate() {
            tell(&mut join, number, slot);
        }
        let (mut bytes, known) = put_away(&mut join);
        let word = at.index(bytes.len() / 8) * 8;
        bytes[word..word + 8].copy_from_slice(&to.to_le_bytes());
        if let Some(mut other) = Join::restore(settings(), &bytes, known.clone()) {
            // Whatever it is, it works.
            tell(&mut other, slots.len(), &slots[0]);
            other.finish();
        }
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(Join::restore(settings(), &bytes, known).is_none());
    }
}

#[test]
fn bytes_behind_the_end_of_a_join_are_refused() {
    let mut join = Join::new(settings()).unwrap();
    tell(&mut join, 0, &[(); 3].map(|()| Slot { seen: vec![(1, 5), (2, 6)], lost: 0 }));
    let (bytes, known) = put_away(&mut join);
    for (behind, is_join) in [(0, true), (1, false), (8, false)] {
        let longer = [bytes.clone(), vec![0; behind]].concat();
        let found = Join::restore(settings(), &longer, known.clone());
        assert_eq!(found.is_some(), is_join, "{behind} bytes more");
    }
}

#[test]
fn what_other_settings_made_is_refused() {
    let mut join = Join::new(settings()).unwrap();
    tell(&mut join, 0, &[(); 3].map(|()| Slot { seen: vec![(1, 5), (2, 6)], lost: 0 }));
    let (bytes, known) = put_away(&mut join);
    assert!(Join::restore(settings(), &bytes, known.clone()).is_some());
    for other in [
        JoinSettings { points: vec!["a".into(), "b".into()], ..settings() },
        JoinSettings { period: Span(SLOT), ..settings() },
    ] {
        assert!(Join::restore(other, &bytes, known.clone()).is_none());
    }
}
