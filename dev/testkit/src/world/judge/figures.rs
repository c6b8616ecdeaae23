//! True or marked: each figure within its own interval of the truth, or a bound, or flagged;
//! unknown is unknown, never zero; what became of all that was sent adds up.

use netaware_record::IpVersion;
use netaware_units::Span;
use serde_json::Value;

use super::{Ask, Bench, bits, direction, has_figures, least_of, list, number, way, whole, word};
use crate::world::truth::VersionTruth;

/// Stamps and the emulator may be early by this.
const EARLY: Span = Span::from_micros(60);
/// Linux times a segment that was sent again by TCP's timestamps, which count milliseconds.
const EARLY_TCP: Span = Span::from_millis(1);
/// TCP on a clean and steady path that reads less than this share of what it can reach, and says
/// nothing about it, reads wrong.
const LEAST_OF_TCP: f64 = 0.7;
/// Linux waits no shorter before it sends again without three duplicate acknowledgements.
const MIN_RTO: f64 = 0.2;
/// Segments on a path of 1500 bytes.
const SEGMENT: f64 = 1448.0;
/// So many packets may be taken from a receiving host's queue at once.
const TOGETHER: f64 = 64.0;
/// The bounds of chance, in standard deviations.
const CHANCE: f64 = 4.5;

impl Bench<'_> {
    pub(super) fn version(&mut self, result: &Value) {
        let version = if word(result, "version") == "IPv4" { IpVersion::V4 } else { IpVersion::V6 };
        let truth = self.truth.over(version);
        let name = version.name();
        let unreachable = !result["unreachable"].is_null();
        let needs = self.ask.needs_responder();
        // STAMP has no connection.
        let is_reachable = if self.ask == Ask::Owd { truth.is_there } else { truth.is_reachable };
        self.wrong(needs && !is_reachable && !unreachable && has_figures(result), || {
            format!("{name} cannot be reached there, and has figures")
        });
        let is_steady = !self.truth.has_outages && !self.truth.turns_on_flows && self.suspended == Span::ZERO;
        let may_fail = !truth.passes_udp || truth.loss.iter().any(Option::is_none);
        self.wrong(needs && is_reachable && unreachable && is_steady && !may_fail, || {
            format!("{name} is said to be unreachable: {}", result["unreachable"]["reason"])
        });
        if is_reachable || !needs {
            self.latency(name, truth, &result["latency"]);
            list(result, "tcp").for_each(|tcp| self.tcp(name, truth, tcp));
            list(result, "udp").for_each(|udp| self.udp(name, truth, udp));
            self.path_rates(name, truth, result);
            list(result, "reach_probes").for_each(|probe| self.reach(name, truth, probe));
            list(result, "matrix").for_each(|matrix| self.matrix(name, truth, matrix));
            self.owd(name, truth, &result["owd"]);
            self.hops(name, truth, &result["hops"]);
            self.mtu(name, truth, &result["path"]);
        }
    }

    fn is_steady(&self) -> bool {
        let is_alike = !self.truth.has_outages && !self.truth.turns_on_flows;
        is_alike && !self.truth.is_shared && self.suspended == Span::ZERO
    }

    /// A smallest delay cannot be below that of the path, and on an idle path not far above.
    fn least(&mut self, what: &str, found: Option<i64>, [least, most]: [Span; 2], is_idle: bool) {
        let Some(found) = found.map(Span) else { return };
        self.wrong(found < least - EARLY, || format!("{what}: {found} is less than the path's {least}"));
        let late = most + most / 5 + Span::from_millis(10);
        self.wrong(is_idle && found > late, || format!("{what}: {found} is more than the path's {most}"));
    }

    /// A share that is lost by chance, as counts.
    fn share(&mut self, what: &str, lost: u64, of: u64, truth: Option<f64>) {
        let Some(truth) = truth.filter(|_| of > 0 && self.is_steady()) else { return };
        let mean = of as f64 * truth;
        let room = CHANCE * (mean * (1.0 - truth)).sqrt() + 2.0;
        let wrong = (lost as f64 - mean).abs() > room;
        self.wrong(wrong, || {
            format!("{what}: {lost} of {of} are lost, and the path loses {:.1} %", truth * 100.0)
        });
    }

    /// Half of all delays of an idle path are not far above the most that it ever has.
    fn middle(&mut self, what: &str, [_, most]: [Span; 2], summary: &Value) {
        let Some(middle) = summary.get("p50").and_then(Value::as_i64).map(Span) else { return };
        let late = most + most / 5 + Span::from_millis(10);
        let is_idle = self.is_steady();
        self.wrong(is_idle && middle > late, || {
            format!("{what}: a median of {middle} is more than the path's {most}")
        });
    }

    /// Quantiles of one distribution rise.
    fn quantiles(&mut self, what: &str, summary: &Value) {
        let keys = ["min", "p50", "p95", "p99", "p999", "max"];
        let found: Vec<i64> = keys.iter().filter_map(|key| summary.get(key)?.as_i64()).collect();
        self.wrong(!found.is_sorted(), || format!("{what}: quantiles {found:?} do not rise"));
    }

    /// What became of nearly everything is known where nothing on the path could hide it.
    fn known(&mut self, what: &str, truth: &VersionTruth, sent: u64, unknown: u64) {
        let is_hidden = self.is_plain(truth) && unknown > sent / 100 + 2;
        self.wrong(is_hidden, || {
            format!("{what}: nobody knows what became of {unknown} of {sent}, and the path gives no reason")
        });
    }

    /// Everything that was sent has one of these fates.
    fn adds_up(&mut self, what: &str, sent: u64, fates: &[(&str, u64)]) {
        let sum: u64 = fates.iter().map(|(_, count)| count).sum();
        self.wrong(sent != sum, || {
            let fates: Vec<String> = fates.iter().map(|(fate, count)| format!("{count} {fate}")).collect();
            format!("{what}: {sent} sent are not {}", fates.join(", "))
        });
    }

    fn latency(&mut self, name: &str, truth: &VersionTruth, latency: &Value) {
        if latency.is_null() {
            return;
        }
        let what = format!("{name} latency");
        let count = |key: &str| whole(latency, key).unwrap_or(0);
        let (sent, received, lost) = (count("sent"), count("received"), count("lost"));
        self.adds_up(&what, sent, &[("received", received), ("lost", lost), ("unknown", count("unknown"))]);
        self.known(&what, truth, sent, count("unknown"));
        let is_idle = self.is_steady();
        self.quantiles(&what, &latency["rtt"]);
        self.middle(&what, truth.rtt, &latency["rtt"]);
        self.least(&what, least_of(&latency["rtt"]), truth.rtt, is_idle);
        self.wrong(number(&latency["rtt"], "min") == Some(0.0), || format!("{what}: a round trip of zero"));
        self.share(&what, lost, sent, both_ways(truth).filter(|_| truth.passes_udp));
    }

    fn tcp(&mut self, name: &str, truth: &VersionTruth, tcp: &Value) {
        let direction = direction(tcp);
        let what = format!("{name} TCP {}", way(direction));
        let measured = number(tcp, "measured").unwrap_or(0.0) / 1e9;
        let goodput = number(tcp, "goodput");
        let bytes = number(tcp, "bytes").unwrap_or(0.0);
        self.wrong(goodput == Some(0.0) && bytes > 0.0, || format!("{what}: 0 bit/s, and {bytes} B came"));
        // A slice may have a packet of the one before it, and what jitter held back comes later.
        let rate = truth.rate[direction].0 as f64;
        let [least, longest] = truth.one_way[direction];
        let held_back = rate * (longest - least).secs_f64();
        let extra = (truth.credit[direction] + u64::from(truth.mtu)) as f64 * 8.0 + held_back;
        let most = rate * 1.02 + extra / measured.max(0.1);
        if let Some(goodput) = goodput {
            // Above the path's rate only by as much as the interval itself leaves open, and an
            // interval as wide as its figure leaves everything open.
            let lo = number(&tcp["goodput_interval"], "lo").unwrap_or(goodput);
            let surely = lo.max(goodput / 2.0);
            self.wrong(surely > most, || {
                format!("{what}: {} is more than the path's {}", bits(goodput), truth.rate[direction])
            });
            self.tcp_reaches(&what, truth, tcp, goodput);
            let interval = &tcp["goodput_interval"];
            let (lo, hi) = (number(interval, "lo"), number(interval, "hi"));
            self.wrong(lo.is_some_and(|lo| goodput < lo) || hi.is_some_and(|hi| goodput > hi), || {
                format!("{what}: {} is not in its own interval", bits(goodput))
            });
        }
        let smallest = whole(tcp, "min_rtt").map(u64::cast_signed);
        for key in ["min_rtt", "rtt", "cwnd"] {
            self.wrong(whole(tcp, key) == Some(0), || format!("{what}: {key} is zero"));
        }
        self.least(
            &format!("{what}, smallest round trip"),
            smallest.filter(|rtt| *rtt > 0),
            truth.rtt.map(|rtt| rtt - EARLY_TCP),
            false,
        );
        let loaded = &tcp["latency_under_load"]["latency"];
        self.least(&format!("{what}, latency under load"), least_of(&loaded["rtt"]), truth.rtt, false);
        self.quantiles(&format!("{what}, latency under load"), &loaded["rtt"]);
    }

    /// TCP that nothing holds up reaches most of the path's rate, or says why not.
    fn tcp_reaches(&mut self, what: &str, truth: &VersionTruth, tcp: &Value, goodput: f64) {
        let direction = direction(tcp);
        let is_clean = self.is_steady()
            && !truth.is_policed[direction]
            && truth.credit[direction] == 0
            && truth.least_rate == truth.rate
            && truth.rtt[1] <= truth.rtt[0] * 2
            && truth.mtu >= 1500;
        let Some(loss) = truth.loss[direction].filter(|_| is_clean && self.ask != Ask::TcpBidir) else {
            return;
        };
        let is_whole = word(tcp, "outcome") == "complete" && tcp["ended_early"].is_null();
        let is_speeding_up = word(&tcp["warm_up"], "rule") == "never ended";
        if !is_whole || is_speeding_up {
            return;
        }
        let streams = number(tcp, "streams").unwrap_or(1.0).max(1.0);
        let rate = truth.rate[direction].0 as f64 * SEGMENT / 1500.0;
        let expected = LEAST_OF_TCP * rate.min(streams * lossy_rate(loss, truth.rtt[1].secs_f64()));
        let at_most = number(&tcp["goodput_interval"], "hi").unwrap_or(goodput);
        self.tcp_limit(truth, tcp, at_most, expected);
        let host = ["sender_cpu", "receiver_cpu", "socket_buffer", "receive_window"];
        let is_said = host.contains(&word(&tcp["limit"], "by"));
        self.wrong(at_most < expected && !is_said, || {
            format!(
                "{what}: {} on a path of {}, and nothing says why",
                bits(goodput),
                bits(truth.rate[direction].0 as f64)
            )
        });
    }

    fn udp(&mut self, name: &str, truth: &VersionTruth, udp: &Value) {
        let direction = direction(udp);
        let what = format!("{name} UDP {}", way(direction));
        let count = |value: &Value, key: &str| whole(value, key).unwrap_or(0);
        let (sent, received) = (count(udp, "sent"), count(udp, "received"));
        let loss = &udp["loss"];
        let lost = count(loss, "lost");
        let unknown = count(loss, "unknown");
        self.adds_up(&what, sent, &[("received", received), ("lost", lost), ("unknown", unknown)]);
        // Where the receiver could not count its own drops, neither is known.
        if let (Some(by_host), Some(by_network)) = (whole(loss, "host"), whole(loss, "network")) {
            self.wrong(lost != by_host + by_network, || {
                format!(
                    "{what}: {lost} lost are not {by_host} lost by a host and {by_network} by the network"
                )
            });
        }
        self.known(&what, truth, sent, unknown);
        let (planned, rate) = (number(udp, "planned"), number(udp, "sent_rate").unwrap_or(0.0));
        self.wrong(planned == Some(0.0), || format!("{what}: a planned rate of zero"));
        let is_complete = word(udp, "outcome") == "complete";
        self.wrong(is_complete && sent == 0, || format!("{what}: complete, and nothing was sent"));
        // One datagram more than the plan in a short stream.
        let one = number(udp, "payload").unwrap_or(0.0) * 8.0;
        self.wrong(planned.is_some_and(|planned| rate > planned * 1.05 + one), || {
            format!("{what}: sent at {}, planned {}", bits(rate), bits(planned.unwrap_or(0.0)))
        });
        let carries = truth.udp_rate[direction].0 as f64;
        let goodput = number(udp, "goodput").unwrap_or(0.0);
        let lasted = number(&udp["receiver"], "elapsed").unwrap_or(1e9) / 1e9;
        let most = carries * 1.05 + (truth.udp_credit[direction] as f64 * 8.0 + one) / lasted.max(0.1);
        self.wrong(goodput > most, || {
            format!("{what}: {} arrive, and the path carries {}", bits(goodput), bits(carries))
        });
        self.wrong(goodput == 0.0 && received > 1, || format!("{what}: 0 bit/s, and {received} came"));
        let fits = rate < carries * 0.9;
        if fits && truth.passes_udp {
            self.share(&what, lost, sent, loss_of(truth, direction, udp));
        }
        let share = received as f64 / sent.max(1) as f64;
        let [least, longest] = truth.one_way[direction];
        let is_even = longest - least < Span::from_millis(10);
        let is_clean =
            fits && is_complete && is_even && self.is_steady() && truth.loss[direction] == Some(0.0);
        self.wrong(is_clean && sent >= 50 && goodput < rate * share * 0.9, || {
            format!("{what}: sent at {}, and {} arrive of a path that is wider", bits(rate), bits(goodput))
        });
        self.wrong(!truth.passes_udp && received > 0, || {
            format!("{what}: {received} came where no UDP passes")
        });
        let failed = word(&udp["sender"], "outcome");
        self.wrong(is_complete && matches!(failed, "failed" | "interrupted"), || {
            format!("{what}: the sender {failed}, and the stream is complete")
        });
        self.udp_limit(&what, udp);
    }

    fn path_rates(&mut self, name: &str, truth: &VersionTruth, result: &Value) {
        let asks = matches!(self.ask, Ask::Capacity | Ask::Available);
        let is_explained = !result["unreachable"].is_null()
            || self.warnings.iter().any(|warning| warning.starts_with(&format!("{name}: ")));
        let silent = asks && !is_explained && list(result, "path_rates").next().is_none();
        self.wrong(silent, || format!("{name}: neither a rate nor a reason"));
        list(result, "path_rates").for_each(|rate| self.path_rate(name, truth, rate));
    }

    fn path_rate(&mut self, name: &str, truth: &VersionTruth, rate: &Value) {
        let direction = direction(rate);
        let metric = word(rate, "metric");
        let what = format!("{name} {metric} {}", way(direction));
        let interval = &rate["rate"];
        let has_reason = !rate["missing"].is_null();
        self.wrong(interval.is_null() && !has_reason, || format!("{what}: neither a rate nor a reason"));
        let (Some(lo), Some(hi)) = (number(interval, "lo"), number(interval, "hi")) else { return };
        self.wrong(number(interval, "estimate") == Some(0.0), || format!("{what}: a rate of zero"));
        let most = truth.udp_rate[direction].0 as f64;
        let least = most.min(truth.least_rate[direction].0 as f64);
        // How the receiving card hands packets over is said of every host, and is no doubt.
        let is_marked = list(rate, "flags").any(|flag| flag != "coalescing");
        self.wrong(
            number(interval, "estimate").is_some_and(|estimate| estimate < lo || estimate > hi),
            || format!("{what}: the estimate is not in its own interval"),
        );
        if is_marked || !self.is_steady() || truth.credit[direction] > 20_000 {
            return;
        }
        let (low, high) = match word(rate, "bound") {
            "at_least" => (lo, f64::INFINITY),
            "at_most" => (0.0, hi),
            _ => (lo, hi),
        };
        self.wrong(high < least * 0.96 || low > most * 1.04, || {
            format!("{what}: {} to {}, and the path has {}", bits(low), bits(high), bits(most))
        });
    }

    fn reach(&mut self, name: &str, truth: &VersionTruth, probe: &Value) {
        let protocol = word(probe, "protocol");
        let what = format!("{name} reach by {protocol}");
        let count = |key: &str| whole(probe, key).unwrap_or(0);
        let (asked, answered) = (count("asked"), count("answered"));
        self.answers(&what, probe);
        // A middlebox that refuses is nearer than the host.
        if protocol != "tcp" || truth.is_reachable {
            self.least(&what, least_of(&probe["rtt"]), truth.rtt, false);
        }
        let passes = match protocol {
            "tcp" => truth.is_reachable,
            "udp" => truth.passes_udp && truth.passes_icmp,
            _ => truth.passes_icmp,
        };
        let is_there =
            truth.loss.iter().all(Option::is_some) && self.is_steady() && truth.rate[0].0 > 1_000_000;
        let silent = passes && is_there && asked >= 5 && answered == 0 && matches!(protocol, "tcp" | "echo");
        self.wrong(silent, || format!("{what}: nobody answers {asked} questions, and somebody is there"));
    }

    /// Answers, late ones and those that stayed out are all that was asked, and the share that is
    /// told is theirs.
    fn answers(&mut self, what: &str, asked: &Value) {
        let count = |key: &str| whole(asked, key).unwrap_or(0);
        let (questions, answered, late) = (count("asked"), count("answered"), count("late"));
        self.wrong(answered + late > questions, || {
            format!("{what}: {answered} of {questions} answered and {late} late")
        });
        let lost = questions.saturating_sub(answered + late) as f64 / questions.max(1) as f64;
        self.wrong(number(asked, "loss").is_some_and(|loss| (loss - lost).abs() > 1e-6), || {
            format!(
                "{what}: {answered} of {questions} answered, {late} late, and a loss of {}",
                asked["loss"]
            )
        });
    }

    fn owd(&mut self, name: &str, truth: &VersionTruth, owd: &Value) {
        if owd.is_null() {
            return;
        }
        let what = format!("{name} owd");
        let count = |key: &str| whole(owd, key).unwrap_or(0);
        let (sent, received, lost) = (count("sent"), count("received"), count("lost"));
        self.adds_up(&what, sent, &[("received", received), ("lost", lost), ("unknown", count("unknown"))]);
        self.known(&what, truth, sent, count("unknown"));
        let ways = ["forward", "reverse"].map(|key| whole(&owd[key], "lost").unwrap_or(0));
        let somewhere = count("lost_somewhere");
        self.wrong(lost != ways[0] + ways[1] + somewhere, || {
            format!(
                "{what}: {lost} lost are not {} there, {} back and {somewhere} somewhere",
                ways[0], ways[1]
            )
        });
        self.share(&what, lost, sent, both_ways(truth).filter(|_| truth.passes_udp));
        for (direction, key) in ["forward", "reverse"].into_iter().enumerate() {
            let what = format!("{name} one-way delay {}", way(direction));
            let is_idle = self.is_steady();
            self.least(&what, least_of(&owd[key]["delay"]), truth.one_way[direction], is_idle);
            self.quantiles(&what, &owd[key]["delay"]);
            self.middle(&what, truth.one_way[direction], &owd[key]["delay"]);
        }
        if somewhere == 0 && truth.passes_udp {
            self.share(&format!("{what} there"), ways[0], sent, truth.loss[0]);
            self.share(&format!("{what} back"), ways[1], sent - ways[0].min(sent), truth.loss[1]);
        }
    }

    fn hops(&mut self, name: &str, truth: &VersionTruth, hops: &Value) {
        if hops.is_null() {
            return;
        }
        let seen: Vec<&Value> = list(hops, "hops").collect();
        let reached = hops["reached"].as_bool() == Some(true);
        let count = seen.len() as u64;
        self.wrong(reached && self.is_steady() && count != self.truth.routers + 1, || {
            format!("{name} hops: {count} hops, and the path has {}", self.truth.routers + 1)
        });
        if let Some(last) = seen.last().filter(|_| reached) {
            let rtt = whole(last, "rtt_min").map(u64::cast_signed);
            self.least(&format!("{name} hops, the last"), rtt, truth.rtt, false);
        }
        for hop in seen {
            self.answers(&format!("{name} hops, hop {}", hop["ttl"]), hop);
            self.wrong(whole(hop, "rtt_min") == Some(0), || format!("{name} hops: a round trip of zero"));
        }
    }

    /// Each transfer of UDP: what came, what is lost and what nobody knows are what was sent.
    fn matrix(&mut self, name: &str, truth: &VersionTruth, matrix: &Value) {
        let protocol = word(matrix, "protocol");
        let what = format!("{name} matrix by {protocol}");
        for run in list(matrix, "cells").flat_map(|cell| list(cell, "runs")) {
            let bytes = |key: &str| whole(run, key).unwrap_or(0);
            let sent = whole(&run["client"], "bytes").unwrap_or(0);
            let came = whole(&run["server"], "bytes");
            if protocol == "udp" {
                let fates =
                    [("came", came.unwrap_or(0)), ("lost", bytes("lost")), ("unknown", bytes("unknown"))];
                self.adds_up(&what, sent, &fates);
            }
            self.wrong(protocol != "udp" && bytes("lost") > 0, || {
                format!("{what}: {} B are lost, and TCP loses nothing", bytes("lost"))
            });
            let is_complete = word(run, "outcome") == "complete";
            self.wrong(is_complete && protocol != "udp" && came.is_some_and(|came| came != sent), || {
                format!("{what}: {sent} B sent, {came:?} came, and the transfer is complete")
            });
            self.wrong(came.is_some_and(|came| came > sent), || format!("{what}: {came:?} B of {sent} came"));
            let none = |end: &str| whole(&run[end], "throughput") == Some(0);
            self.wrong(none("client") || none("server"), || format!("{what}: a throughput of zero"));
            self.short_rate(&what, truth, direction(matrix), run);
        }
    }

    /// What came in a time came no faster than the path carries, its credit and what its queue gave
    /// away at once aside.
    fn short_rate(&mut self, what: &str, truth: &VersionTruth, direction: usize, run: &Value) {
        let (Some(bytes), Some(throughput)) =
            (whole(&run["server"], "bytes"), number(&run["server"], "throughput"))
        else {
            return;
        };
        let rate = truth.rate[direction].0 as f64;
        let [least, longest] = truth.one_way[direction];
        // Packets may come together after having waited together.
        let together = rate * (longest - least).secs_f64() + f64::from(truth.mtu) * 8.0 * TOGETHER;
        let extra = truth.credit[direction] as f64 * 8.0 + together;
        let bits_of = bytes as f64 * 8.0;
        let most = rate * 1.05 * bits_of / (bits_of - extra).max(bits_of * 0.01);
        self.wrong(bits_of > extra * 2.0 && throughput > most, || {
            format!("{what}: {} of {bytes} B, and the path has {}", bits(throughput), bits(rate))
        });
    }

    fn mtu(&mut self, name: &str, truth: &VersionTruth, path: &Value) {
        let Some(found) = whole(path, "mtu") else { return };
        let is_known = truth.passes_udp && self.is_steady() && truth.loss.iter().all(Option::is_some);
        self.wrong(is_known && found != u64::from(truth.mtu), || {
            format!("{name} path MTU: {found}, and packets of {} pass", truth.mtu)
        });
    }
}

/// The share of round trips that is lost.
fn both_ways(truth: &VersionTruth) -> Option<f64> {
    truth.loss[0].zip(truth.loss[1]).map(|(there, back)| 1.0 - (1.0 - there) * (1.0 - back))
}

/// The share of datagrams of this length that is lost. `None` if they are longer than what passes
/// there and back: then it depends on which way is the narrow one.
fn loss_of(truth: &VersionTruth, direction: usize, udp: &Value) -> Option<f64> {
    let length = whole(udp, "payload").unwrap_or(0) + 28;
    if length > u64::from(truth.mtu) { None } else { truth.loss[direction] }
}

/// What a TCP that takes loss for congestion reaches at least, in bit/s: RFC 5348 §3.1 with an
/// acknowledgement for every other segment. Others (BBR) reach more.
fn lossy_rate(loss: f64, rtt: f64) -> f64 {
    if loss <= 0.0 {
        return f64::INFINITY;
    }
    let rto = (rtt + MIN_RTO).max(4.0 * rtt);
    let recovers = rtt * (4.0 * loss / 3.0).sqrt();
    let times_out = rto * 3.0 * (6.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
    SEGMENT * 8.0 / (recovers + times_out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Verdict;
    use super::super::tests::{found, latency, said, truth, udp, with};
    use super::*;

    #[test]
    fn a_figure_that_cannot_be_is_wrong() {
        let (l, u) = ("/versions/0/latency", "/versions/0/udp/0");
        let rows = [
            (Ask::Latency, latency(), format!("{l}/rtt/min"), json!(39_000_000), "less than the path's"),
            (Ask::Latency, latency(), format!("{l}/rtt/min"), json!(90_000_000), "more than the path's"),
            (Ask::Latency, latency(), format!("{l}/received"), json!(199), "are not 199 received"),
            (Ask::Udp, udp(), format!("{u}/received"), json!(150), "are not 150 received"),
            (Ask::Udp, udp(), format!("{u}/planned"), json!(0), "a planned rate of zero"),
            (Ask::Udp, udp(), format!("{u}/sent_rate"), json!(1_100_000), "planned 1.00 Mbit/s"),
            (Ask::Udp, udp(), format!("{u}/goodput"), json!(20_000_000), "the path carries 10.0 Mbit/s"),
            (Ask::Udp, udp(), format!("{u}/goodput"), json!(700_000), "of a path that is wider"),
            (Ask::Udp, udp(), format!("{u}/goodput"), json!(0), "0 bit/s, and 200 came"),
            (Ask::Udp, udp(), format!("{u}/loss/host"), json!(3), "lost by a host"),
            (Ask::Udp, udp(), format!("{u}/sender/outcome"), json!("failed"), "the stream is complete"),
        ];
        for (ask, record, pointer, value, reason) in rows {
            let (verdict, why) = with(ask, record, &pointer, value);
            assert_eq!(verdict, Verdict::Wrong, "{pointer}");
            assert!(why.contains(reason), "{pointer}: {why}");
        }
    }

    #[test]
    fn loss_is_that_of_the_path_within_chance_or_wrong() {
        let lossy = truth("loss = '10%'");
        let mut record = udp();
        let stream = &mut record["versions"][0]["udp"][0];
        (stream["received"], stream["goodput"]) = (json!(181), json!(900_000));
        stream["loss"] = json!({"lost": 19, "host": 0, "network": 19});
        assert_eq!(said(Ask::Udp, &lossy, &found(&record)).0, Verdict::Held);
        assert_eq!(said(Ask::Udp, &truth(""), &found(&record)).0, Verdict::Wrong);
        assert_eq!(said(Ask::Udp, &truth("loss = '30%'"), &found(&udp())).0, Verdict::Wrong);
    }

    #[test]
    fn unknown_that_is_printed_as_zero_is_wrong() {
        let tcp = json!({"pedigree": {"direction": "reverse"}, "outcome": "failed", "bytes": 5_000_000,
            "goodput": 0, "measured": 3_000_000_000_u64, "min_rtt": 0});
        let record = json!({"outcome": "complete", "warnings": ["a transfer failed"],
            "versions": [{"version": "IPv4", "tcp": [tcp]}]});
        let (verdict, why) = said(Ask::TcpReverse, &truth(""), &found(&record));
        assert_eq!(verdict, Verdict::Wrong);
        assert!(why.contains("0 bit/s, and 5000000 B came") && why.contains("min_rtt is zero"), "{why}");
    }

    /// What is said of a TCP transfer with this goodput, limit and rule over a path with `more`.
    fn tcp(more: &str, goodput: u64, by: &str, rule: &str) -> String {
        let tcp = json!({"pedigree": {"direction": "forward"}, "outcome": "complete", "bytes": 2_000_000,
            "goodput": goodput, "measured": 3_000_000_000_u64, "min_rtt": 41_000_000, "streams": 1,
            "warm_up": {"rule": rule}, "limit": {"by": by}});
        let record =
            json!({"outcome": "complete", "warnings": [], "versions": [{"version": "IPv4", "tcp": [tcp]}]});
        said(Ask::Tcp, &truth(more), &found(&record)).1
    }

    #[test]
    fn tcp_that_reads_a_third_low_without_saying_why_is_wrong() {
        let over = "slow start over";
        assert_eq!(tcp("", 9_300_000, "network", over), "");
        assert!(tcp("", 6_000_000, "unknown", over).contains("nothing says why"));
        assert!(tcp("", 6_000_000, "network", over).contains("limited by network at 6.00 Mbit/s"));
        assert_eq!(tcp("", 6_000_000, "receive_window", over), "");
        assert_eq!(tcp("", 6_000_000, "unknown", "never ended"), "");
        // 1 % lost over 40 ms: 1.6 Mbit/s.
        assert_eq!(tcp("loss = '1%'", 1_700_000, "network", over), "");
        assert!(tcp("loss = '1%'", 300_000, "network", over).contains("nothing says why"));
    }

    #[test]
    fn a_capacity_must_be_in_its_interval_or_a_bound_or_marked() {
        let judged = |rates: Value| {
            let record = json!({"outcome": "complete", "warnings": [],
                "versions": [{"version": "IPv4", "path_rates": rates, "reach_probes": [{}]}]});
            said(Ask::Capacity, &truth(""), &found(&record)).0
        };
        let rate = |lo: f64, hi: f64, bound: &str, flags: &[&str]| {
            judged(json!([{"pedigree": {"direction": "forward"}, "metric": "capacity", "bound": bound,
                "rate": {"estimate": lo, "lo": lo, "hi": hi}, "flags": flags}]))
        };
        assert_eq!(rate(9.9e6, 10.1e6, "none", &[]), Verdict::Held);
        assert_eq!(rate(15e6, 16e6, "none", &[]), Verdict::Wrong);
        assert_eq!(rate(5e6, 6e6, "at_least", &[]), Verdict::Held);
        assert_eq!(rate(15e6, 16e6, "at_least", &[]), Verdict::Wrong);
        assert_eq!(rate(15e6, 16e6, "none", &["noisy"]), Verdict::Flagged);
        assert_eq!(judged(json!([])), Verdict::Wrong);
        assert_eq!(judged(json!([{"metric": "capacity"}])), Verdict::Wrong);
        let missing = json!([{"metric": "capacity", "missing": {"reason": "too_short"}}]);
        assert_eq!(judged(missing), Verdict::Flagged);
    }

    #[test]
    fn answers_late_answers_and_silence_are_all_that_was_asked() {
        let probe = |answered: u64, late: u64, loss: f64| {
            let probe =
                json!({"protocol": "echo", "asked": 20, "answered": answered, "late": late, "loss": loss});
            let record = json!({"outcome": "complete", "warnings": [],
                "versions": [{"version": "IPv4", "reach_probes": [probe]}]});
            said(Ask::Reach, &truth(""), &found(&record)).0
        };
        assert_eq!(probe(20, 0, 0.0), Verdict::Held);
        assert_eq!(probe(18, 1, 0.05), Verdict::Held);
        assert_eq!(probe(18, 0, 0.0), Verdict::Wrong);
        assert_eq!(probe(20, 1, 0.0), Verdict::Wrong);
    }

    #[test]
    fn losses_of_each_way_are_all_losses_and_those_of_the_path() {
        let owd = |ways: [u64; 2], somewhere: u64| {
            let way = |lost: u64| json!({"lost": lost, "delay": {"min": 20_300_000}});
            let owd = json!({"sent": 300, "received": 243, "lost": 57, "lost_somewhere": somewhere,
                "forward": way(ways[0]), "reverse": way(ways[1])});
            let record =
                json!({"outcome": "complete", "warnings": [], "versions": [{"version": "IPv4", "owd": owd}]});
            said(Ask::Owd, &truth("loss = '10%'"), &found(&record)).1
        };
        assert_eq!(owd([30, 27], 0), "");
        assert!(owd([30, 20], 0).contains("57 lost are not 30 there, 20 back"));
        assert!(owd([57, 0], 0).contains("owd back: 0 of 243 are lost"), "{}", owd([57, 0], 0));
        assert_eq!(owd([0, 0], 57), "");
    }

    #[test]
    fn bytes_of_a_short_transfer_came_or_are_lost_or_unknown() {
        let run = |lost: u64, unknown: u64| {
            let run = json!({"outcome": "complete", "client": {"bytes": 10_000}, "server": {"bytes": 8_000, "throughput": 1_000_000},
                "lost": lost, "unknown": unknown});
            let matrix = json!([{"protocol": "udp", "cells": [{"runs": [run]}]}]);
            let record = json!({"outcome": "complete", "warnings": [],
                "versions": [{"version": "IPv4", "matrix": matrix}]});
            said(Ask::Matrix, &truth(""), &found(&record)).0
        };
        let tcp =
            json!({"outcome": "interrupted", "client": {"bytes": 10}, "server": {"bytes": 8}, "lost": 2});
        let matrix = json!([{"protocol": "tcp", "cells": [{"runs": [tcp]}]}]);
        let record = json!({"outcome": "complete", "warnings": ["a transfer did not end in time"],
            "versions": [{"version": "IPv4", "matrix": matrix}]});
        assert!(said(Ask::Matrix, &truth(""), &found(&record)).1.contains("TCP loses nothing"));
        assert_eq!(
            [run(2_000, 0), run(1_000, 1_000), run(0, 0)],
            [Verdict::Held, Verdict::Held, Verdict::Wrong]
        );
    }

    #[test]
    fn figures_of_a_version_that_does_not_pass_are_wrong_and_none_are_not() {
        let gone = truth("v4 = { black_hole = true }");
        assert_eq!(said(Ask::Latency, &gone, &found(&latency())).0, Verdict::Wrong);
        let mut record = latency();
        record["versions"][0] = json!({"version": "IPv4", "unreachable": {"reason": "no answer"}});
        assert_eq!(said(Ask::Latency, &truth(""), &found(&record)).0, Verdict::Wrong);
        let both = json!([record["versions"][0].clone(), {"version": "IPv6", "latency": latency()["versions"][0]["latency"]}]);
        record["versions"] = both;
        assert_eq!(said(Ask::Latency, &gone, &found(&record)).0, Verdict::Flagged);
    }
}
