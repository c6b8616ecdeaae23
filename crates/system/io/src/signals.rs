//! What a library does to keep out of the way of its program's signals, and what a program was
//! started with.

use std::io;

/// Blocks all signals in the calling thread: a library's own threads run no handler of the
/// program's.
pub fn block_all() {
    // SAFETY: an all-zero set is a valid one to fill; the old mask is not asked for.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// Whether the process ignores a signal, as one that `nohup` has started ignores `SIGHUP`. False
/// for a number that is no signal.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero action is a valid one to write to; nothing is changed.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Begins a thread in which all signals are blocked.
///
/// # Errors
/// No more threads.
pub fn quiet_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        block_all();
        work();
    })
}

/// As long as it lives, writing to a connection that is gone raises no `SIGPIPE` in the calling
/// thread: `sendfile` has no flag for that. One that was pending before stays so.
#[derive(Debug)]
pub struct NoPipeSignal {
    was_blocked: bool,
    was_pending: bool,
    /// The mask is the thread's.
    _stays: std::marker::PhantomData<*const ()>,
}

impl NoPipeSignal {
    /// From now on.
    #[must_use]
    pub fn begin() -> Self {
        let was_pending = is_pending();
        // SAFETY: both sets are valid, the second one for writing.
        let was_blocked = unsafe {
            let pipe = pipe_set();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, &raw mut before);
            libc::sigismember(&raw const before, libc::SIGPIPE) == 1
        };
        Self { was_blocked, was_pending, _stays: std::marker::PhantomData }
    }
}

impl Drop for NoPipeSignal {
    fn drop(&mut self) {
        if !self.was_pending && is_pending() {
            #[cfg(target_os = "linux")]
            // SAFETY: set and time are valid; what it takes is of no interest.
            unsafe {
                let (pipe, now) = (pipe_set(), libc::timespec { tv_sec: 0, tv_nsec: 0 });
                libc::sigtimedwait(&raw const pipe, std::ptr::null_mut(), &raw const now);
            }
        }
        if !self.was_blocked {
            // SAFETY: the set is valid; the old mask is not asked for.
            unsafe {
                let pipe = pipe_set();
                libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const pipe, std::ptr::null_mut());
            }
        }
    }
}

fn pipe_set() -> libc::sigset_t {
    // SAFETY: an all-zero set is a valid one to empty and add to.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGPIPE);
        set
    }
}

fn is_pending() -> bool {
    // SAFETY: the set is valid for writing.
    unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut pending);
        libc::sigismember(&raw const pending, libc::SIGPIPE) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_ignored_is_told_from_one_that_is_not() {
        // SAFETY: handlers of the system's own.
        unsafe { libc::signal(libc::SIGWINCH, libc::SIG_IGN) };
        assert!(is_ignored(libc::SIGWINCH) && !is_ignored(-1));
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGWINCH, libc::SIG_DFL) };
        assert!(!is_ignored(libc::SIGWINCH));
    }

    #[test]
    fn a_signal_of_the_time_in_between_is_gone_afterwards() {
        // SAFETY: a handler of the system's own.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let guard = NoPipeSignal::begin();
        // SAFETY: to this thread, which blocks it.
        unsafe { libc::raise(libc::SIGPIPE) };
        assert!(is_pending());
        drop(guard);
        assert!(!is_pending(), "and this process lives");
    }
}
