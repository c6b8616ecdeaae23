//! Bursts at the receiver: what they took to arrive, beside what they took to leave.

use netaware_record::BurstSummary;
use netaware_units::{ByteCount, Mono, Span};

use super::gaps::GapRecorder;

/// Follows one burst at a time; datagrams of an earlier one that come late have broken it already.
#[derive(Debug)]
pub(super) struct BurstMeter {
    size: u64,
    open: Option<Open>,
    whole: u64,
    sent_over: GapRecorder,
    arrived_over: GapRecorder,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// Number of the burst.
    number: u64,
    /// Datagrams so far, all in order.
    count: u64,
    first_sent: u64,
    last_sent: u64,
    first: Mono,
    last: Mono,
    broken: bool,
}

impl BurstMeter {
    /// `None` for a stream whose datagrams leave one by one.
    pub(super) fn new(size: u32) -> Option<Self> {
        (size > 1).then(|| Self {
            size: u64::from(size),
            open: None,
            whole: 0,
            sent_over: GapRecorder::new(),
            arrived_over: GapRecorder::new(),
        })
    }

    /// Any datagram of the stream in order of arrival; `sent_at` by the sender's clock.
    #[inline]
    pub(super) fn take(&mut self, seq: u64, sent_at: u64, at: Mono) {
        let (number, place) = (seq / self.size, seq % self.size);
        match &mut self.open {
            Some(open) if open.number == number => {
                open.broken |= place != open.count;
                open.count += 1;
                (open.last, open.last_sent) = (at, sent_at);
            }
            Some(open) if open.number > number => {}
            _ => {
                self.close();
                self.open = Some(Open {
                    number,
                    count: 1,
                    first_sent: sent_at,
                    last_sent: sent_at,
                    first: at,
                    last: at,
                    broken: place != 0,
                });
            }
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.take().filter(|open| !open.broken && open.count == self.size) else {
            return;
        };
        self.whole += 1;
        self.arrived_over.observe(open.last - open.first);
        self.sent_over.observe(Span(open.last_sent.wrapping_sub(open.first_sent).cast_signed()));
    }

    /// Whether all came, in order, of the last burst of `sent` datagrams, which the stream's end
    /// cut short.
    fn has_last_part(&self, sent: u64) -> bool {
        let (number, count) = (sent / self.size, sent % self.size);
        self.open.is_some_and(|open| !open.broken && open.number == number && open.count == count)
    }

    /// `sent` datagrams of `length` bytes left in all; if the sender's end is not known, up to the
    /// `highest` that came. A last burst that the stream's end cut short can be whole, but it has
    /// no part in the times. `None` if no other burst came whole.
    pub(super) fn summary(mut self, sent: Option<u64>, highest: u64, length: u32) -> Option<BurstSummary> {
        let has_last_part = sent.is_some_and(|sent| self.has_last_part(sent));
        self.close();
        self.whole += u64::from(has_last_part);
        let sent = sent.unwrap_or(highest);
        let arrived_over = self.arrived_over.summary(None)?;
        let sent_over = self.sent_over.summary(None)?.p50;
        let extra = arrived_over.p50 - sent_over;
        let behind_the_first = (self.size - 1) * u64::from(length);
        let share = extra.or_zero().0 as f64 / arrived_over.p50.0.max(1) as f64;
        Some(BurstSummary {
            size: u32::try_from(self.size).unwrap_or(u32::MAX),
            whole: self.whole,
            broken: sent.div_ceil(self.size).saturating_sub(self.whole),
            sent_over,
            arrived_over,
            extra,
            queue_growth: ByteCount((behind_the_first as f64 * share).round() as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts of four each millisecond that leave 1 us and arrive 12 us apart: a link that takes 12
    /// us for each.
    fn meter(skip: impl Fn(u64) -> bool) -> BurstMeter {
        let mut meter = BurstMeter::new(4).unwrap();
        for seq in (0..40).filter(|seq| !skip(*seq)) {
            let (burst, place) = (seq / 4 * 1_000_000, seq % 4);
            meter.take(seq, burst + place * 1000, Mono(5_000_000 + burst + place * 12_000));
        }
        meter
    }

    #[test]
    fn what_queued_is_what_arriving_took_longer_than_leaving() {
        let found = meter(|_| false).summary(Some(40), 40, 1500).unwrap();
        assert_eq!((found.size, found.whole, found.broken), (4, 10, 0));
        assert!((found.arrived_over.mean_ns - 36_000.0).abs() < 1e-6);
        assert!((found.extra - Span::from_micros(33)).abs() < Span(100), "{found:?}");
        // Of 4500 bytes behind the first, 3/36 had gone by when the last one left.
        assert!(found.queue_growth.0.abs_diff(4125) < 20, "{found:?}");
    }

    #[test]
    fn a_burst_with_a_hole_or_out_of_order_does_not_count() {
        assert_eq!(meter(|seq| seq == 5).summary(Some(40), 40, 1500).unwrap().broken, 1);
        // One burst never seen at all, one without its beginning.
        assert_eq!(meter(|seq| (8..13).contains(&seq)).summary(Some(40), 40, 1500).unwrap().broken, 2);
        let mut meter = BurstMeter::new(2).unwrap();
        for seq in [1, 0, 2, 3, 2, 4, 5, 1] {
            meter.take(seq, 0, Mono(seq));
        }
        // Overtaken; a copy, which makes three of two; whole.
        let found = meter.summary(Some(6), 6, 100).unwrap();
        assert_eq!((found.whole, found.broken), (1, 2));
    }

    /// The end of the time cut the last burst to two datagrams, and it was said to be broken.
    #[test]
    fn a_last_burst_that_was_cut_short_and_came_is_not_broken() {
        let of = |skip: u64, sent: Option<u64>| {
            let found = meter(|seq| seq >= 38 || seq == skip).summary(sent, 38, 1500).unwrap();
            assert!((found.arrived_over.mean_ns - 36_000.0).abs() < 1e-6, "{found:?}");
            (found.whole, found.broken)
        };
        assert_eq!(of(99, Some(38)), (10, 0));
        assert_eq!(of(36, Some(38)), (9, 1));
        assert_eq!(of(99, Some(39)), (9, 1), "the last one was lost");
        assert_eq!(of(99, None), (9, 1), "others may have been lost behind it");
    }

    #[test]
    fn without_bursts_there_is_nothing_to_tell() {
        assert!(BurstMeter::new(1).is_none() && BurstMeter::new(0).is_none());
        assert!(BurstMeter::new(9).unwrap().summary(Some(0), 0, 1).is_none());
    }
}
