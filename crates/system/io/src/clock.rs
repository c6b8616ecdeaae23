//! The clocks of this host. Nobody else reads them.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use netaware_units::{Mono, Span, Wall};

/// Now, on the monotonic clock (`CLOCK_MONOTONIC`): never steps, runs at the rate that NTP steers
/// it to.
#[inline]
pub fn now() -> Mono {
    #[cfg(unix)]
    {
        read(libc::CLOCK_MONOTONIC)
    }
    #[cfg(not(unix))]
    {
        static ZERO: OnceLock<Instant> = OnceLock::new();
        #[expect(clippy::disallowed_methods, reason = "this is the room that reads clocks")]
        let now = Instant::now();
        let zero = *ZERO.get_or_init(|| now);
        Mono(u64::try_from(now.duration_since(zero).as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The same instant as a library has it that thinks in [`Instant`]s, which have no zero: off by the
/// nanoseconds between two readings, always by the same.
pub fn instant(at: Mono) -> Instant {
    let (zero, begun) = pair();
    let since = at - begun;
    if since.0 >= 0 { zero + since.to_std() } else { zero.checked_sub((begun - at).to_std()).unwrap_or(zero) }
}

/// [`instant`] back again.
pub fn mono(at: Instant) -> Mono {
    let (zero, begun) = pair();
    let nanos = |span: std::time::Duration| Span(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX));
    if at >= zero { begun + nanos(at - zero) } else { begun - nanos(zero - at) }
}

fn pair() -> (Instant, Mono) {
    static PAIR: OnceLock<(Instant, Mono)> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "this is the room that reads clocks")]
    *PAIR.get_or_init(|| (Instant::now(), now()))
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

/// How long this host has been suspended since it was started: [`now`] stands still meanwhile. Zero
/// where the system does not say.
pub fn suspended() -> Span {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        (read(libc::CLOCK_BOOTTIME) - now()).or_zero()
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
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

/// What [`wall`] was when [`now`] was zero, to some 30 ns: added to a monotonic instant it gives
/// the wall clock's, as long as nobody sets that. Both run at the same steered rate.
pub fn wall_at_zero() -> Wall {
    (0..READINGS).map(|_| reading()).min_by_key(|(width, _)| *width).map_or(Wall(0), |(_, zero)| zero)
}

/// The wall clock between two readings of the monotonic one: how far those are apart, and what it
/// was at zero if it was read half-way.
fn reading() -> (Span, Wall) {
    let (before, at, after) = (now(), wall(), now());
    let width = after - before;
    (width, Wall(at.0.saturating_sub_unsigned(before.0).saturating_sub(width.0 / 2)))
}

/// The wall clock at the monotonic one's zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(Wall);

impl Epoch {
    /// The wall clock at an instant.
    pub fn plus(self, at: Mono) -> Wall {
        Wall(self.0.0.saturating_add_unsigned(at.0))
    }
}

/// Like [`wall_at_zero`], from one reading of 90 ns that was not interrupted. Its error is about
/// 500 ns.
pub fn wall_at_zero_quickly() -> Epoch {
    Epoch(uninterrupted(reading))
}

/// The first reading that is narrow. One that was interrupted is off by up to half of the
/// interruption and is taken again, a few times at most, since on a host whose clock is slow to
/// read none is narrow.
fn uninterrupted(mut read: impl FnMut() -> (Span, Wall)) -> Wall {
    let mut narrowest = read();
    for _ in 1..MAX_QUICK_READINGS {
        if narrowest.0 <= NARROW {
            break;
        }
        let again = read();
        if again.0 < narrowest.0 {
            narrowest = again;
        }
    }
    narrowest.1
}

/// Of which the narrowest is taken.
const READINGS: u32 = 16;
const MAX_QUICK_READINGS: u32 = 4;
/// Ten times what a reading takes where the clock is read without a system call.
const NARROW: Span = Span::from_micros(1);

/// What the kernel was told of the wall clock by the program that steers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steering {
    /// Somebody says that it is right.
    pub synchronised: bool,
    /// No further from true time than this; grows by 500 us a second without news.
    pub bound: Span,
}

/// The kernel's view of the wall clock (`adjtimex`); `None` where there is none.
pub fn steering() -> Option<Steering> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: all-zero is a valid request to change nothing.
        let mut told: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: `told` is valid for writing; with no mode set nothing is changed and no privilege
        // needed.
        let state = unsafe { libc::adjtimex(&raw mut told) };
        let synchronised = state >= 0 && state != libc::TIME_ERROR && told.status & libc::STA_UNSYNC == 0;
        (state >= 0).then(|| Steering { synchronised, bound: Span::from_micros(told.maxerror) })
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Sleeps to a deadline; returns at once if it has passed. Wakes a few to tens of microseconds
/// late: see [`crate::pacer`] for the precise kind.
pub fn sleep_until(deadline: Mono) {
    #[cfg(target_os = "linux")]
    {
        let at = libc::timespec {
            tv_sec: (deadline.0 / 1_000_000_000) as libc::time_t,
            tv_nsec: (deadline.0 % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `at` is a valid timespec for the whole call; no remainder is asked for. A signal
        // ends the sleep early: the caller looks at the clock anyway, the loop here makes it rare.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of these widths in ns, each with a wall clock of its own; what is chosen, and how
    /// many were taken.
    fn chosen(widths: &[i64]) -> (Wall, usize) {
        let mut taken = 0;
        let wall = uninterrupted(|| {
            taken += 1;
            (Span(widths[taken - 1]), Wall(taken as i64))
        });
        (wall, taken)
    }

    #[test]
    fn interrupted_reading_of_the_wall_clock_is_taken_again() {
        for (widths, wall, taken) in [
            (&[90][..], 1, 1),
            (&[60_000, 90], 2, 2),
            (&[60_000, 3_000_000, 100], 3, 3),
            // A clock that is slow to read.
            (&[1_500, 1_400, 60_000, 1_600], 2, 4),
        ] {
            assert_eq!(chosen(widths), (Wall(wall), taken), "{widths:?}");
        }
    }
}
