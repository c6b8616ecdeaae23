//! One line per IP version, direction and number of streams, per transfer of a matrix, or per hop,
//! for spreadsheets and scripts: RFC 4180, a dot in numbers, times as ISO 8601. All values in base
//! units, named in the heading; an empty field is a figure that was not measured.

mod hops;
mod host;
mod matrix;
mod owd;
mod path_rates;
mod reach;

use std::collections::BTreeMap;
use std::io::{self, Write};

use netaware_record::{
    DelayTail, LatencyResult, Outcome, Record, Rfc6349, TcpEnd, TcpResult, UdpResult, VersionResult,
    is_printable,
};
use netaware_units::{ClockSource, Span};

use crate::series;

use hops::HOP;
use owd::OWD;
use path_rates::PATH_RATE;
use reach::REACH;

/// Whether records of this command have a CSV form: `test` mixes figures that fit no one table.
pub(crate) fn has_form(command: &str) -> bool {
    const WITH: [&str; 10] =
        ["tcp", "udp", "latency", "matrix", "capacity", "available", "hops", "reach", "owd", "host"];
    WITH.contains(&command)
}

/// A named column: its field of one result.
type Column<T> = (&'static str, fn(&T) -> String);

pub(super) fn record(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    writeln!(out, "{}", heading(&record.command, None))?;
    out.write_all(rows(record, None).as_bytes())
}

/// Columns for the options that a series scans, in their smallest units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScanColumns(Vec<(String, &'static str)>);

impl ScanColumns {
    /// Named after the options and the units of a point's values: "scan_spacing_ns".
    pub(crate) fn of_point(point: &BTreeMap<String, String>) -> Self {
        let column = |(name, value): (&String, &String)| {
            (name.clone(), series::base_value(value).map_or("", |(_, ending)| ending))
        };
        Self(point.iter().map(column).collect())
    }

    /// Of a record's point; none for a record without a series.
    pub(crate) fn of_record(record: &Record) -> Self {
        record.series.as_ref().map_or(Self(Vec::new()), |series| Self::of_point(&series.point))
    }

    fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, ending)| format!("scan_{}{ending}", name.replace('-', "_")))
    }

    /// A value in another unit than its column stays as it was typed.
    fn fields(&self, record: &Record) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, ending)| {
            let value = record.series.as_ref().and_then(|series| series.point.get(name));
            let value = value.map_or("", String::as_str);
            match series::base_value(value) {
                Some((base, of)) if of == *ending => base.to_string(),
                _ => value.to_owned(),
            }
        })
    }
}

/// The names of what every row begins with.
const HEAD: [&str; 5] = ["id", "started_at", "command", "host", "label"];

/// Whether the first line of a file is a heading of any command.
pub(crate) fn is_heading(first_line: &str) -> bool {
    first_line.starts_with(&HEAD.join(","))
}

/// The names of the columns, without the end of the line; with `scan` those of a series too.
pub(crate) fn heading(command: &str, scan: Option<&ScanColumns>) -> String {
    let mut names: Vec<String> = HEAD.map(str::to_owned).to_vec();
    if let Some(scan) = scan {
        names.extend(["series", "index"].map(str::to_owned));
        names.extend(scan.names());
    }
    if command == host::COMMAND {
        names.extend(host::names().into_iter().map(str::to_owned));
        return line(&names);
    }
    names.push("version".to_owned());
    names.extend(all_names(command).into_iter().map(str::to_owned));
    line(&names)
}

/// One line per result. Of a series each version asked for has at least one: without figures if it
/// has none.
pub(crate) fn rows(record: &Record, scan: Option<&ScanColumns>) -> String {
    let mut lines = String::new();
    for figures in record.ability.iter().flat_map(|ability| host::fields(ability)) {
        let fields: Vec<String> = head(record).into_iter().chain(figures).collect();
        lines.push_str(&line(&fields));
        lines.push('\n');
    }
    for version in &record.versions {
        let mut results = figure_fields(&record.command, version);
        if results.is_empty() && scan.is_some() {
            let empty = |name: &str| if name == "outcome" { outcome(record.outcome) } else { String::new() };
            results.push(all_names(&record.command).into_iter().map(empty).collect());
        } else if !has_outcome(&record.command) {
            let outcome = outcome(outcome_of(record, version));
            for fields in &mut results {
                fields.push(outcome.clone());
            }
        }
        for result in results {
            let mut fields = head(record).to_vec();
            if let Some(scan) = scan {
                fields.push(record.series.as_ref().map(|series| series.id.to_string()).unwrap_or_default());
                fields.push(optional(record.series.as_ref().map(|series| series.index)));
                fields.extend(scan.fields(record));
            }
            fields.push(version.version.name().to_owned());
            fields.extend(result);
            lines.push_str(&line(&fields));
            lines.push('\n');
        }
    }
    lines
}

/// What every row begins with.
fn head(record: &Record) -> [String; 5] {
    [
        record.id.to_string(),
        record.started_at_utc.clone(),
        record.command.clone(),
        record.request.host.clone(),
        record.label.clone().unwrap_or_default(),
    ]
}

/// The names of a row's figures, and of how it ended.
fn all_names(command: &str) -> Vec<&'static str> {
    let mut names = figure_names(command);
    if !has_outcome(command) {
        names.push("outcome");
    }
    names
}

/// Whether each result of a command has an outcome of its own.
fn has_outcome(command: &str) -> bool {
    figure_names(command).contains(&"outcome")
}

/// How the measurement of a version ended, for commands whose results have no outcome of their own.
/// A measurement has failed as a whole only where no version has what was asked for.
fn outcome_of(record: &Record, version: &VersionResult) -> Outcome {
    let is_broken = version.unreachable.is_some() || !version.failed_phases.is_empty();
    if is_broken { Outcome::Failed } else { record.outcome }
}

fn figure_names(command: &str) -> Vec<&'static str> {
    match command {
        "tcp" => names(TCP),
        "udp" => names(UDP),
        "matrix" => matrix::names(),
        "capacity" | "available" => names(PATH_RATE),
        "hops" => names(HOP),
        "reach" => names(REACH),
        "owd" => names(OWD),
        _ => names(LATENCY),
    }
}

fn names<T>(columns: &[Column<T>]) -> Vec<&'static str> {
    columns.iter().map(|(name, _)| *name).collect()
}

/// The fields of each result of a version.
fn figure_fields(command: &str, version: &VersionResult) -> Vec<Vec<String>> {
    match command {
        "tcp" => version.tcp.iter().map(|result| fields(TCP, result)).collect(),
        "matrix" => matrix::fields(version),
        "capacity" | "available" => {
            version.path_rates.iter().map(|result| fields(PATH_RATE, result)).collect()
        }
        "hops" => version.hops.iter().flat_map(|it| &it.hops).map(|hop| fields(HOP, hop)).collect(),
        "reach" => version.reach_probes.iter().map(|result| fields(REACH, result)).collect(),
        "owd" => version.owd.iter().flat_map(owd::ways).map(|way| fields(OWD, &way)).collect(),
        "udp" => version.udp.iter().map(|result| fields(UDP, result)).collect(),
        _ => {
            version.latency.iter().chain(&version.latency_tcp).map(|result| fields(LATENCY, result)).collect()
        }
    }
}

fn fields<T>(columns: &[Column<T>], result: &T) -> Vec<String> {
    columns.iter().map(|(_, field)| field(result)).collect()
}

fn line(fields: &[String]) -> String {
    fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",")
}

/// A cell (RFC 4180 §2). Text that came from elsewhere becomes no formula of a spreadsheet: an
/// apostrophe stands before one that begins as a formula does (OWASP, CSV injection). Numbers stay
/// as they are. Of what is not printable only tabs and ends of lines are kept.
pub(crate) fn quoted(field: &str) -> String {
    let guard = if may_be_formula(field) { "'" } else { "" };
    let kept = |c: char| if is_printable(c) || BLANKS.contains(&c) { c } else { char::REPLACEMENT_CHARACTER };
    let field: String = guard.chars().chain(field.chars().map(kept)).collect();
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

fn may_be_formula(field: &str) -> bool {
    // Some programs leave blanks at the beginning out.
    let is_negative_number = field.starts_with('-') && field.parse::<f64>().is_ok();
    !is_negative_number && (field.starts_with(BLANKS) || field.trim_start().starts_with(BEGIN_FORMULAS))
}

/// A spreadsheet may take what follows one of them for the beginning of a cell.
const BLANKS: [char; 3] = ['\t', '\r', '\n'];
/// The last four have the full width of East Asian text, which some programs take for the same.
const BEGIN_FORMULAS: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

fn outcome(outcome: Outcome) -> String {
    let word = match outcome {
        Outcome::Complete => "complete",
        Outcome::Interrupted => "interrupted",
        Outcome::Failed => "failed",
    };
    word.to_owned()
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn clock(clock: ClockSource) -> String {
    clock.name().to_owned()
}

const TCP: &[Column<TcpResult>] = &[
    ("direction", |r| r.pedigree.direction.name().into()),
    ("streams", |r| r.streams.to_string()),
    ("congestion", |r| r.congestion.clone()),
    ("goodput_bps", |r| optional(r.goodput.map(|rate| rate.0))),
    ("goodput_lo_bps", |r| optional(r.goodput_interval.map(|i| i.lo.round()))),
    ("goodput_hi_bps", |r| optional(r.goodput_interval.map(|i| i.hi.round()))),
    ("bytes", |r| optional(r.bytes.map(|bytes| bytes.0))),
    ("measured_ns", |r| r.measured.0.to_string()),
    ("warm_up_ns", |r| optional(r.warm_up.as_ref().map(|it| it.omitted.0))),
    ("retransmits", |r| optional(r.retransmits)),
    ("rtt_ns", |r| optional(r.rtt.map(|rtt| rtt.0))),
    ("min_rtt_ns", |r| optional(r.min_rtt.map(|rtt| rtt.0))),
    ("cwnd_bytes", |r| optional(r.cwnd.map(|cwnd| cwnd.0))),
    ("block_bytes", |r| optional(r.blocks.map(|blocks| blocks.length.0))),
    ("block_spacing_ns", |r| optional(r.blocks.and_then(|blocks| blocks.spacing).map(|spacing| spacing.0))),
    ("blocks", |r| optional(r.blocks.map(|blocks| blocks.written))),
    ("block_ns", |r| optional(r.blocks.and_then(|blocks| blocks.each_ns).map(|ns| format!("{ns:.1}")))),
    ("given_ns", |r| optional(r.times.and_then(|times| times.given).map(|span| span.0))),
    ("acknowledged_ns", |r| optional(r.times.and_then(|times| times.acknowledged).map(|span| span.0))),
    ("received_ns", |r| optional(r.times.and_then(|times| times.received).map(|span| span.0))),
    ("writes", |r| optional(r.sender.as_ref().and_then(calls))),
    ("reads", |r| optional(r.receiver.as_ref().and_then(calls))),
    ("window_asked_bytes", |r| optional(r.window_asked.map(|bytes| bytes.0))),
    ("fairness", |r| optional(r.fairness.map(|index| format!("{index:.4}")))),
    ("transfer_time_ratio", |r| rfc6349(r, |f| f.transfer_time_ratio)),
    ("tcp_efficiency", |r| rfc6349(r, |f| f.efficiency)),
    ("buffer_delay", |r| rfc6349(r, |f| f.buffer_delay)),
    ("limited_by", |r| r.limit.name().into()),
    ("outcome", |r| outcome(r.outcome)),
];

/// System calls that moved data, of the last round; `None` of an end that told of no stream.
fn calls(end: &TcpEnd) -> Option<u64> {
    end.streams.iter().map(|stream| stream.calls).reduce(u64::saturating_add)
}

fn rfc6349(result: &TcpResult, of: impl Fn(&Rfc6349) -> Option<f64>) -> String {
    optional(result.rfc6349.as_ref().and_then(of).map(|figure| format!("{figure:.6}")))
}

const UDP: &[Column<UdpResult>] = &[
    ("direction", |r| r.pedigree.direction.name().into()),
    ("payload_bytes", |r| r.payload.0.to_string()),
    ("planned_bps", |r| optional(r.planned.map(|rate| rate.0))),
    ("sent_bps", |r| optional(r.sent_rate.map(|rate| rate.0))),
    ("goodput_bps", |r| optional(r.goodput.map(|rate| rate.0))),
    ("wire_bps", |r| optional(r.wire.and_then(|wire| wire.received).map(|rate| rate.0))),
    ("packets_per_second", |r| optional(r.packets_per_second.map(|rate| format!("{rate:.1}")))),
    ("sent", |r| optional(Some(r.sent).filter(|sent| r.sender.is_some() || *sent > 0))),
    ("not_sent", |r| optional(r.not_sent)),
    ("received", |r| optional(r.receiver.as_ref().map(|_| r.received))),
    ("lost", |r| optional(Some(r.loss.lost).filter(|_| r.sent > r.loss.unknown))),
    ("lost_host", |r| optional(r.loss.host)),
    ("lost_network", |r| optional(r.loss.network)),
    ("unknown", |r| r.loss.unknown.to_string()),
    ("duplicates", |r| optional(r.duplicates)),
    ("reordered", |r| optional(r.reordered)),
    ("jitter_ns", |r| optional(r.receiver.as_ref().and_then(|end| end.jitter).map(|span| span.0))),
    ("gap_planned_ns", |r| gap(r, |g| optional(g.planned.map(|span| span.0)))),
    ("gap_mean_ns", |r| gap(r, |g| format!("{:.3}", g.mean_ns))),
    ("gap_sd_ns", |r| gap(r, |g| optional(g.sd_ns.map(|sd| format!("{sd:.3}"))))),
    ("gap_p50_ns", |r| gap(r, |g| g.p50.0.to_string())),
    ("gap_p99_ns", |r| gap(r, |g| g.p99.0.to_string())),
    ("gap_max_ns", |r| gap(r, |g| g.max.0.to_string())),
    ("gap_skew", |r| moment(r, |m| optional(m.skew.map(|skew| format!("{skew:.6}"))))),
    ("gap_kurtosis", |r| moment(r, |m| optional(m.kurtosis.map(|kurtosis| format!("{kurtosis:.6}"))))),
    ("limited_by", |r| r.limit.name().into()),
    ("clock", |r| clock(r.pedigree.clock)),
    ("outcome", |r| outcome(r.outcome)),
];

fn moment(result: &UdpResult, of: impl Fn(&netaware_record::HistogramMoments) -> String) -> String {
    let moments = result.receiver.as_ref().and_then(|end| end.bins.as_ref()?.moments.as_ref());
    moments.map_or_else(String::new, of)
}

fn gap(result: &UdpResult, of: impl Fn(&netaware_record::GapSummary) -> String) -> String {
    result.receiver.as_ref().and_then(|end| end.gaps.as_ref()).map_or_else(String::new, of)
}

const LATENCY: &[Column<LatencyResult>] = &[
    ("payload_bytes", |r| r.payload.0.to_string()),
    ("spacing_ns", |r| r.spacing.0.to_string()),
    ("sent", |r| r.sent.to_string()),
    ("not_sent", |r| r.not_sent.to_string()),
    ("received", |r| r.received.to_string()),
    ("lost", |r| optional(Some(r.lost).filter(|_| !r.hides_losses()))),
    ("late", |r| r.late.to_string()),
    ("reordered", |r| r.reordered.to_string()),
    ("duplicates", |r| r.duplicates.to_string()),
    ("rtt_min_ns", |r| rtt(r, |d| d.min)),
    ("rtt_p50_ns", |r| rtt(r, |d| d.p50)),
    ("rtt_p95_ns", |r| rtt(r, |d| d.p95)),
    ("rtt_p99_ns", |r| rtt(r, |d| d.p99)),
    ("rtt_p999_ns", |r| rtt(r, |d| d.p999)),
    ("rtt_max_ns", |r| rtt(r, |d| d.max)),
    ("rtt_mean_ns", |r| rtt(r, |d| d.mean)),
    ("rtt_sd_ns", |r| optional(r.rtt.and_then(|d| d.sd).map(|sd| sd.0))),
    ("application_p50_ns", |r| optional(r.rtt_application.map(|d| d.p50.0))),
    ("application_p99_ns", |r| optional(r.rtt_application.map(|d| d.p99.0))),
    ("ipdv_p95_ns", |r| optional(r.ipdv.map(|d| d.p95.0))),
    ("pdv_p95_ns", |r| optional(r.pdv.map(|d| d.p95.0))),
    ("jitter_ns", |r| optional(r.jitter.map(|span| span.0))),
    ("clock", |r| clock(r.pedigree.clock)),
    ("method", |r| r.pedigree.method.clone()),
    ("response_bytes", |r| r.response_payload().0.to_string()),
    ("depth", |r| optional(r.depth)),
    ("bad", |r| r.bad.to_string()),
    ("rtt_p90_ns", |r| tail(r, |t| t.p90)),
    ("rtt_p9999_ns", |r| tail(r, |t| t.p9999)),
    ("rtt_p99999_ns", |r| tail(r, |t| t.p99999)),
    ("from_due_p50_ns", |r| optional(r.rtt_from_due.map(|d| d.p50.0))),
    ("from_due_p99_ns", |r| optional(r.rtt_from_due.map(|d| d.p99.0))),
    ("from_due_p999_ns", |r| optional(r.rtt_from_due.map(|d| d.p999.0))),
    ("from_due_max_ns", |r| optional(r.rtt_from_due.map(|d| d.max.0))),
    ("total_ns", |r| optional(r.total.map(|t| t.time.0))),
    ("per_exchange_ns", |r| optional(r.total.map(|t| format!("{:.1}", t.per_exchange_ns)))),
    ("response_bps", |r| optional(r.total.map(|t| t.response_rate.0))),
    ("unknown", |r| r.unknown.to_string()),
];

fn tail(result: &LatencyResult, of: impl Fn(&DelayTail) -> Option<Span>) -> String {
    optional(result.tail.as_ref().and_then(of).map(|span| span.0))
}

fn rtt(result: &LatencyResult, of: impl Fn(&netaware_record::DelaySummary) -> Span) -> String {
    optional(result.rtt.as_ref().map(|d| of(d).0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixture;

    #[test]
    fn a_point_that_failed_has_a_row_per_version_without_figures() {
        let failed = Record { outcome: Outcome::Failed, command: "udp".into(), ..fixture::nothing() };
        assert_eq!(rows(&failed, None), "");
        let columns = ScanColumns::of_record(&failed);
        let rows = rows(&failed, Some(&columns));
        let lines: Vec<&str> = rows.lines().collect();
        assert_eq!(lines.len(), 2);
        let fields = |text: &str| text.split(',').count();
        for line in lines {
            assert_eq!(fields(line), fields(&heading("udp", Some(&columns))));
            assert!(line.ends_with(",failed"), "{line}");
        }
    }

    /// No answer came within `-W 1ns`: the row said "complete", the record and the exit code did
    /// not.
    #[test]
    fn a_row_has_not_ended_better_than_its_record() {
        let complete = VersionResult::new(netaware_record::IpVersion::V4);
        let of = |outcome| outcome_of(&Record { outcome, ..fixture::nothing() }, &complete);
        for outcome in [Outcome::Complete, Outcome::Interrupted, Outcome::Failed] {
            assert_eq!(of(outcome), outcome);
        }
        let broken = VersionResult {
            failed_phases: vec![netaware_record::FailedPhase { stage: "x".into(), reason: "y".into() }],
            ..complete
        };
        assert_eq!(outcome_of(&fixture::nothing(), &broken), Outcome::Failed);
    }

    fn csv(of: &Record) -> String {
        let mut out = Vec::new();
        record(&mut out, of).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tcp_udp_and_latency_have_a_table_each() {
        insta::assert_snapshot!("tcp_csv", csv(&fixture::tcp()));
        insta::assert_snapshot!("udp_csv", csv(&fixture::udp()));
        insta::assert_snapshot!("latency_csv", csv(&fixture::latency()));
        insta::assert_snapshot!("host_csv", csv(&fixture::host_ability()));
        insta::assert_snapshot!("capacity_csv", csv(&fixture::capacity()));
        insta::assert_snapshot!("available_csv", csv(&fixture::available()));
        insta::assert_snapshot!("hops_csv", csv(&fixture::hops()));
        insta::assert_snapshot!("reach_csv", csv(&fixture::reach()));
        insta::assert_snapshot!("owd_csv", csv(&fixture::owd()));
    }

    #[test]
    fn every_line_has_as_many_fields_as_the_header() {
        for record in [
            fixture::tcp(),
            fixture::udp(),
            fixture::latency(),
            fixture::latency_both(),
            fixture::matrix(),
            fixture::host_ability(),
            fixture::capacity(),
            fixture::available(),
            fixture::hops(),
            fixture::reach(),
            fixture::owd(),
        ] {
            let text = csv(&record);
            let fields: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
            assert!(fields.len() > 1 && fields.iter().all(|n| *n == fields[0]), "{text}");
        }
    }

    #[test]
    fn texts_from_elsewhere_neither_break_the_table_nor_run_as_formulas() {
        let rows = [
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-5", "-5"),
            ("-5.25e3", "-5.25e3"),
            ("-a", "'-a"),
            ("\t=1+1", "'\t=1+1"),
            ("\r=1+1", "\"'\r=1+1\""),
            ("\n=1+1", "\"'\n=1+1\""),
            (" =1+1", "' =1+1"),
            ("\u{ff1d}1+1", "'\u{ff1d}1+1"),
            ("a=b", "a=b"),
            ("a\u{1b}[2J\u{202e}", "a\u{fffd}[2J\u{fffd}"),
        ];
        for (field, want) in rows {
            assert_eq!(quoted(field), want);
        }
    }
}
