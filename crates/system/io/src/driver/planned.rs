//! What the engine wants sent, by due time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netaware_engine::Tag;
use netaware_units::{Mono, Span};

/// Sends in the order of their due times, those due together in the order of their planning.
#[derive(Debug, Default)]
pub(super) struct Planned {
    heap: BinaryHeap<Reverse<Entry>>,
    /// How many were ever planned: the order among equals.
    next_order: u64,
    /// Buffers of sends that are over, so that a steady stream allocates nothing.
    spare: Vec<Vec<u8>>,
}

/// The send whose turn it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Send {
    /// Its payload was written when it was planned.
    Single { tag: Tag, bytes: Vec<u8> },
    /// Its payload is written by `Engine::fill`.
    OfTrain { tag: Tag, len: usize },
}

#[derive(Debug)]
struct Entry {
    due: Mono,
    order: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    Single { tag: Tag, bytes: Vec<u8> },
    Train { tag: Tag, left: u32, len: usize, gap: Span },
}

impl Planned {
    /// One datagram.
    pub(super) fn single(&mut self, due: Mono, tag: Tag, payload: &[u8]) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        self.push(due, What::Single { tag, bytes });
    }

    /// `count` datagrams, `gap` apart.
    pub(super) fn train(&mut self, due: Mono, tag: Tag, count: u32, len: usize, gap: Span) {
        if count > 0 {
            self.push(due, What::Train { tag, left: count, len, gap });
        }
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Mono> {
        self.heap.peek().map(|Reverse(entry)| entry.due)
    }

    /// Whether that one belongs to no train.
    pub(super) fn next_is_single(&self) -> bool {
        self.heap.peek().is_some_and(|Reverse(entry)| matches!(entry.what, What::Single { .. }))
    }

    /// Takes the next one; the rest of its train stays, one gap later.
    pub(super) fn pop(&mut self) -> Option<Send> {
        let Reverse(Entry { due, order, what }) = self.heap.pop()?;
        Some(match what {
            What::Single { tag, bytes } => Send::Single { tag, bytes },
            What::Train { tag, left, len, gap } => {
                if left > 1 {
                    let what = What::Train { tag: tag.wrapping_add(1), left: left - 1, len, gap };
                    self.heap.push(Reverse(Entry { due: due + gap, order, what }));
                }
                Send::OfTrain { tag, len }
            }
        })
    }

    /// Gives a buffer back.
    pub(super) fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(bytes);
        }
    }

    fn push(&mut self, due: Mono, what: What) {
        self.heap.push(Reverse(Entry { due, order: self.next_order, what }));
        self.next_order += 1;
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

/// Buffers kept; engines plan a few probes ahead, not many.
const SPARE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(mut planned: Planned) -> Vec<(u64, Tag)> {
        let mut order = Vec::new();
        while let Some(due) = planned.next_due() {
            let tag = match planned.pop().unwrap() {
                Send::Single { tag, .. } | Send::OfTrain { tag, .. } => tag,
            };
            order.push((due.0, tag));
        }
        order
    }

    #[test]
    fn sends_come_by_due_time_and_equals_as_planned() {
        let mut planned = Planned::default();
        planned.single(Mono(30), 1, b"a");
        planned.single(Mono(10), 2, b"b");
        planned.single(Mono(30), 3, b"c");
        assert_eq!(tags(planned), [(10, 2), (30, 1), (30, 3)]);
    }

    #[test]
    fn a_train_keeps_its_gaps_and_lets_others_between() {
        let mut planned = Planned::default();
        planned.train(Mono(100), 7, 3, 64, Span(10));
        planned.single(Mono(105), 1, b"");
        planned.train(Mono(0), 50, 0, 64, Span(10));
        assert_eq!(tags(planned), [(100, 7), (105, 1), (110, 8), (120, 9)]);
    }

    #[test]
    fn a_train_without_gaps_stays_together() {
        let mut planned = Planned::default();
        planned.train(Mono(5), 1, 3, 64, Span::ZERO);
        planned.single(Mono(5), 9, b"");
        assert_eq!(tags(planned), [(5, 1), (5, 2), (5, 3), (5, 9)]);
    }
}
