//! Where a message stands by its sequence number: next, after a gap, late, come twice, or counted
//! anew.
//!
//! Assumes that an exporter's export times do not run backwards. A message whose number lies behind
//! is one of four things: a copy of one of the last 64 (the same number, time, length and last
//! bytes), one that was missing, an older one that somebody sends again (an earlier export time),
//! or the first after the exporter began anew. Leans towards using a message: exporters that count
//! messages instead of records, against RFC 7011 §3.1, seem to begin anew all the time and are read
//! all the same. Some (softflowd) put the number after a message's records into it: a gap that this
//! explains is none.

use std::collections::VecDeque;

use crate::ipfix::message::Header;

/// Copies are looked for among so many.
const RECENT: usize = 64;
/// Gaps that can still be filled.
const GAPS: usize = 16;
/// A greater step is no loss: the exporter began to count elsewhere.
const GREATEST_GAP: u32 = 1 << 20;

/// What to make of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// As expected, or nothing was.
    Next,
    /// So many records are missing before it.
    AfterGap(u32),
    /// Fills a gap.
    Late,
    /// Had come.
    Duplicate,
    /// Is from the past.
    Replay,
    /// Another count begins.
    Anew,
}

/// One domain's numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Sequence {
    /// Number that the next message should have; `None`: not known.
    expected: Option<u32>,
    /// That of the last message.
    last: u32,
    newest_export: u32,
    recent: VecDeque<Trace>,
    /// First number and how many.
    gaps: VecDeque<(u32, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trace {
    sequence: u32,
    exported_at: u32,
    length: u16,
    end: [u8; 16],
}

impl Trace {
    fn of(head: &Header, message: &[u8]) -> Self {
        let end = *message.last_chunk().unwrap_or(&[0; 16]);
        Self { sequence: head.sequence, exported_at: head.exported_at, length: head.length, end }
    }
}

impl Sequence {
    /// Judges a message; a duplicate or a replay changes nothing.
    pub(super) fn judge(&mut self, head: &Header, message: &[u8]) -> Standing {
        let trace = Trace::of(head, message);
        let ahead = self.expected.map_or(0, |expected| head.sequence.wrapping_sub(expected));
        let standing = match ahead {
            0 => Standing::Next,
            1..GREATEST_GAP => Standing::AfterGap(ahead),
            _ if self.recent.contains(&trace) => Standing::Duplicate,
            _ if self.gap(head.sequence).is_some() => Standing::Late,
            _ if head.exported_at < self.newest_export => Standing::Replay,
            _ => Standing::Anew,
        };
        if !matches!(standing, Standing::Duplicate | Standing::Replay) {
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(trace);
        }
        standing
    }

    /// Takes note of a message that was used and of its records; gives how many were thought
    /// missing and are not.
    pub(super) fn advance(
        &mut self,
        standing: Standing,
        head: &Header,
        records: u32,
        all_known: bool,
    ) -> u64 {
        let mut found = 0;
        match standing {
            Standing::Late => return self.fill(head.sequence, records),
            Standing::AfterGap(missing) if head.sequence.wrapping_sub(self.last) == records => {
                found = u64::from(missing);
            }
            Standing::AfterGap(missing) => {
                if self.gaps.len() == GAPS {
                    self.gaps.pop_front();
                }
                self.gaps.push_back((head.sequence.wrapping_sub(missing), missing));
            }
            Standing::Anew => self.gaps.clear(),
            _ => {}
        }
        self.newest_export = match standing {
            Standing::Anew => head.exported_at,
            _ => self.newest_export.max(head.exported_at),
        };
        self.last = head.sequence;
        self.expected = all_known.then(|| head.sequence.wrapping_add(records));
        found
    }

    fn gap(&self, sequence: u32) -> Option<usize> {
        self.gaps.iter().position(|(first, count)| sequence.wrapping_sub(*first) < *count)
    }

    fn fill(&mut self, sequence: u32, records: u32) -> u64 {
        let Some((first, count)) = self.gap(sequence).and_then(|index| self.gaps.remove(index)) else {
            return 0;
        };
        let before = sequence.wrapping_sub(first);
        let filled = records.min(count - before);
        let after = count - before - filled;
        for gap in [(first, before), (sequence.wrapping_add(filled), after)] {
            if gap.1 > 0 && self.gaps.len() < GAPS {
                self.gaps.push_back(gap);
            }
        }
        u64::from(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of two records each, told apart by their number.
    fn run(messages: &[(u32, u32)]) -> (Vec<Standing>, u64) {
        let mut sequence = Sequence::default();
        let mut missing = 0;
        let mut standings = Vec::new();
        for &(number, exported_at) in messages {
            let head = Header { length: 20, exported_at, sequence: number, domain: 0 };
            let standing = sequence.judge(&head, &head.emit());
            if let Standing::AfterGap(gap) = standing {
                missing += u64::from(gap);
            }
            if !matches!(standing, Standing::Duplicate | Standing::Replay) {
                missing -= sequence.advance(standing, &head, 2, true);
            }
            standings.push(standing);
        }
        (standings, missing)
    }

    #[test]
    fn gaps_are_counted_and_filled_by_what_comes_late() {
        use Standing::{AfterGap, Late, Next};
        assert_eq!(run(&[(0, 1), (8, 1), (4, 1), (10, 1)]), (vec![Next, AfterGap(6), Late, Next], 4));
        assert_eq!(run(&[(0, 1), (8, 1), (4, 1), (6, 1), (2, 1)]).1, 0);
    }

    #[test]
    fn what_fills_a_gap_leaves_open_what_is_before_and_behind_it_and_no_more() {
        use Standing::{AfterGap, Late, Next, Replay};
        // Numbers 2 to 7 are missing. Message 4 brings 4 and 5, so 2, 3, 6 and 7 stay open. A
        // message that is sent again carries an earlier time.
        let (standings, missing) =
            run(&[(0, 5), (8, 5), (4, 5), (4, 4), (5, 4), (8, 4), (9, 4), (3, 5), (7, 5), (2, 5)]);
        let want = [Next, AfterGap(6), Late, Replay, Replay, Replay, Replay, Late, Late, Late];
        assert_eq!(standings, want);
        // Each of the last three fills one place, though it has two records. Number 6 never came.
        assert_eq!(missing, 1);
    }

    #[test]
    fn the_number_wraps_without_a_gap() {
        assert_eq!(run(&[(u32::MAX - 1, 1), (0, 1), (3, 1)]).0[1..], [Standing::Next, Standing::AfterGap(1)]);
    }

    #[test]
    fn copies_and_old_messages_are_not_used() {
        use Standing::{Anew, Duplicate, Next, Replay};
        assert_eq!(run(&[(0, 5), (2, 5), (2, 5), (0, 4)]).0, [Next, Next, Duplicate, Replay]);
        assert_eq!(run(&[(100, 5), (102, 5), (0, 6), (2, 6)]), (vec![Next, Next, Anew, Next], 0));
        assert_eq!(run(&[(0, 5), (3_000_000, 6), (3_000_002, 6)]), (vec![Next, Anew, Next], 0));
    }

    #[test]
    fn the_number_after_a_messages_records_makes_no_gap() {
        let mut sequence = Sequence::default();
        let mut missing = 0;
        for (number, records) in [(2, 2), (7, 5), (15, 8), (18, 3)] {
            let head = Header { length: 20, exported_at: 1, sequence: number, domain: 0 };
            let standing = sequence.judge(&head, &head.emit());
            assert!(!matches!(standing, Standing::Duplicate | Standing::Replay));
            if let Standing::AfterGap(gap) = standing {
                missing += u64::from(gap);
            }
            missing -= sequence.advance(standing, &head, records, true);
        }
        assert_eq!(missing, 0);
    }

    #[test]
    fn exporters_that_count_messages_are_read() {
        let (standings, missing) = run(&[(0, 5), (1, 5), (2, 5), (3, 6)]);
        assert!(standings.iter().all(|s| !matches!(s, Standing::Duplicate | Standing::Replay)));
        assert_eq!(missing, 0);
    }
}
