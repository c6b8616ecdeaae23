//! What these tests stand on: labs by text or name, runs that can be believed, and the delays that follow by arithmetic.

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

/// What `measure` finds in a lab of which 99 of 100 packets were at most `bound` late and none was lost by the emulator.
///
/// # Panics
/// When all runs were spoiled: with their reports.
pub(crate) fn believed<T>(scenario: &Scenario, bound: Span, measure: impl Fn(&Lab) -> T) -> (T, Report) {
    let mut spoiled = Vec::new();
    for _ in 0..RUNS {
        let lab = up(scenario);
        let found = measure(&lab);
        let report = lab.end().unwrap();
        match report.why_invalid(bound) {
            None => return (found, report),
            Some(why) => spoiled.push(format!("{why} ({report}, core {:?})", report.core)),
        }
    }
    panic!("the emulator spoiled {RUNS} runs, so nothing is known:\n{}", spoiled.join("\n"))
}

/// Tests run on shared machines, too.
const RUNS: usize = 6;

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

/// From host A to the router at the far end of `hop` and its answer back, the router's own time included.
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
