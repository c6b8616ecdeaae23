//! Ranges against links whose truth is known.

use super::*;
use crate::available::fifo::{Outcome, Path, Traffic, instrument};
use crate::{Bound, Flag};

fn run(path: &mut Path, host: &Instrument) -> Outcome {
    path.run(&mut Slops::new(host))
}

fn graded(capacity: f64, load: f64, traffic: Traffic, coalescing: f64, seeds: u64) -> (f64, f64, f64, f64) {
    let truth = capacity * (1.0 - load);
    let (mut errors, mut held, mut bits) = (Vec::new(), 0, 0.0);
    for seed in 0..seeds {
        let mut path = Path::single(capacity, load, traffic, seed * 5 + 2);
        path.coalescing = coalescing;
        let outcome = run(&mut path, &instrument(capacity));
        let answer = outcome.answer.unwrap();
        errors.push((answer.rate.estimate / truth - 1.0).abs());
        held += u64::from(answer.rate.contains(truth));
        bits += outcome.bits;
        assert!(
            outcome.took <= 15.0 && outcome.bits <= 0.105 * capacity * outcome.took,
            "{:?}",
            outcome.took
        );
    }
    errors.sort_by(f64::total_cmp);
    let n = seeds as f64;
    (errors[errors.len() / 2], errors[errors.len() * 9 / 10], held as f64 / n, bits / n / 8e6)
}

#[test]
fn even_traffic_is_bracketed() {
    for load in [0.0, 0.2, 0.5, 0.8] {
        let (median, p90, held, _) = graded(1e8, load, Traffic::Even, 0.0, 20);
        assert!(median < 0.05 && p90 < 0.08 && held > 0.9, "{load}: {median} {p90} {held}");
    }
}

#[test]
fn half_of_pathloads_bytes_are_enough() {
    // Pathload took 13 MB for nine fleets at 100 Mbit/s.
    let (_, _, _, megabytes) = graded(1e8, 0.5, Traffic::Poisson, 0.0, 5);
    assert!(megabytes < 6.5, "{megabytes}");
}

#[test]
fn coalescing_takes_longer_streams_and_no_other_answer() {
    let (median, _, held, _) = graded(1e9, 0.5, Traffic::Even, 250_000.0, 5);
    assert!(median < 0.05 && held > 0.7, "{median} {held}");
}

#[test]
fn a_host_that_cannot_fill_the_path_yields_a_bound() {
    let mut host = instrument(1e9);
    host.send_gap = Span::from_micros(60);
    let answer = run(&mut Path::single(1e9, 0.3, Traffic::Poisson, 9), &host).answer.unwrap();
    assert_eq!(answer.bound, Bound::AtLeast);
    assert!(answer.flags.contains(&Flag::HostLimited));
}

#[test]
fn a_dead_path_has_no_answer() {
    let mut path = Path::single(1e8, 0.0, Traffic::Even, 5);
    path.loss = 1.1;
    assert_eq!(run(&mut path, &instrument(1e8)).answer, None);
}

#[test]
fn heavy_loss_is_told() {
    let mut path = Path::single(1e8, 0.3, Traffic::Even, 5);
    path.loss = 0.2;
    let answer = run(&mut path, &instrument(1e8)).answer.unwrap();
    assert!(answer.flags.iter().any(|flag| matches!(flag, Flag::Lossy(_))), "{answer:?}");
}

#[test]
fn cut_off_early_it_says_what_it_has() {
    let mut host = instrument(1e8);
    host.time_limit = Span::from_millis(700);
    let outcome = run(&mut Path::single(1e8, 0.5, Traffic::Poisson, 10), &host);
    assert!(outcome.took < 0.7 && outcome.answer.unwrap().flags.contains(&Flag::CutShort));
}

#[test]
fn a_queue_that_holds_less_than_a_stream_makes_streams_shorter() {
    for packets in [1, 5, 22, 39] {
        let mut host = instrument(1e8);
        host.largest_burst = packets * 1500;
        let outcome = Path::single(1e8, 0.3, Traffic::Even, 3).run(&mut Slops::new(&host));
        assert!(outcome.took <= 15.0, "{packets}: {outcome:?}");
    }
}

#[test]
fn a_stream_has_seventy_packets_and_lasts_long_against_bursts_and_the_error_of_stamps() {
    // Error of a stamp in ns, rate in bit/s, bits of a stream: 70 packets, 2.5 ms, and 600 times 10
    // us.
    for (error, rate, bits) in [(100, 1e7, 840_000.0), (100, 1e9, 2.5e6), (10_000, 1e9, 6e6)] {
        let host = Instrument { send_error: Span::ZERO, receive_error: Span(error), ..instrument(1e9) };
        let mut slops = Slops::new(&host);
        slops.budget.begin(Mono(0));
        slops.arrived(1e9);
        let found = slops.stream_bits(rate, Mono(0));
        assert!((found / bits - 1.0).abs() < 1e-9, "{error} {rate}: {found}");
    }
}
