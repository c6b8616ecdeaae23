//! `netaware results tasks`: what each task of a fleet yielded, and where.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::Result;
use clap::Args;
use jiff::tz::TimeZone;
use netaware_record::printable;
use netaware_store::fleet::TaskSummary;

use super::fleet::{Fleet, TableFormat, cell};
use super::local;
use crate::exit::Exit;
use crate::sink;

/// What the tasks of a fleet yielded
#[derive(Debug, Args)]
pub(super) struct Tasks {
    /// text, json or csv
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: TableFormat,
    #[command(flatten)]
    fleet: Fleet,
}

impl Tasks {
    pub(super) fn run(&self) -> Result<Exit> {
        let tasks = self.fleet.open()?.tasks(&self.fleet.period()?)?;
        let mut out = sink::stdout();
        match self.format {
            TableFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&tasks)?)?,
            TableFormat::Csv => write!(out, "{}", csv(&tasks))?,
            TableFormat::Text if tasks.is_empty() => eprintln!("no task yielded anything in this time"),
            TableFormat::Text => write!(out, "{}", text(&tasks, &TimeZone::system()))?,
        }
        Ok(Exit::Done)
    }
}

fn text(tasks: &[TaskSummary], zone: &TimeZone) -> String {
    let line = |[task, kind, origin, rows, last]: [&str; 5]| {
        format!("{task:<20} {kind:<9} {origin:<16} {rows:>9}  {last}\n")
    };
    let mut out = line(["task", "kind", "at", "rows", "last"]);
    for task in tasks {
        let (rows, last) = (task.rows.to_string(), local(task.last, zone));
        out.push_str(&line([
            &printable(&task.task),
            task.kind.name(),
            &printable(&task.origin),
            &rows,
            &last,
        ]));
    }
    out
}

fn csv(tasks: &[TaskSummary]) -> String {
    let mut out = "task,kind,at,rows,first_ns,last_ns\n".to_owned();
    for task in tasks {
        let names = format!("{},{},{}", cell(&task.task), task.kind.name(), cell(&task.origin));
        let _ = writeln!(out, "{names},{},{},{}", task.rows, task.first.0, task.last.0);
    }
    out
}

#[cfg(test)]
mod tests {
    use netaware_store::fleet::Kind;
    use netaware_units::Wall;

    use super::*;

    #[test]
    fn a_line_says_which_task_yielded_what_and_where() {
        let last = Wall(1_795_232_087_123_456_789);
        let task = TaskSummary {
            task: "web,2".into(),
            kind: Kind::Volume,
            origin: "berlin".into(),
            rows: 1234,
            first: Wall(5),
            last,
        };
        let shown = text(std::slice::from_ref(&task), &TimeZone::UTC);
        assert_eq!(
            shown,
            "task                 kind      at                    rows  last\n\
             web,2                volume    berlin                1234  2026-11-21 03:34:47\n"
        );
        let want = format!("task,kind,at,rows,first_ns,last_ns\n\"web,2\",volume,berlin,1234,5,{}\n", last.0);
        assert_eq!(csv(&[task]), want);
    }
}
