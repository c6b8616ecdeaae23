//! What a receiver tells: where it listens, what comes, what came of it.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use netaware_io::zone::{self, ZonedIp};
use netaware_record::printable;
use netaware_transfer::{Event, ReceiveReport};
use netaware_units::{BitRate, ByteCount};
use netaware_wire::transfer::{Digest, TRANSFER_PORT};
use serde_json::{Value, json};

use crate::flags::output::TextOrJson;
use crate::signals;
use crate::sink;

/// Results go to stdout, bars to stderr.
pub(super) struct Show {
    format: TextOrJson,
    bars: Option<MultiProgress>,
    running: Mutex<BTreeMap<u64, Running>>,
    /// Of the last transfer that came to its end.
    completed: AtomicBool,
}

#[derive(Debug)]
struct Running {
    from: SocketAddr,
    bytes: u64,
    done: u64,
    bar: Option<ProgressBar>,
}

impl Running {
    fn line(&self) -> String {
        format!("from {}: {} of {}", ZonedIp::of(self.from), ByteCount(self.done), ByteCount(self.bytes))
    }
}

impl Show {
    pub(super) fn new(format: TextOrJson, quiet: bool) -> Self {
        let bars = (!quiet && io::stderr().is_terminal())
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        Self { format, bars, running: Mutex::default(), completed: AtomicBool::new(false) }
    }

    /// Whether the last transfer that came to its end brought everything.
    pub(super) fn has_completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }

    /// Goes to stdout, so a script can read the port that the system chose, and the fingerprint.
    pub(super) fn listening(&self, addresses: &[SocketAddr], fingerprint: Option<Digest>) -> String {
        let shown: Vec<String> = addresses.iter().copied().map(zone::shown).collect();
        if self.format == TextOrJson::Json {
            return format!("{}\n", json!({ "listening": shown, "fingerprint": fingerprint }));
        }
        let port = addresses.first().map_or(TRANSFER_PORT, SocketAddr::port);
        let host = if port == TRANSFER_PORT { "HOST".to_owned() } else { format!("HOST:{port}") };
        let encrypted = fingerprint.map(|digest| format!(" --fingerprint {digest}")).unwrap_or_default();
        let listening = shown.iter().map(|address| format!("listening on {address}, TCP\n"));
        let listening = listening.collect::<Vec<String>>().concat();
        format!("{listening}send from elsewhere with 'netaware send FILE {host}{encrypted}'\n")
    }

    /// By a signal.
    pub(super) fn asked(&self, event: signals::Event) {
        match event {
            signals::Event::Asked if self.running().is_empty() => eprintln!("netaware: waiting for senders"),
            signals::Event::Asked => {
                self.running().values().for_each(|running| eprintln!("netaware: {}", running.line()));
            }
            signals::Event::Stopping(by) => {
                eprintln!("\nnetaware: {by}: ending; what has come of a file is kept");
            }
        }
    }

    pub(super) fn show(&self, event: Event) {
        match event {
            Event::Began { transfer, from } => {
                let bar = self.bars.as_ref().map(|bars| bars.add(bar()));
                self.running().insert(transfer, Running { from, bytes: 0, done: 0, bar });
            }
            Event::Planned { transfer, bytes, .. } => self.change(transfer, |running| running.bytes = bytes),
            Event::Moved { transfer, done } => self.change(transfer, |running| running.done = done),
            Event::Ended { transfer, report } => self.end(transfer, &report),
        }
    }

    fn change(&self, transfer: u64, change: impl Fn(&mut Running)) {
        if let Some(running) = self.running().get_mut(&transfer) {
            change(running);
            if let Some(bar) = &running.bar {
                bar.set_length(running.bytes.max(1));
                bar.set_position(running.done);
                bar.set_message(running.line());
            }
        }
    }

    fn end(&self, transfer: u64, report: &ReceiveReport) {
        if let Some(Running { bar: Some(bar), .. }) = self.running().remove(&transfer) {
            bar.finish_and_clear();
        }
        if report.ended.is_none() {
            self.completed.store(report.is_complete(), Ordering::Release);
        }
        let lines = match self.format {
            TextOrJson::Json => format!("{}\n", value(report)),
            TextOrJson::Text => rendered(report),
        };
        let write = || {
            let mut out = sink::stdout();
            // A reader of our output that has gone is no reason to drop what comes.
            let _ = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
        };
        self.bars.as_ref().map_or_else(write, |bars| bars.suspend(write));
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bar() -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:20} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::no_length().with_style(style.progress_chars("=> "))
}

fn rendered(report: &ReceiveReport) -> String {
    let from = ZonedIp::of(report.from);
    let nothing = report.bytes == 0 && report.written + report.present + report.failed == 0;
    if let Some(why) = report.ended.as_ref().filter(|_| nothing) {
        return format!("from {from}: nothing came: {}\n", printable(&why.to_string()));
    }
    let bytes = ByteCount(report.bytes);
    let rate = goodput(report).map_or_else(String::new, |rate| format!(": {rate}"));
    let (took, written, present) = (report.took, report.written, report.present);
    let mut out =
        format!("from {from}: {bytes} in {took}{rate}; files: {written} written, {present} there already\n");
    let mut add = |line: String| out.push_str(&(line + "\n"));
    if report.resumed > 0 {
        add(format!("  resumed: {} were there from an earlier transfer", ByteCount(report.resumed)));
    }
    for failure in report.failures.iter().take(MOST_SHOWN) {
        add(format!("  refused: {}: {}", printable(&failure.path), printable(&failure.why)));
    }
    if report.failed > MOST_SHOWN as u64 {
        add(format!("  and {} more", report.failed - MOST_SHOWN as u64));
    }
    if let Some(why) = &report.ended {
        add(format!("  ended early: {}", printable(&why.to_string())));
    }
    out
}

/// Payload rate; null where nothing moved.
fn goodput(report: &ReceiveReport) -> Option<BitRate> {
    BitRate::mean(ByteCount(report.bytes), report.took).filter(|rate| rate.0 > 0)
}

fn value(report: &ReceiveReport) -> Value {
    let failures: Vec<Value> =
        report.failures.iter().map(|failure| json!({ "path": failure.path, "why": failure.why })).collect();
    json!({
        "from": zone::shown(report.from),
        "complete": report.is_complete(),
        "written": report.written,
        "present": report.present,
        "received_bytes": report.bytes,
        "resumed_bytes": report.resumed,
        "took_ns": report.took.nanos(),
        "goodput_bps": goodput(report),
        "failed": report.failed,
        "failures": failures,
        "ended": report.ended.as_ref().map(ToString::to_string),
    })
}

/// Of failures, in text.
const MOST_SHOWN: usize = 20;

#[cfg(test)]
mod tests {
    use netaware_transfer::{Broken, Failure};
    use netaware_units::Span;

    use super::*;

    fn report() -> ReceiveReport {
        let failure =
            |n| Failure { path: format!("top/{n}\u{1b}[2J"), why: "another transfer brings it".into() };
        ReceiveReport {
            from: "192.0.2.1:999".parse().unwrap(),
            written: 2,
            present: 1,
            bytes: 20 << 20,
            resumed: 1 << 20,
            took: Span::from_secs(2),
            failures: (0..21).map(failure).collect(),
            failed: 22,
            ended: Some(Broken::Silent(Span::from_secs(30))),
        }
    }

    #[test]
    fn a_transfer_that_ended_early_is_told_with_its_failures() {
        let text = rendered(&report());
        assert!(
            text.starts_with(
                "from 192.0.2.1: 20.0 MiB in 2.00 s: 83.9 Mbit/s; files: 2 written, 1 there already\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("resumed: 1.00 MiB") && text.contains("and 2 more") && !text.contains('\u{1b}')
        );
        assert!(text.ends_with("ended early: the other end has said nothing for 30.0 s\n"), "{text}");
        assert_eq!(value(&report())["failed"], 22);
    }

    #[test]
    fn where_it_listens_is_read_by_people_and_by_scripts() {
        let addresses: [SocketAddr; 2] =
            ["192.0.2.1:4711".parse().unwrap(), "[2001:db8::1]:4711".parse().unwrap()];
        assert_eq!(
            Show::new(TextOrJson::Text, true).listening(&addresses, None),
            "listening on 192.0.2.1:4711, TCP\nlistening on [2001:db8::1]:4711, TCP\n\
             send from elsewhere with 'netaware send FILE HOST:4711'\n"
        );
        let line = Show::new(TextOrJson::Json, true).listening(&addresses, None);
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["listening"][0], "192.0.2.1:4711");
        assert!(read["fingerprint"].is_null() && line.ends_with("}\n"));
    }

    #[test]
    fn what_completed_is_what_came_to_its_end_last() {
        let show = Show::new(TextOrJson::Text, true);
        assert!(!show.has_completed());
        show.end(1, &ReceiveReport { ended: None, failed: 0, failures: Vec::new(), ..report() });
        assert!(show.has_completed());
        show.end(2, &report());
        assert!(show.has_completed(), "it broke: another one may come");
    }
}
