//! One run of `netaware test` from host A to a responder on host B of a lab.

use netaware_lab::{Lab, LabOptions, Report, Scenario, Side, scenarios};
use netaware_record::{IpVersion, Record, VersionResult};
use netaware_units::Span;

use crate::program::{NETAWARE, Program, Responder};

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
const PORT: u16 = 14_233;
const PREFIX: &str = "scen";

/// Over a bundled scenario.
pub(crate) fn over(name: &str, arguments: &[&str]) -> Measured {
    over_within(BOUND, name, arguments)
}

/// The same with a bound of its own: where jitter lets a hundred packets go at one instant, they are handed over one by one.
pub(crate) fn over_within(bound: Span, name: &str, arguments: &[&str]) -> Measured {
    run(name, scenarios::load(name).unwrap_or_else(|error| panic!("{error}")).scenario, bound, arguments)
}

/// Over a path that only a test needs.
pub(crate) fn over_text(name: &str, text: &str, arguments: &[&str]) -> Measured {
    let text = format!("about = \"{name}\"\n{text}");
    let loaded = scenarios::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
    run(name, loaded.scenario, BOUND, arguments)
}

fn run(name: &str, scenario: Scenario, bound: Span, arguments: &[&str]) -> Measured {
    let mut spoiled = Vec::new();
    for _ in 0..RUNS {
        let options =
            LabOptions { prefix: PREFIX.to_owned(), scenario_name: name.to_owned(), ..LabOptions::default() };
        let lab = Lab::up(&scenario, &options).unwrap_or_else(|error| panic!("{error}"));
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
    let mut serve = lab.command(Side::B, NETAWARE);
    serve.args(["serve", "--port", &PORT.to_string()]);
    let _responder = Responder::launch(serve, &[], PORT);
    let mut prober = lab.command(Side::A, NETAWARE);
    prober.args(["test", "b", "--format", "json"]).args(arguments);
    Program::start(prober).finish_within(Span::from_secs(90)).exits_with(0).record()
}

impl Measured {
    /// What was learnt over one version.
    pub(crate) fn version(&self, version: IpVersion) -> &VersionResult {
        let found = self.record.versions.iter().find(|it| it.version == version);
        found.unwrap_or_else(|| panic!("no {}", version.name()))
    }
}
