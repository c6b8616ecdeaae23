//! One TCP stream over time.

use netaware_units::{ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the sender's TCP knew of a stream at one instant (TCP_INFO). Counts run from the stream's
/// start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StreamSample {
    /// Since the start of the transfer on the sender's clock.
    pub at: Span,
    /// Payload bytes acknowledged in order so far.
    pub acked: ByteCount,
    /// Congestion window.
    pub cwnd: ByteCount,
    /// Smoothed round trip.
    pub rtt: Span,
    /// Segments sent again so far.
    pub retransmits: u64,
}
