//! Deadlines that are exact, and waiting for them to a fraction of a microsecond without keeping a
//! core busy.
//!
//! A sleep wakes late by what the timer, the hypervisor and the scheduler take: some 5 to 50 us. So
//! we sleep to a margin before the deadline and spin the rest. The margin is measured once per
//! process; it is bounded, because on a busy host the tail of a sleep is as long as somebody else's
//! time slice, and no margin covers that.

use std::sync::OnceLock;

use netaware_units::{Mono, Span};

use crate::clock;

/// Deadlines at equal distances, exact to the picosecond, so that the mean rate does not drift.
#[derive(Debug, Clone)]
pub struct Pacer {
    start: Mono,
    gap_ps: u64,
    steps: u64,
}

impl Pacer {
    /// The first deadline is `start`, each next one `gap_ps` picoseconds later.
    pub fn new(start: Mono, gap_ps: u64) -> Self {
        Self { start, gap_ps, steps: 0 }
    }

    /// The deadline now due; stays the same until [`Self::advance`].
    #[inline]
    pub fn due(&self) -> Mono {
        let nanos = u128::from(self.gap_ps) * u128::from(self.steps) / 1000;
        Mono(self.start.0.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Goes on to the next deadline.
    #[inline]
    pub fn advance(&mut self) {
        self.steps += 1;
    }

    /// Goes on to the first deadline at or after `now` and says how many were left out.
    pub fn skip_to(&mut self, now: Mono) -> u64 {
        let passed = u128::from((now - self.due()).or_zero().0.cast_unsigned()) * 1000;
        let skipped = passed.div_ceil(u128::from(self.gap_ps.max(1)));
        let skipped = u64::try_from(skipped).unwrap_or(u64::MAX);
        self.steps = self.steps.saturating_add(skipped);
        skipped
    }

    /// How many deadlines have passed under the plan.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// Waits for a deadline and returns the time then: at least the deadline, later only if the host
/// had the thread wait.
pub fn wait_until(deadline: Mono) -> Mono {
    let wake = deadline - margin();
    let now = clock::now();
    if wake > now + SHORTEST_SLEEP {
        clock::sleep_until(wake);
    }
    spin_until(deadline)
}

/// Keeps the core until a deadline; for the last microseconds only.
#[inline]
pub(crate) fn spin_until(deadline: Mono) -> Mono {
    loop {
        let now = clock::now();
        if now >= deadline {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// How long before a deadline a sleep must end: what nine of ten sleeps overshoot, and a half more.
/// The first call takes some 5 ms to measure it.
pub fn margin() -> Span {
    static MARGIN: OnceLock<Span> = OnceLock::new();
    *MARGIN.get_or_init(|| {
        let _precise = precise_sleep();
        let mut overshoots: Vec<Span> = (0..SAMPLES).map(|_| overshoot(SAMPLE_SLEEP)).collect();
        overshoots.sort_unstable();
        let nine_of_ten = overshoots[SAMPLES * 9 / 10];
        (nine_of_ten + nine_of_ten / 2).clamp(SHORTEST_MARGIN, LONGEST_MARGIN)
    })
}

fn overshoot(sleep: Span) -> Span {
    let until = clock::now() + sleep;
    clock::sleep_until(until);
    clock::now() - until
}

/// While it lives, sleeps of this thread are not merged with later timers (`PR_SET_TIMERSLACK`: 50
/// us by default).
#[derive(Debug)]
pub struct PreciseSleep(());

/// Asks for sleeps of this thread that end as soon as the timer allows.
pub fn precise_sleep() -> PreciseSleep {
    set_timer_slack(1);
    PreciseSleep(())
}

impl Drop for PreciseSleep {
    fn drop(&mut self) {
        // Zero means the default.
        set_timer_slack(0);
    }
}

#[cfg(target_os = "linux")]
fn set_timer_slack(nanos: libc::c_ulong) {
    // SAFETY: takes a number; concerns the calling thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos) };
}

#[cfg(not(target_os = "linux"))]
fn set_timer_slack(_: u64) {}

const SAMPLES: usize = 40;
const SAMPLE_SLEEP: Span = Span::from_micros(100);
const SHORTEST_MARGIN: Span = Span::from_micros(8);
const LONGEST_MARGIN: Span = Span::from_micros(60);
/// Below this a sleep returns at once and only costs the call.
const SHORTEST_SLEEP: Span = Span::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_do_not_drift() {
        // A third of a microsecond: truncating each gap to nanoseconds would lose 0.1 % of the
        // rate.
        let mut pacer = Pacer::new(Mono(5), 333_333);
        for _ in 0..3_000_000 {
            pacer.advance();
        }
        assert_eq!(pacer.due(), Mono(5 + 999_999_000));
    }

    #[test]
    fn a_skip_ends_at_a_deadline_that_is_not_over() {
        let mut pacer = Pacer::new(Mono(0), 10_000_000);
        assert_eq!(pacer.skip_to(Mono(0)), 0);
        assert_eq!((pacer.skip_to(Mono(25_000)), pacer.due()), (3, Mono(30_000)));
        assert_eq!((pacer.skip_to(Mono(30_000)), pacer.skip_to(Mono(10_000))), (0, 0));
        assert_eq!(pacer.steps(), 3);
        Pacer::new(Mono(0), 0).skip_to(Mono(u64::MAX));
    }

    #[test]
    fn a_wait_never_ends_early() {
        for micros in [0, 1, 50, 300] {
            let deadline = clock::now() + Span::from_micros(micros);
            assert!(wait_until(deadline) >= deadline);
        }
    }
}
