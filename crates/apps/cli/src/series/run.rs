//! The course of a series: point after point, each measured, judged, kept and shown before the next
//! begins.

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_prober::size_fit::SizeScan;
use netaware_record::{Record, SeriesKind, SeriesPoint};
use netaware_store::Store;
use netaware_units::{Mono, Span};

use super::plan::{self, Begun, Course};
use super::rows::Rows;
use super::scan::Point;
use super::slots::Slots;
use super::summary::Summary;
use super::tally::Tally;
use crate::config::Parsed;
use crate::exit::{self, Exit};
use crate::flags::output::Format;
use crate::live::{self, Live};
use crate::measure::{Measurement, Measuring, short_id};
use crate::own_responder::OwnResponder;
use crate::render::{Paint, csv, size_fit};
use crate::signals;
use crate::sink::Sink;

/// Runs the series that the command line asks for, or goes on with the one that it names.
///
/// # Errors
/// A series that cannot be, before anything is measured; a result that cannot be written.
pub(crate) fn run(measuring: &dyn Measuring, parsed: &Parsed) -> anyhow::Result<Exit> {
    let frame = measuring.measurement();
    let store = open_store(&frame, measuring.series().resume.is_some())?;
    let begun = match (&measuring.series().resume, &store) {
        (Some(id), Some(store)) => plan::resumed(id, measuring, store, parsed)?,
        (Some(_), None) => anyhow::bail!("--resume reads the series from the store: leave out --no-save"),
        (None, _) => plan::new(measuring, parsed)?,
    };
    let Begun { plan, line, base, course, is_resumed } = begun;
    let frame = base.measurement();
    let sink = frame.open_sink()?;
    let paint = frame.paint(&sink);
    let rows = rows(&frame, &course, paint, &sink)?;
    let key = frame.target.target(None)?.key;
    let own = frame.own_responder(key.as_deref())?;
    let done = match (&store, is_resumed) {
        (Some(store), true) => store.complete_points(plan.id)?,
        (Some(store), false) => {
            store.save_series(&plan)?;
            Vec::new()
        }
        (None, _) => Vec::new(),
    };
    let stop = StopFlag::new();
    let mut live = Live::of_series(frame.output, paint, &sink, &stop);
    for note in &frame.notes {
        live.show(&netaware_prober::Progress::Note((*note).to_owned()));
    }
    let status = live.status();
    signals::listen(&stop, move |event| status.tell(event))?;
    let before = done.iter().map(|run| run.end - run.start).sum();
    let mut series = Series {
        plan: &plan,
        line,
        output: frame.output,
        own: own.as_ref(),
        store: store.as_ref(),
        stop: &stop,
        live,
        rows,
        summary: Summary::default(),
        sizes: SizeScan::default(),
        tally: Tally::after(before),
        unsaved: Unsaved::None,
    };
    if is_resumed && let Some(store) = &store {
        series.remember_all(store)?;
    }
    let left = match &course {
        Course::Scan(scan) => series.scan(scan.count(), |index| scan.point(index), &done),
        Course::Repeat { every, count } => {
            let slots = Slots::new(plan::first_due(&plan, is_resumed), *every, *count);
            series.repeat(&slots, is_resumed.then_some(done.as_slice()))
        }
    };
    series.close(left, paint, &sink)
}

/// A series is worth measuring without a store; only it cannot be continued then, so nothing is
/// wrong but the store.
fn open_store(frame: &Measurement<'_>, is_needed: bool) -> anyhow::Result<Option<Store>> {
    if !frame.output.saves() {
        return Ok(None);
    }
    // Who goes on with a series names a file that has it.
    let opened = if is_needed { frame.open_existing_store() } else { frame.open_store() };
    match opened {
        Ok(store) => Ok(Some(store)),
        Err(error) if is_needed => Err(error),
        Err(error) => {
            eprintln!("warning: the series is not saved and cannot be continued: {}", exit::sentence(&error));
            Ok(None)
        }
    }
}

/// How the points will look; the columns of a table are fixed before the first point.
fn rows(frame: &Measurement<'_>, course: &Course, paint: Paint, sink: &Sink) -> anyhow::Result<Rows> {
    let rows = Rows::new(frame.output.format, paint, jiff::tz::TimeZone::system(), sink.heading());
    if frame.output.format != Format::Csv {
        return Ok(rows);
    }
    let point = match course {
        Course::Scan(scan) => scan.point(0),
        Course::Repeat { .. } => Point::new(),
    };
    let columns = csv::ScanColumns::of_point(&point.into_iter().collect());
    sink.check_heading(&csv::heading(frame.command, Some(&columns)))?;
    Ok(rows.with_columns(columns))
}

/// A series that runs.
struct Series<'a> {
    plan: &'a netaware_store::SeriesPlan,
    line: super::line::Line,
    output: &'a crate::flags::output::OutputFlags,
    own: Option<&'a OwnResponder>,
    store: Option<&'a Store>,
    stop: &'a StopFlag,
    live: Live<'a>,
    rows: Rows,
    summary: Summary,
    sizes: SizeScan,
    tally: Tally,
    unsaved: Unsaved,
}

/// Whether results got lost to the store; said once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsaved {
    None,
    Some,
}

/// Whether there is something to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    Points,
}

impl Series<'_> {
    /// Every point that has no complete record.
    fn scan(&mut self, count: u64, point: impl Fn(u64) -> Point, done: &[std::ops::Range<u64>]) -> Left {
        let began_at = clock::now();
        let open = count.saturating_sub(self.tally.before);
        for (tried, index) in (0..).zip((0..count).filter(|index| !is_among(done, *index))) {
            if self.stop.is_raised() {
                return Left::Points;
            }
            let values = point(index);
            self.live.begin(named(index, count, &values, ends_at(began_at, tried, open)), "connect");
            if self.point(index, values) == Left::Points {
                return Left::Points;
            }
        }
        Left::Nothing
    }

    /// One measurement per slot; slots that pass meanwhile are gaps. `done` is what a resumed
    /// repetition has already.
    fn repeat(&mut self, slots: &Slots, done: Option<&[std::ops::Range<u64>]>) -> Left {
        let mut n = if done.is_some() { slots.upcoming(clock::now()) } else { 0 };
        let complete: u64 = done.into_iter().flatten().map(|run| run.end.min(n) - run.start.min(n)).sum();
        let passed = if self.plan.planned > 0 { n.min(self.plan.planned) } else { n };
        let missed = passed.saturating_sub(complete);
        if done.is_some() && missed > 0 && !self.output.quiet {
            self.live.remark(&format!(
                "note: gaps, points whose time passed while the series did not run: {missed}"
            ));
        }
        while slots.has(n) {
            self.live.begin(named(n, self.plan.planned, &Point::new(), slots.end()), "waiting for its time");
            if !wait_until(slots.due(n), self.stop) {
                return Left::Points;
            }
            let began_at = clock::now();
            if self.point(n, Point::new()) == Left::Points {
                return Left::Points;
            }
            let next = slots.upcoming(clock::now()).max(n + 1);
            self.note_gaps(slots, n + 1, next, clock::now() - began_at);
            n = next;
        }
        Left::Nothing
    }

    fn note_gaps(&mut self, slots: &Slots, from: u64, to: u64, took: Span) {
        let gaps = (from..to).take_while(|n| slots.has(*n));
        let mut last = None;
        for n in gaps {
            self.tally.gap(n);
            last = Some(n);
        }
        let Some(last) = last.filter(|_| !self.output.quiet) else { return };
        let which = if last == from {
            format!("point {} is a gap", from + 1)
        } else {
            format!("points {} to {} are gaps", from + 1, last + 1)
        };
        self.live.remark(&format!("note: {which}: the measurement before took {took}"));
    }

    /// Measures one point and does with it all that is to be done.
    fn point(&mut self, index: u64, values: Point) -> Left {
        let command = match self.line.at(&values) {
            Ok(command) => command,
            Err(error) => return self.refused(index, &error),
        };
        if let Err(error) = command.check() {
            return self.refused(index, &error);
        }
        let frame = command.measurement();
        let target = match frame.target.target(self.own.map(OwnResponder::port)) {
            Ok(target) => target,
            Err(error) => return self.refused(index, &error),
        };
        let live = &mut self.live;
        let mut record = command.measure(target, self.stop, &mut |progress| live.show(&progress));
        let is_interrupted = self.stop.is_raised();
        if is_interrupted && !record.has_figures() {
            return Left::Points;
        }
        record.label.clone_from(&self.plan.label);
        record.series = Some(SeriesPoint {
            id: self.plan.id,
            kind: self.plan.kind,
            index,
            planned: self.plan.planned,
            point: values.into_iter().collect(),
        });
        // A point that a person cut short says nothing of the others, which were judged.
        if !is_interrupted || index == 0 {
            frame.judge(&mut record);
        }
        self.keep(&record);
        self.tally.point(index, &record);
        self.remember(&record);
        match self.rows.row(&record) {
            Ok(lines) => self.live.rows(&lines),
            Err(error) => {
                self.live.remark(&format!("warning: point {} has no such form: {error}", index + 1));
            }
        }
        // The reader of the rows may have gone just now: this point is complete all the same.
        if is_interrupted || self.stop.is_raised() { Left::Points } else { Left::Nothing }
    }

    /// A value between the ends of a range that its option does not take.
    fn refused(&mut self, index: u64, error: &anyhow::Error) -> Left {
        self.tally.refused(index);
        self.live.remark(&format!(
            "warning: point {} was not measured: {}",
            index + 1,
            exit::sentence(error)
        ));
        Left::Nothing
    }

    fn keep(&mut self, record: &Record) {
        let Some(store) = self.store else { return };
        if let Err(error) = store.save_point(record)
            && std::mem::replace(&mut self.unsaved, Unsaved::Some) == Unsaved::None
        {
            let why = exit::sentence(&error.into());
            self.live.remark(&format!("warning: points are measured, but not saved: {why}"));
        }
    }

    /// Keeps what the closing lines need. The points of a scan are different measurements: no
    /// summary holds of them all.
    fn remember(&mut self, record: &Record) {
        self.sizes.observe(record);
        if self.plan.kind == SeriesKind::Repeat {
            self.summary.observe(record);
        }
    }

    /// What was measured before the series was interrupted belongs to its closing lines.
    fn remember_all(&mut self, store: &Store) -> anyhow::Result<()> {
        let filter = netaware_store::Filter {
            series: netaware_store::Among::Of(self.plan.id),
            ..netaware_store::Filter::default()
        };
        store.each(&filter, |record| {
            self.remember(&record);
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// What becomes of the delay with the size of messages; nothing for a scan of anything else.
    fn size_lines(&mut self, paint: Paint) -> String {
        self.sizes.note_memory_copy(netaware_prober::memory_copy);
        size_fit::text(&self.sizes, paint)
    }

    /// Says how it went.
    fn close(mut self, left: Left, paint: Paint, sink: &Sink) -> anyhow::Result<Exit> {
        self.live.rows(self.rows.end());
        self.live.finish();
        let written = match self.live.take_failure() {
            Some(error) => Err(error),
            None => self.closing_lines(paint, sink),
        };
        let exit = self.tally.exit().once_printed(written);
        if exit.is_err() {
            self.say_how_to_continue(left);
            return exit;
        }
        for line in self.tally.lines() {
            eprintln!("{line}");
        }
        if self.tally.measured + self.tally.before == 0 && left == Left::Nothing {
            eprintln!("error: no point of the series could be measured");
        }
        if self.store.is_some() && !self.output.quiet {
            let id = short_id(self.plan.id);
            eprintln!("saved as series {id}: netaware results show {id}");
        }
        self.say_how_to_continue(left);
        exit
    }

    /// What holds of all points.
    fn closing_lines(&mut self, paint: Paint, sink: &Sink) -> std::io::Result<()> {
        let lines = format!("{}{}", self.summary.lines(paint), self.size_lines(paint));
        if self.output.format == Format::Text {
            return sink.write(lines.as_bytes());
        }
        if !self.output.quiet {
            eprint!("{lines}");
        }
        Ok(())
    }

    fn say_how_to_continue(&self, left: Left) {
        if left == Left::Points && self.store.is_some() {
            let store = self.output.store.as_ref().map(|path| format!(" --store {}", path.display()));
            let (command, id) = (&self.plan.command, short_id(self.plan.id));
            eprintln!("continue with: netaware {command} --resume {id}{}", store.unwrap_or_default());
        }
    }
}

/// For a person who asks where the series stands.
fn named(index: u64, count: u64, values: &Point, ends_at: Option<Mono>) -> live::Point {
    let of = if count > 0 { format!(" of {count}") } else { String::new() };
    let values: Vec<String> = values.iter().map(|(name, value)| format!(", {name} {value}")).collect();
    live::Point { name: format!("point {}{of}{}", index + 1, values.concat()), ends_at }
}

/// `runs` ascend.
fn is_among(runs: &[std::ops::Range<u64>], index: u64) -> bool {
    let at = runs.partition_point(|run| run.end <= index);
    runs.get(at).is_some_and(|run| run.contains(&index))
}

/// When a scan will have ended if its points go on as they did.
fn ends_at(began_at: Mono, tried: u64, open: u64) -> Option<Mono> {
    let now = clock::now();
    let tried_for = i128::from((now - began_at).0) / i128::from(tried.max(1));
    let left = tried_for * i128::from(open.saturating_sub(tried));
    (tried > 0).then(|| now + Span(i64::try_from(left).unwrap_or(i64::MAX)))
}

/// Whether the time came before the end was asked for.
fn wait_until(due: Mono, stop: &StopFlag) -> bool {
    while !stop.is_raised() {
        let now = clock::now();
        if now >= due {
            return true;
        }
        // The last stretch ends at the instant itself.
        clock::sleep_until(due.min(now + LOOK_EVERY));
    }
    false
}

/// How long a person waits who asks for the end.
const LOOK_EVERY: Span = Span::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_are_done_are_found_among_runs() {
        let runs = [0..3, 5..6, 8..20];
        let open: Vec<u64> = (0..22).filter(|index| !is_among(&runs, *index)).collect();
        assert_eq!(open, [3, 4, 6, 7, 20, 21]);
        assert!(!is_among(&[], 0));
    }
}
