//! The whole matrix, printed as a table.

use std::sync::atomic::{AtomicUsize, Ordering};

use netaware_sim::cells::Cell;
use netaware_units::BitRate;

use crate::score::{Score, target};
use crate::{Method, score_of};

fn from_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
#[ignore = "takes minutes; prints the table of the capacity column"]
fn capacity_over_the_whole_matrix() {
    let seeds = from_environment("SEEDS").and_then(|seeds| seeds.parse().ok()).unwrap_or(20);
    let method = match from_environment("METHOD").as_deref() {
        Some("pathrate") => Method::Pathrate,
        Some("automatic") => Method::Automatic,
        _ => Method::Bulk,
    };
    let only = from_environment("ONLY").unwrap_or_default();
    let cells: Vec<Cell> = Cell::all().into_iter().filter(|cell| cell.to_string().contains(&only)).collect();
    let next = AtomicUsize::new(0);
    let rows = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let score = score_of(cell, method, seeds);
                    rows.lock().unwrap().push((*cell, score));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by_key(|(cell, _)| cells.iter().position(|other| other == cell));
    println!("cell | median | p90 | bias | bounds | silent | covered | nonsense | s | load | MB");
    for (cell, score) in &rows {
        let (middle, nine) = target(cell);
        let reached =
            score.errors.is_empty() || (score.absolute(0.5) <= middle && score.absolute(0.9) <= nine);
        println!(
            "{} {cell} | {:.2} % | {:.2} % | {:+.2} % | {} | {} | {} | {} | {:.2} | {:.3} | {:.2}",
            if reached { ' ' } else { '!' },
            score.absolute(0.5) * 100.0,
            score.absolute(0.9) * 100.0,
            score.bias() * 100.0,
            score.bounds,
            score.silent,
            score.covered,
            score.nonsense,
            score.longest,
            score.load,
            score.bytes as f64 / 1e6
        );
    }
    summary(&rows);
}

fn summary(rows: &[(Cell, Score)]) {
    let all = |of: &dyn Fn(&Score) -> usize| rows.iter().map(|(_, score)| of(score)).sum::<usize>();
    let runs = all(&|score| score.runs);
    println!(
        "{} cells, {runs} runs: covered {:.3}, bounds {:.3}, silent {:.3}, nonsense {}",
        rows.len(),
        all(&|score| score.covered) as f64 / runs as f64,
        all(&|score| score.bounds) as f64 / runs as f64,
        all(&|score| score.silent) as f64 / runs as f64,
        all(&|score| score.nonsense)
    );
    for rate in [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 40_000_000_000, 100_000_000_000] {
        let of_rate: Vec<&(Cell, Score)> = rows.iter().filter(|(cell, _)| cell.rate.0 == rate).collect();
        let reached = |row: &&&(Cell, Score)| {
            let (middle, nine) = target(&row.0);
            !row.1.errors.is_empty() && row.1.absolute(0.5) <= middle && row.1.absolute(0.9) <= nine
        };
        let bounded = of_rate.iter().filter(|row| row.1.errors.is_empty()).count();
        let covered = of_rate.iter().filter(|row| row.1.covered * 10 >= row.1.runs * 9).count();
        let good = of_rate.iter().filter(reached).count();
        println!(
            "{}: {good} of {} cells reach the target, {bounded} only bounds, {covered} covered",
            BitRate(rate),
            of_rate.len()
        );
    }
}
