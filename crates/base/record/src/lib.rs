//! The versioned result schema: one measurement is one [`Record`].
//!
//! Text output, JSON, the store and any page render this and nothing else. The rule of the house is
//! **no figure without its pedigree**: every result carries a [`Pedigree`] (method, layer,
//! direction, IP version, clock, uncertainty) and a [`Health`] (what the instrument itself did
//! wrong while it measured).
//!
//! Units are in the field names (`_ns`) or in the types: a [`netaware_units::BitRate`] is bit/s, a
//! [`netaware_units::ByteCount`] bytes, a [`netaware_units::Span`] nanoseconds. `forward` runs from
//! the prober to the responder ("up" for people), `reverse` the other way ("down").
//!
//! Reading order: [`Record`], [`VersionResult`], then one module per phase.

mod ability;
mod comparison;
mod conclusion;
mod ends;
mod extent;
mod headline;
mod hops;
mod host;
mod json;
mod latency;
mod limit;
mod matrix;
mod owd;
pub mod passive;
mod path;
mod path_rate;
mod pedigree;
mod printable;
mod reach;
mod rfc6349;
mod series;
mod stream;
mod summary;
mod tcp;
mod udp;
mod unknown;
mod wide_number;

pub use ability::{
    BufferRange, CallTiming, Ceiling, ClockSteering, ClockTiming, CongestionControls, Effort, Fact,
    Fingerprint, HardwareClock, HonestRate, HostAbility, HostCall, HostFacts, HostTimings, InterfaceFacts,
    InterruptLine, LoopbackHow, LoopbackMaximum, Moderation, NotKnown, ObservedModeration, QueueCounts,
    RingSizes, SocketBuffers, StampTiming, Timestamping, TimingsOrigin, WaitHow, WaitTiming,
};
pub use comparison::{Comparison, Metric, MetricComparison, Preference, Use, Verdict};
pub use conclusion::{Asked, Conclusion, LEFT_OUT};
pub use ends::{
    BurstSummary, CpuUse, HostDrops, LoggedArrival, Outcome, ReceiverTick, SendRefusal, SenderTick,
    StreamEnd, TcpEnd, UdpReceiverEnd, UdpSenderEnd,
};
pub use extent::{Extent, Part};
pub use headline::{Headline, HeadlineValue};
pub use hops::{Hop, HopCapacity, HopQueueing, HopTrain, HopsResult};
pub use host::{HostInfo, NicInfo};
pub use json::Document;
pub use latency::{
    Arrivals, DelayTail, ExchangeTotal, LatencyResult, LoadedLatency, OVER_TCP, OVER_WEBSOCKET,
};
pub use limit::{Limit, LimitedBy, Side};
pub use matrix::{MatrixCell, MatrixEnd, MatrixProtocol, MatrixResult, MatrixRun};
pub use owd::{OwdClock, OwdReflector, OwdResult, OwdWay};
pub use path::{FailedPhase, MtuFinding, PathFacts, Reach, Unreachable};
pub use path_rate::{
    MissingRate, NoRate, PathMetric, PathRate, PathUse, PathVerdict, RateBound, RateMode, RatePoint,
    TightLink,
};
pub use pedigree::{Direction, Health, IpVersion, Layer, Pedigree};
pub use printable::{excerpt, is_printable, printable};
pub use reach::{QueuedWay, ReachCapacity, ReachLoss, ReachProtocol, ReachQueue, ReachQueues, ReachResult};
pub use rfc6349::{Bottleneck, ETHERNET_OVERHEAD, Rfc6349};
pub use series::{SeriesKind, SeriesPoint};
pub use stream::StreamSample;
pub use summary::{DelaySummary, Histogram, HistogramMoments, HistogramShape, Interval};
pub use tcp::{QueueLeft, SpacedBlocks, TcpBlocks, TcpCount, TcpResult, TcpTimes, WarmUp};
pub use udp::{Exchanges, GapSummary, LossSplit, UdpResult, WireRates};

use netaware_units::{Span, Wall};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The version of this schema. It grows when a reader of the old one could misread the new one;
/// added fields do not count.
pub const SCHEMA_VERSION: u32 = 1;

/// One measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Record {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// UUIDv7: sorts by time.
    pub id: Uuid,
    /// Version of netaware that measured.
    pub software: String,
    /// What was run: `test`, `tcp`, `udp`, `latency`, `matrix`, `capacity`, `available`, `hops`,
    /// `reach`, `owd` or `host`.
    pub command: String,
    /// When it began, by the prober's wall clock: a label, never used in arithmetic.
    pub started_at: Wall,
    /// The same instant as RFC 3339 in UTC, for people who read the JSON.
    pub started_at_utc: String,
    /// How long it took, by the prober's monotonic clock.
    pub elapsed: Span,
    /// Whether it ran to its planned end.
    pub outcome: Outcome,
    /// What was asked.
    pub request: Request,
    /// A word of the person who measured, to group results by: "VPN", "hall B".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its place among others, if it was not measured alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesPoint>,
    /// The host that ran the measurement.
    pub prober: HostInfo,
    /// The host that answered, if it ever did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder: Option<HostInfo>,
    /// One entry for each IP version asked for, IPv4 first.
    pub versions: Vec<VersionResult>,
    /// IPv4 beside IPv6, where both were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// What the prober's host can measure; of the `host` command only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ability: Option<Box<HostAbility>>,
    /// Outcome of each `--expect`, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    /// Whatever a reader must know before trusting the figures.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Request {
    /// The host as typed; empty when netaware started a responder of its own.
    pub host: String,
    /// Port of the responder.
    pub port: u16,
    /// The responder was started by the prober itself, on loopback.
    pub own_responder: bool,
    /// The remaining options by their long names, with units.
    #[serde(default)]
    pub options: std::collections::BTreeMap<String, String>,
}

/// Everything learnt over one IP version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct VersionResult {
    /// Which one.
    pub version: IpVersion,
    /// The address measured, without port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The prober's own address, without port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// Why there is nothing else, or why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<Unreachable>,
    /// Phases that failed although the version was reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_phases: Vec<FailedPhase>,
    /// Name resolution and connection set-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
    /// Path MTU and hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathFacts>,
    /// Request-response delay without load of ours; for the `latency` command the result itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyResult>,
    /// Request-response delay over TCP, where it was measured in the same run as [`Self::latency`]
    /// over UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_tcp: Option<LatencyResult>,
    /// TCP throughput, one entry per direction and number of streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpResult>,
    /// UDP, one entry per direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpResult>,
    /// Capacity and available bandwidth, one entry per metric and direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path_rates: Vec<PathRate>,
    /// What these say together, one entry per direction of which both are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path_use: Vec<PathUse>,
    /// Hop by hop, towards a host that need not cooperate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<HopsResult>,
    /// What a host that does not cooperate answers, one entry per protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reach_probes: Vec<ReachResult>,
    /// One-way delay both ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owd: Option<OwdResult>,
    /// Short transfers by block size, one entry per protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrix: Vec<MatrixResult>,
}

impl VersionResult {
    /// An empty result.
    pub fn new(version: IpVersion) -> Self {
        Self {
            version,
            address: None,
            local: None,
            unreachable: None,
            failed_phases: Vec::new(),
            reach: None,
            path: None,
            latency: None,
            latency_tcp: None,
            tcp: Vec::new(),
            udp: Vec::new(),
            path_rates: Vec::new(),
            path_use: Vec::new(),
            hops: None,
            reach_probes: Vec::new(),
            owd: None,
            matrix: Vec::new(),
        }
    }
}

/// A threshold the user gave, and how it turned out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Expectation {
    /// As typed: `rtt.p99<20ms`.
    pub text: String,
    /// Whether it held for every IP version and direction measured; `false` too when there was no
    /// figure to hold.
    pub held: bool,
    /// The figures that decided it.
    pub found: String,
}

/// The JSON Schema (2020-12) of [`Record`], as `dev/schemas` derives it from the types.
pub const JSON_SCHEMA: &str = include_str!("../schema.json");

/// The JSON Schema (2020-12) of [`Record`], from the types themselves.
#[cfg(feature = "schema")]
pub fn derived_json_schema() -> serde_json::Value {
    schemars::schema_for!(Record).to_value()
}
