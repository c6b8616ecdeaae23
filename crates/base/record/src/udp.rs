//! UDP at a given rate, or as fast as it goes.

use netaware_units::{BitRate, ByteCount, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Health, Interval, Limit, Outcome, Pedigree, ReceiverTick, UdpReceiverEnd, UdpSenderEnd};

/// One direction, all rounds together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpResult {
    /// Where the figures come from.
    pub pedigree: Pedigree,
    /// How it ended.
    pub outcome: Outcome,
    /// Payload of each datagram.
    pub payload: ByteCount,
    /// Payload rate aimed at; absent for as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<BitRate>,
    /// Payload rate that left the sender.
    pub sent_rate: BitRate,
    /// Payload rate at the receiver, duplicates left out.
    pub goodput: BitRate,
    /// Datagrams that left.
    pub sent: u64,
    /// Planned ones that never left the sender.
    pub not_sent: u64,
    /// Received, without duplicates.
    pub received: u64,
    /// Received per second.
    pub packets_per_second: f64,
    /// What went missing, and where.
    pub loss: LossSplit,
    /// Further copies.
    pub duplicates: u64,
    /// Overtaken (RFC 4737 §3).
    pub reordered: u64,
    /// Receiver's slices.
    #[serde(default)]
    pub ticks: Vec<ReceiverTick>,
    /// The sending end (of the last round).
    pub sender: UdpSenderEnd,
    /// The receiving end (of the last round).
    pub receiver: UdpReceiverEnd,
    /// Who set the rate.
    pub limit: Limit,
    /// What the instrument did wrong.
    pub health: Health,
}

/// Loss by where it happened.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LossSplit {
    /// Sent and never received.
    pub lost: u64,
    /// Of these: dropped inside the receiving host, by its own counters.
    pub host: u64,
    /// The rest: lost on the way.
    pub network: u64,
    /// `lost / sent`, 0..=1, with its binomial (Wilson) interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Interval>,
}

/// Gaps between successive packets against their plan.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GapSummary {
    /// What was planned; zero if nothing was.
    pub planned: Span,
    /// Gaps seen.
    pub count: u64,
    /// Mean in nanoseconds, with decimals: the mean rate is judged to 0.01 %.
    pub mean_ns: f64,
    /// Standard deviation in nanoseconds.
    pub sd_ns: f64,
    /// Smallest.
    pub min: Span,
    /// 1st percentile.
    pub p1: Span,
    /// Median.
    pub p50: Span,
    /// 99th percentile.
    pub p99: Span,
    /// 99.9th percentile.
    pub p999: Span,
    /// Largest: the worst hole.
    pub max: Span,
}
