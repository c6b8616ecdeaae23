//! What each hop of a path is like, seen from one end.

use netaware_units::{BitRate, ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Health, HonestRate, Interval, Pedigree, RateBound};

/// The hops towards a host that need not cooperate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HopsResult {
    /// Where it comes from. Sizes count IP bytes; a capacity is that of the link per byte of
    /// packet, so framing that is the same for every packet is not in it.
    pub pedigree: Pedigree,
    /// From the first router on.
    pub hops: Vec<Hop>,
    /// Whether the last of them is the destination.
    pub reached: bool,
    /// Number of the hop at which trains are stretched last: the tight link as seen from here.
    /// Absent where no train told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choke_point: Option<u8>,
    /// Trains sent to find it.
    pub trains: u32,
    /// Largest IP packet sent, bytes.
    pub packet: u32,
    /// Packets sent.
    pub packets: u64,
    /// IP bytes sent.
    pub bytes: ByteCount,
    /// From the first packet to the last answer.
    pub took: Span,
    /// The mean load that the probes were, bit/s.
    pub load: BitRate,
    /// Answers that quote too little of a packet to tell which it was.
    pub unmatched: u64,
    /// Arrivals that the kernel has not stamped.
    pub stamp_fallbacks: u64,
    /// Standard error of a round trip by both stamps; in every interval.
    #[serde(default)]
    pub stamp_error: Span,
    /// What the instrument did meanwhile: late sends, processors, steal.
    #[serde(default)]
    pub health: Health,
    /// What this host can tell of links by sizes of this packet, and what limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HonestRate>,
    /// What holds for all hops, as words for programs: `destination_silent`, `refused`, `mtu`,
    /// `path_changed`, `cut_short`, `host_limited`, `host_busy`, `own_queue`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// The same in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// One hop: a router, or the destination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Hop {
    /// Its number: 1 is the first router.
    pub ttl: u8,
    /// Who answered, most frequent first; empty for a silent hop.
    pub addresses: Vec<String>,
    /// Probes that asked it alone.
    pub asked: u32,
    /// Of these, answered.
    pub answered: u32,
    /// Share without an answer, there or back, 0..=1; absent for a silent hop and for one that
    /// rations its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Smallest round trip of the smallest packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_min: Option<Span>,
    /// Median of the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_median: Option<Span>,
    /// Time in queues up to here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queueing: Option<HopQueueing>,
    /// The link in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<HopCapacity>,
    /// Trains as they came by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<HopTrain>,
    /// What a reader must know, as words for programs: `silent`, `rate_limited`,
    /// `several_addresses`, `path_changed`, `fits_disagree`, `slope_falls`, `too_few_answers`,
    /// `assumes_symmetry`, `answers_in_the_way`, `fell_behind`, `host_limited`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// The same in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// What round trips took beyond the smallest of their size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HopQueueing {
    /// Half of them took no longer.
    pub median: Span,
    /// One of ten took longer.
    pub p90: Span,
    /// Their mean less that of the hop before; below zero only by chance.
    pub own_mean: Span,
}

/// The rate of the link in front of a hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HopCapacity {
    /// bit/s; of a bound only the end that bounds.
    pub rate: Interval,
    /// Whether it is a bound.
    #[serde(default)]
    pub bound: RateBound,
    /// The same by least squares instead of Theil-Sen, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_squares: Option<f64>,
    /// How the slope came about: `direct`, `tailgating` or `two_way`.
    pub way: String,
    /// The first hop that it covers: its own number unless hops before it have no figure of their
    /// own.
    pub from: u8,
    /// Rates of links one after the other that would explain it, bit/s: a device of layer 2 may be
    /// hidden there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<f64>,
    /// Packet sizes behind the slope.
    pub sizes: u32,
    /// Delays behind the slope.
    pub samples: u32,
}

/// A train of packets as it came by a hop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HopTrain {
    /// Its bits over the time between the answers to its ends, median, bit/s: between available
    /// bandwidth and capacity of the links so far.
    pub rate: f64,
    /// Trains of which both ends were answered.
    pub seen: u32,
    /// Whether they are longer here than at any hop before.
    pub stretched: bool,
}
