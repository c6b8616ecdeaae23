//! CPU time as the kernel accounts it, for the whole process or one thread.
#![expect(unsafe_code, reason = "getrusage has no safe wrapper in the standard library")]

use std::time::Duration;

use netaware_units::Span;

/// User and kernel time since the process (or thread) began.
///
/// The kernel knows their sum to the nanosecond and reports microseconds. Without
/// `CONFIG_VIRT_CPU_ACCOUNTING` the *split* between the two is taken from samples at each timer
/// tick (1 to 10 ms apart).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CpuTime {
    pub(crate) user: Span,
    pub(crate) system: Span,
}

/// Of all threads of this process, ended ones included.
pub(crate) fn of_process() -> Option<CpuTime> {
    cpu_time(libc::RUSAGE_SELF)
}

/// Of the calling thread.
#[cfg(target_os = "linux")]
pub(crate) fn of_thread() -> Option<CpuTime> {
    cpu_time(libc::RUSAGE_THREAD)
}

/// Of the calling thread: unknown here, `RUSAGE_THREAD` is an extension of Linux.
#[cfg(not(target_os = "linux"))]
pub(crate) fn of_thread() -> Option<CpuTime> {
    None
}

fn cpu_time(who: libc::c_int) -> Option<CpuTime> {
    // SAFETY: `rusage` consists of integers only, for which all-zero bytes are a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a live, writable `rusage`, and the call keeps no pointer to it.
    let answer = unsafe { libc::getrusage(who, &raw mut usage) };
    (answer == 0).then(|| CpuTime { user: span(usage.ru_utime), system: span(usage.ru_stime) })
}

fn span(time: libc::timeval) -> Span {
    // The fields' widths differ by platform; neither is ever negative.
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    Span::from(seconds + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0)))
}
