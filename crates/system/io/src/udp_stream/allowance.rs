//! How much of a core a stream may take before it loses its priority.

use netaware_units::{Mono, Span};

/// The CPU time that a thread with priority took in the present window.
#[derive(Debug)]
pub(super) struct Allowance {
    began_at: Mono,
    cpu_then: Span,
}

impl Allowance {
    /// Begins a window; `cpu` is what the thread has taken since it began.
    pub(super) fn new(now: Mono, cpu: Span) -> Self {
        Self { began_at: now, cpu_then: cpu }
    }

    /// Returns whether the thread took more than [`MOST`] in the present window, and begins the
    /// next window if this one is over. A window is a little longer than [`WINDOW`] if nobody asks
    /// at its end: the error leans towards taking the priority away.
    pub(super) fn is_exceeded(&mut self, now: Mono, cpu: Span) -> bool {
        let is_exceeded = cpu - self.cpu_then > MOST;
        if now - self.began_at >= WINDOW {
            *self = Self::new(now, cpu);
        }
        is_exceeded
    }
}

const WINDOW: Span = Span::from_millis(100);
/// Half of a window: the other half of the core is left to everybody else.
const MOST: Span = Span::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Mono {
        Mono(0) + Span::from_millis(millis)
    }

    /// The time, if any, at which a thread that takes such a share of a core has exceeded it,
    /// asked every 4 ms for ten seconds.
    fn exceeded_at(percent: i64) -> Option<i64> {
        let mut allowance = Allowance::new(at(0), Span::ZERO);
        let mut times = (0..10_000).step_by(4);
        times.find(|now| allowance.is_exceeded(at(*now), Span::from_micros(now * 10 * percent)))
    }

    #[test]
    fn a_stream_of_a_stranger_that_only_spins_has_priority_for_at_most_half_a_window() {
        assert_eq!(exceeded_at(100), Some(52));
        assert_eq!(exceeded_at(91), Some(56));
        assert_eq!(exceeded_at(60), Some(84));
    }

    #[test]
    fn a_stream_that_sleeps_half_of_the_time_keeps_its_priority() {
        assert_eq!(exceeded_at(50), None);
        assert_eq!(exceeded_at(5), None);
    }

    #[test]
    fn a_long_burst_counts_in_the_window_in_which_it_ends() {
        let mut allowance = Allowance::new(at(0), Span::ZERO);
        assert!(!allowance.is_exceeded(at(99), Span::from_millis(1)));
        assert!(allowance.is_exceeded(at(160), Span::from_millis(61)));
    }
}
