//! The thread that moves data: where it runs and what it costs.

use std::io;

use netaware_units::Span;

use crate::clock;

/// Keeps the calling thread on one core, counted from 0.
///
/// # Errors
/// There is no such core, it is not ours to use, or the system has no such call (only Linux has).
#[cfg(target_os = "linux")]
pub fn pin(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such core"));
    }
    // SAFETY: an all-zero set is the empty one; `core` is within it; 0 is the calling thread.
    let status = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Keeps the calling thread on one core: only Linux has the call.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn pin(_: usize) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "threads cannot be pinned on this system"))
}

/// Cores that the calling thread may run on, in order; empty where the system does not tell.
#[cfg(target_os = "linux")]
pub fn allowed_cores() -> Vec<usize> {
    // SAFETY: an all-zero set is the empty one and has the size told; 0 is the calling thread.
    let (status, set) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), set)
    };
    if status != 0 {
        return Vec::new();
    }
    // SAFETY: every number is within the set.
    (0..libc::CPU_SETSIZE as usize).filter(|core| unsafe { libc::CPU_ISSET(*core, &set) }).collect()
}

/// Cores that the calling thread may run on: only Linux tells.
#[cfg(not(target_os = "linux"))]
pub fn allowed_cores() -> Vec<usize> {
    Vec::new()
}

/// What the calling thread has used, between [`ThreadUse::begin`] and [`ThreadUse::share`].
///
/// Work that the kernel does in soft interrupts on another core is not in it, so a receiver reads
/// low.
#[derive(Debug, Clone, Copy)]
pub struct ThreadUse {
    at: netaware_units::Mono,
    used: Option<Span>,
    waiting: Option<Span>,
}

/// Shares of the time passed; absent where the system does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ThreadShare {
    /// On a core, 0..=1.
    pub used: Option<f64>,
    /// Ready to run while something else had the core, 0..=1.
    pub waiting: Option<f64>,
}

impl ThreadUse {
    /// Reads the counters of the calling thread.
    pub fn begin() -> Self {
        Self { at: clock::now(), used: cpu_time(), waiting: waiting_time() }
    }

    /// What was used since; to be called on the thread that called `begin`.
    pub fn share(&self) -> ThreadShare {
        let now = Self::begin();
        let elapsed = (now.at - self.at).secs_f64();
        let share = |now: Option<Span>, before: Option<Span>| {
            let spent = (now? - before?).secs_f64();
            (elapsed > 0.0).then(|| (spent / elapsed).clamp(0.0, 1.0))
        };
        ThreadShare { used: share(now.used, self.used), waiting: share(now.waiting, self.waiting) }
    }
}

#[cfg(target_os = "linux")]
fn cpu_time() -> Option<Span> {
    // SAFETY: all-zero is a valid rusage, and the call only writes to it.
    let (status, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), usage)
    };
    let span = |time: libc::timeval| Span::from_secs(time.tv_sec) + Span::from_micros(time.tv_usec);
    (status == 0).then(|| span(usage.ru_utime) + span(usage.ru_stime))
}

#[cfg(not(target_os = "linux"))]
fn cpu_time() -> Option<Span> {
    None
}

/// CPU time of the calling thread to the nanosecond, for loops: one system call, no file. Zero
/// where there is no such clock.
pub(crate) fn cpu_time_exact() -> Span {
    #[cfg(unix)]
    {
        let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `at` is valid for writing.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut at) };
        Span::from_secs(at.tv_sec) + Span::from_nanos(at.tv_nsec)
    }
    #[cfg(not(unix))]
    Span::ZERO
}

/// Second number of `/proc/thread-self/schedstat`: ns spent on a run queue.
pub(crate) fn waiting_time() -> Option<Span> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Span::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_does_not_exist_is_an_error() {
        assert!(pin(usize::MAX).is_err());
        assert!(pin(1023).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_may_run_where_it_is_pinned_and_nowhere_else() {
        let all = allowed_cores();
        assert!(!all.is_empty() && all.is_sorted());
        let last = *all.last().unwrap();
        std::thread::spawn(move || {
            pin(last).unwrap();
            assert_eq!(allowed_cores(), [last]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn shares_stay_between_zero_and_one() {
        let share = ThreadUse::begin().share();
        let known = share.used.into_iter().chain(share.waiting);
        assert!(known.into_iter().all(|share| (0.0..=1.0).contains(&share)));
    }
}
