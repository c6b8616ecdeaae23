//! Programs of Node, in the folder of the page.

use std::process::Command;

use anyhow::Result;

use crate::shell::{command, root, run};

/// Installs what the page's tests and its bundle need.
///
/// # Errors
/// npm cannot.
pub fn install() -> Result<()> {
    run(&mut in_web("npm", &["ci", "--no-audit", "--no-fund"]))
}

/// Any program, to be run in `web/`.
pub fn in_web(program: &str, arguments: &[&str]) -> Command {
    let mut command = command(program, arguments);
    command.current_dir(root().join("web"));
    command
}
