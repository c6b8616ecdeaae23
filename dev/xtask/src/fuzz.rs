//! Feeds hostile input to every target below `fuzz/`, with libFuzzer through cargo-fuzz on a
//! nightly toolchain.

use anyhow::{Result, bail};

use crate::shell::{self, cargo, command, output, works};

/// Runs each target for so many seconds, after installing what is missing, and returns how many
/// there are. Findings stay in `fuzz/artifacts`.
pub(crate) fn run(seconds: u32) -> Result<usize> {
    if !std::path::Path::new("fuzz/Cargo.toml").exists() {
        bail!("there is no fuzz/Cargo.toml");
    }
    ensure_nightly()?;
    if !works(&mut cargo(&["fuzz", "--version"])) {
        eprintln!("installing cargo-fuzz");
        shell::run(&mut cargo(&["install", "cargo-fuzz", "--locked"]))?;
    }
    run_targets(seconds)
}

/// Whether every target compiles: what is fuzzed changes with each commit, and the targets are a
/// workspace of their own, which no other step builds.
pub(crate) fn compiles() -> Result<()> {
    let which = ["--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target/fuzz", "--locked", "--bins"];
    shell::run(&mut cargo(&[&["check"], &which[..]].concat()))
}

/// Reads how long each target is to run.
pub(crate) fn seconds(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(seconds),
        _ => Err("a whole number of seconds, at least 1, is needed: libFuzzer takes 0 for 'without end'"
            .to_owned()),
    }
}

fn run_targets(seconds: u32) -> Result<usize> {
    let listed = output(&mut cargo(&["+nightly", "fuzz", "list"]))?;
    let targets: Vec<&str> = listed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if targets.is_empty() {
        bail!("fuzz/ has no targets");
    }
    let limit = format!("-max_total_time={seconds}");
    for target in &targets {
        // An input that takes long, or much memory, is a finding too.
        let bounds = [limit.as_str(), "-rss_limit_mb=1024", "-timeout=10"];
        shell::run(&mut cargo(&[&["+nightly", "fuzz", "run", *target, "--"], &bounds[..]].concat()))?;
    }
    eprintln!("fuzzed {} targets for {seconds} s each, nothing found", targets.len());
    Ok(targets.len())
}

fn ensure_nightly() -> Result<()> {
    if output(&mut command("rustup", &["toolchain", "list"]))?.contains("nightly") {
        return Ok(());
    }
    eprintln!("installing a nightly toolchain: libFuzzer's instrumentation needs one");
    shell::run(&mut command("rustup", &["toolchain", "install", "nightly", "--profile", "minimal"]))
}
