//! One run of `netaware test` from host A to a responder on host B of a lab.

use netaware_lab::{Lab, LabOptions, Report, Scenario};
use netaware_record::{IpVersion, Record, VersionResult};
use netaware_testkit::lab;
use netaware_units::Span;

/// What was found, and on what path.
pub(crate) struct Measured {
    pub(crate) scenario: Scenario,
    pub(crate) record: Record,
    pub(crate) report: Report,
}

/// One in a hundred packets later than this would show in the figures: it is what they are judged to.
const BOUND: Span = Span::from_micros(250);
/// Somebody else's work on the machine may spoil some in a row.
const RUNS: usize = 6;

/// Over a bundled scenario.
pub(crate) fn over(name: &str, arguments: &[&str]) -> Measured {
    over_within(BOUND, name, arguments)
}

/// The same with a bound of its own: where jitter lets a hundred packets go at one instant, they are handed over one by one.
pub(crate) fn over_within(bound: Span, name: &str, arguments: &[&str]) -> Measured {
    run(name, lab::bundled(name), bound, arguments)
}

/// Over a path that only a test needs.
pub(crate) fn over_text(name: &str, text: &str, arguments: &[&str]) -> Measured {
    run(name, lab::scenario(text), BOUND, arguments)
}

fn run(name: &str, scenario: Scenario, bound: Span, arguments: &[&str]) -> Measured {
    let mut spoiled = Vec::new();
    for _ in 0..RUNS {
        let options = LabOptions { scenario_name: name.to_owned(), ..lab::options() };
        let lab = lab::start(&scenario, &options);
        let record = test(&lab, arguments);
        let report = lab.end().unwrap();
        match report.why_invalid(bound) {
            None => return Measured { scenario, record, report },
            Some(why) => spoiled.push(format!("{why} ({report})")),
        }
    }
    panic!("{name}: the emulator spoiled {RUNS} runs, so nothing is known:\n{}", spoiled.join("\n"))
}

fn test(lab: &Lab, arguments: &[&str]) -> Record {
    let _responder = lab::responder(lab, &[]);
    let prober = lab::prober(lab, &[&["test", "b", "--format", "json"], arguments].concat());
    prober.finish_within(Span::from_secs(90)).exits_with(0).record()
}

impl Measured {
    /// What was learnt over one version.
    pub(crate) fn version(&self, version: IpVersion) -> &VersionResult {
        let found = self.record.versions.iter().find(|it| it.version == version);
        found.unwrap_or_else(|| panic!("no {}", version.name()))
    }
}
