//! Takes from a running program what it does not need any more.
//!
//! A program that listens to strangers opens its sockets and reads its keys first. Then it calls
//! [`Confinement::enter`], and whoever makes it run foreign code has little use of it:
//!
//! - **Files.** Only those below the named paths, and those of the system that every program reads,
//!   can be opened (Landlock, Linux 5.13 and later). What is open already stays usable.
//! - **Calls.** System calls that no measurement needs fail with `EPERM` in all threads (seccomp).
//! - **Capabilities.** No program that is started can gain any: `no_new_privs` is set and the
//!   bounding set is emptied.
//!
//! Each of the three is entered as far as the kernel has it, and the [`Report`] says how far. None
//! of them can be left again, and programs that are started inherit all three. Why calls are denied
//! by a list: `docs/decisions/confinement.md`.
//!
//! Landlock before Linux 7.0 holds the calling thread and those that it starts later. So enter
//! before other threads are started; those that were there are counted in the report.
#![cfg_attr(
    all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(unsafe_code, reason = "system calls without a safe wrapper; each block says why it is sound")
)]

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod elsewhere;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;

use std::fmt;
use std::path::PathBuf;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
use elsewhere as system;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use linux as system;

/// What a program still needs of the file system and of others. A path that does not exist when it
/// is entered gives no access to what is made there later.
#[derive(Debug, Clone, Default)]
pub struct Confinement {
    /// Files, and folders with all that is below them, that are read.
    pub reads: Vec<PathBuf>,
    /// The same that are read and written; files and folders in them are made and removed.
    pub writes: Vec<PathBuf>,
    /// Folders for temporary files.
    pub scratch: Vec<PathBuf>,
    /// Folders in which local sockets are made and removed.
    pub sockets: Vec<PathBuf>,
    /// Programs that are started in normal work; `None`: none are.
    pub programs: Option<Programs>,
}

/// Programs that a program starts.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Their files, those of their loaders among them.
    pub files: Vec<PathBuf>,
    /// Why they are started; for the report.
    pub why: &'static str,
}

impl Programs {
    /// This very program, which is started as `/proc/self/exe`.
    pub fn this_one(why: &'static str) -> Self {
        Self { files: system::this_program(), why }
    }
}

/// How far each part of a confinement is enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Landlock.
    pub files: Held,
    /// seccomp.
    pub calls: Held,
    /// `no_new_privs` and the bounding set.
    pub capabilities: Held,
}

/// How far one part is enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// All of it, for the whole process.
    Enforced,
    /// Not all of it; says what is missing and why.
    Partly(String),
    /// Nothing of it; says why.
    NotAvailable(String),
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enforced => f.write_str("enforced"),
            Self::Partly(why) => write!(f, "partly enforced: {why}"),
            Self::NotAvailable(why) => write!(f, "not available: {why}"),
        }
    }
}

impl Report {
    /// One line for each part.
    pub fn lines(&self) -> [String; 3] {
        [
            format!("confinement of files: {}", self.files),
            format!("confinement of system calls: {}", self.calls),
            format!("confinement of capabilities: {}", self.capabilities),
        ]
    }
}

impl Confinement {
    /// Enters it, as far as the kernel can. There is no way back.
    pub fn enter(&self) -> Report {
        system::enter(self)
    }
}

/// Takes all files from the calling thread, which is one that opens none. It does not count as a
/// thread that was there before a confinement.
pub fn forbid_files() {
    system::forbid_files();
}

/// Returns the folder in which SQLite makes its temporary files, if there is one
/// (<https://sqlite.org/tempfiles.html>, section 5).
pub fn sqlite_scratch() -> Option<PathBuf> {
    let named = ["SQLITE_TMPDIR", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let usual = ["/var/tmp", "/usr/tmp", "/tmp"].map(PathBuf::from);
    named.chain(usual).find(|folder| folder.is_dir() && system::may_write(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_said_in_one_line() {
        let report = Report {
            files: Held::NotAvailable("no Landlock".to_owned()),
            calls: Held::Partly("one is left".to_owned()),
            capabilities: Held::Enforced,
        };
        assert_eq!(
            report.lines(),
            [
                "confinement of files: not available: no Landlock",
                "confinement of system calls: partly enforced: one is left",
                "confinement of capabilities: enforced",
            ]
        );
    }
}
