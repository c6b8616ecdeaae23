//! What a program that ends still owes.
//!
//! Bytes given to a plain socket are sent by the kernel though the program has ended. Bytes given
//! to a stream are sent by a thread of the library, so the library waits for it when the program
//! returns from `main` or calls `exit`: as long as the peer acknowledges more, and no longer than a
//! minute in all. A program that is killed or calls `_exit` takes with it what the peer does not
//! have.

use std::sync::OnceLock;

use netaware_units::Span;

use crate::{signals, table};

/// The process that has to wait: a child of `fork` has the streams, but not their threads.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// From the first stream on.
pub(crate) fn arrange() {
    PROCESS.get_or_init(|| {
        // SAFETY: the function is this library's, and such functions run before a library is
        // unloaded.
        unsafe { libc::atexit(at_exit) };
        std::process::id()
    });
}

extern "C" fn at_exit() {
    if PROCESS.get() == Some(&std::process::id()) {
        // A panic must not go through `exit`.
        let _ = std::panic::catch_unwind(|| {
            signals::stop();
            table::clear();
            netaware_stream::settle(PATIENCE);
        });
    }
}

/// A stream whose peer acknowledges nothing more is waited for so long, and four round trips more.
const PATIENCE: Span = Span::from_secs(5);
