//! What was asked for is there: an error or a missing figure is no answer where nothing on the path
//! could be the reason for it.

use netaware_record::IpVersion;
use netaware_units::Span;
use serde_json::Value;

use super::{Bench, list, number, whole, word};
use crate::world::Ask;
use crate::world::truth::VersionTruth;

/// A path that loses more may be the reason for anything.
const LITTLE_LOSS: f64 = 0.03;

impl Bench<'_> {
    /// To be called once for each command.
    pub(super) fn required(&mut self, record: Option<&Value>) {
        let plain: Vec<IpVersion> = [IpVersion::V4, IpVersion::V6]
            .into_iter()
            .filter(|version| self.is_plain(self.truth.over(*version)))
            .collect();
        if plain.is_empty() || self.found.took.is_none() {
            return;
        }
        let Some(record) = record else {
            self.wrong(true, || "it printed no record, and the path gives no reason for that".to_owned());
            return;
        };
        // A method may find that the time is too short for it; it says so as its result.
        let may_have_none = matches!(self.ask, Ask::Capacity | Ask::Available);
        let outcome = word(record, "outcome");
        self.wrong(outcome != "complete" && !may_have_none, || {
            format!("the outcome is {outcome}, and the path gives no reason for that")
        });
        self.wrong(list(record, "versions").next().is_none(), || "the record has no version".to_owned());
        for version in plain {
            let name = version.name();
            let Some(result) = list(record, "versions").find(|result| word(result, "version") == name) else {
                continue;
            };
            if let Some(missing) = self.missing(record, result) {
                self.wrong(true, || format!("{name} lacks {missing}, and the path gives no reason for that"));
            }
        }
    }

    /// Whether all that a command does can be done over this version, and always in the same way.
    pub(super) fn is_plain(&self, truth: &VersionTruth) -> bool {
        let is_lossless_enough = truth.loss.iter().all(|loss| loss.is_some_and(|loss| loss <= LITTLE_LOSS));
        truth.is_reachable
            && truth.passes_udp
            && truth.passes_icmp
            && truth.says_mtu
            && is_lossless_enough
            && !self.truth.has_outages
            && !self.truth.turns_on_flows
            && !self.truth.is_shared
            && self.suspended == Span::ZERO
    }

    /// What this command was asked for and a version lacks.
    fn missing(&self, record: &Value, result: &Value) -> Option<&'static str> {
        let came = |value: &Value| whole(value, "received").is_some_and(|received| received > 0);
        let has_latency = || came(&result["latency"]);
        let tcp = |direction| {
            let of = |tcp: &&Value| word(&tcp["pedigree"], "direction") == direction;
            list(result, "tcp").filter(of).any(|tcp| number(tcp, "goodput").is_some_and(|rate| rate > 0.0))
        };
        let udp = |direction| {
            let of = |udp: &&Value| word(&udp["pedigree"], "direction") == direction;
            list(result, "udp").filter(of).any(|udp| came(udp) && number(udp, "goodput").is_some())
        };
        let leaves_out_udp = || {
            let warnings = list(record, "warnings").filter_map(Value::as_str);
            warnings.into_iter().any(|warning| warning.contains("left out") && warning.contains("UDP"))
        };
        let runs = || {
            let cells = list(result, "matrix").flat_map(|matrix| list(matrix, "cells"));
            cells.flat_map(|cell| list(cell, "runs"))
        };
        let rows: &[(bool, &'static str)] = &match self.ask {
            Ask::Latency => vec![(has_latency(), "a latency")],
            Ask::Owd => vec![(came(&result["owd"]), "a one-way delay")],
            Ask::Tcp => vec![(tcp("forward"), "a rate of TCP up")],
            Ask::TcpReverse => vec![(tcp("reverse"), "a rate of TCP down")],
            Ask::TcpBidir => {
                vec![(tcp("forward"), "a rate of TCP up"), (tcp("reverse"), "a rate of TCP down")]
            }
            Ask::Udp => vec![(udp("forward"), "UDP up")],
            Ask::UdpReverse => vec![(udp("reverse"), "UDP down")],
            Ask::UdpBidir => vec![(udp("forward"), "UDP up"), (udp("reverse"), "UDP down")],
            Ask::Test => vec![
                (has_latency(), "a latency"),
                (tcp("forward"), "a rate of TCP up"),
                (tcp("reverse"), "a rate of TCP down"),
                (udp("forward") || leaves_out_udp(), "UDP up"),
                (udp("reverse") || leaves_out_udp(), "UDP down"),
                (whole(&result["path"], "mtu").is_some(), "a path MTU"),
            ],
            Ask::Matrix => {
                vec![(runs().any(|run| number(&run["server"], "throughput").is_some()), "a throughput")]
            }
            Ask::Capacity | Ask::Available => {
                vec![(list(result, "path_rates").next().is_some(), "a rate or a reason why there is none")]
            }
            Ask::Hops => vec![(result["hops"]["reached"] == true, "the host at the end of its hops")],
            Ask::Reach => vec![(
                list(result, "reach_probes").any(|probe| whole(probe, "answered").is_some_and(|it| it > 0)),
                "an answer",
            )],
        };
        rows.iter().find(|(is_there, _)| !is_there).map(|(_, what)| *what)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{found, latency, said, truth};
    use super::super::{Found, Verdict};
    use super::*;

    #[test]
    fn an_error_is_no_answer_where_the_path_gives_no_reason_for_it() {
        let none = Found {
            code: Some(2),
            stdout: String::new(),
            stderr: "error: nobody answers".to_owned(),
            ..found(&json!({}))
        };
        let gone = truth("v4 = { black_hole = true }\nv6 = { black_hole = true }");
        assert_eq!(said(Ask::Latency, &gone, &none).0, Verdict::Held);
        assert_eq!(said(Ask::Latency, &truth(""), &none).0, Verdict::Wrong);
        assert_eq!(said(Ask::Latency, &truth("outages = [{ at = '3s' }]"), &none).0, Verdict::Held);
    }

    #[test]
    fn a_figure_that_was_asked_for_and_is_not_there_is_wrong_on_a_plain_path() {
        let ok = latency();
        assert_eq!(said(Ask::Latency, &truth(""), &found(&ok)).0, Verdict::Held);
        for (ask, missing) in [
            (Ask::Tcp, "a rate of TCP up"),
            (Ask::UdpReverse, "UDP down"),
            (Ask::Test, "a rate of TCP up"),
            (Ask::Matrix, "a throughput"),
            (Ask::Hops, "the host at the end"),
            (Ask::Reach, "an answer"),
            (Ask::Capacity, "a rate or a reason"),
        ] {
            let (verdict, why) = said(ask, &truth(""), &found(&ok));
            assert_eq!(verdict, Verdict::Wrong, "{ask:?}");
            assert!(why.contains(missing), "{ask:?}: {why}");
        }
    }
}
