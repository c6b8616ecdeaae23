//! How long a thread that must be on time had no core.
//!
//! Measures, over pieces of one thread's work, how long it was ready to run while something else
//! had the core: **denied** is that over the time in which it had to be on time, which is what a
//! piece took less the rests that were planned in it. Whichever core the thread runs on, what
//! others keep of it is in the waiting, to the nanosecond, where ticks of `/proc/stat` see a core
//! and no thread. Assumes that all pieces run on one thread, and that a wake-up's own few
//! microseconds harm nobody: who must be on time wakes up earlier by more than that. Biased low:
//! what interrupts and the hypervisor take while the thread runs is no waiting
//! ([`crate::CpuSnapshot`] knows steal).

use netaware_units::{Mono, Span};

use crate::ThreadCpu;

/// Of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreDemand {
    waiting: Span,
    /// Time in which the thread had to be on time.
    timely: Span,
    /// A counter was missing: nothing can be told.
    unknown: bool,
}

impl CoreDemand {
    /// Runs a piece of work on the calling thread, in which `rests` are planned; `clock` is the
    /// caller's. Costs some 20 us around it.
    pub fn during<T>(&mut self, clock: impl Fn() -> Mono, rests: Span, work: impl FnOnce() -> T) -> T {
        let (before, began_at) = (ThreadCpu::now(), clock());
        let result = work();
        let took = clock().since(began_at);
        self.add(&before, &ThreadCpu::now(), took - rests);
        result
    }

    /// Waited for a core, of the time in which it had to be on time, 0..=1; `None` where the system
    /// does not tell, and over less than 1 ms.
    pub fn denied(&self) -> Option<f64> {
        (!self.unknown && self.timely >= LEAST).then(|| self.waiting.secs_f64() / self.timely.secs_f64())
    }

    fn add(&mut self, before: &ThreadCpu, after: &ThreadCpu, timely: Span) {
        let waited = waited(before, after);
        self.unknown |= waited.is_none();
        let waited = waited.unwrap_or_default();
        self.waiting += waited;
        // Who waits in a rest is late for what follows.
        self.timely += timely.max(waited);
    }
}

/// Beyond what wake-ups take anyway; never below zero.
fn waited(before: &ThreadCpu, after: &ThreadCpu) -> Option<Span> {
    let wake_ups = i64::try_from(after.slices?.saturating_sub(before.slices?)).unwrap_or(i64::MAX);
    let harmless = Span(WAKE_UP.nanos().saturating_mul(wake_ups));
    Some((after.waiting? - before.waiting? - harmless).or_zero())
}

/// What a wake-up waits on a host with idle cores, generously.
const WAKE_UP: Span = Span::from_micros(10);
/// Less time is a few wake-ups.
const LEAST: Span = Span::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(waiting_us: i64, slices: u64) -> ThreadCpu {
        ThreadCpu {
            waiting: Some(Span::from_micros(waiting_us)),
            slices: Some(slices),
            ..ThreadCpu::default()
        }
    }

    fn of(pieces: &[(ThreadCpu, ThreadCpu, i64)]) -> Option<f64> {
        let mut demand = CoreDemand::default();
        for (before, after, timely_us) in pieces {
            demand.add(before, after, Span::from_micros(*timely_us));
        }
        demand.denied()
    }

    #[test]
    fn denied_is_the_waiting_of_all_that_had_to_be_on_time_and_pieces_add_up() {
        let pieces = [(reading(0, 5), reading(0, 5), 3_000), (reading(7_000, 5), reading(8_000, 5), 1_000)];
        assert_eq!(of(&pieces), Some(0.25));
        assert_eq!(
            of(&[(reading(0, 0), reading(4_000, 0), -500)]),
            Some(1.0),
            "rests too were waited through"
        );
        assert_eq!(of(&[(reading(900, 0), reading(0, 0), 2_000)]), Some(0.0), "nothing is denied backwards");
    }

    #[test]
    fn what_each_wake_up_takes_is_not_denied() {
        assert_eq!(of(&[(reading(0, 0), reading(1_000, 100), 2_000)]), Some(0.0));
        assert_eq!(of(&[(reading(0, 0), reading(1_500, 100), 2_000)]), Some(0.25));
    }

    #[test]
    fn too_little_time_and_missing_counters_tell_nothing() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(reading(0, 0), reading(500, 0), 999)]), None);
        for blind in
            [ThreadCpu { waiting: None, ..reading(9, 9) }, ThreadCpu { slices: None, ..reading(9, 9) }]
        {
            assert_eq!(of(&[(reading(0, 0), reading(0, 0), 9_000), (reading(0, 0), blind, 9_000)]), None);
        }
    }

    #[test]
    fn work_is_run_and_its_result_handed_on() {
        let at = std::cell::Cell::new(0);
        let clock = || Mono(at.replace(at.get() + 5_000_000));
        let mut demand = CoreDemand::default();
        assert_eq!(demand.during(clock, Span::from_millis(2), || 42), 42);
        assert!(demand.timely >= Span::from_millis(3) && demand.waiting <= demand.timely, "{demand:?}");
    }
}
