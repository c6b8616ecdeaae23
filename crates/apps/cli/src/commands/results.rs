//! `netaware results`: what was measured before, here and by a fleet of probes.

mod active;
mod compare;
mod delays;
mod delete;
mod export;
mod fleet;
mod list;
mod plot;
mod probes;
mod show;
mod tasks;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use netaware_store::{OpenError, Store};
use netaware_units::Wall;

use crate::config::Parsed;
use crate::exit::Exit;

const AFTER: &str = "\
Examples:
  netaware results list --command tcp --limit 5
  netaware results list --label 'hall B'
  netaware results show last
  netaware results show 019a2b3c --format json
  netaware results plot last --output scan.png
  netaware results export --command udp --format csv -o udp.csv
  netaware results compare VPN 'hall B'
  netaware results delete 019a2b3c
  netaware results delays --pair berlin,paris --from 6h
  netaware results active --task bulk.bern

An ID is that of a result or of a series. It may be cut off after as many digits as tell it from others; 'last' is the \
newest.";

/// List, show, plot, compare, export and delete saved results
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Results {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::List),
    Show(show::Show),
    Plot(plot::Plot),
    Compare(compare::Compare),
    Export(export::Export),
    Delete(delete::Delete),
    Delays(delays::Delays),
    Probes(probes::Probes),
    Tasks(tasks::Tasks),
    Active(active::Active),
}

/// Which file of results.
#[derive(Debug, Args)]
struct Place {
    /// The file of results instead of netaware/results.db in the user's data folder
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
}

/// What a file of results that is not there means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// Its name was typed: a mistake.
    IsAnError,
    /// It is where results go once there are some.
    IsEmpty,
}

impl Place {
    /// To read; nothing is made.
    ///
    /// # Errors
    /// There is no such file, or it cannot be read.
    fn read(&self) -> anyhow::Result<Store> {
        Ok(Store::open_to_read(self.path()?)?)
    }

    /// To read; `None` for a file that is not there and need not be.
    ///
    /// # Errors
    /// As [`Place::read`].
    fn read_if_any(&self, absent: Absent) -> anyhow::Result<Option<Store>> {
        read_if_any(&self.path()?, absent)
    }

    /// To read what pages of strangers sent; `None` where they sent nothing.
    ///
    /// # Errors
    /// It cannot be read.
    fn of_strangers(&self) -> anyhow::Result<Option<Store>> {
        read_if_any(&netaware_store::strangers_path(&self.path()?), Absent::IsEmpty)
    }

    /// To change what is in it.
    ///
    /// # Errors
    /// There is no such file, or it cannot be written.
    fn change(&self) -> anyhow::Result<Store> {
        Ok(Store::open_existing(self.path()?)?)
    }

    fn path(&self) -> Result<PathBuf, OpenError> {
        self.store.clone().map_or_else(netaware_store::default_path, Ok)
    }
}

fn read_if_any(file: &Path, absent: Absent) -> anyhow::Result<Option<Store>> {
    match Store::open_to_read(file) {
        Ok(store) => Ok(Some(store)),
        Err(OpenError::Missing { .. } | OpenError::Empty { .. }) if absent == Absent::IsEmpty => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Results {
    /// Does it.
    ///
    /// # Errors
    /// The file cannot be read, or no one result has the ID.
    pub(crate) fn run(&self, parsed: &Parsed) -> anyhow::Result<Exit> {
        match &self.action {
            Action::List(list) if parsed.is_typed("store") => list.run(Absent::IsAnError),
            Action::List(list) => list.run(Absent::IsEmpty),
            Action::Show(show) => show.run(),
            Action::Plot(plot) => plot.run(),
            Action::Compare(compare) => compare.run(),
            Action::Export(export) => export.run(),
            Action::Delete(delete) => delete.run(),
            Action::Delays(delays) => delays.run(),
            Action::Probes(probes) => probes.run(),
            Action::Tasks(tasks) => tasks.run(),
            Action::Active(active) => active.run(),
        }
    }
}

fn local(at: Wall, zone: &TimeZone) -> String {
    match Timestamp::from_nanosecond(i128::from(at.0)) {
        Ok(at) => at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_time_there_is_has_a_form() {
        assert_eq!(local(Wall(i64::MIN), &TimeZone::UTC), "1677-09-21 00:12:43");
    }
}
