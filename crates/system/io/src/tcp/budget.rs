//! How much may still be sent, and when: the limit in bytes that all streams share, and the rate of
//! each.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use netaware_units::{BitRate, ByteCount, Mono, Span};

/// Bytes left for all streams; without a limit there is always enough.
#[derive(Debug)]
pub(super) struct Budget(Option<AtomicU64>);

impl Budget {
    pub(super) fn new(limit: Option<ByteCount>) -> Self {
        Self(limit.map(|bytes| AtomicU64::new(bytes.0)))
    }

    /// Takes up to `wanted` bytes; 0 means that everything is sent or being sent.
    pub(super) fn claim(&self, wanted: usize) -> usize {
        let Some(left) = &self.0 else { return wanted };
        let take = |left: u64| Some(left - left.min(wanted as u64));
        left.fetch_update(Relaxed, Relaxed, take).map_or(0, |before| before.min(wanted as u64) as usize)
    }

    /// Gives back what was claimed and not sent.
    pub(super) fn give_back(&self, unsent: usize) {
        if let (Some(left), 1..) = (&self.0, unsent) {
            left.fetch_add(unsent as u64, Relaxed);
        }
    }

    /// Whether a limit was reached.
    pub(super) fn is_spent(&self) -> bool {
        self.0.as_ref().is_some_and(|left| left.load(Relaxed) == 0)
    }
}

/// One stream's share of a rate, kept by a schedule: byte `n` is due `n / rate` after the start.
///
/// The kernel paces as well (`SO_MAX_PACING_RATE`), which spreads the segments of a write; this
/// keeps the mean right. A stream that was held up does not catch up more than [`MOST_CREDIT`]: a
/// burst at full speed is not the rate asked for.
#[derive(Debug)]
pub(super) struct Schedule {
    rate: BitRate,
    start: Mono,
    sent: u64,
}

impl Schedule {
    pub(super) fn new(rate: BitRate, start: Mono) -> Self {
        Self { rate, start, sent: 0 }
    }

    /// When the next write is due.
    pub(super) fn due(&mut self, now: Mono) -> Mono {
        let due = self.start + self.rate.time_for(ByteCount(self.sent));
        let excess = (now - due) - MOST_CREDIT;
        if excess > Span::ZERO {
            self.start += excess;
            return due + excess;
        }
        due
    }

    pub(super) fn count(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// Largest write that keeps the rate smooth: what is due in [`SMOOTHNESS`].
    pub(super) fn chunk(&self, length: usize) -> usize {
        let smooth = u128::from(self.rate.0) * SMOOTHNESS.0 as u128 / 8_000_000_000;
        length.min((smooth as usize).max(SMALLEST_WRITE))
    }
}

const MOST_CREDIT: Span = Span::from_millis(100);
const SMOOTHNESS: Span = Span::from_millis(2);
/// About a segment: smaller writes would cost more than they smooth.
const SMALLEST_WRITE: usize = 1400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_never_exceed_the_limit_and_returns_can_be_claimed_again() {
        let budget = Budget::new(Some(ByteCount(250)));
        assert_eq!((budget.claim(100), budget.claim(100), budget.claim(100)), (100, 100, 50));
        assert!(budget.is_spent());
        budget.give_back(30);
        assert_eq!((budget.claim(100), budget.claim(100)), (30, 0));
        assert_eq!(Budget::new(None).claim(7), 7);
    }

    #[test]
    fn a_schedule_keeps_its_mean_and_forgives_long_holes() {
        let start = Mono(1_000);
        let mut schedule = Schedule::new(BitRate(8_000_000), start);
        assert_eq!(schedule.due(start), start);
        schedule.count(1_000_000);
        assert_eq!(schedule.due(start), start + Span::from_secs(1));
        let late = start + Span::from_secs(5);
        assert_eq!(schedule.due(late), late - MOST_CREDIT);
        assert_eq!(schedule.chunk(1 << 20), 2000);
    }
}
