//! Outcome, exit code, warnings and verdicts agree with each other and with what happened.

use serde_json::Value;

use super::{Bench, bits, direction, has_figures, list, number, way, whole, word};
use crate::world::truth::VersionTruth;

/// Loss up to this share is none that limits a stream (docs/methods/limits.md).
const NO_LOSS: f64 = 0.001;
/// A larger share that was not sent, or of which nothing is known, leaves who was the limit open.
const OPEN: f64 = 0.01;

impl Bench<'_> {
    pub(super) fn agreement(&mut self, record: Option<&Value>) {
        let Some(took) = self.found.took else { return };
        let code = self.found.code;
        let Some(record) = record else {
            self.wrong(code == Some(0), || "it ended with 0 and printed no record".to_owned());
            let silent = self.found.stderr.trim().is_empty();
            self.wrong(silent, || format!("it ended after {took} with {code:?} and said nothing"));
            self.wrong(code.is_none(), || "a signal ended it".to_owned());
            return;
        };
        let outcome = word(record, "outcome");
        self.wrong(code == Some(2) && outcome == "complete", || {
            "exit code 2, and the outcome is complete".to_owned()
        });
        self.wrong(code == Some(0) && outcome != "complete", || {
            format!("exit code 0, and the outcome is {outcome}")
        });
        self.wrong(!matches!(code, Some(0 | 2)), || format!("exit code {code:?}"));
        // One that broke off says so itself.
        let whole = list(record, "versions").filter(|version| version["unreachable"].is_null());
        let inner = whole.flat_map(|version| {
            let short =
                list(version, "matrix").flat_map(|it| list(it, "cells")).flat_map(|it| list(it, "runs"));
            list(version, "tcp").chain(list(version, "udp")).chain(short)
        });
        let failed = inner.filter(|part| !matches!(word(part, "outcome"), "complete" | "")).count();
        let is_whole = outcome == "complete" && failed > 0 && list(record, "warnings").next().is_none();
        self.wrong(is_whole, || {
            format!("{failed} parts failed, and the whole is complete without a warning")
        });
        let measured = list(record, "versions").any(has_figures);
        self.wrong(code == Some(0) && !measured, || "exit code 0, and nothing was measured".to_owned());
    }

    /// Who limited a stream agrees with its figures.
    pub(super) fn udp_limit(&mut self, what: &str, udp: &Value) {
        let count = |value: &Value, key: &str| whole(value, key).unwrap_or(0) as f64;
        let (sent, not_sent) = (count(udp, "sent"), count(udp, "not_sent"));
        let (lost, unknown) = (count(&udp["loss"], "lost"), count(&udp["loss"], "unknown"));
        let by = word(&udp["limit"], "by");
        self.wrong(by == "network" && sent > 0.0 && lost <= sent * NO_LOSS, || {
            format!("{what}: limited by network, and {lost} of {sent} are lost")
        });
        let is_open = lost > sent * NO_LOSS + 1.0
            || unknown > sent * OPEN + 1.0
            || not_sent > (sent + not_sent) * OPEN + 1.0
            || word(udp, "outcome") != "complete";
        self.wrong(by == "requested_rate" && is_open, || {
            format!(
                "{what}: said to have been sent as planned, and {lost} of {sent} are lost, {unknown} unknown and \
                 {not_sent} not sent, outcome {}",
                word(udp, "outcome")
            )
        });
    }

    /// A rate that the network is said to have set is a rate that the network has.
    pub(super) fn tcp_limit(&mut self, truth: &VersionTruth, tcp: &Value, reached: f64, expected: f64) {
        let by = word(&tcp["limit"], "by");
        self.wrong(matches!(by, "network" | "shaper") && reached < expected, || {
            let direction = direction(tcp);
            let rate = truth.rate[direction];
            let goodput = number(tcp, "goodput").unwrap_or(0.0);
            format!("TCP {}: limited by {by} at {}, and the path has {rate}", way(direction), bits(goodput))
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{found, latency, said, truth, udp, with};
    use super::super::{Found, Verdict};
    use crate::world::Ask;

    #[test]
    fn outcome_and_exit_code_must_agree() {
        let of = |outcome: &str, code: i32| {
            let mut record = latency();
            record["outcome"] = json!(outcome);
            said(Ask::Latency, &truth(""), &Found { code: Some(code), ..found(&record) }).0
        };
        assert_eq!(of("complete", 0), Verdict::Held);
        assert_eq!(of("complete", 2), Verdict::Wrong);
        assert_eq!(of("failed", 0), Verdict::Wrong);
        let mut failed = latency();
        failed["outcome"] = json!("failed");
        let dead = truth("outages = [{ at = '1s' }]");
        let failed = Found { code: Some(2), ..found(&failed) };
        assert_eq!(said(Ask::Latency, &dead, &failed).0, Verdict::Flagged);
        let none = Found { code: Some(2), stdout: String::new(), ..found(&json!({})) };
        assert_eq!(said(Ask::Latency, &dead, &none).0, Verdict::Wrong, "it said nothing");
        let told = Found { stderr: "error: nobody answers".to_owned(), ..none };
        assert_eq!(said(Ask::Latency, &dead, &told).0, Verdict::Held);
    }

    #[test]
    fn a_part_that_failed_is_seen_in_the_whole() {
        let of = |warnings: &[&str]| {
            let runs = json!([{"outcome": "failed", "client": {"bytes": 10},
                "server": {"throughput": 1_000_000}, "lost": 10}]);
            let record = json!({"outcome": "complete", "warnings": warnings, "versions": [
                {"version": "IPv4", "matrix": [{"protocol": "udp", "cells": [{"runs": runs}]}]}]});
            said(Ask::Matrix, &truth(""), &found(&record)).0
        };
        assert_eq!([of(&[]), of(&["a transfer failed"])], [Verdict::Wrong, Verdict::Flagged]);
    }

    #[test]
    fn a_stream_said_to_be_as_planned_or_limited_by_the_network_is() {
        let limited = |by: &str, pointer: &str, value| {
            let mut record = udp();
            record["versions"][0]["udp"][0]["limit"] = json!({"by": by});
            with(Ask::Udp, record, &format!("/versions/0/udp/0/{pointer}"), value).1
        };
        assert_eq!(limited("requested_rate", "not_sent", json!(0)), "");
        assert!(limited("requested_rate", "not_sent", json!(20)).contains("as planned"));
        assert!(limited("requested_rate", "outcome", json!("failed")).contains("as planned"));
        assert!(limited("network", "not_sent", json!(0)).contains("limited by network"));
    }
}
