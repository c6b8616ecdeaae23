//! `netaware results`: what was measured before.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use netaware_record::Outcome;
use netaware_store::{Filter, Store, Summary};
use netaware_units::Wall;
use serde_json::json;

use crate::exit::Exit;
use crate::flags::output::{ColorFlag, Format, TextOrJson};
use crate::render::{self, Paint};

const AFTER: &str = "\
Examples:
  netaware results list --command tcp --limit 5
  netaware results show last
  netaware results show 019a2b3c --format json
  netaware results delete 019a2b3c

An ID may be cut off after as many digits as tell it from others; 'last' is the newest.";

/// List, show and delete saved results
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Results {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List saved results, newest first
    List(List),
    /// Show a saved result
    Show(Show),
    /// Delete saved results
    Delete(Delete),
}

#[derive(Debug, Args)]
struct List {
    /// Only of this command: test, tcp, udp or latency
    #[arg(long, value_name = "NAME")]
    command: Option<String>,
    /// Only to this host, as it was typed
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    limit: u32,
    /// text or json
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: TextOrJson,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Show {
    /// The result's ID, its beginning, or 'last'
    #[arg(value_name = "ID")]
    id: String,
    /// text, json, ndjson, csv for tcp, udp and latency, or udpmon
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: Format,
    #[command(flatten)]
    paint: ColorFlag,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Delete {
    /// IDs, their beginnings, or 'last'
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Place {
    /// The file of results instead of netaware/results.db in the user's data folder
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
}

impl Place {
    fn open(&self) -> anyhow::Result<Store> {
        Ok(self.store.as_ref().map_or_else(Store::open_default, Store::open)?)
    }
}

impl Results {
    /// Does it.
    ///
    /// # Errors
    /// The file cannot be read, or no one result has the ID.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        match &self.action {
            Action::List(list) => list.run(),
            Action::Show(show) => show.run(),
            Action::Delete(delete) => delete.run(),
        }
    }
}

impl List {
    fn run(&self) -> anyhow::Result<Exit> {
        let filter = Filter { command: self.command.clone(), host: self.host.clone(), since: None };
        let summaries = self.place.open()?.list(&filter, self.limit)?;
        let mut out = std::io::stdout().lock();
        if self.format == TextOrJson::Json {
            let all: Vec<_> = summaries.iter().map(as_json).collect();
            writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
            return Ok(Exit::Done);
        }
        if summaries.is_empty() {
            eprintln!("no results saved{}", if filter == Filter::default() { " yet" } else { " that match" });
            return Ok(Exit::Done);
        }
        let zone = TimeZone::system();
        writeln!(out, "{}", render::text::list_line(["ID", "began", "command", "IP", "host"], ""))?;
        for summary in &summaries {
            writeln!(out, "{}", line(summary, &zone))?;
        }
        Ok(Exit::Done)
    }
}

fn line(summary: &Summary, zone: &TimeZone) -> String {
    // The time part of a UUIDv7 and four digits more: enough for people who do not measure many times a millisecond.
    let id: String = summary.id.hyphenated().to_string().chars().take(18).collect();
    let versions: Vec<&str> = summary.versions.iter().map(|v| v.name().trim_start_matches("IPv")).collect();
    let versions = if versions.is_empty() { "-".to_owned() } else { versions.join("+") };
    let host = if summary.host.is_empty() { "(loopback)" } else { &summary.host };
    let ended = match summary.outcome {
        Outcome::Complete => "",
        Outcome::Interrupted => " (interrupted)",
        Outcome::Failed => " (failed)",
    };
    render::text::list_line([&id, &local(summary.started_at, zone), &summary.command, &versions, host], ended)
}

fn local(at: Wall, zone: &TimeZone) -> String {
    match Timestamp::from_nanosecond(i128::from(at.0)) {
        Ok(at) => at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "?".to_owned(),
    }
}

fn as_json(s: &Summary) -> serde_json::Value {
    json!({
        "id": s.id.hyphenated().to_string(), "started_at": s.started_at, "elapsed": s.elapsed,
        "command": s.command, "host": s.host, "outcome": s.outcome, "versions": s.versions,
    })
}

impl Show {
    fn run(&self) -> anyhow::Result<Exit> {
        let record = self.place.open()?.get(&self.id)?;
        if self.format == Format::Csv && !render::has_csv_form(&record.command) {
            bail!("a '{}' result has no CSV form: use --format json", record.command);
        }
        if self.format == Format::Udpmon && !render::has_udpmon_form(&record.command) {
            bail!("a '{}' result has no UDPmon form: use --format json", record.command);
        }
        let mut out = std::io::stdout().lock();
        render::record(&mut out, &record, self.format, Paint::for_stdout(self.paint.color))?;
        Ok(Exit::Done)
    }
}

impl Delete {
    fn run(&self) -> anyhow::Result<Exit> {
        let store = self.place.open()?;
        for id in &self.ids {
            let deleted = store.delete(id)?;
            writeln!(std::io::stdout(), "deleted {deleted}")?;
        }
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::IpVersion;
    use netaware_units::Span;

    use super::*;

    #[test]
    fn a_line_of_the_list_fits_80_columns() {
        let summary = Summary {
            id: uuid::Uuid::from_u128(0x019a_2b3c_4d5e_7f60_8123_4567_89ab_cdef),
            started_at: Wall(1_795_232_087_123_456_789),
            elapsed: Span::from_secs(15),
            command: "latency".into(),
            host: "a-rather-long-name.example.org".into(),
            outcome: Outcome::Interrupted,
            versions: vec![IpVersion::V4, IpVersion::V6],
        };
        let shown = line(&summary, &TimeZone::UTC);
        assert_eq!(shown, "019a2b3c-4d5e-7f60  2026-11-21 03:34:47  latency  4+6  a-rather-l… (interrupted)");
        assert!(shown.chars().count() <= 80);
        assert_eq!(local(Wall(i64::MIN), &TimeZone::UTC), "1677-09-21 00:12:43");
    }
}
