//! From fates to rows: takes the clocks off, and compares neighbours.

use std::collections::VecDeque;

use netaware_record::IpVersion;
use netaware_record::passive::{ClockState, DelayRow, DelayTally, Period};
use netaware_units::{Span, Wall};
use serde::{Deserialize, Serialize};

use super::part::{Cell, Fate, Part, Paths};
use super::route::OpenRoutes;
use super::settings::{JoinSettings, Link, PointId, SettingsError};
use crate::clock::{ClockBook, Envelope, Estimate, Exchange, Method};

/// A period of a join.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// From when to when, by the clock of each row's first point.
    pub period: Period,
    /// By pair and IP version; pairs without packets have none.
    pub delays: Vec<DelayRow>,
    /// Packets by the points that they passed, most packets first.
    pub paths: Vec<PathCount>,
    /// Packets of further paths, for which there was no room.
    pub other_paths: u64,
}

/// Packets of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathCount {
    /// Names of the points, first first; at most eight.
    pub points: Vec<String>,
    /// Packets.
    pub packets: u64,
}

/// What a ledger knows, for [`Ledger::restore`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LedgerState {
    books: Vec<ClockBook>,
    reports: Vec<VecDeque<Report>>,
}

/// The second half of a join: knows the clocks, makes rows of parts that hold the whole digest
/// space (or the part of it that this collector has).
#[derive(Debug)]
pub struct Ledger {
    settings: JoinSettings,
    links: Vec<Link>,
    books: Vec<ClockBook>,
    /// What each point said of itself, in the order in which it came.
    reports: Vec<VecDeque<Report>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Report {
    period: Period,
    lost: u64,
    clock: ClockState,
}

impl Ledger {
    /// Without any knowledge yet.
    pub fn new(settings: JoinSettings) -> Result<Self, SettingsError> {
        let links = settings.links()?;
        Ok(Self {
            books: vec![ClockBook::new(settings.period, settings.clock_window); links.len()],
            reports: std::iter::repeat_with(VecDeque::new).take(settings.points.len()).collect(),
            links,
            settings,
        })
    }

    /// What it knows.
    pub fn state(&self) -> LedgerState {
        LedgerState { books: self.books.clone(), reports: self.reports.clone() }
    }

    /// One that knows what another with the same settings knew; `None`: that cannot have been.
    pub fn restore(settings: JoinSettings, state: LedgerState) -> Option<Self> {
        let mut ledger = Self::new(settings).ok()?;
        let LedgerState { books, reports } = state;
        let longest = ledger.settings.window();
        let fits = books.len() == ledger.books.len() && reports.len() == ledger.reports.len();
        let sane = books.iter().zip(&ledger.books).all(|(book, new)| book.can_follow(new, longest));
        let few = reports.iter().all(|reports| reports.len() <= MOST_REPORTS);
        if !(fits && sane && few) {
            return None;
        }
        (ledger.books, ledger.reports) = (books, reports);
        Some(ledger)
    }

    /// What a point says of a period.
    pub fn watched(&mut self, point: PointId, period: Period, lost: u64, clock: &ClockState) {
        let Some(reports) = self.reports.get_mut(usize::from(point.0)) else { return };
        if reports.len() == MOST_REPORTS {
            reports.pop_front();
        }
        reports.push_back(Report { period, lost, clock: clock.clone() });
    }

    /// An exchange of our own between two points; `asked` sent the question.
    pub fn exchange(&mut self, asked: PointId, answered: PointId, exchange: &Exchange) {
        // What no two clocks of this join can have shown says nothing about them.
        if !exchange.is_within(self.settings.window()) {
            return;
        }
        let ends = (asked.0.min(answered.0), asked.0.max(answered.0));
        let Some(at) = self.links.iter().position(|link| (link.a, link.b) == ends) else { return };
        if asked.0 < answered.0 {
            self.books[at].exchange(exchange);
        } else {
            self.books[at].exchange_back(exchange);
        }
    }

    /// Makes the rows of a period.
    pub fn settle(&mut self, part: Part) -> Joined {
        let period = part.period();
        let clocks = self.clocks(period);
        let each = self.settings.cells();
        let mut delays = Vec::new();
        let Part { mut cells, mut paths, .. } = part;
        let mut estimates: Vec<Option<Estimate>> = vec![None; self.links.len()];
        for link in 0..self.links.len() {
            let cells = &mut cells[link * 2 * each..(link + 1) * 2 * each];
            if cells.iter().all(Cell::is_empty) {
                self.books[link].forget_before(period);
                continue;
            }
            let envelope = self.envelope_of(link, cells, period, &clocks);
            self.books[link].learn(&envelope);
            let estimate = self.books[link].estimate(period, ends(self.links[link], &clocks));
            for (version, cells) in [IpVersion::V4, IpVersion::V6].into_iter().zip(cells.chunks_mut(each)) {
                let found = self.rows(link, version, cells, &estimate, period);
                delays.extend(found);
            }
            estimates[link] = Some(estimate);
        }
        self.forget_before(period.from);
        self.decide_paths(&mut paths, &estimates);
        let other_paths = paths.others;
        let mut paths: Vec<PathCount> = paths
            .counts
            .iter()
            .map(|(path, packets)| PathCount { points: self.names(*path), packets: *packets })
            .collect();
        paths.sort_by(|one, other| (other.packets, &one.points).cmp(&(one.packets, &other.points)));
        Joined { period, delays, paths, other_paths }
    }

    /// Packets whose points only clocks can put in order are counted, now that those are known.
    fn decide_paths(&self, paths: &mut Paths, estimates: &[Option<Estimate>]) {
        let open = std::mem::take(&mut paths.open);
        let apart = |a: u8, b: u8, at: i64| {
            let link = self.links.iter().position(|link| (link.a, link.b) == (a, b))?;
            Some(estimates[link].as_ref()?.offset_at(Wall(at))?.0)
        };
        for route in OpenRoutes(&open) {
            paths.count(route.path(apart));
        }
        paths.flush();
    }

    fn names(&self, path: u64) -> Vec<String> {
        let steps = path.to_le_bytes().into_iter().take_while(|step| *step != 0);
        steps.filter_map(|step| self.settings.points.get(usize::from(step) - 1).cloned()).collect()
    }

    /// States of every point's clock that touch the period.
    fn clocks(&self, period: Period) -> Vec<Vec<ClockState>> {
        let touching = |reports: &VecDeque<Report>| {
            let touch = reports.iter().filter(|report| report.touches(period));
            touch.map(|report| report.clock.clone()).collect()
        };
        self.reports.iter().map(touching).collect()
    }

    /// What the traffic between two points says of their clocks; of a shared join that of the
    /// sample, which all collectors have.
    fn envelope_of(
        &mut self,
        link: usize,
        cells: &[Cell],
        period: Period,
        clocks: &[Vec<ClockState>],
    ) -> Envelope {
        let mut envelope = ClockBook::envelope(self.settings.period);
        let each = self.settings.cells();
        let skipped = if self.settings.is_shared() { each - 1 } else { 0 };
        let cells = || cells.chunks(each).flat_map(|of_version| &of_version[skipped..]);
        for cell in cells() {
            for fate in &cell.fates[0] {
                fate.seen().into_iter().for_each(|seen| envelope.forward(Wall(fate.sent_at), Wall(seen)));
            }
            for fate in &cell.fates[1] {
                fate.seen().into_iter().for_each(|seen| envelope.reverse(Wall(fate.sent_at), Wall(seen)));
            }
        }
        if cells().any(|cell| !cell.either_way.is_empty()) {
            // Only those whose way is beyond doubt may say anything of clocks.
            let known = self.books[link].estimate(period, ends(self.links[link], clocks));
            for fate in cells().flat_map(|cell| &cell.either_way) {
                let Some(line) = known.line_at(Wall(fate.sent_at)) else { continue };
                let delay = Span(fate.seen_at.saturating_sub(fate.sent_at)) - line.at(Wall(fate.sent_at));
                if delay > line.bound {
                    envelope.forward(Wall(fate.sent_at), Wall(fate.seen_at));
                } else if -delay > line.bound {
                    envelope.reverse(Wall(fate.seen_at), Wall(fate.sent_at));
                }
            }
        }
        envelope
    }

    /// The rows of both directions; `cells` are the lanes and, of a shared join, the clock sample.
    fn rows(
        &self,
        number: usize,
        version: IpVersion,
        cells: &mut [Cell],
        estimate: &Estimate,
        period: Period,
    ) -> Vec<DelayRow> {
        let link = self.links[number];
        for cell in &mut *cells {
            cell.decide_ways(link, estimate);
        }
        let (cells, sample) = cells.split_at_mut(usize::from(self.settings.lanes));
        let has = [0, 1].map(|way| cells.iter().any(|cell| cell.has(way)));
        (0..2)
            .filter(|way| has[*way])
            .map(|way| {
                let mut row = Reckoning::new(way, estimate, self.settings.patience, [&*sample, &*cells]);
                for cell in &mut *cells {
                    row.lane(&mut cell.fates[way]);
                }
                let mut row = row.finish();
                row.from.clone_from(&self.settings.points[usize::from(link.from(way))]);
                row.to.clone_from(&self.settings.points[usize::from(link.to(way))]);
                row.version = Some(version);
                for cell in &*cells {
                    row.duplicates += cell.duplicates[way];
                    row.collisions += cell.collisions[way];
                }
                self.warn(&mut row, link, estimate, period);
                row
            })
            .collect()
    }

    fn warn(&self, row: &mut DelayRow, link: Link, estimate: &Estimate, period: Period) {
        for point in [link.a, link.b] {
            let name = &self.settings.points[usize::from(point)];
            let told = || self.reports[usize::from(point)].iter().filter(|report| report.touches(period));
            let lost = told().fold(0_u64, |sum, report| sum.saturating_add(report.lost));
            if lost > 0 {
                row.warnings.push(format!("'{name}' lost {lost} packets in its capture"));
            }
            if let Some(step) = told().filter_map(|report| report.clock.stepped).max_by_key(|step| step.abs())
            {
                row.warnings.push(format!("the clock of '{name}' jumped by {step}"));
            }
        }
        if estimate.daemons_refuted {
            row.warnings.push("the clocks are further apart than their daemons say".to_owned());
        }
        if estimate.method == Method::None {
            row.warnings
                .push("nothing is known of the clocks: delays count from the smallest difference".to_owned());
        }
        if self.settings.lanes > 1 {
            row.warnings.push(format!(
                "delay variation and reordering compare packets of one in {} lanes",
                self.settings.lanes
            ));
        }
    }

    fn forget_before(&mut self, at: Wall) {
        for reports in &mut self.reports {
            reports.retain(|report| report.period.until >= at);
        }
    }
}

/// What both points of a link said of their clocks.
fn ends(link: Link, clocks: &[Vec<ClockState>]) -> [&[ClockState]; 2] {
    [&clocks[usize::from(link.a)], &clocks[usize::from(link.b)]]
}

impl Report {
    fn touches(&self, period: Period) -> bool {
        self.period.from < period.until && period.from < self.period.until
    }
}

impl Cell {
    fn is_empty(&self) -> bool {
        self.either_way.is_empty() && !self.has(0) && !self.has(1)
    }

    fn has(&self, way: usize) -> bool {
        !self.fates[way].is_empty()
    }

    /// Packets whose way only stamps can tell go where the corrected stamps say.
    fn decide_ways(&mut self, link: Link, estimate: &Estimate) {
        for fate in std::mem::take(&mut self.either_way) {
            let line = estimate.line_at(Wall(fate.sent_at));
            let offset = line.map_or(Span::ZERO, |line| line.at(Wall(fate.sent_at)));
            let delay = Span(fate.seen_at.saturating_sub(fate.sent_at)) - offset;
            let turned = Fate { sent_at: fate.seen_at, seen_at: fate.sent_at };
            let doubtful = line.is_none_or(|line| delay.abs() <= line.bound);
            let way = usize::from(delay < Span::ZERO);
            // Within the bound the sign means nothing: a pair that is wanted one way only takes it
            // that way.
            let way = if link.wanted[way].is_none() && doubtful { 1 - way } else { way };
            if link.wanted[way].is_some() {
                self.fates[way].push([fate, turned][way]);
            }
        }
    }
}

/// Adds up one row.
struct Reckoning<'e> {
    way: usize,
    estimate: &'e Estimate,
    /// Taken off where nothing is known of the clocks: the smallest difference of all, or of the
    /// sample that all collectors have.
    smallest: Option<Span>,
    bound: Span,
    patience: Span,
    row: DelayRow,
    delay: DelayTally,
    ipdv: DelayTally,
    copied: u64,
    unclear: u64,
}

impl<'e> Reckoning<'e> {
    /// Where nothing is known of the clocks, the smallest difference is that of the first of
    /// `cells` that have any.
    fn new(way: usize, estimate: &'e Estimate, patience: Span, cells: [&[Cell]; 2]) -> Self {
        let unknown = estimate.method == Method::None;
        let smallest = |cells: &[Cell]| {
            let fates = cells.iter().flat_map(|cell| &cell.fates[way]);
            fates.filter_map(|fate| Some(Span(fate.seen()?.saturating_sub(fate.sent_at)))).min()
        };
        Self {
            way,
            estimate,
            smallest: unknown.then(|| cells.into_iter().find_map(smallest).unwrap_or(Span::ZERO)),
            bound: estimate.bound().unwrap_or(Span::ZERO),
            patience,
            row: DelayRow::empty("passive"),
            delay: DelayTally::new(),
            ipdv: DelayTally::new(),
            copied: 0,
            unclear: 0,
        }
    }

    /// Second clock minus first when this packet passed.
    #[inline]
    fn offset(&self, sent_at: i64, seen_at: i64) -> Option<Span> {
        if self.smallest.is_some() {
            return self.smallest;
        }
        match self.way {
            0 => self.estimate.offset_at(Wall(sent_at)),
            _ => self.estimate.offset_at(Wall(seen_at)).map(|offset| -offset),
        }
    }

    /// The packets of one lane: neighbours among them are compared.
    fn lane(&mut self, fates: &mut [Fate]) {
        fates.sort_unstable();
        self.row.packets += fates.len() as u64;
        let mut before: Option<Span> = None;
        for fate in &mut *fates {
            let delay = self.packet(fate);
            if let (Some(now), Some(before)) = (delay, before) {
                self.ipdv.observe((now - before).abs());
            }
            before = delay;
        }
        self.row.reordered += reordered(fates);
    }

    /// Counts one packet and gives its delay, if it has one.
    fn packet(&mut self, fate: &mut Fate) -> Option<Span> {
        let row = &mut self.row;
        let Some(seen_at) = fate.seen() else {
            match fate.seen_at {
                Fate::LOST => row.lost += 1,
                Fate::UNOBSERVED => row.unobserved += 1,
                Fate::GIVEN_UP => row.given_up += 1,
                Fate::COPIED => {
                    row.matched += 1;
                    self.copied += 1;
                }
                // Counted by digest.
                _ => {}
            }
            return None;
        };
        let Some(offset) = self.offset(fate.sent_at, seen_at) else {
            self.row.matched += 1;
            self.unclear += 1;
            return None;
        };
        let mut delay = Span(seen_at.saturating_sub(fate.sent_at)) - offset;
        if self.smallest.is_some() {
            // The sample's smallest may not be the smallest of all; no delay is less than the
            // least.
            delay = delay.max(Span::ZERO);
        }
        if delay > self.patience + self.bound {
            self.row.late += 1;
            self.row.lost += 1;
            // It is not reordered either: it was lost.
            fate.seen_at = Fate::LOST;
            return None;
        }
        self.row.matched += 1;
        self.row.below_bound += u64::from(delay < self.bound || delay < Span::ZERO);
        if delay >= Span::ZERO {
            self.delay.observe(delay);
        }
        Some(delay)
    }

    fn finish(self) -> DelayRow {
        let mut row = self.row;
        row.delay = self.delay.finish();
        row.ipdv = self.ipdv.finish();
        row.patience = self.patience;
        row.clock_bound = self.estimate.bound();
        self.estimate.method.name().clone_into(&mut row.clock_method);
        row.offset = self.smallest.unwrap_or_else(|| {
            let middle = self.estimate.middle().unwrap_or(Span::ZERO);
            if self.way == 0 { middle } else { -middle }
        });
        if self.copied > 0 {
            row.warnings.push(format!(
                "{} packets passed the first point more often than the second: no delay was taken of them",
                self.copied
            ));
        }
        if self.unclear > 0 {
            row.warnings.push(format!(
                "{} packets came while the clocks did not run steadily: no delay was taken of them",
                self.unclear
            ));
        }
        row
    }
}

/// Packets that came after one that was sent later (RFC 4737 §3.3); `fates` are in the order of
/// sending. Those of one instant are not told apart.
fn reordered(fates: &[Fate]) -> u64 {
    let (mut earliest_of_later, mut earliest, mut sent_at) = (i64::MAX, i64::MAX, i64::MAX);
    let mut count = 0;
    for (fate, seen_at) in fates.iter().rev().filter_map(|fate| Some((fate, fate.seen()?))) {
        if fate.sent_at < sent_at {
            earliest_of_later = earliest;
            sent_at = fate.sent_at;
        }
        count += u64::from(seen_at > earliest_of_later);
        earliest = earliest.min(seen_at);
    }
    count
}

/// Reports of one point that are remembered: a window of seconds, even of reports every 100 ms.
const MOST_REPORTS: usize = 1024;

#[cfg(test)]
mod tests {
    use netaware_record::passive::DelayStatistics;

    use super::*;
    use crate::clock::Line;
    use crate::join::Expects;

    fn fate(sent_at: i64, seen_at: i64) -> Fate {
        Fate { sent_at, seen_at }
    }

    #[test]
    fn reordered_is_who_comes_after_one_that_was_sent_later() {
        let rows: [(&[(i64, i64)], u64); 5] = [
            (&[(1, 11), (2, 12), (3, 13)], 0),
            (&[(1, 13), (2, 12), (3, 14)], 1),
            // One late packet is one reordered packet, however many overtook it.
            (&[(1, 20), (2, 12), (3, 13), (4, 14)], 1),
            (&[(1, 15), (1, 11), (2, 12)], 1),
            (&[(1, Fate::LOST), (2, 12), (3, 11), (4, Fate::UNOBSERVED)], 1),
        ];
        for (fates, want) in rows {
            let mut fates: Vec<Fate> = fates.iter().map(|(sent, seen)| fate(*sent, *seen)).collect();
            fates.sort_unstable();
            assert_eq!(reordered(&fates), want, "{fates:?}");
        }
    }

    #[test]
    fn a_pair_that_touches_a_loss_is_no_variation() {
        let estimate = Estimate::steady(
            Method::SameHost,
            Period { from: Wall(0), until: Wall(1000) },
            Span::ZERO,
            Span::ZERO,
        );
        let mut fates = vec![fate(1, 11), fate(2, 14), fate(3, Fate::LOST), fate(4, 10), fate(5, 15)];
        let cells = [Cell { fates: [fates.clone(), Vec::new()], ..Cell::default() }];
        let mut reckoning = Reckoning::new(0, &estimate, Span(100), [&[], &cells]);
        reckoning.lane(&mut fates);
        let row = reckoning.finish();
        assert_eq!((row.packets, row.matched, row.lost, row.reordered), (5, 4, 1, 2));
        assert_eq!((row.ipdv.count, row.ipdv.min, row.ipdv.max), (2, Span(2), Span(4)));
        assert_eq!((row.delay.min, row.delay.max), (Span(6), Span(12)));
    }

    #[test]
    fn a_negative_delay_is_counted_and_not_shown() {
        let period = Period { from: Wall(0), until: Wall(1000) };
        let estimate = Estimate::steady(Method::ClockDaemons, period, Span::ZERO, Span(5));
        let mut fates = vec![fate(10, 7), fate(20, 23), fate(30, 60)];
        let mut reckoning = Reckoning::new(0, &estimate, Span(100), [&[], &[]]);
        reckoning.lane(&mut fates);
        let row = reckoning.finish();
        assert_eq!((row.matched, row.below_bound, row.delay.count), (3, 2, 2));
        assert_eq!((row.delay.min, row.clock_bound), (Span(3), Some(Span(5))));
    }

    #[test]
    fn without_clocks_delays_count_from_the_smallest() {
        let estimate = Estimate::none(Period { from: Wall(0), until: Wall(10_000) });
        let mut fates = vec![fate(1000, 400), fate(2000, 1500)];
        let cells = [Cell { fates: [fates.clone(), Vec::new()], ..Cell::default() }];
        let mut reckoning = Reckoning::new(0, &estimate, Span(1000), [&[], &cells]);
        reckoning.lane(&mut fates.clone());
        let row = reckoning.finish();
        assert_eq!((row.offset, row.delay.min, row.delay.max), (Span(-600), Span(0), Span(100)));
        assert_eq!((row.clock_bound, row.clock_method.as_str()), (None, "none"));
        // The sample that all collectors have says it, for then they say the same.
        let sample = [Cell { fates: [vec![fate(2000, 1500)], Vec::new()], ..Cell::default() }];
        let mut reckoning = Reckoning::new(0, &estimate, Span(1000), [&sample, &cells]);
        reckoning.lane(&mut fates);
        let row = reckoning.finish();
        assert_eq!(
            (row.offset, row.delay.max, row.delay.count, row.below_bound),
            (Span(-500), Span(0), 2, 0)
        );
    }

    #[test]
    fn where_stamps_leave_doubt_a_packet_went_the_only_way_that_is_wanted() {
        // The clock of b is 50 ns ahead, give or take 5.
        let period = Period { from: Wall(0), until: Wall(1000) };
        let estimate = Estimate::steady(Method::ClockDaemons, period, Span(50), Span(5));
        // The way that is wanted, stamps of a and b, and what is made of them.
        let rows = [
            (0, fate(100, 180), Some(fate(100, 180))),
            (0, fate(100, 147), Some(fate(100, 147))),
            // By raw stamps a was the first.
            (0, fate(100, 120), None),
            (1, fate(100, 120), Some(fate(120, 100))),
            (1, fate(100, 152), Some(fate(152, 100))),
            (1, fate(100, 180), None),
        ];
        for (way, stamps, want) in rows {
            let mut wanted = [None; 2];
            wanted[way] = Some(Expects::Everything);
            let mut cell = Cell { either_way: vec![stamps], ..Cell::default() };
            cell.decide_ways(Link { a: 0, b: 1, wanted, given: false }, &estimate);
            assert_eq!(cell.fates[way].as_slice(), want.as_slice(), "way {way} with {stamps:?}");
            assert!(cell.fates[1 - way].is_empty() && cell.either_way.is_empty(), "{cell:?}");
        }
    }

    fn tallied(delays: &[i64]) -> DelayStatistics {
        let mut tally = DelayTally::new();
        for ns in delays {
            tally.observe(Span(*ns));
        }
        tally.finish()
    }

    #[test]
    fn each_fate_is_counted_and_only_delays_are_measured() {
        // The clock of b is 50 ns ahead, give or take 5.
        let period = Period { from: Wall(0), until: Wall(1000) };
        let estimate = Estimate::steady(Method::ClockDaemons, period, Span(50), Span(5));
        let mut fates = [
            fate(0, 60),
            // As late as may be, and later.
            fate(10, 165),
            fate(20, 176),
            // Within the bound, and before it was sent.
            fate(30, 83),
            fate(40, 85),
            fate(50, Fate::LOST),
            fate(60, Fate::UNOBSERVED),
            fate(70, Fate::GIVEN_UP),
            fate(80, Fate::COPIED),
            fate(90, Fate::COLLIDED),
            fate(100, 155),
        ];
        let mut reckoning = Reckoning::new(0, &estimate, Span(100), [&[], &[]]);
        reckoning.lane(&mut fates);
        let copied =
            "1 packets passed the first point more often than the second: no delay was taken of them";
        let want = DelayRow {
            packets: 11,
            matched: 6,
            lost: 2,
            unobserved: 1,
            late: 1,
            reordered: 1,
            given_up: 1,
            patience: Span(100),
            delay: tallied(&[10, 105, 3, 5]),
            ipdv: tallied(&[95, 8]),
            offset: Span(50),
            clock_bound: Some(Span(5)),
            clock_method: "clock_daemons".to_owned(),
            below_bound: 2,
            warnings: vec![copied.to_owned()],
            ..DelayRow::empty("passive")
        };
        assert_eq!(reckoning.finish(), want);
    }

    #[test]
    fn the_other_way_has_the_other_offset_and_none_where_clocks_were_not_steady() {
        let period = Period { from: Wall(0), until: Wall(1000) };
        let line = Line { from: Wall(0), until: Wall(500), offset: [Span(50); 2], bound: Span(5) };
        let estimate =
            Estimate { method: Method::TrafficBothWays, lines: vec![line], ..Estimate::none(period) };
        let mut reckoning = Reckoning::new(1, &estimate, Span(100), [&[], &[]]);
        reckoning.lane(&mut [fate(160, 120), fate(600, 700)]);
        let unclear = "1 packets came while the clocks did not run steadily: no delay was taken of them";
        let want = DelayRow {
            packets: 2,
            matched: 2,
            patience: Span(100),
            delay: tallied(&[10]),
            offset: Span(-50),
            clock_bound: Some(Span(5)),
            clock_method: "traffic_both_ways".to_owned(),
            warnings: vec![unclear.to_owned()],
            ..DelayRow::empty("passive")
        };
        assert_eq!(reckoning.finish(), want);
    }

    const TEN_SECONDS: Span = Span::from_secs(10);

    /// The nth period of ten seconds.
    fn period(number: i64) -> Period {
        Part::new(number, TEN_SECONDS, 0).period()
    }

    #[test]
    fn a_part_becomes_rows_of_both_versions_and_paths() {
        let mut ledger = Ledger::new(JoinSettings::of(["a", "b"])).unwrap();
        let clock = ClockState { identity: Some("here".to_owned()), ..ClockState::default() };
        let jumped = ClockState { stepped: Some(Span::from_millis(-2)), ..clock.clone() };
        ledger.watched(PointId(0), period(0), 3, &clock);
        ledger.watched(PointId(0), period(1), 100, &clock);
        ledger.watched(PointId(1), period(0), 0, &jumped);
        let mut part = Part::new(0, TEN_SECONDS, 2);
        part.cells[0] = Cell {
            fates: [vec![fate(1000, 2000), fate(5000, Fate::LOST)], Vec::new()],
            duplicates: [2, 0],
            collisions: [1, 0],
            ..Cell::default()
        };
        part.cells[1] = Cell { fates: [Vec::new(), vec![fate(9000, 9500)]], ..Cell::default() };
        for (path, count) in [(0x0201, 5), (0x01, 7), (0x0102, 5)] {
            part.paths.add(path, count);
        }
        part.paths.others = 4;
        let row = |[from, to]: [&str; 2], version: IpVersion, delay: i64| DelayRow {
            from: from.to_owned(),
            to: to.to_owned(),
            version: Some(version),
            matched: 1,
            patience: Span::from_secs(3),
            delay: tallied(&[delay]),
            clock_bound: Some(Span::ZERO),
            clock_method: "same_host".to_owned(),
            warnings: vec![
                "'a' lost 3 packets in its capture".to_owned(),
                "the clock of 'b' jumped by -2.00 ms".to_owned(),
            ],
            ..DelayRow::empty("passive")
        };
        let four = row(["a", "b"], IpVersion::V4, 1000);
        let path = |points: &[&str], packets: u64| PathCount {
            points: points.iter().map(ToString::to_string).collect(),
            packets,
        };
        let want = Joined {
            period: period(0),
            delays: vec![
                DelayRow { packets: 2, lost: 1, duplicates: 2, collisions: 1, ..four },
                DelayRow { packets: 1, ..row(["b", "a"], IpVersion::V6, 500) },
            ],
            paths: vec![path(&["a"], 7), path(&["a", "b"], 5), path(&["b", "a"], 5)],
            other_paths: 4,
        };
        assert_eq!(ledger.settle(part), want);
        // Later nothing came, and what was said of the first period is forgotten.
        let nothing = Joined { period: period(2), delays: Vec::new(), paths: Vec::new(), other_paths: 0 };
        assert_eq!(ledger.settle(Part::new(2, TEN_SECONDS, 2)), nothing);
        assert_eq!(ledger.reports.iter().map(VecDeque::len).collect::<Vec<_>>(), [1, 0]);
    }

    /// A stamp in a bin of its own.
    fn at(number: i64) -> i64 {
        number * 100_000_000
    }

    #[test]
    fn packets_say_of_clocks_what_is_beyond_doubt() {
        let mut ledger = Ledger::new(JoinSettings::of(["a", "b"])).unwrap();
        let clock = ClockState { synchronised: true, bound: Some(Span(5)), ..ClockState::default() };
        let clocks = [vec![clock.clone()], vec![clock]];
        let four = Cell {
            fates: [
                vec![fate(at(1), at(1) + 20), fate(at(2), Fate::LOST)],
                vec![fate(at(3) + 60, at(3) + 45)],
            ],
            // Together the clocks may be 10 off.
            either_way: vec![
                fate(at(4), at(4) + 80),
                fate(at(5), at(5) - 50),
                fate(at(6), at(6) + 10),
                fate(at(7), at(7) - 10),
            ],
            ..Cell::default()
        };
        let six =
            Cell { either_way: vec![fate(at(8), at(8) + 11), fate(at(9), at(9) - 11)], ..Cell::default() };
        let mut want = ClockBook::envelope(TEN_SECONDS);
        for (number, delay) in [(1, 20), (4, 80), (8, 11)] {
            want.forward(Wall(at(number)), Wall(at(number) + delay));
        }
        for (number, ahead) in [(3, 15), (5, -50), (9, -11)] {
            let seen_at = if number == 3 { at(3) + 45 } else { at(number) };
            want.reverse(Wall(seen_at + ahead), Wall(seen_at));
        }
        assert_eq!(ledger.envelope_of(0, &[four, six], period(0), &clocks), want);
    }

    #[test]
    fn where_a_join_is_shared_only_the_sample_says_something_of_clocks() {
        let settings = JoinSettings { lanes: 2, ..JoinSettings::of(["a", "b"]) };
        let mut ledger = Ledger::new(settings).unwrap();
        let cells: Vec<Cell> = (1..=6)
            .map(|n| Cell { fates: [vec![fate(at(n), at(n) + n)], Vec::new()], ..Cell::default() })
            .collect();
        let mut want = ClockBook::envelope(TEN_SECONDS);
        for n in [3, 6] {
            want.forward(Wall(at(n)), Wall(at(n) + n));
        }
        let clocks = [Vec::new(), Vec::new()];
        assert_eq!(ledger.envelope_of(0, &cells, period(0), &clocks), want);
    }

    #[test]
    fn an_exchange_is_for_the_two_points_that_it_was_between() {
        let mut ledger = Ledger::new(JoinSettings::of(["a", "b", "c"])).unwrap();
        let exchange =
            Exchange { sent: Wall(1000), received: Wall(1500), answered: Wall(1600), returned: Wall(1900) };
        ledger.exchange(PointId(2), PointId(0), &exchange);
        ledger.exchange(PointId(1), PointId(2), &exchange);
        // Further apart than clocks and patience allow, and of a point that there is not.
        let apart = Exchange { returned: Wall(1600 + 8_000_000_001), ..exchange };
        ledger.exchange(PointId(0), PointId(1), &apart);
        ledger.exchange(PointId(0), PointId(3), &exchange);
        let none = ClockBook::new(TEN_SECONDS, Span::from_secs(64));
        let (mut back, mut forth) = (none.clone(), none.clone());
        back.exchange_back(&exchange);
        forth.exchange(&exchange);
        assert_eq!(format!("{:?}", ledger.books), format!("{:?}", [none, back, forth]));
    }

    #[test]
    fn what_a_ledger_cannot_have_known_makes_none() {
        let settings = || JoinSettings::of(["a", "b"]);
        let mut ledger = Ledger::new(settings()).unwrap();
        for number in 0..1025 {
            ledger.watched(PointId(0), period(number), 0, &ClockState::default());
        }
        let known = ledger.state();
        assert_eq!((known.reports[0].len(), known.reports[0][0].period), (1024, period(1)));
        assert!(Ledger::restore(settings(), known.clone()).is_some());
        let refused = |change: fn(&mut LedgerState)| {
            let mut changed = known.clone();
            change(&mut changed);
            Ledger::restore(settings(), changed).is_none()
        };
        assert!(refused(|state| {
            let first = state.reports[0].front().cloned();
            state.reports[0].extend(first);
        }));
        assert!(refused(|state| drop(state.reports.pop())));
        assert!(refused(|state| drop(state.books.pop())));
        assert!(refused(|state| {
            let far = Wall(8_000_000_001);
            state.books[0].exchange(&Exchange { sent: Wall(0), received: far, answered: far, returned: far });
        }));
    }
}
