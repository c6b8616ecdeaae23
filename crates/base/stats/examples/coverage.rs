//! Prints how often the 95 % interval of `hierarchical_paired` holds the truth: the table in its
//! module header.
//!
//! `cargo run --release -p netaware-stats --example coverage`. Takes seconds; the seeds are fixed,
//! so a changed figure is a changed method.

use netaware_stats::bootstrap::{Resampling, Statistic, hierarchical_paired};
use netaware_stats::rng::SplitMix64;

const REPETITIONS: u64 = 1000;
const PAIRS: usize = 40;
const BLOCK: usize = 8;
const LAG_ONE_CORRELATION: f64 = 0.5;
const TRUTH: f64 = 5.0;

fn main() {
    println!("rounds  statistic  noise   same rounds %  differing rounds %");
    for rounds in [1, 2, 3, 4, 8] {
        for (statistic, noise) in [
            (Statistic::Mean, Noise::Normal),
            (Statistic::Median, Noise::Normal),
            (Statistic::Mean, Noise::LongTail),
        ] {
            let same = coverage(statistic, noise, rounds, 0.0);
            let differing = coverage(statistic, noise, rounds, 1.0);
            println!("{rounds:6}  {statistic:9?}  {noise:8?}  {same:11.1}  {differing:18.1}");
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// Log-normal with its mean taken off: the shape of queueing delays.
    LongTail,
}

fn coverage(statistic: Statistic, noise: Noise, rounds: usize, between_sd: f64) -> f64 {
    let mut rng = SplitMix64::new(1000 + rounds as u64);
    let hits = (0..REPETITIONS).filter(|&seed| {
        let data: Vec<Vec<f64>> = (0..rounds)
            .map(|_| {
                let shift = TRUTH + between_sd * normal(&mut rng);
                one_round(&mut rng, noise, shift)
            })
            .collect();
        let how = Resampling { resamples: 300, ..Resampling::new(statistic, seed) };
        hierarchical_paired(&data, BLOCK, &how).is_some_and(|found| found.interval.contains(TRUTH))
    });
    100.0 * hits.count() as f64 / REPETITIONS as f64
}

fn one_round(rng: &mut SplitMix64, noise: Noise, shift: f64) -> Vec<f64> {
    let mut x = normal(rng);
    std::iter::repeat_with(|| {
        x = LAG_ONE_CORRELATION * x + (1.0 - LAG_ONE_CORRELATION.powi(2)).sqrt() * normal(rng);
        match noise {
            Noise::Normal => shift + x,
            Noise::LongTail => shift + x.exp() - 0.5_f64.exp(),
        }
    })
    .take(PAIRS)
    .collect()
}

fn normal(rng: &mut SplitMix64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).cos()
}
