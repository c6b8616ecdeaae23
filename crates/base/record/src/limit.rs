//! Who set the figure.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What stopped a transfer from being faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// A queue or a lossy link on the path.
    Network,
    /// A token bucket on the path: after a burst that was seen the rate is flat to within a per
    /// cent or so.
    Shaper,
    /// The sending host ran out of CPU.
    SenderCpu,
    /// The receiving host ran out of CPU.
    ReceiverCpu,
    /// The sender's socket buffer was too small for the path's bandwidth-delay product.
    SocketBuffer,
    /// The receiver advertised too small a window.
    ReceiveWindow,
    /// The rate that was asked for was reached: nothing was at its limit.
    RequestedRate,
    /// The evidence does not single one out.
    Unknown,
}

/// The two parties that can be to blame, and the two ways of not knowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The path between the hosts.
    Network,
    /// One of the hosts: the figure is a lower bound of what the network can do.
    Host,
    /// The person who asked for no more.
    Request,
    /// Undecided.
    Unknown,
}

impl LimitedBy {
    /// The party behind it.
    pub fn side(self) -> Side {
        match self {
            Self::Network | Self::Shaper => Side::Network,
            Self::SenderCpu | Self::ReceiverCpu | Self::SocketBuffer | Self::ReceiveWindow => Side::Host,
            Self::RequestedRate => Side::Request,
            Self::Unknown => Side::Unknown,
        }
    }

    /// The words shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Shaper => "network (shaper)",
            Self::SenderCpu => "sender CPU",
            Self::ReceiverCpu => "receiver CPU",
            Self::SocketBuffer => "socket buffer",
            Self::ReceiveWindow => "receive window",
            Self::RequestedRate => "requested rate",
            Self::Unknown => "unknown",
        }
    }
}

/// A verdict with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Limit {
    /// What limited.
    pub by: LimitedBy,
    /// Whose side that is.
    pub side: Side,
    /// The observation behind it, in one line.
    pub evidence: String,
}

impl Limit {
    /// A verdict; the side follows from it.
    pub fn new(by: LimitedBy, evidence: impl Into<String>) -> Self {
        Self { by, side: by.side(), evidence: evidence.into() }
    }
}
