//! UDPmon's line of a latency measurement: eleven fields between semicolons, under its heading.
//!
//! Times are those of the program, in us: the total of all loops over their number, then mean,
//! smallest and largest of the single ones. UDPmon counts the response over half of the loop's
//! time, as if it had the path to itself for that long, and so does this column; the record's own
//! rate counts it over all of it.

use netaware_record::LatencyResult;

/// The fields of one result. What was not measured is `-`.
pub(crate) fn line(result: &LatencyResult) -> String {
    let (total, single) = (result.total, result.rtt_application);
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let micros = |span: netaware_units::Span| format!("{:.3}", span.micros_f64());
    let response = result.response_payload().0;
    let fields = [
        response.to_string(),
        result.payload.0.to_string(),
        // Messages outstanding at a time, which UDPmon always has at one.
        result.depth.unwrap_or(1).to_string(),
        result.sent.to_string(),
        result.bad.to_string(),
        or_none(total.map(|total| format!("{:.3}", total.per_exchange_ns / 1e3))),
        or_none(total.map(|total| format!("{:.5}", 2.0 * response as f64 * 1e3 / total.per_exchange_ns))),
        or_none(single.map(|single| micros(single.mean))),
        or_none(single.map(|single| micros(single.min))),
        or_none(single.map(|single| micros(single.max))),
        // A bad answer ends no wait: its request runs into the time-out as well.
        result.lost.to_string(),
    ];
    fields.join("; ")
}

#[cfg(test)]
mod tests {
    use netaware_record::{DelaySummary, ExchangeTotal};
    use netaware_units::{BitRate, ByteCount, Span};

    use super::*;
    use crate::render::fixture;

    #[test]
    fn a_line_equals_the_one_in_udpmons_own_description() {
        let us = |micros: f64| Span::from_nanos((micros * 1e3_f64).round() as i64);
        let single =
            DelaySummary { mean: us(126.27), min: us(120.77), max: us(1193.952), ..DelaySummary::default() };
        let sample = fixture::latency().versions[0].latency.clone().unwrap();
        let result = LatencyResult {
            payload: ByteCount(64),
            response: Some(ByteCount(64)),
            depth: Some(1),
            sent: 1000,
            lost: 0,
            bad: 0,
            rtt_application: Some(single),
            total: Some(ExchangeTotal {
                time: us(127_790.0),
                per_exchange_ns: 127_790.0,
                response_rate: BitRate(4_006_573),
            }),
            ..sample
        };
        assert_eq!(line(&result), "64; 64; 1; 1000; 0; 127.790; 1.00164; 126.270; 120.770; 1193.952; 0");
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let sample = fixture::latency().versions[0].latency.clone().unwrap();
        let silent = LatencyResult { total: None, rtt_application: None, lost: 200, ..sample };
        assert_eq!(line(&silent), "64; 64; 1; 200; 0; -; -; -; -; -; 200");
    }
}
