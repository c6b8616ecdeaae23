//! Runs `ip`, and says what it answered when it refuses.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::{LabError, system};

/// Runs `ip` with these arguments and returns what it printed.
pub(crate) fn ip(arguments: &[&str]) -> Result<String, LabError> {
    ip_with_input(arguments, "")
}

/// Runs many `ip` commands, one per line, in a namespace.
pub(crate) fn ip_batch(namespace: &str, lines: &str) -> Result<(), LabError> {
    ip_with_input(&["-netns", namespace, "-batch", "-"], lines).map(drop)
}

fn ip_with_input(arguments: &[&str], input: &str) -> Result<String, LabError> {
    let command = format!("ip {}", arguments.join(" "));
    let mut ip = Command::new("ip");
    ip.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    netaware_private::without_secrets(&mut ip);
    system::die_with_us(&mut ip);
    let output = ip.spawn().and_then(|mut child| {
        // Who dies before reading everything says why on stderr; the broken pipe says less.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
        child.wait_with_output()
    });
    let output = output.map_err(LabError::system(format!("run `{command}`")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(LabError::Refused { command, said: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
}
