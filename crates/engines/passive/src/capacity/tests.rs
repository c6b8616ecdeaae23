//! Both methods against a path whose narrow link is known.

use netaware_netmodel::{Fate, Network, Packet, Scenario, Side};
use netaware_record::IpVersion;
use netaware_stats::rng::SplitMix64;
use netaware_units::{BitRate, Mono};

use super::*;
use crate::made_up::{Made, PERIOD};

/// How many windows a sender sends, of how many packets of 1500 bytes, and how many ns apart these leave (the second is added at random).
struct Windows(usize, [usize; 2], [usize; 2]);

/// As a transfer that is limited by its window.
const BURSTS: Windows = Windows(120, [2, 8], [12_000, 0]);

/// As one whose packets the path has drawn apart already.
const SPACED: Windows = Windows(12, [150, 50], [350_000, 300_000]);

fn arrivals(scenario: &str, seed: u64, version: IpVersion, windows: &Windows) -> Vec<Mono> {
    let scenario = Scenario::parse(scenario).unwrap();
    let (mut network, mut rng) = (Network::new(&scenario, seed), SplitMix64::new(seed));
    let (mut now, mut id, mut came) = (Mono(1_000_000), 0, Vec::new());
    let mut take = |fate| {
        if let Fate::Delivered { at, .. } = fate {
            came.push(at);
        }
    };
    for _ in 0..windows.0 {
        for _ in 0..windows.1[0] + rng.below(windows.1[1]) {
            let packet = Packet { id, version, length: 1500, hop_limit: 64, flow: 1, dont_fragment: true };
            network.offer(now, Side::A, packet);
            now = Mono(now.0 + (windows.2[0] + rng.below(windows.2[1])) as u64);
            network.advance(now, &mut take);
            id += 1;
        }
        now = Mono(now.0 + 15_000_000 + rng.below(10_000_000) as u64);
        network.advance(now, &mut take);
    }
    network.advance(Mono(now.0 + 1_000_000_000), &mut take);
    came
}

/// What the task says of them, stamped to within 2 us.
fn rows(arrivals: &[Mono], made: &Made, link: Link) -> Vec<CapacityRow> {
    let mut task = CapacityWatch::new(10, &Seed::new([1; 16]), link).unwrap();
    let mut rng = SplitMix64::new(5);
    let mut last = 0;
    for at in arrivals {
        last = (at.0.cast_signed() + rng.below(2000) as i64).max(last + 1);
        task.observe(&made.observed(Wall(last)));
    }
    let mut found = Found::default();
    task.close(PERIOD, &mut found);
    let capacity = |row| if let Row::Capacity(row) = row { row } else { panic!("{row:?}") };
    found.rows.into_iter().map(capacity).collect()
}

fn full(version: IpVersion) -> Made {
    match version {
        IpVersion::V4 => Made::tcp4().payload(&[0; 1460]),
        IpVersion::V6 => Made::tcp6().payload(&[0; 1440]),
    }
}

fn path(rate: &str, cross: &str) -> String {
    format!(
        "about = \"x\"\n[[hop]]\nrate = \"1Gbit/s\"\ndelay = \"1ms\"\n[[hop]]\nrate = \"{rate}\"\ndelay = \"4ms\"\n\
         [[hop]]\nrate = \"1Gbit/s\"\ndelay = \"1ms\"\n{cross}"
    )
}

#[test]
fn packet_pairs_find_the_narrow_link_within_their_interval() {
    let loads = [
        String::new(),
        "[[cross]]\nenter = 1\npattern = \"poisson\"\nload = 0.3\nsizes = \"imix\"\n".to_string(),
        "[[cross]]\nenter = 1\npattern = \"poisson\"\nload = 0.3\nsizes = 1500\n".to_string(),
    ];
    for (rate, truth) in [("10Mbit/s", 1e7), ("100Mbit/s", 1e8), ("400Mbit/s", 4e8)] {
        for (cross, version) in loads.iter().zip([IpVersion::V4, IpVersion::V6, IpVersion::V4]) {
            for seed in 0..2 {
                let came = arrivals(&path(rate, cross), seed, version, &BURSTS);
                let rows = rows(&came, &full(version), Link::default());
                let pairs = rows.first().filter(|row| row.method == "packet_pairs").expect("a row");
                let said = pairs.rate;
                assert!(said.lo <= truth && truth <= said.hi, "{rate} seed {seed} {cross}: {pairs:?}");
                assert!((said.estimate / truth - 1.0).abs() < 0.1, "{rate} seed {seed} {cross}: {pairs:?}");
            }
        }
    }
}

#[test]
fn equally_spaced_modes_find_it_among_full_packets_of_others() {
    let cross = "[[cross]]\nenter = 1\npattern = \"poisson\"\nload = 0.5\nsizes = 1500\n";
    let mut told = 0;
    for seed in 0..8 {
        let came = arrivals(&path("50Mbit/s", cross), seed, IpVersion::V6, &SPACED);
        let rows = rows(&came, &full(IpVersion::V6), Link::default());
        if let Some(modes) = rows.iter().find(|row| row.method == "equally_spaced_modes") {
            assert!((modes.rate.estimate / 5e7 - 1.0).abs() < 0.1, "seed {seed}: {modes:?}");
            told += 1;
        }
    }
    assert!(told >= 5, "{told} of 8");
}

#[test]
fn batches_that_the_interface_cannot_have_passed_are_told() {
    // 4 packets each 480 us, all stamped 1 us apart: 100 Mbit/s behind an interface that waits.
    let came: Vec<Mono> = (0..800).map(|n| Mono(n / 4 * 480_000 + n % 4 * 1000)).collect();
    let link = Link { mtu: None, rate: Some(BitRate(1_000_000_000)) };
    let rows = rows(&came, &full(IpVersion::V4), link);
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row.doubts.contains(&"coalesced".to_string())), "{rows:?}");
    assert!(rows.iter().all(|row| row.rate.estimate < 1e9), "{rows:?}");
}

#[test]
fn few_gaps_say_nothing_and_sent_packets_are_not_used() {
    let link = Link::default();
    let few: Vec<Mono> = (0..50).map(|n| Mono(n * 120_000)).collect();
    assert!(rows(&few, &full(IpVersion::V4), link).is_empty());
    let some: Vec<Mono> = (0..60).map(|n| Mono(n * 120_000)).collect();
    assert_eq!(rows(&some, &full(IpVersion::V4), link)[0].doubts, ["few_samples"]);
    let mut task = CapacityWatch::new(10, &Seed::new([1; 16]), link).unwrap();
    for at in &some {
        let made = full(IpVersion::V4);
        task.observe(&Observed { outgoing: true, ..made.observed(Wall(at.0.cast_signed())) });
    }
    assert!(task.sources.is_empty());
}

#[test]
fn sources_and_their_gaps_have_a_bound() {
    let mut task = CapacityWatch::new(20, &Seed::new([1; 16]), Link::default()).unwrap();
    for n in 0..20_000_i64 {
        let host = if n % 2 == 0 { 1 } else { (n % 251) as u8 };
        task.observe(&full(IpVersion::V4).source_of(host).observed(Wall(n * 100_000)));
        assert!(task.sources.len() <= 20);
    }
    assert!(task.sources.values().all(|source| source.gaps.len() <= MOST_GAPS));
    let heavy = task.sources.values().map(|source| source.gaps.len()).max();
    assert_eq!(heavy, Some(MOST_GAPS), "the one that sends most stays");
}
