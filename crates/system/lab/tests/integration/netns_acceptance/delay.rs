//! The constant delay that a lab adds, to some microseconds.

use netaware_lab::{Lab, Report, Scenario, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::lab::scenario;
use netaware_units::Span;

use super::ground::{Judged, VERSIONS, measured};
use super::wire::{Passage, packet_length, passages};

/// Of the least: what is added to every packet.
pub(crate) const BOUND: Span = Span::from_micros(20);
/// Of the median, which has in it how fast this host wakes up who sleeps: 5 to 15 us on a good day,
/// 25 us on a bad one.
pub(crate) const MEDIAN_BOUND: Span = Span::from_micros(60);
/// Of the emulator's report. The second worst of a hundred says nothing about the median that is
/// judged here, but a host that takes the core away more often than that does.
const VALID: Span = Span::from_millis(1);
const PACKETS: usize = 100;
/// One at a time is on its way.
const SPACING: Span = Span::from_millis(7);

pub(crate) const PATHS: [(&str, &str); 3] = [
    ("one hop of 5 ms", "[[hop]]\nrate = '1Gbit/s'\ndelay = '5ms'\n"),
    ("serialisation", "[[hop]]\nrate = '10Mbit/s'\ndelay = '1ms'\n"),
    (
        "three hops",
        "[[hop]]\nrate = '1Gbit/s'\ndelay = '500us'\n[[hop]]\nrate = '100Mbit/s'\ndelay = '4ms'\n[[hop]]\nrate = '1Gbit/s'\ndelay = '500us'\n",
    ),
];

/// What was added to the packets of one version from one side.
pub(crate) struct Added {
    pub(crate) least: Span,
    pub(crate) half: Span,
    pub(crate) line: String,
}

/// Measures a path over both versions and from both sides, in one lab. Asserts that nothing came
/// early.
pub(crate) fn added(name: &str, text: &str) -> (Vec<Added>, Report) {
    let path = scenario(text);
    let (all, report) = measured(&path, |lab| {
        let each = VERSIONS.into_iter().flat_map(|version| [(version, Side::A), (version, Side::B)]);
        each.map(|(version, from)| one(name, lab, &path, version, from)).collect::<Vec<_>>()
    });
    for Added { least, line, .. } in &all {
        println!("{line}");
        assert!(*least >= Span::ZERO, "early: {line}; {report}");
    }
    println!("{report}");
    (all, report)
}

fn one(name: &str, lab: &Lab, path: &Scenario, version: IpVersion, from: Side) -> Added {
    let truth = path.base_delay(from, version, packet_length(version)).unwrap();
    let found = alone(passages(lab, version, from, PACKETS, SPACING));
    let [least, half] = excess(&found, truth, |it| it.delay);
    let [_, programs] = excess(&found, truth, |it| it.between_programs);
    let line = format!(
        "{name}, {} from {from:?}: {truth} and {least} (least), {half} (half); {programs} between programs",
        version.name()
    );
    Added { least, half, line }
}

/// Those that left when none before them was on its way. A sender that was without its core for a
/// while sends what it has missed at once, and then one packet waits for another.
fn alone(found: Vec<Passage>) -> Vec<Passage> {
    let mut before = None;
    let is_alone = |it: &Passage| {
        let gap = before.replace(it.sent).map(|before| it.sent - before);
        gap.is_none_or(|gap| gap >= SPACING - Span::from_millis(1))
    };
    let alone: Vec<Passage> = found.into_iter().filter(is_alone).collect();
    assert!(alone.len() * 4 >= PACKETS, "only {} of {PACKETS} packets were alone", alone.len());
    alone
}

/// The least and the median of what was too much.
fn excess(found: &[Passage], truth: Span, delay: impl Fn(&Passage) -> Span) -> [Span; 2] {
    let mut all: Vec<Span> = found.iter().map(|it| delay(it) - truth).collect();
    all.sort_unstable();
    [all[0], all[all.len() / 2]]
}

#[test]
fn nothing_comes_early_and_what_is_added_is_the_emulators_own_lateness() {
    if !permitted() {
        return;
    }
    let mut judged = Judged::default();
    for (name, text) in PATHS {
        let (all, report) = added(name, text);
        if !judged.is_valid(&report, VALID) {
            continue;
        }
        // What the emulator says of itself: how late half of the packets were let go, how late they
        // were seen, and how late it woke up.
        let own = report.lateness_p50.unwrap() + report.seen_mean.unwrap_or_default();
        let wakes = report.oversleep_p99.unwrap_or_default();
        for added in &all {
            assert!(added.least <= BOUND + own, "{}; {report}", added.line);
            assert!(added.half <= MEDIAN_BOUND + own + wakes, "{}; {report}", added.line);
        }
    }
    judged.end();
}
