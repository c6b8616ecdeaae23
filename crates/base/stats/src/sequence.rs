//! Tells lost, duplicate, reordered and late packets apart from sequence numbers alone.
//!
//! Packets are numbered one by one from [`SequenceTracker::starting_at`] and shown to
//! [`SequenceTracker::observe`] in the order of arrival. A packet that continues the stream costs
//! one comparison and one addition; everything else costs at most one pass over the window.
//!
//! Loss is a verdict. A missing packet becomes `lost` when it leaves the window, about 65,000
//! numbers behind the highest seen, or at [`SequenceTracker::finish`]. If it turns up after that it
//! is `late`, the loss stays, and we cannot know whether it had come before: a duplicate that
//! travels so long counts as late, too.
//!
//! Bias: packets lost after the last arrival are invisible without the sender's count, so loss
//! reads low until `finish` is told it. One forged or damaged number far ahead makes everything
//! after it late: authenticate first, or refuse absurd jumps.
//!
//! Sources: RFC 4737 §3.3 (reordered), §4.2 (extent); loss runs after RFC 3357. Where we differ:
//! reordering is judged within the window only.

mod window;

use std::collections::VecDeque;

use serde::Serialize;

use crate::hist::LengthHistogram;
use window::Window;

/// What one arrival turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Exactly the next number.
    InOrder,
    /// Beyond the next number; those skipped are missing for now.
    Ahead {
        /// How many were skipped, at least 1.
        skipped: u64,
    },
    /// First copy of a number that had been skipped.
    Reordered,
    /// A number that had arrived already.
    Duplicate,
    /// Too far behind to be told from a duplicate, or before the first number.
    Late,
    /// No number that a sender reaches: beyond 2^63.
    Rejected,
}

/// Counts up to now. At any time `received + duplicates + late + rejected` is the number of
/// arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SequenceCounts {
    /// Different packets that arrived in time.
    pub received: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Packets that arrived after one with a higher number (RFC 4737 §3.3), first copies only.
    pub reordered: u64,
    /// Arrivals too far behind to be judged; if they were missing they stay lost.
    pub late: u64,
    /// Arrivals with an impossible number.
    pub rejected: u64,
    /// Numbers below the highest that have not arrived, lost or still travelling.
    pub missing: u64,
    /// Highest number that arrived; `None` before the first arrival.
    pub highest: Option<u64>,
}

/// Everything known when the stream has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SequenceReport {
    /// The counts at the end; `missing` leaves out what was lost after the highest number.
    pub counts: SequenceCounts,
    /// Packets that never arrived in time. A lower bound if the sender's count was not given.
    pub lost: u64,
    /// Lengths of runs of consecutive lost packets; their sum is `lost`.
    pub loss_runs: LengthHistogram,
    /// Reordering extents (RFC 4737 §4.2): packets that arrived from the first overtaker to this
    /// one, itself left out. A receiver must buffer that many to restore the order.
    pub reorder_extents: LengthHistogram,
    /// Numbers between the highest seen and the reordered packet, `highest - seq` (`UDPmon`'s
    /// out-of-order distance).
    pub reorder_distances: LengthHistogram,
}

/// Follows one numbered stream. Memory: 8 KiB of window, three histograms, 16 bytes per gap in the
/// window (at most 512 KiB, when every other packet is missing).
#[derive(Debug, Clone)]
pub struct SequenceTracker {
    /// The number expected next: highest seen plus one.
    next: u64,
    /// Numbers `marked..next` arrived in order and are not yet in `window`. This is what makes the
    /// usual packet cheap; everything that reads `window` calls `catch_up` before.
    marked: u64,
    first: u64,
    window: Window,
    /// Gaps opened within the window, ascending; lets `extent` find the first overtaker of a
    /// packet.
    gaps: VecDeque<Gap>,
    /// First arrivals below `marked`.
    received: u64,
    duplicates: u64,
    reordered: u64,
    late: u64,
    rejected: u64,
    reorder_extents: LengthHistogram,
    reorder_distances: LengthHistogram,
}

/// Numbers from `from` on were skipped when `arrived` packets had arrived before.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: u64,
    arrived: u64,
}

impl SequenceTracker {
    /// For a stream whose first packet has number 0.
    pub fn new() -> Self {
        Self::starting_at(0)
    }

    /// For a stream whose first packet has number `first` (cut to 2^63): if it does not come it is
    /// lost, what comes with a lower number is late.
    pub fn starting_at(first: u64) -> Self {
        let first = first.min(BEYOND_REACH);
        Self {
            next: first,
            marked: first,
            first,
            window: Window::starting_at(first),
            gaps: VecDeque::new(),
            received: 0,
            duplicates: 0,
            reordered: 0,
            late: 0,
            rejected: 0,
            reorder_extents: LengthHistogram::new(LENGTH_BINS),
            reorder_distances: LengthHistogram::new(LENGTH_BINS),
        }
    }

    /// Takes the next arrival into account. Any numbers in any order are survived.
    #[inline]
    pub fn observe(&mut self, seq: u64) -> Arrival {
        if seq == self.next {
            self.next += 1;
            return Arrival::InOrder;
        }
        self.observe_disorder(seq)
    }

    /// The counts up to now; cheap enough for every interval.
    pub fn counts(&self) -> SequenceCounts {
        let received = self.arrived();
        SequenceCounts {
            received,
            duplicates: self.duplicates,
            reordered: self.reordered,
            late: self.late,
            rejected: self.rejected,
            missing: (self.next - self.first) - received,
            highest: (self.next > self.first).then(|| self.next - 1),
        }
    }

    /// Ends the stream: what is still missing is lost.
    ///
    /// `sent` is how many packets the sender says it sent; those beyond the highest arrival are
    /// lost as well. A count smaller than what was seen is disbelieved and taken as `None`.
    pub fn finish(mut self, sent: Option<u64>) -> SequenceReport {
        self.catch_up();
        let counts = self.counts();
        let lost_at_the_end = sent.unwrap_or(0).saturating_sub(self.next - self.first);
        SequenceReport {
            counts,
            lost: counts.missing.saturating_add(lost_at_the_end),
            loss_runs: self.window.into_loss_runs(lost_at_the_end),
            reorder_extents: self.reorder_extents,
            reorder_distances: self.reorder_distances,
        }
    }

    /// Kept out of line so that the usual case stays small enough to be inlined into a receive
    /// loop.
    #[cold]
    #[inline(never)]
    fn observe_disorder(&mut self, seq: u64) -> Arrival {
        self.catch_up();
        if seq > self.next { self.observe_ahead(seq) } else { self.observe_behind(seq) }
    }

    fn observe_ahead(&mut self, seq: u64) -> Arrival {
        if seq >= BEYOND_REACH {
            self.rejected += 1;
            return Arrival::Rejected;
        }
        let skipped = seq - self.next;
        self.gaps.push_back(Gap { from: self.next, arrived: self.received });
        self.window.append_missing(seq);
        self.window.append_received(seq + 1);
        self.received += 1;
        self.next = seq + 1;
        self.marked = self.next;
        self.forget_old_gaps();
        Arrival::Ahead { skipped }
    }

    fn observe_behind(&mut self, seq: u64) -> Arrival {
        if seq < self.first || seq < self.window.floor() {
            self.late += 1;
            return Arrival::Late;
        }
        if !self.window.mark(seq) {
            self.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.reordered += 1;
        self.reorder_extents.observe(self.extent(seq));
        self.reorder_distances.observe(self.next - 1 - seq);
        self.received += 1;
        Arrival::Reordered
    }

    /// RFC 4737 §4.2: `i - j`, where `i` is the place of this packet among the arrivals and `j`
    /// that of the first one with a higher number. The first one higher is the one that opened the
    /// gap in which this packet was missing.
    fn extent(&self, seq: u64) -> u64 {
        let after = self.gaps.partition_point(|gap| gap.from <= seq);
        let gap = after.checked_sub(1).and_then(|index| self.gaps.get(index));
        debug_assert!(gap.is_some(), "a number missing in the window lies in a gap that is still remembered");
        gap.map_or(0, |gap| self.received - gap.arrived)
    }

    /// A gap may go when the next one begins at or below the floor; the last one whose start lies
    /// below is kept, for its end may reach into the window. At least one arrival lies between
    /// gaps, so this bounds their number.
    fn forget_old_gaps(&mut self) {
        let floor = self.window.floor();
        while self.gaps.get(1).is_some_and(|gap| gap.from <= floor) {
            self.gaps.pop_front();
        }
    }

    fn catch_up(&mut self) {
        if self.marked < self.next {
            self.window.append_received(self.next);
            self.received += self.next - self.marked;
            self.marked = self.next;
        }
    }

    fn arrived(&self) -> u64 {
        self.received + (self.next - self.marked)
    }
}

impl Default for SequenceTracker {
    fn default() -> Self {
        Self::new()
    }
}

/// A sender that numbers 10^9 packets per second gets here after 292 years; whoever jumps here is
/// damaged or hostile. Staying this far below `u64::MAX` keeps every sum of this module from
/// overflowing.
const BEYOND_REACH: u64 = 1 << 63;

/// Longer runs are counted together; the longest of all is known exactly.
pub(crate) const LENGTH_BINS: usize = 256;

#[cfg(test)]
mod tests;
