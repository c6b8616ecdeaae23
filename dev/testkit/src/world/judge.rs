//! Says of one command over one path whether it held: a pure function over what was printed, what
//! is true, how long it took and what entered the path.
//!
//! Five things are asked (docs/world.md): no harm, in time, true or marked, agreement with itself,
//! and the other end free again. The record is read as JSON, as any reader of it would. Where a
//! figure may be right the judge lets it pass: it leans towards the program, so that what it calls
//! wrong is wrong.

use netaware_lab::{Entered, EnteredCount};
use netaware_record::IpVersion;
use netaware_units::{BitRate, Span};
use serde_json::Value;

use super::Ask;
use super::truth::{Truth, VersionTruth};

/// What came of one command over one path.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The exit code; `None` if a signal ended it, or it had to be ended.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
    /// How long it took; `None` if it had to be ended.
    pub took: Option<Span>,
    /// What each host sent into the path.
    pub entered: [Entered; 2],
    /// Packets for which a host's device had no room: more was sent than any path takes.
    pub not_read: u64,
    /// Whether the other end took the next client within 5 s; `None` if nobody asked.
    pub is_free: Option<bool>,
}

/// What is said of it, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Everything held.
    Held,
    /// It held, and what could not be measured or is in doubt is marked.
    Flagged,
    /// It took longer than it promised, or than it announced.
    TooLong,
    /// A figure, a count, an outcome or an exit code is not true.
    Wrong,
    /// More was sent than the path carries, or than was said.
    Harm,
}

impl Verdict {
    /// As the table has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Flagged => "flagged",
            Self::TooLong => "too long",
            Self::Wrong => "wrong",
            Self::Harm => "harm",
        }
    }
}

/// The verdict and its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The worst of all reasons.
    pub verdict: Verdict,
    /// One sentence each.
    pub reasons: Vec<String>,
}

/// Judges.
pub fn judge(ask: Ask, truth: &Truth, found: &Found, suspended: Span) -> Judgement {
    let mut bench = Bench { ask, truth, found, said: Vec::new() };
    let record = serde_json::from_str::<Value>(&found.stdout).ok();
    bench.time(suspended);
    bench.harm(record.as_ref());
    bench.agreement(record.as_ref());
    for result in record.iter().flat_map(|record| list(record, "versions")) {
        bench.version(result);
    }
    if found.is_free == Some(false) {
        bench.say(Verdict::Wrong, "the other end did not take the next client within 5 s".to_owned());
    }
    if bench.said.is_empty() && record.as_ref().is_some_and(|record| is_marked(record, &found.stderr)) {
        return Judgement { verdict: Verdict::Flagged, reasons: Vec::new() };
    }
    let verdict = bench.said.iter().map(|(verdict, _)| *verdict).max().unwrap_or(Verdict::Held);
    Judgement { verdict, reasons: bench.said.into_iter().map(|(_, why)| why).collect() }
}

/// By how much a wall clock may exceed a promise because of this machine.
const MACHINE: Span = Span::from_secs(2);
/// Round trips that connecting, greeting and saying goodbye take beside what was promised.
const ROUND_TRIPS: i64 = 16;
/// For how long a program may wait for a path that is gone before it gives up.
const PATIENCE: Span = Span::from_secs(15);
/// Unresponsive traffic over what the path carries.
const MOST_LOAD: f64 = 1.25;
/// A train of packets, or the echoes of a second, may come on top of any rate.
const ONE_TRAIN: f64 = 64_000.0;
/// Stamps and the emulator may be early by this.
const EARLY: Span = Span::from_micros(60);
/// Linux times a segment that was sent again by TCP's timestamps, which count milliseconds.
const EARLY_TCP: Span = Span::from_millis(1);

struct Bench<'a> {
    ask: Ask,
    truth: &'a Truth,
    found: &'a Found,
    said: Vec<(Verdict, String)>,
}

impl Bench<'_> {
    fn say(&mut self, verdict: Verdict, why: String) {
        self.said.push((verdict, why));
    }

    fn wrong(&mut self, is_wrong: bool, why: impl FnOnce() -> String) {
        if is_wrong {
            self.say(Verdict::Wrong, why());
        }
    }

    // 1. No harm.

    fn harm(&mut self, record: Option<&Value>) {
        let took = self.found.took.unwrap_or(Span::from_secs(60)).secs_f64();
        for (direction, entered) in self.found.entered.into_iter().enumerate() {
            let carries = self.truth.carries(direction).0 as f64 / 8.0;
            let loads = [("UDP", entered.udp), ("ICMP", entered.icmp), ("other packets", entered.other)];
            for (name, count) in loads {
                self.load(name, direction, count, carries, took);
            }
        }
        let udp: u64 = self.found.entered.iter().map(|entered| entered.udp.packets).sum();
        let tcp: u64 = self.found.entered.iter().map(|entered| entered.tcp.packets).sum();
        if self.found.not_read > 2000 && udp > tcp {
            let why = format!(
                "{} packets did not even enter the path: a host sent without a limit",
                self.found.not_read
            );
            self.say(Verdict::Harm, why);
        }
        if let (Some(record), Ask::Udp | Ask::UdpReverse) = (record, self.ask) {
            self.sent_as_said(record);
        }
    }

    fn load(&mut self, name: &str, direction: usize, count: EnteredCount, carries: f64, took: f64) {
        let from = if direction == 0 { "the prober" } else { "the responder" };
        let credit = self.truth.versions.iter().map(|version| version.credit[direction]).max().unwrap_or(0);
        let allowed = |seconds: f64| MOST_LOAD * carries * seconds + ONE_TRAIN + credit as f64;
        let rows = [("in one second", count.busiest_second, 1.0), ("in all", count.bytes, took.max(1.0))];
        for (when, bytes, seconds) in rows {
            if bytes as f64 > allowed(seconds) {
                let times = bytes as f64 / (carries * seconds);
                let why =
                    format!("{from} sent {bytes} B of {name} {when}, {times:.1} times what the path carries");
                self.say(Verdict::Harm, why);
            }
        }
    }

    /// Datagrams that entered the path beyond those of which the record speaks.
    fn sent_as_said(&mut self, record: &Value) {
        let direction = usize::from(self.ask == Ask::UdpReverse);
        let entered = self.found.entered[direction].udp.packets;
        let streams = list(record, "versions").flat_map(|version| list(version, "udp"));
        let said: u64 = streams.filter_map(|stream| whole(stream, "sent")).sum();
        // Those that set a stream up and end it.
        let most = said + said / 20 + 300;
        let knows = list(record, "versions").any(|version| list(version, "udp").next().is_some());
        if knows && entered > most {
            self.say(
                Verdict::Harm,
                format!("{entered} datagrams entered the path and the record says {said}"),
            );
        }
    }

    // 2. In time.

    fn time(&mut self, suspended: Span) {
        let truth = self.truth;
        let versions = truth.reachable().max(1);
        let promised = self.ask.promised(versions).max(announced(&self.found.stderr));
        let rtt = truth.versions.iter().map(|version| version.rtt[1]).max().unwrap_or_default();
        let talk = if self.ask.promises_everything() { Span::ZERO } else { rtt * ROUND_TRIPS };
        let is_cut = truth.has_outages || truth.turns_on_flows || truth.reachable() < 2;
        let patience = if is_cut { PATIENCE + truth.out_for.unwrap_or_default() } else { Span::ZERO };
        let limit = promised + promised / 10 + talk + patience + suspended + MACHINE;
        match self.found.took {
            None => self.say(Verdict::TooLong, format!("it did not end; {limit} is the limit")),
            Some(took) if took > limit => {
                self.say(
                    Verdict::TooLong,
                    format!("it took {took}; promised were {promised}, {limit} is the limit"),
                );
            }
            Some(_) => {}
        }
    }

    // 4. Agreement.

    fn agreement(&mut self, record: Option<&Value>) {
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
        let inner =
            list(record, "versions").flat_map(|version| list(version, "tcp").chain(list(version, "udp")));
        let failed = inner.filter(|part| !matches!(word(part, "outcome"), "complete" | "")).count();
        let is_whole = outcome == "complete" && failed > 0 && list(record, "warnings").next().is_none();
        self.wrong(is_whole, || {
            format!("{failed} parts failed, and the whole is complete without a warning")
        });
        let measured = list(record, "versions").any(has_figures);
        self.wrong(code == Some(0) && !measured, || "exit code 0, and nothing was measured".to_owned());
    }

    // 3. True or marked.

    fn version(&mut self, result: &Value) {
        let version = if word(result, "version") == "IPv4" { IpVersion::V4 } else { IpVersion::V6 };
        let truth = self.truth.over(version);
        let name = version.name();
        let unreachable = !result["unreachable"].is_null();
        let needs = self.ask.needs_responder();
        self.wrong(needs && !truth.is_reachable && !unreachable && has_figures(result), || {
            format!("{name} cannot be reached there, and has figures")
        });
        let is_steady = !self.truth.has_outages && !self.truth.turns_on_flows;
        let may_fail = !truth.passes_udp || truth.loss.iter().any(Option::is_none);
        self.wrong(needs && truth.is_reachable && unreachable && is_steady && !may_fail, || {
            format!("{name} is said to be unreachable: {}", result["unreachable"]["reason"])
        });
        if truth.is_reachable || !needs {
            self.latency(name, truth, &result["latency"]);
            list(result, "tcp").for_each(|tcp| self.tcp(name, truth, tcp));
            list(result, "udp").for_each(|udp| self.udp(name, truth, udp));
            list(result, "path_rates").for_each(|rate| self.path_rate(name, truth, rate));
            list(result, "reach_probes").for_each(|probe| self.reach(name, truth, probe));
            self.owd(name, truth, &result["owd"]);
            self.hops(name, truth, &result["hops"]);
            self.mtu(name, truth, &result["path"]);
        }
    }

    fn is_steady(&self) -> bool {
        !self.truth.has_outages && !self.truth.turns_on_flows && !self.truth.is_shared
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
        let room = 4.5 * (mean * (1.0 - truth)).sqrt() + 2.0;
        let wrong = (lost as f64 - mean).abs() > room;
        self.wrong(wrong, || {
            format!("{what}: {lost} of {of} are lost, and the path loses {:.1} %", truth * 100.0)
        });
    }

    fn latency(&mut self, name: &str, truth: &VersionTruth, latency: &Value) {
        if latency.is_null() {
            return;
        }
        let what = format!("{name} latency");
        let count = |key: &str| whole(latency, key).unwrap_or(0);
        let (sent, received, lost) = (count("sent"), count("received"), count("lost"));
        let known = received + lost + count("unknown") + count("bad");
        self.wrong(sent != known && sent != received + lost, || {
            format!("{what}: {sent} sent are not {received} received and {lost} lost")
        });
        let is_idle = self.is_steady();
        self.least(&what, least_of(&latency["rtt"]), truth.rtt, is_idle);
        self.wrong(number(&latency["rtt"], "min") == Some(0.0), || format!("{what}: a round trip of zero"));
        let both = truth.loss[0].zip(truth.loss[1]).map(|(there, back)| 1.0 - (1.0 - there) * (1.0 - back));
        let both = both.filter(|_| truth.passes_udp && self.ask != Ask::Test);
        self.share(&what, lost, sent, both);
    }

    fn tcp(&mut self, name: &str, truth: &VersionTruth, tcp: &Value) {
        let direction = direction(tcp);
        let what = format!("{name} TCP {}", way(direction));
        let measured = number(tcp, "measured").unwrap_or(0.0) / 1e9;
        let goodput = number(tcp, "goodput");
        let bytes = number(tcp, "bytes").unwrap_or(0.0);
        self.wrong(goodput == Some(0.0) && bytes > 0.0, || format!("{what}: 0 bit/s, and {bytes} B came"));
        // What lay in a queue may come faster than it was sent; the clocks of slices are coarse.
        let most = truth.rate[direction].0 as f64 * 1.02
            + (truth.credit[direction] as f64 * 8.0 + 30_000.0) / measured.max(0.2);
        if let Some(goodput) = goodput {
            self.wrong(goodput > most, || {
                format!("{what}: {} is more than the path's {}", bits(goodput), truth.rate[direction])
            });
        }
        let smallest = whole(tcp, "min_rtt").map(u64::cast_signed);
        self.wrong(smallest == Some(0), || format!("{what}: a smallest round trip of zero"));
        self.least(
            &format!("{what}, smallest round trip"),
            smallest.filter(|rtt| *rtt > 0),
            truth.rtt.map(|rtt| rtt - EARLY_TCP),
            false,
        );
        let loaded = &tcp["latency_under_load"]["latency"];
        self.least(&format!("{what}, latency under load"), least_of(&loaded["rtt"]), truth.rtt, false);
    }

    fn udp(&mut self, name: &str, truth: &VersionTruth, udp: &Value) {
        let direction = direction(udp);
        let what = format!("{name} UDP {}", way(direction));
        let count = |value: &Value, key: &str| whole(value, key).unwrap_or(0);
        let (sent, received) = (count(udp, "sent"), count(udp, "received"));
        let loss = &udp["loss"];
        let lost = count(loss, "lost");
        let unknown = count(loss, "unknown") + count(udp, "unknown");
        self.wrong(sent != received + lost + unknown, || {
            format!("{what}: {sent} sent are not {received} received, {lost} lost and {unknown} unknown")
        });
        self.wrong(number(udp, "planned") == Some(0.0), || format!("{what}: a planned rate of zero"));
        let (planned, rate) = (number(udp, "planned"), number(udp, "sent_rate").unwrap_or(0.0));
        self.wrong(planned.is_some_and(|planned| rate > planned * 1.1 + 50_000.0), || {
            format!("{what}: sent at {}, planned {}", bits(rate), bits(planned.unwrap_or(0.0)))
        });
        let carries = truth.udp_rate[direction].0 as f64;
        let goodput = number(udp, "goodput").unwrap_or(0.0);
        let most = carries * 1.05 + truth.credit[direction] as f64 * 8.0 + 200_000.0;
        self.wrong(goodput > most, || {
            format!("{what}: {} arrive, and the path carries {}", bits(goodput), bits(carries))
        });
        let fits = rate < carries * 0.9;
        if fits && truth.passes_udp {
            self.share(&what, lost, sent, truth.loss[direction]);
        }
        self.wrong(!truth.passes_udp && received > 0, || {
            format!("{what}: {received} came where no UDP passes")
        });
        let failed = word(&udp["sender"], "outcome");
        self.wrong(word(udp, "outcome") == "complete" && matches!(failed, "failed" | "interrupted"), || {
            format!("{what}: the sender {failed}, and the stream is complete")
        });
    }

    fn path_rate(&mut self, name: &str, truth: &VersionTruth, rate: &Value) {
        let direction = direction(rate);
        let metric = word(rate, "metric");
        let what = format!("{name} {metric} {}", way(direction));
        let interval = &rate["rate"];
        let (Some(lo), Some(hi)) = (number(interval, "lo"), number(interval, "hi")) else { return };
        self.wrong(number(interval, "estimate") == Some(0.0), || format!("{what}: a rate of zero"));
        let (least, most) = (truth.least_rate[direction].0 as f64, truth.udp_rate[direction].0 as f64);
        let is_marked = list(rate, "flags").next().is_some();
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
        let (asked, answered) = (whole(probe, "asked").unwrap_or(0), whole(probe, "answered").unwrap_or(0));
        self.wrong(answered > asked, || format!("{what}: {answered} of {asked} answered"));
        self.least(&what, least_of(&probe["rtt"]), truth.rtt, false);
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

    fn owd(&mut self, name: &str, truth: &VersionTruth, owd: &Value) {
        if owd.is_null() {
            return;
        }
        let count = |key: &str| whole(owd, key).unwrap_or(0);
        let (sent, received, lost) = (count("sent"), count("received"), count("lost"));
        let known = received + lost + count("unknown");
        self.wrong(sent != known, || {
            format!("{name} owd: {sent} sent are not {received} received and {lost} lost")
        });
        for (direction, key) in ["forward", "reverse"].into_iter().enumerate() {
            let delay = least_of(&owd[key]["delay"]);
            let is_idle = self.is_steady();
            self.least(
                &format!("{name} one-way delay {}", way(direction)),
                delay,
                truth.one_way[direction],
                is_idle,
            );
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
            let (asked, answered) = (whole(hop, "asked").unwrap_or(0), whole(hop, "answered").unwrap_or(0));
            self.wrong(answered > asked, || format!("{name} hops: {answered} of {asked} answered"));
        }
    }

    fn mtu(&mut self, name: &str, truth: &VersionTruth, path: &Value) {
        let Some(found) = whole(path, "mtu") else { return };
        let is_known = truth.passes_udp && self.is_steady() && truth.loss.iter().all(Option::is_some);
        self.wrong(is_known && found != u64::from(truth.mtu), || {
            format!("{name} path MTU: {found}, and packets of {} pass", truth.mtu)
        });
    }
}

fn direction(result: &Value) -> usize {
    usize::from(word(&result["pedigree"], "direction") == "reverse")
}

const fn way(direction: usize) -> &'static str {
    if direction == 0 { "up" } else { "down" }
}

fn bits(rate: f64) -> BitRate {
    BitRate(rate as u64)
}

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64()
}

fn whole(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn least_of(summary: &Value) -> Option<i64> {
    summary.get("min")?.as_i64()
}

fn has_figures(result: &Value) -> bool {
    let lists = ["tcp", "udp", "path_rates", "reach_probes"];
    let single = ["latency", "owd", "hops"];
    lists.iter().any(|key| list(result, key).next().is_some())
        || single.iter().any(|key| !result[*key].is_null())
}

/// Whether the record, or what was said beside it, tells a reader to take care.
fn is_marked(record: &Value, stderr: &str) -> bool {
    let marks = |value: &Value| {
        !value["unreachable"].is_null()
            || list(value, "path_rates").any(|rate| list(rate, "flags").next().is_some())
            || list(value, "reach_probes").any(|probe| list(probe, "flags").next().is_some())
            || list(&value["hops"], "flags").next().is_some()
    };
    word(record, "outcome") != "complete"
        || list(record, "warnings").next().is_some()
        || list(record, "versions").any(marks)
        || stderr.contains("warning:")
}

/// The longest time that a line says it will take.
fn announced(stderr: &str) -> Span {
    let tells = |line: &&str| ["take", "longer", "need"].iter().any(|word| line.contains(word));
    let mut longest = Span::ZERO;
    for line in stderr.lines().filter(tells) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            let unit = pair[1].trim_end_matches(|c: char| !c.is_ascii_alphabetic());
            if let Ok(span) = format!("{}{unit}", pair[0].trim_start_matches('(')).parse::<Span>() {
                longest = longest.max(span);
            }
        }
        for word in words {
            if let Ok(span) = word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).parse::<Span>() {
                longest = longest.max(span);
            }
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use netaware_lab::Scenario;
    use serde_json::json;

    use super::*;

    fn truth(more: &str) -> Truth {
        let text = format!("about = 'x'\n[[hop]]\nrate = '10Mbit/s'\ndelay = '20ms'\n{more}");
        Truth::of(&Scenario::parse(&text).unwrap())
    }

    fn found(record: &Value) -> Found {
        Found {
            code: Some(0),
            stdout: record.to_string(),
            stderr: String::new(),
            took: Some(Span::from_secs(5)),
            entered: [Entered::default(); 2],
            not_read: 0,
            is_free: Some(true),
        }
    }

    fn latency() -> Value {
        let rtt = json!({"min": 40_200_000, "p50": 40_300_000});
        json!({"outcome": "complete", "warnings": [], "versions": [{
            "version": "IPv4",
            "latency": {"sent": 200, "received": 200, "lost": 0, "rtt": rtt},
        }]})
    }

    fn udp() -> Value {
        json!({"outcome": "complete", "warnings": [], "versions": [{"version": "IPv6", "udp": [{
            "pedigree": {"direction": "forward"}, "outcome": "complete", "planned": 1_000_000,
            "sent_rate": 1_000_000, "goodput": 990_000, "sent": 200, "not_sent": 0, "received": 200,
            "loss": {"lost": 0}, "sender": {"outcome": "complete"},
        }]}]})
    }

    fn said(ask: Ask, truth: &Truth, found: &Found) -> (Verdict, String) {
        let judgement = judge(ask, truth, found, Span::ZERO);
        (judgement.verdict, judgement.reasons.join("; "))
    }

    /// The verdict over a record in which one value was changed.
    fn with(ask: Ask, mut record: Value, pointer: &str, value: Value) -> (Verdict, String) {
        *record.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        said(ask, &truth(""), &found(&record))
    }

    #[test]
    fn what_is_true_and_in_time_holds() {
        assert_eq!(said(Ask::Latency, &truth(""), &found(&latency())).0, Verdict::Held);
        assert_eq!(said(Ask::Udp, &truth(""), &found(&udp())).0, Verdict::Held);
    }

    #[test]
    fn a_figure_that_cannot_be_is_wrong() {
        let (l, u) = ("/versions/0/latency", "/versions/0/udp/0");
        let rows = [
            (Ask::Latency, latency(), format!("{l}/rtt/min"), json!(39_000_000), "less than the path's"),
            (Ask::Latency, latency(), format!("{l}/rtt/min"), json!(90_000_000), "more than the path's"),
            (Ask::Latency, latency(), format!("{l}/received"), json!(199), "are not 199 received"),
            (Ask::Udp, udp(), format!("{u}/received"), json!(150), "are not 150 received"),
            (Ask::Udp, udp(), format!("{u}/planned"), json!(0), "a planned rate of zero"),
            (Ask::Udp, udp(), format!("{u}/sent_rate"), json!(2_000_000), "planned 1.00 Mbit/s"),
            (Ask::Udp, udp(), format!("{u}/goodput"), json!(20_000_000), "the path carries 10.0 Mbit/s"),
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
        record["versions"][0]["udp"][0]["received"] = json!(181);
        record["versions"][0]["udp"][0]["loss"]["lost"] = json!(19);
        assert_eq!(said(Ask::Udp, &lossy, &found(&record)).0, Verdict::Held);
        assert_eq!(said(Ask::Udp, &truth(""), &found(&record)).0, Verdict::Wrong);
        assert_eq!(said(Ask::Udp, &truth("loss = '30%'"), &found(&udp())).0, Verdict::Wrong);
    }

    #[test]
    fn unknown_that_is_printed_as_zero_is_wrong() {
        let tcp = json!({"pedigree": {"direction": "reverse"}, "outcome": "complete", "bytes": 5_000_000,
            "goodput": 0, "measured": 3_000_000_000_u64, "min_rtt": 0});
        let record =
            json!({"outcome": "complete", "warnings": [], "versions": [{"version": "IPv4", "tcp": [tcp]}]});
        let (verdict, why) = said(Ask::TcpReverse, &truth(""), &found(&record));
        assert_eq!(verdict, Verdict::Wrong);
        assert!(why.contains("0 bit/s, and 5000000 B came") && why.contains("round trip of zero"), "{why}");
    }

    #[test]
    fn a_capacity_must_be_in_its_interval_or_a_bound_or_marked() {
        let rate = |lo: f64, hi: f64, bound: &str, flags: &[&str]| {
            let rate = json!({"pedigree": {"direction": "forward"}, "metric": "capacity", "bound": bound,
                "rate": {"estimate": lo, "lo": lo, "hi": hi}, "flags": flags});
            let record = json!({"outcome": "complete", "warnings": [], "versions": [{"version": "IPv4", "path_rates": [rate]}]});
            said(Ask::Capacity, &truth(""), &found(&record)).0
        };
        assert_eq!(rate(9.9e6, 10.1e6, "none", &[]), Verdict::Held);
        assert_eq!(rate(15e6, 16e6, "none", &[]), Verdict::Wrong);
        assert_eq!(rate(5e6, 6e6, "at_least", &[]), Verdict::Held);
        assert_eq!(rate(15e6, 16e6, "at_least", &[]), Verdict::Wrong);
        assert_eq!(rate(15e6, 16e6, "none", &["noisy"]), Verdict::Flagged);
    }

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
        assert_eq!(of("failed", 2), Verdict::Flagged);
        let none = Found { code: Some(2), stdout: String::new(), ..found(&json!({})) };
        assert_eq!(said(Ask::Latency, &truth(""), &none).0, Verdict::Wrong, "it said nothing");
        let told = Found { stderr: "error: nobody answers".to_owned(), ..none };
        assert_eq!(said(Ask::Latency, &truth(""), &told).0, Verdict::Held);
    }

    #[test]
    fn a_promise_is_kept_or_taken_back_beforehand() {
        let took = |seconds, stderr: &str| {
            let found = Found {
                took: Some(Span::from_secs(seconds)),
                stderr: stderr.to_owned(),
                ..found(&latency())
            };
            said(Ask::Test, &truth(""), &found).0
        };
        assert_eq!(took(12, ""), Verdict::Held);
        assert_eq!(took(14, ""), Verdict::TooLong);
        assert_eq!(took(14, "note: this path takes 13 s"), Verdict::Held);
        assert_eq!(took(60, "note: this path takes 13 s, of 20 ms each"), Verdict::TooLong);
        let never = Found { took: None, code: None, ..found(&latency()) };
        assert_eq!(said(Ask::Test, &truth(""), &never).0, Verdict::TooLong);
    }

    #[test]
    fn more_than_the_path_carries_is_harm_and_a_train_is_not() {
        let sent = |bytes: u64| {
            let udp = EnteredCount { packets: bytes / 1500, bytes, busiest_second: bytes };
            let entered = [Entered { udp, ..Entered::default() }, Entered::default()];
            said(Ask::Test, &truth(""), &Found { entered, ..found(&latency()) }).0
        };
        // 10 Mbit/s are 1.25 MB in a second.
        assert_eq!(sent(1_000_000), Verdict::Held);
        assert_eq!(sent(1_600_000), Verdict::Held);
        assert_eq!(sent(1_700_000), Verdict::Harm);
        let silent = Found { not_read: 50_000, ..found(&latency()) };
        assert_eq!(said(Ask::Udp, &truth(""), &silent).0, Verdict::Held, "TCP may fill its own device");
    }

    #[test]
    fn more_datagrams_than_the_record_says_are_harm() {
        let udp_record = udp();
        let sent = |packets: u64| {
            let udp = EnteredCount { packets, bytes: packets * 100, busiest_second: 0 };
            let entered = [Entered { udp, ..Entered::default() }, Entered::default()];
            said(Ask::Udp, &truth(""), &Found { entered, ..found(&udp_record) }).0
        };
        assert_eq!([sent(220), sent(2000)], [Verdict::Held, Verdict::Harm]);
    }

    #[test]
    fn another_client_that_has_to_wait_is_wrong() {
        let busy = Found { is_free: Some(false), ..found(&latency()) };
        assert_eq!(said(Ask::Latency, &truth(""), &busy).0, Verdict::Wrong);
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
