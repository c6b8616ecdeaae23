//! Marked blocks of several points over time: loss and delay between two of them, period by period.
//!
//! A block counts only where both points watched all of it and half a block around, without a loss
//! of their own; everything else is `unobserved`, as in the join of digests. Of blocks that do
//! count the sum of both points' counts is compared, not each block for itself: a packet that
//! counted in a neighbour at one of the points is then no loss. Where RFC 9341's guard band is not
//! met, neither is that certain, and the block is `unobserved` as well.

use std::collections::BTreeMap;

use netaware_record::passive::{ClockState, DelayRow, DelayStatistics, MarkingRow, Period};
use netaware_units::{ByteCount, Span, Wall};

use super::join::{BlockLoss, Doubt, JoinSettings, join};
use super::rule::{MarkingRule, MarkingRuleError};
use crate::clock::{ClockBook, Estimate, Exchange, Method};
use crate::join::{Arrivals, PointId, Watching};

/// Blocks in, rows out. Pure: `now` is an argument.
#[derive(Debug)]
pub struct MarkingJoin {
    rule: MarkingRule,
    /// Blocks of a row.
    blocks: i64,
    points: Vec<Point>,
    /// Of each pair; clock b is that of the second point.
    books: Vec<ClockBook>,
    /// Number of the first row that was not made yet.
    next: Option<i64>,
    now: Option<Wall>,
    began: i64,
}

#[derive(Debug, Clone, Default)]
struct Point {
    blocks: BTreeMap<i64, MarkingRow>,
    watching: Watching,
    arrivals: Arrivals,
    heard_until: Option<i64>,
    clocks: Vec<(Period, ClockState)>,
}

impl MarkingJoin {
    /// Knowing nothing: whatever points counted before this is unobserved.
    ///
    /// # Errors
    /// The rule cannot be meant.
    pub fn new(rule: MarkingRule) -> Result<Self, MarkingRuleError> {
        rule.check()?;
        let blocks = (rule.period.0 / rule.block.0).max(1);
        let length = Span(blocks * rule.block.0);
        Ok(Self {
            blocks,
            points: vec![Point::default(); rule.points.len()],
            books: vec![ClockBook::new(length, rule.clock_window); rule.pairs.len()],
            next: None,
            now: None,
            began: i64::MAX,
            rule,
        })
    }

    /// The point of that name.
    pub fn point(&self, name: &str) -> Option<PointId> {
        let at = self.rule.points.iter().position(|point| point == name)?;
        u8::try_from(at).ok().map(PointId)
    }

    /// What a point counted of one block. Rows of one block add up; one whose time was settled or
    /// that is further ahead than an hour is not used.
    pub fn offer(&mut self, point: PointId, row: &MarkingRow) {
        let Ok(number) = i64::try_from(row.block) else { return };
        let timely =
            self.now.is_none_or(|now| number.saturating_mul(self.rule.block.0) < now.0.saturating_add(AHEAD));
        let settled = self.next.is_some_and(|next| number < next.saturating_mul(self.blocks));
        let sane = number < i64::MAX / 4 / self.rule.block.0;
        let Some(to) = self.points.get_mut(usize::from(point.0)).filter(|_| timely && sane && !settled)
        else {
            return;
        };
        match to.blocks.get_mut(&number) {
            Some(block) => add(block, row),
            None => drop(to.blocks.insert(number, row.clone())),
        }
        if to.blocks.len() > MOST_BLOCKS {
            to.blocks.pop_first();
        }
    }

    /// All blocks of this point that were over half a block before the end of the period have been
    /// offered; it lost `lost` packets in it, and this was its clock.
    pub fn watched(&mut self, point: PointId, period: Period, lost: u64, clock: &ClockState) {
        let Some(of) = self.points.get_mut(usize::from(point.0)) else { return };
        of.watching.add(period.from.0, period.until.0, lost);
        of.heard_until = of.heard_until.max(Some(period.until.0));
        if of.clocks.len() == MOST_CLOCKS {
            of.clocks.remove(0);
        }
        of.clocks.push((period, clock.clone()));
        if let Some(now) = self.now {
            of.arrivals.heard(now.0, period.until.0, self.rule.report_patience.0);
        }
    }

    /// An exchange of our own between two points; `asked` sent the question.
    pub fn exchange(&mut self, asked: PointId, answered: PointId, exchange: &Exchange) {
        if !exchange.is_within(AHEAD) {
            return;
        }
        for (pair, book) in self.rule.pairs.iter().zip(&mut self.books) {
            if (pair.from, pair.to) == (asked, answered) {
                book.exchange(exchange);
            } else if (pair.from, pair.to) == (answered, asked) {
                book.exchange_back(exchange);
            }
        }
    }

    /// It is `now` by the collector's clock: gives the rows of the periods of which everything is
    /// known, oldest first.
    pub fn advance(&mut self, now: Wall) -> Vec<(Period, DelayRow)> {
        let now = self.now.map_or(now, |before| before.max(now));
        self.now = Some(now);
        self.began = self.began.min(now.0);
        let known = self.known_until(now.0);
        let length = self.blocks * self.rule.block.0;
        // Blocks are read half a block after their end.
        let due = known.saturating_sub(self.rule.block.0 / 2).div_euclid(length);
        let first = self
            .points
            .iter()
            .filter_map(|point| Some(point.blocks.first_key_value()?.0.div_euclid(self.blocks)));
        let (mut number, mut rows) =
            (first.min().unwrap_or(due).max(self.next.unwrap_or(i64::MIN)), Vec::new());
        while number < due && rows.len() < MOST_ROWS {
            self.settle(number, &mut rows);
            number += 1;
            // What lies between is nothing.
            let first = self
                .points
                .iter()
                .filter_map(|point| Some(point.blocks.first_key_value()?.0.div_euclid(self.blocks)));
            number = number.max(first.min().unwrap_or(due).min(due));
        }
        if known > i64::MIN {
            self.next = Some(self.next.map_or(number.min(due), |next| next.max(number.min(due))));
        }
        rows
    }

    fn known_until(&self, now: i64) -> i64 {
        let patience = self.rule.report_patience.0;
        let (mut all, mut waited) = (i64::MAX, now.saturating_sub(patience));
        for point in &self.points {
            let heard = point.heard_until.unwrap_or(i64::MIN);
            all = all.min(heard);
            if point.arrivals.is_waited_for(now, self.began, patience) {
                waited = waited.min(heard);
            }
        }
        all.max(waited).min(now.saturating_add(AHEAD))
    }

    /// Makes the rows of one period.
    fn settle(&mut self, number: i64, rows: &mut Vec<(Period, DelayRow)>) {
        let length = self.blocks * self.rule.block.0;
        let from = number.saturating_mul(length);
        let period = Period { from: Wall(from), until: Wall(from.saturating_add(length)) };
        let numbers = number * self.blocks..(number + 1) * self.blocks;
        for at in 0..self.rule.pairs.len() {
            let pair = self.rule.pairs[at];
            let [first, second] = [pair.from, pair.to].map(|point| &self.points[usize::from(point.0)]);
            let clocks = [first, second].map(|point| point.clocks_of(period));
            let estimate = self.books[at].estimate(period, [&clocks[0], &clocks[1]]);
            let counted = Counted::of(first, second, numbers.clone(), self.rule.block, &estimate);
            if let Some(row) = counted.row(&estimate, self.rule.block) {
                let name = |point: PointId| self.rule.points[usize::from(point.0)].clone();
                rows.push((period, DelayRow { from: name(pair.from), to: name(pair.to), ..row }));
            }
        }
        let forget = from.saturating_sub(length).saturating_sub(self.rule.block.0);
        for point in &mut self.points {
            point.blocks = point.blocks.split_off(&numbers.end);
            point.watching.forget_before(forget);
            point.clocks.retain(|(of, _)| of.until.0 >= from);
        }
    }
}

impl Point {
    fn clocks_of(&self, period: Period) -> Vec<ClockState> {
        let touching = |of: &Period| of.from < period.until && period.from < of.until;
        self.clocks.iter().filter(|(of, _)| touching(of)).map(|(_, clock)| clock.clone()).collect()
    }

    /// Its counts of a block, if it watched all of the time in which its packets came.
    fn whole(&self, number: i64, block: Span) -> Option<MarkingRow> {
        let (begin, half) = (number * block.0, block.0 / 2);
        let watched = self.watching.would_have_seen(begin - half, begin + block.0 + half);
        watched.then(|| self.blocks.get(&number).cloned().unwrap_or_else(|| nothing(number, Wall(begin))))
    }
}

/// What two points counted of the blocks of a row.
struct Counted {
    blocks: Vec<BlockLoss>,
    /// Packets of the first point in blocks that one of the two did not watch to the end.
    unwatched: u64,
    late: u64,
}

impl Counted {
    fn of(
        first: &Point,
        second: &Point,
        numbers: std::ops::Range<i64>,
        block: Span,
        estimate: &Estimate,
    ) -> Self {
        let (mut sent, mut received, mut unwatched) = (Vec::new(), Vec::new(), 0);
        let count =
            |point: &Point, number| point.blocks.get(&number).map_or(0, |row: &MarkingRow| row.packets);
        for number in numbers {
            if count(first, number) == 0 && count(second, number) == 0 {
                continue;
            }
            match (first.whole(number, block), second.whole(number, block)) {
                (Some(left), Some(came)) => {
                    received.push(corrected(came, estimate, left.first_at));
                    sent.push(left);
                }
                _ => unwatched += count(first, number),
            }
        }
        // Blocks are told apart by each point's own clock: all that those are apart counts.
        let apart = estimate.bound().map(|bound| bound + estimate.middle().unwrap_or(Span::ZERO).abs());
        let late = received.iter().fold(0_u64, |sum, row| sum.saturating_add(row.late));
        let blocks = join(&sent, &received, &JoinSettings { block, clock_bound: apart });
        Self { blocks, unwatched, late }
    }

    /// `None`: there was nothing to count.
    fn row(self, estimate: &Estimate, block: Span) -> Option<DelayRow> {
        let unsure = |one: &BlockLoss| matches!(one.doubt, Some(Doubt::GuardBand { .. }));
        let (doubted, good): (Vec<BlockLoss>, Vec<BlockLoss>) = self.blocks.into_iter().partition(unsure);
        let sum = |blocks: &[BlockLoss], of: fn(&BlockLoss) -> u64| {
            blocks.iter().map(of).fold(0_u64, u64::saturating_add)
        };
        let (sent, received) = (sum(&good, |one| one.sent), sum(&good, |one| one.received));
        let unobserved = self.unwatched.saturating_add(sum(&doubted, |one| one.sent));
        let packets = sent.saturating_add(unobserved);
        if packets == 0 && received == 0 {
            return None;
        }
        let mut row = DelayRow {
            packets,
            matched: sent.min(received),
            lost: sent.saturating_sub(received),
            unobserved,
            late: self.late,
            patience: block / 2,
            clock_bound: estimate.bound(),
            offset: estimate.middle().unwrap_or(Span::ZERO),
            ..DelayRow::empty("alternate_marking")
        };
        estimate.method.name().clone_into(&mut row.clock_method);
        delays(&mut row, &good, estimate);
        warn(&mut row, &good, &doubted, received.saturating_sub(sent));
        Some(row)
    }
}

/// Of marked packets where there are any, else the mean of each block that lost nothing.
fn delays(row: &mut DelayRow, blocks: &[BlockLoss], estimate: &Estimate) {
    let marked: Vec<Span> =
        blocks.iter().filter_map(|block| block.marked.as_ref()).flatten().copied().collect();
    let (told, what) = if marked.is_empty() {
        let means: Vec<Span> = blocks.iter().filter_map(|block| block.mean_delay).collect();
        (means, "delays are means of blocks that lost nothing")
    } else {
        (marked, "delays are of marked packets alone")
    };
    let Some(smallest) = told.iter().min().copied() else { return };
    row.warnings.push(what.to_owned());
    let unknown = estimate.method == Method::None;
    if unknown {
        row.offset = smallest;
        row.warnings
            .push("nothing is known of the clocks: delays count from the smallest difference".to_owned());
    }
    let bound = estimate.bound().unwrap_or(Span::ZERO);
    let mut found = DelayStatistics::default();
    for delay in told {
        let delay = if unknown { delay - smallest } else { delay };
        row.below_bound += u64::from(delay < bound || delay < Span::ZERO);
        if delay >= Span::ZERO {
            found.observe(delay);
        }
    }
    row.delay = found;
}

fn warn(row: &mut DelayRow, good: &[BlockLoss], doubted: &[BlockLoss], more: u64) {
    let needs = doubted.iter().filter_map(|block| match block.doubt {
        Some(Doubt::GuardBand { needs }) => Some(needs),
        _ => None,
    });
    if let Some(needs) = needs.max() {
        row.warnings.push(format!(
            "clocks, delay and its spread need {needs}, half a block or more: packets may count in another block, and none is told lost"
        ));
    }
    if good.iter().any(|block| block.doubt == Some(Doubt::Clocks)) {
        row.warnings
            .push("how far the clocks are apart is not known: packets may count in another block".to_owned());
    }
    if good.iter().any(|block| block.doubt == Some(Doubt::Late)) {
        row.warnings.push("packets came after their block had been read".to_owned());
    }
    if more > 0 {
        row.warnings
            .push(format!("{more} packets more came than were sent: blocks of the two points do not fit"));
    }
}

/// Stamps of the second point by the clock of the first.
fn corrected(mut row: MarkingRow, estimate: &Estimate, at: Wall) -> MarkingRow {
    let offset = estimate.offset_at(at).or_else(|| estimate.middle()).unwrap_or(Span::ZERO);
    let back = |stamp: Wall| Wall(stamp.0.saturating_sub(offset.0));
    (row.first_at, row.mean_at) = (back(row.first_at), back(row.mean_at));
    row.marked_at.iter_mut().for_each(|stamp| *stamp = back(*stamp));
    row
}

fn nothing(number: i64, begin: Wall) -> MarkingRow {
    MarkingRow {
        key: netaware_record::passive::FlowKey::default(),
        colour: (number & 1) as u8,
        block: number.max(0).cast_unsigned(),
        packets: 0,
        bytes: ByteCount(0),
        first_at: begin,
        mean_at: begin,
        marked_at: Vec::new(),
        late: 0,
    }
}

/// Adds what another row said of the same block.
fn add(block: &mut MarkingRow, row: &MarkingRow) {
    block.late = block.late.saturating_add(row.late);
    if row.packets == 0 {
        return;
    }
    if block.packets == 0 {
        let late = block.late;
        *block = MarkingRow { late, ..row.clone() };
        return;
    }
    let packets = block.packets.saturating_add(row.packets);
    let apart = i128::from(row.mean_at.0) - i128::from(block.mean_at.0);
    // Counts beyond 2^63 are nonsense of a probe's: what comes of them is of no use, and no harm.
    let moved = apart.saturating_mul(i128::from(row.packets)) / i128::from(packets);
    block.mean_at = Wall(block.mean_at.0.saturating_add(moved as i64));
    block.first_at = block.first_at.min(row.first_at);
    block.packets = packets;
    block.bytes = ByteCount(block.bytes.0.saturating_add(row.bytes.0));
    block.marked_at.extend_from_slice(&row.marked_at);
    block.marked_at.sort_unstable();
    block.marked_at.truncate(super::MOST_MARKED);
}

/// Of one point that wait: of the shortest ones ten minutes.
const MOST_BLOCKS: usize = 1 << 16;
/// States of one point's clock: minutes of periods of 100 ms.
const MOST_CLOCKS: usize = 4096;
/// Periods of one call.
const MOST_ROWS: usize = 4096;
/// An hour: stamps further ahead of the collector are of no clock.
const AHEAD: i64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;

    use super::*;
    use crate::made_up::Made;
    use crate::marking::{MarkingPair, MarkingWatch};
    use crate::{Found, Watch};
    use netaware_record::passive::Row;

    const MS: i64 = 1_000_000;
    const SECOND: i64 = 1000 * MS;
    const START: i64 = 1_800_000_000 * SECOND;
    const BLOCK: i64 = 200 * MS;

    fn rule() -> MarkingRule {
        MarkingRule {
            points: vec!["a".into(), "b".into()],
            pairs: vec![MarkingPair { from: PointId(0), to: PointId(1) }],
            block: Span(BLOCK),
            period: Span(SECOND),
            report_patience: Span::from_secs(5),
            clock_window: Span::from_secs(64),
        }
    }

    fn same_host() -> ClockState {
        ClockState { identity: Some("here".into()), ..ClockState::default() }
    }

    /// Ten seconds of a flow of a packet each ms, every tenth double marked, over a path of 12 ms
    /// and up to 2 more; packets for which `lost` says so do not come. What b lost in its own
    /// capture, per second, is `lacks`.
    fn play(
        offset: i64,
        clocks: &ClockState,
        lost: impl Fn(i64) -> bool,
        lacks: impl Fn(i64) -> u64,
    ) -> Vec<(Period, DelayRow)> {
        let mut rng = SplitMix64::new(9);
        let mut tasks = [(); 2].map(|()| MarkingWatch::new(0, Some(1), 200).unwrap());
        let mut join = MarkingJoin::new(rule()).unwrap();
        let mut rows = Vec::new();
        let mut on_the_way: Vec<(i64, Made)> = Vec::new();
        for second in 0..12 {
            let from = START + second * SECOND;
            for n in 0..if (1..11).contains(&second) { 1000 } else { 0 } {
                let at = from + n * MS;
                let made = Made::udp4().dscp((at / BLOCK % 2) as u8 | u8::from(n % 10 == 3) << 1);
                tasks[0].observe(&made.observed(Wall(at)));
                if !lost((second - 1) * 1000 + n) {
                    on_the_way.push((at + 12 * MS + rng.below(2_000_000) as i64 + offset, made));
                }
            }
            on_the_way.sort_by_key(|(at, _)| *at);
            let behind = on_the_way.partition_point(|(at, _)| *at < from + SECOND);
            for (at, made) in on_the_way.drain(..behind) {
                tasks[1].observe(&made.observed(Wall(at)));
            }
            let period = Period { from: Wall(from), until: Wall(from + SECOND) };
            for (point, task) in (0..).map(PointId).zip(&mut tasks) {
                let mut found = Found::default();
                task.close(period, &mut found);
                for row in found.rows {
                    if let Row::Marking(row) = row {
                        join.offer(point, &row);
                    }
                }
                let lost = if point == PointId(1) { lacks(second) } else { 0 };
                join.watched(point, period, lost, clocks);
            }
            rows.extend(join.advance(Wall(from + SECOND + 100 * MS)));
        }
        rows.extend(join.advance(Wall(START + 60 * SECOND)));
        rows
    }

    fn sums(rows: &[(Period, DelayRow)]) -> [u64; 4] {
        rows.iter().fold([0; 4], |sum, (_, row)| {
            [sum[0] + row.packets, sum[1] + row.matched, sum[2] + row.lost, sum[3] + row.unobserved]
        })
    }

    #[test]
    fn loss_and_delay_of_each_second_are_exact() {
        let rows = play(0, &same_host(), |n| n % 50 == 7, |_| 0);
        assert_eq!(sums(&rows), [10_000, 9_800, 200, 0]);
        assert_eq!(rows.len(), 10);
        for (period, row) in &rows {
            assert_eq!(period.until.since(period.from), Span(SECOND));
            assert_eq!((row.packets, row.lost, row.from.as_str(), row.to.as_str()), (1000, 20, "a", "b"));
            assert_eq!((row.clock_bound, row.below_bound), (Some(Span::ZERO), 0));
            // Packets 3, 13, ...: none of them is lost.
            assert_eq!(row.delay.count, 100);
            assert!(row.delay.min.0 >= 12 * MS && row.delay.max.0 < 14 * MS, "{row:?}");
            assert_eq!(row.warnings, ["delays are of marked packets alone"]);
        }
    }

    #[test]
    fn a_whole_second_that_is_lost_is_loss_and_one_that_was_not_watched_is_not() {
        let rows = play(0, &same_host(), |n| (4000..5000).contains(&n), |_| 0);
        assert_eq!(sums(&rows), [10_000, 9_000, 1_000, 0]);
        // b lost packets in the seventh second: blocks that reach into it, by half a block, are not
        // known.
        let rows = play(0, &same_host(), |_| false, |second| u64::from(second == 6) * 3);
        let unknown = 1000 + 2 * 200;
        assert_eq!(sums(&rows), [10_000, 10_000 - unknown, 0, unknown]);
    }

    #[test]
    fn clocks_that_are_apart_are_taken_off_as_far_as_they_are_known() {
        let kept =
            ClockState { synchronised: true, bound: Some(Span::from_millis(2)), ..ClockState::default() };
        let rows = play(3 * MS, &kept, |n| n % 100 == 9, |_| 0);
        assert_eq!(sums(&rows), [10_000, 9_900, 100, 0]);
        for (_, row) in &rows {
            assert_eq!(
                (row.clock_bound, row.clock_method.as_str()),
                (Some(Span::from_millis(4)), "clock_daemons")
            );
            let mean = row.delay.mean().unwrap();
            assert!((mean - Span::from_millis(13)).abs() <= Span::from_millis(4), "{mean}");
        }
        let unknown = play(3 * MS, &ClockState::default(), |_| false, |_| 0);
        let (_, row) = &unknown[3];
        assert_eq!((row.clock_bound, row.delay.min, row.lost), (None, Span::ZERO, 0));
        assert!(row.warnings.iter().any(|warning| warning.contains("not known")), "{row:?}");
    }

    #[test]
    fn where_the_guard_band_is_not_met_nothing_is_called_lost() {
        // 90 ms apart, with blocks of 200: d is more than half of one.
        let off =
            ClockState { synchronised: true, bound: Some(Span::from_millis(50)), ..ClockState::default() };
        let rows = play(90 * MS, &off, |n| n % 10 == 0, |_| 0);
        let [packets, matched, lost, unobserved] = sums(&rows);
        assert_eq!((packets, matched, lost, unobserved), (10_000, 0, 0, 10_000));
        assert!(rows.iter().all(|(_, row)| row.warnings.iter().any(|why| why.contains("half a block"))));
    }

    #[test]
    fn a_silent_point_is_waited_for_no_longer_than_patience() {
        let mut join = MarkingJoin::new(rule()).unwrap();
        let number = START / BLOCK;
        let row = MarkingRow { packets: 10, ..nothing(number, Wall(START)) };
        join.advance(Wall(START));
        join.offer(PointId(0), &row);
        let period = Period { from: Wall(START - SECOND), until: Wall(START + 2 * SECOND) };
        join.watched(PointId(0), period, 0, &same_host());
        assert!(join.advance(Wall(START + 2 * SECOND)).is_empty());
        let rows = join.advance(Wall(START + 7 * SECOND));
        assert_eq!(sums(&rows), [10, 0, 0, 10]);
        // What comes after that is not counted a second time.
        join.offer(PointId(0), &row);
        join.watched(PointId(1), period, 0, &same_host());
        assert!(join.advance(Wall(START + 20 * SECOND)).is_empty());
    }

    #[test]
    fn a_rule_that_cannot_be_meant_makes_no_join() {
        let rule = MarkingRule { block: Span::ZERO, ..rule() };
        assert_eq!(MarkingJoin::new(rule).unwrap_err(), MarkingRuleError::Block(Span::ZERO));
    }

    #[test]
    fn nonsense_takes_no_memory_and_no_time() {
        let mut rng = SplitMix64::new(3);
        let mut join = MarkingJoin::new(rule()).unwrap();
        join.advance(Wall(START));
        for n in 0..200_000 {
            let number =
                if n % 3 == 0 { rng.next_u64() } else { (START / BLOCK) as u64 - rng.below(1 << 20) as u64 };
            let row = MarkingRow {
                block: number,
                packets: rng.next_u64(),
                ..nothing(0, Wall(rng.next_u64().cast_signed()))
            };
            join.offer(PointId((n % 3) as u8), &row);
        }
        assert!(join.points.iter().all(|point| point.blocks.len() <= MOST_BLOCKS));
        let forever = Period { from: Wall(i64::MIN), until: Wall(i64::MAX) };
        join.watched(PointId(0), forever, u64::MAX, &ClockState::default());
        join.watched(PointId(1), forever, 0, &ClockState::default());
        assert!(join.advance(Wall(START + SECOND)).len() <= MOST_ROWS * 2);
    }

    /// What a point counted of a block; stamps are ms after its beginning.
    fn counted(number: i64, packets: u64, [first, mean]: [i64; 2], marked: &[i64]) -> MarkingRow {
        let at = |ms: i64| Wall(number * BLOCK + ms * MS);
        MarkingRow {
            packets,
            bytes: ByteCount(100 * packets),
            first_at: at(first),
            mean_at: at(mean),
            marked_at: marked.iter().map(|ms| at(*ms)).collect(),
            ..nothing(number, at(0))
        }
    }

    fn observed(delays: &[i64]) -> DelayStatistics {
        let mut found = DelayStatistics::default();
        for ns in delays {
            found.observe(Span(*ns));
        }
        found
    }

    /// Both points watched, a second before the first block until two behind it.
    fn watched_by_both(join: &mut MarkingJoin, clock: &ClockState) {
        let period = Period { from: Wall(START - SECOND), until: Wall(START + 2 * SECOND) };
        for point in [PointId(0), PointId(1)] {
            join.watched(point, period, 0, clock);
        }
    }

    #[test]
    fn a_row_says_all_that_two_points_counted_of_its_blocks() {
        let number = START / BLOCK;
        let mut join = MarkingJoin::new(rule()).unwrap();
        join.offer(PointId(0), &counted(number, 10, [5, 100], &[10, 20]));
        join.offer(PointId(1), &MarkingRow { late: 1, ..counted(number, 9, [17, 113], &[22, 32]) });
        join.offer(PointId(0), &counted(number + 1, 4, [3, 90], &[]));
        join.offer(PointId(1), &counted(number + 1, 4, [15, 102], &[]));
        watched_by_both(&mut join, &same_host());
        let want = DelayRow {
            from: "a".to_owned(),
            to: "b".to_owned(),
            packets: 14,
            matched: 13,
            lost: 1,
            late: 1,
            patience: Span(BLOCK / 2),
            delay: observed(&[12 * MS, 12 * MS]),
            clock_bound: Some(Span::ZERO),
            clock_method: "same_host".to_owned(),
            warnings: vec![
                "delays are of marked packets alone".to_owned(),
                "packets came after their block had been read".to_owned(),
            ],
            ..DelayRow::empty("alternate_marking")
        };
        let period = Period { from: Wall(START), until: Wall(START + SECOND) };
        assert_eq!(join.advance(Wall(START + 2 * SECOND)), [(period, want)]);
        assert!(join.advance(Wall(START + 3 * SECOND)).is_empty());
        let names = ["a", "b", "c"].map(|name| join.point(name));
        assert_eq!(names, [Some(PointId(0)), Some(PointId(1)), None]);
    }

    #[test]
    fn exchanges_of_either_point_tell_how_far_the_clocks_are_apart() {
        // Clock b is 3 ms ahead; a packet of an exchange takes 20 us from a to b and 30 us back.
        for asked in [0, 1] {
            let mut join = MarkingJoin::new(rule()).unwrap();
            for n in 0..10 {
                let (a, b) = (START + n * 100 * MS, START + n * 100 * MS + 3 * MS);
                let stamps = match asked {
                    0 => [a, b + 20_000, b + 30_000, a + 60_000],
                    _ => [b, a + 30_000, a + 40_000, b + 60_000],
                };
                let [sent, received, answered, returned] = stamps.map(Wall);
                let exchange = Exchange { sent, received, answered, returned };
                join.exchange(PointId(asked), PointId(1 - asked), &exchange);
            }
            let number = START / BLOCK;
            join.offer(PointId(0), &counted(number, 1, [5, 5], &[5]));
            join.offer(PointId(1), &counted(number, 1, [20, 20], &[20]));
            watched_by_both(&mut join, &ClockState::default());
            let rows = join.advance(Wall(START + 2 * SECOND));
            let (_, row) = &rows[0];
            assert_eq!(row.clock_method, "active_exchange", "{asked} asked");
            // Half a round trip is 25 us; lines of other slopes, wander and stamps are less than
            // 15.
            let bound = row.clock_bound.unwrap();
            assert!((Span(25_000)..Span(40_000)).contains(&bound), "{bound}");
            assert!((row.offset - Span(3 * MS)).abs() <= bound, "{}", row.offset);
            assert_eq!(row.delay.count, 1);
            assert!((row.delay.min - Span(12 * MS)).abs() <= bound, "{}", row.delay.min);
        }
    }

    #[test]
    fn rows_of_one_block_add_up() {
        let row = |packets: u64, [first, mean]: [i64; 2], marked: &[i64], late: u64| MarkingRow {
            packets,
            bytes: ByteCount(10 * packets),
            first_at: Wall(first),
            mean_at: Wall(mean),
            marked_at: marked.iter().copied().map(Wall).collect(),
            late,
            ..nothing(7, Wall(0))
        };
        let mut block = row(3, [100, 200], &[150], 1);
        add(&mut block, &row(1, [90, 400], &[140, 120], 2));
        assert_eq!(block, row(4, [90, 250], &[120, 140, 150], 3));
        add(&mut block, &row(0, [1, 1], &[1], 5));
        assert_eq!(block, row(4, [90, 250], &[120, 140, 150], 8));
        let mut empty = row(0, [500, 500], &[], 4);
        add(&mut empty, &row(2, [60, 70], &[65], 3));
        assert_eq!(empty, row(2, [60, 70], &[65], 7));
        let none = nothing(7, Wall(9));
        assert_eq!(
            none,
            MarkingRow { colour: 1, block: 7, first_at: Wall(9), mean_at: Wall(9), ..row(0, [0, 0], &[], 0) }
        );
        assert_eq!(nothing(6, Wall(9)).colour, 0);
    }

    #[test]
    fn blocks_that_are_settled_or_too_far_ahead_are_not_taken() {
        let takes = |join: &mut MarkingJoin, number: i64| {
            join.offer(PointId(0), &nothing(number, Wall(0)));
            join.points[0].blocks.contains_key(&number)
        };
        let mut join = MarkingJoin::new(rule()).unwrap();
        let most = i64::MAX / 4 / BLOCK;
        assert!(!takes(&mut join, most) && takes(&mut join, most - 1), "without any clock");

        let mut join = MarkingJoin::new(rule()).unwrap();
        join.advance(Wall(START));
        let ahead = (START + 3600 * SECOND) / BLOCK;
        assert!(!takes(&mut join, ahead) && takes(&mut join, ahead - 1), "an hour ahead");
        watched_by_both(&mut join, &same_host());
        join.advance(Wall(START + 2 * SECOND));
        let number = START / BLOCK;
        assert!(!takes(&mut join, number + 4) && takes(&mut join, number + 5), "of the second behind");
    }

    #[test]
    fn a_block_counts_where_half_a_block_around_it_was_watched() {
        let (begin, half) = (7 * BLOCK, BLOCK / 2);
        let (from, until) = (begin - half, begin + BLOCK + half);
        for (from, until, is_whole) in
            [(from, until, true), (from + 1, until, false), (from, until - 1, false)]
        {
            let mut point = Point::default();
            point.watching.add(from, until, 0);
            assert_eq!(point.whole(7, Span(BLOCK)), is_whole.then(|| nothing(7, Wall(begin))));
        }
        let period = |from: i64, until: i64| Period { from: Wall(from), until: Wall(until) };
        let states =
            [(0, 10, "before"), (0, 11, "into"), (12, 15, "within"), (19, 30, "out"), (20, 30, "behind")];
        let clocks = states.map(|(from, until, source)| {
            (period(from, until), ClockState { source: source.to_owned(), ..ClockState::default() })
        });
        let point = Point { clocks: clocks.to_vec(), ..Point::default() };
        let touching = point.clocks_of(period(10, 20));
        let touching: Vec<&str> = touching.iter().map(|clock| clock.source.as_str()).collect();
        assert_eq!(touching, ["into", "within", "out"]);
    }

    const HOUR: Period = Period { from: Wall(0), until: Wall(3600 * SECOND) };

    fn block(sent: u64, received: u64, mean: Option<i64>, doubt: Option<Doubt>) -> BlockLoss {
        let mean_delay = mean.map(Span);
        BlockLoss { block: 0, sent, received, first_delay: None, mean_delay, marked: None, doubt }
    }

    #[test]
    fn doubted_blocks_are_unobserved_and_doubts_are_told() {
        let needs = |ms: i64| Some(Doubt::GuardBand { needs: Span::from_millis(ms) });
        let blocks = vec![
            block(5, 7, None, Some(Doubt::Clocks)),
            block(9, 1, Some(3), needs(120)),
            block(2, 2, Some(4), needs(110)),
        ];
        let estimate = Estimate::steady(Method::SameHost, HOUR, Span::ZERO, Span::ZERO);
        let want = DelayRow {
            packets: 5 + 3 + 9 + 2,
            matched: 5,
            unobserved: 3 + 9 + 2,
            late: 2,
            patience: Span(BLOCK / 2),
            clock_bound: Some(Span::ZERO),
            clock_method: "same_host".to_owned(),
            warnings: vec![
                "clocks, delay and its spread need 120 ms, half a block or more: packets may count in \
                 another block, and none is told lost"
                    .to_owned(),
                "how far the clocks are apart is not known: packets may count in another block".to_owned(),
                "2 packets more came than were sent: blocks of the two points do not fit".to_owned(),
            ],
            ..DelayRow::empty("alternate_marking")
        };
        assert_eq!(Counted { blocks, unwatched: 3, late: 2 }.row(&estimate, Span(BLOCK)), Some(want));
        let only = |blocks: Vec<BlockLoss>| Counted { blocks, unwatched: 0, late: 5 };
        assert_eq!(only(Vec::new()).row(&estimate, Span(BLOCK)), None);
        let came = only(vec![block(0, 4, None, None)]).row(&estimate, Span(BLOCK)).unwrap();
        assert_eq!((came.packets, came.matched, came.lost, came.late), (0, 0, 0, 5));
    }

    #[test]
    fn means_of_blocks_count_from_the_smallest_where_nothing_is_known_of_the_clocks() {
        let means = "delays are means of blocks that lost nothing".to_owned();
        let counted = |means: [i64; 4]| {
            let blocks = means.map(|mean| block(1, 1, Some(mean), None)).to_vec();
            Counted { blocks, unwatched: 0, late: 0 }
        };
        let known = Estimate::steady(Method::ClockDaemons, HOUR, Span::ZERO, Span(20));
        let common = DelayRow {
            packets: 4,
            matched: 4,
            patience: Span(BLOCK / 2),
            ..DelayRow::empty("alternate_marking")
        };
        let want = DelayRow {
            // 10 and -5 are within the bound, and the latter is shown nowhere.
            below_bound: 2,
            delay: observed(&[10, 20, 30]),
            clock_bound: Some(Span(20)),
            clock_method: "clock_daemons".to_owned(),
            warnings: vec![means.clone()],
            ..common.clone()
        };
        assert_eq!(counted([10, 20, 30, -5]).row(&known, Span(BLOCK)), Some(want));
        let unknown = "nothing is known of the clocks: delays count from the smallest difference";
        let want = DelayRow {
            offset: Span(30),
            delay: observed(&[0, 20, 10, 0]),
            clock_method: "none".to_owned(),
            warnings: vec![means, unknown.to_owned()],
            ..common
        };
        let found = counted([30, 50, 40, 30]).row(&Estimate::none(HOUR), Span(BLOCK));
        assert_eq!(found, Some(want));
    }
}
