//! Request-response delay.

use netaware_units::{ByteCount, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DelaySummary, Health, Histogram, Pedigree};

/// Round-trip delay over UDP (or TCP) request-responses. Time spent inside the responder is taken out where it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyResult {
    /// Source of [`Self::rtt`]; its clock names the worse of the two stamps used.
    pub pedigree: Pedigree,
    /// Payload of request and response.
    pub payload: ByteCount,
    /// Planned time from request to request, the longest where rounds differ; zero for ping-pong, where each response
    /// triggers the next request.
    pub spacing: Span,
    /// Requests that left.
    pub sent: u64,
    /// Requests that never left.
    pub not_sent: u64,
    /// Responses in time, without duplicates.
    pub received: u64,
    /// No response within `patience`.
    pub lost: u64,
    /// Of the lost: those whose response came after all.
    pub late: u64,
    /// Responses overtaken by a later one (RFC 4737 §3).
    pub reordered: u64,
    /// Further copies of a response.
    pub duplicates: u64,
    /// After how long a request counted as lost.
    pub patience: Span,
    /// Round trip between the stamps closest to the wire, responder's own time taken out.
    pub rtt: Option<DelaySummary>,
    /// The same round trip as the application sees it: with system calls, wake-ups and the responder's time.
    pub rtt_application: Option<DelaySummary>,
    /// Time inside the responder, between its receive and send stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder: Option<DelaySummary>,
    /// Absolute difference of successive round trips (RFC 3393, consecutive packets).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv: Option<DelaySummary>,
    /// Excess over the smallest round trip (RFC 5481 PDV).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdv: Option<DelaySummary>,
    /// Smoothed jitter of RFC 3550 §6.4.1, on round trips.
    #[serde(default)]
    pub jitter: Span,
    /// Distribution of [`Self::rtt`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// What the instrument did wrong.
    pub health: Health,
}

/// Delay while a bulk transfer filled the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedLatency {
    /// The delay itself.
    pub latency: LatencyResult,
    /// Median under load minus idle median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<Span>,
    /// 60 s over the mean loaded round trip: how many exchanges, one after the other, fit a minute.
    pub round_trips_per_minute: Option<f64>,
}
