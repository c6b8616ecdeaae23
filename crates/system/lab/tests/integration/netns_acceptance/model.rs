//! The same scenario in the simulator and in the lab: one distribution of one-way delay.

use netaware_lab::{LabOptions, Report, Scenario, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_sim::{ProbeStream, Simulation};
use netaware_testkit::lab::scenario;
use netaware_units::{Mono, Span};

use super::ground::{Judged, VERSIONS, measured};
use super::wire::{packet_length, passages};

/// A probe each millisecond.
const PROBES: usize = 2500;
const SPACING: Span = Span::from_millis(1);
/// What a host that takes the core from the emulator or from the sender now and then does not move.
const PER_CENTS: &[usize] = &[1, 10, 25, 50, 75, 90];

/// The simulated packets leave when the lab's really left, so both meet the same cross traffic. But
/// jitter is drawn in order of arrival, and the lab sees a probe some microseconds after it was
/// sent, or milliseconds if it was without its core, and then behind a packet that the simulation
/// has it overtake: from there on chance falls out differently. The band of [`simulated`] is for
/// that.
const PATH: &str = "[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\n\
                    jitter = { distribution = 'exponential', mean = '1ms', max = '20ms' }\n\
                    [[hop]]\nrate = '50Mbit/s'\ndelay = '2ms'\n\
                    [[cross]]\nenter = 0\npattern = 'poisson'\nrate = '8Mbit/s'\n";

/// Between the kernels' stamps and the emulator, at both ends: the system calls on the devices and
/// what the kernel does in them. The constant delay of a lab exceeds its scenario's by that;
/// medians of 5 to 11 us were measured.
const DEVICES: Span = Span::from_micros(15);
const BOUND: Span = Span::from_millis(1);

#[test]
fn the_lab_delays_a_probe_stream_as_the_simulator_does() {
    if !permitted() {
        return;
    }
    let mut judged = Judged::default();
    for version in VERSIONS {
        let (wrong, report) = difference(version, PROBES, PER_CENTS);
        if judged.is_valid(&report, BOUND) {
            assert!(wrong.is_empty(), "not as simulated:\n{}", wrong.join("\n"));
        }
    }
    judged.end();
}

/// Every quantile of one run in the lab that lies outside of its band, and the emulator's report.
pub(crate) fn difference(version: IpVersion, probes: usize, per_cents: &[usize]) -> (Vec<String>, Report) {
    let path = scenario(PATH);
    let ((found, sent), report) = measured(&path, |lab| {
        let found = passages(lab, version, Side::A, probes, SPACING);
        let sent: Vec<Mono> = found.iter().map(|it| Mono((it.sent - lab.zero()).0.cast_unsigned())).collect();
        let mut delays: Vec<Span> = found.iter().map(|it| it.delay).collect();
        delays.sort_unstable();
        (delays, sent)
    });
    let truth = path.base_delay(Side::A, version, packet_length(version)).unwrap();
    assert!(found[0] >= truth, "early: {} instead of {truth}; {report}", found[0]);
    let band = simulated(&path, version, &sent, per_cents);
    // What the emulator says of itself: how late it saw packets, and how late it let them go.
    let own = report.seen_p99.unwrap_or_default() + report.lateness_p99.unwrap_or_default();
    let mut wrong = Vec::new();
    for (per_cent, (least, most)) in per_cents.iter().zip(band) {
        let delay = quantile(&found, *per_cent);
        let line = format!(
            "{} p{per_cent}: {delay}, simulated {least} to {most}, the emulator's own error up to {own}; {report}",
            version.name()
        );
        println!("{line}");
        if delay < least || delay > most + own + DEVICES {
            wrong.push(line);
        }
    }
    (wrong, report)
}

fn quantile(sorted: &[Span], per_cent: usize) -> Span {
    sorted[(sorted.len() - 1) * per_cent / 100]
}

/// Where each quantile of one more run should lie: the range of twenty runs whose jitter has
/// nothing in common is some four standard deviations wide, and as much again is added at either
/// end.
fn simulated(path: &Scenario, version: IpVersion, sent: &[Mono], per_cents: &[usize]) -> Vec<(Span, Span)> {
    let runs: Vec<Vec<Span>> = (0..20).map(|before| run(path, version, sent, before)).collect();
    let band = |per_cent: &usize| {
        let all = runs.iter().map(|run| quantile(run, *per_cent));
        let (least, most) = (all.clone().min().unwrap_or_default(), all.max().unwrap_or_default());
        (least - (most - least), most + (most - least))
    };
    per_cents.iter().map(band).collect()
}

/// The sorted delays of the probes, `before` of which others preceded: each of those takes a draw
/// of the jitter, so that no two runs have the same.
fn run(path: &Scenario, version: IpVersion, sent: &[Mono], before: u64) -> Vec<Span> {
    let mut simulation = Simulation::new(path, LabOptions::default().seed);
    let probes = ProbeStream {
        from: Side::A,
        version,
        length: packet_length(version),
        spacing: SPACING,
        count: sent.len() as u64 + before,
    };
    // Before the first one, at even distances.
    let others = (1..=before).map(|n| Mono(sent[0].0 * n / (before + 1)));
    let departures: Vec<Mono> = others.chain(sent.iter().copied()).collect();
    let found = simulation.stream_at(&probes, &departures).way.delays;
    let mut delays: Vec<Span> =
        found.into_iter().filter(|(tag, _)| *tag >= before).map(|(_, delay)| delay).collect();
    delays.sort_unstable();
    delays
}
