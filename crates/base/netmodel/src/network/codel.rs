//! CoDel's decision for one packet at the head of the queue, after RFC 8289 §5.
//!
//! We differ in one detail: the RFC's loop dequeues a further packet within the same call, we are asked again for it,
//! at the same instant; when the queue falls below target right after a drop, the next drop time has then already been
//! set, which only matters for how soon a later episode resumes.

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
