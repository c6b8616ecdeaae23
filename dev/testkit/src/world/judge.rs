//! Says of one command over one path whether it held: a pure function over what was printed, what
//! is true, how long it took and what entered the path.
//!
//! Five things are asked (docs/world.md): no harm, in time, true or marked, agreement with itself,
//! and the other end free again. The record is read as JSON, as any reader of it would. Where a
//! figure may be right the judge lets it pass: it leans towards the program, so that what it calls
//! wrong is wrong.

mod agreement;
mod figures;
mod harm;
mod required;
mod time;

use netaware_lab::Entered;
use netaware_units::{BitRate, Span};
use serde_json::Value;

use super::Ask;
use super::truth::Truth;

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
    let record = serde_json::from_str::<Value>(&found.stdout).ok();
    let warnings = record.iter().flat_map(|record| list(record, "warnings")).filter_map(Value::as_str);
    let warnings = warnings.map(str::to_owned).collect();
    let mut bench = Bench { ask, truth, found, suspended, warnings, said: Vec::new() };
    bench.time(record.as_ref());
    bench.harm(record.as_ref());
    bench.agreement(record.as_ref());
    bench.required(record.as_ref());
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

struct Bench<'a> {
    ask: Ask,
    truth: &'a Truth,
    found: &'a Found,
    /// For how long the prober was stopped.
    suspended: Span,
    /// Those of the record.
    warnings: Vec<String>,
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
    let lists = ["tcp", "udp", "path_rates", "reach_probes", "matrix"];
    let single = ["latency", "owd", "hops"];
    lists.iter().any(|key| list(result, key).next().is_some())
        || single.iter().any(|key| !result[*key].is_null())
}

/// Whether the record, or what was said beside it, tells a reader to take care.
fn is_marked(record: &Value, stderr: &str) -> bool {
    let marks = |value: &Value| {
        !value["unreachable"].is_null()
            || list(value, "path_rates")
                .any(|rate| list(rate, "flags").next().is_some() || !rate["missing"].is_null())
            || list(value, "reach_probes").any(|probe| list(probe, "flags").next().is_some())
            || list(&value["hops"], "flags").next().is_some()
    };
    word(record, "outcome") != "complete"
        || list(record, "warnings").next().is_some()
        || list(record, "versions").any(marks)
        || stderr.contains("warning:")
}

#[cfg(test)]
mod tests {
    use netaware_lab::Scenario;
    use serde_json::json;

    use super::*;

    pub(super) fn truth(more: &str) -> Truth {
        let text = format!("about = 'x'\n[[hop]]\nrate = '10Mbit/s'\ndelay = '20ms'\n{more}");
        Truth::of(&Scenario::parse(&text).unwrap())
    }

    pub(super) fn found(record: &Value) -> Found {
        Found {
            code: Some(0),
            stdout: record.to_string(),
            stderr: String::new(),
            took: Some(Span::from_secs(3)),
            entered: [Entered::default(); 2],
            not_read: 0,
            is_free: Some(true),
        }
    }

    pub(super) fn latency() -> Value {
        let rtt = json!({"min": 40_200_000, "p50": 40_300_000});
        json!({"outcome": "complete", "warnings": [], "versions": [{
            "version": "IPv4",
            "latency": {"sent": 200, "received": 200, "lost": 0, "rtt": rtt},
        }]})
    }

    pub(super) fn udp() -> Value {
        json!({"outcome": "complete", "warnings": [], "versions": [{"version": "IPv6", "udp": [{
            "pedigree": {"direction": "forward"}, "outcome": "complete", "planned": 1_000_000,
            "payload": 1432, "sent_rate": 1_000_000, "goodput": 990_000, "sent": 200, "not_sent": 0,
            "received": 200, "loss": {"lost": 0, "host": 0, "network": 0},
            "sender": {"outcome": "complete"},
        }]}]})
    }

    pub(super) fn said(ask: Ask, truth: &Truth, found: &Found) -> (Verdict, String) {
        let judgement = judge(ask, truth, found, Span::ZERO);
        (judgement.verdict, judgement.reasons.join("; "))
    }

    /// The verdict over a record in which one value was changed.
    pub(super) fn with(ask: Ask, mut record: Value, pointer: &str, value: Value) -> (Verdict, String) {
        *record.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        said(ask, &truth(""), &found(&record))
    }

    #[test]
    fn what_is_true_and_in_time_holds() {
        assert_eq!(said(Ask::Latency, &truth(""), &found(&latency())).0, Verdict::Held);
        assert_eq!(said(Ask::Udp, &truth(""), &found(&udp())).0, Verdict::Held);
    }

    #[test]
    fn another_client_that_has_to_wait_is_wrong() {
        let busy = Found { is_free: Some(false), ..found(&latency()) };
        assert_eq!(said(Ask::Latency, &truth(""), &busy).0, Verdict::Wrong);
    }
}
