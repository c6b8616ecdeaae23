//! The `netaware` command: flags, printing, exit codes. It decides how a measurement is asked for
//! and shown; what is measured, and how, lies in the rooms below.
//!
//! Reading order: `cli` (the commands), one file per command in `commands`, `measure` (what all
//! measuring commands do), `series` (more than one measurement), `config` (where values come from),
//! `render` (how a record looks).

/// As the standard library's, but without a panic when whoever reads stderr has gone: a pipe that
/// was closed, a terminal that was hung up. What is said there is never the result.
macro_rules! eprintln {
    ($($what:tt)*) => {{
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{}\n", format_args!($($what)*)).as_bytes());
    }};
}

/// As [`eprintln`], without the end of the line.
macro_rules! eprint {
    ($($what:tt)*) => {{
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!($($what)*).as_bytes());
    }};
}

mod arrival_file;
mod cli;
mod commands;
mod config;
mod exit;
mod expect;
mod flags;
mod live;
mod log_queue;
mod measure;
mod own_responder;
mod plot;
mod render;
mod series;
mod signals;
mod sink;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::cli::Cli;
use crate::config::Sources;
use crate::exit::Exit;

fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let exit = match run(&typed) {
        Ok(exit) => exit,
        Err(error) if exit::is_reader_gone(&error) => Exit::Done,
        Err(error) => {
            eprintln!("error: {}", exit::sentence(&error));
            Exit::NotMeasured
        }
    };
    log_queue::finish();
    exit.into()
}

fn run(typed: &[OsString]) -> anyhow::Result<Exit> {
    let parsed = config::parsed(Cli::command(), typed, &Sources::of_this_process())?;
    Cli::from_arg_matches(&parsed.merged).unwrap_or_else(|error| error.exit()).command.run(&parsed)
}
