//! Who set the figure.

use netaware_units::BitRate;
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

    /// The verdict on a rate that was reached, and that the responder's owner had lowered to `cap`.
    /// The evidence goes on with `what`.
    pub fn by_owner(cap: BitRate, what: &str) -> Self {
        Self::new(LimitedBy::RequestedRate, format!("{OWNER_ALLOWS} {cap}{what}"))
    }

    /// The words shown to people. The evidence alone shows that the responder's owner granted a
    /// lower rate than was requested: the verdict is the same. Of several rounds the evidence
    /// begins with the round's number.
    pub fn name(&self) -> &'static str {
        let is_granted = self.by == LimitedBy::RequestedRate && self.evidence.contains(OWNER_ALLOWS);
        if is_granted { "granted rate" } else { self.by.name() }
    }
}

/// What the evidence says if the responder's owner lowered the rate. Saved records have it.
const OWNER_ALLOWS: &str = "the responder's owner allows no more than";

#[cfg(test)]
mod tests {
    use super::*;

    /// "Requested rate" was said of a lower rate than was requested.
    #[test]
    fn a_rate_that_the_owner_of_the_responder_lowered_is_not_called_requested() {
        let granted = Limit::by_owner(BitRate(2_000_000), ", which was reached");
        let evidence = "the responder's owner allows no more than 2.00 Mbit/s, which was reached";
        assert_eq!((granted.by, granted.evidence.as_str()), (LimitedBy::RequestedRate, evidence));
        assert_eq!(granted.name(), "granted rate");
        // `test` had "requested rate" there: it has several rounds.
        let of_round = Limit::new(LimitedBy::RequestedRate, format!("in round 2 of 3: {evidence}"));
        assert_eq!(of_round.name(), "granted rate");
        assert_eq!(Limit::new(LimitedBy::RequestedRate, "as planned").name(), "requested rate");
        assert_eq!(Limit::new(LimitedBy::Network, evidence).name(), "network");
    }
}
