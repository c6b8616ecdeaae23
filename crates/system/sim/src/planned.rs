//! What an engine wants sent, by due time of its host's clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netaware_engine::Tag;
use netaware_units::{Mono, Span};

/// In the order of due times, those due together in the order of their planning.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    /// The number of the planning breaks ties. Everything else lies in `sends`, which keeps the
    /// heap's entries small.
    heap: BinaryHeap<Reverse<(Mono, u64, usize)>>,
    sends: Vec<Send>,
    free: Vec<usize>,
    next_order: u64,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
enum Send {
    Single { tag: Tag, bytes: Vec<u8> },
    Train { tag: Tag, left: u32, len: usize, gap: Span },
}

/// The send whose turn it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Its payload was written when it was planned.
    Single { due: Mono, tag: Tag, bytes: Vec<u8> },
    /// `Engine::fill` writes its payload.
    OfTrain { due: Mono, tag: Tag, len: usize },
}

impl Planned {
    /// One datagram.
    pub(crate) fn single(&mut self, due: Mono, tag: Tag, payload: &[u8]) {
        let mut bytes = self.buffer();
        bytes.extend_from_slice(payload);
        self.push(due, Send::Single { tag, bytes });
    }

    /// `count` datagrams, `gap` apart.
    pub(crate) fn train(&mut self, due: Mono, tag: Tag, count: u32, len: usize, gap: Span) {
        if count > 0 {
            self.push(due, Send::Train { tag, left: count, len, gap: gap.or_zero() });
        }
    }

    /// When the next one is due.
    pub(crate) fn next_due(&self) -> Option<Mono> {
        self.heap.peek().map(|Reverse((due, ..))| *due)
    }

    /// Takes the next one; the rest of its train stays, one gap later.
    pub(crate) fn pop(&mut self) -> Option<Turn> {
        let Reverse((due, order, at)) = self.heap.pop()?;
        let (tag, len) = match &mut self.sends[at] {
            Send::Single { tag, bytes } => {
                let (tag, bytes) = (*tag, std::mem::take(bytes));
                self.free.push(at);
                return Some(Turn::Single { due, tag, bytes });
            }
            Send::Train { tag, left, len, gap } => {
                let turn = (*tag, *len);
                (*tag, *left) = (tag.wrapping_add(1), *left - 1);
                if *left > 0 {
                    // With its old number: among those due together it stays where it was planned.
                    self.heap.push(Reverse((due + *gap, order, at)));
                } else {
                    self.free.push(at);
                }
                turn
            }
        };
        Some(Turn::OfTrain { due, tag, len })
    }

    /// An empty buffer, an old one if there is.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes
    }

    /// Gives a buffer back.
    pub(crate) fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(bytes);
        }
    }

    fn push(&mut self, due: Mono, send: Send) {
        let at = if let Some(at) = self.free.pop() {
            self.sends[at] = send;
            at
        } else {
            self.sends.push(send);
            self.sends.len() - 1
        };
        self.heap.push(Reverse((due, self.next_order, at)));
        self.next_order += 1;
    }
}

/// Buffers kept for use again.
const SPARE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn order(mut planned: Planned) -> Vec<(u64, Tag)> {
        std::iter::from_fn(|| planned.pop())
            .map(|turn| match turn {
                Turn::Single { due, tag, .. } | Turn::OfTrain { due, tag, .. } => (due.0, tag),
            })
            .collect()
    }

    #[test]
    fn sends_come_by_due_time_and_equals_as_planned() {
        let mut planned = Planned::default();
        for (due, tag) in [(30, 1), (10, 2), (30, 3)] {
            planned.single(Mono(due), tag, b"x");
        }
        assert_eq!(planned.next_due(), Some(Mono(10)));
        assert_eq!(order(planned), [(10, 2), (30, 1), (30, 3)]);
    }

    #[test]
    fn a_train_keeps_its_gaps_and_lets_others_between() {
        let mut planned = Planned::default();
        planned.train(Mono(100), 7, 3, 64, Span(10));
        planned.single(Mono(105), 1, b"");
        planned.train(Mono(0), 50, 0, 64, Span(10));
        assert_eq!(order(planned), [(100, 7), (105, 1), (110, 8), (120, 9)]);
    }

    #[test]
    fn a_train_without_gaps_stays_together() {
        let mut planned = Planned::default();
        planned.train(Mono(5), 1, 3, 64, Span::ZERO);
        planned.single(Mono(5), 9, b"");
        assert_eq!(order(planned), [(5, 1), (5, 2), (5, 3), (5, 9)]);
    }
}
