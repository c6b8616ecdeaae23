//! A record as text, JSON, NDJSON, CSV or in UDPmon's form. Everything shown is in the record;
//! nothing is measured or judged here.

pub(crate) mod csv;
pub(crate) mod figures;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod paint;
#[cfg(target_os = "linux")]
pub(crate) mod simulated;
pub(crate) mod size_fit;
pub(crate) mod stream;
mod table;
pub(crate) mod text;
mod udpmon;
mod wrap;

use std::io::{self, Write};

use netaware_record::{Document as _, Record};

pub(crate) use csv::has_form as has_csv_form;
pub(crate) use figures::{NONE, rate_unit, time_unit};
pub(crate) use paint::Paint;
pub(crate) use table::padded;
pub(crate) use udpmon::has_form as has_udpmon_form;
pub(crate) use wrap::{WIDTH, paragraph};

use crate::flags::output::Format;

/// Writes the whole record. NDJSON is one line here: its events belong to the time of the
/// measurement.
pub(crate) fn record(out: &mut dyn Write, record: &Record, format: Format, paint: Paint) -> io::Result<()> {
    match format {
        Format::Text => text::record(out, record, paint),
        Format::Json => {
            writeln!(out, "{}", record.to_json_pretty()?)
        }
        Format::Ndjson => {
            record.write_json(out)?;
            writeln!(out)
        }
        Format::Csv => csv::record(out, record),
        Format::Udpmon => udpmon::record(out, record),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_record() {
        let mut out = Vec::new();
        record(&mut out, &fixture::test(), Format::Json, Paint::PLAIN).unwrap();
        assert_eq!(serde_json::from_slice::<Record>(&out).unwrap(), fixture::test());
        insta::assert_snapshot!("test_json", String::from_utf8(out).unwrap());
    }

    #[test]
    fn ndjson_is_the_record_on_one_line() {
        let mut out = Vec::new();
        record(&mut out, &fixture::tcp(), Format::Ndjson, Paint::VIVID).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), fixture::tcp());
    }
}
