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
    let mut path = Path::single(1e8, 0.0, Traffic::Even, 1);
    path.policer = Some((2e7, 2e7));
    let mut maximum = Maximum::new(&filling(1e8), Search::TypeC).with_first_mode(2);
    let answer = path.run(&mut maximum).answer.unwrap();
    let (first, rest) = maximum.modes().unwrap();
    assert!(first > 1.3 * rest && answer.flags.contains(&Flag::Ambiguous), "{first} {rest}");
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
