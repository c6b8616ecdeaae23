//! When each request is due.
//!
//! An open loop has its instants before anything is sent: whatever happens to a request, the next
//! one is due when it is due. A closed loop earns them: it starts with as many as may be
//! outstanding, and gets one back with each verdict.

use std::collections::VecDeque;

use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

use super::Pacing;

/// The instants at which requests are due, one after the other.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Ascending.
    due: VecDeque<Mono>,
    open: Option<OpenLoop>,
}

#[derive(Debug, Clone)]
enum OpenLoop {
    /// From the start, not from the previous one: lateness must not add up.
    Even {
        start: Mono,
        spacing: Span,
        passed: i64,
    },
    Poisson {
        mean_ns: f64,
        rng: SplitMix64,
    },
}

impl Schedule {
    /// The first request is due at `start`.
    pub fn new(pacing: Pacing, start: Mono) -> Self {
        let open = match pacing {
            Pacing::PingPong | Pacing::Pipeline(_) => None,
            Pacing::Even(spacing) => Some(OpenLoop::Even { start, spacing, passed: 0 }),
            Pacing::Poisson { mean, seed } => {
                Some(OpenLoop::Poisson { mean_ns: mean.nanos() as f64, rng: SplitMix64::new(seed) })
            }
        };
        let first = pacing.depth().unwrap_or(1);
        Self { due: (0..first).map(|_| start).collect(), open }
    }

    /// When the next request is due; `None` while a closed loop has as many outstanding as it may.
    pub fn next_due(&self) -> Option<Mono> {
        self.due.front().copied()
    }

    /// The next request has been asked for.
    pub fn advance(&mut self) {
        let Some(passed) = self.due.pop_front() else { return };
        match &mut self.open {
            None => {}
            Some(OpenLoop::Even { start, spacing, passed: count }) => {
                *count += 1;
                self.due.push_back(*start + *spacing * *count);
            }
            Some(OpenLoop::Poisson { mean_ns, rng }) => {
                // One minus a number below one is above zero, so its logarithm is finite.
                let gap = -(1.0 - rng.unit()).ln() * *mean_ns;
                self.due.push_back(passed + Span::from_nanos(gap.round() as i64));
            }
        }
    }

    /// A closed loop's request has its verdict: another may go at `at`. Of no effect in an open
    /// loop.
    pub fn turn_over(&mut self, at: Mono) {
        if self.open.is_none() {
            let place = self.due.partition_point(|due| *due <= at);
            self.due.insert(place, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(pacing: Pacing, count: usize) -> Vec<Mono> {
        let mut schedule = Schedule::new(pacing, Mono(1_000));
        (0..count)
            .map(|_| {
                let due = schedule.next_due().unwrap();
                schedule.advance();
                due
            })
            .collect()
    }

    #[test]
    fn even_instants_do_not_drift() {
        let due = first(Pacing::Even(Span(333)), 1001);
        assert_eq!((due[0], due[1000]), (Mono(1_000), Mono(1_000 + 333_000)));
    }

    #[test]
    fn poisson_instants_have_the_mean_and_the_spread_of_an_exponential() {
        let mean = 10_000.0;
        let pacing = Pacing::Poisson { mean: Span(10_000), seed: 7 };
        let due = first(pacing, 100_001);
        let gaps: Vec<f64> = due.windows(2).map(|pair| pair[1].since(pair[0]).nanos() as f64).collect();
        let found = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // Five standard errors; of an exponential the deviation equals the mean.
        assert!((found - mean).abs() < 5.0 * mean / (gaps.len() as f64).sqrt(), "{found}");
        let above = gaps.iter().filter(|gap| **gap > mean).count() as f64 / gaps.len() as f64;
        assert!((above - (-1.0_f64).exp()).abs() < 0.01, "{above}");
        assert_eq!(due, first(pacing, 100_001), "the same seed gives the same instants");
    }

    #[test]
    fn a_pipeline_starts_full_and_goes_on_with_each_verdict() {
        let mut schedule = Schedule::new(Pacing::Pipeline(3), Mono(0));
        (0..3).for_each(|_| schedule.advance());
        assert_eq!(schedule.next_due(), None);
        schedule.turn_over(Mono(90));
        schedule.turn_over(Mono(40));
        assert_eq!(schedule.next_due(), Some(Mono(40)));
        schedule.advance();
        schedule.advance();
        schedule.advance();
        assert_eq!(schedule.next_due(), None);
    }
}
