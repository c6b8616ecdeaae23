//! Exit codes: the same three everywhere, so that scripts and schedulers can rely on them.

use std::io;
use std::process::ExitCode;

use netaware_record::Conclusion;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Measured, or done what was asked.
    Done,
    /// Measured, and a threshold failed.
    ThresholdFailed,
    /// Could not measure, or not to the end, or not do what was asked; a wrong command line too.
    NotMeasured,
    /// As the program ended that was run for the user.
    Program(u8),
}

/// For help texts.
pub(crate) const HELP: &str = "\
Exit codes:
  0  measured
  1  measured, and a threshold given with --expect failed
  2  could not measure, or the command line is wrong";

impl From<Conclusion> for Exit {
    fn from(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Measured => Self::Done,
            Conclusion::Missed => Self::ThresholdFailed,
            Conclusion::Failed => Self::NotMeasured,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::ThresholdFailed => 1,
            Exit::NotMeasured => 2,
            Exit::Program(code) => code,
        })
    }
}

/// The error and its causes on one line. Many of our errors name their cause themselves; it is not
/// said twice.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if sentence.contains(&cause) {
            continue;
        }
        if !sentence.is_empty() {
            sentence.push_str(": ");
        }
        sentence.push_str(&cause);
    }
    sentence.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Whoever reads our output has read enough: no error of ours.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = Some(io::ErrorKind::BrokenPipe);
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().map(io::Error::kind) == closed
            || cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind) == closed
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let named = anyhow::anyhow!("no entry").context("cannot read x: no entry");
        assert_eq!(sentence(&named), "cannot read x: no entry");
        let bare = Err::<(), _>(anyhow::anyhow!("no entry")).context("cannot read x").unwrap_err();
        assert_eq!(sentence(&bare), "cannot read x: no entry");
    }

    #[test]
    fn a_closed_pipe_is_seen_through_other_errors() {
        let pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_closed_pipe(&anyhow::Error::from(pipe()).context("stdout")));
        assert!(is_closed_pipe(&serde_json::Error::io(pipe()).into()));
        assert!(!is_closed_pipe(&anyhow::anyhow!("broken pipe")));
    }
}
