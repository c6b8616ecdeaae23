//! What a failed call leaves behind: `errno`, and words.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::io::{self, ErrorKind};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why a call fails.
#[derive(Debug)]
pub(crate) struct Failure {
    errno: c_int,
    words: String,
}

impl Failure {
    pub(crate) fn new(errno: c_int, words: impl Into<String>) -> Self {
        Self { errno, words: words.into() }
    }

    /// Leaves it where the caller looks for it.
    pub(crate) fn leave(self) {
        let words = CString::new(self.words.replace('\0', " ")).unwrap_or_default();
        LAST.with(|last| last.replace(words));
        errno::set_errno(errno::Errno(self.errno));
    }
}

/// Valid until the next failure in this thread.
pub(crate) fn last() -> *const c_char {
    LAST.with(|last| CStr::as_ptr(&last.borrow()))
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let of_kind = match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => libc::EAGAIN,
            ErrorKind::BrokenPipe => libc::EPIPE,
            ErrorKind::ConnectionReset => libc::ECONNRESET,
            ErrorKind::ConnectionAborted => libc::ECONNABORTED,
            ErrorKind::ConnectionRefused => libc::ECONNREFUSED,
            ErrorKind::NotConnected => libc::ENOTCONN,
            ErrorKind::AddrInUse => libc::EADDRINUSE,
            ErrorKind::InvalidInput => libc::EINVAL,
            _ => libc::EIO,
        };
        Self::new(error.raw_os_error().unwrap_or(of_kind), error.to_string())
    }
}
