//! Formatting and lints.

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
