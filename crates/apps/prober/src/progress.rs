//! What a person may watch while it runs.

use netaware_record::{Direction, IpVersion, RatePoint};
use netaware_units::{BitRate, ByteCount, Span};

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A new phase began, or time passed in it.
    Phase {
        /// "TCP down, 4 streams".
        what: String,
        /// Over which version, if over one.
        version: Option<IpVersion>,
        /// Since the measurement began.
        done: Span,
        /// What it will take in all.
        total: Span,
    },
    /// Somebody else is measuring; it goes on by itself.
    Queued {
        /// 1 = next.
        place: u32,
        /// At most, if those in front use all they asked for.
        expected_wait: Span,
    },
    /// A slice of a bulk transfer.
    Interval {
        /// Over which version.
        version: IpVersion,
        /// Which way.
        direction: Direction,
        /// Since the start of the transfer.
        start: Span,
        /// Since the start of the transfer.
        end: Span,
        /// Payload received in it.
        bytes: ByteCount,
        /// Mean payload rate.
        rate: BitRate,
        /// Datagrams received, for UDP.
        packets: Option<u64>,
        /// Datagrams missing, for UDP.
        lost: Option<i64>,
        /// Segments sent again, for TCP, as far as the sender has told yet.
        retransmits: Option<u64>,
        /// The sender's smoothed round trip, for TCP.
        rtt: Option<Span>,
        /// The sender's congestion windows, for TCP.
        cwnd: Option<ByteCount>,
    },
    /// What is known of a path that is followed.
    Rate {
        /// Over which version.
        version: IpVersion,
        /// Which way.
        direction: Direction,
        /// The figure, and when it was known.
        point: RatePoint,
    },
    /// A remark for the person who waits.
    Note(String),
}

/// Counts the time that phases take against the plan, and tells the listener.
pub(crate) struct Watch<'a> {
    listener: &'a mut dyn FnMut(Progress),
    began_at: netaware_units::Mono,
    total: Span,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(total: Span, listener: &'a mut dyn FnMut(Progress)) -> Self {
        Self { listener, began_at: netaware_io::clock::now(), total }
    }

    /// What it will take is known only now.
    pub(crate) fn expect(&mut self, total: Span) {
        self.total = total;
    }

    /// Waiting for other measurements is not part of the plan: the clock is put back.
    pub(crate) fn exclude(&mut self, waited: Span) {
        self.began_at += waited;
    }

    /// Since the measurement began, waiting for others not counted.
    pub(crate) fn done(&self) -> Span {
        netaware_io::clock::now() - self.began_at
    }

    pub(crate) fn phase(&mut self, what: impl Into<String>, version: Option<IpVersion>) {
        let done = self.done();
        let total = self.total.max(done);
        (self.listener)(Progress::Phase { what: what.into(), version, done, total });
    }

    pub(crate) fn tell(&mut self, progress: Progress) {
        (self.listener)(progress);
    }
}
