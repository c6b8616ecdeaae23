//! What the commands about a fleet have in common: which store, and from when to when.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use netaware_collector::Config;
use netaware_record::passive::Period;
use netaware_store::fleet::{self, FleetReader};
use netaware_units::{Span, Wall};

use crate::render::csv;

/// Which store, and which time.
#[derive(Debug, Args)]
pub(super) struct Fleet {
    /// The fleet's store: a file or clickhouse://[user@]host[:port]/database [default: what the
    /// collect.toml in this folder says]; 'delays' adds up those of several collectors that share a
    /// join, each named with a --store of its own
    #[arg(long, value_name = "PLACE")]
    store: Vec<String>,
    /// From then on: a time ('2026-11-23 13:00'), or how long ago (6h)
    #[arg(long, value_name = "TIME", default_value = "24h")]
    from: String,
    /// Until then, likewise [default: now]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

/// Forms of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum TableFormat {
    #[default]
    Text,
    Json,
    Csv,
}

impl Fleet {
    pub(super) fn open(&self) -> Result<Box<dyn FleetReader>> {
        let mut stores = self.open_all()?;
        match stores.pop() {
            Some(store) if stores.is_empty() => Ok(store),
            _ => bail!("only 'results delays' reads several stores at once: name one with --store"),
        }
    }

    /// One at least, in the order in which they were named.
    pub(super) fn open_all(&self) -> Result<Vec<Box<dyn FleetReader>>> {
        if self.store.is_empty() {
            return Ok(vec![fleet::read(&store_of(Path::new(FILE))?)?]);
        }
        self.store.iter().map(|place| Ok(fleet::read(place)?)).collect()
    }

    pub(super) fn period(&self) -> Result<Period> {
        let (now, zone) = (netaware_io::clock::wall(), TimeZone::system());
        let from = instant(&self.from, now, &zone).context("--from")?;
        let until = self.until.as_ref().map_or(Ok(Wall(i64::MAX)), |text| instant(text, now, &zone));
        Ok(Period { from, until: until.context("--until")? })
    }
}

/// The store of the collector that runs with this file.
fn store_of(file: &Path) -> Result<String> {
    ensure!(
        file.exists(),
        "there is no {} in this folder to say where the fleet's store is: name it with --store, or go to the collector's folder",
        file.display()
    );
    let config = Config::load(file).with_context(|| file.display().to_string())?;
    config.store.context("a file that was read names no store")
}

/// As `netaware collect` looks for it.
const FILE: &str = "collect.toml";

/// "6h" before `now`, or a time of this zone's day, or one that says its zone.
fn instant(text: &str, now: Wall, zone: &TimeZone) -> Result<Wall> {
    if let Ok(ago) = text.parse::<Span>() {
        return Ok(Wall(now.0.saturating_sub(ago.0)));
    }
    let stamp = if let Ok(stamp) = text.parse::<Timestamp>() {
        stamp
    } else {
        let civil: DateTime = text.parse().with_context(|| {
            format!("'{text}' is neither a time like '2026-11-23 13:00' nor a span like 6h")
        })?;
        civil.to_zoned(zone.clone())?.timestamp()
    };
    Ok(Wall(i64::try_from(stamp.as_nanosecond()).context("a time beyond all clocks")?))
}

/// A cell of CSV.
pub(super) fn cell(text: &str) -> String {
    csv::quoted(text)
}

/// Milliseconds in six characters at most, as exact as these allow.
pub(super) fn ms(span: Option<Span>) -> String {
    let Some(span) = span else { return "-".to_owned() };
    let ms = span.millis_f64();
    let digits = match ms.abs() {
        below if below < 99.9995 => 3,
        below if below < 9999.5 => 1,
        _ => 0,
    };
    format!("{ms:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_ago() {
        let now = Wall(1_795_437_000_000_000_000);
        let at = |text| instant(text, now, &TimeZone::UTC).ok().map(|at| at.since(now).0 / 1_000_000_000);
        let table = [
            ("6h", Some(-21_600)),
            ("0s", Some(0)),
            ("2026-11-23T12:30:00Z", Some(0)),
            ("2026-11-23 12:00", Some(-1800)),
            ("2026-11-23T14:30:00+02:00", Some(0)),
            ("yesterday", None),
            ("", None),
        ];
        for (text, want) in table {
            assert_eq!(at(text), want, "{text}");
        }
    }

    #[test]
    fn the_store_is_where_the_collector_of_this_folder_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("collect.toml");
        let why = store_of(&file).unwrap_err().to_string();
        assert!(why.contains("--store"), "{why}");
        for (text, want) in [
            ("", folder.path().join("netaware-collect/fleet.db").display().to_string()),
            ("store = 'kept.db'", folder.path().join("kept.db").display().to_string()),
            ("store = 'clickhouse://ch/netaware'", "clickhouse://ch/netaware".to_owned()),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(store_of(&file).unwrap(), want);
        }
    }

    #[test]
    fn milliseconds_fit_their_column() {
        for (ns, want) in
            [(0, "0.000"), (1_234_567, "1.235"), (99_999_900, "100.0"), (12_345_678_900, "12346")]
        {
            assert_eq!(ms(Some(Span(ns))), want);
            assert!(ms(Some(Span(ns))).len() <= 6);
        }
        assert_eq!(ms(None), "-");
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(cell("a"), "a");
        assert_eq!(cell("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(cell("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0", "a probe names itself");
    }
}
