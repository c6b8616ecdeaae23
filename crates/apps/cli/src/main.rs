//! The `netaware` command: flags, printing, exit codes. It decides how a measurement is asked for
//! and shown; what is measured, and how, lies in the rooms below.
//!
//! Reading order: `cli` (the commands), one file per command in `commands`, `measure` (what all
//! measuring commands do), `series` (more than one measurement), `config` (where values come from),
//! `render` (how a record looks).

/// As the standard library's, but without a panic when whoever reads stderr has gone: a pipe that
/// was closed, a terminal that was hung up; and nothing in it steers a terminal. What is said there
/// is never the result.
macro_rules! eprintln {
    ($($what:tt)*) => {{
        let _ = std::io::Write::write_all(&mut std::io::stderr(), crate::terminal::safe(&format!("{}\n", format_args!($($what)*))).as_bytes());
    }};
}

/// As [`eprintln`], without the end of the line.
macro_rules! eprint {
    ($($what:tt)*) => {{
        let _ = std::io::Write::write_all(&mut std::io::stderr(), crate::terminal::safe(&format!($($what)*)).as_bytes());
    }};
}

mod arrival_file;
mod cli;
mod commands;
mod config;
mod confinement;
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
mod terminal;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::cli::Cli;
use crate::config::Sources;
use crate::exit::Exit;
use crate::flags::output::Colour;
use crate::render::Paint;

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
    let read = config::parsed(Cli::command(), typed, &Sources::of_this_process())
        .and_then(|parsed| Ok((Cli::from_arg_matches(&parsed.merged)?, parsed)));
    match read {
        Ok((cli, parsed)) => cli.command.run(&parsed),
        Err(error) => {
            let answer = error.downcast::<clap::Error>()?;
            Ok(print_answer(&mut sink::stdout(), &answer)?)
        }
    }
}

/// Prints what the parser answers to a command line that it does not hand on: the help or the
/// version that was asked for, or what is wrong with the line.
///
/// # Errors
/// The help or the version cannot be printed.
fn print_answer(out: &mut dyn Write, answer: &clap::Error) -> io::Result<Exit> {
    if answer.use_stderr() {
        // A result never goes to stderr.
        let _ = answer.print();
        return Ok(Exit::NotMeasured);
    }
    out.write_all(Paint::for_stdout(Colour::Auto).help(&answer.render()).as_bytes())?;
    out.flush()?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what is written to it until a flush, which fails.
    struct FullDisk;

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_help_that_could_not_be_printed_is_an_error() {
        for line in ["netaware --version", "netaware --help", "netaware help tcp", "netaware tcp -h"] {
            let answer = Cli::command().try_get_matches_from(line.split(' ')).unwrap_err();
            let mut printed = Vec::new();
            assert_eq!(print_answer(&mut printed, &answer).unwrap(), Exit::Done, "{line}");
            assert!(String::from_utf8(printed).unwrap().contains("netaware"), "{line}");
            let error = print_answer(&mut FullDisk, &answer).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{line}");
        }
    }
}
