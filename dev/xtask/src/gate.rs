//! The gate: everything that a change must pass. What is worth running but too long for every
//! change is in [`crate::nightly`].
//!
//! Every step runs even after a failure, so that one run shows everything that is wrong; but for
//! the first two, without which nothing else can run. The last lines say how long each step took.
//! No step runs a failed test again.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::clock::Stopwatch;
use crate::nextest::Suite;
use crate::shell::{self, CI};
use crate::{checks, deny, fuzz, nextest, node, packages, purity, tests, web};

type Step = (&'static str, fn() -> Result<()>);

/// What every other step needs.
const FIRST: &[Step] = &[
    ("packages", || {
        packages::ensure(&[packages::FOR_TESTS, packages::FOR_WEB].concat())?;
        packages::unpack()
    }),
    ("tools", tools),
];

/// Steps in their order. Steps on one line run side by side. A browser that measures on loopback
/// fills both cores, so no test of another suite runs beside it.
const STEPS: &[&[Step]] = &[
    &[("fmt", checks::formatting)],
    &[("build", tests::build)],
    &[("clippy", checks::lints)],
    &[("purity", purity::prove)],
    &[("fuzz", fuzz::compiles)],
    &[("doc tests", tests::documentation)],
    &[("computing", || tests::run(Suite::Computing))],
    &[("waiting", || tests::run(Suite::Waiting))],
    &[("web", web::checks), ("deny", deny::check)],
    &[("exclusive", || tests::run(Suite::Exclusive))],
];

/// Programs that come from other places than Debian.
fn tools() -> Result<()> {
    nextest::ensure_tool()?;
    deny::ensure_tool()?;
    node::install()
}

struct Done {
    name: &'static str,
    took: Duration,
    failure: Option<String>,
}

/// Runs every step and reports which failed.
pub(crate) fn run() -> Result<()> {
    if std::env::var(CI).as_deref() != Ok("true") || shell::is_soft() {
        return shell::become_ci(["ci".into()]);
    }
    let watch = Stopwatch::start();
    nextest::forget_inconclusive()?;
    let mut done: Vec<Done> = FIRST.iter().map(perform).collect();
    if done.iter().all(|done| done.failure.is_none()) {
        done.extend(STEPS.iter().flat_map(|steps| side_by_side(steps)));
    }
    eprint!("\n{}", summary(&done, watch.elapsed()));
    let tests = tests::gate_totals();
    println!("{tests}");
    deny::say_unchecked();
    let mut failed: Vec<String> =
        done.iter().filter(|done| done.failure.is_some()).map(|done| done.name.to_owned()).collect();
    failed.extend(tests.too_many_inconclusive());
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn side_by_side(steps: &[Step]) -> Vec<Done> {
    std::thread::scope(|scope| {
        let running: Vec<_> = steps.iter().map(|step| scope.spawn(|| perform(step))).collect();
        let ended = running.into_iter().zip(steps);
        ended.map(|(step, (name, _))| step.join().unwrap_or_else(|_| panicked(name))).collect()
    })
}

fn panicked(name: &'static str) -> Done {
    Done { name, took: Duration::ZERO, failure: Some("the step panicked".to_owned()) }
}

fn perform((name, step): &Step) -> Done {
    eprintln!("\n== {name}");
    let watch = Stopwatch::start();
    let failure = step().err().map(|error| format!("{error:#}"));
    Done { name, took: watch.elapsed(), failure }
}

fn summary(done: &[Done], total: Duration) -> String {
    let line = |name: &str, took: Duration, verdict: &str| {
        let seconds = took.as_secs();
        format!("{name:<10} {:>3} min {:02} s  {verdict}\n", seconds / 60, seconds % 60)
    };
    let lines = done.iter().map(|done| {
        let verdict = done.failure.as_ref().map_or("ok".to_owned(), |error| format!("FAILED: {error}"));
        line(done.name, done.took, &verdict)
    });
    lines.chain([line("total", total, "")]).collect()
}

#[cfg(test)]
mod claims {
    use super::*;

    #[test]
    fn steps_of_one_line_run_side_by_side() {
        static MET: std::sync::Barrier = std::sync::Barrier::new(2);
        let meet: fn() -> Result<()> = || {
            MET.wait();
            Ok(())
        };
        let done = side_by_side(&[("one", meet), ("other", meet)]);
        assert_eq!(done.iter().map(|done| done.name).collect::<Vec<_>>(), ["one", "other"]);
        assert!(done.iter().all(|done| done.failure.is_none()));
    }

    #[test]
    fn summary_names_each_step_its_time_and_what_went_wrong() {
        let done = [
            Done { name: "fmt", took: Duration::from_secs(2), failure: None },
            Done { name: "clippy", took: Duration::from_secs(125), failure: Some("a lint".into()) },
        ];
        let text = summary(&done, Duration::from_secs(126));
        assert!(text.contains("fmt          0 min 02 s  ok"), "{text}");
        assert!(text.contains("clippy       2 min 05 s  FAILED: a lint"), "{text}");
        assert!(text.contains("total        2 min 06 s"), "{text}");
    }
}
