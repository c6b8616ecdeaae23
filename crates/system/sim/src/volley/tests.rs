use netaware_path::{Gaps, Train, Volley};
use netaware_stats::quantile::linear;
use netaware_units::{BitRate, Span};

use super::*;
use crate::cells::{Cell, FROM, Shape, Traffic};

fn train(packets: u32, gaps: Gaps, rest: Span) -> Train {
    Train { packets, length: 1500, gaps, rest }
}

fn one(train: Train) -> Volley {
    Volley { trains: vec![train] }
}

fn cell(load: u32, traffic: Traffic, shape: Shape) -> Cell {
    Cell { rate: BitRate(100_000_000), load, traffic, coalescing: None, shape }
}

fn path(cell: &Cell, seed: u64) -> VolleyPath {
    VolleyPath::new(&cell.scenario().unwrap(), FROM, seed, HostNoise::default())
}

/// Bits behind the first packet over the time from the first to the last.
fn rate(train: &TrainReport) -> f64 {
    let (first, last) = (train.arrivals.first().unwrap(), train.arrivals.last().unwrap());
    f64::from(last.number - first.number) * 12_000.0 * 1e9 / (last.at - first.at) as f64
}

#[test]
fn an_idle_link_spaces_a_train_by_its_transmission_time() {
    let cell = cell(0, Traffic::Cbr, Shape::Three);
    let report = path(&cell, 1).run(&one(train(100, Gaps::BackToBack, Span::ZERO)));
    let truth = cell.truth().capacity;
    assert!((rate(&report.trains[0]) / truth - 1.0).abs() < 1e-6);
}

#[test]
fn a_slow_train_arrives_as_it_was_sent_and_rests_are_kept() {
    let mut path = path(&cell(0, Traffic::Cbr, Shape::One), 1);
    let gap = Gaps::Even(1_000_000_500);
    let trains = vec![train(3, gap.clone(), Span::ZERO), train(2, gap, Span::from_millis(40))];
    let report = path.run(&Volley { trains });
    let sent: Vec<i64> =
        report.trains.iter().flat_map(|train| train.sent.iter().flatten().copied()).collect();
    let since: Vec<i64> = sent.iter().map(|at| at - sent[0]).collect();
    assert_eq!(since, [0, 1_000_000, 2_000_001, 42_000_001, 43_000_001]);
    let arrived: Vec<i64> = report.trains.iter().flat_map(|t| t.arrivals.iter().map(|a| a.at)).collect();
    let delays: Vec<i64> = sent.iter().zip(&arrived).map(|(sent, at)| at - sent).collect();
    assert!(delays.iter().all(|delay| delay.abs_diff(delays[0]) <= 1), "{delays:?}");
}

#[test]
fn skipped_time_counts_for_the_clocks_though_nobody_lived_through_it() {
    let mut path = path(&cell(50, Traffic::Poisson, Shape::One), 1);
    let volley = one(train(2, Gaps::BackToBack, Span::ZERO));
    let first = path.run(&volley).trains[0].sent[0].unwrap();
    path.pass_to(path.now() + Span::from_secs(100));
    let second = path.run(&volley).trains[0].sent[0].unwrap();
    assert!((second - first - 100_000_000_000).abs() < 10_000_000);
    assert!(path.simulation().now().0 < 1_000_000_000, "it lived through {:?}", path.simulation().now());
}

#[test]
fn a_path_that_changes_with_the_hour_is_not_skipped() {
    let file = format!("{}/../../../scenarios/load-square.toml", env!("CARGO_MANIFEST_DIR"));
    let scenario = Scenario::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut path = VolleyPath::new(&scenario, FROM, 1, HostNoise::default());
    path.pass_to(path.now() + Span::from_millis(500));
    assert_eq!(path.simulation().now().0, 500_000_000);
}

#[test]
fn a_lost_packet_is_missing_and_a_packet_too_large_never_leaves() {
    let text = "about = 'x'\n[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\nloss = { every = 4 }\n";
    let scenario = Scenario::parse(text).unwrap();
    let mut path = VolleyPath::new(&scenario, FROM, 1, HostNoise::default());
    let report = path.run(&one(train(8, Gaps::BackToBack, Span::ZERO)));
    let arrived: Vec<u32> = report.trains[0].arrivals.iter().map(|arrival| arrival.number).collect();
    assert_eq!((report.trains[0].sent.len(), arrived), (8, vec![0, 1, 2, 4, 5, 6]));
    let large = Train { length: 9000, ..train(3, Gaps::BackToBack, Span::ZERO) };
    let report = path.run(&one(large));
    assert_eq!((&report.trains[0].sent, report.trains[0].arrivals.len()), (&vec![None; 3], 0));
}

#[test]
fn noise_moves_stamps_by_what_it_says_and_never_lets_a_clock_run_back() {
    let noise = HostNoise {
        send_error: Span(300),
        receive_error: Span(500),
        send_jitter: Span(2_000),
        ..HostNoise::default()
    };
    let scenario = cell(0, Traffic::Cbr, Shape::One).scenario().unwrap();
    let mut path = VolleyPath::new(&scenario, FROM, 1, noise);
    let report = path.run(&one(train(5_000, Gaps::Even(1_000_000_000), Span::ZERO)));
    let sent: Vec<i64> = report.trains[0].sent.iter().flatten().copied().collect();
    let late: Vec<f64> = (0..).zip(&sent).map(|(n, at)| (at - sent[0] - n * 1_000_000) as f64).collect();
    let (mean, sd) = moments(&late);
    assert!((sd - (2_000_f64.powi(2) + 300_f64.powi(2)).sqrt()).abs() < 150.0, "{mean} {sd}");
    let delays: Vec<f64> =
        report.trains[0].arrivals.iter().zip(&sent).map(|(a, sent)| (a.at - sent) as f64).collect();
    let (_, sd) = moments(&delays);
    assert!((sd - (500_f64.powi(2) + 300_f64.powi(2)).sqrt()).abs() < 40.0, "{sd}");
    assert!(sent.is_sorted());
}

fn moments(values: &[f64]) -> (f64, f64) {
    let moments: netaware_stats::moments::Moments = values.iter().copied().collect();
    (moments.mean().unwrap(), moments.sd().unwrap())
}

/// Wait of a lone packet, and dispersion of a train, volley after volley with 200 ms between them.
fn seen(path: &mut VolleyPath, volleys: usize) -> [Vec<f64>; 2] {
    let mut seen = [Vec::new(), Vec::new()];
    for _ in 0..volleys {
        path.pass_to(path.now() + Span::from_millis(200));
        let report = path.run(&one(train(1, Gaps::BackToBack, Span::ZERO)));
        let lone = &report.trains[0];
        seen[0].push((lone.arrivals[0].at - lone.sent[0].unwrap()) as f64);
        let report = path.run(&one(train(60, Gaps::Even(150_000_000), Span::from_micros(300))));
        seen[1].push(1e9 / rate(&report.trains[0]));
    }
    seen
}

/// Largest distance of the two distribution functions (Kolmogorov and Smirnov).
fn distance(left: &[f64], right: &[f64]) -> f64 {
    let share = |of: &[f64], upto: f64| of.iter().filter(|x| **x <= upto).count() as f64 / of.len() as f64;
    left.iter().chain(right).map(|x| (share(left, *x) - share(right, *x)).abs()).fold(0.0, f64::max)
}

/// Over 400 volleys, with as many seeds as wanted: sources that send evenly keep their phases for
/// as long as the network lives, so their volleys are independent only from seed to seed.
fn skipping_is_not_seen(cell: &Cell, seeds: u64) {
    let scenario = cell.scenario().unwrap();
    let pooled = |skips: bool, first: u64| {
        let mut pooled = [Vec::new(), Vec::new()];
        for seed in first..first + seeds {
            let build = if skips { VolleyPath::new } else { VolleyPath::without_skipping };
            let mut path = build(&scenario, FROM, seed, HostNoise::default());
            for (all, more) in pooled.iter_mut().zip(seen(&mut path, 400 / seeds as usize)) {
                all.extend(more);
            }
        }
        pooled
    };
    let (slow, fast) = (pooled(false, 0), pooled(true, 1000));
    for (slow, fast) in slow.iter().zip(&fast) {
        let distance = distance(slow, fast);
        // Equal distributions differ by more in one comparison of a thousand.
        let critical = 1.95 * (2.0 / slow.len() as f64).sqrt();
        let medians = [slow, fast].map(|of| {
            let mut sorted = of.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            linear(&sorted, 0.5).unwrap()
        });
        assert!(distance < critical, "{cell}: {distance} of {critical}, medians {medians:?}");
    }
}

#[test]
fn waits_and_dispersions_after_a_skip_are_distributed_as_without() {
    for (load, traffic) in [(50, Traffic::Poisson), (80, Traffic::Poisson), (80, Traffic::Pareto)] {
        skipping_is_not_seen(&cell(load, traffic, Shape::One), 40);
    }
    skipping_is_not_seen(&cell(50, Traffic::Cbr, Shape::Three), 400);
}

#[test]
fn a_train_that_fills_the_queue_is_forgotten_before_the_next() {
    let cell = cell(80, Traffic::Poisson, Shape::One);
    let mut path = path(&cell, 3);
    let wait = |path: &mut VolleyPath, before: u32| -> f64 {
        let waits = (0..300).map(|_| {
            path.run(&one(train(before, Gaps::BackToBack, Span::ZERO)));
            path.pass_to(path.now() + Span::from_secs(3));
            let lone = path.run(&one(train(1, Gaps::BackToBack, Span::ZERO)));
            (lone.trains[0].arrivals[0].at - lone.trains[0].sent[0].unwrap()) as f64
        });
        waits.sum::<f64>() / 300.0
    };
    let (after_one, after_many) = (wait(&mut path, 1), wait(&mut path, 150));
    assert!((after_many / after_one - 1.0).abs() < 0.25, "{after_one} {after_many}");
}
