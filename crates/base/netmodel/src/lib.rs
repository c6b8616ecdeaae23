//! A network path whose truth is known: links, queues, impairments and cross traffic as arithmetic
//! over time.
//!
//! A [`Scenario`] says what the path is; a [`Network`] is one scenario with one seed, told packets
//! and asked for their [`Fate`]s. The caller keeps one contract:
//!
//! 1. Time is the caller's. [`Network::offer`] and [`Network::advance`] take it as an argument and
//!    it never runs backwards.
//! 2. Every packet that is offered gets exactly one fate, except that a [`Fate::Delivered`] marked
//!    `duplicate` may come on top.
//! 3. What happens depends on the scenario, the seed and the offered packets, never on how often
//!    `advance` is called.
//!
//! Cross traffic needs no packets from outside: it is drawn inside and costs arithmetic only. Who
//! waits long between two calls of `advance` pays for all of it at once, so a caller in real time
//! calls at least once a millisecond.
//!
//! Nothing here reads a clock, starts a thread, opens a socket or draws randomness that the seed
//! does not fix.

mod clock;
mod network;
pub mod scenario;
mod source;
pub mod truth;

pub use clock::HostClock;
pub use network::Network;
pub use scenario::{Scenario, ScenarioError};
pub use truth::Truth;

use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use serde::{Deserialize, Serialize};

/// One of the two hosts at the ends of the path. What A sends travels forward: hop 0, 1, 2 and so
/// on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The near end of hop 0.
    A,
    /// The far end of the last hop.
    B,
}

impl Side {
    /// The host at the other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// What the model needs to know of a packet; its bytes stay with the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The caller's name for it; comes back in its fates.
    pub id: u64,
    /// Which wire of each link it takes.
    pub version: IpVersion,
    /// IP total length in bytes, headers included.
    pub length: u32,
    /// Time to live or hop limit as sent; each router takes one.
    pub hop_limit: u8,
    /// Whatever identifies its flow: parallel links that balance by flow send equal values the same
    /// way.
    pub flow: u64,
    /// Whether an IPv4 router must refuse it rather than fragment it. IPv6 routers always refuse.
    pub dont_fragment: bool,
}

/// What filters tell packets apart by; of little use to the rest of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kind {
    /// What follows the IP header.
    pub protocol: scenario::Protocol,
    /// Of source and destination; 0 where there is none.
    pub ports: [u16; 2],
    /// It says that its transport understands ECN.
    pub ecn: bool,
    /// It resets a connection of TCP.
    pub reset: bool,
}

/// What became of an offered packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    /// It reached the other host.
    Delivered {
        /// As offered.
        id: u64,
        /// When the host's stack has it.
        at: Mono,
        /// The receiving host.
        to: Side,
        /// What the routers left of it.
        hop_limit: u8,
        /// A further copy; the first one had, or will have, a fate of its own.
        duplicate: bool,
        /// Which bit of the IP packet arrived flipped, counted from the first bit of its header.
        corrupted_bit: Option<u32>,
        /// True one-way delay, from `offer` to `at`.
        delay: Span,
    },
    /// An ICMP error about it reached its sender.
    Answered {
        /// As offered.
        id: u64,
        /// When the sender's stack has the error.
        at: Mono,
        /// The sender.
        to: Side,
        /// Which router answers: router `i` stands at the far end of hop `i` as seen from A.
        hop: usize,
        /// By which of the parallel links of the hop before it the packet came there, from 0:
        /// routers answer with the address of the interface that a packet came in by.
        member: u16,
        /// What the router says.
        answer: Answer,
    },
    /// It is gone.
    Dropped {
        /// As offered.
        id: u64,
        /// When.
        at: Mono,
        /// On which hop; for `HopLimit` the router at that hop's far end as seen from A.
        hop: usize,
        /// Why.
        cause: DropCause,
    },
}

impl Fate {
    /// When it happened, and from which `advance` on it is told.
    pub const fn at(&self) -> Mono {
        match self {
            Self::Delivered { at, .. } | Self::Answered { at, .. } | Self::Dropped { at, .. } => *at,
        }
    }

    /// The packet's id as offered.
    pub const fn id(&self) -> u64 {
        match self {
            Self::Delivered { id, .. } | Self::Answered { id, .. } | Self::Dropped { id, .. } => *id,
        }
    }
}

/// What an ICMP error says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The hop limit ran out at this router.
    TimeExceeded,
    /// The next link takes less: fragmentation needed (IPv4) or packet too big (IPv6).
    TooBig {
        /// Of the next link, bytes of IP packet.
        mtu: u32,
    },
}

/// Why a packet ended before its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropCause {
    /// The queue had no room.
    Queue,
    /// CoDel dropped it at the head of the queue.
    CoDel,
    /// Lost on the wire.
    Loss,
    /// The policer had no tokens.
    Policer,
    /// Too big for the link, and nobody answers.
    Mtu,
    /// The hop limit ran out, and the router is silent or over its answering rate.
    HopLimit,
    /// This link swallows this IP version.
    BlackHole,
    /// A router answered, but its answer was lost on the way back.
    AnswerLost,
    /// The link was down for a time.
    Outage,
    /// A filter does not let such packets pass.
    Filter,
    /// A filter ended their TCP connection.
    Reset,
}

impl DropCause {
    /// All of them, in the order of [`truth::Counts::dropped`].
    pub const ALL: [Self; 11] = [
        Self::Queue,
        Self::CoDel,
        Self::Loss,
        Self::Policer,
        Self::Mtu,
        Self::HopLimit,
        Self::BlackHole,
        Self::AnswerLost,
        Self::Outage,
        Self::Filter,
        Self::Reset,
    ];
}
