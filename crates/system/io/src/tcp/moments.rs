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
    Some((last - first(ends)?, acked.iter().map(|(_, bytes)| *bytes).sum()))
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

/// How much is acknowledged now.
pub(super) fn acked_now(stream: &TcpStream, sent: Sent) -> Option<(Mono, ByteCount)> {
    TcpInfo::read(stream).map(|info| (clock::now(), sent.payload_of(sent.arrived(&info))))
}

/// Waits until all is acknowledged; less if the connection breaks, somebody stops, or the time is
/// over.
pub(super) fn await_acks(
    stream: &TcpStream,
    sent: Sent,
    until: Mono,
    stop: &StopFlag,
) -> Option<(Mono, ByteCount)> {
    let began_at = clock::now();
    loop {
        let info = TcpInfo::read(stream)?;
        let now = clock::now();
        let arrived = sent.arrived(&info);
        if arrived == sent.given || info.is_closed || stop.is_raised() || now >= until {
            return Some((now, sent.payload_of(arrived)));
        }
        clock::sleep(((now - began_at) / LOOKS).max(SHORTEST_LOOK).min(LONGEST_LOOK));
    }
}

/// See the module.
const LOOKS: i64 = 16;
const SHORTEST_LOOK: Span = Span::from_micros(100);
const LONGEST_LOOK: Span = Span::from_millis(10);
