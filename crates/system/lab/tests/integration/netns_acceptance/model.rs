//! The same scenario in the simulator and in the lab: one distribution of one-way delay.

use netaware_lab::{LabOptions, Scenario, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_sim::{ProbeStream, Simulation};
use netaware_testkit::lab::scenario;
use netaware_units::{Mono, Span};

use super::ground::believed;
use super::wire::{packet_length, passages};

/// A probe each millisecond.
const PROBES: usize = 5000;
const SPACING: Span = Span::from_millis(1);
const PER_CENTS: [usize; 7] = [1, 10, 25, 50, 75, 90, 99];

/// The simulated packets leave when the lab's really left, so both meet the same cross traffic. But jitter is drawn in
/// order of arrival, and the lab sees a probe some microseconds after it was sent, now and then behind a packet that the
/// simulation has it overtake: from there on chance falls out differently. The band of [`simulated`] is for that.
const PATH: &str = "[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\n\
                    jitter = { distribution = 'exponential', mean = '1ms', max = '20ms' }\n\
                    [[hop]]\nrate = '50Mbit/s'\ndelay = '2ms'\n\
                    [[cross]]\nenter = 0\npattern = 'poisson'\nrate = '8Mbit/s'\n";

/// Between the kernels' stamps and the emulator, at both ends: the system calls on the devices and what the kernel does
/// in them. The constant delay of a lab exceeds its scenario's by that; medians of 5 to 11 us were measured.
const DEVICES: Span = Span::from_micros(15);
const BOUND: Span = Span::from_micros(100);

/// The report speaks of 99 packets in a hundred. When the host takes the core from the emulator or the sender for longer, the
/// highest quantiles move by more than that; a model that is wrong is wrong in every run.
const TRIES: usize = 5;

#[test]
fn the_lab_delays_a_probe_stream_as_the_simulator_does() {
    if !permitted() {
        return;
    }
    let path = scenario(PATH);
    for version in [IpVersion::V4, IpVersion::V6] {
        let tries: Vec<String> = (0..TRIES).map_while(|_| difference(&path, version)).collect();
        assert!(tries.len() < TRIES, "not as simulated:\n{}", tries.join("\n"));
    }
}

/// Every quantile of one run in the lab that lies outside of its band; `None` if none does.
fn difference(path: &Scenario, version: IpVersion) -> Option<String> {
    let ((found, sent), report) = believed(path, BOUND, |lab| {
        let found = passages(lab, version, Side::A, PROBES, SPACING);
        let sent: Vec<Mono> = found.iter().map(|it| Mono((it.sent - lab.zero()).0.cast_unsigned())).collect();
        let mut delays: Vec<Span> = found.iter().map(|it| it.delay).collect();
        delays.sort_unstable();
        (delays, sent)
    });
    let band = simulated(path, version, &sent);
    // What the emulator says of itself: how late it saw packets, and how late it let them go.
    let own = report.seen_p99.unwrap_or_default() + report.lateness_p99.unwrap_or_default();
    let mut wrong = Vec::new();
    for (per_cent, (least, most)) in PER_CENTS.into_iter().zip(band) {
        let delay = quantile(&found, per_cent);
        let line = format!(
            "{} p{per_cent}: {delay}, simulated {least} to {most}, the emulator's own error up to {own}; {report}",
            version.name()
        );
        println!("{line}");
        if delay < least || delay > most + own + DEVICES {
            wrong.push(line);
        }
    }
    (!wrong.is_empty()).then(|| wrong.join("\n"))
}

fn quantile(sorted: &[Span], per_cent: usize) -> Span {
    sorted[(sorted.len() - 1) * per_cent / 100]
}

/// Where each quantile of one more run should lie: the range of twenty runs, each with all probes some microseconds later, is
/// some four standard deviations wide, and as much again is added at either end.
fn simulated(path: &Scenario, version: IpVersion, sent: &[Mono]) -> Vec<(Span, Span)> {
    let later = (0..20).map(|n| Span::from_micros(3 * n));
    let runs: Vec<Vec<Span>> = later.map(|later| run(path, version, sent, later)).collect();
    let band = |per_cent| {
        let all = runs.iter().map(|run| quantile(run, per_cent));
        let (least, most) = (all.clone().min().unwrap_or_default(), all.max().unwrap_or_default());
        (least - (most - least), most + (most - least))
    };
    PER_CENTS.map(band).to_vec()
}

fn run(path: &Scenario, version: IpVersion, sent: &[Mono], later: Span) -> Vec<Span> {
    let mut simulation = Simulation::new(path, LabOptions::default().seed);
    let probes = ProbeStream {
        from: Side::A,
        version,
        length: packet_length(version),
        spacing: SPACING,
        count: PROBES as u64,
    };
    let departures: Vec<Mono> = sent.iter().map(|at| *at + later).collect();
    let mut delays: Vec<Span> =
        simulation.stream_at(&probes, &departures).way.delays.into_iter().map(|(_, delay)| delay).collect();
    delays.sort_unstable();
    delays
}
