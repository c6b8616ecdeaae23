//! The load search against links whose truth is known.

use super::*;
use crate::available::fifo::{Path, Traffic, instrument};

fn filling(capacity: f64) -> Instrument {
    Instrument { max_load: 1.0, ..instrument(capacity) }
}

#[test]
fn an_idle_link_yields_its_capacity() {
    for search in [Search::TypeB, Search::TypeC] {
        let mut path = Path::single(5e7, 0.0, Traffic::Even, 1);
        let outcome = path.run(&mut Maximum::new(&filling(5e7), search));
        let answer = outcome.answer.unwrap();
        assert!((answer.rate.estimate / 5e7 - 1.0).abs() < 0.02, "{search:?}: {answer:?}");
        assert_eq!(answer.bound, Bound::None);
        assert!(outcome.took <= 10.0);
    }
}

#[test]
fn on_a_loaded_link_it_is_more_than_what_was_free_and_less_than_the_capacity() {
    let mut path = Path::single(5e7, 0.5, Traffic::Even, 1);
    let answer = path.run(&mut Maximum::new(&filling(5e7), Search::TypeB)).answer.unwrap();
    assert!(answer.rate.lo > 2.5e7 && answer.rate.hi < 5e7, "{answer:?}");
}

#[test]
fn a_host_at_its_end_is_a_lower_bound() {
    let mut host = filling(1e9);
    host.send_gap = Span::from_micros(240);
    let mut path = Path::single(1e9, 0.0, Traffic::Even, 1);
    let answer = path.run(&mut Maximum::new(&host, Search::TypeC)).answer.unwrap();
    assert_eq!((answer.bound, &answer.flags[..]), (Bound::AtLeast, &[Flag::HostLimited][..]));
}

#[test]
fn a_policer_with_a_deep_bucket_has_two_modes() {
    for search in [Search::TypeB, Search::TypeC] {
        let mut path = Path::single(1e8, 0.0, Traffic::Even, 1);
        path.policer = Some((2e7, 2e7));
        let answer = path.run(&mut Maximum::new(&filling(1e8), search)).answer.unwrap();
        assert!((answer.rate.estimate / 2e7 - 1.0).abs() < 0.05, "{search:?} {answer:?}");
        let peak = answer
            .flags
            .iter()
            .find_map(|flag| if let Flag::Shaped { peak } = flag { Some(*peak) } else { None });
        assert!(peak.is_some_and(|peak| peak > 1.3 * 2e7), "{search:?} {answer:?}");
    }
}

#[test]
fn a_link_without_credit_has_one_mode_whatever_else_it_carries() {
    for (load, traffic) in
        [(0.0, Traffic::Even), (0.5, Traffic::Even), (0.3, Traffic::Poisson), (0.6, Traffic::Poisson)]
    {
        for (search, seed) in [(Search::TypeB, 1), (Search::TypeC, 2)] {
            let mut path = Path::single(5e7, load, traffic, seed);
            let answer = path.run(&mut Maximum::new(&filling(5e7), search)).answer.unwrap();
            let shaped = answer.flags.iter().any(|flag| matches!(flag, Flag::Shaped { .. }));
            assert!(!shaped, "{load} {traffic:?} {search:?}: {answer:?}");
        }
    }
}

#[test]
fn the_allowed_load_is_kept_even_if_nothing_comes_of_it() {
    let mut path = Path::single(5e7, 0.0, Traffic::Even, 1);
    let outcome = path.run(&mut Maximum::new(&instrument(5e7), Search::TypeC));
    assert!(outcome.bits <= 0.11 * 5e7 * outcome.took && outcome.took <= 10.0, "{outcome:?}");
}

#[test]
fn a_dead_path_has_no_answer() {
    let mut path = Path::single(5e7, 0.0, Traffic::Even, 1);
    path.loss = 1.1;
    assert_eq!(path.run(&mut Maximum::new(&filling(5e7), Search::TypeB)).answer, None);
}

#[test]
fn a_receiver_that_stalls_once_in_a_short_run_makes_no_figure_that_misleads() {
    let searches = [Search::TypeB, Search::TypeC];
    for (search, capacity) in searches.into_iter().flat_map(|it| [(it, 1e7), (it, 2e7), (it, 4e7), (it, 3e8)])
    {
        let mut bounds = 0;
        let mut worst = 1.0_f64;
        for (tenth, ms) in (0..30).flat_map(|tenth| [0, 20, 60, 120].map(|ms| (tenth, ms))) {
            let mut path = Path::single(capacity, 0.0, Traffic::Even, 1);
            path.stall_after(f64::from(tenth) * 1e8, f64::from(ms) * 1e6);
            let short = Instrument { time_limit: Span::from_secs(3), ..filling(capacity) };
            let answer = path.run(&mut Maximum::new(&short, search)).answer.unwrap();
            let ratio = answer.rate.estimate / capacity;
            let is_right = (ratio - 1.0).abs() < 0.1 || answer.rate.contains(capacity);
            let is_bound = answer.bound == Bound::AtLeast && answer.rate.lo < capacity;
            assert!(is_right || is_bound, "{search:?}, stalled {ms} ms after {tenth} tenths: {answer:?}");
            bounds += u32::from(is_bound);
            worst = worst.min(ratio);
        }
        println!("{search:?} {capacity:.1e}: {bounds} bounds, worst x {worst:.3}");
    }
}

#[test]
fn a_plan_without_distances_has_no_rate_that_the_host_could_miss() {
    let rate = |gaps: Gaps| {
        planned(&Volley { trains: vec![Train { packets: 10, length: 1500, gaps, rest: Span::ZERO }] })
    };
    assert!((rate(Gaps::Even(12_000_000)) / 1e9 - 1.0).abs() < 1e-9);
    for gaps in [Gaps::Even(0), Gaps::BackToBack] {
        assert_eq!(rate(gaps).to_bits(), 0.0_f64.to_bits());
    }
    assert_eq!(planned(&Volley::default()).to_bits(), 0.0_f64.to_bits());
}
