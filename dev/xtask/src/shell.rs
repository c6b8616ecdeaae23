//! Runs other programs, showing each command line before its output.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::node;

/// Top folder of the checkout.
pub fn root() -> PathBuf {
    // Cargo sets it when it runs us; the compile-time value serves a binary started by hand.
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let above = Path::new(&here).ancestors().nth(2);
    above.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The variable by which tests know that nothing may be skipped.
pub const CI: &str = "CI";

/// The profile in which everything is tested.
pub const CHECKED: &str = "checked";

/// `cargo …`, to be run in the top folder.
pub fn cargo(arguments: &[&str]) -> Command {
    command("cargo", arguments)
}

/// Any program. It and what it starts find the newer Node, where one was installed, before the
/// system's.
pub fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(newer) = node::newer() {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(newer).chain(std::env::split_paths(&others));
        if let Ok(path) = std::env::join_paths(all) {
            command.env("PATH", path);
        }
    }
    command
}

/// Runs to the end; an exit status other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    eprintln!("$ {line}");
    let status = command.status().map_err(|error| not_started(command, error))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs to the end, whatever its exit status: for programs whose findings are in a file.
pub fn run_to_end(command: &mut Command) -> Result<()> {
    let line = line(command);
    eprintln!("$ {line}");
    command.status().map(drop).map_err(|error| not_started(command, error))
}

/// What a program prints; an exit status other than 0 is an error that carries its stderr.
pub fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command.stdin(Stdio::null()).output().map_err(|error| not_started(command, error))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{line}` failed ({}): {}", output.status, stderr.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn not_started(command: &Command, error: std::io::Error) -> anyhow::Error {
    let program = command.get_program().to_string_lossy();
    let advice = match (error.kind(), &*program) {
        (ErrorKind::NotFound, "cargo" | "rustup") => "; install it from https://rustup.rs",
        (ErrorKind::NotFound, "node" | "npm") => "; install Node 20.19 or newer",
        (ErrorKind::NotFound, _) => "; install it, or put its folder into PATH",
        _ => "",
    };
    anyhow::Error::new(error).context(format!("could not start `{}`{advice}", line(command)))
}

/// Whether a program can be started and ends well.
pub fn works(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

/// Runs this program once more with `CI=true`, so that every child process sees it, and ends as
/// that did. With it a test that cannot run fails instead of skipping.
pub fn become_ci(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<()> {
    let this = std::env::current_exe()?;
    let mut again = Command::new(this);
    let status =
        again.args(arguments).env(CI, "true").status().map_err(|error| not_started(&again, error))?;
    // What failed has been said.
    std::process::exit(status.code().unwrap_or(1))
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// What `cargo metadata` says of the packages of this workspace.
pub fn workspace() -> Result<serde_json::Value> {
    let text = output(&mut cargo(&["metadata", "--format-version=1", "--no-deps", "--locked"]))?;
    serde_json::from_str(&text).context("`cargo metadata` printed something that is not JSON")
}
