//! What is sent in one go, and what became of it.

use std::net::IpAddr;

use netaware_units::{Mono, Span};

/// What a probe is. All probes of a kind are one flow: ports, identifier, checksum and flow label
/// never change, so that routers which balance by flow send them the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// UDP to a port where nobody is expected.
    Udp,
    /// ICMP echo request.
    Echo,
    /// ICMP timestamp request (RFC 792), IPv4 only; its length is always 40 bytes.
    Timestamp,
}

/// A packet to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Time to live or hop limit.
    pub ttl: u8,
    /// IP total length, bytes.
    pub length: u32,
    /// What it is.
    pub kind: Kind,
    /// From the start of the probe before it (of the round, for the first) to its own; zero is back
    /// to back.
    pub after: Span,
    /// Whether the round waits for its answer.
    pub awaited: bool,
    /// To be discarded by its destination without an answer, where that can be had: UDP over IPv6
    /// without its checksum (RFC 8200 §8.1), which routers do not look at.
    pub mute: bool,
}

/// Probes, and how long answers are waited for after the last one has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// In the order of sending.
    pub probes: Vec<Probe>,
    /// The round ends sooner when all that are awaited have been answered.
    pub patience: Span,
}

/// What answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A router where the hop limit ran out.
    TimeExceeded,
    /// The destination: nobody listens there.
    PortUnreachable,
    /// The destination: an echo.
    EchoReply,
    /// The destination: a timestamp.
    TimestampReply,
    /// A router that goes no further: no route, forbidden, or nobody at that address.
    Refused,
    /// A router whose next link takes only so many bytes; 0 where it does not say.
    TooBig(u32),
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// When it came.
    pub at: Mono,
    /// Who sent it.
    pub from: IpAddr,
    /// What it says.
    pub what: What,
    /// IP total length of the answer, bytes, where it is known.
    pub length: Option<u32>,
    /// The identification of its IPv4 header, where the socket sees that.
    pub ident: Option<u16>,
    /// What a timestamp reply tells of the destination's clock.
    pub stamps: Option<HostStamps>,
}

/// Stamps of an ICMP timestamp reply, as they came: milliseconds since midnight UT, if the host
/// keeps to RFC 792.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostStamps {
    /// When the request came there.
    pub receive: u32,
    /// When the reply left there.
    pub transmit: u32,
}

/// What became of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It never left this host.
    NotSent,
    /// It is larger than this host's interface or the path MTU that the host knows takes, in bytes.
    TooBig(u32),
    /// Nothing came.
    Silent,
    /// An answer came.
    Answered(Reply),
}

/// One probe's story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// When it left.
    pub sent_at: Mono,
    /// What became of it.
    pub fate: Fate,
}

impl Told {
    /// The answer, if there was one.
    pub fn reply(&self) -> Option<Reply> {
        match self.fate {
            Fate::Answered(reply) => Some(reply),
            _ => None,
        }
    }

    /// From its departure to the answer.
    pub fn rtt(&self) -> Option<Span> {
        self.reply().map(|reply| reply.at - self.sent_at)
    }
}

/// What became of a round; as many entries as probes, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoundReport {
    /// By probe.
    pub probes: Vec<Told>,
    /// Answers to probes of earlier rounds, which had been given up.
    pub late: Vec<LateAnswer>,
}

/// The answer to a probe whose round was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateAnswer {
    /// What the probe was.
    pub kind: Kind,
    /// Its time to live or hop limit.
    pub ttl: u8,
    /// When it left.
    pub sent_at: Mono,
    /// From its departure to the answer.
    pub rtt: Span,
    /// Who answered.
    pub from: IpAddr,
    /// What the answer says.
    pub what: What,
}

impl LateAnswer {
    /// The answer itself; its length is not remembered.
    pub fn reply(&self) -> Reply {
        let (at, from, what) = (self.sent_at + self.rtt, self.from, self.what);
        Reply { at, from, what, length: None, ident: None, stamps: None }
    }
}

impl RoundReport {
    /// A round after which nothing came late.
    pub fn of(probes: Vec<Told>) -> Self {
        Self { probes, late: Vec::new() }
    }

    /// The longest round trip of an answer that came late.
    pub fn longest_late(&self) -> Option<Span> {
        self.late.iter().map(|late| late.rtt).max()
    }
}
