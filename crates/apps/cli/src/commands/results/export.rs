//! `netaware results export`: many results at once, one row or object each.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use netaware_record::Record;
use netaware_store::{Among, Filter, Found, Store};

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
                Selection::One(id) => written = writer.write(&store.get(&id)?),
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
                Found::Record(id) => Selection::One(id.to_string()),
                Found::Series(id) => Selection::Many(Filter { series: Among::Of(id), ..Filter::default() }),
            })
        };
        self.ids.iter().map(of).collect()
    }
}

enum Selection {
    One(String),
    Many(Filter),
}

impl Writer {
    fn write(&mut self, record: &Record) -> anyhow::Result<()> {
        if self.format == Format::Csv {
            self.fits_the_table(record)?;
        }
        self.command.get_or_insert_with(|| record.command.clone());
        Ok(self.sink.write(self.rows.row(record)?.as_bytes())?)
    }

    fn fits_the_table(&self, record: &Record) -> anyhow::Result<()> {
        show::has_form(&record.command, self.format)?;
        match &self.command {
            Some(command) => ensure!(
                *command == record.command,
                "'{command}' and '{}' results have different columns: choose one with --command",
                record.command
            ),
            None => {
                let columns = csv::ScanColumns::of_record(record);
                self.sink.check_heading(&csv::heading(&record.command, Some(&columns)))?;
            }
        }
        Ok(())
    }
}
