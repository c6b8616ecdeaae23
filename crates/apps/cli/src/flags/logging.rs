//! How programs that go on until they are ended tell what happens: `--log`, `-v`, `-q`.

use std::io::IsTerminal;

use anyhow::Context;
use clap::{ArgAction, Args, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::log_queue;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Log {
    /// For people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// Lines on stderr.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct Logging {
    /// Log lines as text or json
    #[arg(long, value_enum, value_name = "FORM", default_value_t, hide_possible_values = true)]
    log: Log,
    /// Log more; twice: everything
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Log warnings and errors only
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

impl Logging {
    pub(crate) fn level(&self) -> LevelFilter {
        match (self.quiet, self.verbose) {
            (true, _) => LevelFilter::WARN,
            (false, 0) => LevelFilter::INFO,
            (false, 1) => LevelFilter::DEBUG,
            (false, _) => LevelFilter::TRACE,
        }
    }

    /// From now on, for the whole process.
    ///
    /// # Errors
    /// The system starts no thread for it.
    pub(crate) fn start(&self) -> anyhow::Result<()> {
        let colour =
            std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let queue = log_queue::start().context("cannot start a thread for the log")?;
        let builder = tracing_subscriber::fmt()
            .with_max_level(self.level())
            .with_writer(queue)
            .with_target(false)
            .with_ansi(colour);
        match self.log {
            Log::Text => builder.init(),
            Log::Json => builder.json().flatten_event(true).init(),
        }
        Ok(())
    }
}
