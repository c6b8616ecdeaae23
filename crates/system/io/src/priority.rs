//! Keeps other programs from delaying a thread that has deadlines.

/// Asks the scheduler to run this thread before all ordinary ones (`SCHED_FIFO`, lowest priority).
/// Needs privilege; false means that it goes on as an ordinary thread, which on a busy host loses
/// the core for some milliseconds at a time.
///
/// The kernel takes 5 % of each second back for ordinary threads, in one piece (50 ms), if this one
/// has not slept as much: see `udp_stream::breath`.
#[cfg(target_os = "linux")]
pub fn raise() -> bool {
    set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)
}

/// As [`raise`], and before every thread that was raised so: for what such threads must not be able
/// to hold up.
#[cfg(target_os = "linux")]
pub fn raise_above_raised() -> bool {
    set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, ABOVE_RAISED)
}

/// Well below the kernel's own threads (50).
#[cfg(target_os = "linux")]
const ABOVE_RAISED: libc::c_int = 10;

/// Asks for the largest share that an ordinary thread can have (nice -20). The kernel takes nothing
/// back from such a one, so it may keep a core for good; another that becomes ready on the same
/// core waits at most a slice of the scheduler's, and so does this one. Needs privilege.
#[cfg(target_os = "linux")]
pub fn favour() -> bool {
    // SAFETY: takes numbers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) == 0 }
}

/// An ordinary thread again.
#[cfg(target_os = "linux")]
pub fn lower() -> bool {
    set(libc::SCHED_OTHER, 0)
}

#[cfg(target_os = "linux")]
fn set(policy: libc::c_int, sched_priority: libc::c_int) -> bool {
    let parameter = libc::sched_param { sched_priority };
    // SAFETY: 0 is the calling thread; the parameter is valid for the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) == 0 }
}

/// Asks for priority: only Linux is asked.
#[cfg(not(target_os = "linux"))]
pub fn raise() -> bool {
    false
}

/// Asks for priority: only Linux is asked.
#[cfg(not(target_os = "linux"))]
pub fn raise_above_raised() -> bool {
    false
}

/// Asks for a large share: only Linux is asked.
#[cfg(not(target_os = "linux"))]
pub fn favour() -> bool {
    false
}

/// An ordinary thread, as it always was.
#[cfg(not(target_os = "linux"))]
pub fn lower() -> bool {
    true
}
