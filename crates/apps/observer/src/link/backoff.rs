//! How long to wait before dialling again.

use netaware_units::Span;

const FIRST: Span = Span::from_secs(1);
const LONGEST: Span = Span::from_secs(60);

/// Doubles from one second to a minute; each wait is drawn between half and the whole of it, so
/// that a thousand probes that lost their collector at one instant come back spread out.
#[derive(Debug)]
pub(super) struct Backoff {
    present: Span,
    state: u64,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self { present: FIRST, state: seed }
    }

    /// It worked; the next failure is a new one.
    pub(super) fn succeeded(&mut self) {
        self.present = FIRST;
    }

    /// The wait after a failure.
    pub(super) fn next(&mut self) -> Span {
        let whole = self.present;
        self.present = (whole + whole).min(LONGEST);
        self.drawn(whole)
    }

    /// The wait when the other end asked for one: as long, and up to half as much more.
    pub(super) fn at_least(&mut self, asked: Span) -> Span {
        asked + self.drawn(asked) - asked / 2
    }

    /// Half of `whole` to all of it.
    fn drawn(&mut self, whole: Span) -> Span {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let share = (mixed >> 11) as f64 / (1u64 << 53) as f64;
        Span((whole.0 as f64 * (0.5 + 0.5 * share)) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_a_minute_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::new(1);
        let waits: Vec<f64> = (0..10).map(|_| backoff.next().secs_f64()).collect();
        for (wait, whole) in waits.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]) {
            assert!((whole / 2.0..=whole).contains(wait), "{wait} of {whole}");
        }
        backoff.succeeded();
        assert!(backoff.next() <= Span::from_secs(1));
        let asked = backoff.at_least(Span::from_secs(10)).secs_f64();
        assert!((10.0..=15.0).contains(&asked), "{asked}");
    }

    #[test]
    fn probes_do_not_come_back_together() {
        let mut waits: Vec<i64> = (0..100).map(|seed| Backoff::new(seed).next().0).collect();
        waits.sort_unstable();
        waits.dedup();
        assert_eq!(waits.len(), 100);
    }
}
