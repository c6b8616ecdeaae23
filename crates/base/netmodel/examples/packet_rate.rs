//! Prints how many packets and packet-hops per second one core simulates.
//!
//! `cargo run --release -p netaware-netmodel --example packet_rate`

use std::time::Instant;

use netaware_netmodel::{Network, Packet, Scenario, Side};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

const PACKETS: u64 = 2_000_000;

fn main() {
    let one = "about = 'one hop'\n[[hop]]\nrate = '10Gbit/s'\ndelay = '1ms'\n";
    let mut ten = "about = 'ten hops'\n".to_owned();
    for _ in 0..10 {
        ten += "[[hop]]\nrate = '10Gbit/s'\ndelay = '1ms'\n";
    }
    let cross = "[[cross]]\nenter = 0\npattern = 'poisson'\nload = 0.8\n";
    let on_off = "[[cross]]\nenter = 0\npattern = 'on_off'\nload = 0.8\nsources = 100\nalpha = 1.5\non = '10ms'\noff = '40ms'\n";
    offered("1 hop, offered packets only", one);
    offered("10 hops, offered packets only", &ten);
    drawn("1 hop, Poisson cross traffic only", &format!("{one}{cross}"));
    drawn("1 hop, 100 ON/OFF sources only", &format!("{one}{on_off}"));
    drawn("10 hops, Poisson through all", &format!("{ten}{cross}leave = 9\n"));
    seeds(&format!("{ten}{cross}"));
}

/// As a simulator does it: one packet, then time passes to the next.
fn offered(name: &str, text: &str) {
    let scenario = Scenario::parse(text).expect("a sane scenario");
    let mut network = Network::new(&scenario, 1);
    let begin = now();
    let mut fates = 0_u64;
    for id in 0..PACKETS {
        let at = Mono(id * 1500);
        network.advance(at, &mut |_| fates += 1);
        network.offer(at, Side::A, packet(id));
    }
    network.advance(Mono(PACKETS * 1500 + 1_000_000_000), &mut |_| fates += 1);
    report(name, begin, fates, fates * scenario.hops.len() as u64);
}

fn drawn(name: &str, text: &str) {
    let scenario = Scenario::parse(text).expect("a sane scenario");
    let mut network = Network::new(&scenario, 1);
    let begin = now();
    for millisecond in 1..=3000 {
        network.advance(Mono(millisecond * 1_000_000), &mut |_| {});
    }
    let arrived = |hop| network.truth().link(Side::A, hop).map_or(0, |link| link.counts().arrived);
    report(name, begin, arrived(0), (0..scenario.hops.len()).map(arrived).sum());
}

fn seeds(text: &str) {
    let scenario = Scenario::parse(text).expect("a sane scenario");
    let begin = now();
    let mut fates = 0_u64;
    for seed in 0..1000 {
        let mut network = Network::new(&scenario, seed);
        for id in 0..100 {
            network.advance(Mono(id * 100_000), &mut |_| fates += 1);
            network.offer(Mono(id * 100_000), Side::A, packet(id));
        }
        network.advance(Mono(30_000_000), &mut |_| fates += 1);
    }
    println!(
        "1,000 seeds of a 10-hop scenario, 30 ms at 80 % of 10 Gbit/s: {:.2} s, {fates} fates",
        since(begin)
    );
}

fn packet(id: u64) -> Packet {
    Packet { id, version: IpVersion::V4, length: 1500, hop_limit: 64, flow: 1, dont_fragment: true }
}

fn report(name: &str, begin: Instant, packets: u64, hops: u64) {
    let took = since(begin);
    let rate = |count: u64| count as f64 / took / 1e6;
    println!("{name}: {:.2} M packets/s, {:.2} M packet-hops/s ({took:.2} s)", rate(packets), rate(hops));
}

#[expect(clippy::disallowed_methods, reason = "it measures this crate from outside")]
fn now() -> Instant {
    Instant::now()
}

fn since(begin: Instant) -> f64 {
    Span::from(begin.elapsed()).secs_f64()
}
