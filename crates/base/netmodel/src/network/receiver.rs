//! The receiving host's network card: hands packets over at once, or in batches.

use super::pace::ps;
use super::time_queue::TimeQueue;
use crate::scenario::Coalescing;

/// Interrupt coalescing at one host.
#[derive(Debug, Clone)]
pub(super) struct Receiver {
    period: u64,
    limit: usize,
    per_packet: u64,
    inbox: TimeQueue<u32>,
    batch: Vec<u32>,
    deadline: u64,
    /// When the host is done with the packets handed over so far.
    ready: u64,
}

impl Receiver {
    pub(super) fn new(coalescing: &Coalescing) -> Self {
        let limit = if coalescing.batch == 0 { usize::MAX } else { coalescing.batch as usize };
        Self {
            period: ps(coalescing.period),
            limit,
            per_packet: ps(coalescing.per_packet),
            inbox: TimeQueue::new(),
            batch: Vec::new(),
            deadline: u64::MAX,
            ready: 0,
        }
    }

    pub(super) fn push(&mut self, at: u64, slot: u32) {
        self.inbox.push(at, slot);
    }

    /// When there is something to do; `u64::MAX` for never.
    pub(super) fn wake(&self) -> u64 {
        self.inbox.head().min(self.deadline)
    }

    /// Hands over what is due up to `until`.
    pub(super) fn run(&mut self, until: u64, mut hand_over: impl FnMut(u64, u32)) {
        while self.wake() <= until {
            if self.deadline <= self.inbox.head() {
                self.interrupt(self.deadline, &mut hand_over);
                continue;
            }
            let Some((at, slot)) = self.inbox.pop() else { return };
            if self.batch.is_empty() {
                self.deadline = at + self.period;
            }
            self.batch.push(slot);
            if self.batch.len() >= self.limit {
                self.interrupt(at, &mut hand_over);
            }
        }
    }

    fn interrupt(&mut self, at: u64, hand_over: &mut impl FnMut(u64, u32)) {
        for slot in self.batch.drain(..) {
            let at = at.max(self.ready);
            self.ready = at + self.per_packet;
            hand_over(at, slot);
        }
        self.deadline = u64::MAX;
    }
}
