//! Runs other programs, showing each command line before its output.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

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
pub fn run_to_end(command: &mut Command) -> Result<ExitStatus> {
    let line = line(command);
    eprintln!("$ {line}");
    command.status().map_err(|error| not_started(command, error))
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
    harden(&mut again);
    let status = again
        .args(arguments)
        .env(CI, "true")
        .env(HARDENED, "true")
        .status()
        .map_err(|error| not_started(&again, error))?;
    // What failed has been said.
    std::process::exit(status.code().unwrap_or(1))
}

/// Whether this process has a variable that [`harden`] takes away and was not started by
/// [`become_ci`].
pub fn is_soft() -> bool {
    let mut names = std::env::vars_os().map(|(name, _)| name);
    std::env::var_os(HARDENED).is_none() && names.any(|name| softens(&name.to_string_lossy()))
}

/// Set by [`become_ci`], so that it does so once.
const HARDENED: &str = "XTASK_HARDENED";

/// Takes from a command every variable of the environment that changes what is built, what tests
/// ask for, or which program they start.
pub fn harden(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if softens(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
}

/// Whether a variable does that: how often nextest runs a test, whether snapshots and other
/// committed files are written instead of compared, how many cases of a property are tried, whether
/// the compiler checks and warns, settings of netaware itself.
fn softens(variable: &str) -> bool {
    let prefixes = ["NEXTEST_", "INSTA_", "PROPTEST_", "CARGO_PROFILE_", "NETAWARE_"];
    let names =
        ["BLESS", "SEED", "SCENES", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CLIPPY_CONF_DIR"];
    let is_of_target = variable.starts_with("CARGO_TARGET_") && variable.ends_with("_RUNNER");
    let is_flags = variable.ends_with("RUSTFLAGS") || variable.ends_with("RUSTDOCFLAGS");
    names.contains(&variable)
        || is_of_target
        || is_flags
        || prefixes.iter().any(|prefix| variable.starts_with(prefix))
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

#[cfg(test)]
mod claims {
    use super::*;

    #[test]
    fn no_variable_of_the_environment_makes_the_gate_ask_for_less() {
        let softening = [
            "NEXTEST_RETRIES",
            "INSTA_UPDATE",
            "INSTA_FORCE_PASS",
            "PROPTEST_CASES",
            "BLESS",
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_RUSTDOCFLAGS",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
            "RUSTC_WRAPPER",
            "CLIPPY_CONF_DIR",
            "CARGO_PROFILE_CHECKED_OVERFLOW_CHECKS",
            "NETAWARE_LAB_CORE",
            "NETAWARE_STORE",
        ];
        for variable in softening {
            assert!(softens(variable), "{variable}");
        }
        for variable in ["CI", "PATH", "HOME", "CARGO_TARGET_DIR", "CARGO_HOME"] {
            assert!(!softens(variable), "{variable}");
        }
    }
}
