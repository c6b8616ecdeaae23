//! Things that happen later, taken out in order of time.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Nearly everything on a path is put in already sorted, so a ring takes it; only what comes out of
/// order (jitter, parallel links, answers) pays for a heap.
#[derive(Debug, Clone)]
pub(crate) struct TimeQueue<T> {
    ordered: VecDeque<(u64, T)>,
    late: BinaryHeap<Late<T>>,
    /// Keeps equal instants in the order in which they were put in.
    count: u64,
}

#[derive(Debug, Clone)]
struct Late<T> {
    at: u64,
    count: u64,
    item: T,
}

impl<T> PartialEq for Late<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<T> Eq for Late<T> {}
impl<T> PartialOrd for Late<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Late<T> {
    /// The earliest is the greatest, as the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.count).cmp(&(self.at, self.count))
    }
}

impl<T> TimeQueue<T> {
    pub(crate) fn new() -> Self {
        Self { ordered: VecDeque::new(), late: BinaryHeap::new(), count: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, at: u64, item: T) {
        if self.ordered.back().is_none_or(|(last, _)| *last <= at) {
            self.ordered.push_back((at, item));
        } else {
            self.count += 1;
            self.late.push(Late { at, count: self.count, item });
        }
    }

    /// All items, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.ordered.iter().map(|(_, item)| item).chain(self.late.iter().map(|late| &late.item))
    }

    /// The earliest instant; `u64::MAX` when empty.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        let ordered = self.ordered.front().map_or(u64::MAX, |(at, _)| *at);
        if self.late.is_empty() { ordered } else { ordered.min(self.late.peek().map_or(u64::MAX, |l| l.at)) }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        let ordered = self.ordered.front().map_or(u64::MAX, |(at, _)| *at);
        if self.late.peek().is_some_and(|late| late.at < ordered) {
            return self.late.pop().map(|late| (late.at, late.item));
        }
        self.ordered.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_order_of_input_the_output_is_sorted_and_stable() {
        let mut queue = TimeQueue::new();
        for (n, at) in [5, 9, 7, 7, 9, 1, 12].into_iter().enumerate() {
            queue.push(at, n);
        }
        let out: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(out, [(1, 5), (5, 0), (7, 2), (7, 3), (9, 1), (9, 4), (12, 6)]);
        assert_eq!(queue.head(), u64::MAX);
    }

    #[test]
    fn what_comes_late_for_an_instant_follows_in_its_order_what_was_there_already() {
        let mut queue = TimeQueue::new();
        queue.push(5, 0);
        queue.push(9, 1);
        (2..100).for_each(|n| queue.push(5, n));
        assert_eq!(queue.iter().count(), 100);
        let out: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|(_, n)| n).collect();
        let expected: Vec<u32> = [0].into_iter().chain(2..100).chain([1]).collect();
        assert_eq!(out, expected);
    }
}
