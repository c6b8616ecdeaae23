//! One TCP stream over time.

use netaware_units::{ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unknown::zero_is_unknown;

/// What the sender's TCP knew of a stream at one instant (TCP_INFO). Counts run from the stream's
/// start. What the system did not tell is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StreamSample {
    /// Since the start of the transfer on the sender's clock.
    pub at: Span,
    /// Payload bytes acknowledged in order so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked: Option<ByteCount>,
    /// Congestion window.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub cwnd: Option<ByteCount>,
    /// Smoothed round trip.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub rtt: Option<Span>,
    /// Segments sent again so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
}
