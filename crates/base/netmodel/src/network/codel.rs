//! CoDel's decision for one packet at the head of the queue, after RFC 8289 §5.
//!
//! We differ in one detail: the RFC's loop dequeues a further packet within the same call, we are
//! asked again for it, at the same instant; when the queue falls below target right after a drop,
//! the next drop time has then already been set, which only matters for how soon a later episode
//! resumes.

use super::pace::ps;
use crate::scenario::CoDel;

#[derive(Debug, Clone)]
pub(super) struct CoDelState {
    target: u64,
    interval: u64,
    max_packet: u64,
    first_above: Option<u64>,
    drop_next: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// For the packet at the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Send,
    Drop,
}

impl CoDelState {
    pub(super) fn new(codel: &CoDel, max_packet: u64) -> Self {
        Self {
            target: ps(codel.target),
            interval: ps(codel.interval),
            max_packet,
            first_above: None,
            drop_next: 0,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// `wait` is how long the packet waited, `behind` how many bytes wait behind it.
    pub(super) fn dequeue(&mut self, now: u64, wait: u64, behind: u64) -> Verdict {
        let may_drop = self.may_drop(now, wait, behind);
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            } else if now >= self.drop_next {
                self.count += 1;
                self.drop_next = self.control_law(self.drop_next);
                return Verdict::Drop;
            }
            return Verdict::Send;
        }
        if !may_drop {
            return Verdict::Send;
        }
        self.dropping = true;
        let delta = self.count - self.last_count;
        let recent = now.saturating_sub(self.drop_next) < 16 * self.interval;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
        Verdict::Drop
    }

    fn may_drop(&mut self, now: u64, wait: u64, behind: u64) -> bool {
        if wait < self.target || behind <= self.max_packet {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.interval);
                false
            }
            Some(at) => now >= at,
        }
    }

    fn control_law(&self, from: u64) -> u64 {
        from + (self.interval as f64 / f64::from(self.count).sqrt()) as u64
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;

    const MS: u64 = 1_000_000_000;

    fn codel() -> CoDelState {
        CoDelState::new(&CoDel { target: Span::from_millis(5), interval: Span::from_millis(100) }, 1500)
    }

    /// The packet at the head has waited for just as long as the target, and more than one waits
    /// behind it.
    fn above(codel: &mut CoDelState, at: u64) -> Verdict {
        codel.dequeue(at, 5 * MS, 1501)
    }

    /// Four packets dropped within one episode, which is then over.
    fn after_an_episode() -> CoDelState {
        let mut codel = codel();
        for (ms, verdict) in [
            (0, Verdict::Send),
            (99, Verdict::Send),
            (100, Verdict::Drop),
            (100, Verdict::Send),
            (199, Verdict::Send),
            (200, Verdict::Drop),
            (200, Verdict::Send),
            // 100 ms over the square roots of 2 and 3 later.
            (270, Verdict::Send),
            (271, Verdict::Drop),
            (328, Verdict::Send),
            (329, Verdict::Drop),
        ] {
            assert_eq!(above(&mut codel, ms * MS), verdict, "at {ms} ms");
        }
        assert_eq!(codel.dequeue(330 * MS, 5 * MS - 1, 1501), Verdict::Send);
        codel
    }

    #[test]
    fn drops_follow_each_other_ever_sooner_and_a_new_episode_resumes_where_the_last_one_was() {
        let mut codel = after_an_episode();
        // As if its first drop were the third: 100 ms over the square root of 3 from it to the
        // next.
        for (ms, verdict) in [
            (340, Verdict::Send),
            (439, Verdict::Send),
            (440, Verdict::Drop),
            (497, Verdict::Send),
            (498, Verdict::Drop),
        ] {
            assert_eq!(above(&mut codel, ms * MS), verdict, "at {ms} ms");
        }
    }

    #[test]
    fn an_episode_sixteen_intervals_later_begins_from_one() {
        let drops_after = |pause: u64| {
            let mut codel = after_an_episode();
            let at = codel.drop_next + pause;
            assert_eq!(above(&mut codel, at - 100 * MS), Verdict::Send);
            assert_eq!(above(&mut codel, at), Verdict::Drop);
            codel.count
        };
        assert_eq!((drops_after(1600 * MS - 1), drops_after(1600 * MS)), (3, 1));
    }

    #[test]
    fn a_queue_of_a_single_packet_ends_what_was_above_the_target() {
        let mut codel = codel();
        assert_eq!(above(&mut codel, 0), Verdict::Send);
        assert_eq!(codel.dequeue(50 * MS, 5 * MS, 1500), Verdict::Send);
        assert_eq!(above(&mut codel, 100 * MS), Verdict::Send);
        assert_eq!(above(&mut codel, 199 * MS), Verdict::Send);
        assert_eq!(above(&mut codel, 200 * MS), Verdict::Drop);
    }
}
