//! Scenario files: read or refused with a place, and what is accepted runs for a while and keeps
//! its books.
#![no_main]

mod edited;

use libfuzzer_sys::fuzz_target;
use netaware_netmodel::{Fate, Network, Packet, Scenario, Side};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

const SAMPLES: &[&str] = &[
    include_str!("../../scenarios/five-hops.toml"),
    include_str!("../../scenarios/lte.toml"),
    include_str!("../../scenarios/wifi.toml"),
    include_str!("../../scenarios/policer.toml"),
    include_str!("../../scenarios/codel.toml"),
    include_str!("../../scenarios/copies-and-bit-errors.toml"),
    include_str!("../../scenarios/parallel-links.toml"),
    include_str!("../../scenarios/skewed-clocks.toml"),
    include_str!("../../scenarios/load-square.toml"),
    include_str!("../../scenarios/bufferbloat.toml"),
];

/// Packets from each side, 100 us apart.
const PACKETS: u64 = 20;

fuzz_target!(|text: edited::Text| {
    let bytes = text.bytes(SAMPLES);
    let Ok(text) = std::str::from_utf8(&bytes) else { return };
    match Scenario::parse(text) {
        Ok(scenario) => run(&scenario),
        Err(error) => {
            assert!(error.line >= 1 && error.line <= text.lines().count() + 1, "{error}");
            assert!(error.to_string().len() < 4000, "{error}");
        }
    }
});

fn run(scenario: &Scenario) {
    let mut network = Network::new(scenario, 7);
    let mut fates = 0;
    let mut count = |fate: Fate| fates += u64::from(!matches!(fate, Fate::Delivered { duplicate: true, .. }));
    for n in 0..PACKETS {
        let at = Mono(0) + Span::from_micros(100) * n as i64;
        for side in [Side::A, Side::B] {
            network.offer(at, side, packet(n, side));
        }
        network.advance(at, &mut count);
    }
    network.advance(Mono(0) + Span::from_millis(20), &mut count);
    assert_eq!(fates + network.under_way() as u64, PACKETS * 2, "each packet has one fate or is under way");
}

fn packet(n: u64, side: Side) -> Packet {
    Packet {
        id: n * 2 + u64::from(side == Side::B),
        version: if n % 2 == 0 { IpVersion::V4 } else { IpVersion::V6 },
        length: 40 + (n as u32 * 397) % 1461,
        hop_limit: if n % 5 == 0 { 2 } else { 64 },
        flow: n % 3,
        dont_fragment: n % 4 == 0,
    }
}
