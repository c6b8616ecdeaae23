//! Keeps other programs from delaying a paced sender, without starving them.

/// Asks the scheduler to run this thread before all ordinary ones (`SCHED_FIFO`, lowest priority). Needs privilege; false
/// means that it goes on as an ordinary thread, which on a busy host loses the core for some milliseconds at a time.
///
/// The kernel takes 5 % of each second back for ordinary threads, in one piece (50 ms), if they have had less. So a thread
/// that asks for this must sleep more than that by itself: see `breath`.
#[cfg(target_os = "linux")]
pub(super) fn raise() -> bool {
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread; the parameter is valid for the call.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameter) == 0
    }
}

/// Asks for priority: only Linux is asked.
#[cfg(not(target_os = "linux"))]
pub(super) fn raise() -> bool {
    false
}
