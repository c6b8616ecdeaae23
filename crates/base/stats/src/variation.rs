//! Delay variation of a packet series: IPDV, PDV and the RTP jitter.
//!
//! The three answer different questions and must not be compared with each other (RFC 5481 §7
//! weighs their uses). IPDV says how much the delay changes from packet to packet; PDV how much
//! buffer a receiver needs, because it is the delay beyond the smallest; RFC 3550 jitter is a
//! smoothed mean of |IPDV| that other tools print.
//!
//! Delays may be one-way between unsynchronised clocks: a constant offset cancels in all three.
//! Clock *skew* does not; it adds to PDV in proportion to the length of the series (1 ppm = 1 us
//! per second).
//!
//! `None` in a series stands for a lost packet. A pair that touches a loss is left out; joining the
//! neighbours of a gap would compare packets sent further apart than the others.

/// Inter-packet delay variation: `delay[i] - delay[i - 1]` of each pair of adjacent packets that
/// both arrived.
///
/// RFC 3393 with the selection function "consecutive packets" (RFC 5481 §4.1). Signed; the sum
/// telescopes, so the mean is near zero whatever the path does: look at the quantiles. Saturates at
/// the ends of `i64`.
pub fn ipdv(delays: &[Option<i64>]) -> Vec<i64> {
    delays.windows(2).filter_map(|pair| Some(pair[1]?.saturating_sub(pair[0]?))).collect()
}

/// Packet delay variation: `delay[i] - min(delay)` of each packet that arrived (RFC 5481 §4.2).
/// Never negative.
///
/// Leans low if no packet of the series met empty queues, for then the minimum holds queueing as
/// well.
pub fn pdv(delays: &[Option<i64>]) -> Vec<u64> {
    let arrived = || delays.iter().copied().flatten();
    let Some(least) = arrived().min() else { return Vec::new() };
    arrived().map(|delay| delay.abs_diff(least)).collect()
}

/// The inter-arrival jitter of RTP: `J += (|D| - J) / 16` (RFC 3550 §6.4.1), in the unit of the
/// delays.
///
/// Starts at zero as the RFC says and therefore reads low for the first fifty packets. Differs from
/// the RFC in that a pair which touches a loss is left out, where RTP pairs with the last packet
/// that arrived.
#[derive(Debug, Clone, Default)]
pub struct RtpJitter {
    previous: Option<i64>,
    jitter: Option<f64>,
}

impl RtpJitter {
    /// Before any packet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the delay of the next packet, or `None` if it was lost.
    pub fn observe(&mut self, delay: Option<i64>) {
        if let (Some(now), Some(before)) = (delay, self.previous) {
            let jitter = self.jitter.unwrap_or(0.0);
            self.jitter = Some(jitter + (now.abs_diff(before) as f64 - jitter) / 16.0);
        }
        self.previous = delay;
    }

    /// The jitter now; `None` until two adjacent packets have arrived.
    pub fn value(&self) -> Option<f64> {
        self.jitter
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::truth::assert_close;

    #[test]
    fn pairs_that_touch_a_loss_are_left_out() {
        let delays = [Some(10), Some(13), None, Some(50), Some(49), None, Some(1)];
        assert_eq!(ipdv(&delays), [3, -1]);
        assert_eq!(pdv(&delays), [9, 12, 49, 48, 0]);
        assert!(ipdv(&[None, None]).is_empty());
        assert!(pdv(&[None]).is_empty());
    }

    #[test]
    fn jitter_of_alternating_delays_converges_to_their_difference() {
        let mut jitter = RtpJitter::new();
        assert_eq!(jitter.value(), None);
        for i in 0..1000 {
            jitter.observe(Some(if i % 2 == 0 { 0 } else { 160 }));
        }
        assert_close(jitter.value().unwrap(), 160.0, 1e-9);
    }

    #[test]
    fn jitter_follows_the_recursion_of_the_rfc_and_skips_losses() {
        let mut jitter = RtpJitter::new();
        for delay in [Some(0), Some(16), None, Some(9_999), Some(9_967)] {
            jitter.observe(delay);
        }
        assert_close(jitter.value().unwrap(), 1.0 + (32.0 - 1.0) / 16.0, 1e-12);
    }

    proptest! {
        #[test]
        fn clock_offset_cancels(delays in prop::collection::vec(prop::option::of(-1000_i64..1000), 0..50),
                                offset in -1_000_000_000_000_i64..1_000_000_000_000) {
            let shifted: Vec<_> = delays.iter().map(|delay| delay.map(|d| d + offset)).collect();
            prop_assert_eq!(ipdv(&delays), ipdv(&shifted));
            prop_assert_eq!(pdv(&delays), pdv(&shifted));
        }

        #[test]
        fn any_delays_are_survived(delays in prop::collection::vec(any::<Option<i64>>(), 0..50)) {
            prop_assert!(ipdv(&delays).len() <= delays.len());
            prop_assert_eq!(pdv(&delays).len(), delays.iter().flatten().count());
        }
    }
}
