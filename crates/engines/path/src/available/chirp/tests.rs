//! Chirps against links whose truth is known.

use super::*;
use crate::available::fifo::{Path, Traffic, instrument};

fn graded(capacity: f64, load: f64, traffic: Traffic, coalescing: f64, seeds: u64) -> (f64, f64, f64) {
    let truth = capacity * (1.0 - load);
    let (mut errors, mut held) = (Vec::new(), 0);
    for seed in 0..seeds {
        let mut path = Path::single(capacity, load, traffic, seed * 3 + 1);
        path.coalescing = coalescing;
        let outcome = path.run(&mut Chirp::new(&instrument(capacity)));
        let answer = outcome.answer.as_ref().unwrap();
        errors.push((answer.rate.estimate / truth - 1.0).abs());
        held += u64::from(answer.rate.contains(truth));
        assert!(outcome.took <= 10.0 && outcome.bits <= 0.0205 * capacity * outcome.took, "{outcome:?}");
    }
    errors.sort_by(f64::total_cmp);
    (errors[errors.len() / 2], errors[errors.len() * 9 / 10], held as f64 / seeds as f64)
}

#[test]
fn even_traffic_is_found_with_a_fiftieth_of_the_capacity() {
    for load in [0.0, 0.2, 0.5] {
        let (median, _, held) = graded(1e8, load, Traffic::Even, 0.0, 5);
        assert!(median < 0.08 && held > 0.5, "{load}: {median} {held}");
    }
}

#[test]
fn it_follows_traffic_that_swells() {
    let mut path = Path::single(1e8, 0.2, Traffic::Poisson, 2);
    path.swell = Some((2.1e10, 3.0));
    let mut host = instrument(1e8);
    host.time_limit = Span::from_secs(60);
    let answer = path.run(&mut Chirp::watching(&host)).answer.unwrap();
    assert!((answer.rate.estimate / 4e7 - 1.0).abs() < 0.35, "{answer:?}");
}

#[test]
fn every_volley_yields_an_answer() {
    let mut path = Path::single(1e8, 0.3, Traffic::Poisson, 4);
    let mut chirp = Chirp::watching(&instrument(1e8));
    let mut now = Mono(0);
    let mut answers = 0;
    for _ in 0..12 {
        let Step::Volley { volley, due } = chirp.next(now) else { panic!("over") };
        let (report, over) = path.carry(&volley, now.max(due).0 as f64);
        now = Mono(over as u64 + 10_000_000);
        chirp.take(now, &report, Span::ZERO);
        answers += u32::from(chirp.answer().is_some());
    }
    assert!(answers >= 9, "{answers}");
}

#[test]
fn a_path_that_dies_ends_the_watch() {
    let mut path = Path::single(1e8, 0.3, Traffic::Even, 5);
    path.loss = 1.1;
    let outcome = path.run(&mut Chirp::watching(&instrument(1e8)));
    assert!(outcome.answer.is_none() && outcome.volleys < 20);
}
