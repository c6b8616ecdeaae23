//! The tests of the repository in their suites; see [`crate::nextest`] and `.config/nextest.toml`.

use anyhow::{Result, bail};

use crate::nextest::{self, Outcome};
use crate::shell::{CHECKED, cargo, command, output, run as run_command, works};
use crate::{node, packages};

pub(crate) use crate::nextest::{Suite, build};

/// Installs what the tests need, then runs those of the gate.
pub(crate) fn all() -> Result<()> {
    packages::ensure(packages::FOR_TESTS)?;
    packages::unpack()?;
    nextest::ensure_tool()?;
    // One of the tests uses the collector's page as people do, by what drives a browser in the
    // tests of the other page.
    node::install()?;
    build()?;
    documentation()?;
    run_all(&Suite::GATE)
}

/// The tests in network namespaces only.
pub(crate) fn namespaces() -> Result<()> {
    packages::ensure(packages::FOR_TESTS)?;
    packages::unpack()?;
    nextest::ensure_tool()?;
    node::install()?;
    build()?;
    run_all(&[Suite::Waiting, Suite::Exclusive])
}

/// Runs suites of the gate, by its rules.
fn run_all(suites: &[Suite]) -> Result<()> {
    nextest::forget_inconclusive()?;
    suites.iter().copied().try_for_each(run)?;
    gate_totals().too_many_inconclusive().map_or(Ok(()), |why| bail!("{why}"))
}

/// Runs a suite; a failed test is an error.
pub(crate) fn run(suite: Suite) -> Result<()> {
    sweep()?;
    let outcome = nextest::run_suite(suite)?;
    println!("{outcome}");
    match outcome.failed() {
        0 => Ok(()),
        failed => bail!("{failed} of {} tests failed", outcome.cases.len()),
    }
}

/// The examples in the documentation of the crates.
pub(crate) fn documentation() -> Result<()> {
    run_command(&mut cargo(&["test", "--profile", CHECKED, "--locked", "--workspace", "--doc"]))
}

/// Installs cargo-c from source if it is missing: it installs the library as a packager would.
pub(crate) fn ensure_cargo_c() -> Result<()> {
    if works(&mut cargo(&["cinstall", "--version"])) {
        return Ok(());
    }
    eprintln!("installing cargo-c");
    run_command(&mut cargo(&["install", "cargo-c", "--locked", "--version", CARGO_C]))
}

/// The newest version that the pinned toolchain builds.
const CARGO_C: &str = "0.10.24";

/// What the suites of the gate did in their last run, together.
pub(crate) struct Totals {
    all: Outcome,
    in_namespaces: usize,
}

/// Reads what the suites of the gate left.
pub(crate) fn gate_totals() -> Totals {
    let mut totals = Totals { all: Outcome::default(), in_namespaces: 0 };
    for suite in Suite::GATE {
        // A report that cannot be read has failed its own step.
        let outcome = nextest::outcome(suite).unwrap_or_default();
        if suite != Suite::Computing {
            totals.in_namespaces += outcome.cases.len();
        }
        totals.all += outcome;
    }
    totals
}

impl Totals {
    /// Why the gate fails for want of verdicts, if it does: more than 5 % of the tests in
    /// namespaces could not be judged. Hardly any others can be inconclusive, so a share of all
    /// tests would never be reached.
    pub(crate) fn too_many_inconclusive(&self) -> Option<String> {
        let count = self.all.inconclusive.len();
        (count * 20 > self.in_namespaces)
            .then(|| format!("{count} of {} tests in namespaces are inconclusive", self.in_namespaces))
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.all.fmt(f)
    }
}

/// Clears away what a killed run left behind. Without root there is nothing of ours to clear.
pub(crate) fn sweep() -> Result<()> {
    if output(&mut command("id", &["-u"]))?.trim() == "0" {
        for name in netaware_netns::remove_stale()? {
            eprintln!("removed the namespace {name} of a test run that was killed");
        }
    }
    Ok(())
}

#[cfg(test)]
mod claims {
    use super::*;
    use crate::nextest::Inconclusive;

    #[test]
    fn more_than_one_inconclusive_test_in_twenty_fails_the_gate() {
        let spoiled = Inconclusive { test: "netns_hops::one".into(), reason: "the emulator was late".into() };
        let totals = |count| Totals {
            all: Outcome { inconclusive: vec![spoiled.clone(); count], ..Outcome::default() },
            in_namespaces: 100,
        };
        assert_eq!(totals(5).too_many_inconclusive(), None);
        assert!(totals(6).too_many_inconclusive().is_some());
    }
}
