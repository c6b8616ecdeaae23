//! Sightings in memory, sorted by digest when they are looked through.
//!
//! A table of hashes misses the cache at each step; sorting parts that fit the cache does not,
//! takes no room for chains, and makes what comes out independent of the order in which sightings
//! came in.

use netaware_record::passive::PacketSighting;

/// A sighting as it is held; 24 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// The digest, scattered so that digests with few bits fill all parts as well.
    pub(crate) key: u64,
    /// Stamp of the point.
    pub(crate) at: i64,
    pub(crate) length: u16,
    pub(crate) ttl: u8,
    /// Point, six bits, and the IP version in the lowest: 0 for IPv4.
    marks: u8,
}

impl Entry {
    pub(crate) fn new(point: u8, seen: &PacketSighting) -> Self {
        Self {
            key: seen.digest.wrapping_mul(SCATTER),
            at: seen.at.0,
            length: seen.length,
            ttl: seen.ttl,
            marks: point << 1 | u8::from(seen.version == 6),
        }
    }

    pub(crate) fn point(&self) -> u8 {
        self.marks >> 1
    }

    /// 0 for IPv4, 1 for IPv6.
    pub(crate) fn version(&self) -> usize {
        usize::from(self.marks & 1)
    }

    pub(crate) fn digest(&self) -> u64 {
        self.key.wrapping_mul(GATHER)
    }

    /// Whether both can be the same packet.
    pub(crate) fn alike(&self, other: &Self) -> bool {
        self.length == other.length && self.version() == other.version()
    }
}

/// All sightings that are held.
#[derive(Debug)]
pub(crate) struct Shelves {
    shelves: Vec<Shelf>,
    held: usize,
}

#[derive(Debug, Default)]
struct Shelf {
    /// By key, then stamp.
    sorted: Vec<Entry>,
    fresh: Vec<Entry>,
}

impl Shelves {
    pub(crate) fn new() -> Self {
        Self { shelves: std::iter::repeat_with(Shelf::default).take(1 << SHELF_BITS).collect(), held: 0 }
    }

    pub(crate) fn held(&self) -> usize {
        self.held
    }

    #[inline]
    pub(crate) fn put(&mut self, entry: Entry) {
        self.shelves[(entry.key >> (64 - SHELF_BITS)) as usize].fresh.push(entry);
        self.held += 1;
    }

    /// Shows `settle` each run of equal digests, in the order of their stamps; of each run it takes
    /// as many from the front as it says.
    pub(crate) fn look_through(&mut self, mut settle: impl FnMut(&[Entry]) -> usize) {
        let mut all = Vec::new();
        self.held = 0;
        for shelf in &mut self.shelves {
            if shelf.sorted.is_empty() && shelf.fresh.is_empty() {
                continue;
            }
            shelf.fresh.sort_unstable();
            merge(&shelf.sorted, &shelf.fresh, &mut all);
            shelf.fresh.clear();
            shelf.sorted.clear();
            let mut rest = all.as_slice();
            while let Some(first) = rest.first() {
                let length = rest.iter().take_while(|entry| entry.key == first.key).count();
                let (run, behind) = rest.split_at(length);
                let taken = settle(run);
                shelf.sorted.extend_from_slice(&run[taken..]);
                rest = behind;
            }
            shelf.give_back();
            self.held += shelf.sorted.len();
        }
    }

    /// All that are held, in no order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.shelves.iter().flat_map(|shelf| shelf.sorted.iter().chain(&shelf.fresh))
    }

    /// The stamp below which about `share` of what is held lies, from a sample of some thousands.
    pub(crate) fn oldest(&self, share: f64) -> Option<i64> {
        let step = (self.held / SAMPLE).max(1);
        let all = self.shelves.iter().flat_map(|shelf| shelf.sorted.iter().chain(&shelf.fresh));
        let mut sample: Vec<i64> = all.step_by(step).map(|entry| entry.at).collect();
        let place = ((sample.len() as f64 * share) as usize).min(sample.len().checked_sub(1)?);
        Some(*sample.select_nth_unstable(place).1)
    }
}

impl Shelf {
    /// A burst must not keep its room for ever.
    fn give_back(&mut self) {
        for list in [&mut self.sorted, &mut self.fresh] {
            if list.capacity() > 64 && list.capacity() / 8 > list.len() {
                list.shrink_to(list.len() * 2);
            }
        }
    }
}

/// Both are sorted, and `all` becomes so.
fn merge(left: &[Entry], right: &[Entry], all: &mut Vec<Entry>) {
    all.clear();
    all.reserve(left.len() + right.len());
    let (mut left, mut right) = (left, right);
    while let ([one, ..], [other, ..]) = (left, right) {
        if one <= other {
            all.push(*one);
            left = &left[1..];
        } else {
            all.push(*other);
            right = &right[1..];
        }
    }
    all.extend_from_slice(left);
    all.extend_from_slice(right);
}

/// Odd, so that no two digests become one: 2^64 over the golden ratio.
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Its inverse modulo 2^64.
const GATHER: u64 = inverse(SCATTER);

/// Newton's iteration: each step doubles the bits that are right, of which an odd number has three
/// to begin with.
const fn inverse(odd: u64) -> u64 {
    let mut found = odd;
    let mut steps = 0;
    while steps < 5 {
        found = found.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(found)));
        steps += 1;
    }
    found
}

/// With tens of millions of sightings one of 1024 shelves fits a core's cache.
const SHELF_BITS: u32 = 10;

const SAMPLE: usize = 4096;

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;
    use netaware_units::Wall;

    use super::*;

    fn seen(digest: u64, at: i64) -> PacketSighting {
        PacketSighting { digest, at: Wall(at), length: 100, ttl: 64, version: 6 }
    }

    #[test]
    fn an_entry_is_24_bytes_and_gives_back_its_digest() {
        assert_eq!(size_of::<Entry>(), 24);
        for digest in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            let entry = Entry::new(63, &seen(digest, 5));
            assert_eq!((entry.digest(), entry.point(), entry.version()), (digest, 63, 1));
        }
    }

    #[test]
    fn runs_come_whole_and_in_order_however_they_were_put() {
        let mut rng = SplitMix64::new(1);
        let mut shelves = Shelves::new();
        let mut put = 0;
        for round in 0..3 {
            for _ in 0..5000 {
                shelves.put(Entry::new(0, &seen(rng.below(3000) as u64, rng.below(1_000_000) as i64)));
                put += 1;
            }
            let mut last: Option<u64> = None;
            let mut shown = 0;
            shelves.look_through(|run| {
                assert!(run.windows(2).all(|pair| pair[0].key == pair[1].key && pair[0].at <= pair[1].at));
                assert!(last.is_none_or(|last| last < run[0].key));
                last = Some(run[0].key);
                shown += run.len();
                usize::from(round == 1)
            });
            assert_eq!(shown, put);
            put = shelves.held();
        }
        assert!(put < 15_000 && put > 10_000);
    }

    #[test]
    fn the_oldest_eighth_is_about_an_eighth() {
        let mut shelves = Shelves::new();
        assert_eq!(shelves.oldest(0.125), None);
        (0..80_000).for_each(|at| shelves.put(Entry::new(0, &seen(at as u64 * 77, at))));
        let cut = shelves.oldest(0.125).unwrap();
        assert!((9_000..11_000).contains(&cut), "{cut}");
    }

    #[test]
    fn sightings_of_one_length_and_version_are_alike() {
        let entry =
            |length: u16, version: u8| Entry::new(3, &PacketSighting { length, version, ..seen(7, 5) });
        let found = [(100, 4), (101, 4), (100, 6)]
            .map(|(length, version)| entry(length, version).alike(&entry(100, 4)));
        assert_eq!(found, [true, false, false]);
    }

    #[test]
    fn two_sorted_lists_become_one() {
        let entries = |of: &[(u64, i64)]| -> Vec<Entry> {
            of.iter().map(|(key, at)| Entry { key: *key, at: *at, ..Entry::new(0, &seen(0, 0)) }).collect()
        };
        let mut all = entries(&[(9, 9)]);
        merge(&entries(&[(1, 1), (1, 3), (4, 0)]), &entries(&[(1, 2), (2, 7), (5, 0)]), &mut all);
        assert_eq!(all, entries(&[(1, 1), (1, 2), (1, 3), (2, 7), (4, 0), (5, 0)]));
    }

    #[test]
    fn a_list_that_was_long_gives_its_room_back_and_a_short_one_keeps_it() {
        let capacity = |room: usize, held: usize| {
            let mut shelf = Shelf { sorted: Vec::with_capacity(room), fresh: Vec::new() };
            shelf.sorted.resize(held, Entry::new(0, &seen(0, 0)));
            shelf.give_back();
            shelf.sorted.capacity()
        };
        assert!((20..100).contains(&capacity(1000, 10)));
        assert!(capacity(800, 100) >= 800, "an eighth is held");
        assert!(capacity(64, 0) >= 64, "it is small anyway");
    }

    #[test]
    fn the_oldest_of_few_are_found_exactly() {
        let mut shelves = Shelves::new();
        (0..10).for_each(|at| shelves.put(Entry::new(0, &seen(7, at * 10))));
        assert_eq!([0.0, 0.125, 0.5, 1.0].map(|share| shelves.oldest(share)), [0, 10, 50, 90].map(Some));
        assert_eq!((shelves.held(), shelves.entries().count()), (10, 10));
    }
}
