//! What a send that failed means for its stream.
//!
//! A failed send is data: its datagram is one that was not sent, and the stream keeps to its times,
//! because a route that was withdrawn, a link that is down and a filter that drops may all be back
//! with the next datagram. Only a stream whose datagrams are too long for this host to send at all
//! is over with its first error.

use std::io;

use netaware_record::SendRefusal;
use netaware_units::{Mono, Span};

use crate::probe_socket::{is_refusal, is_too_big};
use crate::timeout::is_timeout;

/// Counts the datagrams of one stream that were not sent.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    not_sent: u64,
    in_a_row: u32,
}

impl Refusals {
    /// Counts a datagram that did not leave and says whether the stream is over with it: the system
    /// cannot send datagrams of this length, and has not sent any.
    pub(super) fn end_it(&mut self, error: &io::Error, sent: u64) -> bool {
        self.not_sent += 1;
        self.in_a_row = if is_busy(error) { 0 } else { self.in_a_row.saturating_add(1) };
        sent == 0 && is_too_big(error)
    }

    /// A datagram left.
    pub(super) fn over(&mut self) {
        self.in_a_row = 0;
    }

    /// How long a sender that has no times of its own waits before it tries again: a system that
    /// refuses each datagram is not asked in a busy loop.
    pub(super) fn pause(&self) -> Option<Span> {
        let doublings = self.in_a_row.checked_sub(TRIED_AT_ONCE)?;
        Some((SHORTEST_PAUSE * (1_i64 << doublings.min(5))).min(LONGEST_PAUSE))
    }

    /// Counts datagrams that were left out without being tried.
    pub(super) fn left_out(&mut self, count: u64) {
        self.not_sent += count;
    }

    pub(super) fn not_sent(&self) -> u64 {
        self.not_sent
    }
}

/// Queues are full or the wait was too long: the next one may leave.
fn is_busy(error: &io::Error) -> bool {
    is_timeout(error) || error.raw_os_error() == Some(NO_BUFFERS)
}

/// Whether an error may be the answer to an earlier datagram: then this one has not been tried yet.
pub(super) fn may_be_about_another(error: &io::Error) -> bool {
    is_refusal(error) && !is_too_big(error)
}

/// What the system answered, error by error.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    since: Option<Mono>,
    told: Vec<SendRefusal>,
}

impl Answers {
    /// The stream's times count from here.
    pub(crate) fn begin(&mut self, at: Mono) {
        self.since.get_or_insert(at);
    }

    /// An error, and how many datagrams were not sent for it.
    pub(crate) fn note(&mut self, error: &io::Error, at: Mono, not_sent: u64) {
        // No answer of the system.
        if is_timeout(error) {
            return;
        }
        let since = self.since.map_or(Span::ZERO, |since| (at - since).or_zero());
        let cause = error.to_string();
        let told = match self.told.iter().position(|told| told.cause == cause) {
            Some(known) => &mut self.told[known],
            None if self.told.len() < MOST_CAUSES => {
                self.told.push(SendRefusal { cause, first: since, ..SendRefusal::default() });
                let last = self.told.len() - 1;
                &mut self.told[last]
            }
            None => return,
        };
        told.count += 1;
        told.not_sent += not_sent;
        told.last = since;
    }

    pub(crate) fn finish(self) -> Vec<SendRefusal> {
        self.told
    }
}

#[cfg(unix)]
const NO_BUFFERS: i32 = libc::ENOBUFS;
/// `WSAENOBUFS`.
#[cfg(not(unix))]
const NO_BUFFERS: i32 = 10055;
/// A filter that drops single datagrams must not slow the stream down.
const TRIED_AT_ONCE: u32 = 4;
const SHORTEST_PAUSE: Span = Span::from_millis(1);
/// A route that is back is found again within this.
const LONGEST_PAUSE: Span = Span::from_millis(20);
/// Different errors of one stream that are kept.
const MOST_CAUSES: usize = 8;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn error(errno: i32) -> io::Error {
        io::Error::from_raw_os_error(errno)
    }

    const HARD: [i32; 10] = [
        libc::ENETUNREACH,
        libc::EHOSTUNREACH,
        libc::ENETDOWN,
        libc::EHOSTDOWN,
        libc::EPERM,
        libc::EACCES,
        libc::ECONNREFUSED,
        libc::EINVAL,
        libc::EADDRNOTAVAIL,
        libc::ENOBUFS,
    ];

    #[test]
    fn a_hard_send_error_does_not_end_a_stream() {
        for errno in HARD {
            let mut refusals = Refusals::default();
            for _ in 0..1000 {
                assert!(!refusals.end_it(&error(errno), 0), "errno {errno}");
            }
            assert_eq!(refusals.not_sent(), 1000, "errno {errno}");
        }
    }

    #[test]
    fn a_datagram_too_long_to_be_sent_at_all_ends_its_stream_and_one_on_the_way_does_not() {
        let mut refusals = Refusals::default();
        assert!(refusals.end_it(&error(libc::EMSGSIZE), 0));
        assert!(!refusals.end_it(&error(libc::EMSGSIZE), 1), "the path MTU has changed");
    }

    #[test]
    fn who_is_refused_again_and_again_is_not_asked_in_a_busy_loop() {
        let mut refusals = Refusals::default();
        let mut pauses = Vec::new();
        for _ in 0..40 {
            refusals.end_it(&error(libc::ENETUNREACH), 9);
            pauses.push(refusals.pause());
        }
        assert_eq!(pauses[..3], [None; 3]);
        assert_eq!((pauses[3], pauses[39]), (Some(SHORTEST_PAUSE), Some(LONGEST_PAUSE)));
        assert!(pauses.is_sorted());
        refusals.over();
        assert_eq!(refusals.pause(), None);
        // A full queue makes room by itself.
        for _ in 0..40 {
            refusals.end_it(&error(libc::ENOBUFS), 9);
        }
        assert_eq!(refusals.pause(), None);
    }

    #[test]
    fn each_cause_is_kept_with_its_times_and_there_are_few() {
        let mut answers = Answers::default();
        answers.begin(Mono(1_000));
        for (at, errno, not_sent) in
            [(3_000, libc::ENETUNREACH, 1), (5_000, libc::ENETUNREACH, 1), (6_000, libc::ECONNREFUSED, 0)]
        {
            answers.note(&error(errno), Mono(at), not_sent);
        }
        answers.note(&error(libc::EAGAIN), Mono(7_000), 1);
        for errno in 1..20 {
            answers.note(&error(errno), Mono(8_000), 1);
        }
        let told = answers.finish();
        assert_eq!(told.len(), MOST_CAUSES);
        assert!(told[0].cause.contains("unreachable"), "{told:?}");
        assert_eq!((told[0].first, told[1].first), (Span(2_000), Span(5_000)));
        assert_eq!((told[0].count, told[0].not_sent, told[0].last), (2, 2, Span(4_000)));
        assert_eq!((told[1].count, told[1].not_sent), (1, 0));
    }
}
