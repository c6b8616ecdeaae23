//! A join outside of memory, for a planned end: what it holds, to go on from there as if nothing had been.
//!
//! Sightings and fates are many, so they are words of eight bytes (little-endian), one after the other; what is known of clocks is
//! little and a value that serde takes. What comes back may have been changed by anybody: every number is checked against the
//! settings, and where one cannot be, there is no join.

use netaware_record::passive::PacketSighting;
use netaware_units::{Span, Wall};

use super::matcher::FARTHEST;
use super::part::{Cell, Fate, Part, Paths};
use super::route::{OpenRoute, OpenRoutes};
use super::shelf::Entry;
use super::watching::Watching;

/// Takes words.
pub(crate) struct Sink<'s> {
    out: &'s mut dyn FnMut(&[u8]),
}

impl<'s> Sink<'s> {
    pub(crate) fn new(out: &'s mut dyn FnMut(&[u8])) -> Self {
        Self { out }
    }

    pub(crate) fn word(&mut self, word: u64) {
        (self.out)(&word.to_le_bytes());
    }

    pub(crate) fn number(&mut self, number: i64) {
        self.word(number.cast_unsigned());
    }

    /// An instant that may not be known.
    pub(crate) fn instant(&mut self, at: Option<i64>) {
        self.number(at.unwrap_or(i64::MIN));
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.word(count as u64);
    }
}

/// Gives words, as long as there are any.
pub(crate) struct Source<'b> {
    bytes: &'b [u8],
}

impl<'b> Source<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*word))
    }

    pub(crate) fn number(&mut self) -> Option<i64> {
        self.word().map(u64::cast_signed)
    }

    /// `i64::MIN`: there is one, and it is not known.
    pub(crate) fn instant(&mut self) -> Option<i64> {
        self.number().filter(|at| *at <= FARTHEST)
    }

    /// How many things of so many words follow; not more than there is room for.
    pub(crate) fn count(&mut self, words: usize) -> Option<usize> {
        let count = usize::try_from(self.word()?).ok()?;
        (count <= self.bytes.len() / (8 * words)).then_some(count)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl Entry {
    pub(crate) fn save(&self, sink: &mut Sink<'_>) {
        sink.word(self.digest());
        sink.number(self.at);
        let marks = u64::from(self.point()) << 8 | self.version() as u64;
        sink.word(u64::from(self.length) << 32 | u64::from(self.ttl) << 16 | marks);
    }

    /// Of one of so many points.
    pub(crate) fn restore(source: &mut Source<'_>, points: usize) -> Option<Self> {
        let (digest, at, marks) = (source.word()?, source.number()?, source.word()?);
        let (point, version) = ((marks >> 8 & 0xff) as u8, if marks & 1 == 1 { 6 } else { 4 });
        let sane = (0..=FARTHEST).contains(&at) && usize::from(point) < points;
        let (length, ttl) = ((marks >> 32 & 0xffff) as u16, (marks >> 16 & 0xff) as u8);
        let seen = PacketSighting { digest, at: Wall(at), length, ttl, version };
        sane.then(|| Self::new(point, &seen))
    }
}

impl Watching {
    pub(crate) fn save(&self, sink: &mut Sink<'_>) {
        for spans in self.spans() {
            sink.count(spans.len());
            for (from, until) in spans {
                sink.number(*from);
                sink.number(*until);
            }
        }
    }

    pub(crate) fn restore(source: &mut Source<'_>) -> Option<Self> {
        let mut watching = Self::default();
        // What is complete was reported as well, so the order does not matter.
        for lost in [1, 0] {
            for _ in 0..source.count(2)? {
                let (from, until) = (source.number()?, source.number()?);
                watching.add(from, until.min(FARTHEST), lost);
            }
        }
        Some(watching)
    }
}

impl Part {
    pub(crate) fn save(&self, sink: &mut Sink<'_>) {
        sink.number(self.number);
        sink.count(self.cells.len());
        for cell in &self.cells {
            for fates in [&cell.fates[0], &cell.fates[1], &cell.either_way] {
                sink.count(fates.len());
                for fate in fates {
                    sink.number(fate.sent_at);
                    sink.number(fate.seen_at);
                }
            }
            for way in 0..2 {
                sink.word(cell.duplicates[way]);
                sink.word(cell.collisions[way]);
            }
        }
        sink.count(self.paths.counts.len());
        for (path, packets) in &self.paths.counts {
            sink.word(*path);
            sink.word(*packets);
        }
        sink.word(self.paths.others);
        sink.count(self.paths.open.len());
        self.paths.open.iter().for_each(|word| sink.number(*word));
    }

    /// Of periods of that length, with so many cells, of a join of so many points.
    pub(crate) fn restore(
        source: &mut Source<'_>,
        length: Span,
        cells: usize,
        points: usize,
    ) -> Option<Self> {
        let number = source.number()?;
        let sane = (0..=FARTHEST / length.0.max(1)).contains(&number) && source.count(1)? == cells;
        let mut part = sane.then(|| Self::new(number, length, cells))?;
        for cell in &mut part.cells {
            *cell = restored_cell(source)?;
        }
        part.paths = restored_paths(source, points)?;
        Some(part)
    }
}

fn restored_cell(source: &mut Source<'_>) -> Option<Cell> {
    let mut fates = || -> Option<Vec<Fate>> {
        let count = source.count(2)?;
        (0..count)
            .map(|_| {
                let fate = Fate { sent_at: source.number()?, seen_at: source.number()? };
                let was_seen = fate.seen().is_none_or(|at| (0..=FARTHEST).contains(&at));
                ((0..=FARTHEST).contains(&fate.sent_at) && was_seen).then_some(fate)
            })
            .collect()
    };
    let mut cell = Cell { fates: [fates()?, fates()?], either_way: fates()?, ..Cell::default() };
    for way in 0..2 {
        cell.duplicates[way] = source.count_of_packets()?;
        cell.collisions[way] = source.count_of_packets()?;
    }
    Some(cell)
}

fn restored_paths(source: &mut Source<'_>, points: usize) -> Option<Paths> {
    let mut paths = Paths::default();
    for _ in 0..source.count(2)? {
        paths.add(source.word()?, source.count_of_packets()?);
    }
    paths.others = paths.others.checked_add(source.count_of_packets()?)?;
    paths.open = (0..source.count(1)?).map(|_| source.number()).collect::<Option<_>>()?;
    let sane = |route: &OpenRoute<'_>| {
        route.is_sane(points) && route.stamps.iter().all(|at| (0..=FARTHEST).contains(at))
    };
    let words: usize = OpenRoutes(&paths.open).take_while(sane).map(|route| route.stamps.len() + 2).sum();
    (words == paths.open.len()).then_some(paths)
}

impl Source<'_> {
    /// A number of packets that sums cannot overflow from.
    pub(crate) fn count_of_packets(&mut self) -> Option<u64> {
        self.word().filter(|count| *count <= u64::MAX >> 16)
    }
}
