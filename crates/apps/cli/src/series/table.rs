//! One line per point for people: what was scanned, or when, and the main figures of each IP
//! version side by side.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use netaware_record::{IpVersion, Outcome, Record, SeriesKind};

use super::figures::{Figure, figures, mains};
use super::tally::is_failed;
use crate::render::{NONE, Paint, WIDTH, padded};

/// Writes lines as points come; the heading comes with the first that has figures.
#[derive(Debug)]
pub(crate) struct PointTable {
    zone: TimeZone,
    paint: Paint,
    columns: Option<Vec<Column>>,
    /// The day of the last line of a repetition.
    day: String,
}

/// A figure of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    version: IpVersion,
    name: &'static str,
    way: &'static str,
    title: String,
}

impl Column {
    fn width(&self) -> usize {
        width(&self.title)
    }
}

/// The width of a column below this title, so that no title runs into the next.
fn width(title: &str) -> usize {
    (title.chars().count() + 2).max(CELL)
}

/// Widths of the column with the point's number, and of the narrowest one with a figure.
const NUMBER: usize = 7;
const CELL: usize = 10;
/// More would be a smaller table each; the record has them all.
const MOST_FIGURES: usize = 3;

impl PointTable {
    pub(crate) fn new(paint: Paint, zone: TimeZone) -> Self {
        Self { zone, paint, columns: None, day: String::new() }
    }

    /// Whole lines.
    pub(crate) fn row(&mut self, record: &Record) -> String {
        let mut lines = String::new();
        let found = figures(record);
        if self.columns.is_none() && !found.is_empty() {
            let columns = columns(record, &found);
            lines.push_str(&self.heading(record, &columns));
            self.columns = Some(columns);
        }
        let day = self.local(record, "%Y-%m-%d");
        if is_repeat(record) && day != self.day {
            push(&mut lines, &self.paint.faint(&format!("{:NUMBER$}{day}", "")));
            self.day = day;
        }
        let lead = self.lead(record);
        if is_failed(record) && found.is_empty() {
            push(&mut lines, &self.paint.bad(&cut(&format!("{lead}failed: {}", reason(record)))));
            return lines;
        }
        let cell = |column: &Column| {
            let is_it = |f: &&Figure| (f.version, f.name, f.way) == (column.version, column.name, column.way);
            found.iter().find(is_it).map_or_else(|| NONE.to_owned(), |f| compact(&f.kind.show(f.value)))
        };
        let columns = self.columns.iter().flatten();
        let cells: String = columns.map(|column| padded(&cell(column), column.width())).collect();
        push(&mut lines, &format!("{lead}{cells}"));
        if record.outcome == Outcome::Interrupted {
            push(&mut lines, &format!("{:NUMBER$}interrupted: the figures hold for the shorter time", ""));
        }
        if is_failed(record) {
            let said = format!("{:NUMBER$}failed: not all was measured, or not to its end", "");
            push(&mut lines, &self.paint.bad(&said));
        } else if let Some(cut) = cut_versions(&found) {
            let said = format!("{:NUMBER$}{cut}: not measured to its end", "");
            push(&mut lines, &self.paint.caution(&said));
        }
        lines
    }

    fn heading(&self, record: &Record, columns: &[Column]) -> String {
        let mut lead = format!("{:>5}  ", "point");
        if is_repeat(record) {
            lead.push_str(&padded("began", CELL));
        }
        for (name, _) in scanned(record) {
            lead.push_str(&padded(name, value_width(name)));
        }
        let mut names = " ".repeat(lead.chars().count());
        let mut shown = None;
        for column in columns {
            let name = if shown == Some(column.version) { "" } else { column.version.name() };
            names.push_str(&padded(name, column.width()));
            shown = Some(column.version);
        }
        let titles: String = columns.iter().map(|column| padded(&column.title, column.width())).collect();
        let mut lines = String::new();
        push(&mut lines, &self.paint.heading(names.trim_end()));
        push(&mut lines, &self.paint.heading(format!("{lead}{titles}").trim_end()));
        lines
    }

    /// Number, time and values of the point.
    fn lead(&self, record: &Record) -> String {
        let index = record.series.as_ref().map_or(0, |series| series.index);
        let mut lead = format!("{:>5}  ", index + 1);
        if is_repeat(record) {
            lead.push_str(&padded(&self.local(record, "%H:%M:%S"), CELL));
        }
        for (name, value) in scanned(record) {
            lead.push_str(&padded(&format!("{value} "), value_width(name)));
        }
        lead
    }

    fn local(&self, record: &Record, form: &str) -> String {
        Timestamp::from_nanosecond(i128::from(record.started_at.0))
            .map(|at| at.to_zoned(self.zone.clone()).strftime(form).to_string())
            .unwrap_or_default()
    }
}

/// As many of the main figures as fit, the same for each version asked for.
fn columns(record: &Record, found: &[Figure]) -> Vec<Column> {
    let values: usize = scanned(record).map(|(name, _)| value_width(name)).sum();
    let lead = NUMBER + values + if is_repeat(record) { CELL } else { 0 };
    let room = WIDTH.saturating_sub(lead) / record.versions.len().max(1);
    let mut kinds: Vec<(&'static str, &'static str)> = Vec::new();
    for figure in found {
        if !kinds.contains(&(figure.name, figure.way)) {
            kinds.push((figure.name, figure.way));
        }
    }
    let in_several_ways = |name| kinds.iter().filter(|(other, _)| *other == name).count() > 1;
    let title = |name: &'static str, way: &'static str| {
        let title =
            mains(&record.command).iter().find(|main| main.name == name).map_or(name, |main| main.title);
        // "p50 TCP", "RTT p50 echo": a column is narrow.
        let way = way.trim_start_matches("over ").trim_start_matches("ICMP ");
        if in_several_ways(name) { format!("{title} {way}").trim_end().to_owned() } else { title.to_owned() }
    };
    let mut taken = 0;
    let mut shown: Vec<(&'static str, &'static str, String)> = Vec::new();
    for (name, way) in kinds.iter().copied().take(MOST_FIGURES) {
        let title = title(name, way);
        taken += width(&title);
        if taken > room && !shown.is_empty() {
            break;
        }
        shown.push((name, way, title));
    }
    let of_version = |version| {
        shown.iter().map(move |(name, way, title)| Column { version, name, way, title: title.clone() })
    };
    record.versions.iter().flat_map(|result| of_version(result.version)).collect()
}

fn is_repeat(record: &Record) -> bool {
    record.series.as_ref().is_some_and(|series| series.kind == SeriesKind::Repeat)
}

fn scanned(record: &Record) -> impl Iterator<Item = (&str, &str)> {
    record.series.iter().flat_map(|series| &series.point).map(|(name, value)| (name.as_str(), value.as_str()))
}

fn value_width(name: &str) -> usize {
    name.chars().count().max(8) + 2
}

/// "IPv6", or "IPv4, IPv6": the versions with a figure of what was not measured to its end.
fn cut_versions(found: &[Figure]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for figure in found.iter().filter(|figure| !figure.is_whole) {
        if !names.contains(&figure.version.name()) {
            names.push(figure.version.name());
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// Why nothing was measured, in one sentence.
fn reason(record: &Record) -> String {
    let why = record.versions.iter().find_map(|v| v.unreachable.as_ref()).map(|why| why.reason.as_str());
    let why = why.or(record.warnings.first().map(String::as_str)).unwrap_or("nothing was measured");
    netaware_record::printable(why)
}

/// "94.1Mbps": a cell is one short word.
fn compact(figure: &str) -> String {
    figure.replace(' ', "").replace("bit/s", "bps")
}

fn cut(line: &str) -> String {
    if line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    line.chars().take(WIDTH - 1).chain(['…']).collect()
}

fn push(lines: &mut String, line: &str) {
    lines.push_str(line.trim_end());
    lines.push('\n');
}

#[cfg(test)]
mod tests {
    use netaware_record::SeriesPoint;
    use uuid::Uuid;

    use super::*;
    use crate::render::fixture;

    fn point(record: Record, kind: SeriesKind, index: u64, values: &[(&str, &str)]) -> Record {
        let point = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let series = SeriesPoint { id: Uuid::nil(), kind, index, planned: 11, point };
        Record { series: Some(series), ..record }
    }

    fn table(records: &[Record]) -> String {
        let mut table = PointTable::new(Paint::PLAIN, TimeZone::UTC);
        let lines: String = records.iter().map(|record| table.row(record)).collect();
        for line in lines.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        lines
    }

    #[test]
    fn a_scan_shows_its_values_and_a_point_that_failed() {
        let failed = Record { outcome: Outcome::Failed, ..fixture::nothing() };
        let spacing = |us: &str| vec![("spacing".to_owned(), us.to_owned())];
        let of = |record: Record, index, us: &str| {
            let values = spacing(us);
            let values: Vec<(&str, &str)> = values.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            point(record, SeriesKind::Scan, index, &values)
        };
        insta::assert_snapshot!(
            "scan",
            table(&[of(failed.clone(), 0, "0us"), of(fixture::udp(), 1, "10us"), of(failed, 2, "20us")])
        );
    }

    #[test]
    fn the_figures_of_a_point_that_failed_do_not_look_like_those_of_any_other() {
        let failed = Record { outcome: Outcome::Failed, ..fixture::udp() };
        let of = |record: &Record| table(&[point(record.clone(), SeriesKind::Repeat, 0, &[])]);
        assert!(
            of(&failed).ends_with("failed: not all was measured, or not to its end\n"),
            "{}",
            of(&failed)
        );
        assert!(!of(&fixture::udp()).contains("failed"));
    }

    /// The line began with "failed" though the point was among those measured everywhere else.
    #[test]
    fn a_version_that_was_cut_short_does_not_make_the_point_one_that_failed() {
        let of = |record: &Record| table(&[point(record.clone(), SeriesKind::Repeat, 0, &[])]);
        let mut broken = fixture::udp();
        broken.versions[1].udp[0].outcome = Outcome::Failed;
        assert!(of(&broken).ends_with("       IPv6: not measured to its end\n"), "{}", of(&broken));
        assert!(!of(&broken).contains("failed"), "{}", of(&broken));
        broken.versions[0].udp[0].outcome = Outcome::Failed;
        assert!(of(&broken).ends_with("       IPv4, IPv6: not measured to its end\n"), "{}", of(&broken));
        broken.outcome = Outcome::Failed;
        assert!(of(&broken).contains("failed: not all was measured"), "{}", of(&broken));
        assert!(!of(&broken).contains("IPv6: not"), "{}", of(&broken));
    }

    #[test]
    fn a_repetition_shows_when_each_began_and_each_new_day() {
        let mut next_day = fixture::latency();
        next_day.started_at.0 += 86_400_000_000_000;
        next_day.outcome = Outcome::Interrupted;
        insta::assert_snapshot!(
            "repetition",
            table(&[
                point(fixture::latency(), SeriesKind::Repeat, 0, &[]),
                point(next_day, SeriesKind::Repeat, 8640, &[]),
            ])
        );
    }

    #[test]
    fn many_scanned_options_leave_room_for_one_figure() {
        let values = [("length", "64"), ("rate", "100Mbit/s"), ("spacing", "100000ns")];
        let lines = table(&[point(fixture::udp(), SeriesKind::Scan, 0, &values)]);
        assert_eq!(lines.lines().nth(1).unwrap().matches("rate").count(), 3, "{lines}");
    }

    #[test]
    fn a_long_title_does_not_run_into_the_next() {
        let heading = |record| {
            let lines = table(&[point(record, SeriesKind::Repeat, 0, &[])]);
            lines.lines().nth(1).unwrap().to_owned()
        };
        assert!(
            heading(fixture::capacity()).ends_with("capacity up  capacity down  capacity up  capacity down")
        );
        assert!(heading(fixture::hops()).contains("slowest link  min RTT"));
        assert!(!heading(fixture::reach()).contains("ICMP"), "{}", heading(fixture::reach()));
    }

    #[test]
    fn both_directions_are_told_apart() {
        let lines = table(&[point(fixture::test(), SeriesKind::Repeat, 0, &[])]);
        assert!(lines.contains("TCP up") && lines.contains("TCP down"), "{lines}");
    }
}
