//! Queues whose mean wait is known in closed form, and traffic whose self-similarity is.

use netaware_netmodel::{Fate, Network, Packet, Scenario, Side};
use netaware_record::IpVersion;
use netaware_stats::rng::SplitMix64;
use netaware_units::Mono;

/// Mean wait in seconds of `count` Poisson arrivals of packets whose lengths `length` draws, on a
/// link of 1 Gbit/s.
fn mean_wait(
    seed: u64,
    count: u64,
    load: f64,
    mean_bytes: f64,
    mut length: impl FnMut(&mut SplitMix64) -> u32,
) -> f64 {
    let text = "about = 'M/x/1'\n[[hop]]\nrate = '1Gbit/s'\nmtu = 65535\nqueue = { packets = 10000000 }\n";
    let mut network = Network::new(&Scenario::parse(text).expect("sane"), 1);
    let mut rng = SplitMix64::new(seed);
    let mean_gap = mean_bytes * 8.0 / load;
    let (mut at, mut waits, mut seen) = (0.0, 0.0, 0_u64);
    let mut services = std::collections::VecDeque::new();
    for id in 0..count {
        at -= (1.0 - rng.unit()).ln() * mean_gap;
        let now = Mono(at as u64);
        network.advance(now, &mut |fate| {
            let Fate::Delivered { delay, .. } = fate else { panic!("{fate:?}") };
            waits += delay.secs_f64() - services.pop_front().unwrap_or(0.0);
            seen += 1;
        });
        let length = length(&mut rng);
        services.push_back(f64::from(length) * 8e-9);
        let (version, hop_limit, flow, dont_fragment) = (IpVersion::V4, 64, 1, true);
        network.offer(now, Side::A, Packet { id, version, length, hop_limit, flow, dont_fragment });
    }
    waits / seen as f64
}

fn deterministic(seed: u64, count: u64, load: f64) -> f64 {
    let service = 10_000.0 * 8e-9;
    let exact = load * service / (2.0 * (1.0 - load));
    mean_wait(seed, count, load, 10_000.0, |_| 10_000) / exact
}

fn exponential(seed: u64, count: u64, load: f64) -> f64 {
    // Lengths are whole bytes up to 65,535; with a mean of 5,000 the cut takes off two millionths.
    let service = 5_000.0 * 8e-9;
    let exact = load * service / (1.0 - load);
    mean_wait(seed, count, load, 5_000.0, |rng| {
        ((1.0 - rng.unit()).ln() * -5_000.0).round().clamp(1.0, 65_535.0) as u32
    }) / exact
}

#[test]
fn mean_waits_of_short_runs_are_near_the_closed_form() {
    let ratios = [deterministic(7, 500_000, 0.5), exponential(7, 500_000, 0.5)];
    assert!(ratios.iter().all(|ratio| (ratio - 1.0).abs() < 0.02), "{ratios:?}");
}

#[test]
#[ignore = "long: 1 minute, 10 million packets eight times"]
fn mean_waits_over_ten_million_packets_are_within_one_per_cent() {
    for (seed, load) in [(7, 0.5), (7, 0.7), (8, 0.7), (9, 0.7)] {
        let (md1, mm1) = (deterministic(seed, 10_000_000, load), exponential(seed, 10_000_000, load));
        println!("seed {seed}, load {load}: M/D/1 {md1:.5}, M/M/1 {mm1:.5} of the closed form");
        assert!((md1 - 1.0).abs() < 0.01 && (mm1 - 1.0).abs() < 0.01, "load {load}: {md1} {mm1}");
    }
}

#[test]
fn drawn_poisson_traffic_waits_as_pollaczek_and_khinchine_say() {
    // Long scale: the wait that a sparse stream of tiny packets meets is the mean wait of M/D/1
    // (PASTA).
    let text =
        "about = 'x'\n[[hop]]\nrate = '100Mbit/s'\n[[cross]]\nenter = 0\npattern = 'poisson'\nload = 0.6\n";
    let mut network = Network::new(&Scenario::parse(text).expect("sane"), 3);
    let (mut sum, mut count, mut rng, mut at) = (0.0, 0_u64, SplitMix64::new(5), 0.0);
    for id in 0..40_000 {
        at -= (1.0 - rng.unit()).ln() * 1e6;
        let packet =
            Packet { id, version: IpVersion::V4, length: 20, hop_limit: 9, flow: 1, dont_fragment: true };
        network.advance(Mono(at as u64), &mut |fate| {
            if let Fate::Delivered { delay, .. } = fate {
                sum += delay.secs_f64() - 20.0 * 8e-8;
                count += 1;
            }
        });
        network.offer(Mono(at as u64), Side::A, packet);
    }
    let exact = 0.6 * 1500.0 * 8e-8 / (2.0 * 0.4);
    let ratio = sum / count as f64 / exact;
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
}

/// From 80 ms, well above the mean ON and OFF times of 2 and 8 ms, to 2.56 s. Slope of log variance
/// of the mean load against log length of the interval: 2H - 2.
fn hurst(seed: u64, alpha: f64, seconds: u64) -> f64 {
    let text = format!(
        "about = 'x'\n[[hop]]\nrate = '1Gbit/s'\n[[cross]]\nenter = 0\npattern = 'on_off'\nrate = '100Mbit/s'\nsources = 50\nalpha = {alpha}\non = '2ms'\noff = '8ms'\nsizes = 500\n"
    );
    let mut network = Network::new(&Scenario::parse(&text).expect("sane"), seed);
    network.advance(Mono(seconds * 1_000_000_000), &mut |_| {});
    let link = network.truth().link(Side::A, 0).expect("one hop");
    let loads: Vec<f64> = link.intervals(1).iter().map(|interval| f64::from(interval.arrived)).collect();
    let variance = |length: usize| {
        let means: Vec<f64> =
            loads.chunks_exact(length).map(|c| c.iter().sum::<f64>() / length as f64).collect();
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / means.len() as f64
    };
    let points: Vec<(f64, f64)> =
        [8, 16, 32, 64, 128, 256].map(|length| ((length as f64).ln(), variance(length).ln())).to_vec();
    let n = points.len() as f64;
    let (mx, my) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let slope = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum::<f64>()
        / points.iter().map(|p| (p.0 - mx).powi(2)).sum::<f64>();
    1.0 + slope / 2.0
}

#[test]
#[ignore = "long: 1 minute, 600 s of traffic 24 times"]
fn on_off_traffic_has_the_hurst_parameter_of_its_tails() {
    for alpha in [1.3, 1.5, 1.7] {
        let found: Vec<f64> = (0..8).map(|seed| hurst(seed, alpha, 600)).collect();
        let (mean, want) = (found.iter().sum::<f64>() / found.len() as f64, (3.0 - alpha) / 2.0);
        println!("alpha {alpha}: H {mean:.3}, theory {want:.3}, runs {found:.3?}");
        // The variance-time estimate leans low at high H (finite samples take out the mean of the
        // run).
        assert!((mean - want).abs() < 0.08, "alpha {alpha}: {mean} instead of {want}");
    }
}

#[test]
fn heavier_tails_give_longer_memory() {
    let light = hurst(1, 3.5, 60);
    let heavy = hurst(1, 1.4, 60);
    assert!(heavy > light + 0.1, "alpha 1.4 gives {heavy}, alpha 3.5 gives {light}");
}
