//! `--export`: what a probe without a controller finds, as IPFIX for anybody's collector; and where
//! else its reports go.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use anyhow::{Context, bail};
use netaware_io::stop::StopFlag;
use netaware_ipfix::{Exporter, Over};
use netaware_observer::export::{Export, WhenSlow};
use netaware_observer::link::{Judge, Trust};
use netaware_observer::watch::report::Outlet;
use netaware_record::passive::{PacketSighting, ProbeReport};
use netaware_wire::lmap::{Task, What};
use rustls::ClientConfig;

use super::Probe;
use super::print::{Form, Printer};
use crate::sink::UnlockedStdout;

/// Observation domain of everything that a probe exports: it is one observation point for all who
/// read it.
const DOMAIN: u32 = 1;

/// What makes packets one flow for exporters of the field, where --by says nothing else.
const FLOW: [&str; 6] = ["version", "source", "destination", "protocol", "source_port", "destination_port"];

/// Printed, exported, or both.
pub(crate) struct Outlets {
    printer: Option<Printer<UnlockedStdout>>,
    export: Option<Export>,
}

impl Outlet for Outlets {
    fn sightings(&mut self, task: &str, interface: &str, sightings: &[PacketSighting]) {
        if let Some(export) = &mut self.export {
            export.sightings(task, interface, sightings);
        }
    }

    fn tasks(&mut self, tasks: &BTreeMap<String, Task>) {
        if let Some(export) = &mut self.export {
            export.tasks(tasks);
        }
    }

    fn report(&mut self, report: ProbeReport) {
        match (&mut self.printer, &mut self.export) {
            (Some(printer), Some(export)) => {
                printer.report(report.clone());
                export.report(report);
            }
            (Some(printer), None) => printer.report(report),
            (None, Some(export)) => export.report(report),
            (None, None) => {}
        }
    }
}

impl Outlets {
    /// Sends what waits. How many batches and datagrams were lost to any collector.
    ///
    /// # Errors
    /// What is printed could not be written, and not because its reader had gone.
    pub(crate) fn end(self) -> anyhow::Result<u64> {
        let exported = self.export.map(Export::finish).unwrap_or_default();
        for one in &exported {
            let (target, counts) = (&one.target, one.counts);
            let (messages, bytes, skipped) = (counts.messages, counts.bytes, counts.rows_skipped);
            tracing::info!(target, messages, bytes, skipped, "exported");
            if one.lost() > 0 {
                let (crowded, broken) = (one.crowded, counts.batches_lost);
                let refused = counts.datagrams_refused;
                tracing::warn!(target, crowded, broken, refused, "not all of it could be sent");
            }
        }
        match self.printer.and_then(|printer| printer.failed) {
            // A reader who has gone has read enough.
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("stdout"),
            _ => Ok(exported.iter().map(netaware_observer::export::Exported::lost).sum()),
        }
    }
}

impl Probe {
    /// Where reports go; `stop` is raised when they go nowhere any more. Files are read here, while
    /// privileges are still there.
    pub(super) fn outlet(&self, stop: &StopFlag) -> anyhow::Result<Outlets> {
        let form = self.format.or(self.export.is_empty().then(Form::default));
        let printer = form.map(|form| Printer {
            form,
            top: self.tasks.top as usize,
            out: UnlockedStdout,
            reports: 0,
            failed: None,
            stop: self.export.is_empty().then(|| stop.clone()),
        });
        let slow = if self.read.is_some() { WhenSlow::Wait } else { WhenSlow::Lose };
        let export = if self.export.is_empty() {
            None
        } else {
            Some(Export::new(self.exporters()?, slow).context("cannot start a thread")?)
        };
        Ok(Outlets { printer, export })
    }

    fn exporters(&self) -> anyhow::Result<Vec<(String, Exporter)>> {
        let encrypted = self.export.iter().any(|target| target.over == Over::Tls);
        let tls = if encrypted { Some(self.known_collectors()?) } else { None };
        if !encrypted && (self.ca.is_some() || self.fingerprint.is_some() || self.certificate.is_some()) {
            bail!("--ca, --fingerprint and --certificate are for tls://; --export names no such collector");
        }
        let exporter = |target: &netaware_ipfix::Target| {
            (target.to_string(), Exporter::new(target.clone(), tls.clone(), DOMAIN))
        };
        Ok(self.export.iter().map(exporter).collect())
    }

    /// Nobody proves a key here: the certificate is all there is to know a collector by.
    fn known_collectors(&self) -> anyhow::Result<Arc<ClientConfig>> {
        let judge = match (&self.ca, &self.fingerprint) {
            (Some(path), _) => Judge::Authority(path),
            (None, Some(text)) => Judge::Fingerprint(text),
            (None, None) => {
                bail!("say by what a collector at tls:// is known: give --ca FILE or --fingerprint HEX")
            }
        };
        let own = self.own_certificate();
        match Trust::tls(judge, own)? {
            Trust::Tls(config) => Ok(config),
            Trust::Plain => bail!("TLS was asked for and is not there"),
        }
    }

    /// Tasks of the command line; volumes that are exported are those of flows unless --by says
    /// otherwise.
    pub(super) fn tasks(&self) -> Vec<(String, Task)> {
        let mut tasks = self.tasks.tasks();
        for (_, task) in &mut tasks {
            if let What::Volume { by, .. } = &mut task.what
                && by.is_empty()
                && !self.export.is_empty()
            {
                *by = FLOW.map(str::to_owned).into();
            }
        }
        tasks
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::probe;
    use super::*;

    #[test]
    fn what_is_exported_are_flows_unless_other_keys_are_named() {
        let keys = |line: &str| match probe(line).unwrap().tasks().remove(0).1.what {
            What::Volume { by, .. } => by.join(","),
            other => panic!("{other:?}"),
        };
        assert_eq!(keys("volume"), "");
        assert_eq!(keys("--export udp://a"), FLOW.join(","));
        assert_eq!(keys("--export udp://a volume --by dscp"), "dscp");
        assert!(probe("--export udp://a").unwrap().tasks()[0].1.check().is_ok());
    }

    #[test]
    fn a_collector_over_tls_has_to_be_known_and_files_for_nothing_are_told() {
        let error = |line: &str| probe(line).unwrap().exporters().unwrap_err().to_string();
        assert!(error("--export tls://a").contains("--ca FILE or --fingerprint HEX"));
        assert!(error("--export udp://a --ca f").contains("are for tls://"));
        assert!(error("--export tls://a --ca /nonexistent/ca.pem").contains("/nonexistent/ca.pem"));
        assert!(error("--export tls://a --fingerprint 00").contains("64 hexadecimal digits"));
    }

    #[test]
    fn nothing_is_printed_beside_an_export_unless_it_is_asked_for() {
        let printer = |line: &str| probe(line).unwrap().outlet(&StopFlag::new()).unwrap().printer;
        assert!(printer("").is_some_and(|printer| printer.stop.is_some()));
        assert!(printer("--export udp://127.0.0.1").is_none());
        // Nobody reads it any more: the export goes on.
        let beside = printer("--export udp://127.0.0.1 --format ndjson");
        assert!(beside.is_some_and(|printer| printer.stop.is_none()));
    }
}
