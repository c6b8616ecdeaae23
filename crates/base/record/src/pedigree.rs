//! How a figure came about, and what the instrument did wrong meanwhile.

use netaware_units::{ClockSource, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum IpVersion {
    /// RFC 791.
    #[serde(rename = "IPv4")]
    V4,
    /// RFC 8200.
    #[serde(rename = "IPv6")]
    V6,
}

impl IpVersion {
    /// "IPv4" or "IPv6".
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }

    /// IPv4 is 0, IPv6 is 1: the place of what there is one of for each.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The version of an address.
    pub fn of(address: std::net::IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Bytes of an IP header without options or extension headers.
    pub fn header_len(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// Which way the measured packets ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Prober to responder: "up".
    Forward,
    /// Responder to prober: "down".
    Reverse,
    /// There and back.
    RoundTrip,
}

impl Direction {
    /// The word shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "up",
            Self::Reverse => "down",
            Self::RoundTrip => "round trip",
        }
    }
}

/// Which bytes a size or rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// What the application handed over: TCP or UDP payload.
    Payload,
    /// IP packets, headers included.
    Ip,
    /// Frames with their layer-2 overhead.
    L2,
}

/// Where a figure comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Pedigree {
    /// Name of the method; `docs/methods/<method>.md` explains it.
    pub method: String,
    /// Bytes counted.
    pub layer: Layer,
    /// Which way.
    pub direction: Direction,
    /// Over which IP version.
    pub version: IpVersion,
    /// Who took the times.
    pub clock: ClockSource,
    /// What the headline figure's uncertainty is and how it was obtained, in words.
    pub uncertainty: String,
}

/// What the measuring hosts did wrong while a figure was taken. All zero or absent is a healthy
/// instrument; what nobody watched is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Health {
    /// Datagrams that left later than the tolerance after their due time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_sends: Option<u64>,
    /// The worst such delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_lateness: Option<Span>,
    /// Datagrams that never left the host that was to send them: the responder's, of what comes
    /// from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_sent: Option<u64>,
    /// Datagrams the receiving host dropped after they had arrived there, by its own counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_drops: Option<u64>,
    /// Samples whose kernel timestamp was missing or implausible (for example because the wall
    /// clock was stepped), so that the application's was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp_fallbacks: Option<u64>,
    /// Share of CPU time the hypervisor withheld from the prober's host, 0..=1; absent where the
    /// system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// The prober's busiest core during the phase, 0..=1; absent where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prober_busiest_core: Option<f64>,
    /// The responder's busiest core during the phase, 0..=1; absent where it does not tell: it is
    /// not asked about echoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder_busiest_core: Option<f64>,
    /// Of the time in which trains were being sent, the share in pauses of their sender that nobody
    /// planned, 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<f64>,
    /// Share of CPU time the hypervisor withheld from the responder's host, 0..=1; absent where it
    /// does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder_steal: Option<f64>,
    /// CPU that the prober's process used, in cores: 1.0 is one core all the time. Told of path
    /// methods, as what follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prober_process: Option<f64>,
    /// CPU that the responder's process used, in cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder_process: Option<f64>,
    /// Of the time in which the prober's thread that sent or took in packets had to be on time, the
    /// share for which it waited for a core while others had it, 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prober_denied: Option<f64>,
    /// The same of the responder's thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder_denied: Option<f64>,
    /// For how long the prober's program did not run during a transfer although it was to: it was
    /// stopped, or its host was suspended. Absent where it ran, or nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prober_stood_still: Option<Span>,
    /// The same of the responder's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder_stood_still: Option<Span>,
}
