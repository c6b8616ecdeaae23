//! What is shown while a measurement runs: a bar on a terminal's stderr, interval lines or events
//! on stdout.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_prober::Progress;
use netaware_record::printable;
use netaware_units::{BitRate, Mono, Span};

use crate::flags::output::{Format, OutputFlags};
use crate::render::{Paint, stream};
use crate::signals::Event;
use crate::sink::Sink;

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
    /// Of a series.
    point: Option<Point>,
}

/// Which measurement of a series runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Point {
    /// "point 3 of 11, spacing 20us".
    pub(crate) name: String,
    /// When the whole series will have ended, where that can be told.
    pub(crate) ends_at: Option<Mono>,
}

impl Point {
    fn line(&self, now: Mono) -> String {
        let left = self.ends_at.map(|end| format!(", about {} left in all", rough((end - now).or_zero())));
        format!("{}{}: ", self.name, left.unwrap_or_default())
    }
}

/// "45 s", "12 min", "3 h 20 min": what a person who waits wants to know.
fn rough(span: Span) -> String {
    let seconds = (span.nanos() + 500_000_000) / 1_000_000_000;
    let minutes = (seconds + 30) / 60;
    match (seconds, minutes) {
        (0..120, _) => format!("{seconds} s"),
        (_, 0..120) => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

impl State {
    fn done(&self, now: Mono) -> Span {
        if self.total == Span::ZERO { Span::ZERO } else { (self.done + (now - self.told_at)).min(self.total) }
    }

    fn line(&self, now: Mono) -> String {
        let rate = self.rate.map(|rate| format!("  {rate}")).unwrap_or_default();
        let left = self.total - self.done(now);
        let left = if left > Span::ZERO { format!("  {:.0} s left", left.secs_f64()) } else { String::new() };
        let point = self.point.as_ref().map(|point| point.line(now)).unwrap_or_default();
        format!("{point}{}{rate}{left}", self.what)
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
            Event::Stopping(by) => {
                eprintln!("\nnetaware: {by}: ending early with what there is; once more quits at once");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The display.
pub(crate) struct Live<'a> {
    format: Format,
    quiet: bool,
    intervals: bool,
    paint: Paint,
    sink: &'a Sink,
    stop: StopFlag,
    status: Status,
    bar: Option<ProgressBar>,
    lines_shown: bool,
    /// Remarks wait until something is measured: when nothing can be, the error says it all.
    held: Vec<String>,
    /// Remarks are made once, however many measurements give rise to them.
    said: Vec<String>,
    /// Why nothing more could be written.
    failure: Option<io::Error>,
}

impl<'a> Live<'a> {
    /// `intervals`: show slices of time as lines, where the format has them.
    pub(crate) fn new(
        output: &OutputFlags,
        intervals: bool,
        paint: Paint,
        sink: &'a Sink,
        stop: &StopFlag,
    ) -> Self {
        let bar = (!output.quiet && io::stderr().is_terminal()).then(bar);
        Self {
            format: output.format,
            quiet: output.quiet,
            intervals,
            paint,
            sink,
            stop: stop.clone(),
            status: Status::default(),
            bar,
            lines_shown: false,
            held: Vec::new(),
            said: Vec::new(),
            failure: None,
        }
    }

    /// Of a series, whose points are rows: no interval lines and no events of each.
    pub(crate) fn of_series(output: &OutputFlags, paint: Paint, sink: &'a Sink, stop: &StopFlag) -> Self {
        Self { format: Format::Text, ..Self::new(output, false, paint, sink, stop) }
    }

    /// The next measurement of a series begins, or is waited for.
    pub(crate) fn begin(&mut self, point: Point, what: &str) {
        self.held.clear();
        let mut state = self.status.state();
        *state = State { what: what.to_owned(), point: Some(point), ..State::default() };
        drop(state);
        self.move_bar();
    }

    /// Rows of a series.
    pub(crate) fn rows(&mut self, lines: &str) {
        if !lines.is_empty() && self.failure.is_none() {
            self.write(lines);
        }
    }

    /// What ended the output, if something did.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
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
                state.what = format!("{version}{what}");
                state.rate = None;
                (state.done, state.total, state.told_at) = (*done, *total, now);
            }
            Progress::Queued { place, expected_wait } => {
                state.what = queued(*place, *expected_wait);
                (state.rate, state.total) = (None, Span::ZERO);
            }
            Progress::Interval { rate, .. } => state.rate = *rate,
            Progress::Rate { point, .. } => {
                state.rate = point.rate.as_ref().map(|rate| BitRate(rate.estimate.max(0.0) as u64));
            }
            Progress::Note(_) | Progress::Longer(_) => {}
        }
    }

    fn show_to_people(&mut self, progress: &Progress) {
        if let Progress::Note(text) | Progress::Longer(text) = progress {
            self.held.push(format!("note: {}", printable(text)));
        }
        if is_time_for_remarks(progress) {
            for line in std::mem::take(&mut self.held) {
                if !self.said.contains(&line) {
                    self.remark(&line);
                    self.said.truncate(MOST_REMEMBERED);
                    self.said.push(line);
                }
            }
        }
        match progress {
            Progress::Queued { place, expected_wait } if self.bar.is_none() => {
                self.remark(&queued(*place, *expected_wait));
            }
            Progress::Interval { .. } | Progress::Rate { .. }
                if self.intervals && self.format == Format::Text =>
            {
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

    fn print(&mut self, line: &str) {
        self.write(&format!("{line}\n"));
    }

    /// When the reader has gone, or the disk is full, there is no point in measuring on.
    fn write(&mut self, lines: &str) {
        let write = || self.sink.write(lines.as_bytes());
        if let Err(error) = self.bar.as_ref().map_or_else(write, |bar| bar.suspend(write)) {
            self.failure = Some(error);
            self.stop.raise();
        }
    }

    /// On stderr.
    pub(crate) fn remark(&self, line: &str) {
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

/// Remarks that are not made again; a long series may give rise to ever new ones.
const MOST_REMEMBERED: usize = 100;

/// Connecting is a phase of no version; what is done over one version is done with an answering
/// responder. How long it takes is said whether somebody answers or not: the person waits.
fn is_time_for_remarks(progress: &Progress) -> bool {
    match progress {
        Progress::Phase { version, .. } => version.is_some(),
        Progress::Queued { .. } | Progress::Interval { .. } | Progress::Rate { .. } | Progress::Longer(_) => {
            true
        }
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
            point: None,
        };
        let a_second_later = Mono(1_000) + Span::from_secs(1);
        assert_eq!(state.line(a_second_later), "IPv6 TCP down, 4 streams  9.41 Gbit/s  7 s left");
        assert_eq!(state.done(Mono(1_000) + Span::from_secs(99)), Span::from_secs(15));
    }

    #[test]
    fn a_point_of_a_series_is_named_with_the_time_that_the_series_still_takes() {
        let point = Point {
            name: "point 3 of 11, spacing 20us".into(),
            ends_at: Some(Mono(0) + Span::from_secs(600)),
        };
        let state = State { what: "connect".into(), point: Some(point), ..State::default() };
        assert_eq!(
            state.line(Mono(0) + Span::from_secs(120)),
            "point 3 of 11, spacing 20us, about 8 min left in all: connect"
        );
        let rows = [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "2 h 0 min"), (12_000, "3 h 20 min")];
        for (seconds, want) in rows {
            assert_eq!(rough(Span::from_secs(seconds)), want);
        }
    }

    #[test]
    fn a_time_that_is_taken_back_is_said_although_nobody_has_answered() {
        let connecting =
            Progress::Phase { what: "connect".into(), version: None, done: Span::ZERO, total: Span::ZERO };
        assert!(!is_time_for_remarks(&connecting));
        assert!(!is_time_for_remarks(&Progress::Note("IPv6: no address".into())));
        assert!(is_time_for_remarks(&Progress::Longer("this takes about 11.0 s instead of 4.00 s".into())));
    }

    #[test]
    fn a_wait_has_no_time_left() {
        let state = State { what: queued(2, Span::from_secs(14)), ..State::default() };
        assert_eq!(state.line(Mono(5)), "waiting for another measurement: place 2, 14 s at most");
    }
}
