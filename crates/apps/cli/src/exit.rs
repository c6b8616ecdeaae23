//! Exit codes: the same three everywhere, so that scripts and schedulers can rely on them.

use std::io;
use std::process::ExitCode;

use netaware_record::{Conclusion, printable};

use crate::sink::ReaderGone;

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

impl Exit {
    /// The same, once what was done is printed. A reader who has gone has read enough: it changes
    /// nothing of what was done.
    ///
    /// # Errors
    /// It could not be printed for another reason.
    pub(crate) fn once_printed(self, printed: io::Result<()>) -> anyhow::Result<Self> {
        match printed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(self),
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
    printable(&sentence.replace(['\n', '\r', '\t'], " "))
}

/// Whether the error is only that the reader of standard output has gone. A command that only
/// prints is done then. Sockets and the pipes of children break, too, and those are errors.
pub(crate) fn is_reader_gone(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()?.get_ref());
    causes.any(|cause| cause.downcast_ref::<ReaderGone>().is_some())
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    /// The words are often those of the other end.
    #[test]
    fn an_error_of_the_other_end_cannot_steer_the_terminal() {
        let error = anyhow::anyhow!("refused:\n\u{1b}]0;x\u{7}\u{202e}");
        assert_eq!(sentence(&error), "refused: \u{fffd}]0;x\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_cause_is_said_once() {
        let named = anyhow::anyhow!("no entry").context("cannot read x: no entry");
        assert_eq!(sentence(&named), "cannot read x: no entry");
        let bare = Err::<(), _>(anyhow::anyhow!("no entry")).context("cannot read x").unwrap_err();
        assert_eq!(sentence(&bare), "cannot read x: no entry");
    }

    /// `lab up` whose holder had died before it read the scenario ended with 0.
    #[test]
    fn only_the_reader_of_standard_output_may_have_read_enough() {
        let gone = || io::Error::new(io::ErrorKind::BrokenPipe, ReaderGone);
        assert!(is_reader_gone(&anyhow::Error::from(gone()).context("stdout")));
        assert!(is_reader_gone(&io::Error::from(serde_json::Error::io(gone())).into()));
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(!is_reader_gone(&anyhow::Error::from(pipe).context("cannot hand the scenario over")));
        assert!(!is_reader_gone(&anyhow::anyhow!("broken pipe")));
    }

    #[test]
    fn a_reader_who_has_gone_does_not_make_a_failure_a_success() {
        let closed = || Err(io::ErrorKind::BrokenPipe.into());
        for exit in [Exit::Done, Exit::ThresholdFailed, Exit::NotMeasured] {
            assert_eq!(exit.once_printed(closed()).unwrap(), exit);
            assert_eq!(exit.once_printed(Ok(())).unwrap(), exit);
            assert!(exit.once_printed(Err(io::ErrorKind::StorageFull.into())).is_err());
        }
    }
}
