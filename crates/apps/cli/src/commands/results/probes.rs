//! `netaware results probes`: how the probes of a fleet, their captures and their clocks were.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::Result;
use clap::Args;
use jiff::tz::TimeZone;
use netaware_record::passive::InterfaceCapture;
use netaware_record::printable;
use netaware_store::fleet::ProbeSummary;

use super::fleet::{Fleet, TableFormat, cell, ms};
use super::local;
use crate::exit::Exit;
use crate::sink;

const AFTER: &str = "\
'lost': packets that a probe should have seen and did not, all causes; with 0 every figure of the time is complete. 'missing': \
reports that are on their way, were given up, or were lost with a probe's disk. 'bound': no further from true time than this, in ms, by \
the probe's own word.";

/// How the probes of a fleet were
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(super) struct Probes {
    /// text, json or csv
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: TableFormat,
    #[command(flatten)]
    fleet: Fleet,
}

impl Probes {
    pub(super) fn run(&self) -> Result<Exit> {
        let probes = self.fleet.open()?.probes(&self.fleet.period()?)?;
        let mut out = sink::stdout();
        match self.format {
            TableFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&probes)?)?,
            TableFormat::Csv => write!(out, "{}", csv(&probes))?,
            TableFormat::Text if probes.is_empty() => eprintln!("no reports of probes in this time"),
            TableFormat::Text => write!(out, "{}", text(&probes, &TimeZone::system()))?,
        }
        Ok(Exit::Done)
    }
}

fn text(probes: &[ProbeSummary], zone: &TimeZone) -> String {
    let line = |cells: [&str; 7]| {
        let [probe, last, reports, missing, lost, bound, clock] = cells;
        format!("{probe:<16} {last:<19} {reports:>7} {missing:>7} {lost:>7} {bound:>7} {clock}\n")
    };
    let mut out = line(["probe", "last report", "reports", "missing", "lost", "bound", "clock"]);
    for probe in probes {
        let clock = &probe.clock;
        let source = if clock.source.is_empty() { "unknown" } else { &clock.source };
        let unsure = if clock.synchronised { "" } else { " (!)" };
        let last = local(probe.period.until, zone);
        let counts = [probe.reports, probe.missing, probe.lost].map(|count| count.to_string());
        let [reports, missing, lost] = counts.each_ref().map(String::as_str);
        let source = format!("{}{unsure}", printable(source));
        out.push_str(&line([
            &printable(&probe.probe),
            &last,
            reports,
            missing,
            lost,
            &ms(clock.bound),
            &source,
        ]));
        out.extend(probe.captures.iter().filter_map(causes));
    }
    if probes.iter().any(|probe| !probe.clock.synchronised) {
        out.push_str("  (!) the clock did not say that it is synchronised\n");
    }
    out
}

/// Why an interface's figures of the last period are not complete.
fn causes(capture: &InterfaceCapture) -> Option<String> {
    let health = &capture.health;
    let counts = [
        ("lost in the ring", health.lost_ring),
        ("lost in the kernel", health.lost_kernel),
        ("lost by the card", health.lost_nic.unwrap_or(0)),
        ("merged by offloads", health.merged),
    ];
    let mut words: Vec<String> = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(cause, count)| format!("{count} {cause}"))
        .collect();
    if health.doubtful && health.lost() == 0 {
        words.push("packets that a neighbouring period counts as lost".to_owned());
    }
    let interface = printable(&capture.interface);
    (!words.is_empty()).then(|| format!("  {interface}, last report: {}\n", words.join(", ")))
}

fn csv(probes: &[ProbeSummary]) -> String {
    let mut out =
        "probe,incarnation,sequence,last_ns,reports,missing,seen,lost,clock,synchronised,bound_ns\n"
            .to_owned();
    for probe in probes {
        let counts =
            [probe.reports, probe.missing, probe.seen, probe.lost].map(|count| count.to_string()).join(",");
        let bound = probe.clock.bound.map_or(String::new(), |bound| bound.0.to_string());
        let names = format!("{},{},{}", cell(&probe.probe), cell(&probe.incarnation), probe.sequence);
        let clock = format!("{},{},{bound}", cell(&probe.clock.source), probe.clock.synchronised);
        let _ = writeln!(out, "{names},{},{counts},{clock}", probe.period.until.0);
    }
    out
}

#[cfg(test)]
mod tests {
    use netaware_record::passive::{CaptureHealth, ClockState, Period};
    use netaware_units::{Span, Wall};

    use super::*;

    #[test]
    fn a_clock_that_is_not_synchronised_is_marked_and_losses_have_their_causes() {
        let capture = |(interface, lost_ring): (&str, u64)| InterfaceCapture {
            interface: interface.to_owned(),
            health: CaptureHealth { lost_ring, merged: lost_ring / 3, ..CaptureHealth::default() },
        };
        let probe = ProbeSummary {
            probe: "berlin".into(),
            incarnation: "ab".into(),
            reports: 8640,
            missing: 2,
            seen: 5_000_000,
            lost: 17,
            sequence: 9000,
            period: Period { from: Wall(0), until: Wall(1_795_232_087_123_456_789) },
            captures: [("eth0", 12), ("eth1", 0)].map(capture).into(),
            clock: ClockState {
                source: "chrony".into(),
                bound: Some(Span(350_000)),
                ..ClockState::default()
            },
        };
        let shown = text(std::slice::from_ref(&probe), &TimeZone::UTC);
        assert_eq!(
            shown,
            "probe            last report         reports missing    lost   bound clock\n\
             berlin           2026-11-21 03:34:47    8640       2      17   0.350 chrony (!)\n  \
             eth0, last report: 12 lost in the ring, 4 merged by offloads\n  \
             (!) the clock did not say that it is synchronised\n"
        );
        let table = csv(&[probe]);
        let counts: Vec<usize> = table.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(counts, [11, 11]);
    }
}
