//! Every file in scenarios/ is what its `about` says.

use std::collections::BTreeMap;
use std::path::Path;

use netaware_netmodel::{DropCause, Fate, Network, Packet, Scenario, Side};
use netaware_record::IpVersion::{self, V4, V6};
use netaware_units::{Mono, Span};

fn all() -> BTreeMap<String, Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let entries =
        std::fs::read_dir(&folder).expect("scenarios/ is there").map(|entry| entry.expect("readable").path());
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("readable");
        let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, scenario)
    };
    entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).map(read).collect()
}

/// Name; Mbit/s of IP forward and reverse for 1500-byte IPv4 packets (0: they do not pass); base
/// round trip of 100 bytes over IPv4 in microseconds, rounded down.
const TRUTHS: &[(&str, u64, u64, i64)] = &[
    ("asymmetric", 10, 100, 24_089),
    ("bufferbloat", 20, 20, 20_080),
    ("coalescing-10us", 975, 975, 622),
    ("coalescing-250us", 975, 975, 1_102),
    ("coalescing-50us", 975, 975, 702),
    ("codel", 20, 20, 20_080),
    ("copies-and-bit-errors", 100, 100, 20_016),
    ("five-hops", 200, 200, 26_617),
    ("hidden-switch", 100, 100, 6_055),
    ("idle-100g", 97_529, 97_529, 4_000),
    ("idle-100m", 97, 97, 2_022),
    ("idle-10m", 10, 10, 20_160),
    ("idle-1g", 975, 975, 402),
    ("ipv4-faster", 200, 200, 18_009),
    ("ipv6-black-hole", 100, 100, 14_017),
    ("ipv6-faster", 80, 80, 30_020),
    ("load-square", 100, 100, 20_016),
    ("load-step", 100, 100, 20_016),
    ("loaded-100m", 97, 97, 10_022),
    ("loaded-10g", 9_752, 9_752, 1_000),
    ("loaded-10m", 10, 10, 20_160),
    ("loaded-1g", 975, 975, 4_002),
    ("loss-0.1", 100, 100, 20_016),
    ("loss-1", 100, 100, 20_016),
    ("loss-5", 100, 100, 20_016),
    ("loss-bursty", 100, 100, 20_016),
    ("loss-periodic", 100, 100, 20_016),
    ("lte", 12, 60, 34_081),
    ("mtu-black-hole", 0, 0, 14_017),
    ("narrow-not-tight", 50, 50, 10_049),
    ("parallel-links", 100, 100, 10_435),
    ("policer", 50, 50, 10_001),
    ("post-narrow-load", 20, 20, 12_096),
    ("pre-narrow-load", 40, 40, 12_056),
    ("rate-step", 100, 100, 20_016),
    ("reordering", 100, 100, 20_016),
    ("route-change", 100, 100, 20_016),
    ("shaper", 50, 50, 10_001),
    ("skewed-clocks", 100, 100, 8_016),
    ("small-mtu", 0, 0, 14_017),
    ("ten-hops", 100, 100, 20_030),
    ("three-hops", 100, 100, 10_019),
    ("two-hosts-100m", 97, 97, 62),
    ("wifi", 146, 146, 6_318),
];

#[test]
fn capacities_and_base_round_trips_are_the_stated_ones() {
    let scenarios = all();
    let listed: Vec<&str> = TRUTHS.iter().map(|row| row.0).collect();
    assert_eq!(scenarios.keys().map(String::as_str).collect::<Vec<_>>(), listed, "a file without its truth");
    let mut wrong = Vec::new();
    for (name, forward, reverse, rtt) in TRUTHS {
        let scenario = &scenarios[*name];
        let capacity = |from| scenario.capacity(from, V4, 1500).map_or(0, |rate| rate.0 / 1_000_000);
        let found =
            (capacity(Side::A), capacity(Side::B), scenario.base_rtt(V4, 100).map_or(0, |r| r.0 / 1000));
        if found != (*forward, *reverse, *rtt) {
            wrong.push(format!("{name}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn probe(id: u64, version: IpVersion, length: u32) -> Packet {
    Packet { id, version, length, hop_limit: 64, flow: 1, dont_fragment: true }
}

/// Fates of `count` packets, one each `gap`.
fn stream(name: &str, version: IpVersion, length: u32, count: u64, gap: Span) -> (Vec<Fate>, Network) {
    let mut network = Network::new(&all()[name], 1);
    let mut fates = Vec::new();
    for id in 0..count {
        let at = Mono(id * gap.0.cast_unsigned());
        network.advance(at, &mut |fate| fates.push(fate));
        network.offer(at, Side::A, probe(id, version, length));
    }
    let end = Mono(count * gap.0.cast_unsigned() + 3_000_000_000);
    network.advance(end, &mut |fate| fates.push(fate));
    (fates, network)
}

fn delays(fates: &[Fate]) -> Vec<f64> {
    let delay = |fate: &Fate| match fate {
        Fate::Delivered { delay, .. } => Some(delay.millis_f64()),
        _ => None,
    };
    fates.iter().filter_map(delay).collect()
}

fn lost(fates: &[Fate]) -> usize {
    fates.iter().filter(|fate| matches!(fate, Fate::Dropped { cause: DropCause::Loss, .. })).count()
}

#[test]
fn no_packet_is_faster_than_the_base_delay() {
    for (name, scenario) in all() {
        let (fates, _) = stream(&name, V4, 100, 100, Span::from_millis(3));
        let base = scenario.base_delay(Side::A, V4, 100).expect("100 bytes pass everywhere").millis_f64();
        let delays = delays(&fates);
        assert!(delays.len() > 50, "{name}: only {} of 100 came", delays.len());
        let least = delays.into_iter().fold(f64::INFINITY, f64::min);
        assert!(least > base - 0.001, "{name}: {least} ms below {base} ms");
    }
}

#[test]
fn idle_paths_show_the_base_delay_itself() {
    for name in ["idle-10m", "idle-100m", "idle-1g", "idle-100g", "three-hops", "hidden-switch", "asymmetric"]
    {
        let base = all()[name].base_delay(Side::A, V4, 1500).expect("passes").millis_f64();
        let (fates, _) = stream(name, V4, 1500, 50, Span::from_millis(20));
        assert_eq!(delays(&fates).len(), 50, "{name}");
        assert!(delays(&fates).iter().all(|delay| (delay - base).abs() < 0.000_01), "{name}");
    }
}

#[test]
fn loads_leave_what_their_files_say() {
    let rows = [
        ("loaded-10m", 5.0),
        ("loaded-100m", 40.0),
        ("loaded-1g", 300.0),
        ("loaded-10g", 2000.0),
        ("narrow-not-tight", 30.0),
        ("post-narrow-load", 20.0),
        ("pre-narrow-load", 40.0),
    ];
    for (name, available) in rows {
        let mut network = Network::new(&all()[name], 1);
        let seconds = if name == "loaded-10g" { 1 } else { 20 };
        network.advance(Mono(seconds * 1_000_000_000), &mut |_| {});
        let path = network.truth().available(Side::A, 2);
        let mean = path.iter().map(|(_, rate)| rate.mbits_f64()).sum::<f64>() / path.len() as f64;
        assert!((mean / available - 1.0).abs() < 0.25, "{name}: {mean} instead of {available} Mbit/s");
    }
}

#[test]
fn greedy_flows_fill_their_line_from_their_start_and_with_their_queue() {
    // Half of bufferbloat's second of queue is left when the flow has halved its window, and keeps
    // the line busy. With CoDel the queue is short, so that a halved window (of 33 packets of
    // bandwidth-delay product and some 8 of queue) leaves gaps.
    for (name, most_left, least_wait, most_wait) in
        [("bufferbloat", 0.2, 400.0, 1001.0), ("codel", 5.0, 5.0, 250.0)]
    {
        let mut network = Network::new(&all()[name], 1);
        for ms in 0..40_000 {
            network.advance(Mono(ms * 1_000_000), &mut |_| {});
        }
        let link = network.truth().link(Side::A, 0).expect("hop");
        let seconds: Vec<(f64, f64)> = link
            .intervals(3)
            .iter()
            .map(|i| (i.available.mbits_f64(), i.longest_wait.millis_f64()))
            .collect();
        assert!(seconds[..5].iter().all(|(available, _)| *available > 19.99), "{name}: {seconds:?}");
        let busy = &seconds[8..39];
        let mean = busy.iter().map(|(available, _)| available).sum::<f64>() / busy.len() as f64;
        let wait = busy.iter().map(|(_, wait)| *wait).fold(0.0, f64::max);
        assert!(mean < most_left, "{name}: {mean} Mbit/s are left: {seconds:?}");
        assert!((least_wait..most_wait).contains(&wait), "{name}: {wait} ms: {seconds:?}");
    }
}

#[test]
fn lossy_paths_lose_what_their_files_say() {
    let rows = [
        ("loss-0.1", 0.001),
        ("loss-1", 0.01),
        ("loss-5", 0.05),
        ("loss-bursty", 0.01),
        ("loss-periodic", 0.01),
    ];
    for (name, rate) in rows {
        let (fates, _) = stream(name, V4, 100, 50_000, Span::from_micros(100));
        let found = lost(&fates) as f64 / 50_000.0;
        let half = 2.576
            * (rate * (1.0 - rate) / 50_000.0_f64).sqrt()
            * if name == "loss-bursty" { 3.0 } else { 1.0 };
        assert!((found - rate).abs() <= half, "{name}: {found}");
    }
}

#[test]
fn ip_versions_differ_where_their_files_say() {
    let capacity =
        |name: &str, version| all()[name].capacity(Side::A, version, 1400).map(|rate| rate.0 / 1_000_000);
    assert_eq!((capacity("ipv6-faster", V4), capacity("ipv6-faster", V6)), (Some(80), Some(200)));
    assert_eq!((capacity("ipv4-faster", V4), capacity("ipv4-faster", V6)), (Some(200), Some(60)));
    assert_eq!((capacity("ipv6-black-hole", V4), capacity("ipv6-black-hole", V6)), (Some(100), None));
    let (fates, _) = stream("ipv6-black-hole", V6, 100, 10, Span::from_millis(1));
    assert_eq!(fates.len(), 10);
    assert!(
        fates.iter().all(|fate| matches!(fate, Fate::Dropped { hop: 1, cause: DropCause::BlackHole, .. }))
    );
}

#[test]
fn one_tunnel_answers_and_the_other_is_silent() {
    let (fates, _) = stream("small-mtu", V6, 1500, 3, Span::from_millis(1));
    assert_eq!(fates.len(), 3);
    assert!(fates.iter().all(|fate| matches!(fate, Fate::Answered { hop: 0, .. })), "{fates:?}");
    let (fates, _) = stream("mtu-black-hole", V4, 1500, 3, Span::from_millis(1));
    assert_eq!(fates.len(), 3);
    assert!(
        fates.iter().all(|fate| matches!(fate, Fate::Dropped { cause: DropCause::Mtu, .. })),
        "{fates:?}"
    );
    let (fates, _) = stream("mtu-black-hole", V4, 1400, 3, Span::from_millis(1));
    assert_eq!(delays(&fates).len(), 3);
}

#[test]
fn changes_happen_when_their_files_say() {
    let (fates, _) = stream("route-change", V4, 100, 200, Span::from_millis(100));
    let delays = delays(&fates);
    assert!((delays[50] - 10.0).abs() < 0.1 && (delays[150] - 25.0).abs() < 0.1);
    let (_, network) = stream("rate-step", V4, 100, 300, Span::from_millis(100));
    let capacity: Vec<u64> = network
        .truth()
        .link(Side::A, 0)
        .expect("hop")
        .intervals(3)
        .iter()
        .map(|i| i.capacity.0 / 1_000_000)
        .collect();
    assert_eq!((capacity[5], capacity[15], capacity[25]), (100, 30, 100));
    let (_, network) = stream("load-step", V4, 100, 300, Span::from_millis(100));
    let path: Vec<f64> =
        network.truth().available(Side::A, 3).iter().map(|(_, rate)| rate.mbits_f64()).collect();
    assert!((path[5] - 70.0).abs() < 5.0 && (path[15] - 40.0).abs() < 5.0 && path[25] > 99.0, "{path:?}");
    let (_, network) = stream("load-square", V4, 100, 100, Span::from_millis(100));
    let path: Vec<f64> =
        network.truth().available(Side::A, 3).iter().map(|(_, rate)| rate.mbits_f64()).collect();
    assert!((path[4] - 40.0).abs() < 1.0 && path[5] > 99.0, "{path:?}");
}

#[test]
fn order_is_broken_where_files_say_and_only_there() {
    for (name, broken) in [("reordering", true), ("parallel-links", true), ("lte", false), ("wifi", false)] {
        let (fates, _) = stream(name, V4, 100, 2000, Span::from_micros(500));
        let ids: Vec<u64> =
            fates.iter().filter(|f| matches!(f, Fate::Delivered { .. })).map(Fate::id).collect();
        assert!(ids.len() > 1500, "{name}: only {} of 2000 came", ids.len());
        assert_eq!(!ids.is_sorted(), broken, "{name}");
    }
}

#[test]
fn policer_drops_and_shaper_delays_the_same_burst() {
    let (policed, _) = stream("policer", V4, 1500, 300, Span::from_micros(12));
    let (shaped, _) = stream("shaper", V4, 1500, 300, Span::from_micros(12));
    let most = |fates: &[Fate]| delays(fates).into_iter().fold(0.0, f64::max);
    assert!(delays(&policed).len() < 90 && most(&policed) < 5.1, "{}", most(&policed));
    assert!(delays(&shaped).len() == 300 && most(&shaped) > 50.0, "{}", most(&shaped));
}

#[test]
fn a_clock_shows_what_its_file_says() {
    let clock = Network::new(&all()["skewed-clocks"], 1).clock(Side::B);
    assert_eq!(clock.error(Mono(0)), Span::from_millis(7));
    assert_eq!(clock.error(Mono(50_000_000_000)), Span::from_millis(7 + 2 - 5));
}
