//! Runs tests with cargo-nextest, which gives every test a process of its own. Which tests belong
//! to a suite, how many run side by side and how long one may take is written in
//! `.config/nextest.toml`: a suite is a profile there.

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::panics;
use crate::shell::{CHECKED, cargo, harden, root, run, run_to_end, works};

/// A set of tests that run under the same conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    /// Tests that use at most loopback: twelve at a time, four of those that compute.
    Computing,
    /// Tests in network namespaces that mostly wait: several at a time.
    Waiting,
    /// Tests that need a core for themselves: one at a time.
    Exclusive,
    /// Tests that take many seconds or minutes; nightly only.
    Long,
    /// Accuracy in real time, judged by how many of ten runs hold; nightly only.
    Accuracy,
    /// The library as cargo-c installs it; nightly only.
    Installed,
    /// Orders in which two ends of a stream can act, to the depth that takes minutes; nightly only.
    Walks,
    /// Every measuring command on every path of the world; nightly only.
    World,
}

impl Suite {
    /// The suites of the gate.
    pub(crate) const GATE: [Self; 3] = [Self::Computing, Self::Waiting, Self::Exclusive];

    /// The name of its profile in `.config/nextest.toml`.
    pub(crate) fn profile(self) -> &'static str {
        match self {
            Self::Computing => "computing",
            Self::Waiting => "waiting",
            Self::Exclusive => "exclusive",
            Self::Long => "long",
            Self::Accuracy => "accuracy",
            Self::Installed => "installed",
            Self::Walks => "walks",
            Self::World => "world",
        }
    }

    /// Whether its tests are marked `#[ignore]`, so that a plain `cargo test` leaves them out.
    fn is_ignored(self) -> bool {
        matches!(self, Self::Long | Self::Accuracy | Self::Installed | Self::Walks | Self::World)
    }
}

/// One test of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    /// Package, executable and path of the test, as nextest names them.
    pub(crate) name: String,
    pub(crate) took: Duration,
    pub(crate) held: bool,
    /// The panic because of which a test that passed did not hold.
    pub(crate) panic: Option<String>,
}

/// A test that could not be judged, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inconclusive {
    pub(crate) test: String,
    pub(crate) reason: String,
}

/// What a suite's last run reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) cases: Vec<Case>,
    pub(crate) inconclusive: Vec<Inconclusive>,
    /// Tests that did nothing because they were not run as root; they are among the cases that
    /// held.
    pub(crate) skipped: usize,
}

impl Outcome {
    pub(crate) fn failed(&self) -> usize {
        self.cases.iter().filter(|case| !case.held).count()
    }

    pub(crate) fn passed(&self) -> usize {
        (self.cases.len() - self.failed()).saturating_sub(self.skipped)
    }

    pub(crate) fn longest(&self) -> Option<&Case> {
        self.cases.iter().max_by_key(|case| case.took)
    }
}

impl std::ops::AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.cases.extend(other.cases);
        self.inconclusive.extend(other.inconclusive);
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cases.is_empty() {
            return f.write_str("no test ran");
        }
        for Case { name, panic, .. } in &self.cases {
            if let Some(panic) = panic {
                writeln!(f, "FAILED {name}: it passed although a thread panicked: {panic}")?;
            }
        }
        for Inconclusive { test, reason } in &self.inconclusive {
            writeln!(f, "INCONCLUSIVE {test}: {reason}")?;
        }
        if let Some(Case { name, took, .. }) = self.longest() {
            writeln!(f, "longest test: {name}, {:.1} s", took.as_secs_f64())?;
        }
        writeln!(f, "inconclusive: {} of {}", self.inconclusive.len(), self.cases.len())?;
        if self.skipped > 0 {
            writeln!(f, "SKIPPED {} tests, which need root: `cargo xtask netns` as root", self.skipped)?;
        }
        write!(f, "{} passed, {} failed", self.passed(), self.failed())
    }
}

/// Runs one suite in which variables tell a test what to do. What came of it is in what the test
/// leaves.
///
/// # Errors
/// The runner cannot be started.
pub(crate) fn run_asked(suite: Suite, variables: &[(&str, &std::ffi::OsStr)]) -> Result<bool> {
    forget(suite)?;
    let mut command = command(suite);
    // What it prints is what was asked for.
    command.args(["--no-capture"]).envs(variables.iter().copied());
    run_to_end(&mut command).map(|status| status.success())
}

/// Builds every test of the workspace, and the programs that tests start.
///
/// # Errors
/// Something does not compile.
pub(crate) fn build() -> Result<()> {
    run(&mut cargo(&[&["nextest", "run", "--no-run"], &BUILD[..]].concat()))
}

/// Runs a suite to its end and returns what every test did.
///
/// # Errors
/// No test ran, or the report of the run cannot be read. A test that failed is no error here.
pub(crate) fn run_suite(suite: Suite) -> Result<Outcome> {
    run_suite_without(suite, [])
}

/// The same without the tests of these names, as [`Case::name`] has them.
///
/// # Errors
/// As those of [`run_suite`].
pub(crate) fn run_suite_without<'a>(
    suite: Suite,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Outcome> {
    forget(suite)?;
    let mut command = command(suite);
    let of = |name: &str| {
        let (binary, test) = name.split_once(' ')?;
        Some(format!("(binary_id({binary}) & test(={test}))"))
    };
    let without: Vec<String> = names.into_iter().filter_map(of).collect();
    if !without.is_empty() {
        command.args(["-E", &format!("not ({})", without.join(" | "))]);
    }
    let ended = run(&mut command);
    let outcome = outcome(suite)?;
    match ended {
        Err(error) if outcome.failed() == 0 => Err(error),
        _ if outcome.cases.is_empty() => bail!("the suite `{}` has no test", suite.profile()),
        _ => Ok(outcome),
    }
}

/// What a suite's last run left, or nothing if it has not run.
///
/// # Errors
/// The report cannot be read.
pub(crate) fn outcome(suite: Suite) -> Result<Outcome> {
    let Folder { report, inconclusive, skipped } = Folder::of(suite);
    let skipped = if skipped.exists() { text(&skipped)?.lines().count() } else { 0 };
    let cases = if report.exists() { cases(&bounded(&report)?)? } else { Vec::new() };
    let told = if inconclusive.exists() { text(&inconclusive)? } else { String::new() };
    let mut inconclusive: Vec<Inconclusive> = told.lines().filter_map(inconclusive_of).collect();
    // A test that notes several reasons is one test.
    inconclusive.sort_by(|a, b| a.test.cmp(&b.test));
    inconclusive.dedup_by(|a, b| a.test == b.test);
    Ok(Outcome { cases, inconclusive, skipped })
}

/// Removes what earlier runs of the gate's suites left, so that no old report is taken for a new
/// one.
///
/// # Errors
/// A file cannot be removed.
pub(crate) fn forget_inconclusive() -> Result<()> {
    Suite::GATE.into_iter().try_for_each(forget)
}

/// Installs cargo-nextest from source if it is missing.
///
/// # Errors
/// It cannot be built.
pub(crate) fn ensure_tool() -> Result<()> {
    if works(&mut cargo(&["nextest", "--version"])) {
        return Ok(());
    }
    eprintln!("installing cargo-nextest");
    run(&mut cargo(&["install", "cargo-nextest", "--locked", "--no-default-features", "--version", VERSION]))
}

/// The newest version that the pinned toolchain builds.
const VERSION: &str = "^0.9.151";

/// The largest report that is read. It holds all that the tests printed, a few megabytes, and is in
/// memory while it is read.
const MAX_REPORT: u64 = 256 << 20;

/// One build serves every suite and the browser tests. The whole workspace is named because a part
/// of it may want fewer features of a dependency, which would then be built again. Examples are
/// checked by clippy.
const BUILD: [&str; 7] =
    ["--workspace", "--lib", "--bins", "--tests", "--locked", "--cargo-profile", CHECKED];

fn command(suite: Suite) -> Command {
    let profile = ["--profile", suite.profile()];
    let ignored: &[&str] = if suite.is_ignored() { &["--run-ignored", "only"] } else { &[] };
    let mut command = cargo(&[&["nextest", "run", "--retries", "0"], &BUILD[..], &profile, ignored].concat());
    harden(&mut command);
    let Folder { inconclusive, skipped, .. } = Folder::of(suite);
    command.envs([(INCONCLUSIVE, inconclusive), (SKIPPED, skipped)]);
    if suite == Suite::Waiting {
        command.env(LAB_CORE, "shared");
    }
    command
}

/// The variable that tells a test in which file to note that it cannot be judged
/// (`netaware_testkit::inconclusive`).
const INCONCLUSIVE: &str = "NETAWARE_INCONCLUSIVE";

/// The variable that tells a test where to note that it is skipped (`netaware_netns::permitted`).
const SKIPPED: &str = "NETAWARE_SKIPPED";

/// The variable that tells the testkit whether the emulators of labs have a core of their own.
const LAB_CORE: &str = "NETAWARE_LAB_CORE";

/// Where a run of a suite leaves its reports.
struct Folder {
    report: PathBuf,
    inconclusive: PathBuf,
    skipped: PathBuf,
}

impl Folder {
    /// Below the folder that `.config/nextest.toml` names.
    fn of(suite: Suite) -> Self {
        let folder = root().join("target/nextest").join(suite.profile());
        let [report, inconclusive, skipped] =
            ["junit.xml", "inconclusive.tsv", "skipped.txt"].map(|name| folder.join(name));
        Self { report, inconclusive, skipped }
    }
}

fn forget(suite: Suite) -> Result<()> {
    let Folder { report, inconclusive, skipped } = Folder::of(suite);
    for file in [report, inconclusive, skipped] {
        if file.exists() {
            fs::remove_file(&file).with_context(|| format!("could not remove {}", file.display()))?;
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).with_context(|| format!("could not make {}", folder.display()))?;
        }
    }
    Ok(())
}

fn text(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))
}

/// The text of a report.
fn bounded(report: &Path) -> Result<String> {
    let file = fs::File::open(report).with_context(|| format!("could not open {}", report.display()))?;
    read_at_most(MAX_REPORT, file).with_context(|| format!("could not read {}", report.display()))
}

fn read_at_most(limit: u64, from: impl Read) -> Result<String> {
    let mut text = String::new();
    // The byte after the limit shows that there is more.
    let length = from.take(limit + 1).read_to_string(&mut text)? as u64;
    if length > limit {
        bail!("it has more than {limit} bytes: a test prints too much");
    }
    Ok(text)
}

fn inconclusive_of(line: &str) -> Option<Inconclusive> {
    let (test, reason) = line.split_once('\t')?;
    Some(Inconclusive { test: test.to_owned(), reason: reason.to_owned() })
}

/// The test cases of a report in the format of JUnit, as nextest writes it.
fn cases(xml: &str) -> Result<Vec<Case>> {
    let document = roxmltree::Document::parse(xml).context("nextest's report is not XML")?;
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    cases.map(|node| case(&node)).collect()
}

fn case(node: &roxmltree::Node<'_, '_>) -> Result<Case> {
    let attribute =
        |name: &str| node.attribute(name).with_context(|| format!("a test case without `{name}`"));
    let seconds: f64 = attribute("time")?.parse().context("the time of a test case is not a number")?;
    // A test that failed first and passed when it was run again has failed.
    let failures = ["failure", "error", "flakyFailure", "flakyError", "rerunFailure", "rerunError"];
    let passed = !node.children().any(|child| failures.contains(&child.tag_name().name()));
    let name = format!("{} {}", attribute("classname")?, attribute("name")?);
    let panic = if passed { survived(node).with_context(|| name.clone())? } else { None };
    let held = passed && panic.is_none();
    Ok(Case { name, took: Duration::from_secs_f64(seconds.max(0.0)), held, panic })
}

/// The panic that a test which passed did not notice. Programs that it started print into the same
/// output, so their panics are found too.
fn survived(node: &roxmltree::Node<'_, '_>) -> Result<Option<String>> {
    let (out, err) = (printed(node, "system-out")?, printed(node, "system-err")?);
    Ok(panics::unexpected(err).or_else(|| panics::unexpected(out)))
}

/// What a test printed. Without it no panic would ever be found, so it must be there.
fn printed<'a>(node: &roxmltree::Node<'a, '_>, stream: &str) -> Result<&'a str> {
    let output = node.children().find(|child| child.has_tag_name(stream));
    let output = output.with_context(|| format!("the report of a test that passed has no `{stream}`"))?;
    Ok(output.text().unwrap_or_default())
}

#[cfg(test)]
mod claims {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="2" failures="1" errors="0" time="1.5">
  <testsuite name="netaware::integration" tests="2" disabled="0" errors="0" failures="1">
    <testcase name="plot::one" classname="netaware::integration" time="0.250">
      <system-out>test plot::one ... ok</system-out>
      <system-err></system-err>
    </testcase>
    <testcase name="plot::two" classname="netaware::integration" time="1.250">
      <failure type="test failure">panicked</failure>
    </testcase>
  </testsuite>
</testsuites>"#;

    #[test]
    fn report_gives_every_case_with_its_time_and_verdict() {
        let cases = cases(REPORT).unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].name, "netaware::integration plot::one");
        assert!(cases[0].held && !cases[1].held);
        assert_eq!(cases[1].took, Duration::from_millis(1250));
    }

    #[test]
    fn what_passed_only_when_it_was_run_again_has_failed() {
        let rerun =
            REPORT.replace("failure type", "flakyFailure type").replace("</failure>", "</flakyFailure>");
        assert!(!cases(&rerun).unwrap()[1].held);
    }

    #[test]
    fn test_that_passed_although_another_thread_panicked_has_failed_and_is_named() {
        let panic = "\nthread &apos;&lt;unnamed&gt;&apos; (12) panicked at web.rs:32:9:\n&quot;no&quot;\n";
        for output in ["<system-out>", "<system-err>"] {
            let cases = cases(&REPORT.replace(output, &format!("{output}{panic}"))).unwrap();
            assert!(!cases[0].held && !cases[1].held);
            let outcome = Outcome { cases, ..Outcome::default() };
            assert_eq!(outcome.failed(), 2);
            let text = outcome.to_string();
            let named = "FAILED netaware::integration plot::one: it passed although a thread panicked: \
                         thread '<unnamed>' (12) panicked at web.rs:32:9: \"no\"\n";
            assert!(text.starts_with(named), "{text}");
        }
    }

    #[test]
    fn test_that_failed_is_not_named_a_second_time() {
        let panic = "<system-err>thread &apos;plot::two&apos; (12) panicked at src/web.rs:32:9:</system-err>";
        let cases = cases(&REPORT.replace("</failure>", &format!("</failure>{panic}"))).unwrap();
        assert_eq!((cases[1].held, &cases[1].panic), (false, &None));
    }

    #[test]
    fn report_without_the_output_of_a_test_that_passed_is_an_error() {
        for output in ["<system-out>test plot::one ... ok</system-out>", "<system-err></system-err>"] {
            assert!(cases(&REPORT.replace(output, "")).is_err(), "{output}");
        }
    }

    #[test]
    fn report_that_is_too_large_is_an_error() {
        assert_eq!(read_at_most(3, &b"abc"[..]).unwrap(), "abc");
        assert!(read_at_most(3, &b"abcd"[..]).is_err());
    }

    #[test]
    fn closing_line_counts_what_passed_and_what_failed() {
        let spoiled = Inconclusive { test: "a".into(), reason: "late".into() };
        let outcome = Outcome { cases: cases(REPORT).unwrap(), inconclusive: vec![spoiled], skipped: 0 };
        let text = outcome.to_string();
        assert!(text.starts_with("INCONCLUSIVE a: late\nlongest test: "), "{text}");
        assert!(text.ends_with("inconclusive: 1 of 2\n1 passed, 1 failed"), "{text}");
        let text = Outcome { skipped: 1, ..outcome }.to_string();
        assert!(text.contains("\nSKIPPED 1 tests, which need root"), "{text}");
        assert!(text.ends_with("\n0 passed, 1 failed"), "{text}");
        assert_eq!(Outcome::default().to_string(), "no test ran");
    }

    #[test]
    fn report_that_is_cut_off_is_an_error() {
        assert!(cases(&REPORT[..REPORT.len() / 2]).is_err());
    }

    #[test]
    fn every_suite_has_a_profile() {
        let config = text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.config/nextest.toml")).unwrap();
        let suites =
            [&Suite::GATE[..], &[Suite::Long, Suite::Accuracy, Suite::Installed, Suite::Walks]].concat();
        for suite in suites {
            assert!(config.contains(&format!("[profile.{}]", suite.profile())), "{suite:?}");
        }
    }
}
