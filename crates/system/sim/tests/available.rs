//! Methods of available bandwidth against the cells of the matrix, whose truth is known.
//!
//! The quick subset runs always. `cargo test --release -p netaware-sim --test available -- --ignored --nocapture` prints a
//! table of more; `SEEDS` and `METHODS` (names, comma between) choose how much of it.

use netaware_path::available::{Automatic, Chirp, Curve, Slops};
use netaware_path::{Bound, Estimator, Flag, Instrument};
use netaware_sim::cells::{Cell, FROM, RTT, Shape, Traffic};
use netaware_sim::{VolleyPath, estimate};
use netaware_units::{BitRate, Span};

/// What a method came to over the seeds of a cell.
#[derive(Debug, Default)]
struct Grade {
    errors: Vec<f64>,
    held: u32,
    bounds: u32,
    none: u32,
    /// Without flag and bound more than 20 % off.
    silent: u32,
    seconds: f64,
    megabytes: f64,
    load: f64,
}

const METHODS: [&str; 4] = ["curve", "slops", "chirp", "automatic"];

fn method(name: &str, host: &Instrument) -> Box<dyn Estimator> {
    match name {
        "curve" => Box::new(Curve::new(host)),
        "slops" => Box::new(Slops::new(host)),
        "chirp" => Box::new(Chirp::new(host)),
        _ => Box::new(Automatic::new(host)),
    }
}

fn graded(cell: &Cell, name: &str, seeds: u64) -> Grade {
    let scenario = cell.scenario().unwrap();
    let truth = cell.truth();
    let mut grade = Grade::default();
    for seed in 0..seeds {
        let mut path = VolleyPath::new(&scenario, FROM, seed * 31 + 7, cell.noise());
        let mut method = method(name, &cell.instrument());
        let run = estimate(&mut path, method.as_mut(), RTT);
        assert!(run.done, "{cell}: no end");
        grade.seconds = grade.seconds.max(run.took.secs_f64());
        grade.megabytes += run.bytes as f64 / 1e6 / seeds as f64;
        grade.load = grade.load.max(run.bytes as f64 * 8.0 / run.took.secs_f64() / truth.capacity);
        let Some(answer) = run.answer else {
            grade.none += 1;
            continue;
        };
        let error = answer.rate.estimate / truth.available - 1.0;
        match answer.bound {
            Bound::None => {
                grade.errors.push(error);
                grade.held += u32::from(answer.rate.contains(truth.available));
                let told = answer.flags.iter().any(|flag| !matches!(flag, Flag::Coalescing { .. }));
                grade.silent += u32::from(error.abs() > 0.2 && !told);
            }
            Bound::AtLeast => {
                grade.bounds += 1;
                grade.silent += u32::from(answer.rate.lo > 1.05 * truth.available);
            }
            Bound::AtMost => {
                grade.bounds += 1;
                grade.silent += u32::from(answer.rate.hi < 0.95 * truth.available);
            }
        }
    }
    grade
}

impl Grade {
    fn quantile(&self, q: f64) -> f64 {
        let mut sizes: Vec<f64> = self.errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.get(((sizes.len() as f64 - 1.0) * q).round() as usize).copied().unwrap_or(f64::NAN)
    }

    fn bias(&self) -> f64 {
        self.errors.iter().sum::<f64>() / self.errors.len().max(1) as f64
    }

    fn line(&self) -> String {
        format!(
            "{:6.1} % p90 {:6.1} % bias {:+6.1} % held {:3.0} % bounds {} none {} silent {} | {:4.1} s {:8.2} MB load {:4.1} %",
            self.quantile(0.5) * 100.0,
            self.quantile(0.9) * 100.0,
            self.bias() * 100.0,
            f64::from(self.held) * 100.0 / self.errors.len().max(1) as f64,
            self.bounds,
            self.none,
            self.silent,
            self.seconds,
            self.megabytes,
            self.load * 100.0
        )
    }
}

fn cell(rate: u64, load: u32, traffic: Traffic, micros: i64, shape: Shape) -> Cell {
    let coalescing = (micros > 0).then(|| Span::from_micros(micros));
    Cell { rate: BitRate(rate), load, traffic, coalescing, shape }
}

#[test]
fn smooth_traffic_is_measured_within_the_targets() {
    let cells = [
        (cell(100_000_000, 0, Traffic::Cbr, 0, Shape::One), 0.03),
        (cell(100_000_000, 50, Traffic::Cbr, 250, Shape::One), 0.03),
        (cell(100_000_000, 20, Traffic::Poisson, 0, Shape::Three), 0.05),
        (cell(1_000_000_000, 50, Traffic::Poisson, 50, Shape::One), 0.05),
        (cell(1_000_000_000, 50, Traffic::Cbr, 0, Shape::NarrowNotTight), 0.05),
    ];
    for (cell, target) in cells {
        let grade = graded(&cell, "curve", 7);
        assert!(grade.quantile(0.5) < target && grade.silent == 0, "{cell}: {}", grade.line());
        assert!(grade.seconds <= 5.0 && grade.load < 0.105, "{cell}: {}", grade.line());
    }
}

#[test]
fn no_method_is_silently_wrong_on_a_bursty_path() {
    let cell = cell(100_000_000, 80, Traffic::Pareto, 50, Shape::One);
    for name in METHODS {
        let grade = graded(&cell, name, 5);
        assert!(grade.silent == 0 && grade.seconds <= 20.0, "{name}: {}", grade.line());
    }
}

#[test]
#[ignore = "a table for reading"]
fn table() {
    let from = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let seeds: u64 = from("SEEDS", "20").parse().unwrap();
    let names = from("METHODS", "curve,slops,chirp,automatic");
    let (rates, shapes) = (from("RATES", ""), from("SHAPES", "One"));
    for name in names.split(',') {
        for cell in Cell::all() {
            let wanted = rates.is_empty() || rates.split(',').any(|rate| rate == cell.rate.0.to_string());
            if wanted && shapes.contains(&format!("{:?}", cell.shape)) {
                println!("{name:9} {:45} {}", cell.to_string(), graded(&cell, name, seeds).line());
            }
        }
    }
}
