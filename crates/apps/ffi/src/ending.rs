//! What a program that ends still owes, and which process that is.
//!
//! Bytes given to a plain socket are sent by the kernel though the program has ended. Bytes given
//! to a stream are sent by a thread of the library, so the library waits for it when the program
//! returns from `main` or calls `exit`: as long as the peer acknowledges more, and no longer than a
//! minute in all. A program that is killed or calls `_exit` takes with it what the peer does not
//! have.
//!
//! A child of `fork` has copies of the descriptors and of the memory, but none of the threads. It
//! could write into its parent's connections, and a lock that a thread held at that moment is never
//! free there. So every call looks at the process before it touches anything.

use std::sync::atomic::{AtomicU32, Ordering};

use netaware_units::Span;

use crate::calls::NA_EFORK;
use crate::error::Failure;
use crate::{signals, table};

/// The process that opened the first stream, and that waits at its end; 0 before. It is a plain
/// number because a child has to read it whatever a thread of its parent was doing.
static OWNER: AtomicU32 = AtomicU32::new(NOBODY);

/// From the first stream on.
pub(crate) fn arrange() {
    let first = OWNER.compare_exchange(NOBODY, std::process::id(), Ordering::SeqCst, Ordering::SeqCst);
    if first.is_ok() {
        // SAFETY: the function is this library's, and such functions run before a library is
        // unloaded.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Checks that the streams are this process's.
pub(crate) fn check_process() -> Result<(), Failure> {
    let owner = OWNER.load(Ordering::SeqCst);
    if may_use(owner, std::process::id()) {
        return Ok(());
    }
    let words = format!(
        "after fork the streams belong to process {owner}, which opened them; this process has to execute a program \
         before it can use libnetaware"
    );
    Err(Failure::new(NA_EFORK, words))
}

fn may_use(owner: u32, process: u32) -> bool {
    owner == NOBODY || owner == process
}

extern "C" fn at_exit() {
    if OWNER.load(Ordering::SeqCst) == std::process::id() {
        // A panic must not go through `exit`.
        let _ = std::panic::catch_unwind(|| {
            signals::stop();
            table::clear();
            netaware_stream::settle(PATIENCE);
        });
    }
}

/// No process that can call has this number.
const NOBODY: u32 = 0;
/// A stream whose peer acknowledges nothing more is waited for so long, and four round trips more.
const PATIENCE: Span = Span::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_may_not_use_what_its_parent_opened_and_may_open_its_own_where_it_opened_nothing() {
        for (owner, process, may) in [(NOBODY, 7, true), (7, 7, true), (7, 8, false)] {
            assert_eq!(may_use(owner, process), may, "{owner} {process}");
        }
    }
}
