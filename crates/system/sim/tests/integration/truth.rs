//! The simulator knows the truth: does what comes out agree with it?

use std::collections::BTreeMap;

use netaware_netmodel::DropCause;
use netaware_probe::Pacing;
use netaware_record::{IpVersion, MtuFinding};
use netaware_sim::methods::{self, Found, LatencyAsk, Method, StreamAsk};
use netaware_sim::{EchoResponder, Flow, ProbeStream, Scenario, Side, Simulation};
use netaware_stats::patience::Waiting;
use netaware_units::{Mono, Span};

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

fn text(name: &str) -> String {
    let file = format!("{}/../../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(file).unwrap()
}

fn scenario(name: &str) -> Scenario {
    Scenario::parse(&text(name)).unwrap()
}

fn train(count: u64, spacing: Span) -> LatencyAsk {
    LatencyAsk {
        count: Some(count),
        time: None,
        pacing: Pacing::Even(spacing),
        length: 64,
        response: 64,
        patience: Span::from_secs(1),
        waiting: Waiting::Exactly,
    }
}

#[test]
fn a_round_trip_of_1200_ms_is_slow_and_not_lost() {
    let scenario = Scenario::parse("about = 'x'\n[[hop]]\nrate = '10Mbit/s'\ndelay = '600ms'\n").unwrap();
    for version in [IpVersion::V4, IpVersion::V6] {
        let ask = LatencyAsk { waiting: Waiting::AtLeast, ..train(100, Span::from_millis(10)) };
        let found = latency(&scenario, 1, version, ask).result.latency.unwrap();
        assert_eq!((found.sent, found.received, found.lost, found.late), (100, 100, 0, 0), "{found:?}");
        assert!(found.patience >= Span::from_millis(4800), "{found:?}");
    }
}

fn latency(scenario: &Scenario, seed: u64, version: IpVersion, ask: LatencyAsk) -> Found {
    methods::run(scenario, seed, version, &Method::Latency(ask)).unwrap()
}

fn figure(found: &Found, name: &str) -> (Option<f64>, Option<f64>) {
    let figure = found.figures.iter().find(|figure| figure.name == name).unwrap();
    (figure.estimate, figure.truth)
}

/// Rounding to whole nanoseconds, once per link in the arithmetic and once per direction in the
/// network.
const ROUNDING_NS: f64 = 40.0;

#[test]
fn a_round_trip_on_an_idle_path_is_the_arithmetic_of_its_scenario() {
    for name in [
        "idle-10m",
        "idle-100m",
        "idle-1g",
        "idle-100g",
        "three-hops",
        "asymmetric",
        "hidden-switch",
        "ipv6-faster",
    ] {
        for version in VERSIONS {
            let scenario = scenario(name);
            let ask = train(50, Span::from_millis(100));
            let found = latency(&scenario, 1, version, ask);
            let base = found.truth.base_rtt.unwrap().nanos() as f64;
            for figure_name in ["round trip, min", "round trip, max"] {
                let (estimate, truth) = figure(&found, figure_name);
                let (estimate, truth) = (estimate.unwrap(), truth.unwrap());
                assert!(
                    (estimate - base).abs() <= ROUNDING_NS,
                    "{name} {version:?}: {estimate} and not {base}"
                );
                assert!((estimate - truth).abs() <= 2.0, "{name} {version:?}: {estimate} and not {truth}");
            }
            let (told, routers) = figure(&found, "routers");
            assert!(told.is_some(), "{name}: no routers are told");
            assert_eq!((told, found.result.latency.unwrap().lost), (routers, 0), "{name}");
        }
    }
}

#[test]
fn under_cross_traffic_every_round_trip_is_still_measured_to_the_nanosecond() {
    for name in ["loaded-100m", "ten-hops", "bufferbloat", "lte", "wifi"] {
        let found = latency(&scenario(name), 5, IpVersion::V6, train(300, Span::from_millis(7)));
        for of in ["min", "median", "p95", "max", "mean"] {
            let (estimate, truth) = figure(&found, &format!("round trip, {of}"));
            assert!((estimate.unwrap() - truth.unwrap()).abs() <= 2.0, "{name} {of}: {estimate:?} {truth:?}");
        }
    }
}

#[test]
fn bernoulli_losses_are_counted_to_the_last_one() {
    for (name, loss) in [("loss-1", 0.01), ("loss-5", 0.05)] {
        let count = 20_000;
        let found = latency(&scenario(name), 7, IpVersion::V4, train(count, Span::from_millis(1)));
        let result = found.result.latency.as_ref().unwrap();
        assert_eq!((result.sent, result.received + result.lost, result.not_sent), (count, count, 0));
        assert_eq!(result.lost, found.forward.lost + found.reverse.lost);
        assert_eq!(found.forward.causes, BTreeMap::from([("wire", found.forward.lost)]));
        let (told, truth) = figure(&found, "lost, there and back");
        assert!(told.is_some_and(|told| told > 0.0), "{name}: {told:?}");
        assert_eq!(told, truth, "{name}");
        // Within 3.3 standard deviations: 1 in 1000 seeds is not.
        let both_ways = 1.0 - (1.0 - loss) * (1.0 - loss);
        let (mean, sd) = (both_ways * 2e4, (both_ways * (1.0 - both_ways) * 2e4_f64).sqrt());
        assert!((result.lost as f64 - mean).abs() < 3.3 * sd, "{name}: {} and not {mean}", result.lost);
    }
}

#[test]
fn the_path_mtu_is_found_where_the_scenario_has_it() {
    let rows = [
        ("idle-1g", 1500, MtuFinding::Confirmed),
        ("small-mtu", 1400, MtuFinding::Learnt),
        ("mtu-black-hole", 1400, MtuFinding::BlackHole),
    ];
    for (name, mtu, finding) in rows {
        for version in VERSIONS {
            let found = methods::run(&scenario(name), 1, version, &Method::PathMtu).unwrap();
            let path = found.result.path.as_ref().unwrap();
            assert_eq!((path.mtu, path.mtu_finding), (Some(mtu), finding), "{name} {version:?}");
            assert_eq!(figure(&found, "path MTU").1, Some(f64::from(mtu)), "{name} {version:?}");
        }
    }
}

#[test]
fn wrong_clocks_do_not_disturb_a_round_trip() {
    let hop = "[[hop]]\nrate = '100Mbit/s'\ndelay = '4ms'\n";
    let with = |hosts: &str| Scenario::parse(&format!("about = 'x'\n{hosts}{hop}")).unwrap();
    let right = latency(&with(""), 1, IpVersion::V4, train(1000, Span::from_millis(50)));
    let base = figure(&right, "round trip, median").0.unwrap();
    let far =
        "[host.b]\nclock = { offset = '-7ms', skew_ppm = 100.0, steps = [{ at = '10s', by = '-5ms' }] }\n";
    let near = "[host.a]\nclock = { offset = '1h', skew_ppm = -50.0, steps = [{ at = '20s', by = '1s' }] }\n";
    // A round trip is measured by the near clock alone, so its skew is all that shows: 50 ppm.
    for (hosts, skew) in [(far.to_owned(), 0.0), (format!("{near}{far}"), -50e-6)] {
        let found = latency(&with(&hosts), 1, IpVersion::V4, train(1000, Span::from_millis(50)));
        for name in ["round trip, min", "round trip, max"] {
            let rtt = figure(&found, name).0.unwrap();
            assert!((rtt - base * (1.0 + skew)).abs() <= 3.0, "{hosts}: {rtt} and not {base}");
        }
    }
}

#[test]
fn the_time_inside_the_responder_is_taken_out() {
    use netaware_probe::{EchoEvent, EchoPlan, EchoTrain};
    let scenario = scenario("skewed-clocks");
    let mut sim = Simulation::new(&scenario, 1);
    let mut train = EchoTrain::new(EchoPlan {
        flow: 1,
        count: Some(20),
        pacing: Pacing::PingPong,
        length: 64,
        response: 64,
        patience: Span::from_secs(1),
        start: sim.local_now(Side::A),
    })
    .unwrap();
    let mut rtts = Vec::new();
    let mut far = EchoResponder::holding(Span::from_millis(3));
    sim.run_against(&Flow::new(IpVersion::V4), &mut train, &mut far, |event| {
        if let EchoEvent::Answered(exchange) = event {
            assert_eq!(exchange.responder, Some(Span::from_millis(3)));
            rtts.push(exchange.rtt());
        }
    });
    // 3 ms of a clock that is 40 ppm fast are 120 ns short.
    let base = scenario.base_rtt(IpVersion::V4, 64 + 28).unwrap() - Span(120);
    assert_eq!(rtts.len(), 20);
    assert!(rtts.iter().all(|rtt| (*rtt - base).abs() <= Span(10)), "{rtts:?} and not {base:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let of = |name: &str, seed: u64, method: &Method| {
        let scenario = scenario(name);
        let found: Vec<Found> =
            VERSIONS.iter().map(|version| methods::run(&scenario, seed, *version, method).unwrap()).collect();
        let record = methods::record(method.name(), name, seed, BTreeMap::new(), &found);
        serde_json::to_string(&(&found, record)).unwrap()
    };
    let stream = StreamAsk { from: Side::B, count: 2000, spacing: Span::from_micros(100), length: 1000 };
    for name in ["loaded-100m", "copies-and-bit-errors", "reordering", "lte"] {
        for method in
            [Method::Latency(train(100, Span::from_millis(3))), Method::PathMtu, Method::Stream(stream)]
        {
            assert_eq!(of(name, 11, &method), of(name, 11, &method), "{name} {}", method.name());
            assert_ne!(of(name, 11, &method), of(name, 12, &method), "{name} {}", method.name());
        }
    }
}

#[test]
fn a_stream_on_an_idle_path_takes_what_the_arithmetic_says() {
    for from in [Side::A, Side::B] {
        let scenario = scenario("three-hops");
        let mut sim = Simulation::new(&scenario, 1);
        let spacing = Span::from_millis(1);
        let stream = ProbeStream { from, version: IpVersion::V4, length: 1000, spacing, count: 500 };
        let fates = sim.stream(&stream);
        let base = scenario.base_delay(from, IpVersion::V4, 1000).unwrap();
        assert_eq!((fates.way.delays.len(), fates.reordered, fates.way.lost()), (500, 0, 0));
        assert!(fates.way.delays.iter().all(|(_, delay)| (*delay - base).abs() <= Span(10)));
        // Back to back it is the bottleneck that spaces them: 80 us for 1000 bytes at 100 Mbit/s.
        let burst = sim.stream(&ProbeStream { spacing: Span::ZERO, count: 10, ..stream });
        let last = burst.way.delays[9].1 - burst.way.delays[8].1;
        assert!((last - Span::from_micros(80)).abs() <= Span::from_micros(4), "{last}");
    }
}

#[test]
fn every_packet_of_a_stream_has_one_fate() {
    for name in ["loss-bursty", "policer", "copies-and-bit-errors", "reordering", "codel", "ipv6-black-hole"]
    {
        for version in VERSIONS {
            let mut sim = Simulation::new(&scenario(name), 4);
            let spacing = Span::from_micros(50);
            let fates =
                sim.stream(&ProbeStream { from: Side::A, version, length: 1200, spacing, count: 20_000 });
            let way = &fates.way;
            assert_eq!(way.delays.len() as u64 + way.lost(), 20_000, "{name} {version:?}");
            let mut numbers: Vec<u64> = way.delays.iter().map(|(number, _)| *number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), way.delays.len(), "{name}: no packet arrives twice but as a copy");
        }
    }
    let mut sim = Simulation::new(&scenario("ipv6-black-hole"), 4);
    let spacing = Span::from_millis(1);
    let swallowed =
        sim.stream(&ProbeStream { from: Side::A, version: IpVersion::V6, length: 1200, spacing, count: 10 });
    assert_eq!(swallowed.way.dropped[DropCause::BlackHole as usize], 10);
}

#[test]
fn runs_follow_each_other_on_one_network() {
    let mut sim = Simulation::new(&scenario("loaded-100m"), 9);
    let stream = ProbeStream {
        from: Side::A,
        version: IpVersion::V4,
        length: 100,
        spacing: Span::from_millis(1),
        count: 100,
    };
    let (first, after_first) = (sim.stream(&stream), sim.now());
    sim.pass(Span::from_secs(1));
    let second = sim.stream(&stream);
    assert!(after_first > Mono(0) && sim.now().since(after_first) > Span::from_secs(1));
    assert_ne!(first.way.delays, second.way.delays, "cross traffic goes on");
    assert_eq!((first.way.sent, second.way.sent), (100, 100));
}

/// In a release build the thousand of them end in seconds; what they take is printed by the example
/// `packet_rate`.
#[test]
fn over_many_seeds_the_estimate_holds_the_truth() {
    let seeds = if cfg!(debug_assertions) { 20 } else { 1000 };
    let scenario = scenario("ten-hops");
    let mut means = Vec::new();
    for seed in 0..seeds {
        let found = latency(&scenario, seed, IpVersion::V4, train(100, Span::from_millis(5)));
        let (estimate, truth) = figure(&found, "round trip, mean");
        assert!((estimate.unwrap() - truth.unwrap()).abs() <= 2.0, "seed {seed}");
        means.push(estimate.unwrap());
    }
    means.sort_unstable_by(f64::total_cmp);
    means.dedup();
    assert!(means.len() as u64 > seeds / 2, "seeds must differ");
    let base = scenario.base_rtt(IpVersion::V4, 92).unwrap().nanos() as f64;
    assert!(means[0] >= base - ROUNDING_NS);
}
