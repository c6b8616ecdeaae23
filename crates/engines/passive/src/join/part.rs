//! What one join found of one period: fates of packets, from which rows are made when all of the digest space is there.

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

/// One period as one join (one part of the digest space) knows it. Parts of the same period and settings add up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Number of the period since the epoch.
    pub(crate) number: i64,
    pub(crate) length: Span,
    /// By (link * 2 + IP version) * cells of one + lane; where the join is shared, the cell behind the lanes is that of the clock sample.
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

    /// Adds what another join with the same settings found of the same period in its part of the digest space; gives `other` back
    /// if it is of another period or other settings.
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
