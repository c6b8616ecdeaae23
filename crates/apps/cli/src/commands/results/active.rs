//! `netaware results active`: what the active tasks of a fleet found, the main figures of each
//! measurement.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::{Result, ensure};
use clap::Args;
use jiff::tz::TimeZone;
use netaware_record::passive::Row;
use netaware_record::{Record, printable};
use netaware_store::fleet::{Kind, RowQuery, StoredRow};
use serde_json::{Value, json};

use super::fleet::{Fleet, TableFormat, cell};
use super::local;
use crate::exit::Exit;
use crate::render;
use crate::series::figures::{Figure, figures};
use crate::sink;

const AFTER: &str = "\
Examples:
  netaware results active --from 1h
  netaware results active --task bulk.bern --format csv > bulk.csv

The whole record of each measurement is in --format json. Delays that 'stamp' meshes found are in 'netaware results delays'.";

/// What the active tasks of a fleet found: throughput, latency, capacity
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(super) struct Active {
    /// Only of this task; of a mesh there is one for each peer: NAME.PEER
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Only of this probe
    #[arg(long, value_name = "NAME")]
    probe: Option<String>,
    /// text, json or csv
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: TableFormat,
    #[command(flatten)]
    fleet: Fleet,
}

/// Whole records are large.
const MOST_ROWS: usize = 100_000;

impl Active {
    pub(super) fn run(&self) -> Result<Exit> {
        let rows = self.rows()?;
        let mut out = sink::stdout();
        match self.format {
            TableFormat::Json => {
                let all: Vec<Value> = found(&rows).map(|(row, record)| as_json(row, record)).collect();
                writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
            }
            TableFormat::Csv => write!(out, "{}", csv(&rows))?,
            TableFormat::Text if rows.is_empty() => eprintln!("no active task found anything in this time"),
            TableFormat::Text => write!(out, "{}", text(&rows, &TimeZone::system()))?,
        }
        Ok(Exit::Done)
    }

    fn rows(&self) -> Result<Vec<StoredRow>> {
        let store = self.fleet.open()?;
        let (task, probe) = (self.task.clone(), self.probe.clone());
        let mut query = RowQuery { period: self.fleet.period()?, task, probe, ..RowQuery::of(Kind::Active) };
        let mut rows = Vec::new();
        loop {
            let page = store.rows(&query)?;
            rows.extend(page.items);
            ensure!(rows.len() <= MOST_ROWS, "more than {MOST_ROWS} measurements: choose a shorter time");
            query.after = page.next;
            if query.after.is_none() {
                return Ok(rows);
            }
        }
    }
}

fn found(rows: &[StoredRow]) -> impl Iterator<Item = (&StoredRow, &Record)> {
    rows.iter().filter_map(|row| match &row.row {
        Row::Active(record) => Some((row, &**record)),
        _ => None,
    })
}

fn text(rows: &[StoredRow], zone: &TimeZone) -> String {
    let mut out = String::new();
    for (row, record) in found(rows) {
        let began = local(row.period.from, zone);
        let _ = writeln!(out, "{began}  {}  {}", printable(&row.probe), printable(&row.task));
        let said: Vec<String> = figures(record).iter().map(sentence).collect();
        let said = if said.is_empty() { "nothing was found".to_owned() } else { said.join(", ") };
        let _ = writeln!(out, "{}", render::paragraph("    ", &said));
    }
    out
}

/// `tcp up over IPv4 93.1 Mbit/s`.
fn sentence(figure: &Figure) -> String {
    let way = if figure.way.is_empty() { String::new() } else { format!(" {}", figure.way) };
    format!("{}{way} over {} {}", figure.name, figure.version.name(), figure.kind.show(figure.value))
}

fn as_json(row: &StoredRow, record: &Record) -> Value {
    let figures: Vec<Value> = figures(record)
        .iter()
        .map(|it| json!({ "name": it.name, "version": it.version, "way": it.way, "value": it.value, "unit": it.kind.unit() }))
        .collect();
    json!({ "probe": row.probe, "task": row.task, "period": row.period, "figures": figures, "record": record })
}

fn csv(rows: &[StoredRow]) -> String {
    let mut out = "probe,task,method,began_ns,ended_ns,figure,version,way,value,unit\n".to_owned();
    for (row, record) in found(rows) {
        let names = [&*row.probe, &row.task, &record.command].map(cell).join(",");
        for it in figures(record) {
            let _ = writeln!(
                out,
                "{names},{},{},{},{},{},{},{}",
                row.period.from.0,
                row.period.until.0,
                it.name,
                it.version.name(),
                it.way,
                it.value,
                it.kind.unit()
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use netaware_record::passive::{CaptureLoss, Period};
    use netaware_record::{Direction, Headline, HeadlineValue};
    use netaware_units::Wall;

    use super::*;
    use crate::render::fixture;

    fn stored(record: Record) -> StoredRow {
        let from = Wall(1_795_232_087_123_456_789);
        let period = Period { from, until: Wall(from.0 + 1) };
        StoredRow {
            probe: "berlin".into(),
            task: "bulk.bern".into(),
            period,
            row: Row::Active(Box::new(record)),
            lost: CaptureLoss::default(),
        }
    }

    #[test]
    fn each_figure_stands_with_its_unit() {
        let record = fixture::udp();
        let rows = [stored(record.clone()), stored(fixture::nothing())];
        let shown = text(&rows, &TimeZone::UTC);
        assert!(
            shown.starts_with("2026-11-21 03:34:47  berlin  bulk.bern\n    udp up over IPv4 "),
            "{shown}"
        );
        assert!(shown.ends_with("bulk.bern\n    nothing was found\n"), "{shown}");
        assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
        let table = csv(&rows);
        assert_eq!(table.lines().count(), 1 + figures(&record).len());
        assert!(table.lines().all(|line| line.split(',').count() == 10), "{table}");
        let json = as_json(&rows[0], &record);
        assert_eq!(json["figures"][0]["unit"], "bit/s");
        assert_eq!(serde_json::from_value::<Record>(json["record"].clone()).unwrap(), record);
    }

    /// The page and /metrics tell headlines, this command main figures.
    #[test]
    fn a_headline_is_one_of_the_main_figures() {
        for record in [fixture::udp(), fixture::half(), fixture::nothing()] {
            let figures = figures(&record);
            let headlines = record.headlines();
            for Headline { name, version, direction, value, .. } in &headlines {
                let value = match value {
                    HeadlineValue::Rate(rate) => *rate,
                    HeadlineValue::Time(span) => span.0 as f64,
                    HeadlineValue::Share(share) => *share,
                };
                let way = if *direction == Direction::RoundTrip { "" } else { direction.name() };
                let same = figures.iter().any(|it| {
                    (it.name, it.version, it.way, it.value.to_bits())
                        == (*name, *version, way, value.to_bits())
                });
                assert!(same, "{name} {way} {value}: {figures:?}");
            }
            assert_eq!(headlines.is_empty(), figures.is_empty());
        }
    }
}
