//! Why a lab could not be made, used or removed.

use std::io;
use std::path::PathBuf;

/// One sentence for the person who asked, with what to do where there is something to do.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A privilege, a program or a device is missing. Nothing was touched.
    #[error("a lab needs {missing}")]
    NotPermitted {
        /// What, and how to get it.
        missing: String,
    },
    /// The prefix cannot be part of a namespace's name.
    #[error("'{0}' is no prefix for a lab: 1 to 32 of a-z, A-Z, 0-9 and '-', and no '-' at the beginning")]
    BadPrefix(String),
    /// A lab of this prefix is there, up or left behind.
    #[error(
        "there is a lab '{prefix}' already: end it with `netaware lab down --prefix {prefix}`, or take another --prefix"
    )]
    AlreadyThere {
        /// Its prefix.
        prefix: String,
    },
    /// Something has a name that we would need, and we did not make it.
    #[error(
        "{what} exists already and was not made by netaware: remove it yourself, or take another --prefix"
    )]
    Foreign {
        /// The namespace or folder.
        what: String,
    },
    /// No lab has this prefix.
    #[error("there is no lab '{prefix}': `netaware lab list` shows those that are up")]
    NotThere {
        /// The prefix asked for.
        prefix: String,
    },
    /// The lab belongs to a program that made it for itself.
    #[error("the lab '{prefix}' belongs to process {pid}, which holds it for itself: end that process first")]
    Held {
        /// Its prefix.
        prefix: String,
        /// Who holds it.
        pid: u32,
    },
    /// The program that holds the lab does not end.
    #[error("process {pid}, which runs the lab '{prefix}', does not end")]
    WillNotEnd {
        /// Its prefix.
        prefix: String,
        /// Who holds it.
        pid: u32,
    },
    /// A program ran and failed.
    #[error("`{command}` failed: {said}")]
    Refused {
        /// The command line.
        command: String,
        /// What it printed to say why.
        said: String,
    },
    /// A system call failed.
    #[error("could not {operation}: {source}")]
    System {
        /// What was tried, on what.
        operation: String,
        /// What the system answered.
        source: io::Error,
    },
    /// A file of ours could not be written or read.
    #[error("could not use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
}

impl LabError {
    pub(crate) fn system(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let operation = operation.into();
        move |source| Self::System { operation, source }
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
