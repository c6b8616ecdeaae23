//! The bytes of datagrams that are on their way.

use std::collections::VecDeque;

use netaware_engine::Tag;
use netaware_netmodel::Side;
use netaware_units::{Mono, Span};

/// Datagrams by their number in the network, which counts up.
///
/// Where the path makes copies, the bytes of one whose fate is told stay for a while, because a
/// copy may come after it.
#[derive(Debug)]
pub(crate) struct UnderWay {
    entries: VecDeque<Entry>,
    /// Number of the first entry.
    first: u64,
    makes_copies: bool,
    spare: Vec<Vec<u8>>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) from: Side,
    pub(crate) tag: Tag,
    pub(crate) bytes: Vec<u8>,
    settled_at: Option<Mono>,
}

impl UnderWay {
    /// `first` is the number of the next datagram.
    pub(crate) fn new(first: u64, makes_copies: bool) -> Self {
        Self { entries: VecDeque::new(), first, makes_copies, spare: Vec::new() }
    }

    /// Takes the next number for it.
    pub(crate) fn push(&mut self, from: Side, tag: Tag, bytes: Vec<u8>) -> u64 {
        self.entries.push_back(Entry { from, tag, bytes, settled_at: None });
        self.next() - 1
    }

    /// The number that the next one gets.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// `None` for one of an earlier run, or one that is forgotten.
    pub(crate) fn get(&mut self, id: u64) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    /// Its fate is told.
    pub(crate) fn settle(&mut self, id: u64, now: Mono) {
        let makes_copies = self.makes_copies;
        let Some(entry) = self.get(id) else { return };
        entry.settled_at = Some(now);
        if !makes_copies {
            let bytes = std::mem::take(&mut entry.bytes);
            if self.spare.len() < SPARE {
                self.spare.push(bytes);
            }
        }
        self.forget(now);
    }

    /// A buffer to use again.
    pub(crate) fn spare(&mut self) -> Option<Vec<u8>> {
        self.spare.pop()
    }

    fn forget(&mut self, now: Mono) {
        let linger = if self.makes_copies { LINGER } else { Span::ZERO };
        while self.entries.front().and_then(|entry| entry.settled_at).is_some_and(|at| at + linger <= now) {
            self.entries.pop_front();
            self.first += 1;
        }
    }
}

/// A copy that comes later than this after its original finds nothing and is left out.
const LINGER: Span = Span::from_secs(10);
/// Buffers kept for use again.
const SPARE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_for_copies_only_where_there_are_any() {
        for makes_copies in [false, true] {
            let mut under_way = UnderWay::new(5, makes_copies);
            assert_eq!(under_way.push(Side::A, 0, vec![1]), 5);
            assert_eq!(under_way.push(Side::B, 1, vec![2]), 6);
            under_way.settle(6, Mono(0));
            assert_eq!(under_way.get(6).map(|entry| entry.bytes.len()), Some(usize::from(makes_copies)));
            under_way.settle(5, Mono(0) + LINGER);
            assert_eq!(under_way.get(6).is_some(), makes_copies);
            assert_eq!(under_way.push(Side::A, 2, vec![3]), 7);
            under_way.settle(7, Mono(0) + LINGER * 2);
            assert!(under_way.get(5).is_none() && under_way.get(6).is_none() && under_way.get(4).is_none());
            assert_eq!(under_way.next(), 8);
        }
    }
}
