use super::*;

fn mono(millis: i64) -> Mono {
    Mono(0) + Span::from_millis(millis)
}

fn rate(at: i64, ip: IpVersion, mbit: f64) -> Observation {
    let goodput = Some(BitRate((mbit * 1e6) as u64));
    Observation { at: mono(at), ip, goodput, round_trip: None, loss: None, loss_bounds: None }
}

/// Observes both versions every half second and does what is decided; when it switched, and to
/// which.
fn follow(rules: Rules, seconds: i64, mbit: impl Fn(i64, IpVersion) -> f64) -> Vec<(i64, IpVersion)> {
    let mut policy = Policy::new(rules);
    let mut present = IpVersion::V4;
    let mut switches = Vec::new();
    for at in (0..seconds * 1000).step_by(500) {
        for ip in [IpVersion::V4, IpVersion::V6] {
            policy.observe(&rate(at, ip, mbit(at, ip)));
        }
        if let Some(decision) = policy.decide(mono(at), present) {
            present = decision.to;
            policy.switched(decision.at);
            switches.push((at, present));
        }
    }
    switches
}

/// Uniform from -1 to 1, the same for the same arguments.
fn noise(at: i64, ip: IpVersion, salt: u64) -> f64 {
    let mut x = (at as u64) ^ salt ^ if ip == IpVersion::V6 { 0x9e37_79b9_7f4a_7c15 } else { 0 };
    for _ in 0..3 {
        x = (x ^ (x >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

#[test]
fn twice_the_rate_is_gone_for_within_ten_seconds() {
    let switches = follow(Rules::of(Use::Bulk), 120, |at, ip| {
        let mean = if ip == IpVersion::V6 { 200.0 } else { 100.0 };
        mean * (1.0 + 0.2 * noise(at, ip, 1))
    });
    assert_eq!(switches.len(), 1, "{switches:?}");
    assert!(switches[0].0 <= 10_000 && switches[0].1 == IpVersion::V6, "{switches:?}");
}

#[test]
fn an_hour_of_noise_around_equality_does_not_make_it_flap() {
    for salt in 0..20 {
        let switches = follow(Rules::of(Use::Bulk), 3600, |at, ip| 100.0 * (1.0 + 0.3 * noise(at, ip, salt)));
        assert!(switches.len() <= 1, "{salt}: {switches:?}");
    }
}

#[test]
fn a_version_that_is_better_by_turns_is_followed_ever_more_slowly() {
    let switches = follow(Rules::of(Use::Bulk), 3600, |at, ip| {
        let good = if (at / 40_000) % 2 == 0 { IpVersion::V6 } else { IpVersion::V4 };
        if ip == good { 200.0 } else { 100.0 }
    });
    // Without damping 90 of them.
    assert!((2..25).contains(&switches.len()), "{}", switches.len());
}

#[test]
fn one_version_alone_gives_no_decision() {
    let mut policy = Policy::new(Rules::of(Use::Bulk));
    for at in (0..60_000).step_by(500) {
        policy.observe(&rate(at, IpVersion::V6, 500.0));
    }
    assert_eq!(policy.decide(Mono(60_000_000_000), IpVersion::V4), None);
}

#[test]
fn shorter_round_trips_and_less_loss_are_better() {
    for (what_for, here, there) in [(Use::Interactive, 40.0, 20.0), (Use::Media, 0.02, 0.001)] {
        let mut policy = Policy::new(Rules::of(what_for));
        for at in (0..10_000).step_by(500) {
            for (ip, value) in [(IpVersion::V4, here), (IpVersion::V6, there)] {
                let round_trip = (what_for == Use::Interactive).then_some(Span((value * 1e6) as i64));
                let loss = (what_for == Use::Media).then_some(value);
                let at = mono(at);
                let (goodput, loss_bounds) = (None, None);
                policy.observe(&Observation { at, ip, goodput, round_trip, loss, loss_bounds });
            }
        }
        let now = Mono(9_500_000_000);
        assert_eq!(policy.decide(now, IpVersion::V4).map(|it| it.to), Some(IpVersion::V6));
        assert_eq!(policy.decide(now, IpVersion::V6), None);
    }
}

/// Media, IPv4 in use: what is decided after ten seconds of these shares and bounds.
fn by_loss(here: (f64, [f64; 2]), there: (f64, [f64; 2])) -> Option<Decision> {
    let mut policy = Policy::new(Rules { prefer: None, ..Rules::of(Use::Media) });
    for at in (0..10_000).step_by(500) {
        for (ip, (loss, bounds)) in [(IpVersion::V4, here), (IpVersion::V6, there)] {
            let (at, loss, loss_bounds) = (mono(at), Some(loss), Some(bounds));
            policy.observe(&Observation { at, ip, goodput: None, round_trip: None, loss, loss_bounds });
        }
    }
    policy.decide(mono(9_500), IpVersion::V4)
}

#[test]
fn what_may_be_chance_decides_nothing() {
    let sure = by_loss((0.03, [0.025, 0.035]), (0.0, [0.0, 0.005])).unwrap();
    assert!((sure.present - 0.03).abs() < 1e-12 && sure.other.abs() < 1e-12, "{sure:?}");
    // The same shares, of fewer packets of either.
    assert_eq!(by_loss((0.03, [0.025, 0.035]), (0.0, [0.0, 0.025])), None);
    assert_eq!(by_loss((0.03, [0.004, 0.09]), (0.0, [0.0, 0.005])), None);
}

#[test]
fn a_decision_says_how_much_was_seen_of_either_version_and_no_more_than_is_kept() {
    let mut policy = Policy::new(Rules::of(Use::Bulk));
    for n in 0..24 {
        policy.observe(&rate(n, IpVersion::V6, 200.0));
    }
    for n in 0..600 {
        policy.observe(&rate(100 + n * 50, IpVersion::V4, 100.0));
    }
    let decision = policy.decide(mono(40_000), IpVersion::V4).unwrap();
    assert_eq!(decision.of, [KEPT, LEAST_SEEN]);
}

#[test]
fn better_is_by_more_than_the_margin_and_any_less_loss_is_enough_towards_the_preferred_version() {
    let (v4, v6) = (Some(IpVersion::V4), Some(IpVersion::V6));
    // Metric, preferred version, figures of the other one (IPv6) and the present one, whether it is
    // better.
    let rows = [
        (Metric::Goodput, None, 150.0, 100.0, false),
        (Metric::Goodput, None, 151.0, 100.0, true),
        (Metric::RoundTrip, None, 100.0, 150.0, false),
        (Metric::RoundTrip, None, 100.0, 151.0, true),
        (Metric::Loss, None, 0.25, 0.5, false),
        (Metric::Loss, None, 0.2, 0.5, true),
        (Metric::Loss, v4, 0.4, 0.5, false),
        (Metric::Loss, v4, 0.6, 0.5, false),
        (Metric::Loss, v6, 0.4, 0.5, true),
        (Metric::Loss, v6, 0.5, 0.5, false),
    ];
    for (row, (metric, prefer, there, here, better)) in rows.into_iter().enumerate() {
        let policy = Policy::new(Rules { metric, margin: 0.25, prefer, ..Rules::of(Use::Bulk) });
        // Loss goes by the rules' own margin, however few the observations are.
        assert_eq!(policy.is_better(there, here, 0.5, IpVersion::V4), better, "row {row}");
    }
}

#[test]
fn nine_of_ten_of_the_last_observations_must_be_better() {
    let mut policy = Policy::new(Rules::of(Use::Bulk));
    // The last one is no better, so that it takes nine others.
    for n in 0..10 {
        policy.observe(&rate(n, IpVersion::V6, if n == 9 { 100.0 } else { 1000.0 }));
    }
    for n in 20..23 {
        policy.observe(&rate(n, IpVersion::V4, 100.0));
    }
    let expected = Decision {
        at: mono(5000),
        to: IpVersion::V6,
        by: DecidedBy::Rules,
        metric: Metric::Goodput,
        present: 1e8,
        other: 1e9,
        of: [3, 10],
        margin: 0.1 + 0.4 * (1.0 - 10.0 / 24.0),
        not_done: None,
    };
    assert_eq!(policy.decide(mono(5000), IpVersion::V4), Some(expected));
}

#[test]
fn three_of_each_decide_once_the_first_of_them_is_as_old_as_the_rules_ask() {
    let decided = |here: i64, now: Mono| {
        let mut policy = Policy::new(Rules::of(Use::Bulk));
        (0..3).for_each(|n| policy.observe(&rate(n, IpVersion::V6, 200.0)));
        (0..here).for_each(|n| policy.observe(&rate(n, IpVersion::V4, 100.0)));
        policy.decide(now, IpVersion::V4).map(|it| it.of)
    };
    assert_eq!(decided(3, mono(4000)), Some([3, 3]));
    assert_eq!(decided(3, Mono(3_999_999_999)), None);
    assert_eq!(decided(2, mono(4000)), None);
}

/// Three looks at both versions, of which IPv6 is twice as good.
fn look(policy: &mut Policy, at: i64) {
    for _ in 0..3 {
        policy.observe(&rate(at, IpVersion::V4, 100.0));
        policy.observe(&rate(at, IpVersion::V6, 200.0));
    }
}

#[test]
fn a_switch_holds_and_one_soon_after_it_twice_as_long_up_to_an_hour() {
    let mut policy = Policy::new(Rules { hold: Span::from_secs(10), ..Rules::of(Use::Bulk) });
    // When it switched, and from when on it may again.
    for (at, free) in [(0, 10_000), (39_999, 59_999), (119_999, 129_999)] {
        policy.switched(mono(at));
        look(&mut policy, at);
        let decides = |at| policy.decide(mono(at), IpVersion::V4).is_some();
        assert_eq!((decides(free - 1), decides(free)), (false, true), "switched at {at} ms");
    }
    (120_000..120_010).for_each(|at| policy.switched(mono(at)));
    look(&mut policy, 120_009);
    let decides = |at| policy.decide(mono(at), IpVersion::V4).is_some();
    assert_eq!((decides(120_009 + 3_599_999), decides(120_009 + 3_600_000)), (false, true));
}

#[test]
fn a_callback_sees_the_medians_of_the_last_two_dozen() {
    let mut policy = Policy::new(Rules::of(Use::Bulk));
    policy.switched(mono(0));
    for n in 0..30_i64 {
        let (goodput, round_trip) = (Some(BitRate(1000 + n as u64)), Some(Span(2000 + n)));
        // Every other one says nothing of loss.
        let loss = (n % 2 == 0).then_some(n as f64 / 64.0);
        let (at, ip, loss_bounds) = (mono(n), IpVersion::V4, None);
        policy.observe(&Observation { at, ip, goodput, round_trip, loss, loss_bounds });
    }
    let v4 = VersionEvidence {
        up: true,
        observations: 24,
        seen_at: Some(mono(29)),
        goodput: Some(BitRate(1017)),
        round_trip: Some(Span(2017)),
        loss: Some(17.0 / 64.0),
    };
    let v6 = VersionEvidence {
        up: false,
        observations: 0,
        seen_at: None,
        goodput: None,
        round_trip: None,
        loss: None,
    };
    let (at, present, switched_at) = (mono(50), IpVersion::V4, Some(mono(0)));
    let expected = Evidence { at, present, v4, v6, rules_say: None, switched_at };
    assert_eq!(policy.evidence(mono(50), IpVersion::V4, [true, false]), expected);
}

#[test]
fn figures_that_cannot_be_tell_nothing_and_a_callback_is_noted_with_those_that_can() {
    let mut policy = Policy::new(Rules::of(Use::Media));
    let see = |policy: &mut Policy, ip, loss| {
        let (at, goodput, round_trip, loss_bounds) = (mono(1), None, None, None);
        policy.observe(&Observation { at, ip, goodput, round_trip, loss, loss_bounds });
    };
    for loss in [None, Some(-0.5), Some(f64::NAN), Some(f64::INFINITY)] {
        see(&mut policy, IpVersion::V4, loss);
    }
    let nothing = policy.called(mono(2), IpVersion::V4);
    assert!(nothing.of == [0, 0] && nothing.present.is_nan() && nothing.other.is_nan(), "{nothing:?}");
    see(&mut policy, IpVersion::V4, Some(0.25));
    see(&mut policy, IpVersion::V6, Some(0.5));
    let expected = Decision {
        at: mono(3),
        to: IpVersion::V6,
        by: DecidedBy::Callback,
        metric: Metric::Loss,
        present: 0.25,
        other: 0.5,
        of: [1, 1],
        margin: 0.0,
        not_done: None,
    };
    assert_eq!(policy.called(mono(3), IpVersion::V4), expected);
}
