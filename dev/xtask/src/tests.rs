//! Runs the tests: first all that bear company, then those in network namespaces, one at a time.

use anyhow::Result;
use serde_json::Value;

use crate::shell::{CHECKED, cargo, command, output, run, run_and_keep, works, workspace};
use crate::{packages, web};

/// All tests run in one kind of build, so that nothing is built twice.
const TEST: &[&str] = &["test", "--profile", CHECKED, "--locked"];

/// Integration tests whose file name starts like this need root and a quiet machine.
const NAMESPACE_PREFIX: &str = "netns_";

/// Of the library as it is installed: needs what other tests do not.
const INSTALLED: &str = "install";

/// Where the walks are that take too long for every change.
const DEEP_WALKS: &str = "deep::";

/// Everything, with what it needs.
pub(crate) fn all() -> Result<()> {
    packages::ensure(packages::FOR_TESTS)?;
    sociable()?;
    long_runs(Priority::Usual)?;
    namespaces()?;
    installed()
}

/// Unit, integration and documentation tests that can run side by side. One of them uses the collector's page as people do, by what drives
/// a browser in the tests of the other page.
pub(crate) fn sociable() -> Result<()> {
    web::install()?;
    let names = sociable_targets(&workspace()?);
    run(&mut cargo(&[TEST, &WHOLE, &["--bins"], &chosen(&names)].concat()))?;
    run(&mut cargo(&[TEST, &["--workspace", "--doc"]].concat()))
}

/// Those marked `#[ignore]`, which take many seconds: laws of queues over millions of packets, all orders in which two ends of a
/// stream can act, a policy beside an hour of others' noise, a flood of ten million flows.
pub(crate) fn long_runs(priority: Priority) -> Result<()> {
    let mut names = sociable_targets(&workspace()?);
    names.retain(|name| name != INSTALLED);
    let how = ["--", "--ignored", "--skip", DEEP_WALKS];
    let test = [TEST, &WHOLE, &chosen(&names), &how].concat();
    run(&mut match priority {
        Priority::Usual => cargo(&test),
        Priority::Idle => command("chrt", &[&["--idle", "0", "cargo"], &test[..]].concat()),
    })
}

/// How much of the machine something gets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Priority {
    /// As any program.
    Usual,
    /// What all others leave.
    Idle,
}

/// Of the whole workspace at once: a part of it may want fewer features of what it is built on, and that would be built anew.
const WHOLE: [&str; 3] = ["--workspace", "--no-fail-fast", "--lib"];

fn chosen(names: &[String]) -> Vec<&str> {
    names.iter().flat_map(|name| ["--test", name]).collect()
}

/// Those orders in which two ends of a stream can act that take too long for every change.
pub(crate) fn deep_walks() -> Result<()> {
    let which = ["--package", "netaware-dual", "--test", "interleavings"];
    let how = ["--", "--ignored", "--nocapture", DEEP_WALKS];
    run(&mut cargo(&[TEST, &which, &how].concat()))
}

/// The tests in network namespaces. A build without optimisation is too slow to fill a link, and would be found to be its own
/// bottleneck, which is just what these tests must be able to tell.
///
/// They measure time, so whoever else uses the machine can make one fail: a few that fail are run once more, and named.
pub(crate) fn namespaces() -> Result<()> {
    packages::ensure(packages::FOR_TESTS)?;
    sweep()?;
    let pattern = format!("{NAMESPACE_PREFIX}*");
    let which = ["--workspace", "--no-fail-fast", "--test", &pattern];
    let how = [TEST, &which, &["--", "--test-threads=1"]].concat();
    let (ended, printed) = run_and_keep(&mut cargo(&how))?;
    let Some(failed) = worth_another_run(&printed).filter(|_| ended.is_err()) else {
        return ended;
    };
    eprintln!("\nONCE MORE: {}", failed.join(", "));
    sweep()?;
    run(&mut cargo(&[&how[..], &["--exact"], &failed].concat()))?;
    eprintln!("PASSED ONLY WHEN RUN AGAIN: {}", failed.join(", "));
    Ok(())
}

/// Tests that failed, unless they are so many, or ended so badly, that it cannot be the machine.
fn worth_another_run(printed: &str) -> Option<Vec<&str>> {
    const AT_MOST: usize = 3;
    let begins = |word: &str| printed.lines().filter(|line| line.starts_with(word)).count();
    let failed: Vec<&str> =
        printed.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED")).collect();
    let all_ended = begins("running ") == begins("test result: ");
    (all_ended && (1..=AT_MOST).contains(&failed.len())).then_some(failed)
}

/// `libnetaware` as a packager installs it, and a program in C against that, both ends under valgrind. Needs cargo-c, which only
/// packagers have and which takes many minutes to build: where there is none this is left out, and said.
pub(crate) fn installed() -> Result<()> {
    if !works(&mut cargo(&["cinstall", "--version"])) {
        eprintln!("SKIPPED: the library as it is installed; needs cargo-c (cargo install cargo-c)");
        return Ok(());
    }
    packages::ensure(&[packages::FOR_TESTS, packages::FOR_INSTALLED].concat())?;
    sweep()?;
    let which = ["--package", "netaware-ffi", "--test", INSTALLED, "--test", "netns_valgrind"];
    let how = ["--", "--ignored", "--test-threads=1"];
    run(&mut cargo(&[TEST, &which, &how].concat()))
}

/// Clears away what a killed run left behind; without root there is nothing of ours to clear.
fn sweep() -> Result<()> {
    if output(&mut command("id", &["-u"]))?.trim() == "0" {
        for name in netaware_netns::remove_stale()? {
            eprintln!("removed the namespace {name} of a test run that was killed");
        }
    }
    Ok(())
}

fn sociable_targets(workspace: &Value) -> Vec<String> {
    let targets = array(workspace, "packages").iter().flat_map(|package| array(package, "targets"));
    let tests = targets.filter(|target| array(target, "kind").iter().any(|kind| kind == "test"));
    let mut names: Vec<String> =
        tests.filter_map(|target| target["name"].as_str()).map(str::to_owned).collect();
    names.retain(|name| !name.starts_with(NAMESPACE_PREFIX));
    names.sort();
    names.dedup();
    names
}

fn array<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod claims {
    use super::*;

    #[test]
    fn namespace_tests_are_kept_out_of_the_crowd() {
        let metadata = serde_json::json!({ "packages": [{ "targets": [
            { "kind": ["lib"], "name": "netaware_io" },
            { "kind": ["test"], "name": "bad_input" },
            { "kind": ["test"], "name": "netns_shapers" },
        ] }] });
        assert_eq!(sociable_targets(&metadata), ["bad_input"]);
    }

    #[test]
    fn a_few_failures_are_worth_another_run_and_a_crash_is_not() {
        let ended = "\ntest result: FAILED. 1 passed; 1 failed\n";
        let one = "running 2 tests\ntest fast ... ok\ntest late ... FAILED\n";
        assert_eq!(worth_another_run(&format!("{one}{ended}")), Some(vec!["late"]));
        assert_eq!(worth_another_run(one), None, "the program did not come to its end");
        assert_eq!(worth_another_run("error: could not compile"), None);
        let many = "test late ... FAILED\n".repeat(4);
        assert_eq!(worth_another_run(&format!("running 4 tests\n{many}{ended}")), None);
    }
}
