//! What is known of a path before any load: can it be reached, how long is it, how big a packet
//! fits.

use netaware_units::Span;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why nothing, or nothing more, could be measured over an IP version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Unreachable {
    /// What was being tried: `resolve`, `connect`, `hello`, `reserve`, `udp`, `tcp`, …
    pub stage: String,
    /// What happened, in one sentence with the address and the system's answer.
    pub reason: String,
    /// What to try; may be empty.
    #[serde(default)]
    pub advice: String,
}

/// Name resolution and connection set-up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Reach {
    /// Time of the name lookup (one for both versions); absent for literal addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolve: Option<Span>,
    /// Time of each TCP connect (SYN to SYN/ACK, as the application sees it).
    pub connects: Vec<Span>,
    /// From connected to the responder's welcome.
    pub greeting: Span,
}

/// Path MTU and hop counts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PathFacts {
    /// Largest IP packet that passed unfragmented there and back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// How that compares with what the system believes.
    pub mtu_finding: MtuFinding,
    /// MTU the kernel assumed for the path before any probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_believed: Option<u32>,
    /// Routers crossed, forward: common initial TTL (64, 128, 255) minus the TTL that arrived. A
    /// guess of the initial value, wrong when a host starts elsewhere or a tunnel hides hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops_forward: Option<u8>,
    /// The same on the way back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops_reverse: Option<u8>,
}

/// What the search for the path MTU found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MtuFinding {
    /// Not searched, or no answer at all.
    #[default]
    Unknown,
    /// Packets of the believed size pass.
    Confirmed,
    /// A router answered "packet too big"; the system learnt a smaller value.
    Learnt,
    /// Larger packets vanish without an answer: TCP stalls on such a path.
    BlackHole,
}
