//! Deliberate faults: cargo-mutants changes one place of base or an engine, and the tests of that
//! package must notice, or those of the simulator where they hold its claims. A sample is taken,
//! spread evenly over all places, so that every night costs about the same; each day has another
//! one, so that tests cannot be written for the sample alone.
//!
//! Mutants that no test can find, because what they change cannot be observed, are excluded in
//! `.cargo/mutants.toml`, each with its reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::Findings;
use crate::purity;
use crate::shell::{cargo, command, output, run_to_end, works};

/// Packages whose claims the simulator's tests hold, besides their own.
const SIMULATED: [&str; 3] = ["netaware-netmodel", "netaware-path", "netaware-probe"];
const SIMULATOR: &str = "netaware-sim";
/// Seconds that the tests may take on one mutant. cargo-mutants would derive it from the mutated
/// package's tests alone, and those of the simulator take longer.
const LONGEST: &str = "150";
/// How many places are changed.
const SAMPLE: usize = 200;
/// How many of a hundred viable mutants must be found.
const REQUIRED_PERCENT: usize = 85;
/// Where cargo-mutants leaves its findings, below the folder that it is given.
const OUTCOMES: &str = "mutants.out/outcomes.json";

pub(super) fn run() -> Result<Findings> {
    ensure_tool()?;
    let packages = purity::pure_packages()?;
    let listed =
        output(&mut cargo(&[&["mutants", "--list", "--json"], &named("--package", &packages)[..]].concat()))?;
    let listed: Value =
        serde_json::from_str(&listed).context("cargo-mutants listed something that is not JSON")?;
    let all = listed.as_array().map_or(0, Vec::len);
    ensure!(all > 0, "cargo-mutants found nothing to change");
    let samples = all.div_ceil(SAMPLE) as u64;
    let seconds = output(&mut command("date", &["-u", "+%s"]))?;
    let day = seconds.trim().parse::<u64>().context("date told no number")? / 86_400;
    let shard = format!("{}/{samples}", day % samples);
    let (simulated, others): (Vec<String>, Vec<String>) =
        packages.into_iter().partition(|name| SIMULATED.contains(&name.as_str()));
    let tests: Vec<String> = simulated.iter().cloned().chain([SIMULATOR.to_owned()]).collect();
    let mut outcomes = found(&shard, &named("--package", &others))?;
    let longest = vec!["--timeout", LONGEST];
    let how = [longest, named("--package", &simulated), named("--test-package", &tests)].concat();
    outcomes.extend(found(&shard, &how)?);
    Ok(judge(&shard, &outcomes))
}

fn named<'a>(option: &'a str, packages: &'a [String]) -> Vec<&'a str> {
    packages.iter().flat_map(|name| [option, name]).collect()
}

/// What became of each mutant of a sample of these packages.
fn found(shard: &str, what: &[&str]) -> Result<Vec<Value>> {
    let folder = tempfile::tempdir().context("could not make a folder for cargo-mutants")?;
    let into = folder.path().to_string_lossy().into_owned();
    let how = [
        "mutants",
        "--jobs",
        "2",
        "--shard",
        shard,
        "--sharding",
        "round-robin",
        "--test-tool",
        "nextest",
        "--profile",
        "mutants",
        "--output",
        &into,
    ];
    let first_failure_ends = ["--", "--fail-fast"];
    let status = run_to_end(&mut cargo(&[&how[..], what, &first_failure_ends].concat()))?;
    ensure!(
        status.code().is_some_and(|code| JUDGED.contains(&code)),
        "cargo-mutants did not end well ({status})"
    );
    match read(folder.path())?["outcomes"].take() {
        Value::Array(outcomes) => is_whole(&outcomes).map(|()| outcomes),
        _ => bail!("the findings of cargo-mutants have no list"),
    }
}

/// The exit codes of cargo-mutants after it has tried every mutant: all were noticed, some
/// survived, some never ended.
const JUDGED: [i32; 3] = [0, 2, 3];

/// Whether the tests passed on the code as it is, and something was changed then.
fn is_whole(outcomes: &[Value]) -> Result<()> {
    let is_baseline = |outcome: &&Value| outcome["scenario"] == "Baseline";
    let baseline =
        outcomes.iter().find(is_baseline).context("cargo-mutants tried no tests on the code as it is")?;
    ensure!(baseline["summary"] == "Success", "the tests fail on the code as it is");
    ensure!(outcomes.len() > 1, "cargo-mutants changed nothing");
    Ok(())
}

fn read(folder: &Path) -> Result<Value> {
    let text = fs::read_to_string(folder.join(OUTCOMES)).context("cargo-mutants left no findings")?;
    serde_json::from_str(&text).context("the findings of cargo-mutants are not JSON")
}

/// The mutants of one package.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    caught: usize,
    missed: usize,
    unviable: usize,
}

fn judge(shard: &str, outcomes: &[Value]) -> Findings {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut survivors = Vec::new();
    for outcome in outcomes {
        let mutant = &outcome["scenario"]["Mutant"];
        let Some(package) = mutant["package"].as_str() else { continue };
        let count = counts.entry(package.to_owned()).or_default();
        match outcome["summary"].as_str() {
            // A mutant that never ends has been noticed.
            Some("CaughtMutant" | "Timeout") => count.caught += 1,
            Some("MissedMutant") => {
                count.missed += 1;
                survivors.push(mutant["name"].as_str().unwrap_or("a mutant without a name").to_owned());
            }
            _ => count.unviable += 1,
        }
    }
    let caught: usize = counts.values().map(|count| count.caught).sum();
    let viable = caught + survivors.len();
    let is_good = viable > 0 && caught * 100 >= viable * REQUIRED_PERCENT;
    let failure = (!is_good)
        .then(|| format!("{caught} of {viable} mutants were found, {REQUIRED_PERCENT} % are required"));
    Findings { ran: viable, held: caught, failure, section: Some(section(shard, &counts, &survivors)) }
}

fn section(shard: &str, counts: &BTreeMap<String, Count>, survivors: &[String]) -> String {
    let mut text = format!(
        "Sample {shard} (`cargo mutants --shard`).\n\n\
         | crate | found | survived | did not compile | found of viable |\n|---|---|---|---|---|\n"
    );
    for (package, Count { caught, missed, unviable }) in counts {
        let viable = caught + missed;
        let share = (caught * 100).checked_div(viable).map_or("-".to_owned(), |share| format!("{share} %"));
        let _ = writeln!(text, "| {package} | {caught} | {missed} | {unviable} | {share} |");
    }
    if !survivors.is_empty() {
        text.push_str("\nSurvivors:\n\n");
        for name in survivors {
            let _ = writeln!(text, "- `{name}`");
        }
    }
    text
}

/// Installs cargo-mutants from source if it is missing.
fn ensure_tool() -> Result<()> {
    if works(&mut cargo(&["mutants", "--version"])) {
        return Ok(());
    }
    eprintln!("installing cargo-mutants");
    crate::shell::run(&mut command("cargo", &["install", "cargo-mutants", "--locked"]))
}

#[cfg(test)]
mod claims {
    use super::*;

    fn outcome(package: &str, summary: &str) -> Value {
        let mutant =
            serde_json::json!({ "package": package, "name": format!("{package}: replace + with -") });
        serde_json::json!({ "scenario": { "Mutant": mutant }, "summary": summary })
    }

    #[test]
    fn only_viable_mutants_count_and_each_survivor_is_named() {
        let baseline = serde_json::json!({ "scenario": "Baseline", "summary": "Success" });
        let mut list = vec![baseline, outcome("stats", "Unviable"), outcome("stats", "MissedMutant")];
        list.extend((0..9).map(|_| outcome("stats", "CaughtMutant")));
        let findings = judge("3/85", &list);
        assert_eq!((findings.ran, findings.held), (10, 9));
        assert_eq!(findings.failure, None);
        let section = findings.section.unwrap();
        assert!(section.starts_with("Sample 3/85 "), "{section}");
        assert!(section.contains("| stats | 9 | 1 | 1 | 90 % |"), "{section}");
        assert!(section.contains("- `stats: replace + with -`"), "{section}");
    }

    #[test]
    fn findings_need_tests_that_pass_on_the_code_as_it_is() {
        let baseline = |summary: &str| serde_json::json!({ "scenario": "Baseline", "summary": summary });
        let mutant = outcome("stats", "CaughtMutant");
        assert!(is_whole(&[baseline("Success"), mutant.clone()]).is_ok());
        for broken in [vec![baseline("Failure"), mutant.clone()], vec![baseline("Success")], vec![mutant]] {
            assert!(is_whole(&broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn too_many_survivors_are_a_failure_and_so_is_nothing_at_all() {
        let list = vec![outcome("stats", "MissedMutant"), outcome("stats", "CaughtMutant")];
        assert!(judge("0/1", &list).failure.is_some());
        assert!(judge("0/1", &[]).failure.is_some());
    }
}
