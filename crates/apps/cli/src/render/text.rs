//! A record for people, 80 columns wide, readable without colour.
//!
//! Order: who and where, then one section per phase with IPv4 beside IPv6, then the comparison, the
//! verdict, and last whatever must be known before trusting any of it, because the end is what
//! stays on a screen.

mod bins;
mod closing;
mod comparison;
mod header;
mod hops;
mod host;
mod intervals;
mod latency;
mod limit;
mod matrix;
mod owd;
mod path;
mod path_rates;
mod pedigree;
mod reach;
mod streams;
mod tcp;
mod tcp_times;
mod udp;

use std::io::{self, Write};

use netaware_record::{Direction, PathMetric, Record, VersionResult, printable};

use super::paint::Paint;
use super::table::{Table, padded};
use super::wrap::WIDTH;

pub(crate) use closing::{failure_lines, missed_lines};

/// How much of each phase to show: the overview of `test` or `host`, or all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Overview,
    Full,
}

/// The whole record; for bulk transfers with its intervals.
pub(crate) fn record(out: &mut dyn Write, record: &Record, paint: Paint) -> io::Result<()> {
    if let Some(ability) = &record.ability {
        return host::write(out, record, ability, Detail::Full, paint);
    }
    header::write(out, record, paint)?;
    intervals::write(out, record, paint)?;
    body(out, record, paint)
}

/// The record after its interval lines have been shown live.
pub(crate) fn after_intervals(out: &mut dyn Write, record: &Record, paint: Paint) -> io::Result<()> {
    if intervals::has(record) {
        writeln!(out)?;
    }
    header::write(out, record, paint)?;
    body(out, record, paint)
}

/// The record without interval lines, for those who asked for none.
pub(crate) fn overview(out: &mut dyn Write, record: &Record, paint: Paint) -> io::Result<()> {
    if let Some(ability) = &record.ability {
        return host::write(out, record, ability, Detail::Overview, paint);
    }
    header::write(out, record, paint)?;
    body(out, record, paint)
}

/// A line of `results list`: ID, time, command, IP versions, host, and how it ended.
pub(crate) fn list_line(cells: [&str; 5], ended: &str) -> String {
    const WIDTHS: [usize; 4] = [20, 21, 9, 5];
    let mut line: String =
        cells.iter().zip(WIDTHS).map(|(cell, width)| padded(&printable(cell), width)).collect();
    let room = WIDTH - WIDTHS.iter().sum::<usize>() - ended.chars().count();
    let host: Vec<char> = printable(cells[4]).chars().collect();
    if host.len() <= room {
        line.extend(host);
    } else {
        line.extend(&host[..room - 1]);
        line.push('…');
    }
    line + ended
}

fn body(out: &mut dyn Write, record: &Record, paint: Paint) -> io::Result<()> {
    let measured: Vec<&VersionResult> = record.versions.iter().filter(|v| has_anything(v)).collect();
    let detail = if record.command == "test" { Detail::Overview } else { Detail::Full };
    if !measured.is_empty() {
        let names = measured.iter().map(|v| v.version.name().to_owned()).collect();
        let mut sheet = Sheet {
            table: Table::new(out, paint, names),
            versions: &measured,
            paint,
            detail,
            told: Vec::new(),
        };
        path::section(&mut sheet)?;
        latency::section(&mut sheet)?;
        owd::section(&mut sheet)?;
        for direction in [Direction::Forward, Direction::Reverse] {
            tcp::section(&mut sheet, direction)?;
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            udp::section(&mut sheet, direction)?;
        }
        for metric in [PathMetric::Capacity, PathMetric::Available, PathMetric::Maximum] {
            for direction in [Direction::Forward, Direction::Reverse] {
                path_rates::section(&mut sheet, metric, direction)?;
            }
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            path_rates::verdicts(&mut sheet, direction)?;
        }
        matrix::write(out, &measured, paint)?;
        hops::write(out, &measured, paint)?;
        reach::write(out, &measured, paint)?;
    }
    udp::histograms(out, record, paint)?;
    latency::histograms(out, record, paint)?;
    if let Some(found) = &record.comparison {
        comparison::write(out, found, &record.versions, paint)?;
    }
    closing::write(out, record, paint)
}

fn has_anything(v: &VersionResult) -> bool {
    let has_delay = v.latency.is_some() || v.latency_tcp.is_some();
    let has_bulk = !v.tcp.is_empty() || !v.udp.is_empty() || !v.matrix.is_empty() || !v.path_rates.is_empty();
    let has_probes = v.hops.is_some() || !v.reach_probes.is_empty() || v.owd.is_some();
    v.reach.is_some() || v.path.is_some() || has_delay || has_bulk || has_probes
}

/// The table and what fills it.
struct Sheet<'a> {
    table: Table<'a>,
    versions: &'a [&'a VersionResult],
    paint: Paint,
    detail: Detail,
    /// Pedigrees that stand above already.
    told: Vec<String>,
}

impl Sheet<'_> {
    /// One cell per version.
    fn row(&mut self, label: &str, cell: impl Fn(&VersionResult) -> Option<String>) -> io::Result<()> {
        let cells: Vec<_> = self.versions.iter().map(|v| cell(v)).collect();
        self.table.row(label, &cells)
    }

    /// A row of counts, which is shown only if one of them is above zero. In it a counted zero is
    /// 0, and a dash means that nobody counted. A cell has the count and the text to show.
    fn row_of_counts(
        &mut self,
        label: &str,
        cell: impl Fn(&VersionResult) -> Option<(u64, String)>,
    ) -> io::Result<()> {
        let cells: Vec<_> = self.versions.iter().map(|v| cell(v)).collect();
        if cells.iter().flatten().all(|(count, _)| *count == 0) {
            return Ok(());
        }
        let cells: Vec<_> = cells.into_iter().map(|cell| cell.map(|(_, text)| text)).collect();
        self.table.row(label, &cells)
    }

    /// As [`Sheet::row`], in a colour that calls for attention where `alarming`.
    fn watched_row(
        &mut self,
        label: &str,
        cell: impl Fn(&VersionResult) -> Option<String>,
        alarming: impl Fn(&VersionResult) -> bool,
    ) -> io::Result<()> {
        let cells: Vec<_> = self.versions.iter().map(|v| cell(v)).collect();
        let alarms: Vec<bool> = self.versions.iter().map(|v| alarming(v)).collect();
        let paint = self.paint;
        self.table.painted_row(label, &cells, |column, text| {
            if alarms.get(column) == Some(&true) { paint.caution(text) } else { text.to_owned() }
        })
    }

    fn is_full(&self) -> bool {
        self.detail == Detail::Full
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;
    use crate::render::fixture;

    #[test]
    fn a_zero_that_was_counted_is_no_dash_beside_a_count_of_the_other_version() {
        let mut record = fixture::latency();
        record.versions[1].latency.as_mut().unwrap().bad = 1;
        let shown = text(&record, Paint::PLAIN);
        let line =
            shown.lines().find(|line| line.contains("bad answers")).unwrap_or_else(|| panic!("{shown}"));
        let cells: Vec<&str> = line.split_whitespace().skip(2).collect();
        assert_eq!(cells, ["0", "1"], "{line}");
        record.versions[1].latency.as_mut().unwrap().bad = 0;
        assert!(!text(&record, Paint::PLAIN).contains("bad answers"));
    }

    fn text(of: &Record, paint: Paint) -> String {
        let mut out = Vec::new();
        record(&mut out, of, paint).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn shown(how: fn(&mut dyn Write, &Record, Paint) -> io::Result<()>, of: &Record) -> String {
        let mut out = Vec::new();
        how(&mut out, of, Paint::PLAIN).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_command_has_its_page() {
        insta::assert_snapshot!("test", text(&fixture::test(), Paint::PLAIN));
        insta::assert_snapshot!("test_path", text(&fixture::test_path(), Paint::PLAIN));
        insta::assert_snapshot!("capacity", text(&fixture::capacity(), Paint::PLAIN));
        insta::assert_snapshot!("available", text(&fixture::available(), Paint::PLAIN));
        insta::assert_snapshot!("available_watched", text(&fixture::followed(), Paint::PLAIN));
        insta::assert_snapshot!("tcp", text(&fixture::tcp(), Paint::PLAIN));
        insta::assert_snapshot!("tcp_spaced", text(&fixture::spaced(), Paint::PLAIN));
        insta::assert_snapshot!("udp", text(&fixture::udp(), Paint::PLAIN));
        insta::assert_snapshot!("latency", text(&fixture::latency(), Paint::PLAIN));
        insta::assert_snapshot!("matrix", text(&fixture::matrix(), Paint::PLAIN));
        insta::assert_snapshot!("hops", text(&fixture::hops(), Paint::PLAIN));
        insta::assert_snapshot!("reach", text(&fixture::reach(), Paint::PLAIN));
        insta::assert_snapshot!("owd", text(&fixture::owd(), Paint::PLAIN));
        insta::assert_snapshot!("latency_both", text(&fixture::latency_both(), Paint::PLAIN));
        insta::assert_snapshot!("host", shown(overview, &fixture::host_ability()));
        insta::assert_snapshot!("host_verbose", text(&fixture::host_ability(), Paint::PLAIN));
        insta::assert_snapshot!("one_version_unreachable", text(&fixture::half(), Paint::PLAIN));
    }

    #[test]
    fn no_line_is_wider_than_80_columns() {
        for record in fixture::all() {
            for line in text(&record, Paint::PLAIN).lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", line.chars().count());
                assert_eq!(line.trim_end(), line);
            }
        }
    }

    /// "lost under load 4.31 %" did not say of how many.
    #[test]
    fn what_was_lost_under_load_has_its_counts() {
        let mut record = fixture::tcp();
        for tcp in record.versions.iter_mut().flat_map(|version| &mut version.tcp) {
            if let Some(loaded) = &mut tcp.latency_under_load {
                (loaded.latency.lost, loaded.latency.received) = (20, 444);
            }
        }
        let shown = text(&record, Paint::PLAIN);
        let line =
            shown.lines().find(|line| line.contains("lost under load")).unwrap_or_else(|| panic!("{shown}"));
        assert!(line.contains("4.31 % (20 of 464)"), "{line}");
    }

    #[test]
    fn a_test_against_ourselves_says_so() {
        let mut own = fixture::test();
        own.request.host.clear();
        own.request.own_responder = true;
        let shown = text(&own, Paint::PLAIN);
        assert!(shown.starts_with("netaware test loopback "), "{shown}");
        assert!(shown.contains("measured against netaware's own responder on this host"));
    }

    #[test]
    fn a_figure_that_nobody_measured_is_unknown_and_not_zero() {
        let mut cut = fixture::tcp();
        cut.versions.truncate(1);
        cut.versions[0].tcp.truncate(1);
        let tcp = &mut cut.versions[0].tcp[0];
        (tcp.sender, tcp.sender_ticks, tcp.rfc6349, tcp.times) = (None, Vec::new(), None, None);
        (tcp.retransmits, tcp.rtt, tcp.min_rtt, tcp.cwnd) = (None, None, None, None);
        (tcp.outcome, tcp.planned) = (netaware_record::Outcome::Failed, Some(Span::from_secs(20)));
        tcp.ended_early = Some("nothing heard for 4 s".into());
        let shown = text(&cut, Paint::PLAIN);
        for zero in [" 0 ns", " 0.00 ", " 0 bit/s", " 0 B"] {
            assert!(!shown.contains(zero), "{zero} in {shown}");
        }
        for line in [
            "resent                  unknown",
            "cwnd                    unknown",
            "(partial)",
            "of 20.0 s counted",
        ] {
            assert!(shown.contains(line), "{line} is missing in {shown}");
        }

        let tcp = &mut cut.versions[0].tcp[0];
        (tcp.receiver, tcp.bytes, tcp.goodput, tcp.goodput_interval) = (None, None, None, None);
        (tcp.warm_up, tcp.measured) = (None, Span::ZERO);
        let mut csv = Vec::new();
        super::super::csv::record(&mut csv, &cut).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let (names, fields) = csv.split_once('\n').unwrap();
        let empty = [
            "goodput_bps",
            "bytes",
            "warm_up_ns",
            "retransmits",
            "rtt_ns",
            "min_rtt_ns",
            "cwnd_bytes",
            "writes",
            "reads",
        ];
        for (name, field) in names.split(',').zip(fields.split(',')).filter(|(name, _)| empty.contains(name))
        {
            assert_eq!(field, "", "{name} in {csv}");
        }
    }

    #[test]
    fn the_end_of_a_stream_that_never_reported_is_unknown_and_not_zero() {
        let mut cut = fixture::udp();
        cut.versions.truncate(1);
        cut.versions[0].udp.truncate(1);
        let udp = &mut cut.versions[0].udp[0];
        (udp.receiver, udp.goodput, udp.packets_per_second) = (None, None, None);
        (udp.duplicates, udp.reordered, udp.exchanges.fetching) = (None, None, None);
        udp.wire = udp.wire.map(|wire| netaware_record::WireRates { received: None, ..wire });
        (udp.received, udp.loss) = (0, netaware_record::LossSplit::default());
        (udp.loss.unknown, udp.health) = (udp.sent, netaware_record::Health::default());
        let shown = text(&cut, Paint::PLAIN);
        for zero in [" 0 ns", " 0.00 ", " 0 bit/s", " 0 B", " 0 / 0", " 0 %"] {
            assert!(!shown.contains(zero), "{zero} in {shown}");
        }
        for line in
            ["received                unknown", "lost                    unknown", "unknown / unknown"]
        {
            assert!(shown.contains(line), "{line} is missing in {shown}");
        }
        let mut csv = Vec::new();
        super::super::csv::record(&mut csv, &cut).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let (names, fields) = csv.split_once('\n').unwrap();
        let field = |wanted: &str| {
            let mut both = names.split(',').zip(fields.split(','));
            both.find(|(name, _)| *name == wanted).unwrap_or_else(|| panic!("no {wanted} in {names}")).1
        };
        let unknown = ["goodput_bps", "wire_bps", "packets_per_second", "received", "lost", "lost_host"];
        for name in unknown.iter().chain(&["lost_network", "duplicates", "reordered", "jitter_ns"]) {
            assert_eq!(field(name), "", "{name} in {csv}");
        }
        assert_ne!((field("sent_bps"), field("sent"), field("not_sent")), ("", "", ""));
    }

    #[test]
    fn a_csv_goodput_after_a_cut_is_the_rate_of_what_came_and_not_0() {
        let mut cut = fixture::tcp();
        let came = cut.versions[0].tcp[0].goodput.unwrap();
        let tcp = &mut cut.versions[0].tcp[0];
        (tcp.sender, tcp.sender_ticks) = (None, Vec::new());
        tcp.outcome = netaware_record::Outcome::Failed;
        let mut csv = Vec::new();
        super::super::csv::record(&mut csv, &cut).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let (names, fields) = (lines.next().unwrap(), lines.next().unwrap());
        let at = |wanted: &str| fields[names.iter().position(|name| *name == wanted).unwrap()];
        assert_eq!(
            (at("goodput_bps"), at("outcome"), at("writes")),
            (came.0.to_string().as_str(), "failed", "")
        );
    }

    #[test]
    fn colour_changes_nothing_but_the_colour() {
        for record in fixture::all() {
            let vivid = text(&record, Paint::VIVID);
            let mut bare = String::new();
            for (n, part) in vivid.split('\u{1b}').enumerate() {
                bare.push_str(if n == 0 { part } else { part.split_once('m').unwrap().1 });
            }
            assert_eq!(bare, text(&record, Paint::PLAIN));
        }
    }

    #[test]
    fn a_record_full_of_extremes_is_still_80_columns_wide() {
        let mut extreme = fixture::test();
        extreme.request.host = "h".repeat(300);
        extreme.warnings = vec!["w\u{1b}[2J".repeat(100)];
        for version in &mut extreme.versions {
            for tcp in &mut version.tcp {
                tcp.retransmits = Some(u64::MAX);
                tcp.limit.evidence = "e".repeat(500);
            }
            for udp in &mut version.udp {
                udp.sent = u64::MAX;
                udp.loss.lost = u64::MAX;
            }
        }
        let shown = text(&extreme, Paint::PLAIN);
        assert!(!shown.contains('\u{1b}'), "escapes from a record must not reach the terminal");
        for line in shown.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
