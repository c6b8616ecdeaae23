//! TCP throughput.

use netaware_units::{BitRate, ByteCount, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Health, Interval, Limit, LoadedLatency, Outcome, Pedigree, ReceiverTick, SenderTick, TcpEnd};

/// One direction with one number of streams, all rounds together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpResult {
    /// Where the rate comes from.
    pub pedigree: Pedigree,
    /// How it ended.
    pub outcome: Outcome,
    /// Parallel streams.
    pub streams: u16,
    /// Congestion control of the sender, as the kernel named it.
    pub congestion: String,
    /// Payload rate at the receiver after the warm-up; absent when nothing was left to measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<BitRate>,
    /// The same with its uncertainty over the slices, in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_interval: Option<Interval>,
    /// Mean rate of each round, in the order run.
    #[serde(default)]
    pub rounds: Vec<BitRate>,
    /// Whose count `goodput` and `rounds` go by.
    #[serde(default)]
    pub counted: TcpCount,
    /// Payload received, warm-up included.
    pub bytes: ByteCount,
    /// Time measured, warm-up left out.
    pub measured: Span,
    /// What was left out, and why.
    pub warm_up: WarmUp,
    /// Segments the sender sent again, warm-up included.
    pub retransmits: u64,
    /// Smoothed round trip of the senders' TCP, mean over the slices.
    pub rtt: Span,
    /// Smallest round trip that TCP saw.
    pub min_rtt: Span,
    /// Congestion window, sum over streams, mean over the slices.
    pub cwnd: ByteCount,
    /// Receiver's slices, all rounds.
    #[serde(default)]
    pub receiver_ticks: Vec<ReceiverTick>,
    /// Sender's slices, all rounds.
    #[serde(default)]
    pub sender_ticks: Vec<SenderTick>,
    /// The sending end (of the last round).
    pub sender: TcpEnd,
    /// The receiving end (of the last round).
    pub receiver: TcpEnd,
    /// Jain's fairness index of the streams' bytes, 1/n..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// Request-response delay during the transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_under_load: Option<LoadedLatency>,
    /// Who set the rate.
    pub limit: Limit,
    /// What the instrument did wrong.
    pub health: Health,
}

/// Whose count of payload bytes a rate goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TcpCount {
    /// The receiving application's: bytes it read (`receiver_ticks`). No segment was held back from it.
    #[default]
    Delivered,
    /// The sender's TCP: bytes acknowledged in order or selectively (`acked` and `held` of `sender_ticks`). The
    /// receiver's TCP held data back behind gaps, so that the application's count ran behind what had arrived.
    Acknowledged,
    /// Some rounds the one, some the other.
    Mixed,
}

/// The part of a transfer that does not count.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WarmUp {
    /// How long, mean over rounds.
    pub omitted: Span,
    /// The rule that ended it: `slow start over`, `asked for`, or `never ended`.
    pub rule: String,
}
