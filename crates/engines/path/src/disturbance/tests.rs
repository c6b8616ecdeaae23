use netaware_units::Span;

use super::*;

fn paused(share: f64) -> EndLoad {
    EndLoad { paused: Some(share), ..EndLoad::default() }
}

fn denied(share: f64) -> EndLoad {
    EndLoad { denied: Some(share), ..EndLoad::default() }
}

fn stolen(steal: f64, busy: f64) -> EndLoad {
    EndLoad { steal: Some(steal), busy: Some(busy), ..EndLoad::default() }
}

fn full(core: f64, own: f64) -> EndLoad {
    EndLoad { busiest_core: Some(core), own: Some(own), ..EndLoad::default() }
}

const QUIET: EndLoad =
    EndLoad { paused: None, denied: None, steal: None, busy: None, busiest_core: None, own: None };

fn away(sender: EndLoad, receiver: EndLoad, unstamped: f64) -> f64 {
    Disturbance::of(&sender, &receiver, unstamped).away
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

fn rate(estimate: f64) -> Interval {
    Interval { estimate, lo: estimate * 0.99, hi: estimate * 1.01, confidence: 0.95 }
}

fn answer(bound: Bound) -> Estimate {
    Estimate {
        rate: rate(100e6),
        bound,
        method: "made up",
        bytes: 1,
        packets: 1,
        took: Span::ZERO,
        flags: vec![Flag::CutShort],
    }
}

#[test]
fn a_sender_is_away_in_pauses_and_a_receiver_only_for_what_it_stamps_itself() {
    let both = |paused, denied| EndLoad { paused: Some(paused), denied: Some(denied), ..QUIET };
    let rows = [
        (paused(0.1), QUIET, 0.0, 0.1),
        // A wait before a train costs nothing, and a pause without a wait is the device's.
        (both(0.1, 0.7), QUIET, 0.0, 0.1),
        (both(0.7, 0.1), QUIET, 0.0, 0.1),
        (denied(0.7), QUIET, 0.0, 0.0),
        (QUIET, denied(0.4), 0.0, 0.0),
        (QUIET, denied(0.4), 0.5, 0.2),
        (QUIET, denied(0.4), 7.0, 0.4),
        // Cores that idle lose nothing: a tenth of a half is a fifth.
        (stolen(0.1, 0.5), QUIET, 0.0, 0.2),
        (QUIET, stolen(0.1, 0.5), 0.0, 0.2),
        (stolen(0.005, 0.01), QUIET, 0.0, 0.0),
        (stolen(0.01, 0.1), QUIET, 0.0, 0.1),
        (EndLoad { paused: Some(0.5), ..stolen(0.1, 0.5) }, stolen(0.1, 1.0), 0.0, 1.0 - 0.5 * 0.8 * 0.9),
        (QUIET, QUIET, 1.0, 0.0),
    ];
    for (n, (sender, receiver, unstamped, want)) in rows.into_iter().enumerate() {
        let found = away(sender, receiver, unstamped);
        assert!(is_near(found, want), "row {n}: {found}");
    }
}

#[test]
fn others_beside_the_measurement_are_suspected() {
    let level = |load| Disturbance::alone(&load).level();
    assert_eq!(level(full(0.99, 0.1)), Level::Suspected);
    assert_eq!(level(full(0.99, 0.9)), Level::Quiet, "the measurement itself");
    assert_eq!(level(full(0.9, 0.0)), Level::Quiet);
    assert_eq!(Disturbance::of(&QUIET, &full(1.0, 0.2), 0.0).level(), Level::Suspected);
    assert_eq!(level(EndLoad { own: None, ..full(1.0, 0.0) }), Level::Suspected);
    assert_eq!(
        [0.2, 0.3, 1.0].map(|share| level(denied(share))),
        [Level::Quiet, Level::Suspected, Level::Suspected]
    );
}

#[test]
fn quiet_hosts_leave_an_answer_as_it_is() {
    for load in [QUIET, paused(0.049), denied(0.2), stolen(0.01, 1.0), full(0.5, 0.5)] {
        let told = Disturbance::of(&load, &load, 0.0);
        assert_eq!(
            (told.level() == Level::Quiet, told.on(answer(Bound::None))),
            (true, answer(Bound::None)),
            "{load:?}"
        );
    }
}

#[test]
fn of_a_suspected_host_the_interval_holds_what_it_may_have_done() {
    let told = Disturbance::alone(&paused(0.125)).on(answer(Bound::None));
    assert!(is_near(told.rate.lo, 87.5e6) && is_near(told.rate.hi, 100e6 / 0.875), "{told:?}");
    assert_eq!((told.rate.estimate, told.bound), (100e6, Bound::None));
    assert_eq!(told.flags, [Flag::CutShort, Flag::HostBusy { away: 0.125 }]);
    // A core beside it costs what no counter tells.
    let beside = Disturbance::alone(&full(1.0, 0.0)).on(answer(Bound::None));
    assert!(is_near(beside.rate.lo, 95e6) && beside.bound == Bound::None, "{beside:?}");
    // An interval that is wide already stays.
    let wide = Interval { lo: 1.0, hi: 1e9, ..rate(100e6) };
    assert_eq!(Disturbance::alone(&paused(0.1)).on_rate(wide, Bound::None), (wide, Bound::None));
}

#[test]
fn a_host_that_others_used_is_not_said_to_send_no_faster() {
    // 90 Mbit/s over links in parallel by hosts that send gigabits, and were away for half of the
    // time.
    let mut parallel = answer(Bound::AtLeast);
    parallel.flags = vec![Flag::Reordered(0.49)];
    let told = Disturbance::alone(&paused(0.5)).on(parallel);
    assert_eq!(
        (told.bound, told.flags),
        (Bound::AtLeast, vec![Flag::Reordered(0.49), Flag::HostBusy { away: 0.5 }])
    );
}

#[test]
fn a_tight_link_from_nothing_to_four_times_the_truth_is_none() {
    let link = |estimate: f64, lo: f64, hi: f64| {
        let capacity = Interval { estimate, lo, hi, confidence: 0.95 };
        TightLink { capacity, quality: 0.6 }.known().is_some()
    };
    assert!(!link(125e6, 0.0, 257e6) && !link(69.8e6, 0.0, 150e6) && !link(60e6, 0.0, 61e6));
    assert!(link(74.6e6, 51.7e6, 97.6e6) && link(51.1e6, 39e6, 63.1e6));
    let capacity = Interval { estimate: 3e8, lo: 3e8, hi: 3e8, confidence: 0.95 };
    assert_eq!(TightLink { capacity, quality: 0.0 }.known(), None);
}

#[test]
fn of_a_host_that_was_away_there_is_a_bound_and_no_tight_link() {
    let away = Disturbance::alone(&paused(0.4));
    let told = away.on(answer(Bound::None));
    assert!(told.bound == Bound::AtLeast && is_near(told.rate.lo, 60e6), "{told:?}");
    assert_eq!(told.flags, [Flag::CutShort, Flag::HostBusy { away: 0.4 }]);
    let at_least = away.on(answer(Bound::AtLeast));
    assert!(at_least.bound == Bound::AtLeast && is_near(at_least.rate.lo, 99e6 * 0.6), "{at_least:?}");
    let at_most = away.on(answer(Bound::AtMost));
    assert!(at_most.bound == Bound::AtMost && is_near(at_most.rate.hi, 101e6 / 0.6), "{at_most:?}");
    let link = TightLink { capacity: rate(100e6), quality: 0.9 };
    assert_eq!(away.on_tight_link(link), None);
    let suspected = Disturbance::alone(&paused(0.125)).on_tight_link(link);
    assert!(suspected.is_some_and(|link| is_near(link.capacity.lo, 87.5e6)), "{suspected:?}");
}

#[test]
fn a_method_that_saw_the_pauses_and_a_host_that_was_away_make_a_bound() {
    let late = || Estimate { flags: vec![Flag::HostLimited], ..answer(Bound::None) };
    let away = Disturbance::alone(&paused(0.125)).on(late());
    assert_eq!(
        (away.bound, &away.flags[..]),
        (Bound::AtLeast, &[Flag::HostLimited, Flag::HostBusy { away: 0.125 }][..])
    );
    assert_eq!(Disturbance::alone(&full(1.0, 0.0)).on(late()).bound, Bound::None, "late by itself");
    assert_eq!(Disturbance::alone(&QUIET).on(late()), late());
}

#[test]
fn no_figure_that_stays_one_may_be_off_by_more_than_a_fifth() {
    for percent in 0..100 {
        let told = Disturbance::alone(&paused(f64::from(percent) / 100.0)).on(answer(Bound::None));
        let holds = told.rate.lo >= 80e6 - 1.0 && told.rate.hi <= 125e6 + 1.0;
        assert!(holds || told.bound == Bound::AtLeast, "{percent} %: {told:?}");
        let says = told.flags.iter().any(|flag| matches!(flag, Flag::HostBusy { .. }));
        assert_eq!(says, percent >= 5, "{percent} %: {told:?}");
    }
}

#[test]
fn the_worse_of_two_turns_counts() {
    let one = Disturbance { away: 0.1, beside: false };
    let other = Disturbance { away: 0.02, beside: true };
    assert_eq!(one.or_worse(&other), Disturbance { away: 0.1, beside: true });
    let loads = paused(0.1).or_worse(&EndLoad { denied: Some(0.3), ..stolen(0.2, 0.5) });
    assert_eq!((loads.paused, loads.denied), (Some(0.1), Some(0.3)));
    assert_eq!((loads.steal, loads.own), (Some(0.2), None));
}

#[test]
fn nobodys_word_makes_an_interval_without_ends() {
    let mad = |of: f64| EndLoad {
        paused: Some(of),
        denied: Some(of),
        steal: Some(of),
        busy: Some(of),
        busiest_core: Some(of),
        own: Some(of),
    };
    for of in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e300, 1.0] {
        let told = Disturbance::of(&mad(of), &mad(of), of).on(answer(Bound::None));
        assert!(
            told.rate.lo > 0.0 && told.rate.hi.is_finite() && told.rate.lo <= told.rate.hi,
            "{of}: {told:?}"
        );
        let sane = mad(of).sane();
        let shares = [sane.paused, sane.denied, sane.steal, sane.busy, sane.busiest_core];
        let within = |most: f64| of.is_finite().then(|| of.clamp(0.0, most));
        assert_eq!((shares, sane.own), ([within(1.0); 5], within(MOST_CORES)), "{of}");
    }
}

#[test]
fn a_hop_becomes_a_bound_only_by_a_host_that_was_away() {
    use crate::hops::{HopCapacity, HopFinding, Way};
    let hop = HopFinding {
        ttl: 1,
        addresses: Vec::new(),
        asked: 9,
        answered: 9,
        rtt_min: None,
        rtt_median: None,
        queueing: None,
        capacity: Some(HopCapacity {
            rate: rate(100e6),
            bound: Bound::None,
            least_squares: None,
            way: Way::Direct,
            from: 1,
            segments: None,
            sizes: 8,
            samples: 80,
        }),
        train: None,
        flags: Vec::new(),
    };
    let silent = HopFinding { capacity: None, ..hop.clone() };
    let found = HopsFinding {
        ceased: None,
        hops: vec![hop, silent],
        reached: true,
        choke_point: None,
        trains: 0,
        largest: 1500,
        packets: 9,
        bytes: 900,
        took: Span::from_secs(1),
        flags: Vec::new(),
    };
    let told = |share: f64| {
        let mut told = found.clone();
        Disturbance::alone(&paused(share)).on_hops(&mut told);
        told
    };
    assert_eq!(told(0.01), found);
    let suspected = told(0.125);
    assert_eq!(suspected.flags, [PathFlag::HostBusy { away: 0.125 }]);
    assert!(suspected.hops[0].flags.is_empty());
    let limited = told(0.5);
    assert_eq!(
        (&limited.hops[0].flags[..], &limited.hops[1].flags[..]),
        (&[HopFlag::HostLimited][..], &[][..])
    );
    let capacity = limited.hops[0].capacity.as_ref().unwrap();
    assert!(capacity.bound == Bound::AtLeast && is_near(capacity.rate.lo, 50e6), "{capacity:?}");
}
