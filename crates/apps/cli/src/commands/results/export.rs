//! `netaware results export`: many results at once, one row or object each.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use netaware_record::Record;
use netaware_store::{Among, Filter, Found, Store};
use uuid::Uuid;

use super::{Place, show};
use crate::exit::Exit;
use crate::flags::output::Format;
use crate::render::{Paint, csv};
use crate::series::rows::Rows;
use crate::sink::{Existing, Sink};

/// Export results for spreadsheets and programs: those of given IDs, or all that match
#[derive(Debug, Args)]
pub(super) struct Export {
    /// IDs of results and series, their beginnings, or 'last'; all results without any
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Only of this command: test, tcp, udp or latency
    #[arg(long, value_name = "NAME", conflicts_with = "ids")]
    command: Option<String>,
    /// Only to this host, as it was typed
    #[arg(long, value_name = "HOST", conflicts_with = "ids")]
    host: Option<String>,
    /// Only with this label
    #[arg(long, value_name = "TEXT", conflicts_with = "ids")]
    label: Option<String>,
    /// csv (one command's results), ndjson or json
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "ndjson", hide_possible_values = true)]
    format: ExportFormat,
    /// Write to this file instead of standard output; a file that is there already is refused
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Add to the file of --output, without a second heading
    #[arg(long, requires = "output")]
    append: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    Csv,
    Ndjson,
    Json,
}

impl ExportFormat {
    fn format(self) -> Format {
        match self {
            Self::Csv => Format::Csv,
            Self::Ndjson => Format::Ndjson,
            Self::Json => Format::Json,
        }
    }
}

/// Where the rows go.
struct Writer {
    sink: Sink,
    format: Format,
    rows: Rows,
    /// Of the first record: a table has one set of columns.
    command: Option<String>,
}

impl Export {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if self.append && self.format == ExportFormat::Json {
            bail!("a JSON file holds one value and cannot be added to: use --format ndjson");
        }
        let store = self.place.read()?;
        let selections = self.selections(&store)?;
        if self.format == ExportFormat::Csv {
            check_commands(&store, &selections)?;
        }
        let existing = if self.append { Existing::Append } else { Existing::Refuse };
        let sink = Sink::open(self.output.as_deref(), existing, self.format.format())?;
        let format = self.format.format();
        let rows = Rows::new(
            format,
            Paint::for_file(crate::flags::output::Colour::Never),
            TimeZone::system(),
            sink.heading(),
        );
        let mut writer = Writer { sink, format, rows, command: None };
        for filter in selections {
            let mut written: anyhow::Result<()> = Ok(());
            match filter {
                Selection::One(id) => written = writer.write(&store.get(&id.to_string())?),
                Selection::Many(filter) => store.each(&filter, |record| {
                    written = writer.write(&record);
                    if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?,
            }
            written?;
        }
        if writer.command.is_none() {
            eprintln!("no results match");
        }
        writer.sink.write(writer.rows.end().as_bytes())?;
        Ok(Exit::Done)
    }

    fn selections(&self, store: &Store) -> anyhow::Result<Vec<Selection>> {
        if self.ids.is_empty() {
            return Ok(vec![Selection::Many(Filter {
                command: self.command.clone(),
                host: self.host.clone(),
                label: self.label.clone(),
                ..Filter::default()
            })]);
        }
        let of = |id: &String| {
            Ok(match store.resolve(id)? {
                Found::Record(id) => Selection::One(id),
                Found::Series(id) => Selection::Many(Filter { series: Among::Of(id), ..Filter::default() }),
            })
        };
        self.ids.iter().map(of).collect()
    }
}

enum Selection {
    One(Uuid),
    Many(Filter),
}

impl Selection {
    fn filter(&self) -> Filter {
        match self {
            Self::One(id) => Filter { id: Some(*id), ..Filter::default() },
            Self::Many(filter) => filter.clone(),
        }
    }
}

/// Checks before anything is written that one table can hold all these results: a list names their
/// commands without reading the results themselves.
///
/// # Errors
/// A command has no CSV form, results are of different commands, or the store cannot be read.
fn check_commands(store: &Store, selections: &[Selection]) -> anyhow::Result<()> {
    let mut first: Option<String> = None;
    for selection in selections {
        // The list is newest first, and the rows are oldest first.
        for summary in store.list(&selection.filter(), u32::MAX)?.into_iter().rev() {
            check_command(first.as_deref(), &summary.command)?;
            first.get_or_insert(summary.command);
        }
    }
    Ok(())
}

/// # Errors
/// Results of this command have no CSV form, or other columns than those of the first command.
fn check_command(first: Option<&str>, command: &str) -> anyhow::Result<()> {
    show::has_form(command, Format::Csv)?;
    let first = first.unwrap_or(command);
    ensure!(
        first == command,
        "'{first}' and '{command}' results have different columns: choose one with --command"
    );
    Ok(())
}

impl Writer {
    fn write(&mut self, record: &Record) -> anyhow::Result<()> {
        if self.format == Format::Csv {
            self.fits_the_table(record)?;
        }
        self.command.get_or_insert_with(|| record.command.clone());
        Ok(self.sink.write(self.rows.row(record)?.as_bytes())?)
    }

    /// The commands are checked here again: another process may have saved a result meanwhile.
    fn fits_the_table(&self, record: &Record) -> anyhow::Result<()> {
        check_command(self.command.as_deref(), &record.command)?;
        if self.command.is_none() {
            let columns = csv::ScanColumns::of_record(record);
            self.sink.check_heading(&csv::heading(&record.command, Some(&columns)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::Wall;

    use super::*;
    use crate::render::fixture;

    fn export(folder: &std::path::Path, ids: Vec<String>) -> Export {
        Export {
            ids,
            command: None,
            host: None,
            label: None,
            format: ExportFormat::Csv,
            output: Some(folder.join("out.csv")),
            append: false,
            place: Place { store: Some(folder.join("results.db")) },
        }
    }

    /// The rows of the first command were in the file when the second one was met.
    #[test]
    fn results_that_do_not_fit_into_one_table_are_refused_before_a_row_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("results.db")).unwrap();
        let ids: Vec<Uuid> = (1..=3).map(Uuid::from_u128).collect();
        for (n, fixture) in [fixture::udp(), fixture::tcp(), fixture::test()].into_iter().enumerate() {
            let started_at = Wall(1_700_000_000_000_000_000 + n as i64);
            store.save(&Record { id: ids[n], started_at, series: None, ..fixture }).unwrap();
        }
        let run = |numbers: &[usize]| {
            let named = numbers.iter().map(|n| ids[*n].to_string()).collect();
            export(folder.path(), named).run().map_err(|error| error.to_string())
        };
        let different = "'udp' and 'tcp' results have different columns: choose one with --command";
        let formless = "a 'test' result has no CSV form: use --format json";
        let rows: [(&[usize], &str); 3] = [(&[], different), (&[0, 1], different), (&[0, 2], formless)];
        for (numbers, want) in rows {
            assert_eq!(run(numbers).unwrap_err(), want, "{numbers:?}");
            assert!(!folder.path().join("out.csv").exists(), "{numbers:?}");
        }
        assert_eq!(run(&[0]), Ok(Exit::Done));
        let written = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
        assert!(written.contains(&ids[0].to_string()), "{written}");
    }
}
