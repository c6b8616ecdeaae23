//! The accuracy of a method over all cells, as a table in Markdown: what `cargo xtask sim` writes
//! to docs/accuracy.
//!
//! `cargo run --release -p netaware-sim --example accuracy -- METHOD [SEEDS] [SECONDS] [CELLS]`:
//! runs up to SEEDS (200) seeds of each cell whose name contains CELLS, fewer where they take more
//! than their share of SECONDS (no end), but five at least.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use netaware_sim::Bank;
use netaware_sim::accuracy::{Method, Score};
use netaware_sim::cells::Cell;
use netaware_units::BitRate;

/// Seeds of a cell at a time.
const PART: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let method: Method = words.next().ok_or("which METHOD?")?.parse()?;
    let seeds: u64 = words.next().map_or(Ok(200), |word| word.parse())?;
    let seconds: f64 = words.next().map_or(Ok(f64::INFINITY), |word| word.parse())?;
    let only = words.next().unwrap_or_default();
    let cells: Vec<Cell> = Cell::all().into_iter().filter(|cell| cell.to_string().contains(&only)).collect();
    if cells.is_empty() {
        return Err(format!("no cell's name contains '{only}'; one is '{}'", Cell::all()[0]).into());
    }
    let scores = scores(method, &cells, seeds, seconds);
    let rows: Vec<(Cell, Score)> = cells.into_iter().zip(scores).collect();
    std::io::stdout().write_all(table(method, &rows).as_bytes())?;
    Ok(())
}

/// Cell by cell, as what a cell keeps for its next seeds is large. Time that a cell does not need
/// is the later ones'.
fn scores(method: Method, cells: &[Cell], seeds: u64, seconds: f64) -> Vec<Score> {
    #[expect(clippy::disallowed_methods, reason = "how long a person waits, not what is measured")]
    let began = Instant::now();
    let passed = || began.elapsed().as_secs_f64();
    let scores = Mutex::new(vec![Score::default(); cells.len()]);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(turn) else { return };
                    let share = (seconds - passed()) * threads as f64 / (cells.len() - turn) as f64;
                    let (until, mut bank) = (passed() + share, Bank::default());
                    let mut score = Score::default();
                    for first in (0..seeds).step_by(PART) {
                        if first > 0 && passed() > until {
                            break;
                        }
                        let part = first..(first + PART as u64).min(seeds);
                        score.join(method.score_with(cell, part, &mut bank));
                    }
                    if let Ok(mut scores) = scores.lock() {
                        scores[turn] = score;
                    }
                }
            });
        }
    });
    scores.into_inner().unwrap_or_default()
}

fn table(method: Method, rows: &[(Cell, Score)]) -> String {
    let all = |of: &dyn Fn(&Score) -> usize| rows.iter().map(|(_, score)| of(score)).sum::<usize>();
    let runs = all(&|score| score.runs);
    let fewest = rows.iter().map(|(_, score)| score.runs).min().unwrap_or(0);
    let share = |of: usize| format!("{:.1} %", of as f64 * 100.0 / runs.max(1) as f64);
    let mut text = format!(
        "{} cells, {fewest} seeds or more of each, {runs} runs. The truth lay in the interval, or the bound allowed it, in {} of them; \
         {} were bounds, nothing was said in {}. More than 20 % off without a flag: {}.\n\n",
        rows.len(),
        share(all(&|score| score.held)),
        share(all(&|score| score.bounds)),
        share(all(&|score| score.silent)),
        all(&|score| score.misled),
    );
    text += "| link | cells | reach the target | only bounds | interval holds in 9 of 10 | misled | longest | median bytes | most |\n";
    text += "|---|---|---|---|---|---|---|---|---|\n";
    let mut rates: Vec<BitRate> = rows.iter().map(|(cell, _)| cell.rate).collect();
    rates.dedup();
    for rate in rates {
        let of_rate: Vec<&(Cell, Score)> = rows.iter().filter(|(cell, _)| cell.rate == rate).collect();
        let count = |of: &dyn Fn(&(Cell, Score)) -> bool| of_rate.iter().filter(|row| of(row)).count();
        let longest = of_rate.iter().map(|row| row.1.longest).fold(0.0, f64::max);
        let mut all = Score::default();
        for row in &of_rate {
            all.join(row.1.clone());
        }
        let _ = writeln!(
            text,
            "| {rate} | {} | {} | {} | {} | {} | {longest:.1} s | {:.2} MB | {:.2} MB |",
            of_rate.len(),
            count(&|(cell, score)| score.reaches(method.target(cell))),
            count(&|(_, score)| score.errors.is_empty()),
            count(&|(_, score)| score.is_held()),
            of_rate.iter().map(|row| row.1.misled).sum::<usize>(),
            all.bytes(0.5) / 1e6,
            all.bytes(1.0) / 1e6
        );
    }
    text += "\n| cell | median | p90 | bias | bounds | none | held | misled | time | load | bytes |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (cell, score) in rows {
        let mark = if score.reaches(method.target(cell)) { "" } else { " **!**" };
        let _ = writeln!(
            text,
            "| {cell}{mark} | {:.2} % | {:.2} % | {:+.2} % | {} | {} | {} of {} | {} | {:.1} s | {:.1} % | {:.2} MB |",
            score.absolute(0.5) * 100.0,
            score.absolute(0.9) * 100.0,
            score.bias() * 100.0,
            score.bounds,
            score.silent,
            score.held,
            score.runs,
            score.misled,
            score.longest,
            score.load * 100.0,
            score.bytes(0.5) / 1e6
        );
    }
    text
}
