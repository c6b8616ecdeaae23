//! IPv4 beside IPv6.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Direction, Interval, IpVersion};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// TCP payload rate with one stream, bit/s.
    TcpSingle,
    /// TCP payload rate with several streams, bit/s.
    TcpParallel,
    /// Idle round trip, ns.
    IdleRtt,
    /// Round trip under load, ns.
    LoadedRtt,
    /// Excess of the 95th percentile over the minimum of a block of round trips (PDV), ns.
    DelayVariation,
    /// UDP loss, fraction of datagrams.
    UdpLoss,
    /// Loss of the small, spaced requests on the idle path, fraction of requests.
    IdleLoss,
    /// TCP connect time, ns.
    Connect,
}

impl Metric {
    /// Whether more is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::TcpSingle | Self::TcpParallel)
    }

    /// The words shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::TcpSingle => "TCP, one stream",
            Self::TcpParallel => "TCP, parallel streams",
            Self::IdleRtt => "idle round trip",
            Self::LoadedRtt => "round trip under load",
            Self::DelayVariation => "delay variation",
            Self::UdpLoss => "UDP loss",
            Self::IdleLoss => "idle loss",
            Self::Connect => "connect time",
        }
    }
}

/// Which version a comparison favours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// IPv4 does better.
    #[serde(rename = "IPv4")]
    V4,
    /// IPv6 does better.
    #[serde(rename = "IPv6")]
    V6,
    /// The data show no difference that matters. It is not proof that there is none.
    NoDifferenceShown,
    /// Only one version, or too little, was measured.
    NotCompared,
}

impl From<IpVersion> for Preference {
    fn from(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => Self::V4,
            IpVersion::V6 => Self::V6,
        }
    }
}

/// One metric, IPv6 minus IPv4, measured in turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MetricComparison {
    /// What.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// IPv4's value in the metric's unit.
    pub v4: f64,
    /// IPv6's value.
    pub v6: f64,
    /// IPv6 minus IPv4 with its bootstrap interval, in the metric's unit. The estimate is `v6`
    /// minus `v4`; in records of older versions it is the median of paired differences where the
    /// metric is a delay.
    pub difference: Interval,
    /// Samples of either version that have a partner in the other one.
    pub pairs: u64,
    /// Rounds that the pairs come from: with few of them the interval is wide on purpose.
    pub rounds: u64,
    /// Differences smaller than this are of no consequence, whatever the interval says; in the
    /// metric's unit.
    pub margin: f64,
    /// What follows.
    pub favours: Preference,
    /// At least one of the values was set by a host, not by the network.
    pub host_limited: bool,
    /// Why the difference says nothing of the two versions, whatever its interval is; absent where
    /// it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

impl MetricComparison {
    /// What a difference must exceed to count, of this margin and so many rounds.
    pub fn needed(margin: f64, rounds: u64) -> f64 {
        if rounds < 2 { margin * ONE_ROUND } else { margin }
    }

    /// The interval is clear of zero.
    pub fn is_clear(&self) -> bool {
        self.difference.lo > 0.0 || self.difference.hi < 0.0
    }
}

/// With a single round nothing is known of how rounds differ: a difference must be this many
/// margins to count.
const ONE_ROUND: f64 = 3.0;

/// What a person wants to do with the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// Backups, downloads: rate.
    Bulk,
    /// Shells, web pages, games: round trips, idle and loaded.
    Interactive,
    /// Calls and video: loss and delay variation.
    Media,
}

impl Use {
    /// The words shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk transfer",
            Self::Interactive => "interactive",
            Self::Media => "media",
        }
    }
}

/// The advice for one use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Verdict {
    /// For what.
    #[serde(rename = "for")]
    pub purpose: Use,
    /// Which version.
    pub prefer: Preference,
    /// Why, in one line with figures.
    pub because: String,
}

/// All metrics and the advice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Comparison {
    /// Each metric and direction.
    pub metrics: Vec<MetricComparison>,
    /// One per use.
    pub verdicts: Vec<Verdict>,
}
