//! TCP throughput.

use netaware_units::{BitRate, ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unknown::zero_is_unknown;
use crate::{
    Health, Interval, Limit, LoadedLatency, Outcome, Pedigree, ReceiverTick, Rfc6349, SenderTick, TcpEnd,
};

/// One direction with one number of streams, all rounds together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TcpResult {
    /// Where the rate comes from.
    pub pedigree: Pedigree,
    /// How it ended.
    pub outcome: Outcome,
    /// The time that was planned, all rounds together; absent where a number of bytes was asked
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Span>,
    /// Why it ended before that, in words; absent when it did not, or when nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
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
    /// Payload received, warm-up included; absent when the receiver never reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteCount>,
    /// Time measured, warm-up left out; zero when nothing was left to measure.
    pub measured: Span,
    /// What was left out, and why; absent when the receiver told of no slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Segments the sender sent again, warm-up included; absent when it did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Smoothed round trip of the senders' TCP, mean over the slices.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub rtt: Option<Span>,
    /// Smallest round trip that TCP saw.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub min_rtt: Option<Span>,
    /// Congestion window, sum over streams, mean over the slices.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub cwnd: Option<ByteCount>,
    /// What was still in the path's queues when the time was up, of the round that left most;
    /// absent when nothing came after it. It is not in `goodput`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_left: Option<QueueLeft>,
    /// Receiver's slices, all rounds.
    #[serde(default)]
    pub receiver_ticks: Vec<ReceiverTick>,
    /// Sender's slices, all rounds.
    #[serde(default)]
    pub sender_ticks: Vec<SenderTick>,
    /// The sending end (of the last round that it reported); absent when it never did.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub sender: Option<TcpEnd>,
    /// The receiving end (of the last round that it reported); absent when it never did.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub receiver: Option<TcpEnd>,
    /// How long it took to give the data to the stack, to have them acknowledged, and to read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<TcpTimes>,
    /// The data as blocks: how many, and how often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<TcpBlocks>,
    /// Socket buffers asked for at both ends; what was granted stands in the streams, as the kernel
    /// counts it (Linux: twice what was asked, up to a limit). Absent leaves them to the kernel's
    /// tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_asked: Option<ByteCount>,
    /// The figures of RFC 6349.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rfc6349: Option<Rfc6349>,
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

impl TcpResult {
    /// It is known that not one byte of payload arrived.
    pub fn carried_nothing(&self) -> bool {
        self.bytes == Some(ByteCount(0))
    }
}

/// Three times of the same data, warm-up included, sums over the rounds, each with the mean rate
/// that it means. Absent is what an end did not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TcpTimes {
    /// First write begun to last write returned, at the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Span>,
    /// Bytes written over that time: runs ahead of the network by what fits the buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_rate: Option<BitRate>,
    /// First write begun until the last byte counted was acknowledged, at the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Span>,
    /// Bytes acknowledged over that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_rate: Option<BitRate>,
    /// First to last read, at the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Span>,
    /// Bytes read over that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_rate: Option<BitRate>,
}

/// A transfer as its sender's application sees it: blocks of one length.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TcpBlocks {
    /// Bytes of each.
    pub length: ByteCount,
    /// From block to block as asked for; absent: no wait between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spacing: Option<Span>,
    /// How many were asked for; absent: as many as fit the time or the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// Whole blocks given to the stack, all rounds.
    pub written: u64,
    /// Time in which they were given over their number, ns; absent where no block was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each_ns: Option<f64>,
    /// How the times were kept; absent without a spacing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<SpacedBlocks>,
}

/// How a sender of spaced blocks kept its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SpacedBlocks {
    /// Whole blocks given to the stack.
    pub written: u64,
    /// Blocks begun more than 50 us after their time.
    pub late: u64,
    /// The worst delay behind the plan.
    pub worst_lateness: Span,
    /// By so much the plan was put off in all: a sender that falls behind by more than one spacing
    /// does not catch up.
    pub slipped: Span,
    /// Blocks for which no stream had room when they were due.
    pub waits: u64,
    /// How long they waited for it, in all. What `slipped` has beyond that is the sending host's.
    #[serde(default)]
    pub waited: Span,
}

/// Whose count of payload bytes a rate goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TcpCount {
    /// The receiving application's: bytes it read (`receiver_ticks`). No segment was held back from
    /// it.
    #[default]
    Delivered,
    /// The sender's TCP: bytes acknowledged in order or selectively (`acked` and `held` of
    /// `sender_ticks`). The receiver's TCP held data back behind gaps, so that the application's
    /// count ran behind what had arrived.
    Acknowledged,
    /// Some rounds the one, some the other.
    Mixed,
}

/// Data that a sender had given to the path before its time was up, and that came after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct QueueLeft {
    /// Payload bytes that came after the planned end.
    pub bytes: ByteCount,
    /// From the planned end to the last of them.
    pub drained: Span,
    /// What the sender had sent and nobody had acknowledged when its time was up, lost segments
    /// included. A receiver hands nothing on behind a segment that was lost, and after its end the
    /// sender sends none again: so `bytes` can be far less than what was in the path's queues.
    /// Absent where the sender's system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<ByteCount>,
}

/// The part of a transfer that does not count.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct WarmUp {
    /// How long, mean over rounds.
    pub omitted: Span,
    /// The rule that ended it: `slow start over`, `asked for`, `none seen` (the path was full from
    /// the first slice on), or `never ended`.
    pub rule: String,
}
