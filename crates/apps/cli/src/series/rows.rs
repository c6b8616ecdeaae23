//! The points of a series, or any selection of records, in each format: a row or an object per
//! record, a heading once.

use std::io;

use jiff::tz::TimeZone;
use netaware_record::{Document as _, Record};

use super::table::PointTable;
use crate::flags::output::Format;
use crate::render::{self, Paint, csv};

/// Turns one record after the other into whole lines; keeps none.
#[derive(Debug)]
pub(crate) struct Rows {
    format: Format,
    paint: Paint,
    table: PointTable,
    heading: Heading,
    columns: Option<csv::ScanColumns>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    Due,
    /// It stands there, or is not wanted.
    Done,
}

impl Rows {
    /// `found` is the first line of the file that the rows are added to.
    pub(crate) fn new(format: Format, paint: Paint, zone: TimeZone, found: Option<&str>) -> Self {
        let heading = if found.is_some() { Heading::Done } else { Heading::Due };
        Self { format, paint, table: PointTable::new(paint, zone), heading, columns: None }
    }

    /// Columns for the scanned options, where the first record does not tell them.
    pub(crate) fn with_columns(mut self, columns: csv::ScanColumns) -> Self {
        self.columns = Some(columns);
        self
    }

    /// The lines of a record, after the heading if it is the first.
    ///
    /// # Errors
    /// The record has no such form (a number that is not finite, for example).
    pub(crate) fn row(&mut self, record: &Record) -> io::Result<String> {
        let first = std::mem::replace(&mut self.heading, Heading::Done) == Heading::Due;
        let mut lines = Vec::new();
        match self.format {
            Format::Text => return Ok(self.table.row(record)),
            Format::Csv => {
                let columns = self.columns.get_or_insert_with(|| csv::ScanColumns::of_record(record));
                if first {
                    lines.extend(csv::heading(&record.command, Some(columns)).into_bytes());
                    lines.push(b'\n');
                }
                lines.extend(csv::rows(record, Some(columns)).into_bytes());
            }
            Format::Json => {
                lines.extend_from_slice(if first { b"[\n" } else { b",\n" });
                record.write_json(&mut lines)?;
                // The comma of the next one, or the bracket, ends the line.
            }
            format @ (Format::Ndjson | Format::Udpmon) => {
                render::record(&mut lines, record, format, self.paint)?;
            }
        }
        String::from_utf8(lines).map_err(io::Error::other)
    }

    /// What closes the whole.
    pub(crate) fn end(&self) -> &'static str {
        match (self.format, self.heading) {
            (Format::Json, Heading::Due) => "[]\n",
            (Format::Json, Heading::Done) => "\n]\n",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::{SeriesKind, SeriesPoint};
    use uuid::Uuid;

    use super::*;
    use crate::render::fixture;

    fn points(n: u64) -> Vec<Record> {
        let of = |index| {
            let point = [("length".to_owned(), format!("{}B", 64 + index))].into();
            let series = SeriesPoint { id: Uuid::nil(), kind: SeriesKind::Scan, index, planned: n, point };
            Record { series: Some(series), label: Some("hall B".into()), ..fixture::udp() }
        };
        (0..n).map(of).collect()
    }

    fn written(format: Format, found: Option<&str>, records: &[Record]) -> String {
        let mut rows = Rows::new(format, Paint::PLAIN, TimeZone::UTC, found);
        let mut text: String = records.iter().map(|record| rows.row(record).unwrap()).collect();
        text.push_str(rows.end());
        text
    }

    #[test]
    fn json_is_one_array_and_ndjson_an_object_per_line() {
        for n in [0, 1, 3] {
            let json = written(Format::Json, None, &points(n));
            assert_eq!(serde_json::from_str::<Vec<Record>>(&json).unwrap(), points(n));
            let lines = written(Format::Ndjson, None, &points(n));
            let read: Vec<Record> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(read, points(n));
        }
    }

    #[test]
    fn csv_has_one_heading_and_none_below_another() {
        let text = written(Format::Csv, None, &points(3));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 3 * 2);
        assert!(lines[0].contains(",label,series,index,scan_length_bytes,version,"), "{}", lines[0]);
        assert!(lines[1].contains(",hall B,00000000-0000-0000-0000-000000000000,0,64,IPv4,"), "{}", lines[1]);
        let added = written(Format::Csv, Some(lines[0]), &points(3));
        assert_eq!(added.lines().count(), 3 * 2);
    }
}
