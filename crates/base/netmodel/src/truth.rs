//! What really happened, per link and per interval: the figures that methods are held against.
//!
//! Times are true time, bytes are those of layer 2. The available bandwidth of a link over an
//! interval is its capacity minus what cross traffic used of it; offered packets do not count as
//! load, because they are the measurement. Transmissions are booked in the milliseconds in which
//! they took place, to the picosecond. Which way it errs: the capacity of a millisecond is the one
//! that held at its start, so the millisecond of a rate change may be off. Capacity is what IPv4
//! meets; where IPv6 has a transmitter of its own, its load is booked on the same link all the
//! same, so the available bandwidth is then too low for either version while both are in use.

use std::collections::VecDeque;

use netaware_units::{BitRate, Mono, Span};
use serde::Serialize;

use crate::{DropCause, Side};

/// The lengths of interval that are kept.
pub const SCALES: [Span; 4] =
    [Span::from_millis(1), Span::from_millis(10), Span::from_millis(100), Span::from_secs(1)];

/// Intervals kept of each link and scale; older ones are forgotten.
pub const KEPT: usize = 60_000;

/// Milliseconds ahead of the present in which transmissions are booked; longer queues are cut here.
const AHEAD: usize = 100_000;
/// A pause of more milliseconds than this is not kept interval by interval.
const PAUSE: u64 = 1_000_000;

const BIN_PS: u64 = 1_000_000_000;
/// Factors from each scale to the next.
const TEN: u64 = 10;

/// Everything that is known, by link.
#[derive(Debug, Clone, Default)]
pub struct Truth {
    /// By side of origin, then by hop as numbered from A.
    pub(crate) links: [Vec<LinkTruth>; 2],
}

impl Truth {
    pub(crate) fn new(hops: usize) -> Self {
        let links = || (0..hops).map(|_| LinkTruth::default()).collect();
        Self { links: [links(), links()] }
    }

    /// Of the link of `hop` (from A) that carries what `from` sends; `None` beyond the last hop.
    pub fn link(&self, from: Side, hop: usize) -> Option<&LinkTruth> {
        self.links[from.index()].get(hop)
    }

    pub(crate) fn forget(&mut self) {
        let closed = self.links.iter_mut().flatten().flat_map(|link| &mut link.closed);
        closed.for_each(VecDeque::clear);
    }

    /// Available bandwidth of the path over the newest intervals of `SCALES[scale]` that all links
    /// have, oldest first: the least of its links.
    pub fn available(&self, from: Side, scale: usize) -> Vec<(Mono, BitRate)> {
        let links = &self.links[from.index()];
        let Some(first) = links.first() else { return Vec::new() };
        let count = links.iter().map(|link| link.intervals(scale).len()).min().unwrap_or(0);
        let newest = first.intervals(scale).iter().skip(first.intervals(scale).len() - count);
        let least = |back: usize| {
            links
                .iter()
                .filter_map(|link| link.intervals(scale).iter().rev().nth(back))
                .map(|interval| interval.available)
                .min()
                .unwrap_or_default()
        };
        newest.enumerate().map(|(n, interval)| (interval.start, least(count - 1 - n))).collect()
    }
}

/// Counts since time zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Packets that came to the link, copies made on earlier links included.
    pub arrived: u64,
    /// Copies that this link made.
    pub copied: u64,
    /// Packets that the link sent on; they may still be on the wire or in a hidden switch. So
    /// `arrived + copied` is the sum of `left`, `dropped` and what waits.
    pub left: u64,
    /// By cause, in the order of `DropCause::ALL`; those that a router answered are in `HopLimit`
    /// and `Mtu`.
    pub dropped: [u64; 11],
    /// Of those that arrived: ICMP errors of the router in front, about what came the other way.
    pub answers: u64,
}

impl Counts {
    /// Packets dropped for this cause.
    pub const fn dropped_by(&self, cause: DropCause) -> u64 {
        self.dropped[cause as usize]
    }
}

/// One interval of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LinkInterval {
    /// Begin.
    pub start: Mono,
    /// Layer-2 rate (or that of the token bucket, if lower) that IPv4 meets, all parallel links
    /// together.
    pub capacity: BitRate,
    /// `capacity` less the share of time that cross traffic occupied.
    pub available: BitRate,
    /// Share of time that offered packets occupied, per million.
    pub offered_ppm: u32,
    /// Longest wait that an arriving packet met, which includes those that were then dropped.
    pub longest_wait: Span,
    /// Packets that arrived.
    pub arrived: u32,
    /// Packets dropped, by cause in the order of `DropCause::ALL`.
    pub dropped: [u32; 11],
}

/// What happened on one direction of one hop.
#[derive(Debug, Clone, Default)]
pub struct LinkTruth {
    counts: Counts,
    open: VecDeque<Bin>,
    /// Number of the first open millisecond.
    first: u64,
    coarse: [Bin; 3],
    closed: [VecDeque<LinkInterval>; 4],
    told: [u64; 4],
    cross_ps: u128,
}

/// What is added up over an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    cross_ps: u64,
    offered_ps: u64,
    longest_wait_ps: u64,
    arrived: u32,
    dropped: [u32; 11],
    capacity: u64,
}

impl LinkTruth {
    /// Counts since time zero.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Closed intervals of `SCALES[scale]`, oldest first, at most [`KEPT`]. The number of the last
    /// one plus one is [`LinkTruth::closed`].
    ///
    /// # Panics
    /// If there is no such scale.
    pub fn intervals(&self, scale: usize) -> &VecDeque<LinkInterval> {
        &self.closed[scale]
    }

    /// How many intervals of `SCALES[scale]` have been closed since time zero, forgotten ones
    /// included.
    ///
    /// # Panics
    /// If there is no such scale.
    pub const fn closed(&self, scale: usize) -> u64 {
        self.told[scale]
    }

    /// For how long cross traffic has occupied the link since time zero, its parallel links added
    /// up; ps. What waits is in it.
    pub const fn cross_time(&self) -> u128 {
        self.cross_ps
    }

    pub(crate) fn arrived(&mut self, at: u64) {
        self.counts.arrived += 1;
        self.bin(at / BIN_PS).arrived += 1;
    }

    pub(crate) fn waited(&mut self, at: u64, wait: u64) {
        let bin = self.bin(at / BIN_PS);
        bin.longest_wait_ps = bin.longest_wait_ps.max(wait);
    }

    /// A packet of cross traffic came, waited until `start` and was sent on by `end`; all that is
    /// counted of it at once.
    #[inline]
    pub(crate) fn passed(&mut self, at: u64, start: u64, end: u64) {
        self.counts.arrived += 1;
        self.counts.left += 1;
        let number = at / BIN_PS;
        let bin = self.bin(number);
        bin.arrived += 1;
        bin.longest_wait_ps = bin.longest_wait_ps.max(start - at);
        if end <= (number + 1) * BIN_PS {
            bin.cross_ps += end - start;
            self.cross_ps += u128::from(end - start);
        } else {
            self.occupied(start, end, false);
        }
    }

    pub(crate) const fn copied(&mut self) {
        self.counts.copied += 1;
    }

    pub(crate) const fn left(&mut self) {
        self.counts.left += 1;
    }

    pub(crate) const fn answer_entered(&mut self) {
        self.counts.answers += 1;
    }

    pub(crate) fn dropped(&mut self, at: u64, cause: DropCause) {
        self.counts.dropped[cause as usize] += 1;
        self.bin(at / BIN_PS).dropped[cause as usize] += 1;
    }

    /// The link was occupied from `start` to `end` (ps) by one packet.
    pub(crate) fn occupied(&mut self, start: u64, end: u64, offered: bool) {
        if !offered {
            self.cross_ps += u128::from(end.saturating_sub(start));
        }
        let mut from = start;
        while from < end {
            let number = from / BIN_PS;
            if number.saturating_sub(self.first) as usize > AHEAD {
                return;
            }
            let until = end.min((number + 1) * BIN_PS);
            let bin = self.bin(number);
            let sum = if offered { &mut bin.offered_ps } else { &mut bin.cross_ps };
            *sum += until - from;
            from = until;
        }
    }

    #[inline]
    fn bin(&mut self, number: u64) -> &mut Bin {
        // What lies before the first open bin can only be a transmission that was decided late; it
        // counts as now.
        let index = (number.saturating_sub(self.first) as usize).min(AHEAD);
        if index >= self.open.len() {
            self.open.resize(index + 1, Bin::default());
        }
        &mut self.open[index]
    }

    /// Closes all milliseconds that end at or before `now` (ps). `capacity` tells the rate at an
    /// instant, `members` how many transmitters share the load.
    pub(crate) fn close(&mut self, now: u64, members: u64, mut capacity: impl FnMut(u64) -> u64) {
        self.skip(now / BIN_PS);
        while (self.first + 1) * BIN_PS <= now {
            let mut bin = self.open.pop_front().unwrap_or_default();
            bin.capacity = capacity(self.first * BIN_PS);
            self.keep(0, self.first, 1, members, &bin);
            self.first += 1;
            let mut length = 1;
            for scale in 1..SCALES.len() {
                self.coarse[scale - 1].add(&bin);
                length *= TEN;
                if self.first.is_multiple_of(length) {
                    let whole = std::mem::take(&mut self.coarse[scale - 1]);
                    self.keep(scale, self.first - length, length, members, &whole);
                }
            }
        }
    }

    /// Over a long pause in which nothing was asked: counts the intervals and forgets them.
    fn skip(&mut self, last: u64) {
        if last - self.first.min(last) <= PAUSE {
            return;
        }
        let to = (last - PAUSE / 2) / 1000 * 1000;
        let mut length = 1;
        for told in &mut self.told {
            *told = to / length;
            length *= TEN;
        }
        (self.first, self.coarse) = (to, Default::default());
        self.open.clear();
        self.closed.iter_mut().for_each(VecDeque::clear);
    }

    fn keep(&mut self, scale: usize, start: u64, length: u64, members: u64, bin: &Bin) {
        let kept = &mut self.closed[scale];
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(bin.interval(start, length, members));
        self.told[scale] += 1;
    }
}

impl Bin {
    fn add(&mut self, other: &Self) {
        self.cross_ps += other.cross_ps;
        self.offered_ps += other.offered_ps;
        self.longest_wait_ps = self.longest_wait_ps.max(other.longest_wait_ps);
        self.arrived += other.arrived;
        self.capacity += other.capacity;
        for (sum, more) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += more;
        }
    }

    fn interval(&self, start: u64, length: u64, members: u64) -> LinkInterval {
        let whole = length * BIN_PS * members;
        let capacity = self.capacity / length;
        let free = whole.saturating_sub(self.cross_ps);
        LinkInterval {
            start: Mono(start * (BIN_PS / 1000)),
            capacity: BitRate(capacity),
            available: BitRate((u128::from(capacity) * u128::from(free) / u128::from(whole)) as u64),
            offered_ppm: (u128::from(self.offered_ps) * 1_000_000 / u128::from(whole)) as u32,
            longest_wait: Span((self.longest_wait_ps / 1000).cast_signed()),
            arrived: self.arrived,
            dropped: self.dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transmission_is_booked_in_the_milliseconds_in_which_it_took_place() {
        let mut link = LinkTruth::default();
        link.occupied(BIN_PS / 2, 2 * BIN_PS + BIN_PS / 4, false);
        link.close(10 * BIN_PS, 1, |_| 1_000_000);
        let available: Vec<u64> = link.intervals(0).iter().map(|interval| interval.available.0).collect();
        assert_eq!(available[..4], [500_000, 0, 750_000, 1_000_000]);
        assert_eq!(link.intervals(1)[0].available, BitRate(825_000));
        assert_eq!((link.closed(0), link.closed(1), link.closed(2)), (10, 1, 0));
    }

    #[test]
    fn old_intervals_are_forgotten_but_counted() {
        let mut link = LinkTruth::default();
        link.close((KEPT as u64 + 500) * BIN_PS, 1, |_| 1);
        assert_eq!(link.intervals(0).len(), KEPT);
        assert_eq!(link.closed(0), KEPT as u64 + 500);
        assert_eq!(link.intervals(0)[0].start, Mono(500_000_000));
    }

    #[test]
    fn what_happens_counts_in_the_intervals_in_which_it_happened() {
        let mut link = LinkTruth::default();
        link.arrived(BIN_PS + 5);
        link.waited(BIN_PS + 5, 250_000);
        link.waited(BIN_PS + 6, 100_000);
        link.occupied(BIN_PS, BIN_PS + BIN_PS / 2, true);
        link.dropped(BIN_PS + 7, DropCause::Policer);
        let start = 2 * BIN_PS + 1_000_100;
        link.passed(2 * BIN_PS + 100, start, start + BIN_PS / 4);
        link.passed(3 * BIN_PS, 3 * BIN_PS + BIN_PS / 2, 4 * BIN_PS + BIN_PS / 2);
        link.copied();
        link.left();
        link.answer_entered();
        // Two transmitters share the load; together they have 1 Mbit/s more in each millisecond.
        link.close(20 * BIN_PS, 2, |at| (at / BIN_PS + 1) * 1_000_000);

        let dropped = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let idle = |start: u64, rate: u64| {
            let (start, rate) = (Mono(start * 1_000_000), BitRate(rate));
            LinkInterval { start, capacity: rate, available: rate, ..LinkInterval::default() }
        };
        let mut fine: Vec<LinkInterval> = (0..20).map(|ms| idle(ms, (ms + 1) * 1_000_000)).collect();
        let longest_wait = Span(250);
        fine[1] = LinkInterval { offered_ppm: 250_000, longest_wait, arrived: 1, dropped, ..fine[1] };
        let (available, longest_wait) = (BitRate(2_625_000), Span(1000));
        fine[2] = LinkInterval { available, longest_wait, arrived: 1, ..fine[2] };
        let (available, longest_wait) = (BitRate(3_000_000), Span(500_000));
        fine[3] = LinkInterval { available, longest_wait, arrived: 1, ..fine[3] };
        fine[4] = LinkInterval { available: BitRate(3_750_000), ..fine[4] };
        assert_eq!(*link.intervals(0), fine);
        let mut coarse = [idle(0, 5_500_000), idle(10, 15_500_000)];
        coarse[0] = LinkInterval {
            available: BitRate(5_156_250),
            offered_ppm: 25_000,
            longest_wait,
            arrived: 3,
            dropped,
            ..coarse[0]
        };
        assert_eq!(*link.intervals(1), coarse);

        let dropped = dropped.map(u64::from);
        assert_eq!(*link.counts(), Counts { arrived: 3, copied: 1, left: 3, dropped, answers: 1 });
        let by = [DropCause::Policer, DropCause::Queue].map(|cause| link.counts().dropped_by(cause));
        assert_eq!((by, link.cross_time()), ([1, 0], 1_250_000_000));
    }

    #[test]
    fn what_is_far_ahead_is_cut_and_a_long_pause_is_counted_but_not_kept() {
        let mut ahead = LinkTruth::default();
        ahead.occupied(0, (AHEAD as u64 + 5) * BIN_PS, true);
        assert_eq!(ahead.open.len(), AHEAD + 1);

        let mut asked = LinkTruth::default();
        asked.close(600_000 * BIN_PS, 1, |_| 1);
        asked.close(600_001 * BIN_PS, 1, |_| 1);
        assert_eq!((asked.closed(0), asked.intervals(3).len()), (600_001, 600));

        let mut paused = LinkTruth::default();
        paused.close((PAUSE + 7_777) * BIN_PS, 1, |_| 1);
        let closed = [0, 1, 2, 3].map(|scale| paused.closed(scale));
        assert_eq!(closed, [1_007_777, 100_777, 10_077, 1_007]);
        // Half a pause before the present, from a whole second on.
        assert_eq!(paused.intervals(3).len(), 500);
        assert_eq!(paused.intervals(3)[0].start, Mono(507_000_000_000));
    }
}
