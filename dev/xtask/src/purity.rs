//! Proves what the architecture claims: base and engines compile for a target without an operating
//! system, and everything that is meant to be portable compiles for macOS.

use std::path::Path;

use anyhow::{Result, bail};

use crate::shell::{cargo, command, output, root, run, workspace};

/// Nothing below it: whatever needs libc, a socket library or a source of randomness does not
/// compile here. What the standard library offers does compile and would fail when called; clocks
/// and sleep are left to clippy's disallowed methods.
const NO_SYSTEM: &str = "wasm32-unknown-unknown";
const MACOS: &str = "x86_64-apple-darwin";
const PORTABLE: &[&str] = &[
    "netaware-units",
    "netaware-stats",
    "netaware-wire",
    "netaware-record",
    "netaware-engine",
    "netaware-netmodel",
    "netaware-probe",
    "netaware-sim",
    "netaware-io",
    "netaware-host",
    "netaware-stream",
    "netaware-server",
    "netaware-prober",
    "netaware-relay",
    "netaware-ffi",
];

/// The packages that may contain no socket, clock or thread.
pub(crate) fn pure_packages() -> Result<Vec<String>> {
    let pure = packages_below(&["crates/base", "crates/engines"])?;
    if pure.is_empty() {
        bail!("found no package below crates/base or crates/engines");
    }
    Ok(pure)
}

/// Whether base and engines compile for a target without an operating system.
pub(crate) fn prove() -> Result<()> {
    ensure_targets(&[NO_SYSTEM])?;
    let pure = pure_packages()?;
    run(&mut cargo(&for_target(NO_SYSTEM, pure.iter().map(String::as_str))))
}

/// Whether everything that is meant to be portable compiles for macOS.
pub(crate) fn portable() -> Result<()> {
    ensure_targets(&[MACOS])?;
    // Checked, not built: what this proves is the Rust of it. C code among the dependencies would
    // need a compiler and headers of macOS; two programs that do nothing stand in for them.
    let mut check = cargo(&for_target(MACOS, PORTABLE.iter().copied()));
    run(check.envs([("CC_x86_64_apple_darwin", "true"), ("AR_x86_64_apple_darwin", "true")]))
}

fn for_target<'a>(target: &'a str, packages: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let packages = packages.flat_map(|package| ["--package", package]);
    ["check", "--locked", "--lib", "--target", target].into_iter().chain(packages).collect()
}

fn ensure_targets(targets: &[&str]) -> Result<()> {
    let installed = output(&mut command("rustup", &["target", "list", "--installed"]))?;
    for target in targets.iter().filter(|target| !installed.lines().any(|line| line == **target)) {
        run(&mut command("rustup", &["target", "add", target]))?;
    }
    Ok(())
}

fn packages_below(folders: &[&str]) -> Result<Vec<String>> {
    let workspace = workspace()?;
    let packages = workspace["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let root = root().canonicalize()?;
    let lies_below =
        |manifest: &str| folders.iter().any(|folder| Path::new(manifest).starts_with(root.join(folder)));
    let pure = packages.iter().filter(|package| package["manifest_path"].as_str().is_some_and(lies_below));
    Ok(pure.filter_map(|package| package["name"].as_str().map(str::to_owned)).collect())
}
