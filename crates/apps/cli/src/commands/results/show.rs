//! `netaware results show`: a result as it was printed, or a series as a table.

use std::ops::ControlFlow;

use anyhow::bail;
use clap::Args;
use jiff::tz::TimeZone;
use netaware_record::{Record, SeriesKind};
use netaware_store::{Among, Filter, Found, Store};
use uuid::Uuid;

use super::Place;
use crate::exit::Exit;
use crate::flags::output::{ColorFlag, Format};
use crate::render::{self, Paint};
use crate::series::rows::Rows;
use crate::series::summary::Summary;
use crate::sink::Sink;
use netaware_prober::size_fit::SizeScan;

/// Show a saved result, or the table of a series
#[derive(Debug, Args)]
pub(super) struct Show {
    /// The ID of a result or of a series, its beginning, or 'last'
    #[arg(value_name = "ID")]
    id: String,
    /// text, json, ndjson; csv or udpmon for tcp, udp and latency
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: Format,
    #[command(flatten)]
    paint: ColorFlag,
    #[command(flatten)]
    place: Place,
}

impl Show {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let store = self.place.read()?;
        let paint = Paint::for_stdout(self.paint.color);
        match store.resolve(&self.id)? {
            Found::Record(id) => {
                let record = store.get(&id.to_string())?;
                has_form(&record.command, self.format)?;
                let mut out = Vec::new();
                render::record(&mut out, &record, self.format, paint)?;
                Sink::Stdout.write(&out)?;
            }
            Found::Series(id) => self.show_series(&store, id, paint)?,
        }
        Ok(Exit::Done)
    }

    /// Point after point, as it was printed when it was measured.
    fn show_series(&self, store: &Store, id: Uuid, paint: Paint) -> anyhow::Result<()> {
        let filter = Filter { series: Among::Of(id), ..Filter::default() };
        let mut rows = Rows::new(self.format, paint, TimeZone::system(), None);
        let mut summary = Summary::default();
        let mut sizes = SizeScan::default();
        let mut is_first = true;
        let mut shown: anyhow::Result<()> = Ok(());
        store.each(&filter, |record| {
            let first = std::mem::replace(&mut is_first, false);
            shown = self.show_point(&record, first.then_some(id), &mut rows, paint);
            sizes.observe(&record);
            if record.series.as_ref().is_some_and(|series| series.kind == SeriesKind::Repeat) {
                summary.observe(&record);
            }
            if shown.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        shown?;
        Sink::Stdout.write(rows.end().as_bytes())?;
        if self.format == Format::Text {
            let closing = format!("{}{}", summary.lines(paint), render::size_fit::text(&sizes, paint));
            Sink::Stdout.write(closing.as_bytes())?;
        }
        Ok(())
    }

    /// `first` is the id of the series at its first point.
    fn show_point(
        &self,
        record: &Record,
        first: Option<Uuid>,
        rows: &mut Rows,
        paint: Paint,
    ) -> anyhow::Result<()> {
        if let Some(id) = first {
            has_form(&record.command, self.format)?;
            if self.format == Format::Text {
                Sink::Stdout.write(title(record, id, paint).as_bytes())?;
            }
        }
        Ok(Sink::Stdout.write(rows.row(record)?.as_bytes())?)
    }
}

fn title(record: &Record, id: Uuid, paint: Paint) -> String {
    let host = if record.request.own_responder { "loopback" } else { record.request.host.as_str() };
    let label = record.label.as_ref().map(|label| format!(", {label}")).unwrap_or_default();
    let planned = record.series.as_ref().map_or(0, |series| series.planned);
    let planned = if planned > 0 { format!(", {planned} points planned") } else { String::new() };
    let text = format!("netaware {} {host}{label}: series {id}{planned}", record.command);
    format!("{}\n\n", paint.heading(&render::paragraph("", &text)))
}

/// # Errors
/// Results of this command cannot be told in this format.
pub(super) fn has_form(command: &str, format: Format) -> anyhow::Result<()> {
    if format == Format::Csv && !render::has_csv_form(command) {
        bail!("a '{command}' result has no CSV form: use --format json");
    }
    if format == Format::Udpmon && !render::has_udpmon_form(command) {
        bail!("a '{command}' result has no UDPmon form: use --format json");
    }
    Ok(())
}
