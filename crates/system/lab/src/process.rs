//! Processes told apart by number *and* start time, so that a number that was given again is nobody
//! we know.

use std::process::{Child, ExitStatus};

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_units::Span;
use serde::{Deserialize, Serialize};

use crate::system::{Process, Signal};

/// One process, past or present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub started: u64,
}

impl ProcessId {
    /// The process that asks.
    pub fn own() -> Self {
        let pid = std::process::id();
        Self { pid, started: start_of(pid).unwrap_or(0) }
    }

    /// Whether it still runs.
    pub fn lives(self) -> bool {
        start_of(self.pid) == Some(self.started)
    }

    /// A hold on it, if it lives: taken first and checked afterwards, so that it is the right one.
    pub(crate) fn hold(self) -> Option<Process> {
        let held = Process::hold(self.pid).ok()?;
        self.lives().then_some(held)
    }
}

/// Ends a child: asks by SIGTERM, and after `patience` no longer asks.
///
/// # Errors
/// It cannot be waited for.
pub fn end_child(child: &mut Child, patience: Span) -> std::io::Result<ExitStatus> {
    end_child_sooner(child, patience, &StopFlag::new())
}

/// The same, but once `hurry` is raised there is no more patience.
///
/// # Errors
/// As [`end_child`].
pub fn end_child_sooner(child: &mut Child, patience: Span, hurry: &StopFlag) -> std::io::Result<ExitStatus> {
    if let Some(status) = child.try_wait()? {
        return Ok(status);
    }
    // It is not reaped yet, so its number is still its own.
    if let Ok(process) = Process::hold(child.id()) {
        process.signal(Signal::End);
        let until = clock::now() + patience;
        while !hurry.is_raised() && clock::now() < until {
            if process.await_end(LOOK_EVERY) {
                break;
            }
        }
    }
    child.kill()?;
    child.wait()
}

/// How long somebody waits who is in a hurry.
const LOOK_EVERY: Span = Span::from_millis(50);

/// `None` when there is no such process, or it has ended and only waits to be reaped.
fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(&stat)
}

/// The program's name, in parentheses, may contain anything; the last ")" ends it.
fn parse(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (state != "Z" && state != "X").then_some(())?;
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_that_hears_no_request_is_not_waited_for_by_who_is_in_a_hurry() {
        let mut deaf = Command::new("sh")
            .args(["-c", "trap '' TERM; echo ready; read x"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(deaf.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        let hurry = StopFlag::new();
        hurry.raise();
        let status = end_child_sooner(&mut deaf, Span::from_secs(3600), &hurry).unwrap();
        assert_eq!(status.signal(), Some(9));
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        assert_eq!(parse(stat), Some(4711));
        assert_eq!(parse(&stat.replace(") S", ") Z")), None);
        assert_eq!(parse("7 (x) S 1"), None);
    }

    #[test]
    fn a_number_that_was_given_again_is_somebody_else() {
        let own = ProcessId::own();
        assert!(own.lives() && own.hold().is_some());
        let other = ProcessId { started: own.started + 1, ..own };
        assert!(!other.lives() && other.hold().is_none());
    }
}
