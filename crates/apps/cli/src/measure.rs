//! What every measuring command does around its measurement: a responder if none is named, signals, progress, thresholds,
//! printing, keeping, and the exit code.

use std::io::{self, Write};

use anyhow::bail;
use netaware_io::stop::StopFlag;
use netaware_prober::{Progress, Target};
use netaware_record::{Record, VersionResult};
use netaware_store::Store;

use crate::exit::{self, Exit};
use crate::flags::output::{Format, OutputFlags};
use crate::flags::target::TargetFlags;
use crate::live::Live;
use crate::own_responder::OwnResponder;
use crate::render::{self, Paint};
use crate::signals;

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
    /// Runs it. Results go to stdout, everything else to stderr.
    ///
    /// # Errors
    /// Flags that contradict each other, no responder of our own, or a stdout that cannot be written.
    pub(crate) fn run(
        &self,
        measure: impl FnOnce(Target, &StopFlag, &mut dyn FnMut(Progress)) -> Record,
    ) -> anyhow::Result<Exit> {
        if self.output.format == Format::Csv && !render::has_csv_form(self.command) {
            bail!("'netaware {}' has no CSV form: use --format json", self.command);
        }
        if self.output.format == Format::Udpmon && !render::has_udpmon_form(self.command) {
            bail!("'netaware {}' has no UDPmon form: use --format csv or json", self.command);
        }
        let asked = self.target.target(None)?;
        let own = if self.target.is_own() { Some(OwnResponder::start(asked.key.as_deref())?) } else { None };
        let target = match &own {
            Some(own) => self.target.target(Some(own.port()))?,
            None => asked,
        };
        if let Some(own) = own.as_ref().filter(|_| !self.output.quiet) {
            eprintln!(
                "no HOST given: measuring this host against its own responder on loopback, {}",
                own.place()
            );
        }
        let stop = StopFlag::new();
        let paint = Paint::for_stdout(self.output.paint.color);
        let mut live = Live::new(self.output, self.intervals, paint, &stop);
        for note in &self.notes {
            live.show(&Progress::Note((*note).to_owned()));
        }
        let status = live.status();
        signals::listen(&stop, move |event| status.tell(event))?;
        let mut record = measure(target, &stop, &mut |progress| live.show(&progress));
        let shown = live.finish();
        drop(own);
        record.expectations = self.output.expect.iter().map(|threshold| threshold.judge(&record)).collect();
        let printed = self.print(&record, paint, shown);
        self.keep(&record);
        printed?;
        Ok(judged(&record))
    }

    fn print(&self, record: &Record, paint: Paint, intervals_shown: bool) -> io::Result<()> {
        let failed = !measured(record);
        if failed {
            for line in render::text::unreachable_lines(record) {
                eprintln!("error: {line}");
            }
        }
        let mut out = io::stdout().lock();
        match self.output.format {
            // The lines above have said it all.
            Format::Text if failed && !has_figures(record) => {}
            Format::Text if intervals_shown => render::text::after_intervals(&mut out, record, paint)?,
            Format::Text => render::text::overview(&mut out, record, paint)?,
            format => render::record(&mut out, record, format, paint)?,
        }
        out.flush()
    }

    /// The result has been printed; that it is not kept is worth a warning, not a failure.
    fn keep(&self, record: &Record) {
        if !self.output.saves() || !has_figures(record) {
            return;
        }
        let kept = self
            .output
            .store
            .as_ref()
            .map_or_else(Store::open_default, Store::open)
            .map_err(anyhow::Error::from)
            .and_then(|store| Ok(store.save(record)?));
        match kept {
            Ok(()) if self.output.format == Format::Text => {
                // A reader who has gone has read enough.
                let id: String = record.id.hyphenated().to_string().chars().take(18).collect();
                let _ = writeln!(io::stdout(), "\nsaved as {id}: netaware results show {id}");
            }
            Ok(()) => {}
            Err(error) => {
                eprintln!("warning: the result was printed, but not saved: {}", exit::sentence(&error));
            }
        }
    }
}

/// At least one IP version was measured to its end.
fn measured(record: &Record) -> bool {
    record.versions.iter().any(|version| version.unreachable.is_none())
}

fn has_figures(record: &Record) -> bool {
    let has_delay = |v: &VersionResult| v.latency.is_some() || v.latency_tcp.is_some();
    record.versions.iter().any(|v| has_delay(v) || !v.tcp.is_empty() || !v.udp.is_empty())
}

fn judged(record: &Record) -> Exit {
    if !measured(record) || !has_figures(record) {
        Exit::NotMeasured
    } else if record.expectations.iter().all(|expectation| expectation.held) {
        Exit::Done
    } else {
        Exit::ThresholdFailed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixture;

    #[test]
    fn exit_codes_follow_the_record() {
        assert_eq!(judged(&fixture::test()), Exit::Done);
        assert_eq!(judged(&fixture::half()), Exit::ThresholdFailed);
        assert_eq!(judged(&fixture::nothing()), Exit::NotMeasured);
        let mut one_missing = fixture::half();
        one_missing.expectations.clear();
        assert_eq!(judged(&one_missing), Exit::Done);
    }

    #[test]
    fn a_measurement_that_broke_over_every_version_is_none() {
        let mut broken = fixture::half();
        broken.versions[0].unreachable = broken.versions[1].unreachable.clone();
        assert!(has_figures(&broken));
        assert_eq!(judged(&broken), Exit::NotMeasured);
    }
}
