//! The three figures of RFC 6349, "Framework for TCP Throughput Testing".

use netaware_units::{BitRate, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of one direction and number of streams, all rounds together. A figure whose ground is
/// missing is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Rfc6349 {
    /// The bottleneck's rate as the person gave it; nothing stands in for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// Payload rate of full segments at that rate: bottleneck × MSS / (IP packet + overhead).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ideal_rate: Option<BitRate>,
    /// Time that the payload received takes at the ideal rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ideal_time: Option<Span>,
    /// Time that it took: first to last read at the receiver, sum of the rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual_time: Option<Span>,
    /// TCP transfer time ratio (§4.1): actual over ideal time; 1 is ideal, more is slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_time_ratio: Option<f64>,
    /// TCP efficiency (§4.2) as a share, 0..=1: bytes sent less bytes sent again, over bytes sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<f64>,
    /// Smallest round trip of connecting and of TCP during the transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_rtt: Option<Span>,
    /// Mean of the sender's smoothed round trip over the transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_rtt: Option<Span>,
    /// Buffer delay (§4.3) as a share of the baseline: (mean − baseline) / baseline; 0.5 is 50 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_delay: Option<f64>,
}

/// The narrowest link as somebody knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Bottleneck {
    /// Its rate.
    pub rate: BitRate,
    /// Bytes that the rate counts for each IP packet beside the packet itself: 38 for Ethernet
    /// (header, check sum, preamble, gap), 0 for a shaper of IP packets.
    pub overhead: u32,
}

/// Ethernet: 14 header, 4 check sum, 8 preamble, 12 gap.
pub const ETHERNET_OVERHEAD: u32 = 38;
