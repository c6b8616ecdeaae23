//! The load search against links whose truth is known.

use super::*;
use crate::Arrival;
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
            // The last twenty volleys come to three quarters of the capacity, with the stall in one
            // of them, and the best sub-interval is never worse.
            let is_useful = (capacity / 2.0..capacity).contains(&answer.rate.lo);
            let is_bound = answer.bound == Bound::AtLeast && is_useful;
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

/// The estimator after one train that was to leave at 120 Mbit/s, a packet each 100 us. Its packets
/// left at the times `sent`, us; `came` has those that arrived, in their order, with the time, us.
fn after_one_train(sent: &[i64], came: &[(u32, i64)]) -> Maximum {
    let mut maximum = Maximum::new(&filling(1e8), Search::TypeB);
    let (packets, gaps) = (sent.len() as u32, Gaps::Even(100_000_000));
    let asked = Volley { trains: vec![Train { packets, length: 1500, gaps, rest: Span::ZERO }] };
    let arrivals = came.iter().map(|(number, at)| Arrival { number: *number, at: at * 1_000 }).collect();
    let sent = sent.iter().map(|at| Some(at * 1_000)).collect();
    maximum.take_volley(&asked, &VolleyReport { trains: vec![TrainReport { sent, arrivals }] });
    maximum
}

/// The estimator after a train whose packets left and came at these distances, us.
fn after_even_train(packets: u32, sent_gap: i64, came_gap: i64) -> Maximum {
    let sent: Vec<i64> = (0..i64::from(packets)).map(|number| number * sent_gap).collect();
    let came: Vec<(u32, i64)> =
        (0..packets).map(|number| (number, 5_000 + i64::from(number) * came_gap)).collect();
    after_one_train(&sent, &came)
}

#[test]
fn a_host_that_sends_at_less_than_nine_tenths_of_the_plan_is_the_limit() {
    // 120 Mbit/s over 1.11 are 108.1, over 1.12 they are 107.1.
    let limited = [90, 100, 111, 112].map(|gap| after_even_train(10, gap, gap).host_limited);
    assert_eq!(limited, [false, false, false, true]);
}

#[test]
fn a_volley_that_arrives_at_less_than_95_per_cent_of_its_rate_was_held_back() {
    let held_back = |came_gap: i64| after_even_train(10, 100, came_gap).volleys[0].held_back;
    assert_eq!([50, 100, 105, 106].map(held_back), [false, false, false, true]);
}

#[test]
fn packets_that_are_handed_over_at_once_took_four_fifths_of_the_time_of_sending() {
    for (came_gap, seconds) in [(0, 720e-6), (79, 720e-6), (81, 729e-6)] {
        let maximum = after_even_train(10, 100, came_gap);
        let seen = maximum.volleys[0];
        assert!((seen.seconds - seconds).abs() < 1e-12, "{came_gap}: {seen:?}");
        // Nine packets: the first one only begins.
        assert!((seen.bits - 108_000.0).abs() < 1e-6 && seen.begin == 5_000_000, "{came_gap}: {seen:?}");
    }
}

#[test]
fn one_packet_has_no_rate() {
    assert!(after_even_train(1, 100, 100).volleys.is_empty());
    assert!(after_one_train(&[0, 100], &[(1, 5_000)]).volleys.is_empty());
    assert_eq!(after_one_train(&[0, 100], &[(0, 5_000), (1, 5_100)]).volleys.len(), 1);
}

#[test]
fn more_than_ten_packets_lost_or_overtaken_are_congestion() {
    let sent: Vec<i64> = (0..20).map(|number| number * 100).collect();
    let is_congested = |came: &[(u32, i64)]| after_one_train(&sent, came).volleys[0].is_congested;
    let first = |packets: u32| -> Vec<(u32, i64)> {
        (0..packets).map(|number| (number, 5_000 + i64::from(number) * 100)).collect()
    };
    assert!(!is_congested(&first(10)) && is_congested(&first(9)));
    // The last packets first: each but one was overtaken.
    let backwards = |packets: u32| -> Vec<(u32, i64)> {
        let turned = (0..packets).rev().zip(5_000..);
        turned.chain((packets..20).map(|number| (number, 7_000))).collect()
    };
    assert!(!is_congested(&backwards(11)) && is_congested(&backwards(12)));
}

fn seen(rate: f64, begin: i64, held_back: bool, is_congested: bool) -> VolleySeen {
    VolleySeen { bits: rate * 0.05, seconds: 0.05, begin, held_back, is_congested, tail: None }
}

#[test]
fn a_sub_interval_was_limited_by_the_path_if_five_of_its_volleys_were() {
    let is_limited = |(held, congested): (usize, usize)| {
        let volleys: Vec<VolleySeen> =
            (0..20).map(|number| seen(1e7, 0, number < held, number + congested >= 20)).collect();
        SubInterval::of(&volleys).is_limited
    };
    let rows = [(4, 0), (5, 0), (0, 4), (0, 5), (2, 3), (20, 20)];
    assert_eq!(rows.map(is_limited), [false, true, false, true, true, true]);
}

#[test]
fn a_sub_interval_has_the_mean_rate_of_all_and_the_median_of_those_that_were_held_back() {
    let volleys = [(1e7, true), (2e7, true), (6e7, true), (7e7, false)];
    let of = SubInterval::of(&volleys.map(|(rate, held_back)| seen(rate, 0, held_back, false)));
    assert!((of.rate - 4e7).abs() < 1.0, "{of:?}");
    assert!(of.filled.is_some_and(|rate| (rate - 2e7).abs() < 1.0), "{of:?}");
    assert_eq!(SubInterval::of(&[seen(1e7, 0, false, true)]).filled, None);
}

#[test]
fn a_credit_is_spent_if_five_late_volleys_were_held_back_to_less_than_five_sixths_of_the_best() {
    // Twenty volleys at 100 Mbit/s, then twenty that are held back, one each 100 ms.
    let modes = |late: f64, held: i64| {
        let mut maximum = Maximum::new(&filling(1e8), Search::TypeB);
        let volley = |number: i64| {
            let (rate, held_back) = if number < 20 { (1e8, false) } else { (late, number < 20 + held) };
            seen(rate, number * 100_000_000, held_back, false)
        };
        maximum.volleys = (0..40).map(volley).collect();
        maximum.two_modes()
    };
    // 4 Mbit in 100 ms.
    let (peak, lasts) = modes(8e7, 5).unwrap();
    assert!((peak - 1e8).abs() < 1.0 && (lasts - 4e7).abs() < 1.0, "{peak} {lasts}");
    assert_eq!((modes(8e7, 4), modes(8.4e7, 20)), (None, None));
}

#[test]
fn a_figure_says_that_it_was_cut_short_and_that_more_than_a_tenth_was_lost() {
    let flags = |volleys: usize, arrived: u64| {
        let mut maximum = Maximum::new(&filling(1e8), Search::TypeB);
        maximum.volleys = vec![seen(1e7, 0, true, false); volleys];
        (maximum.sent, maximum.arrived) = (100, arrived);
        maximum.answer().unwrap().flags
    };
    assert_eq!((flags(19, 100), flags(20, 90)), (vec![Flag::CutShort], Vec::new()));
    let lossy = flags(20, 89);
    let [Flag::Lossy(lost)] = lossy.as_slice() else { panic!("{lossy:?}") };
    assert!((lost - 0.11).abs() < 1e-9, "{lost}");
}

#[test]
fn a_credit_that_each_volley_spends_anew_is_not_taken_for_the_rate() {
    let with = |rate: f64, tail: f64| VolleySeen { tail: Some(tail), ..seen(rate, 0, true, false) };
    let told = |volleys: Vec<VolleySeen>| {
        Maximum { volleys, ..Maximum::new(&filling(1e8), Search::TypeB) }.credit_of_each()
    };
    let (peak, lasts) = told(vec![with(6e6, 5e6); 30]).unwrap();
    assert!((peak / 6e6 - 1.0).abs() < 1e-9 && (lasts / 5e6 - 1.0).abs() < 1e-9, "{peak} {lasts}");
    assert_eq!(told(vec![with(5.2e6, 5e6); 30]), None);
    assert_eq!(told((0..30).map(|n| with(6e6, 4e6 + f64::from(n) * 1e5)).collect()), None);
}
