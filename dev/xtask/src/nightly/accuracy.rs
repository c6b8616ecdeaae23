//! Accuracy in real time. A test of this suite may fail in a single run, because the machine takes
//! cores away; what is judged is how many of ten runs hold. Each run is counted and none is
//! repeated. A test whose verdict no further run can change is not run again, nor is one whose
//! first six runs all held: a test that holds in 60, 70 or 80 % of its runs would pass ten runs
//! with a probability of 16.7, 38.3 and 67.8 %, and passes so with 17.6, 39.3 and 68.5 %.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;

use super::Findings;
use crate::nextest::{Outcome, Suite, run_suite_without};
use crate::tests;

/// How often each test runs at the most.
const RUNS: usize = 10;
/// How many of the ten runs must hold. An inconclusive run does not hold.
const REQUIRED: usize = 8;
/// How many runs are enough if each of them holds.
const ALL_OF: usize = 6;

pub(super) fn run() -> Result<Findings> {
    tests::build()?;
    let mut runs = Vec::new();
    for number in 1..=RUNS {
        let rates = rates(&runs);
        if !rates.is_empty() && rates.values().all(|rate| rate.is_decided()) {
            break;
        }
        eprintln!("\n-- run {number} of {RUNS}");
        tests::sweep()?;
        let decided = rates.iter().filter(|(_, rate)| rate.is_decided()).map(|(name, _)| name.as_str());
        let outcome = run_suite_without(Suite::Accuracy, decided)?;
        println!("{outcome}");
        runs.push(outcome);
    }
    Ok(judge(&runs))
}

/// One test over all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Rate {
    held: usize,
    failed: usize,
    inconclusive: usize,
    longest: Duration,
}

impl Rate {
    fn conclusive(self) -> usize {
        self.held + self.failed
    }

    fn is_good(self) -> bool {
        let without_exception = self.failed + self.inconclusive == 0 && self.held >= ALL_OF;
        without_exception || self.held >= REQUIRED
    }

    /// Whether no further run can change the verdict.
    fn is_decided(self) -> bool {
        self.is_good() || self.failed > RUNS - REQUIRED
    }

    fn verdict(self) -> &'static str {
        match (self.is_good(), self.held + self.inconclusive >= REQUIRED) {
            (true, _) => "ok",
            (false, true) => "not judged",
            (false, false) => "too seldom",
        }
    }
}

fn judge(runs: &[Outcome]) -> Findings {
    let rates = rates(runs);
    let bad = rates.values().filter(|rate| !rate.is_good()).count();
    Findings {
        ran: rates.values().map(|rate| rate.conclusive() + rate.inconclusive).sum(),
        held: rates.values().map(|rate| rate.held).sum(),
        failure: (bad > 0).then(|| format!("{bad} of {} tests hold too seldom", rates.len())),
        section: Some(section(&rates)),
    }
}

fn rates(runs: &[Outcome]) -> BTreeMap<String, Rate> {
    let mut rates: BTreeMap<String, Rate> = BTreeMap::new();
    for run in runs {
        for case in &run.cases {
            let rate = rates.entry(case.name.clone()).or_default();
            rate.longest = rate.longest.max(case.took);
            let is_inconclusive = run.inconclusive.iter().any(|it| case.name.ends_with(&it.test));
            match (is_inconclusive, case.held) {
                (true, true) => rate.inconclusive += 1,
                (_, false) => rate.failed += 1,
                (false, true) => rate.held += 1,
            }
        }
    }
    rates
}

fn section(rates: &BTreeMap<String, Rate>) -> String {
    let mut text = format!(
        "Up to {RUNS} runs of each test, of which {REQUIRED} must hold, or the first {ALL_OF} without exception; \
         a test is run no further once that is decided. A run is inconclusive if the emulator or the \
         machine was later than the test allows; a test is not judged if that happened too often.\n\n\
         | test | held | failed | inconclusive | longest run | verdict |\n|---|---|---|---|---|---|\n"
    );
    for (name, rate) in rates {
        let verdict = rate.verdict();
        let Rate { held, failed, inconclusive, longest } = rate;
        let seconds = longest.as_secs_f64();
        let _ =
            writeln!(text, "| `{name}` | {held} | {failed} | {inconclusive} | {seconds:.0} s | {verdict} |");
    }
    text
}

#[cfg(test)]
mod claims {
    use super::*;
    use crate::nextest::{Case, Inconclusive};

    fn run(held: bool, spoiled: bool) -> Outcome {
        let name = "netaware::integration a::b".into();
        let case = Case { name, took: Duration::from_secs(2), held, panic: None };
        let inconclusive = Inconclusive { test: "a::b".into(), reason: "late".into() };
        let inconclusive = if spoiled { vec![inconclusive] } else { Vec::new() };
        Outcome { cases: vec![case], inconclusive, skipped: 0 }
    }

    #[test]
    fn a_test_is_run_until_no_further_run_can_change_its_verdict() {
        let rate = |held, failed, inconclusive| Rate { held, failed, inconclusive, ..Rate::default() };
        assert!(!rate(7, 2, 0).is_decided() && rate(8, 1, 0).is_decided() && rate(2, 3, 0).is_decided());
        assert!(!rate(5, 0, 0).is_decided() && rate(6, 0, 0).is_decided());
        assert!(!rate(6, 1, 0).is_decided() && !rate(6, 0, 1).is_decided());
        // Whether it is seldom or was not judged depends on the runs that are left.
        assert!(!rate(2, 1, 5).is_decided());
    }

    #[test]
    fn eight_of_ten_are_enough_and_seven_are_not() {
        let runs = |held: usize| (0..RUNS).map(|n| run(n < held, false)).collect::<Vec<_>>();
        assert_eq!(judge(&runs(8)).failure, None);
        assert!(judge(&runs(7)).failure.is_some());
    }

    /// The probabilities that the module states.
    #[test]
    fn six_runs_without_exception_tell_nearly_as_much_as_eight_of_ten() {
        let at_least = |least: i32, of: i32, share: f64| -> f64 {
            let ways = |k: i32| (0..k).fold(1.0, |ways, i| ways * f64::from(of - i) / f64::from(i + 1));
            (least..=of).map(|k| ways(k) * share.powi(k) * (1.0 - share).powi(of - k)).sum()
        };
        assert_eq!((RUNS, REQUIRED, ALL_OF), (10, 8, 6));
        for share in [0.5, 0.6, 0.7, 0.8, 0.9] {
            let ten = at_least(8, 10, share);
            let six = share.powi(6);
            let both = six * at_least(2, 4, share);
            let passes = ten + six - both;
            assert!((ten..ten + 0.012).contains(&passes), "{share}: {passes} instead of {ten}");
        }
    }

    #[test]
    fn inconclusive_runs_neither_hold_nor_fail_but_must_be_few() {
        let runs = |spoiled: usize| (0..RUNS).map(|n| run(true, n < spoiled)).collect::<Vec<_>>();
        let two = judge(&runs(2));
        assert_eq!((two.ran, two.held, two.failure), (10, 8, None));
        let three = judge(&runs(3));
        assert!(three.failure.is_some(), "seven runs that hold are no eight");
        assert!(three.section.is_some_and(|text| text.contains("| not judged |")));
    }
}
