//! `netaware results delete`.

use std::io::Write;

use anyhow::bail;
use clap::Args;
use netaware_store::Found;

use super::Place;
use crate::exit::Exit;
use crate::sink;

/// Delete saved results and whole series
#[derive(Debug, Args)]
pub(super) struct Delete {
    /// IDs, their beginnings, or 'last'
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    place: Place,
}

impl Delete {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let store = self.place.change()?;
        let mut printed = Ok(());
        for id in &self.ids {
            let done = match store.resolve(id)? {
                Found::Record(record) => format!("deleted {}", store.delete(&record.to_string())?),
                // Somebody who means one result must not lose a thousand.
                Found::Series(series) if id == "last" => {
                    bail!(
                        "the newest result belongs to the series {series}: give that ID to delete all of it"
                    )
                }
                Found::Series(series) => {
                    format!("deleted series {series} with {} results", store.delete_series(series)?)
                }
            };
            // The others go, too, if nobody reads of it any more.
            printed = printed.and(writeln!(sink::stdout(), "{done}"));
        }
        Exit::Done.once_printed(printed)
    }
}
