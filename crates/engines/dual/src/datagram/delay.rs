//! How much longer datagrams take than the quickest one did lately, from clocks that share nothing
//! but their pace.
//!
//! **Measures** the change of one-way delay of one IP version: queueing, and changes of route.
//! **Assumes** that the quickest of the last 30 to 60 s met empty queues. **Leans** low where none
//! did, and drifts by what the clocks do against each other in that time: 50 ppm are 3 ms. It
//! includes what a datagram waits at the receiver until it is read. **Published**: the base delay
//! is that of LEDBAT (RFC 6817 §3.4.2), with two periods instead of ten.

use netaware_units::{Mono, Span};

#[derive(Debug, Clone, Default)]
pub(super) struct Delay {
    /// What the others are compared with, so that only differences are kept.
    reference: Option<u32>,
    /// Least difference of the present period and of the one before, microseconds.
    least: [Option<i64>; 2],
    period_began_at: Mono,
    smoothed: Option<f64>,
}

impl Delay {
    /// One came: this host's clock minus the sender's, modulo 2^32, microseconds.
    pub(super) fn observe(&mut self, now: Mono, difference: u32) {
        let reference = *self.reference.get_or_insert(difference);
        let mut over = i64::from(difference.wrapping_sub(reference) as i32);
        if now - self.period_began_at >= PERIOD || self.least[0].is_none() {
            self.begin_period(now, difference, over);
            over = 0;
        }
        let present = self.least[0].map_or(over, |least| least.min(over));
        self.least[0] = Some(present);
        let base = self.least[1].map_or(present, |before| before.min(present));
        let delay = (over - base) as f64;
        let smoothed = self.smoothed.get_or_insert(delay);
        *smoothed += (delay - *smoothed) / 8.0;
    }

    /// Differences count from this one on, so that they do not run out of bits in months of drift.
    fn begin_period(&mut self, now: Mono, difference: u32, over: i64) {
        self.reference = Some(difference);
        self.least = [None, self.least[0].map(|least| least - over)];
        self.period_began_at = now;
    }

    /// Smoothed over some eight datagrams; `None` before the first.
    pub(super) fn smoothed(&self) -> Option<Span> {
        self.smoothed.map(|micros| Span::from_micros(micros.max(0.0) as i64))
    }
}

const PERIOD: Span = Span::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    fn mono(millis: i64) -> Mono {
        Mono(0) + Span::from_millis(millis)
    }

    #[test]
    fn a_queue_shows_and_an_offset_of_the_clocks_does_not() {
        let mut delay = Delay::default();
        for n in 0..100 {
            let queued = if n >= 50 { 20_000 } else { 0 };
            delay.observe(mono(n * 10), (u32::MAX - 5000).wrapping_add(queued));
        }
        let told = delay.smoothed().unwrap();
        assert!(told > Span::from_millis(19) && told <= Span::from_millis(20), "{told}");
    }

    #[test]
    fn a_route_that_stays_longer_is_the_new_base_after_a_minute() {
        let mut delay = Delay::default();
        for n in 0..700 {
            delay.observe(mono(n * 100), if n >= 50 { 30_000 } else { 0 });
        }
        assert!(delay.smoothed().unwrap() < Span::from_millis(1));
    }

    #[test]
    fn the_quickest_of_the_period_before_counts_and_that_of_an_earlier_one_does_not() {
        let mut delay = Delay::default();
        // Second, difference of the clocks, and what is told then: an eighth of the way to the new
        // delay.
        let rows = [(0, 1_000, 0), (10, 9_000, 1_000), (30, 9_000, 1_875), (60, 9_000, 1_640)];
        for (second, difference, told) in rows {
            delay.observe(mono(second * 1000), difference);
            assert_eq!(delay.smoothed(), Some(Span::from_micros(told)), "second {second}");
        }
    }

    #[test]
    fn months_of_drift_do_not_overflow() {
        let mut delay = Delay::default();
        for n in 0..2000_u32 {
            delay.observe(mono(i64::from(n) * 31_000), n.wrapping_mul(4_000_000));
        }
        assert!(delay.smoothed().is_some());
    }
}
