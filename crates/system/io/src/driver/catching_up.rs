//! How requests that are overdue are caught up with.
//!
//! After a hole (this program was stopped, its host suspended, or another one had the core) those
//! that are overdue would leave at once, and their round trips would tell of the queue that they
//! make. So one that is late leaves four fifths of the planned distance after the one before it, as
//! datagrams of a paced stream do.

use netaware_units::{Mono, Span};

/// What is known of the request before.
#[derive(Debug, Default)]
pub(super) struct CatchingUp {
    /// When the last one was due, whether or not it left.
    due: Option<Mono>,
    /// When the last one that was tried was.
    tried_at: Option<Mono>,
}

impl CatchingUp {
    /// When the next one may leave, which is due then.
    pub(super) fn turn(&self, due: Mono) -> Mono {
        let soonest = self.tried_at.zip(self.distance(due)).map(|(at, distance)| at + distance * 4 / 5);
        soonest.map_or(due, |soonest| due.max(soonest))
    }

    /// Whether it stays: too late to say anything of the time in which it was due.
    pub(super) fn is_over(due: Mono, now: Mono) -> bool {
        now.since(due) > OVERDUE
    }

    pub(super) fn stayed(&mut self, due: Mono) {
        self.due = Some(due);
    }

    pub(super) fn tried(&mut self, due: Mono, at: Mono) {
        (self.due, self.tried_at) = (Some(due), Some(at));
    }

    /// From the last one to this one, as planned.
    fn distance(&self, due: Mono) -> Option<Span> {
        self.due.map(|last| (due - last).or_zero())
    }
}

/// One that the host (suspended, stopped) comes round to so late would only distort what follows.
const OVERDUE: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Mono {
        Mono(10_000_000_000) + Span::from_millis(ms)
    }

    /// Sends 800 requests 10 ms apart by a host that comes round to them no sooner than `back_at`
    /// once it has been away; gives when each left.
    fn run(apart: i64, away_from: i64, back_at: i64) -> Vec<Option<i64>> {
        let mut catching_up = CatchingUp::default();
        let mut now = at(0);
        let one = |n: i64| {
            let due = at(n * apart);
            now = now.max(catching_up.turn(due));
            if now >= at(away_from) {
                now = now.max(at(back_at));
            }
            if CatchingUp::is_over(due, now) {
                catching_up.stayed(due);
                return None;
            }
            catching_up.tried(due, now);
            Some((now - at(0)).0 / 1_000_000)
        };
        (0..800).map(one).collect()
    }

    /// A program that was stopped for 3 s sent 100 requests at once: p95 of a path of 20.2 ms was
    /// 25.1 ms.
    #[test]
    fn requests_that_were_due_while_the_host_was_away_do_not_leave_in_a_burst() {
        let left = run(10, 3_000, 6_000);
        let stayed = left.iter().filter(|it| it.is_none()).count();
        assert_eq!((stayed, left[299], left[500]), (200, Some(2_990), Some(6_000)));
        let times: Vec<i64> = left.iter().flatten().copied().collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 8), "{times:?}");
        // Two milliseconds are gained with each.
        assert_eq!((left[600], left[799]), (Some(6_800), Some(8_392)));
        // What left by its plan, or nearly so, is left alone.
        assert!(run(10, 0, 0).iter().zip(0..).all(|(at, n)| *at == Some(n * 10)));
        assert_eq!(run(10, 3_000, 3_040).iter().flatten().count(), 800);
    }
}
