//! What a host that does not cooperate answers to.

use netaware_units::{ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DelaySummary, Health, HonestRate, Interval, Pedigree, RateBound};

/// What it was asked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReachProtocol {
    /// ICMP echo.
    Echo,
    /// TCP connection: accepted or refused, both are answers.
    Tcp,
    /// UDP to a closed port.
    Udp,
    /// ICMP timestamp (RFC 792), over IPv4.
    Timestamp,
}

impl ReachProtocol {
    /// The words shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Echo => "ICMP echo",
            Self::Tcp => "TCP SYN",
            Self::Udp => "UDP",
            Self::Timestamp => "ICMP timestamp",
        }
    }
}

/// One protocol's answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReachResult {
    /// Where it comes from.
    pub pedigree: Pedigree,
    /// What the host was asked with.
    pub protocol: ReachProtocol,
    /// To which port; absent for ICMP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Questions that left.
    pub asked: u32,
    /// Of these, answered in time.
    pub answered: u32,
    /// Of the others: an answer came after the question had been given up.
    #[serde(default, skip_serializing_if = "netaware_units::is_default")]
    pub late: u32,
    /// Questions that never left this host, by its own firewall or for want of a route: they are
    /// not among the asked.
    #[serde(default, skip_serializing_if = "netaware_units::is_default")]
    pub not_sent: u32,
    /// What the answers were: `echo_reply`, `accepted`, `refused`, `port_unreachable`,
    /// `unreachable`, …, each once.
    pub answers: Vec<String>,
    /// Who answered, if it was not the host itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Share without an answer, in time or late, 0..=1; absent where nothing ever answered or the
    /// host rations its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Which way it was lost, where that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_direction: Option<ReachLoss>,
    /// Round trips of lone small questions and of the first of small bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<DelaySummary>,
    /// The narrowest link there and back, from pairs, where trains bear them out; else a bound, or
    /// absent, with a flag that says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<ReachCapacity>,
    /// Which way queues, from the host's own stamps; absent where it has none that can be believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<ReachQueues>,
    /// IP bytes sent, estimated for TCP.
    pub bytes: ByteCount,
    /// From the first question to the last answer.
    pub took: Span,
    /// What the instrument did while this version was asked: late sends, processors, steal.
    #[serde(default)]
    pub health: Health,
    /// What this host can tell from pairs of this packet, and what limits it; where there is a
    /// capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HonestRate>,
    /// As words for programs: `silent`, `rate_limited`, `filtered`, `batched`, `host_limited`,
    /// `host_busy`, and of what trains say to the pairs' capacity `not_sustained`, `pairs_slow`,
    /// `unsettled`, `unconfirmed`; of timestamps also `too_few`, `little_endian`, `non_standard`,
    /// `unsteady`, `ambiguous`, `clock_stepped`; of what this host let out `not_sent`; of
    /// echoes `too_large`, where none above a length was answered and shorter ones were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// The same in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl ReachResult {
    /// Share of the questions that were to be sent of which it is known what became of them, 0..=1.
    pub fn known_share(&self) -> f64 {
        let planned = f64::from(self.asked) + f64::from(self.not_sent);
        if planned > 0.0 { f64::from(self.asked) / planned } else { 0.0 }
    }
}

/// Losses within bursts whose neighbours were answered, told apart by the identification that the
/// host counts up per answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReachLoss {
    /// Lost on the way there: the host has not counted them.
    pub forward: u32,
    /// Lost on the way back: the host counted an answer that never came.
    pub reverse: u32,
    /// Questions in all such bursts.
    pub of: u32,
}

/// How far apart two questions sent back to back are answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReachCapacity {
    /// bit/s of IP packets; of a bound only the end that bounds.
    pub rate: Interval,
    /// Whether it is a bound.
    #[serde(default)]
    pub bound: RateBound,
    /// Pairs of which both were answered.
    pub pairs: u32,
    /// IP packet, bytes; the answer is as long.
    pub packet: u32,
}

/// How much longer packets took each way than the fastest, by the stamps that the host puts into
/// its answers to ICMP timestamps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReachQueues {
    /// Which way queued: `forward`, `reverse`, `both` or `neither`; a queue is one whose 90th
    /// percentile is two steps or more.
    pub queued: QueuedWay,
    /// There.
    pub forward: ReachQueue,
    /// Back.
    pub reverse: ReachQueue,
    /// Step of the host's clock: 1 ms, or coarser. Queues are whole multiples of it.
    pub resolution: Span,
    /// How much faster than this host's clock the host's ran, parts per million; absent where none
    /// can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
    /// Answers looked at.
    pub samples: u32,
}

/// One way's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReachQueue {
    /// Beyond the fastest packet, of half of them.
    pub median: Span,
    /// Of nine in ten.
    pub p90: Span,
    /// Of all.
    pub max: Span,
}

/// Which way packets wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QueuedWay {
    /// There.
    Forward,
    /// Back.
    Reverse,
    /// Both ways.
    Both,
    /// None that the host's clock can show.
    Neither,
}

impl QueuedWay {
    /// From whether there was a queue there and back.
    pub fn of(forward: bool, reverse: bool) -> Self {
        match (forward, reverse) {
            (true, false) => Self::Forward,
            (false, true) => Self::Reverse,
            (true, true) => Self::Both,
            (false, false) => Self::Neither,
        }
    }

    /// The word for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
            Self::Both => "both",
            Self::Neither => "neither",
        }
    }
}
