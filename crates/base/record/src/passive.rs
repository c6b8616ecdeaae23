//! What probes that watch traffic report, and what a collector makes of it.
//!
//! A [`ProbeReport`] is what one probe says of one period: how its capture and its clock were, and
//! the [`Row`]s of its tasks. Every row carries its [`Period`]; figures of two points
//! ([`DelayRow`]) are made by the collector from [`PacketSighting`]s. No figure without its
//! pedigree: a probe that lost packets says so in [`CaptureHealth`], which stands in every report,
//! and a delay between two clocks stands beside its bound.

mod statistics;

use std::collections::BTreeMap;
use std::net::IpAddr;

use netaware_units::{ByteCount, Span, Wall};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{Histogram, IpVersion};

pub use statistics::DelayTally;

/// From when to when, by the wall clock of the probe that says so; `until` is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Period {
    /// First instant.
    pub from: Wall,
    /// First instant after it.
    pub until: Wall,
}

/// What the capture itself lost or could not use, by cause. All are counts of this period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CaptureHealth {
    /// Packets that tasks were shown.
    pub seen: u64,
    /// Bytes of them on the wire, link layer included.
    pub seen_bytes: ByteCount,
    /// Lost because the ring was full (kernel's count for this socket).
    pub lost_ring: u64,
    /// Lost in the kernel before the ring (backlog, softnet).
    pub lost_kernel: u64,
    /// Lost by the card, as its driver counts; `None` where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_nic: Option<u64>,
    /// Frames of several packets that offloads merged, by the kernel's own note or else longer than
    /// the MTU: useless for digests, counted once each here, while `seen` and tasks count the
    /// packets.
    pub merged: u64,
    /// Frames that no IP packet was found in.
    pub not_ip: u64,
    /// Frames whose headers contradict themselves or end early.
    pub malformed: u64,
    /// Reports that were given up because the disk buffer was full.
    pub reports_given_up: u64,
    /// The interface was down for some of the period.
    pub link_was_down: bool,
    /// Its MTU changed.
    #[serde(default)]
    pub mtu_changed: bool,
    /// Dropped from the queues between drivers and stack of *all* interfaces of the host: a part of
    /// `lost_kernel` if not 0, and then its cause; `None` where it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<u64>,
    /// A file said that whoever wrote it lost these; in `lost_ring` too.
    #[serde(default)]
    pub lost_by_writer: u64,
    /// Of those seen: stamped by the card's own clock, not by the host's.
    #[serde(default)]
    pub stamped_by_nic: u64,
    /// Packets of this period may be among those that a neighbouring one counts as lost: the kernel
    /// says how many it dropped since it was asked last, and not when.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
}

impl CaptureHealth {
    /// What figures of this capture lack.
    pub fn loss(&self) -> CaptureLoss {
        let doubtful = self.doubtful || self.link_was_down;
        CaptureLoss { packets: self.lost(), merged: self.merged, doubtful }
    }

    /// Packets that should have been seen and were not; 0 means that every figure of the period is
    /// complete, unless it is [`Self::doubtful`].
    pub fn lost(&self) -> u64 {
        self.lost_ring.saturating_add(self.lost_kernel).saturating_add(self.lost_nic.unwrap_or(0))
    }
}

/// What disciplines a clock, and how far it may be off.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClockState {
    /// `chrony`, `ntpd`, `ptp4l`, `kernel` (adjtimex only) or `none`.
    pub source: String,
    /// Whether that says that it is synchronised.
    pub synchronised: bool,
    /// Its estimate of this clock minus true time; `None` where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Span>,
    /// No further from true time than this, by what it says (root dispersion plus half the root
    /// delay, or the kernel's maximum error); `None`: not known, which is not the same as good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Span>,
    /// Frequency error that is being corrected, parts per million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_ppm: Option<f64>,
    /// How far it was seen to jump in this period against the monotonic clock (largest, signed);
    /// `None`: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stepped: Option<Span>,
    /// What clock it is: the running kernel's boot id. Points of the same identity stamp by one
    /// clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// One probe, one period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ProbeReport {
    /// Which probe.
    pub probe: String,
    /// Numbered from 1 by the probe and kept on its disk: what a collector has seen it does not
    /// count again.
    pub sequence: u64,
    /// Which time.
    pub period: Period,
    /// Of the capture, one entry for each interface.
    pub captures: Vec<InterfaceCapture>,
    /// Of the clock that stamped.
    pub clock: ClockState,
    /// What the tasks found.
    pub rows: Vec<TaskRow>,
    /// By task, rows that are missing because the report was too long for a batch. Volumes are
    /// never among them: of those, keys that had no room are in the row of the rest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rows_cut: BTreeMap<String, u64>,
    /// What active tasks' packets say of this probe's clock and others'.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<ClockExchanges>,
}

/// Packets of our own to another probe and back: of every bin of time those that limit the
/// difference of the clocks most.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClockExchanges {
    /// The probe on whose host the answers were given.
    pub with: String,
    /// In order of time.
    pub tightest: Vec<ClockExchange>,
}

/// A question and its answer, each stamped at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClockExchange {
    /// The question left, by the clock of the probe that reports.
    pub sent_at: Wall,
    /// It came, by the other's.
    pub received_at: Wall,
    /// The answer left, by the other's.
    pub answered_at: Wall,
    /// It came, by the clock of the probe that reports.
    pub came_at: Wall,
}

/// The capture on one interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct InterfaceCapture {
    /// Its name, or that of the file that was read.
    pub interface: String,
    /// Counts.
    #[serde(flatten)]
    pub health: CaptureHealth,
}

/// A row and the task that made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TaskRow {
    /// The task's name in the instruction.
    pub task: String,
    /// Its time: a part of the report's period or all of it.
    pub period: Period,
    /// The figures.
    pub row: Row,
    /// What the capture behind the figures lost meanwhile; of what a collector made, nothing:
    /// delays have their own `unobserved`.
    #[serde(default, skip_serializing_if = "CaptureLoss::is_nothing")]
    pub lost: CaptureLoss,
}

impl TaskRow {
    /// A row of a capture that lost nothing, or of none.
    pub fn new(task: impl Into<String>, period: Period, row: Row) -> Self {
        Self { task: task.into(), period, row, lost: CaptureLoss::default() }
    }
}

/// How far figures of a capture may lean low: what it did not see in their period. The packets are
/// those of the whole interface (of which a task's filter might have taken none), and of the whole
/// period of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CaptureLoss {
    /// Packets that should have been seen and were not: [`CaptureHealth::lost`].
    pub packets: u64,
    /// Frames that stand for several packets: [`CaptureHealth::merged`].
    #[serde(default)]
    pub merged: u64,
    /// [`CaptureHealth::doubtful`], or the interface was down for a while.
    #[serde(default)]
    pub doubtful: bool,
}

impl CaptureLoss {
    /// Whether the figures are complete.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// What a task can find. Sightings do not travel like this but as IPFIX.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Row {
    /// Packets and bytes of one key.
    Volume(VolumeRow),
    /// Rate, sizes and top talkers.
    Traffic(TrafficRow),
    /// Round-trip time of traffic seen at one point.
    Rtt(RttRow),
    /// Counts of one alternate-marking block.
    Marking(MarkingRow),
    /// Capacity from traffic that nobody sent for it.
    Capacity(CapacityRow),
    /// What a digest task chose and counted.
    Digests(DigestRow),
    /// Delay between two points.
    Delay(Box<DelayRow>),
    /// Points that packets of a join passed.
    Paths(PathsRow),
    /// Anything else that an active task measured: a whole record.
    Active(Box<crate::Record>),
}

/// Reads the kind, then the figures of that kind from the same text. What serde derives for an enum
/// with its tag inside would compile every type of a record for one more source, and could not hold
/// numbers wider than 64 bits.
impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Tagged {
            kind: String,
        }
        let text = Box::<RawValue>::deserialize(from)?;
        let text = text.get().as_bytes();
        let read = || {
            let Tagged { kind } = serde_json::from_slice(text)?;
            Ok(match kind.as_str() {
                "volume" => Self::Volume(serde_json::from_slice(text)?),
                "traffic" => Self::Traffic(serde_json::from_slice(text)?),
                "rtt" => Self::Rtt(serde_json::from_slice(text)?),
                "marking" => Self::Marking(serde_json::from_slice(text)?),
                "capacity" => Self::Capacity(serde_json::from_slice(text)?),
                "digests" => Self::Digests(serde_json::from_slice(text)?),
                "delay" => Self::Delay(serde_json::from_slice(text)?),
                "paths" => Self::Paths(serde_json::from_slice(text)?),
                "active" => Self::Active(serde_json::from_slice(text)?),
                _ => return Err(serde_json::Error::custom(format!("rows of kind '{kind}' are not known"))),
            })
        };
        read().map_err(D::Error::custom)
    }
}

/// What packets are counted together; absent fields are not part of the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct FlowKey {
    /// IP version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<IpVersion>,
    /// Source address, or the first of its prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// Length of the source's prefix where that is shorter than the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_prefix: Option<u8>,
    /// Destination address, or the first of its prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<IpAddr>,
    /// Length of the destination's prefix where that is shorter than the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_prefix: Option<u8>,
    /// Protocol of the last header in the chain (6 TCP, 17 UDP, 58 ICMPv6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
    /// Source port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Destination port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// Differentiated-services code point, 0..63.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// IPv6 flow label, 20 bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_label: Option<u32>,
}

/// Packets and bytes of one key in one period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct VolumeRow {
    /// What they have in common; the empty key is everything that the filter lets pass.
    pub key: FlowKey,
    /// Packets.
    pub packets: u64,
    /// Bytes from the IP header on.
    pub bytes: ByteCount,
    /// First of them.
    pub first_at: Wall,
    /// Last of them.
    pub last_at: Wall,
    /// At most so many packets of this key may be missing because it was not in the table all the
    /// time (space-saving); 0: exact.
    pub packets_error: u64,
    /// This row is not one key but all that had no room in the table.
    pub rest: bool,
}

/// Rate over time and what it was made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TrafficRow {
    /// Packets.
    pub packets: u64,
    /// Bytes from the IP header on.
    pub bytes: ByteCount,
    /// Bytes on the link: frame, preamble, checksum and gap.
    pub link_bytes: ByteCount,
    /// Of those, what the interface sent.
    #[serde(default)]
    pub sent_link_bytes: ByteCount,
    /// Share of the link's rate that these took, 0..1; `None`: the rate is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// Bytes from the IP header on in each slice of the period, first slice first.
    pub slices: Vec<ByteCount>,
    /// Length of a slice.
    pub slice: Span,
    /// Packets by size, bytes from the IP header on.
    pub sizes: Histogram,
    /// Keys with the most bytes, most first.
    pub top: Vec<VolumeRow>,
}

/// Round-trip times seen at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RttRow {
    /// The flow, source being the side whose packets were waited on.
    pub key: FlowKey,
    /// `timestamps`, `acknowledgements` or `spin_bit`.
    pub method: String,
    /// Round trips.
    pub delay: DelayStatistics,
}

/// One block of alternate marking (RFC 9341) at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MarkingRow {
    /// The flow.
    pub key: FlowKey,
    /// Which colour, 0 or 1.
    pub colour: u8,
    /// Number of the block since the epoch: time over block length, rounded down.
    pub block: u64,
    /// Packets of that colour; 0 in the one row of a period in which the task watched and no block
    /// had any.
    pub packets: u64,
    /// Bytes from the IP header on.
    pub bytes: ByteCount,
    /// First packet of the block; its beginning where there was none.
    pub first_at: Wall,
    /// Mean of all stamps, for the mean delay.
    pub mean_at: Wall,
    /// Stamps of double-marked packets, in order, at most 1024.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marked_at: Vec<Wall>,
    /// Packets of this colour that were stamped when the block had been read already; they are in
    /// no count.
    pub late: u64,
}

/// Capacity from spacing of other people's packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CapacityRow {
    /// The source whose packets these are, or the whole link.
    pub key: FlowKey,
    /// `packet_pairs` or `equally_spaced_modes`.
    pub method: String,
    /// Bit/s, layer 3; the interval holds the estimate and what the next candidates were.
    pub rate: crate::Interval,
    /// Pairs or gaps used.
    pub samples: u64,
    /// What makes it doubtful: `few_samples`, `coalesced`, `many_modes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// What a digest task did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DigestRow {
    /// Packets that passed the filter (RFC 5477 selectorIdTotalPktsObserved).
    pub observed: u64,
    /// Packets whose digest was reported (selectorIdTotalPktsSelected).
    pub selected: u64,
    /// Packets that cannot be told apart from another point's (merged frames, later fragments, cut
    /// off by the snap length).
    pub unusable: u64,
    /// Chosen, but not reported because memory was full.
    #[serde(default)]
    pub given_up: u64,
    /// Of those unusable: less was captured than is hashed. Another point that captures more can
    /// use them.
    #[serde(default)]
    pub cut: u64,
}

/// Packets of a join by the points that they passed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PathsRow {
    /// Most packets first.
    pub paths: Vec<PathTaken>,
    /// Packets of further paths, for which there was no room.
    pub others: u64,
}

/// Packets that passed the same points in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PathTaken {
    /// Names of the points, by TTL and then by stamps.
    pub points: Vec<String>,
    /// How many.
    pub packets: u64,
}

/// One packet seen at one point: what the join is made from. Travels as IPFIX (`wire::ipfix`), 24
/// bytes a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketSighting {
    /// Digest of what does not change on the way.
    pub digest: u64,
    /// When.
    pub at: Wall,
    /// Bytes from the IP header on.
    pub length: u16,
    /// TTL or hop limit: who saw it first where clocks disagree.
    pub ttl: u8,
    /// 4 or 6.
    pub version: u8,
}

/// Distribution of a delay, mergeable: histograms of the same shape add up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DelayStatistics {
    /// Packets.
    pub count: u64,
    /// Smallest, exact.
    pub min: Span,
    /// Largest, exact.
    pub max: Span,
    /// Sum of all, ns: the mean is `sum / count`.
    #[serde(with = "crate::wide_number")]
    #[cfg_attr(feature = "schema", schemars(with = "i64"))]
    pub sum_ns: i128,
    /// Sum of squares of all, ns², for the deviation.
    pub sum_squares: f64,
    /// Counts per bin, three significant digits; negative values are in `underflow`.
    pub histogram: Histogram,
}

/// Three quantiles of one distribution, as tables show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Quantiles {
    /// Median, ns.
    pub p50: Option<Span>,
    /// 95th percentile, ns.
    pub p95: Option<Span>,
    /// 99th percentile, ns.
    pub p99: Option<Span>,
}

/// From one point to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DelayRow {
    /// First point.
    pub from: String,
    /// Second point.
    pub to: String,
    /// IP version of the packets; `None`: both together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<IpVersion>,
    /// `passive` (the same packet seen at both), `alternate_marking` (blocks counted at both) or
    /// `active` (packets of our own).
    pub method: String,
    /// Packets seen at the first point, or sent.
    pub packets: u64,
    /// Seen at both.
    pub matched: u64,
    /// Seen at the first, not at the second within [`Self::patience`] plus both clocks' bounds,
    /// while the second was watching.
    pub lost: u64,
    /// Seen at the first while it is not known whether the second watched (its report is missing,
    /// it lost packets itself): no loss of the network can be told from these.
    pub unobserved: u64,
    /// Came after they had been given up.
    pub late: u64,
    /// Further copies at the second point.
    pub duplicates: u64,
    /// Came with an earlier stamp of the first point than one that came before (RFC 4737
    /// type-P-reordered).
    pub reordered: u64,
    /// Digests that two different packets had at one point within the window; none of them was
    /// matched.
    pub collisions: u64,
    /// Packets given up because memory was full, oldest first.
    pub given_up: u64,
    /// How long was waited for a packet.
    pub patience: Span,
    /// Delays, corrected by [`Self::offset`]; those that came out negative are not in it but
    /// counted in `below_bound`.
    pub delay: DelayStatistics,
    /// IP delay variation: difference of consecutive delays (RFC 3393), absolute values.
    pub ipdv: DelayStatistics,
    /// Second clock minus first that was taken off, estimated from traffic or told by the clocks.
    pub offset: Span,
    /// Every delay may be off by so much because of the clocks; `None`: nothing is known, and
    /// delays are no more than differences among themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_bound: Option<Span>,
    /// How `offset` and `clock_bound` came about: `same_host`, `clock_daemons`,
    /// `traffic_both_ways`, `active_exchange`; `none`: nothing is known, and `offset` is the
    /// smallest difference seen, so that delays count from there.
    pub clock_method: String,
    /// Delays smaller than the bound, negative ones included: they say that the delay is at most
    /// the bound, no more.
    pub below_bound: u64,
    /// What a reader must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
