//! When the data of a stream were given to the stack, acknowledged, and read: three times that
//! differ by what lies in buffers and on the way.
//!
//! A write returns when the data are in the send buffer, not when they are on the network, so
//! *given* leans short by what the buffer holds. *Acknowledged* is looked up in TCP_INFO while
//! waiting, at first every 100 us and then every sixteenth of the time waited: it leans late by at
//! most that, never by more than 10 ms.

use std::net::TcpStream;

use netaware_units::{ByteCount, Mono, Span};

use super::{Ended, clock};
use crate::stop::StopFlag;
use crate::tcp_info::TcpInfo;

/// Of one stream; absent is what never happened, or what the system does not tell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    /// The first call that moved data began (a write) or returned (a read).
    pub(super) first: Option<Mono>,
    /// The last call that moved data returned.
    pub(super) last: Option<Mono>,
    /// So much was acknowledged by then.
    pub(super) acked: Option<(Mono, ByteCount)>,
}

/// From the first to the last of all streams.
pub(super) fn span(ends: &[Ended]) -> Option<Span> {
    let last = ends.iter().filter_map(|end| end.moments.last).max()?;
    Some(last - first(ends)?)
}

/// From the first write of all streams until the last of them was acknowledged, and how much was.
/// Absent if a stream that wrote could not tell.
pub(super) fn acknowledged(ends: &[Ended]) -> Option<(Span, ByteCount)> {
    let wrote = || ends.iter().filter(|end| end.moments.first.is_some());
    let acked: Option<Vec<_>> = wrote().map(|end| end.moments.acked).collect();
    let acked = acked?;
    let last = acked.iter().map(|(at, _)| *at).max()?;
    Some(((last - first(ends)?).or_zero(), acked.iter().map(|(_, bytes)| *bytes).sum()))
}

fn first(ends: &[Ended]) -> Option<Mono> {
    ends.iter().filter_map(|end| end.moments.first).min()
}

/// What the peer has acknowledged so far, the opening of the connection included; zero where the
/// system does not tell.
pub(super) fn acked_before(stream: &TcpStream) -> ByteCount {
    TcpInfo::read(stream).map_or(ByteCount(0), |info| info.acked)
}

/// What a stream has sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    /// What its peer had acknowledged ([`acked_before`]) before the first of it.
    pub(super) acked_before: ByteCount,
    pub(super) payload: u64,
    /// What the socket was given of it: more where it is encrypted.
    pub(super) given: u64,
}

impl Sent {
    /// How much of what the socket was given has arrived. The end of the stream counts as a byte
    /// (RFC 9293 §3.4), so the sum may exceed the data by one.
    fn arrived(self, info: &TcpInfo) -> u64 {
        (info.acked - self.acked_before).0.min(self.given)
    }

    /// Of encrypted bytes so much is payload, as in the stream's mean.
    fn payload_of(self, arrived: u64) -> ByteCount {
        if arrived == self.given {
            return ByteCount(self.payload);
        }
        ByteCount((u128::from(arrived) * u128::from(self.payload) / u128::from(self.given.max(1))) as u64)
    }
}

/// How much is acknowledged now, and since when where that was long ago: the path may be gone.
pub(super) fn acked_now(stream: &TcpStream, sent: Sent) -> Option<(Mono, ByteCount)> {
    TcpInfo::read(stream).map(|info| (clock::now() - info.silence(), sent.payload_of(sent.arrived(&info))))
}

/// How long a sender waits for its peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Of sending, by the plan.
    pub(super) end: Mono,
    /// After that, and after what moved last.
    pub(super) grace: Span,
    /// No longer after the end than this, although the path's queues still give something.
    pub(super) longest_drain: Span,
}

impl Patience {
    /// Nobody waits longer, something having moved for the last time then.
    pub(super) fn until(self, moved_at: Mono) -> Mono {
        let drained_by = self.end + self.longest_drain;
        (self.end + self.grace).max((moved_at + self.grace).min(drained_by))
    }
}

/// Waits until all is acknowledged; less if the connection breaks, somebody stops, or the time is
/// over.
pub(super) fn await_acks(
    stream: &TcpStream,
    sent: Sent,
    patience: Patience,
    stop: &StopFlag,
) -> Option<(Mono, ByteCount)> {
    let began_at = clock::now();
    let (mut moved_at, mut before) = (began_at, 0);
    loop {
        let info = TcpInfo::read(stream)?;
        let now = clock::now();
        let arrived = sent.arrived(&info);
        if arrived > before {
            (moved_at, before) = (now, arrived);
        }
        let is_late = now >= patience.until(moved_at);
        if arrived == sent.given || info.is_closed || stop.is_raised() || is_late {
            return Some((now, sent.payload_of(arrived)));
        }
        clock::sleep(((now - began_at) / LOOKS).max(SHORTEST_LOOK).min(LONGEST_LOOK));
    }
}

/// See the module.
const LOOKS: i64 = 16;
const SHORTEST_LOOK: Span = Span::from_micros(100);
const LONGEST_LOOK: Span = Span::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_waits_for_a_queue_as_long_as_it_gives_and_not_by_its_length() {
        let at = Mono(1_000_000_000_000);
        let second = Span::from_secs(1);
        let patience = Patience { end: at, grace: second * 3, longest_drain: second * 12 };
        assert_eq!(patience.until(at - second), at + second * 3, "nothing came since the end");
        assert_eq!(patience.until(at + second * 8), at + second * 11, "8 s of queue");
        assert_eq!(patience.until(at + second * 11), at + second * 12, "within what the plan allows");
    }
}
