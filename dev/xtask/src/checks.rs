//! Formatting and lints, and whether what nobody builds every day still compiles.

use anyhow::Result;

use crate::shell::{cargo, run};

pub(crate) fn check() -> Result<()> {
    formatting()?;
    lints()
}

pub(crate) fn formatting() -> Result<()> {
    run(&mut cargo(&["fmt", "--all", "--check"]))
}

pub(crate) fn lints() -> Result<()> {
    run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))
}

/// The targets of the fuzzer are a workspace of their own. They run on a nightly toolchain and compile on any.
pub(crate) fn fuzz_targets() -> Result<()> {
    run(&mut cargo(&["check", "--locked", "--manifest-path", "fuzz/Cargo.toml"]))
}
