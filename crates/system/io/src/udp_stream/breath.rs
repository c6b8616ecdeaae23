//! Keeps the core for a paced stream whose gaps leave no room for sleep, with as little harm as
//! possible.
//!
//! Measured at gaps of 10 and 20 us on two virtual cores, the longest hole in ten seconds, holes
//! above 2 ms (few runs each):
//!
//! | thread that only spins | host at rest | beside a busy compiler |
//! |---|---|---|
//! | as an ordinary thread | 1 to 4 ms, 0 to 2 | 5 to 12 ms, 170 to 240 |
//! | with priority | 50 ms, one each second | 50 ms, one each second |
//! | with priority, off the core 5 % of the time | | 50 ms, one each second |
//! | with priority, off the core 9 % of the time | | 1 to 12 ms, a few; one of 77 ms in two minutes |
//!
//! A thread with priority that does not sleep has the core taken from it for 5 % of each second, in
//! one piece. So while nobody waits the stream runs as an ordinary thread; when somebody does it
//! takes priority, if it may, and leaves the core by itself. A stream that somebody else asked for
//! loses it for good when it takes more than half of the core ([`super::allowance`]). Many short
//! sleeps would disturb the gaps least, but below 15 us a sleep costs as much CPU time as it lasts
//! and frees nothing. So where gaps are shorter than that a breath is taken every 4 ms and lasts
//! some 350 us: one gap in two hundred (at 20 us) is long, those after it are a little short until
//! the plan is caught up with.

use netaware_units::{Mono, Span};

use super::allowance::Allowance;
use super::crowd::Crowd;
use super::standing::Standing;
use crate::priority::Permits;
use crate::{clock, thread};

/// Time off the core that is owed to others, kept by the thread's own CPU clock.
#[derive(Debug)]
pub(super) struct Breath {
    owed: Span,
    settled_at: Mono,
    cpu_then: Span,
    crowd: Crowd,
    standing: Standing,
    /// Counted while the thread is raised.
    allowance: Allowance,
}

impl Breath {
    /// For the calling thread.
    pub(super) fn new(start: Mono, permits: &Permits) -> Self {
        let cpu_then = thread::cpu_time_exact();
        Self {
            owed: Span::ZERO,
            settled_at: start,
            cpu_then,
            crowd: Crowd::new(start),
            standing: Standing::new(permits.clone()),
            allowance: Allowance::new(start, cpu_then),
        }
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.crowd.is_waiting()
    }

    /// To be called in every gap that has a sleep, and between the datagrams of a burst.
    #[inline]
    pub(super) fn count_sleep(&mut self, now: Mono) {
        if self.is_time(now) {
            self.settle(now);
        }
    }

    /// To be called in every gap that is too short for a sleep; costs a comparison nearly always.
    /// Whether the account was settled.
    #[inline]
    pub(super) fn take_if_owed(&mut self, now: Mono) -> bool {
        let is_time = self.is_time(now);
        if is_time {
            self.settle(now);
            // Without the privilege for it we go on as an ordinary thread, and sleeping would not
            // help that one.
            if self.standing.is_raised() && self.owed > LEAST_BREATH {
                clock::sleep_until(now + self.owed);
            }
        }
        is_time
    }

    /// System calls cool the caches, which the next datagram feels: no more of them than needed.
    #[inline]
    fn is_time(&self, now: Mono) -> bool {
        let every = if self.standing.is_raised() { BREATHE_EVERY } else { LOOK_EVERY };
        now - self.settled_at >= every
    }

    #[cold]
    fn settle(&mut self, now: Mono) {
        let cpu = thread::cpu_time_exact();
        self.account(now, cpu);
        self.crowd.look(now);
        if self.standing.is_bounded() && self.allowance.is_exceeded(now, cpu) {
            self.standing.give_up();
        }
        if self.crowd.is_waiting() != self.standing.is_raised() {
            self.standing.set(self.crowd.is_waiting());
            self.owed = Span::ZERO;
            self.allowance = Allowance::new(now, cpu);
        }
    }

    fn account(&mut self, now: Mono, cpu: Span) {
        let passed = now - self.settled_at;
        let idle = (passed - (cpu - self.cpu_then)).or_zero();
        let owed = self.owed + passed * SHARE_PERCENT / 100 - idle;
        self.owed = Span(owed.0.clamp(-MOST_OWED.0, MOST_OWED.0));
        (self.settled_at, self.cpu_then) = (now, cpu);
    }
}

const SHARE_PERCENT: i64 = 9;
const BREATHE_EVERY: Span = Span::from_millis(4);
/// While nobody waits.
const LOOK_EVERY: Span = Span::from_millis(100);
const LEAST_BREATH: Span = Span::from_micros(50);
/// No debt is paid off in one go.
const MOST_OWED: Span = Span::from_micros(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_owed_follows_the_cpu_clock_and_is_bounded_both_ways() {
        let mut breath = Breath { cpu_then: Span::ZERO, ..Breath::new(Mono(0), &Permits::none()) };
        breath.account(Mono(1_000_000), Span::from_millis(1));
        assert_eq!(breath.owed, Span::from_micros(90));
        breath.account(Mono(2_000_000), Span::from_micros(1_900));
        assert_eq!(breath.owed, Span::from_micros(80));
        breath.account(Mono(9_000_000_000), Span::from_micros(1_900));
        assert_eq!(breath.owed, -MOST_OWED);
        breath.account(Mono(99_000_000_000), Span::from_secs(99));
        assert_eq!(breath.owed, MOST_OWED);
    }
}
