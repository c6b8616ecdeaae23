//! Exit codes: the same three everywhere, so that scripts and schedulers can rely on them.

use std::io;
use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Measured, or done what was asked.
    Done,
    /// Measured, and a threshold failed.
    ThresholdFailed,
    /// Could not measure, or not do what was asked; a wrong command line too.
    NotMeasured,
}

/// For help texts.
pub(crate) const HELP: &str = "\
Exit codes:
  0  measured
  1  measured, and a threshold given with --expect failed
  2  could not measure, or the command line is wrong";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::ThresholdFailed => 1,
            Exit::NotMeasured => 2,
        })
    }
}

/// Whoever reads our output has read enough: no error of ours.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = Some(io::ErrorKind::BrokenPipe);
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().map(io::Error::kind) == closed
            || cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind) == closed
    })
}
