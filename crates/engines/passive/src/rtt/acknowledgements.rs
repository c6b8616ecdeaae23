//! Round trips by TCP acknowledgements.

use std::collections::VecDeque;

use netaware_units::{Span, Wall};

/// Of one direction: segments that wait for their acknowledgement.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// End of what was sent.
    highest: Option<u32>,
    /// Ends of segments that were sent once, ascending.
    waiting: VecDeque<(u32, Wall)>,
}

impl Segments {
    /// `length` numbers from `sequence` on went out. What was sent before is sent again: nothing
    /// from there on is timed any more (Karn), for its acknowledgement may be for either, or have
    /// waited for the hole to be filled.
    #[inline]
    pub(super) fn sent(&mut self, sequence: u32, length: u32, at: Wall) {
        if length == 0 {
            return;
        }
        let end = sequence.wrapping_add(length);
        let again = self.highest.is_some_and(|highest| before(sequence, highest));
        if again {
            while self.waiting.back().is_some_and(|(last, _)| before(sequence, *last)) {
                self.waiting.pop_back();
            }
        } else if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back((end, at));
        }
        if self.highest.is_none_or(|highest| before(highest, end)) {
            self.highest = Some(end);
        }
    }

    /// Everything before `number` has come: the round trip of the segment that ends there. One that
    /// ends between two segments tells nothing exact.
    #[inline]
    pub(super) fn acknowledged(&mut self, number: u32, at: Wall) -> Option<Span> {
        let mut found = None;
        while let Some((end, sent_at)) = self.waiting.front().copied() {
            if before(number, end) {
                break;
            }
            self.waiting.pop_front();
            found = (end == number).then(|| at.since(sent_at));
        }
        found
    }
}

/// In serial arithmetic (RFC 9293 §3.4).
fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// 740 KiB of full segments; of what is under way beyond that only a part is timed.
const MOST_WAITING: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delayed_acknowledgement_is_for_the_last_segment_it_covers() {
        let mut segments = Segments::default();
        segments.sent(0, 100, Wall(0));
        segments.sent(100, 100, Wall(40));
        assert_eq!(segments.acknowledged(200, Wall(70)), Some(Span(30)));
        assert_eq!(segments.acknowledged(200, Wall(90)), None);
    }

    #[test]
    fn what_was_retransmitted_is_not_timed_nor_what_waited_behind_it() {
        let mut segments = Segments::default();
        for n in 0..4 {
            segments.sent(n * 100, 100, Wall(n.into()));
        }
        assert_eq!(segments.acknowledged(100, Wall(50)), Some(Span(50)));
        segments.sent(100, 100, Wall(60));
        assert_eq!(segments.acknowledged(400, Wall(90)), None);
        segments.sent(400, 100, Wall(100));
        assert_eq!(segments.acknowledged(500, Wall(150)), Some(Span(50)));
    }

    #[test]
    fn a_hole_before_this_point_is_filled_by_a_retransmission_that_voids_what_came_between() {
        let mut segments = Segments::default();
        segments.sent(0, 100, Wall(0));
        segments.sent(200, 100, Wall(1));
        assert_eq!(segments.acknowledged(100, Wall(10)), Some(Span(10)));
        segments.sent(100, 100, Wall(20));
        assert_eq!(segments.acknowledged(300, Wall(30)), None);
    }

    #[test]
    fn numbers_wrap_and_acknowledgements_between_segments_tell_nothing() {
        let mut segments = Segments::default();
        segments.sent(u32::MAX - 49, 100, Wall(0));
        segments.sent(50, 100, Wall(5));
        assert_eq!(segments.acknowledged(50, Wall(20)), Some(Span(20)));
        assert_eq!(segments.acknowledged(60, Wall(21)), None);
        assert_eq!(segments.acknowledged(150, Wall(25)), Some(Span(20)));
        segments.sent(150, 100, Wall(30));
        assert_eq!(segments.acknowledged(1000, Wall(40)), None, "beyond what was sent");
    }

    #[test]
    fn what_nobody_acknowledges_has_a_bound() {
        let mut segments = Segments::default();
        for n in 0..10_000 {
            segments.sent(n * 10, 10, Wall(n.into()));
        }
        assert_eq!(segments.waiting.len(), MOST_WAITING);
    }
}
