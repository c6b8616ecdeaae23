//! Nightly: everything that is worth running but too long for every change. Each suite that ran
//! gets its row and its section in `docs/health.md`; what did not run keeps what was written there
//! before.

mod accuracy;
mod health;
mod mutants;
pub(crate) mod world;

use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::clock::Stopwatch;
use crate::nextest::{self, Suite};
use crate::shell::CI;
use crate::{fuzz, packages, purity, shell, tests, web};
use health::{Page, Row};

#[derive(Debug, Args)]
pub(crate) struct Nightly {
    /// Suites to run, separated by commas without spaces, as in `--only long,accuracy`; all of them
    /// if none is named. Those of the gate are run by `cargo xtask ci`
    #[arg(long, value_name = "SUITES", value_delimiter = ',', value_enum)]
    only: Vec<Name>,
    /// Print the page instead of writing docs/health.md
    #[arg(long)]
    print: bool,
}

/// A suite of nightly, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Tests that take many seconds or minutes
    Long,
    /// Accuracy in real time: up to ten runs of each test
    Accuracy,
    /// Orders in which two ends of a stream can act, to the depth that takes minutes
    Walks,
    /// Hostile input for every target below fuzz/, 15 s each
    Fuzz,
    /// The library as cargo-c installs it, and a program in C against it
    Installed,
    /// Whether the portable crates compile for macOS
    Platforms,
    /// Every scene of the page in Chromium, and the page in Firefox
    Browsers,
    /// Deliberate faults in base and engines, and how many of them the tests find
    Mutants,
    /// Every measuring command on every path of the world; writes the table of docs/world.md
    World,
}

/// What a suite did.
struct Findings {
    /// How many things ran and how many of them held: tests, targets or mutants.
    ran: usize,
    held: usize,
    /// Why the suite as a whole is not good, if it is not.
    failure: Option<String>,
    /// Its own section of the page, in Markdown.
    section: Option<String>,
}

/// Runs the suites that were asked for, all of them even if one fails, and writes the page.
///
/// # Errors
/// A suite failed, or the page cannot be written.
pub(crate) fn run(nightly: &Nightly) -> Result<()> {
    if std::env::var(CI).as_deref() != Ok("true") {
        return shell::become_ci(std::env::args_os().skip(1));
    }
    packages::ensure(packages::FOR_TESTS)?;
    nextest::ensure_tool()?;
    let chosen = if nightly.only.is_empty() { Name::value_variants() } else { &nightly.only };
    let mut page = Page::read()?;
    let mut failed = Vec::new();
    for name in chosen {
        let title = name.title();
        eprintln!("\n== {title}");
        let watch = Stopwatch::start();
        // Before the suite: the checkout may move on while it runs.
        let commit = commit()?;
        let findings = name.run().unwrap_or_else(|error| Findings::failed(&format!("{error:#}")));
        if let Some(failure) = &findings.failure {
            eprintln!("FAILED: {title}: {failure}");
            failed.push(title.clone());
        }
        page.put(&row(&title, &findings, commit, watch.elapsed())?, findings.section.as_deref());
        // Written after every suite, so that a night that is cut short leaves what it found.
        if !nightly.print {
            page.write()?;
        }
    }
    if nightly.print {
        print!("{page}");
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn row(title: &str, findings: &Findings, commit: String, took: Duration) -> Result<Row> {
    Ok(Row {
        suite: title.to_owned(),
        date: shell::output(&mut shell::command("date", &["-u", "+%Y-%m-%d"]))?.trim().to_owned(),
        commit,
        ran: findings.ran,
        held: findings.held,
        took,
        remark: findings.failure.clone().unwrap_or_else(|| "ok".to_owned()),
    })
}

/// The commit that is run, marked if the checkout has changes or files of its own.
fn commit() -> Result<String> {
    let git = |arguments: &[&str]| shell::output(&mut shell::command("git", arguments));
    let commit = git(&["rev-parse", "--short=9", "HEAD"])?;
    let changed = git(&[
        "status",
        "--porcelain",
        "--untracked-files=normal",
        "--",
        ".",
        ":!docs/health.md",
        ":!docs/world.md",
    ])?;
    Ok(format!("{}{}", commit.trim(), if changed.is_empty() { "" } else { " with changes" }))
}

impl Findings {
    fn failed(why: &str) -> Self {
        // Figures of an earlier run below the row of a failure would be taken for its own.
        Self { ran: 0, held: 0, failure: Some(why.to_owned()), section: Some(format!("Not judged: {why}\n")) }
    }

    /// One thing that held.
    fn one() -> Self {
        Self { ran: 1, held: 1, failure: None, section: None }
    }
}

impl Name {
    fn title(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn run(self) -> Result<Findings> {
        match self {
            Self::Long => suite(Suite::Long),
            Self::Accuracy => accuracy::run(),
            Self::Walks => suite(Suite::Walks),
            Self::Fuzz => fuzzed(),
            Self::Installed => {
                packages::ensure(packages::FOR_INSTALLED)?;
                tests::ensure_cargo_c()?;
                suite(Suite::Installed)
            }
            Self::Platforms => purity::portable().map(|()| Findings::one()),
            Self::Browsers => web::browsers().map(|()| Findings::one()),
            Self::Mutants => mutants::run(),
            Self::World => world::nightly(),
        }
    }
}

fn suite(suite: Suite) -> Result<Findings> {
    tests::build()?;
    tests::sweep()?;
    let outcome = nextest::run_suite(suite)?;
    println!("{outcome}");
    // What could not be judged did not hold, and did not fail.
    let (failed, unclear) = (outcome.failed(), outcome.inconclusive.len());
    let failure = (failed + unclear > 0).then(|| format!("{failed} failed, {unclear} inconclusive"));
    let held = outcome.passed().saturating_sub(unclear);
    Ok(Findings { ran: outcome.cases.len(), held, failure, section: None })
}

fn fuzzed() -> Result<Findings> {
    /// Seconds for each target.
    const SECONDS: u32 = 15;
    let targets = fuzz::run(SECONDS)?;
    Ok(Findings { ran: targets, held: targets, failure: None, section: None })
}
