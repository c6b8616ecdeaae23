//! `netaware results list`: a line per result, and one per series.

use std::io::Write;

use clap::Args;
use jiff::tz::TimeZone;
use netaware_record::{Outcome, SeriesKind};
use netaware_store::{Among, Filter, Found, Overview, Store, Summary};
use netaware_units::Wall;
use serde_json::{Value, json};

use super::{Absent, Place, local};
use crate::exit::Exit;
use crate::flags::output::{LONGEST_LABEL, TextOrJson};
use crate::flags::quantity;
use crate::measure::short_id;
use crate::render;
use crate::sink;

/// List saved results and series, newest first
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only of this command: test, tcp, udp or latency
    #[arg(long, value_name = "NAME")]
    command: Option<String>,
    /// Only to this host, as it was typed
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only with this label
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// The results of this series, one by one: its ID, the beginning of it, or 'last'
    #[arg(long, value_name = "ID")]
    series: Option<String>,
    /// Only what strangers' pages sent to 'netaware serve --results', which is kept in a file of
    /// its own, strangers.db beside the file of results
    #[arg(long)]
    from_pages: bool,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", default_value = "20", value_parser = quantity::whole::<u32>(1..=u64::from(u32::MAX)))]
    limit: u32,
    /// text or json
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: TextOrJson,
    #[command(flatten)]
    place: Place,
}

/// A line of the list.
enum Entry {
    Result(Summary),
    Series(Overview),
}

impl Entry {
    fn started_at(&self) -> Wall {
        match self {
            Self::Result(summary) => summary.started_at,
            Self::Series(overview) => overview.plan.started_at,
        }
    }
}

impl List {
    pub(super) fn run(&self, absent: Absent) -> anyhow::Result<Exit> {
        let store =
            if self.from_pages { self.place.of_strangers()? } else { self.place.read_if_any(absent)? };
        let entries = match store {
            Some(store) => self.entries(&store)?,
            None => Vec::new(),
        };
        let mut out = sink::stdout();
        if self.format == TextOrJson::Json {
            let all: Vec<Value> = entries.iter().map(as_json).collect();
            writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
            return Ok(Exit::Done);
        }
        if entries.is_empty() {
            let is_chosen =
                [&self.command, &self.host, &self.label, &self.series].iter().any(|f| f.is_some());
            eprintln!("no results saved{}", if is_chosen { " that match" } else { " yet" });
            return Ok(Exit::Done);
        }
        let zone = TimeZone::system();
        writeln!(out, "{}", render::text::list_line(["ID", "began", "command", "IP", "host"], ""))?;
        for entry in &entries {
            writeln!(out, "{}", line(entry, &zone))?;
        }
        Ok(Exit::Done)
    }

    fn entries(&self, store: &Store) -> anyhow::Result<Vec<Entry>> {
        let filter = Filter {
            command: self.command.clone(),
            host: self.host.clone(),
            label: self.label.clone(),
            ..Filter::default()
        };
        if let Some(given) = &self.series {
            let id = series_id(store, given)?;
            let points = store.list(&Filter { series: Among::Of(id), ..filter }, self.limit)?;
            return Ok(points.into_iter().map(Entry::Result).collect());
        }
        if self.from_pages {
            // Pages send points of series, and no plans.
            return Ok(store.list(&filter, self.limit)?.into_iter().map(Entry::Result).collect());
        }
        let series = store.list_series(&filter, self.limit)?.into_iter().map(Entry::Series);
        let alone = store.list(&Filter { series: Among::Alone, ..filter }, self.limit)?;
        let mut entries: Vec<Entry> = series.chain(alone.into_iter().map(Entry::Result)).collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.started_at()));
        entries.truncate(self.limit as usize);
        Ok(entries)
    }
}

/// `last` is the newest series, whatever was measured since.
fn series_id(store: &Store, given: &str) -> anyhow::Result<uuid::Uuid> {
    if given == "last" {
        return Ok(store.series(given)?.id);
    }
    match store.resolve(given)? {
        Found::Series(id) => Ok(id),
        Found::Record(id) => anyhow::bail!("{id} is a single result, no series"),
    }
}

fn line(entry: &Entry, zone: &TimeZone) -> String {
    match entry {
        Entry::Result(summary) => result_line(summary, zone),
        Entry::Series(overview) => series_line(overview, zone),
    }
}

fn result_line(summary: &Summary, zone: &TimeZone) -> String {
    let versions: Vec<&str> = summary.versions.iter().map(|v| v.name().trim_start_matches("IPv")).collect();
    let versions = if versions.is_empty() { "-".to_owned() } else { versions.join("+") };
    let ended = match summary.outcome {
        Outcome::Complete => "",
        Outcome::Interrupted => " (interrupted)",
        Outcome::Failed => " (failed)",
    };
    let cells = [
        &short_id(summary.id),
        &local(summary.started_at, zone),
        &summary.command,
        &versions,
        host(&summary.host),
    ];
    let point = summary.series.map(|(_, index)| format!("point {}", index + 1));
    render::text::list_line(cells, ended) + &below(&[label(summary.label.as_deref()), point])
}

fn series_line(overview: &Overview, zone: &TimeZone) -> String {
    let plan = &overview.plan;
    let of = if plan.planned > 0 { format!(" of {}", plan.planned) } else { String::new() };
    let kind = match plan.kind {
        SeriesKind::Scan => "scan",
        SeriesKind::Repeat => "repeated",
        SeriesKind::Matrix => "matrix",
    };
    let broken = (overview.broken > 0).then(|| format!("{} not complete", overview.broken));
    let cells = [&short_id(plan.id), &local(plan.started_at, zone), &plan.command, "", host(&plan.host)];
    let course = format!("{kind}, {}{of} points", overview.complete);
    render::text::list_line(cells, "") + &below(&[label(plan.label.as_deref()), Some(course), broken])
}

fn host(host: &str) -> &str {
    if host.is_empty() { "(loopback)" } else { host }
}

fn label(label: Option<&str>) -> Option<String> {
    label.map(|label| netaware_record::excerpt(label, LONGEST_LABEL))
}

/// Below the time: what no column is for.
fn below(parts: &[Option<String>]) -> String {
    let parts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("\n{}", render::paragraph(&" ".repeat(20), &parts.join(", ")))
    }
}

fn as_json(entry: &Entry) -> Value {
    match entry {
        Entry::Result(s) => json!({
            "id": s.id.hyphenated().to_string(), "started_at": s.started_at, "elapsed": s.elapsed,
            "command": s.command, "host": s.host, "outcome": s.outcome, "versions": s.versions,
            "label": s.label, "series": s.series.map(|(id, _)| id.hyphenated().to_string()),
            "index": s.series.map(|(_, index)| index),
        }),
        Entry::Series(o) => json!({
            "series": o.plan.id.hyphenated().to_string(), "kind": o.plan.kind,
            "started_at": o.plan.started_at, "command": o.plan.command, "host": o.plan.host,
            "label": o.plan.label, "planned": o.plan.planned, "complete": o.complete, "broken": o.broken,
            "line": o.plan.line,
        }),
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::IpVersion;
    use netaware_store::SeriesPlan;
    use netaware_units::Span;

    use super::*;

    fn summary() -> Summary {
        Summary {
            id: uuid::Uuid::from_u128(0x019a_2b3c_4d5e_7f60_8123_4567_89ab_cdef),
            started_at: Wall(1_795_232_087_123_456_789),
            elapsed: Span::from_secs(15),
            command: "latency".into(),
            host: "a-rather-long-name.example.org".into(),
            outcome: Outcome::Interrupted,
            versions: vec![IpVersion::V4, IpVersion::V6],
            label: None,
            series: None,
        }
    }

    #[test]
    fn a_line_of_the_list_fits_80_columns() {
        let shown = result_line(&summary(), &TimeZone::UTC);
        assert_eq!(shown, "019a2b3c-4d5e-7f60  2026-11-21 03:34:47  latency  4+6  a-rather-l… (interrupted)");
        let labelled =
            Summary { label: Some("w".repeat(64)), series: Some((uuid::Uuid::nil(), 999_999)), ..summary() };
        let shown = result_line(&labelled, &TimeZone::UTC);
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(shown.ends_with("point 1000000"), "{shown}");
    }

    #[test]
    fn a_series_is_a_line_with_its_progress() {
        let plan = SeriesPlan {
            id: summary().id,
            kind: SeriesKind::Scan,
            command: "udp".into(),
            host: "lab-b".into(),
            label: Some("hall B".into()),
            planned: 11,
            started_at: summary().started_at,
            line: Vec::new(),
        };
        let shown = series_line(&Overview { plan, complete: 9, broken: 2 }, &TimeZone::UTC);
        assert_eq!(
            shown,
            "019a2b3c-4d5e-7f60  2026-11-21 03:34:47  udp           lab-b\n                    \
             hall B, scan, 9 of 11 points, 2 not complete"
        );
    }
}
