//! Waits for the deadlines of a paced stream: sleeps up to a margin and spins the rest where there
//! is room, and keeps the core where there is none.
//!
//! What a sleep overshoots differs from host to host and from minute to minute (a virtual machine
//! that goes idle loses its core to its neighbours), so the margin is learnt as the stream goes: it
//! grows by [`UP`] with each sleep that ends too late and shrinks by [`DOWN`] with each. It settles
//! where one sleep in `UP / DOWN` = 500 is late, whatever the distribution (Robbins and Monro
//! 1951). Where that leaves no room for a sleep the thread spins and the margin shrinks so slowly
//! that it tries to sleep again every other second: a thread that has spun for long is at the end
//! of the scheduler's queue when it wakes, so a failed attempt can cost a tick (4 ms).

use netaware_units::{Mono, Span};

use super::breath::Breath;
use super::sleep_watching;
use crate::priority::Permits;
use crate::stop::StopFlag;
use crate::{clock, pacer};

#[derive(Debug)]
pub(super) struct Wait {
    margin: Margin,
    breath: Breath,
}

impl Wait {
    /// `margin`: what to begin with.
    pub(super) fn new(margin: Span, permits: &Permits) -> Self {
        Self { margin: Margin(margin), breath: Breath::new(clock::now(), permits) }
    }

    /// To be called between the datagrams of a burst, so that a long one is accounted for as well.
    #[inline]
    pub(super) fn count(&mut self, now: Mono) {
        self.breath.count_sleep(now);
    }

    /// The time when the deadline is over, or earlier when `stop` is raised.
    #[inline]
    pub(super) fn until(&mut self, due: Mono, stop: &StopFlag) -> Mono {
        let now = clock::now();
        let wake = due - if self.breath.is_crowded() { self.margin.0.min(CROWDED) } else { self.margin.0 };
        if wake - now > LONGEST_SLEEP {
            sleep_watching(wake, stop);
            if stop.is_raised() {
                return clock::now();
            }
        } else if wake - now > SHORTEST_SLEEP {
            clock::sleep_until(wake);
            self.margin.learn(clock::now() - wake);
            self.breath.count_sleep(due);
        } else if self.breath.take_if_owed(now) {
            self.margin.shrink(DOWN_WHILE_SPINNING);
        }
        pacer::spin_until(due)
    }
}

/// How long before a deadline a sleep must end.
#[derive(Debug)]
struct Margin(Span);

impl Margin {
    fn learn(&mut self, overshoot: Span) {
        if overshoot > self.0 {
            self.0 = (self.0 + UP).min(LONGEST);
        }
        self.shrink(DOWN);
    }

    fn shrink(&mut self, by: Span) {
        self.0 = (self.0 - by).max(SHORTEST);
    }
}

const UP: Span = Span::from_micros(4);
const DOWN: Span = Span(8);
/// With each account of the [`Breath`], ten a second.
const DOWN_WHILE_SPINNING: Span = Span(200);
const SHORTEST: Span = Span::from_micros(8);
/// Beyond this it is somebody else's time slice that one waits for, and no margin covers that.
const LONGEST: Span = Span::from_micros(200);
/// Where others wait for the core it is worth more to leave it in every gap than to be exact in all
/// of them.
const CROWDED: Span = Span::from_micros(60);
/// Going to sleep and waking cost some 15 us of CPU time on a virtual machine; a shorter sleep
/// frees nothing and only makes the datagram late.
const SHORTEST_SLEEP: Span = Span::from_micros(20);
/// Longer sleeps watch the stop flag.
const LONGEST_SLEEP: Span = Span::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_settles_where_one_sleep_in_five_hundred_is_late() {
        let mut rng = netaware_stats::rng::SplitMix64::new(7);
        let mut margin = Margin(SHORTEST);
        let mut late = 0;
        for n in 0..400_000 {
            // Evenly between 0 and 100 us.
            let overshoot = Span((rng.next_u64() % 100_000) as i64);
            late += u32::from(n >= 200_000 && overshoot > margin.0);
            margin.learn(overshoot);
        }
        assert!((300..=500).contains(&late), "{late} of 200,000");
        assert!(margin.0 > Span::from_micros(95), "{}", margin.0);
    }

    #[test]
    fn the_margin_is_bounded_both_ways() {
        let mut margin = Margin(SHORTEST);
        for _ in 0..1000 {
            margin.learn(Span::from_secs(1));
        }
        assert!(margin.0 <= LONGEST);
        for _ in 0..100_000 {
            margin.learn(Span::ZERO);
        }
        assert_eq!(margin.0, SHORTEST);
    }
}
