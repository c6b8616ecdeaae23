//! When each point was watching: without that, a packet that was not seen says nothing.

/// Spans of time, ns, that do not touch each other, in order; an end is not in its span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spans(Vec<(i64, i64)>);

impl Spans {
    /// All of them.
    pub(crate) fn as_slice(&self) -> &[(i64, i64)] {
        &self.0
    }

    /// Adds a span; what touches or overlaps becomes one. Nothing for one that ends before it
    /// begins.
    pub(crate) fn add(&mut self, from: i64, until: i64) {
        if from >= until {
            return;
        }
        // The first that ends at or after `from`, and the first that begins after `until`.
        let first = self.0.partition_point(|span| span.1 < from);
        let behind = self.0.partition_point(|span| span.0 <= until);
        let touched = &self.0[first..behind];
        let from = touched.first().map_or(from, |span| span.0.min(from));
        let until = touched.last().map_or(until, |span| span.1.max(until));
        self.0.splice(first..behind, [(from, until)]);
    }

    /// Whether all of `from..until` is in one of them.
    pub(crate) fn cover(&self, from: i64, until: i64) -> bool {
        let at = self.0.partition_point(|span| span.1 < until);
        self.0.get(at).is_some_and(|span| span.0 <= from && until <= span.1)
    }

    /// End of the span that `at` is in or at the end of.
    pub(crate) fn end_around(&self, at: i64) -> Option<i64> {
        let place = self.0.partition_point(|span| span.1 < at);
        self.0.get(place).filter(|span| span.0 <= at).map(|span| span.1)
    }

    /// End of the first.
    pub(crate) fn first_end(&self) -> Option<i64> {
        self.0.first().map(|span| span.1)
    }

    /// Forgets what ended before `at`.
    pub(crate) fn forget_before(&mut self, at: i64) {
        let gone = self.0.partition_point(|span| span.1 < at);
        self.0.drain(..gone);
    }
}

/// What is known of one point's watching.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watching {
    /// Times that it reported on.
    reported: Spans,
    /// Those of them in which it lost nothing.
    complete: Spans,
}

impl Watching {
    /// It reported on this time, having lost so many packets in it.
    pub(crate) fn add(&mut self, from: i64, until: i64, lost: u64) {
        self.reported.add(from, until);
        if lost == 0 {
            self.complete.add(from, until);
        }
    }

    /// Whether it would have seen every packet of that time.
    pub(crate) fn would_have_seen(&self, from: i64, until: i64) -> bool {
        self.complete.cover(from, until)
    }

    /// Up to when everything has come from it that will come, if that is so up to `settled`.
    pub(crate) fn reported_until(&self, settled: Option<i64>) -> Option<i64> {
        match settled {
            None => self.reported.first_end(),
            Some(settled) => self.reported.end_around(settled).or(Some(settled)),
        }
    }

    /// Times that it reported on, and those in which it lost nothing.
    pub(crate) fn spans(&self) -> [&[(i64, i64)]; 2] {
        [self.reported.as_slice(), self.complete.as_slice()]
    }

    /// Forgets what ended before `at`.
    pub(crate) fn forget_before(&mut self, at: i64) {
        self.reported.forget_before(at);
        self.complete.forget_before(at);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_become_one_and_gaps_stay() {
        let mut spans = Spans::default();
        for (from, until) in [(0, 10), (20, 30), (10, 15), (40, 41), (14, 20), (5, 5)] {
            spans.add(from, until);
        }
        assert_eq!(spans, Spans(vec![(0, 30), (40, 41)]));
        assert!(spans.cover(3, 30) && !spans.cover(3, 31) && !spans.cover(29, 41));
        assert_eq!((spans.end_around(30), spans.end_around(31)), (Some(30), None));
    }

    #[test]
    fn a_time_with_losses_is_reported_but_says_nothing() {
        let mut watching = Watching::default();
        watching.add(0, 10, 0);
        watching.add(10, 20, 1);
        watching.add(20, 30, 0);
        assert!(watching.would_have_seen(2, 10) && !watching.would_have_seen(9, 11));
        assert_eq!(watching.reported_until(None), Some(30));
        assert_eq!(watching.reported_until(Some(35)), Some(35));
    }

    proptest! {
        #[test]
        fn spans_equal_a_set_of_instants(added in prop::collection::vec((0_i64..60, 0_i64..20), 0..12),
                                         asked in (0_i64..60, 1_i64..20)) {
            let mut spans = Spans::default();
            let mut instants = [false; 100];
            for (from, length) in added {
                spans.add(from, from + length);
                instants[from as usize..(from + length) as usize].fill(true);
            }
            let (from, until) = (asked.0, asked.0 + asked.1);
            let all = instants[from as usize..until as usize].iter().all(|seen| *seen);
            prop_assert_eq!(spans.cover(from, until), all);
            prop_assert!(spans.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }

    #[test]
    fn what_ended_before_is_forgotten_and_edges_belong_to_their_spans() {
        let mut watching = Watching::default();
        for (from, until, lost) in [(0, 10, 0), (10, 20, 1), (20, 30, 0), (50, 60, 0)] {
            watching.add(from, until, lost);
        }
        assert_eq!(watching.spans(), [&[(0, 30), (50, 60)][..], &[(0, 10), (20, 30), (50, 60)]]);
        let reported = &watching.reported;
        assert_eq!(
            [-1, 0, 30, 31, 50].map(|at| reported.end_around(at)),
            [None, Some(30), Some(30), None, Some(60)]
        );
        assert!(reported.cover(0, 30) && !reported.cover(-1, 30) && !reported.cover(0, 31));
        assert_eq!(watching.reported_until(Some(15)), Some(30));
        watching.forget_before(10);
        assert_eq!(watching.spans(), [&[(0, 30), (50, 60)][..], &[(0, 10), (20, 30), (50, 60)]]);
        watching.forget_before(11);
        assert_eq!(watching.spans(), [&[(0, 30), (50, 60)][..], &[(20, 30), (50, 60)]]);
        watching.forget_before(31);
        assert_eq!(watching.spans(), [&[(50, 60)][..], &[(50, 60)]]);
        assert_eq!(watching.reported_until(None), Some(60));
    }
}
