//! UDP at a given rate, or as fast as it goes.

use netaware_units::{BitRate, ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unknown::{self, zero_is_unknown};
use crate::{Health, Interval, Limit, Outcome, Pedigree, ReceiverTick, UdpReceiverEnd, UdpSenderEnd};

/// One direction, all rounds together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct UdpResult {
    /// Where the figures come from.
    pub pedigree: Pedigree,
    /// How it ended.
    pub outcome: Outcome,
    /// Payload of each datagram.
    pub payload: ByteCount,
    /// Payload rate aimed at, the mean of all rounds; absent for as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<BitRate>,
    /// Payload rate that left the sender; absent when nobody could tell, and when nothing left.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub sent_rate: Option<BitRate>,
    /// Payload rate at the receiver, duplicates left out, over the time from first to last datagram
    /// as it came, or as it left or was due, whichever is longer; absent when it never reported,
    /// and when less than two datagrams came: no time passes between fewer.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub goodput: Option<BitRate>,
    /// The same rates with all that a link has to carry besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireRates>,
    /// Messages about the stream that had to be repeated.
    #[serde(default)]
    pub exchanges: Exchanges,
    /// Datagrams that left, as far as either end knows: of a sender that never reported, up to the
    /// highest number that came.
    pub sent: u64,
    /// Planned ones that never left the sender; absent when it never reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_sent: Option<u64>,
    /// Known to have been received, without duplicates. What became of those that nobody observed
    /// is `loss.unknown`.
    pub received: u64,
    /// Received per second; absent as `goodput` is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub packets_per_second: Option<f64>,
    /// What went missing, and where.
    pub loss: LossSplit,
    /// Further copies; absent when the receiver never reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// Overtaken (RFC 4737 §3); absent when the receiver never reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Receiver's slices, each with what was lost in it: what was found missing after slices in
    /// which nothing came is spread over them.
    #[serde(default)]
    pub ticks: Vec<ReceiverTick>,
    /// The sending end, over all rounds that it reported; absent when it never did. Percentiles are
    /// those of the worst round, `cpu` is that of the busiest.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub sender: Option<UdpSenderEnd>,
    /// The receiving end, over all rounds of which it told anything; absent when it never did.
    /// Percentiles and jitter are those of the worst round, `cpu` is that of the busiest.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "unknown::udp_receiver")]
    pub receiver: Option<UdpReceiverEnd>,
    /// Who set the rate.
    pub limit: Limit,
    /// What the instrument did wrong.
    pub health: Health,
}

/// Rates on Ethernet, where a datagram occupies more than its payload.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct WireRates {
    /// Bytes of one datagram on the wire, all fragments together: interframe gap 12, preamble 8,
    /// Ethernet header 14 (18 with a VLAN tag), IP 20 or 40, UDP 8, payload, padding up to the
    /// shortest frame, checksum 4.
    pub bytes: ByteCount,
    /// Frames that one datagram takes; more than one where IP cuts it up.
    pub frames: u32,
    /// With a VLAN tag (IEEE 802.1Q).
    pub vlan: bool,
    /// That left; absent when nobody could tell, and when nothing left.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub sent: Option<BitRate>,
    /// That arrived; absent as the goodput is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub received: Option<BitRate>,
}

/// What UDPmon calls time-outs: messages around the data that had to be repeated, because they or
/// their answers were lost or late. They travel before and after the data, never beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Exchanges {
    /// While the receiver's statistics were cleared and the stream was set up: repeated set-up
    /// datagrams, and segments of the control connection sent again. Absent where the system does
    /// not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clearing: Option<u64>,
    /// While the receiver's statistics were fetched: segments of the control connection sent again
    /// since the stream began. Absent where the system does not tell, and where nothing was
    /// fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetching: Option<u64>,
}

/// Loss by where it happened. Of what was sent, each datagram was received, lost, or is unknown:
/// `sent = received + lost + unknown`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LossSplit {
    /// Sent and not received, although the receiver was listening to the end or got datagrams that
    /// were sent later.
    pub lost: u64,
    /// Of these: dropped inside the receiving host, by its own counters; absent where nobody read
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u64>,
    /// The rest: lost on the way; absent where nobody knows what the host dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<u64>,
    /// Sent, and nobody could observe whether they arrived: the receiver's reports ended before
    /// the stream did. They are neither received nor lost.
    #[serde(default, skip_serializing_if = "netaware_units::is_default")]
    pub unknown: u64,
    /// `lost / (sent - unknown)`, 0..=1, with its binomial (Wilson) interval; absent where the fate
    /// of none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Interval>,
}

impl UdpResult {
    /// Share of the datagrams with a known fate that were lost, 0..=1; `None` where the fate of
    /// none is known.
    pub fn loss_ratio(&self) -> Option<f64> {
        let known = self.sent.saturating_sub(self.loss.unknown);
        (known > 0).then(|| self.loss.lost as f64 / known as f64)
    }

    /// Share of the planned datagrams whose fate is known, 0..=1: sent, and then received or lost.
    pub fn known_share(&self) -> f64 {
        let planned = self.sent.saturating_add(self.not_sent.unwrap_or(0));
        let known = self.sent.saturating_sub(self.loss.unknown);
        if planned > 0 { known as f64 / planned as f64 } else { 0.0 }
    }
}

/// Gaps between successive packets against their plan.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct GapSummary {
    /// What was planned; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub planned: Option<Span>,
    /// Gaps seen.
    pub count: u64,
    /// Mean in nanoseconds, with decimals: the mean rate is judged to 0.01 %.
    pub mean_ns: f64,
    /// Standard deviation in nanoseconds; absent of a single gap. Older versions wrote zero then.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub sd_ns: Option<f64>,
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
