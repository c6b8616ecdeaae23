//! What the emulator has to say about itself, counted while it runs. Plain numbers: a snapshot is a
//! copy of some 30 KiB.

use hdrhistogram::Histogram;
use netaware_netmodel::Side;
use netaware_netmodel::scenario::Protocol;
use netaware_units::{Mono, Span};

use crate::report::Entered;

/// Counters of one emulator.
#[derive(Clone)]
pub(crate) struct Tally {
    lateness: Histogram<u32>,
    /// How late sleeps ended.
    oversleep: Histogram<u32>,
    /// How long packets lay before they were taken, or may have.
    seen: Histogram<u32>,
    pub(crate) latest: Span,
    /// Packets taken from the hosts and offered to the path.
    pub(crate) taken: u64,
    /// Packets, duplicates and ICMP answers given to the hosts.
    pub(crate) released: u64,
    /// Not for the other end, nor for a router: the kernel's own multicast, mostly. They never
    /// enter the path.
    pub(crate) strangers: u64,
    pub(crate) slab_full: u64,
    pub(crate) write_refused: u64,
    /// Taken right after a sleep, so seen later than they came by a wake-up that no figure here
    /// contains.
    pub(crate) woken: u64,
    pub(crate) core_losses: u64,
    pub(crate) longest_core_loss: Span,
    /// Lines of truth that were not written because the writer was behind.
    pub(crate) truth_missing: u64,
    /// What each host sent into the path.
    pub(crate) entered: [Entered; 2],
    /// The bytes of the present second, as `entered` has them.
    second: (u64, [[u64; 4]; 2]),
    pub(crate) since: Mono,
    pub(crate) now: Mono,
}

impl Tally {
    pub(crate) fn new(since: Mono) -> Self {
        let lateness = Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants that hdrhistogram accepts");
        Self {
            oversleep: lateness.clone(),
            seen: lateness.clone(),
            lateness,
            latest: Span::ZERO,
            taken: 0,
            released: 0,
            entered: [Entered::default(); 2],
            second: (0, [[0; 4]; 2]),
            strangers: 0,
            slab_full: 0,
            write_refused: 0,
            woken: 0,
            core_losses: 0,
            longest_core_loss: Span::ZERO,
            truth_missing: 0,
            since,
            now: since,
        }
    }

    /// A packet left `lateness` after its deadline.
    #[inline]
    pub(crate) fn released(&mut self, lateness: Span) {
        self.released += 1;
        self.latest = self.latest.max(lateness);
        self.lateness.saturating_record(lateness.or_zero().0.cast_unsigned().max(1));
    }

    /// A packet was taken that lay there for `waited`, or cannot have lain there for longer.
    #[inline]
    pub(crate) fn seen(&mut self, waited: Span) {
        self.seen.saturating_record(waited.or_zero().0.cast_unsigned().max(1));
    }

    /// A sleep of the loop ended `late` after its timer.
    #[inline]
    pub(crate) fn overslept(&mut self, late: Span) {
        self.oversleep.saturating_record(late.or_zero().0.cast_unsigned().max(1));
    }

    /// The loop stood still for `gap` without having asked to.
    #[inline]
    pub(crate) fn stood_still(&mut self, gap: Span) {
        if gap > CORE_LOST {
            self.core_losses += 1;
            self.longest_core_loss = self.longest_core_loss.max(gap);
        }
    }

    /// A packet entered the path at this time since time zero.
    pub(crate) fn entered(&mut self, at: Mono, from: Side, protocol: Protocol, length: u64) {
        let second = at.0 / 1_000_000_000;
        if self.second.0 != second {
            self.second = (second, [[0; 4]; 2]);
        }
        let bytes = &mut self.second.1[from as usize][protocol as usize];
        *bytes += length;
        let count = self.entered[from as usize].of_mut(protocol);
        count.packets += 1;
        count.bytes += length;
        count.busiest_second = count.busiest_second.max(*bytes);
    }

    /// As [`Self::lateness`], of the ends of sleeps.
    pub(crate) fn oversleep(&self, q: f64) -> Option<Span> {
        quantile(&self.oversleep, q)
    }

    /// As [`Self::lateness`], of how long packets lay, or may have, before they were taken.
    pub(crate) fn seen_late(&self, q: f64) -> Option<Span> {
        quantile(&self.seen, q)
    }

    /// The mean of the same, to 1 %.
    pub(crate) fn seen_late_mean(&self) -> Option<Span> {
        (!self.seen.is_empty()).then(|| Span(self.seen.mean().round() as i64))
    }

    /// Lateness that a share `q` of the released packets did not exceed, to 1 %; `None` before the
    /// first.
    pub(crate) fn lateness(&self, q: f64) -> Option<Span> {
        quantile(&self.lateness, q).map(|span| span.min(self.latest))
    }
}

fn quantile(histogram: &Histogram<u32>, q: f64) -> Option<Span> {
    (!histogram.is_empty()).then(|| Span(histogram.value_at_quantile(q).cast_signed()))
}

/// A step of the loop takes some microseconds: whoever misses a millisecond did not have the core.
const CORE_LOST: Span = Span::from_millis(1);
/// What is later than a second counts as a second; the longest is kept exactly beside it.
const LONGEST_NS: u64 = 1_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_hundredth_and_the_longest_is_exact() {
        let mut tally = Tally::new(Mono(0));
        assert_eq!(tally.lateness(0.5), None);
        (1..=1000).for_each(|us| tally.released(Span::from_micros(us)));
        tally.released(Span::from_secs(7));
        let p50 = tally.lateness(0.5).unwrap().micros_f64();
        assert!((p50 - 500.0).abs() <= 5.0, "{p50}");
        assert_eq!(tally.latest, Span::from_secs(7));
        tally.released(Span(-5));
    }

    #[test]
    fn what_entered_is_counted_by_protocol_with_its_busiest_second() {
        let mut tally = Tally::new(Mono(0));
        let packets = [(0, 100), (999_999_999, 100), (1_000_000_000, 150), (7_000_000_000, 20)];
        for (at, length) in packets {
            tally.entered(Mono(at), Side::B, Protocol::Udp, length);
        }
        tally.entered(Mono(7_000_000_001), Side::B, Protocol::Tcp, 1500);
        let [a, b] = tally.entered;
        assert_eq!(a, Entered::default());
        assert_eq!((b.udp.packets, b.udp.bytes, b.udp.busiest_second), (4, 370, 200));
        assert_eq!((b.tcp.packets, b.tcp.bytes, b.icmp.packets), (1, 1500, 0));
    }

    #[test]
    fn only_a_long_hole_is_a_lost_core() {
        let mut tally = Tally::new(Mono(0));
        tally.stood_still(Span::from_micros(900));
        tally.stood_still(Span::from_millis(50));
        assert_eq!((tally.core_losses, tally.longest_core_loss), (1, Span::from_millis(50)));
    }
}
