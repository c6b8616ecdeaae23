//! What every measuring command does around its measurement: a responder if none is named, signals,
//! progress, thresholds, printing, keeping, and the exit code.

use std::io::{self, Write};

use anyhow::bail;
use netaware_io::stop::StopFlag;
use netaware_prober::{Progress, Target};
use netaware_record::{Conclusion, Record};
use netaware_store::Store;

use crate::config::Parsed;
use crate::exit::{self, Exit};
use crate::flags::output::{Format, OutputFlags};
use crate::flags::series::SeriesFlags;
use crate::flags::target::TargetFlags;
use crate::live::Live;
use crate::own_responder::OwnResponder;
use crate::render::{self, Paint};
use crate::series;
use crate::signals;
use crate::sink::{self, Existing, Sink};

/// A command that measures: once by itself, or as a point of a series.
pub(crate) trait Measuring {
    /// Holds flags against each other that the parser cannot. Called once for each measurement,
    /// before anything is done.
    ///
    /// # Errors
    /// They contradict each other, or a file that they name cannot be had.
    fn check(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// What is around each measurement.
    fn measurement(&self) -> Measurement<'_>;

    /// Whether there is more than one.
    fn series(&self) -> &SeriesFlags;

    /// Measures once.
    fn measure(&self, target: Target, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record;
}

/// Measures once, or as often as a series asks for.
///
/// # Errors
/// As [`Measurement::run`], or a series that cannot be.
pub(crate) fn run(measuring: &dyn Measuring, parsed: &Parsed) -> anyhow::Result<Exit> {
    measuring.check()?;
    if measuring.series().is_given() {
        return series::run(measuring, parsed);
    }
    measuring.measurement().run(|target, stop, progress| measuring.measure(target, stop, progress))
}

/// The frame of one measurement.
pub(crate) struct Measurement<'a> {
    pub(crate) command: &'static str,
    pub(crate) target: &'a TargetFlags,
    pub(crate) output: &'a OutputFlags,
    /// Show slices of time as they pass.
    pub(crate) intervals: bool,
    /// Said once it runs.
    pub(crate) notes: Vec<&'static str>,
}

impl Measurement<'_> {
    /// Runs it. Results go to stdout or to the file of `--output`, everything else to stderr.
    ///
    /// # Errors
    /// Flags that contradict each other, no responder of our own, or a result that cannot be
    /// written.
    pub(crate) fn run(
        &self,
        measure: impl FnOnce(Target, &StopFlag, &mut dyn FnMut(Progress)) -> Record,
    ) -> anyhow::Result<Exit> {
        let sink = self.open_sink()?;
        if self.output.format == Format::Csv {
            sink.check_heading(&render::csv::heading(self.command, None))?;
        }
        let asked = self.target.target(None)?;
        let own = self.own_responder(asked.key.as_deref())?;
        let target = match &own {
            Some(own) => self.target.target(Some(own.port()))?,
            None => asked,
        };
        let stop = StopFlag::new();
        let paint = self.paint(&sink);
        let mut live = Live::new(self.output, self.intervals, paint, &sink, &stop);
        for note in &self.notes {
            live.show(&Progress::Note((*note).to_owned()));
        }
        let status = live.status();
        signals::listen(&stop, move |event| status.tell(event))?;
        let mut record = measure(target, &stop, &mut |progress| live.show(&progress));
        let shown = live.finish();
        let is_unread = has_reader_gone(live.take_failure().as_ref());
        drop(own);
        record.label.clone_from(&self.output.label);
        self.judge(&mut record);
        // Its reader ended it, and knows why there is not more.
        let printed = if is_unread { Ok(()) } else { print(&record, self.output, &sink, paint, shown) };
        keep(&record, self.output, &sink);
        Exit::from(record.conclusion()).once_printed(printed)
    }

    /// Where results go.
    ///
    /// # Errors
    /// The format cannot be had of this command or in such a file, or the file cannot be written.
    pub(crate) fn open_sink(&self) -> anyhow::Result<Sink> {
        open_sink(self.command, self.output)
    }

    /// A file is plain text unless colour is asked for by its name.
    pub(crate) fn paint(&self, sink: &Sink) -> Paint {
        paint(self.output, sink)
    }

    /// A responder on this host, where no HOST is given, and a line that says so.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn own_responder(&self, key: Option<&[u8]>) -> anyhow::Result<Option<OwnResponder>> {
        if !self.target.is_own() {
            return Ok(None);
        }
        let own = OwnResponder::start(key)?;
        if !self.output.quiet {
            eprintln!(
                "no HOST given: measuring this host against its own responder on loopback, {}",
                own.place()
            );
        }
        Ok(Some(own))
    }

    /// Holds the record against each `--expect`.
    pub(crate) fn judge(&self, record: &mut Record) {
        judge(record, self.output);
    }

    /// The file of results.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open_store(&self) -> anyhow::Result<Store> {
        open_store(self.output)
    }

    /// The file of results, which is there already.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub(crate) fn open_existing_store(&self) -> anyhow::Result<Store> {
        let path = self.output.store.clone().map_or_else(netaware_store::default_path, Ok)?;
        Ok(Store::open_existing(path)?)
    }
}

/// Whether it was the reader of standard output because of whom no more could be shown.
pub(crate) fn has_reader_gone(failure: Option<&io::Error>) -> bool {
    failure.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Where results of a command go.
///
/// # Errors
/// The format cannot be had of this command or in such a file, or the file cannot be written.
pub(crate) fn open_sink(command: &str, output: &OutputFlags) -> anyhow::Result<Sink> {
    if output.format == Format::Csv && !render::has_csv_form(command) {
        bail!("'netaware {command}' has no CSV form: use --format json");
    }
    if output.format == Format::Udpmon && !render::has_udpmon_form(command) {
        let others = if render::has_csv_form(command) { "csv or json" } else { "json" };
        bail!("'netaware {command}' has no UDPmon form: use --format {others}");
    }
    if output.append && output.format == Format::Json {
        bail!("a JSON file holds one value and cannot be added to: use --format ndjson");
    }
    let existing = if output.append { Existing::Append } else { Existing::Refuse };
    Sink::open(output.output.as_deref(), existing, output.format)
}

/// A file is plain text unless colour is asked for by its name.
pub(crate) fn paint(output: &OutputFlags, sink: &Sink) -> Paint {
    if sink.is_stdout() { Paint::for_stdout(output.paint.color) } else { Paint::for_file(output.paint.color) }
}

/// Holds the record against each `--expect`.
pub(crate) fn judge(record: &mut Record, output: &OutputFlags) {
    record.expectations = output.expect.iter().map(|threshold| threshold.judge(record)).collect();
}

/// Writes the record in the format asked for; `intervals_shown`: its slices stand above already.
///
/// # Errors
/// It cannot be written.
pub(crate) fn print(
    record: &Record,
    output: &OutputFlags,
    sink: &Sink,
    paint: Paint,
    intervals_shown: bool,
) -> io::Result<()> {
    let failed = record.conclusion() == Conclusion::Failed;
    if failed {
        for line in render::text::failure_lines(record) {
            eprintln!("error: {line}");
        }
    }
    // Their rows have figures alone.
    if matches!(output.format, Format::Csv | Format::Udpmon) {
        for line in render::text::missed_lines(record) {
            eprintln!("{line}");
        }
    }
    let mut out = Vec::new();
    match output.format {
        // The lines above have said it all.
        Format::Text if failed && !record.has_figures() => {}
        Format::Text if intervals_shown => render::text::after_intervals(&mut out, record, paint)?,
        Format::Text if output.verbose => render::text::record(&mut out, record, paint)?,
        Format::Text => render::text::overview(&mut out, record, paint)?,
        Format::Csv if sink.heading().is_some() => {
            out.extend(render::csv::rows(record, None).into_bytes());
        }
        format => render::record(&mut out, record, format, paint)?,
    }
    sink.write(&out)
}

/// The result has been printed; that it is not kept is worth a warning, not a failure.
pub(crate) fn keep(record: &Record, output: &OutputFlags, sink: &Sink) {
    if !output.saves() || !record.has_figures() {
        return;
    }
    let kept = open_store(output).and_then(|store| Ok(store.save(record)?));
    match kept {
        Ok(()) if output.format == Format::Text => {
            let id = short_id(record.id);
            let line = format!("saved as {id}: netaware results show {id}");
            if sink.is_stdout() {
                // A reader who has gone has read enough.
                let _ = writeln!(sink::stdout(), "\n{line}");
            } else if !output.quiet {
                eprintln!("{line}");
            }
        }
        Ok(()) => {}
        Err(error) => {
            eprintln!("warning: the result was printed, but not saved: {}", exit::sentence(&error));
        }
    }
}

fn open_store(output: &OutputFlags) -> anyhow::Result<Store> {
    Ok(output.store.as_ref().map_or_else(Store::open_default, Store::open)?)
}

/// The time part of a UUIDv7 and four digits more: enough for people who do not measure many times
/// a millisecond.
pub(crate) fn short_id(id: uuid::Uuid) -> String {
    id.hyphenated().to_string().chars().take(18).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixture;

    /// With CSV the exit code alone said that one had failed.
    #[test]
    fn a_threshold_that_was_missed_has_a_line_and_one_that_held_has_none() {
        let mut record = fixture::udp();
        let expectation = |text: &str, held| netaware_record::Expectation {
            text: text.to_owned(),
            held,
            found: "IPv4 212 us".to_owned(),
        };
        record.expectations = vec![expectation("rtt.p50<1s", true), expectation("rtt.p99<1ns", false)];
        assert_eq!(render::text::missed_lines(&record), ["FAILED  rtt.p99<1ns  (IPv4 212 us)"]);
    }

    /// `--format ndjson | head -1` had "error: the measurement failed before its end".
    #[test]
    fn a_reader_who_has_gone_is_not_told_that_the_measurement_failed() {
        let error = |kind: io::ErrorKind| io::Error::from(kind);
        assert!(has_reader_gone(Some(&error(io::ErrorKind::BrokenPipe))));
        assert!(!has_reader_gone(Some(&error(io::ErrorKind::StorageFull))) && !has_reader_gone(None));
    }

    #[test]
    fn exit_codes_follow_the_record() {
        let judged = |record: &Record| Exit::from(record.conclusion());
        assert_eq!(judged(&fixture::test()), Exit::Done);
        assert_eq!(judged(&fixture::half()), Exit::ThresholdFailed);
        assert_eq!(judged(&fixture::nothing()), Exit::NotMeasured);
        let mut one_missing = fixture::half();
        one_missing.expectations.clear();
        assert_eq!(judged(&one_missing), Exit::Done);
    }

    #[test]
    fn a_stream_of_which_nothing_left_has_not_been_measured() {
        let mut silent = fixture::udp();
        let streams = silent.versions.iter_mut().flat_map(|version| &mut version.udp);
        streams.for_each(|udp| (udp.sent, udp.received) = (0, 0));
        for version in &mut silent.versions {
            (version.latency, version.latency_tcp) = (None, None);
        }
        assert_eq!(Exit::from(silent.conclusion()), Exit::NotMeasured);
    }

    /// 8,610 of 8,610 datagrams were lost, and the exit code was that of a measurement.
    #[test]
    fn what_was_lost_from_the_first_packet_to_the_last_is_no_figure() {
        use netaware_record::Outcome;
        let settled = |mut record: Record| {
            record.expectations.clear();
            record.settle();
            (Exit::from(record.conclusion()), record.outcome, record.missing())
        };
        let nothing_came = |record: &mut Record, versions: usize| {
            for version in record.versions.iter_mut().take(versions) {
                for udp in &mut version.udp {
                    (udp.received, udp.loss.lost, udp.loss.unknown) = (0, udp.sent, 0);
                }
                for delay in [&mut version.latency, &mut version.latency_tcp].into_iter().flatten() {
                    (delay.received, delay.lost) = (0, delay.sent);
                }
            }
        };
        for (fixture, what) in [
            (fixture::udp as fn() -> Record, "datagrams that were sent"),
            (fixture::latency, "requests that were sent"),
        ] {
            let mut record = fixture();
            nothing_came(&mut record, usize::MAX);
            let versions = record.versions.len();
            let (code, outcome, said) = settled(record);
            assert_eq!(
                (code, outcome, said.len()),
                (Exit::NotMeasured, Outcome::Failed, versions),
                "{said:?}"
            );
            assert!(said[0].ends_with(what), "{said:?}");
        }
        let mut half = fixture::test();
        nothing_came(&mut half, 1);
        assert_eq!(settled(half).0, Exit::Done, "the other version was measured");
    }

    #[test]
    fn a_measurement_that_broke_over_every_version_is_none() {
        let mut broken = fixture::half();
        broken.versions[0].unreachable = broken.versions[1].unreachable.clone();
        assert!(broken.has_figures());
        assert_eq!(Exit::from(broken.conclusion()), Exit::NotMeasured);
    }

    #[test]
    fn a_test_without_one_byte_of_tcp_over_any_version_is_not_complete() {
        use netaware_record::{LEFT_OUT, Outcome};
        let settled = |change: &dyn Fn(&mut Record)| {
            let mut record = fixture::test();
            record.expectations.clear();
            let asked = ["tcp", "udp"].map(|name| (name.to_owned(), "true".to_owned()));
            record.request.options.extend(asked);
            change(&mut record);
            record.settle();
            (record.outcome, record.missing())
        };
        let without = |record: &mut Record, versions: usize| {
            record.versions.iter_mut().take(versions).for_each(|version| version.tcp.clear());
        };
        let missing = "IPv4: there is no figure of the rate over TCP".to_owned();
        assert_eq!(settled(&|_| ()), (Outcome::Complete, Vec::new()));
        assert_eq!(settled(&|record| without(record, 1)), (Outcome::Complete, vec![missing.clone()]));
        let (outcome, said) = settled(&|record| without(record, 2));
        assert_eq!((outcome, said.len(), &said[0]), (Outcome::Failed, 2, &missing));
        // What the plan left out beforehand was not expected, and whoever ends it early knows why.
        let left_out = |record: &mut Record| {
            record.versions.iter_mut().for_each(|version| version.udp.clear());
            record.request.options.insert(LEFT_OUT.into(), "TCP with one stream, UDP".into());
        };
        assert_eq!(settled(&left_out), (Outcome::Complete, Vec::new()));
        let interrupted = |record: &mut Record| {
            without(record, 2);
            record.outcome = Outcome::Interrupted;
        };
        assert_eq!(settled(&interrupted), (Outcome::Interrupted, Vec::new()));
    }

    #[test]
    fn a_transfer_by_time_that_has_no_rate_is_not_complete() {
        use netaware_record::Outcome;
        let outcome = |planned: Option<netaware_units::Span>| {
            let mut record = fixture::tcp();
            record.expectations.clear();
            for tcp in record.versions.iter_mut().flat_map(|version| &mut version.tcp) {
                (tcp.goodput, tcp.goodput_interval, tcp.planned) = (None, None, planned);
                tcp.bytes = Some(netaware_units::ByteCount(14_480));
            }
            record.settle();
            record.outcome
        };
        assert_eq!(outcome(Some(netaware_units::Span::from_secs(1))), Outcome::Failed);
        assert_eq!(outcome(None), Outcome::Complete, "so many bytes, and they came");
    }

    #[test]
    fn a_matrix_of_which_no_cell_was_measured_is_not_complete() {
        use netaware_record::Outcome;
        let outcome = |versions: usize| {
            let mut record = fixture::matrix();
            record.expectations.clear();
            let spoilt = record.versions.iter_mut().take(versions).flat_map(|version| &mut version.matrix);
            for run in spoilt.flat_map(|matrix| &mut matrix.cells).flat_map(|cell| &mut cell.runs) {
                run.outcome = Outcome::Interrupted;
            }
            record.settle();
            (record.outcome, record.missing().len())
        };
        assert_eq!((outcome(1), outcome(2)), ((Outcome::Complete, 1), (Outcome::Failed, 2)));
    }

    /// One row of the table in docs/guide/exit-codes.md.
    #[test]
    fn the_outcome_of_a_record_and_the_exit_code_never_contradict() {
        use netaware_record::Outcome::{Complete, Failed, Interrupted};
        let with = |change: fn(&mut Record)| {
            let mut record = fixture::udp();
            record.expectations.clear();
            change(&mut record);
            record
        };
        let missed = |record: &mut Record, found: &str| {
            let (text, found) = ("rtt.p99<1ns".to_owned(), found.to_owned());
            record.expectations = vec![netaware_record::Expectation { text, held: false, found }];
        };
        let no_figure = |record: &mut Record| record.versions.iter_mut().for_each(|v| v.udp.clear());
        let nothing = |mut record: Record| {
            record.outcome = Complete;
            record.expectations.clear();
            record
        };
        let mut unjudged = with(|_| ());
        missed(&mut unjudged, "no such figure was measured");
        let mut missed_and_interrupted = with(|record| record.outcome = Interrupted);
        missed(&mut missed_and_interrupted, "IPv4 1 ms");
        let mut missed_and_failed = with(|record| record.outcome = Failed);
        missed(&mut missed_and_failed, "IPv4 1 ms");
        let mut empty = with(|_| ());
        no_figure(&mut empty);
        let mut interrupted_before = with(|record| record.outcome = Interrupted);
        no_figure(&mut interrupted_before);
        // A phase of so many versions, of two.
        let failed_over = |versions: usize| {
            let mut record = with(|_| ());
            record.versions.truncate(1);
            let mut other = record.versions[0].clone();
            other.version = netaware_record::IpVersion::V6;
            record.versions.push(other);
            record.versions.iter_mut().take(versions).for_each(|v| v.udp[0].outcome = Failed);
            record
        };
        let rows = [
            ("measured", with(|_| ()), Complete, 0),
            ("one version missing", nothing(fixture::half()), Complete, 0),
            ("interrupted", with(|record| record.outcome = Interrupted), Interrupted, 0),
            ("expectation missed or not judged", unjudged, Complete, 1),
            ("expectation missed, interrupted", missed_and_interrupted, Interrupted, 1),
            ("expectation missed, failed", missed_and_failed, Failed, 2),
            ("no version reached: dead port, unknown name", nothing(fixture::nothing()), Failed, 2),
            ("nothing measured over versions that were reached", empty, Failed, 2),
            ("interrupted before anything was measured", interrupted_before, Interrupted, 2),
            (
                "nothing was sent",
                with(|record| {
                    for udp in record.versions.iter_mut().flat_map(|v| &mut v.udp) {
                        (udp.sent, udp.received) = (0, 0);
                    }
                }),
                Failed,
                2,
            ),
            ("a phase failed", failed_over(usize::MAX), Failed, 2),
            ("a phase failed over one of two versions", failed_over(1), Complete, 0),
            (
                "a phase was interrupted",
                with(|record| record.versions.iter_mut().for_each(|v| v.udp[0].outcome = Interrupted)),
                Interrupted,
                0,
            ),
        ];
        for (what, mut record, outcome, code) in rows {
            record.settle();
            let exit = std::process::ExitCode::from(Exit::from(record.conclusion()));
            let want = std::process::ExitCode::from(code);
            assert_eq!((record.outcome, format!("{exit:?}")), (outcome, format!("{want:?}")), "{what}");
            let again = record.outcome;
            record.settle();
            assert_eq!(record.outcome, again, "{what}");
        }
    }
}
