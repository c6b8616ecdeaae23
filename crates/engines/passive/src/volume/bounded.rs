//! A table of a bounded number of keys that keeps those which weigh most.
//!
//! Let `upper` of a key be what was counted of it plus what may have been missed. When the table is
//! full, the half with the lesser `upper` goes into `rest`, and the largest `upper` among those
//! becomes the `floor`: no key outside of the table ever weighed more. A key that is let in begins
//! with `floor` as what may have been missed. After `N` packets (or bytes) the floor is at most `2
//! N / keys`: each unit adds 1 to the sum over the table of `upper - floor`, and raising the floor
//! by 1 takes `keys / 2` from it, which is never negative.

use netaware_units::Wall;

use super::Count;
use crate::Seed;
use crate::flow::{Flow, Table, table};

/// What makes a key heavy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Packets,
    Bytes,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) count: Count,
    /// That may have been missed, at most.
    pub(crate) packets_error: u64,
    bytes_error: u64,
}

#[derive(Debug)]
pub(crate) struct Bounded {
    keys: Table<Flow, Counted>,
    most: usize,
    weight: Weight,
    rest: Count,
    /// No key outside of the table had more.
    packets_floor: u64,
    bytes_floor: u64,
}

/// What was counted.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Heaviest first.
    pub(crate) keys: Vec<(Flow, Counted)>,
    pub(crate) rest: Option<Count>,
}

impl Bounded {
    pub(crate) fn new(most: usize, weight: Weight, seed: &Seed) -> Self {
        let keys = table(seed, "flow table");
        Self { keys, most, weight, rest: Count::NOTHING, packets_floor: 0, bytes_floor: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, flow: Flow, packets: u16, bytes: u64, at: Wall) {
        if let Some(counted) = self.keys.get_mut(&flow) {
            counted.count.add(packets, bytes, at);
            return;
        }
        self.admit(flow, packets, bytes, at);
    }

    #[cold]
    fn admit(&mut self, flow: Flow, packets: u16, bytes: u64, at: Wall) {
        if self.keys.len() >= self.most {
            self.purge();
        }
        let (packets_error, bytes_error) = (self.packets_floor, self.bytes_floor);
        let mut counted = Counted { count: Count::NOTHING, packets_error, bytes_error };
        counted.count.add(packets, bytes, at);
        self.keys.insert(flow, counted);
    }

    /// Makes room for half of the table (one key, if it holds but one).
    fn purge(&mut self) {
        let weight = self.weight;
        let mut uppers: Vec<u64> = self.keys.values().map(|counted| counted.upper(weight)).collect();
        let middle = (uppers.len() - 1) / 2;
        let limit = *uppers.select_nth_unstable(middle).1;
        // Of those that weigh just the limit only so many go that half remains: else a table of
        // equals would be emptied.
        let mut equals = middle + 1 - uppers[..=middle].iter().filter(|upper| **upper < limit).count();
        let (rest, packets, bytes) = (&mut self.rest, &mut self.packets_floor, &mut self.bytes_floor);
        self.keys.retain(|_, counted| {
            let upper = counted.upper(weight);
            let stays = upper > limit || (upper == limit && equals == 0);
            if !stays {
                equals -= usize::from(upper == limit);
                rest.merge(&counted.count);
                *packets = (*packets).max(counted.upper(Weight::Packets));
                *bytes = (*bytes).max(counted.upper(Weight::Bytes));
            }
            stays
        });
    }

    /// Empties the table.
    pub(crate) fn take(&mut self) -> Taken {
        let mut keys: Vec<_> = self.keys.drain().collect();
        let weight = self.weight;
        keys.sort_unstable_by(|(a, left), (b, right)| {
            right.upper(weight).cmp(&left.upper(weight)).then(a.cmp(b))
        });
        (self.packets_floor, self.bytes_floor) = (0, 0);
        let rest = std::mem::replace(&mut self.rest, Count::NOTHING);
        Taken { keys, rest: (rest.packets > 0).then_some(rest) }
    }

    #[cfg(test)]
    fn floor(&self) -> u64 {
        match self.weight {
            Weight::Packets => self.packets_floor,
            Weight::Bytes => self.bytes_floor,
        }
    }
}

impl Counted {
    fn upper(&self, weight: Weight) -> u64 {
        match weight {
            Weight::Packets => self.count.packets + self.packets_error,
            Weight::Bytes => self.count.bytes + self.bytes_error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netaware_stats::rng::SplitMix64;
    use proptest::prelude::*;

    use super::*;

    fn flow(number: u64) -> Flow {
        Flow { source: number.into(), ..Flow::default() }
    }

    /// Holds the table against exact counts of the same packets.
    fn compare(packets: impl Iterator<Item = (u64, u32)>, most: usize, weight: Weight) {
        let mut bounded = Bounded::new(most, weight, &Seed::new([1; 16]));
        let mut exact: BTreeMap<Flow, (u64, u64)> = BTreeMap::new();
        let (mut total, mut total_packets, mut total_bytes) = (0, 0, 0);
        for (number, bytes) in packets {
            bounded.add(flow(number), 1, bytes.into(), Wall(0));
            let truth = exact.entry(flow(number)).or_default();
            *truth = (truth.0 + 1, truth.1 + u64::from(bytes));
            total_packets += 1;
            total_bytes += u64::from(bytes);
            total += if weight == Weight::Packets { 1 } else { u64::from(bytes) };
            assert!(bounded.keys.len() <= most);
        }
        let floor = bounded.floor();
        assert!(
            floor as f64 <= 2.0 * total as f64 / most as f64 + 1.0 || most == 1,
            "floor {floor} of {total}"
        );
        let taken = bounded.take();
        for (key, counted) in &taken.keys {
            let (packets, bytes) = exact[key];
            assert!(counted.count.packets <= packets && packets <= counted.upper(Weight::Packets));
            assert!(counted.count.bytes <= bytes && bytes <= counted.upper(Weight::Bytes));
        }
        for (key, truth) in &exact {
            let heavy = if weight == Weight::Packets { truth.0 } else { truth.1 };
            assert!(
                heavy <= floor || taken.keys.iter().any(|(kept, _)| kept == key),
                "{heavy} lost over {floor}"
            );
        }
        let rest = taken.rest.unwrap_or(Count::NOTHING);
        assert_eq!(
            taken.keys.iter().map(|(_, counted)| counted.count.packets).sum::<u64>() + rest.packets,
            total_packets
        );
        assert_eq!(
            taken.keys.iter().map(|(_, counted)| counted.count.bytes).sum::<u64>() + rest.bytes,
            total_bytes
        );
    }

    proptest! {
        #[test]
        fn bounds_hold_for_any_traffic(packets in prop::collection::vec((0..40_u64, 20..1500_u32), 0..600), most in 1..20_usize) {
            compare(packets.iter().copied(), most, Weight::Packets);
            compare(packets.into_iter(), most, Weight::Bytes);
        }
    }

    #[test]
    fn a_table_with_room_is_exact() {
        let mut bounded = Bounded::new(3, Weight::Packets, &Seed::new([1; 16]));
        for number in [1, 2, 3, 1, 1, 2] {
            bounded.add(flow(number), 1, 100, Wall(5));
        }
        let taken = bounded.take();
        let said: Vec<_> =
            taken.keys.iter().map(|(key, at)| (key.source, at.count.packets, at.packets_error)).collect();
        assert_eq!(said, [(1, 3, 0), (2, 2, 0), (3, 1, 0)]);
        assert!(taken.rest.is_none());
    }

    /// Heavy flows among many that come once, in the proportions of ten million flows at a probe
    /// with 10,000 keys.
    #[test]
    fn heavy_hitters_stay_among_a_flood_of_single_packets() {
        let mut rng = SplitMix64::new(7);
        let mut bounded = Bounded::new(500, Weight::Packets, &Seed::new([1; 16]));
        for number in 0..500_000_u64 {
            let heavy = rng.below(100) < 5;
            bounded.add(flow(if heavy { number % 5 } else { 1000 + number }), 1, 100, Wall(0));
        }
        let taken = bounded.take();
        assert!(taken.keys.len() <= 500);
        let mut top: Vec<u128> = taken.keys[..5].iter().map(|(key, _)| key.source).collect();
        top.sort_unstable();
        assert_eq!(top, [0, 1, 2, 3, 4]);
        assert!(taken.keys[4].1.count.packets > 4500, "{:?}", taken.keys[4]);
    }

    #[test]
    fn the_lighter_half_makes_room_and_the_heaviest_of_it_is_the_floor() {
        let mut bounded = Bounded::new(4, Weight::Bytes, &Seed::new([1; 16]));
        for (number, bytes) in [(1_u64, 4), (1, 3), (1, 3), (2, 20), (3, 30), (4, 40), (5, 5)] {
            bounded.add(flow(number), 1, bytes, Wall(number.cast_signed()));
        }
        // The first has more packets than the second, and fewer bytes.
        assert_eq!((bounded.packets_floor, bounded.bytes_floor), (3, 20));
        let taken = bounded.take();
        let said = taken.keys.iter().map(|(key, counted)| {
            (key.source, counted.count.bytes, counted.packets_error, counted.bytes_error)
        });
        assert_eq!(said.collect::<Vec<_>>(), [(4, 40, 0, 0), (3, 30, 0, 0), (5, 5, 3, 20)]);
        assert_eq!(taken.rest, Some(Count { packets: 4, bytes: 30, first_at: 1, last_at: 2 }));
        assert_eq!((bounded.packets_floor, bounded.bytes_floor), (0, 0));
    }

    #[test]
    fn of_keys_that_weigh_the_same_one_half_goes() {
        for (most, left) in [(1, 1), (4, 3), (5, 3)] {
            let mut bounded = Bounded::new(most, Weight::Packets, &Seed::new([1; 16]));
            (0..=most).for_each(|number| bounded.add(flow(number as u64), 1, 10, Wall(0)));
            assert_eq!(bounded.keys.len(), left, "of {most}");
            assert_eq!(bounded.take().rest.map(|rest| rest.packets), Some((most + 1 - left) as u64));
        }
    }
}
