//! The clocks of this host. Nobody else reads them.

#[cfg(not(unix))]
use std::time::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

use netaware_units::{Mono, Span, Wall};

/// Now, on the monotonic clock (`CLOCK_MONOTONIC`): never steps, runs at the rate that NTP steers it to.
#[inline]
pub fn now() -> Mono {
    #[cfg(unix)]
    {
        read(libc::CLOCK_MONOTONIC)
    }
    #[cfg(not(unix))]
    {
        static ZERO: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        #[expect(clippy::disallowed_methods, reason = "this is the room that reads clocks")]
        let now = Instant::now();
        let zero = *ZERO.get_or_init(|| now);
        Mono(u64::try_from(now.duration_since(zero).as_nanos()).unwrap_or(u64::MAX))
    }
}

/// What the system claims for the resolution of [`now`]; zero where it claims nothing.
pub fn claimed_resolution() -> Span {
    #[cfg(unix)]
    {
        let mut step = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `step` is valid for writing; the clock always exists.
        unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &raw mut step) };
        Span::from_secs(step.tv_sec) + Span::from_nanos(step.tv_nsec)
    }
    #[cfg(not(unix))]
    Span::ZERO
}

/// Now, as this host believes it to be in the world. May step; labels only.
pub fn wall() -> Wall {
    #[expect(clippy::disallowed_methods, reason = "this is the room that reads clocks")]
    let now = SystemTime::now();
    match now.duration_since(UNIX_EPOCH) {
        Ok(since) => Wall(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)),
        Err(before) => Wall(-i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX)),
    }
}

/// Sleeps to a deadline; returns at once if it has passed. Wakes a few to tens of microseconds late: see
/// [`crate::pacer`] for the precise kind.
pub fn sleep_until(deadline: Mono) {
    #[cfg(target_os = "linux")]
    {
        let at = libc::timespec {
            tv_sec: (deadline.0 / 1_000_000_000) as libc::time_t,
            tv_nsec: (deadline.0 % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `at` is a valid timespec for the whole call; no remainder is asked for.
        // A signal ends the sleep early: the caller looks at the clock anyway, the loop here makes it rare.
        while unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const at,
                std::ptr::null_mut(),
            )
        } == libc::EINTR
        {}
    }
    #[cfg(not(target_os = "linux"))]
    {
        #[expect(clippy::disallowed_methods, reason = "this is the room that waits")]
        std::thread::sleep((deadline - now()).to_std());
    }
}

/// Sleeps for a span.
pub fn sleep(span: Span) {
    sleep_until(now() + span);
}

#[cfg(unix)]
#[inline]
fn read(clock: libc::clockid_t) -> Mono {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is valid for writing; both clocks used here always exist.
    unsafe { libc::clock_gettime(clock, &raw mut at) };
    Mono(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}
