//! What one end of a bulk transfer saw. Both hosts fill the same structures; the prober joins them
//! into a result.

use netaware_units::{BitRate, ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unknown::{self, zero_is_unknown};
use crate::{DelaySummary, GapSummary, Histogram, SpacedBlocks, StreamSample};

/// How a measurement, or one end's part of it, came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As planned.
    #[default]
    Complete,
    /// Ended early by a person or a signal; what there is, is valid for the shorter time.
    Interrupted,
    /// Ended early because the other end or the path failed, or nothing was measured.
    Failed,
}

/// CPU time used during a phase, as shares of one core (1.0 = one core fully busy).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CpuUse {
    /// By this process, user mode; absent where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_user: Option<f64>,
    /// By this process, kernel mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_system: Option<f64>,
    /// The busiest of the threads that moved data; absent where nobody measured it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub busiest_thread: Option<f64>,
    /// The host's busiest core, everything included, 0..=1; absent where the system does not tell.
    pub busiest_core: Option<f64>,
    /// Mean over the host's cores, 0..=1.
    pub host: Option<f64>,
    /// Share of time in interrupt context, mean over cores, 0..=1.
    pub softirq: Option<f64>,
    /// Share withheld by the hypervisor, 0..=1.
    pub steal: Option<f64>,
    /// Of the time in which the thread that sent or took in packets had to be on time, the share
    /// for which it waited for a core, 0..=1; told of trains and probes, whose product is the
    /// instant of each packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<f64>,
    /// Cores online.
    pub cores: u32,
}

/// Packets this host dropped after they had arrived, by where. Counted over the phase, for the
/// whole host except `socket`, so other programs' drops are in it: the loss split takes the smaller
/// of this and what is missing. What nobody counted is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HostDrops {
    /// Our own sockets' receive queues overflowed (`SO_RXQ_OVFL`, less datagrams that came
    /// damaged). Linux counts datagrams merged by `UDP_GRO` once per bundle, here and in `stack`;
    /// whoever fills this in scales it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<u64>,
    /// `UdpRcvbufErrors` and `UdpMemErrors` of the stack (/proc/net/snmp, snmp6); not the rest of
    /// `UdpInErrors`, which the network caused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<u64>,
    /// Receive drops and misses of the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<u64>,
}

impl HostDrops {
    /// Packets dropped in all, as far as they were counted; `None` where nobody counted. The
    /// stack's count contains the socket's; the interface's drops come before either.
    pub fn total(&self) -> Option<u64> {
        let here = self.socket.max(self.stack);
        here.into_iter().chain(self.nic).reduce(u64::saturating_add)
    }
}

/// One end of a TCP transfer of one or more streams.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TcpEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// From the first stream's start to the last one's end.
    pub elapsed: Span,
    /// Payload bytes written (sender) or read (receiver).
    pub bytes: ByteCount,
    /// CPU time of this end; absent where nobody measured it, as of an end that never reported.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "unknown::cpu")]
    pub cpu: Option<CpuUse>,
    /// Sender: from the first write begun to the last one returned, all streams. So long it took to
    /// give the data to the stack; what still lay in the stack then was not on the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Span>,
    /// Sender: from the first write begun until `acknowledged_bytes` were known to be acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Span>,
    /// Sender: payload acknowledged in order, all of it where a number of bytes was asked for, else
    /// what was by the end of the time. Absent where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_bytes: Option<ByteCount>,
    /// Receiver: from the first read to the last one that had data, all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Span>,
    /// Sender of spaced blocks: how well it kept its times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spaced: Option<SpacedBlocks>,
    /// For how long this end's program did not run although it was to: it was stopped, or its host
    /// was suspended. Waiting for a core is not in it. Absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stood_still: Option<Span>,
    /// Streams in order. Empty in messages that send them one by one.
    #[serde(default)]
    pub streams: Vec<StreamEnd>,
}

/// One TCP stream at one end; TCP_INFO at its end. What the system did not tell is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StreamEnd {
    /// Position among the streams.
    pub index: u16,
    /// Payload bytes written or read.
    pub bytes: ByteCount,
    /// System calls that moved them: writes that gave at least a byte, or reads that had one.
    pub calls: u64,
    /// What the first of them moved, at the receiving end: its time is not in `elapsed`, which
    /// begins with it. Absent at the sending end, and where the other end does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub first_read: Option<ByteCount>,
    /// Congestion control in use.
    #[serde(default)]
    pub congestion: String,
    /// Segments sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Smoothed round trip at the end.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub rtt: Option<Span>,
    /// Its mean deviation.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub rtt_var: Option<Span>,
    /// Smallest round trip seen.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub min_rtt: Option<Span>,
    /// Congestion window in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub cwnd: Option<ByteCount>,
    /// Slow-start threshold in bytes; absent while slow start never ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<ByteCount>,
    /// Window the peer advertised.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub send_window: Option<ByteCount>,
    /// Segment size used when sending.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub mss: Option<u32>,
    /// Path MTU the kernel used.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub path_mtu: Option<u32>,
    /// Time with data to send (`tcpi_busy_time`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Span>,
    /// Of that: held back by the peer's window (`tcpi_rwnd_limited`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_limited: Option<Span>,
    /// Of that: held back by our send buffer (`tcpi_sndbuf_limited`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_limited: Option<Span>,
    /// Send buffer in force (`SO_SNDBUF`), bytes as the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub send_buffer: Option<ByteCount>,
    /// Receive buffer in force.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub receive_buffer: Option<ByteCount>,
    /// Payload bytes sent, those sent again included (`tcpi_bytes_sent`); absent where the system
    /// does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<ByteCount>,
    /// Payload bytes sent again (`tcpi_bytes_retrans`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_resent: Option<ByteCount>,
    /// Segments that the peer has acknowledged, the first of the handshake among them
    /// (`tcpi_delivered`); absent where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// Of these: those that arrived with a mark of congestion (ECN, `tcpi_delivered_ce`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_marked: Option<u64>,
    /// Whether segments carry timestamps, which take 12 bytes of each (RFC 7323).
    #[serde(default)]
    pub timestamps: bool,
    /// TCP_INFO over time, oldest first, where it was asked for; evenly thinned out when there
    /// would be too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<StreamSample>,
    /// CPU share of the thread that moved this stream; absent where nobody measured it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub thread_cpu: Option<f64>,
    /// Of that share: seconds in which the thread was runnable but another task had the core, as a
    /// share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_waiting: Option<f64>,
    /// What broke the stream, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a receiver saw in one slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReceiverTick {
    /// End of the slice, since the start of the transfer on the receiver's clock.
    pub end: Span,
    /// Its length.
    pub length: Span,
    /// Payload bytes that arrived in it.
    pub bytes: ByteCount,
    /// Datagrams, for UDP.
    #[serde(default)]
    pub packets: u64,
    /// Datagrams found missing in it, for UDP; may be negative when late ones fill older holes.
    #[serde(default)]
    pub lost: i64,
    /// Streams that had started by its end, for TCP.
    #[serde(default)]
    pub streams: u16,
}

impl ReceiverTick {
    /// This slice and the one after it as one.
    #[must_use]
    pub fn joined(self, next: Self) -> Self {
        Self {
            end: next.end,
            length: self.length + next.length,
            bytes: self.bytes + next.bytes,
            packets: self.packets + next.packets,
            lost: self.lost + next.lost,
            streams: self.streams.max(next.streams),
        }
    }
}

/// What a sender knew at the end of one slice of time. What the system did not tell is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SenderTick {
    /// End of the slice, since the start of the transfer on the sender's clock.
    pub end: Span,
    /// Its length.
    pub length: Span,
    /// Payload bytes handed to the system.
    pub bytes: ByteCount,
    /// Segments sent again in the slice, all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Mean smoothed round trip of the streams.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub rtt: Option<Span>,
    /// Sum of the congestion windows.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub cwnd: Option<ByteCount>,
    /// Payload bytes that the receiver's TCP acknowledged in order in the slice; absent where the
    /// system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked: Option<ByteCount>,
    /// Payload bytes that it holds at the end of the slice behind gaps, as its selective
    /// acknowledgements tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<ByteCount>,
}

impl SenderTick {
    /// This slice and the one after it as one.
    #[must_use]
    pub fn joined(self, next: Self) -> Self {
        let length = self.length + next.length;
        let mean = |one: Span, other: Span| {
            let weight = self.length.0 as f64 / (length.0 as f64).max(1.0);
            Span((one.0 as f64 * weight + other.0 as f64 * (1.0 - weight)) as i64)
        };
        Self {
            end: next.end,
            length,
            bytes: self.bytes + next.bytes,
            retransmits: self.retransmits.zip(next.retransmits).map(|(one, other)| one + other),
            rtt: self.rtt.zip(next.rtt).map(|(one, other)| mean(one, other)).or(next.rtt).or(self.rtt),
            cwnd: next.cwnd.or(self.cwnd),
            acked: self.acked.zip(next.acked).map(|(one, other)| one + other),
            held: next.held,
        }
    }
}

/// The sending end of a UDP stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct UdpSenderEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// First to last datagram.
    pub elapsed: Span,
    /// Datagrams that left.
    pub sent: u64,
    /// Planned datagrams that never left: overdue, or refused by the system.
    pub not_sent: u64,
    /// Payload that left.
    pub bytes: ByteCount,
    /// Datagrams that left later than the tolerance after their due time.
    pub late: u64,
    /// The worst delay behind plan.
    pub worst_lateness: Span,
    /// Gaps between send calls, for bursts between the first of each; absent when not paced, or
    /// when the queueing discipline did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<GapSummary>,
    /// What the system answered to sends that failed, one entry for each error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<SendRefusal>,
    /// Whether the queueing discipline released each datagram at its time (`SO_TXTIME`); else the
    /// program did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released_by_queue: bool,
    /// System calls.
    pub calls: u64,
    /// CPU time of this end; absent where nobody measured it, as of an end that never reported.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "unknown::cpu")]
    pub cpu: Option<CpuUse>,
}

/// An error that the system answered to sends of a UDP stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SendRefusal {
    /// The system's words.
    pub cause: String,
    /// How often it was answered. An error that was about an earlier datagram (an ICMP answer) is
    /// counted here, and its datagram was tried again at once.
    pub count: u64,
    /// Datagrams that were not sent for it.
    pub not_sent: u64,
    /// When it was first answered, since the start of the stream.
    pub first: Span,
    /// When it was last answered.
    pub last: Span,
}

/// A datagram of a logged stream at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LoggedArrival(
    /// Its number, from zero.
    pub u64,
    /// When it was sent, on the sender's clock, in nanoseconds; the origin means nothing.
    pub u64,
    /// When it arrived, on the receiver's clock, in nanoseconds. The difference of both is its
    /// one-way delay plus a constant that nobody knows.
    pub u64,
);

/// Bursts that arrived whole and in order: how much longer they took to arrive than to leave is
/// what queued.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct BurstSummary {
    /// Datagrams in each.
    pub size: u32,
    /// Bursts that arrived whole and in order.
    pub whole: u64,
    /// Bursts of which something was lost, or overtaken.
    pub broken: u64,
    /// First to last datagram of a whole burst as it left, median over the bursts.
    pub sent_over: Span,
    /// First to last datagram of a whole burst as it arrived.
    pub arrived_over: GapSummary,
    /// Median of what arriving took longer than leaving: the time that the last datagram waited in
    /// queues behind its own burst. Negative where the path or the receiver pushed the datagrams
    /// together.
    pub extra: Span,
    /// What queued of a burst at most: the bytes that the path carries in `extra`, at the rate at
    /// which the burst arrived.
    pub queue_growth: ByteCount,
}

/// The receiving end of a UDP stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct UdpReceiverEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// First to last datagram.
    pub elapsed: Span,
    /// Datagrams received once or more.
    pub received: u64,
    /// Payload received, duplicates left out.
    pub bytes: ByteCount,
    /// Further copies; absent of an end that never reported, as is what follows without a count of
    /// its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// Arrived after a datagram sent later (RFC 4737 §3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Largest reordering extent in packets (RFC 4737 §4.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder_extent: Option<u64>,
    /// How often a datagram came so many packets late (RFC 4737 §4.2): `(extent, how often)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reorder_extents: Vec<(u64, u64)>,
    /// Highest sequence number plus one: what must have been sent at least.
    pub highest: u64,
    /// Datagrams whose number is below this were observed to their end: those of them that did not
    /// arrive were lost. What became of the others is unknown, because this end stopped listening,
    /// or its reports stopped, before the stream was over. Absent where it listened to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<u64>,
    /// Lengths of runs of lost datagrams: `(length, how often)`.
    #[serde(default)]
    pub loss_runs: Vec<(u64, u64)>,
    /// Gaps between arrivals; absent when not stamped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<GapSummary>,
    /// Distribution of those gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// The same in the bins of equal width that were asked for, with moments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bins: Option<Histogram>,
    /// Bursts that arrived whole, of a stream that left in bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<BurstSummary>,
    /// Arrivals in their order, if they were to be logged; at most the first 2^20. Emptied once
    /// they are written to a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<LoggedArrival>,
    /// Arrivals that were to be logged and came after the log was full.
    #[serde(default)]
    pub unlogged: u64,
    /// One-way delay over its own minimum: only its variation means something, the clocks are not
    /// synchronised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_variation: Option<DelaySummary>,
    /// For how long this end's program did not run although it was to: it was stopped, or its host
    /// was suspended. Waiting for a core is not in it. Absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stood_still: Option<Span>,
    /// Packets dropped inside this host; empty where nobody counted.
    #[serde(default)]
    pub drops: HostDrops,
    /// Datagrams on the socket that did not belong to the stream: too short, not ours, of another
    /// flow. Ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<u64>,
    /// Receive buffer in force (`SO_RCVBUF`), bytes as the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub receive_buffer: Option<ByteCount>,
    /// Smoothed interarrival jitter (RFC 3550 §6.4.1); absent of fewer than two datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Rate asked of the sender, copied for the reader's convenience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<BitRate>,
    /// System calls; absent where nobody counted them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub calls: Option<u64>,
    /// CPU time of this end; absent where nobody measured it, as of an end that never reported.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "unknown::cpu")]
    pub cpu: Option<CpuUse>,
}
