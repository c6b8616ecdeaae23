//! A join outside of memory, for a planned end: what it holds, to go on from there as if nothing
//! had been.
//!
//! Sightings and fates are many, so they are words of eight bytes (little-endian), one after the
//! other; what is known of clocks is little and a value that serde takes. What comes back may have
//! been changed by anybody: every number is checked against the settings, and where one cannot be,
//! there is no join.

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

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(save: impl FnOnce(&mut Sink<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = |word: &[u8]| bytes.extend_from_slice(word);
        save(&mut Sink::new(&mut out));
        bytes
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn an_entry_is_three_words_and_comes_back_for_a_point_that_there_is() {
        for (version, bit) in [(4, 0), (6, 1)] {
            let digest = 0x1234_5678_9abc_def0;
            let seen = PacketSighting { digest, at: Wall(77), length: 0xabcd, ttl: 0x3f, version };
            let entry = Entry::new(5, &seen);
            let bytes = saved(|sink| entry.save(sink));
            assert_eq!(bytes, words(&[digest, 77, 0xabcd_003f_0500 | bit]));
            let restored = [6, 5].map(|points| Entry::restore(&mut Source::new(&bytes), points));
            assert_eq!(restored, [Some(entry), None]);
        }
        for (at, is_entry) in [(0, true), (FARTHEST, true), (-1, false), (FARTHEST + 1, false)] {
            let bytes = words(&[1, i64::cast_unsigned(at), 0]);
            assert_eq!(Entry::restore(&mut Source::new(&bytes), 1).is_some(), is_entry, "{at}");
        }
    }

    #[test]
    fn what_is_known_of_watching_comes_back() {
        let mut watching = Watching::default();
        for (from, until, lost) in [(0, 10, 0), (10, 20, 3), (30, 40, 0)] {
            watching.add(from, until, lost);
        }
        let bytes = saved(|sink| watching.save(sink));
        assert_eq!(bytes, words(&[2, 0, 20, 30, 40, 2, 0, 10, 30, 40]));
        let restored = Watching::restore(&mut Source::new(&bytes)).unwrap();
        assert_eq!(restored.spans(), watching.spans());
    }

    fn fate(sent_at: i64, seen_at: i64) -> Fate {
        Fate { sent_at, seen_at }
    }

    /// Of a period of 100 ns, with something in everything.
    fn part() -> Part {
        let mut part = Part::new(3, Span(100), 2);
        part.cells[1] = Cell {
            fates: [vec![fate(1, 2), fate(3, Fate::LOST)], vec![fate(4, 5)]],
            either_way: vec![fate(6, 7)],
            duplicates: [8, 9],
            collisions: [10, 11],
        };
        part.paths.add(0x01, 12);
        part.paths.add(0x0201, 13);
        part.paths.others = 14;
        part.paths.open = vec![0x0201, 1, 15, 16, 0x0102, 0, 17, 18];
        part
    }

    #[test]
    fn a_part_comes_back_as_it_was_and_only_whole_and_with_the_same_settings() {
        let bytes = saved(|sink| part().save(sink));
        let restored = |bytes: &[u8], length: i64, cells: usize, points: usize| {
            let mut source = Source::new(bytes);
            Part::restore(&mut source, Span(length), cells, points).filter(|_| source.is_empty())
        };
        assert_eq!(restored(&bytes, 100, 2, 2), Some(part()));
        for cut in 0..bytes.len() / 8 {
            assert_eq!(restored(&bytes[..cut * 8], 100, 2, 2), None, "the first {cut} words");
        }
        assert_eq!(restored(&[bytes.as_slice(), &[0; 8]].concat(), 100, 2, 2), None);
        assert_eq!(restored(&bytes, 100, 3, 2), None, "more cells");
        assert_eq!(restored(&bytes, 100, 2, 1), None, "fewer points");
        // Its third period ends before any stamp can be, or not.
        assert!(
            restored(&bytes, FARTHEST / 3, 2, 2).is_some()
                && restored(&bytes, FARTHEST / 3 + 1, 2, 2).is_none()
        );
    }

    #[test]
    fn stamps_that_cannot_be_are_refused() {
        for (stamps, is_part) in [
            (fate(0, FARTHEST), true),
            (fate(FARTHEST, 0), true),
            (fate(5, Fate::GIVEN_UP), true),
            (fate(-1, 5), false),
            (fate(5, -1), false),
            (fate(FARTHEST + 1, 5), false),
            (fate(5, FARTHEST + 1), false),
        ] {
            let mut part = Part::new(0, Span(100), 1);
            part.cells[0].fates[1].push(stamps);
            let bytes = saved(|sink| part.save(sink));
            let found = Part::restore(&mut Source::new(&bytes), Span(100), 1, 2);
            assert_eq!(found, is_part.then_some(part), "{stamps:?}");
        }
    }

    #[test]
    fn counts_and_instants_have_their_limits() {
        let count = |number: u64, words_of_each: usize| {
            Source::new(&words(&[number, 1, 2, 3, 4])).count(words_of_each)
        };
        assert_eq!([count(2, 2), count(3, 2), count(4, 1), count(5, 1)], [Some(2), None, Some(4), None]);
        let packets = [u64::MAX >> 16, (u64::MAX >> 16) + 1];
        let found = packets.map(|number| Source::new(&words(&[number])).count_of_packets());
        assert_eq!(found, [Some(packets[0]), None]);
        let instants = [i64::MIN, FARTHEST, FARTHEST + 1];
        let found = instants.map(|at| Source::new(&words(&[at.cast_unsigned()])).instant());
        assert_eq!(found, [Some(i64::MIN), Some(FARTHEST), None]);
    }
}
