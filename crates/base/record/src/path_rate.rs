//! What a path can carry: its capacity, and what of it is available.

use netaware_units::{BitRate, ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Direction, Health, HonestRate, Interval, Pedigree};

/// Which rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PathMetric {
    /// Rate of the narrowest link (RFC 5136 §2.3.2).
    Capacity,
    /// What the other traffic leaves of the tightest one (RFC 5136 §2.3.5).
    Available,
    /// Highest rate at which packets came while the path was filled (RFC 9097).
    Maximum,
}

impl PathMetric {
    /// The word shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Available => "available",
            Self::Maximum => "maximum",
        }
    }
}

/// Whether the truth may lie outside the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RateBound {
    /// It lies in it.
    #[default]
    None,
    /// It is at least the lower end.
    AtLeast,
    /// It is at most the upper end.
    AtMost,
}

/// Why there is no rate, as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoRate {
    /// None of the packets left the sending host.
    NotSent,
    /// Packets left, and none of them came.
    NothingCame,
    /// Packets came at first, and later none did.
    WentSilent,
    /// Too much was lost.
    TooLossy,
    /// The time was too short at the load that is allowed.
    TooShort,
    /// The shortest train that says something would fill the path for too long.
    TooSlow,
    /// The receiving host handed packets over in batches that hide how far apart they came.
    Batched,
    /// The path or a clock changed in the middle.
    PathChanged,
    /// Nothing is left for this traffic, or less than can be told from nothing.
    NothingLeft,
    /// Somebody stopped the measurement before there was a figure.
    Stopped,
    /// Trains came, and do not say the same.
    Undecided,
}

/// Why there is no rate, and what would help.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MissingRate {
    /// The reason.
    pub reason: NoRate,
    /// The same in a sentence.
    pub because: String,
    /// The rate at which the first trains came, where that is known: no figure, but its order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<BitRate>,
    /// A time for the method that would be enough, where the time was too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enough: Option<Span>,
}

/// A rate of a path in one direction, of whole IP packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PathRate {
    /// Where it comes from; the layer is IP.
    pub pedigree: Pedigree,
    /// What it is.
    pub metric: PathMetric,
    /// bit/s; absent when nothing could be said. Of a bound `estimate` is the end that bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Interval>,
    /// Why there is no rate; present exactly where `rate` is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingRate>,
    /// Whether it is a bound.
    #[serde(default)]
    pub bound: RateBound,
    /// The tight link's own capacity, where the method tells that beside what is available of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tight_link: Option<TightLink>,
    /// The same as UDP payload in packets of `packet`, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<BitRate>,
    /// The same as frames of Ethernet with all around them, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ethernet: Option<BitRate>,
    /// Largest IP packet of the trains, bytes.
    pub packet: u32,
    /// Packets sent.
    pub packets: u64,
    /// Of these that came.
    pub received: u64,
    /// IP bytes sent.
    pub bytes: ByteCount,
    /// From the first question to the last answer.
    pub took: Span,
    /// The mean load that the trains were, bit/s.
    pub load: BitRate,
    /// What a reader must know, as words for programs: `host_limited`, `host_busy`, `coalescing`,
    /// `lossy`, `reordered`, `path_changed`, `elastic`, `ambiguous`, `cut_short`, `unreadable`,
    /// `noisy`, `shaped`, `silent`, `peak`, `unexplained`, `policed`, `interrupted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// The same in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Shortest distance at which the sender starts two packets.
    pub send_gap: Span,
    /// Standard error of one packet's time by both stamps.
    pub stamp_error: Span,
    /// What the instrument did meanwhile: late sends, processors, steal.
    #[serde(default)]
    pub health: Health,
    /// What the prober's host can do with packets of this size in the method's way, and what limits
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HonestRate>,
    /// The rate at which the closest two packets of a train really left, bit/s: no figure above it
    /// comes from this measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fastest_sent: Option<BitRate>,
    /// Where the bandwidths of single packet pairs gathered, the fullest first, of a method that
    /// looks for that (`pathrate`, and `automatic` where it doubts). The capacity is one of them;
    /// cross traffic makes slower ones, faster links behind the narrow one make faster ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<RateMode>,
    /// What was known at which time, where the path was followed (`--watch`); the newest are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<RatePoint>,
}

/// A bandwidth at which packet pairs gathered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RateMode {
    /// Slowest pair of its fullest window, bit/s of whole IP packets.
    pub lo: BitRate,
    /// Fastest pair of that window, bit/s of whole IP packets.
    pub hi: BitRate,
    /// Of all pairs, those in that window, 0..=1.
    pub share: f64,
    /// How sharp and how strong it is: kurtosis times share. It decides among modes; more is
    /// better.
    pub merit: f64,
    /// Whether the method took it for the capacity. The figure may be that of another method all
    /// the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
}

/// The link with the least available bandwidth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TightLink {
    /// bit/s of whole IP packets.
    pub capacity: Interval,
    /// Share of what trains were stretched by that a line over their rate explains, 0..=1.
    pub fit: f64,
}

/// A rate of a path that is followed, as known at one instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RatePoint {
    /// Since the path was followed.
    pub at: Span,
    /// bit/s; absent when nothing could be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Interval>,
    /// Whether it is a bound.
    #[serde(default)]
    pub bound: RateBound,
    /// As in [`PathRate`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
}

/// What capacity and available bandwidth of one direction say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PathUse {
    /// Which way.
    pub direction: Direction,
    /// What could be found out.
    pub verdict: PathVerdict,
    /// Share of the capacity that others use, 0..=1; present where that could be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Interval>,
    /// The same in a sentence.
    pub because: String,
}

/// Whether others use the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PathVerdict {
    /// They do, by a share that is told.
    Shared,
    /// That they do could not be shown.
    UseNotShown,
    /// Other programs used the hosts while a figure was taken: if a share is told, it is what the
    /// figures say all the same.
    HostSuspected,
    /// The hosts were the limit: it is not known.
    HostLimited,
    /// The two figures cannot both be right.
    Contradiction,
    /// A figure is missing, or a bound.
    Unknown,
}
