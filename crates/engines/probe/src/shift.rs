//! Whether the round trip of a path rose or fell in the midst of a measurement, and stayed so.
//!
//! **Measures** the smallest round trips of phases that follow each other, and finds the moment
//! since when each of them is far above, or far below, each before. **Assumes** that every phase
//! has met the path without a queue of our own once, as a transfer does that begins on a drained
//! path: what a load adds is gone from the smallest round trip of the next phase. **Biased**
//! towards no change: one phase that saw the old round trip again hides it, and so does a change in
//! the last phase. Other traffic that fills a queue for all of the rest looks the same as a longer
//! route, and a radio link that wakes up the same as a shorter one.

use netaware_units::Span;

/// A round trip that rose or fell, and stayed so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shift {
    /// The median of the phases before.
    pub before: Span,
    /// The median of the phases after.
    pub after: Span,
    /// The first phase after.
    pub from: usize,
}

/// What separates the smallest round trips of phases, in the order run; `None` where there is no
/// moment from which all are far from all before.
pub fn shift(least: &[Span]) -> Option<Shift> {
    let splits = (1..least.len()).filter_map(|from| {
        let (before, after) = least.split_at(from);
        let by = rise(before, after).or_else(|| rise(after, before).filter(|_| before.len() >= MIN_PHASES));
        let by = by.filter(|_| after.len() >= MIN_PHASES)?;
        Some((by, Shift { before: median(before)?, after: median(after)?, from }))
    });
    splits.max_by_key(|(by, _)| *by).map(|(_, shift)| shift)
}

/// By how much all of the one are above all of the others, where that is far.
fn rise(low: &[Span], high: &[Span]) -> Option<Span> {
    let (highest, lowest) = (low.iter().copied().max()?, high.iter().copied().min()?);
    is_far_above(lowest, highest).then(|| lowest - highest)
}

/// Whether the smallest round trip of one phase is so far above that of another one that the path
/// must have changed.
pub fn is_far_above(later: Span, before: Span) -> bool {
    later - before >= WORTH_SAYING.max(before * 3 / 10)
}

fn median(spans: &[Span]) -> Option<Span> {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// One phase may have met a queue that was not ours for all of its time.
const MIN_PHASES: usize = 2;
/// Round trips of radio links differ by less from phase to phase, and busy hosts add less.
const WORTH_SAYING: Span = Span::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ms: &[i64]) -> Option<Shift> {
        shift(&ms.iter().copied().map(Span::from_millis).collect::<Vec<_>>())
    }

    /// 20 ms before and 90 ms after, with a queue of 10 ms.
    #[test]
    fn a_route_that_became_longer_is_no_queue_of_the_load() {
        let want = Shift { before: Span::from_millis(20), after: Span::from_millis(90), from: 4 };
        assert_eq!(of(&[20, 20, 21, 20, 90, 91, 90, 90]), Some(want));
        assert_eq!(of(&[20, 20, 90, 90]).map(|it| it.from), Some(2));
    }

    #[test]
    fn a_route_that_became_shorter_is_told_as_well() {
        let want = Shift { before: Span::from_millis(120), after: Span::from_millis(40), from: 3 };
        assert_eq!(of(&[120, 121, 120, 41, 40, 40]), Some(want));
    }

    #[test]
    fn a_queue_that_drains_after_its_load_is_no_longer_route() {
        assert_eq!(of(&[20, 20, 1500, 20, 1500, 20]), None);
        assert_eq!(of(&[20, 20, 20, 1500]), None, "the last phase alone");
        assert_eq!(of(&[20, 90, 90, 20, 20]), None, "it came back");
        assert_eq!(of(&[90, 20, 20, 20]), None, "the first phase alone met a queue");
    }

    #[test]
    fn what_wireless_links_and_busy_hosts_add_is_no_longer_route() {
        assert_eq!(of(&[41, 42, 41, 49, 50, 49]), None);
        assert_eq!(of(&[1, 1, 6, 7, 6]), None);
        assert_eq!([of(&[]), of(&[20])], [None, None]);
    }
}
