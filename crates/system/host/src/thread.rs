//! CPU time of one thread.
//!
//! Measures what the scheduler charged to the thread, and how long it was ready to run while
//! something else had the core. Assumes that both readings come from the same thread. What a thread
//! causes outside its own context (soft interrupts on another core, kernel threads) is not in it,
//! so on the receiving side it reads low; compare with [`crate::CpuSnapshot`]. Interrupts that
//! happen to hit the thread are charged to it, unless the kernel is built with
//! `CONFIG_IRQ_TIME_ACCOUNTING`.

use netaware_units::Span;

use crate::{kernel_file, rusage};

/// CPU time of the calling thread since it began. Costs about 5 us: take it around a transfer, not
/// within.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadCpu {
    /// User and kernel mode together, resolution 1 us; absent outside Linux.
    pub used: Option<Span>,
    /// Of that, in kernel mode. The split may be sampled at the timer tick (1 to 10 ms).
    pub system: Option<Span>,
    /// Ready to run, but waiting for a core; absent without `/proc/thread-self/schedstat`. Time
    /// during which the hypervisor withheld the core is not in it.
    pub waiting: Option<Span>,
    /// How often it was given a core; absent as `waiting` is.
    pub slices: Option<u64>,
}

/// What a thread used of the time between two readings, as shares of it, each 0..=1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ThreadShare {
    /// On a core.
    pub used: Option<f64>,
    /// Of that share: in kernel mode.
    pub system: Option<f64>,
    /// Waiting for a core.
    pub waiting: Option<f64>,
}

impl ThreadCpu {
    /// Reads the calling thread's counters.
    pub fn now() -> Self {
        let time = rusage::of_thread();
        let schedule = kernel_file::read("/proc/thread-self/schedstat");
        Self {
            used: time.map(|time| time.user + time.system),
            system: time.map(|time| time.system),
            waiting: schedule.as_deref().and_then(parse_waiting),
            slices: schedule.as_deref().and_then(parse_slices),
        }
    }

    /// Shares of `elapsed`, the time that passed since `earlier` was read on the same thread; all
    /// absent when it is not positive.
    #[must_use]
    pub fn share_since(&self, earlier: &Self, elapsed: Span) -> ThreadShare {
        let share = |now: Option<Span>, before: Option<Span>| share_of(now? - before?, elapsed);
        ThreadShare {
            used: share(self.used, earlier.used),
            system: share(self.system, earlier.system),
            waiting: share(self.waiting, earlier.waiting),
        }
    }
}

fn share_of(part: Span, elapsed: Span) -> Option<f64> {
    (elapsed > Span::ZERO).then(|| (part.secs_f64() / elapsed.secs_f64()).clamp(0.0, 1.0))
}

/// The second of three numbers (ns on the core, ns waiting, time slices):
/// Documentation/scheduler/sched-stats.rst.
fn parse_waiting(schedstat: &str) -> Option<Span> {
    let nanos: u64 = schedstat.split_whitespace().nth(1)?.parse().ok()?;
    i64::try_from(nanos).ok().map(Span::from_nanos)
}

/// The third of them.
fn parse_slices(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_the_second_number_or_absent() {
        let rows: &[(&str, Option<i64>)] = &[
            ("0 41682 1\n", Some(41_682)),
            ("9 8 7 6", Some(8)),
            ("5", None),
            ("", None),
            ("a b c", None),
            ("1 -2 3", None),
            ("1 99999999999999999999 3", None),
            ("1 18446744073709551615 3", None),
        ];
        for (n, (text, want)) in rows.iter().enumerate() {
            assert_eq!(parse_waiting(text), want.map(Span), "row {n}: {text:?}");
        }
        let slices = ["0 41682 1\n", "9 8", "9 8 -7", ""].map(parse_slices);
        assert_eq!(slices, [Some(1), None, None, None]);
    }

    fn reading(used_ms: i64, waiting_ms: i64) -> ThreadCpu {
        ThreadCpu {
            used: Some(Span::from_millis(used_ms)),
            system: Some(Span::ZERO),
            waiting: Some(Span::from_millis(waiting_ms)),
            slices: Some(0),
        }
    }

    #[test]
    fn shares_are_of_the_elapsed_time_and_stay_within_bounds() {
        let share = reading(350, 120).share_since(&reading(100, 20), Span::from_millis(1000));
        assert_eq!((share.used, share.system, share.waiting), (Some(0.25), Some(0.0), Some(0.1)));
        let backwards = reading(0, 0).share_since(&reading(100, 20), Span::from_millis(1000));
        assert_eq!(backwards.used, Some(0.0));
        let shortened = reading(500, 0).share_since(&reading(0, 0), Span::from_millis(400));
        assert_eq!(shortened.used, Some(1.0));
    }

    #[test]
    fn without_time_or_without_counters_there_is_no_share() {
        let none = ThreadShare::default();
        assert_eq!(reading(2, 2).share_since(&reading(1, 1), Span::ZERO), none);
        assert_eq!(ThreadCpu::default().share_since(&reading(1, 1), Span::from_secs(1)), none);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_computing_thread_uses_cpu_time() {
        let before = ThreadCpu::now();
        let mut sum = 0_u64;
        let grew = (0..100_000_u64).any(|n| {
            sum = std::hint::black_box(sum.wrapping_mul(n));
            ThreadCpu::now().used > before.used.map(|used| used + Span::from_millis(5))
        });
        assert!(grew, "100,000 readings took less than 5 ms of CPU time");
    }
}
