//! Estimates of capacity held against the truth, over seeds.
//!
//! `cargo xtask sim` makes the table of the whole matrix.

use netaware_path::{Bound, Flag, Instrument};
use netaware_sim::accuracy::{Method, Score};
use netaware_sim::cells::{Cell, FROM, RTT, Shape, Traffic};
use netaware_sim::{Estimated, HostNoise, Scenario, Stall, VolleyPath, estimate};
use netaware_units::{BitRate, Span};

fn run(
    scenario: &Scenario,
    instrument: &Instrument,
    noise: HostNoise,
    method: Method,
    seed: u64,
) -> Estimated {
    let mut path = VolleyPath::new(scenario, FROM, seed, noise);
    estimate(&mut path, &mut method.build(instrument, 0.0, seed), RTT)
}

fn cell(rate: u64, load: u32, traffic: Traffic, micros: i64, shape: Shape) -> Cell {
    let coalescing = (micros > 0).then(|| Span::from_micros(micros));
    Cell { rate: BitRate(rate), load, traffic, coalescing, shape }
}

fn must_reach(cells: &[Cell], method: Method, seeds: u64) {
    for cell in cells {
        let score = method.score(cell, 0..seeds);
        let target = method.target(cell);
        let figures = format!(
            "{cell}: median {:.4}, p90 {:.4}, bias {:.4}, bounds {}, held {} of {}, {:.2} s, load {:.3}",
            score.absolute(0.5),
            score.absolute(0.9),
            score.bias(),
            score.bounds,
            score.held,
            score.runs,
            score.longest,
            score.load
        );
        assert!(score.reaches(target) && score.errors.len() * 2 > score.runs, "{figures}");
        assert!(score.is_held() && score.misled == 0, "{figures}");
        // Where the usual time is too short for the load, the method takes of the rest what it
        // needs.
        assert!(score.longest <= cell.instrument().time_limit.secs_f64(), "{figures}");
        assert!(score.load <= 0.12, "{figures}");
    }
}

#[test]
fn bulk_reads_idle_paths_of_every_rate_to_the_target() {
    let rates = [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 40_000_000_000, 100_000_000_000];
    let cells = rates.map(|rate| cell(rate, 0, Traffic::Cbr, 0, Shape::Three));
    must_reach(&cells, Method::Bulk, 5);
}

#[test]
fn bulk_reads_idle_paths_through_coalescing() {
    let cells = [(100_000_000, 250), (1_000_000_000, 50), (1_000_000_000, 250), (10_000_000_000, 250)];
    let cells = cells.map(|(rate, micros)| cell(rate, 0, Traffic::Cbr, micros, Shape::One));
    must_reach(&cells, Method::Bulk, 5);
}

#[test]
fn bulk_reads_loaded_paths() {
    let cells = [
        cell(10_000_000, 50, Traffic::Poisson, 0, Shape::Three),
        cell(100_000_000, 80, Traffic::Pareto, 0, Shape::One),
        cell(1_000_000_000, 50, Traffic::Cbr, 0, Shape::Three),
        cell(1_000_000_000, 80, Traffic::Poisson, 0, Shape::NarrowNotTight),
    ];
    must_reach(&cells, Method::Bulk, 10);
}

#[test]
fn pathrate_reads_idle_and_loaded_paths() {
    let cells = [
        cell(10_000_000, 0, Traffic::Cbr, 0, Shape::Three),
        cell(100_000_000, 50, Traffic::Poisson, 0, Shape::One),
    ];
    must_reach(&cells, Method::Pathrate, 2);
}

fn bundled(name: &str) -> Scenario {
    let file = format!("{}/../../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::parse(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn of_bundled(name: &str, method: Method, seed: u64) -> Estimated {
    let instrument = cell(100_000_000, 0, Traffic::Cbr, 0, Shape::One).instrument();
    let instrument = Instrument { largest_burst: 400 * 1500, ..instrument };
    run(&bundled(name), &instrument, HostNoise { send_gap: Span(500), ..HostNoise::default() }, method, seed)
}

#[test]
fn the_narrow_link_is_found_wherever_the_load_is() {
    let rows = [
        ("idle-10m", 10e6),
        ("idle-100m", 100e6),
        ("three-hops", 100e6),
        ("narrow-not-tight", 50e6),
        ("post-narrow-load", 20e6),
        ("hidden-switch", 100e6),
    ];
    for (name, truth) in rows {
        for seed in 0..5 {
            let answer = of_bundled(name, Method::Bulk, seed).answer.unwrap();
            let error = answer.rate.estimate / truth - 1.0;
            assert!(error.abs() < 0.03, "{name}, seed {seed}: {answer:?}");
        }
    }
}

#[test]
fn a_token_bucket_is_told_from_a_link_and_its_peak_beside_it() {
    for name in ["shaper", "policer"] {
        for seed in 0..3 {
            let answer = of_bundled(name, Method::Bulk, seed).answer.unwrap();
            // What a policer drops makes the command send less, too little to read the token rate.
            let is_doubted = answer.flags.contains(&Flag::Ambiguous) && answer.rate.contains(50e6);
            if name == "policer" && is_doubted {
                continue;
            }
            let peak = answer.flags.iter().find_map(|flag| match flag {
                Flag::Shaped { peak } => Some(*peak),
                _ => None,
            });
            assert!(peak.is_some_and(|peak| (peak / 1e9 - 1.0).abs() < 0.05), "{name}: {answer:?}");
            assert!((answer.rate.estimate / 50e6 - 1.0).abs() < 0.2, "{name}: {answer:?}");
        }
    }
}

#[test]
fn links_that_reorder_every_bulk_give_a_bound_and_say_so() {
    for seed in 0..3 {
        let answer = of_bundled("parallel-links", Method::Bulk, seed).answer.unwrap();
        assert_eq!(answer.bound, Bound::AtLeast, "{answer:?}");
        assert!(answer.rate.lo <= 100e6 && answer.flags.contains(&Flag::Ambiguous), "{answer:?}");
    }
}

#[test]
fn a_path_that_loses_everything_gets_no_answer_and_a_lossy_one_a_flag() {
    let lossy = |every: u32| {
        let text = format!("about = 'x'\n[[hop]]\nrate = '100Mbit/s'\nloss = {{ every = {every} }}\n");
        Scenario::parse(&text).unwrap()
    };
    let instrument = cell(100_000_000, 0, Traffic::Cbr, 0, Shape::One).instrument();
    for method in [Method::Bulk, Method::Pathrate, Method::Capacity] {
        let all = run(&lossy(1), &instrument, HostNoise::default(), method, 1);
        assert!(all.answer.is_none() && all.took < Span::from_secs(31), "{method:?}: {all:?}");
        let some = run(&lossy(25), &instrument, HostNoise::default(), method, 1).answer.unwrap();
        assert!(some.flags.iter().any(|flag| matches!(flag, Flag::Lossy(_))), "{method:?}: {some:?}");
        assert!((some.rate.estimate / 100e6 - 1.0).abs() < 0.02, "{method:?}: {some:?}");
    }
}

#[test]
fn a_sender_that_is_kept_from_its_core_does_not_slow_the_path() {
    let cell = cell(1_000_000_000, 20, Traffic::Poisson, 0, Shape::One);
    let stall = Some(Stall { probability: 0.02, lasts: Span::from_millis(1) });
    let noise = HostNoise { stall, send_jitter: Span(2_000), ..cell.noise() };
    let mut score = Score::default();
    for seed in 0..10 {
        let ended = run(&cell.scenario().unwrap(), &cell.instrument(), noise, Method::Bulk, seed);
        score.add(&ended, cell.truth().capacity, cell.truth().capacity);
    }
    assert!(score.misled == 0 && score.absolute(0.9) < 0.05, "{score:?}");
}

#[test]
fn a_host_slower_than_the_path_gives_a_bound() {
    let cell = cell(10_000_000_000, 0, Traffic::Cbr, 0, Shape::One);
    let noise = HostNoise { send_gap: Span(20_000), ..cell.noise() };
    let instrument = Instrument { send_gap: Span(20_000), ..cell.instrument() };
    let answer = run(&cell.scenario().unwrap(), &instrument, noise, Method::Bulk, 1).answer.unwrap();
    assert!(answer.flags.contains(&Flag::HostLimited) && answer.bound == Bound::AtLeast, "{answer:?}");
    assert!(answer.rate.lo < 4e9, "{answer:?}");
}
