//! Both methods against a path whose narrow link is known.

use netaware_netmodel::{Fate, Network, Packet, Scenario, Side};
use netaware_record::IpVersion;
use netaware_stats::rng::SplitMix64;
use netaware_units::{BitRate, Mono};

use super::*;
use crate::made_up::{Made, PERIOD};

/// How many windows a sender sends, of how many packets of 1500 bytes, and how many ns apart these
/// leave (the second is added at random).
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

/// A source with so many gaps of 1500 bytes at 100 Mbit/s, and so many that its interface cannot
/// have made.
fn source(gaps: usize, impossible: u64) -> Source {
    Source { gaps: vec![Gap { ns: 120_000, length: 1500 }; gaps], impossible, ..Source::new(Wall(0)) }
}

#[test]
fn only_gaps_between_two_large_packets_within_a_second_are_taken() {
    let mut source = Source::new(Wall(0));
    let seen = [
        (1500, 0),
        (1500, 120_000),
        (1349, 240_000),
        (1500, 360_000),
        (1350, 480_000),
        (1500, 600_000),
        (1500, 1_000_600_000),
        (1500, 2_000_600_001),
        (1500, 2_000_600_000),
        (1500, 2_000_600_000),
    ];
    for (length, at) in seen {
        source.observe(length, Wall(at), &Link::default());
    }
    let want = [(120_000, 1500), (120_000, 1350), (120_000, 1500), (1_000_000_000, 1500)];
    assert_eq!(source.gaps, want.map(|(ns, length)| Gap { ns, length }));
    // The last two came at one instant.
    assert_eq!((source.impossible, source.longest, source.last_length), (1, 1500, 1500));
    assert_eq!(source.last_at, Wall(2_000_600_000));
}

#[test]
fn a_gap_is_impossible_where_it_is_faster_than_the_interface_by_more_than_a_tenth() {
    let link = Link { mtu: None, rate: Some(BitRate(1_000_000_000)) };
    let mut source = Source { last_length: 1500, longest: 1500, ..Source::new(Wall(0)) };
    // 1500 bytes in 10,909 ns are 1100.01 Mbit/s, in one ns more 1099.91 Mbit/s.
    source.observe(1500, Wall(10_909), &link);
    source.observe(1500, Wall(10_909 + 10_910), &link);
    assert_eq!(source.gaps, [Gap { ns: 10_910, length: 1500 }]);
    assert_eq!(source.impossible, 1);
}

#[test]
fn the_newest_gaps_take_the_places_of_the_oldest() {
    let mut source = Source { last_length: 1500, longest: 1500, ..Source::new(Wall(0)) };
    let mut at = 0;
    let mut show = |source: &mut Source, gaps: std::ops::Range<i64>| {
        for ns in gaps {
            at += ns;
            source.observe(1500, Wall(at), &Link::default());
        }
    };
    show(&mut source, 1000..2503);
    let kept: Vec<u32> = source.gaps.iter().map(|gap| gap.ns).collect();
    let want: Vec<u32> = (2500..2503).chain(1003..2500).collect();
    assert_eq!((kept, source.next), (want, 3));
    show(&mut source, 2503..4000);
    let kept: Vec<u32> = source.gaps.iter().map(|gap| gap.ns).collect();
    let want: Vec<u32> = (2500..4000).collect();
    assert_eq!((kept, source.next), (want, 0));
}

#[test]
fn what_makes_a_capacity_doubtful_is_told_with_it() {
    let flow = Flow::hosts(&full(IpVersion::V4).packet());
    let (few, coalesced) = ("few_samples", "coalesced");
    let table = [
        (49, 0, None),
        (50, 0, Some(vec![few])),
        (50, 10, Some(vec![few])),
        (50, 11, Some(vec![few, coalesced])),
        (199, 0, Some(vec![few])),
        (200, 0, Some(vec![])),
        (200, 40, Some(vec![])),
        (200, 41, Some(vec![coalesced])),
    ];
    for (gaps, impossible, doubts) in table {
        let (mut source, mut found) = (source(gaps, impossible), Found::default());
        source.rows(flow, &mut found);
        let Some(doubts) = doubts else {
            assert!(found.rows.is_empty(), "{found:?}");
            assert_eq!(source.gaps.len(), gaps, "they wait for more");
            continue;
        };
        let [Row::Capacity(said)] = found.rows.as_slice() else { panic!("{found:?}") };
        assert_eq!(said.doubts, doubts, "{gaps} gaps, {impossible} impossible");
        assert_eq!((&said.key, said.method.as_str()), (&flow.key(), "packet_pairs"));
        assert_eq!((said.samples, said.rate.confidence.to_bits()), (gaps as u64, 0.85_f64.to_bits()));
        for (found, want) in [(said.rate.estimate, 1e8), (said.rate.lo, 9e7), (said.rate.hi, 1.1e8)] {
            assert!((found / want - 1.0).abs() < 1e-9, "{said:?}");
        }
        assert_eq!((source.gaps.len(), source.impossible, source.next), (0, 0, 0), "it begins anew");
    }
}

#[test]
fn the_interval_holds_all_candidates_and_a_tenth_beyond() {
    let flow = Flow::hosts(&full(IpVersion::V6).packet());
    let estimate = Estimate { candidates: vec![2e8, 1e8, 4e8], samples: 77 };
    let want = CapacityRow {
        key: flow.key(),
        method: "packet_pairs".to_string(),
        rate: Interval { estimate: 2e8, lo: 1e8 * 0.9, hi: 4e8 * 1.1, confidence: 0.85 },
        samples: 77,
        doubts: vec!["coalesced".to_string(), "many_modes".to_string()],
    };
    let found = row(flow, "packet_pairs", &estimate, vec!["coalesced".to_string()]);
    assert_eq!(found, Row::Capacity(want));
}

#[test]
fn a_merged_packet_ends_the_gap_before_it_and_small_ones_and_fragments_are_not_looked_at() {
    let link = Link { mtu: Some(1500), rate: None };
    let mut task = CapacityWatch::new(10, &Seed::new([1; 16]), link).unwrap();
    let (whole, sized) = (full(IpVersion::V4), |payload: usize| Made::udp4().payload(&vec![0; payload]));
    task.observe(&sized(471).observed(Wall(1)));
    task.observe(&sized(472).later_fragment().observed(Wall(2)));
    assert!(task.sources.is_empty());
    task.observe(&sized(472).observed(Wall(3)));
    assert_eq!(task.sources.len(), 1, "500 bytes are enough");
    for at in [1_000, 121_000] {
        task.observe(&whole.observed(Wall(at)));
    }
    task.observe(&Observed { segments: 2, ..whole.observed(Wall(241_000)) });
    task.observe(&whole.observed(Wall(361_000)));
    task.observe(&Made::tcp4().payload(&[0; 1461]).observed(Wall(481_000)));
    for at in [601_000, 721_000] {
        task.observe(&whole.observed(Wall(at)));
    }
    let source = task.sources.values().next().unwrap();
    assert_eq!(source.gaps, [Gap { ns: 120_000, length: 1500 }; 2]);
    assert_eq!((source.impossible, task.sources.len()), (2, 1));
}

#[test]
fn a_source_is_forgotten_after_two_minutes_of_silence_and_with_the_interface() {
    let mut task = CapacityWatch::new(10, &Seed::new([1; 16]), Link::default()).unwrap();
    for (host, at) in [(1, 0), (2, 1)] {
        task.observe(&full(IpVersion::V4).source_of(host).observed(Wall(at)));
    }
    for (until, left) in [(120_000_000_000, 2), (120_000_000_001, 1)] {
        task.close(Period { from: Wall(0), until: Wall(until) }, &mut Found::default());
        assert_eq!(task.sources.len(), left);
    }
    assert!(task.sources.values().all(|source| source.last_at == Wall(1)));
    let other = Link { mtu: Some(9000), rate: None };
    task.link(other);
    assert!(task.sources.is_empty());
    assert_eq!(task.link, other);
}

#[test]
fn the_half_of_the_sources_that_told_least_makes_room() {
    let flow = |number: usize| Flow { source: number as u128, ..Flow::default() };
    let full = |gaps: fn(usize) -> usize| {
        let mut task = CapacityWatch::new(10, &Seed::new([1; 16]), Link::default()).unwrap();
        task.sources.extend((0..10).map(|number| (flow(number), source(gaps(number), 0))));
        task
    };
    let mut task = full(|number| number);
    assert_eq!(task.source(flow(3), Wall(7)).gaps.len(), 3, "a known one needs no room");
    assert_eq!(task.sources.len(), 10);
    assert_eq!(task.source(flow(99), Wall(7)).last_at, Wall(7));
    let mut left: Vec<u128> = task.sources.keys().map(|flow| flow.source).collect();
    left.sort_unstable();
    assert_eq!(left, [5, 6, 7, 8, 9, 99]);
    let mut equals = full(|_| 3);
    equals.source(flow(99), Wall(7));
    assert_eq!(equals.sources.len(), 6);
}
