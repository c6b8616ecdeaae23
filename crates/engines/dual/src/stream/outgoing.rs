//! The direction away from this end: which bytes go next, and which can be forgotten.
//!
//! ```text
//!  0 ──── acked ──── again.0 ═══ again.1 ──── sent ──── queued
//!         known      to go once more          to go for the first time, up to `limit`
//! ```

use netaware_wire::dual::Record;

use super::{Due, Violation};

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Outgoing {
    acked: u64,
    /// Next to go over the current connection when nothing goes again.
    sent: u64,
    /// What was written at least once ends here.
    most_sent: u64,
    queued: u64,
    /// What the peer can take ends here; it never goes back.
    limit: u64,
    /// Empty where both are equal.
    again: (u64, u64),
    end: End,
    /// It was told at least once: an acknowledgement of that may come while it waits to be told
    /// again.
    end_was_told: bool,
}

/// How far the end of the direction is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum End {
    /// The application may send more.
    #[default]
    Open,
    /// To be told after the last byte.
    Wanted,
    /// Told, and maybe lost.
    Told,
    /// The peer has everything.
    Acked,
}

impl Outgoing {
    pub(super) fn acked(&self) -> u64 {
        self.acked
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn is_over(&self) -> bool {
        self.end == End::Acked
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.end != End::Open
    }

    pub(super) fn queued(&mut self, bytes: u64) {
        debug_assert!(self.end == End::Open, "bytes after the end");
        self.queued += bytes;
    }

    pub(super) fn finish(&mut self) {
        if self.end == End::Open {
            self.end = End::Wanted;
        }
    }

    /// What the peer has and can take. Acknowledgements may overtake each other on two connections:
    /// what they say only grows.
    pub(super) fn acknowledge(&mut self, received: u64, room: u32, all: bool) -> Result<(), Violation> {
        if received > self.most_sent || (all && !self.end_was_told) {
            return Err(Violation::AcknowledgedUnsent);
        }
        self.acked = self.acked.max(received);
        self.limit = self.limit.max(received + u64::from(room));
        self.sent = self.sent.max(self.acked);
        self.again.0 = self.again.0.max(self.acked).min(self.again.1);
        if all {
            self.end = End::Acked;
        }
        Ok(())
    }

    /// Everything that is not acknowledged goes again.
    pub(super) fn rewind(&mut self) {
        self.sent = self.acked;
        self.again = (self.acked, self.acked);
        self.tell_end_again();
    }

    /// What was sent before `until` and is not acknowledged goes again before anything else; how
    /// many bytes that are.
    pub(super) fn repeat(&mut self, until: u64) -> u64 {
        let until = until.min(self.sent);
        self.again = (self.acked.min(until), until);
        self.tell_end_again();
        self.again.1 - self.again.0
    }

    /// Where it was told may be lost with it.
    pub(super) fn tell_end_again(&mut self) {
        if self.end == End::Told {
            self.end = End::Wanted;
        }
    }

    /// The next record, its data at most `longest` bytes.
    pub(super) fn next(&mut self, longest: u32) -> Option<Due> {
        let (from, until) =
            if self.again.0 < self.again.1 { self.again } else { (self.sent, self.queued.min(self.limit)) };
        if from < until {
            let length = (until - from).min(u64::from(longest));
            let place = if self.again.0 < self.again.1 { &mut self.again.0 } else { &mut self.sent };
            *place += length;
            self.most_sent = self.most_sent.max(from + length);
            return Some(Due::Data { offset: from, length: length as u32 });
        }
        if self.end == End::Wanted && self.sent == self.queued {
            self.end = End::Told;
            self.end_was_told = true;
            return Some(Due::Record(Record::Fin { offset: self.queued }));
        }
        None
    }
}
