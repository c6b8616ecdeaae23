//! Who is waited for: a point that is behind, as long as it catches up.
//!
//! After an outage of the collector every probe sends what lay on its disk, hours perhaps. That is
//! late by the clock and still on its way, so it is waited for. A point that only stays behind (its
//! clock is wrong) or that has gone quiet is waited for no longer than the patience with reports.

/// How far behind one point is with its reports.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrivals {
    /// When it was heard last, by the collector's clock, ns.
    heard_at: Option<i64>,
    /// The last time that it was found to catch up (or not to be behind), and how far behind it was
    /// then.
    better: Option<(i64, i64)>,
}

impl Arrivals {
    /// It has reported at `now`, and so everything of it is here that was before `until`.
    pub(crate) fn heard(&mut self, now: i64, until: i64, patience: i64) {
        let behind = now.saturating_sub(until);
        let was_quiet = self.heard_at.is_none_or(|before| now.saturating_sub(before) > patience);
        let catches_up = self.better.is_none_or(|(at, then)| {
            // At half as fast again as time itself, or it would take too long.
            behind.saturating_add(now.saturating_sub(at) / 2) < then
        });
        if behind <= patience || was_quiet || catches_up {
            self.better = Some((now, behind));
        }
        self.heard_at = Some(now);
    }

    /// Whether what it has not reported on yet may come soon; `began` is when the join did.
    pub(crate) fn is_waited_for(&self, now: i64, began: i64, patience: i64) -> bool {
        let since = self.better.map_or(began, |(at, _)| at.max(began));
        now.saturating_sub(since) < patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: i64 = 15;

    #[test]
    fn one_that_catches_up_is_waited_for_and_one_that_stays_behind_is_not() {
        let (mut fast, mut slow) = (Arrivals::default(), Arrivals::default());
        for now in 0..100 {
            // A minute and more behind: three seconds in each, or one.
            fast.heard(now, now * 3 - 300, PATIENCE);
            slow.heard(now, now - 300, PATIENCE);
            assert!(fast.is_waited_for(now, 0, PATIENCE), "{now}");
            assert_eq!(slow.is_waited_for(now, 0, PATIENCE), now < PATIENCE, "{now}");
        }
    }

    #[test]
    fn one_that_is_quiet_is_waited_for_no_longer_than_patience() {
        let mut point = Arrivals::default();
        assert!(point.is_waited_for(114, 100, PATIENCE) && !point.is_waited_for(115, 100, PATIENCE));
        point.heard(200, 199, PATIENCE);
        assert!(point.is_waited_for(214, 100, PATIENCE) && !point.is_waited_for(215, 100, PATIENCE));
        // It is back, with what lay on its disk.
        point.heard(300, 201, PATIENCE);
        assert!(point.is_waited_for(314, 100, PATIENCE));
    }

    #[test]
    fn one_is_waited_for_since_it_caught_up_was_quiet_or_was_not_behind() {
        // When it reported and until when, and since when it is waited for then.
        for (reports, since) in [
            // 95 behind after 10: no better than 100 less half of the time; 94 is.
            ([(0, -100), (10, -85)], 0),
            ([(0, -100), (10, -84)], 10),
            // As far behind as it was, after as long as patience, and after more.
            ([(0, -100), (15, -85)], 0),
            ([(0, -100), (16, -84)], 16),
            // Behind by no more than patience, and by more.
            ([(0, -10), (10, -5)], 10),
            ([(0, -10), (10, -6)], 0),
        ] {
            let mut point = Arrivals::default();
            for (now, until) in reports {
                point.heard(now, until, PATIENCE);
            }
            let waited =
                [since + PATIENCE - 1, since + PATIENCE].map(|now| point.is_waited_for(now, -50, PATIENCE));
            assert_eq!(waited, [true, false], "{reports:?}");
            assert!(point.is_waited_for(64, 50, PATIENCE) && !point.is_waited_for(65, 50, PATIENCE));
        }
    }
}
