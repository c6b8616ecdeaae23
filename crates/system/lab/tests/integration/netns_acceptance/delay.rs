//! The constant delay that a lab adds, to some microseconds.

use netaware_lab::{Scenario, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::lab::scenario;
use netaware_units::Span;

use super::ground::{VERSIONS, believed};
use super::wire::{Passage, packet_length, passages};

/// Of the least: what is added to every packet.
const BOUND: Span = Span::from_micros(20);
/// Of the median, which has in it how fast this host wakes up who sleeps: 5 to 15 us on a good day, 25 us on a bad one.
const MEDIAN_BOUND: Span = Span::from_micros(60);
/// Of the emulator's report. The second worst of a hundred says nothing about the median that is judged here, but a host
/// that takes the core away more often than that does.
const VALID: Span = Span::from_micros(200);
const PACKETS: usize = 100;
/// One at a time is on its way.
const SPACING: Span = Span::from_millis(7);

#[test]
fn the_least_that_is_added_to_a_constant_delay_is_twenty_microseconds() {
    if !permitted() {
        return;
    }
    let rows = [
        ("one hop of 5 ms", "[[hop]]\nrate = '1Gbit/s'\ndelay = '5ms'\n"),
        ("serialisation", "[[hop]]\nrate = '10Mbit/s'\ndelay = '1ms'\n"),
        (
            "three hops",
            "[[hop]]\nrate = '1Gbit/s'\ndelay = '500us'\n[[hop]]\nrate = '100Mbit/s'\ndelay = '4ms'\n[[hop]]\nrate = '1Gbit/s'\ndelay = '500us'\n",
        ),
    ];
    let mut wrong = Vec::new();
    for (name, text) in rows {
        let path = scenario(text);
        for version in VERSIONS {
            for from in [Side::A, Side::B] {
                let tries: Vec<String> =
                    (0..TRIES).map_while(|_| difference(name, &path, version, from)).collect();
                if tries.len() == TRIES {
                    wrong.extend(tries);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "early, or more than {BOUND} late:\n{}", wrong.join("\n"));
}

/// A host that is busy elsewhere wakes a sleeping emulator late for a while; a delay that is wrong is wrong in every run.
const TRIES: usize = 4;

/// What is wrong with one run; `None` if nothing is.
fn difference(name: &str, path: &Scenario, version: IpVersion, from: Side) -> Option<String> {
    let truth = path.base_delay(from, version, packet_length(version)).unwrap();
    let (found, report) = believed(path, VALID, |lab| passages(lab, version, from, PACKETS, SPACING));
    let [least, half] = excess(&found, truth, |it| it.delay);
    let [_, programs] = excess(&found, truth, |it| it.between_programs);
    let line = format!(
        "{name}, {} from {from:?}: {truth} and {least} (least), {half} (half); {programs} between programs; {report}",
        version.name()
    );
    println!("{line}");
    (least < Span::ZERO || least > BOUND || half > MEDIAN_BOUND).then_some(line)
}

/// The least and the median of what was too much.
fn excess(found: &[Passage], truth: Span, delay: impl Fn(&Passage) -> Span) -> [Span; 2] {
    let mut all: Vec<Span> = found.iter().map(|it| delay(it) - truth).collect();
    all.sort_unstable();
    [all[0], all[all.len() / 2]]
}
