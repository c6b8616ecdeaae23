//! What must hold for every path, and rates that must come out as configured.

use netaware_netmodel::{Answer, DropCause, Fate, Network, Packet, Scenario, Side};
use netaware_record::IpVersion;
use netaware_stats::rng::SplitMix64;
use netaware_units::{BitRate, Mono, Span};
use proptest::prelude::*;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(&format!("about = 'x'\n{text}")).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn packet(id: u64, length: u32) -> Packet {
    Packet { id, version: IpVersion::V4, length, hop_limit: 64, flow: id % 7, dont_fragment: true }
}

/// Offers `count` packets of `length`, one each `gap` ns, then waits for all fates.
fn stream(text: &str, seed: u64, count: u64, length: u32, gap: u64) -> Vec<Fate> {
    let mut network = Network::new(&scenario(text), seed);
    let mut fates = Vec::new();
    for id in 0..count {
        network.advance(Mono(id * gap), &mut |fate| fates.push(fate));
        network.offer(Mono(id * gap), Side::A, packet(id, length));
    }
    network.advance(Mono(count * gap + 100_000_000_000), &mut |fate| fates.push(fate));
    assert_eq!(network.under_way(), 0);
    fates
}

fn dropped(fates: &[Fate], wanted: DropCause) -> u64 {
    fates.iter().filter(|fate| matches!(fate, Fate::Dropped { cause, .. } if *cause == wanted)).count() as u64
}

#[track_caller]
fn assert_binomial(happened: u64, of: u64, probability: f64) {
    let (mean, n) = (of as f64 * probability, of as f64);
    let half = 2.576 * (n * probability * (1.0 - probability)).sqrt() + 1.0;
    assert!((happened as f64 - mean).abs() <= half, "{happened} of {of}, not {mean} ± {half}");
}

const HOP: &str = "[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n";

#[test]
fn losses_copies_and_flipped_bits_are_within_the_binomial_interval() {
    for (n, probability) in [0.001, 0.01, 0.05].into_iter().enumerate() {
        let fates = stream(&format!("{HOP}loss = {probability}\n"), n as u64, 100_000, 100, 10_000);
        assert_binomial(dropped(&fates, DropCause::Loss), 100_000, probability);
        let fates = stream(&format!("{HOP}duplication = {probability}\n"), n as u64, 100_000, 100, 10_000);
        assert_binomial(fates.len() as u64 - 100_000, 100_000, probability);
        let fates = stream(&format!("{HOP}corruption = {probability}\n"), n as u64, 100_000, 100, 10_000);
        let flipped = fates
            .iter()
            .filter(|f| matches!(f, Fate::Delivered { corrupted_bit: Some(bit), .. } if *bit < 800));
        assert_binomial(flipped.count() as u64, 100_000, probability);
    }
    assert_eq!(
        dropped(
            &stream(&format!("{HOP}loss = {{ every = 100 }}\n"), 1, 10_000, 100, 10_000),
            DropCause::Loss
        ),
        100
    );
}

#[test]
fn bursty_loss_has_its_rate_and_its_burst_length() {
    let text = format!("{HOP}loss = {{ to_bad = 0.0020202, to_good = 0.2 }}\n");
    let mut fates = stream(&text, 3, 400_000, 100, 10_000);
    fates.sort_by_key(Fate::id);
    let lost: Vec<bool> = fates.iter().map(|fate| matches!(fate, Fate::Dropped { .. })).collect();
    let losses = lost.iter().filter(|lost| **lost).count() as f64;
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    assert!((losses / 400_000.0 - 0.01).abs() < 0.001, "{losses}");
    assert!((losses / bursts - 5.0).abs() < 0.5, "{losses} in {bursts} bursts");
}

/// By how many ms the delays of a hop with these settings exceed the least possible one. The
/// packets are so far apart that none waits for another.
fn extra_delays(words: &str) -> Vec<f64> {
    const APART: u64 = 1_000_000_000;
    let fates = stream(&format!("{HOP}{words}\n"), 3, 20_000, 125, APART);
    let delay = |fate: &Fate| match fate {
        Fate::Delivered { id, at, .. } => (at.0 - id * APART) as f64 / 1e6 - 1.001,
        other => panic!("{other:?}"),
    };
    fates.iter().map(delay).collect()
}

fn mean_and_deviation(of: &[f64]) -> (f64, f64) {
    let n = of.len() as f64;
    let mean = of.iter().sum::<f64>() / n;
    (mean, (of.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / n).sqrt())
}

#[test]
fn jitter_has_the_mean_and_the_spread_of_its_distribution() {
    // Mean and standard deviation, ms. At this alpha the spread of a Pareto sample converges too
    // slowly to be compared.
    let rows = [
        ("distribution = 'uniform', mean = '4ms'", 4.0, Some(4.0 / 3.0_f64.sqrt())),
        ("distribution = 'normal', mean = '20ms', deviation = '3ms'", 20.0, Some(3.0)),
        ("distribution = 'exponential', mean = '4ms'", 4.0, Some(4.0)),
        ("distribution = 'pareto', mean = '4ms', alpha = 3.0", 4.0, None),
    ];
    for (words, mean, deviation) in rows {
        let found = mean_and_deviation(&extra_delays(&format!("jitter = {{ {words} }}")));
        assert!((found.0 / mean - 1.0).abs() < 0.04, "{words}: {found:?}");
        assert!(deviation.is_none_or(|it| (found.1 / it - 1.0).abs() < 0.04), "{words}: {found:?}");
    }
}

#[test]
fn access_to_a_shared_medium_costs_its_time_and_a_random_part_of_the_contention() {
    let delays = extra_delays("aggregation = { packets = 4, access = '2ms', contention = '6ms' }");
    let (mean, deviation) = mean_and_deviation(&delays);
    assert!(
        (mean / 5.0 - 1.0).abs() < 0.02 && (deviation / 3.0_f64.sqrt() - 1.0).abs() < 0.02,
        "{mean} {deviation}"
    );
    assert!(delays.iter().all(|it| (2.0 - 1e-6..8.0).contains(it)));
}

#[test]
fn the_link_serves_at_exactly_its_rate_with_overhead() {
    // 1000 packets of 1462 + 38 bytes at once on 10 Mbit/s: the last one leaves after 1000 x 1.2
    // ms.
    let text = "[[hop]]\nrate = '10Mbit/s'\ndelay = '3ms'\noverhead = 38\nqueue = { packets = 1000 }\n";
    let mut network = Network::new(&scenario(text), 1);
    (0..1000).for_each(|id| network.offer(Mono(0), Side::A, packet(id, 1462)));
    let mut last = Mono(0);
    network.advance(Mono(10_000_000_000), &mut |fate| last = fate.at());
    assert_eq!(last, Mono(1_203_000_000));
}

#[test]
fn limits_in_bytes_packets_and_time_hold_what_they_say() {
    // One is being transmitted besides those that wait.
    let rows = [("bytes = 15000", 11), ("packets = 10", 11), ("time = '12ms'", 11), ("packets = 0", 1)];
    for (limit, fit) in rows {
        let text = format!("[[hop]]\nrate = '10Mbit/s'\nqueue = {{ {limit} }}\n");
        let mut network = Network::new(&scenario(&text), 1);
        (0..50).for_each(|id| network.offer(Mono(0), Side::A, packet(id, 1500)));
        let (mut delivered, mut refused) = (0, 0);
        network.advance(Mono(10_000_000_000), &mut |fate| match fate {
            Fate::Delivered { .. } => delivered += 1,
            _ => refused += 1,
        });
        assert_eq!((delivered, refused), (fit, 50 - fit), "{limit}");
    }
}

#[test]
fn token_buckets_pass_their_credit_and_then_exactly_their_rate() {
    let shaper = "[[hop]]\nrate = '1Gbit/s'\nbucket = { kind = 'shaper', rate = '50Mbit/s', burst = 30000 }\nqueue = { packets = 100000 }\n";
    let mut network = Network::new(&scenario(shaper), 1);
    (0..10_000).for_each(|id| network.offer(Mono(0), Side::A, packet(id, 1500)));
    let mut last = Mono(0);
    network.advance(Mono(10_000_000_000), &mut |fate| last = fate.at());
    // Credit for 20 packets; then one each 240 us, and the last takes 12 us on the link.
    assert_eq!(last, Mono(9_980 * 240_000 + 12_000));

    let policer =
        "[[hop]]\nrate = '1Gbit/s'\nbucket = { kind = 'policer', rate = '50Mbit/s', burst = 30000 }\n";
    let fates = stream(policer, 1, 100_000, 1500, 60_000);
    let passed = 100_000 - dropped(&fates, DropCause::Policer);
    let exact = 20 + (99_999 * 60_000) / 240_000;
    assert!(passed.abs_diff(exact) <= 1, "{passed} instead of {exact}");
}

#[test]
fn codel_keeps_the_standing_queue_near_its_target() {
    let path = |queue: &str| {
        format!(
            "[[hop]]\nrate = '20Mbit/s'\ndelay = '10ms'\nqueue = {queue}\n[[cross]]\nenter = 0\npattern = 'tcp'\nback = '10ms'\n"
        )
    };
    let median = |text: &str| {
        let mut network = Network::new(&scenario(text), 1);
        let mut waits = Vec::new();
        for id in 0..6000 {
            let at = Mono(id * 10_000_000);
            network.advance(at, &mut |fate| {
                if let Fate::Delivered { id, delay, .. } = fate
                    && id > 1000
                {
                    waits.push(delay.millis_f64() - 10.0);
                }
            });
            network.offer(at, Side::A, packet(id, 40));
        }
        waits.sort_by(f64::total_cmp);
        let used = network.truth().link(Side::A, 0).expect("hop").intervals(3).iter().skip(10);
        let share: f64 = used.map(|i| 1.0 - i.available.0 as f64 / i.capacity.0 as f64).sum::<f64>() / 49.0;
        (waits[waits.len() / 2], share)
    };
    let (bloated, full) = median(&path("{ time = '1s' }"));
    let (managed, used) = median(&path("{ packets = 1700, codel = true }"));
    assert!(bloated > 400.0 && full > 0.99, "{bloated} ms at {full}");
    assert!((1.0..10.0).contains(&managed) && used > 0.85, "{managed} ms at {used}");
}

#[test]
fn routers_answer_with_their_own_delay_over_the_way_back_and_not_too_often() {
    let text = "[[hop]]\nrate = '1Gbit/s'\ndelay = '2ms'\nanswers = { delay = '1ms' }\n[[hop]]\nrate = '1Gbit/s'\ndelay = '3ms'\nanswers = { delay = '100us', rate = 10, burst = 2 }\n[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\nmtu = 1000\n";
    let mut network = Network::new(&scenario(text), 1);
    let mut fates = Vec::new();
    let send = |hop_limit, length| Packet { hop_limit, ..packet(u64::from(hop_limit), length) };
    for (from, sent) in [(Side::A, send(1, 100)), (Side::B, send(2, 100)), (Side::A, send(9, 1200))] {
        network.offer(Mono(0), from, sent);
    }
    network.advance(Mono(1_000_000_000), &mut |fate| fates.push(fate));
    let told: Vec<_> = fates
        .iter()
        .map(|fate| match fate {
            Fate::Answered { at, to, hop, answer, .. } => (at.0 / 100_000, *to, *hop, *answer),
            other => panic!("{other:?}"),
        })
        .collect();
    // From A: 2 ms there, 1 ms of its own, 2 ms back. From B: 1 + 3 ms there (router 0 is its
    // second), 1 ms, and back. Too big: at router 1 after 5 ms, 100 us, and 5 ms back.
    let want = [
        (50, Side::A, 0, Answer::TimeExceeded),
        (90, Side::B, 0, Answer::TimeExceeded),
        (101, Side::A, 1, Answer::TooBig { mtu: 1000 }),
    ];
    assert_eq!(told, want);

    let mut refused = 0;
    for id in 0..100 {
        network.offer(Mono(2_000_000_000 + id), Side::A, Packet { hop_limit: 2, ..packet(id, 100) });
    }
    network.advance(Mono(9_000_000_000), &mut |fate| {
        refused += u64::from(matches!(fate, Fate::Dropped { hop: 1, cause: DropCause::HopLimit, .. }));
    });
    assert_eq!(refused, 98);
}

#[test]
fn hop_limits_count_routers() {
    for (hops, sent, left) in [(1, 1, Some(1)), (3, 3, Some(1)), (3, 2, None), (5, 64, Some(60))] {
        let text = HOP.repeat(hops);
        for from in [Side::A, Side::B] {
            let mut network = Network::new(&scenario(&text), 1);
            network.offer(Mono(0), from, Packet { hop_limit: sent, ..packet(1, 100) });
            let mut arrived = None;
            network.advance(Mono(1_000_000_000), &mut |fate| {
                if let Fate::Delivered { hop_limit, .. } = fate {
                    arrived = Some(hop_limit);
                }
            });
            assert_eq!(arrived, left, "{hops} hops, {sent} sent");
        }
    }
}

#[test]
fn available_bandwidth_is_capacity_less_cross_traffic_at_every_scale() {
    let text = "[[hop]]\nrate = '1Gbit/s'\n[[hop]]\nrate = '100Mbit/s'\n[[cross]]\nenter = 1\npattern = 'constant'\nrate = '70Mbit/s'\n";
    let mut network = Network::new(&scenario(text), 1);
    network.advance(Mono(10_000_000_000), &mut |_| {});
    for (scale, count) in [(0, 10_000), (1, 1000), (2, 100), (3, 10)] {
        let path = network.truth().available(Side::A, scale);
        assert_eq!(path.len(), count);
        let mean = path.iter().map(|(_, rate)| rate.mbits_f64()).sum::<f64>() / count as f64;
        assert!((mean - 30.0).abs() < 0.1, "scale {scale}: {mean}");
    }
    let whole = network.truth().link(Side::A, 1).expect("hop").intervals(3)[5];
    assert_eq!(whole.capacity, BitRate(100_000_000));
    assert!(whole.longest_wait < Span::from_micros(130) && whole.dropped == [0; 11]);
}

#[test]
fn sources_reach_their_mean_rates() {
    let rows = [
        ("pattern = 'constant'\nrate = '30Mbit/s'", 0.001),
        ("pattern = 'poisson'\nrate = '30Mbit/s'\nsizes = 'imix'", 0.02),
        ("pattern = 'pareto'\nrate = '30Mbit/s'\nalpha = 2.5", 0.03),
        ("pattern = 'on_off'\nrate = '30Mbit/s'\nsources = 50\nalpha = 1.9\non = '10ms'\noff = '30ms'", 0.1),
        ("pattern = 'poisson'\nrate = '60Mbit/s'\nsquare = { period = '2s', high = 1, low = 0 }", 0.02),
    ];
    for (source, tolerance) in rows {
        let text = format!("[[hop]]\nrate = '100Mbit/s'\n[[cross]]\nenter = 0\n{source}\n");
        let mut network = Network::new(&scenario(&text), 2);
        network.advance(Mono(60_000_000_000), &mut |_| {});
        let path = network.truth().available(Side::A, 3);
        let used = 100.0 - path.iter().map(|(_, rate)| rate.mbits_f64()).sum::<f64>() / path.len() as f64;
        assert!((used / 30.0 - 1.0).abs() < tolerance, "{source}: {used} Mbit/s");
    }
}

#[test]
fn coalescing_hands_over_in_batches() {
    let text = format!("{HOP}[host.b]\nreceive = {{ period = '50us', batch = 8 }}\n");
    let fates = stream(&text, 1, 1000, 100, 10_000);
    let mut at: Vec<u64> = fates.iter().map(|fate| fate.at().0).collect();
    at.dedup();
    // The first packet starts 50 us, in which those at 0, 10, 20, 30, 40 come; the one at 50 opens
    // the next batch.
    assert_eq!(at.len(), 200);
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] == 50_000));
}

#[test]
fn what_is_absurd_but_allowed_neither_overflows_nor_hangs() {
    let slow = "[[hop]]\nrate = '1kbit/s'\nmtu = 65535\nqueue = { packets = 10000000 }\nbucket = { kind = 'shaper', rate = '1kbit/s', burst = 65535 }\n[[hop]]\nrate = '1kbit/s'\nmtu = 65535\n";
    let mut network = Network::new(&scenario(slow), 1);
    for id in 0..60_000 {
        network.offer(Mono(0), Side::A, packet(id, 65_535));
    }
    network.advance(Mono(20_000_000_000), &mut |_| {});
    assert!(network.under_way() > 0, "200 days are not enough for all");
    let tails = "[[hop]]\nrate = '1Gbit/s'\n[[cross]]\nenter = 0\npattern = 'on_off'\nrate = '100kbit/s'\nsources = 1000\nalpha = 1.01\non = '60s'\noff = '60s'\n";
    Network::new(&scenario(tails), 1).advance(Mono(20_000_000_000), &mut |_| {});
    let wild = "[[hop]]\nrate = '1Gbit/s'\njitter = { distribution = 'pareto', mean = '60s', alpha = 1.01, order = 'free' }\n";
    let mut network = Network::new(&scenario(wild), 1);
    (0..1000).for_each(|id| network.offer(Mono(id), Side::A, packet(id, 100)));
    let mut last = Mono(0);
    network.advance(Mono(70_000_000_000), &mut |fate| last = fate.at());
    assert!(network.under_way() == 0 && last < Mono(61_000_000_000), "{last:?}");
}

/// Lines of a hop that may stand together.
fn random_hop() -> impl Strategy<Value = String> {
    let rate = prop_oneof![Just("1Mbit/s"), Just("10Mbit/s"), Just("100Mbit/s")];
    let queue = prop_oneof![
        Just("packets = 5"),
        Just("bytes = 4000"),
        Just("time = '20ms'"),
        Just("packets = 20, codel = true"),
    ];
    let extras = proptest::sample::subsequence(
        vec![
            "loss = 0.05",
            "duplication = 0.05",
            "corruption = 0.1",
            "reordering = { probability = 0.1, by = '5ms' }",
            "jitter = { distribution = 'exponential', mean = '2ms', order = 'free' }",
            "bucket = { kind = 'policer', rate = '5Mbit/s', burst = 3000 }",
            "members = { count = 3, balance = 'packet', delay_step = '1ms' }",
            "aggregation = { packets = 4, access = '200us' }",
            "switches = [{ rate = '10Mbit/s', delay = '10us' }]",
            "mtu = 700",
            "v6 = { rate = '2Mbit/s', delay = '9ms' }",
            "answers = { delay = '300us', rate = 100 }",
        ],
        0..5,
    );
    (rate, 0..20_u32, queue, extras).prop_map(|(rate, delay, queue, extras)| {
        let extras = extras.join("\n");
        format!("[[hop]]\nrate = '{rate}'\ndelay = '{delay}ms'\nqueue = {{ {queue} }}\n{extras}\n")
    })
}

fn random_scenario() -> impl Strategy<Value = String> {
    let cross = prop_oneof![
        Just(""),
        Just("[[cross]]\nenter = 0\npattern = 'poisson'\nrate = '3Mbit/s'\nsizes = 'imix'\n"),
        Just("[[cross]]\nenter = 0\npattern = 'tcp'\nflows = 3\nback = '4ms'\nsizes = 600\n"),
        Just("[[cross]]\nfrom = 'b'\nenter = 0\npattern = 'pareto'\nalpha = 1.5\nload = 0.9\nsizes = 300\n"),
    ];
    (proptest::collection::vec(random_hop(), 1..5), cross).prop_map(|(hops, cross)| hops.concat() + cross)
}

/// A little of everything, both ways.
fn offers(seed: u64) -> Vec<(Mono, Side, Packet)> {
    let mut rng = SplitMix64::new(seed);
    let mut at = 0;
    let one = |id| {
        at += rng.below(3_000_000) as u64;
        let version = if rng.below(2) == 0 { IpVersion::V4 } else { IpVersion::V6 };
        let (length, hop_limit) = (20 + rng.below(1480) as u32, 1 + rng.below(6) as u8);
        let side = if rng.below(3) == 0 { Side::B } else { Side::A };
        let dont_fragment = rng.below(2) == 0;
        (Mono(at), side, Packet { id, version, length, hop_limit, flow: id % 3, dont_fragment })
    };
    (0..300).map(one).collect()
}

/// Calls `advance` at each offer, and besides at every multiple of `step`.
fn run(text: &str, seed: u64, step: u64) -> (Vec<Fate>, Network) {
    let mut network = Network::new(&scenario(text), seed);
    let mut fates = Vec::new();
    let mut now = 0;
    for (offered, (at, from, packet)) in offers(seed).into_iter().enumerate() {
        while now + step < at.0 {
            now += step;
            network.advance(Mono(now), &mut |fate| fates.push(fate));
            let copies =
                fates.iter().filter(|fate| matches!(fate, Fate::Delivered { duplicate: true, .. })).count();
            assert_eq!(fates.len() - copies + network.under_way(), offered, "in = out + dropped + under way");
        }
        network.offer(at, from, packet);
    }
    // What waits behind cross traffic in a hidden switch of 10 Mbit/s, whose queue is endless,
    // takes up to 20 s.
    for second in 6..30 {
        network.advance(Mono(second * 1_000_000_000), &mut |fate| fates.push(fate));
        if network.under_way() == 0 {
            break;
        }
    }
    (fates, network)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_offered_packet_has_one_fate_and_every_link_accounts_for_all(
        text in random_scenario(), seed in 0..1000_u64,
    ) {
        let (fates, network) = run(&text, seed, 7_000_000);
        let mut seen = vec![0; 300];
        for fate in &fates {
            let copy = matches!(fate, Fate::Delivered { duplicate: true, .. });
            seen[fate.id() as usize] += u32::from(!copy);
        }
        prop_assert!(seen.iter().all(|count| *count == 1), "{seen:?}\n{text}");
        prop_assert_eq!(network.under_way(), 0);
        prop_assert!(fates.is_sorted_by_key(Fate::at));
        for side in [Side::A, Side::B] {
            let hops = (0..).map_while(|hop| network.truth().link(side, hop)).count();
            for hop in 0..hops {
                let counts = *network.truth().link(side, hop).expect("counted").counts();
                let ended: u64 = counts.dropped.iter().sum();
                let waiting = network.waiting(side, hop) as u64;
                prop_assert_eq!(counts.arrived + counts.copied, counts.left + ended + waiting);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_fates_however_often_time_is_told(
        text in random_scenario(), seed in 0..1000_u64, step in 200_000..50_000_000_u64,
    ) {
        let (once, _) = run(&text, seed, u64::MAX / 2);
        let (often, _) = run(&text, seed, step);
        prop_assert_eq!(once, often, "{}", text);
    }

    #[test]
    fn next_event_is_never_later_than_the_next_fate(text in random_scenario(), seed in 0..1000_u64) {
        let mut network = Network::new(&scenario(&text), seed);
        for (at, from, packet) in offers(seed) {
            while let Some(next) = network.next_event().filter(|next| *next <= at) {
                let mut early = None;
                network.advance(next, &mut |fate| early = early.or((fate.at() < next).then_some(fate)));
                prop_assert_eq!(early, None, "told at {:?}", next);
            }
            network.offer(at, from, packet);
        }
    }

    #[test]
    fn next_arrival_is_never_later_than_what_a_host_gets_next(text in random_scenario(), seed in 0..1000_u64) {
        let mut network = Network::new(&scenario(&text), seed);
        let reaches_a_host = |fate: &Fate| !matches!(fate, Fate::Dropped { .. });
        for (at, from, packet) in offers(seed) {
            while let Some(next) = network.next_arrival().filter(|next| *next <= at) {
                let mut early = None;
                network.advance(next, &mut |fate| {
                    early = early.or((fate.at() < next && reaches_a_host(&fate)).then_some(fate));
                });
                prop_assert_eq!(early, None, "told at {:?}", next);
            }
            network.offer(at, from, packet);
        }
    }
}

#[test]
fn what_waits_in_an_endless_queue_is_told_too() {
    let text = "[[hop]]\nrate = '100Mbit/s'\nqueue = { packets = 5 }\nmembers = { count = 3, balance = 'packet', delay_step = '1ms' }\nswitches = [{ rate = '10Mbit/s', delay = '10us' }]\n[[cross]]\nfrom = 'b'\nenter = 0\npattern = 'pareto'\nalpha = 1.5\nload = 0.9\nsizes = 300\n";
    let (fates, network) = run(text, 0, 7_000_000);
    assert_eq!((fates.len(), network.under_way()), (300, 0));
    assert!(fates.last().expect("told").at() > Mono(6_000_000_000), "the queue is long");
}

#[test]
fn cross_traffic_that_is_handled_at_once_leaves_the_same_truth_as_packet_by_packet() {
    // A probability too small ever to happen keeps the link off the short cut.
    let link = |corruption: &str, pattern: &str, load: f64| {
        let text = format!(
            "[[hop]]\nrate = '10Mbit/s'\ndelay = '1ms'\noverhead = 38\nmtu = 1500\n{corruption}\
             queue = {{ packets = 20 }}\n[[cross]]\nenter = 0\nload = {load}\nsizes = 1500\n{pattern}\n\
             [[cross]]\nenter = 0\nload = 0.1\nsizes = 300\npattern = 'poisson'\n"
        );
        let mut network = Network::new(&scenario(&text), 7);
        for n in 0..200_u64 {
            let at = Mono(n * 10_000_000);
            network.offer(at, Side::A, packet(n, 1000));
            network.advance(at, &mut |_| {});
        }
        network.advance(Mono(3_000_000_000), &mut |_| {});
        let truth = network.truth().link(Side::A, 0).unwrap();
        (*truth.counts(), truth.cross_time(), truth.intervals(0).clone())
    };
    for pattern in ["pattern = 'constant'", "pattern = 'poisson'", "pattern = 'pareto'\nalpha = 1.5"] {
        for load in [0.5, 1.2] {
            let at_once = link("", pattern, load);
            assert_eq!(at_once, link("corruption = 1e-300\n", pattern, load), "{pattern} {load}");
            assert!(at_once.0.arrived > 1000, "{pattern}");
        }
    }
}

#[test]
fn parallel_queues_that_decide_at_their_head_draw_chance_in_order_of_time() {
    let jitter = "jitter = { distribution = 'exponential', mean = '2ms', order = 'free' }";
    let members = "members = { count = 3, balance = 'packet', delay_step = '1ms' }";
    let tcp = "[[cross]]\nenter = 0\npattern = 'tcp'\nflows = 3\nback = '4ms'\nsizes = 600\n";
    let codel = "rate = '100Mbit/s'\nqueue = { packets = 20, codel = true }";
    let batches =
        "rate = '10Mbit/s'\nqueue = { packets = 5 }\naggregation = { packets = 4, access = '200us' }";
    let apart =
        "rate = '1Mbit/s'\nv6 = { rate = '2Mbit/s' }\naggregation = { packets = 4, access = '200us' }";
    for (hop, parallel) in [(codel, members), (batches, members), (apart, "")] {
        let text = format!("[[hop]]\n{hop}\n{jitter}\n{parallel}\n{tcp}");
        assert_eq!(run(&text, 16, u64::MAX / 2).0, run(&text, 16, 200_000).0, "{text}");
    }
}
