//! Request-response delay.

use netaware_units::{BitRate, ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DelaySummary, Health, Histogram, Pedigree};

/// Round-trip delay over UDP (or TCP) request-responses. Time spent inside the responder is taken
/// out where it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LatencyResult {
    /// Source of [`Self::rtt`]; its clock names the worse of the two stamps used.
    pub pedigree: Pedigree,
    /// Payload of a request, and of a response unless [`Self::response`] says otherwise.
    pub payload: ByteCount,
    /// Payload of a response where it differs from the request's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ByteCount>,
    /// Of a closed loop: requests kept outstanding. Absent in an open loop, and in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Of an open loop: how its requests follow each other. Absent in a closed loop, and in records
    /// of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Planned time from request to request, the mean where it is random, the longest where rounds
    /// differ; zero for ping-pong, where each response triggers the next request.
    pub spacing: Span,
    /// Requests that left.
    pub sent: u64,
    /// Requests that never left.
    pub not_sent: u64,
    /// Responses in time, without duplicates.
    pub received: u64,
    /// No response within `patience`.
    pub lost: u64,
    /// Without a response when the run was ended, which was before `patience` was over: of these
    /// nobody knows. `sent` is `received` + `lost` + `unknown`.
    #[serde(default)]
    pub unknown: u64,
    /// Of the lost: those whose response came after all.
    pub late: u64,
    /// Responses overtaken by a later one (RFC 4737 §3).
    pub reordered: u64,
    /// Further copies of a response.
    pub duplicates: u64,
    /// Responses of the wrong length or with an altered payload. They do not count as received.
    #[serde(default)]
    pub bad: u64,
    /// After how long a request counted as lost.
    pub patience: Span,
    /// Round trip between the stamps closest to the wire, responder's own time taken out.
    pub rtt: Option<DelaySummary>,
    /// The same round trip as the application sees it: with system calls, wake-ups and the
    /// responder's time.
    pub rtt_application: Option<DelaySummary>,
    /// Of an open loop: as [`Self::rtt_application`], but from when each request should have left.
    /// What a user meets who does not wait for earlier answers: a send that was held up counts with
    /// all of its delay, so that a stall shows in every request that was due in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_from_due: Option<DelaySummary>,
    /// Further quantiles of [`Self::rtt`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<DelayTail>,
    /// Further quantiles of [`Self::rtt_from_due`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_from_due: Option<DelayTail>,
    /// All exchanges together against the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ExchangeTotal>,
    /// Time inside the responder, between its receive and send stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder: Option<DelaySummary>,
    /// Absolute difference of successive round trips (RFC 3393, consecutive packets).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv: Option<DelaySummary>,
    /// Excess over the smallest round trip (RFC 5481 PDV).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdv: Option<DelaySummary>,
    /// Smoothed jitter of RFC 3550 §6.4.1, on round trips; absent where no two neighbours were
    /// answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Distribution of [`Self::rtt`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// The same in the bins of equal width that were asked for, with moments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bins: Option<Histogram>,
    /// What the instrument did wrong.
    pub health: Health,
}

impl LatencyResult {
    /// A result in which no request has been sent yet.
    pub fn before_any(pedigree: Pedigree, payload: ByteCount) -> Self {
        Self {
            pedigree,
            payload,
            response: None,
            depth: None,
            arrivals: None,
            spacing: Span::ZERO,
            sent: 0,
            not_sent: 0,
            received: 0,
            lost: 0,
            unknown: 0,
            late: 0,
            reordered: 0,
            duplicates: 0,
            bad: 0,
            patience: Span::ZERO,
            rtt: None,
            rtt_application: None,
            rtt_from_due: None,
            tail: None,
            tail_from_due: None,
            total: None,
            responder: None,
            ipdv: None,
            pdv: None,
            jitter: None,
            histogram: None,
            bins: None,
            health: Health::default(),
        }
    }

    /// Requests of which it is known what became of them: what a share of losses is a share of.
    pub const fn settled(&self) -> u64 {
        self.received.saturating_add(self.lost)
    }

    /// Share of the planned requests of which it is known what became of them, 0..=1.
    pub fn known_share(&self) -> f64 {
        let planned = self.sent.saturating_add(self.not_sent);
        if planned > 0 { self.settled() as f64 / planned as f64 } else { 0.0 }
    }

    /// Whether a loss could not have been seen: TCP sends lost packets again, and no request went
    /// without an answer.
    pub fn hides_losses(&self) -> bool {
        self.lost == 0 && [OVER_TCP, OVER_WEBSOCKET].contains(&self.pedigree.method.as_str())
    }

    /// Payload of a response.
    pub fn response_payload(&self) -> ByteCount {
        self.response.unwrap_or(self.payload)
    }
}

/// The method of requests over TCP.
pub const OVER_TCP: &str = "latency-tcp";
/// The method of the page's requests over a WebSocket, which is over TCP.
pub const OVER_WEBSOCKET: &str = "web-latency";

/// How the requests of an open loop follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    #[default]
    Even,
    /// At exponentially distributed distances, so that nothing periodic can keep in step with them
    /// (RFC 3432 §1.1).
    Poisson,
}

/// Quantiles that need many samples; absent where there are fewer than it takes for one of them to
/// lie above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DelayTail {
    /// 90th percentile; from 10 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<Span>,
    /// 99.99th percentile; from 10,000 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p9999: Option<Span>,
    /// 99.999th percentile; from 100,000 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99999: Option<Span>,
}

/// All exchanges together, by the program's clock.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ExchangeTotal {
    /// From the first request's hand-over to the last verdict, summed over the blocks. What was
    /// waited for lost answers is in it, and in an open loop the spacing; of a block at whose end
    /// nothing came any more it ends with the last answer.
    pub time: Span,
    /// [`Self::time`] over the requests that have a verdict, ns.
    pub per_exchange_ns: f64,
    /// Payload of the responses received, over [`Self::time`].
    pub response_rate: BitRate,
}

/// Delay while a bulk transfer filled the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LoadedLatency {
    /// The delay itself.
    pub latency: LatencyResult,
    /// Median under load minus idle median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<Span>,
    /// 60 s over the mean loaded round trip: how many exchanges, one after the other, fit a minute.
    pub round_trips_per_minute: Option<f64>,
}

#[cfg(test)]
mod tests {
    use netaware_units::ClockSource;

    use super::*;
    use crate::{Direction, IpVersion, Layer};

    /// Nothing but requests of 64 bytes.
    fn result(response: Option<ByteCount>) -> LatencyResult {
        let pedigree = Pedigree {
            method: "latency".to_owned(),
            layer: Layer::Payload,
            direction: Direction::RoundTrip,
            version: IpVersion::V6,
            clock: ClockSource::Kernel,
            uncertainty: String::new(),
        };
        LatencyResult { response, ..LatencyResult::before_any(pedigree, ByteCount(64)) }
    }

    #[test]
    fn a_response_is_as_long_as_the_request_unless_its_own_length_is_known() {
        for (response, want) in [(None, 64), (Some(1), 1), (Some(1472), 1472)] {
            assert_eq!(result(response.map(ByteCount)).response_payload(), ByteCount(want));
        }
    }
    #[test]
    fn what_is_sent_again_until_it_comes_has_no_share_of_losses_be_it_asked_by_a_page() {
        let hides = |method: &str, lost: u64| {
            let mut result = result(None);
            (result.pedigree.method, result.received, result.lost) = (method.to_owned(), 100, lost);
            result.hides_losses()
        };
        assert!(hides("web-latency", 0) && hides("latency-tcp", 0));
        assert!(!hides("web-latency", 1), "it was seen");
        assert!(!hides("web-datagrams-latency", 0) && !hides("latency", 0));
    }

    #[test]
    fn the_share_that_was_followed_is_one_of_all_that_was_planned() {
        // Received, lost, unknown, not sent, want
        let rows = [(90, 10, 0, 0, 1.0), (30, 10, 40, 0, 0.5), (25, 0, 0, 75, 0.25), (0, 0, 0, 0, 0.0)];
        for (received, lost, unknown, not_sent, want) in rows {
            let sent = received + lost + unknown;
            let known =
                LatencyResult { sent, not_sent, received, lost, unknown, ..result(None) }.known_share();
            assert!((known - want).abs() < 1e-9, "{known} of {want}");
        }
    }
}
