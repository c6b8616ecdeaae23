//! The same scenario in the model alone and in the lab: one distribution of one-way delay.

use std::io;
use std::net::UdpSocket;

use netaware_io::pacer::Pacer;
use netaware_io::{clock, thread};
use netaware_lab::{Lab, LabOptions, Scenario, Side};
use netaware_netmodel::{Fate, Network, Packet};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::ground::{believed, scenario};

/// A probe each millisecond.
const PROBES: u64 = 5000;
const SPACING: Span = Span::from_millis(1);
const PAYLOAD: usize = 172;
const PER_CENTS: [usize; 7] = [1, 10, 25, 50, 75, 90, 99];

/// The model is offered the probes when the lab's probes were really sent, so both meet the same cross traffic. But jitter is
/// drawn in order of arrival, and the lab sees a probe some microseconds after it was sent, now and then behind a packet
/// that the model has it overtake: from there on chance falls out differently. The band of [`modelled`] is for that.
const PATH: &str = "[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\n\
                    jitter = { distribution = 'exponential', mean = '1ms', max = '20ms' }\n\
                    [[hop]]\nrate = '50Mbit/s'\ndelay = '2ms'\n\
                    [[cross]]\nenter = 0\npattern = 'poisson'\nrate = '8Mbit/s'\n";

/// What the kernels of both hosts take, of which the emulator's report knows nothing.
const SOCKETS: Span = Span::from_micros(25);
const BOUND: Span = Span::from_micros(100);

#[test]
fn the_lab_delays_a_probe_stream_as_the_model_does() {
    if !permitted() {
        return;
    }
    let path = scenario(PATH);
    for version in [IpVersion::V4, IpVersion::V6] {
        let ((found, sent), report) = believed("acc-model", &path, BOUND, |lab| measured(lab, version));
        assert_eq!(found.len() as u64, PROBES, "nothing is lost on this path");
        let band = modelled(&path, version, &sent);
        let late = report.lateness_p99.unwrap_or_default();
        for (per_cent, (least, most)) in PER_CENTS.into_iter().zip(band) {
            let delay = quantile(&found, per_cent);
            println!("{} p{per_cent}: {delay}, the model {least} to {most}, late {late}", version.name());
            let right = delay >= least && delay <= most + SOCKETS + late;
            assert!(
                right,
                "{} p{per_cent}: {delay} is not in {least} ..= {most} and {late}; {report}",
                version.name()
            );
        }
    }
}

fn quantile(sorted: &[Span], per_cent: usize) -> Span {
    sorted[(sorted.len() - 1) * per_cent / 100]
}

/// Where each quantile of one more run should lie: the range of twenty runs, each with all probes some microseconds later, is
/// some four standard deviations wide, and as much again is added at either end.
fn modelled(path: &Scenario, version: IpVersion, sent: &[Mono]) -> Vec<(Span, Span)> {
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
    let mut network = Network::new(path, LabOptions::default().seed);
    let length = PAYLOAD as u32 + 8 + version.header_len();
    let mut delays = Vec::new();
    let mut keep = |fate: Fate| {
        if let Fate::Delivered { delay, .. } = fate {
            delays.push(delay);
        }
    };
    for (id, at) in (0..).zip(sent) {
        let at = *at + later;
        network.advance(at, &mut keep);
        network.offer(
            at,
            Side::A,
            Packet { id, version, length, hop_limit: 64, flow: 1, dont_fragment: true },
        );
    }
    let end = sent.last().copied().unwrap_or_default() + Span::from_secs(2);
    network.advance(end, &mut keep);
    delays.sort_unstable();
    delays
}

/// Delays, ascending, and when the probes were sent in the model's time.
fn measured(lab: &Lab, version: IpVersion) -> (Vec<Span>, Vec<Mono>) {
    let socket = |side| {
        let socket = lab.within(side, || UdpSocket::bind((lab.address(side, version), 7))).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let (near, far) = (socket(Side::A), socket(Side::B));
    near.connect((lab.address(Side::B, version), 7)).unwrap();
    let (mut delays, sent_at) = std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            // The emulator has the last core.
            let _ = thread::pin(0);
            exchange(&near, &far)
        });
        work.join().unwrap().unwrap()
    });
    delays.sort_unstable();
    let zero = lab.zero();
    (delays, sent_at.into_iter().map(|at| Mono((at - zero).0.cast_unsigned())).collect())
}

/// One thread that never sleeps sends when it is time and takes what has come.
fn exchange(near: &UdpSocket, far: &UdpSocket) -> io::Result<(Vec<Span>, Vec<Mono>)> {
    let start = clock::now() + SPACING;
    let mut pacer = Pacer::new(start, SPACING.0.cast_unsigned() * 1000);
    let mut sent_at: Vec<Mono> = Vec::with_capacity(PROBES as usize);
    let mut delays = Vec::with_capacity(PROBES as usize);
    let (mut probe, mut buffer) = ([0; PAYLOAD], [0; 2 * PAYLOAD]);
    let until = start + SPACING * PROBES.cast_signed() + Span::from_secs(1);
    while clock::now() < until && delays.len() < PROBES as usize {
        if (sent_at.len() as u64) < PROBES && clock::now() >= pacer.due() {
            probe[..8].copy_from_slice(&(sent_at.len() as u64).to_be_bytes());
            sent_at.push(clock::now());
            near.send(&probe)?;
            pacer.advance();
        }
        match far.recv(&mut buffer) {
            Ok(_) => {
                let now = clock::now();
                let number = u64::from_be_bytes(*buffer.first_chunk().unwrap());
                delays.push(now - sent_at[number as usize]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok((delays, sent_at))
}
