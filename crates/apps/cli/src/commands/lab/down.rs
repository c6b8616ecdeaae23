//! `netaware lab down`: removes labs.

use std::io::Write;

use anyhow::bail;
use clap::Args;
use netaware_lab::{LabError, Removed, check_permission, down, down_all};

use super::Prefix;
use crate::exit::Exit;
use crate::sink;

const LONG: &str = "\
Removes a lab: its emulator, every program that runs on its hosts, and the hosts. Works after a crash, and again. Touches \
only what netaware made.";

#[derive(Debug, Args)]
#[command(long_about = LONG)]
pub(super) struct Down {
    #[command(flatten)]
    lab: Prefix,
    /// All labs of this machine
    #[arg(long, conflicts_with = "prefix")]
    all: bool,
}

impl Down {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if !self.all {
            let removed = down(&self.lab.prefix)?;
            return Exit::Done.once_printed(told(&self.lab.prefix, &removed));
        }
        check_permission()?;
        let (mut failures, mut printed) = (Vec::new(), Ok(()));
        for (prefix, outcome) in down_all() {
            match outcome {
                Ok(removed) => printed = printed.and(told(&prefix, &removed)),
                Err(error) => failures.push(error),
            }
        }
        match &failures[..] {
            [] => Exit::Done.once_printed(printed),
            all => bail!("{}", all.iter().map(LabError::to_string).collect::<Vec<_>>().join("; ")),
        }
    }
}

fn told(prefix: &str, removed: &Removed) -> std::io::Result<()> {
    for name in &removed.foreign {
        eprintln!("warning: the namespace '{name}' was made by somebody else and is still there");
    }
    let mut out = sink::stdout();
    if !removed.was_there {
        return writeln!(out, "there is no lab '{prefix}'");
    }
    writeln!(out, "lab '{prefix}' is gone")?;
    if let Some(report) = &removed.report {
        writeln!(out, "  {report}")?;
    }
    Ok(())
}
