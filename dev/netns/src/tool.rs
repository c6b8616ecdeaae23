//! Runs `ip`, `tc` and `nft`, and says what they answered when they refuse.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Why a namespace could not be made, changed or used.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// The program is not there, or could not be started.
    #[error("could not run `{command}`: {source}")]
    Spawn {
        /// The command line.
        command: String,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The program ran and failed.
    #[error("`{command}` failed ({status}): {stderr}")]
    Refused {
        /// The command line.
        command: String,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// What it printed to say why.
        stderr: String,
    },
    /// A file below `/etc/netns` could not be written.
    #[error("could not write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: std::io::Error,
    },
    /// A process did not open its port in time.
    #[error("process {pid} did not listen on {transport} port {port} within {patience_ms} ms")]
    NotBound {
        /// The process waited for.
        pid: u32,
        /// "TCP" or "UDP".
        transport: &'static str,
        /// The port.
        port: u16,
        /// How long we waited.
        patience_ms: u64,
    },
}

/// Runs a program to its end and returns what it printed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, NetnsError> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    answer(output, || line(program, arguments))
}

/// Runs a program with `input` on its standard input.
pub(crate) fn run_with_input(program: &str, arguments: &[&str], input: &str) -> Result<String, NetnsError> {
    let pipes = |command: &mut Command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let output = pipes(Command::new(program).args(arguments)).and_then(|mut child| {
        // A child that dies before it has read everything says why on stderr; the broken pipe says
        // less.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
        child.wait_with_output()
    });
    answer(output, || line(program, arguments))
}

fn answer(output: std::io::Result<Output>, command: impl Fn() -> String) -> Result<String, NetnsError> {
    let output = output.map_err(|source| NetnsError::Spawn { command: command(), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(NetnsError::Refused { command: command(), status: output.status, stderr })
}

fn line(program: &str, arguments: &[&str]) -> String {
    format!("{program} {}", arguments.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_carries_the_command_and_its_own_words() {
        let refused = run("sh", &["-c", "echo no such device >&2; exit 3"]).unwrap_err().to_string();
        assert!(refused.contains("no such device"), "{refused}");
        assert!(refused.contains("sh -c"), "{refused}");
    }

    #[test]
    fn missing_program_is_named() {
        let missing = run("netaware-no-such-program", &[]).unwrap_err().to_string();
        assert!(missing.contains("netaware-no-such-program"), "{missing}");
    }

    #[test]
    fn input_reaches_the_program() {
        assert_eq!(run_with_input("cat", &[], "rules").unwrap(), "rules");
    }
}
