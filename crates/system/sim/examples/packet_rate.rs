//! Prints how many packets per second one core simulates, engines and all.
//!
//! `cargo run --release -p netaware-sim --example packet_rate`
//!
//! A packet counts once, however many hops it takes; a request and its answer are two. Cross
//! traffic counts too, for it is simulated packet by packet like any other.

use std::time::Instant;

use netaware_probe::Pacing;
use netaware_record::IpVersion;
use netaware_sim::methods::{self, LatencyAsk, Method};
use netaware_sim::{Flow, ProbeStream, Scenario, Side, Simulation};
use netaware_stats::patience::Waiting;
use netaware_units::Span;

fn main() {
    let one = "about = 'one hop'\n[[hop]]\nrate = '10Gbit/s'\ndelay = '1ms'\n";
    let cross = "[[cross]]\nenter = 0\npattern = 'poisson'\nload = 0.8\n";
    let ten = format!("{one}{}", "[[hop]]\nrate = '10Gbit/s'\ndelay = '1ms'\n".repeat(9));
    let (dense, sparse) = (Span(1500), Span(10_000));
    stream("stream, 1 hop", one, dense);
    stream("stream, 10 hops", &ten, dense);
    stream("stream over Poisson load of 80 %, 1 hop", &format!("{one}{cross}"), sparse);
    echo("echo train, 1 hop", one);
    echo("echo train, 10 hops", &ten);
    echo("echo train over Poisson load of 80 %, 1 hop", &format!("{one}{cross}"));
    seeds(&format!("{ten}[[cross]]\nenter = 2\nleave = 7\npattern = 'poisson'\nload = 0.3\n"));
}

fn stream(name: &str, text: &str, spacing: Span) {
    let mut sim = Simulation::new(&Scenario::parse(text).expect("a sane scenario"), 1);
    let begin = now();
    let count = 3_000_000_000 / spacing.nanos().cast_unsigned();
    sim.stream(&ProbeStream { from: Side::A, version: IpVersion::V4, length: 1200, spacing, count });
    report(name, begin, &sim);
}

fn echo(name: &str, text: &str) {
    let mut sim = Simulation::new(&Scenario::parse(text).expect("a sane scenario"), 1);
    let begin = now();
    let mut train = netaware_probe::EchoTrain::new(netaware_probe::EchoPlan {
        flow: 1,
        count: Some(500_000),
        pacing: Pacing::Even(Span::from_micros(20)),
        length: 64,
        response: 64,
        patience: Span::from_secs(1),
        start: sim.local_now(Side::A),
    })
    .expect("a sane plan");
    sim.run(&Flow::new(IpVersion::V4), &mut train, |_| {});
    report(name, begin, &sim);
}

fn seeds(text: &str) {
    let scenario = Scenario::parse(text).expect("a sane scenario");
    let ask = LatencyAsk {
        count: Some(100),
        time: None,
        pacing: Pacing::Even(Span::from_micros(300)),
        length: 64,
        response: 64,
        patience: Span::from_millis(100),
        waiting: Waiting::Exactly,
    };
    let begin = now();
    let answered: u64 = (0..1000)
        .filter_map(|seed| methods::run(&scenario, seed, IpVersion::V4, &Method::Latency(ask)).ok())
        .map(|found| found.reverse.arrived)
        .sum();
    let took = since(begin);
    println!("1,000 seeds of 10 hops with cross traffic, 100 echoes each: {took:.2} s ({answered} answers)");
}

/// All traffic enters at the first hop from A, and leaves there on its way back.
fn report(name: &str, begin: Instant, sim: &Simulation) {
    let took = since(begin);
    let arrived = |from| sim.truth().link(from, 0).map_or(0, |link| link.counts().arrived);
    let rate = (arrived(Side::A) + arrived(Side::B)) as f64 / took / 1e6;
    let speed = Span(sim.now().0.cast_signed()).secs_f64() / took;
    println!("{name}: {rate:.2} M packets/s ({took:.2} s, {speed:.0} times real time)");
}

#[expect(clippy::disallowed_methods, reason = "it measures this crate from outside")]
fn now() -> Instant {
    Instant::now()
}

fn since(begin: Instant) -> f64 {
    Span::from(begin.elapsed()).secs_f64()
}
