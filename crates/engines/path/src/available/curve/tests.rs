//! The line against links whose truth is known.

use super::*;
use crate::available::fifo::{Hop, Outcome, Path, Traffic, instrument};
use crate::{Bound, Flag};

fn run(path: &mut Path, host: &Instrument) -> (Outcome, Curve) {
    let mut curve = Curve::new(host);
    let outcome = path.run(&mut curve);
    (outcome, curve)
}

/// Median and 90 % quantile of the relative error, and the share of intervals that hold the truth.
fn graded(capacity: f64, load: f64, traffic: Traffic, coalescing: f64, seeds: u64) -> (f64, f64, f64) {
    let truth = capacity * (1.0 - load);
    let (mut errors, mut held) = (Vec::new(), 0);
    for seed in 0..seeds {
        let mut path = Path::single(capacity, load, traffic, seed * 7 + 1);
        path.coalescing = coalescing;
        let (outcome, _) = run(&mut path, &instrument(capacity));
        let answer = outcome.answer.as_ref().unwrap();
        errors.push((answer.rate.estimate / truth - 1.0).abs());
        held += u64::from(answer.rate.contains(truth));
        assert!(outcome.took <= 5.0 && outcome.bits <= 0.105 * capacity * outcome.took, "{outcome:?}");
    }
    errors.sort_by(f64::total_cmp);
    (errors[errors.len() / 2], errors[errors.len() * 9 / 10], held as f64 / seeds as f64)
}

#[test]
fn a_fluid_link_is_measured_to_a_percent() {
    for load in [0.0, 0.2, 0.5, 0.8] {
        let (median, p90, held) = graded(1e8, load, Traffic::Even, 0.0, 5);
        assert!(median < 0.01 && p90 < 0.03 && held > 0.9, "{load}: {median} {p90} {held}");
    }
}

#[test]
fn the_tight_links_capacity_comes_with_it() {
    let mut path = Path::single(1e8, 0.5, Traffic::Even, 3);
    let (_, curve) = run(&mut path, &instrument(1e8));
    let tight = curve.tight_link().unwrap();
    assert!((tight.capacity.estimate / 1e8 - 1.0).abs() < 0.05 && tight.quality > 0.9, "{tight:?}");
}

#[test]
fn a_tight_link_behind_the_narrow_one_is_seen_through_it() {
    let rows = [(0.5, Traffic::Even, 0.05), (0.8, Traffic::Even, 0.1), (0.8, Traffic::Poisson, 0.2)];
    for (load, traffic, within) in rows {
        // (2 - u) / 2 of the narrow link's rate is left of the tight one.
        let available = 1e8 * (2.0 - load) / 2.0;
        let error = |seed: u64| {
            let tight = Hop::new(available / (1.0 - load), load, traffic);
            let hops = vec![Hop::new(1e8, 0.0, Traffic::Even), tight];
            let answer = run(&mut Path::new(hops, seed), &instrument(1e8)).0.answer.unwrap();
            let error = answer.rate.estimate / available - 1.0;
            assert!(error.abs() < 0.25 || !answer.flags.is_empty(), "{seed}: {answer:?}");
            error
        };
        let errors: Vec<f64> = (0..15).map(error).collect();
        let middle = netaware_stats::quantile::median(&errors).unwrap();
        assert!(middle.abs() < within, "{load} {traffic:?}: {errors:?}");
    }
}

#[test]
fn a_narrow_link_behind_the_tight_one_does_not_matter() {
    let hops = vec![Hop::new(1.55e8, 0.8, Traffic::Even), Hop::new(1e8, 0.0, Traffic::Even)];
    let (outcome, _) = run(&mut Path::new(hops, 4), &instrument(1e8));
    let rate = outcome.answer.unwrap().rate;
    assert!((rate.estimate / 3.1e7 - 1.0).abs() < 0.05, "{rate:?}");
}

#[test]
fn losses_are_told_and_do_not_bend_the_line() {
    let mut path = Path::single(1e8, 0.3, Traffic::Even, 5);
    path.loss = 0.05;
    let (outcome, _) = run(&mut path, &instrument(1e8));
    let answer = outcome.answer.unwrap();
    assert!(answer.flags.iter().any(|flag| matches!(flag, Flag::Lossy(_))), "{answer:?}");
    assert!((answer.rate.estimate / 7e7 - 1.0).abs() < 0.1, "{answer:?}");
}

#[test]
fn a_dead_path_has_no_answer() {
    let mut path = Path::single(1e8, 0.0, Traffic::Even, 5);
    path.loss = 1.1;
    let (outcome, _) = run(&mut path, &instrument(1e8));
    assert_eq!(outcome.answer, None);
    assert!(outcome.took < 5.0);
}

#[test]
fn a_detour_in_mid_run_is_told() {
    let mut path = Path::single(1e8, 0.3, Traffic::Poisson, 6);
    path.detour = Some((3e9, 8e6));
    let (outcome, _) = run(&mut path, &instrument(1e8));
    assert!(outcome.answer.unwrap().flags.contains(&Flag::PathChanged));
}

#[test]
fn a_sender_that_pauses_costs_precision_only() {
    let mut path = Path::single(1e8, 0.5, Traffic::Even, 7);
    path.hog = Some((3.1e7, 4e6));
    let (outcome, _) = run(&mut path, &instrument(1e8));
    let answer = outcome.answer.unwrap();
    assert!((answer.rate.estimate / 5e7 - 1.0).abs() < 0.05, "{answer:?}");
}

#[test]
fn a_policer_is_the_tight_link() {
    let mut path = Path::single(1e9, 0.0, Traffic::Even, 8);
    path.policer = Some((1e8, 15_000.0));
    let (outcome, _) = run(&mut path, &instrument(1e9));
    let answer = outcome.answer.unwrap();
    // What the bucket holds and what it loses make it uncertain, and it says so.
    assert!((answer.rate.estimate / 1e8 - 1.0).abs() < 0.3, "{answer:?}");
    assert!(answer.flags.iter().any(|flag| matches!(flag, Flag::Lossy(_))), "{answer:?}");
}

#[test]
fn a_host_that_cannot_fill_the_path_yields_a_bound() {
    let mut host = instrument(1e9);
    host.send_gap = Span::from_micros(60);
    let (outcome, _) = run(&mut Path::single(1e9, 0.3, Traffic::Poisson, 9), &host);
    let answer = outcome.answer.unwrap();
    assert_eq!(answer.bound, Bound::AtLeast);
    assert!(answer.flags.contains(&Flag::HostLimited) && answer.rate.lo < 2.01e8, "{answer:?}");
}

#[test]
fn cut_off_early_it_says_what_it_has() {
    let mut host = instrument(1e8);
    host.time_limit = Span::from_millis(900);
    let (outcome, _) = run(&mut Path::single(1e8, 0.5, Traffic::Poisson, 10), &host);
    let answer = outcome.answer.unwrap();
    assert!(outcome.took < 0.9 && !answer.flags.is_empty(), "{answer:?}");
}

#[test]
fn cross_traffic_that_goes_away_is_told() {
    let mut path = Path::single(1e8, 0.6, Traffic::Even, 11);
    path.swell = Some((2.2e9, 0.4));
    let (outcome, _) = run(&mut path, &instrument(1e8));
    let answer = outcome.answer.unwrap();
    let told = answer.flags.contains(&Flag::Elastic) || answer.flags.contains(&Flag::Noisy);
    assert!(told, "{answer:?}");
}

#[test]
fn packets_out_of_order_cost_little() {
    let mut path = Path::single(1e8, 0.4, Traffic::Even, 12);
    path.reordering = Some((50, 4e5));
    let (outcome, _) = run(&mut path, &instrument(1e8));
    assert!((outcome.answer.unwrap().rate.estimate / 6e7 - 1.0).abs() < 0.05);
}
