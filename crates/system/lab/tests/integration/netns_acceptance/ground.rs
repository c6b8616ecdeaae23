//! What these tests stand on: labs by text or name, runs that can be believed, and the delays that
//! follow by arithmetic.

use std::process::{Command, Output};

use netaware_lab::{Lab, Report, Scenario, Side};
use netaware_netmodel::scenario::Link;
use netaware_record::IpVersion;
use netaware_testkit::lab;
use netaware_units::{ByteCount, Span};

pub(crate) const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

pub(crate) fn up(scenario: &Scenario) -> Lab {
    lab::start(scenario, &lab::options())
}

/// What `measure` finds in a lab, and the emulator's report of that run.
pub(crate) fn measured<T>(scenario: &Scenario, measure: impl FnOnce(&Lab) -> T) -> (T, Report) {
    let lab = up(scenario);
    let found = measure(&lab);
    (found, lab.end().unwrap())
}

/// Collects why runs of a test could not be judged. [`Self::end`] says so if there were any.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Judged {
    spoiled: Vec<String>,
}

impl Judged {
    /// Whether a run can be judged: 99 of 100 packets were at most `bound` late, and the emulator
    /// lost none.
    pub(crate) fn is_valid(&mut self, report: &Report, bound: Span) -> bool {
        let why = report.why_invalid(bound);
        self.spoiled.extend(why.as_ref().map(|why| format!("{why} ({report}, core {:?})", report.core)));
        why.is_none()
    }

    /// Whether no socket of a host refused packets that the path had delivered.
    pub(crate) fn has_room(&mut self, refused: u64) -> bool {
        if refused > 0 {
            self.spoiled.push(format!("a receiving socket had no room for {refused} packets"));
        }
        refused == 0
    }

    pub(crate) fn end(self) {
        if !self.spoiled.is_empty() {
            netaware_testkit::inconclusive(self.spoiled.join("; "));
        }
    }
}

/// One run of a program on a host, whatever comes of it.
pub(crate) fn tried(lab: &Lab, side: Side, program: &str, arguments: &[&str]) -> Output {
    let mut command = lab.command(side, program);
    command.args(arguments).env("LC_ALL", "C").output().unwrap()
}

/// All that it printed, on both outputs.
pub(crate) fn words(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// What a program printed that was to succeed.
#[track_caller]
pub(crate) fn said(lab: &Lab, side: Side, program: &str, arguments: &[&str]) -> String {
    let output = tried(lab, side, program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {}", words(&output));
    words(&output)
}

#[track_caller]
pub(crate) fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {}", words(&output));
    words(&output)
}

/// How long a lone packet of `length` takes over one link.
pub(crate) fn crossing(link: &Link, version: IpVersion, length: u32) -> Span {
    let wire = link.wire(version);
    let bytes = ByteCount(u64::from(length + link.overhead));
    wire.rate[0].value.time_for(bytes) + wire.delay[0].value
}

/// From host A to the router at the far end of `hop` and its answer back, the router's own time
/// included.
pub(crate) fn to_router_and_back(
    scenario: &Scenario,
    hop: usize,
    version: IpVersion,
    lengths: [u32; 2],
) -> Span {
    let [there, back] = lengths;
    let hops = &scenario.hops[..=hop];
    let both =
        hops.iter().map(|hop| crossing(&hop.forward, version, there) + crossing(&hop.reverse, version, back));
    both.sum::<Span>() + scenario.hops[hop].answers.delay
}
