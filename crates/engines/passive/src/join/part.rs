//! What one join found of one period: fates of packets, from which rows are made when all of the
//! digest space is there.

use std::collections::BTreeMap;

use netaware_record::passive::Period;
use netaware_units::{Span, Wall};

/// One packet at its first point and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fate {
    /// Stamp of the first point.
    pub(crate) sent_at: i64,
    /// Stamp of the second, or one of the constants below.
    pub(crate) seen_at: i64,
}

impl Fate {
    /// Did not come while the second point was watching.
    pub(crate) const LOST: i64 = i64::MAX;
    /// Not seen, and it is not known whether the second point was watching.
    pub(crate) const UNOBSERVED: i64 = i64::MAX - 1;
    /// Came, but which of several copies took how long cannot be said.
    pub(crate) const COPIED: i64 = i64::MAX - 2;
    /// Another packet had the same digest.
    pub(crate) const COLLIDED: i64 = i64::MAX - 3;
    /// Pushed out of a full memory.
    pub(crate) const GIVEN_UP: i64 = i64::MAX - 4;

    /// Stamp of the second point, if there is one to subtract from.
    pub(crate) fn seen(&self) -> Option<i64> {
        (self.seen_at < Self::GIVEN_UP).then_some(self.seen_at)
    }
}

/// Fates of one link, IP version and lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// From a to b, and from b to a.
    pub(crate) fates: [Vec<Fate>; 2],
    /// Seen at a (`sent_at`) and at b, the way not yet known.
    pub(crate) either_way: Vec<Fate>,
    pub(crate) duplicates: [u64; 2],
    pub(crate) collisions: [u64; 2],
}

impl Cell {
    fn merge(&mut self, other: &mut Self) {
        for way in 0..2 {
            self.fates[way].append(&mut other.fates[way]);
            self.duplicates[way] += other.duplicates[way];
            self.collisions[way] += other.collisions[way];
        }
        self.either_way.append(&mut other.either_way);
    }
}

/// One period as one join (one part of the digest space) knows it. Parts of the same period and
/// settings add up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Number of the period since the epoch.
    pub(crate) number: i64,
    pub(crate) length: Span,
    /// By (link * 2 + IP version) * cells of one + lane; where the join is shared, the cell behind
    /// the lanes is that of the clock sample.
    pub(crate) cells: Vec<Cell>,
    /// Packets by the points that they passed, in order.
    pub(crate) paths: Paths,
}

impl Part {
    pub(crate) fn new(number: i64, length: Span, cells: usize) -> Self {
        Self { number, length, cells: vec![Cell::default(); cells], paths: Paths::default() }
    }

    /// From when to when, by the clock of a packet's first point.
    pub fn period(&self) -> Period {
        let from = self.number.saturating_mul(self.length.0);
        Period { from: Wall(from), until: Wall(from.saturating_add(self.length.0)) }
    }

    /// Adds what another join with the same settings found of the same period in its part of the
    /// digest space; gives `other` back if it is of another period or other settings.
    pub fn merge(&mut self, mut other: Self) -> Result<(), Box<Self>> {
        let same =
            (self.number, self.length, self.cells.len()) == (other.number, other.length, other.cells.len());
        if !same {
            return Err(Box::new(other));
        }
        for (mine, its) in self.cells.iter_mut().zip(&mut other.cells) {
            mine.merge(its);
        }
        self.paths.merge(&other.paths);
        Ok(())
    }
}

/// Packets by path; a path is up to eight points, each plus one in a byte, the first in the lowest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Paths {
    pub(crate) counts: BTreeMap<u64, u64>,
    /// Packets of paths that had no room.
    pub(crate) others: u64,
    /// Packets whose order of points only clocks can tell: words of [`super::route::Route::tell`].
    pub(crate) open: Vec<i64>,
    last: u64,
    run: u64,
}

impl Paths {
    /// Different paths in one period; a network has few, only nonsense has many.
    const MOST: usize = 256;

    #[inline]
    pub(crate) fn count(&mut self, path: u64) {
        if path != self.last {
            self.flush();
            self.last = path;
        }
        self.run += 1;
    }

    /// What was counted last is written down.
    pub(crate) fn flush(&mut self) {
        let run = std::mem::take(&mut self.run);
        self.add(self.last, run);
    }

    pub(crate) fn add(&mut self, path: u64, packets: u64) {
        if packets == 0 {
            return;
        }
        if self.counts.len() >= Self::MOST && !self.counts.contains_key(&path) {
            self.others += packets;
        } else {
            *self.counts.entry(path).or_default() += packets;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.flush();
        for (path, packets) in &other.counts {
            self.add(*path, *packets);
        }
        self.add(other.last, other.run);
        self.others += other.others;
        self.open.extend_from_slice(&other.open);
        self.last = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(stamps: &[(i64, i64)]) -> Vec<Fate> {
        stamps.iter().map(|(sent_at, seen_at)| Fate { sent_at: *sent_at, seen_at: *seen_at }).collect()
    }

    #[test]
    fn a_fate_has_a_stamp_unless_it_is_one_of_five_that_have_none() {
        let none = [Fate::LOST, Fate::UNOBSERVED, Fate::COPIED, Fate::COLLIDED, Fate::GIVEN_UP];
        assert_eq!(none, [0, 1, 2, 3, 4].map(|less| i64::MAX - less));
        assert_eq!(none.map(|seen_at| Fate { sent_at: 1, seen_at }.seen()), [None; 5]);
        let some = [-7, 0, i64::MAX - 5];
        assert_eq!(some.map(|seen_at| Fate { sent_at: 1, seen_at }.seen()), some.map(Some));
    }

    #[test]
    fn parts_of_one_period_add_up_and_others_are_given_back() {
        let part = |cell: Cell, paths: Paths| {
            let mut part = Part { paths, ..Part::new(3, Span(100), 2) };
            part.cells[1] = cell;
            part
        };
        let paths = |counts: &[(u64, u64)], others: u64, open: &[i64], (last, run): (u64, u64)| Paths {
            counts: counts.iter().copied().collect(),
            others,
            open: open.to_vec(),
            last,
            run,
        };
        let one = Cell {
            fates: [fates(&[(1, 2)]), Vec::new()],
            either_way: fates(&[(3, 4)]),
            duplicates: [1, 2],
            collisions: [3, 4],
        };
        let other = Cell {
            fates: [fates(&[(5, 6)]), fates(&[(7, 8)])],
            either_way: fates(&[(9, 10)]),
            duplicates: [10, 20],
            collisions: [30, 40],
        };
        let both = Cell {
            fates: [fates(&[(1, 2), (5, 6)]), fates(&[(7, 8)])],
            either_way: fates(&[(3, 4), (9, 10)]),
            duplicates: [11, 22],
            collisions: [33, 44],
        };
        // Packets of the last path are not written down yet.
        let mut sum = part(one, paths(&[(5, 10), (6, 1)], 2, &[8], (5, 3)));
        assert_eq!(sum.merge(part(other, paths(&[(5, 100)], 40, &[9], (7, 2)))), Ok(()));
        let want = part(both, paths(&[(5, 113), (6, 1), (7, 2)], 42, &[8, 9], (0, 0)));
        assert_eq!(sum, want);
        for strange in [
            Part { number: 4, ..want.clone() },
            Part { length: Span(99), ..want.clone() },
            Part::new(3, Span(100), 1),
        ] {
            assert_eq!(sum.merge(strange.clone()), Err(Box::new(strange)));
        }
        assert_eq!(sum, want);
        assert_eq!(sum.period(), Period { from: Wall(300), until: Wall(400) });
    }

    #[test]
    fn packets_of_paths_that_have_no_room_are_counted_together() {
        let mut paths = Paths::default();
        for path in [9, 9, 1, 9] {
            paths.count(path);
        }
        paths.flush();
        paths.flush();
        assert_eq!(paths.counts, BTreeMap::from([(1, 1), (9, 3)]));
        (100..354).for_each(|path| paths.add(path, 2));
        assert_eq!((paths.counts.len(), paths.others), (256, 0));
        for (path, packets) in [(1000, 5), (9, 4), (1001, 0), (1000, 1)] {
            paths.add(path, packets);
        }
        assert_eq!((paths.counts.len(), paths.others, paths.counts[&9]), (256, 6, 7));
    }
}
