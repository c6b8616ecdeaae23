//! Keeps other programs from delaying a paced sender.

/// Whether the calling thread runs before all ordinary ones (`SCHED_FIFO`, lowest priority). Needs privilege; without it
/// the thread stays an ordinary one, which on a busy host loses the core for some milliseconds at a time.
///
/// The kernel takes 5 % of each second back for ordinary threads, in one piece (50 ms), from a thread with priority that
/// has not slept as much: see `breath`.
#[derive(Debug, Default)]
pub(super) struct Priority {
    raised: bool,
    refused: bool,
}

impl Priority {
    pub(super) fn is_raised(&self) -> bool {
        self.raised
    }

    /// Before the ordinary threads, or one of them again.
    pub(super) fn set(&mut self, first: bool) {
        if first != self.raised && !(first && self.refused) {
            let done = set(first);
            self.raised = if done { first } else { self.raised };
            self.refused |= first && !done;
        }
    }
}

#[cfg(target_os = "linux")]
fn set(first: bool) -> bool {
    let (policy, sched_priority) =
        if first { (libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1) } else { (libc::SCHED_OTHER, 0) };
    let parameter = libc::sched_param { sched_priority };
    // SAFETY: 0 is the calling thread; the parameter is valid for the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) == 0 }
}

/// Only Linux is asked.
#[cfg(not(target_os = "linux"))]
fn set(_: bool) -> bool {
    false
}
