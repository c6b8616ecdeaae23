//! Finds the sightings of one packet at several points, and decides what became of those that were
//! not seen everywhere.
//!
//! Nothing is decided before every point has reported on all of a packet's window (or was waited
//! for in vain), so the result does not depend on the order in which reports come, and a digest's
//! fate on no other digest: that is why the digest space can be divided among collectors.

use std::collections::BTreeMap;

use netaware_record::passive::{PacketSighting, Period};
use netaware_units::{Span, Wall};

use super::arrivals::Arrivals;
use super::part::{Cell, Fate, Part, Paths};
use super::route::Route;
use super::saved::{Sink, Source};
use super::settings::{Expects, JoinSettings, Link, PointId, SettingsError};
use super::shelf::{Entry, Shelves};
use super::watching::Watching;

/// What a join did with sightings, since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JoinCounts {
    /// Taken.
    pub taken: u64,
    /// Came after packets of their time had been judged: not used.
    pub came_late: u64,
    /// Of a point that there is not, with a stamp before 1970 or further ahead of the collector
    /// than a period, a window and the clocks' greatest difference: not used.
    pub absurd: u64,
    /// Settled early because memory was full, and without a partner by then; or of more periods at
    /// the same time than there is memory for.
    pub given_up: u64,
    /// Of digests that another collector joins: used for the clocks where they are of their sample,
    /// else not at all.
    pub elsewhere: u64,
    /// Held now.
    pub held: u64,
}

/// The first half of a join: sightings in, fates of packets out, period by period. Pure: time comes
/// as an argument.
#[derive(Debug)]
pub struct Matcher {
    settings: JoinSettings,
    rules: Rules,
    shelves: Shelves,
    watching: Vec<Watching>,
    arrivals: Vec<Arrivals>,
    open: OpenParts,
    /// Every point's sightings before this have come or are not waited for any more.
    settled: Option<i64>,
    /// `settled` when the shelves were looked through last.
    looked: Option<i64>,
    /// `settled` when packets were judged last, which a full memory forces as well.
    judged: Option<i64>,
    now: Option<Wall>,
    /// `now` when it was told first.
    began: Option<i64>,
    counts: JoinCounts,
}

/// What decides about a packet, apart from the sightings.
#[derive(Debug)]
struct Rules {
    links: Vec<Link>,
    /// Links of each point.
    of_point: Vec<Vec<u16>>,
    window: i64,
    /// From a packet's first sighting until all is known of it: its window, and what a copy at the
    /// end of that may take.
    hold: i64,
    patience: i64,
    apart: i64,
    lanes: u16,
    part: (u16, u16),
    is_shared: bool,
    /// Packets up to this may have been settled early, one sighting without the other.
    blind_until: i64,
}

impl Matcher {
    /// With no sightings yet.
    pub fn new(settings: JoinSettings) -> Result<Self, SettingsError> {
        let links = settings.links()?;
        let touching = |point: usize| {
            let ends = |link: &Link| usize::from(link.a) == point || usize::from(link.b) == point;
            (0..links.len()).filter(|at| ends(&links[*at])).map(|at| at as u16).collect()
        };
        let cells = links.len() * 2 * settings.cells();
        Ok(Self {
            rules: Rules {
                of_point: (0..settings.points.len()).map(touching).collect(),
                window: settings.window(),
                hold: settings.window() + (settings.patience + settings.clocks_apart).0,
                patience: settings.patience.0,
                apart: settings.clocks_apart.0,
                lanes: settings.lanes,
                part: settings.part,
                is_shared: settings.is_shared(),
                blind_until: i64::MIN,
                links,
            },
            shelves: Shelves::new(),
            watching: vec![Watching::default(); settings.points.len()],
            arrivals: vec![Arrivals::default(); settings.points.len()],
            open: OpenParts::new(settings.period, cells),
            settled: None,
            looked: None,
            judged: None,
            now: None,
            began: None,
            counts: JoinCounts::default(),
            settings,
        })
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &JoinSettings {
        &self.settings
    }

    /// Takes sightings of one point, in any order, before or after those of others. The same
    /// sighting twice is a duplicated packet: replayed reports must be kept out before.
    pub fn offer(&mut self, point: PointId, sightings: &[PacketSighting]) {
        let latest = self.now.map_or(FARTHEST, |now| self.latest(now));
        let mut earliest = self.judged_until().unwrap_or(0);
        if usize::from(point.0) >= self.watching.len() {
            self.counts.absurd += sightings.len() as u64;
            return;
        }
        for seen in sightings {
            let at = seen.at.0;
            if at < 0 || at > latest {
                self.counts.absurd += 1;
            } else if at < earliest {
                self.counts.came_late += 1;
            } else {
                if self.settings.is_joined_here(seen.digest) {
                    self.counts.taken += 1;
                } else {
                    self.counts.elsewhere += 1;
                    if !super::is_clock_sample(seen.digest) {
                        continue;
                    }
                }
                self.shelves.put(Entry::new(point.0, seen));
                if self.shelves.held() > self.settings.most_sightings {
                    self.shed();
                    earliest = self.judged_until().unwrap_or(0);
                }
            }
        }
    }

    /// All sightings of this point and period have been offered; it lost so many packets in it. A
    /// time that this is never said of is unobserved.
    pub fn watched(&mut self, point: PointId, period: Period, lost: u64) {
        // It watched the time of which its sightings are taken, and no other.
        let from = period.from.0.max(self.judged_until().unwrap_or(i64::MIN));
        let at = usize::from(point.0);
        let Some(watching) = self.watching.get_mut(at) else { return };
        watching.add(from, period.until.0.min(FARTHEST), lost);
        if let Some(now) = self.now {
            let until = watching.reported_until(self.settled).unwrap_or(period.until.0);
            self.arrivals[at].heard(now.0, until, self.settings.report_patience.0);
        }
    }

    /// It is `now` by the collector's clock: gives the periods of which everything is known, oldest
    /// first.
    pub fn advance(&mut self, now: Wall) -> Vec<Part> {
        let now = self.now.map_or(now, |before| before.max(now));
        self.now = Some(now);
        let (now, patience) = (now.0, self.settings.report_patience.0);
        let began = *self.began.get_or_insert(now);
        let (mut all, mut behind) = (i64::MAX, i64::MAX);
        for (watching, arrivals) in self.watching.iter().zip(&self.arrivals) {
            let reported = watching.reported_until(self.settled).unwrap_or(i64::MIN);
            all = all.min(reported);
            if arrivals.is_waited_for(now, began, patience) {
                behind = behind.min(reported);
            }
        }
        let waited = now.saturating_sub(patience).min(behind);
        let until = all.max(waited).max(self.settled.unwrap_or(i64::MIN)).min(FARTHEST);
        // Somebody was not heard yet, and may come with everything there is.
        if until == i64::MIN { Vec::new() } else { self.settle_until(until) }
    }

    /// Nothing will come any more: gives all that is left.
    pub fn finish(&mut self) -> Vec<Part> {
        self.settle_until(i64::MAX)
    }

    /// What it did so far.
    pub fn counts(&self) -> JoinCounts {
        JoinCounts { held: self.shelves.held() as u64, ..self.counts }
    }

    /// Tells all that it holds.
    pub(crate) fn save(&mut self, sink: &mut Sink<'_>) {
        sink.instant(self.settled);
        sink.instant(self.looked);
        sink.number(self.rules.blind_until);
        let JoinCounts { taken, came_late, absurd, given_up, elsewhere, .. } = self.counts;
        for count in [taken, came_late, absurd, given_up, elsewhere] {
            sink.word(count);
        }
        self.watching.iter().for_each(|watching| watching.save(sink));
        sink.count(self.shelves.held());
        self.shelves.entries().for_each(|entry| entry.save(sink));
        self.open.save(sink);
    }

    /// One that goes on from what another with the same settings told.
    pub(crate) fn restore(settings: JoinSettings, source: &mut Source<'_>) -> Option<Self> {
        let mut matcher = Self::new(settings).ok()?;
        let known = |at: i64| (at != i64::MIN).then_some(at);
        (matcher.settled, matcher.looked) = (known(source.instant()?), known(source.instant()?));
        matcher.judged = matcher.settled;
        matcher.rules.blind_until = source.instant()?;
        let [taken, came_late, absurd, given_up, elsewhere] = [(); 5].map(|()| source.count_of_packets());
        matcher.counts = JoinCounts {
            taken: taken?,
            came_late: came_late?,
            absurd: absurd?,
            given_up: given_up?,
            elsewhere: elsewhere?,
            ..JoinCounts::default()
        };
        for watching in &mut matcher.watching {
            *watching = Watching::restore(source)?;
        }
        let points = matcher.watching.len();
        for _ in 0..source.count(3)? {
            matcher.shelves.put(Entry::restore(source, points)?);
        }
        matcher.open.restore(source, points)?;
        source.is_empty().then_some(matcher)
    }

    /// No sighting from this time on can be of a packet that was judged already, so it is taken,
    /// although its point has reported on its time. That happens: a packet that lay in a ring is
    /// handed over with the next period, and stamps jump back when a clock is set. Packets that
    /// were judged began before `judged` less `hold`, and sightings of a packet are no further
    /// apart than the window: `hold` is longer than that by what is taken off here.
    fn judged_until(&self) -> Option<i64> {
        self.judged.map(|judged| judged.saturating_sub(self.rules.patience + self.rules.apart))
    }

    fn latest(&self, now: Wall) -> i64 {
        let ahead = self.settings.period.0 + self.rules.window + self.settings.clocks_apart.0;
        now.0.saturating_add(ahead).min(FARTHEST)
    }

    fn settle_until(&mut self, settled: i64) -> Vec<Part> {
        self.settled = Some(settled);
        // What began before this is known to its end.
        let begun_before =
            if settled == i64::MAX { i64::MAX } else { settled.saturating_sub(self.rules.hold) };
        let period = self.settings.period.0;
        let periods = |settled: i64| settled.saturating_sub(self.rules.hold).div_euclid(period);
        let due = self.looked.is_none_or(|looked| {
            periods(settled) > periods(looked) || settled.saturating_sub(looked) >= self.rules.window / 2
        });
        if due {
            (self.looked, self.judged) = (Some(settled), Some(settled));
            self.look(begun_before, i64::MIN);
            let forget = begun_before.saturating_sub(self.rules.window);
            self.watching.iter_mut().for_each(|watching| watching.forget_before(forget));
        }
        if due { self.open.take_before(begun_before) } else { Vec::new() }
    }

    /// Memory is full: the oldest eighth is settled with what is known. Who has no partner is given
    /// up.
    fn shed(&mut self) {
        let oldest = self.shelves.oldest(SHED).unwrap_or(i64::MAX);
        let begun_before = self.settled.map_or(i64::MIN, |settled| settled.saturating_sub(self.rules.hold));
        self.judged = self.settled;
        self.look(begun_before, oldest);
        self.rules.blind_until = self.rules.blind_until.max(oldest);
    }

    /// Settles packets whose first sighting is before `begun_before`, and at once those up to
    /// `forced`.
    fn look(&mut self, begun_before: i64, forced: i64) {
        let Self { rules, shelves, watching, open, counts, .. } = self;
        shelves.look_through(|run| {
            let mut taken = 0;
            while let Some(first) = run.get(taken) {
                let ripe = first.at <= begun_before.saturating_sub(1);
                if !ripe && first.at > forced {
                    break;
                }
                let last = first.at.saturating_add(rules.window);
                let packet = run[taken..].iter().take_while(|entry| entry.at <= last).count();
                let verdict = if ripe { Verdict::Final } else { Verdict::Forced };
                let seen = &run[taken..taken + packet];
                counts.given_up += if open.has_room(seen) {
                    rules.settle(seen, verdict, watching, open)
                } else {
                    packet as u64
                };
                taken += packet;
            }
            taken
        });
    }
}

/// Whether a packet that is missing somewhere was waited for long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Final,
    Forced,
}

impl Rules {
    /// Writes down what became of one packet; `seen` is in the order of stamps. Returns how many
    /// fates were given up.
    fn settle(&self, seen: &[Entry], verdict: Verdict, watching: &[Watching], open: &mut OpenParts) -> u64 {
        let points = seen.iter().fold(0_u64, |points, entry| points | 1 << entry.point());
        let digest = seen[0].digest();
        let lane = usize::from(super::shard_of(digest, self.lanes));
        let collided = !seen.iter().all(|entry| entry.alike(&seen[0]));
        let case = Case { rules: self, seen, points, lane, collided, verdict, watching };
        if self.is_shared && !collided && super::is_clock_sample(digest) {
            let sampled = Case { lane: usize::from(self.lanes), ..case };
            self.each_link(points, |number, link| {
                if sampled.at_both(link) {
                    sampled.matched(number, link, open);
                }
            });
        }
        if !super::is_of_part(digest, self.part) {
            return 0;
        }
        if !collided {
            count_path(seen, &mut open.part_of(seen[0].at).paths);
        }
        let mut given_up = 0;
        self.each_link(points, |number, link| given_up += case.settle(number, link, open));
        given_up
    }

    /// Shows each link one end of which is of these points, once.
    #[inline]
    fn each_link(&self, points: u64, mut show: impl FnMut(usize, Link)) {
        let mut rest = points;
        while rest != 0 {
            let point = rest.trailing_zeros() as u8;
            rest &= rest - 1;
            for at in &self.of_point[usize::from(point)] {
                let link = self.links[usize::from(*at)];
                // A link both ends of which saw the packet comes up twice.
                if link.a == point || points & (1 << link.a) == 0 {
                    show(usize::from(*at), link);
                }
            }
        }
    }

    /// Whether `point` would have seen a packet that another saw at `at`, whatever the clocks.
    /// Where the packet may have gone either way, it must have watched before as well: else the
    /// packet may have passed it first.
    fn would_have_seen(&self, watching: &Watching, at: i64, link: Link) -> bool {
        let before = if link.given { self.apart } else { self.apart + self.patience };
        at - before > self.blind_until
            && watching.would_have_seen(at - before, at + self.patience + self.apart)
    }
}

/// One packet and all that decides about it.
#[derive(Clone, Copy)]
struct Case<'a> {
    rules: &'a Rules,
    seen: &'a [Entry],
    points: u64,
    lane: usize,
    collided: bool,
    verdict: Verdict,
    watching: &'a [Watching],
}

impl Case<'_> {
    fn at(&self, point: u8) -> impl Iterator<Item = &Entry> {
        self.seen.iter().filter(move |entry| entry.point() == point)
    }

    fn cell<'o>(&self, link: usize, at: i64, version: usize, open: &'o mut OpenParts) -> &'o mut Cell {
        let cells = usize::from(self.rules.lanes) + usize::from(self.rules.is_shared);
        &mut open.part_of(at).cells[(link * 2 + version) * cells + self.lane]
    }

    fn at_both(&self, link: Link) -> bool {
        self.points & (1 << link.a) != 0 && self.points & (1 << link.b) != 0
    }

    fn settle(&self, number: usize, link: Link, open: &mut OpenParts) -> u64 {
        match (self.collided, self.at_both(link)) {
            (true, _) => self.collision(number, link, open),
            (false, true) => self.matched(number, link, open),
            (false, false) => return self.missing(number, link, open),
        }
        0
    }

    fn collision(&self, number: usize, link: Link, open: &mut OpenParts) {
        for way in (0..2).filter(|way| link.wanted[*way].is_some()) {
            for (nth, entry) in self.at(link.from(way)).enumerate() {
                let cell = self.cell(number, entry.at, entry.version(), open);
                cell.fates[way].push(Fate { sent_at: entry.at, seen_at: Fate::COLLIDED });
                cell.collisions[way] += u64::from(nth == 0);
            }
        }
    }

    fn matched(&self, number: usize, link: Link, open: &mut OpenParts) {
        let (Some(a), Some(b)) = (self.at(link.a).next(), self.at(link.b).next()) else { return };
        let way = Self::way(link, a, b);
        if let Some(way) = way
            && link.wanted[way].is_none()
        {
            return;
        }
        let version = a.version();
        if self.at(link.a).count() == 1 && self.at(link.b).count() == 1 {
            // By far the most frequent case.
            let way_or_first = way.unwrap_or(usize::from(a.at > b.at));
            let (from, to) = if way_or_first == 0 { (a.at, b.at) } else { (b.at, a.at) };
            let cell = self.cell(number, from, version, open);
            match way {
                Some(way) => cell.fates[way].push(Fate { sent_at: from, seen_at: to }),
                None => cell.either_way.push(Fate { sent_at: a.at, seen_at: b.at }),
            }
            return;
        }
        // Copies go together, even where only stamps tell the way; then they say nothing of delays,
        // nor of clocks.
        let (is_known, way) = (way.is_some(), way.unwrap_or(usize::from(a.at > b.at)));
        if link.wanted[way].is_some() {
            self.copies(number, link, (way, is_known), open);
        }
    }

    /// Which way it went: 0 from a to b; `None` where stamps must decide.
    fn way(link: Link, a: &Entry, b: &Entry) -> Option<usize> {
        if link.given {
            return Some(usize::from(link.wanted[0].is_none()));
        }
        match a.ttl.cmp(&b.ttl) {
            std::cmp::Ordering::Greater => Some(0),
            std::cmp::Ordering::Less => Some(1),
            std::cmp::Ordering::Equal => None,
        }
    }

    /// Several sightings of one digest at one of the two points.
    fn copies(&self, number: usize, link: Link, (way, is_known): (usize, bool), open: &mut OpenParts) {
        let mut to = self.at(link.to(way));
        let sent = self.at(link.from(way)).count();
        let came = self.at(link.to(way)).count();
        // One that became several, or each with its own: otherwise nobody knows which copy is
        // missing.
        let certain = is_known && (sent == 1 || sent == came);
        for from in self.at(link.from(way)) {
            let partner = to.next();
            let cell = self.cell(number, from.at, from.version(), open);
            match partner {
                Some(to) if certain => cell.fates[way].push(Fate { sent_at: from.at, seen_at: to.at }),
                Some(_) => cell.fates[way].push(Fate { sent_at: from.at, seen_at: Fate::COPIED }),
                None => {
                    let seen_at = self.verdict_on(link, way, from.at);
                    cell.fates[way].push(Fate { sent_at: from.at, seen_at });
                }
            }
        }
        if let (Some(first), further) = (self.at(link.from(way)).next(), came.saturating_sub(sent)) {
            let cell = self.cell(number, first.at, first.version(), open);
            cell.duplicates[way] += further as u64;
        }
    }

    /// Only one of the two points saw it.
    fn missing(&self, number: usize, link: Link, open: &mut OpenParts) -> u64 {
        let way = usize::from(self.points & (1 << link.a) == 0);
        let expected = match link.wanted[way] {
            None => false,
            Some(Expects::Everything) => true,
            Some(Expects::NothingSeenElsewhere) => self.points.is_power_of_two(),
        };
        if !expected {
            return 0;
        }
        let mut given_up = 0;
        for from in self.at(link.from(way)) {
            let seen_at = self.verdict_on(link, way, from.at);
            given_up += u64::from(seen_at == Fate::GIVEN_UP);
            let cell = self.cell(number, from.at, from.version(), open);
            cell.fates[way].push(Fate { sent_at: from.at, seen_at });
        }
        given_up
    }

    fn verdict_on(&self, link: Link, way: usize, sent_at: i64) -> i64 {
        let to = &self.watching[usize::from(link.to(way))];
        match self.verdict {
            Verdict::Forced => Fate::GIVEN_UP,
            Verdict::Final if self.rules.would_have_seen(to, sent_at, link) => Fate::LOST,
            Verdict::Final => Fate::UNOBSERVED,
        }
    }
}

/// Counts the points that a packet passed, in the order of TTL; a point that saw it twice counts
/// once.
fn count_path(seen: &[Entry], paths: &mut Paths) {
    if let [one, other] = seen
        && one.point() != other.point()
        && one.ttl != other.ttl
    {
        // By far the most frequent case.
        let step = |entry: &Entry| u64::from(entry.point()) + 1;
        let (first, second) = if other.ttl > one.ttl { (other, one) } else { (one, other) };
        paths.count(step(first) | step(second) << 8);
        return;
    }
    let mut order: Vec<&Entry> = seen.iter().collect();
    order.sort_by_key(|entry| std::cmp::Reverse(entry.ttl));
    let (mut route, mut passed) = (Route::default(), 0_u64);
    for entry in order {
        if passed & (1 << entry.point()) == 0 {
            route.pass(entry);
        }
        passed |= 1 << entry.point();
    }
    route.tell(paths);
}

/// Periods that are not finished.
#[derive(Debug)]
struct OpenParts {
    length: Span,
    cells: usize,
    /// Periods at the same time, at most: stamps come from outside, and each period that one of
    /// them names takes the memory of all its cells.
    most: usize,
    parts: BTreeMap<i64, Box<Part>>,
    /// The one that was asked for last, out of the map: most packets are of the same.
    current: Option<Box<Part>>,
}

impl OpenParts {
    fn new(length: Span, cells: usize) -> Self {
        let most = (MOST_CELLS / cells.max(1)).clamp(LEAST_PERIODS, MOST_PERIODS);
        Self { length, cells, most, parts: BTreeMap::new(), current: None }
    }

    /// Whether the periods of these sightings are open, or may be opened.
    #[inline]
    fn has_room(&self, seen: &[Entry]) -> bool {
        let open = self.parts.len() + usize::from(self.current.is_some());
        open + seen.len() <= self.most || seen.iter().all(|entry| self.is_open(entry.at))
    }

    fn is_open(&self, at: i64) -> bool {
        let number = at.div_euclid(self.length.0);
        self.current.as_ref().is_some_and(|part| part.number == number) || self.parts.contains_key(&number)
    }

    fn part_of(&mut self, at: i64) -> &mut Part {
        let number = at.div_euclid(self.length.0);
        if self.current.as_ref().is_none_or(|part| part.number != number) {
            self.put_back();
            let kept = self.parts.remove(&number);
            self.current = Some(kept.unwrap_or_else(|| Box::new(Part::new(number, self.length, self.cells))));
        }
        self.current.as_mut().expect("it was put there if it was not there")
    }

    fn put_back(&mut self) {
        if let Some(part) = self.current.take() {
            self.parts.insert(part.number, part);
        }
    }

    fn save(&mut self, sink: &mut Sink<'_>) {
        self.put_back();
        sink.count(self.parts.len());
        for part in self.parts.values_mut() {
            part.paths.flush();
            part.save(sink);
        }
    }

    fn restore(&mut self, source: &mut Source<'_>, points: usize) -> Option<()> {
        for _ in 0..source.count(2)? {
            let part = Part::restore(source, self.length, self.cells, points)?;
            self.parts.insert(part.number, Box::new(part));
        }
        Some(())
    }

    /// Those that end at or before `until`.
    fn take_before(&mut self, until: i64) -> Vec<Part> {
        self.put_back();
        let behind = match until {
            i64::MAX => BTreeMap::new(),
            _ => self.parts.split_off(&until.div_euclid(self.length.0)),
        };
        let done = std::mem::replace(&mut self.parts, behind);
        done.into_values()
            .map(|mut part| {
                part.paths.flush();
                *part
            })
            .collect()
    }
}

/// Settled at once when memory is full.
const SHED: f64 = 0.125;

/// Cells of open periods (about 0.1 KiB each), as far as that leaves enough periods: honest points
/// have as many open as lie in what was away for a while.
const MOST_CELLS: usize = 1 << 21;
const LEAST_PERIODS: usize = 1024;
const MOST_PERIODS: usize = 1 << 17;

/// The year 2262 less room for windows: no stamp is later, so sums of stamps and windows do not
/// overflow.
pub(crate) const FARTHEST: i64 = i64::MAX / 4 * 3;

#[cfg(test)]
mod tests {
    use super::*;

    const A: PointId = PointId(0);
    const B: PointId = PointId(1);

    /// Sightings of one packet are within 170 ns of each other, and all is known of it after 280.
    fn matcher() -> Matcher {
        let settings = JoinSettings {
            period: Span(1_000_000),
            patience: Span(100),
            lateness: Span(50),
            clocks_apart: Span(10),
            ..JoinSettings::of(["a", "b"])
        };
        Matcher::new(settings).unwrap()
    }

    fn seen(digest: u64, at: i64, ttl: u8) -> PacketSighting {
        PacketSighting { digest, at: Wall(at), length: 100, ttl, version: 4 }
    }

    fn fates(stamps: &[(i64, i64)]) -> Vec<Fate> {
        stamps.iter().map(|(sent_at, seen_at)| Fate { sent_at: *sent_at, seen_at: *seen_at }).collect()
    }

    #[test]
    fn every_packet_has_the_fate_that_its_sightings_tell() {
        let mut matcher = matcher();
        let of_a = [
            seen(1, 1000, 64),
            // Too near the beginning and the end of what b watched, and just not.
            seen(3, 109, 64),
            seen(4, 110, 64),
            seen(5, 899_890, 64),
            seen(6, 899_891, 64),
            // Twice here and once there, and the other way round.
            seen(7, 3000, 64),
            seen(7, 3010, 64),
            seen(8, 4000, 64),
            // Another packet there, and one of the same TTL.
            seen(9, 5000, 64),
            seen(10, 6000, 64),
            // As far apart as may be, and further.
            seen(11, 7000, 64),
            seen(12, 8000, 64),
            seen(13, 9030, 63),
        ];
        let of_b = [
            seen(1, 1050, 63),
            PacketSighting { version: 6, ..seen(2, 2000, 64) },
            seen(7, 3050, 63),
            seen(8, 4020, 63),
            seen(8, 4030, 63),
            PacketSighting { length: 101, ..seen(9, 5010, 63) },
            seen(10, 6010, 64),
            seen(11, 7170, 63),
            seen(12, 8171, 63),
            seen(13, 9000, 64),
        ];
        matcher.offer(A, &of_a);
        matcher.offer(B, &of_b);
        for point in [A, B] {
            matcher.watched(point, Period { from: Wall(0), until: Wall(900_000) }, 0);
        }
        let mut parts = matcher.finish();
        assert_eq!((parts.len(), matcher.counts()), (1, JoinCounts { taken: 23, ..JoinCounts::default() }));
        let part = &mut parts[0];
        for cell in &mut part.cells {
            for fates in &mut cell.fates {
                fates.sort_unstable();
            }
        }
        let four = Cell {
            fates: [
                fates(&[
                    (109, Fate::UNOBSERVED),
                    (110, Fate::LOST),
                    (1000, 1050),
                    (3000, Fate::COPIED),
                    (3010, Fate::LOST),
                    (4000, 4020),
                    (5000, Fate::COLLIDED),
                    (7000, 7170),
                    (8000, Fate::LOST),
                    (899_890, Fate::LOST),
                    (899_891, Fate::UNOBSERVED),
                ]),
                fates(&[(5010, Fate::COLLIDED), (8171, Fate::LOST), (9000, 9030)]),
            ],
            either_way: fates(&[(6000, 6010)]),
            duplicates: [1, 0],
            collisions: [1, 1],
        };
        let six = Cell { fates: [Vec::new(), fates(&[(2000, Fate::LOST)])], ..Cell::default() };
        assert_eq!((part.number, part.length), (0, Span(1_000_000)));
        assert_eq!(part.cells, [four, six]);
        assert_eq!(part.paths.counts, BTreeMap::from([(0x01, 5), (0x02, 2), (0x0102, 1), (0x0201, 4)]));
        assert_eq!(part.paths.open, [0x0201, 1, 6000, 6010]);
        assert_eq!(part.paths.others, 0);
    }

    #[test]
    fn sightings_are_taken_in_their_time_and_counted_otherwise() {
        let mut matcher = matcher();
        let offer = |matcher: &mut Matcher, stamps: &[i64]| {
            let sightings: Vec<PacketSighting> = stamps.iter().map(|at| seen(1, *at, 64)).collect();
            matcher.offer(A, &sightings);
        };
        assert!(matcher.advance(Wall(5_000_000)).is_empty(), "nobody was heard yet");
        // A period, a window and the clocks' difference ahead.
        offer(&mut matcher, &[-1, 0, 6_000_180, 6_000_181]);
        matcher.offer(PointId(2), &[seen(1, 7, 64); 3]);
        for point in [A, B] {
            matcher.watched(point, Period { from: Wall(0), until: Wall(4_000_000) }, 0);
        }
        let parts = matcher.advance(Wall(5_000_000));
        assert_eq!(parts.iter().map(|part| part.number).collect::<Vec<_>>(), [0]);
        assert_eq!(parts[0].cells[0].fates[0], fates(&[(0, Fate::UNOBSERVED)]));
        // Less patience and what clocks are apart.
        offer(&mut matcher, &[3_999_889, 3_999_890]);
        let want = JoinCounts { taken: 3, came_late: 1, absurd: 5, held: 2, ..JoinCounts::default() };
        assert_eq!(matcher.counts(), want);
    }

    #[test]
    fn a_sighting_that_came_after_the_report_of_its_time_is_no_loss_at_its_point() {
        let mut matcher = matcher();
        let report = |matcher: &mut Matcher, from: i64, until: i64| {
            for point in [A, B] {
                matcher.watched(point, Period { from: Wall(from), until: Wall(until) }, 0);
            }
        };
        report(&mut matcher, 0, 10_000);
        assert!(matcher.advance(Wall(20_000)).is_empty(), "the period is not over");
        // From b to a, whose clock is 50 behind: by its own stamp a saw it before 10000.
        matcher.offer(B, &[seen(1, 10_020, 64)]);
        matcher.offer(A, &[seen(1, 9_980, 63)]);
        report(&mut matcher, 10_000, 900_000);
        let parts = matcher.finish();
        assert_eq!(parts[0].cells[0].fates, [Vec::new(), fates(&[(10_020, 9_980)])]);
        assert_eq!(matcher.counts(), JoinCounts { taken: 2, ..JoinCounts::default() });
    }

    #[test]
    fn what_is_reported_late_is_watched_from_where_its_sightings_are_taken() {
        let mut matcher = matcher();
        matcher.watched(A, Period { from: Wall(0), until: Wall(10_000) }, 0);
        matcher.watched(B, Period { from: Wall(0), until: Wall(5_000) }, 0);
        assert!(matcher.advance(Wall(20_000_000_000)).is_empty(), "b is waited for");
        assert_eq!(matcher.judged_until(), Some(4_890));
        assert!(matcher.advance(Wall(60_000_000_000)).is_empty(), "nothing was seen");
        assert_eq!(matcher.judged_until(), Some(29_999_999_890));
        matcher.watched(B, Period { from: Wall(6_000), until: Wall(40_000_000_000) }, 0);
        assert_eq!(matcher.watching[1].spans(), [&[(29_999_999_890, 40_000_000_000)][..]; 2]);
    }

    #[test]
    fn sightings_of_a_thousand_periods_take_the_memory_of_as_many_as_there_is_room_for() {
        let mut matcher = matcher();
        assert_eq!(matcher.open.most, MOST_PERIODS);
        matcher.open.most = 3;
        let far: Vec<PacketSighting> = (0..1000).map(|n| seen(n as u64, n * 1_000_000, 64)).collect();
        matcher.offer(A, &far);
        assert_eq!((matcher.finish().len(), matcher.counts().given_up), (3, 997));
        assert_eq!(OpenParts::new(Span(1), 4032).most, LEAST_PERIODS);
    }

    #[test]
    fn before_the_collector_has_a_clock_stamps_of_two_centuries_are_taken() {
        let mut matcher = matcher();
        matcher.offer(A, &[seen(1, FARTHEST, 64), seen(2, FARTHEST + 1, 64)]);
        let want = JoinCounts { taken: 1, absurd: 1, held: 1, ..JoinCounts::default() };
        assert_eq!(matcher.counts(), want);
    }
}
