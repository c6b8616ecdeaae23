//! Clocks that jump, or whose rate changes: spans in which they ran steadily, each with a line of
//! its own.
//!
//! A jump by more than the smallest round trip leaves no line; the longest end of the window that
//! does allow one is a span, and so on from there backwards. A smaller jump leaves a line, and a
//! wrong one; but it moves the limits of *both* ways by the same, which queues do not, and so it is
//! found too when it exceeds a tenth of the round trip and 20 us. Around a jump three sixteenths of
//! a period stay without a line: nobody knows where in them the jump was.

use netaware_record::passive::Period;
use netaware_units::{Span, Wall};

use super::Line;
use super::envelope::Envelope;
use super::fit::{Corridor, Found, corridor, steady};

pub(crate) type Segment = Line;

/// Lines for the period, in order, fitted over what is known from `start` on.
pub(crate) fn lines(envelope: &Envelope, start: Wall, period: Period) -> Vec<Segment> {
    let grain = (period.until.since(period.from).0 / GRAINS).max(1);
    // Whole grains that end with the period.
    let grains = (period.until.since(start).0 / grain).min(MOST_GRAINS) as usize;
    let splitter = Splitter { envelope, first: period.until.0 - grains as i64 * grain, grain, period };
    let mut found = Vec::new();
    splitter.split(0, grains, SPLITS, &mut found);
    found.sort_by_key(|line| line.from);
    found
}

struct Splitter<'a> {
    envelope: &'a Envelope,
    /// Where grain 0 begins.
    first: i64,
    grain: i64,
    period: Period,
}

impl Splitter<'_> {
    fn edge(&self, grain: usize) -> i64 {
        self.first.saturating_add(self.grain.saturating_mul(grain as i64))
    }

    /// Adds the lines of grains `from..until`, as far as they touch the period.
    fn split(&self, from: usize, until: usize, splits: u32, found: &mut Vec<Segment>) {
        let span = (self.edge(from), self.edge(until));
        if from >= until || span.1 <= self.period.from.0 || splits == 0 {
            return;
        }
        let part = (span.0.max(self.period.from.0), span.1);
        match corridor(self.envelope, span, part) {
            Found::OneSided => {}
            Found::Corridor(whole) => match self.jump(from, until, span) {
                None => found.push(self.stretched(&whole, span)),
                Some(at) => {
                    // A packet that was on its way then has a stamp of either.
                    self.split(at + 2, until, splits - 1, found);
                    self.split(from, at.saturating_sub(1).max(from), splits - 1, found);
                }
            },
            Found::Contradiction => {
                let steady_from = self.steady_end(from, until);
                // The grain that it begins with may hold the jump too.
                self.split(steady_from + 1, until, splits - 1, found);
                self.split(from, steady_from.saturating_sub(1).max(from), splits - 1, found);
            }
        }
    }

    /// Packets at the edge of clock b's period are beyond that of clock a's by as much as the
    /// clocks are apart: the line goes on to there, and the bound is that of there.
    fn stretched(&self, whole: &Corridor, span: (i64, i64)) -> Segment {
        let longest = self.period.until.since(self.period.from).0;
        let apart =
            whole.middle[0].abs().max(whole.middle[1].abs()).saturating_add(whole.half_width).min(longest);
        let beyond = |end: i64, edge: Wall| if end == edge.0 { apart } else { 0 };
        let part = (
            whole.from - beyond(whole.from, self.period.from),
            whole.until + beyond(whole.until, self.period.until),
        );
        match corridor(self.envelope, span, part) {
            Found::Corridor(stretched) => line(&stretched),
            _ => line(whole),
        }
    }

    /// First grain of the longest end of `from..until` that allows a line.
    fn steady_end(&self, from: usize, until: usize) -> usize {
        let (mut bad, mut good) = (from, until);
        while good - bad > 1 {
            let middle = usize::midpoint(bad, good);
            *(if steady(self.envelope, self.edge(middle), self.edge(until)) {
                &mut good
            } else {
                &mut bad
            }) = middle;
        }
        good
    }

    /// The grain in which the limits of both ways move by the same, most.
    fn jump(&self, from: usize, until: usize, span: (i64, i64)) -> Option<usize> {
        let Found::Corridor(whole) = corridor(self.envelope, span, span) else { return None };
        let trend = line(&whole);
        let levels: Vec<(Option<i64>, Option<i64>)> =
            (from..until).map(|grain| self.levels(grain, &trend)).collect();
        let threshold = (whole.half_width / 5).max(SMALLEST_JUMP);
        // The grain with the jump has limits of before and after, and counts for neither.
        let moves = (NEAR..levels.len().saturating_sub(NEAR)).filter_map(|at| {
            let before = tightest(&levels[at - NEAR..at])?;
            let after = tightest(&levels[at + 1..=at + NEAR])?;
            let (most, least) = (after.0 - before.0, after.1 - before.1);
            let together = most.signum() == least.signum();
            together.then(|| (most.abs().min(least.abs()), at))
        });
        moves.max().filter(|(size, _)| *size > threshold).map(|(_, at)| from + at)
    }

    /// The tightest limits of a grain, above and below the trend.
    fn levels(&self, grain: usize, trend: &Segment) -> (Option<i64>, Option<i64>) {
        let within = (self.edge(grain), self.edge(grain + 1));
        let above =
            |limit: super::envelope::Limit| limit.difference.saturating_sub(trend.at(Wall(limit.at)).0);
        let bins = || self.envelope.limits(within.0, within.1);
        (
            bins().filter_map(|bin| bin.most.map(above)).min(),
            bins().filter_map(|bin| bin.least.map(above)).max(),
        )
    }
}

/// Of several grains; `None` unless each has both.
fn tightest(levels: &[(Option<i64>, Option<i64>)]) -> Option<(i64, i64)> {
    let both: Option<Vec<(i64, i64)>> =
        levels.iter().map(|(most, least)| Some(((*most)?, (*least)?))).collect();
    let both = both?;
    Some((both.iter().map(|level| level.0).min()?, both.iter().map(|level| level.1).max()?))
}

fn line(corridor: &Corridor) -> Segment {
    Line {
        from: Wall(corridor.from),
        until: Wall(corridor.until),
        offset: corridor.middle.map(Span),
        bound: Span(corridor.half_width),
    }
}

/// Of a period.
const GRAINS: i64 = 16;

/// A window is some periods.
const MOST_GRAINS: i64 = 1024;

/// A clock that jumps more often in a window is no clock.
const SPLITS: u32 = 12;

/// Grains that are compared on either side.
const NEAR: usize = 3;

/// Smaller jumps are within what stamps err, ns.
const SMALLEST_JUMP: i64 = 20_000;

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;

    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const PERIOD: Period = Period { from: Wall(20 * SECOND), until: Wall(30 * SECOND) };

    /// 30 s of packets both ways, 1 ms and 1.4 ms at least, with what clock b is ahead as a
    /// function of time.
    fn traffic(theta: impl Fn(i64) -> i64, seed: u64) -> Envelope {
        let mut rng = SplitMix64::new(seed);
        let mut envelope = super::super::ClockBook::envelope(Span::from_secs(10));
        for at in (0..30 * SECOND).step_by(1_000_000) {
            let wait = (-(1.0 - rng.unit()).ln() * 1e5) as i64;
            if rng.below(2) == 0 {
                envelope.forward(Wall(at), Wall(at + 1_000_000 + wait + theta(at)));
            } else {
                envelope.reverse(Wall(at + theta(at)), Wall(at + 1_400_000 + wait));
            }
        }
        envelope
    }

    /// Every line holds the truth, and lines cover at least `share` of the period.
    fn check(theta: impl Fn(i64) -> i64, share: f64, seed: u64) -> Vec<Segment> {
        let found = lines(&traffic(&theta, seed), Wall(0), PERIOD);
        let mut covered = 0;
        for line in &found {
            for at in [line.from.0, i64::midpoint(line.from.0, line.until.0), line.until.0 - 1] {
                let off = line.at(Wall(at)).0 - theta(at);
                assert!(off.abs() <= line.bound.0, "{off} off in {line:?} with seed {seed}");
            }
            assert!(line.bound.0 < 1_200_000 + 150_000, "{line:?}");
            covered += line.until.since(line.from).0;
        }
        assert!(covered as f64 >= share * 10e9, "{covered} ns of {found:?}");
        found
    }

    #[test]
    fn steady_clocks_have_one_line() {
        for seed in 0..20 {
            let found = check(|at| 50_000_000 + at / 20_000, 1.0, seed);
            assert_eq!(found.len(), 1, "{found:?}");
        }
    }

    #[test]
    fn a_jump_beyond_the_round_trip_splits_the_period() {
        for seed in 0..10 {
            let found = check(|at| if at < 24 * SECOND + 777 { 0 } else { 30_000_000 }, 0.7, seed);
            assert_eq!(found.len(), 2, "{found:?}");
        }
    }

    #[test]
    fn a_jump_that_leaves_a_line_is_found_by_both_ways_moving_together() {
        for seed in 0..10 {
            let found = check(|at| if at < 25 * SECOND { 1_000_000 } else { -900_000 }, 0.7, seed);
            assert_eq!(found.len(), 2, "{found:?}");
        }
    }

    #[test]
    fn a_jump_before_the_period_does_not_touch_it() {
        check(|at| if at < 12 * SECOND { -7_000_000 } else { 0 }, 1.0, 3);
    }

    /// A packet each way every 10 ms of the period, all of them as fast as can be: 1 ms and 1.4 ms.
    fn even_traffic(theta: impl Fn(i64) -> i64) -> Envelope {
        let mut envelope = super::super::ClockBook::envelope(Span::from_secs(10));
        for at in (PERIOD.from.0..PERIOD.until.0).step_by(10_000_000) {
            envelope.forward(Wall(at), Wall(at + 1_000_000 + theta(at)));
            envelope.reverse(Wall(at + theta(at)), Wall(at + 1_400_000));
        }
        envelope
    }

    #[test]
    fn lines_end_a_grain_before_a_jump_and_begin_a_grain_behind_it() {
        // When clock b jumps and from what to what; ends of the lines around it. A grain is 625 ms.
        let rows = [
            (25_300_000_000, [1_000_000, -900_000], [24_375_000_000, 26_250_000_000]),
            (24_000_000_777, [0, 30_000_000], [23_750_000_000, 25_000_000_000]),
        ];
        for (jump, [before, after], ends) in rows {
            let traffic = even_traffic(|at| if at < jump { before } else { after });
            let found = lines(&traffic, PERIOD.from, PERIOD);
            let [first, second] = found.as_slice() else { panic!("{found:?}") };
            assert_eq!([first.until, second.from], ends.map(Wall));
            assert!(first.from <= PERIOD.from && second.until >= PERIOD.until, "{found:?}");
            for (line, theta) in [(first, before), (second, after)] {
                // Limits are 1 ms above the truth and 1.4 ms below it.
                let off = line.offset.map(|offset| (offset - Span(theta - 200_000)).abs());
                assert!(off.iter().all(|off| *off < Span(10_000)), "{line:?}");
                assert!((1_200_000..1_250_000).contains(&line.bound.0), "{line:?}");
            }
        }
    }

    #[test]
    fn a_jump_of_less_than_a_tenth_of_the_round_trip_is_no_jump() {
        let traffic = even_traffic(|at| if at < 25_300_000_000 { 0 } else { 100_000 });
        let found = lines(&traffic, PERIOD.from, PERIOD);
        let [line] = found.as_slice() else { panic!("{found:?}") };
        assert!(line.from <= PERIOD.from && line.until >= PERIOD.until, "{line:?}");
    }

    #[test]
    fn a_line_goes_on_beyond_the_period_by_as_much_as_the_clocks_are_apart() {
        // Clock b is 5 ms ahead. Packets take 1 ms either way, at the period's beginning and 9 s
        // later.
        let mut envelope = super::super::ClockBook::envelope(Span::from_secs(10));
        for at in [20 * SECOND, 29 * SECOND] {
            envelope.forward(Wall(at), Wall(at + 6_000_000));
            envelope.reverse(Wall(at + 4_000_000), Wall(at));
        }
        // From when on it is fitted, how far it goes on, and the bound of there: clocks wander
        // longer.
        for (start, apart, bound) in [(20, 6_223_723, 1_225_106), (10, 6_224_223, 1_225_606)] {
            let want = Line {
                from: Wall(20 * SECOND - apart),
                until: Wall(30 * SECOND + apart),
                offset: [Span(5_000_000); 2],
                bound: Span(bound),
            };
            assert_eq!(lines(&envelope, Wall(start * SECOND), PERIOD), [want]);
        }
    }

    /// Packets of 1 ms both ways in each grain of the period; in those of `torn` some that no line
    /// allows.
    fn grains(torn: &[i64]) -> Envelope {
        let mut envelope = super::super::ClockBook::envelope(Span::from_secs(10));
        for grain in 0..GRAINS {
            let at = PERIOD.from.0 + grain * 625_000_000 + 100_000_000;
            envelope.forward(Wall(at), Wall(at + 1_000_000));
            envelope.reverse(Wall(at), Wall(at + 1_000_000));
            if torn.contains(&grain) {
                // Clock b is 30 ms ahead at the least, and 1 ms at the most.
                envelope.reverse(Wall(at + 31_000_000), Wall(at + 1_000_000));
            }
        }
        envelope
    }

    #[test]
    fn a_clock_that_jumps_a_dozen_times_has_no_line_before_that() {
        let ends = |torn: &[i64]| -> Vec<i64> {
            lines(&grains(torn), PERIOD.from, PERIOD).iter().map(|line| line.until.0).collect()
        };
        // Eleven jumps leave grains 0 to 4, which end 3.125 s after the period's begin.
        let jumps: Vec<i64> = (5..16).collect();
        assert_eq!(ends(&jumps), [23_125_000_000]);
        assert!(ends(&(4..16).collect::<Vec<i64>>()).is_empty());
        // The twelfth jump leaves a steady grain behind it, and that has no line either.
        assert!(ends(&[&[2][..], &jumps].concat()).is_empty());
    }

    #[test]
    fn a_jump_in_the_last_grain_leaves_a_line_until_that_grain() {
        let found = lines(&grains(&[15]), PERIOD.from, PERIOD);
        let [line] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(line.until, Wall(29_375_000_000));
        // The middle between 1 ms and -1 ms. Stamps of both ways are 1 ms apart, which tilts it a
        // little.
        assert!(line.offset.iter().all(|offset| offset.abs() < Span(1_000)), "{line:?}");
    }

    #[test]
    fn packets_of_one_way_make_no_line() {
        let mut envelope = super::super::ClockBook::envelope(Span::from_secs(10));
        for at in (PERIOD.from.0..PERIOD.until.0).step_by(10_000_000) {
            envelope.forward(Wall(at), Wall(at + 1_000_000));
        }
        let found = lines(&envelope, PERIOD.from, PERIOD);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn limits_of_several_grains_are_the_tightest_of_them_where_each_has_both() {
        assert_eq!(tightest(&[(Some(5), Some(1)), (Some(3), Some(2))]), Some((3, 2)));
        assert_eq!(tightest(&[(Some(5), None), (Some(3), Some(2))]), None);
        assert_eq!(tightest(&[(Some(5), Some(1)), (None, Some(2))]), None);
        assert_eq!(tightest(&[]), None);
    }
}
