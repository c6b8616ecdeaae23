//! Keeps what goes wrong here away from the program: panics, locks that somebody holds, our own
//! calls seen as the program's.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::system::{errno, set_errno, yield_now};

thread_local! {
    /// This thread is at work for us: a resolver's modules connect too.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Does it unless it is being done in this thread already; nothing where it panics. Leaves `errno`
/// as it was, unless `work` sets one by what it returns.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Option<T>) -> Option<T> {
    if BUSY.try_with(|busy| busy.replace(true)).unwrap_or(true) {
        return None;
    }
    let before = errno();
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_default();
    set_errno(before);
    let _ = BUSY.try_with(|busy| busy.set(false));
    done
}

/// Marks a thread of ours for good.
pub(crate) fn always_busy() {
    let _ = BUSY.try_with(|busy| busy.set(true));
}

/// A lock, if it is free soon. It may never be: a signal's handler may have interrupted its holder,
/// or the holder was a thread of the process that this one was forked from.
pub(crate) fn lock_soon<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..PATIENCE {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => yield_now(),
        }
    }
    None
}

/// Turns given away: some milliseconds at most, and what is done under our locks takes
/// microseconds.
const PATIENCE: u32 = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_nothing_and_errno_stays() {
        // The gate allows a test to survive the panics of a thread with this name.
        let thread = std::thread::Builder::new().name("panics on purpose".to_owned());
        let ended = thread.spawn(|| {
            set_errno(libc::EAGAIN);
            let done = guarded(|| -> Option<()> {
                set_errno(libc::EIO);
                panic!("on purpose")
            });
            (done, errno(), guarded(|| Some(1)))
        });
        assert_eq!(ended.unwrap().join().unwrap(), (None, libc::EAGAIN, Some(1)));
    }

    #[test]
    fn it_does_not_see_itself() {
        assert_eq!(guarded(|| Some(guarded(|| Some(1)))), Some(None));
    }

    #[test]
    fn a_lock_that_is_never_free_is_given_up() {
        let mutex = Mutex::new(());
        let held = lock_soon(&mutex).unwrap();
        assert!(lock_soon(&mutex).is_none());
        drop(held);
        assert!(lock_soon(&mutex).is_some());
    }
}
