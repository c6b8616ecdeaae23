//! What a send that failed means for its stream.

use std::io::{self, ErrorKind};

/// Counts the refused datagrams of one stream.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    not_sent: u64,
    unanswered: u32,
}

impl Refusals {
    /// Counts a datagram that did not leave and says whether the stream is over with it.
    pub(super) fn end_it(&mut self, error: &io::Error) -> bool {
        self.not_sent += 1;
        match Refusal::from(error) {
            Refusal::Busy => false,
            Refusal::NobodyThere => {
                self.unanswered += 1;
                self.unanswered > MOST_UNANSWERED
            }
            Refusal::Fatal => true,
        }
    }

    /// Counts datagrams that were left out without being tried.
    pub(super) fn left_out(&mut self, count: u64) {
        self.not_sent += count;
    }

    pub(super) fn not_sent(&self) -> u64 {
        self.not_sent
    }
}

/// What a failed send means for the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// Queues are full or the wait was too long: the next one may leave.
    Busy,
    /// Nobody listens there (ICMP port unreachable for an earlier datagram).
    NobodyThere,
    /// No datagram will leave.
    Fatal,
}

impl From<&io::Error> for Refusal {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut => Self::Busy,
            ErrorKind::ConnectionRefused => Self::NobodyThere,
            _ if error.raw_os_error() == Some(NO_BUFFERS) => Self::Busy,
            _ => Self::Fatal,
        }
    }
}

/// A responder that is about to open its socket may refuse a few.
const MOST_UNANSWERED: u32 = 20;
#[cfg(unix)]
const NO_BUFFERS: i32 = libc::ENOBUFS;
/// `WSAENOBUFS`.
#[cfg(not(unix))]
const NO_BUFFERS: i32 = 10055;
