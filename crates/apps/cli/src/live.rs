//! What is shown while a measurement runs: a bar on a terminal's stderr, interval lines or events on stdout.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_prober::Progress;
use netaware_units::{BitRate, Mono, Span};

use crate::flags::output::{Format, OutputFlags};
use crate::render::{Paint, stream};
use crate::signals::Event;

/// Where the measurement stands.
#[derive(Debug, Default)]
struct State {
    /// "IPv6 TCP down, 4 streams".
    what: String,
    rate: Option<BitRate>,
    done: Span,
    total: Span,
    /// When `done` was told, since phases tell it only where they begin.
    told_at: Mono,
}

impl State {
    fn done(&self, now: Mono) -> Span {
        if self.total == Span::ZERO { Span::ZERO } else { (self.done + (now - self.told_at)).min(self.total) }
    }

    fn line(&self, now: Mono) -> String {
        let rate = self.rate.map(|rate| format!("  {rate}")).unwrap_or_default();
        let left = self.total - self.done(now);
        let left = if left > Span::ZERO { format!("  {:.0} s left", left.secs_f64()) } else { String::new() };
        format!("{}{rate}{left}", self.what)
    }
}

/// Answers the signals of a person who waits. Shared with the thread that hears them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status(Arc<Mutex<State>>);

impl Status {
    /// On stderr.
    pub(crate) fn tell(&self, event: Event) {
        let line = self.state().line(clock::now());
        match event {
            Event::Asked => eprintln!("netaware: {line}"),
            Event::Stopping => {
                eprintln!("\nnetaware: ending early with what there is; once more quits at once");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The display.
pub(crate) struct Live {
    format: Format,
    quiet: bool,
    intervals: bool,
    paint: Paint,
    stop: StopFlag,
    status: Status,
    bar: Option<ProgressBar>,
    lines_shown: bool,
    /// Remarks wait until something is measured: when nothing can be, the error says it all.
    held: Vec<String>,
}

impl Live {
    /// `intervals`: show slices of time as lines, where the format has them.
    pub(crate) fn new(output: &OutputFlags, intervals: bool, paint: Paint, stop: &StopFlag) -> Self {
        let bar = (!output.quiet && io::stderr().is_terminal()).then(bar);
        Self {
            format: output.format,
            quiet: output.quiet,
            intervals,
            paint,
            stop: stop.clone(),
            status: Status::default(),
            bar,
            lines_shown: false,
            held: Vec::new(),
        }
    }

    pub(crate) fn status(&self) -> Status {
        self.status.clone()
    }

    /// Takes note, and shows what is due.
    pub(crate) fn show(&mut self, progress: &Progress) {
        self.note(progress);
        if self.quiet {
            return;
        }
        if self.format == Format::Ndjson {
            self.print(&stream::event(progress).to_string());
        } else {
            self.show_to_people(progress);
        }
        self.move_bar();
    }

    fn note(&self, progress: &Progress) {
        let now = clock::now();
        let mut state = self.status.state();
        match progress {
            Progress::Phase { what, version, done, total } => {
                let version = version.map(|v| format!("{} ", v.name())).unwrap_or_default();
                *state = State {
                    what: format!("{version}{what}"),
                    rate: None,
                    done: *done,
                    total: *total,
                    told_at: now,
                };
            }
            Progress::Queued { place, expected_wait } => {
                state.what = queued(*place, *expected_wait);
                (state.rate, state.total) = (None, Span::ZERO);
            }
            Progress::Interval { rate, .. } => state.rate = Some(*rate),
            Progress::Note(_) => {}
        }
    }

    fn show_to_people(&mut self, progress: &Progress) {
        if let Progress::Note(text) = progress {
            self.held.push(format!("note: {}", plain(text)));
        }
        if somebody_answered(progress) {
            for line in std::mem::take(&mut self.held) {
                self.remark(&line);
            }
        }
        match progress {
            Progress::Queued { place, expected_wait } if self.bar.is_none() => {
                self.remark(&queued(*place, *expected_wait));
            }
            Progress::Interval { .. } if self.intervals && self.format == Format::Text => {
                if !self.lines_shown
                    && let Some(titles) = stream::titles(progress)
                {
                    self.print(&self.paint.heading(&titles));
                }
                if let Some(line) = stream::interval_line(progress) {
                    self.lines_shown = true;
                    self.print(&line);
                }
            }
            _ => {}
        }
    }

    /// To stdout. When its reader has gone there is no point in measuring on.
    fn print(&self, line: &str) {
        let write = || writeln!(io::stdout(), "{line}").and_then(|()| io::stdout().flush());
        if self.bar.as_ref().map_or_else(write, |bar| bar.suspend(write)).is_err() {
            self.stop.raise();
        }
    }

    fn remark(&self, line: &str) {
        let write = || eprintln!("{line}");
        self.bar.as_ref().map_or_else(write, |bar| bar.suspend(write));
    }

    fn move_bar(&self) {
        let Some(bar) = &self.bar else { return };
        let now = clock::now();
        let state = self.status.state();
        let millis = |span: Span| (span.nanos().max(0) / 1_000_000).cast_unsigned();
        bar.set_length(millis(state.total).max(1));
        bar.set_position(millis(state.done(now)));
        bar.set_message(state.line(now));
    }

    /// Takes the bar away; whether interval lines have been shown.
    pub(crate) fn finish(&mut self) -> bool {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.lines_shown
    }
}

/// Connecting is a phase of no version; what is done over one version is done with an answering responder.
fn somebody_answered(progress: &Progress) -> bool {
    match progress {
        Progress::Phase { version, .. } => version.is_some(),
        Progress::Queued { .. } | Progress::Interval { .. } => true,
        Progress::Note(_) => false,
    }
}

fn bar() -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:20} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style.progress_chars("=> "));
    bar
}

fn queued(place: u32, expected_wait: Span) -> String {
    format!("waiting for another measurement: place {place}, {:.0} s at most", expected_wait.secs_f64())
}

/// Notes may quote what a responder said.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_names_what_runs_how_fast_and_how_long_still() {
        let state = State {
            what: "IPv6 TCP down, 4 streams".into(),
            rate: Some(BitRate(9_410_000_000)),
            done: Span::from_secs(7),
            total: Span::from_secs(15),
            told_at: Mono(1_000),
        };
        let a_second_later = Mono(1_000) + Span::from_secs(1);
        assert_eq!(state.line(a_second_later), "IPv6 TCP down, 4 streams  9.41 Gbit/s  7 s left");
        assert_eq!(state.done(Mono(1_000) + Span::from_secs(99)), Span::from_secs(15));
    }

    #[test]
    fn a_wait_has_no_time_left() {
        let state = State { what: queued(2, Span::from_secs(14)), ..State::default() };
        assert_eq!(state.line(Mono(5)), "waiting for another measurement: place 2, 14 s at most");
    }
}
