//! What a join of marked blocks must know beforehand: its points, which of them are compared, and
//! how long blocks and rows are.
//!
//! It is checked once, before the first block: a join divides by the block's length and finds
//! points by the pairs' places, and asks no more.

use std::fmt;

use netaware_units::Span;

use crate::join::PointId;

/// What is compared: packets go from the first to the second point, which are places in
/// [`MarkingRule::points`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkingPair {
    /// Where they are counted first.
    pub from: PointId,
    /// Where they are counted then.
    pub to: PointId,
}

/// Everything that must be known beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkingRule {
    /// Names of the points, at most 64.
    pub points: Vec<String>,
    /// What is compared.
    pub pairs: Vec<MarkingPair>,
    /// Length of a block, as the points' tasks have it.
    pub block: Span,
    /// Least length of a row; it is made of as many whole blocks as fit, one at least.
    pub period: Span,
    /// How long reports of a silent point are waited for, by the collector's clock.
    pub report_patience: Span,
    /// How long the clocks' line is fitted over.
    pub clock_window: Span,
}

impl MarkingRule {
    /// Whether it can be meant.
    pub(super) fn check(&self) -> Result<(), MarkingRuleError> {
        let points = self.points.len();
        if !(2..=MOST_POINTS).contains(&points) {
            return Err(MarkingRuleError::Points(points));
        }
        let is_pair = |pair: &MarkingPair| {
            pair.from != pair.to && [pair.from, pair.to].iter().all(|point| usize::from(point.0) < points)
        };
        if self.pairs.is_empty() || !self.pairs.iter().all(is_pair) {
            return Err(MarkingRuleError::Pairs);
        }
        let sane = (10_000_000..=3_600_000_000_000).contains(&self.block.0)
            && (1..=86_400_000_000_000).contains(&self.period.0);
        if !sane {
            return Err(MarkingRuleError::Block(self.block));
        }
        Ok(())
    }
}

/// Why there is no such join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkingRuleError {
    /// Fewer than two points or more than 64.
    Points(usize),
    /// No pair, one of a point with itself or with one that there is not.
    Pairs,
    /// Blocks of less than 10 ms or more than an hour, or a period longer than a day.
    Block(Span),
}

impl fmt::Display for MarkingRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Points(points) => write!(f, "a join has 2 to {MOST_POINTS} points, not {points}"),
            Self::Pairs => {
                f.write_str("marked packets go from one point to another: name 'pairs' of two points each")
            }
            Self::Block(block) => write!(f, "blocks of {block} are no blocks"),
        }
    }
}

impl std::error::Error for MarkingRuleError {}

/// As of a join of digests.
const MOST_POINTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> MarkingRule {
        MarkingRule {
            points: vec!["a".into(), "b".into()],
            pairs: vec![MarkingPair { from: PointId(0), to: PointId(1) }],
            block: Span::from_millis(200),
            period: Span::from_secs(1),
            report_patience: Span::from_secs(5),
            clock_window: Span::from_secs(64),
        }
    }

    fn pair(from: u8, to: u8) -> Vec<MarkingPair> {
        vec![MarkingPair { from: PointId(from), to: PointId(to) }]
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_refused_with_its_reason() {
        assert_eq!(rule().check(), Ok(()));
        let (short, long) = (Span(5), Span::from_secs(86_401));
        let table = [
            (1, MarkingRule { points: vec!["a".into()], ..rule() }, MarkingRuleError::Points(1)),
            (2, MarkingRule { points: vec!["a".into(); 65], ..rule() }, MarkingRuleError::Points(65)),
            (3, MarkingRule { pairs: vec![], ..rule() }, MarkingRuleError::Pairs),
            (4, MarkingRule { pairs: pair(1, 1), ..rule() }, MarkingRuleError::Pairs),
            (5, MarkingRule { pairs: pair(0, 2), ..rule() }, MarkingRuleError::Pairs),
            (6, MarkingRule { block: short, ..rule() }, MarkingRuleError::Block(short)),
            (7, MarkingRule { block: long, ..rule() }, MarkingRuleError::Block(long)),
            (8, MarkingRule { period: long, ..rule() }, MarkingRuleError::Block(rule().block)),
        ];
        for (row, rule, why) in table {
            assert_eq!(rule.check(), Err(why), "row {row}");
            assert!(!why.to_string().is_empty(), "row {row}");
        }
    }

    #[test]
    fn the_least_and_the_most_of_each_are_allowed_and_nothing_beyond() {
        let (least, hour, day) = (10_000_000, 3_600_000_000_000, 86_400_000_000_000);
        for (block, period, is_rule) in [
            (least, 1, true),
            (least - 1, 1, false),
            (hour, day, true),
            (hour + 1, day, false),
            (hour, day + 1, false),
            (hour, 0, false),
        ] {
            let rule = MarkingRule { block: Span(block), period: Span(period), ..rule() };
            let want = if is_rule { Ok(()) } else { Err(MarkingRuleError::Block(Span(block))) };
            assert_eq!(rule.check(), want, "blocks of {block} in {period}");
        }
        let most = MarkingRule { points: vec!["a".into(); 64], pairs: pair(63, 0), ..rule() };
        assert_eq!(most.check(), Ok(()));
        let half = MarkingRule { pairs: [pair(0, 1), pair(2, 1)].concat(), ..rule() };
        assert_eq!(half.check(), Err(MarkingRuleError::Pairs));
    }

    #[test]
    fn reasons_are_sentences() {
        for (why, text) in [
            (MarkingRuleError::Points(65), "a join has 2 to 64 points, not 65"),
            (
                MarkingRuleError::Pairs,
                "marked packets go from one point to another: name 'pairs' of two points each",
            ),
            (MarkingRuleError::Block(Span(5)), "blocks of 5 ns are no blocks"),
        ] {
            assert_eq!(why.to_string(), text);
        }
    }
}
