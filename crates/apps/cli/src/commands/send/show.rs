//! How a transfer looks to who waits for it, and what is printed of it in the end.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use netaware_record::printable;
use netaware_transfer::{
    Decided, DecidedBy, Metric, NotDone, Progress, Reason, SendReport, SendRequest, Switch,
};
use netaware_units::{BitRate, ByteCount, Span};
use serde_json::{Value, json};

use crate::signals::Event;
use crate::sink;

/// On stderr.
pub(super) struct Show {
    quiet: bool,
    bar: Option<ProgressBar>,
    status: Status,
}

/// For who asks by a signal.
#[derive(Debug, Clone, Default)]
pub(super) struct Status(Arc<Mutex<String>>);

impl Status {
    pub(super) fn tell(&self, event: Event) {
        match event {
            Event::Asked => {
                eprintln!("netaware: {}", self.0.lock().unwrap_or_else(PoisonError::into_inner));
            }
            Event::Stopping(by) => {
                eprintln!("\nnetaware: {by}: breaking off; the same command goes on where it was");
            }
        }
    }
}

impl Show {
    pub(super) fn new(quiet: bool) -> Self {
        let bar = (!quiet && io::stderr().is_terminal()).then(bar);
        Self { quiet, bar, status: Status::default() }
    }

    pub(super) fn status(&self) -> Status {
        self.status.clone()
    }

    pub(super) fn progress(&mut self, progress: Progress) {
        match progress {
            Progress::Planned { bytes, .. } => {
                if let Some(bar) = &self.bar {
                    bar.set_length(bytes);
                }
            }
            Progress::Moved { done, bytes, rate, via } => {
                let line = line(done, bytes, rate, via.map_or("no connection", |via| via.name()));
                if let Some(bar) = &self.bar {
                    bar.set_position(done);
                    bar.set_message(line.clone());
                }
                *self.status.0.lock().unwrap_or_else(PoisonError::into_inner) = line;
            }
            Progress::Connected | Progress::Switched(_) | Progress::Decided(_) => {}
            Progress::Note(text) => self.remark(&format!("note: {}", printable(&text))),
        }
    }

    fn remark(&self, line: &str) {
        if !self.quiet {
            let write = || eprintln!("{line}");
            self.bar.as_ref().map_or_else(write, |bar| bar.suspend(write));
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:20} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style.progress_chars("=> "));
    bar
}

fn line(done: u64, bytes: u64, rate: Option<BitRate>, via: &str) -> String {
    let of = format!("{} of {}", ByteCount(done), ByteCount(bytes));
    if done >= bytes {
        return format!("{of}  waiting until the receiver has it on its disk");
    }
    let Some(rate) = rate.filter(|rate| rate.0 > 0) else { return format!("{of}  {via}") };
    let left = rate.time_for(ByteCount(bytes.saturating_sub(done)));
    format!("{of}  {rate}  {:.0} s left  {via}", left.secs_f64())
}

/// For people, on stdout.
pub(super) fn text(report: &SendReport, host: &str) -> io::Result<()> {
    sink::stdout().write_all(rendered(report, host).as_bytes())
}

fn rendered(report: &SendReport, host: &str) -> String {
    let (sent, of, took) = (ByteCount(report.sent), ByteCount(report.bytes), report.took);
    let rate = goodput(report).map_or_else(String::new, |rate| format!(": {rate}"));
    let mut out = format!("sent {sent} of {of} to {host} in {took}{rate}\n");
    let mut add = |line: String| out.push_str(&(line + "\n"));
    let not_sent = report.files.saturating_sub(report.written + report.present);
    let failed = if not_sent > 0 { format!(", {not_sent} not sent") } else { String::new() };
    add(format!("files: {} written, {} there already{failed}", report.written, report.present));
    if report.resumed > 0 {
        add(format!("resumed: {} were there from an earlier transfer", ByteCount(report.resumed)));
    }
    if report.reconnects > 0 {
        add(format!("reconnected: {} times", report.reconnects));
    }
    if !report.switches.is_empty() {
        let titles = ["switch at", "from", "to", "why", "before", "after", "gain", "took", "stalled"];
        let rows = report.switches.iter().take(MOST_SHOWN).map(row);
        let table: Vec<Vec<String>> =
            std::iter::once(titles.map(str::to_owned).to_vec()).chain(rows).collect();
        columns(&table).into_iter().for_each(&mut add);
        if report.switches.len() > MOST_SHOWN {
            add(format!("and {} more", report.switches.len() - MOST_SHOWN));
        }
    }
    for Decided { at, decision } in report.decisions.iter().take(MOST_SHOWN) {
        add(format!("decided at {at}: {decision}"));
    }
    if report.decisions.len() > MOST_SHOWN {
        add(format!("and {} more", report.decisions.len() - MOST_SHOWN));
    }
    for share in &report.missed {
        add(format!(
            "no switch at {share}%: the other version had no connection, or the transfer was over too soon"
        ));
    }
    for failure in report.failures.iter().take(MOST_SHOWN) {
        add(format!("not sent: {}: {}", printable(&failure.path), printable(&failure.why)));
    }
    if report.failures.len() > MOST_SHOWN {
        add(format!("and {} more", report.failures.len() - MOST_SHOWN));
    }
    out
}

fn row(switch: &Switch) -> Vec<String> {
    let rate = |rate: Option<BitRate>| rate.map_or("?".to_owned(), |rate| rate.to_string());
    vec![
        switch.at.to_string(),
        switch.from.name().to_owned(),
        switch.to.name().to_owned(),
        why(switch.reason).to_owned(),
        rate(switch.before),
        rate(switch.after),
        gain(switch).map_or("?".to_owned(), |gain| format!("{gain:+.0} %")),
        switch.took.map_or("?".to_owned(), |took| took.to_string()),
        switch.stalled.to_string(),
    ]
}

/// Lines of cells, each column as wide as its widest.
fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// In percent of what it was before.
fn gain(switch: &Switch) -> Option<f64> {
    let (before, after) = (switch.before?.0 as f64, switch.after?.0 as f64);
    (before > 0.0).then(|| (after / before - 1.0) * 100.0)
}

fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::OwnWish => "wanted",
        Reason::PeersWish => "peer",
        Reason::Loss => "lost",
    }
}

/// For programs, on stdout.
pub(super) fn json(report: &SendReport, request: &SendRequest) -> io::Result<()> {
    let mut out = sink::stdout();
    serde_json::to_writer_pretty(&mut out, &value(report, request))?;
    out.write_all(b"\n")
}

/// Payload rate; null where nothing moved.
fn goodput(report: &SendReport) -> Option<BitRate> {
    BitRate::mean(ByteCount(report.sent), report.took).filter(|rate| rate.0 > 0)
}

fn value(report: &SendReport, request: &SendRequest) -> Value {
    let switches: Vec<Value> = report
        .switches
        .iter()
        .map(|switch| {
            json!({
                "at_ns": switch.at.nanos(),
                "from": switch.from,
                "to": switch.to,
                "why": why(switch.reason),
                "before_bps": switch.before,
                "after_bps": switch.after,
                "took_ns": switch.took.map(Span::nanos),
                "stalled_ns": switch.stalled.nanos(),
            })
        })
        .collect();
    let decisions: Vec<Value> = report.decisions.iter().map(decided).collect();
    let failures: Vec<Value> =
        report.failures.iter().map(|failure| json!({ "path": failure.path, "why": failure.why })).collect();
    json!({
        "host": request.host,
        "port": request.port,
        "complete": report.is_complete(),
        "files": report.files,
        "bytes": report.bytes,
        "written": report.written,
        "present": report.present,
        "sent_bytes": report.sent,
        "resumed_bytes": report.resumed,
        "took_ns": report.took.nanos(),
        "goodput_bps": goodput(report),
        "reconnects": report.reconnects,
        "switches": switches,
        "decisions": decisions,
        "missed_switches_percent": report.missed,
        "failures": failures,
        "ended": report.ended.as_ref().map(ToString::to_string),
    })
}

fn decided(Decided { at, decision }: &Decided) -> Value {
    // What was not seen is no number, and null in JSON.
    json!({
        "at_ns": at.nanos(),
        "from": decision.from(),
        "to": decision.to,
        "by": match decision.by {
            DecidedBy::Rules => "rules",
            DecidedBy::Callback => "callback",
        },
        "metric": match decision.metric {
            Metric::Goodput => "goodput_bps",
            Metric::RoundTrip => "round_trip_ns",
            Metric::Loss => "loss_share",
        },
        "present": decision.present,
        "other": decision.other,
        "present_looks": decision.of[0],
        "other_looks": decision.of[1],
        "margin_share": decision.margin,
        "not_done": decision.not_done.map(NotDone::name),
    })
}

/// Of switches, of decisions and of failures, in text.
const MOST_SHOWN: usize = 20;

#[cfg(test)]
mod tests {
    use netaware_record::IpVersion;
    use netaware_transfer::{Decision, Failure};
    use netaware_units::Mono;

    use super::*;

    fn report() -> SendReport {
        let switch = Switch {
            at: Span::from_millis(5200),
            from: IpVersion::V6,
            to: IpVersion::V4,
            reason: Reason::OwnWish,
            before: Some(BitRate(40_000_000)),
            after: Some(BitRate(20_000_000)),
            took: Some(Span::from_millis(41)),
            stalled: Span::from_millis(12),
        };
        let decision = Decision {
            at: Mono(99_000_000_000),
            to: IpVersion::V4,
            by: DecidedBy::Rules,
            metric: Metric::Goodput,
            present: 20e6,
            other: 40e6,
            of: [12, 8],
            margin: 0.25,
            not_done: None,
        };
        let done = Decided { at: Span::from_millis(5100), decision };
        let at = Span::from_secs(7);
        let dropped =
            Decided { at, decision: Decision { not_done: Some(NotDone::Down), other: f64::NAN, ..decision } };
        let failure = Failure { path: "top/a\u{1b}[31m".into(), why: "it is a symbolic link".into() };
        SendReport {
            files: 3,
            bytes: 30 << 20,
            written: 2,
            sent: 20 << 20,
            resumed: 10 << 20,
            took: Span::from_secs(10),
            switches: vec![switch, Switch { after: None, took: None, reason: Reason::Loss, ..switch }],
            decisions: vec![done, dropped],
            missed: vec![75.0],
            failures: vec![failure],
            ..SendReport::default()
        }
    }

    #[test]
    fn the_report_for_people_is_as_agreed() {
        insta::assert_snapshot!("sent", rendered(&report(), "lab-b"));
    }

    #[test]
    fn the_report_for_programs_tells_the_same() {
        let request = SendRequest::new(Vec::new(), "lab-b", 14234);
        let value = value(&report(), &request);
        assert_eq!(
            (value["complete"].as_bool(), value["resumed_bytes"].as_u64()),
            (Some(false), Some(10 << 20))
        );
        assert_eq!(value["switches"][0]["from"], "IPv6");
        assert_eq!(value["switches"][0]["after_bps"], 20_000_000);
        assert_eq!(value["decisions"][0]["at_ns"], 5_100_000_000_i64);
        assert!(value["decisions"][0]["not_done"].is_null());
        assert!(value["decisions"][1]["other"].is_null());
        assert_eq!(value["decisions"][1]["not_done"], "down");
        assert!(value["switches"][1]["took_ns"].is_null() && value["ended"].is_null());
    }
}
