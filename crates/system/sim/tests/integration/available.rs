//! Methods of available bandwidth against the cells of the matrix, whose truth is known.
//!
//! `cargo xtask sim` makes the table of the whole matrix.

use netaware_sim::accuracy::{Method, Score};
use netaware_sim::cells::{Cell, Shape, Traffic};
use netaware_units::{BitRate, Span};

fn figures(score: &Score) -> String {
    format!(
        "median {:.3}, p90 {:.3}, bias {:+.3}, bounds {}, held {} of {}, misled {}, {:.1} s, load {:.3}",
        score.absolute(0.5),
        score.absolute(0.9),
        score.bias(),
        score.bounds,
        score.held,
        score.runs,
        score.misled,
        score.longest,
        score.load
    )
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
        let score = Method::Curve.score(&cell, 0..7);
        assert!(score.absolute(0.5) < target && score.misled == 0, "{cell}: {}", figures(&score));
        assert!(score.longest <= 5.1 && score.load < 0.105, "{cell}: {}", figures(&score));
    }
}

#[test]
fn no_method_is_silently_wrong_on_a_bursty_path() {
    let cell = cell(100_000_000, 80, Traffic::Pareto, 50, Shape::One);
    for method in [Method::Curve, Method::Slops, Method::Chirp, Method::Spruce, Method::Available] {
        let score = method.score(&cell, 0..5);
        // On such a path they are not content within their usual time, and take what they are
        // given.
        let limit = cell.instrument().time_limit.secs_f64();
        assert!(score.misled == 0 && score.longest <= limit, "{method}: {}", figures(&score));
        assert_eq!(score.silent, 0, "{method}: {}", figures(&score));
    }
}
